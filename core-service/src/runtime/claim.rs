//! Finding runs that nobody drives: those of lost processes, those released, those whose time has come, those that
//! somebody signalled. Notifications wake it; looking now and then is the safety net.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep};

use super::Shared;
use super::backlog::Backlog;
use super::drive::LiveRun;
use super::lease::Held;
use super::limits::{Counted, for_claims};
use super::live::Seat;
use super::metrics::count;
use super::request::Request;
use super::take_up::{Admission, Claimed, Reason};
use super::trial;
use crate::clock;
use crate::store::{
    ClaimCause, ClaimOne, ClaimedRun, CommitError, Due, Run, Segment, StoreError, Subscription, Topic,
};

/// Claimed runs whose first write is still to come, at most. Looking for runs that are due passes over these each time,
/// and each takes memory, so a million runs that are due at one instant are claimed no faster than they go on.
const TAKEN_UP_AT_ONCE: usize = 256;
/// The longest journal that is read together with those of other claimed runs, in bytes.
const SHORT_JOURNAL: i64 = 16 * 1024;
/// Signals read at once.
pub(super) const SIGNALS: i64 = 1_000;
/// How long what came of a signal is kept for whoever sent it, in milliseconds.
const KEEP_OUTCOMES_MS: i64 = 600_000;

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
    let mut backlog = Backlog::default();
    let mut strays = HashSet::new();
    let mut tidy_at = Instant::now() + shared.config.tidy_interval;
    while !shared.is_draining() {
        let Some(held) = shared.lease.current() else {
            tokio::select! {
                () = shared.lease.granted_after(0) => continue,
                () = shared.drained() => return,
            }
        };
        // From before the look: what leaves meanwhile makes room, too.
        let left = shared.live.left();
        let (pause, is_full) = match claim(&shared, &held, &mut backlog).await {
            Ok(found) => {
                shared.recovered();
                (pause(&shared, found), found == Found::NoRoom)
            }
            Err(CommitError::LeaseLost) => {
                shared.lease_lost(held.generation);
                continue;
            }
            Err(CommitError::Store(error)) => {
                tracing::warn!(%error, "runs could not be claimed; it will be tried again");
                // Some may have been, and nobody here knows.
                tidy_at = Instant::now();
                (shared.config.poll_interval, false)
            }
        };
        if Instant::now() >= tidy_at {
            let found = take_up_strays(&shared, &held, &strays).await;
            tidy(&shared).await;
            // Those that were found are soon looked for again, and so is everything when the database did not answer.
            let is_quiet = found.as_ref().is_some_and(HashSet::is_empty);
            tidy_at = Instant::now()
                + match is_quiet {
                    true => shared.config.tidy_interval,
                    false => shared.config.poll_interval,
                };
            strays = found.unwrap_or(strays);
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = left, if is_full => {}
            () = shared.claims.notified() => {}
            () = work_announced(&mut subscription) => {}
            () = shared.drained() => {}
        }
    }
}

/// What a look leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Runs that sleep until then, if any.
    Sleeping(Option<i64>),
    /// Runs that could go on if there was room for them.
    NoRoom,
}

fn pause(shared: &Shared, found: Found) -> Duration {
    let Found::Sleeping(next_due) = found else {
        return shared.config.poll_interval;
    };
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

/// So many, as the database counts.
pub(super) fn amount(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Claims what there is and hands out signals.
async fn claim(shared: &Arc<Shared>, held: &Held, backlog: &mut Backlog) -> Result<Found, CommitError> {
    let has_room = claim_runs(shared, held, backlog).await?;
    try_suspect(shared, held).await?;
    hand_out_signals(shared, held).await?;
    shared.alarm.0.store(i64::MAX, Relaxed);
    Ok(match has_room {
        true => Found::Sleeping(shared.store.next_due().await?),
        false => Found::NoRoom,
    })
}

/// Claims runs as long as there are some. Says whether there was room for all.
async fn claim_runs(shared: &Arc<Shared>, held: &Held, backlog: &mut Backlog) -> Result<bool, CommitError> {
    while !shared.is_draining() {
        let room = for_claims(shared.config.live_runs).saturating_sub(shared.live.len());
        let limit = amount(room.min(TAKEN_UP_AT_ONCE)).min(shared.config.claim_chunk);
        let now = clock::now_ms();
        if limit == 0 {
            return Ok(false);
        }
        let due = backlog.next(shared, now, limit).await?;
        // What nobody drives is claimed even when all that is due has no room.
        let has_room = due.is_some();
        let due = due.unwrap_or_else(|| Due::InTurn(Vec::new()));
        let wanted = u32::try_from(limit).unwrap_or(u32::MAX);
        let places = Arc::clone(&shared.take_ups).acquire_many_owned(wanted).await;
        let Ok(mut places) = places else { break };
        let claimed = shared.store.claim_runs(&held.lease, now, limit, &due).await?;
        let is_all = !has_room || !backlog.note(&due, limit, &claimed);
        // Seats first: once a run has one, nobody else writes to the journal that is read for it.
        let mut seated: Vec<Seated> = claimed
            .into_iter()
            .map(|claimed| {
                let admission = places.split(1).map_or(Admission::Free, Admission::Place);
                Seated::of(shared, claimed, admission)
            })
            .collect();
        read_short_journals(shared, &mut seated).await;
        for seated in seated {
            seated.take_up(shared, held);
        }
        if is_all {
            return Ok(has_room);
        }
    }
    Ok(true)
}

/// Reads the journals of seated runs at once. A long one is left for its run to read, and so are all of them when the
/// database does not answer.
async fn read_short_journals(shared: &Shared, seated: &mut [Seated]) {
    let has_seat = |seated: &&Seated| seated.seat.is_ok();
    let run_ids: Vec<&str> = seated
        .iter()
        .filter(has_seat)
        .map(|one| one.run.id.as_str())
        .collect();
    if run_ids.is_empty() {
        return;
    }
    let journals = shared.store.short_journals(&run_ids, SHORT_JOURNAL).await;
    let mut journals = journals.unwrap_or_default();
    for seated in seated {
        seated.journal = journals.remove(&seated.run.id);
    }
}

/// Places for runs that are being taken up.
pub(super) fn take_ups() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(TAKEN_UP_AT_ONCE))
}

