//! A key that stands in the paths of all requests, as for Telegram's bots.

use serde_json::json;
use test_support::{Server, Target, text};

use super::secrets::Secrets;
use super::watcher::Watcher;
use crate::catalog;

const MANIFEST: &str = r#"
manifest: 1
id: canary_path
name: Canary path
baseUrl: BASE_URL
connections:
  - id: key
    label: Key
    type: api_key
    fields:
      - { name: token, label: Token, type: text, required: true, secret: true }
    apply:
      - { to: path, value: "/bot{{connection.token}}" }
    verify: { path: /404 }
errors:
  - when: "{{response.status == 418}}"
    code: TEAPOT
    message: "{{response.body.uri}} and {{response.body.headers}}"
modules:
  - id: get
    label: Get
    type: action
    description: Gets what the service has heard.
    fields:
      - { name: status, label: Status, type: integer, required: true }
    request: { path: "/{{parameters.status}}" }
  - id: list
    label: List
    type: search
    description: Lists what the service has heard.
    request: { path: /200 }
    pagination: { type: next_url, next: "{{response.body.uri}}", maxPages: 2 }
    items: "{{response.body.headers}}"
"#;

pub(super) async fn exercise(watcher: &Watcher, server: &Server, parrot: &Target, secrets: &mut Secrets) {
    let manifest = MANIFEST.replace("BASE_URL", &parrot.url(""));
    catalog::add(&server.admin().await, None, &manifest)
        .await
        .unwrap();
    let token = secrets.give("a key in a path");
    let made = watcher
        .credential("canary_path", "key", json!({ "token": token }))
        .await;
    let credential = text(&made["credentialId"]);
    for status in [200, 404, 418, 503] {
        let params = json!({ "status": status });
        watcher
            .use_module(server, ("canary_path", "get"), params, &credential)
            .await;
    }
    let before = parrot.asked().len();
    watcher
        .use_module(server, ("canary_path", "list"), json!({}), &credential)
        .await;
    let asked = parrot.asked();
    let paths: Vec<&str> = asked[before..].iter().map(|asked| asked.uri.path()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert_eq!(
        paths[0], paths[1],
        "the second page is asked for as the service says"
    );
    watcher.verify(&credential).await;
}
