//! Deleting at the same instant, for every noun that can be deleted.

use serde_json::json;
use test_support::{graphs, text, together};

use crate::world::World;

on_both_databases!(
    of_several_deletes_at_once_one_wins,
    of_several_cancellations_of_an_invitation_one_wins
);

/// Statuses of simultaneous deletes, ascending.
async fn delete_at_once(world: &World, path: &str) -> Vec<u16> {
    let deletes = (0..8).map(|_| {
        let (api, path) = (world.api.clone(), path.to_owned());
        async move { api.delete(path).await.status }
    });
    let mut statuses = together(deletes).await;
    statuses.sort_unstable();
    statuses
}

fn one_then(first: u16, rest: u16) -> Vec<u16> {
    [vec![first], vec![rest; 7]].concat()
}

async fn of_several_deletes_at_once_one_wins(world: &World) {
    let column = json!({ "name": "a", "type": "text" });
    let nouns = [
        ("/workflows", json!({ "name": "x" })),
        ("/folders", json!({ "name": "x" })),
        ("/tags", json!({ "name": "x", "color": "red" })),
        ("/databases", json!({ "name": "x", "columns": [column] })),
    ];
    for (path, body) in nouns {
        for _ in 0..3 {
            let made = world.api.post(path, body.clone()).await.data(201);
            let path = format!("{path}/{}", text(&made["id"]));
            assert_eq!(delete_at_once(world, &path).await, one_then(200, 404), "{path}");
        }
    }
    let body = json!({ "value": "hunter22", "isSecret": true });
    let made = world.api.put("/variables/X", body).await.data(201);
    let path = format!("/variables/{}", text(&made["id"]));
    assert_eq!(delete_at_once(world, &path).await, one_then(200, 404), "{path}");
    let workflow = world.api.workflow_with("x", graphs::order_flow()).await;
    let path = format!("/webhooks/{}?force=1", world.api.mint(&workflow, 1).await);
    assert_eq!(delete_at_once(world, &path).await, one_then(204, 404), "{path}");
    // Each is told once, too.
    let page = world.api.get("/activity?limit=200").await.data(200);
    let events = page["events"].as_array().unwrap();
    let deleted = events
        .iter()
        .filter(|event| text(&event["action"]).ends_with(".deleted"));
    assert_eq!(deleted.count(), 4 * 3 + 2, "{page}");
}

async fn of_several_cancellations_of_an_invitation_one_wins(world: &World) {
    for number in 0..3 {
        let body = json!({ "email": format!("{number}@example.com"), "role": "member" });
        let made = world.api.post("/invitations", body).await.data(201);
        let path = format!("/invitations/{}", text(&made["id"]));
        assert_eq!(delete_at_once(world, &path).await, one_then(200, 409), "{path}");
    }
}
