//! User code in its processes: what it can do, what it cannot, and that nobody else notices.
#![allow(clippy::unwrap_used, reason = "tests")]

mod attacks;
mod confinement;
mod language;
mod sharing;

use core_service::sandbox::{Call, FailureKind, Form, Outcome, Sandbox, SandboxConfig};
use engine::event::LogLine;
use serde_json::{Value, json};

/// A sandbox of the case's own.
async fn sandbox() -> Sandbox {
    let config = SandboxConfig::new(test_support::binary("switchyard"));
    Sandbox::start(config).await.unwrap()
}

/// A call of an async body that sees `input` and may take as long as a slow machine needs.
fn call(code: &str, input: Value) -> Call {
    Call {
        code: code.to_owned(),
        form: Form::AsyncBody,
        parameters: vec!["input".to_owned()],
        arguments: vec![input],
        limit_ms: 20_000,
    }
}

async fn run(sandbox: &Sandbox, code: &str, input: Value) -> Outcome {
    run_for(sandbox, "org_1", call(code, input)).await
}

/// Runs a call whose console output is of no interest.
async fn run_for(sandbox: &Sandbox, organization: &str, call: Call) -> Outcome {
    sandbox.call(organization, call, |_line| {}).await.unwrap()
}

/// Runs a call and gives also what it wrote to the console.
async fn heard(sandbox: &Sandbox, call: Call) -> (Outcome, Vec<LogLine>) {
    let mut lines = Vec::new();
    let outcome = sandbox.call("org_1", call, |line| lines.push(line)).await;
    (outcome.unwrap(), lines)
}

/// What code returns.
async fn returned(sandbox: &Sandbox, code: &str, input: Value) -> Value {
    let outcome = run(sandbox, code, input).await;
    outcome
        .result
        .unwrap_or_else(|failure| panic!("{code}: {failure}"))
}

/// How code fails.
async fn failed(sandbox: &Sandbox, code: &str) -> (FailureKind, String) {
    match run(sandbox, code, json!({})).await.result {
        Err(failure) => (failure.kind, failure.message),
        Ok(value) => panic!("{code}: {value}"),
    }
}
