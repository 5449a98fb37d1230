//! Folders: a tree without circles, whose contents outlive it.

use serde_json::{Value, json};
use test_support::{text, together};

use crate::world::World;

on_both_databases!(
    folders_are_made_renamed_and_listed_by_name,
    folders_move_but_not_into_themselves,
    simultaneous_moves_close_no_circle,
    what_a_deleted_folder_held_moves_up,
    bodies_are_checked,
);

async fn folder(world: &World, name: &str, parent: Option<&str>) -> String {
    let body = json!({ "name": name, "parentId": parent });
    text(&world.api.post("/folders", body).await.data(201)["id"])
}

async fn folders_are_made_renamed_and_listed_by_name(world: &World) {
    let made = world
        .api
        .post("/folders", json!({ "name": " Zebra\t" }))
        .await
        .data(201);
    assert_eq!(
        made,
        json!({ "id": made["id"], "name": "Zebra", "parentId": null })
    );
    assert!(text(&made["id"]).starts_with("folder_"));
    let child = folder(world, "ärger", Some(&text(&made["id"]))).await;
    let _ = folder(world, "Äpfel", None).await;
    let _ = folder(world, "apple", None).await;
    let names = async || {
        let list = world.api.get("/folders").await.body(200)["data"].clone();
        list.as_array()
            .unwrap()
            .iter()
            .map(|row| text(&row["name"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["apple", "Zebra", "Äpfel", "ärger"]);
    let path = format!("/folders/{child}");
    let renamed = world
        .api
        .patch(&path, json!({ "name": "Basics" }))
        .await
        .data(200);
    assert_eq!(
        renamed,
        json!({ "id": child, "name": "Basics", "parentId": made["id"] })
    );
    let unchanged = world.api.patch(&path, json!({})).await.data(200);
    assert_eq!(unchanged, renamed);
    let lifted = world
        .api
        .patch(&path, json!({ "parentId": null }))
        .await
        .data(200);
    assert_eq!(lifted["parentId"], Value::Null);
    assert_eq!(names().await, ["apple", "Basics", "Zebra", "Äpfel"]);
}

async fn folders_move_but_not_into_themselves(world: &World) {
    let top = folder(world, "top", None).await;
    let middle = folder(world, "middle", Some(&top)).await;
    let bottom = folder(world, "bottom", Some(&middle)).await;
    for into in [&top, &middle, &bottom] {
        let moved = world
            .api
            .patch(format!("/folders/{top}"), json!({ "parentId": into }))
            .await;
        moved.invalid("parentId");
    }
    let moved = world
        .api
        .patch(format!("/folders/{bottom}"), json!({ "parentId": top }))
        .await
        .data(200);
    assert_eq!(moved["parentId"], top);
    let moved = world
        .api
        .patch(format!("/folders/{middle}"), json!({ "parentId": bottom }))
        .await
        .data(200);
    assert_eq!(moved["parentId"], bottom);
    let moved = world
        .api
        .patch(
            format!("/folders/{middle}"),
            json!({ "parentId": "folder_unknown" }),
        )
        .await;
    moved.invalid("parentId");
}

async fn simultaneous_moves_close_no_circle(world: &World) {
    for _ in 0..5 {
        let (one, other) = (
            folder(world, "one", None).await,
            folder(world, "other", None).await,
        );
        let moves = [(one.clone(), other.clone()), (other, one)].map(|(folder, into)| {
            let api = world.api.clone();
            async move {
                api.patch(format!("/folders/{folder}"), json!({ "parentId": into }))
                    .await
                    .status
            }
        });
        let mut statuses = together(moves).await;
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
    }
}

async fn what_a_deleted_folder_held_moves_up(world: &World) {
    let top = folder(world, "top", None).await;
    let middle = folder(world, "middle", Some(&top)).await;
    let bottom = folder(world, "bottom", Some(&middle)).await;
    let body = json!({ "name": "Kept", "folderId": middle });
    let workflow = text(&world.api.post("/workflows", body).await.data(201)["id"]);
    let path = format!("/folders/{middle}");
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    world
        .api
        .patch(&path, json!({ "name": "x" }))
        .await
        .error(404, "NOT_FOUND");
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    assert_eq!(draft["folderId"], top);
    let (listed, _) = world.api.get(format!("/workflows?folderId={top}")).await.page();
    assert_eq!(listed.len(), 1);
    let list = world.api.get("/folders").await.data(200);
    let parents: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["id"], &row["parentId"]))
        .collect();
    assert_eq!(
        parents,
        [(&json!(bottom), &json!(top)), (&json!(top), &Value::Null)]
    );
    let _ = world.api.delete(format!("/folders/{top}")).await.data(200);
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    assert_eq!(draft.get("folderId"), None, "at the top");
}

async fn bodies_are_checked(world: &World) {
    for name in [
        json!(""),
        json!("  "),
        json!("x".repeat(201)),
        Value::Null,
        json!(1),
    ] {
        world
            .api
            .post("/folders", json!({ "name": name }))
            .await
            .invalid("name");
    }
    world.api.post("/folders", json!({})).await.invalid("name");
    world
        .api
        .post("/folders", json!({ "name": "x", "parentId": "folder_unknown" }))
        .await
        .invalid("parentId");
    world
        .api
        .post("/folders", json!({ "name": "x", "color": "red" }))
        .await
        .invalid("color");
    let path = format!("/folders/{}", folder(world, "x", None).await);
    for name in [json!(""), Value::Null] {
        world
            .api
            .patch(&path, json!({ "name": name }))
            .await
            .invalid("name");
    }
}
