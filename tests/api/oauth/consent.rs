//! The page that sends a person to consent, and what comes back.

use http::Method;
use serde_json::json;
use test_support::{Asked, OAuthServer, browser_or_skip, text, together};

use super::{
    KEY, SECRET, Visitor, bring, client, consented, create, got, last_activity, link, path, requested,
    service, status,
};
use crate::world::World;

on_both_databases!(
    a_person_consents_and_nodes_use_it,
    every_way_to_bind_a_code_works,
    a_consent_that_is_declined_can_be_given_again,
    an_answer_is_taken_once_and_for_its_browser_only,
    a_client_that_is_refused_can_be_typed_again,
    an_endpoint_that_fails_loses_nothing,
    the_form_of_another_kind_is_tested_before_it_is_taken,
    a_token_goes_nowhere_else,
    a_person_consents_in_a_browser,
);

/// The last request for a token, as a form.
fn last_form(service: &OAuthServer) -> String {
    let asked = service.target().asked();
    let last = asked.iter().rfind(|asked: &&Asked| asked.uri.path() == "/token");
    String::from_utf8(last.unwrap().body.to_vec()).unwrap()
}

async fn a_person_consents_and_nodes_use_it(world: &World) {
    let service = service(world).await;
    let made = create(&world.api, "account", json!({})).await;
    assert_eq!(made["status"], "credential_required");
    let place = path(&text(&made["connect_url"]));
    let mut visitor = Visitor::new(&world.api);
    let form = visitor.open(&place).await;
    assert_eq!(form.status, 200);
    let html = form.text();
    assert!(
        html.contains("Cloud &lt;Notes&gt;") && html.contains("Mine &lt;b&gt;"),
        "{html}"
    );
    let callback = format!("{}/connect/callback", world.server.rest_url());
    assert!(html.contains(&format!("<code>{callback}</code>")), "{html}");
    assert!(html.contains("name=\"clientSecret\" type=\"password\""), "{html}");
    let body = format!("clientId={}&clientSecret={SECRET}", test_support::CLIENT_ID);
    let sent = visitor.submit(&place, &body).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert!(
        sent.header("content-security-policy")
            .contains("default-src 'none'")
    );
    let cookie = sent.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/connect/callback"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let there = link(&sent);
    assert!(sent.text().contains("http-equiv=\"refresh\""));
    for part in [
        "response_type=code",
        "scope=read+write",
        "access_type=offline",
        "code_challenge_method=S256",
        &format!("redirect_uri={}", form_encoded(&callback)),
    ] {
        assert!(there.contains(part), "{part} is not in {there}");
    }
    assert!(!there.contains(SECRET), "{there}");
    assert_eq!(
        status(&world.api, &text(&made["credentialId"])).await,
        "credential_required"
    );
    let done = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let credential = text(&made["credentialId"]);
    assert_eq!(status(&world.api, &credential).await, "active");
    assert_eq!(
        last_activity(&world.api, &credential).await["action"],
        "credential.connected"
    );
    let node = got(&world.api, "n1", &credential).await;
    assert_eq!(node["status"], "completed", "{node}");
    assert_eq!(node["output"]["query"], "account=acc-7", "what the answer kept");
    assert_eq!(visitor.open(&place).await.status, 410);
    let verdict = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verdict.data(200), json!({ "status": "valid" }));
}

