//! Migrations: scripts in pairs, one for each database, applied in order and each once.

use sha2::{Digest as _, Sha256};

use super::StoreError;
use super::database::{Database, Session};
use super::dialect::Dialect;
use super::value::values;
use crate::clock;

struct Migration {
    number: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

/// A pair of scripts by its number and name.
macro_rules! migration {
    ($number:literal, $name:literal) => {
        Migration {
            number: $number,
            sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_tenants"),
    migration!(2, "0002_workflows"),
    migration!(3, "0003_runs"),
    migration!(4, "0004_secrets"),
    migration!(5, "0005_databases"),
    migration!(6, "0006_structures"),
    migration!(7, "0007_functions"),
    migration!(8, "0008_schedules"),
    migration!(9, "0009_effects"),
    migration!(10, "0010_credentials"),
    migration!(11, "0011_endings"),
    migration!(12, "0012_human_requests"),
    migration!(13, "0013_retention"),
    migration!(14, "0014_trials"),
    migration!(15, "0015_polls"),
    migration!(16, "0016_manifests"),
    migration!(17, "0017_turns_of_timers"),
    migration!(18, "0018_tokens"),
    migration!(19, "0019_registrations"),
    migration!(20, "0020_lists_of_runs"),
];

/// Takes the advisory lock ("switchyd" as a number) that lets one node migrate while others wait, however long that takes.
const LOCK: &str = "SELECT pg_advisory_xact_lock(x'7377697463687964'::bigint)";

/// Applies what is missing, all in one transaction. Several nodes may do so at once.
pub(super) async fn run(database: &Database) -> Result<(), StoreError> {
    let mut transaction = database.write().await?;
    if transaction.dialect() == Dialect::Postgres {
        transaction.script(LOCK).await?;
    }
    transaction
        .script(
            "CREATE TABLE IF NOT EXISTS migrations
             (number BIGINT PRIMARY KEY NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)",
        )
        .await?;
    let applied = applied(&mut transaction).await?;
    check_known(&applied)?;
    for migration in MIGRATIONS {
        let script = migration.script(transaction.dialect());
        let checksum = checksum(script);
        match applied.iter().find(|(number, _)| *number == migration.number) {
            Some((_, found)) if *found == checksum => {}
            Some((number, _)) => return Err(changed(*number)),
            None => {
                transaction.script(script).await?;
                transaction
                    .execute(
                        "INSERT INTO migrations (number, checksum, applied_at) VALUES ($1, $2, $3)",
                        &values![migration.number, &checksum, clock::now_ms()],
                    )
                    .await?;
            }
        }
    }
    transaction.commit().await
}

impl Migration {
    fn script(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

async fn applied(session: &mut Session) -> Result<Vec<(i64, String)>, StoreError> {
    let rows = session
        .rows("SELECT number, checksum FROM migrations ORDER BY number", &[])
        .await?;
    rows.iter()
        .map(|row| Ok((row.get("number")?, row.get("checksum")?)))
        .collect()
}

fn check_known(applied: &[(i64, String)]) -> Result<(), StoreError> {
    let newest = MIGRATIONS.last().map_or(0, |migration| migration.number);
    match applied.last() {
        Some((number, _)) if *number > newest => Err(StoreError::Setup(format!(
            "the database is at migration {number}, this version knows up to {newest}: run the newer version"
        ))),
        _ => Ok(()),
    }
}

fn changed(number: i64) -> StoreError {
    StoreError::Setup(format!(
        "migration {number} of the database differs from this version's: restore the database of this version"
    ))
}

fn checksum(script: &str) -> String {
    Sha256::digest(script)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MIGRATIONS, Migration};

    #[test]
    fn numbers_count_from_one() {
        assert!(
            (1..)
                .zip(MIGRATIONS)
                .all(|(number, migration)| migration.number == number)
        );
    }

    #[test]
    fn both_databases_have_the_same_tables() {
        let tables = |script: fn(&Migration) -> &'static str| -> BTreeSet<String> {
            let lines = MIGRATIONS.iter().flat_map(|migration| script(migration).lines());
            let made = lines.filter(|line| line.starts_with("CREATE "));
            // By which name PostgreSQL calls the order of bytes is its own affair.
            made.map(|line| line.replace(" COLLATE \"POSIX\"", "")).collect()
        };
        let sqlite = tables(|migration| migration.sqlite);
        assert_eq!(sqlite, tables(|migration| migration.postgres));
    }
}
