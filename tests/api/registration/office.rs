//! A service that calls whoever asks for letters, and what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};
use test_support::{Answer, Api, Asked, Target, text, until};

use crate::catalog::bring;
use crate::world::World;

const MANIFEST: &str = include_str!("office.yaml");

/// The office, and the credential that its app is used with.
pub(super) struct Office {
    pub(super) service: Target,
    pub(super) credential: String,
    /// What it answers by.
    status: Arc<AtomicU16>,
}

/// The manifest of an office at this URL.
pub(super) fn manifest(url: &str) -> String {
    MANIFEST.replace("BASE_URL", url)
}

impl Office {
    /// Opens an office and brings its app.
    pub(super) async fn open(world: &World) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let service = service(Arc::clone(&status)).await;
        bring(world, &manifest(&service.url(""))).await;
        Self {
            service,
            credential: credential(&world.api).await,
            status,
        }
    }

    /// From now on it answers by this status.
    pub(super) fn answer_by(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// A live workflow that wants letters of a kind.
    pub(super) async fn live(&self, world: &World, kind: &str) -> String {
        let flow = flow(&self.credential, "new_letter", json!({ "kind": kind }));
        let workflow = world.api.workflow_with("Letters", flow).await;
        world.api.go_live(&workflow).await;
        workflow
    }

    /// The request of this number that it was told something by, once that has come and its answer is noted.
    pub(super) async fn called(&self, number: usize) -> Asked {
        called(&self.service, number).await
    }
}

/// The request of this number, once it has come.
pub(super) async fn called(service: &Target, number: usize) -> Asked {
    let call = until(async || service.asked().into_iter().nth(number - 1)).await;
    call.unwrap_or_else(|| panic!("the service was asked {} times", service.asked().len()))
}

/// What is asked of an office, of which each call gets a number as its id.
async fn service(status: Arc<AtomicU16>) -> Target {
    let number = AtomicU16::new(1);
    Target::start(move |asked: &Asked| {
        let body = match asked.method {
            Method::POST => json!({ "id": format!("call-{}", number.fetch_add(1, Ordering::SeqCst)) }),
            _ => Value::Null,
        };
        let answer = Response::builder().status(status.load(Ordering::SeqCst));
        let answer = answer.header("content-type", "application/json");
        answer.body(Bytes::from(body.to_string())).unwrap()
    })
    .await
}

pub(super) async fn credential(api: &Api) -> String {
    let body =
        json!({ "appId": "letter_office", "connectionId": "key", "name": "Mine", "data": { "key": "k-1" } });
    let made = api.post("/credentials", body).await.data(200);
    text(&made["credentialId"])
}

/// A trigger of the office (1), and a node that shows what it was given (2).
pub(super) fn flow(credential: &str, module: &str, params: Value) -> Value {
    trigger("letter_office", module, credential, params)
}

/// A trigger of an app (1), and a node that shows what it was given (2).
pub(super) fn trigger(app: &str, module: &str, credential: &str, params: Value) -> Value {
    json!([
        { "op": "add_node", "tempId": "new", "appId": app, "moduleSlug": module, "credentialId": credential,
          "params": params },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "new",
          "params": { "fields": { "given": "{{$node(1)}}" } } },
    ])
}

/// The path that a service was told to call.
pub(super) fn path(told: &Value) -> String {
    let url = text(&told["to"]);
    url[url.find("/hooks/").unwrap()..].to_owned()
}

/// Delivers a letter.
pub(super) async fn deliver(world: &World, path: &str, secret: &str, letter: &Value) -> Answer {
    deliver_to(&world.api, path, &[("x-secret", secret)], letter.to_string()).await
}

/// Delivers JSON with headers, as a service would.
pub(super) async fn deliver_to(api: &Api, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    api.with_key(None)
        .send(Method::POST, path, &all, body.into())
        .await
}

pub(super) async fn runs(world: &World, workflow: &str) -> Vec<Value> {
    world
        .api
        .all_pages(&format!("/runs?workflowId={workflow}&limit=200"))
        .await
}

/// What the runs of a workflow were given, oldest first, once there are so many and all have ended.
pub(super) async fn given(world: &World, workflow: &str, number: usize) -> Vec<Value> {
    given_by(&world.api, workflow, number).await
}

/// As [`given`], of whoever owns this key.
pub(super) async fn given_by(api: &Api, workflow: &str, number: usize) -> Vec<Value> {
    let path = format!("/runs?workflowId={workflow}&limit=200");
    let mut seen = Vec::new();
    let all = until(async || {
        seen = api.all_pages(&path).await;
        let ended = seen.iter().all(|run| run["status"] == "succeeded");
        (seen.len() >= number && ended).then_some(())
    });
    assert!(all.await.is_some(), "not {number} runs: {seen:?}");
    let mut given = Vec::new();
    for run in seen.iter().rev() {
        let report = api.get(format!("/runs/{}", text(&run["id"]))).await.data(200);
        given.push(report["nodes"][1]["output"]["given"].clone());
    }
    given
}
