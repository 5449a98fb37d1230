//! Which check comes first when a request fails several: the order of section 1 of the contract, fault by fault.

use bytes::Bytes;
use contract::v1::{BillingStatus, Scope, SetPlanRequest, UpdateOrganizationRequest};
use http::Method;
use serde_json::json;
use test_support::{Api, at_most};
use wire::api_key::ApiKeyText;

use super::home::Home;
use crate::world::{OTHER_REGION, World};

on_both_databases!(checks_come_in_their_order, what_is_not_a_path_says_so_to_anyone);

/// A request with faults, which are taken away one by one.
struct Faulty {
    verb: Method,
    path: String,
    api: Api,
    media_type: &'static str,
    body: Bytes,
}

impl Faulty {
    async fn is_told(&self, status: u16, code: &str) {
        let headers = [("idempotency-key", "used"), ("content-type", self.media_type)];
        let (verb, body) = (self.verb.clone(), self.body.clone());
        let answer = self.api.send(verb, &self.path, &headers, body).await;
        answer.error(status, code);
    }
}

async fn checks_come_in_their_order(world: &World) {
    let home = Home::found(world).await;
    let key = async |scopes: &[Scope]| {
        let key = world.admin.key(&home.organization, &home.owner, scopes, None);
        world.api.with_key(Some(&key.await.api_key))
    };
    let key_of = |region| {
        let key = ApiKeyText::generate(region).unwrap();
        world.api.with_key(Some(key.text()))
    };
    let (workflow, reader) = (home.small_workflow().await, [Scope::WorkflowRead]);
    let path = format!("/workflows/{workflow}/runs");
    let first = home
        .api
        .post_with(&path, &[("idempotency-key", "used")], json!({}))
        .await;
    let _ = first.data(201);
    overdue_and_limited(world, &home.organization).await;
    let exhausted = key(&reader).await;
    exhausted.post(&path, json!({})).await.error(403, "MISSING_SCOPE");

    let mut request = Faulty {
        verb: Method::PUT,
        path: "/api/v1/nothing".to_owned(),
        api: world.api.with_key(None),
        media_type: "text/xml",
        body: vec![b'{'; (1 << 20) + 1].into(),
    };
    request.is_told(404, "NOT_FOUND").await;
    request.path = "/api/v1/workflows/wf_unknown/runs".to_owned();
    request.is_told(405, "METHOD_NOT_ALLOWED").await;
    request.verb = Method::POST;
    request.is_told(401, "UNAUTHENTICATED").await;
    request.api = world.api.with_key(Some("no key's form"));
    request.is_told(401, "UNAUTHENTICATED").await;
    request.api = key_of(OTHER_REGION.0);
    request.is_told(421, "WRONG_REGION").await;
    request.api = key_of("local");
    request.is_told(401, "UNAUTHENTICATED").await;
    request.api = exhausted;
    request.is_told(429, "RATE_LIMITED").await;
    request.api = key(&reader).await;
    request.is_told(403, "MISSING_SCOPE").await;
    request.api = key(&[]).await;
    request.is_told(413, "PAYLOAD_TOO_LARGE").await;
    request.body = Bytes::from_static(b"{");
    request.api = key(&[]).await;
    request.is_told(415, "UNSUPPORTED_MEDIA_TYPE").await;
    request.media_type = "application/json";
    request.api = key(&[]).await;
    request.is_told(400, "VALIDATION_ERROR").await;
    request.body = Bytes::from_static(br#"{"nodeId": "2"}"#);
    request.api = key(&[]).await;
    request.is_told(404, "NOT_FOUND").await;
    request.path = format!("/api/v1{path}");
    request.api = key(&[]).await;
    request.is_told(409, "idempotency_key_reused").await;
    // The bill last of all.
    let api = key(&[]).await;
    api.post(&path, json!({})).await.error(402, "PAYMENT_REQUIRED");
}

/// From now on the organization has a bill to pay, and each of its keys may write once a minute.
async fn overdue_and_limited(world: &World, organization: &str) {
    let plan = format!("once-{}", organization.to_lowercase());
    let once = SetPlanRequest {
        id: plan.clone(),
        api_access: Some(true),
        active: Some(true),
        write_rpm: Some(at_most(1)),
        ..Default::default()
    };
    world.admin.plan(once).await;
    let change = UpdateOrganizationRequest {
        organization_id: organization.to_owned(),
        plan_id: Some(plan),
        billing_status: BillingStatus::PastDue.into(),
        ..Default::default()
    };
    world.admin.change(change).await;
}

async fn what_is_not_a_path_says_so_to_anyone(world: &World) {
    let nobody = world.api.with_key(None);
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/workflows/",
        "/api/v1//workflows",
        "/hooks",
        "/api/v2/workflows",
    ] {
        let answer = nobody.send(Method::GET, path, &[], Bytes::new()).await;
        answer.error(404, "NOT_FOUND");
    }
    for endpoint in super::endpoint::endpoints() {
        let path = endpoint.path_with("x");
        let answer = nobody.send(Method::TRACE, &path, &[], Bytes::new()).await;
        answer.error(405, "METHOD_NOT_ALLOWED");
        let mut allowed = answer.header("allow").split(',').map(str::trim);
        assert!(
            allowed.any(|verb| verb == endpoint.route.verb),
            "{}",
            endpoint.name
        );
    }
}
