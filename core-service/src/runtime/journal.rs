//! The journal writer: one task gathers what all runs have to say and commits it as one transaction.
//!
//! It takes everything that waits and commits it at once, so a lone write never waits for a timer, and while one batch
//! is being committed the next one gathers. When more waits than a batch takes, organizations take turns. A write that
//! the database refuses does not take its batch with it.
//!
//! Whoever writes waits for the outcome, except that a start's caller may go away; its write keeps the start's turn. So
//! no more writes wait than there are starts under way and live runs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::Shared;
use super::config::RuntimeConfig;
use super::lease::Held;
use super::metrics::count;
use crate::store::{
    BatchOutcome, ChangeOutcome, CommitError, CreateOutcome, NewRun, Payload, RunBatch, RunChange, StoreError,
};
use crate::turns::Turn;

/// What a run has to say.
pub(super) enum Write {
    Create(Box<NewRun>),
    Change(Box<RunChange>),
}

/// A write and the payloads that its segments refer to.
pub(super) struct Record {
    pub(super) organization_id: Arc<str>,
    pub(super) write: Write,
    pub(super) payloads: Vec<Payload>,
}

/// A write that was not committed.
pub(super) enum WriteError {
    /// The lease of the writer's generation is over; the run may be another process's.
    LeaseLost,
    /// The database failed. Whether the write was committed is not known; here it is to be written again.
    Unknown(Record),
    /// The database refused this write; nothing of it was written.
    Refused(Refusal),
}

/// Why the database refused a write; the log says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its rows are there already.
    Duplicate,
    /// A defect.
    Defect,
}

pub(super) struct Entry {
    generation: u64,
    record: Record,
    reply: Reply,
}

/// Where the outcome of a write is sent. Nobody may be waiting any more; the write stands all the same.
enum Reply {
    Create(Outcome<CreateOutcome>, Turn),
    Change(Outcome<ChangeOutcome>),
}

type Outcome<T> = oneshot::Sender<Result<T, WriteError>>;

/// Where writes are handed in.
pub(super) struct Journal {
    queue: mpsc::Sender<Entry>,
    queued: AtomicUsize,
}

impl Journal {
    /// With a place for everybody who may write.
    pub(super) fn new(config: &RuntimeConfig) -> (Self, mpsc::Receiver<Entry>) {
        let (queue, entries) = mpsc::channel((config.starts + config.live_runs).max(1));
        let queued = AtomicUsize::new(0);
        (Self { queue, queued }, entries)
    }

    /// Writes that wait.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Relaxed)
    }

    /// Commits a run's start, whose turn ends with that.
    pub(super) async fn create(
        &self,
        generation: u64,
        record: Record,
        turn: Turn,
    ) -> Result<CreateOutcome, WriteError> {
        let (reply, outcome) = oneshot::channel();
        let entry = Entry {
            generation,
            record,
            reply: Reply::Create(reply, turn),
        };
        self.hand_in(entry).await?;
        outcome.await.unwrap_or(Err(WriteError::LeaseLost))
    }

    /// Commits what happened in a run.
    pub(super) async fn change(&self, generation: u64, record: Record) -> Result<ChangeOutcome, WriteError> {
        let (reply, outcome) = oneshot::channel();
        let entry = Entry {
            generation,
            record,
            reply: Reply::Change(reply),
        };
        self.hand_in(entry).await?;
        outcome.await.unwrap_or(Err(WriteError::LeaseLost))
    }

    async fn hand_in(&self, entry: Entry) -> Result<(), WriteError> {
        let place = self.queue.reserve().await.map_err(|_| WriteError::LeaseLost)?;
        self.queued.fetch_add(1, Relaxed);
        place.send(entry);
        Ok(())
    }
}

impl Entry {
    fn refuse(self, error: &StoreError) {
        let error = match error {
            StoreError::Duplicate(_) => Refusal::Duplicate,
            other => {
                tracing::error!(error = ?other, "the database refused a write");
                Refusal::Defect
            }
        };
        self.reply.fail(WriteError::Refused(error));
    }

    /// The outcome is unknown: whoever wrote it decides.
    fn give_back(self) {
        self.reply.fail(WriteError::Unknown(self.record));
    }

