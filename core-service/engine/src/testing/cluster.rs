//! Processes that drive one run in turn over one durable journal, and everything that can go wrong between them.
//!
//! Only one of them holds the lease; whoever lost it goes on until a write of its is refused. All choices come from a
//! seed, so that what once went wrong goes wrong again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::CONSTANTS;
use super::random::Random;
use super::random_graph::{RandomEdge, RandomNode, build};
use super::world::{replay, result_of};
use crate::event::{Event, EventBody, NodeKey};
use crate::graph::EdgeType;
use crate::journal;
use crate::plan::Plan;
use crate::start::Start;
use crate::state::{NodeStatus, RunState};
use crate::step::{Command, Execute, Input, Step};
use crate::timer::TimerKey;

/// More than any run takes.
const MOST_STEPS: usize = 20_000;
/// Longer than any execution takes otherwise, in milliseconds.
const SLOW_MS: usize = 60_000;

/// How often what goes wrong, in a thousand steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// The process dies: before its events are durable, or after that and before their commands are carried out.
    pub(crate) crash: usize,
    /// Another process takes the run over from one that lives on.
    pub(crate) lease_loss: usize,
    /// A result or a timer of before is reported once more.
    pub(crate) duplicate: usize,
    /// A timer fires before its time.
    pub(crate) early_timer: usize,
    /// An execution takes very long.
    pub(crate) slow: usize,
    /// Somebody cancels the run.
    pub(crate) cancel: usize,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        crash: 0,
        lease_loss: 0,
        duplicate: 0,
        early_timer: 0,
        slow: 0,
        cancel: 0,
    };

    pub(crate) fn choose(random: &mut Random) -> Self {
        let rates = [0, 50, 200, 400];
        Self {
            crash: random.pick(&rates),
            lease_loss: random.pick(&rates),
            duplicate: random.pick(&rates),
            early_timer: random.pick(&rates),
            slow: random.pick(&rates),
            cancel: random.pick(&[0, 0, 80]),
        }
    }
}

/// A process that drives the run, or believes that it does.
struct Process {
    epoch: u64,
    state: RunState,
    /// By the instant they end at.
    executing: Vec<(i64, Execute)>,
    timers: BTreeMap<TimerKey, i64>,
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
    now_ms: i64,
    /// Nodes whose end is recorded.
    done: HashSet<NodeKey>,
    pub(crate) resumed: bool,
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
            now_ms: 1_000,
            done: HashSet::new(),
            resumed: false,
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
            self.report(Input::RetryNode(node));
            self.run_on();
        }
        // What comes after the end.
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
            let lost = self.take_over();
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
        if let Some((input, at_ms)) = self.holder.next(&self.failures) {
            self.now_ms = self.now_ms.max(at_ms);
            self.report(input);
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
        if let Input::NodeFinished { .. } | Input::TimerFired(_) = &input {
            self.reported.push(input.clone());
        }
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let is_over = self.state().finished().is_some();
            let Ok(step) = self.holder.state.step(input.clone(), self.now_ms, &*CONSTANTS) else {
                return;
            };
            let crashes = self.random.happens(self.faults.crash);
            if crashes && self.random.happens(500) {
                // Nothing was durable: what happened will be seen again, but for what somebody asked.
                let _lost = self.take_over();
                return self.ask_again(input);
            }
            self.commit(&step, is_over);
            if crashes {
                let _lost = self.take_over();
                return;
            }
            next = self.carry_out(step).then_some(Input::Continue);
        }
    }

    /// A request that found no answer is made again.
    fn ask_again(&mut self, input: Input) {
        if let Input::Cancel | Input::RetryNode(_) = input {
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
        let mut again = false;
        for command in step.commands {
            match command {
                Command::Execute(execute) => self.begin(execute),
                Command::SetTimer { key, due_at_ms } => _ = self.holder.timers.insert(key, due_at_ms),
                Command::CancelTimer(key) => _ = self.holder.timers.remove(&key),
                Command::CancelTimers => self.holder.timers.clear(),
                Command::AbortExecution(key) => {
                    self.holder.executing.retain(|(_, execute)| execute.key != key);
                }
                Command::AbortExecutions => self.holder.executing.clear(),
                Command::Finish { .. } => {}
                Command::Continue => again = true,
            }
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
        let mut takes = 1 + self.random.below(50);
        if self.random.happens(self.faults.slow) {
            self.injected += 1;
            takes = SLOW_MS;
        }
        let ends_ms = self.now_ms.saturating_add_unsigned(takes as u64);
        self.holder.executing.push((ends_ms, execute));
    }

    /// Another process gets the lease and goes on from what is durable. Gives the one before.
    fn take_over(&mut self) -> Process {
        self.injected += 1;
        self.epoch += 1;
        let stored = journal::encode(&self.journal);
        let Ok(events) = journal::decode(&stored.bytes) else {
            panic!("the journal cannot be read")
        };
        assert_eq!(events, self.journal);
        let process = Process::new(self.epoch, replay(&self.plan, &events));
        let lost = std::mem::replace(&mut self.holder, process);
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

impl Process {
    fn new(epoch: u64, state: RunState) -> Self {
        Self {
            epoch,
            state,
            executing: Vec::new(),
            timers: BTreeMap::new(),
        }
    }

    /// What reaches it next by itself, and when.
    fn next(&mut self, failures: &HashMap<i64, u32>) -> Option<(Input, i64)> {
        let execution = self
            .executing
            .iter()
            .enumerate()
            .min_by_key(|(_, (ends, execute))| (*ends, &execute.key))
            .map(|(at, (ends, _))| (*ends, at));
        let timer = self.timers.iter().min_by_key(|(key, due)| (**due, *key));
        let timer = timer.map(|(key, due)| (*due, key.clone()));
        match (execution, timer) {
            (Some((ends, at)), timer) if timer.as_ref().is_none_or(|(due, _)| ends <= *due) => {
                let (_, execute) = self.executing.remove(at);
                let result = result_of(&execute, failures);
                let Execute { key, attempt, .. } = execute;
                Some((Input::NodeFinished { key, attempt, result }, ends))
            }
            (_, Some((due, key))) => {
                self.timers.remove(&key);
                Some((Input::TimerFired(key), due))
            }
            _ => None,
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
