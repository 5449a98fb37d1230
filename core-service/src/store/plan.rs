//! Plans: what an organization may do and how much. `unlimited` comes with the database.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record_for};
use super::value::{Row, values};
use super::{Store, StoreError};

/// A plan. A missing number is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub id: String,
    /// API keys work.
    pub api_access: bool,
    /// Runs may start.
    pub active: bool,
    /// Custom functions may be made.
    pub custom_functions: bool,
    /// How many structures may exist.
    pub structures_created: Option<i64>,
    /// How many members and pending invitations there may be.
    pub seats: Option<i64>,
    /// What a new organization starts with.
    pub credits: Option<i64>,
    /// Read requests a minute and key.
    pub read_rpm: Option<i64>,
    /// Write requests a minute and key.
    pub write_rpm: Option<i64>,
    /// Days a run is kept after its end.
    pub retention_days: Option<i64>,
    /// Ended runs kept of each organization: those that ended last.
    pub retention_runs: Option<i64>,
    /// Days an entry of the activity feed is kept.
    pub activity_days: Option<i64>,
}

impl Plan {
    /// Reads a plan from a row that selects `PLAN_COLUMNS`.
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("plan_id")?,
            api_access: row.get("api_access")?,
            active: row.get("plan_active")?,
            custom_functions: row.get("custom_functions")?,
            structures_created: row.get("structures_created")?,
            seats: row.get("seats")?,
            credits: row.get("plan_credits")?,
            read_rpm: row.get("read_rpm")?,
            write_rpm: row.get("write_rpm")?,
            retention_days: row.get("retention_days")?,
            retention_runs: row.get("retention_runs")?,
            activity_days: row.get("activity_days")?,
        })
    }
}

/// The columns of a plan `p` in a statement that may join other tables.
pub(super) const PLAN_COLUMNS: &str = "p.id AS plan_id, p.api_access AS api_access, p.active AS plan_active, \
     p.custom_functions AS custom_functions, p.structures_created AS structures_created, p.seats AS seats, \
     p.credits AS plan_credits, p.read_rpm AS read_rpm, p.write_rpm AS write_rpm, \
     p.retention_days AS retention_days, p.retention_runs AS retention_runs, p.activity_days AS activity_days";

impl Store {
    /// A plan by its name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn plan(&self, plan_id: &str) -> Result<Plan, StoreError> {
        let sql = format!("SELECT {PLAN_COLUMNS} FROM plans p WHERE p.id = $1");
        let mut session = self.database.read().await?;
        let row = session.row(AssertSqlSafe(sql), &values![plan_id]).await?;
        Plan::from_row(&row.ok_or(StoreError::NotFound("plan"))?)
    }

    /// Creates a plan or replaces it. The organizations on it find it in their activity feeds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_plan(&self, actor: &Actor, plan: &Plan) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        transaction
            .execute(
                "INSERT INTO plans (id, api_access, active, custom_functions, structures_created, seats, credits,
                     read_rpm, write_rpm, retention_days, retention_runs, activity_days)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                 ON CONFLICT (id) DO UPDATE SET api_access = excluded.api_access, active = excluded.active,
                     custom_functions = excluded.custom_functions, structures_created = excluded.structures_created,
                     seats = excluded.seats, credits = excluded.credits, read_rpm = excluded.read_rpm,
                     write_rpm = excluded.write_rpm, retention_days = excluded.retention_days,
                     retention_runs = excluded.retention_runs, activity_days = excluded.activity_days",
                &values![
                    &plan.id,
                    plan.api_access,
                    plan.active,
                    plan.custom_functions,
                    plan.structures_created,
                    plan.seats,
                    plan.credits,
                    plan.read_rpm,
                    plan.write_rpm,
                    plan.retention_days,
                    plan.retention_runs,
                    plan.activity_days,
                ],
            )
            .await?;
        let entry = Entry {
            organization_id: "",
            action: "plan.updated",
            label: &plan.id,
            target_id: &plan.id,
            fields: &[],
        };
        let concerned = "SELECT id FROM organizations WHERE plan_id = $1";
        record_for(&mut transaction, actor, (concerned, &values![&plan.id]), entry).await?;
        transaction.commit().await
    }
}
