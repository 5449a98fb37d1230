//! `database_insert`, `_get`, `_query`, `_update`, `_upsert` and `_delete`: the rows of the organization's databases.
//!
//! Writes happen once for each execution, however often it is executed: the store records their effects.

use std::sync::Arc;

use contract::v1::ErrorReason;
use engine::expression::CustomFunctions;
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType, ParamProblem, Resource};
use serde_json::{Map, Value, json};

use super::parameters;
use super::patient::Patient;
use super::request::{Request, failure, misfit, request_hash, store_failure};
use super::{BoxFuture, Executed, Execution, Executor, Registry};
use crate::store::{Effect, RowError, RowOrder, RowQuery, RowWrite, RowsWritten, Store, Table};
use crate::table::{Condition, Row, RowProblem, find, matching, parse_conditions};

/// How many rows a query gives when it does not say.
const DEFAULT_LIMIT: i64 = 50;
/// The most rows that a query gives.
const MAX_LIMIT: i64 = 10_000;

const FAILURES: &str = "Fails with NOT_FOUND when there is no such database, and with VALIDATION_ERROR when a column is \
    unknown or a value is not of its type";

/// What a kind does with rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Insert,
    Get,
    Query,
    Update,
    Upsert,
    Delete,
}

const OPERATIONS: [Operation; 6] = [
    Operation::Insert,
    Operation::Get,
    Operation::Query,
    Operation::Update,
    Operation::Upsert,
    Operation::Delete,
];

/// Adds the six kinds.
pub(super) fn register(registry: &mut Registry, store: &Store) {
    for operation in OPERATIONS {
        let store = store.clone();
        registry.add_executed(
            DatabaseKind(operation),
            Arc::new(Patient(Rows { operation, store })),
        );
    }
}

struct DatabaseKind(Operation);

impl Kind for DatabaseKind {
    fn spec(&self) -> NodeSpec {
        let database = FieldSpec::required("databaseId", FieldType::String, "The database's id.")
            .naming(Resource::Database);
        let fields = self.0.fields();
        let spec = match self.0 {
            Operation::Insert => NodeSpec::step(
                "database_insert",
                "Insert rows",
                &format!(
                    "Inserts rows into a database, all or none, at most 10,000. Output: rows, count. {FAILURES}, a \
                     required column has no value or there are too many rows; with CONFLICT when a value of the unique \
                     key exists."
                ),
            )
            .with_example(json!({ "databaseId": "db_…", "row": { "sku": "{{1.body.sku}}", "price": 9.5 } })),
            Operation::Get => NodeSpec::step(
                "database_get",
                "Get a row",
                &format!("Gets the newest row that matches. Output: row, null when there is none. {FAILURES}."),
            )
            .with_example(json!({ "databaseId": "db_…", "match": { "sku": "{{1.body.sku}}" } })),
            Operation::Query => NodeSpec::step(
                "database_query",
                "Query rows",
                &format!("Finds rows. Output: rows; count, the number of rows that match in all. {FAILURES}."),
            )
            .with_example(json!({
                "databaseId": "db_…",
                "filters": [{ "columnId": "price", "operator": "gte", "value": "{{1.body.least}}" }],
                "sort": { "columnId": "price", "direction": "desc" },
                "limit": 10,
            })),
            Operation::Update => NodeSpec::step(
                "database_update",
                "Update rows",
                &format!(
                    "Changes all rows that match, at most 10,000. Output: rows, count. {FAILURES} or a required column \
                     would lose its value; with CONFLICT when a value of the unique key exists."
                ),
            )
            .with_example(json!({ "databaseId": "db_…", "match": { "sku": "a" }, "row": { "price": 10 } })),
            Operation::Upsert => NodeSpec::step(
                "database_upsert",
                "Update or insert rows",
                &format!(
                    "Changes all rows that match or, when there is none, inserts one with the values of match and row. \
                     Output: rows, count. {FAILURES}; with CONFLICT when a value of the unique key exists."
                ),
            )
            .with_example(json!({ "databaseId": "db_…", "match": { "sku": "a" }, "row": { "price": 10 } })),
            Operation::Delete => NodeSpec::step(
                "database_delete",
                "Delete rows",
                &format!("Deletes all rows that satisfy the filters. Output: count. {FAILURES}."),
            )
            .with_example(json!({
                "databaseId": "db_…",
                "filters": [{ "columnId": "sold", "operator": "eq", "value": true }],
            })),
        };
        spec.with_shape([database].into_iter().chain(fields))
    }

