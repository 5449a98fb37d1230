//! The activity feed: what was done, by whom, page by page.

use contract::v1::folder_service_client::FolderServiceClient;
use contract::v1::{CreateFolderRequest, MemberRole, RevokeApiKeyRequest};
use serde_json::{Value, json};
use test_support::{Api, Bearer, text, until};

use crate::world::World;

on_both_databases!(
    each_write_tells_of_itself,
    the_clients_address_is_told_whichever_the_door,
    what_the_operator_did_has_no_actor,
    the_feed_is_filtered,
    cursors_are_literal_and_lose_nothing,
    refused_sign_ins_are_told,
    others_see_their_own_only,
);

async fn feed(api: &Api, query: &str) -> Value {
    let body = api.get(format!("/activity{query}")).await.body(200);
    assert_eq!(body.as_object().unwrap().len(), 1, "the cursor is inside: {body}");
    body["data"].clone()
}

fn actions(page: &Value) -> Vec<String> {
    let events = page["events"].as_array().unwrap();
    events.iter().map(|event| text(&event["action"])).collect()
}

async fn each_write_tells_of_itself(world: &World) {
    let api = &world.api;
    let folder = text(&api.post("/folders", json!({ "name": "Föhn" })).await.data(201)["id"]);
    let _ = api
        .patch(format!("/folders/{folder}"), json!({ "name": "Fön" }))
        .await
        .data(200);
    let _ = api.delete(format!("/folders/{folder}")).await.data(200);
    let tag = text(
        &api.post("/tags", json!({ "name": "t", "color": "red" }))
            .await
            .data(201)["id"],
    );
    let _ = api
        .patch(format!("/tags/{tag}"), json!({ "color": "blue" }))
        .await
        .data(200);
    let workflow = api.workflow("w").await;
    let _ = api
        .put(format!("/workflows/{workflow}/tags"), json!({ "tagIds": [tag] }))
        .await
        .data(200);
    let _ = api.delete(format!("/tags/{tag}")).await.data(200);
    let body = json!({ "value": "hunter22", "isSecret": true });
    let variable = text(&api.put("/variables/V", body).await.data(201)["id"]);
    let _ = api
        .put("/variables/V", json!({ "value": "hunter33" }))
        .await
        .data(200);
    let _ = api.delete(format!("/variables/{variable}")).await.data(200);
    let body = json!({ "email": "a@example.com", "role": "member" });
    let invitation = text(&api.post("/invitations", body).await.data(201)["id"]);
    let _ = api.delete(format!("/invitations/{invitation}")).await.data(200);
    let _ = api.delete(format!("/workflows/{workflow}")).await.data(200);
    let page = feed(api, "?limit=200").await;
    let expected = [
        "workflow.deleted",
        "invitation.cancelled",
        "invitation.created",
        "variable.deleted",
        "variable.updated",
        "variable.created",
        "tag.deleted",
        "workflow.updated",
        "workflow.created",
        "tag.updated",
        "tag.created",
        "folder.deleted",
        "folder.updated",
        "folder.created",
    ];
    assert_eq!(actions(&page)[..expected.len()], expected);
    assert!(!page.to_string().contains("hunter"), "never a secret");
    let created = &page["events"][13];
    assert_eq!(
        (&created["label"], &created["targetType"]),
        (&json!("Föhn"), &json!("folder"))
    );
    assert_eq!(
        (&created["targetId"], &created["actorUserId"]),
        (&json!(folder), &json!(world.owner))
    );
    assert!(created["ts"].is_i64() && created["id"].is_string());
    assert!(created["metadata"]["requestId"].is_string() && created["metadata"]["apiKeyId"].is_string());
    assert_eq!(page["events"][12]["metadata"]["fields"], json!(["name"]));
    let actor = &page["actors"][&world.owner];
    assert_eq!(
        (&actor["id"], &actor["name"]),
        (&json!(world.owner), &Value::Null)
    );
    assert!(actor["email"].is_string());
    // What is refused leaves nothing.
    api.post("/tags", json!({ "name": "t", "color": "ultraviolet" }))
        .await
        .invalid("color");
    assert_eq!(actions(&feed(api, "?limit=1").await), ["workflow.deleted"]);
}

async fn the_clients_address_is_told_whichever_the_door(world: &World) {
    let _ = world.api.post("/folders", json!({ "name": "x" })).await.data(201);
    let bearer = Bearer::new(world.api.key());
    let mut folders = FolderServiceClient::with_interceptor(world.server.channel().await, bearer);
    let folder = CreateFolderRequest {
        name: "y".to_owned(),
        parent_id: None,
    };
    folders.create_folder(folder).await.unwrap();
    let page = feed(&world.api, "?action=folder.created").await;
    for event in page["events"].as_array().unwrap() {
        assert_eq!(event["metadata"]["ip"], "127.0.0.1", "{event}");
    }
    assert_eq!(actions(&page).len(), 2);
}

