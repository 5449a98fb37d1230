//! Watching a run: each change of it and of its nodes once, in order, from the first one on.
//!
//! The changes are read from the journal, so a late reader, one that comes back, and one on another node see the same.
//! An event's id is the attempt and the number of the change in it; counting them again finds the place to go on.

use std::sync::Arc;

use contract::json::Words as _;
use contract::scope::WorkflowRead;
use contract::v1::watch_run_response::Change;
use contract::v1::{self, WatchRunResponse};
use engine::event::{Event, EventBody};
use engine::plan::Plan;
use engine::state::{RunState, RunStatus};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use super::{Runs, instant, report};
use crate::auth::{Authorized, Call, KeyHolder};
use crate::error::{Error, Result};
use crate::services::{BoxStream, Services};
use crate::store::Run;

/// Changes that wait for a slow reader before reading goes on. Each may carry an output of some MiB.
const BUFFER: usize = 8;

type Sender = mpsc::Sender<Result<WatchRunResponse, Status>>;

impl Runs {
    pub(super) async fn watch_run(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::WatchRunRequest,
    ) -> Result<Response<BoxStream<WatchRunResponse>>> {
        let after = request
            .last_event_id
            .as_deref()
            .map_or(Ok(Place::default()), Place::parse)?;
        let organization_id = caller.organization_id();
        let run = self.services.store.run(organization_id, &request.id).await?;
        let plan = self
            .services
            .runtime
            .plan(organization_id, &run.graph_hash)
            .await
            .map_err(Error::internal)?;
        let reader = Reader {
            services: self.services.clone(),
            call: Call::clone(&caller),
            run_id: request.id,
            state: RunState::new(Arc::clone(&plan)),
            plan,
            after,
            place: Place::default(),
            next_seq: 0,
            credits_before: 0,
            told: None,
        };
        let (sender, receiver) = mpsc::channel(BUFFER);
        tokio::spawn(reader.read(sender));
        let stream: BoxStream<WatchRunResponse> = Box::pin(ReceiverStream::new(receiver));
        Ok(Response::new(stream))
    }
}

/// The place of a change: the attempt, and how many changes of it came before and with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    attempt: i64,
    number: u64,
}

impl Place {
    fn parse(id: &str) -> Result<Self> {
        let parts = id.split_once('-');
        let place = parts.and_then(|(attempt, number)| {
            Some(Self {
                attempt: attempt.parse().ok()?,
                number: number.parse().ok()?,
            })
        });
        place.ok_or_else(|| Error::invalid("lastEventId", "is not the id of an event of this run"))
    }

    fn id(self) -> String {
        format!("{}-{}", self.attempt, self.number)
    }
}

/// Reads a run's journal and tells what changes.
struct Reader {
    services: Services,
    /// Who reads.
    call: Call<KeyHolder>,
    run_id: String,
    plan: Arc<Plan>,
    state: RunState,
    /// What the reader has seen before.
    after: Place,
    place: Place,
    next_seq: i64,
    /// Credits of the attempts before this one.
    credits_before: u64,
    /// The status that was told last.
    told: Option<RunStatus>,
}

/// Nobody reads any more, or reading failed and the reader was told.
struct Over;

impl Reader {
    async fn read(mut self, sender: Sender) {
        // Made first, so that no change between reading and waiting is missed.
        let mut watch = self.services.runtime.watch(&self.run_id);
        loop {
            match self.catch_up(&sender).await {
                Ok(true) | Err(Over) => return,
                Ok(false) => {}
            }
            tokio::select! {
                () = watch.changed() => {}
                () = sender.closed() => return,
            }
        }
    }

    /// Tells what is durable by now. Gives whether that was the last.
    async fn catch_up(&mut self, sender: &Sender) -> Result<bool, Over> {
        if let Err(error) = self.services.gate.admit_further(&self.call).await {
            return Err(fail(sender, error).await);
        }
        let organization_id = self.call.organization_id().to_owned();
        let run = match self.services.store.run(&organization_id, &self.run_id).await {
            Ok(run) => run,
            Err(error) => return Err(fail(sender, error.into()).await),
        };
        loop {
            if self.place.attempt == 0 {
                self.begin_attempt(1);
            }
            let attempt = self.place.attempt;
            let events = self
                .services
                .runtime
                .events(&organization_id, &self.run_id, attempt, self.next_seq)
                .await;
            let events = match events {
                Ok(events) => events,
                Err(error) => return Err(fail(sender, error.into()).await),
            };
            self.next_seq = events.next_seq;
            for event in events.segments.into_iter().flatten() {
                self.take(&event, &run, sender).await?;
            }
            if attempt >= run.attempt_number {
                return Ok(run.finished_at.is_some() && self.state.finished().is_some());
            }
            self.credits_before += self.state.credits_used();
            self.begin_attempt(attempt + 1);
        }
    }

    fn begin_attempt(&mut self, attempt: i64) {
        self.state = RunState::new(Arc::clone(&self.plan));
        self.place = Place { attempt, number: 0 };
        self.next_seq = 0;
        self.told = None;
    }

    /// Folds an event and tells what it changed.
    async fn take(&mut self, event: &Event, run: &Run, sender: &Sender) -> Result<(), Over> {
        if let Err(error) = self.state.apply(event) {
            return Err(fail(sender, Error::internal(error)).await);
        }
        if let Some(node) = event.body.node().and_then(|key| self.state.reached(key)) {
            let change = match report::run_node(&node) {
                Ok(node) => Change::Node(node),
                Err(error) => return Err(fail(sender, error).await),
            };
            self.tell(change, sender).await?;
        }
        let status = self.state.status();
        // A node is given up only together with something else: what that makes of the run comes next.
        let is_between = matches!(event.body, EventBody::NodeCancelled { .. });
        if self.told != Some(status) && !is_between {
            self.told = Some(status);
            self.tell(Change::Run(self.summary(run)), sender).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, change: Change, sender: &Sender) -> Result<(), Over> {
        self.place.number += 1;
        if self.place <= self.after {
            return Ok(());
        }
        let message = WatchRunResponse {
            event_id: self.place.id(),
            change: Some(change),
        };
        sender.send(Ok(message)).await.map_err(|_| Over)
    }

    /// The run as it was at this place of its journal.
    fn summary(&self, run: &Run) -> v1::RunSummary {
        v1::RunSummary {
            id: run.id.clone(),
            workflow_id: run.workflow_id.clone(),
            status: v1::RunStatus::from_word(self.state.status().as_str()).unwrap_or_default(),
            created_at: Some(instant(run.created_at)),
            finished_at: self.state.finished().map(|finished| instant(finished.at_ms)),
            credits_used: (self.credits_before + self.state.credits_used()) as f64,
        }
    }
}

/// Tells the reader that reading failed.
async fn fail(sender: &Sender, error: Error) -> Over {
    // When it is gone, nobody needs to be told.
    let _gone = sender.send(Err(error.into_status())).await;
    Over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_their_ids() {
        let place = Place {
            attempt: 2,
            number: 17,
        };
        assert_eq!(Place::parse(&place.id()).ok(), Some(place));
        for wrong in ["", "2", "-", "2-", "a-1", "2--1"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }
}
