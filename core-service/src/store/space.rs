//! Gives the space of deleted rows back, and keeps SQLite's write-ahead log from growing without end. PostgreSQL does both
//! by itself; how often is said in the migrations.

use std::time::Instant;

use sqlx::AssertSqlSafe;

use super::database::Session;
use super::dialect::Dialect;
use super::{Store, StoreError, Swept};

/// Free pages are left to new rows up to one in so many of the file.
const FREE_ONE_IN: i64 = 8;
/// SQLite's number for databases that can give back some pages without being written anew.
const INCREMENTAL: i64 = 2;
/// Pages (of 4 KiB) in the log from which it is begun anew: 64 MiB. Usually that happens by itself, after 8,192.
const LONG_LOG: i64 = 16_384;

impl Store {
    /// Gives up to `pages` free pages back to the file system, when more of the file is free than new rows will soon
    /// take. A database made before migration 13 gives nothing back until it is restored from a backup.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn give_back_space(&self, pages: i64) -> Result<Swept, StoreError> {
        let mut session = self.database.read().await?;
        if session.dialect() == Dialect::Postgres
            || number(&mut session, "PRAGMA auto_vacuum", "auto_vacuum").await? != INCREMENTAL
        {
            return Ok(Swept::default());
        }
        let free = number(&mut session, "PRAGMA freelist_count", "freelist_count").await?;
        let all = number(&mut session, "PRAGMA page_count", "page_count").await?;
        let spare = (free - all / FREE_ONE_IN).min(pages);
        drop(session);
        if spare <= 0 {
            return Ok(Swept::default());
        }
        let Some(mut sweep) = self.sweep().await? else {
            return Ok(Swept::default());
        };
        let sql = format!("PRAGMA incremental_vacuum({spare})");
        sweep.transaction.execute(AssertSqlSafe(sql), &[]).await?;
        sweep.done(spare.unsigned_abs()).await
    }

    /// Begins SQLite's write-ahead log anew when it has grown long because there was always somebody reading from it.
    /// Gives what it did to others, or nothing when there was no need or no chance.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shorten_log(&self) -> Result<Option<Swept>, StoreError> {
        let mut session = self.database.read().await?;
        if session.dialect() == Dialect::Postgres {
            return Ok(None);
        }
        // Most of the work, while others write.
        let pages = number(&mut session, "PRAGMA wal_checkpoint(PASSIVE)", "log").await?;
        drop(session);
        if pages < LONG_LOG {
            return Ok(None);
        }
        let Some(mut writer) = self.database.bare_writer().await else {
            return Ok(None);
        };
        let began = Instant::now();
        // Somebody who reads for long, a backup, is not waited for.
        writer.execute("PRAGMA busy_timeout = 20", &[]).await?;
        let checkpoint = number(&mut writer, "PRAGMA wal_checkpoint(TRUNCATE)", "busy").await;
        writer.execute("PRAGMA busy_timeout = 5000", &[]).await?;
        Ok((checkpoint? == 0).then(|| Swept {
            deleted: pages.unsigned_abs(),
            took: began.elapsed(),
        }))
    }
}

async fn number(session: &mut Session, sql: &'static str, column: &'static str) -> Result<i64, StoreError> {
    let row = session.row(sql, &[]).await?;
    row.map_or(Ok(0), |row| row.get(column))
}