async fn what_the_operator_did_has_no_actor(world: &World) {
    let (user, _) = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let page = feed(&world.api, &format!("?targetId={user}")).await;
    assert_eq!(actions(&page), ["member.created"]);
    assert_eq!(page["events"][0]["actorUserId"], Value::Null);
    assert_eq!(page["actors"], json!({}));
}

async fn the_feed_is_filtered(world: &World) {
    let api = &world.api;
    let workflow = api.workflow("one").await;
    let _ = api.workflow("two").await;
    let _ = api.post("/folders", json!({ "name": "f" })).await.data(201);
    let all = feed(api, "").await;
    assert_eq!(
        feed(api, "?targetType=workflow").await["events"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        actions(&feed(api, &format!("?targetId={workflow}")).await),
        ["workflow.created"]
    );
    assert_eq!(
        actions(&feed(api, "?action=folder.created").await),
        ["folder.created"]
    );
    let by_owner = feed(api, &format!("?actorUserId={}", world.owner)).await;
    assert_eq!(actions(&by_owner).len(), 3);
    assert_eq!(feed(api, "?targetType=nothing").await["events"], json!([]));
    // The lower bound is inclusive, the upper one is not.
    let newest = all["events"][0]["ts"].as_i64().unwrap();
    assert!(!actions(&feed(api, &format!("?since={newest}")).await).is_empty());
    assert_eq!(
        feed(api, &format!("?since={}", newest + 1)).await["events"],
        json!([])
    );
    let until = feed(api, &format!("?until={newest}")).await;
    assert!(
        until["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["ts"].as_i64().unwrap() < newest)
    );
    api.get("/activity?since=yesterday").await.invalid("since");
    api.get("/activity?limit=0").await.invalid("limit");
    api.get("/activity?q=x").await.invalid("q");
}

async fn cursors_are_literal_and_lose_nothing(world: &World) {
    for number in 0..7 {
        let _ = world.api.workflow(&format!("w{number}")).await;
    }
    let whole = feed(&world.api, "?limit=200").await;
    assert_eq!(whole["next_cursor"], Value::Null);
    let (mut paged, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = feed(&world.api, &query).await;
        let events = page["events"].as_array().unwrap();
        paged.extend(events.iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        let last = events.last().unwrap();
        assert_eq!(cursor, format!("{}_{}", last["ts"], text(&last["id"])));
        query = format!("?limit=2&cursor={cursor}");
        let _ = world.api.workflow("meanwhile").await;
    }
    assert_eq!(json!(paged), whole["events"]);
    for cursor in [
        "x",
        "1_",
        "_evt",
        "1_wf_01h2xcejqtf2nbrexx3vqjhp41",
        "1.5_evt_01h2xcejqtf2nbrexx3vqjhp41",
    ] {
        world
            .api
            .get(format!("/activity?cursor={cursor}"))
            .await
            .invalid("cursor");
    }
}

async fn refused_sign_ins_are_told(world: &World) {
    let revoked = world
        .admin
        .key(&world.organization, &world.owner, &[], None)
        .await;
    let id = revoked.id.clone();
    let request = RevokeApiKeyRequest { id: id.clone() };
    world.admin.client.clone().revoke_api_key(request).await.unwrap();
    let api = world.api.with_key(Some(&revoked.api_key));
    let headers = [("x-request-id", "refused-1")];
    let refused = api
        .send(http::Method::GET, "/api/v1/teams", &headers, "".into())
        .await;
    refused.error(401, "UNAUTHENTICATED");
    let page = feed(&world.api, &format!("?action=api_key.refused&targetId={id}")).await;
    assert_eq!(actions(&page).len(), 1);
    let event = &page["events"][0];
    assert_eq!(
        (&event["targetType"], &event["metadata"]["apiKeyId"]),
        (&json!("api_key"), &json!(id))
    );
    assert_eq!(event["metadata"]["requestId"], "refused-1");
    let expiring = world
        .admin
        .key(&world.organization, &world.owner, &[], Some(1))
        .await;
    let api = world.api.with_key(Some(&expiring.api_key));
    let expired = until(async || (api.get("/teams").await.status == 401).then_some(()));
    expired.await.expect("the key expires");
    let page = feed(
        &world.api,
        &format!("?action=api_key.refused&targetId={}", expiring.id),
    )
    .await;
    assert_eq!(actions(&page).len(), 1);
}

async fn others_see_their_own_only(world: &World) {
    let _ = world.api.workflow("mine").await;
    let stranger = world.stranger().await;
    let page = feed(&stranger, "?targetType=workflow").await;
    assert_eq!(page, json!({ "events": [], "actors": {}, "next_cursor": null }));
}
