//! Tokens on several nodes: one renews for all, and nobody waits for the dead.

use http::Method;
use serde_json::json;
use test_support::{OAuthServer, Server, ServerOptions, ShowLog, text, together, until};

use super::{KEY, SECRET, bring, client, consented, flow};

fn options(database: &test_support::Database) -> ServerOptions {
    let flags = ["--outbound-allow", "127.0.0.1"];
    ServerOptions {
        database_url: Some(database.url.clone()),
        flags: flags.map(str::to_owned).into(),
        ..ServerOptions::default()
    }
}

async fn two(database: &test_support::Database) -> (Server, Server) {
    let first = Server::start(options(database)).await;
    let shared = ServerOptions {
        master_key_file: Some(first.data_dir().join("master-key")),
        ..options(database)
    };
    let second = Server::start(shared).await;
    (first, second)
}

#[tokio::test]
async fn of_a_hundred_runs_on_two_nodes_one_renews() {
    let Some(database) = test_support::postgres_or_skip("renewals on two nodes at once").await else {
        return;
    };
    let (first, second) = two(&database).await;
    let _log = (ShowLog(&first), ShowLog(&second));
    let service = OAuthServer::start(SECRET, KEY).await;
    bring(&first.admin().await, None, &service, "s256").await;
    let api = first.first_api();
    let nodes = [api.clone(), second.api(Some(api.key()))];
    let credential = consented(&api, &service, client()).await;
    let workflow = api.workflow_with("Notes", flow("n1", &credential)).await;
    for round in 1..=3 {
        // What the refresh token is exchanged for now is needed in the next round.
        service.end_access();
        let runs = (0..100).map(|number: usize| {
            let (node, workflow) = (nodes[number % 2].clone(), workflow.clone());
            async move { node.start(&workflow, json!({})).await }
        });
        for run in together(runs).await {
            let report = api.ended(&run).await;
            assert_eq!(report["status"], "succeeded", "{report}");
        }
        assert_eq!(service.asked_for("refresh_token"), round);
    }
}

#[tokio::test]
async fn the_lease_of_a_dead_node_is_over_by_itself() {
    let Some(database) = test_support::postgres_or_skip("the lease of a dead node").await else {
        return;
    };
    let (mut first, second) = two(&database).await;
    let _log = ShowLog(&second);
    let service = OAuthServer::start(SECRET, KEY).await;
    bring(&first.admin().await, None, &service, "s256").await;
    let key = first.first_api().key().to_owned();
    let api = second.api(Some(&key));
    let body = json!({ "appId": "cloud_notes", "connectionId": "machine", "name": "x", "data": client() });
    let made = api.post("/credentials", body).await.data(200);
    let credential = text(&made["credentialId"]);
    service.hold_tokens(true);
    // The first node asks for a token and dies of it.
    let verify = format!("/credentials/{credential}/verify");
    let dying = first.first_api();
    let lost = tokio::spawn({
        let verify = verify.clone();
        async move {
            let path = format!("/api/v1{verify}");
            dying.try_send(Method::POST, &path, &[], "{}".into()).await
        }
    });
    let asked = until(async || {
        let asked = service.target().asked();
        asked
            .iter()
            .any(|asked| asked.uri.path() == "/token")
            .then_some(())
    });
    assert!(asked.await.is_some());
    first.kill_hard();
    let _gone = lost.await;
    service.hold_tokens(false);
    let verdict = api.post(&verify, json!({})).await.data(200);
    assert_eq!(verdict, json!({ "status": "valid" }));
}
