//! `switchyard admin backup FILE`: the one command that needs no running server, only the database's file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::AdminError;
use crate::secret::Secret;
use crate::store::{BackupProgress, DatabaseUrl, back_up};

/// Copy the SQLite database into a new file and check the copy, while the server goes on.
///
/// Every run that was accepted before the command began is in the copy. The master key is not: keep it apart (the file
/// `master-key` of the data directory, or where your own is); without it stored secrets and API keys are lost. PostgreSQL
/// is backed up with pg_dump. docs/operations.md tells how to restore.
#[derive(Args)]
pub(super) struct Backup {
    /// File to make; it must not exist yet.
    file: PathBuf,
    /// Database, as given to `serve`; SQLite in the data directory when absent.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    database_url: Option<Secret>,
}

impl Backup {
    pub(super) async fn run(self, data_dir: &Path) -> Result<Value, AdminError> {
        let url = match &self.database_url {
            Some(url) => url.expose().parse()?,
            None => DatabaseUrl::in_directory(data_dir),
        };
        let DatabaseUrl::Sqlite(database) = url else {
            return Err(AdminError::Unusable(
                "a PostgreSQL database is backed up with pg_dump; docs/operations.md tells how".to_owned(),
            ));
        };
        let bytes = back_up(&database, &self.file, tell).await?;
        Ok(json!({ "file": self.file, "bytes": bytes }))
    }
}

/// Progress is for people; standard output is for the answer.
fn tell(progress: BackupProgress) {
    const MIB: u64 = 1 << 20;
    match progress {
        BackupProgress::Copying(copied, all) => {
            eprintln!("copied {} of about {} MiB", copied / MIB, all.div_ceil(MIB));
        }
        BackupProgress::Checking => eprintln!("checking the copy"),
    }
}
