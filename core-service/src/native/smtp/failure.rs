//! What keeps an e-mail from being sent.

use crate::native::Failure;

/// Replies of servers that want to know who is there: 530 and 535, 534 and 538 about the way to tell.
const WHO_ARE_YOU: [u16; 4] = [530, 534, 535, 538];

/// What keeps an e-mail from being sent. The sentences are the server's, to be masked before anybody sees them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SmtpError {
    /// The server says no.
    #[error("the server refuses {what}: {code} {says}")]
    Refused {
        /// What it was asked.
        what: String,
        /// Its reply: 4xx for now, 5xx for good.
        code: u16,
        /// Its sentence.
        says: String,
    },
    /// User name and password are refused, or asked for.
    #[error("the server refuses the user name and password: {code} {says}")]
    Login {
        /// Its reply.
        code: u16,
        /// Its sentence.
        says: String,
    },
    /// The server cannot what is wanted.
    #[error("{0}")]
    Unable(String),
    /// The connection ended before an e-mail was sent.
    #[error("the connection broke at {what}: {why}")]
    Broken {
        /// What was under way.
        what: String,
        /// What happened.
        why: String,
    },
    /// The connection ended after an e-mail was sent, before the server took it or refused it.
    #[error("{0}")]
    Lost(String),
}

impl From<SmtpError> for Failure {
    fn from(error: SmtpError) -> Self {
        let says = error.to_string();
        match error {
            SmtpError::Login { code, .. } if code >= 500 => Self::Credential(says),
            SmtpError::Refused { code, .. } if WHO_ARE_YOU.contains(&code) => Self::Credential(says),
            SmtpError::Refused { code, .. } | SmtpError::Login { code, .. } if code < 500 => Self::Busy(says),
            SmtpError::Refused { .. } | SmtpError::Login { .. } | SmtpError::Unable(_) => Self::Refused(says),
            SmtpError::Broken { .. } => Self::Unreachable(says),
            SmtpError::Lost(why) => Self::Lost(why),
        }
    }
}

impl SmtpError {
    pub(super) fn of(what: impl Into<String>, error: &lettre::transport::smtp::Error) -> Self {
        let what = what.into();
        let says = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
        match error.status() {
            Some(code) => Self::Refused {
                what,
                code: code.into(),
                says,
            },
            None if error.is_client() => Self::Unable(format!("{what} is not possible: {says}")),
            None => Self::Broken {
                what,
                why: if says.is_empty() { error.to_string() } else { says },
            },
        }
    }

    pub(super) fn broken(what: &str, why: impl ToString) -> Self {
        Self::Broken {
            what: what.to_owned(),
            why: why.to_string(),
        }
    }
}
