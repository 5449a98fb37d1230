//! Credentials whose token is fetched: consent on the page, renewal, and what a service may do to both.

mod cluster;
mod consent;
mod renewal;

use http::Method;
use serde_json::{Value, json};
use test_support::{Admin, Answer, Api, OAuthServer, graphs, text};

use crate::catalog;
use crate::world::World;

/// The service's client secret and key, which tests that look for them make up anew.
const SECRET: &str = "client-secret-1";
const KEY: &str = "session-key-1";

/// The manifest of a service.
pub(crate) fn manifest(service: &OAuthServer, pkce: &str) -> String {
    let text = include_str!("notes.yaml");
    text.replace("BASE_URL", &service.url("")).replace("PKCE", pkce)
}

/// A service whose app the case's organization has.
async fn service(world: &World) -> OAuthServer {
    let service = OAuthServer::start(SECRET, KEY).await;
    bring(&world.admin, Some(&world.organization), &service, "s256").await;
    service
}

pub(crate) async fn bring(admin: &Admin, organization: Option<&str>, service: &OAuthServer, pkce: &str) {
    let added = catalog::add(admin, organization, &manifest(service, pkce)).await;
    added.unwrap();
}

/// What creating a credential of the service answers.
pub(crate) async fn create(api: &Api, connection: &str, data: Value) -> Value {
    let body =
        json!({ "appId": "cloud_notes", "connectionId": connection, "name": "Mine <b>", "data": data });
    api.post("/credentials", body).await.data(200)
}

/// The client as a person types it.
fn client() -> Value {
    json!({ "clientId": test_support::CLIENT_ID, "clientSecret": SECRET })
}

/// The path of a link.
pub(crate) fn path(url: &str) -> String {
    let place = url.find("/connect/").unwrap_or_else(|| panic!("no link: {url}"));
    url[place..].to_owned()
}

/// A browser without scripts, as far as the pages need one: it keeps cookies.
pub(crate) struct Visitor {
    api: Api,
    cookies: Vec<String>,
}

impl Visitor {
    pub(crate) fn new(api: &Api) -> Self {
        Self {
            api: api.with_key(None),
            cookies: Vec::new(),
        }
    }

    pub(crate) async fn open(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    pub(crate) async fn submit(&mut self, path: &str, body: &str) -> Answer {
        self.send(Method::POST, path, body).await
    }

    async fn send(&mut self, method: Method, path: &str, body: &str) -> Answer {
        let cookies = self.cookies.join("; ");
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", cookies.as_str()),
        ];
        let answer = self
            .api
            .send(method, path, &headers, body.to_owned().into())
            .await;
        let set = answer.headers.get_all("set-cookie").iter();
        let pairs = set.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        self.cookies.extend(pairs);
        answer
    }

    /// Submits the form and gives where its answer leads.
    pub(crate) async fn sent_to(&mut self, path: &str, body: &str) -> String {
        let answer = self.submit(path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        link(&answer)
    }
}

/// The first link of a page.
pub(crate) fn link(answer: &Answer) -> String {
    let html = answer.text();
    let start = html
        .find("href=\"")
        .unwrap_or_else(|| panic!("no link on {html}"))
        + 6;
    let end = start + html[start..].find('"').unwrap();
    html[start..end].replace("&amp;", "&")
}

/// A credential that a person has consented to; gives its id.
pub(crate) async fn consented(api: &Api, service: &OAuthServer, client: Value) -> String {
    let made = create(api, "account", client).await;
    assert_eq!(made["status"], "credential_required", "{made}");
    let mut visitor = Visitor::new(api);
    let there = visitor.sent_to(&path(&text(&made["connect_url"])), "").await;
    let done = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(done.status, 200, "{}", done.text());
    text(&made["credentialId"])
}

/// The credential with this id, as the list shows it.
pub(crate) async fn status(api: &Api, credential: &str) -> String {
    let rows = api.all_pages("/credentials").await;
    let found = rows.into_iter().find(|row| row["id"] == credential);
    text(&found.unwrap()["status"])
}

/// A trigger (1) and a note (2) that is got with this credential.
pub(crate) fn flow(note: &str, credential: &str) -> Value {
    json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "note", "appId": "cloud_notes", "moduleSlug": "get_note",
          "after": "start", "params": { "id": note }, "credentialId": credential },
    ])
}

/// The end of the node that gets a note with this credential.
pub(crate) async fn got(api: &Api, note: &str, credential: &str) -> Value {
    let workflow = api.workflow_with("Notes", flow(note, credential)).await;
    let run = api.start(&workflow, json!({})).await;
    api.ended(&run).await["nodes"][1].clone()
}

/// The end of the node that sends a plain request with this credential.
pub(crate) async fn requested(api: &Api, url: &str, credential: &str) -> Value {
    let params = json!({ "url": url, "credentialId": credential });
    let operations = graphs::chain(&[("manual_trigger", json!({})), ("http_request", params)]);
    let workflow = api.workflow_with("Request", operations).await;
    let run = api.start(&workflow, json!({})).await;
    api.ended(&run).await["nodes"][1].clone()
}

/// The latest activity of a credential.
pub(crate) async fn last_activity(api: &Api, credential: &str) -> Value {
    let feed = api
        .get(format!("/activity?targetId={credential}"))
        .await
        .data(200);
    feed["events"][0].clone()
}
