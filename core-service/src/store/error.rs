//! What can go wrong when talking to the database, told by what the caller can do about it.

/// A failed store operation. Outcomes a caller is expected to branch on are not errors: they are enums of the operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The row does not exist, or belongs to another organization; the two are indistinguishable.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// A row with the same unique value is already there.
    #[error("a row with this value already exists")]
    Duplicate(#[source] sqlx::Error),
    /// The row names another row that does not exist, or is itself still named by one.
    #[error("the row refers to something that does not exist")]
    BrokenReference(#[source] sqlx::Error),
    /// Members and pending invitations take all the seats of the plan.
    #[error("all seats of the plan are taken")]
    NoSeat,
    /// A text holds a NUL character, which no database column of ours takes.
    #[error("text must not contain the NUL character")]
    NulInText,
    /// The database cannot be reached, is busy, or its disk is full. Trying again later may help.
    #[error("the database is unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// The database holds something that this version cannot read.
    #[error("the database holds unreadable data: {0}")]
    Corrupt(String),
    /// The database's address or settings cannot work; the text says why.
    #[error("{0}")]
    Setup(String),
    /// A defect: the statement and the schema disagree.
    #[error("the database refused a statement")]
    Internal(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as Cause;
        use sqlx::error::ErrorKind;
        use sqlx::postgres::PgDatabaseError;

        match &error {
            Cause::Database(database) => match database.kind() {
                ErrorKind::UniqueViolation => Self::Duplicate(error),
                ErrorKind::ForeignKeyViolation => Self::BrokenReference(error),
                _ => match database
                    .try_downcast_ref::<PgDatabaseError>()
                    .map(|refused| refused.code().to_owned())
                {
                    Some(state) => from_sqlstate(&state, error),
                    None => {
                        let code = database.code().and_then(|code| code.parse().ok());
                        from_sqlite_code(code.unwrap_or_default(), error)
                    }
                },
            },
            Cause::Io(_) | Cause::Tls(_) | Cause::PoolTimedOut | Cause::PoolClosed | Cause::WorkerCrashed => {
                Self::Unavailable(error)
            }
            Cause::ColumnDecode { .. } | Cause::Decode(_) => Self::Corrupt(error.to_string()),
            Cause::Configuration(_) => Self::Setup(error.to_string()),
            _ => Self::Internal(error),
        }
    }
}

fn from_sqlite_code(code: u32, error: sqlx::Error) -> StoreError {
    // The low byte of an extended result code is the primary one.
    match code & 0xff {
        // BUSY, LOCKED, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN
        5 | 6 | 8 | 9 | 10 | 13 | 14 => StoreError::Unavailable(error),
        // CORRUPT, NOTADB
        11 | 26 => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Internal(error),
    }
}

fn from_sqlstate(code: &str, error: sqlx::Error) -> StoreError {
    match code.get(..2).unwrap_or_default() {
        // Connection, insufficient resources, operator intervention, deadlock or serialization, read-only replica.
        "08" | "53" | "57" | "58" | "40" | "25" => StoreError::Unavailable(error),
        "28" | "3D" => StoreError::Setup(error.to_string()),
        "XX" => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Internal(error),
    }
}
