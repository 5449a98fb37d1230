//! Who may call what: every route of the contract is walked, with every key that must not pass.

use bytes::Bytes;
use contract::access::{Access, Method as Rpc};
use contract::json::Words as _;
use contract::rest::Route;
use contract::v1::{MemberRole, RevokeApiKeyRequest, Scope, SetPlanRequest, UpdateOrganizationRequest};
use core_service::auth::ApiKeyText;
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, Api, graphs, text, until};

use crate::world::{OTHER_REGION, World};

on_both_databases!(
    without_a_valid_key_no_route_answers,
    a_key_of_another_region_is_sent_there,
    without_its_scope_no_route_answers,
    what_admins_do_members_do_not,
    another_organizations_things_do_not_exist,
    checks_come_in_their_order,
    keys_end,
    viewers_never_write,
    plans_open_the_door,
    the_scheme_is_bearer,
    each_answer_has_a_request_id,
);

/// Every REST route.
fn routes() -> Vec<&'static Route> {
    let mut routes: Vec<&'static Route> = Vec::new();
    macro_rules! collect {
        ($shape:ident $routes:ident, $route:path, $request:path, $response:path) => {
            $routes.push(&$route)
        };
    }
    contract::for_each_route!(collect, routes);
    routes
}

fn rpc(route: &Route) -> &'static Rpc {
    Rpc::find(route.rpc).unwrap()
}

/// The route's path with this in place of each parameter.
fn filled(route: &Route, value: &str) -> String {
    let segments = route
        .path
        .split('/')
        .map(|segment| match segment.starts_with('{') {
            true => value,
            false => segment,
        });
    segments.collect::<Vec<_>>().join("/")
}

async fn call(api: &Api, route: &Route, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let method: Method = route.verb.parse().unwrap();
    let (mut all, mut sent) = (headers.to_vec(), Bytes::new());
    if method != Method::GET && method != Method::DELETE {
        all.push(("content-type", "application/json"));
        sent = body.to_string().into();
    }
    api.send(method, path, &all, sent).await
}

async fn plain(api: &Api, route: &Route) -> Answer {
    call(api, route, &filled(route, "x"), &[], &json!({})).await
}

fn key_of(region: &str) -> String {
    ApiKeyText::generate(region).unwrap().text().expose().to_owned()
}

async fn without_a_valid_key_no_route_answers(world: &World) {
    let malformed = format!("{}x", world.api.key());
    let unknown = key_of("local");
    let elsewhere = key_of("mars1");
    assert!(routes().len() > 60, "{}", routes().len());
    for route in routes() {
        assert!(
            matches!(rpc(route).access, Access::Key(_)),
            "{} is open",
            route.path
        );
        for key in [
            None,
            Some(malformed.as_str()),
            Some(&unknown),
            Some(&elsewhere),
            Some("x"),
            Some(""),
        ] {
            plain(&world.api.with_key(key), route)
                .await
                .error(401, "UNAUTHENTICATED");
        }
    }
}

async fn a_key_of_another_region_is_sent_there(world: &World) {
    let api = world.api.with_key(Some(&key_of(OTHER_REGION.0)));
    for route in routes() {
        let error = plain(&api, route).await.error(421, "WRONG_REGION");
        assert_eq!(error["base_url"], OTHER_REGION.1);
    }
}

async fn without_its_scope_no_route_answers(world: &World) {
    let all = Scope::WORDS
        .iter()
        .map(|(word, _)| Scope::try_from(Scope::from_word(word).unwrap()).unwrap());
    let all: Vec<Scope> = all.collect();
    for scope in &all {
        let others: Vec<Scope> = all.iter().copied().filter(|other| other != scope).collect();
        let key = world
            .admin
            .key(&world.organization, &world.owner, &others, None)
            .await;
        let api = world.api.with_key(Some(&key.api_key));
        let guarded: Vec<_> = routes()
            .into_iter()
            .filter(|route| rpc(route).access == Access::Key(*scope))
            .collect();
        assert!(!guarded.is_empty(), "{scope:?} guards nothing");
        for route in guarded {
            plain(&api, route).await.error(403, "MISSING_SCOPE");
        }
    }
}

