//! Databases: tables that workflows write and the API reads. The code calls them tables.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::scope::{DatabaseRead, DatabaseWrite};
use contract::v1;
use wire::cursor::Pages;

use super::reference::unresolvable;
use super::{Services, cut, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::store::{ColumnsReplaced, NewTable, Position, RowOrder, RowQuery, Table};
use crate::table::{Column, ColumnInput, ColumnType, Key, Row, arrange, find, parse_conditions};

const DEFAULT_LIST: i64 = 200;
const DEFAULT_PAGE: i64 = 50;

pub(super) struct Databases {
    services: Services,
}

contract::database_service_methods!(service, Databases);

impl Databases {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_databases(
        &self,
        caller: Authorized<DatabaseRead>,
        request: v1::ListDatabasesRequest,
    ) -> Result<v1::ListDatabasesResponse> {
        let size = page_size(request.limit, DEFAULT_LIST);
        let store = &self.services.store;
        let mut tables = store.list_tables(caller.organization_id(), size + 1).await?;
        let truncated = cut(&mut tables, size);
        let data = tables.into_iter().map(summary).collect();
        Ok(v1::ListDatabasesResponse { data, truncated })
    }

    async fn create_database(
        &self,
        caller: Authorized<DatabaseWrite>,
        request: v1::CreateDatabaseRequest,
    ) -> Result<v1::CreateDatabaseResponse> {
        let wanted = request.columns.into_iter().map(column_input).collect();
        let columns = arrange(&[], wanted).map_err(Error::violations)?;
        let new = NewTable {
            name: &request.name,
            description: request.description.as_deref(),
            team_id: request.team_id.as_deref(),
            columns: &columns,
        };
        let store = &self.services.store;
        let created = store
            .create_table(&caller.actor(), caller.organization_id(), &new)
            .await;
        Ok(v1::CreateDatabaseResponse {
            data: Some(schema(created.map_err(unresolvable)?)),
        })
    }

    async fn get_database(
        &self,
        caller: Authorized<DatabaseRead>,
        request: v1::GetDatabaseRequest,
    ) -> Result<v1::GetDatabaseResponse> {
        let store = &self.services.store;
        let table = store.table(caller.organization_id(), &request.id).await?;
        Ok(v1::GetDatabaseResponse {
            data: Some(schema(table)),
        })
    }

    async fn update_database(
        &self,
        caller: Authorized<DatabaseWrite>,
        request: v1::UpdateDatabaseRequest,
    ) -> Result<v1::UpdateDatabaseResponse> {
        let wanted = request.columns.into_iter().map(column_input).collect();
        let store = &self.services.store;
        let replaced = store
            .replace_columns(&caller.actor(), caller.organization_id(), &request.id, wanted)
            .await?;
        match replaced {
            ColumnsReplaced::Replaced(table) => Ok(v1::UpdateDatabaseResponse {
                data: Some(schema(table)),
            }),
            ColumnsReplaced::Refused(violations) => Err(Error::violations(violations)),
        }
    }

    async fn delete_database(
        &self,
        caller: Authorized<DatabaseWrite>,
        request: v1::DeleteDatabaseRequest,
    ) -> Result<v1::DeleteDatabaseResponse> {
        let store = &self.services.store;
        store
            .delete_table(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        Ok(v1::DeleteDatabaseResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }

    async fn list_database_rows(
        &self,
        caller: Authorized<DatabaseRead>,
        request: v1::ListDatabaseRowsRequest,
    ) -> Result<v1::ListDatabaseRowsResponse> {
        let store = &self.services.store;
        let pages = pages(&request);
        let begun: Option<Begun> = pages.position(&request.cursor)?;
        let begun = begun.map(position).transpose()?;
        let table = store.table(caller.organization_id(), &request.id).await?;
        let order = order(&table, &request)?;
        let conditions = match request.filters.as_str() {
            "" => Vec::new(),
            filters => parse_conditions(&table.columns, filters).map_err(Error::violations)?,
        };
        let (count, after) = match begun {
            Some((count, after)) => (count, Some(after)),
            None => (store.count_rows(&table, &conditions).await?, None),
        };
        let size = page_size(request.limit, DEFAULT_PAGE);
        let query = RowQuery {
            conditions: &conditions,
            order: &order,
            after: after.as_ref(),
            limit: size + 1,
        };
        let mut rows = store.list_rows(&table, &query).await?;
        let next_cursor = pages.cut(&mut rows, size, |last| begin(count, &order, last));
        let data = rows
            .iter()
            .map(|row| row_object(row, &table.columns))
            .collect::<Result<_>>()?;
        Ok(v1::ListDatabaseRowsResponse {
            data,
            count,
            next_cursor,
        })
    }
}

/// What a cursor carries: how many rows match, and the last row's sort key (as text) and id.
type Begun = (i64, String, String);

fn begin(count: i64, order: &RowOrder, last: &Row) -> Begun {
    let key = order.column.as_ref().map(|column| last.key(column));
    (
        count,
        URL_SAFE_NO_PAD.encode(key.unwrap_or_default()),
        last.id.clone(),
    )
}

fn position((count, key, id): Begun) -> Result<(i64, Position<Key>)> {
    let value = URL_SAFE_NO_PAD
        .decode(key)
        .map_err(|_| Error::invalid("cursor", "is not a cursor of this list; begin without one"))?;
    Ok((count, Position { value, id }))
}

fn pages(request: &v1::ListDatabaseRowsRequest) -> Pages {
    Pages::of(&[
        "rows",
        &request.id,
        &request.filters,
        &request.sort_column_id,
        &request.sort_dir.to_string(),
    ])
}

/// By the column that is asked for, smallest first; by creation otherwise, newest first.
fn order(table: &Table, request: &v1::ListDatabaseRowsRequest) -> Result<RowOrder> {
    let descending = match request.sort_dir() {
        v1::SortDirection::Asc => false,
        v1::SortDirection::Desc => true,
        v1::SortDirection::Unspecified => request.sort_column_id.is_empty(),
    };
    let column = match request.sort_column_id.as_str() {
        "" => None,
        id_or_name => Some(
            find(&table.columns, id_or_name)
                .cloned()
                .ok_or_else(|| Error::invalid("sortColumnId", "must be a column of the table"))?,
        ),
    };
    Ok(RowOrder { column, descending })
}

fn row_object(row: &Row, columns: &[Column]) -> Result<v1::JsonObject> {
    let json = serde_json::to_string(&row.to_object(columns)).map_err(Error::internal)?;
    Ok(v1::JsonObject { json })
}

fn column_input(input: v1::DatabaseColumnInput) -> ColumnInput {
    ColumnInput {
        column_type: column_type(input.r#type()),
        name: input.name,
        required: input.required.unwrap_or_default(),
        indexed: input.indexed.unwrap_or_default(),
        unique: input.unique_key.unwrap_or_default(),
    }
}

/// Validation has refused a missing type.
fn column_type(word: v1::DatabaseColumnType) -> ColumnType {
    match word {
        v1::DatabaseColumnType::Text => ColumnType::Text,
        v1::DatabaseColumnType::Number => ColumnType::Number,
        v1::DatabaseColumnType::Integer => ColumnType::Integer,
        v1::DatabaseColumnType::Boolean => ColumnType::Boolean,
        v1::DatabaseColumnType::Date => ColumnType::Date,
        v1::DatabaseColumnType::Datetime => ColumnType::Datetime,
        v1::DatabaseColumnType::Json | v1::DatabaseColumnType::Unspecified => ColumnType::Json,
    }
}

fn type_word(column_type: ColumnType) -> v1::DatabaseColumnType {
    match column_type {
        ColumnType::Text => v1::DatabaseColumnType::Text,
        ColumnType::Number => v1::DatabaseColumnType::Number,
        ColumnType::Integer => v1::DatabaseColumnType::Integer,
        ColumnType::Boolean => v1::DatabaseColumnType::Boolean,
        ColumnType::Date => v1::DatabaseColumnType::Date,
        ColumnType::Datetime => v1::DatabaseColumnType::Datetime,
        ColumnType::Json => v1::DatabaseColumnType::Json,
    }
}

fn summary(table: Table) -> v1::DatabaseSummary {
    v1::DatabaseSummary {
        column_count: i32::try_from(table.columns.len()).unwrap_or(i32::MAX),
        id: table.id,
        name: table.name,
        row_count: table.row_count,
    }
}

fn schema(table: Table) -> v1::DatabaseSchema {
    let unique_key_column_id = table.unique_column().map(|column| column.id.clone());
    let column = |column: Column| v1::DatabaseColumn {
        id: column.id,
        name: column.name,
        r#type: type_word(column.column_type).into(),
        required: column.required,
        indexed: column.indexed,
    };
    v1::DatabaseSchema {
        id: table.id,
        name: table.name,
        columns: table.columns.into_iter().map(column).collect(),
        row_count: table.row_count,
        unique_key_column_id,
        description: table.description,
    }
}
