//! The catalog: what there is to build workflows with, and apps that are brought to it.

mod add;
mod built_in;
mod import;
mod pace;
mod pin;

use bytes::Bytes;
use contract::v1;
use http::Response;
use serde_json::{Value, json};
use test_support::{Admin, Asked, Target, text};

use crate::world::World;

/// A shop's manifest; what differs between tests stands in capitals.
const SHOP: &str = include_str!("shop.yaml");

/// The manifest of a shop at this URL whose orders are below this path.
pub(crate) fn shop(url: &str, path: &str) -> String {
    SHOP.replace("BASE_URL", url).replace("ORDERS_PATH", path)
}

/// A service that says what it was asked, and has two customers and an order.
pub(crate) async fn service() -> Target {
    Target::start(|asked: &Asked| {
        let answer = match (asked.uri.path(), asked.header("x-api-key")) {
            ("/customers", _) => json!({ "customers": [{ "id": "c1", "name": "Ada" }] }),
            ("/list", _) => json!({ "orders": [{ "id": 1 }] }),
            (path, key) => json!({ "path": path, "key": key, "query": asked.uri.query() }),
        };
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(answer.to_string())).unwrap()
    })
    .await
}

/// Adds a manifest for an organization, or for all.
pub(crate) async fn add(
    admin: &Admin,
    organization: Option<&str>,
    manifest: &str,
) -> Result<v1::CatalogVersion, tonic::Status> {
    let request = v1::AddManifestRequest {
        manifest: manifest.as_bytes().to_vec(),
        organization_id: organization.map(str::to_owned),
    };
    let added = admin.client.clone().add_manifest(request).await?;
    Ok(added.into_inner().app.unwrap())
}

/// Adds a manifest for the case's organization; gives the version.
pub(crate) async fn bring(world: &World, manifest: &str) -> i32 {
    let added = add(&world.admin, Some(&world.organization), manifest).await;
    added.unwrap().version
}

/// A credential of the shop with this key.
pub(crate) async fn credential(world: &World, key: &str) -> String {
    let body =
        json!({ "appId": "corner_shop", "connectionId": "key", "name": "Mine", "data": { "key": key } });
    let made = world.api.post("/credentials", body).await.data(200);
    assert_eq!(made["status"], "active", "{made}");
    text(&made["credentialId"])
}

/// A trigger (1), and the shop's order 7 (2).
pub(crate) fn flow(trigger: (&str, Value), credential: &str) -> Value {
    json!([
        { "op": "add_node", "tempId": "start", "kind": trigger.0, "params": trigger.1 },
        { "op": "add_node", "tempId": "order", "appId": "corner_shop", "moduleSlug": "get_order",
          "after": "start", "params": { "id": 7 }, "credentialId": credential },
    ])
}

/// The output of the second node of a run of the draft.
pub(crate) async fn output(world: &World, workflow: &str) -> Value {
    let run = world.api.start(workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    report["nodes"][1]["output"].clone()
}
