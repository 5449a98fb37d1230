//! The vault: seals what an organization stores in secret, opens it again, and rotates the master key while serving.
//!
//! Each organization has a key of its own, made when it stores its first secret. A rotation wraps these keys anew; what
//! they seal stays as it is.

use std::sync::{Arc, PoisonError, RwLock};

use moka::sync::Cache;

use super::cipher::{Cipher, KEY_LENGTH, joined, random};
use super::master::{MasterKeySource, MasterKeys};
use super::{Secret, SecretError};
use crate::store::{Actor, InsertKey, Store, WrappedKey};

/// The id of the service's own secret, which keys are hashed with. The master key's version in use is the one of this
/// row.
const OWN: &str = "key-hash-secret";
/// The format of sealed bytes, their first one.
const FORMAT: u8 = 1;
/// Opened keys kept in memory.
const MOST_KEYS: u64 = 10_000;
/// How often a key is read again that a rotation wraps meanwhile.
const TRIES: usize = 32;

/// What a secret belongs to. Sealed for one place, it opens in no other.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The organization.
    pub organization_id: &'a str,
    /// The noun, such as `variable`.
    pub kind: &'a str,
    /// The row.
    pub id: &'a str,
}

impl Place<'_> {
    fn associated_data(&self) -> Vec<u8> {
        joined(&[
            self.organization_id.as_bytes(),
            self.kind.as_bytes(),
            self.id.as_bytes(),
            &[FORMAT],
        ])
    }
}

/// Seals and opens. Cheap to clone.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    store: Store,
    source: MasterKeySource,
    /// Those of the source, and older ones that were in use since the start.
    master: RwLock<MasterKeys>,
    keys: Cache<String, Cipher>,
    /// Held by the rotation under way.
    rotation: tokio::sync::Mutex<()>,
}

impl Vault {
    /// Opens the vault with the master key of a source. On a database without secrets a file is made when it is missing.
    ///
    /// # Errors
    /// When source or database cannot be used.
    pub async fn open(store: Store, source: MasterKeySource) -> Result<Self, SecretError> {
        let own = store.wrapped_key(OWN).await?;
        let master = match (source.read()?, &own) {
            (Some(keys), _) => keys,
            (None, Some(_)) => return Err(SecretError::NoFile(source.name())),
            (None, None) => source.make()?,
        };
        let vault = Self(Arc::new(Inner {
            store,
            source,
            master: RwLock::new(master),
            keys: Cache::new(MOST_KEYS),
            rotation: tokio::sync::Mutex::default(),
        }));
        if own.is_none() {
            vault.make_own_secret().await?;
        }
        Ok(vault)
    }

    /// The secret that API keys are hashed with, the same on all nodes.
    ///
    /// # Errors
    /// When the database cannot be used or the master key does not open it.
    pub async fn key_hash_secret(&self) -> Result<Vec<u8>, SecretError> {
        let own = self
            .0
            .store
            .wrapped_key(OWN)
            .await?
            .ok_or(SecretError::WrongKey)?;
        self.0.unwrap(&own)
    }

    /// Seals bytes for a place.
    ///
    /// # Errors
    /// When the database cannot be used or the master key does not open the organization's key.
    pub async fn seal(&self, place: Place<'_>, bytes: &[u8]) -> Result<Vec<u8>, SecretError> {
        let key = self.0.key(place.organization_id).await?;
        let sealed = key.seal(&place.associated_data(), bytes)?;
        Ok([[FORMAT].as_slice(), &sealed].concat())
    }

    /// Opens the text that was sealed for a place.
    ///
    /// # Errors
    /// When it was sealed for another place or changed since; when the database cannot be used or the master key does
    /// not open the organization's key.
    pub async fn open_text(&self, place: Place<'_>, sealed: &[u8]) -> Result<Secret, SecretError> {
        let key = self.0.key(place.organization_id).await?;
        let sealed = sealed.strip_prefix(&[FORMAT]).ok_or(SecretError::Damaged)?;
        let opened = key.open(&place.associated_data(), sealed);
        let text = opened.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(Secret::from).ok_or(SecretError::Damaged)
    }

    /// Wraps all keys with a new version of the master key, in one transaction, and gives that version. A file gets a
    /// new key and holds the old version too until that is done; the environment must have brought the new version.
    ///
    /// # Errors
    /// When source or database cannot be used; both versions may be in the file then, and another rotation cleans up.
    /// [`SecretError::NothingNewer`]
    pub async fn rotate(&self, actor: &Actor) -> Result<i64, SecretError> {
        let inner = &self.0;
        let _alone = inner.rotation.lock().await;
        inner.read_source_again()?;
        let own = inner.store.wrapped_key(OWN).await?.ok_or(SecretError::WrongKey)?;
        let both = inner.source.with_newer(inner.master(), own.master_version)?;
        let version = both.newest();
        inner.learn(both.clone());
        inner
            .store
            .rewrap_keys(actor, OWN, version, |key| inner.rewrap(key, version))
            .await?;
        inner.source.keep_only(&both, version)?;
        tracing::info!(version, "the master key was rotated");
        Ok(version)
    }

