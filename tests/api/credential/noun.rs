//! Created, listed, changed, deleted.

use serde_json::{Value, json};
use test_support::text;

use super::{bearer, create, listed};
use crate::world::World;

on_both_databases!(
    a_credential_with_its_secrets_is_active,
    a_connection_without_fields_needs_nothing,
    what_no_credential_can_be_is_named,
    credentials_are_listed_newest_first,
    a_credential_is_renamed_and_moved,
    a_deleted_credential_is_gone,
    a_deleted_folder_leaves_its_credentials,
    another_organizations_credential_is_unknown,
    secrets_are_told_to_nobody,
);

async fn a_credential_with_its_secrets_is_active(world: &World) {
    let body = json!({
        "appId": "http", "connectionId": "basic", "name": " Shop ", "teamId": world.team,
        "data": { "username": "Ada", "password": "s3cret" },
    });
    let made = world.api.post("/credentials", body).await.data(200);
    let expected = json!({
        "credentialId": made["credentialId"], "status": "active", "appId": "http", "connectionId": "basic",
    });
    assert_eq!(made, expected);
    let id = text(&made["credentialId"]);
    assert!(id.starts_with("cred_"));
    let shown = listed(world, &id).await;
    let expected = json!({
        "id": id, "name": "Shop", "appId": "http", "type": "basic", "status": "active", "folderId": null,
        "createdAt": shown["createdAt"], "updatedAt": shown["createdAt"],
    });
    assert_eq!(shown, expected);
    assert!(shown["createdAt"].as_i64().unwrap() > 1_700_000_000_000);
}

async fn a_connection_without_fields_needs_nothing(world: &World) {
    for data in [json!(null), json!({})] {
        let mut body = json!({ "appId": "http", "connectionId": "none", "name": "Open" });
        if !data.is_null() {
            body["data"] = data;
        }
        let made = world.api.post("/credentials", body).await.data(200);
        assert_eq!(
            (&made["status"], made.get("connect_url")),
            (&json!("active"), None)
        );
    }
}

async fn what_no_credential_can_be_is_named(world: &World) {
    let with = |changes: Value| {
        let mut body = json!({
            "appId": "http", "connectionId": "api_key", "name": "Key", "data": { "name": "x-key", "value": "abc" },
        });
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => _ = body.as_object_mut().unwrap().remove(name),
                value => body[name] = value.clone(),
            }
        }
        body
    };
    let stranger = world.stranger().await;
    let foreign = text(&stranger.get("/teams").await.data(200)[0]["id"]);
    for (body, place) in [
        (with(json!({ "appId": null })), "appId"),
        (with(json!({ "appId": "nothing" })), "appId"),
        (with(json!({ "appId": "native" })), "appId"),
        (with(json!({ "appId": 1 })), "appId"),
        (with(json!({ "connectionId": null })), "connectionId"),
        (with(json!({ "connectionId": "oauth" })), "connectionId"),
        (with(json!({ "name": null })), "name"),
        (with(json!({ "name": "  " })), "name"),
        (with(json!({ "name": "x".repeat(201) })), "name"),
        (with(json!({ "teamId": "team_none" })), "teamId"),
        (with(json!({ "teamId": foreign })), "teamId"),
        (with(json!({ "data": [] })), "data"),
        (with(json!({ "data": "abc" })), "data"),
        (with(json!({ "surprise": 1 })), "surprise"),
        (
            with(json!({ "data": { "name": "x-key", "value": "abc", "Value": "abc" } })),
            "data.Value",
        ),
        (
            with(json!({ "data": { "name": "x-key", "value": 7 } })),
            "data.value",
        ),
        (
            with(json!({ "data": { "name": "x-key", "value": {} } })),
            "data.value",
        ),
        (
            with(json!({ "data": { "name": "x-key", "value": "" } })),
            "data.value",
        ),
        (
            with(json!({ "data": { "name": "x-key", "value": "a\r\nx-evil: 1" } })),
            "data.value",
        ),
        (
            with(json!({ "data": { "name": "x key", "value": "abc" } })),
            "data.name",
        ),
        (
            with(json!({ "data": { "name": "x-key", "value": "abc", "in": "body" } })),
            "data.in",
        ),
        (with(json!({ "data": { "value": "abc" } })), "data.name"),
        (
            with(json!({ "data": { "name": "x-key", "value": "abc", "verifyUrl": "file:///etc/passwd" } })),
            "data.verifyUrl",
        ),
        (with(json!({ "connectionId": "none" })), "data.value"),
    ] {
        world.api.post("/credentials", body).await.invalid(place);
    }
    let twice = br#"{"appId":"http","connectionId":"bearer","name":"x","data":{"token":"a","token":"b"}}"#;
    let headers = [("content-type", "application/json")];
    let answer = world.api.send(
        http::Method::POST,
        "/api/v1/credentials",
        &headers,
        twice.as_slice().into(),
    );
    answer.await.error(400, "VALIDATION_ERROR");
    assert_eq!(world.api.get("/credentials").await.page(), (vec![], None));
}