fn form_encoded(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

async fn every_way_to_bind_a_code_works(world: &World) {
    for (pkce, has_verifier) in [("plain", true), ("none", false)] {
        let service = OAuthServer::start(SECRET, KEY).await;
        bring(&world.admin, Some(&world.organization), &service, pkce).await;
        consented(&world.api, &service, client()).await;
        assert_eq!(
            last_form(&service).contains("code_verifier="),
            has_verifier,
            "{pkce}"
        );
    }
}

async fn a_consent_that_is_declined_can_be_given_again(world: &World) {
    let service = service(world).await;
    let made = create(&world.api, "account", json!({})).await;
    let place = path(&text(&made["connect_url"]));
    let mut visitor = Visitor::new(&world.api);
    let body = format!("clientId={}&clientSecret={SECRET}", test_support::CLIENT_ID);
    let there = visitor.sent_to(&place, &body).await;
    let state = there
        .split("state=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap()
        .to_owned();
    let back = format!("/connect/callback?error=access_denied&error_description=%3Cno%3E&state={state}");
    let declined = visitor.open(&back).await;
    assert_eq!(declined.status, 400);
    let html = declined.text();
    assert!(
        html.contains("access_denied: &lt;no&gt;") && !html.contains("<no>"),
        "{html}"
    );
    assert_eq!(path(&link(&declined)), place, "the link is good still");
    let html = visitor.open(&place).await.text();
    assert!(
        html.contains(&format!("value=\"{}\"", test_support::CLIENT_ID)),
        "{html}"
    );
    assert!(!html.contains(SECRET), "{html}");
    assert!(html.contains("placeholder=\"as you typed it before\""), "{html}");
    // What was typed need not be typed again.
    let there = visitor.sent_to(&place, "").await;
    let done = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(done.status, 200, "{}", done.text());
}

async fn an_answer_is_taken_once_and_for_its_browser_only(world: &World) {
    let service = service(world).await;
    let made = create(&world.api, "account", client()).await;
    let (credential, place) = (text(&made["credentialId"]), path(&text(&made["connect_url"])));
    let mut visitor = Visitor::new(&world.api);
    let there = visitor.sent_to(&place, "").await;
    let back = path(&service.consent(&there));
    let stranger = Visitor::new(&world.api).open(&back).await;
    assert_eq!(stranger.status, 403);
    assert!(!stranger.text().contains("/connect/"), "{}", stranger.text());
    assert_eq!(status(&world.api, &credential).await, "credential_required");
    for unknown in [
        "/connect/callback",
        "/connect/callback?code=x&state=0000",
        "/connect/callback?state=",
    ] {
        assert_eq!(visitor.open(unknown).await.status, 404, "{unknown}");
    }
    let headers = [("cookie", visitor.cookies.join("; "))];
    let tries = (0..6).map(|_| {
        let (api, back, headers) = (world.api.with_key(None), back.clone(), headers.clone());
        async move {
            let headers = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect::<Vec<_>>();
            api.send(Method::GET, &back, &headers, "".into()).await.status
        }
    });
    let mut statuses = together(tries).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410, 410, 410, 410, 410]);
    assert_eq!(service.asked_for("authorization_code"), 1);
    let again = visitor.open(&back).await;
    assert_eq!(again.status, 410, "{}", again.text());
    assert!(
        !again.text().contains("href"),
        "the link is over: {}",
        again.text()
    );
    assert_eq!(status(&world.api, &credential).await, "active");
    let deleted = create(&world.api, "account", client()).await;
    let there = visitor.sent_to(&path(&text(&deleted["connect_url"])), "").await;
    let _ = world
        .api
        .delete(format!("/credentials/{}", text(&deleted["credentialId"])))
        .await
        .data(200);
    assert_eq!(visitor.open(&path(&service.consent(&there))).await.status, 404);
}

async fn a_client_that_is_refused_can_be_typed_again(world: &World) {
    let service = service(world).await;
    let made = create(&world.api, "account", json!({})).await;
    let place = path(&text(&made["connect_url"]));
    let mut visitor = Visitor::new(&world.api);
    let wrong = "mistyped-secret-9";
    let body = format!("clientId={}&clientSecret={wrong}", test_support::CLIENT_ID);
    let there = visitor.sent_to(&place, &body).await;
    let refused = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(refused.status, 502);
    let html = refused.text();
    assert!(html.contains("invalid_client") && !html.contains(wrong), "{html}");
    assert_eq!(path(&link(&refused)), place);
    // What was right stays.
    let there = visitor.sent_to(&place, &format!("clientSecret={SECRET}")).await;
    let done = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(done.status, 200, "{}", done.text());
}

async fn an_endpoint_that_fails_loses_nothing(world: &World) {
    let service = service(world).await;
    let made = create(&world.api, "account", client()).await;
    let (credential, place) = (text(&made["credentialId"]), path(&text(&made["connect_url"])));
    let mut visitor = Visitor::new(&world.api);
    for (status_code, body, says) in [
        (503, "{\"error\": \"later\"}", "later"),
        (200, "<html>busy</html>", "no JSON"),
        (200, "{\"token_type\": \"Bearer\"}", "status 200"),
        (400, "{\"error\": \"invalid_grant\"}", "invalid_grant"),
        (200, "{\"error\": \"<b>odd</b>\"}", "&lt;b&gt;odd&lt;/b&gt;"),
    ] {
        service.refuse_tokens(Some((status_code, body)));
        let there = visitor.sent_to(&place, "").await;
        let failed = visitor.open(&path(&service.consent(&there))).await;
        assert_eq!(failed.status, 502, "{}", failed.text());
        assert!(failed.text().contains(says), "{says} is not in {}", failed.text());
        assert_eq!(path(&link(&failed)), place);
        assert_eq!(status(&world.api, &credential).await, "credential_required");
    }
    service.refuse_tokens(None);
    service.refuse_all_access();
    let there = visitor.sent_to(&place, "").await;
    let refused = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(refused.status, 502, "its own test fails");
    assert!(
        refused.text().contains("the token is not known"),
        "{}",
        refused.text()
    );
    assert_eq!(status(&world.api, &credential).await, "credential_required");
}

