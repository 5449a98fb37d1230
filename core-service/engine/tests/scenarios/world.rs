//! A run in memory: executions end when the scenario says, timers fire at their instants, nothing takes real time.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::event::{Event, NodeKey};
use engine::failure::NodeError;
use engine::graph::{Edge, Graph, NATIVE_APP, Node};
use engine::iteration::Iteration;
use engine::journal::Segment;
use engine::plan::Plan;
use engine::start::{Start, StartFrom};
use engine::state::{NodeStatus, RunState, RunStatus};
use engine::step::{Command, Execute, Input, NodeAttempt, StepError};
use engine::timer::TimerKey;
use scenarios::{ANY, Action, Outside, Response, Scenario, ends};
use serde_json::{Map, Value, json};

use crate::kinds::{HUMAN_INPUT, kinds};
use crate::surroundings::{Functions, Surroundings};

/// When it begins: 1 January 2026, in epoch milliseconds.
const BEGIN_MS: i64 = 1_767_225_600_000;
/// More steps than any scenario has.
const MOST_STEPS: usize = 100_000;

/// When the process crashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crashes {
    Never,
    /// When the events of a step are durable and no command is carried out.
    AfterEachStep,
}

pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    crashes: Crashes,
    plan: Arc<Plan>,
    state: RunState,
    journal: Vec<Event>,
    /// Executions by the instant they end at.
    executing: Vec<(i64, Execute)>,
    timers: BTreeMap<TimerKey, i64>,
    /// The attempt at each node that was executed last.
    attempts: BTreeMap<NodeKey, NodeAttempt>,
    now_ms: i64,
    surroundings: Surroundings,
    credits_before: u64,
}

