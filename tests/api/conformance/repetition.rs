//! The same request again: what HTTP calls idempotent is.

use serde_json::Value;

use super::endpoint::implemented;
use super::example::examples;
use super::home::Home;
use super::snapshot::Snapshot;
use crate::world::World;

on_both_databases!(reading_changes_nothing, changing_again_changes_no_more);

async fn reading_changes_nothing(world: &World) {
    let home = Home::found(world).await;
    let mut reads = Vec::new();
    for endpoint in implemented() {
        if endpoint.route.verb == "GET" {
            let examples = examples(&home, &endpoint).await;
            reads.extend(
                examples
                    .into_iter()
                    .map(|example| (example, endpoint.name.clone())),
            );
        }
    }
    let endpoints = implemented();
    let before = Snapshot::of(&home.api).await;
    for (example, name) in &reads {
        let endpoint = endpoints.iter().find(|endpoint| endpoint.name == *name).unwrap();
        let first = example.send(&home.api, endpoint).await;
        let second = example.send(&home.api, endpoint).await;
        assert_eq!(
            (first.status, &first.body),
            (second.status, &second.body),
            "{name}"
        );
    }
    let changes = before.differences(&Snapshot::of(&home.api).await);
    assert!(changes.is_empty(), "{changes:?}");
}

/// PUT and PATCH: the second time gives the same thing, but for when it was written.
async fn changing_again_changes_no_more(world: &World) {
    let home = Home::found(world).await;
    for endpoint in implemented() {
        if !["PUT", "PATCH"].contains(&endpoint.route.verb) {
            continue;
        }
        for example in examples(&home, &endpoint).await {
            let first = example.send(&home.api, &endpoint).await;
            let second = example.send(&home.api, &endpoint).await;
            assert_eq!(second.status, endpoint.route.success_status, "{}", second.text());
            assert_eq!(
                lasting(&second.json()),
                lasting(&first.json()),
                "{}",
                endpoint.name
            );
        }
    }
}

/// An answer without what each write changes.
fn lasting(body: &Value) -> Value {
    let mut data = body["data"].clone();
    for field in ["updatedAt", "created"] {
        data.as_object_mut().unwrap().shift_remove(field);
    }
    data
}
