//! Custom functions: code under a name that is unique in its team, or among the organization's own.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::folder::require_folder;
use super::page::like_pattern;
use super::team::require_team;
use super::value::{Row, values};
use super::workflow::{assign, search_text};
use super::{Store, StoreError};
use crate::{clock, id};

/// A custom function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// `fn_`
    pub id: String,
    /// What expressions call it by.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JavaScript.
    pub code: String,
    /// JSON: the parameters in order.
    pub parameters: Vec<u8>,
    /// The folder it is in.
    pub folder_id: Option<String>,
    /// The team it belongs to; null for the organization's.
    pub team_id: Option<String>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

/// A function to be made.
#[derive(Debug, Clone)]
pub struct NewFunction<'a> {
    /// What expressions call it by.
    pub name: &'a str,
    /// What it does.
    pub description: Option<&'a str>,
    /// JavaScript.
    pub code: &'a str,
    /// JSON: the parameters in order.
    pub parameters: &'a [u8],
    /// The folder it is in.
    pub folder_id: Option<&'a str>,
    /// The team it belongs to.
    pub team_id: Option<&'a str>,
}

/// What to change; `None` stays, `Some(None)` clears.
#[derive(Debug, Clone, Default)]
pub struct FunctionChange {
    /// What expressions call it by.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<Option<String>>,
    /// JavaScript.
    pub code: Option<String>,
    /// JSON: the parameters in order.
    pub parameters: Option<Vec<u8>>,
    /// The folder it is in.
    pub folder_id: Option<Option<String>>,
}

/// What came of saving a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionSaved {
    /// The function as it is now.
    Saved(Function),
    /// Another function of the team, or of the organization, has the name.
    NameTaken,
}

const COLUMNS: &str = "id, name, description, code, parameters, folder_id, team_id, created_at, updated_at";

impl Function {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        // As bytes, because code may hold any character.
        let code: Vec<u8> = row.get("code")?;
        let code = String::from_utf8(code);
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            description: row.get("description")?,
            code: code.map_err(|_| StoreError::Corrupt("a function's code is not text".to_owned()))?,
            parameters: row.get("parameters")?,
            folder_id: row.get("folder_id")?,
            team_id: row.get("team_id")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

impl FunctionChange {
    /// Sets what is to change and names it.
    fn apply(&self, function: &mut Function) -> Vec<&'static str> {
        let mut changed = Vec::new();
        let mut set = |name: &'static str, is_set: bool| is_set.then(|| changed.push(name));
        set("name", assign(&mut function.name, self.name.as_ref()));
        set(
            "description",
            assign(&mut function.description, self.description.as_ref()),
        );
        set("code", assign(&mut function.code, self.code.as_ref()));
        set(
            "parameters",
            assign(&mut function.parameters, self.parameters.as_ref()),
        );
        set(
            "folderId",
            assign(&mut function.folder_id, self.folder_id.as_ref()),
        );
        changed
    }
}

