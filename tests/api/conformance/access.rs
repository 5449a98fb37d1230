//! Who may call what: every endpoint is walked with every key that must not pass.

use bytes::Bytes;
use contract::json::Words as _;
use contract::v1::{MemberRole, RevokeApiKeyRequest, Scope, SetPlanRequest, UpdateOrganizationRequest};
use http::Method;
use serde_json::Value;
use test_support::{Answer, Api, text, until};
use wire::api_key::ApiKeyText;

use super::endpoint::{Endpoint, endpoints};
use crate::world::{OTHER_REGION, World};

on_both_databases!(
    without_a_valid_key_no_endpoint_answers,
    a_key_of_another_region_is_sent_there,
    without_its_scope_no_endpoint_answers,
    what_admins_do_members_do_not,
    keys_end,
    viewers_never_write,
    plans_open_the_door,
    the_scheme_is_bearer,
    each_answer_has_a_request_id,
);

/// The least of a request: whoever may not call does not get to what is wrong with it.
async fn plain(api: &Api, endpoint: &Endpoint) -> Answer {
    let method: Method = endpoint.route.verb.parse().unwrap();
    let (headers, body) = match endpoint.has_body {
        true => (&[("content-type", "application/json")][..], Bytes::from("{}")),
        false => (&[][..], Bytes::new()),
    };
    api.send(method, &endpoint.path_with("x"), headers, body).await
}

/// Every endpoint must refuse a caller like this.
async fn refused(api: &Api, status: u16, code: &str) {
    for endpoint in endpoints() {
        let error = plain(api, &endpoint).await.error(status, code);
        let base_url = if status == 421 {
            OTHER_REGION.1.into()
        } else {
            Value::Null
        };
        assert_eq!(error["base_url"], base_url, "{}", endpoint.name);
    }
}

fn key_of(region: &str) -> String {
    ApiKeyText::generate(region).unwrap().text().to_owned()
}

async fn without_a_valid_key_no_endpoint_answers(world: &World) {
    let malformed = format!("{}x", world.api.key());
    let (unknown, elsewhere) = (key_of("local"), key_of("mars1"));
    for key in [
        None,
        Some(malformed.as_str()),
        Some(&unknown),
        Some(&elsewhere),
        Some("x"),
        Some(""),
    ] {
        refused(&world.api.with_key(key), 401, "UNAUTHENTICATED").await;
    }
}

async fn a_key_of_another_region_is_sent_there(world: &World) {
    let api = world.api.with_key(Some(&key_of(OTHER_REGION.0)));
    refused(&api, 421, "WRONG_REGION").await;
}

async fn without_its_scope_no_endpoint_answers(world: &World) {
    let all: Vec<Scope> = Scope::WORDS
        .iter()
        .map(|(word, _)| Scope::try_from(Scope::from_word(word).unwrap()).unwrap())
        .collect();
    let endpoints = endpoints();
    for scope in &all {
        let others: Vec<Scope> = all.iter().copied().filter(|other| other != scope).collect();
        let key = world
            .admin
            .key(&world.organization, &world.owner, &others, None)
            .await;
        let api = world.api.with_key(Some(&key.api_key));
        let guarded: Vec<_> = endpoints
            .iter()
            .filter(|endpoint| endpoint.scope() == *scope)
            .collect();
        assert!(!guarded.is_empty(), "{scope:?} guards nothing");
        for endpoint in guarded {
            plain(&api, endpoint).await.error(403, "MISSING_SCOPE");
        }
    }
}

async fn what_admins_do_members_do_not(world: &World) {
    let (_, member) = world.admin.user(&world.organization, MemberRole::Member).await;
    let (_, admin) = world.admin.user(&world.organization, MemberRole::Admin).await;
    let mut guarded = endpoints();
    guarded.retain(|endpoint| endpoint.rpc.admin_only);
    assert!(guarded.len() >= 5, "{}", guarded.len());
    for endpoint in guarded {
        plain(&world.api.with_key(Some(&member.api_key)), &endpoint)
            .await
            .error(403, "ADMIN_REQUIRED");
        let allowed = plain(&world.api.with_key(Some(&admin.api_key)), &endpoint).await;
        let status = allowed.status;
        assert!(
            ![401, 403].contains(&status),
            "{}: {}",
            endpoint.name,
            allowed.text()
        );
    }
}

