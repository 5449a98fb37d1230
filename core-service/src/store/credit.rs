//! Credits: what a start holds and what executed nodes cost, settled in the commit that records them.
//!
//! Only metered runs are looked at, so an organization without a limit costs nothing here. Whether a run is metered is
//! decided when it starts and when it starts again. A start that ends in its first commit pays at once; any other holds
//! one credit until it pays its first or ends. The start of a further attempt, or from a failed node on, is one, too.

use std::collections::{BTreeMap, HashSet};

use sqlx::AssertSqlSafe;

use super::StoreError;
use super::database::Session;
use super::dialect::{BatchStatement, Kind};
use super::run_batch::{BatchOutcome, ChangeOutcome, CreateOutcome, NewRun, RunBatch, RunChange};
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

/// How a start is paid for.
enum Payment {
    /// Not at all: there is no credit.
    Refused,
    /// At once.
    Paid,
    /// By a hold.
    Held,
}

impl Account {
    /// Pays for a start whose first commit costs so much and may be its end.
    fn start(&mut self, costs: i64, ends: bool) -> Payment {
        if !self.can_start() {
            Payment::Refused
        } else if ends || costs > 0 {
            self.spent += costs;
            Payment::Paid
        } else {
            self.newly_held += 1;
            Payment::Held
        }
    }

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
    outcome: &mut BatchOutcome,
) -> Result<HashSet<&'a str>, StoreError> {
    let mut holders = HashSet::new();
    let written = batch.changes.iter().zip(&outcome.changes);
    let changes: Vec<&RunChange> = written
        .filter(|(change, outcome)| **outcome == ChangeOutcome::Written && settles(change))
        .map(|(change, _)| change)
        .collect();
    if changes.is_empty() && !batch.creates.iter().any(|run| run.metered) {
        write_restarts(session, batch, outcome, &holders).await?;
        return Ok(holders);
    }
    let repeated = repeated_restarts(session, &changes).await?;
    let runs = settled_runs(session, &changes).await?;
    let mut accounts: Accounts = runs
        .values()
        .map(|run| &run.organization_id)
        .chain(metered_organizations(&batch.creates))
        .fold(Accounts::new(), |mut accounts, organization_id| {
            accounts.entry(organization_id.clone()).or_default();
            accounts
        });
    lock_accounts(session, &mut accounts).await?;

    for change in changes.iter().filter(|change| !change.restarts) {
        if let Some((run, account)) = account_of(&runs, &mut accounts, change) {
            account.spent += change.credits_spent;
            account.newly_held -= i64::from(run.held);
        }
    }
    for (change, outcome) in batch.changes.iter().zip(&mut outcome.changes) {
        if !change.restarts || !change.metered || repeated.contains(&change.run_id) {
            continue;
        }
        let account = account_of(&runs, &mut accounts, change).map(|(_, account)| account);
        match account.map(|account| account.start(change.credits_spent, ends(change))) {
            Some(Payment::Refused) => *outcome = ChangeOutcome::OutOfCredits,
            Some(Payment::Held) => _ = holders.insert(change.run_id.as_str()),
            Some(Payment::Paid) | None => {}
        }
    }
    for (run, outcome) in batch.creates.iter().zip(&mut outcome.creates) {
        if !run.metered || *outcome != CreateOutcome::Created {
            continue;
        }
        let account = accounts.get_mut(&run.organization_id);
        let (costs, ends) = (run.summary.credits_used, run.summary.finished_at.is_some());
        match account.map(|account| account.start(costs, ends)) {
            Some(Payment::Refused) => *outcome = CreateOutcome::OutOfCredits,
            Some(Payment::Held) => _ = holders.insert(run.id.as_str()),
            Some(Payment::Paid) | None => {}
        }
    }
    write_accounts(session, &accounts, &runs).await?;
    write_restarts(session, batch, outcome, &holders).await?;
    Ok(holders)
}

/// Whether a change of a metered run pays, ends the hold, or starts the run again.
fn settles(change: &RunChange) -> bool {
    change.metered && (change.restarts || change.credits_spent > 0 || ends(change))
}

fn ends(change: &RunChange) -> bool {
    let summary = change.summary.as_ref();
    summary.is_some_and(|summary| summary.finished_at.is_some())
}

