//! Members: the users of an organization. Emails are compared regardless of case.

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::value::{Row, values, words};
use super::{Store, StoreError};
use crate::{clock, id};

words! {
    /// What a member may do, least first.
    Role {
        /// Reads.
        Viewer = "viewer",
        /// Reads and writes.
        Member = "member",
        /// Also manages members.
        Admin = "admin",
        /// Also makes owners.
        Owner = "owner",
    }
}

/// A user of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// `user_`
    pub user_id: String,
    /// As it was given.
    pub email: String,
    /// Null when never given.
    pub name: Option<String>,
    /// What the member may do.
    pub role: Role,
    /// Epoch milliseconds.
    pub created_at: i64,
}

impl Member {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            user_id: row.get("id")?,
            email: row.get("email")?,
            name: row.get("name")?,
            role: row.word("role")?,
            created_at: row.get("created_at")?,
        })
    }
}

impl Store {
    /// Adds a user to an organization and gives the user's id.
    ///
    /// # Errors
    /// [`StoreError::Duplicate`] when the email is a member already; [`StoreError::BrokenReference`] when there is no
    /// such organization; when the database fails.
    pub async fn create_member(
        &self,
        actor: &Actor,
        organization_id: &str,
        email: &str,
        name: Option<&str>,
        role: Role,
    ) -> Result<String, StoreError> {
        let mut transaction = self.database.write().await?;
        let user_id = insert_member(&mut transaction, organization_id, email, name, role).await?;
        let entry = Entry {
            organization_id,
            action: "member.created",
            label: email,
            target_id: &user_id,
            fields: &[],
        };
        record(&mut transaction, actor, entry).await?;
        transaction.commit().await?;
        Ok(user_id)
    }

    /// One member.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; when the database fails.
    pub async fn member(&self, organization_id: &str, user_id: &str) -> Result<Member, StoreError> {
        let mut session = self.database.read().await?;
        let row = session
            .row(
                "SELECT id, email, name, role, created_at FROM users WHERE organization_id = $1 AND id = $2",
                &values![organization_id, user_id],
            )
            .await?;
        Member::from_row(&row.ok_or(StoreError::NotFound("member"))?)
    }

    /// An organization's members, newest first, from the one after `after`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_members(
        &self,
        organization_id: &str,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Member>, StoreError> {
        let mut session = self.database.read().await?;
        let rows = session
            .rows(
                "SELECT id, email, name, role, created_at FROM users
                 WHERE organization_id = $1 AND ($2 IS NULL OR id < $2) ORDER BY id DESC LIMIT $3",
                &values![organization_id, after, limit],
            )
            .await?;
        rows.iter().map(Member::from_row).collect()
    }
}

pub(super) async fn insert_member(
    session: &mut Session,
    organization_id: &str,
    email: &str,
    name: Option<&str>,
    role: Role,
) -> Result<String, StoreError> {
    let user_id = id::new(id::Kind::User);
    session
        .execute(
            "INSERT INTO users (id, organization_id, email, email_key, name, role, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &values![
                &user_id,
                organization_id,
                email,
                &email.to_lowercase(),
                name,
                role.as_word(),
                clock::now_ms()
            ],
        )
        .await?;
    Ok(user_id)
}
