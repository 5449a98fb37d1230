//! Asks services for their items, again and again, and starts a run for each that is new.
//!
//! What is new is told by what a trigger has dealt with; that an item starts one run, by a key under which its run is found,
//! written with the run. So whichever process asks, and whenever one dies, nothing starts twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use engine::failure::NodeError;
use engine::graph::{FrozenGraph, Graph, Needs, Node};
use engine::start::{Start, StartFrom};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Shared;
use super::key::{KEY_LIFETIME_MS, service_key};
use super::metrics::count;
use crate::catalog::{Catalog, CatalogError};
use crate::clock;
use crate::connectors::{App, Apps, Module, Poll};
use crate::credentials::OpenCredential;
use crate::nodes::app_module::check_credential;
use crate::nodes::http::{Caller, HttpCaller, account};
use crate::runtime::{GraphRef, Lineage, PlanError, StartRun, StartRunError, Trigger};
use crate::store::{DuePoll, IdempotencyKey, NextWake, Polled, StoreError, Topic};

/// How often triggers are looked at when nothing is announced.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Before looking again for triggers that another process is just claiming.
const CLAIMED_ELSEWHERE: Duration = Duration::from_millis(50);
/// How long asking may take, over all pages.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a trigger is left to the process that claimed it, in milliseconds. A service that takes longer is asked twice,
/// which harms nobody.
const CLAIM_MS: i64 = 10_000;
/// Triggers that ask at the same time.
const AT_ONCE: usize = 32;
/// Before the rest of the items is tried again that could not start now, in milliseconds.
const SOON_MS: i64 = 5_000;

/// Before an app is looked for again that cannot be had, in milliseconds.
const LOST_MS: i64 = 60_000;

/// The bytes of a digest, and the most of them that are kept: those of the latest items.
const DIGEST: usize = 16;
const MOST_KNOWN: usize = 10_000;

/// The activity that tells of a service that does not answer as it should.
const FAILED: &str = "workflow.poll_failed";

/// What asking takes.
pub(super) struct Poller {
    pub(super) shared: Arc<Shared>,
    pub(super) catalog: Catalog,
    pub(super) http: HttpCaller,
}

/// Asks what is due until the process drains.
pub(super) async fn run(poller: Arc<Poller>) {
    let shared = &poller.shared;
    let mut subscription = shared.store.subscribe();
    let mut asking = JoinSet::new();
    while !shared.runtime.is_draining() {
        let pause = look(&poller, &mut asking).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "triggers could not be looked at; it will be tried again");
            LOOK_EVERY
        });
        shared.rest(&mut subscription, Topic::Polls, pause).await;
    }
    // What is under way is given up: whoever looks next asks again.
}

/// Lets all ask that have to, as far as there is room. Gives how long nothing will be.
async fn look(poller: &Arc<Poller>, asking: &mut JoinSet<()>) -> Result<Duration, StoreError> {
    let shared = &poller.shared;
    while !shared.runtime.is_draining() {
        while asking.try_join_next().is_some() {}
        match shared.store.next_poll().await? {
            None => return Ok(LOOK_EVERY),
            Some(NextWake { wake_at, now }) if wake_at > now => {
                return Ok(LOOK_EVERY.min(Duration::from_millis(wake_at.abs_diff(now))));
            }
            Some(_) => {}
        }
        let room = AT_ONCE.saturating_sub(asking.len());
        if room == 0 {
            asking.join_next().await;
            continue;
        }
        let claimed = shared
            .store
            .claim_polls(CLAIM_MS, i64::try_from(room).unwrap_or(1))
            .await?;
        if claimed.is_empty() {
            return Ok(CLAIMED_ELSEWHERE);
        }
        for due in claimed {
            asking.spawn(deal_with(Arc::clone(poller), due));
        }
    }
    Ok(LOOK_EVERY)
}

async fn deal_with(poller: Arc<Poller>, due: DuePoll) {
    if let Err(error) = poll(&poller, &due).await {
        tracing::warn!(%error, workflow_id = due.workflow.id, node_id = due.node_id, "a trigger could not ask; it will be tried again");
    }
}

/// A trigger, its question and its answer.
struct Asked {
    pause_ms: i64,
    items: Result<Vec<Item>, NodeError>,
}

/// An item of an answer.
struct Item {
    key: String,
    value: Value,
}

