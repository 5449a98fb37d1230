//! Credentials tested against a service.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, text};

use super::{create, listed};
use crate::world::World;

on_both_databases!(
    the_service_decides,
    a_service_that_says_nothing_changes_nothing,
    without_a_service_completeness_decides,
    private_addresses_are_out_of_reach,
    dynamic_options_want_an_app_that_can_be_asked,
);

fn answer(status: u16) -> Response<Bytes> {
    Response::builder().status(status).body(Bytes::new()).unwrap()
}

/// A service that knows one token.
async fn service() -> Target {
    Target::start(
        |asked: &Asked| match (asked.uri.path(), asked.header("authorization")) {
            ("/broken", _) => answer(500),
            ("/moved", "Bearer right") => {
                let moved = Response::builder()
                    .status(302)
                    .header("location", "http://elsewhere.test/");
                moved.body(Bytes::new()).unwrap()
            }
            (_, "Bearer right") => answer(204),
            ("/forbidden", _) => answer(403),
            _ => answer(401),
        },
    )
    .await
}

async fn credential(world: &World, token: &str, url: String) -> String {
    text(&create(world, "bearer", json!({ "token": token, "verifyUrl": url })).await["credentialId"])
}

async fn verify(world: &World, id: &str) -> Value {
    world
        .api
        .post(format!("/credentials/{id}/verify"), json!({}))
        .await
        .data(200)
}

async fn the_service_decides(world: &World) {
    let service = service().await;
    for path in ["/me", "/moved"] {
        let right = credential(world, "right", service.url(path)).await;
        assert_eq!(
            verify(world, &right).await,
            json!({ "status": "valid" }),
            "{path}"
        );
        assert_eq!(listed(world, &right).await["status"], "active");
    }
    for (path, status) in [("/me", "401"), ("/forbidden", "403")] {
        let wrong = credential(world, "wrong", service.url(path)).await;
        let verdict = verify(world, &wrong).await;
        assert_eq!(verdict["status"], "invalid");
        assert!(text(&verdict["error"]).contains(status), "{verdict}");
        assert_eq!(listed(world, &wrong).await["status"], "invalid");
        let done = world
            .api
            .get(format!("/activity?targetId={wrong}"))
            .await
            .data(200);
        assert_eq!(done["events"][0]["action"], "credential.verified");
        assert_eq!(done["events"][0]["metadata"]["fields"], json!(["status"]));
    }
    assert!(service.asked().iter().all(|asked| asked.method == "GET"));
}

async fn a_service_that_says_nothing_changes_nothing(world: &World) {
    let service = service().await;
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    for (url, says) in [
        (service.url("/broken"), "500"),
        (nobody, "cannot be reached"),
        ("http://no-such-host.invalid/".to_owned(), "cannot be reached"),
    ] {
        let id = credential(world, "right", url).await;
        let verdict = verify(world, &id).await;
        assert_eq!(verdict["status"], "invalid");
        assert!(text(&verdict["error"]).contains(says), "{verdict}");
        assert_eq!(listed(world, &id).await["status"], "active");
    }
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

async fn without_a_service_completeness_decides(world: &World) {
    for (connection, data) in [("none", json!({})), ("bearer", json!({ "token": "t" }))] {
        let id = text(&create(world, connection, data).await["credentialId"]);
        assert_eq!(verify(world, &id).await, json!({ "status": "valid" }));
    }
}

async fn private_addresses_are_out_of_reach(world: &World) {
    for url in [
        "http://127.0.0.2/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
        "http://0x7f.2/",
    ] {
        let id = credential(world, "right", url.to_owned()).await;
        let verdict = verify(world, &id).await;
        assert_eq!(verdict["status"], "invalid");
        assert!(
            text(&verdict["error"]).contains("private or reserved"),
            "{url}: {verdict}"
        );
    }
}

async fn dynamic_options_want_an_app_that_can_be_asked(world: &World) {
    let path = "/credentials/dynamic-options";
    for (body, place) in [
        (json!({ "rpcId": "x" }), "appId"),
        (json!({ "appId": "http" }), "rpcId"),
        (json!({ "appId": "nothing", "rpcId": "x" }), "appId"),
        (json!({ "appId": "http", "rpcId": "x" }), "rpcId"),
        (json!({ "appId": "http", "rpcId": "x", "params": [] }), "params"),
    ] {
        world.api.post(path, body).await.invalid(place);
    }
}
