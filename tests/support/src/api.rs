//! REST v1 as a caller with a key sees it.

use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::http::{Answer, HttpClient};

/// How long anything that is waited for may take.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at something that cannot announce itself.
const PAUSE: Duration = Duration::from_millis(10);

/// A caller of REST v1.
#[derive(Clone)]
pub struct Api {
    client: HttpClient,
    key: Option<String>,
}

impl Api {
    /// A caller with this key, or with none.
    #[must_use]
    pub fn new(client: HttpClient, key: Option<String>) -> Self {
        Self { client, key }
    }

    /// The same door with another key, or with none.
    #[must_use]
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self::new(self.client.clone(), key.map(str::to_owned))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// GET below `/api/v1`.
    pub async fn get(&self, path: impl AsRef<str>) -> Answer {
        self.send(Method::GET, &v1(path.as_ref()), &[], Bytes::new())
            .await
    }

    /// DELETE below `/api/v1`.
    pub async fn delete(&self, path: impl AsRef<str>) -> Answer {
        self.send(Method::DELETE, &v1(path.as_ref()), &[], Bytes::new())
            .await
    }

    /// POST of a JSON body below `/api/v1`.
    pub async fn post(&self, path: impl AsRef<str>, body: Value) -> Answer {
        self.json(Method::POST, path.as_ref(), &[], &body).await
    }

    /// POST of a JSON body with more headers below `/api/v1`.
    pub async fn post_with(&self, path: impl AsRef<str>, headers: &[(&str, &str)], body: Value) -> Answer {
        self.json(Method::POST, path.as_ref(), headers, &body).await
    }

    /// PATCH with a JSON body below `/api/v1`.
    pub async fn patch(&self, path: impl AsRef<str>, body: Value) -> Answer {
        self.json(Method::PATCH, path.as_ref(), &[], &body).await
    }

    /// PUT of a JSON body below `/api/v1`.
    pub async fn put(&self, path: impl AsRef<str>, body: Value) -> Answer {
        self.json(Method::PUT, path.as_ref(), &[], &body).await
    }

    async fn json(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let mut all = vec![(CONTENT_TYPE.as_str(), "application/json")];
        all.extend_from_slice(headers);
        self.send(method, &v1(path), &all, body.to_string().into()).await
    }

    /// Any request; the path is from the root.
    ///
    /// # Panics
    /// When there is no answer.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Answer {
        let answer = self.try_send(method, path, headers, body).await;
        answer.unwrap_or_else(|error| panic!("no answer to {path}: {error}"))
    }

    /// Any request; the path is from the root.
    ///
    /// # Errors
    /// When there is no answer.
    ///
    /// # Panics
    /// When path or headers cannot be sent.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::io::Result<Answer> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("a request that can be sent");
        self.client.send(request).await
    }

    /// Creates an empty workflow and gives its id.
    pub async fn workflow(&self, name: &str) -> String {
        let created = self.post("/workflows", json!({ "name": name })).await.data(201);
        text(&created["id"])
    }

    /// Applies operations that must all succeed, and gives the result.
    ///
    /// # Panics
    /// When one is refused.
    pub async fn edit(&self, workflow: &str, operations: Value) -> Value {
        let draft = self.get(format!("/workflows/{workflow}")).await.data(200);
        let body = json!({ "ops": operations, "expectedUpdatedAt": draft["updatedAt"] });
        let result = self
            .post(format!("/workflows/{workflow}/ops"), body)
            .await
            .data(200);
        assert_eq!(result["errors"], json!([]), "{result}");
        result
    }

    /// Creates a workflow with these operations applied, and gives its id.
    pub async fn workflow_with(&self, name: &str, operations: Value) -> String {
        let workflow = self.workflow(name).await;
        self.edit(&workflow, operations).await;
        workflow
    }

    /// Deploys a workflow and activates it.
    pub async fn go_live(&self, workflow: &str) {
        let _ = self
            .post(format!("/workflows/{workflow}/deploy"), json!({}))
            .await
            .data(200);
        let active = self
            .patch(format!("/workflows/{workflow}"), json!({ "active": true }))
            .await;
        assert_eq!(active.data(200)["active"], true);
    }

    /// Mints the webhook of a node and gives its id.
    pub async fn mint(&self, workflow: &str, node: i64) -> String {
        let body = json!({ "nodeId": node.to_string() });
        let minted = self
            .post(format!("/workflows/{workflow}/webhook"), body)
            .await
            .data(200);
        text(&minted["webhookId"])
    }

    /// Calls a webhook with a JSON body, as a stranger would.
    pub async fn call_hook(&self, webhook: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut all = vec![(CONTENT_TYPE.as_str(), "application/json")];
        all.extend_from_slice(headers);
        let stranger = self.with_key(None);
        let path = format!("/hooks/{webhook}");
        stranger
            .send(Method::POST, &path, &all, body.to_string().into())
            .await
    }

    /// Starts a run of a draft and gives its id. A server that says that it cannot now, as one does that has had no
    /// processor for the time of a lease, is asked again.
    pub async fn start(&self, workflow: &str, body: Value) -> String {
        let path = format!("/workflows/{workflow}/runs");
        let began = Instant::now();
        let mut started = self.post(&path, body.clone()).await;
        while started.status == 503 && began.elapsed() < PATIENCE {
            let seconds = started.header("retry-after").parse().unwrap_or(1);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            started = self.post(&path, body.clone()).await;
        }
        text(&started.data(201)["runId"])
    }

    /// The report of a run once it has ended.
    pub async fn ended(&self, run: &str) -> Value {
        self.reached(run, &["succeeded", "failed", "cancelled"]).await
    }

    /// The report of a run once it has one of these statuses.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn reached(&self, run: &str, statuses: &[&str]) -> Value {
        let started = Instant::now();
        // Not by `until`: a future that holds an async closure is not `Send` for the compiler.
        loop {
            let report = self.get(format!("/runs/{run}")).await.data(200);
            if statuses.iter().any(|status| report["status"] == *status) {
                return report;
            }
            let expected = statuses.join(" or ");
            assert!(
                started.elapsed() <= PATIENCE,
                "the run is not yet {expected}: {report}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// All rows of a paginated list, page by page.
    pub async fn all_pages(&self, path: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let next = cursor.map(|cursor| format!("{separator}cursor={cursor}"));
            let (page, next) = self
                .get(format!("{path}{}", next.unwrap_or_default()))
                .await
                .page();
            rows.extend(page);
            match next {
                None => return rows,
                next => cursor = next,
            }
        }
    }
}

fn v1(path: &str) -> String {
    format!("/api/v1{path}")
}

/// A text as part of a path or a query.
#[must_use]
pub fn percent_encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The text of a JSON string.
///
/// # Panics
/// When it is none.
#[must_use]
#[track_caller]
pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not text: {value}"))
        .to_owned()
}

/// Asks until there is something, but not for ever.
pub async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return Some(found);
        }
        if started.elapsed() > PATIENCE {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs futures at the same time and gives what they gave, in no order.
pub async fn together<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    futures.into_iter().collect::<JoinSet<_>>().join_all().await
}