async fn poll(poller: &Poller, due: &DuePoll) -> Result<(), StoreError> {
    let shared = &*poller.shared;
    let graph = shared
        .store
        .graph(
            &due.workflow.organization.id,
            &due.workflow.deployment.content_hash,
        )
        .await?;
    let asked = match pinned(poller, due, &graph).await {
        Ok((graph, apps)) => ask(poller, due, &graph, &apps).await,
        Err(CatalogError::Store(error)) => return Err(error),
        Err(error) => Asked {
            pause_ms: LOST_MS,
            items: Err(NodeError::new("ENGINE_ERROR", error.to_string())),
        },
    };
    count(&shared.counters.polls_asked, 1);
    let mut polled = Polled {
        known: None,
        pause_ms: asked.pause_ms,
        activity: None,
    };
    match asked.items {
        Err(error) => {
            count(&shared.counters.polls_failed, 1);
            tracing::warn!(workflow_id = due.workflow.id, node_id = due.node_id, %error, "a trigger's service gave no items");
            let asked_ms = error.retry_after_ms.and_then(|ms| i64::try_from(ms).ok());
            polled.pause_ms = polled.pause_ms.max(asked_ms.unwrap_or(0));
            polled.activity = Some(FAILED);
            shared.store.polled(due, &polled).await?;
        }
        Ok(items) => {
            let mut known = Known::read(due.known.as_deref());
            // Lists begin with the latest item, runs with the earliest.
            for item in items.iter().rev() {
                if due.known.is_some() && !known.has(item) && !start(shared, due, item).await? {
                    polled.pause_ms = SOON_MS;
                    break;
                }
                known.add(item);
            }
            let known = known.write();
            polled.known = Some(&known);
            shared.store.polled(due, &polled).await?;
        }
    }
    Ok(())
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

async fn ask(poller: &Poller, due: &DuePoll, graph: &Graph, apps: &Apps) -> Asked {
    let mut pause_ms = SOON_MS;
    let items = async {
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
        let answered = timeout(PATIENCE, walk(poller, due, node, (apps, app, module))).await;
        let answer =
            answered.unwrap_or_else(|_elapsed| Err(NodeError::timeout(PATIENCE.as_secs() * 1_000)))?;
        keyed(poll, &parameters, answer)
    }
    .await;
    Asked { pause_ms, items }
}

async fn walk(
    poller: &Poller,
    due: &DuePoll,
    node: &Node,
    (apps, app, module): (&Apps, &App, &Module),
) -> Result<Value, NodeError> {
    let organization_id = &due.workflow.organization.id;
    let named = node.credential_id.as_deref();
    let credential = poller.http.credential(organization_id, named, apps).await?;
    check_credential(app, module, credential.as_ref())?;
    let connected = credential.as_ref().map(OpenCredential::connected);
    let walk = app.begin(module, &node.params, connected);
    let walk = walk.map_err(|error| NodeError::expression(error.to_string()))?;
    let caller = Caller {
        app: Some(app),
        credential: credential.as_ref(),
        idempotency_key: None,
        account: account(organization_id, named),
        timeout: PATIENCE,
    };
    poller.http.walk(walk, caller).await
}

fn keyed(poll: &Poll, parameters: &Value, answer: Value) -> Result<Vec<Item>, NodeError> {
    let Value::Array(values) = answer else {
        return Ok(Vec::new());
    };
    let item = |value: Value| {
        let key = poll.key(&value, parameters);
        let key = key.map_err(|error| NodeError::new("HTTP_ERROR", error.to_string()))?;
        Ok(Item { key, value })
    };
    values.into_iter().map(item).collect()
}

/// The items that a trigger has dealt with, the latest last.
struct Known {
    order: Vec<[u8; DIGEST]>,
    set: HashSet<[u8; DIGEST]>,
}

impl Known {
    fn read(bytes: Option<&[u8]>) -> Self {
        let (chunks, _rest) = bytes.unwrap_or_default().as_chunks::<DIGEST>();
        Self {
            order: chunks.to_vec(),
            set: chunks.iter().copied().collect(),
        }
    }

    fn has(&self, item: &Item) -> bool {
        self.set.contains(&digest(item))
    }

    /// Adds an item, or moves it to the end: what is still listed is forgotten last.
    fn add(&mut self, item: &Item) {
        let digest = digest(item);
        if !self.set.insert(digest) {
            self.order.retain(|known| *known != digest);
        }
        self.order.push(digest);
    }

    fn write(&self) -> Vec<u8> {
        let start = self.order.len().saturating_sub(MOST_KNOWN);
        self.order.iter().skip(start).flatten().copied().collect()
    }
}

fn digest(item: &Item) -> [u8; DIGEST] {
    let mut digest = [0; DIGEST];
    let whole = Sha256::digest(item.key.as_bytes());
    digest.copy_from_slice(&whole[..DIGEST]);
    digest
}

/// Starts the run of an item. Gives whether the item is dealt with.
async fn start(shared: &Shared, due: &DuePoll, item: &Item) -> Result<bool, StoreError> {
    let workflow_id = &due.workflow.id;
    let refused = |why: &str| {
        count(&shared.counters.items_refused, 1);
        tracing::warn!(workflow_id, why, "the run of a new item was refused");
    };
    if let Some(refusal) = due.workflow.organization.refusal() {
        refused(refusal.sentence());
        return Ok(true);
    }
    match shared.runtime.start_run(run_of(due, item)).await {
        Ok(started) => {
            count(&shared.counters.items_fired, u64::from(!started.replayed));
            Ok(true)
        }
        Err(StartRunError::Overloaded | StartRunError::Unavailable | StartRunError::Internal) => Ok(false),
        Err(StartRunError::Plan(PlanError::Store(error))) if error.is_temporary() => Ok(false),
        Err(error) => {
            refused(&error.to_string());
            Ok(true)
        }
    }
}

fn run_of(due: &DuePoll, item: &Item) -> StartRun {
    let workflow = &due.workflow;
    let input = match &item.value {
        Value::Object(_) => item.value.clone(),
        other => json!({ "value": other }),
    };
    let digest = hex::encode(digest(item));
    StartRun {
        organization_id: workflow.organization.id.clone(),
        workflow_id: workflow.id.clone(),
        workflow_name: workflow.name.clone(),
        graph: GraphRef::Stored(workflow.deployment.content_hash.clone()),
        version_no: Some(workflow.deployment.version_no),
        start: Start {
            attempt: 1,
            from: StartFrom::Trigger(due.node_id),
            input: Arc::new(input),
            seeds: Vec::new(),
            timeout_ms: workflow.execution_timeout_ms.map(i64::unsigned_abs),
        },
        trigger: Trigger {
            kind: "poll".to_owned(),
            node_id: Some(due.node_id),
            webhook_id: None,
            parent_run_id: None,
        },
        idempotency: Some(IdempotencyKey {
            key: service_key(&format!("item {} {digest}", due.node_id)),
            body_hash: Vec::new(),
            expires_at: clock::now_ms() + KEY_LIFETIME_MS,
        }),
        tick: None,
        lineage: Lineage::default(),
        created_by: None,
        metered: workflow.organization.is_metered(),
        actor: None,
    }
}
