//! The page where a person gives a credential what it lacks.

use core_service::pages::Token;
use core_service::store::{NewCredential, NewLink};
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, text, together};

use super::{create, listed};
use crate::world::World;

on_both_databases!(
    what_is_missing_is_typed_once,
    of_several_who_finish_it_one_does,
    everything_may_be_left_to_a_person,
    secrets_that_may_be_left_out_are_offered,
    one_of_several_secrets_is_needed,
    the_page_escapes_what_it_shows,
    an_unknown_or_deleted_link_is_not_found,
    an_expired_link_says_so,
);

/// The page of a credential, as a browser without any key asks for it.
pub(super) async fn page(world: &World, made: &Value, method: Method, body: &str) -> Answer {
    let url = text(&made["connect_url"]);
    let path = &url[url.find("/connect/").unwrap()..];
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let browser = world.api.with_key(None);
    browser.send(method, path, &headers, body.to_owned().into()).await
}

async fn status(world: &World, made: &Value) -> Value {
    listed(world, &text(&made["credentialId"])).await["status"].clone()
}

async fn what_is_missing_is_typed_once(world: &World) {
    let made = create(world, "basic", json!({ "username": "Ada" })).await;
    assert_eq!(made["status"], "credential_required");
    assert_eq!(status(world, &made).await, "credential_required");
    let form = page(world, &made, Method::GET, "").await;
    assert_eq!(form.status, 200);
    assert!(form.header("content-type").starts_with("text/html"));
    assert_eq!(form.header("cache-control"), "no-store");
    assert_eq!(form.header("referrer-policy"), "no-referrer");
    assert!(
        form.header("content-security-policy")
            .contains("default-src 'none'")
    );
    let html = form.text();
    assert!(
        html.contains("<label for=\"password\">") && html.contains("type=\"password\""),
        "{html}"
    );
    assert!(
        !html.contains("name=\"username\"") && !html.contains("verifyUrl"),
        "{html}"
    );
    assert!(!html.contains("<script"));
    let blank = page(world, &made, Method::POST, "password=").await;
    assert_eq!(blank.status, 400);
    assert!(blank.text().contains("is required"), "{}", blank.text());
    let broken = page(world, &made, Method::POST, "password=a%0D%0Ab").await;
    assert!(
        broken.status == 400 && !broken.text().contains("a\r\nb"),
        "{}",
        broken.text()
    );
    let done = page(world, &made, Method::POST, "password=s3cret&username=Eve&other=1").await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(status(world, &made).await, "active");
    for method in [Method::GET, Method::POST] {
        assert_eq!(page(world, &made, method, "password=again").await.status, 410);
    }
    let path = format!("/activity?targetId={}", text(&made["credentialId"]));
    let done = world.api.get(path).await.data(200);
    assert_eq!(done["events"][0]["action"], "credential.connected");
    assert_eq!(done["events"][0]["actorUserId"], Value::Null);
}

async fn of_several_who_finish_it_one_does(world: &World) {
    let made = create(world, "bearer", json!({})).await;
    let url = text(&made["connect_url"]);
    let path = url[url.find("/connect/").unwrap()..].to_owned();
    let tries = (0..6).map(|number| {
        let (browser, path) = (world.api.with_key(None), path.clone());
        async move {
            let body = format!("token=token-{number}");
            browser.send(Method::POST, &path, &[], body.into()).await.status
        }
    });
    let mut statuses = together(tries).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410, 410, 410, 410, 410]);
}

async fn everything_may_be_left_to_a_person(world: &World) {
    let body = json!({ "appId": "http", "connectionId": "api_key", "name": "Key" });
    let made = world.api.post("/credentials", body).await.data(200);
    assert_eq!(made["status"], "credential_required");
    let verdict = world
        .api
        .post(
            format!("/credentials/{}/verify", text(&made["credentialId"])),
            json!({}),
        )
        .await
        .data(200);
    assert_eq!(verdict["status"], "invalid");
    assert!(text(&verdict["error"]).contains("not finished"), "{verdict}");
    assert_eq!(status(world, &made).await, "credential_required");
    let html = page(world, &made, Method::GET, "").await.text();
    assert!(
        html.contains("name=\"name\"") && html.contains("name=\"value\""),
        "{html}"
    );
    let wrong = page(world, &made, Method::POST, "name=a+b&value=k").await;
    assert_eq!(wrong.status, 400);
    let done = page(world, &made, Method::POST, "name=x-key&value=k").await;
    assert_eq!(done.status, 200);
    assert_eq!(status(world, &made).await, "active");
}

/// A credential of whatever app, made of these values.
async fn create_for(world: &World, app: &str, connection: &str, data: Value) -> Value {
    let body = json!({ "appId": app, "connectionId": connection, "name": "Mine", "data": data });
    world.api.post("/credentials", body).await.data(200)
}

/// The label and the input of a field, as the page shows them.
fn asked<'a>(html: &'a str, name: &str) -> &'a str {
    let begin = html.find(&format!("<label for=\"{name}\">"));
    let begin = begin.unwrap_or_else(|| panic!("{name} is not asked for: {html}"));
    let rest = &html[begin..];
    let end = rest[1..].find("<label").or_else(|| rest.find("<button"));
    &rest[..end.unwrap_or(rest.len())]
}

