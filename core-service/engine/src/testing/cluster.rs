//! Processes that drive one run in turn over one durable journal, and everything that can go wrong between them.
//!
//! Only one of them holds the lease; whoever lost it goes on until a write of its is refused. All choices come from a
//! seed, so that what once went wrong goes wrong again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::json;

use super::CONSTANTS;
use super::ask::Asked;
use super::faults::Faults;
use super::process::{Executing, Process};
use super::random::Random;
use super::random_graph::{RandomEdge, RandomNode, build};
use super::world::{assert_same, replay};
use crate::config::DEFAULT_TIMEOUT_MS;
use crate::event::{Event, EventBody, NodeKey};
use crate::failure::NodeError;
use crate::graph::EdgeType;
use crate::journal;
use crate::plan::Plan;
use crate::start::Start;
use crate::state::{NodeStatus, RunState};
use crate::step::{Execute, Input, NodeAttempt, Step, StepError};

/// More than any run takes.
const MOST_STEPS: usize = 20_000;
/// Longer than any execution takes otherwise, in milliseconds.
const SLOW_MS: u64 = 60_000;

/// What a process knew of the run when another took it over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// What is durable.
    Durable,
    /// What never became durable, too.
    Ahead,
}

/// One run, its journal and its processes.
pub(crate) struct Cluster {
    pub(crate) plan: Arc<Plan>,
    failures: HashMap<i64, u32>,
    random: Random,
    faults: Faults,
    pub(crate) journal: Vec<Event>,
    /// Of the process that holds the lease.
    epoch: u64,
    holder: Process,
    /// Processes that lost the lease and do not know yet.
    stale: Vec<Process>,
    /// What was reported before.
    reported: Vec<Input>,
    /// What people and other runs answer, by the instant and in the order they were asked in.
    answers: BTreeMap<(i64, usize), Input>,
    /// The attempt that is being made at each node.
    attempts: HashMap<NodeKey, NodeAttempt>,
    now_ms: i64,
    /// Nodes whose end is recorded.
    done: HashSet<NodeKey>,
    pub(crate) resumed: bool,
    /// Something took so long that its time was over, or that it was answered although it would have been too late.
    pub(crate) was_too_slow: bool,
    pub(crate) answers_taken: usize,
    pub(crate) answers_refused: usize,
    /// How often something went wrong.
    pub(crate) injected: usize,
}

