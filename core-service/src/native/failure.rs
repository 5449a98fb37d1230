//! Why a call of a driver failed, in the words that all drivers share.

use engine::failure::NodeError;

use crate::outbound::DialError;

/// A call that failed. Its sentence is for people; whoever shows it masks secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The parameters make no call.
    #[error("{0}")]
    Parameters(String),
    /// The server's address is not for users to reach.
    #[error("{0} leads to a private or reserved address; the operator allows such with --outbound-allow")]
    Blocked(String),
    /// There is no connection, and nothing was done.
    #[error("{0}")]
    Unreachable(String),
    /// The server refuses the credential.
    #[error("{0}")]
    Credential(String),
    /// The server did nothing, and may do it later.
    #[error("{0}")]
    Busy(String),
    /// The server refuses what was asked, or did a part of it that the sentence tells.
    #[error("{0}")]
    Refused(String),
    /// The connection broke after the call was sent.
    #[error("the connection to the server was lost ({0}); whether the operation was done is not known")]
    Lost(String),
    /// There is more than a call may bring.
    #[error("{0}")]
    TooLarge(String),
}

impl Failure {
    /// The code of an answer that has more than it may.
    pub const TOO_LARGE: &'static str = "ANSWER_TOO_LARGE";

    /// The code of nodes that fail by this.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Parameters(_) => "EXPRESSION_ERROR",
            Self::Blocked(_) => "CONNECTION_BLOCKED",
            Self::Unreachable(_) => "CONNECTION_FAILED",
            Self::Credential(_) => "CREDENTIAL_INVALID",
            Self::Busy(_) => "SERVER_BUSY",
            Self::Refused(_) => "SERVER_ERROR",
            Self::Lost(_) => "CONNECTION_LOST",
            Self::TooLarge(_) => Self::TOO_LARGE,
        }
    }

    /// All codes, for people who handle them.
    pub const CODES: [&'static str; 7] = [
        Self::TOO_LARGE,
        "CONNECTION_BLOCKED",
        "CONNECTION_FAILED",
        "CONNECTION_LOST",
        "CREDENTIAL_INVALID",
        "SERVER_BUSY",
        "SERVER_ERROR",
    ];

    /// Whether the same call may succeed later, and does no harm.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Busy(_))
    }

    /// No connection to a host.
    #[must_use]
    pub fn of_dialing(host: &str, error: &DialError) -> Self {
        match error {
            DialError::Blocked => Self::Blocked(host.to_owned()),
            DialError::Certificate => Self::Credential(error.to_string()),
            error if error.is_distrust() => Self::distrust(host, &error.to_string()),
            error => Self::Unreachable(format!("{host} cannot be reached: {error}")),
        }
    }
}

impl Failure {
    /// A server that does not prove to be the one it is said to be.
    #[must_use]
    pub fn distrust(host: &str, why: &str) -> Self {
        Self::Refused(format!("{host} cannot be trusted: {why}"))
    }
}

impl From<Failure> for NodeError {
    fn from(failure: Failure) -> Self {
        Self {
            temporary: failure.is_temporary(),
            ..Self::new(failure.code(), failure.to_string())
        }
    }
}
