//! The parts of REST v1's JSON that serde's derives do not have: enum words, free-form values, unions, and a parser
//! that says where a body is wrong.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

/// The deepest nesting of arrays and objects that is accepted.
pub const MAX_DEPTH: usize = 64;

/// The words of an enum over REST.
pub trait Words {
    /// Word and number of each value but the unspecified one.
    const WORDS: &'static [(&'static str, i32)];

    /// The number of a word.
    fn from_word(word: &str) -> Option<i32> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, number)| *number)
    }

    /// The word of a number.
    fn to_word(number: i32) -> Option<&'static str> {
        Self::WORDS
            .iter()
            .find(|(_, known)| *known == number)
            .map(|(word, _)| *word)
    }

    /// The words, for people.
    fn choices() -> String {
        let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| *word).collect();
        words.join(", ")
    }
}

pub(crate) fn is_unspecified(number: &i32) -> bool {
    *number == 0
}

/// Adapter of an enum field.
pub(crate) struct Word<T>(PhantomData<T>);

impl<T: Words> Word<T> {
    pub(crate) fn serialize<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(T::to_word(*number).unwrap_or("unspecified"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        T::from_word(&word).ok_or_else(|| D::Error::custom(format!("must be one of {}", T::choices())))
    }
}

/// Adapter of an optional enum field.
pub(crate) struct OptionalWord<T>(PhantomData<T>);

impl<T: Words> OptionalWord<T> {
    pub(crate) fn serialize<S: Serializer>(number: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => Word::<T>::serialize(number, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
        Word::<T>::deserialize(deserializer).map(Some)
    }
}

/// Reads a field that may be absent but not null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A message that is an object and nothing else: serde's derives would take an array of its fields, too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Object<T>, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(entries)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// Reads a message that may be absent but not null.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|object| Some(object.0))
}

/// Reads a message that may be null.
pub(crate) fn nullable_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::<Object<T>>::deserialize(deserializer).map(|object| object.map(|object| object.0))
}

/// Reads a list of messages.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

/// The keys of a JSON object, in order; none when the text is not an object.
pub fn keys(text: &[u8]) -> Vec<String> {
    let members: Result<RawMembers, _> = serde_json::from_slice(text);
    let members = members.map(|members| members.0).unwrap_or_default();
    members.into_iter().map(|(key, _)| key).collect()
}

/// Where and why a JSON text is not what was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Path of the value, such as `ops[2].nodeId`; empty for the text as a whole.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => formatter.write_str(&self.message),
            path => write!(formatter, "{path}: {}", self.message),
        }
    }
}

impl std::error::Error for JsonError {}

/// Reads a message from JSON: nothing unknown, nothing twice, nothing deeper than [`MAX_DEPTH`], nothing behind it.
///
/// # Errors
/// The first thing that is wrong, with its path.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    check(text)?;
    if let Ok(Object(value)) = serde_json::from_slice(text) {
        return Ok(value);
    }
    // Read it again for the path: only requests that are refused pay for it.
    let deserializer = &mut serde_json::Deserializer::from_slice(text);
    locate(serde_path_to_error::deserialize(deserializer)).map(|Object(value)| value)
}

/// Checks that a text is JSON, without duplicate keys and not deeper than [`MAX_DEPTH`].
///
/// # Errors
/// The first thing that is wrong, with its path.
pub fn check(text: &[u8]) -> Result<(), JsonError> {
    let depth_first = |text| {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        Strict { depth: 0 }.deserialize(&mut deserializer)?;
        deserializer.end()
    };
    let Err(error) = depth_first(text) else {
        return Ok(());
    };
    if error.is_syntax() || error.is_eof() {
        return Err(JsonError {
            path: String::new(),
            message: format!("is not JSON: {error}"),
        });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let result = Strict { depth: 0 }.deserialize(tracked);
    let path = track.path().to_string();
    let message = plain_message(&result.err().unwrap_or(error).to_string());
    Err(JsonError {
        path: if path == "." { String::new() } else { path },
        message,
    })
}

/// Separates the path inside a tagged value from the message; see [`locate`].
const MARK: char = '\u{1f}';

/// Turns an error with its path into ours, joining the path that an inner parser has put into its message.
fn locate<T>(result: Result<T, serde_path_to_error::Error<serde_json::Error>>) -> Result<T, JsonError> {
    result.map_err(|error| {
        let mut path = error.path().to_string();
        if path == "." {
            path.clear();
        }
        let text = error.inner().to_string();
        let mut parts = text.split(MARK);
        let (first, inner, message) = (parts.next(), parts.next(), parts.next());
        let message = message.or(first).unwrap_or_default();
        if let Some(inner) = inner.filter(|inner| !inner.is_empty()) {
            if !path.is_empty() && !inner.starts_with('[') {
                path.push('.');
            }
            path.push_str(inner);
        }
        JsonError {
            path,
            message: plain_message(message),
        }
    })
}

/// serde_json's message as a sentence about the place: without the position, which the path says better.
fn plain_message(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let wrong = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|rest| rest.split_once(", expected ")) {
        return format!("must be {expected}, not {found}");
    }
    match message
        .strip_prefix("unknown field ")
        .map(|rest| rest.split_once(", expected "))
    {
        Some(Some((_, known))) => format!("is not a field here; known are {}", known.replace("one of ", "")),
        Some(None) => "is not a field here; there are none".to_owned(),
        None => message.to_owned(),
    }
}

/// Walks a JSON text and refuses duplicate keys and deep nesting.
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        match self.depth < MAX_DEPTH {
            true => Ok(Self {
                depth: self.depth + 1,
            }),
            false => Err(E::custom(format!("is nested deeper than {MAX_DEPTH} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.deeper()?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<std::borrow::Cow<'de, str>>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("has the key {key:?} twice")));
            }
            keys.insert(key);
            entries.next_value_seed(self.deeper()?)?;
        }
        Ok(())
    }
}

