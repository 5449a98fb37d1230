//! What is asked of a run from outside: cancel it, answer a node, go on from a failed node, run it again.
//!
//! An answer means that what was asked is committed. The run may be in this process's memory, in nobody's, or in
//! another process's; for the last, a signal is left in the database, and the answer waits until that process has
//! committed. When it does not in time, the answer is [`RequestError::Unavailable`] although the signal stands.

use std::sync::Arc;
use std::time::Duration;

use engine::event::NodeKey;
use engine::failure::NodeError;
use engine::step::NodeAttempt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::drive::LiveRun;
use super::error::RequestError;
use super::record::Parent;
use super::take_up::Reason;
use crate::store::{Actor, ClaimOne, Signal, SignalDone, StoreError};

/// What a run is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    Cancel,
    Answer(Answer),
    RetryNode { node: i64, metered: bool },
    Rerun { metered: bool },
}

/// What becomes of a node that waits for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) waiting: Waiting,
    pub(super) by: By,
    pub(super) result: Result<Value, NodeError>,
}

/// A node that waits for an answer, in one of the attempts that its run makes at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The node and its iteration.
    pub key: NodeKey,
    /// Which attempt asked: no other takes the answer.
    pub asked: NodeAttempt,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    Person,
    Run,
}

/// The stored form of a request, besides its kind.
#[derive(Serialize, Deserialize)]
struct Stored {
    actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<StoredAnswer>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredAnswer {
    node: i64,
    iteration: String,
    asked: NodeAttempt,
    by: By,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    error: Option<StoredError>,
}

#[derive(Serialize, Deserialize)]
struct StoredError {
    code: String,
    message: String,
}

impl Answer {
    pub(super) fn by_person(waiting: Waiting, output: Value) -> Self {
        Self {
            waiting,
            by: By::Person,
            result: Ok(output),
        }
    }

    /// Nothing when the iteration is none.
    pub(super) fn by_run(parent: &Parent, result: Result<Value, NodeError>) -> Option<Self> {
        let key = NodeKey {
            node: parent.node,
            iteration: parent.iteration.parse().ok()?,
        };
        let asked = NodeAttempt {
            started_at_ms: parent.started_at_ms,
            number: parent.attempt,
        };
        Some(Self {
            waiting: Waiting { key, asked },
            by: By::Run,
            result,
        })
    }

    fn to_stored(&self) -> StoredAnswer {
        let (output, error) = match &self.result {
            Ok(output) => (output.clone(), None),
            Err(error) => {
                let (code, message) = (error.code.to_string(), error.message.clone());
                (Value::Null, Some(StoredError { code, message }))
            }
        };
        StoredAnswer {
            node: self.waiting.key.node,
            iteration: self.waiting.key.iteration.to_string(),
            asked: self.waiting.asked,
            by: self.by,
            output,
            error,
        }
    }

    fn from_stored(stored: StoredAnswer) -> Option<Self> {
        let key = NodeKey {
            node: stored.node,
            iteration: stored.iteration.parse().ok()?,
        };
        let asked = stored.asked;
        Some(Self {
            waiting: Waiting { key, asked },
            by: stored.by,
            result: match stored.error {
                Some(StoredError { code, message }) => Err(NodeError::new(code, message)),
                None => Ok(stored.output),
            },
        })
    }
}

const CANCEL: &str = "cancel";
const ANSWER: &str = "answer";

impl Ask {
    /// The signal that brings it to another process; nothing for what only ended runs are asked.
    fn to_signal(&self, actor: &Actor) -> Option<(&'static str, Vec<u8>)> {
        let (kind, answer) = match self {
            Self::Cancel => (CANCEL, None),
            Self::Answer(answer) => (ANSWER, Some(answer.to_stored())),
            Self::RetryNode { .. } | Self::Rerun { .. } => return None,
        };
        let actor = actor.clone();
        Some((kind, serde_json::to_vec(&Stored { actor, answer }).ok()?))
    }

