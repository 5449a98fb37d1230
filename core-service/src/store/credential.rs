//! Credentials. What they hold is sealed by whoever calls; here it is bytes. A link under which a person finishes one is
//! found by its token's hash.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::consent;
use super::database::Session;
use super::folder::require_folder;
use super::team::require_team;
use super::token::{self, NewToken};
use super::value::{Row, Value, values, words};
use super::workflow::assign;
use super::{Store, StoreError};
use crate::clock;

words! {
    /// Whether a credential can be used.
    CredentialStatus {
        /// It can.
        Active = "active",
        /// A person has to finish it first.
        CredentialRequired = "credential_required",
        /// Its service refuses it.
        Invalid = "invalid",
        /// It ran out.
        Expired = "expired",
    }
}

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// `cred_`
    pub id: String,
    /// Its organization.
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// The app it is for.
    pub app_id: String,
    /// One of the app's ways to connect.
    pub connection_id: String,
    /// Whether it can be used.
    pub status: CredentialStatus,
    /// JSON of the connection's fields, sealed.
    pub data: Vec<u8>,
    /// The folder it is in.
    pub folder_id: Option<String>,
    /// When the link under which a person finishes it expires, epoch milliseconds.
    pub link_expires_at: Option<i64>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub updated_at: i64,
}

/// A credential to be made.
#[derive(Clone, Copy)]
pub struct NewCredential<'a> {
    /// `cred_`, chosen by the caller, who seals the data for it.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The app it is for.
    pub app_id: &'a str,
    /// One of the app's ways to connect.
    pub connection_id: &'a str,
    /// JSON of the connection's fields, sealed.
    pub data: &'a [u8],
    /// The team; none for the organization's.
    pub team_id: Option<&'a str>,
    /// The link under which a person finishes it; none when nothing is missing.
    pub link: Option<NewLink<'a>>,
}

/// A link to be made.
#[derive(Clone, Copy)]
pub struct NewLink<'a> {
    /// What its token is found by.
    pub token_hash: &'a [u8],
    /// Epoch milliseconds.
    pub expires_at: i64,
}

/// What to change; `None` stays, `Some(None)` clears.
#[derive(Debug, Clone, Default)]
pub struct CredentialChange {
    /// Its name.
    pub name: Option<String>,
    /// The folder it is in.
    pub folder_id: Option<Option<String>>,
}

const COLUMNS: &str = "id, organization_id, name, app_id, connection_id, status, data, folder_id, link_expires_at, \
                       created_at, updated_at";

impl Credential {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            name: row.get("name")?,
            app_id: row.get("app_id")?,
            connection_id: row.get("connection_id")?,
            status: row.word("status")?,
            data: row.get("data")?,
            folder_id: row.get("folder_id")?,
            link_expires_at: row.get("link_expires_at")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }

    /// Whether a person can finish it by its link now.
    pub fn can_be_connected(&self) -> bool {
        let is_valid = |expires_at: i64| clock::now_ms() < expires_at;
        self.status == CredentialStatus::CredentialRequired && self.link_expires_at.is_some_and(is_valid)
    }

    fn touch(&mut self) {
        self.updated_at = clock::now_ms().max(self.updated_at + 1);
    }
}

impl CredentialChange {
    /// Sets what is to change and names it.
    fn apply(&self, credential: &mut Credential) -> Vec<&'static str> {
        let mut changed = Vec::new();
        let mut set = |name: &'static str, is_set: bool| is_set.then(|| changed.push(name));
        set("name", assign(&mut credential.name, self.name.as_ref()));
        set(
            "folderId",
            assign(&mut credential.folder_id, self.folder_id.as_ref()),
        );
        changed
    }
}

