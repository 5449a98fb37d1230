//! Testing a credential against its service, whatever that is spoken to by.

use std::time::Duration;

use engine::failure::NodeError;
use http::StatusCode;

use super::app_caller::AppCaller;
use super::http::{CREDENTIAL_INVALID, Caller, account};
use crate::connectors::ToldFailure;
use crate::credentials::{CredentialError, OpenCredential};
use crate::secret::Hide;
use crate::store::TokenFailureKind;

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a test has shown.
pub enum Verdict {
    /// The service accepts it, or there is no service to ask and nothing is missing.
    Accepted,
    /// The service refuses it. Why, for people.
    Refused(String),
    /// The service could not be asked, or did not say. Why, for people.
    Untold(String),
}

impl AppCaller {
    /// Tests a credential that is stored, with a token that can be used.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn verify(&self, opened: OpenCredential) -> Result<Verdict, CredentialError> {
        if let Some(verdict) = makes_no_host(&opened) {
            return Ok(verdict);
        }
        match self.http().ready(opened).await {
            Ok(opened) => Ok(self.test_credential(&opened).await),
            Err(CredentialError::Token(error)) => Ok(match error.failure.kind {
                TokenFailureKind::Refused => Verdict::Refused(error.to_string()),
                _ => Verdict::Untold(error.to_string()),
            }),
            Err(error) => Err(error),
        }
    }

    /// Tests a credential as it is at hand.
    pub async fn test_credential(&self, opened: &OpenCredential) -> Verdict {
        if let Some(verdict) = makes_no_host(opened) {
            return verdict;
        }
        let caller = Caller {
            app: Some(&opened.app),
            credential: Some(opened),
            hide: Hide::default(),
            idempotency_key: None,
            account: account(&opened.organization_id, Some(&opened.id)),
            timeout: PATIENCE,
        };
        if opened.app.driver.is_some() {
            let asked = self.ask_driver(&opened.app, &caller).await;
            return asked.map_or_else(judge_error, |()| Verdict::Accepted);
        }
        let walk = match opened.app.verify(opened.connection(), &opened.data) {
            Ok(None) => return Verdict::Accepted,
            Ok(Some(walk)) => walk,
            Err(error) => return Verdict::Untold(error.to_string()),
        };
        match self.http().test(&walk, caller).await {
            Ok((_, Some(told))) => judge_told(told),
            Ok((status, None)) => judge(status),
            Err(error) => judge_error(error),
        }
    }
}

fn makes_no_host(opened: &OpenCredential) -> Option<Verdict> {
    let problem = opened.app.check_hosts(opened.connection(), &opened.data).err()?;
    Some(Verdict::Refused(format!(
        "The field {} {}.",
        problem.name, problem.message
    )))
}

fn judge_error(error: NodeError) -> Verdict {
    match error.code == CREDENTIAL_INVALID {
        true => Verdict::Refused(error.message),
        false => Verdict::Untold(error.message),
    }
}

/// What the app's own rules say.
fn judge_told(told: ToldFailure) -> Verdict {
    let message = told
        .message
        .unwrap_or_else(|| "The service does not answer as it should.".to_owned());
    match told.code.as_deref() {
        Some(CREDENTIAL_INVALID) => Verdict::Refused(message),
        _ => Verdict::Untold(message),
    }
}

fn judge(status: StatusCode) -> Verdict {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Verdict::Refused(format!("The service refuses it with status {}.", status.as_u16()))
        }
        status if status.is_success() || status.is_redirection() => Verdict::Accepted,
        status => Verdict::Untold(format!("The service answered with status {}.", status.as_u16())),
    }
}
