//! Creating, reading and deleting.

use serde_json::{Value, json};
use test_support::{graphs, text};

use crate::world::World;

on_both_databases!(
    a_new_workflow_is_an_empty_draft,
    names_have_their_limits,
    what_a_body_must_not_have_is_named,
    folder_and_team_must_be_the_organizations_own,
    any_text_comes_back_as_it_was_given,
    a_draft_has_all_its_fields,
    only_what_is_out_of_use_is_deleted,
);

async fn a_new_workflow_is_an_empty_draft(world: &World) {
    let created = world
        .api
        .post("/workflows", json!({ "name": "  Orders \t" }))
        .await
        .data(201);
    assert_eq!(created["name"], "Orders");
    assert_eq!(created["teamId"], world.team.as_str());
    assert_eq!(created["folderId"], Value::Null);
    assert!(created.as_object().unwrap().contains_key("folderId"));
    assert_eq!(created["active"], false);
    assert!(created["createdAt"].is_i64());
    let draft = world
        .api
        .get(format!("/workflows/{}", text(&created["id"])))
        .await
        .data(200);
    assert_eq!(draft["nodes"], json!([]));
    assert_eq!(draft["edges"], json!([]));
    assert_eq!(draft["updatedAt"], created["updatedAt"]);
}

async fn names_have_their_limits(world: &World) {
    for name in [
        json!(""),
        json!("   "),
        json!("x".repeat(201)),
        Value::Null,
        json!(7),
    ] {
        world
            .api
            .post("/workflows", json!({ "name": name }))
            .await
            .invalid("name");
    }
    world.api.post("/workflows", json!({})).await.invalid("name");
    // Characters count, not bytes.
    let longest = "ü".repeat(200);
    let created = world
        .api
        .post("/workflows", json!({ "name": longest }))
        .await
        .data(201);
    assert_eq!(created["name"], longest);
    let padded = json!({ "name": format!(" {longest} ") });
    let _ = world.api.post("/workflows", padded).await.data(201);
    let long = json!({ "name": "x", "description": "d".repeat(2_001) });
    world.api.post("/workflows", long).await.invalid("description");
    let fits = json!({ "name": "x", "description": "ß".repeat(2_000) });
    let _ = world.api.post("/workflows", fits).await.data(201);
}

async fn what_a_body_must_not_have_is_named(world: &World) {
    world
        .api
        .post("/workflows", json!({ "name": "x", "colour": "red" }))
        .await
        .invalid("colour");
    world
        .api
        .post("/workflows", json!({ "name": "x", "folderId": 1 }))
        .await
        .invalid("folderId");
    for body in [
        "[]",
        "\"x\"",
        "{\"name\":\"x\"} x",
        "{\"name\":\"x\",\"name\":\"y\"}",
        "{",
        "null",
    ] {
        let headers = [("content-type", "application/json")];
        let sent = world
            .api
            .send(http::Method::POST, "/api/v1/workflows", &headers, body.into());
        sent.await.error(400, "VALIDATION_ERROR");
    }
}

async fn folder_and_team_must_be_the_organizations_own(world: &World) {
    let stranger = world.stranger().await;
    let theirs = stranger
        .post("/workflows", json!({ "name": "x" }))
        .await
        .data(201);
    for team in [theirs["teamId"].clone(), json!("team_unknown"), json!("")] {
        let body = json!({ "name": "x", "teamId": team });
        world.api.post("/workflows", body).await.invalid("teamId");
    }
    for folder in ["folder_unknown", ""] {
        let body = json!({ "name": "x", "folderId": folder });
        world.api.post("/workflows", body).await.invalid("folderId");
    }
    let nulls = json!({ "name": "x", "teamId": null, "folderId": null, "description": null });
    let created = world.api.post("/workflows", nulls).await.data(201);
    assert_eq!(created["teamId"], world.team.as_str());
    let store = world.store().await;
    let folder = store
        .create_folder(&world.actor(), &world.organization, "Finance", None)
        .await
        .unwrap();
    let body = json!({ "name": "x", "teamId": world.team, "folderId": folder.id });
    assert_eq!(
        world.api.post("/workflows", body).await.data(201)["folderId"],
        folder.id
    );
}

async fn any_text_comes_back_as_it_was_given(world: &World) {
    for name in [
        "Größe – 価格 🚚",
        "\u{202e}txt",
        "'; DROP TABLE workflows; --",
        "{{1.body}}",
        "%_\\",
    ] {
        let workflow = world.api.workflow(name).await;
        let read = world.api.get(format!("/workflows/{workflow}")).await.data(200);
        assert_eq!(read["name"], name);
    }
}

async fn a_draft_has_all_its_fields(world: &World) {
    let workflow = world.api.workflow_with("Orders", graphs::order_flow()).await;
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let mut names: Vec<&str> = draft.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    // Unset, the others are absent: `description`, `folderId`, `deployed`.
    let always = [
        "active",
        "createdAt",
        "edges",
        "id",
        "name",
        "nodes",
        "schedule",
        "teamId",
        "updatedAt",
    ];
    assert_eq!(names, always);
    let node = &draft["nodes"][1];
    assert_eq!(node["id"], 2);
    assert_eq!(
        (&node["appId"], &node["moduleSlug"], &node["kind"]),
        (&json!("native"), &json!("set"), &json!("set"))
    );
    assert_eq!(node["params"]["fields"]["total"], "{{1.body.price * 2}}");
    assert!(node["x"].is_number() && node["y"].is_number());
    let edge = draft["edges"]
        .as_array()
        .unwrap()
        .iter()
        .find(|edge| edge["type"] == "fallback")
        .unwrap();
    assert_eq!((&edge["from"], &edge["to"]), (&json!(3), &json!(5)));
    assert!(edge["order"].is_i64() && edge["id"].is_string());
    world
        .api
        .get(format!("/workflows/{workflow}?view=deployed"))
        .await
        .error(404, "workflow_not_deployed");
    world
        .api
        .get(format!("/workflows/{workflow}?view=live"))
        .await
        .invalid("view");
    world
        .api
        .get("/workflows/wf_unknown")
        .await
        .error(404, "NOT_FOUND");
}

async fn only_what_is_out_of_use_is_deleted(world: &World) {
    let workflow = world.api.workflow_with("x", graphs::small_flow()).await;
    let path = format!("/workflows/{workflow}");
    let _ = world.api.patch(&path, json!({ "active": true })).await.data(200);
    world.api.delete(&path).await.error(409, "workflow_in_use");
    let _ = world
        .api
        .post(format!("{path}/deploy"), json!({}))
        .await
        .data(200);
    let _ = world.api.patch(&path, json!({ "active": false })).await.data(200);
    world.api.delete(&path).await.error(409, "workflow_in_use");
    assert_eq!(
        world
            .api
            .post(format!("{path}/undeploy"), json!({}))
            .await
            .data(200),
        json!({ "ok": true })
    );
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    world.api.get(&path).await.error(404, "NOT_FOUND");
}
