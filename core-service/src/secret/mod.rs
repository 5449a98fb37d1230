//! Secrets, the master key that protects those which are stored, and the vault that seals and opens them.
//!
//! What is stored is sealed with a key of its organization's own; those keys are wrapped by a version of the master key,
//! which stands in a file or in the environment and never in the database. No type here that holds a secret has `Debug`, `Display` or
//! `Serialize`: what holds one cannot be logged or sent by accident.

mod cipher;
mod hide;
mod mask;
mod master;
mod vault;

use std::convert::Infallible;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use hide::Hide;
pub use mask::Mask;
pub use master::MasterKeySource;
pub use vault::{Place, Vault};

use crate::store::StoreError;

/// The environment variable that may hold the master key.
pub const MASTER_KEY_VARIABLE: &str = "SWITCHYARD_MASTER_KEY";

/// Text that nobody but its reader may see.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the texts are the same, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &str) -> bool {
        constant_time_eq::constant_time_eq(self.0.as_bytes(), other.as_bytes())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// What is wrong with a key or with what it should open.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A file cannot be read or written.
    #[error("the file {path} cannot be used")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// What should be a master key is something else.
    #[error(
        "{0} must hold the master key: 32 bytes in hexadecimal or Base64, or several versions of it as VERSION:KEY, on \
         lines of their own or separated by commas"
    )]
    Malformed(String),
    /// The database was set up with a master key, and there is no file.
    #[error("there is no master key file {0}; copy the one that the other nodes use")]
    NoFile(String),
    /// What was wrapped was wrapped by another key, or is damaged.
    #[error("the master key does not open what the database holds; start with the key the other nodes use")]
    WrongKey,
    /// The master key was rotated on another node.
    #[error(
        "the database's secrets need version {version} of the master key, which {place} lacks; give it what the node \
         that rotated it has"
    )]
    MissingVersion {
        /// The version.
        version: i64,
        /// The master key file of this node, or the variable.
        place: String,
    },
    /// A rotation found no key to rotate to.
    #[error(
        "{} has no version of the master key above {version}, which is in use: set it to the present key and a new one \
         (1:KEY,2:NEWKEY), restart all nodes, and rotate again",
        MASTER_KEY_VARIABLE
    )]
    NothingNewer {
        /// The version in use.
        version: i64,
    },
    /// A stored secret was changed, moved, or sealed with another key.
    #[error("a stored secret is damaged")]
    Damaged,
    /// The operating system gives no randomness.
    #[error("the operating system gives no random numbers")]
    Random(#[from] getrandom::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The text of a private file, if there is one.
///
/// # Errors
/// When it is there and cannot be read.
pub fn read_private(path: &Path) -> Result<Option<String>, SecretError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SecretError::File {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Writes a new file that only its owner can read.
///
/// # Errors
/// When it is there already or cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), SecretError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()
    });
    written.map_err(|source| SecretError::File {
        path: path.display().to_string(),
        source,
    })
}

/// Puts a text in the place of a private file's, all of it or nothing.
///
/// # Errors
/// When it cannot be written.
pub fn replace_private(path: &Path, text: &str) -> Result<(), SecretError> {
    let mut beside: PathBuf = path.to_owned();
    beside.as_mut_os_string().push(".new");
    let file_error = |source| SecretError::File {
        path: path.display().to_string(),
        source,
    };
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(file_error(error)),
        _ => {}
    }
    write_private(&beside, text)?;
    std::fs::rename(&beside, path).map_err(file_error)?;
    // The rename itself must survive a crash, too.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    std::fs::File::open(directory.unwrap_or(Path::new(".")))
        .and_then(|directory| directory.sync_all())
        .map_err(file_error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn private_files_are_their_owners_alone_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(read_private(&path).unwrap().is_none());
        write_private(&path, "one").unwrap();
        assert!(write_private(&path, "two").is_err(), "it is there");
        replace_private(&path, "three").unwrap();
        replace_private(&path, "four").unwrap();
        assert_eq!(read_private(&path).unwrap().as_deref(), Some("four"));
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
