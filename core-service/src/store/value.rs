//! What goes into a statement and what comes out of a row, the same for both databases.

use std::fmt;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};

use super::StoreError;

/// A parameter of a statement. The kind is known even when there is no value, because PostgreSQL wants it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Text(Option<&'a str>),
    Integer(Option<i64>),
    Bytes(Option<&'a [u8]>),
    Boolean(Option<bool>),
    /// A list for [`Dialect::one_of`].
    Texts(&'a [&'a str]),
}

impl<'a> Value<'a> {
    pub(super) fn text(&self) -> Option<&'a str> {
        if let Self::Text(text) = self { *text } else { None }
    }

    pub(super) fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            *number
        } else {
            None
        }
    }

    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self {
            *bytes
        } else {
            None
        }
    }

    /// About how many bytes it takes on the wire.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) => 4 + text.map_or(0, str::len),
            Self::Bytes(bytes) => 4 + bytes.map_or(0, <[u8]>::len),
            Self::Integer(_) => 12,
            Self::Boolean(_) => 5,
            Self::Texts(texts) => texts.iter().map(|text| 4 + text.len()).sum(),
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        if let Self::Boolean(truth) = self {
            *truth
        } else {
            None
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self::Text(text.as_deref())
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Boolean(Some(truth))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<&'a Option<Vec<u8>>> for Value<'a> {
    fn from(bytes: &'a Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes.as_deref())
    }
}

/// The parameters of a statement, each converted to a [`Value`].
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::store::value::Value::from($value)),*] };
}
pub(super) use values;

/// A row of either database.
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// What a column can be read as.
pub(super) trait Column:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl<T> Column for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl Row {
    /// The value of a column.
    pub(super) fn get<T: Column>(&self, column: &str) -> Result<T, StoreError> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column)?,
            Self::Postgres(row) => row.try_get(column)?,
        })
    }

    /// The value of a column that holds one word of an enum.
    pub(super) fn word<T: Word>(&self, column: &str) -> Result<T, StoreError> {
        let word: String = self.get(column)?;
        T::from_word(&word).ok_or_else(|| StoreError::Corrupt(format!("column {column} holds {word:?}")))
    }
}

/// An enum that is stored as a word.
pub(super) trait Word: Sized + fmt::Debug {
    fn from_word(word: &str) -> Option<Self>;
}

/// Declares an enum together with the words it is stored as.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// The word that stands for it in the database and in the API.
            #[must_use]
            pub const fn as_word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value a word stands for.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl $crate::store::value::Word for $name {
            fn from_word(word: &str) -> Option<Self> { Self::from_word(word) }
        }
    };
}
pub(super) use words;
