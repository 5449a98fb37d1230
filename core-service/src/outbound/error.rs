//! What keeps a request from being answered.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use super::dialer::DialError;
use super::{MAX_BODY_BYTES, MAX_REDIRECTS};

/// Why there is no response. Told to users: it names hosts, and never a query, a header or a private address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    /// The request itself cannot be sent.
    #[error("{0}")]
    Invalid(String),
    /// Its address is not for users to reach.
    #[error("{0} leads to a private or reserved address; the operator allows such with --outbound-allow")]
    Blocked(String),
    /// Nobody answers there.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The host of the URL.
        host: String,
        /// What happened.
        why: String,
    },
    /// It took too long.
    #[error("there was no whole answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The body goes on and on.
    #[error("the answer is larger than {} MiB", MAX_BODY_BYTES / 1024 / 1024)]
    TooLarge,
    /// The answers to other requests fill the memory that there is for them.
    #[error("there is no memory for the answer now, try again later")]
    NoRoom,
    /// One redirect leads to another.
    #[error("there were more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    /// What came is no answer.
    #[error("the answer of {host} cannot be used: {why}")]
    BadAnswer {
        /// The host of the URL.
        host: String,
        /// What is wrong with it.
        why: String,
    },
}

impl OutboundError {
    /// The contract's code for nodes that fail by this.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Blocked(_) => "HTTP_BLOCKED",
            Self::Unreachable { .. } | Self::Timeout(_) | Self::NoRoom => "HTTP_UNREACHABLE",
            Self::Invalid(_) | Self::TooLarge | Self::TooManyRedirects | Self::BadAnswer { .. } => {
                "HTTP_ERROR"
            }
        }
    }

    /// Whether the same request may be answered later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout(_) | Self::NoRoom)
    }

    /// What became of a request that got no response.
    pub(super) fn of_exchange(host: &str, error: Arc<dyn StdError + Send + Sync>) -> Self {
        let host = host.to_owned();
        let mut causes: Vec<&(dyn StdError + 'static)> = vec![&*error];
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause);
            next = cause.source();
        }
        let connecting = causes.iter().find_map(|cause| cause.downcast_ref::<DialError>());
        match connecting {
            Some(DialError::Blocked) => Self::Blocked(host),
            Some(error) => Self::Unreachable {
                host,
                why: error.to_string(),
            },
            None => Self::Unreachable {
                host,
                why: causes.last().map_or_else(String::new, ToString::to_string),
            },
        }
    }
}