impl<'a> World<'a> {
    /// Lets a scenario happen; gives what was seen.
    pub(crate) fn run(scenario: &'a Scenario, crashes: Crashes) -> Value {
        let plan = plan(scenario);
        let mut world = Self {
            scenario,
            crashes,
            state: RunState::new(Arc::clone(&plan)),
            plan,
            journal: Vec::new(),
            executing: Vec::new(),
            timers: BTreeMap::new(),
            attempts: BTreeMap::new(),
            now_ms: BEGIN_MS,
            surroundings: Surroundings::of(scenario),
            credits_before: 0,
        };
        world.input(start(scenario, 1));
        for action in &scenario.then {
            world.act(action);
        }
        world.go_on(|world| world.state.status().is_terminal());
        world.seen()
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Respond(response) => self.respond(response),
            Action::StartAt(node) => {
                self.go_on(|world| world.state.status().is_terminal());
                let seeds = self.state.nodes().filter(|node| node.iteration.is_root());
                let seeds = seeds.filter_map(|node| Some((node.node.id, Arc::clone(node.output?))));
                let start = Start {
                    from: StartFrom::Node(*node),
                    seeds: seeds.collect(),
                    ..Start::manual()
                };
                self.begin(Input::Start(start));
            }
            Action::Cancel => {
                self.go_on(|world| world.state.status() == RunStatus::Waiting);
                self.input(Input::Cancel);
            }
            Action::Set(variables) => {
                self.go_on(|world| world.state.status().is_terminal());
                self.surroundings.set(variables);
            }
            Action::Retry(node) => {
                self.go_on(|world| world.state.status().is_terminal());
                self.input(Input::RetryNode(*node));
            }
            Action::Rerun => {
                self.go_on(|world| world.state.status().is_terminal());
                self.credits_before += self.state.credits_used();
                let attempt = self.state.attempt() + 1;
                self.begin(start(self.scenario, attempt));
            }
        }
    }

    fn begin(&mut self, start: Input) {
        self.state = RunState::new(Arc::clone(&self.plan));
        self.journal.clear();
        self.attempts.clear();
        self.input(start);
    }

    /// A person answers: what the form refuses does not reach the engine, what comes too late the engine refuses.
    fn respond(&mut self, response: &Response) {
        let key = NodeKey {
            node: response.node,
            iteration: response.iteration.parse::<Iteration>().unwrap(),
        };
        self.go_on(|world| {
            let status = world.state.reached(&key).map(|node| node.status);
            let is_asked = !matches!(status, None | Some(NodeStatus::Pending | NodeStatus::Running));
            is_asked || world.state.status().is_terminal()
        });
        self.now_ms = self.now_ms.saturating_add_unsigned(response.after_ms);
        if response.refused.is_some() && !response.is_late() {
            return;
        }
        let says = response.taken.as_ref().unwrap_or(&response.says);
        let answer = Input::NodeAnswered {
            asked: self.attempts[&key],
            key,
            result: Ok(json!({ "response": says, "respondedBy": ANY, "respondedAt": ANY })),
        };
        if !response.is_late() {
            return self.input(answer);
        }
        let answered = self.state.step(answer, self.now_ms, &self.surroundings);
        let expected = Err(StepError::Answered(response.node));
        assert_eq!(answered, expected, "{}: a late answer", self.scenario.name);
    }

    /// Lets time pass until something holds.
    fn go_on(&mut self, until: impl Fn(&Self) -> bool) {
        for _ in 0..MOST_STEPS {
            if until(self) {
                return;
            }
            let execution = self
                .executing
                .iter()
                .enumerate()
                .min_by_key(|(_, (ends, execute))| (*ends, &execute.key))
                .map(|(at, (ends, _))| (*ends, at));
            let timer = self
                .timers
                .iter()
                .min_by_key(|(key, due)| (**due, *key))
                .map(|(key, due)| (*due, key.clone()));
            match (execution, timer) {
                (Some((ends_ms, at)), timer) if timer.as_ref().is_none_or(|(due, _)| ends_ms <= *due) => {
                    self.now_ms = self.now_ms.max(ends_ms);
                    let (_, execute) = self.executing.remove(at);
                    self.finish(execute);
                }
                (_, Some((due_ms, key))) => {
                    self.now_ms = self.now_ms.max(due_ms);
                    self.timers.remove(&key);
                    self.input(Input::TimerFired(key));
                }
                _ => panic!("{}: nothing more happens", self.scenario.name),
            }
        }
        panic!("{}: it does not end", self.scenario.name);
    }

    fn finish(&mut self, execute: Execute) {
        if self.asks(&execute) {
            let patience = execute.request["timeoutMs"].as_u64();
            let (key, attempt) = (execute.key, execute.attempt);
            let due_at_ms = patience.map(|patience| self.now_ms.saturating_add_unsigned(patience));
            return self.input(Input::NodeParked {
                key,
                attempt,
                due_at_ms,
            });
        }
        let is_request = self.kind(&execute) == "http_request";
        let outside = self.outside(&execute).clone();
        let result = match (outside.output, outside.error) {
            _ if outside.after_ms > execute.timeout_ms => Err(NodeError::timeout(execute.timeout_ms)),
            (Some(output), None) if !is_request => Ok(output),
            (Some(body), None) => Ok(json!({
                "status": 200, "headers": {}, "body": body, "durationMs": outside.after_ms,
            })),
            (None, Some(error)) => Err(NodeError {
                retry_after_ms: error.retry_after_ms,
                ..NodeError::new(error.code, error.message)
            }),
            _ => panic!("{}: give either output or error", self.scenario.name),
        };
        let (key, attempt) = (execute.key, execute.attempt);
        self.input(Input::NodeFinished { key, attempt, result });
    }

    fn kind(&self, execute: &Execute) -> &'a str {
        &self.scenario.nodes[&execute.key.node].kind
    }

    fn asks(&self, execute: &Execute) -> bool {
        self.kind(execute) == HUMAN_INPUT
    }

    fn outside(&self, execute: &Execute) -> &'a Outside {
        let NodeKey { node, iteration } = &execute.key;
        self.scenario
            .outside(*node, &iteration.to_string(), execute.attempt)
    }

    fn input(&mut self, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next {
            let step = self.state.step(input, self.now_ms, &self.surroundings);
            let step = step.unwrap_or_else(|error| panic!("{}: {error}", self.scenario.name));
            self.journal.extend(step.events);
            next = match self.crashes {
                Crashes::Never => self.carry_out(step.commands).then_some(Input::Continue),
                Crashes::AfterEachStep => self.recover(),
            };
        }
    }

    /// A new process: the state is the fold of the journal, and what is outstanding is asked for. What is executed
    /// again ends as it would have.
    fn recover(&mut self) -> Option<Input> {
        let stored = engine::journal::encode(&self.journal);
        let payloads = stored.payloads.into_iter();
        let payloads = payloads.map(|payload| (payload.sha256, payload.json)).collect();
        let events = Segment::parse(&stored.bytes)
            .and_then(|segment| segment.into_events(&payloads))
            .unwrap();
        self.state = RunState::new(Arc::clone(&self.plan));
        for event in &events {
            self.state.apply(event).unwrap();
        }
        let before = std::mem::take(&mut self.executing);
        self.timers.clear();
        let mut input = Input::Resume;
        loop {
            let step = self.state.step(input, self.now_ms, &self.surroundings).unwrap();
            self.journal.extend(step.events);
            if !self.carry_out(step.commands) {
                break;
            }
            input = Input::Continue;
        }
        for (ends, execute) in &mut self.executing {
            let same =
                |(_, known): &&(i64, Execute)| known.key == execute.key && known.attempt == execute.attempt;
            if let Some((known, _)) = before.iter().find(same) {
                *ends = *known;
            }
        }
        None
    }

    /// Carries commands out; says whether the run asks to be continued.
    fn carry_out(&mut self, commands: Vec<Command>) -> bool {
        let mut again = false;
        for command in commands {
            match command {
                Command::Execute(execute) => {
                    self.attempts.insert(execute.key.clone(), execute.node_attempt());
                    let takes = match self.asks(&execute) {
                        true => 0,
                        false => self.outside(&execute).after_ms.min(execute.timeout_ms),
                    };
                    let ends = self.now_ms.saturating_add_unsigned(takes);
                    self.executing.push((ends, execute));
                }
                Command::SetTimer { key, due_at_ms } => _ = self.timers.insert(key, due_at_ms),
                Command::CancelTimer(key) => _ = self.timers.remove(&key),
                Command::CancelTimers => self.timers.clear(),
                Command::AbortExecution(key) => self.executing.retain(|(_, execute)| execute.key != key),
                Command::AbortExecutions => self.executing.clear(),
                Command::Finish { .. } => {}
                Command::Continue => again = true,
            }
        }
        again
    }

    fn seen(&self) -> Value {
        let finished = self.state.finished().unwrap();
        let mut nodes = Map::new();
        let mut order = Vec::new();
        for node in self.state.nodes() {
            let mut place = node.node.id.to_string();
            if !node.iteration.is_root() {
                place = format!("{place}/{}", node.iteration);
            }
            let error = node
                .failure
                .map(|failure| json!({ "code": failure.code, "message": failure.message }));
            let seen = json!({
                "status": node.status.as_str(),
                "output": node.output.map(|output| Value::clone(output)),
                "body": node.output.and_then(|output| output.get("body")),
                "size": node.output.map(|output| output.to_string().len()),
                "error": error,
                "attempt": node.attempt,
                "credits": node.credits_used,
            });
            order.push(Value::from(place.as_str()));
            nodes.insert(place, seen);
        }
        json!({
            "status": self.state.status().as_str(),
            "error": finished.failure.as_ref().map(ToString::to_string),
            "credits": self.credits_before + self.state.credits_used(),
            "attempt": self.state.attempt(),
            "tookMs": finished.at_ms - BEGIN_MS,
            "taken": self.state.edges_taken().collect::<Vec<_>>(),
            "order": order,
            "nodes": nodes,
            "response": self.scenario.start.webhook.as_ref().map(|_| self.response()),
        })
    }

    /// What the caller of the webhook is told.
    fn response(&self) -> Value {
        let mode = self.scenario.nodes[&1]
            .params
            .get("responseMode")
            .and_then(Value::as_str);
        let says = self.state.nodes().filter(|node| {
            node.node.module_slug == "webhook_response" && node.status == NodeStatus::Completed
        });
        let first = says
            .min_by_key(|node| node.finished_at_ms)
            .and_then(|node| node.output);
        match (mode, first, self.state.status()) {
            (Some("respond_node"), Some(said), _) => {
                json!({ "status": said["status"], "body": said["body"] })
            }
            (Some(_), _, RunStatus::Failed | RunStatus::Cancelled) => json!({ "status": 500, "body": ANY }),
            (Some("respond_node"), None, _) => json!({ "status": 204, "body": null }),
            (Some("last_node"), ..) => {
                let output = self.state.last_output().map(|output| Value::clone(output));
                json!({ "status": 200, "body": output })
            }
            _ => json!({ "status": 202, "body": ANY }),
        }
    }
}

