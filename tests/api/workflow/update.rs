//! PATCH: what is absent stays, null clears, and what cannot be cleared says so.

use serde_json::{Value, json};
use test_support::graphs;

use crate::world::World;

on_both_databases!(
    only_what_is_named_changes,
    null_clears_what_can_be_cleared,
    a_recurrence_does_not_activate,
    recurrences_that_cannot_be_followed_are_refused,
    updated_at_rises_with_every_write,
    what_is_wrong_is_named,
);

async fn only_what_is_named_changes(world: &World) {
    let body = json!({ "name": "Orders", "description": "All of them" });
    let created = world.api.post("/workflows", body).await.data(201);
    let path = format!("/workflows/{}", created["id"].as_str().unwrap());
    let changed = world
        .api
        .patch(&path, json!({ "name": " Invoices " }))
        .await
        .data(200);
    assert_eq!(changed["updated"], json!(["name"]));
    assert_eq!(changed["name"], "Invoices");
    assert!(changed.get("active").is_none());
    let read = world.api.get(&path).await.data(200);
    assert_eq!(
        (&read["name"], &read["description"]),
        (&json!("Invoices"), &json!("All of them"))
    );
    assert_eq!(read["active"], false);
    let changed = world.api.patch(&path, json!({ "active": true })).await.data(200);
    assert_eq!(
        (&changed["updated"], &changed["active"]),
        (&json!(["active"]), &json!(true))
    );
    let nothing = world.api.patch(&path, json!({})).await.data(200);
    assert_eq!(nothing["updated"], json!([]));
}

async fn null_clears_what_can_be_cleared(world: &World) {
    let store = world.store().await;
    let folder = store
        .create_folder(&world.actor(), &world.organization, "F", None)
        .await
        .unwrap();
    let path = format!("/workflows/{}", world.api.workflow("x").await);
    let all = json!({
        "folderId": folder.id, "description": "d", "executionTimeoutMs": 60_000,
        "recurrence": { "kind": "interval", "every": 5, "unit": "minutes" },
    });
    let changed = world.api.patch(&path, all).await.data(200);
    assert_eq!(changed["folderId"], folder.id);
    let read = world.api.get(&path).await.data(200);
    assert_eq!(
        (&read["folderId"], &read["description"]),
        (&json!(folder.id), &json!("d"))
    );
    assert_eq!(read["schedule"]["executionTimeoutMs"], 60_000);
    assert_eq!(read["schedule"]["recurrence"]["every"], 5);
    let nulls =
        json!({ "folderId": null, "description": null, "executionTimeoutMs": null, "recurrence": null });
    let changed = world.api.patch(&path, nulls).await.data(200);
    assert_eq!(changed["folderId"], Value::Null);
    let read = world.api.get(&path).await.data(200);
    for name in ["folderId", "description"] {
        assert!(read.get(name).is_none(), "{name}: {read}");
    }
    assert!(
        read["schedule"].get("recurrence").is_none_or(Value::is_null),
        "{read}"
    );
    assert!(
        read["schedule"]
            .get("executionTimeoutMs")
            .is_none_or(Value::is_null),
        "{read}"
    );
    world
        .api
        .patch(&path, json!({ "name": null }))
        .await
        .invalid("name");
    world
        .api
        .patch(&path, json!({ "active": null }))
        .await
        .invalid("active");
}