fn account_of<'a>(
    runs: &'a BTreeMap<String, SettledRun>,
    accounts: &'a mut Accounts,
    change: &RunChange,
) -> Option<(&'a SettledRun, &'a mut Account)> {
    let run = runs.get(&change.run_id)?;
    Some((run, accounts.get_mut(&run.organization_id)?))
}

fn metered_organizations(creates: &[NewRun]) -> impl Iterator<Item = &String> {
    creates
        .iter()
        .filter(|run| run.metered)
        .map(|run| &run.organization_id)
}

struct SettledRun {
    organization_id: String,
    held: bool,
}

async fn settled_runs(
    session: &mut Session,
    changes: &[&RunChange],
) -> Result<BTreeMap<String, SettledRun>, StoreError> {
    if changes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<&str> = changes.iter().map(|change| change.run_id.as_str()).collect();
    let one_of = session.dialect().one_of(1);
    let sql = format!("SELECT id, organization_id, credit_held FROM runs WHERE id {one_of}");
    let rows = session.rows(AssertSqlSafe(sql), &[Value::Texts(&ids)]).await?;
    rows.iter()
        .map(|row| {
            let run = SettledRun {
                organization_id: row.get("organization_id")?,
                held: row.get("credit_held")?,
            };
            Ok((row.get("id")?, run))
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
    runs: &BTreeMap<String, SettledRun>,
) -> Result<(), StoreError> {
    let rows: Vec<Value<'_>> = accounts
        .iter()
        .flat_map(|(id, account)| values![id, account.spent, account.newly_held])
        .collect();
    session.batch(&WRITE_ACCOUNTS, &rows).await?;
    let ended: Vec<Value<'_>> = runs
        .iter()
        .filter(|(_, run)| run.held)
        .map(|(id, _)| Value::from(id))
        .collect();
    session.batch(&END_HOLDS, &ended).await?;
    Ok(())
}

const FIND_SEGMENTS: BatchStatement = BatchStatement {
    columns: &[
        ("run_id", Kind::Text),
        ("attempt", Kind::Integer),
        ("seq", Kind::Integer),
    ],
    tail: "SELECT s.run_id AS run_id FROM segments s
           JOIN v ON s.run_id = v.run_id AND s.attempt = v.attempt AND s.seq = v.seq",
};

/// Restarts that are there already: their commit was in doubt and they are written again. They are not to be refused
/// for want of the credit that they hold themselves; their segments will be found to be there.
async fn repeated_restarts(
    session: &mut Session,
    changes: &[&RunChange],
) -> Result<HashSet<String>, StoreError> {
    let restarts = changes.iter().filter(|change| change.restarts);
    let segments: Vec<Value<'_>> = restarts
        .flat_map(|change| {
            change
                .segments
                .iter()
                .map(move |segment| (&change.run_id, segment))
        })
        .flat_map(|(run_id, segment)| values![run_id, segment.attempt, segment.seq])
        .collect();
    let found = session.batch_returning(&FIND_SEGMENTS, &segments).await?;
    found.iter().map(|row| row.get("run_id")).collect()
}

const RESTART: BatchStatement = BatchStatement {
    columns: &[
        ("id", Kind::Text),
        ("metered", Kind::Boolean),
        ("credit_held", Kind::Boolean),
    ],
    tail: "UPDATE runs SET metered = v.metered, credit_held = v.credit_held FROM v WHERE runs.id = v.id",
};

/// Whoever claimed a run to restart it lets go of it when that is refused.
const RELEASE: BatchStatement = BatchStatement {
    columns: &[("id", Kind::Text)],
    tail: "UPDATE runs SET process_id = NULL FROM v WHERE runs.id = v.id",
};

async fn write_restarts(
    session: &mut Session,
    batch: &RunBatch,
    outcome: &BatchOutcome,
    holders: &HashSet<&str>,
) -> Result<(), StoreError> {
    let (mut restarted, mut released) = (Vec::new(), Vec::new());
    let changes = batch.changes.iter().zip(&outcome.changes);
    for (change, outcome) in changes.filter(|(change, _)| change.restarts) {
        let run_id = change.run_id.as_str();
        match outcome {
            ChangeOutcome::Written => {
                restarted.extend(values![run_id, change.metered, holders.contains(run_id)]);
            }
            ChangeOutcome::OutOfCredits => released.push(Value::from(run_id)),
            ChangeOutcome::NotDriven => {}
        }
    }
    session.batch(&RESTART, &restarted).await?;
    session.batch(&RELEASE, &released).await?;
    Ok(())
}
