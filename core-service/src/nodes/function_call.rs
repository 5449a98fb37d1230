//! `function_call`: a custom function as a node.

use std::sync::Arc;

use engine::expression::{CompiledValue, CustomFunctions, ParseError};
use engine::failure::NodeError;
use engine::graph::{FrozenFunction, Node};
use engine::kind::{Behaviour, External, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType, ParamProblem};
use engine::scope::NodeScope;
use serde_json::{Map, Value, json};

use super::js_code::run;
use super::{BoxFuture, Executed, Execution, Executor, Registry};
use crate::functions;
use crate::sandbox::Sandbox;

/// What the kind is.
struct FunctionCall;

/// What it does.
struct RunFunction {
    sandbox: Sandbox,
}

/// Adds the kind.
pub(super) fn register(registry: &mut Registry, sandbox: &Sandbox) {
    let sandbox = sandbox.clone();
    registry.add_executed(FunctionCall, Arc::new(RunFunction { sandbox }));
}

impl Kind for FunctionCall {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "function_call",
            "Call a custom function",
            "Calls a custom function, which has a second for it. Output: what it returns; a value that is no object as \
             value.",
        )
        .with_shape([
            FieldSpec::required("functionId", FieldType::String, "The function's id; no template."),
            FieldSpec::optional("arguments", FieldType::Object, "The arguments by the names of the parameters."),
        ])
        .with_example(json!({ "functionId": "fn_01jd0example", "arguments": { "price": "{{1.body.price}}" } }))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let id = params.get("functionId").and_then(Value::as_str);
        id.filter(|id| id.is_empty())
            .map(|_| ParamProblem::new("functionId", "must be the id of a function"))
            .into_iter()
            .collect()
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let id = node
            .params
            .get("functionId")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let missing = || {
            let message = format!("names the function {id}, which does not exist or is another team's");
            vec![ParamProblem::new("functionId", message)]
        };
        let function = functions.by_id(id).ok_or_else(missing)?;
        let none = Value::Object(Map::new());
        let given = node
            .params
            .get("arguments")
            .filter(|given| !given.is_null())
            .unwrap_or(&none);
        let problems = argument_problems(&function, given);
        if !problems.is_empty() {
            return Err(problems);
        }
        let arguments = CompiledValue::compile(given, functions).map_err(|found| {
            let locate = |(path, error): (String, ParseError)| {
                ParamProblem::new(path, error.to_string()).under("arguments")
            };
            found.into_iter().map(locate).collect::<Vec<_>>()
        })?;
        Ok(Behaviour::External(Box::new(Called { function, arguments })))
    }
}

/// What is wrong with arguments that are given by name. One template may stand for all of them.
fn argument_problems(function: &FrozenFunction, given: &Value) -> Vec<ParamProblem> {
    let Value::Object(given) = given else {
        return Vec::new();
    };
    let problem = |name: &str, message: String| ParamProblem::new(name, message).under("arguments");
    let unknown = given
        .keys()
        .filter(|name| {
            function
                .parameters
                .iter()
                .all(|parameter| parameter.name != **name)
        })
        .map(|name| problem(name, format!("is no parameter of {}", function.name)));
    let missing = function
        .parameters
        .iter()
        .filter(|parameter| parameter.required && !given.contains_key(&parameter.name))
        .map(|parameter| problem(&parameter.name, format!("is required by {}", function.name)));
    unknown.chain(missing).collect()
}

struct Called {
    function: FrozenFunction,
    arguments: CompiledValue,
}

impl External for Called {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let Value::Object(mut given) = self.arguments.evaluate(scope)? else {
            return Err(NodeError::expression(
                "arguments must be an object of values by name",
            ));
        };
        let arguments: Vec<Value> = self
            .function
            .parameters
            .iter()
            .map(|parameter| given.remove(&parameter.name).unwrap_or_default())
            .collect();
        Ok(json!({ "function": self.function, "arguments": arguments }))
    }

    fn only_computes(&self) -> bool {
        true
    }
}

impl Executor for RunFunction {
    fn execute(&self, mut execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let damaged = |error: serde_json::Error| NodeError::new("ENGINE_ERROR", error.to_string());
            let function: FrozenFunction =
                serde_json::from_value(execution.request["function"].take()).map_err(damaged)?;
            let arguments: Vec<Value> =
                serde_json::from_value(execution.request["arguments"].take()).map_err(damaged)?;
            let call = functions::call_of(&function, arguments);
            run(&self.sandbox, &execution, call).await
        })
    }
}
