//! Asks services for their items, again and again, and starts a run for each that is new.
//!
//! What is new is told by what a trigger has dealt with; that an item starts one run, by a key under which its run is found,
//! written with the run. So whichever process asks, and whenever one dies, nothing starts twice.

use std::sync::Arc;

use engine::start::{Start, StartFrom};
use serde_json::{Value, json};

use super::Shared;
use super::answer::{Answer, Item};
use super::due::Worker;
use super::key::{KEY_LIFETIME_MS, service_key};
use super::known::Known;
use super::metrics::count;
use super::question::ask;
use crate::catalog::Catalog;
use crate::clock;
use crate::nodes::app_caller::AppCaller;
use crate::runtime::{GraphRef, Lineage, PlanError, StartRun, StartRunError, Trigger};
use crate::store::{DuePoll, IdempotencyKey, NextWake, Polled, StoreError, Topic, Trouble};

/// How long a trigger is left to the process that claimed it, in milliseconds. A service that takes longer is asked twice,
/// which harms nobody.
const CLAIM_MS: i64 = 10_000;
/// Before the rest of the items is tried again that could not start now, in milliseconds.
pub(super) const SOON_MS: i64 = 5_000;

/// The activity that tells of a service that does not answer as it should.
const FAILED: &str = "workflow.poll_failed";
/// The activity that tells of new items that may never be seen.
const INCOMPLETE: &str = "workflow.poll_incomplete";

/// What asking takes.
pub(super) struct Poller {
    pub(super) shared: Arc<Shared>,
    pub(super) catalog: Catalog,
    pub(super) caller: AppCaller,
}

impl Worker for Poller {
    type Due = DuePoll;
    const TOPIC: Topic = Topic::Polls;
    const AT_ONCE: usize = 32;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn next(&self) -> Result<Option<NextWake>, StoreError> {
        self.shared.store.next_poll().await
    }

    async fn claim(&self, limit: i64) -> Result<Vec<DuePoll>, StoreError> {
        self.shared.store.claim_polls(CLAIM_MS, limit).await
    }

    async fn deal_with(&self, due: DuePoll) {
        if let Err(error) = poll(self, &due).await {
            tracing::warn!(%error, workflow_id = due.workflow.id, node_id = due.node_id, "a trigger could not ask; it will be tried again");
        }
    }
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
    let known = due.known.as_deref().map(Known::read);
    let asked = ask(poller, due, &graph, known.as_ref()).await?;
    count(&shared.counters.polls_asked, 1);
    let mut polled = Polled {
        known: None,
        pause_ms: asked.pause_ms,
        trouble: None,
    };
    match asked.answer {
        Err(error) => {
            count(&shared.counters.polls_failed, 1);
            tracing::warn!(workflow_id = due.workflow.id, node_id = due.node_id, %error, "a trigger's service gave no items");
            let asked_ms = error.retry_after_ms.and_then(|ms| i64::try_from(ms).ok());
            polled.pause_ms = polled.pause_ms.max(asked_ms.unwrap_or(0));
            let reason = error.to_string();
            polled.trouble = Some(trouble(due, FAILED, &reason));
            shared.store.polled(due, &polled).await?;
        }
        Ok(answer) => {
            let known = deal(shared, due, known, &answer, &mut polled).await?.write();
            // What a long list leaves as it was is not written again.
            polled.known = Some(&*known).filter(|known| due.known.as_deref() != Some(known));
            shared.store.polled(due, &polled).await?;
        }
    }
    Ok(())
}

fn trouble<'a>(due: &DuePoll, action: &'a str, reason: &'a str) -> Trouble<'a> {
    Trouble {
        action,
        node_id: Some(due.node_id),
        reason,
    }
}

/// Deals with an answer: starts what is new, and gives what is known from then on.
async fn deal(
    shared: &Shared,
    due: &DuePoll,
    known: Option<Known>,
    answer: &Answer,
    polled: &mut Polled<'_>,
) -> Result<Known, StoreError> {
    let Some(mut known) = known else {
        return Ok(Known::first(answer));
    };
    let news = known.news(answer);
    if news.is_partial {
        count(&shared.counters.polls_incomplete, 1);
        tracing::warn!(
            workflow_id = due.workflow.id,
            node_id = due.node_id,
            items = answer.items.len(),
            "a trigger has not seen all of its service's list; new items may be missing"
        );
        let reason = "not all of the service's list was seen; new items may be missing";
        polled.trouble = Some(trouble(due, INCOMPLETE, reason));
    }
    let left = start_all(shared, due, &news.items).await?;
    if !left.is_empty() {
        polled.pause_ms = SOON_MS;
    }
    Ok(known.with(answer, left))
}

/// Starts the runs of new items, which are listed from the latest: runs begin with the earliest. Gives those that are left
/// because they cannot start now.
async fn start_all<'n, 'a>(
    shared: &Shared,
    due: &DuePoll,
    new: &'n [&'a Item],
) -> Result<&'n [&'a Item], StoreError> {
    for (before, item) in new.iter().enumerate().rev() {
        if !start(shared, due, item).await? {
            return Ok(new.get(..=before).unwrap_or_default());
        }
    }
    Ok(&[])
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
            key: service_key(&format!("item {} {}", due.node_id, item.id())),
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
