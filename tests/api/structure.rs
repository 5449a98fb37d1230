//! Structures.

use contract::v1::SetPlanRequest;
use serde_json::{Value, json};
use test_support::{at_most, text, together};

use crate::world::World;

on_both_databases!(
    a_structure_has_all_its_fields,
    fields_change_by_name,
    what_no_structure_can_be_is_named,
    structures_are_listed_newest_first,
    the_plan_limits_structures,
);

async fn create(world: &World, name: &str) -> Value {
    world
        .api
        .post("/structures", json!({ "name": name }))
        .await
        .data(201)
}

async fn a_structure_has_all_its_fields(world: &World) {
    let fields = json!([
        { "name": " email ", "type": "email", "required": true },
        { "name": "tags", "type": "array" },
    ]);
    let body =
        json!({ "name": "Customer", "description": "Who buys", "fields": fields, "teamId": world.team });
    let created = world.api.post("/structures", body).await.data(201);
    let expected = json!({
        "id": created["id"],
        "name": "Customer",
        "fields": [
            { "name": "email", "type": "email", "required": true },
            { "name": "tags", "type": "array", "required": false },
        ],
        "description": "Who buys",
        "folderId": null,
        "teamId": world.team,
    });
    assert_eq!(created, expected);
    assert!(text(&created["id"]).starts_with("struct_"));
    let read = world
        .api
        .get(format!("/structures/{}", text(&created["id"])))
        .await
        .data(200);
    assert_eq!(read, expected);
}

async fn fields_change_by_name(world: &World) {
    let structure = create(world, "Customer").await;
    let path = format!("/structures/{}", text(&structure["id"]));
    let folder = {
        let store = world.store().await;
        let made = store
            .create_folder(&world.actor(), &world.organization, "Shapes", None)
            .await;
        made.unwrap().id
    };
    let field = json!({ "name": "a", "type": "any", "required": false });
    let body = json!({ "name": "Buyer", "description": "d", "fields": [field], "folderId": folder });
    let changed = world.api.patch(&path, body).await.data(200);
    assert_eq!(
        (&changed["name"], &changed["fields"]),
        (&json!("Buyer"), &json!([field]))
    );
    assert_eq!(
        (&changed["folderId"], &changed["description"]),
        (&json!(folder), &json!("d"))
    );
    let body = json!({ "description": null, "folderId": null });
    let cleared = world.api.patch(&path, body).await.data(200);
    assert_eq!(
        (&cleared["folderId"], &cleared["description"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(cleared["fields"], json!([field]));
    let emptied = world.api.patch(&path, json!({ "fields": [] })).await.data(200);
    assert_eq!(emptied["fields"], json!([]));
    assert_eq!(world.api.patch(&path, json!({})).await.data(200), emptied);
    for (body, place) in [
        (json!({ "name": null }), "name"),
        (json!({ "fields": null }), "fields"),
        (json!({ "folderId": "folder_none" }), "folderId"),
        (json!({ "teamId": world.team }), "teamId"),
    ] {
        world.api.patch(&path, body).await.invalid(place);
    }
    world
        .api
        .patch("/structures/struct_none", json!({}))
        .await
        .error(404, "NOT_FOUND");
}

async fn what_no_structure_can_be_is_named(world: &World) {
    let twice = json!([{ "name": "a", "type": "text" }, { "name": "a", "type": "url" }]);
    for (body, place) in [
        (json!({}), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x", "fields": twice }), "fields[1].name"),
        (
            json!({ "name": "x", "fields": [{ "name": "a" }] }),
            "fields[0].type",
        ),
        (
            json!({ "name": "x", "fields": [{ "name": "a", "type": "uuid" }] }),
            "fields[0].type",
        ),
        (json!({ "name": "x", "folderId": "folder_none" }), "folderId"),
        (json!({ "name": "x", "teamId": "team_none" }), "teamId"),
    ] {
        world.api.post("/structures", body).await.invalid(place);
    }
}

async fn structures_are_listed_newest_first(world: &World) {
    let first = create(world, "First").await;
    let second = create(world, "Second").await;
    let summary = |made: &Value| json!({ "id": made["id"], "name": made["name"], "fieldCount": 0 });
    let all = world.api.get("/structures").await.body(200);
    assert_eq!(
        all,
        json!({ "data": [summary(&second), summary(&first)], "truncated": false })
    );
    let one = world.api.get("/structures?limit=1").await.body(200);
    assert_eq!(one, json!({ "data": [summary(&second)], "truncated": true }));
    world.api.get("/structures?limit=0").await.invalid("limit");
}

async fn the_plan_limits_structures(world: &World) {
    let plan = SetPlanRequest {
        id: "two-structures".to_owned(),
        structures_created: Some(at_most(2)),
        ..SetPlanRequest::default()
    };
    world.admin.plan(plan).await;
    let made = world.admin.organization("Small", Some("two-structures")).await;
    let api = world.server.api(Some(&made.api_key));
    let attempts = (0..10).map(|_| {
        let api = api.clone();
        async move { api.post("/structures", json!({ "name": "x" })).await }
    });
    let answers = together(attempts).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 2);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.error(403, "PLAN_LIMIT_EXCEEDED");
    }
    assert_eq!(
        api.get("/structures").await.body(200)["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}
