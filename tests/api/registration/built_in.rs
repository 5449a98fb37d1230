//! The triggers of apps that come with the service, against stand-ins for their services: what these are told, how they
//! sign, and what starts.
//!
//! Each app is brought again under another name, its manifest changed in nothing but the host.

use bytes::Bytes;
use core_service::clock::now_ms;
use hmac::{Hmac, Mac};
use http::{Method, Response};
use serde_json::{Value, json};
use sha2::Sha256;
use test_support::{Asked, Target, text, until};

use super::office::{called, deliver_to, given, trigger};
use crate::catalog::bring;
use crate::world::World;

on_both_databases!(
    github_delivers_events_of_a_repository,
    stripe_signs_with_a_secret_of_its_own,
    telegram_proves_itself_by_a_header,
    slack_asks_whether_the_url_is_meant,
);

/// The manifests, and the text in each that names its host.
const GITHUB: &str = include_str!("../../../core-service/src/connectors/apps/github.yaml");
const SLACK: &str = include_str!("../../../core-service/src/connectors/apps/slack.yaml");
const STRIPE: &str = include_str!("../../../core-service/src/connectors/apps/stripe.yaml");
const TELEGRAM: &str = include_str!("../../../core-service/src/connectors/apps/telegram.yaml");

/// A stand-in that answers every request with the same JSON.
async fn stand_in(answer: Value) -> Target {
    Target::start(move |_: &Asked| {
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(answer.to_string())).unwrap()
    })
    .await
}

/// Brings an app whose service is a stand-in; gives its id.
async fn bring_local(world: &World, manifest: &str, origin: &str, service: &Target) -> String {
    let host = origin.strip_prefix("https://").unwrap();
    let (app, _tests) = manifest.split_once("\ntests:").unwrap();
    let id = app.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let local = format!("{id}_local");
    let app = app
        .replacen(&format!("id: {id}"), &format!("id: {local}"), 1)
        .replacen(
            &format!("baseUrl: {origin}"),
            &format!("baseUrl: {}", service.url("")),
            1,
        )
        .replacen(
            &format!("hosts: [{host}"),
            &format!("hosts: [\"{}\", {host}", service.address()),
            1,
        );
    bring(world, &app).await;
    local
}

/// A live workflow with a trigger of an app.
async fn live(
    world: &World,
    (app, module): (&str, &str),
    connection: (&str, Value),
    params: Value,
) -> String {
    let body = json!({ "appId": app, "connectionId": connection.0, "name": "Mine", "data": connection.1 });
    let made = world.api.post("/credentials", body).await.data(200);
    let flow = trigger(app, module, &text(&made["credentialId"]), params);
    let workflow = world.api.workflow_with("Events", flow).await;
    world.api.go_live(&workflow).await;
    workflow
}

async fn undeploy(world: &World, workflow: &str) {
    let path = format!("/workflows/{workflow}/undeploy");
    let _ = world.api.post(path, json!({})).await.data(200);
}

/// The path of a URL that a service was told.
fn path(url: &Value) -> String {
    let url = text(url);
    url[url.find("/hooks/").unwrap()..].to_owned()
}

fn hmac(key: &str, text: &str) -> String {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

async fn github_delivers_events_of_a_repository(world: &World) {
    let service = stand_in(json!({ "id": 77 })).await;
    let app = bring_local(world, GITHUB, "https://api.github.com", &service).await;
    let params = json!({ "owner": "octo cat", "repository": "hello", "events": ["issues"] });
    let workflow = live(
        world,
        (&app, "repository_event"),
        ("token", json!({ "token": "t-1" })),
        params,
    )
    .await;
    let call = called(&service, 1).await;
    assert_eq!(
        (&call.method, call.uri.path()),
        (&Method::POST, "/repos/octo%20cat/hello/hooks")
    );
    assert_eq!(call.header("authorization"), "Bearer t-1");
    let told = call.json();
    assert_eq!(
        (&told["events"], &told["active"]),
        (&json!(["issues"]), &json!(true))
    );
    assert_eq!(told["config"]["content_type"], "json");
    let (path, secret) = (path(&told["config"]["url"]), text(&told["config"]["secret"]));
    let deliver = async |event: &str, delivery: &str, secret: &str, body: &Value| {
        let body = body.to_string();
        let signature = format!("sha256={}", hmac(secret, &body));
        let headers = [
            ("x-github-event", event),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", signature.as_str()),
        ];
        deliver_to(&world.api, &path, &headers, body).await.status
    };
    assert_eq!(deliver("ping", "0", &secret, &json!({ "zen": "…" })).await, 200);
    let body = json!({ "action": "opened", "issue": { "title": "Grüße" } });
    assert_eq!(deliver("issues", "1", "another", &body).await, 401);
    for _ in 0..2 {
        assert_eq!(deliver("issues", "1", &secret, &body).await, 200);
    }
    let expected = json!({ "event": "issues", "delivery": "1", "body": body });
    assert_eq!(given(world, &workflow, 1).await, [expected]);
    undeploy(world, &workflow).await;
    let over = called(&service, 2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::DELETE, "/repos/octo%20cat/hello/hooks/77")
    );
    assert_eq!(over.header("authorization"), "Bearer t-1");
    assert_eq!(deliver("issues", "2", &secret, &body).await, 404);
}

