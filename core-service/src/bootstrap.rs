//! What a server needs before it can serve: the secrets it shares with other nodes, and on an empty database an
//! organization with a key.

use std::path::{Path, PathBuf};

use contract::json::Words as _;
use contract::v1::Scope;
use wire::api_key::ApiKeyText;

use crate::auth::KeyHasher;
use crate::config::ServeOptions;
use crate::people::AnswerLinks;
use crate::secret::{MasterKeySource, Secret, SecretError, Vault, read_private, write_private};
use crate::store::{Founding, FoundingKey, Store, StoreError};

const OPERATOR_TOKEN_FILE: &str = "operator-token";
const INITIAL_KEY_FILE: &str = "initial-api-key";
const MASTER_KEY_FILE: &str = "master-key";

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A secret or its file cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data directory cannot be made.
    #[error("the data directory {path} cannot be made")]
    DataDirectory {
        /// Which directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The secrets of a server.
pub struct Secrets {
    /// Seals what is stored.
    pub vault: Vault,
    /// Hashes API keys.
    pub hasher: KeyHasher,
    /// Makes and reads the links by which people answer runs.
    pub answer_links: AnswerLinks,
    /// What AdminService asks for.
    pub operator_token: Secret,
}

/// The key that the first start made.
pub struct FirstKey {
    /// The key.
    pub key: Secret,
    /// Where it stands.
    pub file: PathBuf,
}

/// Makes the data directory.
///
/// # Errors
/// When it cannot be made.
pub fn make_data_directory(path: &Path) -> Result<(), BootstrapError> {
    std::fs::create_dir_all(path).map_err(|source| BootstrapError::DataDirectory {
        path: path.to_owned(),
        source,
    })
}

/// Reads the secrets, making those that are missing.
///
/// # Errors
/// When a file or the database cannot be used, or the master key is not the one that the other nodes use.
pub async fn secrets(options: &ServeOptions, store: &Store) -> Result<Secrets, BootstrapError> {
    let vault = Vault::open(store.clone(), master_key_source(options)).await?;
    let own = vault.key_hash_secret().await?;
    let (hasher, answer_links) = (KeyHasher::new(&own), AnswerLinks::new(&own));
    let operator_token = match &options.operator_token {
        Some(token) => token.clone(),
        None => operator_token(&options.data_dir.join(OPERATOR_TOKEN_FILE))?,
    };
    Ok(Secrets {
        vault,
        hasher,
        answer_links,
        operator_token,
    })
}

fn master_key_source(options: &ServeOptions) -> MasterKeySource {
    match (&options.master_key, &options.master_key_file) {
        (Some(text), _) => MasterKeySource::Environment(text.clone()),
        (None, Some(path)) => MasterKeySource::File(path.clone()),
        (None, None) => MasterKeySource::File(options.data_dir.join(MASTER_KEY_FILE)),
    }
}

fn operator_token(path: &Path) -> Result<Secret, SecretError> {
    if let Some(token) = read_private(path)? {
        return Ok(Secret::from(token));
    }
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)?;
    let token = format!("swyop_{}", hex::encode(random));
    write_private(path, &token)?;
    Ok(Secret::from(token))
}

/// On a database without organizations, makes one with an owner and a key. Of several nodes that start at once, one
/// does it.
///
/// # Errors
/// When the database or the key's file cannot be used.
pub async fn first_start(
    options: &ServeOptions,
    store: &Store,
    hasher: &KeyHasher,
) -> Result<Option<FirstKey>, BootstrapError> {
    if store.count_organizations().await? > 0 {
        return Ok(None);
    }
    // The file comes first: a crash between the two must not leave an organization whose key nobody knows.
    let file = options.data_dir.join(INITIAL_KEY_FILE);
    let key = match read_private(&file)?.and_then(|text| ApiKeyText::parse(&text)) {
        Some(key) => key,
        None => {
            let key = ApiKeyText::generate(&options.region).map_err(SecretError::from)?;
            write_private(&file, key.text())?;
            key
        }
    };
    let founding = Founding {
        name: "Default",
        plan_id: "unlimited",
        owner_email: "owner@localhost",
        key: Some(FoundingKey {
            hash: &hasher.hash(&key),
            scopes: &all_scopes(),
        }),
    };
    match store.found_first_organization(&founding).await? {
        Some(_) => Ok(Some(FirstKey {
            key: Secret::from(key.text().to_owned()),
            file,
        })),
        None => {
            // Another node was first; this key opens nothing.
            let path = file.display().to_string();
            std::fs::remove_file(&file).map_err(|source| SecretError::File { path, source })?;
            Ok(None)
        }
    }
}

/// Every scope there is.
pub fn all_scopes() -> Vec<&'static str> {
    Scope::WORDS.iter().map(|(word, _)| *word).collect()
}
