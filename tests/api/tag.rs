//! Tags, and the workflows that carry them.

use serde_json::{Value, json};
use test_support::text;

use crate::world::World;

on_both_databases!(
    tags_are_made_changed_and_listed_by_name,
    colors_are_checked,
    a_workflow_carries_tags,
    unknown_tags_are_named,
    a_deleted_tag_is_taken_from_workflows,
);

async fn tag(world: &World, name: &str) -> String {
    let body = json!({ "name": name, "color": "teal" });
    text(&world.api.post("/tags", body).await.data(201)["id"])
}

async fn carried(world: &World, workflow: &str) -> Vec<String> {
    let (rows, _) = world.api.get("/workflows").await.page();
    let row = rows.into_iter().find(|row| row["id"] == workflow).unwrap();
    let mut tags: Vec<String> = row["tagIds"].as_array().unwrap().iter().map(text).collect();
    tags.sort_unstable();
    tags
}

async fn tags_are_made_changed_and_listed_by_name(world: &World) {
    let made = world
        .api
        .post("/tags", json!({ "name": " Müll ", "color": "#A0b1C2" }))
        .await
        .data(201);
    let expected = json!({
        "id": made["id"], "name": "Müll", "color": "#A0b1C2", "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    });
    assert_eq!(made, expected);
    // Names need not be unique.
    let twin = tag(world, "Müll").await;
    let _ = tag(world, "ab").await;
    let list = world.api.get("/tags").await.body(200)["data"].clone();
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| text(&row["name"]))
        .collect();
    assert_eq!(names, ["ab", "Müll", "Müll"]);
    let path = format!("/tags/{twin}");
    let changed = world
        .api
        .patch(&path, json!({ "name": "Zwilling", "color": "pink" }))
        .await
        .data(200);
    assert_eq!(
        (&changed["name"], &changed["color"]),
        (&json!("Zwilling"), &json!("pink"))
    );
    assert!(changed["updatedAt"].as_i64() >= changed["createdAt"].as_i64());
    assert_eq!(
        world.api.patch(&path, json!({ "color": "gray" })).await.data(200)["name"],
        "Zwilling"
    );
}

async fn colors_are_checked(world: &World) {
    for color in [
        json!("Red"),
        json!("#12345"),
        json!("#12345g"),
        json!("red\n"),
        json!(""),
        Value::Null,
        json!(1),
    ] {
        world
            .api
            .post("/tags", json!({ "name": "x", "color": color }))
            .await
            .invalid("color");
    }
    world
        .api
        .post("/tags", json!({ "name": "x" }))
        .await
        .invalid("color");
    world
        .api
        .post("/tags", json!({ "color": "red" }))
        .await
        .invalid("name");
    let path = format!("/tags/{}", tag(world, "x").await);
    world
        .api
        .patch(&path, json!({ "color": "black" }))
        .await
        .invalid("color");
    world
        .api
        .patch(&path, json!({ "color": null }))
        .await
        .invalid("color");
    world
        .api
        .patch(&path, json!({ "name": " " }))
        .await
        .invalid("name");
    world
        .api
        .patch("/tags/tag_unknown", json!({ "name": "x" }))
        .await
        .error(404, "NOT_FOUND");
}

async fn a_workflow_carries_tags(world: &World) {
    let workflow = world.api.workflow("Tagged").await;
    let (one, two) = (tag(world, "one").await, tag(world, "two").await);
    let before = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let path = format!("/workflows/{workflow}/tags");
    let set = world
        .api
        .put(&path, json!({ "tagIds": [two, one, two] }))
        .await
        .data(200);
    assert_eq!(set, json!({ "ok": true, "tagIds": [two, one] }));
    let mut both = [one.clone(), two.clone()];
    both.sort_unstable();
    assert_eq!(carried(world, &workflow).await, both);
    let after = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    assert!(
        after["updatedAt"].as_i64() > before["updatedAt"].as_i64(),
        "it is a write"
    );
    let _ = world.api.put(&path, json!({ "tagIds": [one] })).await.data(200);
    assert_eq!(carried(world, &workflow).await, [one]);
    let none = world.api.put(&path, json!({ "tagIds": [] })).await.data(200);
    assert_eq!(none["tagIds"], json!([]));
    assert!(carried(world, &workflow).await.is_empty());
    world.api.put(&path, json!({})).await.invalid("tagIds");
    world
        .api
        .put("/workflows/wf_unknown/tags", json!({ "tagIds": [] }))
        .await
        .error(404, "NOT_FOUND");
}

async fn unknown_tags_are_named(world: &World) {
    let workflow = world.api.workflow("Tagged").await;
    let known = tag(world, "known").await;
    let path = format!("/workflows/{workflow}/tags");
    let _ = world.api.put(&path, json!({ "tagIds": [known] })).await.data(200);
    let refused = world
        .api
        .put(&path, json!({ "tagIds": [known, "tag_unknown"] }))
        .await;
    refused.invalid("tagIds[1]");
    assert_eq!(carried(world, &workflow).await, [known], "nothing changed");
}

async fn a_deleted_tag_is_taken_from_workflows(world: &World) {
    let workflow = world.api.workflow("Tagged").await;
    let (gone, kept) = (tag(world, "gone").await, tag(world, "kept").await);
    let body = json!({ "tagIds": [gone, kept] });
    let _ = world
        .api
        .put(format!("/workflows/{workflow}/tags"), body)
        .await
        .data(200);
    let path = format!("/tags/{gone}");
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(carried(world, &workflow).await, [kept]);
}
