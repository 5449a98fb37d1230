//! Calls that have to prove where they come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use http::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use test_support::{Answer, graphs, text};

use crate::world::World;

on_both_databases!(
    a_secret_header_opens_the_door,
    a_signature_is_of_the_body_as_it_came,
    standard_webhooks_are_checked_and_told_apart,
    a_secret_variable_can_be_changed,
    an_empty_secret_is_not_deployed,
);

const BODY: &str = "{ \"number\":  1.0 }";

/// A live workflow whose webhook is verified like this, and its webhook.
async fn live(world: &World, verify: Value) -> (String, String) {
    let nodes = [
        ("webhook_trigger", json!({ "verify": verify })),
        ("set", json!({ "fields": { "got": "{{1.body.number}}" } })),
    ];
    let workflow = world.api.workflow_with("Verified", graphs::chain(&nodes)).await;
    world.api.go_live(&workflow).await;
    let webhook = world.api.mint(&workflow, 1).await;
    (workflow, webhook)
}

async fn call(world: &World, webhook: &str, headers: &[(&str, &str)], body: &'static str) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    let path = format!("/hooks/{webhook}");
    let stranger = world.api.with_key(None);
    stranger
        .send(Method::POST, &path, &all, Bytes::from_static(body.as_bytes()))
        .await
}

fn hmac(key: &[u8], parts: &[&str]) -> Vec<u8> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| hmac.update(part.as_bytes()));
    hmac.finalize().into_bytes().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn runs(world: &World, workflow: &str) -> usize {
    world
        .api
        .all_pages(&format!("/runs?workflowId={workflow}"))
        .await
        .len()
}

async fn a_secret_header_opens_the_door(world: &World) {
    let verify = json!({ "type": "header", "header": "X-Shop-Token", "secret": "open sesame" });
    let (workflow, webhook) = live(world, verify).await;
    for headers in [&[][..], &[("x-shop-token", "open")], &[("x-shop-token", "")]] {
        let refused = call(world, &webhook, headers, BODY).await;
        refused.error(401, "UNAUTHENTICATED");
    }
    // Whoever proves nothing learns nothing about bodies either.
    call(world, &webhook, &[], "{")
        .await
        .error(401, "UNAUTHENTICATED");
    assert_eq!(runs(world, &workflow).await, 0);
    let _ = call(world, &webhook, &[("x-shop-token", "open sesame")], BODY)
        .await
        .data(202);
    assert_eq!(runs(world, &workflow).await, 1);
}

async fn a_signature_is_of_the_body_as_it_came(world: &World) {
    let verify = json!({ "type": "hmac_sha256", "secret": "top secret" });
    let (workflow, webhook) = live(world, verify).await;
    let signature = hexadecimal(&hmac(b"top secret", &[BODY]));
    let normal = hexadecimal(&hmac(b"top secret", &["{\"number\":1.0}"]));
    for wrong in [normal.as_str(), "", "sha256=", &signature[2..]] {
        let refused = call(world, &webhook, &[("x-signature", wrong)], BODY).await;
        refused.error(401, "UNAUTHENTICATED");
    }
    assert_eq!(runs(world, &workflow).await, 0);
    for right in [signature.clone(), format!("sha256={signature}")] {
        let _ = call(world, &webhook, &[("x-signature", &right)], BODY)
            .await
            .data(202);
    }
    let verify = json!({ "type": "hmac_sha256", "header": "X-Hub-Signature-256", "secret": "top secret" });
    let (_, webhook) = live(world, verify).await;
    let headers = [("x-hub-signature-256", signature.as_str())];
    let _ = call(world, &webhook, &headers, BODY).await.data(202);
}

async fn standard_webhooks_are_checked_and_told_apart(world: &World) {
    let key = b"switchyard test secret of 32 bytes!";
    let secret = format!("whsec_{}", STANDARD.encode(key));
    let verify = json!({ "type": "standard_webhooks", "secret": secret });
    let (workflow, webhook) = live(world, verify).await;
    let deliver = async |id: &str, age_s: i64, body: &'static str| {
        let sent_at = (core_service::clock::now_ms() / 1000 - age_s).to_string();
        let signature = STANDARD.encode(hmac(key, &[id, ".", &sent_at, ".", BODY]));
        let signatures = format!("v1,bm90IGl0 v1,{signature}");
        let headers = [
            ("webhook-id", id),
            ("webhook-timestamp", &*sent_at),
            ("webhook-signature", &*signatures),
        ];
        call(world, &webhook, &headers, body).await
    };
    let first = deliver("msg_1", 0, BODY).await.data(202);
    assert_eq!(
        deliver("msg_1", 5, BODY).await.data(202),
        first,
        "the same delivery again"
    );
    assert_ne!(deliver("msg_2", 200, BODY).await.data(202), first);
    deliver("msg_3", 400, BODY).await.error(401, "UNAUTHENTICATED");
    deliver("msg_3", -400, BODY).await.error(401, "UNAUTHENTICATED");
    deliver("msg_3", 0, "{\"number\": 2}")
        .await
        .error(401, "UNAUTHENTICATED");
    call(world, &webhook, &[("webhook-id", "msg_3")], BODY)
        .await
        .error(401, "UNAUTHENTICATED");
    assert_eq!(runs(world, &workflow).await, 2);
}

async fn a_secret_variable_can_be_changed(world: &World) {
    let verify = json!({ "type": "header", "header": "x-token", "secret": "{{$vars.HOOK_SECRET}}" });
    let (_, webhook) = live(world, verify).await;
    let status = async |token: &str| call(world, &webhook, &[("x-token", token)], BODY).await.status;
    assert_eq!(status("").await, 401, "a variable that is not there is no secret");
    let set = async |value: &str| {
        let body = json!({ "value": value, "isSecret": true });
        let answer = world.api.put("/variables/HOOK_SECRET", body).await;
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        text(&answer.json()["data"]["id"])
    };
    set("first secret").await;
    assert_eq!(
        (status("first secret").await, status("other secret").await),
        (202, 401)
    );
    let variable = set("other secret").await;
    assert_eq!(
        (status("first secret").await, status("other secret").await),
        (401, 202)
    );
    let _ = world.api.delete(format!("/variables/{variable}")).await.data(200);
    assert_eq!(status("other secret").await, 401);
}

async fn an_empty_secret_is_not_deployed(world: &World) {
    for verify in [
        json!({ "type": "header", "header": "x-token", "secret": "" }),
        json!({ "type": "header", "header": "no header", "secret": "x" }),
        json!({ "type": "standard_webhooks" }),
        json!({ "type": "sesame" }),
    ] {
        let nodes = [("webhook_trigger", json!({ "verify": verify }))];
        let workflow = world.api.workflow_with("x", graphs::chain(&nodes)).await;
        let refused = world
            .api
            .post(format!("/workflows/{workflow}/deploy"), json!({}))
            .await;
        refused.error(400, "TOPOLOGY_INVALID");
    }
}
