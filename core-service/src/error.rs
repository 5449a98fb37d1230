//! The one place where what went wrong becomes what the caller is told.
//!
//! An error has a reason (a row of the contract's table), a sentence for people, the fields it is about, and perhaps
//! a cause. The cause is logged and never sent.

use std::fmt;
use std::sync::Arc;

use contract::errors::{BASE_URL, DOMAIN, RUN_ID};
use contract::v1::ErrorReason;
use contract::validation::Violation;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::catalog::CatalogError;
use crate::registrations::RegistrationError;
use crate::secret::SecretError;
use crate::store::StoreError;

/// The result of a service's method.
pub type Result<T, E = Error> = std::result::Result<T, E>;

const NO_ANSWER: &str = "The database does not answer; try again soon.";

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a request is refused. Several callers may share one.
#[derive(Debug, Clone)]
pub struct Error(Box<Refusal>);

/// What an error holds; apart, so that results stay small.
#[derive(Debug, Clone)]
struct Refusal {
    reason: ErrorReason,
    message: String,
    violations: Vec<Violation>,
    base_url: Option<String>,
    run_id: Option<String>,
    retry_after: Option<std::time::Duration>,
    allow: Option<String>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a sentence that says what is wrong and what would help.
    pub fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Self(Box::new(Refusal {
            reason,
            message: message.into(),
            violations: Vec::new(),
            base_url: None,
            run_id: None,
            retry_after: None,
            allow: None,
            cause: None,
        }))
    }

    /// There is no such thing, or it is another organization's: the two look the same.
    pub fn not_found(noun: &str) -> Self {
        Self::new(ErrorReason::NotFound, format!("There is no such {noun}."))
    }

    /// One field is wrong.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::violations(vec![Violation {
            path: path.into(),
            message: message.into(),
        }])
    }

    /// Several fields are wrong.
    pub fn violations(violations: Vec<Violation>) -> Self {
        let summary = match violations.as_slice() {
            [one] if one.path.is_empty() => format!("The request is not valid: {}.", one.message),
            [one] => format!("The request is not valid: {} {}.", one.path, one.message),
            several => format!("The request is not valid: {} fields are wrong.", several.len()),
        };
        Self::new(ErrorReason::ValidationError, summary).with_violations(violations)
    }

    /// Something broke here; the caller learns no more than that.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        let error = Self::new(ErrorReason::Internal, "Something went wrong inside the service.");
        error.with_cause(cause)
    }

    /// The service cannot do it now; waiting helps.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorReason::Unavailable, message);
        error.0.retry_after = Some(std::time::Duration::from_secs(1));
        error
    }

    /// The contract has the method, this version does not.
    pub fn unimplemented() -> Self {
        Self::new(ErrorReason::Unimplemented, "This method is not available yet.")
    }

    /// Adds the fields the error is about.
    #[must_use]
    pub fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.0.violations = violations;
        self
    }

    /// Adds where to go instead.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.0.base_url = Some(base_url.into());
        self
    }

    /// Adds the run that it is about.
    #[must_use]
    pub fn with_run_id(mut self, run_id: impl Into<String>) -> Self {
        self.0.run_id = Some(run_id.into());
        self
    }

    /// Adds the HTTP methods that are allowed instead.
    #[must_use]
    pub fn with_allow(mut self, methods: impl Into<String>) -> Self {
        self.0.allow = Some(methods.into());
        self
    }

    /// Adds how long to wait before the next try.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: std::time::Duration) -> Self {
        self.0.retry_after = Some(retry_after);
        self
    }

    /// Adds what caused it, for the log.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(Arc::from(cause.into()));
        self
    }

    /// The row of the table.
    pub fn reason(&self) -> ErrorReason {
        self.0.reason
    }

    /// The gRPC status that says all this.
    pub fn into_status(self) -> Status {
        if let Some(cause) = &self.0.cause {
            tracing::error!(reason = self.0.reason.row().name, cause = %Chain(cause.as_ref()), "request failed");
        }
        let row = self.0.reason.row();
        let mut metadata = std::collections::HashMap::new();
        metadata.extend(self.0.base_url.map(|base_url| (BASE_URL.to_owned(), base_url)));
        metadata.extend(self.0.run_id.map(|run_id| (RUN_ID.to_owned(), run_id)));
        let mut details = ErrorDetails::with_error_info(row.name, DOMAIN, metadata);
        for violation in self.0.violations {
            details.add_bad_request_violation(violation.path, violation.message);
        }
        if let Some(retry_after) = self.0.retry_after {
            details.set_retry_info(Some(retry_after));
        }
        let mut status = Status::with_error_details(Code::from_i32(row.grpc_status), self.0.message, details);
        if let Some(allow) = self.0.allow.and_then(|methods| methods.parse().ok()) {
            status.metadata_mut().insert("allow", allow);
        }
        status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_ref().map(|cause| cause.as_ref() as _)
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::violations(vec![violation])
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(noun) => Self::not_found(noun),
            StoreError::NoSeat => Self::new(
                ErrorReason::SeatLimitReached,
                "Members and pending invitations take all the seats of the plan.",
            ),
            StoreError::NulInText => Self::invalid("", "text must not contain the NUL character"),
            error if error.is_temporary() => Self::unavailable(NO_ANSWER).with_cause(error),
            error => Self::internal(error),
        }
    }
}

/// As above, for an error that several callers share.
impl From<Arc<StoreError>> for Error {
    fn from(error: Arc<StoreError>) -> Self {
        match error.is_temporary() {
            true => Self::unavailable(NO_ANSWER).with_cause(error),
            false => Self::internal(error),
        }
    }
}

impl From<SecretError> for Error {
    fn from(error: SecretError) -> Self {
        Arc::new(error).into()
    }
}

/// As above, for an error that several callers share.
impl From<Arc<SecretError>> for Error {
    fn from(error: Arc<SecretError>) -> Self {
        match &*error {
            SecretError::Store(store) if store.is_temporary() => {
                Self::unavailable(NO_ANSWER).with_cause(error)
            }
            SecretError::MissingVersion { .. } | SecretError::WrongKey | SecretError::File { .. } => {
                Self::unavailable("This server cannot use its master key; its operator finds why in the log.")
                    .with_cause(error)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Self {
        match error {
            RegistrationError::App(CatalogError::Store(error)) => error.into(),
            RegistrationError::Secret(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

/// An error and its causes in one line.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            write!(formatter, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}
