//! What a trigger asks its service, and how far it reads the list.
//!
//! The first question is for what is there, and one page of that is enough to tell new items from it. Each later one goes on
//! for as long as all items are new.

use std::time::{Duration, Instant};

use engine::failure::NodeError;
use engine::graph::{FrozenGraph, Graph, Needs, Node};
use serde_json::Value;
use tokio::time::timeout;

use super::answer::{Answer, MOST_LISTED, Mark, is_mixed};
use super::known::Known;
use super::poll::{Poller, SOON_MS};
use crate::catalog::CatalogError;
use crate::connectors::{App, Apps, Listed, Module, Poll, TemplateError, Until};
use crate::nodes::http::{Caller, account};
use crate::secret::Hide;
use crate::store::{DuePoll, StoreError};

/// How long asking may take, over all pages.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this time no further page is asked for: what came is worth more than nothing.
const READING: Duration = Duration::from_secs(40);
/// Before an app is looked for again that cannot be had, in milliseconds.
const LOST_MS: i64 = 60_000;

/// What came of a question, and when the next one is.
pub(super) struct Asked {
    pub(super) pause_ms: i64,
    pub(super) answer: Result<Answer, NodeError>,
}

/// Asks what the trigger of a deployed graph asks.
pub(super) async fn ask(
    poller: &Poller,
    due: &DuePoll,
    graph: &[u8],
    known: Option<&Known>,
) -> Result<Asked, StoreError> {
    let (graph, apps) = match pinned(poller, due, graph).await {
        Ok(pinned) => pinned,
        Err(CatalogError::Store(error)) => return Err(error),
        Err(error) => {
            return Ok(Asked {
                pause_ms: LOST_MS,
                answer: Err(NodeError::new("ENGINE_ERROR", error.to_string())),
            });
        }
    };
    let mut pause_ms = SOON_MS;
    let answer = async {
        let gone = || NodeError::new("ENGINE_ERROR", "the catalog has no longer what the trigger asks");
        let node = graph.node(due.node_id).ok_or_else(gone)?;
        let app = apps.find(&node.app_id).ok_or_else(gone)?;
        let module = app.module(&node.module_slug).ok_or_else(gone)?;
        let poll = module.poll.as_ref().ok_or_else(gone)?;
        let parameters = module.with_defaults(&node.params);
        let seconds = poll
            .interval(&parameters)
            .map_err(|error| NodeError::expression(error.to_string()))?;
        pause_ms = seconds.saturating_mul(1_000);
        let is_last = last_page(poll, &parameters, known);
        let until = Until {
            is_last: &is_last,
            most: MOST_LISTED,
        };
        let listed = timeout(PATIENCE, call(poller, due, node, (&apps, app, module), until)).await;
        let listed = listed.unwrap_or_else(|_elapsed| Err(NodeError::timeout(PATIENCE.as_secs() * 1_000)))?;
        Answer::read(listed, poll, &parameters)
    }
    .await;
    Ok(Asked { pause_ms, answer })
}

/// The deployed graph, and the apps as it pinned them.
async fn pinned(poller: &Poller, due: &DuePoll, graph: &[u8]) -> Result<(Graph, Apps), CatalogError> {
    let frozen = serde_json::from_slice::<FrozenGraph>(graph);
    let damaged = |_| StoreError::Corrupt("a version's graph".to_owned());
    let (graph, needs): (Graph, Needs) = frozen.map_err(damaged)?.into_parts();
    let organization_id = &due.workflow.organization.id;
    let apps = poller.catalog.pinned(organization_id, &needs.apps).await?;
    Ok((graph, apps))
}

/// Tells the last page that has to be read: one with an old item, and of the first answer any with items. A list whose new
/// items may stand anywhere has none.
fn last_page<'a>(
    poll: &'a Poll,
    parameters: &'a Value,
    known: Option<&'a Known>,
) -> impl Fn(&[Value]) -> bool + Send + Sync + 'a {
    let started = Instant::now();
    let old = known.map(Known::old);
    move |page| {
        let marks = page.iter().map(|item| Mark::read(item, poll, parameters));
        let Ok(marks) = marks.collect::<Result<Vec<_>, TemplateError>>() else {
            // Items that cannot be told apart are refused with the whole answer.
            return true;
        };
        let has_old = match &old {
            None => !marks.is_empty(),
            Some(old) => marks.iter().any(|mark| old.holds(mark)),
        };
        started.elapsed() >= READING || (has_old && !is_mixed(poll, marks.iter()))
    }
}

async fn call(
    poller: &Poller,
    due: &DuePoll,
    node: &Node,
    (apps, app, module): (&Apps, &App, &Module),
    until: Until<'_>,
) -> Result<Listed, NodeError> {
    let organization_id = &due.workflow.organization.id;
    let named = node.credential_id.as_deref();
    let found = (app, module);
    let credential = poller
        .caller
        .credential(found, organization_id, named, apps)
        .await?;
    let caller = Caller {
        app: Some(app),
        credential: credential.as_ref(),
        hide: Hide::default(),
        idempotency_key: None,
        account: account(organization_id, named),
        timeout: READING,
    };
    poller.caller.list(found, &node.params, until, caller).await
}
