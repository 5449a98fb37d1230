//! Tokens that run out, are refused, or cannot be had.

use serde_json::{Value, json};
use test_support::{OAuthServer, text, together, until};

use super::{client, consented, create, flow, got, last_activity, requested, service, status};
use crate::world::World;

on_both_databases!(
    a_token_is_fetched_when_it_is_first_needed,
    a_token_that_runs_out_is_renewed_in_time,
    a_refused_token_is_renewed_once_a_call,
    of_many_runs_one_renews,
    what_nothing_renews_has_expired,
    a_consent_that_is_taken_back_expires_the_credential,
    a_test_that_finds_the_consent_taken_back_expires_it,
    a_client_that_is_taken_back_is_invalid,
    an_endpoint_that_is_ill_is_asked_again,
    choices_tests_and_triggers_use_new_tokens,
);

async fn machine(world: &World) -> String {
    let made = create(&world.api, "machine", client()).await;
    assert_eq!(made["status"], "active", "{made}");
    text(&made["credentialId"])
}

/// How many tokens were asked for by any grant but the first code.
fn renewals(service: &OAuthServer) -> usize {
    service.asked_for("refresh_token")
        + service.asked_for("client_credentials")
        + service.asked_for("exchange")
}

async fn a_token_is_fetched_when_it_is_first_needed(world: &World) {
    let service = service(world).await;
    let session = create(&world.api, "session", json!({ "key": super::KEY })).await;
    for credential in [machine(world).await, text(&session["credentialId"])] {
        let before = renewals(&service);
        for _ in 0..2 {
            let node = got(&world.api, "n1", &credential).await;
            assert_eq!(node["status"], "completed", "{node}");
        }
        assert_eq!(renewals(&service), before + 1, "one token serves both");
    }
    let form = service.target().asked();
    let form = form.iter().find(|asked| asked.uri.path() == "/token").unwrap();
    let body = String::from_utf8_lossy(&form.body).into_owned();
    assert!(
        body.contains("audience=notes") && !body.contains("client_secret"),
        "{body}"
    );
}

async fn a_token_that_runs_out_is_renewed_in_time(world: &World) {
    let service = service(world).await;
    // It is as good as over when it comes.
    service.let_tokens_last(Some(0));
    let credential = consented(&world.api, &service, client()).await;
    service.let_tokens_last(Some(3_600));
    for _ in 0..2 {
        let node = got(&world.api, "n1", &credential).await;
        assert_eq!(node["status"], "completed", "{node}");
    }
    assert_eq!(service.asked_for("refresh_token"), 1);
}

async fn a_refused_token_is_renewed_once_a_call(world: &World) {
    let service = service(world).await;
    let credential = consented(&world.api, &service, client()).await;
    service.end_access();
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(service.asked_for("refresh_token"), 1);
    service.end_access();
    let node = requested(&world.api, &service.url("/me"), &credential).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(service.asked_for("refresh_token"), 2);
    service.refuse_all_access();
    let calls = || {
        service
            .target()
            .asked()
            .iter()
            .filter(|asked| asked.uri.path() == "/n1")
            .count()
    };
    let before = calls();
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["error"]["code"], "CREDENTIAL_INVALID", "{node}");
    assert_eq!(
        service.asked_for("refresh_token"),
        3,
        "one for the call, and no more"
    );
    assert_eq!(calls(), before + 2);
    assert_eq!(
        status(&world.api, &credential).await,
        "active",
        "its token is good"
    );
    let verdict = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verdict.data(200)["status"], "invalid");
    assert_eq!(service.asked_for("refresh_token"), 4);
}

async fn of_many_runs_one_renews(world: &World) {
    let service = service(world).await;
    let credential = consented(&world.api, &service, client()).await;
    service.end_access();
    service.hold_tokens(true);
    let workflow = world.api.workflow_with("Notes", flow("n1", &credential)).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.api.start(&workflow, json!({})).await);
    }
    // All of them were refused, and wait.
    let refused = until(async || {
        let asked = service.target().asked();
        let refused = asked.iter().filter(|asked| asked.uri.path() == "/n1").count();
        (refused >= runs.len()).then_some(())
    });
    assert!(refused.await.is_some());
    service.hold_tokens(false);
    let reports = runs.into_iter().map(|run| {
        let api = world.api.clone();
        async move { api.ended(&run).await }
    });
    for report in together(reports).await {
        assert_eq!(report["status"], "succeeded", "{report}");
    }
    assert_eq!(service.asked_for("refresh_token"), 1);
}

async fn what_nothing_renews_has_expired(world: &World) {
    let service = service(world).await;
    service.renew_nothing();
    service.let_tokens_last(Some(0));
    let credential = consented(&world.api, &service, client()).await;
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["error"]["code"], "CREDENTIAL_INVALID", "{node}");
    assert!(
        text(&node["error"]["message"]).contains("consent again"),
        "{node}"
    );
    assert_eq!(status(&world.api, &credential).await, "expired");
}

