//! What holds of every evaluation, whatever is evaluated.

use std::collections::BTreeSet;

use engine::expression::limits::{MAX_PARAMETERS_BYTES, MAX_RESULT_BYTES, MAX_VALUE_DEPTH};
use engine::expression::{CompiledValue, EvaluationError, Scope, Template};
use engine::filter::CompiledFilter;
use serde_json::Value;

use crate::world::World;

/// The longest message of a failure: it is recorded with the run and shown to people.
const MAX_MESSAGE_BYTES: usize = 1_000;

/// Something with templates in it.
pub trait Evaluated {
    /// What it gives.
    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError>;

    /// The names of all that it says it reads: nodes, variables and functions. `None` when it does not say.
    fn references(&self) -> Option<(BTreeSet<i64>, BTreeSet<String>, BTreeSet<String>)>;

    /// The most text that it may give, in bytes.
    const MAX_BYTES: usize;
}

impl Evaluated for Template {
    const MAX_BYTES: usize = MAX_RESULT_BYTES;

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.evaluate(scope)
    }

    fn references(&self) -> Option<(BTreeSet<i64>, BTreeSet<String>, BTreeSet<String>)> {
        Some((
            self.node_references().collect(),
            self.variable_references().map(str::to_owned).collect(),
            self.custom_functions().map(str::to_owned).collect(),
        ))
    }
}

impl Evaluated for CompiledValue {
    const MAX_BYTES: usize = MAX_PARAMETERS_BYTES;

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.evaluate(scope)
    }

    fn references(&self) -> Option<(BTreeSet<i64>, BTreeSet<String>, BTreeSet<String>)> {
        Some((
            self.node_references().collect(),
            self.variable_references().map(str::to_owned).collect(),
            self.custom_functions().map(str::to_owned).collect(),
        ))
    }
}

impl Evaluated for CompiledFilter {
    const MAX_BYTES: usize = 0;

    fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.matches(scope).map(Value::Bool)
    }

    fn references(&self) -> Option<(BTreeSet<i64>, BTreeSet<String>, BTreeSet<String>)> {
        None
    }
}

/// Evaluates, and checks that the outcome is the same every time, within its bounds, of nothing but what is said to
/// be read, and one that can be written down.
pub fn evaluate<T: Evaluated>(evaluated: &T) -> Result<Value, EvaluationError> {
    let world = World::default();
    let outcome = evaluated.evaluate(&world);
    assert_eq!(outcome, evaluated.evaluate(&World::default()), "evaluated twice");
    if let Some((nodes, variables, functions)) = evaluated.references() {
        assert!(
            world.nodes.borrow().is_subset(&nodes),
            "reads nodes beside {nodes:?}"
        );
        assert!(
            world.variables.borrow().is_subset(&variables),
            "reads variables beside {variables:?}"
        );
        assert!(
            world.functions.borrow().is_subset(&functions),
            "calls functions beside {functions:?}"
        );
    }
    match &outcome {
        Ok(value) => check_value(value, T::MAX_BYTES),
        Err(error) => {
            assert!(
                !error.code.is_empty() && !error.message.is_empty(),
                "a failure that says nothing"
            );
            assert!(
                error.message.len() <= MAX_MESSAGE_BYTES,
                "a message of {} bytes",
                error.message.len()
            );
        }
    }
    outcome
}

fn check_value(value: &Value, max_bytes: usize) {
    let (bytes, depth) = measure(value);
    assert!(bytes <= max_bytes, "{bytes} bytes of text");
    assert!(depth <= MAX_VALUE_DEPTH, "{depth} levels");
    // The journal keeps values as JSON: after a crash, a run goes on with what is read back.
    let written = serde_json::to_string(value).expect("a value is JSON");
    let read: Value = serde_json::from_str(&written).expect("JSON is read back");
    assert_eq!(read, *value, "read back from {written}");
}

/// The bytes of text in a value, and how deep it is nested.
fn measure(value: &Value) -> (usize, usize) {
    let within = |parts: &mut dyn Iterator<Item = (usize, &Value)>| {
        parts.fold((0, 0), |(bytes, depth), (name, part)| {
            let (inner, below) = measure(part);
            (bytes + name + inner, depth.max(below + 1))
        })
    };
    match value {
        Value::String(text) => (text.len(), 0),
        Value::Array(items) => within(&mut items.iter().map(|item| (0, item))),
        Value::Object(fields) => within(&mut fields.iter().map(|(name, field)| (name.len(), field))),
        Value::Null | Value::Bool(_) | Value::Number(_) => (0, 0),
    }
}
