//! Testing a credential against its service, and what that makes of it.

use contract::scope::CredentialUse;
use contract::v1;

use crate::auth::Authorized;
use crate::credentials::CredentialError;
use crate::error::Result;
use crate::nodes::verification::Verdict;
use crate::services::Services;
use crate::store::{Credential, CredentialStatus};

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
    match services.credentials.open(credential).await {
        Ok(opened) => Ok(services.app_caller.verify(opened).await?),
        Err(error @ CredentialError::Orphan) => Ok(Verdict::Untold(error.to_string())),
        Err(error) => Err(error.into()),
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
