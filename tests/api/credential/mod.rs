//! Credentials: their nouns, the page that finishes them, their use in graphs, their test against a service.

mod connect;
mod graph;
mod host;
mod noun;
mod options;
mod verify;

use serde_json::{Value, json};
use test_support::text;

use crate::world::World;

/// A bearer credential with this token, active at once; gives its id.
pub(crate) async fn bearer(world: &World, token: &str) -> String {
    let made = create(world, "bearer", json!({ "token": token })).await;
    assert_eq!(made["status"], "active", "{made}");
    text(&made["credentialId"])
}

/// What creating a credential of the app `http` answers.
async fn create(world: &World, connection: &str, data: Value) -> Value {
    let body = json!({ "appId": "http", "connectionId": connection, "name": "Mine", "data": data });
    world.api.post("/credentials", body).await.data(200)
}

/// The credential with this id, as the list shows it.
async fn listed(world: &World, credential: &str) -> Value {
    let (rows, _) = world.api.get("/credentials").await.page();
    let found = rows.into_iter().find(|row| row["id"] == credential);
    found.unwrap_or_else(|| panic!("{credential} is not listed"))
}
