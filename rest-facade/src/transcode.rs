//! Requests into messages, messages into bodies; what is specific to a type is here, and small.

use bytes::Bytes;
use contract::json::{self, JsonError};
use contract::rest::{RestEvent, RestRequest, RestResponse};
use contract::v1::ErrorDetail;
use http::HeaderMap;
use percent_encoding::percent_decode_str;

/// What an HTTP request brings, seen as the parts of a message.
pub(crate) struct Incoming<'a> {
    /// Path parameters, names as in the route, values decoded.
    pub path: Vec<(&'static str, &'a str)>,
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

/// An answer's body.
pub(crate) struct Outgoing {
    /// Whether the request made something new.
    pub created: bool,
    pub json: Vec<u8>,
}

/// One event of a stream.
pub(crate) struct OutgoingEvent {
    pub id: String,
    pub name: &'static str,
    pub json: String,
}

/// Reads a request as an encoded message, or tells everything that is wrong with it.
pub(crate) fn read<Q: RestRequest>(incoming: &Incoming<'_>) -> Result<Bytes, Vec<ErrorDetail>> {
    let mut wrong = Vec::new();
    let mut message = match Q::HAS_BODY {
        true => body(incoming.body).unwrap_or_else(|error| {
            wrong.push(ErrorDetail {
                path: error.path,
                message: error.message,
            });
            Q::default()
        }),
        false => Q::default(),
    };
    if Q::HAS_MASK {
        let keys = json::keys(incoming.body);
        message.set_update_mask(&mut keys.iter().map(String::as_str));
    }
    query(&mut message, incoming.query, &mut wrong);
    for (name, value) in &incoming.path {
        bind(&mut message, name, name, value, &mut wrong);
    }
    headers(&mut message, incoming.headers, &mut wrong);
    match wrong.is_empty() {
        true => Ok(message.encode_to_vec().into()),
        false => Err(wrong),
    }
}

/// Reads a body; an empty one is `{}`.
fn body<Q: RestRequest>(text: &[u8]) -> Result<Q, JsonError> {
    match text {
        [] => Ok(Q::default()),
        text => json::parse(text),
    }
}

fn query<Q: RestRequest>(message: &mut Q, query: &str, wrong: &mut Vec<ErrorDetail>) {
    let mut seen: Vec<String> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decode(name), decode(value)) else {
            wrong.push(detail(name, "is not percent-encoded UTF-8"));
            continue;
        };
        if !Q::QUERY.contains(&name.as_str()) {
            wrong.push(detail(&name, "is not a parameter of this endpoint"));
        } else if seen.contains(&name) {
            wrong.push(detail(&name, "must not be given twice"));
        } else {
            bind(message, &name, &name, &value, wrong);
            seen.push(name);
        }
    }
}

/// The text of a query's name or value, where `+` is a space.
fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn headers<Q: RestRequest>(message: &mut Q, headers: &HeaderMap, wrong: &mut Vec<ErrorDetail>) {
    for (header, field) in Q::HEADERS {
        let mut values = headers.get_all(*header).iter();
        match (values.next().map(|value| value.to_str()), values.next()) {
            (None, _) => {}
            (Some(Ok(value)), None) => bind(message, header, field, value, wrong),
            (Some(Err(_)), None) => wrong.push(detail(header, "must be visible ASCII characters")),
            (Some(_), Some(_)) => wrong.push(detail(header, "must not be given twice")),
        }
    }
}

fn bind<Q: RestRequest>(message: &mut Q, path: &str, field: &str, value: &str, wrong: &mut Vec<ErrorDetail>) {
    if let Err(error) = message.bind(field, value) {
        wrong.push(detail(path, &error.to_string()));
    }
}

fn detail(path: &str, message: &str) -> ErrorDetail {
    ErrorDetail {
        path: path.to_owned(),
        message: message.to_owned(),
    }
}

/// Why an answer of the core cannot be given on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("the core's answer is not the message that the contract names ({0}); are both of one version?")]
    Protobuf(#[from] prost::DecodeError),
    #[error("the core's answer holds text that is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes an encoded response as a body.
pub(crate) fn write<R: RestResponse>(message: Bytes) -> Result<Outgoing, AnswerError> {
    let response = R::decode(message)?;
    Ok(Outgoing {
        created: response.created(),
        json: serde_json::to_vec(&response)?,
    })
}

/// Writes an encoded message of a stream as an event, if it holds one.
pub(crate) fn write_event<E: RestEvent>(message: Bytes) -> Result<Option<OutgoingEvent>, AnswerError> {
    let message = E::decode(message)?;
    let event = message.event()?;
    Ok(event.map(|(name, json)| OutgoingEvent {
        id: message.id().to_owned(),
        name,
        json,
    }))
}
