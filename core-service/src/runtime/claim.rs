//! Finding runs that nobody drives: those of lost processes, those released, those whose time has come, those that
//! somebody signalled. Notifications wake it; looking now and then is the safety net.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Shared;
use super::drive::LiveRun;
use super::lease::Held;
use super::metrics::count;
use super::request::{Ask, Request};
use crate::clock;
use crate::store::{ClaimCause, ClaimOne, ClaimedRun, CommitError, Run, StoreError, Subscription, Topic};

/// Signals read at once.
const SIGNALS: i64 = 1_000;
/// Expired keys and effects deleted in one transaction.
const EXPIRED_KEYS: i64 = 5_000;
/// How long what came of a signal is kept for whoever sent it, in milliseconds.
const KEEP_OUTCOMES_MS: i64 = 600_000;
/// How long what nodes wrote is remembered after its run has ended: one day.
const EFFECTS_KEPT_MS: i64 = 86_400_000;

/// The earliest alarm set since the database was last asked.
pub(super) struct Alarm(AtomicI64);

impl Default for Alarm {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }
}

impl Shared {
    /// A run was put to sleep until then.
    pub(super) fn alarm_set(&self, due_at_ms: Option<i64>) {
        let Some(due_at_ms) = due_at_ms else { return };
        if self.alarm.0.fetch_min(due_at_ms, Relaxed) > due_at_ms {
            self.claims.notify_one();
        }
    }
}

/// Claims until the process drains.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut subscription = shared.store.subscribe();
    let mut strays = HashSet::new();
    let mut tidy_at = Instant::now() + shared.config.tidy_interval;
    while !shared.is_draining() {
        let Some(held) = shared.lease.current() else {
            tokio::select! {
                () = shared.lease.granted_after(0) => continue,
                () = shared.drained() => return,
            }
        };
        let pause = match claim(&shared, &held).await {
            Ok(next_due) => {
                shared.recovered();
                pause(&shared, next_due)
            }
            Err(CommitError::LeaseLost) => {
                shared.lease_lost(held.generation);
                continue;
            }
            Err(CommitError::Store(error)) => {
                tracing::warn!(%error, "runs could not be claimed; it will be tried again");
                shared.config.poll_interval
            }
        };
        if Instant::now() >= tidy_at {
            strays = take_up_strays(&shared, &held, strays).await;
            tidy(&shared).await;
            tidy_at = Instant::now() + shared.config.tidy_interval;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = shared.claims.notified() => {}
            () = work_announced(&mut subscription) => {}
            () = shared.drained() => {}
        }
    }
}

fn pause(shared: &Shared, next_due: Option<i64>) -> Duration {
    let next_due = shared.alarm.0.load(Relaxed).min(next_due.unwrap_or(i64::MAX));
    let until_due = u64::try_from(next_due.saturating_sub(clock::now_ms())).unwrap_or(0);
    shared.config.poll_interval.min(Duration::from_millis(until_due))
}

async fn work_announced(subscription: &mut Subscription) {
    loop {
        match subscription.next().await {
            Some(notification) if !matches!(notification.topic, Topic::Ready | Topic::Signal) => {}
            _ => return,
        }
    }
}

/// Claims what there is and hands out signals. Gives when the next sleeping run is due.
async fn claim(shared: &Arc<Shared>, held: &Held) -> Result<Option<i64>, CommitError> {
    loop {
        let room = shared.config.live_runs.saturating_sub(shared.live.len());
        let limit = i64::try_from(room)
            .unwrap_or(i64::MAX)
            .min(shared.config.claim_chunk);
        if limit <= 0 || shared.is_draining() {
            break;
        }
        let claimed = shared
            .store
            .claim_runs(&held.lease, clock::now_ms(), limit)
            .await?;
        let was_full = i64::try_from(claimed.len()).unwrap_or(i64::MAX) >= limit;
        for run in claimed {
            take_up(shared, held, run);
        }
        if !was_full {
            break;
        }
    }
    hand_out_signals(shared, held).await?;
    shared.alarm.0.store(i64::MAX, Relaxed);
    Ok(shared.store.next_due().await?)
}

