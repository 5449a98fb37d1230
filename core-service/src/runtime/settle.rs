//! Making a stretch of a run durable, however long the database cannot be reached; and what is left to do for a run
//! whose state or journal cannot be used.

use std::sync::Arc;
use std::time::Duration;

use engine::event::Failure;
use engine::state::RunStatus;
use engine::step::Input;
use tokio::time::sleep;

use super::Shared;
use super::drive::{Arrival, LiveRun, Restart, Settled, Stretch};
use super::ending::{ending, ending_in_row};
use super::error::RequestError;
use super::execute::ENGINE_ERROR;
use super::journal::{Record, Refusal, Write, WriteError};
use super::progress::{Next, Progress, credits, summary};
use super::record::Lineage;
use super::request::{Answered, Reply};
use super::timers::ALARM;
use crate::clock;
use crate::store::{self, ChangeOutcome, RunChange, RunSummary};

const NOT_RECORDED: &str = "what happened in this run could not be recorded";
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl LiveRun {
    /// Makes a stretch durable, then answers those who asked for it.
    pub(super) async fn settle(&mut self, stretch: Stretch) -> Settled {
        let next = stretch
            .progress
            .next(&self.state, &self.timers, self.shared.config.keep_waiting);
        if stretch.progress.events.is_empty() && stretch.signals_done.is_empty() && next == Next::Drive {
            answer(stretch.answers);
            return Settled::On(stretch.progress.commands);
        }
        let Stretch {
            progress,
            mut answers,
            signals_done,
            activity,
            restart,
        } = stretch;
        let (segments, payloads) = progress.segment(&self.context, self.journal.next_seq);
        let requests = self.context.requests(&progress.events, &mut self.questions);
        let change = RunChange {
            segments,
            restarts: restart.is_some(),
            signals_done,
            activity,
            requests_opened: requests.opened,
            requests_closed: requests.closed,
            ending: ending(
                &self.context,
                &self.state,
                &progress.events,
                self.journal.next_seq,
            ),
            ..self.change(next)
        };
        let write = Write::Change(Box::new(change));
        let record = Record {
            organization_id: Arc::clone(&self.context.organization_id),
            write,
            payloads,
        };
        let committed = self.commit(record).await;
        let restarted = match (&committed, &restart) {
            (Committed::LeaseLost, _) => return Settled::Left,
            (Committed::Refused, None) => return Settled::Broken(NOT_RECORDED),
            // The run stays ended, as it was.
            (Committed::Refused, Some(_)) => Err(RequestError::Internal),
            (Committed::OutOfCredits, _) => Err(RequestError::OutOfCredits),
            (Committed::Yes, _) => Ok(()),
        };
        let is_refused = restarted.is_err();
        if let Some(Restart {
            reply: Some(reply),
            done,
        }) = restart
        {
            answers.push((reply, restarted.map(|()| done)));
        }
        answer(answers);
        match is_refused {
            true => Settled::Left,
            false => self.settled(progress, next),
        }
    }

    /// Goes on after a commit.
    fn settled(&mut self, progress: Progress, next: Next) -> Settled {
        self.journal.next_seq += i64::from(!progress.events.is_empty());
        self.journal.credits_recorded = credits(&self.state);
        self.journal.has_alarm = matches!(next, Next::Sleep(Some(_)));
        if !progress.events.is_empty() {
            self.shared.metrics.finished(self.state.status());
        }
        match next {
            Next::Drive => Settled::On(progress.commands),
            Next::Over => Settled::Left,
            Next::Sleep(alarm) => {
                self.shared.alarm_set(alarm);
                Settled::Left
            }
        }
    }

    /// What becomes of the run's rows.
    fn change(&self, next: Next) -> RunChange {
        let set_timers = next.alarm();
        let clears_alarm = self.journal.has_alarm && set_timers.is_empty();
        RunChange {
            run_id: self.context.run_id.to_string(),
            summary: Some(summary(&self.state, self.journal.credits_before, next)),
            metered: self.context.metered,
            credits_spent: credits(&self.state) - self.journal.credits_recorded,
            set_timers,
            clear_timers: clears_alarm.then(|| ALARM.to_owned()).into_iter().collect(),
            ..RunChange::default()
        }
    }

    /// Commits a record, however long the database cannot be reached.
    async fn commit(&self, mut record: Record) -> Committed {
        let mut pause = FIRST_PAUSE;
        let mut may_be_there = false;
        loop {
            match self.shared.journal.change(self.held.generation, record).await {
                Ok(ChangeOutcome::Written) => return Committed::Yes,
                Ok(ChangeOutcome::OutOfCredits) => return Committed::OutOfCredits,
                // Most likely it was, and others have gone on since; either way the run is not this task's any more.
                Ok(ChangeOutcome::NotDriven) => return Committed::LeaseLost,
                Err(WriteError::LeaseLost) => return Committed::LeaseLost,
                // A segment has one writer, so the one that is there is this one.
                Err(WriteError::Refused(Refusal::Duplicate)) if may_be_there => return Committed::Yes,
                Err(WriteError::Refused(_)) => return Committed::Refused,
                Err(WriteError::Unknown(again)) => {
                    may_be_there = true;
                    record = again;
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Fails the run from its last durable state; when even that is impossible, in its row alone.
    pub(super) async fn fail_from_journal(&mut self, why: &'static str) -> Option<Stretch> {
        tracing::error!(run_id = &*self.context.run_id, why, "a run is failed");
        self.executions.abort();
        self.timers.clear();
        let first_time = !std::mem::replace(&mut self.broken, true);
        if first_time && self.reload().await.is_ok() {
            let mut stretch = Stretch::default();
            let failed = self.take_in(&mut stretch, Arrival::Input(Input::Fail(engine_failure(why))));
            if failed.is_ok() {
                return Some(stretch);
            }
        }
        let run = RowToFail {
            run_id: &self.context.run_id,
            organization_id: &self.context.organization_id,
            workflow_id: &self.context.workflow_id,
            lineage: Some(&self.context.record.lineage),
            attempt: i64::from(self.context.attempt),
            credits_used: self.journal.credits_before + self.journal.credits_recorded,
            metered: self.context.metered,
        };
        run.fail(&self.shared, self.held.generation, why).await;
        None
    }
}

enum Committed {
    Yes,
    OutOfCredits,
    LeaseLost,
    Refused,
}

fn answer(answers: Vec<(Reply, Answered)>) {
    for (reply, answer) in answers {
        // The caller may have gone.
        let _gone = reply.send(answer);
    }
}

/// A failure that is no fault of the workflow.
pub(super) fn engine_failure(why: &str) -> Failure {
    Failure {
        code: ENGINE_ERROR.to_owned(),
        message: why.to_owned(),
    }
}

/// A run that can only be failed in its row: its journal cannot be read or written.
pub(super) struct RowToFail<'a> {
    pub(super) run_id: &'a str,
    pub(super) organization_id: &'a str,
    pub(super) workflow_id: &'a str,
    /// Unknown when not even that can be read.
    pub(super) lineage: Option<&'a Lineage>,
    pub(super) attempt: i64,
    pub(super) credits_used: i64,
    pub(super) metered: bool,
}

impl RowToFail<'_> {
    pub(super) async fn fail(&self, shared: &Shared, generation: u64, why: &str) {
        let mut pause = FIRST_PAUSE;
        loop {
            let summary = RunSummary {
                status: store::RunStatus::Failed,
                attempt_number: self.attempt,
                finished_at: Some(clock::now_ms()),
                error: Some(engine_failure(why).to_string()),
                credits_used: self.credits_used,
                driver: store::Driver::Nobody,
            };
            let change = RunChange {
                run_id: self.run_id.to_owned(),
                summary: Some(summary),
                metered: self.metered,
                clear_timers: vec![ALARM.to_owned()],
                all_requests_closed: true,
                ending: ending_in_row(self, engine_failure(why)),
                ..RunChange::default()
            };
            let record = Record {
                organization_id: self.organization_id.into(),
                write: Write::Change(Box::new(change)),
                payloads: Vec::new(),
            };
            match shared.journal.change(generation, record).await {
                Err(WriteError::Unknown(_)) => sleep(pause).await,
                Ok(ChangeOutcome::Written) => return shared.metrics.finished(RunStatus::Failed),
                Ok(_) => return,
                Err(_) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
