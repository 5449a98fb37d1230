//! Fields: what each takes, and which values it accepts.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// An `http` or `https` URL.
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
        Self::ALL.into_iter().find(|field_type| field_type.as_word() == word)
    }

    /// The value in the one form that answers keep it in.
    ///
    /// # Errors
    /// What the value must be.
    pub fn accept(self, value: &Value) -> Result<Value, &'static str> {
        let kept = |accepted: bool, expectation| accepted.then(|| value.clone()).ok_or(expectation);
        match self {
            Self::Text => accept(ColumnType::Text, value),
            Self::Number => accept(ColumnType::Number, value),
            Self::Integer => accept(ColumnType::Integer, value),
            Self::Boolean => accept(ColumnType::Boolean, value),
            Self::Date => accept(ColumnType::Date, value),
            Self::Datetime => accept(ColumnType::Datetime, value),
            Self::Json => accept(ColumnType::Json, value),
            Self::Email => kept(
                value.as_str().is_some_and(is_email),
                "must be an email address such as ada@example.com",
            ),
            Self::Url => kept(
                value.as_str().is_some_and(is_url),
                "must be a URL such as https://example.com/page",
            ),
            Self::Array => kept(value.is_array(), "must be a JSON array"),
            Self::Object => kept(value.is_object(), "must be a JSON object"),
            Self::Any => Ok(value.clone()),
        }
    }
}

/// As browsers check `<input type="email">`, and no longer than mail can carry.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let local_character =
        |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    !local.is_empty() && text.len() <= 254 && local.bytes().all(local_character) && is_host_name(domain)
}

fn is_url(text: &str) -> bool {
    let Ok(url) = text.parse::<http::Uri>() else {
        return false;
    };
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let is_host = |host: &str| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        address.map_or_else(|| is_host_name(host), |host| host.parse::<Ipv6Addr>().is_ok())
    };
    is_web && url.host().is_some_and(is_host)
}

fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let edges_fit = !label.starts_with('-') && !label.ends_with('-');
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len()) && edges_fit && label.bytes().all(fits)
    };
    text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use contract::json::Words as _;
    use contract::v1::StructureFieldType;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_types_are_those_of_structures() {
        let words: Vec<_> = FieldType::ALL.iter().map(|one| one.as_word()).collect();
        let structures: Vec<_> = StructureFieldType::WORDS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, structures);
        for field_type in FieldType::ALL {
            assert_eq!(FieldType::from_word(field_type.as_word()), Some(field_type));
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
            (Type::Email, json!("a@-c.d")),
            (Type::Email, json!("a@b\n.c")),
            (Type::Url, json!("example.com")),
            (Type::Url, json!("/path")),
            (Type::Url, json!("javascript:alert(1)")),
            (Type::Url, json!("ftp://example.com")),
            (Type::Url, json!("https://exa mple.com")),
            (Type::Array, json!({})),
            (Type::Object, json!([])),
            (Type::Json, Value::Null),
        ] {
            assert!(field_type.accept(&value).is_err(), "{field_type:?} {value}");
        }
    }
}