fn take_up(shared: &Arc<Shared>, held: &Held, claimed: ClaimedRun) {
    count(&shared.metrics.runs_claimed);
    if claimed.cause == ClaimCause::TakenOver {
        count(&shared.metrics.runs_taken_over);
    }
    let (shared, held, ClaimedRun { run, cause }) = (Arc::clone(shared), held.clone(), claimed);
    let run_id: Arc<str> = run.id.as_str().into();
    // At once when the seat is free, so that a signal finds it taken.
    let seat = shared.live.enter(&run_id);
    tokio::spawn(async move {
        match seat {
            Ok(seat) => LiveRun::take_up(shared, held, seat, run, Some(cause), None).await,
            Err(_taken) => take_up_next(shared, held, run, cause).await,
        }
    });
}

/// Takes up a run that a task of this process is about to leave, unless somebody else was quicker.
async fn take_up_next(shared: Arc<Shared>, held: Held, run: Run, cause: ClaimCause) {
    let run_id: Arc<str> = run.id.as_str().into();
    let seat = shared.live.enter_next(&run_id).await;
    match shared
        .store
        .claim_run(&held.lease, &run.organization_id, &run_id)
        .await
    {
        Ok(ClaimOne::Claimed(run)) if run.finished_at.is_none() => {
            LiveRun::take_up(shared, held, seat, *run, Some(cause), None).await;
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, run_id = run.id, "a claimed run could not be taken up; it will be looked for")
        }
    }
}

/// Puts signals into the mailboxes of runs that are here. Those of others stay, to be seen again.
async fn hand_out_signals(shared: &Shared, held: &Held) -> Result<(), StoreError> {
    for signal in shared
        .store
        .pending_signals(&held.lease.process_id, SIGNALS)
        .await?
    {
        let Some(mailbox) = shared.live.mailbox(&signal.run_id) else {
            continue;
        };
        let Some((ask, actor)) = Ask::from_signal(&signal.kind, &signal.payload) else {
            tracing::error!(kind = signal.kind, "a signal that cannot be read is ignored");
            continue;
        };
        let request = Request {
            ask,
            actor,
            reply: None,
            signal_id: Some(signal.id),
        };
        // A full mailbox is tried again with the next look.
        let _full = mailbox.try_send(request);
    }
    Ok(())
}

/// Runs that are this process's in the database and in nobody's hands here: taken up when they are found a second time.
/// There should be none; this keeps one that slipped through from being left for ever. Gives those found.
async fn take_up_strays(shared: &Arc<Shared>, held: &Held, before: HashSet<String>) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut after = String::new();
    loop {
        let page = shared
            .store
            .driven_runs(&held.lease.process_id, &after, shared.config.claim_chunk)
            .await;
        let Ok(page) = page else { return before };
        let Some(last) = page.last() else { return found };
        after.clone_from(&last.id);
        for run in page {
            let run_id: Arc<str> = run.id.as_str().into();
            if shared.live.mailbox(&run_id).is_some() {
                continue;
            }
            if before.contains(&run.id) {
                tracing::warn!(run_id = run.id, "a run that nobody drove is taken up");
                tokio::spawn(take_up_next(
                    Arc::clone(shared),
                    held.clone(),
                    run,
                    ClaimCause::Ready,
                ));
            } else {
                found.insert(run.id);
            }
        }
    }
}

async fn tidy(shared: &Shared) {
    let store = &shared.store;
    let done = async {
        store.delete_expired_keys(clock::now_ms(), EXPIRED_KEYS).await?;
        store
            .delete_effects(clock::now_ms() - EFFECTS_KEPT_MS, EXPIRED_KEYS)
            .await?;
        store
            .delete_late_signals(clock::now_ms() - KEEP_OUTCOMES_MS)
            .await?;
        store.delete_dead_processes().await
    };
    if let Err(error) = done.await {
        tracing::warn!(%error, "what is no longer needed could not be deleted; it will be tried again");
    }
}