fn start(scenario: &Scenario, attempt: u32) -> Input {
    let outputs = scenario.start.outputs.iter();
    Input::Start(Start {
        attempt,
        from: match (&scenario.start.webhook, &scenario.start.failure_of) {
            (None, None) => scenario.start.node.map_or(StartFrom::Manual, StartFrom::Node),
            _ => StartFrom::Trigger(1),
        },
        seeds: outputs
            .map(|(id, output)| (*id, Arc::new(output.clone())))
            .collect(),
        timeout_ms: scenario.start.timeout_ms,
        ..Start::manual()
    })
}

fn plan(scenario: &Scenario) -> Arc<Plan> {
    let nodes = scenario.nodes.iter().map(|(id, node)| Node {
        id: *id,
        app_id: NATIVE_APP.into(),
        module_slug: node.kind.clone(),
        kind: Some(node.kind.clone()),
        name: format!("Node {id}"),
        x: 0.0,
        y: 0.0,
        params: node.params.clone(),
        config: serde_json::from_value(Value::Object(node.config.clone())).unwrap(),
        connection_id: None,
        credential_id: None,
    });
    let edges = scenario.edges.iter().map(|(id, edge)| {
        let (from, to, edge_type) = ends(id);
        Edge {
            id: id.clone(),
            from,
            to,
            edge_type: serde_json::from_value(edge_type.into()).unwrap(),
            order: edge.order,
            filter: edge.filter.clone(),
        }
    });
    let graph = Graph {
        nodes: nodes.collect(),
        edges: edges.collect(),
        next_node_id: 1_000,
    };
    match Plan::compile(&graph, &kinds(scenario), &Functions(scenario)) {
        Ok(plan) => Arc::new(plan),
        Err(problems) => panic!("{}: {problems:?}", scenario.name),
    }
}
