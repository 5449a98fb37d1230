//! What differs between the two databases, and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// Which database a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The database's own clock, in milliseconds since the epoch. It moves on within a transaction.
    pub(super) const fn clock_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// Keeps others from changing the rows read until the transaction ends. SQLite's writer is alone anyway.
    pub(super) const fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR SHARE",
        }
    }

    /// Keeps others from changing or locking the rows read until the transaction ends.
    pub(super) const fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE",
        }
    }

    /// As `for_update` for the row of table `o`, an organization.
    pub(super) const fn for_update_of_organization(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE OF o",
        }
    }

    /// As `for_update` for the rows of table `r`, passing over those that another transaction has locked.
    pub(super) const fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE OF r SKIP LOCKED",
        }
    }

    /// A run's id, compared and sorted as the indexes of a workflow's runs sort it.
    pub(super) const fn run_id_in_lists(self) -> &'static str {
        match self {
            Self::Sqlite => "id",
            // Migration 20 says why.
            Self::Postgres => "id COLLATE \"POSIX\"",
        }
    }

    /// A condition's right side: equal to one of the texts of parameter `$number`.
    pub(super) fn one_of(self, number: usize) -> String {
        match self {
            Self::Sqlite => format!("IN (SELECT value FROM json_each(${number}))"),
            Self::Postgres => format!("= ANY(${number})"),
        }
    }

    /// Whether only one process can use the database, so that any other one registered is a dead one.
    pub(super) const fn is_single_process(self) -> bool {
        matches!(self, Self::Sqlite)
    }
}

/// The kinds of column a batch can have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Integer,
    Bytes,
    Boolean,
}

impl Kind {
    const fn postgres_name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "bigint",
            Self::Bytes => "bytea",
            Self::Boolean => "boolean",
        }
    }
}

/// A statement over many rows at once: its tail reads them from `v`, whose columns are named here.
pub(super) struct BatchStatement {
    pub(super) columns: &'static [(&'static str, Kind)],
    pub(super) tail: &'static str,
}

/// The numbers of rows that SQLite statements are prepared for: few, so that they are found prepared.
pub(super) const CHUNKS: [usize; 5] = [256, 64, 16, 4, 1];

impl BatchStatement {
    /// SQLite's form: a parameter for each value of `rows` rows. The text is made once. Its parameters have no numbers,
    /// because SQLite looks for a numbered one in a list of all, which is slow for thousands.
    pub(super) fn for_sqlite(&self, rows: usize) -> Arc<str> {
        cached(self.tail, rows, || {
            let tuple = format!("({})", vec!["?"; self.columns.len()].join(", "));
            let tuples = vec![tuple; rows].join(", ");
            format!("WITH v({}) AS (VALUES {tuples}) {}", self.names(), self.tail)
        })
    }

    /// PostgreSQL's form: an array for each column, whatever the number of rows.
    pub(super) fn for_postgres(&self) -> Arc<str> {
        cached(self.tail, 0, || {
            let arrays: Vec<String> = (1..)
                .zip(self.columns)
                .map(|(number, (_, kind))| format!("${number}::{}[]", kind.postgres_name()))
                .collect();
            format!(
                "WITH v({}) AS (SELECT * FROM UNNEST({})) {}",
                self.names(),
                arrays.join(", "),
                self.tail
            )
        })
    }

    fn names(&self) -> String {
        self.columns
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

type Texts = HashMap<(&'static str, usize), Arc<str>>;

/// Statement texts by tail and number of rows (0: any number).
static TEXTS: LazyLock<RwLock<Texts>> = LazyLock::new(RwLock::default);

fn cached(tail: &'static str, rows: usize, make: impl FnOnce() -> String) -> Arc<str> {
    let known = TEXTS
        .read()
        .ok()
        .and_then(|texts| texts.get(&(tail, rows)).cloned());
    known.unwrap_or_else(|| {
        let text: Arc<str> = make().into();
        if let Ok(mut texts) = TEXTS.write() {
            texts.insert((tail, rows), Arc::clone(&text));
        }
        text
    })
}
