//! What is asked of a run from outside: cancel it, go on from a failed node, run it again.
//!
//! An answer means that what was asked is committed. The run may be in this process's memory, in nobody's, or in
//! another process's; for the last, a signal is left in the database, and the answer waits until that process has
//! committed. When it does not in time, the answer is [`RequestError::Unavailable`] although the signal stands.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::drive::LiveRun;
use super::error::RequestError;
use crate::store::{ClaimOne, RunStatus, StoreError};

/// What a run is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Cancel,
    RetryNode(i64),
    Rerun,
}

/// The word of a cancel among signals.
pub(super) const CANCEL: &str = "cancel";

/// A request in a run's mailbox.
pub(super) struct Request {
    pub(super) ask: Ask,
    /// Nobody waits for the answer to a signal.
    pub(super) reply: Option<oneshot::Sender<Result<(), RequestError>>>,
    /// The signal that brought it.
    pub(super) signal_id: Option<String>,
}

impl Request {
    fn new(ask: Ask) -> (Self, oneshot::Receiver<Result<(), RequestError>>) {
        let (reply, answer) = oneshot::channel();
        (
            Self {
                ask,
                reply: Some(reply),
                signal_id: None,
            },
            answer,
        )
    }
}

/// How often a run that another process drives is looked at.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long to wait before asking for a run that just changed hands.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);

impl Shared {
    /// Has a request carried out, wherever the run is.
    pub(super) async fn ask(
        self: &Arc<Self>,
        organization_id: &str,
        run_id: &str,
        ask: Ask,
    ) -> Result<(), RequestError> {
        let deadline = Instant::now() + self.config.remote_patience;
        let run = self.store.run(organization_id, run_id).await?;
        if ask == Ask::Cancel && run.status.is_terminal() {
            return Err(RequestError::Terminal);
        }
        while Instant::now() < deadline {
            if let Some(answer) = self.ask_live(run_id, ask, deadline).await {
                return answer;
            }
            let held = self.lease.current().ok_or(RequestError::Unavailable)?;
            if self.is_draining() {
                return Err(RequestError::Unavailable);
            }
            // What is claimed must be driven, even when the caller goes away meanwhile.
            let (shared, organization_id) = (Arc::clone(self), organization_id.to_owned());
            let run_id: Arc<str> = run_id.into();
            let (request, answer) = Request::new(ask);
            let claiming = tokio::spawn(async move {
                let claimed = shared
                    .store
                    .claim_run(&held.lease, &organization_id, &run_id)
                    .await?;
                let ClaimOne::Claimed(run) = claimed else {
                    return Ok(Some(organization_id));
                };
                if let Ok(seat) = shared.live.enter(&run_id) {
                    tokio::spawn(LiveRun::take_up(shared, held, seat, *run, None, Some(request)));
                }
                Ok::<_, RequestError>(None)
            });
            match claiming.await.map_err(|_| RequestError::Internal)?? {
                Some(organization_id) => {
                    let run_id = run.id.clone();
                    return self.ask_remote(&organization_id, &run_id, ask, deadline).await;
                }
                // Without an answer the run was taken up by somebody else meanwhile.
                None => {
                    if let Ok(answer) = timeout_at(deadline, answer)
                        .await
                        .map_err(|_| RequestError::Unavailable)?
                    {
                        return answer;
                    }
                }
            }
            sleep(TRY_AGAIN_AFTER).await;
        }
        Err(RequestError::Unavailable)
    }

    /// Asks the task that drives the run here; nothing when there is none, or it left without an answer.
    async fn ask_live(&self, run_id: &str, ask: Ask, deadline: Instant) -> Option<Result<(), RequestError>> {
        let mailbox = self.live.mailbox(run_id)?;
        let (request, answer) = Request::new(ask);
        match timeout_at(deadline, deliver(mailbox, request, answer)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Some(Err(RequestError::Unavailable)),
        }
    }

    async fn ask_remote(
        &self,
        organization_id: &str,
        run_id: &str,
        ask: Ask,
        deadline: Instant,
    ) -> Result<(), RequestError> {
        if ask != Ask::Cancel {
            return Err(RequestError::NotTerminal);
        }
        let sent = self
            .store
            .send_signal(organization_id, run_id, CANCEL, &[])
            .await?;
        if sent.is_none() {
            return Err(RequestError::Terminal);
        }
        while Instant::now() < deadline {
            match self.store.run(organization_id, run_id).await {
                Ok(run) if run.status == RunStatus::Cancelled => return Ok(()),
                Ok(run) if run.status.is_terminal() => return Err(RequestError::Terminal),
                Err(StoreError::NotFound(_)) => return Err(RequestError::NotFound),
                Ok(_) | Err(_) => sleep(LOOK_AGAIN_AFTER).await,
            }
        }
        Err(RequestError::Unavailable)
    }
}

async fn deliver(
    mailbox: mpsc::Sender<Request>,
    request: Request,
    answer: oneshot::Receiver<Result<(), RequestError>>,
) -> Option<Result<(), RequestError>> {
    mailbox.send(request).await.ok()?;
    answer.await.ok()
}