    fn bytes(&self) -> usize {
        let (segments, further) = match &self.record.write {
            Write::Create(run) => (&run.segments, run.start_input.len()),
            Write::Change(change) => (&change.segments, 0),
        };
        let payloads: usize = self
            .record
            .payloads
            .iter()
            .map(|payload| payload.payload.len())
            .sum();
        segments.iter().map(|segment| segment.events.len()).sum::<usize>() + payloads + further
    }
}

/// What waits to be written, in a line for each organization.
#[derive(Default)]
struct Lines {
    by_organization: HashMap<Arc<str>, VecDeque<Entry>>,
    /// Organizations with something in their line, in rotation.
    next: VecDeque<Arc<str>>,
}

impl Lines {
    fn push(&mut self, entry: Entry) {
        let organization_id = &entry.record.organization_id;
        match self.by_organization.get_mut(organization_id) {
            Some(line) => line.push_back(entry),
            None => {
                self.next.push_back(Arc::clone(organization_id));
                self.by_organization
                    .insert(Arc::clone(organization_id), VecDeque::from([entry]));
            }
        }
    }

    /// The first of the line whose turn it is.
    fn pop(&mut self) -> Option<Entry> {
        let organization_id = self.next.pop_front()?;
        let line = self.by_organization.get_mut(&organization_id)?;
        let entry = line.pop_front();
        match line.is_empty() {
            true => _ = self.by_organization.remove(&organization_id),
            false => self.next.push_back(organization_id),
        }
        entry
    }

    /// What goes into one transaction.
    fn batch(&mut self, config: &RuntimeConfig) -> Vec<Entry> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < config.batch_writes && bytes < config.batch_bytes {
            let Some(entry) = self.pop() else { break };
            bytes += entry.bytes();
            batch.push(entry);
        }
        batch
    }
}

/// Writes until the runtime is gone.
pub(super) async fn write(shared: Arc<Shared>, mut entries: mpsc::Receiver<Entry>) {
    let mut lines = Lines::default();
    loop {
        while let Ok(entry) = entries.try_recv() {
            lines.push(entry);
        }
        if lines.next.is_empty() {
            let Some(entry) = entries.recv().await else { return };
            lines.push(entry);
            continue;
        }
        let batch = lines.batch(&shared.config);
        shared.journal.queued.fetch_sub(batch.len(), Relaxed);
        commit(&shared, batch).await;
    }
}

/// Commits the entries of the current generation and answers all.
async fn commit(shared: &Shared, entries: Vec<Entry>) {
    let held = shared.lease.current();
    let generation = held.as_ref().map(|held| held.generation);
    let (current, late): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| Some(entry.generation) == generation);
    answer_lost(late);
    let Some(held) = held else { return };

    // Of a batch that was refused, the halves are tried, to find the write that is to blame.
    let mut parts = vec![current];
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let batch = Batch::of(part);
        let began = Instant::now();
        match commit_while_held(shared, &held, &batch.runs).await {
            Ok(outcome) => {
                shared.metrics.committed(batch.waiting.len(), began.elapsed());
                shared.watchers.committed(&batch.runs);
                batch.answer(outcome);
            }
            Err(error) => {
                count(&shared.metrics.commits_failed);
                let mut entries = batch.into_entries(held.generation);
                match error {
                    CommitError::LeaseLost => {
                        shared.lease_lost(held.generation);
                        answer_lost(entries);
                        parts.drain(..).for_each(answer_lost);
                    }
                    CommitError::Store(error) if error.is_temporary() => {
                        tracing::warn!(%error, writes = entries.len(), "a commit failed");
                        entries.into_iter().for_each(Entry::give_back);
                    }
                    CommitError::Store(error) => match entries.len() {
                        0 | 1 => entries.pop().into_iter().for_each(|entry| entry.refuse(&error)),
                        all => {
                            let second = entries.split_off(all / 2);
                            parts.extend([second, entries]);
                        }
                    },
                }
            }
        }
    }
}

/// How long a commit may outlast the lease: a slow disk is given the time to say that it is done.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Commits a batch. A database that was cut off may never answer, so a while after the lease is over the attempt is, too:
/// what came of it is in the database, for whoever takes the runs over.
async fn commit_while_held(
    shared: &Shared,
    held: &Held,
    runs: &RunBatch,
) -> Result<BatchOutcome, CommitError> {
    let given_up = async {
        shared.lease.ended(held.generation).await;
        sleep(GIVE_UP_AFTER).await;
    };
    tokio::select! {
        committed = shared.store.commit_runs(&held.lease, runs) => committed,
        () = given_up => Err(CommitError::LeaseLost),
    }
}