/// Takes up one of those runs that processes may have died of, when none is being tried.
async fn try_suspect(shared: &Arc<Shared>, held: &Held) -> Result<(), CommitError> {
    let Ok(place) = Arc::clone(&shared.trial).try_acquire_owned() else {
        return Ok(());
    };
    if shared.is_draining() || !shared.store.has_suspects().await? {
        return Ok(());
    }
    if let Some(claimed) = shared.store.claim_suspect(&held.lease).await? {
        let on_trial = trial::begin(shared, held, claimed.run.id.clone(), place);
        Seated::of(shared, claimed, Admission::Trial(on_trial)).take_up(shared, held);
    }
    Ok(())
}

/// A claimed run and its seat, or the mailbox of a task that is about to leave it.
struct Seated {
    run: Run,
    cause: ClaimCause,
    admission: Admission,
    counted: Counted,
    seat: Result<Seat, mpsc::Sender<Request>>,
    /// Read while it had the seat.
    journal: Option<Vec<Segment>>,
}

impl Seated {
    /// At once, so that a signal finds the seat taken.
    fn of(shared: &Shared, claimed: ClaimedRun, admission: Admission) -> Self {
        count(&shared.metrics.runs_claimed);
        if claimed.cause == ClaimCause::TakenOver {
            count(&shared.metrics.runs_taken_over);
        }
        let ClaimedRun { run, cause } = claimed;
        let counted = shared.limits.resume_live(&run.organization_id.as_str().into());
        let seat = shared.live.enter(&run.id.as_str().into());
        Self {
            run,
            cause,
            admission,
            counted,
            seat,
            journal: None,
        }
    }

    fn take_up(self, shared: &Arc<Shared>, held: &Held) {
        let (shared, held) = (Arc::clone(shared), held.clone());
        let Self {
            run,
            cause,
            admission,
            counted,
            seat,
            journal,
        } = self;
        tokio::spawn(async move {
            match seat {
                Ok(seat) => {
                    let claimed = Claimed {
                        cause,
                        admission,
                        counted,
                        journal,
                    };
                    LiveRun::take_up(shared, held, seat, run, Reason::Claimed(claimed)).await;
                }
                Err(_taken) => {
                    // Whoever is tried stays so; a place goes to others while this one waits for its seat.
                    let admission = admission.without_place();
                    take_up_next(shared, held, run, cause, admission).await;
                }
            }
        });
    }
}

/// Takes up a run that a task of this process is about to leave, unless somebody else was quicker.
async fn take_up_next(shared: Arc<Shared>, held: Held, run: Run, cause: ClaimCause, admission: Admission) {
    let run_id: Arc<str> = run.id.as_str().into();
    let seat = shared.live.enter_next(&run_id).await;
    match shared
        .store
        .claim_run(&held.lease, &run.organization_id, &run_id)
        .await
    {
        Ok(ClaimOne::Claimed(run)) if run.finished_at.is_none() => {
            let claimed = Claimed {
                cause,
                admission,
                counted: shared.limits.resume_live(&run.organization_id.as_str().into()),
                journal: None,
            };
            LiveRun::take_up(shared, held, seat, *run, Reason::Claimed(claimed)).await;
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
        // One that cannot be read is refused when the run is taken up again: it is not put to sleep past it.
        if let Ok(request) = Request::from_signal(signal) {
            // A full mailbox is tried again with the next look.
            let _full = mailbox.try_send(request);
        }
    }
    Ok(())
}

/// Runs that are this process's in the database and in nobody's hands here: taken up when they are found a second time.
/// There are some when the answer to a claim was lost; this keeps one that slipped through from being left for ever. Gives
/// those found, or nothing when the database does not answer.
async fn take_up_strays(
    shared: &Arc<Shared>,
    held: &Held,
    before: &HashSet<String>,
) -> Option<HashSet<String>> {
    let mut found = HashSet::new();
    let mut after = String::new();
    loop {
        let page = shared
            .store
            .driven_runs(&held.lease.process_id, &after, shared.config.claim_chunk)
            .await;
        let page = page.ok()?;
        let Some(last) = page.last() else {
            return Some(found);
        };
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
                    Admission::Free,
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
        store
            .delete_late_signals(clock::now_ms() - KEEP_OUTCOMES_MS)
            .await?;
        store.delete_dead_processes().await
    };
    if let Err(error) = done.await {
        tracing::warn!(%error, "what is no longer needed could not be deleted; it will be tried again");
    }
}
