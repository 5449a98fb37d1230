//! Orderly ends, crashes, and what a server finds again.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use test_support::{Server, ServerOptions, ShowLog, graphs, text, together, until};

use super::Own;

/// The contract's limit for an orderly end.
const DRAINED_WITHIN: Duration = Duration::from_secs(10);

/// Makes two tests of each case, which is an `async fn(Own)`.
macro_rules! with_a_server_each {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(super::Own::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                if let Some(own) = super::Own::postgres(stringify!($case)).await {
                    super::$case(own).await;
                }
            })+
        }
    };
}

with_a_server_each!(
    requests_in_flight_are_answered_before_the_end,
    a_waiting_run_survives_an_orderly_restart,
    what_was_acknowledged_survives_a_crash,
);

async fn requests_in_flight_are_answered_before_the_end(mut own: Own) {
    let api = own.server.first_api();
    let workflow = api.workflow_with("x", graphs::small_flow()).await;
    let start = |number: usize| {
        let (api, path) = (api.clone(), format!("/api/v1/workflows/{workflow}/runs"));
        async move {
            let key = format!("request-{number}");
            let headers = [
                ("idempotency-key", key.as_str()),
                ("content-type", "application/json"),
            ];
            api.try_send(http::Method::POST, &path, &headers, "{}".into())
                .await
        }
    };
    let starts: Vec<_> = (0..20).map(start).collect();
    let in_flight = tokio::spawn(together(starts));
    // Until the first of them is there, nothing is in flight.
    let begun = until(async || {
        let (rows, _) = api
            .get(format!("/runs?workflowId={workflow}&limit=1"))
            .await
            .page();
        (!rows.is_empty()).then_some(())
    });
    begun.await.unwrap();
    let started = std::time::Instant::now();
    let status = own.server.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", own.server.log());
    assert!(started.elapsed() < DRAINED_WITHIN, "{:?}", started.elapsed());
    // Whoever was let in got the whole answer; whoever came later found a closed door.
    let mut acknowledged = Vec::new();
    for answer in in_flight.await.unwrap() {
        match answer {
            Ok(answer) => acknowledged.push(text(&answer.data(201)["runId"])),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{error}"),
        }
    }
    own.server.restart().await;
    let _log = ShowLog(&own.server);
    assert!(!acknowledged.is_empty());
    for run in acknowledged {
        assert_eq!(api.ended(&run).await["status"], "succeeded");
    }
}

/// A run that waits for a second, and what it is to give afterwards.
fn short_wait() -> Value {
    graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "before": "{{$now}}" } })),
        ("wait", json!({ "amount": 1, "unit": "seconds" })),
        ("set", json!({ "fields": { "before": "{{2.before}}" } })),
    ])
}

async fn a_waiting_run_survives_an_orderly_restart(mut own: Own) {
    let api = own.server.first_api();
    let workflow = api.workflow_with("x", short_wait()).await;
    let run = api.start(&workflow, json!({})).await;
    let waiting = api.reached(&run, &["waiting"]).await;
    assert_eq!(own.server.terminate().await.code(), Some(0));
    own.server.restart().await;
    let _log = ShowLog(&own.server);
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    // What was done before is not done again.
    assert_eq!(report["nodes"][1], waiting["nodes"][1]);
    assert_eq!(report["nodes"][3]["output"], waiting["nodes"][1]["output"]);
}

async fn what_was_acknowledged_survives_a_crash(mut own: Own) {
    let api = own.server.first_api();
    let waiting = api.workflow_with("waiting", short_wait()).await;
    let quick = api.workflow_with("quick", graphs::order_flow()).await;
    api.go_live(&quick).await;
    let webhook = api.mint(&quick, 1).await;
    let mut runs = Vec::new();
    for number in 0..10 {
        runs.push(api.start(&waiting, json!({})).await);
        let order = json!({ "id": number, "price": 60, "customer": "Ada" });
        runs.push(text(
            &api.call_hook(&webhook, &[], order).await.data(202)["runId"],
        ));
    }
    own.server.kill_hard();
    own.server.restart().await;
    let _log = ShowLog(&own.server);
    for run in runs {
        let report = api.ended(&run).await;
        assert_eq!(report["status"], "succeeded", "{report}");
    }
    let draft = api.get(format!("/workflows/{quick}")).await.data(200);
    assert_eq!(
        (&draft["active"], &draft["deployed"]["versionNo"]),
        (&json!(true), &json!(1))
    );
}

#[tokio::test]
async fn the_first_start_leaves_private_files() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = Server::start(ServerOptions::default()).await;
    for name in ["initial-api-key", "operator-token", "master-key"] {
        let file = std::fs::metadata(server.data_dir().join(name)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let log = server.log();
    assert!(log.contains("curl -H 'Authorization: Bearer swy_local_"), "{log}");
    let _ = server.first_api().get("/workflows").await.page();
}

#[tokio::test]
async fn a_locked_database_is_a_reason_to_try_again() {
    let own = Own::sqlite().await;
    let _log = ShowLog(&own.server);
    let api = own.server.first_api();
    let workflow = api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/runs");
    let database = own.server.data_dir().join("switchyard.db");
    let options = SqliteConnectOptions::new().filename(database);
    let mut other = options.connect().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let refused = api.post(&path, json!({})).await;
    let _ = refused.error(503, "UNAVAILABLE");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    let started = until(async || {
        let answer = api.post(&path, json!({})).await;
        (answer.status == 201).then_some(answer)
    });
    let run = text(&started.await.unwrap().data(201)["runId"]);
    assert_eq!(api.ended(&run).await["status"], "succeeded");
}