async fn what_admins_do_members_do_not(world: &World) {
    let (_, member) = world.admin.user(&world.organization, MemberRole::Member).await;
    let (_, admin) = world.admin.user(&world.organization, MemberRole::Admin).await;
    let guarded: Vec<_> = routes()
        .into_iter()
        .filter(|route| rpc(route).admin_only)
        .collect();
    assert!(guarded.len() >= 5, "{}", guarded.len());
    for route in guarded {
        plain(&world.api.with_key(Some(&member.api_key)), route)
            .await
            .error(403, "ADMIN_REQUIRED");
        let allowed = plain(&world.api.with_key(Some(&admin.api_key)), route).await;
        assert!(
            ![401, 403].contains(&allowed.status),
            "{}: {}",
            route.path,
            allowed.text()
        );
    }
}

/// A body with which a route looks for the resource that its path names.
fn body_of(route: &Route) -> Value {
    let ops = json!([{ "op": "remove_node", "nodeId": 1 }]);
    match route.path.rsplit('/').next().unwrap() {
        "ops" => json!({ "ops": ops, "expectedUpdatedAt": 1 }),
        "webhook" => json!({ "nodeId": "1" }),
        "{id}" if route.path.contains("/webhooks/") => json!({ "enabled": true }),
        "{id}" if route.path.contains("/databases/") => {
            json!({ "columns": [{ "name": "a", "type": "text" }] })
        }
        "resolve-expression" => json!({ "expression": "{{1}}" }),
        "test-module" => json!({ "nodeId": 1 }),
        "tags" => json!({ "tagIds": [] }),
        "retry-node" => json!({ "nodeId": 1 }),
        "respond" => json!({ "response": {} }),
        _ => json!({}),
    }
}

/// A fresh resource of a noun; the number makes it unlike the others.
async fn resource(world: &World, noun: &str, number: usize) -> String {
    let made = async |body: Value| text(&world.api.post(format!("/{noun}"), body).await.data(201)["id"]);
    match noun {
        "workflows" => world.api.workflow_with("Mine", graphs::order_flow()).await,
        "webhooks" => {
            let workflow = world.api.workflow_with("Mine", graphs::order_flow()).await;
            world.api.mint(&workflow, 1).await
        }
        "runs" => {
            let workflow = world.api.workflow_with("Mine", graphs::long_wait()).await;
            world.api.start(&workflow, json!({})).await
        }
        "variables" => {
            let set = world
                .api
                .put("/variables/MINE", json!({ "value": "v" }))
                .await
                .json();
            text(&set["data"]["id"])
        }
        "folders" => made(json!({ "name": "Mine" })).await,
        "tags" => made(json!({ "name": "Mine", "color": "red" })).await,
        "databases" => made(json!({ "name": "Mine", "columns": [{ "name": "a", "type": "text" }] })).await,
        "structures" => made(json!({ "name": "Mine" })).await,
        "functions" => made(json!({ "name": format!("mine{number}"), "code": "return 1" })).await,
        "invitations" => made(json!({ "email": format!("new{number}@users.test"), "role": "member" })).await,
        other => panic!("how is one of the {other} made?"),
    }
}

async fn another_organizations_things_do_not_exist(world: &World) {
    let stranger = world.stranger().await;
    let same_id = [("x-request-id", "same")];
    let about_one = routes().into_iter().filter(|route| route.path.contains('{'));
    for (number, route) in about_one.enumerate() {
        let noun = route.path.split('/').nth(3).unwrap();
        // The catalog is everybody's; a variable is set by its name, which each organization has for itself.
        if noun == "catalog" || (noun, route.verb) == ("variables", "PUT") {
            continue;
        }
        let body = body_of(route);
        let never = call(&stranger, route, &filled(route, "1"), &same_id, &body).await;
        if never.status == 501 {
            continue;
        }
        let mine = resource(world, noun, number).await;
        let path = filled(route, "1").replacen("/1", &format!("/{mine}"), 1);
        let theirs = call(&stranger, route, &path, &same_id, &body).await;
        theirs.error(404, "NOT_FOUND");
        assert_eq!(
            (theirs.status, theirs.body),
            (never.status, never.body),
            "{} {}",
            route.verb,
            route.path
        );
        // The events of a run that waits have no end.
        if route.path.ends_with("/events") {
            continue;
        }
        let owners = call(&world.api, route, &path, &same_id, &body).await;
        let other_parameters = route.path.matches('{').count() > 1;
        assert!(
            owners.status != 404 || other_parameters,
            "{} {}: {}",
            route.verb,
            route.path,
            owners.text()
        );
    }
    let workflow = world.api.workflow_with("Mine", graphs::small_flow()).await;
    let run = world.api.start(&workflow, json!({})).await;
    let never = stranger
        .get("/runs?workflowId=wf_unknown")
        .await
        .error(404, "NOT_FOUND");
    let theirs = stranger
        .get(format!("/runs?workflowId={workflow}"))
        .await
        .error(404, "NOT_FOUND");
    assert_eq!(never["message"], theirs["message"]);
    let own = stranger.workflow_with("Theirs", graphs::small_flow()).await;
    let seed = json!({ "nodeId": "2", "seedFromRun": { "runId": run } });
    stranger
        .post(format!("/workflows/{own}/runs"), seed)
        .await
        .invalid("seedFromRun.runId");
}