    async fn make_own_secret(&self) -> Result<(), SecretError> {
        let master = self.0.master();
        let secret: [u8; KEY_LENGTH] = random()?;
        let wrapped = master.wrap(master.newest(), OWN, &secret);
        self.0
            .store
            .insert_first_key(&wrapped.ok_or(SecretError::WrongKey)??)
            .await?;
        Ok(())
    }
}

impl Inner {
    /// An organization's key, which is made when there is none.
    async fn key(&self, organization_id: &str) -> Result<Cipher, SecretError> {
        if let Some(key) = self.keys.get(organization_id) {
            return Ok(key);
        }
        let wrapped = match self.store.wrapped_key(organization_id).await? {
            Some(wrapped) => wrapped,
            None => self.make_key(organization_id).await?,
        };
        let key: [u8; KEY_LENGTH] = self
            .unwrap(&wrapped)?
            .try_into()
            .map_err(|_other_length| SecretError::Damaged)?;
        let key = Cipher::new(&key);
        self.keys.insert(organization_id.to_owned(), key.clone());
        Ok(key)
    }

    async fn make_key(&self, organization_id: &str) -> Result<WrappedKey, SecretError> {
        let key: [u8; KEY_LENGTH] = random()?;
        for _ in 0..TRIES {
            let own = self.store.wrapped_key(OWN).await?.ok_or(SecretError::WrongKey)?;
            let new = self.with_version(own.master_version, |master| {
                master.wrap(own.master_version, organization_id, &key)
            })?;
            match self.store.insert_key(OWN, &new).await? {
                InsertKey::Holds(wrapped) => return Ok(wrapped),
                InsertKey::Rotated => {}
            }
        }
        Err(SecretError::WrongKey)
    }

    fn unwrap(&self, key: &WrappedKey) -> Result<Vec<u8>, SecretError> {
        self.with_version(key.master_version, |master| master.unwrap(key))
    }

    fn rewrap(&self, key: &WrappedKey, version: i64) -> Result<WrappedKey, SecretError> {
        let opened = self.unwrap(key)?;
        self.with_version(version, |master| master.wrap(version, &key.id, &opened))
    }

    /// Works with a version of the master key. One that is not known may have come into the file since.
    fn with_version<T>(
        &self,
        version: i64,
        work: impl Fn(&MasterKeys) -> Option<Result<T, SecretError>>,
    ) -> Result<T, SecretError> {
        if let Some(done) = work(&self.master()) {
            return done;
        }
        self.read_source_again()?;
        work(&self.master()).unwrap_or_else(|| {
            Err(SecretError::MissingVersion {
                version,
                place: self.source.name(),
            })
        })
    }

    fn read_source_again(&self) -> Result<(), SecretError> {
        if let Some(keys) = self.source.read()? {
            self.learn(keys);
        }
        Ok(())
    }

    fn learn(&self, keys: MasterKeys) {
        let mut master = self.master.write().unwrap_or_else(PoisonError::into_inner);
        master.extend(keys);
    }

    fn master(&self) -> MasterKeys {
        self.master.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::store::DatabaseUrl;

    const PLACE: Place<'static> = Place {
        organization_id: "org_1",
        kind: "variable",
        id: "var_1",
    };

    async fn store(folder: &Path) -> Store {
        Store::open(&DatabaseUrl::Sqlite(folder.join("store.db")))
            .await
            .unwrap()
    }

    async fn open(store: Store, path: PathBuf) -> Result<Vault, SecretError> {
        Vault::open(store, MasterKeySource::File(path)).await
    }

    /// With these keys in the environment.
    async fn open_with(store: &Store, keys: &str) -> Result<Vault, SecretError> {
        let source = MasterKeySource::Environment(Secret::from(keys.to_owned()));
        Vault::open(store.clone(), source).await
    }

    #[tokio::test]
    async fn a_secret_opens_in_its_place_only() {
        let folder = tempfile::tempdir().unwrap();
        let vault = open(store(folder.path()).await, folder.path().join("key"))
            .await
            .unwrap();
        let sealed = vault.seal(PLACE, "gehëim".as_bytes()).await.unwrap();
        assert_eq!(vault.open_text(PLACE, &sealed).await.unwrap().expose(), "gehëim");
        let elsewhere = [
            Place {
                organization_id: "org_2",
                ..PLACE
            },
            Place {
                kind: "credential",
                ..PLACE
            },
            Place { id: "var_2", ..PLACE },
        ];
        for place in elsewhere {
            assert!(vault.open_text(place, &sealed).await.is_err(), "{place:?}");
        }
        assert!(vault.open_text(PLACE, &sealed[1..]).await.is_err());
        assert!(vault.open_text(PLACE, b"").await.is_err());
    }

