//! What a listener's protocol says of requests.

use http::Response;
use http::request::Parts;

/// What kind of request it is, as far as limits are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks whether the process is well: never refused for want of room.
    Probe,
    /// Has a body that is whole soon, and an answer that may last.
    Call,
    /// Has a body that may last as long as the answer.
    Conversation,
}

/// What a listener's protocol says of requests, and how it refuses them.
pub trait Protocol<B>: Send + Sync + 'static {
    /// What kind of request this is.
    fn kind(&self, request: &Parts) -> Kind;

    /// The answer to a request for which there is no room now.
    fn no_room(&self, request: &Parts) -> Response<B>;
}
