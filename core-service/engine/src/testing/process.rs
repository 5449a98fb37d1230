//! A process that drives a run, or believes that it does: what it executes, its timers, and what reaches it next.

use std::collections::{BTreeMap, HashMap};

use super::ask::Asked;
use super::world::result_of;
use crate::event::NodeKey;
use crate::failure::NodeError;
use crate::state::RunState;
use crate::step::{Command, Execute, Input};
use crate::timer::TimerKey;

/// A process and what it knows of the run.
pub(super) struct Process {
    pub(super) epoch: u64,
    pub(super) state: RunState,
    pub(super) executing: Vec<Executing>,
    pub(super) timers: BTreeMap<TimerKey, i64>,
}

/// An execution under way.
pub(super) struct Executing {
    pub(super) ends_ms: i64,
    pub(super) execute: Execute,
    /// It is given up then, because its time is over.
    pub(super) is_too_slow: bool,
}

impl Process {
    pub(super) fn new(epoch: u64, state: RunState) -> Self {
        Self {
            epoch,
            state,
            executing: Vec::new(),
            timers: BTreeMap::new(),
        }
    }

    /// Carries out what needs no more than memory. Gives what is to be executed, and whether the run asks to be continued.
    pub(super) fn carry_out(&mut self, commands: Vec<Command>) -> (Vec<Execute>, bool) {
        let (mut begun, mut again) = (Vec::new(), false);
        for command in commands {
            match command {
                Command::Execute(execute) => begun.push(execute),
                Command::SetTimer { key, due_at_ms } => _ = self.timers.insert(key, due_at_ms),
                Command::CancelTimer(key) => _ = self.timers.remove(&key),
                Command::CancelTimers => self.timers.clear(),
                Command::AbortExecution(key) => self.executing.retain(|one| one.execute.key != key),
                Command::AbortExecutions => self.executing.clear(),
                Command::Finish { .. } => {}
                Command::Continue => again = true,
            }
        }
        (begun, again)
    }

    /// When something reaches it next by itself.
    pub(super) fn next_ms(&self) -> Option<i64> {
        let executions = self.executing.iter().map(|one| one.ends_ms);
        executions.chain(self.timers.values().copied()).min()
    }

    /// What reaches it next by itself, and when.
    pub(super) fn next(&mut self, failures: &HashMap<i64, u32>) -> Option<(Input, i64)> {
        let order = |one: &Executing| (one.ends_ms, one.execute.key.clone());
        let executions = self.executing.iter().enumerate();
        let execution = executions
            .min_by_key(|(_, one)| order(one))
            .map(|(at, one)| (one.ends_ms, at));
        let timer = self.timers.iter().min_by_key(|(key, due)| (**due, *key));
        let timer = timer.map(|(key, due)| (*due, key.clone()));
        match (execution, timer) {
            (Some((ends_ms, at)), timer) if timer.as_ref().is_none_or(|(due, _)| ends_ms <= *due) => {
                Some((self.executing.remove(at).end(failures), ends_ms))
            }
            (_, Some((due_ms, key))) => {
                self.timers.remove(&key);
                Some((Input::TimerFired(key), due_ms))
            }
            _ => None,
        }
    }
}

impl Executing {
    fn end(self, failures: &HashMap<i64, u32>) -> Input {
        let asked = Asked::of(&self.execute.request);
        let Execute {
            ref key,
            attempt,
            timeout_ms,
            ..
        } = self.execute;
        let key: NodeKey = key.clone();
        match asked {
            _ if self.is_too_slow => Input::NodeFinished {
                key,
                attempt,
                result: Err(NodeError::timeout(timeout_ms)),
            },
            Some(asked) => Input::NodeParked {
                key,
                attempt,
                due_at_ms: asked
                    .patience_ms
                    .map(|patience| self.ends_ms.saturating_add_unsigned(patience)),
            },
            None => Input::NodeFinished {
                key,
                attempt,
                result: result_of(&self.execute, failures),
            },
        }
    }
}