    fn check(&self, params: &Map<String, Value>, completeness: Completeness) -> Vec<ParamProblem> {
        let given = |name: &str| params.get(name).is_some_and(|value| !value.is_null());
        match (self.0, given("row"), given("rows")) {
            (Operation::Insert, true, true) => {
                vec![ParamProblem::new("rows", "cannot be given beside row")]
            }
            (Operation::Insert, false, false) if completeness == Completeness::Complete => {
                vec![ParamProblem::new("row", "is required, or rows")]
            }
            _ => Vec::new(),
        }
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        parameters::compile(node, functions)
    }
}

impl Operation {
    /// The parameters beside the database.
    fn fields(self) -> Vec<FieldSpec> {
        use FieldType::{Array, Integer, Object};
        let matching = "Values by column id or name: rows match that have them all. Null matches no value.";
        let values = "Values by column id or name. Null clears.";
        let filters = "Filters {columnId: id or name, operator, value}, all of which hold. Operators: eq, neq, gt, gte, \
            lt, lte, contains, starts_with, ends_with, in, not_in, is_null, is_not_null.";
        match self {
            Self::Insert => vec![
                FieldSpec::optional("row", Object, "One row: values by column id or name."),
                FieldSpec::optional("rows", Array, "Several rows, in place of row."),
            ],
            Self::Get => vec![FieldSpec::required("match", Object, matching)],
            Self::Query => vec![
                FieldSpec::optional("filters", Array, &format!("{filters} All rows without.")),
                FieldSpec::optional(
                    "sort",
                    Object,
                    "{columnId: id or name, direction: asc or desc}; newest first without, asc without direction.",
                ),
                FieldSpec::optional(
                    "limit",
                    Integer,
                    "At most so many rows, up to 10,000; 50 by default.",
                ),
            ],
            Self::Update | Self::Upsert => vec![
                FieldSpec::required("match", Object, matching),
                FieldSpec::required("row", Object, values),
            ],
            Self::Delete => vec![FieldSpec::required(
                "filters",
                Array,
                &format!("{filters} An empty list deletes all rows."),
            )],
        }
    }
}

struct Rows {
    operation: Operation,
    store: Store,
}

impl Executor for Rows {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let request = Request::of(&execution)?;
            let output = match self.operation {
                Operation::Get => self.get(&execution, request).await,
                Operation::Query => self.query(&execution, request).await,
                Operation::Insert => {
                    let rows = rows(request)?;
                    self.write(&execution, request, RowWrite::Insert(&rows)).await
                }
                Operation::Update => {
                    let (wanted, changes) = (wanted(request)?, request.object("row")?);
                    self.write(&execution, request, RowWrite::Update { wanted, changes })
                        .await
                }
                Operation::Upsert => {
                    let (wanted, given) = (wanted(request)?, request.object("row")?);
                    self.write(&execution, request, RowWrite::Upsert { wanted, given })
                        .await
                }
                Operation::Delete => {
                    let filters = &filters(request)?.ok_or_else(|| misfit("filters", "a list"))?;
                    self.write(&execution, request, RowWrite::Delete { filters })
                        .await
                }
            };
            output.map(Executed::Output)
        })
    }
}

impl Rows {
    async fn table(&self, execution: &Execution, request: Request<'_>) -> Result<Table, NodeError> {
        let table = self
            .store
            .table(&execution.organization_id, request.text("databaseId")?);
        table.await.map_err(store_failure)
    }

    async fn get(&self, execution: &Execution, request: Request<'_>) -> Result<Value, NodeError> {
        let wanted = wanted(request)?;
        let table = self.table(execution, request).await?;
        let conditions = matching(&table.columns, wanted).map_err(invalid)?;
        let found = self.find(&table, &conditions, &RowOrder::NEWEST_FIRST, 1).await?;
        Ok(json!({ "row": found.into_iter().next() }))
    }

    async fn query(&self, execution: &Execution, request: Request<'_>) -> Result<Value, NodeError> {
        let filters = filters(request)?;
        let limit = limit(request)?;
        let table = self.table(execution, request).await?;
        let order = order(&table, request)?;
        let conditions = match filters {
            Some(filters) => parse_conditions(&table.columns, &filters).map_err(invalid)?,
            None => Vec::new(),
        };
        let rows = self.find(&table, &conditions, &order, limit).await?;
        let given = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let count = match given < limit {
            true => given,
            false => {
                let counted = self.store.count_rows(&table, &conditions).await;
                counted.map_err(store_failure)?
            }
        };
        Ok(json!({ "rows": rows, "count": count }))
    }

