//! What the kinds of this module compile to: their parameters, evaluated by the engine and executed here.

use engine::expression::{CompiledValue, CustomFunctions};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External};
use engine::params::ParamProblem;
use engine::scope::NodeScope;
use serde_json::Value;

/// All parameters of a node.
struct Parameters(CompiledValue);

/// A node whose executor gets all its parameters, evaluated.
pub(super) fn compile(node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
    let compiled = CompiledValue::compile(&Value::Object(node.params.clone()), functions);
    let compiled = compiled.map_err(|found| {
        let problem = |(path, error): (String, engine::expression::ParseError)| {
            ParamProblem::new(path, error.to_string())
        };
        found.into_iter().map(problem).collect::<Vec<_>>()
    })?;
    Ok(Behaviour::External(Box::new(Parameters(compiled))))
}

impl External for Parameters {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        Ok(self.0.evaluate(scope)?)
    }
}
