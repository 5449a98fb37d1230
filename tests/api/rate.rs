//! Rate limits: reads and writes of a key, by its plan; what answers tell of them.

use bytes::Bytes;
use contract::v1::{Scope, SetPlanRequest, UpdateOrganizationRequest};
use http::Method;
use serde_json::json;
use test_support::{Answer, Api, at_most};

use crate::world::World;

on_both_databases!(
    reads_and_writes_have_their_rates,
    whoever_waits_as_told_gets_through,
    every_answer_tells_where_the_caller_stands,
    each_plan_has_its_own_rates,
);

/// Puts the organization on a plan with these requests a minute.
async fn rated(world: &World, name: &str, read_rpm: i64, write_rpm: i64) {
    let plan = format!("{name}-{}", world.organization.to_lowercase());
    let rated = SetPlanRequest {
        id: plan.clone(),
        read_rpm: Some(at_most(read_rpm)),
        write_rpm: Some(at_most(write_rpm)),
        ..Default::default()
    };
    world.admin.plan(rated).await;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        plan_id: Some(plan),
        ..Default::default()
    };
    world.admin.change(change).await;
}

/// The seconds to wait that a refusal tells, in its body and in its header.
fn wait(refused: &Answer) -> u64 {
    let error = refused.error(429, "RATE_LIMITED");
    let wait = error["retry_after_s"].as_u64().unwrap();
    assert!((1..=60).contains(&wait), "{error}");
    assert_eq!(refused.header("retry-after"), wait.to_string());
    assert!(
        refused.header("ratelimit").contains(";r=0;"),
        "{:?}",
        refused.headers
    );
    wait
}

async fn reads_and_writes_have_their_rates(world: &World) {
    let unlimited = world.api.get("/workflows").await;
    assert_eq!((unlimited.status, unlimited.header("ratelimit")), (200, ""));
    rated(world, "rated", 3, 2).await;
    for left in [2, 1, 0] {
        let answer = world.api.get("/workflows").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = format!("\"read\";r={left};t=");
        assert!(
            answer.header("ratelimit").starts_with(&told),
            "{:?}",
            answer.headers
        );
        assert_eq!(answer.header("ratelimit-policy"), "\"read\";q=3;w=60");
    }
    wait(&world.api.get("/workflows").await);
    // Writes are counted apart; what is refused for its body counts too.
    let _ = world
        .api
        .post("/workflows", json!({ "name": "x" }))
        .await
        .data(201);
    world.api.post("/workflows", json!({})).await.invalid("name");
    wait(&world.api.post("/workflows", json!({ "name": "x" })).await);
    // Another key has a share of its own.
    let other = world
        .admin
        .key(&world.organization, &world.owner, &[], None)
        .await;
    let other = world.api.with_key(Some(&other.api_key));
    let _ = other.get("/workflows").await.page();
}

async fn whoever_waits_as_told_gets_through(world: &World) {
    // One a second comes back.
    rated(world, "patient", 60, 60).await;
    let mut refused = None;
    for _ in 0..600 {
        let answer = world.api.get("/teams").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let seconds = wait(&refused.expect("the share is used up"));
    assert!(seconds <= 2, "{seconds}");
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    let answer = world.api.get("/teams").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn every_answer_tells_where_the_caller_stands(world: &World) {
    rated(world, "told", 1_000, 1_000).await;
    let only_read = world
        .admin
        .key(&world.organization, &world.owner, &[Scope::WorkflowRead], None)
        .await;
    let reader = world.api.with_key(Some(&only_read.api_key));
    let send = async |api: &Api, method: Method, path: &str, body: &str| {
        let headers = [("content-type", "application/json")];
        let path = format!("/api/v1{path}");
        let body = Bytes::from(body.to_owned());
        api.send(method, &path, &headers, body).await
    };
    let xml = [("content-type", "text/xml")];
    let large = " ".repeat((1 << 20) + 1);
    let answers = [
        (200, send(&world.api, Method::GET, "/teams", "").await),
        (
            201,
            send(&world.api, Method::POST, "/workflows", "{\"name\":\"x\"}").await,
        ),
        (
            400,
            send(&world.api, Method::POST, "/workflows", "{\"name\":\"\"}").await,
        ),
        (
            400,
            send(&world.api, Method::POST, "/workflows", "{\"nome\":1}").await,
        ),
        (400, send(&world.api, Method::POST, "/workflows", "{").await),
        (400, send(&world.api, Method::GET, "/workflows?limit=x", "").await),
        (403, send(&reader, Method::POST, "/workflows", "{}").await),
        (
            404,
            send(&world.api, Method::GET, "/workflows/wf_unknown", "").await,
        ),
        (413, send(&world.api, Method::POST, "/workflows", &large).await),
        (
            415,
            world
                .api
                .send(Method::POST, "/api/v1/workflows", &xml, "<a/>".into())
                .await,
        ),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{}", answer.text());
        let (limit, policy) = (answer.header("ratelimit"), answer.header("ratelimit-policy"));
        assert!(limit.contains(";r="), "{status}: {:?}", answer.headers);
        assert!(policy.contains(";q=1000;w=60"), "{status}: {policy}");
    }
    // A rate applies to keys: who has none is told of none.
    let nobody = world.api.with_key(None).get("/teams").await;
    nobody.error(401, "UNAUTHENTICATED");
    assert_eq!(nobody.header("ratelimit"), "");
}

async fn each_plan_has_its_own_rates(world: &World) {
    rated(world, "small", 1, 1).await;
    assert_eq!(world.api.get("/teams").await.status, 200);
    wait(&world.api.get("/teams").await);
    rated(world, "large", 100, 1).await;
    let answer = world.api.get("/teams").await;
    assert_eq!(answer.header("ratelimit-policy"), "\"read\";q=100;w=60");
    assert_eq!(answer.status, 200);
    rated(world, "none", 0, 100).await;
    assert_eq!(wait(&world.api.get("/teams").await), 60);
    let written = world.api.post("/workflows", json!({ "name": "x" })).await;
    assert_eq!(written.status, 201);
}
