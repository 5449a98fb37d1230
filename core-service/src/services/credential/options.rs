//! Dynamic options: the choices of a field, asked of the field's own service.

use std::time::Duration;

use contract::scope::CredentialUse;
use contract::v1;
use engine::failure::NodeError;
use serde_json::{Map, Value};

use crate::auth::Authorized;
use crate::connectors::{App, Apps, DynamicOptions, Rpc};
use crate::credentials::{CredentialError, OpenCredential};
use crate::error::{Error, Result};
use crate::nodes::http::{Caller, account};
use crate::secret::Hide;
use crate::services::Services;

/// How long the service may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn list(
    services: &Services,
    caller: &Authorized<CredentialUse>,
    request: v1::ListDynamicOptionsRequest,
) -> Result<v1::ListDynamicOptionsResponse> {
    let apps = services.apps(caller.organization_id()).await?;
    let app = apps.find(&request.app_id);
    let app = app.ok_or_else(|| Error::invalid("appId", "names no app; see GET /catalog/apps"))?;
    let parameters = wire::json::object(request.params.as_ref(), "params")?;
    let rpc = find(app, &request.rpc_id)?;
    check(rpc, &parameters)?;
    let credential = match request.credential_id.as_deref() {
        Some(id) => Some(open(services, caller.organization_id(), app, id).await?),
        None => None,
    };
    let caller = Caller {
        app: Some(app),
        credential: credential.as_ref(),
        hide: Hide::default(),
        idempotency_key: None,
        account: account(caller.organization_id(), request.credential_id.as_deref()),
        timeout: PATIENCE,
    };
    let options = ask(services, app, rpc, parameters, caller).await;
    let options = options.map_err(|error| {
        let message = format!("could not be asked: {}: {}", error.code, error.message);
        Error::invalid("rpcId", message)
    })?;
    Ok(v1::ListDynamicOptionsResponse {
        data: Some(shown(options)),
    })
}

fn find<'a>(app: &'a App, rpc_id: &str) -> Result<&'a Rpc> {
    app.rpc(rpc_id).ok_or_else(|| {
        let known: Vec<&str> = app.rpcs.iter().map(|rpc| rpc.id.as_str()).collect();
        match known.is_empty() {
            true => Error::invalid("rpcId", format!("names nothing that {} can be asked", app.id)),
            false => Error::invalid("rpcId", format!("must be one of {}", known.join(", "))),
        }
    })
}

fn check(rpc: &Rpc, parameters: &Map<String, Value>) -> Result<()> {
    let is_missing = |name: &&String| parameters.get(*name).is_none_or(Value::is_null);
    match rpc.depends_on.iter().find(is_missing) {
        Some(name) => Err(Error::invalid(
            format!("params.{name}"),
            "is required: the answer depends on it",
        )),
        None => Ok(()),
    }
}

async fn open(
    services: &Services,
    organization_id: &str,
    app: &App,
    credential_id: &str,
) -> Result<OpenCredential> {
    match services
        .http
        .usable(organization_id, credential_id, &Apps::default())
        .await
    {
        Ok(opened) if opened.app.id == app.id => Ok(opened),
        Ok(opened) => Err(Error::invalid(
            "credentialId",
            format!("names a credential for {}", opened.app.id),
        )),
        Err(CredentialError::Secret(error)) => Err(error.into()),
        Err(error) => Err(Error::invalid("credentialId", error.to_string())),
    }
}

async fn ask(
    services: &Services,
    app: &App,
    rpc: &Rpc,
    parameters: Map<String, Value>,
    caller: Caller<'_>,
) -> Result<DynamicOptions, NodeError> {
    let listed = services.app_caller.ask(app, rpc, parameters, caller).await?;
    rpc.choices(&listed)
        .map_err(|error| NodeError::new("HTTP_ERROR", error.to_string()))
}

fn shown(options: DynamicOptions) -> v1::DynamicOptionsResult {
    let items = options.items.into_iter().map(|option| v1::DynamicOption {
        value: Some(v1::JsonValue {
            json: option.value.to_string(),
        }),
        label: option.label,
    });
    v1::DynamicOptionsResult {
        items: items.collect(),
        truncated: options.truncated,
        total: options
            .total
            .map(|total| i32::try_from(total).unwrap_or(i32::MAX)),
    }
}
