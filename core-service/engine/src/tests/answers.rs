//! Custom functions answer late: whatever waits for them, the run becomes what it is when they answer at once.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::event::EventBody;
use crate::expression::{CustomFunctions, EvaluationError};
use crate::graph::Graph;
use crate::plan::Plan;
use crate::scope::Environment;
use crate::start::Start;
use crate::state::RunState;
use crate::step::{Command, Input, StepError};
use crate::testing::{graph, registry, set_config, set_filter, set_params};

/// The function `twice`, which wants a number.
struct Twice;

impl CustomFunctions for Twice {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        (name == "twice").then_some((1, 1))
    }
}

/// An environment whose functions answer at once, or only between two steps.
struct Answers {
    at_once: bool,
    wanted: RefCell<Vec<Value>>,
    known: RefCell<HashMap<String, Result<Value, EvaluationError>>>,
    rounds: Cell<u32>,
}

impl Answers {
    fn new(at_once: bool) -> Self {
        Self {
            at_once,
            wanted: RefCell::default(),
            known: RefCell::default(),
            rounds: Cell::new(0),
        }
    }

    fn twice(value: &Value) -> Result<Value, EvaluationError> {
        let number = value
            .as_i64()
            .ok_or_else(|| EvaluationError::with_code("CODE_ERROR", "no number"))?;
        Ok(json!(number * 2))
    }

    fn bring(&self) {
        let wanted = self.wanted.take();
        self.rounds.set(self.rounds.get() + u32::from(!wanted.is_empty()));
        let answers = wanted.iter().map(|value| (value.to_string(), Self::twice(value)));
        self.known.borrow_mut().extend(answers);
    }
}

impl Environment for Answers {
    fn run(&self) -> &Value {
        &Value::Null
    }

    fn workflow(&self) -> &Value {
        &Value::Null
    }

    fn variable(&self, _name: &str) -> Option<&Value> {
        None
    }

    fn call_custom(&self, _name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        if self.at_once {
            return Self::twice(&arguments[0]);
        }
        if let Some(known) = self.known.borrow().get(&arguments[0].to_string()) {
            return known.clone();
        }
        self.wanted.borrow_mut().push(arguments[0].clone());
        Err(EvaluationError::unanswered())
    }

    fn lacks_answers(&self) -> bool {
        !self.wanted.borrow().is_empty()
    }

    fn recorded(&self) {
        self.known.borrow_mut().clear();
    }
}

/// What is recorded of a run, and how often answers were brought.
fn run(graph: &Graph, at_once: bool) -> (Vec<EventBody>, u32) {
    let plan = Plan::compile(graph, &registry(), &Twice).map_err(|problems| format!("{problems:?}"));
    let mut state = RunState::new(Arc::new(plan.unwrap()));
    let answers = Answers::new(at_once);
    let mut recorded = Vec::new();
    let mut inputs = VecDeque::from([Input::Start(Start::manual())]);
    while let Some(input) = inputs.pop_front() {
        match state.step(input.clone(), 1_000, &answers) {
            Ok(step) => {
                recorded.extend(step.events.into_iter().map(|event| event.body));
                for command in step.commands {
                    match command {
                        Command::Continue => inputs.push_front(Input::Continue),
                        Command::Execute(execute) => inputs.push_back(Input::NodeFinished {
                            key: execute.key,
                            attempt: execute.attempt,
                            result: Ok(execute.request),
                        }),
                        _ => {}
                    }
                }
            }
            Err(StepError::Unanswered) => inputs.push_front(input),
            Err(error) => panic!("{error}"),
        }
        answers.bring();
    }
    assert!(state.finished().is_some(), "the run does not end: {recorded:?}");
    (recorded, answers.rounds.get())
}

#[track_caller]
fn assert_same(graph: &Graph) -> u32 {
    let (at_once, _) = run(graph, true);
    let (late, rounds) = run(graph, false);
    assert_eq!(late, at_once);
    rounds
}

#[test]
fn calls_that_do_not_wait_for_each_other_are_one_round() {
    let mut graph = graph("1:manual_trigger 2:set | 1-2");
    let fields = json!({
        "a": "{{twice(1) + twice(2)}}", "b": ["{{twice(3)}}", { "c": "<{{twice(4)}}|{{twice(5)}}>" }],
        "d": "{{map([6, 7]; n => twice(n))}}", "e": "{{filter([8, 9]; n => twice(n) > 16)}}",
        "f": "{{[twice(10), {g: twice(11)}]}}", "h": "{{if(true; twice(12); twice(13))}}",
    });
    set_params(&mut graph, 2, json!({ "fields": fields }));
    assert_eq!(assert_same(&graph), 1);
    let nested = json!({ "a": "{{twice(twice(twice(1)))}}", "b": "{{twice(1) > 1 and twice(2) > 1}}" });
    set_params(&mut graph, 2, json!({ "fields": nested }));
    assert_eq!(assert_same(&graph), 3);
}

#[test]
fn failures_of_functions_are_failures_of_the_node() {
    let mut graph = graph("1:manual_trigger 2:set 3:set | 1-2 2-3-error");
    set_params(
        &mut graph,
        2,
        json!({ "fields": { "a": "{{twice('x')}}", "b": "{{upper(twice(2) * 'y')}}" } }),
    );
    set_filter(
        &mut graph,
        "2-3-error",
        json!("{{twice(1) = 2 and error.code = 'CODE_ERROR'}}"),
    );
    assert!(assert_same(&graph) >= 2);
}

#[test]
fn routes_scopes_and_collections_wait_too() {
    let mut graph = graph(
        "1:manual_trigger 2:splitter 3:set 4:call 5:set 6:aggregator(2) 7:set | 1-2 2-3 3-4 3-5 4-6 5-6 6-7",
    );
    set_params(
        &mut graph,
        2,
        json!({ "items": "{{map([1, 2, 3, 4]; n => twice(n))}}" }),
    );
    set_params(&mut graph, 3, json!({ "fields": { "n": "{{twice($item)}}" } }));
    set_params(&mut graph, 6, json!({ "of": 2, "collect": "{{twice($index)}}" }));
    set_filter(&mut graph, "2-3", json!("{{twice($item) > 4}}"));
    set_filter(&mut graph, "3-4", json!("{{twice(3.n) > 20}}"));
    set_filter(&mut graph, "3-5", json!("{{twice(3.n) < 30}}"));
    set_filter(&mut graph, "4-6", json!("{{twice($index) > 2}}"));
    assert!(assert_same(&graph) > 4);
    for concurrency in [1, 3] {
        set_config(
            &mut graph,
            2,
            json!({ "concurrency": concurrency, "onError": "continue" }),
        );
        set_params(&mut graph, 5, json!({ "fields": { "bad": "{{twice('x')}}" } }));
        assert!(assert_same(&graph) > 4);
    }
}
