//! `js_code`: JavaScript of the workflow's author, run in the sandbox.

use std::sync::Arc;

use engine::expression::{CompiledValue, CustomFunctions, Root};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType, ParamProblem};
use engine::scope::NodeScope;
use serde_json::{Map, Value, json};

use super::{BoxFuture, Executed, Execution, Executor, Registry};
use crate::javascript::{self, Mentions};
use crate::sandbox::{Call, Form, Sandbox, SandboxError};

/// How long code may take that says nothing else, in milliseconds.
const DEFAULT_LIMIT_MS: u64 = 10_000;
/// The longest that code may take, in milliseconds.
const MAX_LIMIT_MS: u64 = 60_000;
/// Most bytes of code.
const MAX_CODE: usize = 256 << 10;
/// What code sees besides `console`, in the order of the request's arguments.
const PARAMETERS: [&str; 5] = ["input", "nodes", "item", "index", "run"];

/// What the kind is.
struct JsCode;

/// What it does.
struct RunJsCode {
    sandbox: Sandbox,
}

/// Adds the kind.
pub(super) fn register(registry: &mut Registry, sandbox: &Sandbox) {
    let sandbox = sandbox.clone();
    registry.add_executed(JsCode, Arc::new(RunJsCode { sandbox }));
}

impl Kind for JsCode {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "js_code",
            "Run JavaScript",
            "Runs JavaScript without network, files or modules. The code is the body of an async function that sees \
             input (the output of the node before it; with several, an object by node id), nodes (the outputs of the \
             nodes above it by id), item and index (inside a splitter's region, else null), run and console. Output: \
             what it returns; a value that is no object as value.",
        )
        .with_shape([
            FieldSpec::required("code", FieldType::Code, "The body of an async function."),
            FieldSpec::optional(
                "timeoutMs",
                FieldType::Integer,
                "Milliseconds the code may take: 1 to 60000, 10000 by default.",
            ),
        ])
        .with_example(json!({
            "code": "const total = nodes[1].body.items.reduce((sum, item) => sum + item.price, 0);\nreturn { total };",
            "timeoutMs": 2_000,
        }))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let code = params.get("code").and_then(Value::as_str).and_then(code_problem);
        let limit = params.get("timeoutMs").and_then(Value::as_i64);
        let limit = limit.filter(|limit| !is_limit(*limit)).map(|_| limit_problem());
        let located = |name: &'static str| move |message: String| ParamProblem::new(name, message);
        let problems = code.map(located("code")).into_iter();
        problems.chain(limit.map(located("timeoutMs"))).collect()
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let limit = node.params.get("timeoutMs").unwrap_or(&Value::Null);
        let limit = CompiledValue::compile(limit, functions).map_err(|found| {
            let locate = |(path, error): (String, engine::expression::ParseError)| {
                ParamProblem::new(path, error.to_string()).under("timeoutMs")
            };
            found.into_iter().map(locate).collect::<Vec<_>>()
        })?;
        let code = node
            .params
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(Behaviour::External(Box::new(Code {
            mentions: Mentions::of(code),
            code: code.to_owned(),
            limit,
        })))
    }
}

/// What is wrong with code before it runs.
fn code_problem(code: &str) -> Option<String> {
    if code.len() > MAX_CODE {
        return Some(format!("may have at most {MAX_CODE} bytes"));
    }
    let checked = javascript::check_async_body(&PARAMETERS, code);
    checked
        .err()
        .map(|problem| format!("is not the body of a JavaScript function: {problem}"))
}

fn is_limit(limit_ms: i64) -> bool {
    u64::try_from(limit_ms).is_ok_and(|limit| (1..=MAX_LIMIT_MS).contains(&limit))
}

fn limit_problem() -> String {
    format!("must be 1 to {MAX_LIMIT_MS} milliseconds")
}

struct Code {
    code: String,
    mentions: Mentions,
    limit: CompiledValue,
}

impl External for Code {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let limit_ms = match self.limit.evaluate(scope)? {
            Value::Null => DEFAULT_LIMIT_MS,
            given => given
                .as_i64()
                .filter(|limit| is_limit(*limit))
                .map(i64::unsigned_abs)
                .ok_or_else(|| NodeError::expression(format!("timeoutMs {}", limit_problem())))?,
        };
        let mentioned = scope
            .ancestors()
            .into_iter()
            .filter(|(id, _)| self.mentions.contains(*id));
        let nodes: Map<String, Value> = mentioned
            .map(|(id, output)| (id.to_string(), Value::clone(&output)))
            .collect();
        let root = |root| scope.root(root).cloned().unwrap_or_default();
        let input = Arc::unwrap_or_clone(scope.input());
        Ok(json!({
            "code": self.code,
            "limitMs": limit_ms,
            "arguments": [input, nodes, root(Root::Item), scope.index(), root(Root::Run)],
        }))
    }

    fn only_computes(&self) -> bool {
        true
    }
}

impl Executor for RunJsCode {
    fn execute(&self, mut execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let arguments = match execution.request["arguments"].take() {
                Value::Array(arguments) => arguments,
                _ => Vec::new(),
            };
            let call = Call {
                code: match execution.request["code"].take() {
                    Value::String(code) => code,
                    _ => String::new(),
                },
                form: Form::AsyncBody,
                parameters: PARAMETERS.map(str::to_owned).into(),
                arguments,
                limit_ms: execution.request["limitMs"].as_u64().unwrap_or(DEFAULT_LIMIT_MS),
            };
            run(&self.sandbox, &execution, call).await
        })
    }
}

/// Runs a call for a node: its console output is the node's, and so is its failure.
pub(super) async fn run(sandbox: &Sandbox, execution: &Execution, call: Call) -> Result<Executed, NodeError> {
    let hear = |line| execution.log.write(line);
    let outcome = sandbox.call(&execution.organization_id, call, hear).await?;
    match outcome.result {
        Ok(output) => Ok(Executed::Output(output)),
        Err(failure) => Err(NodeError::new(failure.kind.code(), failure.message)),
    }
}

impl From<SandboxError> for NodeError {
    fn from(error: SandboxError) -> Self {
        Self::new("ENGINE_ERROR", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(params: Value) -> Vec<String> {
        let Value::Object(params) = params else {
            return Vec::new();
        };
        let found = JsCode.check(&params, Completeness::Complete);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_example_passes_its_own_check() {
        assert_eq!(problems(JsCode.spec().example), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_body_is_named_with_its_line() {
        assert_eq!(
            problems(json!({ "code": "return await input.a" })),
            Vec::<String>::new()
        );
        for (code, part) in [
            ("const a = 1;\nreturn a +", "at line 2"),
            ("}); while (true) {} (function () {", "code is not the body"),
            ("import fs from 'fs'", "code is not the body"),
        ] {
            let found = problems(json!({ "code": code }));
            assert!(found.len() == 1 && found[0].contains(part), "{code}: {found:?}");
        }
        assert_eq!(problems(json!({ "code": "x".repeat(MAX_CODE + 1) })).len(), 1);
    }

    #[test]
    fn the_limit_is_bounded() {
        for (limit, expected) in [(1, 0), (60_000, 0), (0, 1), (-1, 1), (60_001, 1)] {
            assert_eq!(
                problems(json!({ "code": "", "timeoutMs": limit })).len(),
                expected,
                "{limit}"
            );
        }
    }
}