async fn a_recurrence_does_not_activate(world: &World) {
    let path = format!(
        "/workflows/{}",
        world.api.workflow_with("x", graphs::small_flow()).await
    );
    let recurrence = json!({
        "kind": "interval", "every": 30, "unit": "minutes", "timezone": "Europe/Vienna", "skipIfRunning": true,
    });
    let changed = world
        .api
        .patch(&path, json!({ "recurrence": recurrence }))
        .await
        .data(200);
    assert_eq!(changed["updated"], json!(["recurrence"]));
    let read = world.api.get(&path).await.data(200);
    assert_eq!(read["active"], false);
    for (name, value) in recurrence.as_object().unwrap() {
        assert_eq!(&read["schedule"]["recurrence"][name], value, "{name}");
    }
    for recurrence in [
        json!({ "kind": "daily", "at": ["09:00", "17:30"] }),
        json!({ "kind": "weekly", "days": [1, 5], "at": ["09:00"] }),
        json!({ "kind": "monthly", "daysOfMonth": [1, -1], "at": ["00:00"] }),
        json!({ "kind": "cron", "expression": "*/15 9-17 * * 1-5" }),
        json!({ "kind": "once", "at": "2100-01-01T00:00:00Z" }),
    ] {
        let answer = world.api.patch(&path, json!({ "recurrence": recurrence })).await;
        let _ = answer.data(200);
        let read = world.api.get(&path).await.data(200);
        for (name, value) in recurrence.as_object().unwrap() {
            assert_eq!(&read["schedule"]["recurrence"][name], value, "{name}");
        }
    }
}

async fn recurrences_that_cannot_be_followed_are_refused(world: &World) {
    let path = format!("/workflows/{}", world.api.workflow("x").await);
    for (recurrence, place) in [
        (json!({ "kind": "hourly" }), "recurrence.kind"),
        (json!({ "every": 5 }), "recurrence.kind"),
        (
            json!({ "kind": "interval", "every": 5, "unit": "seconds" }),
            "recurrence.unit",
        ),
        (
            json!({ "kind": "interval", "every": 0, "unit": "minutes" }),
            "recurrence.every",
        ),
        (
            json!({ "kind": "interval", "unit": "minutes" }),
            "recurrence.every",
        ),
        (
            json!({ "kind": "interval", "every": 1, "unit": "days", "timezone": "Mars/Base" }),
            "recurrence.timezone",
        ),
        (
            json!({ "kind": "interval", "every": 1, "unit": "days", "often": true }),
            "recurrence.often",
        ),
    ] {
        world
            .api
            .patch(&path, json!({ "recurrence": recurrence }))
            .await
            .invalid(place);
    }
    for recurrence in [
        json!({ "kind": "cron", "expression": "every day" }),
        json!("daily"),
    ] {
        let answer = world.api.patch(&path, json!({ "recurrence": recurrence })).await;
        answer.error(400, "VALIDATION_ERROR");
    }
    let read = world.api.get(&path).await.data(200);
    assert!(read["schedule"].get("recurrence").is_none_or(Value::is_null));
}

async fn updated_at_rises_with_every_write(world: &World) {
    let path = format!("/workflows/{}", world.api.workflow("x").await);
    let mut last = world.api.get(&path).await.data(200)["updatedAt"]
        .as_i64()
        .unwrap();
    for number in 0..20 {
        let body = json!({ "name": format!("name {number}") });
        let changed = world.api.patch(&path, body).await.data(200)["updatedAt"]
            .as_i64()
            .unwrap();
        assert!(changed > last, "{changed} after {last}");
        last = changed;
    }
}

async fn what_is_wrong_is_named(world: &World) {
    let path = format!("/workflows/{}", world.api.workflow("x").await);
    world
        .api
        .patch(&path, json!({ "name": " " }))
        .await
        .invalid("name");
    world
        .api
        .patch(&path, json!({ "active": "yes" }))
        .await
        .invalid("active");
    world
        .api
        .patch(&path, json!({ "nodes": [] }))
        .await
        .invalid("nodes");
    world
        .api
        .patch(&path, json!({ "folderId": "folder_unknown" }))
        .await
        .invalid("folderId");
    world
        .api
        .patch(&path, json!({ "executionTimeoutMs": 0 }))
        .await
        .invalid("executionTimeoutMs");
    let missing = world
        .api
        .patch("/workflows/wf_unknown", json!({ "folderId": "folder_unknown" }))
        .await;
    missing.error(404, "NOT_FOUND");
}