async fn checks_come_in_their_order(world: &World) {
    let key = world
        .admin
        .key(&world.organization, &world.owner, &[Scope::WorkflowRead], None)
        .await;
    let reader = world.api.with_key(Some(&key.api_key));
    let nobody = world.api.with_key(None);
    // The path itself, before the key.
    nobody.get("/nothing").await.error(404, "NOT_FOUND");
    nobody.get("/workflows/").await.error(404, "NOT_FOUND");
    nobody
        .send(Method::GET, "/", &[], Bytes::new())
        .await
        .error(404, "NOT_FOUND");
    let wrong = nobody.put("/workflows", json!({})).await;
    wrong.error(405, "METHOD_NOT_ALLOWED");
    let mut allowed: Vec<&str> = wrong.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert!(
        allowed.contains(&"GET") && allowed.contains(&"POST") && !allowed.contains(&"PUT"),
        "{allowed:?}"
    );
    // The key and its scope, before what is sent.
    let json = [("content-type", "application/json")];
    let xml = [("content-type", "text/xml")];
    let large = Bytes::from(vec![b' '; (1 << 20) + 1]);
    for (headers, body) in [
        (&json, Bytes::from("{")),
        (&xml, Bytes::from("<a/>")),
        (&json, large.clone()),
    ] {
        let send = |api: &Api| {
            let (api, body) = (api.clone(), body.clone());
            async move { api.send(Method::POST, "/api/v1/workflows", headers, body).await }
        };
        send(&nobody).await.error(401, "UNAUTHENTICATED");
        send(&reader).await.error(403, "MISSING_SCOPE");
    }
    reader
        .delete("/workflows/wf_unknown")
        .await
        .error(403, "MISSING_SCOPE");
    // What is sent: its size, its type, its content; then the resource.
    let send = async |headers: &[(&str, &str)], body: Bytes| {
        world
            .api
            .send(Method::POST, "/api/v1/workflows/wf_unknown/ops", headers, body)
            .await
    };
    send(&xml, large).await.error(413, "PAYLOAD_TOO_LARGE");
    send(&xml, Bytes::from("{"))
        .await
        .error(415, "UNSUPPORTED_MEDIA_TYPE");
    send(&json, Bytes::from("{")).await.error(400, "VALIDATION_ERROR");
    send(&[], Bytes::from("{}")).await.invalid("ops");
}

async fn keys_end(world: &World) {
    let revoked = world
        .admin
        .key(&world.organization, &world.owner, &[], None)
        .await;
    let api = world.api.with_key(Some(&revoked.api_key));
    let _ = api.get("/workflows").await.page();
    let request = RevokeApiKeyRequest { id: revoked.id };
    world.admin.client.clone().revoke_api_key(request).await.unwrap();
    api.get("/workflows").await.error(401, "UNAUTHENTICATED");

    let short = world
        .admin
        .key(&world.organization, &world.owner, &[], Some(1))
        .await;
    let api = world.api.with_key(Some(&short.api_key));
    let ended = until(async || {
        let answer = api.get("/workflows").await;
        match answer.status {
            200 => None,
            _ => Some(answer),
        }
    });
    ended.await.unwrap().error(401, "UNAUTHENTICATED");
}

async fn viewers_never_write(world: &World) {
    let (user, key) = world.admin.user(&world.organization, MemberRole::Viewer).await;
    let api = world.api.with_key(Some(&key.api_key));
    let _ = api.get("/workflows").await.page();
    for route in routes() {
        let Access::Key(scope) = rpc(route).access else {
            continue;
        };
        let word = Scope::to_word(i32::from(scope)).unwrap();
        if word.ends_with(":write") {
            plain(&api, route).await.error(403, "MISSING_SCOPE");
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
    for route in routes() {
        plain(&world.api, route).await.error(403, "API_ACCESS_DENIED");
    }
    world.admin.plan(set(true, false)).await;
    world
        .api
        .get("/workflows")
        .await
        .error(403, "PLAN_LIMIT_EXCEEDED");
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
