//! Testing a credential against its service.

use std::time::Duration;

use contract::scope::CredentialUse;
use contract::v1;
use http::StatusCode;

use crate::auth::Authorized;
use crate::connectors::{ToldFailure, Walk};
use crate::credentials::{CredentialError, OpenCredential};
use crate::error::Result;
use crate::nodes::http::{Caller, account};
use crate::services::Services;
use crate::store::{Credential, CredentialStatus};

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a test has shown.
enum Verdict {
    /// The service accepts it, or there is no service to ask and nothing is missing.
    Accepted,
    /// The service refuses it.
    Refused(String),
    /// The service could not be asked, or did not say.
    Untold(String),
}

pub(super) async fn verify(
    services: &Services,
    caller: &Authorized<CredentialUse>,
    credential_id: &str,
) -> Result<v1::VerifyCredentialResponse> {
    let organization_id = caller.organization_id();
    let credential = services.store.credential(organization_id, credential_id).await?;
    let verdict = verdict(services, &credential).await?;
    let status = match verdict {
        Verdict::Accepted => Some(CredentialStatus::Active),
        Verdict::Refused(_) => Some(CredentialStatus::Invalid),
        Verdict::Untold(_) => None,
    };
    services
        .store
        .credential_verified(&caller.actor(), organization_id, credential_id, status)
        .await?;
    Ok(v1::VerifyCredentialResponse {
        data: Some(shown(verdict)),
    })
}

async fn verdict(services: &Services, credential: &Credential) -> Result<Verdict> {
    if credential.status == CredentialStatus::CredentialRequired {
        let message = "It is not finished: a person has to open its connect_url first.";
        return Ok(Verdict::Untold(message.to_owned()));
    }
    let opened = match services.credentials.open(credential).await {
        Ok(opened) => opened,
        Err(error @ CredentialError::Orphan) => return Ok(Verdict::Untold(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    if let Err(problem) = opened.app.check_hosts(opened.connection(), &opened.data) {
        return Ok(Verdict::Refused(format!(
            "The field {} {}.",
            problem.name, problem.message
        )));
    }
    Ok(match opened.app.verify(opened.connection(), &opened.data) {
        Ok(None) => Verdict::Accepted,
        Ok(Some(walk)) => ask(services, credential, &opened, &walk).await,
        Err(error) => Verdict::Untold(error.to_string()),
    })
}

async fn ask(
    services: &Services,
    credential: &Credential,
    opened: &OpenCredential,
    walk: &Walk<'_>,
) -> Verdict {
    let caller = Caller {
        app: Some(&opened.app),
        credential: Some(opened),
        idempotency_key: None,
        account: account(&credential.organization_id, Some(&credential.id)),
        timeout: PATIENCE,
    };
    match services.http.test(walk, caller).await {
        Ok((_, Some(told))) => judge_told(told),
        Ok((status, None)) => judge(status),
        Err(error) => Verdict::Untold(error.message),
    }
}

/// What the app's own rules say.
fn judge_told(told: ToldFailure) -> Verdict {
    let message = told
        .message
        .unwrap_or_else(|| "The service does not answer as it should.".to_owned());
    match told.code.as_deref() {
        Some("CREDENTIAL_INVALID") => Verdict::Refused(message),
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

fn shown(verdict: Verdict) -> v1::CredentialVerifyResult {
    let (status, error) = match verdict {
        Verdict::Accepted => (v1::CredentialVerifyStatus::Valid, None),
        Verdict::Refused(error) | Verdict::Untold(error) => {
            (v1::CredentialVerifyStatus::Invalid, Some(error))
        }
    };
    v1::CredentialVerifyResult {
        status: status.into(),
        error,
    }
}