async fn stripe_signs_with_a_secret_of_its_own(world: &World) {
    let service = stand_in(json!({ "id": "we_1", "secret": "whsec_1" })).await;
    let app = bring_local(world, STRIPE, "https://api.stripe.com", &service).await;
    let params = json!({ "events": ["charge.succeeded", "charge.failed"] });
    let connection = ("secret_key", json!({ "token": "sk_test_1" }));
    let workflow = live(world, (&app, "event"), connection, params).await;
    let call = called(&service, 1).await;
    assert_eq!(
        (&call.method, call.uri.path()),
        (&Method::POST, "/v1/webhook_endpoints")
    );
    assert_eq!(call.header("authorization"), "Bearer sk_test_1");
    assert_eq!(call.header("content-type"), "application/x-www-form-urlencoded");
    let form: Vec<(String, String)> = form_urlencoded::parse(&call.body).into_owned().collect();
    let of = |name: &str| -> Vec<&str> {
        let values = form.iter().filter(|(given, _)| given == name);
        values.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("enabled_events[]"), ["charge.succeeded", "charge.failed"]);
    let path = path(&json!(of("url")[0]));
    let body = json!({ "id": "evt_1", "type": "charge.succeeded" }).to_string();
    let deliver = async |secret: &str| {
        let sent_at = now_ms() / 1000;
        let signature = hmac(secret, &format!("{sent_at}.{body}"));
        let signature = format!("t={sent_at},v1={signature},v0=00");
        let headers = [("stripe-signature", signature.as_str())];
        deliver_to(&world.api, &path, &headers, body.clone()).await.status
    };
    // Its secret is known once its answer is noted; Stripe delivers again what was refused before.
    let taken = until(async || (deliver("whsec_1").await == 200).then_some(()));
    assert!(taken.await.is_some(), "nothing is taken");
    assert_eq!(deliver("whsec_2").await, 401);
    assert_eq!(deliver("whsec_1").await, 200);
    let expected = json!({ "id": "evt_1", "type": "charge.succeeded" });
    assert_eq!(given(world, &workflow, 1).await, [expected]);
    undeploy(world, &workflow).await;
    let over = called(&service, 2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::DELETE, "/v1/webhook_endpoints/we_1")
    );
}

async fn telegram_proves_itself_by_a_header(world: &World) {
    let service = stand_in(json!({ "ok": true, "result": true })).await;
    let app = bring_local(world, TELEGRAM, "https://api.telegram.org", &service).await;
    let connection = ("bot", json!({ "token": "123:AbC" }));
    let workflow = live(world, (&app, "update"), connection, json!({})).await;
    let call = called(&service, 1).await;
    assert_eq!(
        (&call.method, call.uri.path()),
        (&Method::POST, "/bot123:AbC/setWebhook")
    );
    let told = call.json();
    assert_eq!(told["allowed_updates"], json!(["message"]));
    let (path, secret) = (path(&told["url"]), text(&told["secret_token"]));
    let update = json!({ "update_id": 5, "message": { "text": "Hello" } });
    let deliver = async |secret: &str| {
        let headers = [("x-telegram-bot-api-secret-token", secret)];
        deliver_to(&world.api, &path, &headers, update.to_string())
            .await
            .status
    };
    assert_eq!(deliver("another").await, 401);
    assert_eq!(deliver(&secret).await, 200);
    assert_eq!(given(world, &workflow, 1).await, std::slice::from_ref(&update));
    undeploy(world, &workflow).await;
    let over = called(&service, 2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::POST, "/bot123:AbC/deleteWebhook")
    );
}

async fn slack_asks_whether_the_url_is_meant(world: &World) {
    let service = stand_in(json!({ "ok": true })).await;
    let app = bring_local(world, SLACK, "https://slack.com", &service).await;
    let data = json!({ "token": "xoxb-1", "signingSecret": "sign" });
    let workflow = live(world, (&app, "event"), ("bot_token", data), json!({})).await;
    let path = format!("/hooks/{}", world.api.mint(&workflow, 1).await);
    let challenge = json!({ "type": "url_verification", "challenge": "c-1" });
    let answer = deliver_to(&world.api, &path, &[], challenge.to_string()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "c-1"));
    let body = json!({ "type": "event_callback", "team_id": "T1", "event": { "type": "message" }, "event_id": "E1" });
    let deliver = async |secret: &str, age_s: i64| {
        let sent_at = (now_ms() / 1000 - age_s).to_string();
        let signature = format!("v0={}", hmac(secret, &format!("v0:{sent_at}:{body}")));
        let headers = [
            ("x-slack-signature", signature.as_str()),
            ("x-slack-request-timestamp", sent_at.as_str()),
        ];
        deliver_to(&world.api, &path, &headers, body.to_string())
            .await
            .status
    };
    assert_eq!(deliver("other", 0).await, 401);
    assert_eq!(deliver("sign", 3_600).await, 401);
    assert_eq!(deliver("sign", 0).await, 200);
    let expected = json!({ "event": { "type": "message" }, "team": "T1", "id": "E1" });
    assert_eq!(given(world, &workflow, 1).await, [expected]);
    undeploy(world, &workflow).await;
    assert_eq!(deliver("sign", 0).await, 404);
    assert!(service.asked().is_empty(), "a person enters the URL");
}
