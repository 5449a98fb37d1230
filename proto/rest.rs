//! What the facade needs of a message to take it from, and give it to, an HTTP exchange.

use std::fmt;

use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json::Words;

/// A REST route and the method behind it.
#[derive(Debug)]
pub struct Route {
    /// HTTP method.
    pub verb: &'static str,
    /// Path from the root, parameters as `{name}`.
    pub path: &'static str,
    /// gRPC path of the method.
    pub rpc: &'static str,
    /// HTTP status of a success.
    pub success_status: u16,
}

/// A request that can arrive over REST.
pub trait RestRequest: Message + Default + DeserializeOwned + 'static {
    /// Names of the query parameters.
    const QUERY: &'static [&'static str];
    /// Header (in lower case) and the field it fills.
    const HEADERS: &'static [(&'static str, &'static str)];
    /// Whether a JSON body fills the rest.
    const HAS_BODY: bool;
    /// Whether [`RestRequest::set_update_mask`] wants the body's keys.
    const HAS_MASK: bool = false;

    /// Sets a field from a path segment, query parameter or header.
    ///
    /// # Errors
    /// When there is no such field, or the text is not a value of its type.
    fn bind(&mut self, name: &str, value: &str) -> Result<(), BindError>;

    /// Tells which fields a body named, for requests that tell absent from null.
    fn set_update_mask(&mut self, _keys: &mut dyn Iterator<Item = &str>) {}
}

/// A response that can be given over REST.
pub trait RestResponse: Message + Default + Serialize + 'static {
    /// Whether the request made something new: 201 instead of the route's status.
    fn created(&self) -> bool {
        false
    }
}

/// What a stream gives, one event each.
pub trait RestEvent: Message + Default + 'static {
    /// Id of the event, to continue after it.
    fn id(&self) -> &str;

    /// Kind of the event and its JSON; nothing when the message holds no event that is known here.
    ///
    /// # Errors
    /// When the message holds free-form text that is not JSON.
    fn event(&self) -> Result<Option<(&'static str, String)>, serde_json::Error>;
}

/// White space around marked texts is removed before a request is validated.
pub trait Trim {
    /// Removes it.
    fn trim(&mut self) {}
}

/// Why a path segment, query parameter or header does not fit.
#[derive(Debug)]
pub struct BindError(String);

impl BindError {
    /// There is no parameter of that name.
    pub fn unknown() -> Self {
        Self("is not a parameter of this endpoint".to_owned())
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BindError {}

pub(crate) fn integer<T: std::str::FromStr>(text: &str) -> Result<T, BindError> {
    text.parse()
        .map_err(|_| BindError("must be an integer".to_owned()))
}

pub(crate) fn word<T: Words>(text: &str) -> Result<i32, BindError> {
    T::from_word(text).ok_or_else(|| BindError(format!("must be one of {}", T::choices())))
}

pub(crate) fn trim_text(text: &mut String) {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        *text = trimmed.to_owned();
    }
}