/// A failure inside a tagged value, with its path packed into the message for [`locate`].
pub(crate) fn packed<E: serde::de::Error>(error: JsonError) -> E {
    E::custom(format!("{MARK}{}{MARK}{}", error.path, error.message))
}

/// A key and its value, unparsed.
type RawMember = (String, Box<serde_json::value::RawValue>);

/// Takes the tag out of a tagged object; one that is not text is no tag that there is.
pub(crate) fn take_tag(members: &mut Vec<RawMember>, tag: &str) -> Result<String, JsonError> {
    let position = members.iter().position(|(key, _)| key == tag);
    let position = position.ok_or_else(|| missing(tag))?;
    let (_, value) = members.remove(position);
    Ok(serde_json::from_str(value.get()).unwrap_or_default())
}

fn missing(key: &str) -> JsonError {
    JsonError {
        path: key.to_owned(),
        message: "is required".to_owned(),
    }
}

/// Reads the members of a tagged object but its tag; these keys must be there, if only with null.
pub(crate) fn members<T: DeserializeOwned>(members: &[RawMember], required: &[&str]) -> Result<T, JsonError> {
    let is_there = |wanted: &str| members.iter().any(|(key, _)| key == wanted);
    if let Some(key) = required.iter().find(|key| !is_there(key)) {
        return Err(missing(key));
    }
    let entries = members.iter().map(|(key, value)| (key.as_str(), &**value));
    locate(serde_path_to_error::deserialize(
        serde::de::value::MapDeserializer::<_, serde_json::Error>::new(entries),
    ))
}

/// An object's keys and values in order, values unparsed.
pub(crate) struct RawMembers(pub(crate) Vec<RawMember>);

impl<'de> Deserialize<'de> for RawMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawMembers;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawMembers, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = entries.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// serde for a message that is its `json` text.
macro_rules! free_form {
    ($message:ty, $kind:ident) => {
        impl ::serde::Serialize for $message {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = if self.json.is_empty() { $crate::json::free_form!(@empty $kind) } else { &self.json };
                let raw: &::serde_json::value::RawValue =
                    ::serde_json::from_str(text).map_err(::serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $message {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Box::<::serde_json::value::RawValue>::deserialize(deserializer)?;
                $crate::json::free_form!(@check $kind, raw, D);
                Ok(Self { json: String::from(Box::<str>::from(raw)) })
            }
        }
    };
    (@empty value) => { "null" };
    (@empty object) => { "{}" };
    (@check value, $raw:ident, $deserializer:ident) => {};
    (@check object, $raw:ident, $deserializer:ident) => {
        if !$raw.get().starts_with('{') {
            return Err(::serde::de::Error::custom("must be an object"));
        }
    };
}
pub(crate) use free_form;

/// serde for a message whose one oneof is told by a tag beside the member's fields.
macro_rules! tagged {
    ($message:ty, $field:ident, $union:path, $tag:literal, {
        $($word:literal => $variant:ident [$($required:literal),*]),*
    }) => {
        impl ::serde::Serialize for $message {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(::serde::Serialize)]
                struct Tagged<'a, T> {
                    #[serde(rename = $tag)]
                    tag: &'static str,
                    #[serde(flatten)]
                    member: &'a T,
                }
                use $union as Union;
                match &self.$field {
                    $(Some(Union::$variant(member)) => Tagged { tag: $word, member }.serialize(serializer),)*
                    None => serializer.serialize_none(),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $message {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $union as Union;
                let mut members = $crate::json::RawMembers::deserialize(deserializer)?.0;
                let word = $crate::json::take_tag(&mut members, $tag).map_err($crate::json::packed)?;
                let member = match word.as_str() {
                    $($word => $crate::json::members(&members, &[$($required),*]).map(Union::$variant),)*
                    _ => Err($crate::json::JsonError {
                        path: $tag.to_owned(),
                        message: format!("must be one of {}", [$($word),*].join(", ")),
                    }),
                };
                member.map(|member| Self { $field: Some(member) }).map_err($crate::json::packed)
            }
        }
    };
}
pub(crate) use tagged;

/// serde for a message whose one oneof is an integer or a string.
macro_rules! untagged {
    ($message:ty, $field:ident, $union:path, $integer:ident, $string:ident) => {
        impl ::serde::Serialize for $message {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use $union as Union;
                match &self.$field {
                    Some(Union::$integer(integer)) => serializer.serialize_i64(*integer),
                    Some(Union::$string(string)) => serializer.serialize_str(string),
                    None => serializer.serialize_none(),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $message {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $union as Union;
                let member = match $crate::json::IntegerOrString::deserialize(deserializer)? {
                    $crate::json::IntegerOrString::Integer(integer) => Union::$integer(integer),
                    $crate::json::IntegerOrString::String(string) => Union::$string(string),
                };
                Ok(Self {
                    $field: Some(member),
                })
            }
        }
    };
}
pub(crate) use untagged;

/// An integer or a string.
pub(crate) enum IntegerOrString {
    Integer(i64),
    String(String),
}

impl<'de> Deserialize<'de> for IntegerOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = IntegerOrString;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an integer or a string")
            }
            fn visit_i64<E>(self, value: i64) -> Result<IntegerOrString, E> {
                Ok(IntegerOrString::Integer(value))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<IntegerOrString, E> {
                let small = i64::try_from(value).map_err(|_| E::custom("is too large for an id"))?;
                Ok(IntegerOrString::Integer(small))
            }
            fn visit_str<E>(self, value: &str) -> Result<IntegerOrString, E> {
                Ok(IntegerOrString::String(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