async fn secrets_that_may_be_left_out_are_offered(world: &World) {
    for (app, connection, required, optional) in [
        ("postgresql", "server", "host", "password"),
        ("slack", "bot_token", "token", "signingSecret"),
        ("slack", "oauth", "clientSecret", "signingSecret"),
        ("twilio", "api_key", "password", "authToken"),
    ] {
        let made = create_for(world, app, connection, json!({})).await;
        let html = page(world, &made, Method::GET, "").await.text();
        let needed = asked(&html, required);
        assert!(
            needed.contains(" required") && !needed.contains("(optional)"),
            "{html}"
        );
        let offered = asked(&html, optional);
        assert!(
            offered.contains("(optional)") && !offered.contains(" required"),
            "{html}"
        );
        assert!(offered.contains("type=\"password\""), "{html}");
    }
    let typed = "host=nowhere.invalid&database=shop&username=ada";
    let made = create_for(world, "postgresql", "server", json!({})).await;
    let broken = page(world, &made, Method::POST, &format!("{typed}&password=a%0Ab")).await;
    assert_eq!(
        broken.status,
        400,
        "a secret that is offered is read: {}",
        broken.text()
    );
    for password in ["s3cret", ""] {
        let made = create_for(world, "postgresql", "server", json!({})).await;
        let body = format!("{typed}&password={password}");
        let done = page(world, &made, Method::POST, &body).await;
        assert_eq!(done.status, 200, "{password:?}: {}", done.text());
        assert_eq!(status(world, &made).await, "active");
    }
}

async fn one_of_several_secrets_is_needed(world: &World) {
    let known = json!({ "host": "nowhere.invalid", "username": "ada", "hostKey": "SHA256:x" });
    let made = create_for(world, "sftp", "server", known.clone()).await;
    assert_eq!(
        made["status"], "credential_required",
        "no proof was given: {made}"
    );
    let html = page(world, &made, Method::GET, "").await.text();
    assert!(
        asked(&html, "password").contains("(this or Private key)"),
        "{html}"
    );
    assert!(
        asked(&html, "privateKey").contains("(this or Password)"),
        "{html}"
    );
    assert!(asked(&html, "passphrase").contains("(optional)"), "{html}");
    assert!(!html.contains("name=\"host\""), "{html}");
    let none = page(world, &made, Method::POST, "password=&privateKey=&passphrase=x").await;
    assert_eq!(none.status, 400, "{}", none.text());
    assert!(
        none.text().contains("or Private key is required"),
        "{}",
        none.text()
    );
    assert_eq!(status(world, &made).await, "credential_required");
    let done = page(world, &made, Method::POST, "password=s3cret").await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(status(world, &made).await, "active");
    for secret in ["password", "privateKey"] {
        let mut data = known.clone();
        data[secret] = json!("given at once");
        let made = create_for(world, "sftp", "server", data).await;
        assert_eq!(made["status"], "active", "{secret}: {made}");
    }
}

async fn the_page_escapes_what_it_shows(world: &World) {
    let body = json!({ "appId": "http", "connectionId": "bearer", "name": "<img src=x>'\"&" });
    let made = world.api.post("/credentials", body).await.data(200);
    let html = page(world, &made, Method::GET, "").await.text();
    assert!(
        html.contains("&lt;img src=x&gt;&#39;&quot;&amp;") && !html.contains("<img"),
        "{html}"
    );
}

async fn an_unknown_or_deleted_link_is_not_found(world: &World) {
    let unknown = world
        .api
        .with_key(None)
        .send(Method::GET, "/connect/unknown", &[], "".into())
        .await;
    assert_eq!(unknown.status, 404);
    let made = create(world, "bearer", json!({})).await;
    let _ = world
        .api
        .delete(format!("/credentials/{}", text(&made["credentialId"])))
        .await
        .data(200);
    assert_eq!(page(world, &made, Method::GET, "").await.status, 404);
    assert_eq!(page(world, &made, Method::POST, "token=x").await.status, 404);
}

async fn an_expired_link_says_so(world: &World) {
    let token = Token::generate().unwrap();
    let link = NewLink {
        token_hash: &token.hash(),
        expires_at: 1,
    };
    let credential_id = format!("cred_expired_{}", world.organization);
    let new = NewCredential {
        id: &credential_id,
        name: "Late",
        app_id: "http",
        connection_id: "bearer",
        data: b"",
        team_id: None,
        link: Some(link),
    };
    let store = world.store().await;
    let made = store
        .create_credential(&world.actor(), &world.organization, &new)
        .await;
    assert!(made.is_ok());
    let path = format!("/connect/{}", token.text().expose());
    let browser = world.api.with_key(None);
    for (method, body) in [(Method::GET, ""), (Method::POST, "token=x")] {
        let answer = browser.send(method, &path, &[], body.into()).await;
        assert_eq!(answer.status, 410, "{}", answer.text());
    }
    assert_eq!(
        listed(world, &credential_id).await["status"],
        "credential_required"
    );
}
