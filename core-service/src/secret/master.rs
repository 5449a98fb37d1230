//! The master key's versions and their file: a line for each, its number and 64 hexadecimal digits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::cipher::{Cipher, KEY_LENGTH, joined, random};
use super::{SecretError, read_private, replace_private, write_private};
use crate::store::WrappedKey;

/// The versions of the master key that a node has.
#[derive(Clone, Default)]
pub(super) struct MasterKeys(BTreeMap<i64, [u8; KEY_LENGTH]>);

/// Where they are kept.
pub(super) struct MasterKeyFile(PathBuf);

impl MasterKeys {
    /// The highest version.
    pub(super) fn newest(&self) -> i64 {
        self.0.last_key_value().map_or(0, |(version, _)| *version)
    }

    /// With a new random key as this version.
    pub(super) fn with_new(mut self, version: i64) -> Result<Self, SecretError> {
        self.0.insert(version, random()?);
        Ok(self)
    }

    /// This version alone.
    pub(super) fn only(&self, version: i64) -> Self {
        let key = self.0.get_key_value(&version);
        Self(key.map(|(version, key)| (*version, *key)).into_iter().collect())
    }

    /// With another node's or file's versions, which win.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Wraps a key, for the one who has this id alone; nothing without this version.
    pub(super) fn wrap(&self, version: i64, id: &str, key: &[u8]) -> Option<Result<WrappedKey, SecretError>> {
        let cipher = Cipher::new(self.0.get(&version)?);
        let wrapped = cipher.seal(&place(version, id), key);
        Some(wrapped.map(|wrapped| WrappedKey {
            id: id.to_owned(),
            master_version: version,
            wrapped,
        }))
    }

    /// Opens what was wrapped; nothing without its version.
    pub(super) fn unwrap(&self, key: &WrappedKey) -> Option<Result<Vec<u8>, SecretError>> {
        let cipher = Cipher::new(self.0.get(&key.master_version)?);
        let opened = cipher.open(&place(key.master_version, &key.id), &key.wrapped);
        Some(opened.ok_or(SecretError::WrongKey))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut keys = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            // A line without a number is what a key generator gives.
            let (version, digits) = line.split_once(char::is_whitespace).unwrap_or(("1", line));
            let version: i64 = version.parse().ok().filter(|version| *version > 0)?;
            let key = hex::decode(digits.trim()).ok()?.try_into().ok()?;
            if keys.insert(version, key).is_some() {
                return None;
            }
        }
        (!keys.is_empty()).then_some(Self(keys))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (version, key) in &self.0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{version} {}", hex::encode(key));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn place(version: i64, id: &str) -> Vec<u8> {
    joined(&[b"wrapped-key", id.as_bytes(), &version.to_be_bytes()])
}

impl MasterKeyFile {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Its keys, if there is such a file.
    pub(super) fn read(&self) -> Result<Option<MasterKeys>, SecretError> {
        let text = read_private(&self.0)?;
        text.map(|text| MasterKeys::parse(&text).ok_or_else(|| SecretError::Malformed(self.name())))
            .transpose()
    }

    /// Makes the file, readable by its owner alone.
    pub(super) fn create(&self, keys: &MasterKeys) -> Result<(), SecretError> {
        write_private(&self.0, &keys.text())
    }

    pub(super) fn replace(&self, keys: &MasterKeys) -> Result<(), SecretError> {
        replace_private(&self.0, &keys.text())
    }

    pub(super) fn name(&self) -> String {
        self.0.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_file_keeps_versions_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = MasterKeyFile::new(&folder.path().join("key"));
        assert!(file.read().unwrap().is_none());
        let keys = MasterKeys::default().with_new(1).unwrap().with_new(3).unwrap();
        file.create(&keys).unwrap();
        let read = file.read().unwrap().unwrap();
        assert_eq!((read.newest(), read.text()), (3, keys.text()));
        file.replace(&read.only(3)).unwrap();
        let newest = file.read().unwrap().unwrap();
        let wrapped = keys.wrap(3, "org", b"key").unwrap().unwrap();
        assert_eq!(newest.unwrap(&wrapped).unwrap().unwrap(), b"key");
        assert!(newest.wrap(1, "org", b"key").is_none());
        let elsewhere = WrappedKey {
            id: "other".to_owned(),
            ..wrapped.clone()
        };
        assert!(newest.unwrap(&elsewhere).unwrap().is_err());
        let stranger = MasterKeys::default().with_new(3).unwrap();
        assert!(stranger.unwrap(&wrapped).unwrap().is_err());
    }

    #[test]
    fn only_keys_are_read() {
        let key = "ab".repeat(KEY_LENGTH);
        assert_eq!(MasterKeys::parse(&key).unwrap().newest(), 1);
        assert_eq!(
            MasterKeys::parse(&format!("2 {key}\n7\t{key}\n"))
                .unwrap()
                .newest(),
            7
        );
        for wrong in [
            "",
            "\n",
            "short",
            &format!("0 {key}"),
            &format!("-1 {key}"),
            &format!("1 {key}\n1 {key}"),
            &format!("x {key}"),
        ] {
            assert!(MasterKeys::parse(wrong).is_none(), "{wrong}");
        }
    }
}
