//! A copy of a SQLite database while others use it.
//!
//! `VACUUM INTO` copies what was committed when it began, from a connection of its own: writers go on meanwhile, and only
//! their log grows until the copy is done. Absent on purpose: PostgreSQL, which has `pg_dump`, and the master key, which
//! is in no database.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};
use tokio::time::{MissedTickBehavior, interval};

use super::StoreError;
use super::open::BUSY_TIMEOUT;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// How far a backup has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupProgress {
    /// So many bytes of about so many are copied.
    Copying(u64, u64),
    /// The copy is complete and is being checked.
    Checking,
}

/// Copies a SQLite database into a file that must not exist yet, checks the copy, and gives its size in bytes. The file is
/// there under its name once it is complete and on stable storage.
///
/// # Errors
/// [`StoreError::Setup`] when one of the files cannot be used; [`StoreError::Corrupt`] when the copy does not pass the
/// check; when the database fails or the disk is full.
pub async fn back_up(
    database: &Path,
    target: &Path,
    mut tell: impl FnMut(BackupProgress),
) -> Result<u64, StoreError> {
    if target.exists() {
        return Err(unusable(target, "it exists already; name a new file"));
    }
    let partial = Partial::create(target)?;
    copy(database, &partial.path, &mut tell).await?;
    tell(BackupProgress::Checking);
    check(&partial.path).await?;
    partial.complete(target)
}

async fn copy(database: &Path, into: &Path, tell: &mut impl FnMut(BackupProgress)) -> Result<(), StoreError> {
    let source = SqliteConnectOptions::new()
        .filename(database)
        .busy_timeout(BUSY_TIMEOUT);
    let connected = source.connect().await;
    let mut source = connected.map_err(|error| unusable(database, error))?;
    let sql = "SELECT auto_vacuum FROM pragma_auto_vacuum()";
    let gives_back: i64 = sqlx::query(sql).fetch_one(&mut source).await?.try_get(0)?;
    if gives_back == 0 {
        // The copy will give space back in small steps although the original cannot.
        sqlx::query("PRAGMA auto_vacuum = INCREMENTAL")
            .execute(&mut source)
            .await?;
    }
    let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    let all: i64 = sqlx::query(sql).fetch_one(&mut source).await?.try_get(0)?;
    let name = into.to_str();
    let name = name.ok_or_else(|| unusable(into, "its name is not UTF-8"))?;
    {
        let copying = sqlx::query("VACUUM INTO $1").bind(name).execute(&mut source);
        tokio::pin!(copying);
        let mut ticks = interval(TELL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            tokio::select! {
                copied = &mut copying => break copied.map(drop)?,
                _ = ticks.tick() => {
                    let copied = into.metadata().map_or(0, |file| file.len());
                    tell(BackupProgress::Copying(copied, all.unsigned_abs()));
                }
            }
        }
    }
    Ok(source.close().await?)
}

async fn check(copy: &Path) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true);
    let mut connection: SqliteConnection = options.connect().await?;
    let row = sqlx::query("PRAGMA integrity_check(1)").fetch_one(&mut connection);
    let verdict: String = row.await?.try_get(0)?;
    connection.close().await?;
    match verdict.as_str() {
        "ok" => Ok(()),
        wrong => Err(StoreError::Corrupt(format!("the copy is damaged: {wrong}"))),
    }
}

/// The copy before it is complete; removed unless it gets that far.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// An empty file beside the target that its owner alone may read: what is in the database is nobody else's.
    fn create(target: &Path) -> Result<Self, StoreError> {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let create = || {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(&path)
        };
        create().map_err(|error| unusable(&path, error))?;
        Ok(Self { path })
    }

    fn complete(self, target: &Path) -> Result<u64, StoreError> {
        let complete = || {
            let file = File::open(&self.path)?;
            file.sync_all()?;
            let size = file.metadata()?.len();
            // Fails when somebody has made a file of that name meanwhile.
            std::fs::hard_link(&self.path, target)?;
            std::fs::remove_file(&self.path)?;
            let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
            io::Result::Ok(size)
        };
        complete().map_err(|error| unusable(target, error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Not there any more when it was completed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Setup(format!("{}: {why}", path.display()))
}
