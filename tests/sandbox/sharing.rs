//! Who shares what: processes between the calls of one organization, nothing between two.

use core_service::sandbox::{Call, Form, Sandbox, SandboxConfig};
use serde_json::json;

use crate::{call, run_for, sandbox};

#[tokio::test]
async fn no_process_serves_two_organizations() {
    let sandbox = sandbox().await;
    let mut seen: Vec<(u32, &str)> = Vec::new();
    for _round in 0..3 {
        for organization in ["org_1", "org_2", "org_3"] {
            let outcome = run_for(&sandbox, organization, call("return 1", json!({}))).await;
            seen.push((outcome.process_id.unwrap(), organization));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(
        seen.len(),
        3,
        "a process for each organization, and the same one again: {seen:?}"
    );
    let mut processes: Vec<u32> = seen.iter().map(|(process, _)| *process).collect();
    processes.dedup();
    assert_eq!(processes.len(), 3, "{seen:?}");
}

#[tokio::test]
async fn an_endless_call_holds_up_nobody_else() {
    let sandbox = sandbox().await;
    let endless = || async {
        let call = Call {
            limit_ms: 60_000,
            ..call("for (;;) {}", json!({}))
        };
        run_for(&sandbox, "org_1", call).await
    };
    // More than the organization's share: some of them wait for their turn.
    let flood = async { tokio::join!(endless(), endless(), endless(), endless()) };
    tokio::pin!(flood);
    for _ in 0..20 {
        tokio::select! {
            biased;
            _ = &mut flood => panic!("endless code has ended"),
            other = run_for(&sandbox, "org_2", call("return input + 1", json!(1))) => {
                assert_eq!(other.result, Ok(json!(2)));
            }
        }
    }
}

#[tokio::test]
async fn waiting_for_a_turn_does_not_count() {
    let config = SandboxConfig {
        workers: 1,
        workers_per_organization: 1,
        ..SandboxConfig::new(test_support::binary("switchyard"))
    };
    let sandbox = Sandbox::start(config).await.unwrap();
    let busy = call(
        "const until = Date.now() + 2_000; while (Date.now() < until) {} return 1",
        json!({}),
    );
    let quick = Call {
        limit_ms: 1_500,
        ..call("return 2", json!({}))
    };
    // The second waits longer than it may run.
    let (first, second) = tokio::join!(
        run_for(&sandbox, "org_1", busy),
        run_for(&sandbox, "org_1", quick)
    );
    assert_eq!((first.result, second.result), (Ok(json!(1)), Ok(json!(2))));
}

#[tokio::test]
async fn calls_of_one_batch_fail_alone() {
    let sandbox = sandbox().await;
    let codes = [
        "return 1",
        "for (;;) {}",
        "return 'x'.repeat(100 * 2 ** 20)",
        "throw new Error('x')",
        "return 5",
    ];
    let calls: [Call; 5] = codes.map(|code| Call {
        form: Form::Function,
        limit_ms: 3_000,
        ..call(code, json!({}))
    });
    let outcomes = sandbox.call_all("org_1", &calls).await.unwrap();
    let told: Vec<String> = outcomes
        .iter()
        .map(|outcome| match &outcome.result {
            Ok(value) => value.to_string(),
            Err(failure) => failure.kind.code().to_owned(),
        })
        .collect();
    assert_eq!(told, ["1", "CODE_TIMEOUT", "CODE_MEMORY", "CODE_ERROR", "5"]);
}

#[tokio::test]
async fn a_batch_larger_than_a_request_is_sent_in_parts() {
    let sandbox = sandbox().await;
    let large = "x".repeat(3 << 20);
    let calls: Vec<Call> = (0..5)
        .map(|_| call("return input.length", json!(large)))
        .collect();
    let outcomes = sandbox.call_all("org_1", &calls).await.unwrap();
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.result == Ok(json!(3 << 20)))
    );
    assert_eq!(outcomes.len(), 5);
}
