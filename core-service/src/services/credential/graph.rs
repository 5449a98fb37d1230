//! Credentials that graphs name: whether they exist, are of the right app, and can be used.

use std::collections::{HashMap, HashSet};

use engine::graph::{Graph, NATIVE_APP, Node};
use engine::ops::GraphOp;
use engine::problem::Problem;

use crate::connectors::{Apps, ConnectionNeed};
use crate::error::Result;
use crate::services::{Services, graph};
use crate::store::{Credential, CredentialStatus};

/// The apps of the credentials that operations name, by credential; those that do not exist are absent.
pub(in crate::services) async fn credential_apps(
    services: &Services,
    organization_id: &str,
    operations: &[GraphOp],
) -> Result<HashMap<String, String>> {
    let named = operations.iter().filter_map(|operation| match operation {
        GraphOp::AddNode(add) => add.credential_id.as_deref(),
        GraphOp::SetCredential { credential_id, .. } => credential_id.as_deref(),
        _ => None,
    });
    let found = find(services, organization_id, named).await?;
    let apps = found.into_iter().map(|(id, credential)| (id, credential.app_id));
    Ok(apps.collect())
}

/// What is wrong with the credentials of a graph's nodes.
pub(in crate::services) async fn credential_problems(
    services: &Services,
    organization_id: &str,
    graph: &Graph,
) -> Result<Vec<Problem>> {
    let named = graph.nodes.iter().filter_map(|node| Some(named(node)?.1));
    let found = find(services, organization_id, named).await?;
    let apps = services.apps(organization_id).await?;
    let problem = |node: &Node| {
        if node.config.is_disabled() {
            return None;
        }
        match self::named(node) {
            Some((path, id)) => usable(node, found.get(id)).err().map(|message| (path, message)),
            None if needs_credential(&apps, node) => {
                let message = "is required: the module works only with a credential";
                Some(("credentialId", message.to_owned()))
            }
            None => None,
        }
        .map(|(path, message)| Problem::node(node.id, message).at(path))
    };
    Ok(graph.nodes.iter().filter_map(problem).collect())
}

/// Refuses a graph whose nodes name credentials that cannot be used.
pub(in crate::services) async fn check_credentials(
    services: &Services,
    organization_id: &str,
    graph: &Graph,
) -> Result<()> {
    match credential_problems(services, organization_id, graph).await? {
        problems if problems.is_empty() => Ok(()),
        problems => Err(graph::refusal(&problems)),
    }
}

async fn find<'a>(
    services: &Services,
    organization_id: &str,
    named: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, Credential>> {
    let ids: Vec<&str> = named.collect::<HashSet<_>>().into_iter().collect();
    let found = services.store.credentials(organization_id, &ids).await?;
    Ok(found
        .into_iter()
        .map(|credential| (credential.id.clone(), credential))
        .collect())
}

/// The credential that a node names, and where; one that a template gives is known only when the node runs.
fn named(node: &Node) -> Option<(&'static str, &str)> {
    let parameter = node
        .params
        .get("credentialId")
        .filter(|_| node.app_id == NATIVE_APP);
    let parameter = parameter.and_then(serde_json::Value::as_str);
    match parameter {
        Some(id) => (!id.contains("{{")).then_some(("params.credentialId", id)),
        None => Some(("credentialId", node.credential_id.as_deref()?)),
    }
}

fn usable(node: &Node, credential: Option<&Credential>) -> Result<(), String> {
    let Some(credential) = credential else {
        return Err("names a credential that does not exist".to_owned());
    };
    if node.app_id != NATIVE_APP && node.app_id != credential.app_id {
        return Err(format!("names a credential for {}", credential.app_id));
    }
    match credential.status {
        CredentialStatus::Active => Ok(()),
        other => Err(format!(
            "names a credential that is not active: it is {}",
            other.as_word()
        )),
    }
}

fn needs_credential(apps: &Apps, node: &Node) -> bool {
    let app = apps.find(&node.app_id);
    let module = app.and_then(|app| app.module(&node.module_slug));
    module.is_some_and(|module| module.connection == ConnectionNeed::Required)
}