    /// What a signal asks for, and who does; nothing when it cannot be read.
    fn from_signal(kind: &str, payload: &[u8]) -> Option<(Self, Actor)> {
        let Stored { actor, answer } = serde_json::from_slice(payload).ok()?;
        let ask = match (kind, answer) {
            (CANCEL, None) => Self::Cancel,
            (ANSWER, Some(stored)) => Self::Answer(Answer::from_stored(stored)?),
            _ => return None,
        };
        Some((ask, actor))
    }

    /// What the activity feed calls it; nothing when it is between runs alone.
    pub(super) fn action(&self) -> Option<&'static str> {
        match self {
            Self::Cancel => Some("run.cancelled"),
            Self::Answer(answer) if answer.by == By::Run => None,
            Self::Answer(_) => Some("run.node_answered"),
            Self::RetryNode { .. } => Some("run.node_retried"),
            Self::Rerun { .. } => Some("run.rerun"),
        }
    }
}

/// What was done, of what a run was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The run went on past the node that was answered.
    pub resumed: bool,
    /// The run has ended by it.
    pub ended: bool,
}

/// The answer to a request.
pub(super) type Answered = Result<Done, RequestError>;
/// Where it is sent.
pub(super) type Reply = oneshot::Sender<Answered>;

/// A request in a run's mailbox.
pub(super) struct Request {
    pub(super) ask: Ask,
    /// Who asks.
    pub(super) actor: Actor,
    /// Nobody waits for the answer to a signal.
    pub(super) reply: Option<Reply>,
    /// The signal that brought it.
    pub(super) signal_id: Option<String>,
}

impl Request {
    /// What a signal asks; when it cannot be read, what it is told.
    pub(super) fn from_signal(signal: Signal) -> Result<Self, SignalDone> {
        let Some((ask, actor)) = Ask::from_signal(&signal.kind, &signal.payload) else {
            tracing::error!(kind = signal.kind, "a signal cannot be read");
            return Err(SignalDone {
                id: signal.id,
                outcome: outcome(&Err(RequestError::Internal)),
            });
        };
        Ok(Self {
            ask,
            actor,
            reply: None,
            signal_id: Some(signal.id),
        })
    }

    fn new(ask: Ask, actor: Actor) -> (Self, oneshot::Receiver<Answered>) {
        let (reply, answer) = oneshot::channel();
        (
            Self {
                ask,
                actor,
                reply: Some(reply),
                signal_id: None,
            },
            answer,
        )
    }
}

/// How often a run that another process drives is looked at.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long to wait before asking for a run that just changed hands; twice as long each time, up to the limit.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A request on its way.
struct Asking {
    shared: Arc<Shared>,
    organization_id: String,
    run_id: Arc<str>,
    ask: Ask,
    actor: Actor,
    /// Whether a signal has to be acted upon before the answer; otherwise it is enough that it is durable.
    waits: bool,
    deadline: Instant,
}

impl Shared {
    /// Has a request carried out, wherever the run is.
    pub(super) async fn ask(
        self: &Arc<Self>,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
        ask: Ask,
    ) -> Answered {
        self.send(actor, organization_id, run_id, ask, true).await
    }

    /// Has a request of the service's own carried out. Of a run of another process it is enough that the request cannot
    /// be lost any more.
    pub(super) async fn tell(self: &Arc<Self>, organization_id: &str, run_id: &str, ask: Ask) -> Answered {
        self.send(&Actor::default(), organization_id, run_id, ask, false)
            .await
    }

    async fn send(
        self: &Arc<Self>,
        actor: &Actor,
        organization_id: &str,
        run_id: &str,
        ask: Ask,
        waits: bool,
    ) -> Answered {
        let asking = Asking {
            shared: Arc::clone(self),
            organization_id: organization_id.to_owned(),
            run_id: run_id.into(),
            ask,
            actor: actor.clone(),
            waits,
            deadline: Instant::now() + self.config.remote_patience,
        };
        // A run that was claimed must be driven, even when the caller goes away meanwhile.
        tokio::spawn(asking.run())
            .await
            .unwrap_or(Err(RequestError::Internal))
    }
}

