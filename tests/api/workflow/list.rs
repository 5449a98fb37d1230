//! Lists: filters, sorts, pages.

use std::collections::BTreeSet;

use core_service::store::{Draft, NewWorkflow};
use serde_json::json;
use test_support::{graphs, text};

use crate::world::World;

on_both_databases!(
    an_entry_has_all_its_fields,
    text_is_found_in_name_and_description,
    status_filters,
    a_folder_includes_what_is_below_it,
    tags_match_any_or_all,
    sorts_go_both_ways,
    a_page_holds_fifty_and_at_most_two_hundred,
);

async fn names(world: &World, query: &str) -> Vec<String> {
    let rows = world.api.all_pages(&format!("/workflows?{query}")).await;
    rows.iter().map(|row| text(&row["name"])).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

async fn an_entry_has_all_its_fields(world: &World) {
    assert_eq!(world.api.get("/workflows").await.page(), (vec![], None));
    let workflow = world.api.workflow_with("Orders", graphs::small_flow()).await;
    let (rows, cursor) = world.api.get("/workflows").await.page();
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let entry = json!({
        "id": workflow, "name": "Orders", "active": false, "folderId": null, "nodeCount": 2, "tagIds": [],
        "createdAt": draft["createdAt"], "updatedAt": draft["updatedAt"],
    });
    assert_eq!((rows, cursor), (vec![entry], None));
    let stranger = world.stranger().await;
    assert_eq!(stranger.get("/workflows").await.page(), (vec![], None));
}

async fn text_is_found_in_name_and_description(world: &World) {
    for (name, description) in [
        ("Orders", "of the shop"),
        ("Invoices", "all ORDERS paid"),
        ("100%_sure", ""),
    ] {
        let body = json!({ "name": name, "description": description });
        let _ = world.api.post("/workflows", body).await.data(201);
    }
    assert_eq!(sorted(names(world, "q=order").await), ["Invoices", "Orders"]);
    assert_eq!(names(world, "q=shop").await, ["Orders"]);
    // The database's wildcards are text.
    assert_eq!(names(world, "q=%25_").await, ["100%_sure"]);
    assert_eq!(names(world, "q=o%25s").await, Vec::<String>::new());
}

async fn status_filters(world: &World) {
    for name in ["draft", "active", "deployed", "modified"] {
        let workflow = world.api.workflow_with(name, graphs::small_flow()).await;
        let path = format!("/workflows/{workflow}");
        if name == "active" {
            let _ = world.api.patch(&path, json!({ "active": true })).await.data(200);
        }
        if ["deployed", "modified"].contains(&name) {
            let _ = world
                .api
                .post(format!("{path}/deploy"), json!({}))
                .await
                .data(200);
        }
        if name == "modified" {
            world
                .api
                .edit(&workflow, json!([{ "op": "remove_node", "nodeId": 2 }]))
                .await;
        }
    }
    assert_eq!(names(world, "status=active").await, ["active"]);
    assert_eq!(
        sorted(names(world, "status=inactive").await),
        ["deployed", "draft", "modified"]
    );
    assert_eq!(sorted(names(world, "status=draft").await), ["active", "draft"]);
    assert_eq!(
        sorted(names(world, "status=deployed").await),
        ["deployed", "modified"]
    );
    assert_eq!(names(world, "status=modified").await, ["modified"]);
    assert_eq!(
        names(world, "status=modified&q=deployed").await,
        Vec::<String>::new()
    );
}

async fn a_folder_includes_what_is_below_it(world: &World) {
    let store = world.store().await;
    let folder = async |name: &str, parent: Option<&str>| {
        let made = store
            .create_folder(&world.actor(), &world.organization, name, parent)
            .await;
        made.unwrap().id
    };
    let top = folder("top", None).await;
    let below = folder("below", Some(&top)).await;
    let beside = folder("beside", None).await;
    for (name, folder) in [
        ("a", Some(&top)),
        ("b", Some(&below)),
        ("c", Some(&beside)),
        ("d", None),
    ] {
        let body = json!({ "name": name, "folderId": folder });
        let _ = world.api.post("/workflows", body).await.data(201);
    }
    assert_eq!(sorted(names(world, &format!("folderId={top}")).await), ["a", "b"]);
    assert_eq!(names(world, &format!("folderId={below}")).await, ["b"]);
    assert_eq!(
        names(world, "folderId=folder_unknown").await,
        Vec::<String>::new()
    );
}

async fn tags_match_any_or_all(world: &World) {
    let (store, actor) = (world.store().await, world.actor());
    let mut tags = Vec::new();
    for name in ["one", "two"] {
        tags.push(
            store
                .create_tag(&actor, &world.organization, name, "red")
                .await
                .unwrap()
                .id,
        );
    }
    for (name, own) in [
        ("both", &tags[..]),
        ("first", &tags[..1]),
        ("second", &tags[1..]),
        ("none", &[]),
    ] {
        let workflow = world.api.workflow(name).await;
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        store
            .set_workflow_tags(&actor, &world.organization, &workflow, &own)
            .await
            .unwrap();
    }
    let both = tags.join(",");
    assert_eq!(
        sorted(names(world, &format!("tagIds={both}")).await),
        ["both", "first", "second"]
    );
    assert_eq!(
        names(world, &format!("tagIds={both}&tagMatch=all")).await,
        ["both"]
    );
    assert_eq!(
        sorted(names(world, &format!("tagIds={}&tagMatch=all", tags[1])).await),
        ["both", "second"]
    );
    let (rows, _) = world.api.get("/workflows?q=both").await.page();
    let listed: BTreeSet<_> = rows[0]["tagIds"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(listed, tags.into_iter().collect());
}

async fn sorts_go_both_ways(world: &World) {
    let mut made = Vec::new();
    for name in ["banana", "Apple", "cherry"] {
        made.push(world.api.workflow(name).await);
    }
    let touched = world
        .api
        .patch(format!("/workflows/{}", made[0]), json!({ "active": true }))
        .await;
    let _ = touched.data(200);
    assert_eq!(names(world, "").await, ["banana", "cherry", "Apple"]);
    assert_eq!(
        names(world, "sortBy=updatedAt&sortDir=asc").await,
        ["Apple", "cherry", "banana"]
    );
    assert_eq!(
        names(world, "sortBy=createdAt").await,
        ["cherry", "Apple", "banana"]
    );
    assert_eq!(
        names(world, "sortBy=createdAt&sortDir=asc&limit=1").await,
        ["banana", "Apple", "cherry"]
    );
    // Names sort as people read them, whatever their case.
    assert_eq!(
        names(world, "sortBy=name&sortDir=asc&limit=1").await,
        ["Apple", "banana", "cherry"]
    );
    assert_eq!(
        names(world, "sortBy=name&limit=2").await,
        ["cherry", "banana", "Apple"]
    );
}

async fn a_page_holds_fifty_and_at_most_two_hundred(world: &World) {
    let store = world.store().await;
    let draft = Draft {
        graph: br#"{"nodes":[],"edges":[]}"#.to_vec(),
        hash: "none".to_owned(),
        node_count: 0,
    };
    for number in 0..201 {
        let name = format!("w{number}");
        let new = NewWorkflow {
            name: &name,
            description: None,
            team_id: None,
            folder_id: None,
            draft: &draft,
        };
        store
            .create_workflow(&world.actor(), &world.organization, &new)
            .await
            .unwrap();
    }
    assert_eq!(world.api.get("/workflows").await.page().0.len(), 50);
    let (rows, cursor) = world.api.get("/workflows?limit=1000").await.page();
    assert_eq!((rows.len(), cursor.is_some()), (200, true));
    // A text without a value is as one that is not there.
    let (rows, _) = world.api.get("/workflows?q=&cursor=").await.page();
    assert_eq!(rows.len(), 50);
}
