//! Members: the users of an organization. Emails are compared regardless of case.

use sqlx::AssertSqlSafe;

use super::activity::{Actor, Entry, record};
use super::database::Session;
use super::value::{Row, Value, values, words};
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
    /// [`StoreError::Duplicate`] when the email is a member already; [`StoreError::NoSeat`];
    /// [`StoreError::NotFound`] of the organization; when the database fails.
    pub async fn create_member(
        &self,
        actor: &Actor,
        organization_id: &str,
        email: &str,
        name: Option<&str>,
        role: Role,
    ) -> Result<String, StoreError> {
        let mut transaction = self.database.write().await?;
        let seats = Seats::lock(&mut transaction, organization_id).await?;
        let user_id = insert_member(&mut transaction, organization_id, email, name, role).await?;
        seats.take(&mut transaction).await?;
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

    /// Those of these users who are the organization's members, in no particular order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn members(&self, organization_id: &str, user_ids: &[&str]) -> Result<Vec<Member>, StoreError> {
        if user_ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.database.read().await?;
        let one_of = session.dialect().one_of(2);
        let sql = format!(
            "SELECT id, email, name, role, created_at FROM users WHERE organization_id = $1 AND id {one_of}"
        );
        let parameters = [Value::from(organization_id), Value::Texts(user_ids)];
        let rows = session.rows(AssertSqlSafe(sql), &parameters).await?;
        rows.iter().map(Member::from_row).collect()
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

/// The seats of an organization, which others cannot take until the transaction ends.
pub(super) struct Seats<'a> {
    organization_id: &'a str,
    most: Option<i64>,
}

impl<'a> Seats<'a> {
    pub(super) async fn lock(session: &mut Session, organization_id: &'a str) -> Result<Self, StoreError> {
        let lock = session.dialect().for_update_of_organization();
        let sql = format!(
            "SELECT p.seats AS seats FROM organizations o JOIN plans p ON p.id = o.plan_id WHERE o.id = $1{lock}"
        );
        let row = session.row(AssertSqlSafe(sql), &values![organization_id]).await?;
        Ok(Self {
            organization_id,
            most: row.ok_or(StoreError::NotFound("organization"))?.get("seats")?,
        })
    }

    /// Checks that the members and pending invitations there are now, the newest included, have a seat each.
    pub(super) async fn take(self, session: &mut Session) -> Result<(), StoreError> {
        let Some(most) = self.most else { return Ok(()) };
        let row = session
            .row(
                "SELECT (SELECT COUNT(*) FROM users WHERE organization_id = $1)
                      + (SELECT COUNT(*) FROM invitations
                         WHERE organization_id = $1 AND status = 'pending' AND expires_at > $2) AS taken",
                &values![self.organization_id, clock::now_ms()],
            )
            .await?;
        let taken: i64 = row.map_or(Ok(0), |row| row.get("taken"))?;
        if taken > most {
            Err(StoreError::NoSeat)
        } else {
            Ok(())
        }
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