impl Asking {
    async fn run(self) -> Answered {
        let shared = &self.shared;
        let run = shared.store.run(&self.organization_id, &self.run_id).await?;
        if self.ask == Ask::Cancel && run.status.is_terminal() {
            return Err(RequestError::Terminal);
        }
        let mut pause = TRY_AGAIN_AFTER;
        while Instant::now() < self.deadline {
            if let Some(answer) = self.ask_live().await {
                return answer;
            }
            if shared.is_draining() {
                break;
            }
            let Some(held) = shared.lease.current() else { break };
            match shared
                .store
                .claim_run(&held.lease, &self.organization_id, &self.run_id)
                .await?
            {
                ClaimOne::DrivenElsewhere => return self.ask_other_process().await,
                ClaimOne::Claimed(run) => {
                    // Taken when a task of this process has the run, or is about to leave it.
                    if let Ok(seat) = shared.live.enter(&self.run_id) {
                        let (request, answer) = self.request();
                        tokio::spawn(LiveRun::take_up(
                            Arc::clone(shared),
                            held,
                            seat,
                            *run,
                            Reason::Asked(Box::new(request)),
                        ));
                        if let Some(answer) = self.answered(answer).await {
                            return answer;
                        }
                    }
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(RequestError::Unavailable)
    }

    /// Asks the task that drives the run here; nothing when there is none, or it left without an answer.
    async fn ask_live(&self) -> Option<Answered> {
        let mailbox = self.shared.live.mailbox(&self.run_id)?;
        let (request, answer) = self.request();
        match timeout_at(self.deadline, mailbox.send(request)).await {
            Ok(Ok(())) => self.answered(answer).await,
            Ok(Err(_left)) => None,
            Err(_elapsed) => Some(Err(RequestError::Unavailable)),
        }
    }

    fn request(&self) -> (Request, oneshot::Receiver<Answered>) {
        Request::new(self.ask.clone(), self.actor.clone())
    }

    async fn answered(&self, answer: oneshot::Receiver<Answered>) -> Option<Answered> {
        match timeout_at(self.deadline, answer).await {
            Ok(answer) => answer.ok(),
            Err(_elapsed) => Some(Err(RequestError::Unavailable)),
        }
    }

    /// Leaves a signal and waits for what came of it.
    async fn ask_other_process(&self) -> Answered {
        let Some((kind, payload)) = self.ask.to_signal(&self.actor) else {
            return Err(RequestError::NotTerminal);
        };
        let store = &self.shared.store;
        let sent = store
            .send_signal(&self.organization_id, &self.run_id, kind, &payload)
            .await?;
        let Some(signal_id) = sent else {
            return Err(RequestError::Terminal);
        };
        if !self.waits {
            return Ok(Done::default());
        }
        while Instant::now() < self.deadline {
            // Read first: whoever ends the run says in the same commit what came of the signals it acted upon.
            let run = store.run(&self.organization_id, &self.run_id).await;
            match store.take_signal_outcome(&signal_id).await {
                Ok(Some(outcome)) => return parse_outcome(&outcome),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "what came of a signal is not known yet"),
            }
            match run {
                Ok(run) if run.status.is_terminal() => return Err(RequestError::Terminal),
                Err(StoreError::NotFound(_)) => return Err(RequestError::NotFound),
                Ok(_) | Err(_) => sleep(LOOK_AGAIN_AFTER).await,
            }
        }
        Err(RequestError::Unavailable)
    }
}

/// The stored form of an answer to a signal.
pub(super) fn outcome(answer: &Answered) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

fn parse_outcome(outcome: &[u8]) -> Answered {
    serde_json::from_slice(outcome).unwrap_or(Err(RequestError::Internal))
}
