//! Fields: what each takes, and which values it accepts.

use contract::json::Words as _;
use contract::v1::StructureFieldType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::structure::misfit;
use crate::table::{ColumnType, accept};

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its key in answers.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// An answer must have it.
    pub required: bool,
    /// What people read beside it.
    pub label: String,
}

/// What a field takes: the types of a structure's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A whole number of 64 bits.
    Integer,
    /// True or false.
    Boolean,
    /// A day: `2026-01-31`.
    Date,
    /// An instant, kept as UTC: `2026-01-31T09:00:00Z`.
    Datetime,
    /// Any JSON value but null.
    Json,
    /// An email address.
    Email,
    /// A URL with a host.
    Url,
    /// A JSON array.
    Array,
    /// A JSON object.
    Object,
    /// Anything, null too.
    Any,
}

impl FieldType {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Text,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Date,
        Self::Datetime,
        Self::Json,
        Self::Email,
        Self::Url,
        Self::Array,
        Self::Object,
        Self::Any,
    ];

    /// The word of the contract.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Json => "json",
            Self::Email => "email",
            Self::Url => "url",
            Self::Array => "array",
            Self::Object => "object",
            Self::Any => "any",
        }
    }

    /// The type that a word of the contract names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|field_type| field_type.as_word() == word)
    }

    /// The value in the one form that answers keep it in: what structures accept, as columns of tables keep it.
    ///
    /// # Errors
    /// What the value must be.
    pub fn accept(self, value: &Value) -> Result<Value, &'static str> {
        match self.column() {
            Some(column) => accept(column, value),
            None => misfit(self.of_contract(), value).map_or_else(|| Ok(value.clone()), Err),
        }
    }

    fn of_contract(self) -> StructureFieldType {
        let number = StructureFieldType::from_word(self.as_word()).unwrap_or_default();
        StructureFieldType::try_from(number).unwrap_or_default()
    }

    /// The column that takes the same.
    fn column(self) -> Option<ColumnType> {
        match self {
            Self::Text => Some(ColumnType::Text),
            Self::Number => Some(ColumnType::Number),
            Self::Integer => Some(ColumnType::Integer),
            Self::Boolean => Some(ColumnType::Boolean),
            Self::Date => Some(ColumnType::Date),
            Self::Datetime => Some(ColumnType::Datetime),
            Self::Json => Some(ColumnType::Json),
            Self::Email | Self::Url | Self::Array | Self::Object | Self::Any => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_types_are_those_of_structures() {
        let words: Vec<_> = FieldType::ALL.iter().map(|one| one.as_word()).collect();
        let structures: Vec<_> = StructureFieldType::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, structures);
        for field_type in FieldType::ALL {
            assert_eq!(FieldType::from_word(field_type.as_word()), Some(field_type));
            assert_ne!(field_type.of_contract(), StructureFieldType::Unspecified);
            assert_eq!(json!(field_type), field_type.as_word());
        }
        assert_eq!(FieldType::from_word("colour"), None);
    }

    #[test]
    fn each_type_accepts_its_own() {
        use FieldType as Type;
        for (field_type, value) in [
            (Type::Email, json!("ada.o'neil+x@mail.example.com")),
            (Type::Email, json!("a@localhost")),
            (Type::Url, json!("https://example.com:8443/a?b=c")),
            (Type::Url, json!("http://[::1]/")),
            (Type::Array, json!([1])),
            (Type::Object, json!({})),
            (Type::Any, Value::Null),
            (Type::Text, json!("")),
        ] {
            assert_eq!(field_type.accept(&value), Ok(value.clone()), "{field_type:?}");
        }
        for (field_type, value) in [
            (Type::Email, json!("a@")),
            (Type::Email, json!("a b@c.d")),
            (Type::Url, json!("example.com")),
            (Type::Url, json!("/path")),
            (Type::Url, json!("javascript:alert(1)")),
            (Type::Url, json!("https://exa mple.com")),
            (Type::Array, json!({})),
            (Type::Object, json!([])),
            (Type::Json, Value::Null),
        ] {
            assert!(field_type.accept(&value).is_err(), "{field_type:?} {value}");
        }
    }
}
