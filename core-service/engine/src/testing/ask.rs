//! A kind that waits for an answer from elsewhere, as people and other runs give them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::expression::CustomFunctions;
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, External, Kind, NodeSpec};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

/// Its executions are parked. What its parameters say of the answers is for whoever plays the world outside.
pub(super) struct Ask;

/// What an `ask` is told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Asked {
    /// When somebody answers, in milliseconds from the beginning of each attempt: before it is parked, or later.
    pub(crate) answers_after_ms: Vec<u64>,
    /// How long it waits once it is parked.
    pub(crate) patience_ms: Option<u64>,
    /// Whether it goes on without an answer.
    goes_on: bool,
}

impl Asked {
    /// What an `ask` was told, by its request; nothing for other kinds.
    pub(crate) fn of(request: &Value) -> Option<Self> {
        request.get("answersAfterMs")?;
        serde_json::from_value(request.clone()).ok()
    }
}

impl Kind for Ask {
    fn spec(&self) -> NodeSpec {
        let names = ["answersAfterMs", "patienceMs", "goesOn"];
        let shape = names.map(|name| FieldSpec::optional(name, FieldType::Any, "See the code."));
        NodeSpec::step("ask", "Ask", "Is answered from outside.").with_shape(shape)
    }

    fn compile(&self, node: &Node, _functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::External(Box::new(Question(Value::Object(
            node.params.clone(),
        )))))
    }
}

struct Question(Value);

impl External for Question {
    fn request(&self, _scope: &dyn NodeScope) -> Result<Value, NodeError> {
        Ok(self.0.clone())
    }

    fn timed_out(&self, _scope: &dyn NodeScope) -> Result<Option<Value>, NodeError> {
        let told = Asked::of(&self.0).unwrap_or_default();
        Ok(told.goes_on.then(|| json!({ "timedOut": true })))
    }
}
