//! Triggers that services call: services are told where, what they deliver starts runs, and they are told when it is over.

mod built_in;
mod cluster;
mod office;
mod upkeep;

use http::Method;
use serde_json::{Value, json};
use test_support::text;

use crate::world::World;
use office::{Office, given, runs};

on_both_databases!(
    a_delivery_starts_a_run,
    a_delivery_has_to_prove_itself,
    a_question_is_answered_and_starts_nothing,
    a_repeated_delivery_is_one_run,
    a_url_that_a_person_enters_stays,
    only_triggers_have_urls,
    the_catalog_offers_them,
);

async fn a_delivery_starts_a_run(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let call = office.called(1).await;
    assert_eq!((&call.method, call.uri.path()), (&Method::POST, "/calls"));
    assert_eq!(call.header("x-api-key"), "k-1");
    assert!(!call.header("idempotency-key").is_empty());
    let told = call.json();
    let prefix = format!("{}/hooks/hook_", world.server.rest_url());
    assert!(text(&told["to"]).starts_with(&prefix), "{told}");
    assert_eq!(
        (text(&told["secret"]).len(), &told["kind"]),
        (64, &json!("stamped"))
    );

    let path = format!("{}?to=Ada", office::path(&told));
    let letter = json!({ "kind": "stamped", "letter": 7 });
    let answer = office::deliver(world, &path, &text(&told["secret"]), &letter).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
    let expected = json!({ "letter": 7, "to": "Ada", "by": "POST" });
    assert_eq!(given(world, &workflow, 1).await, [expected]);
    let started = &runs(world, &workflow).await[0];
    let report = world
        .api
        .get(format!("/runs/{}", text(&started["id"])))
        .await
        .data(200);
    assert_eq!(report["trigger"]["kind"], "webhook", "{report}");
    assert_eq!(report["status"], "succeeded", "{report}");
}

async fn a_delivery_has_to_prove_itself(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let told = office.called(1).await.json();
    let (path, secret) = (office::path(&told), text(&told["secret"]));
    let letter = json!({ "kind": "stamped", "letter": 7 });
    let deliver = async |secret: &str, letter: &Value| office::deliver(world, &path, secret, letter).await;
    deliver("", &letter).await.error(401, "UNAUTHENTICATED");
    deliver("wrong", &letter).await.error(401, "UNAUTHENTICATED");
    let other = json!({ "kind": "plain", "letter": 8 });
    assert_eq!(
        deliver(&secret, &other).await.status,
        200,
        "it is not for this trigger"
    );
    let nobody = format!("/hooks/hook_{}", "0".repeat(26));
    let stranger = office::deliver(world, &nobody, &secret, &letter).await;
    stranger.error(404, "NOT_FOUND");
    let send = async |method: Method, body: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("x-secret", secret.as_str()),
        ];
        let stranger = world.api.with_key(None);
        stranger
            .send(method, &path, &headers, body.to_owned().into())
            .await
    };
    let answer = send(Method::GET, "").await;
    assert_eq!(answer.headers["allow"], "POST");
    answer.error(405, "METHOD_NOT_ALLOWED");
    // Without a body it is not for this trigger either.
    assert_eq!(send(Method::POST, "{").await.status, 200);
    assert_eq!(given(world, &workflow, 0).await, [Value::Null; 0]);
}

async fn a_question_is_answered_and_starts_nothing(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let path = office::path(&office.called(1).await.json());
    let stranger = world.api.with_key(None);
    for method in [Method::GET, Method::POST] {
        let path = format!("{path}?hello=abc");
        let answer = stranger.send(method, &path, &[], Vec::new().into()).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "abc"));
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    }
    assert_eq!(given(world, &workflow, 0).await, [Value::Null; 0]);
}

async fn a_repeated_delivery_is_one_run(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let told = office.called(1).await.json();
    let (path, secret) = (office::path(&told), text(&told["secret"]));
    for letter in [1, 1, 2, 1] {
        let letter = json!({ "kind": "stamped", "letter": letter });
        assert_eq!(office::deliver(world, &path, &secret, &letter).await.status, 200);
    }
    let letters: Vec<Value> = given(world, &workflow, 2).await;
    let letters: Vec<&Value> = letters.iter().map(|given| &given["letter"]).collect();
    assert_eq!(letters, [1, 2]);
}

async fn a_url_that_a_person_enters_stays(world: &World) {
    let office = Office::open(world).await;
    let flow = office::flow(&office.credential, "postcard", json!({}));
    let workflow = world.api.workflow_with("Postcards", flow).await;
    let mint = async || {
        let path = format!("/workflows/{workflow}/webhook");
        world.api.post(path, json!({ "nodeId": "1" })).await
    };
    mint().await.invalid("nodeId");
    world.api.go_live(&workflow).await;
    let minted = mint().await.data(200);
    assert_eq!(minted["alreadyBound"], true);
    let path = format!("/hooks/{}", text(&minted["webhookId"]));
    assert_eq!(text(&minted["url"]), format!("{}{path}", world.server.rest_url()));
    let card = json!({ "from": "Ada" });
    assert_eq!(office::deliver(world, &path, "", &card).await.status, 200);
    assert_eq!(given(world, &workflow, 1).await, [json!({ "from": "Ada" })]);
    let other = json!([{ "op": "update_params", "nodeId": 1, "params": { "from": "Grace" } }]);
    let _ = world.api.edit(&workflow, other).await;
    world.api.go_live(&workflow).await;
    assert_eq!(mint().await.data(200), minted);
    let card = json!({ "from": "Grace" });
    for card in [&json!({ "from": "Ada" }), &card] {
        assert_eq!(office::deliver(world, &path, "", card).await.status, 200);
    }
    assert_eq!(
        given(world, &workflow, 2).await[1],
        card,
        "it goes by the new parameters"
    );
    assert!(office.service.asked().is_empty(), "nobody tells the office");
}

async fn only_triggers_have_urls(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let path = format!("/workflows/{workflow}/webhook");
    let minted = world.api.post(&path, json!({ "nodeId": "1" })).await.data(200);
    let told = office.called(1).await.json();
    assert_eq!(minted["url"], told["to"], "it is the one that the service knows");
    let refused = world.api.post(&path, json!({ "nodeId": "2" })).await;
    refused.invalid("nodeId");
    let tried = world
        .api
        .post(
            format!("/workflows/{workflow}/test-module"),
            json!({ "nodeId": 1 }),
        )
        .await;
    assert!(tried.text().contains("a trigger"), "{}", tried.text());
    tried.invalid("nodeId");
}

async fn the_catalog_offers_them(world: &World) {
    let _office = Office::open(world).await;
    let module = world
        .api
        .get("/catalog/apps/letter_office/modules/new_letter")
        .await;
    let module = module.data(200);
    assert_eq!(module["meta"]["type"], "trigger", "{module}");
    let found = world.api.get("/catalog/apps?query=letter+office").await.data(200);
    let modules = found[0]["modules"].as_array().unwrap();
    assert_eq!(modules.len(), 2, "{found}");
    for (app, module) in [
        ("github", "repository_event"),
        ("slack", "event"),
        ("stripe", "event"),
        ("telegram", "update"),
    ] {
        let path = format!("/catalog/apps/{app}/modules/{module}");
        assert_eq!(world.api.get(path).await.data(200)["meta"]["type"], "trigger");
    }
}
