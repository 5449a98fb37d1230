//! A run that ends each process that executes it is failed after three of them; those beside it go on and succeed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use test_support::{Server, ServerOptions, ShowLog, graphs, postgres_or_skip, text, until};
use tokio::sync::mpsc;

use crate::cluster;
use crate::sink::Sink;
use crate::tenant::Tenant;

/// How long the sink takes for a harmless call: longer than a process lives that executes the deadly run.
const LONG: Duration = Duration::from_secs(3);
/// Harmless runs that are executing whenever a process ends.
const BYSTANDERS: usize = 2;
/// Processes that the run may end.
const LOSSES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_fails_the_run_that_ends_processes() {
    the_deadly_run_is_failed_and_no_other(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_fails_the_run_that_ends_processes() {
    let Some(database) = postgres_or_skip("a deadly run").await else {
        return;
    };
    the_deadly_run_is_failed_and_no_other(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

async fn the_deadly_run_is_failed_and_no_other(database_url: Option<String>) {
    let (dying, mut deaths) = mpsc::unbounded_channel();
    let dying = Arc::new(dying);
    let sink = Sink::start_with(move |path| {
        let (is_deadly, dying) = (path.contains("deadly"), Arc::clone(&dying));
        async move {
            if is_deadly {
                dying.send(()).unwrap();
                // Whoever asked dies before it hears anything.
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LONG).await;
        }
    });
    let options = ServerOptions {
        database_url,
        ..cluster::options_with(1_000, &[])
    };
    let mut server = Server::start(options).await;
    let tenant = Tenant::open_with(&server, sink.await).await;
    let calling = |path: &str| {
        let call = json!({ "method": "POST", "url": tenant.sink.url_of(path) });
        graphs::chain(&[("manual_trigger", json!({})), ("http_request", call)])
    };
    let harmless = tenant.live("Harmless", calling("/harmless/{{$run.id}}")).await;
    let deadly = tenant.live("Deadly", calling("/deadly/{{$run.id}}")).await;
    let mut bystanders = Vec::new();
    for _ in 0..BYSTANDERS {
        bystanders.push(tenant.api.start(&harmless, json!({})).await);
    }
    // All are executing when the first process ends.
    let called = until(async || (tenant.sink.calls_of("harmless") == BYSTANDERS).then_some(())).await;
    assert!(called.is_some(), "the harmless runs do not begin");
    let culprit = tenant.api.start(&deadly, json!({})).await;
    for _ in 0..LOSSES {
        deaths.recv().await.unwrap();
        server.kill_hard();
        server.restart().await;
    }
    let _log = ShowLog(&server);
    let report = tenant.api.ended(&culprit).await;
    assert_eq!(report["status"], "failed", "{report}");
    assert!(text(&report["error"]).starts_with("ENGINE_ERROR: "), "{report}");
    for bystander in bystanders {
        let report = tenant.api.ended(&bystander).await;
        assert_eq!(report["status"], "succeeded", "{report}");
    }
    assert_eq!(tenant.sink.calls_of("deadly"), LOSSES);
    assert_eq!(tenant.sink.changed_keys(), [""; 0]);
    assert_eq!(tenant.credit_drift(&tenant.api).await, 0);
}