    async fn find(
        &self,
        table: &Table,
        conditions: &[Condition],
        order: &RowOrder,
        limit: i64,
    ) -> Result<Vec<Map<String, Value>>, NodeError> {
        let query = RowQuery {
            conditions,
            order,
            after: None,
            limit,
        };
        let rows = self.store.list_rows(table, &query).await.map_err(store_failure)?;
        let object = |row: &Row| row.to_object(&table.columns);
        Ok(rows.iter().map(object).collect())
    }

    async fn write(
        &self,
        execution: &Execution,
        request: Request<'_>,
        write: RowWrite<'_>,
    ) -> Result<Value, NodeError> {
        let effect = Effect {
            key: &execution.idempotency_key(),
            run_id: &execution.run_id,
            started_at: execution.started_at_ms,
            request_hash: Some(request_hash(&execution.request)),
        };
        let table_id = request.text("databaseId")?;
        let written = self
            .store
            .write_rows_once(&execution.organization_id, table_id, &effect, write)
            .await;
        let RowsWritten { rows, count } = written.map_err(|error| match error {
            RowError::Problem(problem) => refused(&problem),
            RowError::Store(error) => store_failure(error),
        })?;
        Ok(match self.operation {
            Operation::Delete => json!({ "count": count }),
            _ => json!({ "rows": rows, "count": count }),
        })
    }
}

/// The rows to insert.
fn rows(request: Request<'_>) -> Result<Vec<Map<String, Value>>, NodeError> {
    match (request.get("row"), request.get("rows")) {
        (Some(Value::Object(row)), None) => Ok(vec![row.clone()]),
        (None, Some(Value::Array(rows))) => {
            let row = |row: &Value| row.as_object().cloned();
            let rows: Option<Vec<_>> = rows.iter().map(row).collect();
            rows.ok_or_else(|| misfit("rows", "a list of objects"))
        }
        (Some(_), None) => Err(misfit("row", "an object")),
        (None, Some(_)) => Err(misfit("rows", "a list of objects")),
        (None, None) => Err(misfit("row", "an object, or rows a list of objects")),
        (Some(_), Some(_)) => Err(misfit("rows", "absent beside row")),
    }
}

/// What rows must match. Nothing would match every row, which nobody means.
fn wanted(request: Request<'_>) -> Result<&Map<String, Value>, NodeError> {
    let wanted = request.object("match")?;
    if wanted.is_empty() {
        return Err(misfit("match", "an object with at least one column"));
    }
    Ok(wanted)
}

fn filters(request: Request<'_>) -> Result<Option<String>, NodeError> {
    match request.get("filters") {
        None => Ok(None),
        Some(filters @ Value::Array(_)) => Ok(Some(filters.to_string())),
        Some(_) => Err(misfit("filters", "a list")),
    }
}

fn limit(request: Request<'_>) -> Result<i64, NodeError> {
    let Some(given) = request.get("limit") else {
        return Ok(DEFAULT_LIMIT);
    };
    let limit = given.as_i64().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| misfit("limit", "a whole number from 1 to 10,000"))
}

fn order(table: &Table, request: Request<'_>) -> Result<RowOrder, NodeError> {
    let Some(sort) = request.get("sort") else {
        return Ok(RowOrder::NEWEST_FIRST);
    };
    let text = |name: &str| sort.get(name).and_then(Value::as_str);
    let known = |sort: &Map<String, Value>| {
        let mut names = sort.keys().map(String::as_str);
        names.all(|name| ["columnId", "direction"].contains(&name))
    };
    let descending = match (text("direction"), sort.get("direction")) {
        (Some("asc"), _) | (None, None | Some(Value::Null)) => Some(false),
        (Some("desc"), _) => Some(true),
        _ => None,
    };
    let (Some(descending), Some(name), true) =
        (descending, text("columnId"), sort.as_object().is_some_and(known))
    else {
        return Err(misfit("sort", "{columnId, direction: asc or desc}"));
    };
    let column = find(&table.columns, name).cloned().ok_or_else(|| {
        failure(
            ErrorReason::ValidationError,
            "sort.columnId must be a column of the table",
        )
    })?;
    Ok(RowOrder {
        column: Some(column),
        descending,
    })
}

fn invalid(violations: Vec<contract::validation::Violation>) -> NodeError {
    refused(&RowProblem::Invalid(violations))
}

fn refused(problem: &RowProblem) -> NodeError {
    let reason = match problem {
        RowProblem::Duplicate(_) => ErrorReason::Conflict,
        RowProblem::Invalid(_) | RowProblem::InvalidRow(..) | RowProblem::TooMany(_) => {
            ErrorReason::ValidationError
        }
    };
    failure(reason, problem.to_string())
}
