//! What triggers are called by: their own secrets, what they keep of a service's answer, and their URLs.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Server, Target, text, until};

use super::parrot::repeat;
use super::secrets::Secrets;
use super::watcher::Watcher;
use crate::catalog;

const MANIFEST: &str = r#"
manifest: 1
id: canary_calls
name: Canary calls
baseUrl: BASE_URL
connections: []
modules:
  - id: refused
    label: Refused
    type: trigger
    description: The service does not want to call.
    connection: optional
    webhook:
      attach: { method: POST, path: /422, body: { to: "{{webhook.url}}", secret: "{{webhook.secret}}" } }
      verify: { type: secret, given: "{{request.headers['x-secret']}}" }
  - id: taken
    label: Taken
    type: trigger
    description: The service does not want to stop.
    connection: optional
    errors:
      - when: "{{response.status == 422}}"
        code: REFUSED
        message: "{{response.body.body}}"
    webhook:
      attach: { method: POST, path: /calls, body: { to: "{{webhook.url}}", secret: "{{webhook.secret}}" } }
      keep: { id: "{{response.body.id}}", key: "{{response.body.key}}" }
      detach:
        method: POST
        path: /422
        body: { id: "{{webhook.id}}", key: "{{webhook.key}}", to: "{{webhook.url}}", secret: "{{webhook.secret}}" }
      verify: { type: secret, given: "{{request.body.key}}", secret: "{{webhook.key}}" }
    output: { given: "{{request.body.number}}" }
"#;

/// Gives what leads in: the ends of URLs, which are no secret of those who may see the workflow.
pub(super) async fn exercise(watcher: &Watcher, server: &Server, secrets: &mut Secrets) -> Secrets {
    let key = secrets.give("what a trigger keeps of its service's answer");
    let given = key.clone();
    let service = Target::start(move |asked: &Asked| match asked.uri.path() {
        "/calls" => Response::builder()
            .header("content-type", "application/json")
            .body(Bytes::from(json!({ "id": "c1", "key": given }).to_string()))
            .unwrap(),
        _ => repeat(asked),
    })
    .await;
    let manifest = MANIFEST.replace("BASE_URL", &service.url(""));
    catalog::add(&server.admin().await, None, &manifest)
        .await
        .unwrap();
    let mut ways_in = Secrets::default();
    let refused = live(watcher, "refused").await;
    not_told(server, &refused).await;
    let told = asked(&service, "/422").await;
    secrets.know("the secret of a refused trigger", &text(&told["secret"]));
    ways_in.know("the URL of a refused trigger", end(&told));
    let taken = live(watcher, "taken").await;
    let told = asked(&service, "/calls").await;
    secrets.know("the secret of a trigger", &text(&told["secret"]));
    ways_in.know("the URL of a trigger", end(&told));
    deliver(watcher, server, (&taken, &told), &key).await;
    let undeploy = format!("/workflows/{taken}/undeploy");
    let _ = watcher.send(http::Method::POST, &undeploy, json!({})).await;
    not_told(server, &taken).await;
    for workflow in [refused, taken] {
        let _ = watcher.get(&format!("/workflows/{workflow}")).await;
        let feed = format!("/activity?targetType=workflow&targetId={workflow}");
        let _ = watcher.get(&feed).await;
    }
    ways_in
}

async fn live(watcher: &Watcher, module: &str) -> String {
    let flow = json!([
        { "op": "add_node", "tempId": "new", "appId": "canary_calls", "moduleSlug": module, "params": {} },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "new",
          "params": { "fields": { "given": "{{$node(1)}}" } } },
    ]);
    let workflow = watcher.api.workflow_with("Called", flow).await;
    watcher.api.go_live(&workflow).await;
    workflow
}

/// What the service was told at a path.
async fn asked(service: &Target, path: &str) -> Value {
    let found = until(async || {
        let asked = service.asked();
        let found = asked.iter().find(|asked| asked.uri.path() == path);
        found.map(Asked::json)
    });
    found.await.unwrap_or_else(|| panic!("nobody asks for {path}"))
}

/// The end of the URL that a service was told.
fn end(told: &Value) -> &str {
    told["to"].as_str().unwrap().rsplit('/').next().unwrap()
}

/// Waits until the log says that the service of a workflow's trigger has refused.
async fn not_told(server: &Server, workflow: &str) {
    let said = until(async || {
        let log = server.whole_log();
        let mut lines = log.lines();
        let said = |line: &str| line.contains("was not told of a trigger") && line.contains(workflow);
        lines.any(said).then_some(())
    });
    assert!(said.await.is_some(), "the log does not say what was refused");
}

/// Delivers, with the key and without, once the trigger takes it.
async fn deliver(watcher: &Watcher, server: &Server, (workflow, told): (&str, &Value), key: &str) {
    let url = text(&told["to"]);
    let path = url[url.find("/hooks/").unwrap()..].to_owned();
    let stranger = watcher.api.with_key(None);
    let send = async |key: &str| {
        let headers = [("content-type", "application/json")];
        let body = json!({ "key": key, "number": 7 }).to_string();
        stranger
            .send(http::Method::POST, &path, &headers, body.into())
            .await
    };
    let taken = until(async || {
        let answer = send(key).await;
        watcher.note(&answer);
        (answer.status == 200).then_some(())
    });
    assert!(taken.await.is_some(), "the delivery is not taken");
    watcher.note(&send("wrong").await);
    let runs = until(async || {
        let runs = watcher
            .api
            .all_pages(&format!("/runs?workflowId={workflow}"))
            .await;
        runs.first().map(|run| text(&run["id"]))
    });
    watcher.look_at(server, &runs.await.unwrap()).await;
}
