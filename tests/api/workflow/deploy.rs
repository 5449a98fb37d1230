//! Deploying, undeploying and versions.

use serde_json::{Value, json};
use test_support::{graphs, together};

use crate::world::World;

on_both_databases!(
    deploying_the_same_draft_again_gives_the_same_version,
    the_deployed_view_is_the_snapshot,
    a_deploy_can_be_conditional,
    versions_are_listed_newest_first,
    deploys_at_once_make_one_version,
);

async fn deploy(world: &World, workflow: &str) -> Value {
    world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await
        .data(200)
}

async fn rename(world: &World, workflow: &str, name: &str) {
    world
        .api
        .edit(
            workflow,
            json!([{ "op": "rename_node", "nodeId": 2, "name": name }]),
        )
        .await;
}

async fn deploying_the_same_draft_again_gives_the_same_version(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let first = deploy(world, &workflow).await;
    assert_eq!(
        (&first["workflowId"], &first["versionNo"]),
        (&json!(workflow), &json!(1))
    );
    let hash = first["contentHash"].as_str().unwrap();
    assert!(
        hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hash}"
    );
    assert_eq!(deploy(world, &workflow).await, first);
    // What is no part of the graph does not make a version.
    let renamed = world
        .api
        .patch(format!("/workflows/{workflow}"), json!({ "name": "y" }))
        .await;
    let _ = renamed.data(200);
    assert_eq!(deploy(world, &workflow).await, first);
    rename(world, &workflow, "Other").await;
    let second = deploy(world, &workflow).await;
    assert_eq!(second["versionNo"], 2);
    assert_ne!(second["contentHash"], first["contentHash"]);
}

async fn the_deployed_view_is_the_snapshot(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}");
    let version = deploy(world, &workflow).await;
    rename(world, &workflow, "Later").await;
    let draft = world.api.get(&path).await.data(200);
    let deployed = json!({
        "deployedAt": version["deployedAt"], "versionNo": 1, "contentHash": version["contentHash"],
    });
    assert_eq!(draft["deployed"], deployed);
    let snapshot = world.api.get(format!("{path}?view=deployed")).await.data(200);
    assert_eq!(snapshot["nodes"][1]["name"], "Set fields");
    assert_eq!(draft["nodes"][1]["name"], "Later");
    let undeployed = world.api.post(format!("{path}/undeploy"), json!({})).await;
    assert_eq!(undeployed.data(200), json!({ "ok": true }));
    assert!(world.api.get(&path).await.data(200).get("deployed").is_none());
    let still = world.api.get(format!("{path}?view=deployed")).await.data(200);
    assert_eq!(still["nodes"], snapshot["nodes"]);
}

async fn a_deploy_can_be_conditional(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/deploy");
    let now = world.api.get(format!("/workflows/{workflow}")).await.data(200)["updatedAt"]
        .as_i64()
        .unwrap();
    let stale = json!({ "expectedUpdatedAt": now - 1 });
    world.api.post(&path, stale).await.error(409, "workflow_modified");
    let _ = world
        .api
        .post(&path, json!({ "expectedUpdatedAt": now }))
        .await
        .data(200);
    world
        .api
        .post("/workflows/wf_unknown/deploy", json!({}))
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .post("/workflows/wf_unknown/undeploy", json!({}))
        .await
        .error(404, "NOT_FOUND");
}

async fn versions_are_listed_newest_first(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}/versions");
    assert_eq!(world.api.get(&path).await.page(), (vec![], None));
    let mut versions = Vec::new();
    for number in 1..=5 {
        rename(world, &workflow, &format!("name {number}")).await;
        versions.insert(0, deploy(world, &workflow).await);
    }
    assert_eq!(world.api.all_pages(&format!("{path}?limit=2")).await, versions);
    let third = world.api.get(format!("{path}/3")).await.data(200);
    assert_eq!(third["contentHash"], versions[2]["contentHash"]);
    assert_eq!(third["nodes"][1]["name"], "name 3");
    assert_eq!(third["edges"].as_array().unwrap().len(), 1);
    world.api.get(format!("{path}/6")).await.error(404, "NOT_FOUND");
    world.api.get(format!("{path}/latest")).await.invalid("versionNo");
    world
        .api
        .get("/workflows/wf_unknown/versions")
        .await
        .error(404, "NOT_FOUND");
}

async fn deploys_at_once_make_one_version(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let deploys = (0..20).map(|_| {
        let (api, path) = (world.api.clone(), format!("/workflows/{workflow}/deploy"));
        async move { api.post(path, json!({})).await.data(200) }
    });
    let versions = together(deploys).await;
    assert!(
        versions.iter().all(|version| *version == versions[0]),
        "{versions:#?}"
    );
    assert_eq!(versions[0]["versionNo"], 1);
}