impl Store {
    /// Makes a credential: an active one, or with a link one that a person has to finish.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the team; when the database fails.
    pub async fn create_credential(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewCredential<'_>,
    ) -> Result<Credential, StoreError> {
        let status = match new.link {
            None => CredentialStatus::Active,
            Some(_) => CredentialStatus::CredentialRequired,
        };
        let sql = format!(
            "INSERT INTO credentials (id, organization_id, team_id, name, app_id, connection_id, status, data, link_hash,
                 link_expires_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING {COLUMNS}"
        );
        let mut transaction = self.database.write().await?;
        require_team(&mut transaction, organization_id, new.team_id).await?;
        let row = transaction
            .row(
                AssertSqlSafe(sql),
                &values![
                    new.id,
                    organization_id,
                    new.team_id,
                    new.name,
                    new.app_id,
                    new.connection_id,
                    status.as_word(),
                    new.data,
                    Value::Bytes(new.link.map(|link| link.token_hash)),
                    new.link.map(|link| link.expires_at),
                    clock::now_ms(),
                ],
            )
            .await?;
        let credential = Credential::from_row(&row.ok_or(StoreError::NotFound("credential"))?)?;
        record_credential(&mut transaction, actor, &credential, "credential.created", &[]).await?;
        transaction.commit().await?;
        Ok(credential)
    }

    /// An organization's credentials, newest first, from the one after the id `after`; of one app when it is named.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_credentials(
        &self,
        organization_id: &str,
        app_id: Option<&str>,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Credential>, StoreError> {
        let mut sql =
            format!("SELECT {COLUMNS} FROM credentials WHERE organization_id = $1 AND deleted_at IS NULL");
        let mut parameters = values![organization_id, limit].to_vec();
        for (condition, value) in [("app_id =", app_id), ("id <", after)] {
            if let Some(value) = value {
                parameters.push(value.into());
                sql.push_str(&format!(" AND {condition} ${}", parameters.len()));
            }
        }
        sql.push_str(" ORDER BY id DESC LIMIT $2");
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Credential::from_row).collect()
    }

    /// One credential.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn credential(
        &self,
        organization_id: &str,
        credential_id: &str,
    ) -> Result<Credential, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, organization_id, credential_id, "").await
    }

    /// Those of these credentials that the organization has, in no order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn credentials(
        &self,
        organization_id: &str,
        credential_ids: &[&str],
    ) -> Result<Vec<Credential>, StoreError> {
        if credential_ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut parameters = values![organization_id].to_vec();
        parameters.extend(credential_ids.iter().map(|id| Value::from(*id)));
        let places: Vec<String> = (2..=parameters.len()).map(|place| format!("${place}")).collect();
        let sql = format!(
            "SELECT {COLUMNS} FROM credentials WHERE organization_id = $1 AND deleted_at IS NULL AND id IN ({})",
            places.join(", ")
        );
        let mut session = self.database.read().await?;
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Credential::from_row).collect()
    }

    /// Changes what a PATCH may change. Gives the credential as it is then.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of the credential or the folder; when the database fails.
    pub async fn update_credential(
        &self,
        actor: &Actor,
        organization_id: &str,
        credential_id: &str,
        change: &CredentialChange,
    ) -> Result<Credential, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let mut credential = load(&mut transaction, organization_id, credential_id, lock).await?;
        if let Some(folder_id) = &change.folder_id {
            require_folder(&mut transaction, organization_id, folder_id.as_deref()).await?;
        }
        let changed = change.apply(&mut credential);
        credential.touch();
        transaction
            .execute(
                "UPDATE credentials SET name = $2, folder_id = $3, updated_at = $4 WHERE id = $1",
                &values![
                    credential_id,
                    &credential.name,
                    &credential.folder_id,
                    credential.updated_at
                ],
            )
            .await?;
        record_credential(
            &mut transaction,
            actor,
            &credential,
            "credential.updated",
            &changed,
        )
        .await?;
        transaction.commit().await?;
        Ok(credential)
    }

    /// Deletes a credential: it is found no more, and its row stays, without what it held.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn delete_credential(
        &self,
        actor: &Actor,
        organization_id: &str,
        credential_id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let credential = load(&mut transaction, organization_id, credential_id, lock).await?;
        transaction
            .execute(
                "UPDATE credentials SET deleted_at = $2, data = $3 WHERE id = $1",
                &values![credential_id, clock::now_ms(), b"".as_slice()],
            )
            .await?;
        token::forget(&mut transaction, credential_id).await?;
        consent::forget(&mut transaction, credential_id).await?;
        record_credential(&mut transaction, actor, &credential, "credential.deleted", &[]).await?;
        transaction.commit().await
    }

    /// Records that a credential was tested, and what it turned out to be; nothing when that could not be told.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn credential_verified(
        &self,
        actor: &Actor,
        organization_id: &str,
        credential_id: &str,
        status: Option<CredentialStatus>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let mut credential = load(&mut transaction, organization_id, credential_id, lock).await?;
        // One that ran out, perhaps by this very test, is refused because of that.
        let says_more = |status: &CredentialStatus| {
            *status != CredentialStatus::Invalid || credential.status != CredentialStatus::Expired
        };
        let changed = status.filter(|status| *status != credential.status && says_more(status));
        if let Some(status) = changed {
            set_status(&mut transaction, &mut credential, status).await?;
        }
        let fields: &[&str] = if changed.is_some() { &["status"] } else { &[] };
        record_credential(
            &mut transaction,
            actor,
            &credential,
            "credential.verified",
            fields,
        )
        .await?;
        transaction.commit().await
    }

    /// The credential that a link leads to, a deleted one excepted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn linked_credential(&self, token_hash: &[u8]) -> Result<Option<Credential>, StoreError> {
        let mut session = self.database.read().await?;
        load_linked(&mut session, token_hash, "").await
    }

    /// Lets a person finish a credential by its link, once, with the token that it fetched if it fetches one; `false` when
    /// that is over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn connect_credential(
        &self,
        actor: &Actor,
        token_hash: &[u8],
        data: &[u8],
        token: Option<&NewToken<'_>>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let found = load_linked(&mut transaction, token_hash, lock).await?;
        let Some(mut credential) = found.filter(Credential::can_be_connected) else {
            transaction.rollback().await?;
            return Ok(false);
        };
        credential.touch();
        transaction
            .execute(
                "UPDATE credentials SET status = $2, data = $3, updated_at = $4 WHERE id = $1",
                &values![
                    &credential.id,
                    CredentialStatus::Active.as_word(),
                    data,
                    credential.updated_at
                ],
            )
            .await?;
        if let Some(token) = token {
            token::write(&mut transaction, &credential.id, token).await?;
        }
        let fields = &["status", "data"];
        record_credential(
            &mut transaction,
            actor,
            &credential,
            "credential.connected",
            fields,
        )
        .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// The credential with this id, whoever's it is: for what names it without an organization.