async fn credentials_are_listed_newest_first(world: &World) {
    let mut made = Vec::new();
    for number in 0..5 {
        made.push(bearer(world, &format!("token-{number}")).await);
    }
    made.reverse();
    let ids = |rows: Vec<Value>| rows.iter().map(|row| text(&row["id"])).collect::<Vec<_>>();
    assert_eq!(ids(world.api.all_pages("/credentials?limit=2").await), made);
    assert_eq!(ids(world.api.all_pages("/credentials?appId=http").await), made);
    assert_eq!(
        ids(world.api.all_pages("/credentials?appId=other").await),
        Vec::<String>::new()
    );
    let (page, cursor) = world.api.get("/credentials?limit=2").await.page();
    assert_eq!(page.len(), 2);
    let cursor = cursor.unwrap();
    let other = format!("/credentials?limit=2&appId=http&cursor={cursor}");
    world.api.get(other).await.invalid("cursor");
    world
        .api
        .get("/credentials?cursor=nonsense")
        .await
        .invalid("cursor");
    world.api.get("/credentials?limit=0").await.invalid("limit");
}

async fn a_credential_is_renamed_and_moved(world: &World) {
    let id = bearer(world, "token").await;
    let path = format!("/credentials/{id}");
    let before = listed(world, &id).await;
    let folder = world
        .api
        .post("/folders", json!({ "name": "Keys" }))
        .await
        .data(201);
    let body = json!({ "name": " Theirs ", "folderId": folder["id"] });
    let changed = world.api.patch(&path, body).await.data(200);
    assert_eq!(
        (&changed["name"], &changed["folderId"]),
        (&json!("Theirs"), &folder["id"])
    );
    assert!(changed["updatedAt"].as_i64() > before["updatedAt"].as_i64());
    assert_eq!(changed, listed(world, &id).await);
    let cleared = world
        .api
        .patch(&path, json!({ "folderId": null }))
        .await
        .data(200);
    assert_eq!(
        (&cleared["name"], &cleared["folderId"]),
        (&json!("Theirs"), &Value::Null)
    );
    for (body, place) in [
        (json!({ "name": null }), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "folderId": "folder_none" }), "folderId"),
        (json!({ "data": {} }), "data"),
        (json!({ "status": "active" }), "status"),
    ] {
        world.api.patch(&path, body).await.invalid(place);
    }
    let unknown = world
        .api
        .patch("/credentials/cred_none", json!({ "name": "x" }))
        .await;
    unknown.error(404, "NOT_FOUND");
}

async fn a_deleted_credential_is_gone(world: &World) {
    let id = bearer(world, "token").await;
    let path = format!("/credentials/{id}");
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    world
        .api
        .patch(&path, json!({ "name": "x" }))
        .await
        .error(404, "NOT_FOUND");
    world
        .api
        .post(format!("{path}/verify"), json!({}))
        .await
        .error(404, "NOT_FOUND");
    assert_eq!(world.api.get("/credentials").await.page(), (vec![], None));
    let done = world.api.get(format!("/activity?targetId={id}")).await.data(200);
    let actions: Vec<String> = done["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| text(&event["action"]))
        .collect();
    assert_eq!(actions, ["credential.deleted", "credential.created"]);
}

async fn a_deleted_folder_leaves_its_credentials(world: &World) {
    let id = bearer(world, "token").await;
    let outer = world
        .api
        .post("/folders", json!({ "name": "Outer" }))
        .await
        .data(201);
    let inner = json!({ "name": "Inner", "parentId": outer["id"] });
    let inner = world.api.post("/folders", inner).await.data(201);
    let body = json!({ "folderId": inner["id"] });
    let before = world
        .api
        .patch(format!("/credentials/{id}"), body)
        .await
        .data(200);
    let _ = world
        .api
        .delete(format!("/folders/{}", text(&inner["id"])))
        .await
        .data(200);
    let after = listed(world, &id).await;
    assert_eq!(after["folderId"], outer["id"]);
    assert!(after["updatedAt"].as_i64() > before["updatedAt"].as_i64());
}

async fn another_organizations_credential_is_unknown(world: &World) {
    let id = bearer(world, "token").await;
    let stranger = world.stranger().await;
    let path = format!("/credentials/{id}");
    stranger
        .patch(&path, json!({ "name": "x" }))
        .await
        .error(404, "NOT_FOUND");
    stranger.delete(&path).await.error(404, "NOT_FOUND");
    stranger
        .post(format!("{path}/verify"), json!({}))
        .await
        .error(404, "NOT_FOUND");
    assert_eq!(stranger.get("/credentials").await.page(), (vec![], None));
    let body = json!({ "appId": "http", "rpcId": "x", "credentialId": id });
    stranger
        .post("/credentials/dynamic-options", body)
        .await
        .error(400, "VALIDATION_ERROR");
    assert_eq!(listed(world, &id).await["name"], "Mine");
}

async fn secrets_are_told_to_nobody(world: &World) {
    let secret = "tell-nobody-of-this-7f3a";
    let id = bearer(world, secret).await;
    let half = create(world, "basic", json!({ "username": secret })).await;
    assert_eq!(half["status"], "credential_required");
    let _ = world
        .api
        .post(format!("/credentials/{id}/verify"), json!({}))
        .await
        .data(200);
    for path in ["/credentials", "/activity"] {
        assert!(!world.api.get(path).await.text().contains(secret), "{path}");
    }
    assert!(!world.server.log().contains(secret));
    // At rest as well: nothing of the database's files holds it.
    for entry in std::fs::read_dir(world.server.data_dir()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(
            !bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
        );
    }
    let rotated = world
        .admin
        .client
        .clone()
        .rotate_secrets(contract::v1::RotateSecretsRequest {})
        .await;
    assert!(rotated.is_ok(), "{rotated:?}");
    let answer = world
        .api
        .post(format!("/credentials/{id}/verify"), json!({}))
        .await
        .data(200);
    assert_eq!(answer, json!({ "status": "valid" }), "it opens after a rotation");
}