async fn a_consent_that_is_taken_back_expires_the_credential(world: &World) {
    let service = service(world).await;
    let credential = consented(&world.api, &service, client()).await;
    service.end_all();
    let workflow = world.api.workflow_with("Notes", flow("n1", &credential)).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    let error = &report["nodes"][1]["error"];
    assert_eq!(error["code"], "CREDENTIAL_INVALID", "{report}");
    assert!(text(&error["message"]).contains("invalid_grant"), "{error}");
    assert!(
        !text(&error["message"]).contains("refresh-"),
        "what was presented is masked: {error}"
    );
    assert_eq!(status(&world.api, &credential).await, "expired");
    let told = last_activity(&world.api, &credential).await;
    assert_eq!(told["action"], "credential.expired");
    assert_eq!(told["metadata"]["fields"], json!(["status"]));
    assert_eq!(told["actorUserId"], Value::Null);
    let refused = world
        .api
        .post(format!("/workflows/{workflow}/runs"), json!({}))
        .await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let verdict = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verdict.data(200)["status"], "invalid");
    assert_eq!(status(&world.api, &credential).await, "expired", "and stays so");
}

async fn a_test_that_finds_the_consent_taken_back_expires_it(world: &World) {
    let service = service(world).await;
    let credential = consented(&world.api, &service, client()).await;
    service.end_all();
    let verdict = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verdict.data(200)["status"], "invalid");
    assert_eq!(status(&world.api, &credential).await, "expired");
}

async fn a_client_that_is_taken_back_is_invalid(world: &World) {
    let service = service(world).await;
    let mut data = client();
    data["clientSecret"] = json!("another-secret-3");
    let made = create(&world.api, "machine", data).await;
    let credential = text(&made["credentialId"]);
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["error"]["code"], "CREDENTIAL_INVALID", "{node}");
    assert!(
        text(&node["error"]["message"]).contains("invalid_client"),
        "{node}"
    );
    assert!(!node.to_string().contains("another-secret-3"), "{node}");
    assert_eq!(status(&world.api, &credential).await, "invalid");
    assert_eq!(
        last_activity(&world.api, &credential).await["action"],
        "credential.refused"
    );
    // A credential that is right after all is found to be so.
    let right = machine(world).await;
    service.refuse_tokens(Some((401, "{\"error\": \"invalid_client\"}")));
    let verify = format!("/credentials/{right}/verify");
    assert_eq!(
        world.api.post(&verify, json!({})).await.data(200)["status"],
        "invalid"
    );
    assert_eq!(status(&world.api, &right).await, "invalid");
    service.refuse_tokens(None);
    assert_eq!(
        world.api.post(&verify, json!({})).await.data(200),
        json!({ "status": "valid" })
    );
    assert_eq!(status(&world.api, &right).await, "active");
}

async fn an_endpoint_that_is_ill_is_asked_again(world: &World) {
    let service = service(world).await;
    let credential = machine(world).await;
    service.refuse_tokens(Some((503, "busy")));
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["error"]["code"], "HTTP_UNREACHABLE", "{node}");
    assert_eq!(status(&world.api, &credential).await, "active");
    let mut operations = flow("n1", &credential);
    operations[1]["config"] = json!({ "retry": { "maxAttempts": 10, "delayMs": 100, "multiplier": 1 } });
    let workflow = world.api.workflow_with("Patient", operations).await;
    let before = service.asked_for("client_credentials");
    let run = world.api.start(&workflow, json!({})).await;
    let asked = until(async || (service.asked_for("client_credentials") >= before + 2).then_some(()));
    assert!(asked.await.is_some());
    service.refuse_tokens(None);
    assert_eq!(world.api.ended(&run).await["status"], "succeeded");
}

async fn choices_tests_and_triggers_use_new_tokens(world: &World) {
    let service = service(world).await;
    let credential = consented(&world.api, &service, client()).await;
    service.end_access();
    let body = json!({ "appId": "cloud_notes", "rpcId": "notes", "credentialId": credential });
    let options = world
        .api
        .post("/credentials/dynamic-options", body)
        .await
        .data(200);
    assert_eq!(options["items"], json!([{ "value": 1, "label": "One" }]));
    assert_eq!(service.asked_for("refresh_token"), 1);
    service.end_access();
    let verdict = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verdict.data(200), json!({ "status": "valid" }));
    assert_eq!(service.asked_for("refresh_token"), 2);
    let operations = json!([{ "op": "add_node", "tempId": "new", "appId": "cloud_notes",
        "moduleSlug": "new_note", "credentialId": credential }]);
    let workflow = world.api.workflow_with("Poll", operations).await;
    world.api.go_live(&workflow).await;
    let polls = || {
        service
            .target()
            .asked()
            .iter()
            .filter(|asked| asked.uri.path() == "/notes")
            .count()
    };
    let before = polls();
    let polled = until(async || (polls() > before).then_some(()));
    assert!(polled.await.is_some(), "nobody polls");
    service.end_access();
    let renewed = until(async || (service.asked_for("refresh_token") >= 3).then_some(()));
    assert!(renewed.await.is_some(), "the trigger does not renew its token");
}
