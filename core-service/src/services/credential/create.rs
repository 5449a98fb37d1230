//! Making a credential: at once when nothing is missing, else by a link under which a person finishes it or consents.

use std::time::Duration;

use contract::scope::CredentialWrite;
use contract::v1;
use contract::validation::Violation;

use super::status;
use crate::auth::Authorized;
use crate::connectors::{Connection, ConnectionData, Field, FieldProblem};
use crate::error::{Error, Result};
use crate::pages::{Token, connect};
use crate::services::Services;
use crate::services::reference::unresolvable;
use crate::store::{NewCredential, NewLink};
use crate::{clock, id};

/// How long the link can be used.
const LINK_LASTS: Duration = Duration::from_secs(60 * 60);

pub(super) async fn create(
    services: &Services,
    caller: &Authorized<CredentialWrite>,
    request: v1::CreateCredentialRequest,
) -> Result<v1::CreateCredentialResponse> {
    let apps = services.apps(caller.organization_id()).await?;
    let app = apps.find(&request.app_id);
    let app = app.ok_or_else(|| Error::invalid("appId", "names no app; see GET /catalog/apps"))?;
    let connection = app.connection(&request.connection_id).ok_or_else(|| {
        let known: Vec<&str> = app.connections.iter().map(|known| known.id.as_str()).collect();
        let message = format!("names no connection of {}; it has {}", app.id, known.join(", "));
        Error::invalid("connectionId", message)
    })?;
    let (data, is_complete) = read(connection, request.data.as_ref())?;
    app.check_hosts(connection, &data)
        .map_err(|problem| refusal(vec![problem]))?;
    let credential_id = id::new(id::Kind::Credential);
    let sealed = services
        .credentials
        .seal(caller.organization_id(), &credential_id, &data)
        .await?;
    let token = Token::generate().map_err(Error::internal)?;
    let hash = token.hash();
    let lasts = i64::try_from(LINK_LASTS.as_millis()).unwrap_or(i64::MAX);
    let link = NewLink {
        token_hash: &hash,
        expires_at: clock::now_ms().saturating_add(lasts),
    };
    let new = NewCredential {
        id: &credential_id,
        name: &request.name,
        app_id: &app.id,
        connection_id: &connection.id,
        data: &sealed,
        team_id: request.team_id.as_deref(),
        link: (!is_complete).then_some(link),
    };
    let created = services
        .store
        .create_credential(&caller.actor(), caller.organization_id(), &new)
        .await
        .map_err(unresolvable)?;
    let result = v1::CredentialCreateResult {
        credential_id,
        status: status(created.status.as_word()),
        app_id: created.app_id,
        connection_id: created.connection_id,
        connect_url: (!is_complete).then(|| connect::url(&services.base_url, &token)),
    };
    Ok(v1::CreateCredentialResponse { data: Some(result) })
}

/// What the caller gave, and whether that is all there has to be.
///
/// Secrets may be left to a person, and so may everything; who gives some of it has to give what is not secret.
fn read(connection: &Connection, given: Option<&v1::JsonObject>) -> Result<(ConnectionData, bool)> {
    let given = wire::json::object(given, "data")?;
    let is_empty = given.values().all(serde_json::Value::is_null);
    let data = connection.read(given).map_err(refusal)?;
    let missing = connection.missing(&data);
    let forgotten: Vec<&&Field> = missing.iter().filter(|field| !field.secret).collect();
    if !is_empty && !forgotten.is_empty() {
        let violation = |field: &&Field| FieldProblem {
            name: field.name.clone(),
            message: "is required".to_owned(),
        };
        return Err(refusal(forgotten.into_iter().map(violation).collect()));
    }
    let is_complete = connection.is_complete(&data) && !connection.needs_consent();
    Ok((data, is_complete))
}

fn refusal(problems: Vec<FieldProblem>) -> Error {
    let violation = |problem: FieldProblem| Violation {
        path: format!("data.{}", problem.name),
        message: problem.message,
    };
    Error::violations(problems.into_iter().map(violation).collect())
}
