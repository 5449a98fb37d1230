//! What a deployed version does while its app goes on: it stays with the manifest that it was deployed with.

use serde_json::{Value, json};
use test_support::{Server, ServerOptions, ShowLog, postgres_or_skip, text, until};

use super::{add, bring, credential, flow, output, service, shop};
use crate::world::World;

on_both_databases!(
    a_deployed_version_stays_with_its_manifest,
    its_credentials_stay_with_its_hosts,
    a_module_that_is_gone_is_missed_by_drafts_alone,
);

fn hook() -> (&'static str, Value) {
    ("webhook_trigger", json!({ "responseMode": "last_node" }))
}

/// What the deployed version says.
async fn deployed(world: &World, webhook: &str) -> Value {
    let answer = world.api.call_hook(webhook, &[], json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn deploy(world: &World, workflow: &str) -> Value {
    world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200)
}

async fn a_deployed_version_stays_with_its_manifest(world: &World) {
    let service = service().await;
    bring(world, &shop(&service.url(""), "/first")).await;
    let credential = credential(world, "k-1").await;
    let workflow = world.api.workflow_with("Orders", flow(hook(), &credential)).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let first = deploy(world, &workflow).await;
    assert_eq!(first["versionNo"], 1, "nothing has changed");
    assert_eq!(deployed(world, &webhook).await["path"], "/first/7");

    assert_eq!(bring(world, &shop(&service.url(""), "/second")).await, 2);
    assert_eq!(deployed(world, &webhook).await["path"], "/first/7");
    assert_eq!(
        output(world, &workflow).await["path"],
        "/second/7",
        "a draft has the newest"
    );
    let shown = world
        .api
        .get(format!("/workflows/{workflow}/versions/1"))
        .await
        .data(200);
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 2);

    let second = deploy(world, &workflow).await;
    assert_eq!(
        second["versionNo"], 2,
        "the same draft with another manifest is another version"
    );
    assert_ne!(first["contentHash"], second["contentHash"]);
    assert_eq!(deployed(world, &webhook).await["path"], "/second/7");
    // A run of before is run again as it was.
    let runs = world.api.all_pages(&format!("/runs?workflowId={workflow}")).await;
    let oldest = text(&runs.last().unwrap()["id"]);
    let _ = world
        .api
        .post(format!("/runs/{oldest}/rerun"), json!({}))
        .await
        .data(201);
    let report = world.api.ended(&oldest).await;
    assert_eq!(report["nodes"][1]["output"]["path"], "/first/7", "{report}");
}

async fn its_credentials_stay_with_its_hosts(world: &World) {
    let (before, after) = (service().await, service().await);
    bring(world, &shop(&before.url(""), "/orders")).await;
    let credential = credential(world, "k-1").await;
    let workflow = world.api.workflow_with("Orders", flow(hook(), &credential)).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    bring(world, &shop(&after.url(""), "/orders")).await;
    let _ = deployed(world, &webhook).await;
    assert_eq!((before.asked().len(), after.asked().len()), (1, 0));
    let _ = output(world, &workflow).await;
    assert_eq!((before.asked().len(), after.asked().len()), (1, 1));
    assert!(
        [before, after]
            .iter()
            .all(|service| service.asked()[0].header("x-api-key") == "k-1")
    );
}

async fn a_module_that_is_gone_is_missed_by_drafts_alone(world: &World) {
    let service = service().await;
    let manifest = shop(&service.url(""), "/orders");
    bring(world, &manifest).await;
    let credential = credential(world, "k-1").await;
    let workflow = world.api.workflow_with("Orders", flow(hook(), &credential)).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    let (without, _) = manifest.split_once("tests:").unwrap();
    bring(world, &without.replace("get_order", "read_order")).await;
    assert_eq!(deployed(world, &webhook).await["path"], "/orders/7");
    let told = world
        .api
        .post(format!("/workflows/{workflow}/validate"), json!({}))
        .await;
    let told = told.data(200);
    assert_eq!(told["valid"], false);
    assert!(
        text(&told["issues"][0]).contains("has no module get_order"),
        "{told}"
    );
    let path = format!("/workflows/{workflow}/deploy");
    world
        .api
        .post(path, json!({}))
        .await
        .error(400, "TOPOLOGY_INVALID");
}

/// Two servers on one database; the one that adds is not the one that is asked, and it is killed in the middle of a run.
#[tokio::test]
async fn another_server_has_it_too_and_takes_runs_over_with_what_was_pinned() {
    let Some(database) = postgres_or_skip("apps on two servers").await else {
        return;
    };
    let options = || ServerOptions {
        database_url: Some(database.url.clone()),
        flags: ["--outbound-allow", "127.0.0.1", "--lease-ms", "1000"]
            .map(str::to_owned)
            .to_vec(),
        ..ServerOptions::default()
    };
    let mut first = Server::start(options()).await;
    let second = Server::start(ServerOptions {
        master_key_file: Some(first.data_dir().join("master-key")),
        ..options()
    })
    .await;
    let log = ShowLog(&second);
    let service = service().await;
    let admin = first.admin().await;
    let made = admin.organization("Two", None).await;
    let organization = Some(made.organization_id.as_str());
    let (near, far) = (first.api(Some(&made.api_key)), second.api(Some(&made.api_key)));
    let search = "/catalog/apps?query=corner";
    assert_eq!(far.get(search).await.data(200), json!([]));
    add(&admin, organization, &shop(&service.url(""), "/first"))
        .await
        .unwrap();
    let seen = until(async || far.get(search).await.data(200).as_array()?.first().cloned()).await;
    assert!(seen.is_some(), "the other server has the app");

    let body =
        json!({ "appId": "corner_shop", "connectionId": "key", "name": "Mine", "data": { "key": "k-1" } });
    let credential = text(&near.post("/credentials", body).await.data(200)["credentialId"]);
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "wait", "kind": "wait", "after": "start", "params": { "amount": 3, "unit": "seconds" } },
        { "op": "add_node", "tempId": "order", "appId": "corner_shop", "moduleSlug": "get_order", "after": "wait",
          "params": { "id": 7 }, "credentialId": credential },
    ]);
    let workflow = near.workflow_with("Orders", operations).await;
    let run = near.start(&workflow, json!({})).await;
    let _ = near.reached(&run, &["waiting"]).await;
    add(&admin, organization, &shop(&service.url(""), "/second"))
        .await
        .unwrap();
    first.kill_hard();
    let report = far.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(report["nodes"][2]["output"]["path"], "/first/7", "{report}");
    drop(log);
    drop(second);
    database.drop_now().await.unwrap();
}