pub(super) async fn load_any(
    session: &mut Session,
    credential_id: &str,
) -> Result<Option<Credential>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM credentials WHERE id = $1 AND deleted_at IS NULL");
    let row = session.row(AssertSqlSafe(sql), &values![credential_id]).await?;
    row.as_ref().map(Credential::from_row).transpose()
}

/// Gives a credential another status.
pub(super) async fn set_status(
    session: &mut Session,
    credential: &mut Credential,
    status: CredentialStatus,
) -> Result<(), StoreError> {
    credential.touch();
    let row = values![&credential.id, status.as_word(), credential.updated_at];
    session
        .execute(
            "UPDATE credentials SET status = $2, updated_at = $3 WHERE id = $1",
            &row,
        )
        .await?;
    Ok(())
}

pub(super) async fn load(
    session: &mut Session,
    organization_id: &str,
    credential_id: &str,
    lock: &'static str,
) -> Result<Credential, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM credentials WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL{lock}"
    );
    let row = session
        .row(AssertSqlSafe(sql), &values![organization_id, credential_id])
        .await?;
    Credential::from_row(&row.ok_or(StoreError::NotFound("credential"))?)
}

async fn load_linked(
    session: &mut Session,
    token_hash: &[u8],
    lock: &'static str,
) -> Result<Option<Credential>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM credentials WHERE link_hash = $1 AND deleted_at IS NULL{lock}");
    let row = session.row(AssertSqlSafe(sql), &values![token_hash]).await?;
    row.as_ref().map(Credential::from_row).transpose()
}

async fn record_credential(
    session: &mut Session,
    actor: &Actor,
    credential: &Credential,
    action: &'static str,
    fields: &[&str],
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id: &credential.organization_id,
        action,
        label: &credential.name,
        target_id: &credential.id,
        fields,
    };
    record(session, actor, entry).await
}
