//! Credits: what a start holds and what executed nodes cost, settled in the commit that records them.
//!
//! Only metered runs are looked at, so an organization without a limit costs nothing here. A start that ends in its
//! first commit pays at once; any other holds one credit until it pays its first or ends.

use std::collections::{BTreeMap, HashSet};

use sqlx::AssertSqlSafe;

use super::StoreError;
use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::run_batch::{CreateOutcome, NewRun, RunBatch, RunChange};
use super::value::{Value, values};

/// An organization's credits in this transaction.
#[derive(Default)]
struct Account {
    /// Null is unlimited.
    left: Option<i64>,
    held: i64,
    spent: i64,
    newly_held: i64,
}

impl Account {
    fn can_start(&self) -> bool {
        self.left
            .is_none_or(|left| left - self.spent - self.held - self.newly_held > 0)
    }
}

/// Organizations in the order in which everyone locks them.
type Accounts = BTreeMap<String, Account>;

/// Settles the metered runs of a batch: refuses starts that find no credit, and gives the ids of those that hold one.
pub(super) async fn settle<'a>(
    session: &mut Session,
    batch: &'a RunBatch,
    outcomes: &mut [CreateOutcome],
) -> Result<HashSet<&'a str>, StoreError> {
    let mut holders = HashSet::new();
    let changes: Vec<&RunChange> = batch
        .changes
        .iter()
        .filter(|change| change.metered && settles(change))
        .collect();
    if changes.is_empty() && !batch.creates.iter().any(|run| run.metered) {
        return Ok(holders);
    }
    let runs = settled_runs(session, &changes).await?;
    let mut accounts: Accounts = runs
        .iter()
        .map(|run| &run.organization_id)
        .chain(metered_organizations(&batch.creates))
        .fold(Accounts::new(), |mut accounts, organization_id| {
            accounts.entry(organization_id.clone()).or_default();
            accounts
        });
    lock_accounts(session, &mut accounts).await?;

    for run in &runs {
        if let Some(account) = accounts.get_mut(&run.organization_id) {
            account.spent += run.spent;
            account.newly_held -= i64::from(run.held);
        }
    }
    for (run, outcome) in batch.creates.iter().zip(outcomes) {
        let Some(account) = accounts.get_mut(&run.organization_id) else {
            continue;
        };
        if !run.metered || *outcome != CreateOutcome::Created {
            continue;
        }
        if !account.can_start() {
            *outcome = CreateOutcome::OutOfCredits;
        } else if run.summary.finished_at.is_some() || run.summary.credits_used > 0 {
            account.spent += run.summary.credits_used;
        } else {
            account.newly_held += 1;
            holders.insert(run.id.as_str());
        }
    }
    write_accounts(session, &accounts, &runs).await?;
    Ok(holders)
}

/// Whether a change pays or ends the hold.
fn settles(change: &RunChange) -> bool {
    change.credits_spent > 0
        || change
            .summary
            .as_ref()
            .is_some_and(|summary| summary.finished_at.is_some())
}

fn metered_organizations(creates: &[NewRun]) -> impl Iterator<Item = &String> {
    creates
        .iter()
        .filter(|run| run.metered)
        .map(|run| &run.organization_id)
}

struct SettledRun {
    id: String,
    organization_id: String,
    held: bool,
    spent: i64,
}

async fn settled_runs(session: &mut Session, changes: &[&RunChange]) -> Result<Vec<SettledRun>, StoreError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let spent: BTreeMap<&str, i64> = changes
        .iter()
        .map(|change| (change.run_id.as_str(), change.credits_spent))
        .collect();
    let ids: Vec<&str> = spent.keys().copied().collect();
    let one_of = session.dialect().one_of(1);
    let sql = format!("SELECT id, organization_id, credit_held FROM runs WHERE id {one_of}");
    let rows = session.rows(AssertSqlSafe(sql), &[Value::Texts(&ids)]).await?;
    rows.iter()
        .map(|row| {
            let id: String = row.get("id")?;
            let spent = spent.get(id.as_str()).copied().unwrap_or_default();
            Ok(SettledRun {
                id,
                organization_id: row.get("organization_id")?,
                held: row.get("credit_held")?,
                spent,
            })
        })
        .collect()
}

async fn lock_accounts(session: &mut Session, accounts: &mut Accounts) -> Result<(), StoreError> {
    let rows = {
        let ids: Vec<&str> = accounts.keys().map(String::as_str).collect();
        let (one_of, lock) = (session.dialect().one_of(1), session.dialect().for_update());
        let sql = format!(
            "SELECT id, credits, credits_held FROM organizations WHERE id {one_of} ORDER BY id{lock}"
        );
        session.rows(AssertSqlSafe(sql), &[Value::Texts(&ids)]).await?
    };
    for row in rows {
        let id: String = row.get("id")?;
        if let Some(account) = accounts.get_mut(&id) {
            account.left = row.get("credits")?;
            account.held = row.get("credits_held")?;
        }
    }
    Ok(())
}

const WRITE_ACCOUNTS: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("spent", Kind::Integer),
        ("newly_held", Kind::Integer),
    ],
    tail: "UPDATE organizations SET credits = organizations.credits - v.spent,
               credits_held = organizations.credits_held + v.newly_held
           FROM v WHERE organizations.id = v.id",
};

const END_HOLDS: BatchStatement = BatchStatement {
    columns: &[("id", Kind::Text)],
    tail: "UPDATE runs SET credit_held = FALSE FROM v WHERE runs.id = v.id",
};

async fn write_accounts(
    session: &mut Session,
    accounts: &Accounts,
    runs: &[SettledRun],
) -> Result<(), StoreError> {
    let rows: Vec<Value<'_>> = accounts
        .iter()
        .flat_map(|(id, account)| values![id, account.spent, account.newly_held])
        .collect();
    session.batch(&WRITE_ACCOUNTS, &rows).await?;
    let ended: Vec<Value<'_>> = runs
        .iter()
        .filter(|run| run.held)
        .map(|run| Value::from(&run.id))
        .collect();
    session.batch(&END_HOLDS, &ended).await?;
    Ok(())
}