impl Store {
    /// Makes a function.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team or the folder; when the database fails.
    pub async fn create_function(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewFunction<'_>,
    ) -> Result<FunctionSaved, StoreError> {
        let mut transaction = self.database.write().await?;
        require_folder(&mut transaction, organization_id, new.folder_id).await?;
        require_team(&mut transaction, organization_id, new.team_id).await?;
        let sql = format!(
            "INSERT INTO functions (id, organization_id, team_id, folder_id, name, search_text, description, code,
                 parameters, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
             ON CONFLICT DO NOTHING RETURNING {COLUMNS}"
        );
        let inserted = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    &id::new(id::Kind::Function),
                    organization_id,
                    new.team_id,
                    new.folder_id,
                    new.name,
                    &search_text(new.name, new.description),
                    new.description,
                    new.code.as_bytes(),
                    new.parameters,
                    clock::now_ms(),
                ],
            )
            .await?;
        let Some(row) = inserted else {
            transaction.rollback().await?;
            return Ok(FunctionSaved::NameTaken);
        };
        let function = Function::from_row(&row)?;
        let (made, action) = (&function, "function.created");
        record_function(&mut transaction, actor, organization_id, made, action, &[]).await?;
        transaction.commit().await?;
        Ok(FunctionSaved::Saved(function))
    }

    /// An organization's functions, newest first, from the one after the id `after`. `query` is searched for in name
    /// and description.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_functions(
        &self,
        organization_id: &str,
        query: Option<&str>,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Function>, StoreError> {
        let pattern = query.map(like_pattern);
        let mut sql = format!("SELECT {COLUMNS} FROM functions WHERE organization_id = $1");
        let mut parameters = values![organization_id, limit].to_vec();
        if let Some(pattern) = &pattern {
            parameters.push(pattern.into());
            sql.push_str(" AND search_text LIKE $3 ESCAPE '\\'");
        }
        if let Some(after) = after {
            parameters.push(after.into());
            sql.push_str(&format!(" AND id < ${}", parameters.len()));
        }
        sql.push_str(" ORDER BY id DESC LIMIT $2");
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Function::from_row).collect()
    }

    /// The functions that a workflow may call: its team's and the organization's. A workflow that is gone may call the
    /// organization's.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn workflow_functions(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Vec<Function>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM functions WHERE organization_id = $1
                 AND (team_id IS NULL
                      OR team_id = (SELECT w.team_id FROM workflows w WHERE w.organization_id = $1 AND w.id = $2))"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(AssertSqlSafe(sql), &values![organization_id, workflow_id])
            .await?;
        rows.iter().map(Function::from_row).collect()
    }

    /// One function.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn function(&self, organization_id: &str, function_id: &str) -> Result<Function, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, function_id, "").await
    }

    /// Changes what a PATCH may change.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the function or the folder; when the database fails.
    pub async fn update_function(
        &self,
        actor: &Actor,
        organization_id: &str,
        function_id: &str,
        change: &FunctionChange,
    ) -> Result<FunctionSaved, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let mut function = load(&mut transaction, organization_id, function_id, lock).await?;
        if let Some(folder_id) = &change.folder_id {
            require_folder(&mut transaction, organization_id, folder_id.as_deref()).await?;
        }
        let changed = change.apply(&mut function);
        function.updated_at = clock::now_ms().max(function.updated_at + 1);
        let updated = transaction
            .execute(
                "UPDATE functions SET name = $2, search_text = $3, description = $4, code = $5, parameters = $6,
                     folder_id = $7, updated_at = $8 WHERE id = $1",
                &values![
                    function_id,
                    &function.name,
                    &search_text(&function.name, function.description.as_deref()),
                    &function.description,
                    function.code.as_bytes(),
                    &function.parameters,
                    &function.folder_id,
                    function.updated_at,
                ],
            )
            .await;
        match updated {
            Ok(_) => {}
            Err(StoreError::Duplicate(_)) => {
                transaction.rollback().await?;
                return Ok(FunctionSaved::NameTaken);
            }
            Err(error) => return Err(error),
        }
        let (made, action) = (&function, "function.updated");
        record_function(&mut transaction, actor, organization_id, made, action, &changed).await?;
        transaction.commit().await?;
        Ok(FunctionSaved::Saved(function))
    }
}

async fn load(
    session: &mut Session,
    organization_id: &str,
    function_id: &str,
    lock: &'static str,
) -> Result<Function, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM functions WHERE organization_id = $1 AND id = $2{lock}");
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, function_id])
        .await?;
    Function::from_row(&row.ok_or(StoreError::NotFound("function"))?)
}

async fn record_function(
    session: &mut Session,
    actor: &Actor,
    organization_id: &str,
    function: &Function,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id,
        action,
        label: &function.name,
        target_id: &function.id,
        fields,
    };
    record(session, actor, entry).await
}
