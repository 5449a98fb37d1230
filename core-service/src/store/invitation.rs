//! Invitations: who may join an organization, once, by a link. The link's token is found by its hash; the token itself
//! is sealed by whoever calls.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::{Session, Transaction};
use super::member::{Seats, insert_member};
use super::team::require_team;
use super::value::{Row, Value, values, words};
use super::{Role, Store, StoreError};
use crate::clock;

words! {
    /// What became of an invitation.
    InvitationStatus {
        /// Nothing yet.
        Pending = "pending",
        /// The person joined.
        Accepted = "accepted",
        /// It was taken back.
        Cancelled = "cancelled",
        /// Nothing in time.
        Expired = "expired",
    }
}

/// An invitation.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// `inv_`
    pub id: String,
    /// Its organization.
    pub organization_id: String,
    /// Who is invited.
    pub email: String,
    /// What the invitee will be.
    pub role: Role,
    /// The team the invitee joins, if any.
    pub team_id: Option<String>,
    /// The user who invites.
    pub inviter_id: String,
    /// What became of it.
    pub status: InvitationStatus,
    /// The link's token, sealed.
    pub token: Vec<u8>,
    /// Epoch milliseconds.
    pub created_at: i64,
    /// Epoch milliseconds.
    pub expires_at: i64,
}

/// An invitation to be made.
#[derive(Clone, Copy)]
pub struct NewInvitation<'a> {
    /// `inv_`, chosen by the caller, who seals the token for it.
    pub id: &'a str,
    /// Who is invited.
    pub email: &'a str,
    /// What the invitee will be.
    pub role: Role,
    /// The team the invitee joins, if any.
    pub team_id: Option<&'a str>,
    /// The user who invites.
    pub inviter_id: &'a str,
    /// What the token is found by.
    pub token_hash: &'a [u8],
    /// The token, sealed.
    pub token: &'a [u8],
    /// Epoch milliseconds.
    pub expires_at: i64,
}

/// What came of inviting.
pub enum Invite {
    /// The invitation.
    Invited(Invitation),
    /// One is pending for this email.
    Pending,
    /// The email is a member's.
    Member,
}

/// What came of accepting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accept {
    /// The new member's user id.
    Joined(String),
    /// The email is a member's already.
    Member,
    /// It is not pending, or there is no such invitation.
    NotPending,
}

const COLUMNS: &str =
    "id, organization_id, email, role, team_id, inviter_id, status, token, created_at, expires_at";

impl Invitation {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let expires_at: i64 = row.get("expires_at")?;
        let status = match row.word("status")? {
            InvitationStatus::Pending if expires_at <= clock::now_ms() => InvitationStatus::Expired,
            status => status,
        };
        Ok(Self {
            id: row.get("id")?,
            organization_id: row.get("organization_id")?,
            email: row.get("email")?,
            role: row.word("role")?,
            team_id: row.get("team_id")?,
            inviter_id: row.get("inviter_id")?,
            status,
            token: row.get("token")?,
            created_at: row.get("created_at")?,
            expires_at,
        })
    }
}

impl Store {
    /// Invites a person, who takes a seat from then on.
    ///
    /// # Errors
    /// [`StoreError::NoSeat`]; [`StoreError::NotFound`] of the organization or the team; when the database fails.
    pub async fn create_invitation(
        &self,
        actor: &Actor,
        organization_id: &str,
        new: &NewInvitation<'_>,
    ) -> Result<Invite, StoreError> {
        let mut transaction = self.database.write().await?;
        // One at a time within an organization, so that what is checked here stays true.
        let seats = Seats::lock(&mut transaction, organization_id).await?;
        require_team(&mut transaction, organization_id, new.team_id).await?;
        if is_member(&mut transaction, organization_id, new.email).await? {
            transaction.rollback().await?;
            return Ok(Invite::Member);
        }
        let now = clock::now_ms();
        expire(&mut transaction, organization_id, now).await?;
        let Some(row) = insert(&mut transaction, organization_id, new, now).await? else {
            transaction.rollback().await?;
            return Ok(Invite::Pending);
        };
        seats.take(&mut transaction).await?;
        let invitation = Invitation::from_row(&row)?;
        record_invitation(&mut transaction, actor, &invitation, "invitation.created").await?;
        transaction.commit().await?;
        Ok(Invite::Invited(invitation))
    }