async fn keys_end(world: &World) {
    let key = async |expires_in_s| {
        let admin = &world.admin;
        admin
            .key(&world.organization, &world.owner, &[], expires_in_s)
            .await
    };
    let (revoked, short) = (key(None).await, key(Some(1)).await);
    let api = world.api.with_key(Some(&revoked.api_key));
    let _ = api.get("/workflows").await.page();
    let request = RevokeApiKeyRequest { id: revoked.id };
    world.admin.client.clone().revoke_api_key(request).await.unwrap();
    refused(&api, 401, "UNAUTHENTICATED").await;

    let api = world.api.with_key(Some(&short.api_key));
    let expired = until(async || (api.get("/workflows").await.status != 200).then_some(()));
    expired.await.unwrap();
    refused(&api, 401, "UNAUTHENTICATED").await;
}

async fn viewers_never_write(world: &World) {
    let (user, key) = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let api = world.api.with_key(Some(&key.api_key));
    let _ = api.get("/workflows").await.page();
    for endpoint in endpoints() {
        if endpoint.scope_word().ends_with(":write") {
            plain(&api, &endpoint).await.error(403, "MISSING_SCOPE");
        }
    }
    let request = contract::v1::CreateApiKeyRequest {
        organization_id: world.organization.clone(),
        user_id: user,
        scopes: vec![Scope::WorkflowWrite.into()],
        expires_in_s: None,
    };
    let refused = world
        .admin
        .client
        .clone()
        .create_api_key(request)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

async fn plans_open_the_door(world: &World) {
    let plan = format!("plan-{}", world.organization.to_lowercase());
    let set = |api_access: bool, active: bool| SetPlanRequest {
        id: plan.clone(),
        api_access: Some(api_access),
        active: Some(active),
        ..Default::default()
    };
    world.admin.plan(set(false, true)).await;
    let change = UpdateOrganizationRequest {
        organization_id: world.organization.clone(),
        plan_id: Some(plan.clone()),
        ..Default::default()
    };
    world.admin.change(change).await;
    refused(&world.api, 403, "API_ACCESS_DENIED").await;
    world.admin.plan(set(true, false)).await;
    refused(&world.api, 403, "PLAN_LIMIT_EXCEEDED").await;
    world.admin.plan(set(true, true)).await;
    let _ = world.api.get("/workflows").await.page();
}

async fn the_scheme_is_bearer(world: &World) {
    let nobody = world.api.with_key(None);
    let key = world.api.key().to_owned();
    let get = async |value: String| {
        let headers = [("authorization", value.as_str())];
        nobody
            .send(Method::GET, "/api/v1/workflows", &headers, Bytes::new())
            .await
    };
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let _ = get(format!("{scheme} {key}")).await.page();
    }
    for wrong in [
        format!("Basic {key}"),
        key.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Token {key}"),
    ] {
        get(wrong).await.error(401, "UNAUTHENTICATED");
    }
    let operator = format!("Bearer {}", world.server.operator_token());
    get(operator).await.error(401, "UNAUTHENTICATED");
}

async fn each_answer_has_a_request_id(world: &World) {
    let get = async |path: &str, id: &str| {
        let headers = [("x-request-id", id)];
        world.api.send(Method::GET, path, &headers, Bytes::new()).await
    };
    let longest = "~".repeat(128);
    for id in ["a", "order-7/retry#2", longest.as_str()] {
        for path in [
            "/api/v1/workflows",
            "/api/v1/nothing",
            "/api/v1/workflows/wf_unknown",
            "/hooks/wh_unknown",
        ] {
            assert_eq!(get(path, id).await.header("x-request-id"), id);
        }
    }
    let longer = "x".repeat(129);
    let mut made = Vec::new();
    for id in ["", "two words", "größe", longer.as_str()] {
        let answer = get("/api/v1/workflows/wf_unknown", id).await;
        let error = answer.error(404, "NOT_FOUND");
        let given = text(&error["request_id"]);
        assert!(given != id && !given.is_empty() && !made.contains(&given));
        made.push(given);
    }
}
