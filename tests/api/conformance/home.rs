//! An organization of examples, and how one of everything is made in it.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value, json};
use test_support::{Api, Asked, Target, graphs, text, until};
use tokio::sync::OnceCell;

use crate::catalog;
use crate::world::World;

/// An organization whose things are made on demand, each call another one.
pub(super) struct Home<'a> {
    world: &'a World,
    pub api: Api,
    pub organization: String,
    pub owner: String,
    pub team: String,
    number: AtomicU32,
    /// The service of its own app, once that is there.
    shelves: OnceCell<Target>,
}

/// An app whose service knows more books than choices are given.
const SHELVES: &str = "
manifest: 1
id: shelves
name: Shelves
baseUrl: BASE_URL
connections: [{ id: key, label: Key, type: bearer }]
rpcs:
  - id: books
    label: Books
    dependsOn: [shelf]
    request: { path: '/{{parameters.shelf}}' }
    options: { items: '{{response.body}}', value: '{{$item}}', label: 'Book {{$item}}' }
";

impl<'a> Home<'a> {
    /// A new organization without limits.
    pub async fn found(world: &'a World) -> Self {
        Self::found_on(world, None).await
    }

    /// A new organization on a plan.
    pub async fn found_on(world: &'a World, plan: Option<&str>) -> Self {
        let made = world.admin.organization("Home", plan).await;
        Self {
            world,
            api: world.server.api(Some(&made.api_key)),
            organization: made.organization_id,
            owner: made.owner_user_id,
            team: made.team_id,
            number: AtomicU32::new(0),
            shelves: OnceCell::new(),
        }
    }

    /// A number that was not given before.
    pub fn number(&self) -> u32 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    async fn created(&self, path: &str, body: Value) -> String {
        text(&self.api.post(path, body).await.data(201)["id"])
    }

    /// A workflow with a webhook trigger (1), neither active nor deployed.
    pub async fn workflow(&self) -> String {
        self.api.workflow_with("Orders", graphs::order_flow()).await
    }

    /// A workflow that is active and deployed, and its webhook.
    pub async fn live_workflow(&self) -> (String, String) {
        let workflow = self.workflow().await;
        self.api.go_live(&workflow).await;
        let webhook = self.api.mint(&workflow, 1).await;
        (workflow, webhook)
    }

    /// A workflow that has all that a workflow can have.
    pub async fn full_workflow(&self) -> String {
        let (workflow, _) = self.live_workflow().await;
        let all = json!({
            "description": "of the shop",
            "folderId": self.folder().await,
            "recurrence": { "kind": "interval", "every": 5, "unit": "hours", "timezone": "Europe/Berlin" },
            "executionTimeoutMs": 60_000,
            "active": false,
        });
        let path = format!("/workflows/{workflow}");
        let _ = self.api.patch(&path, all).await.data(200);
        let tags = json!({ "tagIds": [self.tag().await] });
        let _ = self.api.put(format!("{path}/tags"), tags).await.data(200);
        workflow
    }

    /// A workflow to be run by hand: a trigger (1) and a node that makes an output (2).
    pub async fn small_workflow(&self) -> String {
        self.api.workflow_with("Answers", graphs::small_flow()).await
    }

    /// A run that succeeded, and its workflow.
    pub async fn ended_run(&self) -> (String, String) {
        let workflow = self.small_workflow().await;
        let run = self.api.start(&workflow, json!({})).await;
        let _ = self.api.reached(&run, &["succeeded"]).await;
        (workflow, run)
    }

    /// A run whose node 2 failed.
    pub async fn failed_run(&self) -> String {
        let flow = graphs::chain(&[
            ("manual_trigger", json!({})),
            ("set", json!({ "fields": { "double": "{{1.nothing * 2}}" } })),
        ]);
        let workflow = self.api.workflow_with("Fails", flow).await;
        let run = self.api.start(&workflow, json!({})).await;
        let _ = self.api.reached(&run, &["failed"]).await;
        run
    }

    /// A run that waits for an hour.
    pub async fn waiting_run(&self) -> String {
        let workflow = self.api.workflow_with("Waits", graphs::long_wait()).await;
        let run = self.api.start(&workflow, json!({})).await;
        let _ = self.api.reached(&run, &["waiting"]).await;
        run
    }

