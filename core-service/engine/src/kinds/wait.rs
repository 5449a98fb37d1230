//! `wait`: goes on after a time or at an instant.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::expression::{CompiledValue, CustomFunctions, Scope};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem};

use super::support::{compile_field, text, type_name};

/// Longest wait: ten years, in milliseconds.
const MAX_WAIT_MS: f64 = 3_652.0 * 86_400_000.0;

pub(crate) struct WaitKind;

impl Kind for WaitKind {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            "wait",
            "Wait",
            "Goes on after a time or at an instant; one in the past is no wait. Output: until, in epoch milliseconds.",
        )
        .with_shape([
            FieldSpec::optional("amount", FieldType::Number, "How long, together with unit."),
            FieldSpec::optional(
                "unit",
                FieldType::choice(&["seconds", "minutes", "hours", "days"]),
                "The unit of amount.",
            ),
            FieldSpec::optional("until", FieldType::Any, "The instant: ISO-8601 with an offset, or epoch milliseconds."),
        ])
        .with_example(json!({ "amount": 15, "unit": "minutes" }))
    }

    fn check(&self, params: &Map<String, Value>, completeness: Completeness) -> Vec<ParamProblem> {
        let has = |name: &str| params.get(name).is_some_and(|value| !value.is_null());
        let mut problems = Vec::new();
        if has("until") && (has("amount") || has("unit")) {
            problems.push(ParamProblem::new(
                "until",
                "excludes amount and unit: give one or the other",
            ));
        }
        if completeness == Completeness::Complete && !has("until") {
            if !has("amount") {
                problems.push(ParamProblem::new(
                    "amount",
                    "is required, with unit, when until is absent",
                ));
            } else if !has("unit") {
                problems.push(ParamProblem::new("unit", "is required with amount"));
            }
        }
        if params
            .get("amount")
            .and_then(Value::as_f64)
            .is_some_and(|amount| amount < 0.0)
        {
            problems.push(ParamProblem::new("amount", "must not be negative"));
        }
        problems
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let amount = compile_field(node, "amount", functions)?;
        let unit = compile_field(node, "unit", functions)?;
        let until = compile_field(node, "until", functions)?;
        Ok(Behaviour::Wait(Wait { amount, unit, until }))
    }
}

/// The parameters of a wait node.
pub struct Wait {
    amount: CompiledValue,
    unit: CompiledValue,
    until: CompiledValue,
}

impl Wait {
    /// The instant the node goes on at, in epoch milliseconds.
    pub fn due_at_ms(&self, scope: &dyn Scope) -> Result<i64, NodeError> {
        match self.until.evaluate(scope)? {
            Value::Null => self.after(scope),
            Value::Number(instant) => {
                let whole = instant.as_i64().or_else(|| instant.as_f64().map(|ms| ms as i64));
                bounded(whole.unwrap_or(i64::MAX), scope.now())
            }
            Value::String(instant) => match instant.parse::<Timestamp>() {
                Ok(timestamp) => bounded(timestamp.as_millisecond(), scope.now()),
                Err(_) => Err(NodeError::expression(format!(
                    "until must be an instant such as 2026-05-01T09:00:00Z, not {instant:?}"
                ))),
            },
            other => Err(NodeError::expression(format!(
                "until must be an instant, not {}",
                type_name(&other)
            ))),
        }
    }

    fn after(&self, scope: &dyn Scope) -> Result<i64, NodeError> {
        let amount = match self.amount.evaluate(scope)? {
            Value::Number(amount) => amount.as_f64().unwrap_or(f64::NAN),
            other => {
                return Err(NodeError::expression(format!(
                    "amount must be a number, not {}",
                    type_name(&other)
                )));
            }
        };
        let unit_ms = match text(&self.unit, "unit", scope)?.as_deref() {
            Some("seconds") => 1_000.0,
            Some("minutes") => 60_000.0,
            Some("hours") => 3_600_000.0,
            Some("days") => 86_400_000.0,
            _ => {
                return Err(NodeError::expression(
                    "unit must be seconds, minutes, hours or days",
                ));
            }
        };
        let wait_ms = amount * unit_ms;
        if !(0.0..=MAX_WAIT_MS).contains(&wait_ms) {
            return Err(too_far());
        }
        Ok(scope.now().saturating_add(wait_ms as i64))
    }
}

fn bounded(due_at_ms: i64, now_ms: i64) -> Result<i64, NodeError> {
    let wait_ms = due_at_ms.saturating_sub(now_ms);
    if wait_ms as f64 > MAX_WAIT_MS {
        Err(too_far())
    } else {
        Ok(due_at_ms)
    }
}

fn too_far() -> NodeError {
    NodeError::expression("a node waits from zero milliseconds to ten years")
}
