//! Organizations: the tenants. One is made together with its owner and its default team.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::plan::{PLAN_COLUMNS, Plan};
use super::value::{Row, values, words};
use super::{Store, StoreError};
use crate::clock;

words! {
    /// Whether an organization has paid.
    BillingStatus {
        /// Nothing is due.
        Ok = "ok",
        /// Runs may neither start nor resume.
        PastDue = "past_due",
    }
}

/// A tenant and its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// `org_`
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub plan: Plan,
    /// What is left; null is unlimited. Below zero when runs in flight cost more than there was.
    pub credits: Option<i64>,
    /// Credits that runs under way hold.
    pub credits_held: i64,
    /// Whether it has paid.
    pub billing_status: BillingStatus,
    /// Epoch milliseconds.
    pub created_at: i64,
}

/// What to change; `None` stays.
#[derive(Debug, Clone, Default)]
pub struct OrganizationChange {
    /// Another plan; its credits are not given again.
    pub plan_id: Option<String>,
    /// What is left; `Some(None)` is unlimited.
    pub credits: Option<Option<i64>>,
    /// Whether it has paid.
    pub billing_status: Option<BillingStatus>,
}

/// Why an organization's runs may neither start nor resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A bill is overdue.
    PastDue,
    /// The plan is not active.
    NoActivePlan,
}

impl Refusal {
    /// What it says to people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::PastDue => "The organization has an overdue bill; runs start again once it is paid.",
            Self::NoActivePlan => "The organization has no active plan.",
        }
    }
}

impl Organization {
    /// Why its runs may not start, if they may not. Credits are judged when a run is created.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        if self.billing_status == BillingStatus::PastDue {
            Some(Refusal::PastDue)
        } else {
            (!self.plan.active).then_some(Refusal::NoActivePlan)
        }
    }

    /// Whether its credits are counted.
    #[must_use]
    pub fn is_metered(&self) -> bool {
        self.credits.is_some()
    }

    /// Reads a row that selects `ORGANIZATION_COLUMNS` and `PLAN_COLUMNS`.
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("organization_id")?,
            name: row.get("organization_name")?,
            plan: Plan::from_row(row)?,
            credits: row.get("organization_credits")?,
            credits_held: row.get("credits_held")?,
            billing_status: row.word("billing_status")?,
            created_at: row.get("organization_created_at")?,
        })
    }
}

/// The columns of an organization `o` in a statement that joins other tables.
pub(super) const ORGANIZATION_COLUMNS: &str = "o.id AS organization_id, o.name AS organization_name, \
     o.credits AS organization_credits, o.credits_held AS credits_held, o.billing_status AS billing_status, \
     o.created_at AS organization_created_at";

impl Store {
    /// An organization and its plan.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn organization(&self, organization_id: &str) -> Result<Organization, StoreError> {
        let sql = format!(
            "SELECT {ORGANIZATION_COLUMNS}, {PLAN_COLUMNS}
             FROM organizations o JOIN plans p ON p.id = o.plan_id WHERE o.id = $1"
        );
        let mut session = self.database.read().await?;
        let row = session.row(AssertSqlSafe(sql), &values![organization_id]).await?;
        Organization::from_row(&row.ok_or(StoreError::NotFound("organization"))?)
    }

    /// How many organizations there are; none means a first start.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_organizations(&self) -> Result<i64, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row("SELECT COUNT(*) AS number FROM organizations", &[])
            .await?;
        row.map_or(Ok(0), |row| row.get("number"))
    }

    /// Changes an organization's plan, credits or billing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the organization or the plan; when the database fails.
    pub async fn change_organization(
        &self,
        actor: &Actor,
        organization_id: &str,
        change: &OrganizationChange,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        if let Some(plan_id) = &change.plan_id {
            require_plan(&mut transaction, plan_id).await?;
        }
        let sets_credits = change.credits.is_some();
        let row = transaction
            .row(
                "UPDATE organizations SET plan_id = COALESCE($2, plan_id),
                     credits = CASE WHEN $3 THEN $4 ELSE credits END,
                     billing_status = COALESCE($5, billing_status)
                 WHERE id = $1 RETURNING name",
                &values![
                    organization_id,
                    &change.plan_id,
                    sets_credits,
                    change.credits.flatten(),
                    change.billing_status.map(BillingStatus::as_word),
                ],
            )
            .await?;
        let name: String = row.ok_or(StoreError::NotFound("organization"))?.get("name")?;
        let fields: Vec<&str> = [
            change.plan_id.is_some().then_some("planId"),
            sets_credits.then_some("credits"),
            change.billing_status.is_some().then_some("billingStatus"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let entry = Entry {
            organization_id,
            action: "organization.updated",
            label: &name,
            target_id: organization_id,
            fields: &fields,
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await
    }
}

async fn require_plan(session: &mut Session, plan_id: &str) -> Result<(), StoreError> {
    let plan = session
        .row("SELECT 1 FROM plans WHERE id = $1", &values![plan_id])
        .await?;
    plan.map(drop).ok_or(StoreError::NotFound("plan"))
}

pub(super) async fn insert_organization(
    session: &mut Session,
    organization_id: &str,
    name: &str,
    plan_id: &str,
) -> Result<(), StoreError> {
    let inserted = session
        .execute(
            "INSERT INTO organizations (id, name, plan_id, credits, credits_held, billing_status, created_at)
             SELECT $1, $2, p.id, p.credits, 0, $4, $5 FROM plans p WHERE p.id = $3",
            &values![
                organization_id,
                name,
                plan_id,
                BillingStatus::Ok.as_word(),
                clock::now_ms()
            ],
        )
        .await?;
    if inserted == 0 {
        Err(StoreError::NotFound("plan"))
    } else {
        Ok(())
    }
}