    /// A run of which node 3 asks a person, for each of its items, and its workflow.
    pub async fn asking_run(&self, items: &[&str]) -> (String, String) {
        let form = json!({
            "title": "Item {{$item}}",
            "fields": [{ "name": "approved", "type": "boolean", "required": true, "label": "Approve?" }],
            "assignees": ["ada@users.test"],
            "timeoutMs": 86_400_000,
        });
        let flow = graphs::chain(&[
            ("manual_trigger", json!({})),
            ("splitter", json!({ "items": items, "concurrency": 2 })),
            ("human_input", form),
            ("aggregator", json!({ "of": 2 })),
        ]);
        let workflow = self.api.workflow_with("Asks", flow).await;
        let run = self.api.start(&workflow, json!({})).await;
        let path = format!("/human-requests?runId={run}");
        let asked = until(async || (self.api.all_pages(&path).await.len() == items.len()).then_some(()));
        asked.await.expect("a request for each item");
        (workflow, run)
    }

    /// A workflow whose node 2 is of an app.
    pub async fn app_workflow(&self) -> String {
        let workflow = self.api.workflow("Asks a service").await;
        let node = |temp_id: &str| json!({ "op": "add_node", "tempId": temp_id });
        let (mut trigger, mut module) = (node("trigger"), node("module"));
        trigger["kind"] = json!("manual_trigger");
        module["appId"] = json!("http");
        module["moduleSlug"] = json!("request");
        module["after"] = json!("trigger");
        // Nobody is there: that is an output too.
        module["params"] = json!({ "url": "http://127.0.0.1:1/" });
        self.api.edit(&workflow, json!([trigger, module])).await;
        workflow
    }

    /// A run that a webhook started.
    pub async fn called_run(&self) -> String {
        let (_, webhook) = self.live_workflow().await;
        let order = json!({ "id": 7, "price": 60, "customer": "Ada" });
        let accepted = self.api.call_hook(&webhook, &[], order).await.data(202);
        let run = text(&accepted["runId"]);
        let _ = self.api.ended(&run).await;
        run
    }

    pub async fn folder(&self) -> String {
        self.created("/folders", json!({ "name": "Shop" })).await
    }

    pub async fn tag(&self) -> String {
        self.created("/tags", json!({ "name": "urgent", "color": "red" }))
            .await
    }

    /// A variable, of the organization.
    pub async fn variable(&self, secret: bool) -> String {
        let path = format!("/variables/NAME_{}", self.number());
        let body = json!({ "value": "a value", "isSecret": secret });
        text(&self.api.put(path, body).await.data(201)["id"])
    }

    /// A credential that is complete.
    pub async fn credential(&self) -> String {
        let token = json!({ "token": "hunter22" });
        let body = json!({ "appId": "http", "connectionId": "bearer", "name": "Mine", "data": token });
        text(&self.api.post("/credentials", body).await.data(200)["credentialId"])
    }

    /// A credential of an app that can be asked for choices, the organization's own.
    pub async fn choosing_credential(&self) -> String {
        self.shelves.get_or_init(async || self.open_shelves().await).await;
        let token = json!({ "token": "hunter22" });
        let body = json!({ "appId": "shelves", "connectionId": "key", "name": "Mine", "data": token });
        text(&self.api.post("/credentials", body).await.data(200)["credentialId"])
    }

    async fn open_shelves(&self) -> Target {
        let service = Target::start(|_: &Asked| {
            let books: Vec<u32> = (0..201).collect();
            let response = Response::builder().header("content-type", "application/json");
            response.body(Bytes::from(json!(books).to_string())).unwrap()
        })
        .await;
        let manifest = SHELVES.replace("BASE_URL", &service.url(""));
        let added = catalog::add(&self.world.admin, Some(&self.organization), &manifest).await;
        assert!(added.is_ok(), "{added:?}");
        service
    }

    /// A table of one row.
    pub async fn table(&self) -> String {
        let columns = json!([
            { "name": "sku", "type": "text", "uniqueKey": true },
            { "name": "price", "type": "number" },
        ]);
        let body = json!({ "name": "Products", "description": "What we sell", "columns": columns });
        let table = self.created("/databases", body).await;
        self.insert_row(&table, json!({ "sku": "a", "price": 1.5 })).await;
        table
    }

    /// Only nodes write rows, and what they write is not of interest here.
    pub async fn insert_row(&self, table: &str, row: Value) {
        let rows: Vec<Map<String, Value>> = row.as_object().cloned().into_iter().collect();
        let store = self.world.store().await;
        let _ = store.insert_rows(&self.organization, table, &rows).await.unwrap();
    }

    pub async fn structure(&self) -> String {
        let fields = json!([{ "name": "email", "type": "email", "required": true }]);
        self.created("/structures", json!({ "name": "Customer", "fields": fields }))
            .await
    }

    pub async fn function(&self) -> String {
        let body = json!({ "name": format!("answer{}", self.number()), "code": "return 42" });
        self.created("/functions", body).await
    }

    pub async fn invitation(&self) -> String {
        let email = format!("new{}@users.test", self.number());
        self.created("/invitations", json!({ "email": email, "role": "member" }))
            .await
    }
}