impl Cluster {
    /// A cluster whose graph, faults and every other choice follow from a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes: Vec<RandomNode> = (0..2 + random.below(9))
            .map(|_| RandomNode::choose(&mut random))
            .collect();
        // Most nodes are reached; whatever else there is comes on top.
        let reaching = (1..=nodes.len()).filter_map(|to| {
            let from = random.below(to);
            random.happens(800).then_some(RandomEdge {
                from,
                to,
                edge_type: EdgeType::Normal,
                holds: None,
            })
        });
        let mut edges: Vec<RandomEdge> = reaching.collect();
        let further = random.below(12);
        edges.extend((0..further).map(|_| RandomEdge::choose(&mut random, nodes.len() + 1)));
        let failures = (2..).zip(&nodes).map(|(id, node)| (id, node.failures)).collect();
        let plan = super::plan(&build(&nodes, &edges));
        let faults = Faults::choose(&mut random);
        Self::new(plan, failures, faults, random)
    }

    /// The same run without anything going wrong.
    pub(crate) fn without_faults(&self) -> Self {
        Self::new(
            Arc::clone(&self.plan),
            self.failures.clone(),
            Faults::NONE,
            Random::new(0),
        )
    }

    fn new(plan: Arc<Plan>, failures: HashMap<i64, u32>, faults: Faults, random: Random) -> Self {
        Self {
            holder: Process::new(1, RunState::new(Arc::clone(&plan))),
            plan,
            failures,
            random,
            faults,
            journal: Vec::new(),
            epoch: 1,
            stale: Vec::new(),
            reported: Vec::new(),
            answers: BTreeMap::new(),
            attempts: HashMap::new(),
            now_ms: 1_000,
            done: HashSet::new(),
            resumed: false,
            was_too_slow: false,
            answers_taken: 0,
            answers_refused: 0,
            injected: 0,
        }
    }

    /// The state of the process that holds the lease.
    pub(crate) fn state(&self) -> &RunState {
        &self.holder.state
    }

    /// Runs to the end; sometimes lets a node that failed run again.
    pub(crate) fn run(&mut self) {
        let start = Start {
            timeout_ms: Some(86_400_000),
            ..Start::manual()
        };
        // Nobody knows of a run that was not durable when its process died.
        let rate = std::mem::take(&mut self.faults.crash);
        self.report(Input::Start(start));
        self.faults.crash = rate;
        self.run_on();
        let failed = |state: &RunState| {
            let mut nodes = state.nodes();
            nodes
                .find(|report| report.status == NodeStatus::Failed)
                .map(|report| report.node.id)
        };
        if let Some(node) = failed(self.state()).filter(|_| self.faults.crash > 0) {
            self.failures.clear();
            // The end was made durable first, which takes time.
            self.now_ms += 1;
            self.report(Input::RetryNode(node));
            self.run_on();
        }
        // What comes after the end.
        while let Some((_, late)) = self.answers.pop_first() {
            self.report(late);
        }
        for _ in 0..self.reported.len().min(4) {
            self.repeat();
            self.let_a_stale_process_act();
        }
    }

    fn run_on(&mut self) {
        for _ in 0..MOST_STEPS {
            if self.state().finished().is_some() {
                return;
            }
            self.advance();
        }
        panic!("the run does not end");
    }

    /// One thing happens, or goes wrong.
    fn advance(&mut self) {
        if self.random.happens(self.faults.lease_loss) {
            let lost = self.take_over(Known::Durable);
            self.stale.push(lost);
        }
        if self.random.happens(self.faults.duplicate) {
            self.repeat();
        }
        if self.random.happens(self.faults.early_timer)
            && let Some(key) = self.holder.timers.keys().next().cloned()
        {
            self.injected += 1;
            self.report(Input::TimerFired(key));
        }
        if self.random.happens(self.faults.cancel) {
            self.injected += 1;
            self.report(Input::Cancel);
        }
        self.let_a_stale_process_act();
        if let Some((input, at_ms)) = self.next() {
            self.now_ms = self.now_ms.max(at_ms);
            self.report(input);
        }
    }

    /// What happens next by itself, and when: at the same instant, answers come first.
    fn next(&mut self) -> Option<(Input, i64)> {
        let answered_ms = self.answers.first_key_value().map(|((at_ms, _), _)| *at_ms);
        let holder_ms = self.holder.next_ms();
        match answered_ms.filter(|answered| holder_ms.is_none_or(|holder| *answered <= holder)) {
            Some(at_ms) => self.answers.pop_first().map(|(_, answer)| (answer, at_ms)),
            None => self.holder.next(&self.failures),
        }
    }

    /// Something that was reported before is reported again.
    fn repeat(&mut self) {
        if !self.reported.is_empty() {
            self.injected += 1;
            let input = self.random.pick(&self.reported);
            self.report(input);
        }
    }

    /// What is reported to a process that lost the lease: its write is refused, and it knows.
    fn let_a_stale_process_act(&mut self) {
        let Some(mut process) = self.stale.pop() else {
            return;
        };
        let Some((input, at_ms)) = process.next(&self.failures) else {
            return;
        };
        let step = process.state.step(input, self.now_ms.max(at_ms), &*CONSTANTS);
        let writes = step.is_ok_and(|step| !step.events.is_empty());
        assert!(process.epoch < self.epoch, "two processes hold the lease");
        if !writes {
            self.stale.push(process);
        }
    }

    /// Something reaches the process that holds the lease.
    fn report(&mut self, input: Input) {
        if let Input::NodeFinished { .. } | Input::NodeAnswered { .. } | Input::TimerFired(_) = &input {
            self.reported.push(input.clone());
        }
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let is_over = self.state().finished().is_some();
            let step = match self.holder.state.step(input.clone(), self.now_ms, &*CONSTANTS) {
                Ok(step) => step,
                Err(StepError::Answered(_) | StepError::NotWaiting(_)) => return self.answers_refused += 1,
                Err(StepError::NotFailed(_) | StepError::NotFinished) => return,
                Err(error) => panic!("{input:?}: {error}"),
            };
            let crashes = self.random.happens(self.faults.crash);
            if crashes && self.random.happens(500) {
                // Nothing was durable: what happened will be seen again, but for what somebody asked.
                let _lost = self.take_over(Known::Ahead);
                return self.ask_again(input);
            }
            if let Input::NodeAnswered { key, asked, .. } = &input {
                assert!(!step.events.is_empty(), "an answer is taken and lost");
                assert_eq!(
                    self.attempts.get(key),
                    Some(asked),
                    "{key:?} takes another's answer"
                );
                self.answers_taken += 1;
            }
            self.commit(&step, is_over);
            if crashes {
                let _lost = self.take_over(Known::Durable);
                return;
            }
            next = self.carry_out(step).then_some(Input::Continue);
        }
    }

    /// A request that found no answer is made again.
    fn ask_again(&mut self, input: Input) {
        if let Input::Cancel | Input::RetryNode(_) | Input::NodeAnswered { .. } = input {
            let rate = std::mem::take(&mut self.faults.crash);
            self.report(input);
            self.faults.crash = rate;
        }
    }

    /// Events of the lease's holder become durable.
    fn commit(&mut self, step: &Step, was_over: bool) {
        let mut is_over = was_over;
        for event in &step.events {
            self.journal.push(event.clone());
            match &event.body {
                EventBody::NodeCompleted { key, .. } | EventBody::NodeFailed { key, .. } => {
                    let is_first = self.done.insert(key.clone());
                    assert!(is_first, "node {} ends twice", key.node);
                }
                EventBody::RunResumed { .. } => {
                    (self.resumed, is_over) = (true, false);
                    self.done = ended(&replay(&self.plan, &self.journal));
                }
                body => assert!(!is_over, "{body:?} follows the end"),
            }
        }
    }

    /// Carries commands out; says whether the run asks to be continued.
    fn carry_out(&mut self, step: Step) -> bool {
        let (begun, again) = self.holder.carry_out(step.commands);
        for execute in begun {
            self.begin(execute);
        }
        again
    }

    fn begin(&mut self, execute: Execute) {
        assert!(
            !self.done.contains(&execute.key),
            "node {} is executed after its end is recorded",
            execute.key.node
        );
        assert!(
            self.state().finished().is_none(),
            "something begins after the end"
        );
        let (attempt, asked) = (execute.node_attempt(), Asked::of(&execute.request));
        let is_new = self.attempts.insert(execute.key.clone(), attempt) != Some(attempt);
        if let (true, Some(asked)) = (is_new, &asked) {
            self.ask(&execute, asked);
        }
        let mut takes = 1 + self.random.below(50) as u64;
        // Where there is a time-out of its own, what fails does so by taking too long.
        let is_limited = asked.is_none() && execute.timeout_ms < DEFAULT_TIMEOUT_MS;
        let failing = self.failures.get(&execute.key.node).copied().unwrap_or(0);
        if is_limited && execute.attempt <= failing {
            takes = SLOW_MS;
        } else if self.random.happens(self.faults.slow) {
            self.injected += 1;
            self.was_too_slow |= asked.is_some() || execute.timeout_ms < SLOW_MS;
            takes = SLOW_MS;
        }
        let is_too_slow = takes > execute.timeout_ms;
        let ends_ms = self.now_ms.saturating_add_unsigned(takes.min(execute.timeout_ms));
        self.holder.executing.push(Executing {
            ends_ms,
            execute,
            is_too_slow,
        });
    }

    /// Somebody hears the question: once for each attempt, whatever becomes of the process that asks.
    fn ask(&mut self, execute: &Execute, asked: &Asked) {
        let failing = self.failures.get(&execute.key.node).copied().unwrap_or(0);
        for (number, after_ms) in asked.answers_after_ms.iter().enumerate() {
            let at_ms = self.now_ms.saturating_add_unsigned(*after_ms);
            let result = match execute.attempt <= failing {
                true => Err(NodeError::new("CHILD_FAILED", "no")),
                false => Ok(json!({ "answer": number })),
            };
            let answer = Input::NodeAnswered {
                key: execute.key.clone(),
                asked: execute.node_attempt(),
                result,
            };
            let order = self.answers.len() + self.reported.len() + self.journal.len();
            self.answers.insert((at_ms, order), answer);
        }
    }

    /// Another process gets the lease and goes on from what is durable. Gives the one before.
    fn take_over(&mut self, known: Known) -> Process {
        self.injected += 1;
        self.epoch += 1;
        let stored = journal::encode(&self.journal);
        let Ok(events) = journal::decode(&stored.bytes) else {
            panic!("the journal cannot be read")
        };
        assert_eq!(events, self.journal);
        let process = Process::new(self.epoch, replay(&self.plan, &events));
        let lost = std::mem::replace(&mut self.holder, process);
        if known == Known::Durable {
            assert_same(&lost.state, &self.holder.state);
        }
        let mut input = Input::Resume;
        loop {
            let was_over = self.state().finished().is_some();
            let Ok(step) = self.holder.state.step(input, self.now_ms, &*CONSTANTS) else {
                panic!("a run cannot be resumed")
            };
            self.commit(&step, was_over);
            if !self.carry_out(step) {
                return lost;
            }
            input = Input::Continue;
        }
    }
}

/// The nodes whose end a state knows.
fn ended(state: &RunState) -> HashSet<NodeKey> {
    let has_ended = |status| matches!(status, NodeStatus::Completed | NodeStatus::Failed);
    let ended = state.nodes().filter(|report| has_ended(report.status));
    ended
        .map(|report| NodeKey {
            node: report.node.id,
            iteration: report.iteration.clone(),
        })
        .collect()
}