async fn the_form_of_another_kind_is_tested_before_it_is_taken(world: &World) {
    let service = service(world).await;
    for (connection, wrong, right) in [
        ("session", "key=wrong-key-7".to_owned(), format!("key={KEY}")),
        (
            "machine",
            format!("clientId={}&clientSecret=wrong-key-7", test_support::CLIENT_ID),
            format!("clientId={}&clientSecret={SECRET}", test_support::CLIENT_ID),
        ),
    ] {
        let made = create(&world.api, connection, json!({})).await;
        let (credential, place) = (text(&made["credentialId"]), path(&text(&made["connect_url"])));
        let mut visitor = Visitor::new(&world.api);
        let refused = visitor.submit(&place, &wrong).await;
        assert_eq!(refused.status, 400);
        let html = refused.text();
        assert!(
            html.contains("does not accept this") && !html.contains("wrong-key-7"),
            "{html}"
        );
        assert_eq!(status(&world.api, &credential).await, "credential_required");
        let done = visitor.submit(&place, &right).await;
        assert_eq!(done.status, 200, "{}", done.text());
        let node = got(&world.api, "n1", &credential).await;
        assert_eq!(node["status"], "completed", "{node}");
    }
    assert_eq!(service.asked_for("exchange"), 2, "one is refused, one is kept");
    assert_eq!(service.asked_for("client_credentials"), 2);
}

async fn a_token_goes_nowhere_else(world: &World) {
    let (own, other) = (service(world).await, OAuthServer::start(SECRET, KEY).await);
    let credential = consented(&world.api, &own, client()).await;
    let node = requested(&world.api, &own.url("/me"), &credential).await;
    assert_eq!(node["status"], "completed", "{node}");
    let node = requested(&world.api, &other.url("/me"), &credential).await;
    assert_eq!(node["error"]["code"], "HTTP_BLOCKED", "{node}");
    assert!(other.target().asked().is_empty());
    // Neither does another organization get at it.
    let stranger = world.stranger().await;
    let body = json!({ "appId": "cloud_notes", "rpcId": "notes", "credentialId": credential });
    assert_eq!(
        stranger.post("/credentials/dynamic-options", body).await.status,
        400
    );
    let verify = stranger
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verify.status, 404);
}

async fn a_person_consents_in_a_browser(world: &World) {
    let Some(browser) = browser_or_skip("a person consents in a browser").await else {
        return;
    };
    let _service = service(world).await;
    let made = create(&world.api, "account", json!({})).await;
    let url = text(&made["connect_url"]);
    browser.open(&url).await;
    browser.shows("h1", "Connect Cloud <Notes>").await;
    browser.type_into("#clientId", test_support::CLIENT_ID).await;
    browser.type_into("#clientSecret", SECRET).await;
    browser.click("button").await;
    browser.shows("h1", "May Switchyard use your account?").await;
    browser.click("#deny").await;
    browser
        .shows("p[role=alert]", "access_denied: The owner said <no>")
        .await;
    browser.click("a").await;
    browser.shows("h1", "Connect Cloud <Notes>").await;
    assert_eq!(browser.value("#clientId").await, test_support::CLIENT_ID);
    assert_eq!(browser.value("#clientSecret").await, "");
    browser.click("button").await;
    browser.shows("h1", "May Switchyard use your account?").await;
    browser.click("#allow").await;
    browser.shows("h1", "Connected").await;
    let credential = text(&made["credentialId"]);
    assert_eq!(status(&world.api, &credential).await, "active");
    assert_eq!(got(&world.api, "n1", &credential).await["status"], "completed");
    browser.open(&url).await;
    browser.shows("h1", "The link is over").await;
    let session = create(&world.api, "session", json!({})).await;
    browser.open(&text(&session["connect_url"])).await;
    browser.type_into("#key", "wrong").await;
    browser.click("button").await;
    browser.shows("p[role=alert]", "does not accept this").await;
    browser.type_into("#key", KEY).await;
    browser.click("button").await;
    browser.shows("h1", "Connected").await;
}