fn answer_lost(entries: Vec<Entry>) {
    entries
        .into_iter()
        .for_each(|entry| entry.reply.fail(WriteError::LeaseLost));
}

impl Reply {
    fn fail(self, error: WriteError) {
        let _gone = match self {
            Self::Create(reply, _turn) => reply.send(Err(error)).is_err(),
            Self::Change(reply) => reply.send(Err(error)).is_err(),
        };
    }
}

/// Entries in the store's form. Nothing is copied.
struct Batch {
    runs: RunBatch,
    waiting: Vec<Waiting>,
}

/// Who waits for a write, and how many of the batch's payloads are its own.
struct Waiting {
    organization_id: Arc<str>,
    reply: Reply,
    payloads: usize,
}

impl Batch {
    fn of(entries: Vec<Entry>) -> Self {
        let mut runs = RunBatch::default();
        let mut waiting = Vec::with_capacity(entries.len());
        for Entry { record, reply, .. } in entries {
            let Record {
                organization_id,
                write,
                payloads,
            } = record;
            waiting.push(Waiting {
                organization_id,
                reply,
                payloads: payloads.len(),
            });
            match write {
                Write::Create(run) => runs.creates.push(*run),
                Write::Change(change) => runs.changes.push(*change),
            }
            runs.payloads.extend(payloads);
        }
        Self { runs, waiting }
    }

    fn answer(self, outcome: BatchOutcome) {
        let (mut creates, mut changes) = (outcome.creates.into_iter(), outcome.changes.into_iter());
        for Waiting { reply, .. } in self.waiting {
            let _gone = match reply {
                Reply::Create(reply, _turn) => creates.next().map(|outcome| reply.send(Ok(outcome)).is_err()),
                Reply::Change(reply) => changes.next().map(|outcome| reply.send(Ok(outcome)).is_err()),
            };
        }
    }

    fn into_entries(self, generation: u64) -> Vec<Entry> {
        let mut creates = self.runs.creates.into_iter();
        let mut changes = self.runs.changes.into_iter();
        let mut payloads = self.runs.payloads.into_iter();
        let entry = |waiting: Waiting| {
            let write = match waiting.reply {
                Reply::Create(..) => Write::Create(Box::new(creates.next()?)),
                Reply::Change(_) => Write::Change(Box::new(changes.next()?)),
            };
            let payloads = payloads.by_ref().take(waiting.payloads).collect();
            Some(Entry {
                generation,
                record: Record {
                    organization_id: waiting.organization_id,
                    write,
                    payloads,
                },
                reply: waiting.reply,
            })
        };
        self.waiting.into_iter().filter_map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(organization_id: &str, run_id: usize) -> Entry {
        let change = RunChange {
            run_id: run_id.to_string(),
            ..RunChange::default()
        };
        Entry {
            generation: 1,
            record: Record {
                organization_id: organization_id.into(),
                write: Write::Change(Box::new(change)),
                payloads: Vec::new(),
            },
            reply: Reply::Change(oneshot::channel().0),
        }
    }

    /// The writes of a batch, as organization and run.
    fn batch(lines: &mut Lines, batch_writes: usize) -> Vec<String> {
        let config = RuntimeConfig {
            batch_writes,
            ..RuntimeConfig::default()
        };
        let named = lines.batch(&config).into_iter().map(|entry| {
            let Write::Change(change) = entry.record.write else {
                return String::new();
            };
            format!("{}{}", entry.record.organization_id, change.run_id)
        });
        named.collect()
    }

    #[test]
    fn a_batch_has_something_of_everybody() {
        let mut lines = Lines::default();
        (0..100).for_each(|run| lines.push(entry("a", run)));
        lines.push(entry("b", 0));
        lines.push(entry("c", 0));
        lines.push(entry("b", 1));
        assert_eq!(batch(&mut lines, 4), ["a0", "b0", "c0", "a1"]);
        lines.push(entry("c", 1));
        assert_eq!(batch(&mut lines, 3), ["b1", "a2", "c1"]);
        assert_eq!(batch(&mut lines, 1_000).len(), 97);
        assert!(lines.by_organization.is_empty() && lines.next.is_empty());
    }
}
