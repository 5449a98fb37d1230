//! A caller that remembers what it was answered.

use std::sync::Mutex;

use bytes::Bytes;
use contract::v1;
use contract::v1::run_service_client::RunServiceClient;
use http::Method;
use serde_json::{Value, json};
use test_support::{Answer, Api, Bearer, Server, text};

/// A caller that remembers what it was answered.
pub(super) struct Watcher {
    pub(super) api: Api,
    seen: Mutex<String>,
}

impl Watcher {
    pub(super) fn new(api: Api) -> Self {
        Self {
            api,
            seen: Mutex::default(),
        }
    }

    /// All that it was answered.
    pub(super) fn seen(&self) -> String {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn note(&self, answer: &Answer) {
        let mut seen = self.seen.lock().unwrap();
        seen.push_str(&format!("{:?}\n{}\n", answer.headers, answer.text()));
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = match method {
            Method::GET => Bytes::new(),
            _ => body.to_string().into(),
        };
        let answer = self
            .api
            .send(method, &format!("/api/v1{path}"), &headers, body)
            .await;
        self.note(&answer);
        answer
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, Value::Null).await
    }

    /// A credential with this data; gives its id.
    pub(super) async fn credential(&self, app: &str, connection: &str, data: Value) -> Value {
        let body = json!({ "appId": app, "connectionId": connection, "name": "Mine", "data": data });
        // The link to the page is itself a secret, for who made the credential.
        let made = self.api.post("/credentials", body).await;
        made.data(200)
    }

    /// Uses a module with a credential, which succeeds or fails.
    pub(super) async fn use_module(
        &self,
        server: &Server,
        (app, module): (&str, &str),
        params: Value,
        credential: &str,
    ) {
        let operations = json!([
            { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "use", "appId": app, "moduleSlug": module, "after": "start",
              "params": params, "credentialId": credential },
        ]);
        self.run(server, operations).await;
    }

    pub(super) async fn verify(&self, credential: &str) {
        let path = format!("/credentials/{credential}/verify");
        let _ = self.send(Method::POST, &path, json!({})).await;
    }

    /// Runs a graph to its end and asks for everything that tells of it.
    pub(super) async fn run(&self, server: &Server, operations: Value) {
        let workflow = self.api.workflow_with("Canary", operations).await;
        let started = self
            .send(Method::POST, &format!("/workflows/{workflow}/runs"), json!({}))
            .await;
        let run = text(&started.data(201)["runId"]);
        self.look_at(server, &run).await;
        let _ = self.get(&format!("/runs?workflowId={workflow}")).await;
        let _ = self.get(&format!("/workflows/{workflow}")).await;
    }

    pub(super) async fn look_at(&self, server: &Server, run: &str) {
        let report = self.api.ended(run).await;
        assert_ne!(report["nodes"], json!([]), "{report}");
        for path in [
            format!("/runs/{run}"),
            format!("/runs/{run}/nodes"),
            format!("/runs/{run}/events"),
        ] {
            let answer = self.get(&path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
        let key = Bearer::new(self.api.key());
        let mut client = RunServiceClient::with_interceptor(server.channel().await, key);
        let request = v1::GetRunRequest { id: run.to_owned() };
        let told = client.get_run(request).await.unwrap();
        self.seen.lock().unwrap().push_str(&format!("{told:?}\n"));
    }
}
