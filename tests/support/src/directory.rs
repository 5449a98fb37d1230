//! Directories that go away with the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A new directory, removed with its contents when dropped.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes the directory; its name starts with `switchyard-` and this label.
    ///
    /// # Errors
    /// When the system's temporary directory cannot be written.
    pub fn new(label: &str) -> std::io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), label)
    }

    /// As [`Self::new`], in another directory than the system's.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn new_in(parent: &Path, label: &str) -> std::io::Result<Self> {
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("switchyard-{label}-{}-{number}", std::process::id());
            let path = parent.join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left behind by an earlier process of the same id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}