    #[tokio::test]
    async fn a_rotation_keeps_what_was_sealed_and_retires_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("key"), folder.path().join("old"));
        let store = store(folder.path()).await;
        let vault = open(store.clone(), path.clone()).await.unwrap();
        let sealed = vault.seal(PLACE, b"secret").await.unwrap();
        let hash_secret = vault.key_hash_secret().await.unwrap();
        std::fs::copy(&path, &old).unwrap();

        assert_eq!(vault.rotate(&Actor::default()).await.unwrap(), 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        for vault in [vault, open(store.clone(), path.clone()).await.unwrap()] {
            assert_eq!(vault.open_text(PLACE, &sealed).await.unwrap().expose(), "secret");
            assert_eq!(vault.key_hash_secret().await.unwrap(), hash_secret);
        }
        let outdated = open(store.clone(), old.clone()).await.unwrap();
        let refused = outdated.key_hash_secret().await.err().unwrap();
        assert!(
            matches!(refused, SecretError::MissingVersion { version: 2, .. }),
            "{refused}"
        );
        assert!(outdated.seal(PLACE, b"x").await.is_err());
        std::fs::copy(&path, &old).unwrap();
        assert_eq!(
            outdated.key_hash_secret().await.unwrap(),
            hash_secret,
            "the new file is read at once"
        );
        assert_eq!(outdated.rotate(&Actor::default()).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_database_in_use_needs_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        open(store.clone(), folder.path().join("a")).await.unwrap();
        let missing = open(store.clone(), folder.path().join("b")).await;
        assert!(matches!(missing, Err(SecretError::NoFile(_))));
        assert!(!folder.path().join("b").exists());
        std::fs::write(folder.path().join("c"), "ab".repeat(KEY_LENGTH)).unwrap();
        let stranger = open(store, folder.path().join("c")).await.unwrap();
        assert!(matches!(
            stranger.key_hash_secret().await,
            Err(SecretError::WrongKey)
        ));
    }

    #[tokio::test]
    async fn a_key_of_the_environment_is_rotated_to_one_that_it_brings() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        let (old, new) = ("ab".repeat(KEY_LENGTH), "cd".repeat(KEY_LENGTH));
        let vault = open_with(&store, &old).await.unwrap();
        let sealed = vault.seal(PLACE, b"secret").await.unwrap();
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            files(folder.path())
        );
        let alone = vault.rotate(&Actor::default()).await.unwrap_err();
        assert!(
            matches!(alone, SecretError::NothingNewer { version: 1 }),
            "{alone}"
        );
        assert!(!alone.to_string().contains(&old));

        let both = open_with(&store, &format!("1:{old},2:{new}")).await.unwrap();
        assert_eq!(both.open_text(PLACE, &sealed).await.unwrap().expose(), "secret");
        assert_eq!(both.rotate(&Actor::default()).await.unwrap(), 2);
        let again = both.rotate(&Actor::default()).await.unwrap_err();
        assert!(matches!(again, SecretError::NothingNewer { version: 2 }));
        let next = open_with(&store, &format!("2:{new}")).await.unwrap();
        assert_eq!(next.open_text(PLACE, &sealed).await.unwrap().expose(), "secret");
        let outdated = open_with(&store, &old).await.unwrap();
        let refused = outdated.key_hash_secret().await.err().unwrap();
        assert!(matches!(refused, SecretError::MissingVersion { version: 2, .. }));
        assert!(refused.to_string().contains("SWITCHYARD_MASTER_KEY"), "{refused}");
    }

    /// How many files of the database there are: no key is written down.
    fn files(folder: &Path) -> usize {
        let names = std::fs::read_dir(folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("store.db")).count()
    }

    #[tokio::test]
    async fn first_secrets_during_rotations_stay_readable() {
        let folder = tempfile::tempdir().unwrap();
        let vault = open(store(folder.path()).await, folder.path().join("key"))
            .await
            .unwrap();
        let sealers: Vec<_> = (0..24)
            .map(|number| {
                let vault = vault.clone();
                tokio::spawn(async move {
                    let organization_id = format!("org_{number}");
                    let place = Place {
                        organization_id: &organization_id,
                        ..PLACE
                    };
                    (
                        vault.seal(place, b"secret").await.unwrap(),
                        organization_id.clone(),
                    )
                })
            })
            .collect();
        for expected in 2..6 {
            assert_eq!(vault.rotate(&Actor::default()).await.unwrap(), expected);
        }
        let fresh = open(vault.0.store.clone(), folder.path().join("key"))
            .await
            .unwrap();
        for sealer in sealers {
            let (sealed, organization_id) = sealer.await.unwrap();
            let place = Place {
                organization_id: &organization_id,
                ..PLACE
            };
            assert_eq!(fresh.open_text(place, &sealed).await.unwrap().expose(), "secret");
        }
    }
}
