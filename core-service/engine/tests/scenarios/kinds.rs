//! Stand-ins for the kinds that are executed outside the engine: what comes of them, the scenario tells.

use std::collections::BTreeSet;

use engine::expression::{CompiledValue, CustomFunctions};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External, Kind, Kinds as _, NodeSpec, Registry};
use engine::params::{FieldSpec, FieldType, ParamProblem};
use engine::scope::NodeScope;
use scenarios::Scenario;
use serde_json::{Value, json};

/// The kind that asks people.
pub(crate) const HUMAN_INPUT: &str = "human_input";
/// Kinds that cost nothing.
const FREE: [&str; 2] = [HUMAN_INPUT, "run_workflow"];

/// The engine's own kinds, and a stand-in for each other one that the scenario draws.
pub(crate) fn kinds(scenario: &Scenario) -> Registry {
    let mut kinds = Registry::pure();
    for node in scenario.nodes.values() {
        if kinds.find(engine::graph::NATIVE_APP, &node.kind).is_err() {
            kinds.add(StandIn::of(scenario, &node.kind));
        }
    }
    kinds
}

/// A kind with whatever parameters the scenario gives it.
struct StandIn {
    kind: String,
    params: BTreeSet<String>,
}

impl StandIn {
    fn of(scenario: &Scenario, kind: &str) -> Self {
        let nodes = scenario.nodes.values().filter(|node| node.kind == kind);
        Self {
            kind: kind.to_owned(),
            params: nodes.flat_map(|node| node.params.keys().cloned()).collect(),
        }
    }
}

impl Kind for StandIn {
    fn spec(&self) -> NodeSpec {
        let told = "What comes of it, the scenario tells.";
        let spec = match FREE.contains(&self.kind.as_str()) {
            true => NodeSpec::flow(&self.kind, &self.kind, told),
            false => NodeSpec::step(&self.kind, &self.kind, told),
        };
        let fields = self.params.iter();
        spec.with_shape(fields.map(|name| FieldSpec::optional(name, FieldType::Any, told)))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let params = Value::Object(node.params.clone());
        let params = CompiledValue::compile(&params, functions).unwrap();
        Ok(Behaviour::External(Box::new(Request(params))))
    }
}

struct Request(CompiledValue);

impl External for Request {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        Ok(self.0.evaluate(scope)?)
    }

    fn timed_out(&self, scope: &dyn NodeScope) -> Result<Option<Value>, NodeError> {
        let goes_on = self.0.evaluate(scope)?["onTimeout"] == "continue";
        let nothing = json!({ "response": null, "respondedBy": null, "respondedAt": null, "timedOut": true });
        Ok(goes_on.then_some(nothing))
    }
}
