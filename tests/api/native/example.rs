//! The worked example of `docs/example.md`, carried out as it stands there: a webhook, a search, an action for each thing
//! found, an aggregator, an e-mail.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};
use test_support::{Asked, MailSecurity, MailServer, Target, text};

use super::call::verify;
use crate::catalog::bring;
use crate::world::World;

on_both_databases!(orders_are_shipped_and_told_of);

const DOCUMENT: &str = include_str!("../../../docs/example.md");

/// The blocks of the document in a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let begun = DOCUMENT.split("```").skip(1).step_by(2);
    begun
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

/// A block of JSON.
fn block(place: usize) -> Value {
    let text = blocks("json")[place];
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The shop: three open orders on two pages, the second of which cannot be shipped.
async fn shop() -> Target {
    Target::start(|asked: &Asked| {
        let order = |id: i64, item: &str| json!({ "id": id, "item": item });
        let path = asked.uri.path();
        let (status, body) = match (&asked.method, path, asked.uri.query()) {
            _ if asked.header("x-api-key") != "shop-key-1" => (401, json!({ "error": "unknown key" })),
            (&Method::GET, "/v2/account", _) => (200, json!({})),
            (&Method::GET, "/v2/customers/c7/orders", Some("status=open")) => (
                200,
                json!({ "orders": [order(11, "Teapot"), order(12, "Kettle")], "next": "p2" }),
            ),
            (&Method::GET, "/v2/customers/c7/orders", Some("status=open&after=p2")) => (
                200,
                json!({ "orders": [order(13, "Gänseblümchen")], "next": null }),
            ),
            (&Method::POST, "/v2/orders/12/shipment", _) => (409, json!({ "error": "out of stock" })),
            (&Method::POST, "/v2/orders/11/shipment", _) => (201, json!({ "tracking": "T-11" })),
            (&Method::POST, "/v2/orders/13/shipment", _) => (201, json!({ "tracking": "T-13" })),
            _ => (404, json!({ "error": path })),
        };
        let answer = Response::builder()
            .status(status)
            .header("content-type", "application/json");
        answer.body(Bytes::from(body.to_string())).unwrap()
    })
    .await
}

async fn credential(world: &World, body: Value) -> String {
    let made = world.api.post("/credentials", body).await.data(200);
    let id = text(&made["credentialId"]);
    assert_eq!(verify(world, &id).await, json!({ "status": "valid" }));
    id
}

async fn orders_are_shipped_and_told_of(world: &World) {
    let security = MailSecurity::None;
    let Some(mail) = MailServer::start_or_skip("the worked example", security, None).await else {
        return;
    };
    let shop = shop().await;
    let manifest = blocks("yaml")[0].replace("https://shop.example.com", &shop.url(""));
    bring(world, &manifest).await;
    let of_shop = credential(world, block(0)).await;
    let mut of_mail = block(1);
    of_mail["data"]["host"] = json!("127.0.0.1");
    of_mail["data"]["port"] = json!(mail.port());
    let of_mail = credential(world, of_mail).await;
    let operations = blocks("json")[2]
        .replace("cred_shop", &of_shop)
        .replace("cred_mail", &of_mail);
    let operations: Value = serde_json::from_str(&operations).unwrap();
    let workflow = world.api.workflow_with("Ship", operations).await;
    world.api.go_live(&workflow).await;
    let hook = world.api.mint(&workflow, 1).await;
    let called = world.api.call_hook(&hook, &[], block(3)).await;
    assert_eq!(called.status, 202, "{}", called.text());

    let letters = mail.waited_for(1).await;
    let letter = &letters[0];
    assert_eq!(letter["to"], json!(["joerg@example.com"]));
    let to = json!(["To", "Jörg Müller <joerg@example.com>"]);
    assert!(letter["headers"].as_array().unwrap().contains(&to), "{letter}");
    let subject = text(&letter["subject"]);
    assert!(DOCUMENT.contains(&format!("*{subject}*")), "{subject}");
    let said = text(&letter["text"]).replace("\r\n", "\n");
    assert_eq!(said.trim_end(), blocks("text")[0].trim_end());

    let (runs, _) = world.api.get(format!("/runs?workflowId={workflow}")).await.page();
    let report = world.api.ended(&text(&runs[0]["id"])).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    let shipped = nodes
        .iter()
        .filter(|node| node["nodeId"] == 3)
        .map(|node| text(&node["status"]));
    let mut shipped: Vec<String> = shipped.collect();
    shipped.sort();
    assert_eq!(shipped, ["completed", "completed", "failed"]);
    let asked: Vec<Asked> = shop.asked();
    let shipments = asked.iter().filter(|asked| asked.method == Method::POST);
    assert_eq!(shipments.count(), 3, "each order is shipped once");
    assert_eq!(mail.received().len(), 1, "one e-mail for all");
}