    /// An organization's invitations, newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_invitations(
        &self,
        organization_id: &str,
        status: Option<InvitationStatus>,
        limit: i64,
    ) -> Result<Vec<Invitation>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM invitations WHERE organization_id = $1
                 AND ($2 IS NULL
                      OR $2 = CASE WHEN status = 'pending' AND expires_at <= $3 THEN 'expired' ELSE status END)
             ORDER BY id DESC LIMIT $4"
        );
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                AssertSqlSafe(sql),
                &values![
                    organization_id,
                    status.map(InvitationStatus::as_word),
                    clock::now_ms(),
                    limit
                ],
            )
            .await?;
        rows.iter().map(Invitation::from_row).collect()
    }

    /// The invitation that a link leads to.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find_invitation(&self, token_hash: &[u8]) -> Result<Option<Invitation>, StoreError> {
        let mut session = self.database.read().await?;
        load(&mut session, "token_hash = $1", &values![token_hash], "").await
    }

    /// Takes a pending invitation back; `false` when it is not pending.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn cancel_invitation(
        &self,
        actor: &Actor,
        organization_id: &str,
        invitation_id: &str,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let of = values![organization_id, invitation_id];
        let found = load(&mut transaction, "organization_id = $1 AND id = $2", &of, lock).await?;
        let invitation = found.ok_or(StoreError::NotFound("invitation"))?;
        if invitation.status != InvitationStatus::Pending {
            transaction.rollback().await?;
            return Ok(false);
        }
        set_status(&mut transaction, &invitation.id, InvitationStatus::Cancelled).await?;
        record_invitation(&mut transaction, actor, &invitation, "invitation.cancelled").await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Lets the invitee join, once. The new member is who does it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn accept_invitation(
        &self,
        actor: &Actor,
        token_hash: &[u8],
        name: Option<&str>,
    ) -> Result<Accept, StoreError> {
        let mut transaction = self.database.write().await?;
        let lock = transaction.dialect().for_update();
        let found = load(&mut transaction, "token_hash = $1", &values![token_hash], lock).await?;
        let invitation = match found {
            Some(invitation) if invitation.status == InvitationStatus::Pending => invitation,
            _ => {
                transaction.rollback().await?;
                return Ok(Accept::NotPending);
            }
        };
        if is_member(&mut transaction, &invitation.organization_id, &invitation.email).await? {
            transaction.rollback().await?;
            return Ok(Accept::Member);
        }
        let user_id = join(&mut transaction, &invitation, name).await?;
        set_status(&mut transaction, &invitation.id, InvitationStatus::Accepted).await?;
        let actor = Actor {
            user_id: Some(user_id.clone()),
            ..actor.clone()
        };
        record_invitation(&mut transaction, &actor, &invitation, "invitation.accepted").await?;
        let entry = Entry {
            organization_id: &invitation.organization_id,
            action: "member.created",
            label: &invitation.email,
            target_id: &user_id,
            fields: &[],
        };
        record(&mut transaction, &actor, entry).await?;
        transaction.commit().await?;
        Ok(Accept::Joined(user_id))
    }
}

async fn join(
    transaction: &mut Transaction,
    invitation: &Invitation,
    name: Option<&str>,
) -> Result<String, StoreError> {
    let (organization_id, email) = (&invitation.organization_id, &invitation.email);
    let user_id = insert_member(transaction, organization_id, email, name, invitation.role).await?;
    if let Some(team_id) = &invitation.team_id {
        transaction
            .execute(
                "INSERT INTO team_members (team_id, user_id) VALUES ($1, $2)",
                &values![team_id, &user_id],
            )
            .await?;
    }
    Ok(user_id)
}

async fn is_member(session: &mut Session, organization_id: &str, email: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM users WHERE organization_id = $1 AND email_key = $2";
    let member = session
        .row(sql, &values![organization_id, &email.to_lowercase()])
        .await?;
    Ok(member.is_some())
}

/// Calls by their name those that were not answered in time, so that the email is free.
async fn expire(session: &mut Session, organization_id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE invitations SET status = 'expired'
               WHERE organization_id = $1 AND status = 'pending' AND expires_at <= $2";
    session
        .execute(sql, &values![organization_id, now])
        .await
        .map(drop)
}

async fn insert(
    session: &mut Session,
    organization_id: &str,
    new: &NewInvitation<'_>,
    now: i64,
) -> Result<Option<Row>, StoreError> {
    let sql = format!(
        "INSERT INTO invitations (id, organization_id, email, email_key, role, team_id, inviter_id, status, token_hash,
             token, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $9, $10, $11)
         ON CONFLICT (organization_id, email_key) WHERE status = 'pending' DO NOTHING RETURNING {COLUMNS}"
    );
    let email_key = new.email.to_lowercase();
    let parameters = values![
        new.id,
        organization_id,
        new.email,
        &email_key,
        new.role.as_word(),
        new.team_id,
        new.inviter_id,
        new.token_hash,
        new.token,
        now,
        new.expires_at,
    ];
    session.row(AssertSqlSafe(sql), &parameters).await
}

async fn load(
    session: &mut Session,
    which: &'static str,
    parameters: &[Value<'_>],
    lock: &'static str,
) -> Result<Option<Invitation>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM invitations WHERE {which}{lock}");
    let row = session.row(AssertSqlSafe(sql), parameters).await?;
    row.as_ref().map(Invitation::from_row).transpose()
}

async fn set_status(
    session: &mut Session,
    invitation_id: &str,
    status: InvitationStatus,
) -> Result<(), StoreError> {
    let sql = "UPDATE invitations SET status = $2 WHERE id = $1";
    session
        .execute(sql, &values![invitation_id, status.as_word()])
        .await
        .map(drop)
}

async fn record_invitation(
    session: &mut Session,
    actor: &Actor,
    invitation: &Invitation,
    action: &'static str,
) -> Result<(), StoreError> {
    let entry = Entry {
        organization_id: &invitation.organization_id,
        action,
        label: &invitation.email,
        target_id: &invitation.id,
        fields: &[],
    };
    record(session, actor, entry).await
}
