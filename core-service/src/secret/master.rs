//! The master key's versions and where they stand: in a file, a line for each, or in the environment, separated by
//! commas. Each has a number and 32 bytes in hexadecimal or Base64.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::cipher::{Cipher, KEY_LENGTH, joined, random};
use super::{MASTER_KEY_VARIABLE, Secret, SecretError, read_private, replace_private, write_private};
use crate::store::WrappedKey;

/// The versions of the master key that a node has.
#[derive(Clone, Default)]
pub(super) struct MasterKeys(BTreeMap<i64, [u8; KEY_LENGTH]>);

/// Where the master key comes from.
pub enum MasterKeySource {
    /// A file, which rotations write.
    File(PathBuf),
    /// The text of an environment variable, which only the operator writes.
    Environment(Secret),
}

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
        let entries = text.split(['\n', ',']).map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let is_separator = |character: char| character == ':' || character.is_whitespace();
            // One without a number is what a key generator gives.
            let (version, key) = entry.split_once(is_separator).unwrap_or(("1", entry));
            let version: i64 = version.parse().ok().filter(|version| *version > 0)?;
            let key = key_bytes(key.trim())?;
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

/// Both alphabets of Base64, each with or without padding.
const BASE64: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING),
    GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING),
];
const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

fn key_bytes(text: &str) -> Option<[u8; KEY_LENGTH]> {
    let bytes = hex::decode(text)
        .ok()
        .or_else(|| BASE64.iter().find_map(|base64| base64.decode(text).ok()));
    bytes?.try_into().ok()
}

impl MasterKeySource {
    /// Its keys; nothing when there is no such file.
    pub(super) fn read(&self) -> Result<Option<MasterKeys>, SecretError> {
        let text = match self {
            Self::File(path) => read_private(path)?,
            Self::Environment(text) => Some(text.expose().to_owned()),
        };
        text.map(|text| MasterKeys::parse(&text).ok_or_else(|| SecretError::Malformed(self.name())))
            .transpose()
    }

    /// Makes the file with a first key, readable by its owner alone.
    pub(super) fn make(&self) -> Result<MasterKeys, SecretError> {
        let keys = MasterKeys::default().with_new(1)?;
        match self {
            Self::File(path) => write_private(path, &keys.text())?,
            // There always is one.
            Self::Environment(_) => {}
        }
        Ok(keys)
    }

    /// The keys with a version above the one in use: a new one, which the file then holds too, or one that the
    /// environment has brought.
    pub(super) fn with_newer(&self, keys: MasterKeys, in_use: i64) -> Result<MasterKeys, SecretError> {
        match self {
            Self::File(path) => {
                let version = keys.newest().max(in_use).saturating_add(1);
                let both = keys.with_new(version)?;
                replace_private(path, &both.text())?;
                Ok(both)
            }
            Self::Environment(_) if keys.newest() > in_use => Ok(keys),
            Self::Environment(_) => Err(SecretError::NothingNewer { version: in_use }),
        }
    }

    /// Forgets the versions that are no longer in use.
    pub(super) fn keep_only(&self, keys: &MasterKeys, version: i64) -> Result<(), SecretError> {
        match self {
            Self::File(path) => replace_private(path, &keys.only(version).text()),
            Self::Environment(_) => Ok(()),
        }
    }

    /// What the operator knows it by.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Environment(_) => MASTER_KEY_VARIABLE.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_file_keeps_versions_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = MasterKeySource::File(folder.path().join("key"));
        assert!(file.read().unwrap().is_none());
        let first = file.make().unwrap();
        let keys = file.with_newer(first, 2).unwrap();
        let read = file.read().unwrap().unwrap();
        assert_eq!((read.newest(), read.text()), (3, keys.text()));
        file.keep_only(&keys, 3).unwrap();
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
        let base64 = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s";
        for text in [
            &format!("5:{key}"),
            &format!("1:{},5:{base64}=", "cd".repeat(KEY_LENGTH)),
            &format!("5 {base64}\n"),
        ] {
            let keys = MasterKeys::parse(text).unwrap();
            assert_eq!(keys.only(5).text(), format!("5 {key}"), "{text}");
        }
        for wrong in [
            "",
            "\n",
            ",",
            "short",
            "2:",
            &base64[2..],
            &format!("0 {key}"),
            &format!("-1 {key}"),
            &format!("1 {key}\n1 {key}"),
            &format!("x {key}"),
        ] {
            assert!(MasterKeys::parse(wrong).is_none(), "{wrong}");
        }
    }
}
