//! A server dies on either side of each commit, and what it was doing is done once, by its successor.

use core_service::failpoint::{Boundary, Failpoint, Side};
use serde_json::json;
use test_support::{Server, ServerOptions, ShowLog, graphs, postgres_or_skip, text, until};

use crate::cluster;
use crate::tenant::{Kind, Tenant};

/// Calls of each kind, more or less.
const CALLS_OF_A_KIND: usize = 3;
/// Longer than it takes to set a schedule, in milliseconds.
const SOON_MS: i64 = 2_000;
/// Connections at the same time: few, so that batches are small and commits many.
const CONNECTIONS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_loses_nothing_at_any_commit() {
    die_everywhere(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_loses_nothing_at_any_commit() {
    let Some(database) = postgres_or_skip("failpoints").await else {
        return;
    };
    die_everywhere(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

async fn die_everywhere(database_url: Option<String>) {
    let options = ServerOptions {
        database_url,
        ..cluster::options(1_000)
    };
    let mut server = Server::start(options).await;
    for boundary in Boundary::ALL {
        for side in [Side::Before, Side::After] {
            die_at(&mut server, Failpoint { side, boundary }).await;
        }
    }
}

/// What comes to a commit of this kind.
fn kinds(boundary: Boundary) -> &'static [Kind] {
    match boundary {
        Boundary::Start | Boundary::End => &[Kind::Quick, Kind::Waiting],
        Boundary::Segment => &[Kind::Calling, Kind::Waiting],
        Boundary::Sleep | Boundary::Claim => &[Kind::Sleeping, Kind::Quick],
        Boundary::Ask | Boundary::Answer | Boundary::Wake => &[Kind::Asking, Kind::Quick],
        Boundary::Ending | Boundary::ClaimEndings | Boundary::Told => &[Kind::Parent, Kind::Failing],
        Boundary::Restart => &[Kind::Again],
        Boundary::Effect => &[Kind::Storing],
        Boundary::Fire | Boundary::ClaimSchedules | Boundary::Retire => &[Kind::Quick],
    }
}

async fn die_at(server: &mut Server, failpoint: Failpoint) {
    let tenant = Tenant::open(server).await;
    let kinds = kinds(failpoint.boundary);
    let round = tenant.round(kinds).await;
    let doors = [server.rest_address()];

    server.set_environment(vec![("SWITCHYARD_ABORT_AT".to_owned(), failpoint.to_string())]);
    server.restart().await;
    let load = round
        .ledger
        .send(kinds.len() * CALLS_OF_A_KIND, CONNECTIONS, &doors);
    let scheduled = match failpoint.boundary {
        Boundary::Fire | Boundary::ClaimSchedules => Some(Scheduled::soon(&tenant).await),
        _ => None,
    };
    if failpoint.boundary == Boundary::Retire {
        server.interrupt();
    }
    let died = until(async || server.ended()).await;
    let Some(status) = died else {
        panic!("nothing comes to {failpoint}:\n{}", server.log());
    };
    assert!(!status.success(), "{failpoint}: {status}");
    server.set_environment(Vec::new());
    server.restart().await;
    let _log = ShowLog(server);
    eprintln!("{failpoint}");

    load.finish().await;
    if let Some(scheduled) = scheduled {
        scheduled.ran_once(&tenant).await;
    }
    round.comes_out_even(&doors, &tenant.api).await;
}

/// A workflow that is due soon. An instant that is over when it is set never comes.
struct Scheduled {
    workflow: String,
}

impl Scheduled {
    async fn soon(tenant: &Tenant) -> Self {
        let graph = graphs::chain(&[("schedule_trigger", json!({})), ("set", json!({ "fields": {} }))]);
        let workflow = tenant.live("Scheduled", graph).await;
        let at = core_service::clock::now_ms() + SOON_MS;
        let recurrence = json!({ "kind": "once", "at": at, "catchupWindowMs": 600_000 });
        let body = json!({ "recurrence": recurrence }).to_string();
        let path = format!("/api/v1/workflows/{workflow}");
        let headers = [("content-type", "application/json")];
        // The server may die of it.
        let _maybe = tenant
            .api
            .try_send(http::Method::PATCH, &path, &headers, body.into())
            .await;
        Self { workflow }
    }

    async fn ran_once(&self, tenant: &Tenant) {
        let path = format!("/runs?workflowId={}", self.workflow);
        let mut runs = Vec::new();
        let ran = until(async || {
            runs = tenant.api.all_pages(&path).await;
            let ended = runs.iter().all(|run| text(&run["status"]) == "succeeded");
            (ended && !runs.is_empty()).then_some(())
        });
        assert!(ran.await.is_some(), "the instant has not run: {runs:?}");
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
}
