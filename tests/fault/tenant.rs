//! An organization, its workflows, and what calls them.

use std::net::SocketAddr;

use contract::v1::UpdateOrganizationRequest;
use core_service::store::{DatabaseUrl, Store};
use serde_json::{Value, json};
use test_support::{Api, Server, at_most, graphs, text, workload};

use crate::ledger::{Hook, Ledger, Then};
use crate::reckoning::Reckoning;
use crate::sink::Sink;

/// More credits than all rounds can use.
const CREDITS: i64 = 1_000_000_000;
/// How long the waiting workflow waits; longer than it takes to kill a server.
const WAIT_SECONDS: f64 = 0.5;
/// Longer than runs that wait stay in memory.
const SLEEP_SECONDS: f64 = 5.5;

/// What a workflow does after it was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Computes, in one step.
    Quick,
    /// The same, and is started again.
    Again,
    /// Computes, waits a moment, computes.
    Waiting,
    /// The same, but leaves memory meanwhile.
    Sleeping,
    /// Calls the sink, twice.
    Calling,
    /// Asks a person.
    Asking,
    /// Writes a row.
    Storing,
    /// Calls another workflow.
    Parent,
    /// Fails, which another workflow is told of.
    Failing,
}

/// A workflow whose runs are counted.
pub(crate) struct Flow {
    pub(crate) workflow: String,
    /// Its webhook; none of what runs for the runs of another.
    pub(crate) hook: Option<Hook>,
    /// The flow whose runs it runs for: one for each.
    pub(crate) cause: Option<usize>,
    /// How its runs end.
    pub(crate) status: &'static str,
    pub(crate) nodes: i64,
}

pub(crate) struct Tenant {
    database: DatabaseUrl,
    /// Its owner, through the first server.
    pub(crate) api: Api,
    pub(crate) organization_id: String,
    pub(crate) sink: Sink,
}

/// Fresh workflows, and the ledger of their calls.
pub(crate) struct Round<'a> {
    pub(crate) tenant: &'a Tenant,
    pub(crate) flows: Vec<Flow>,
    pub(crate) ledger: Ledger,
}

impl Tenant {
    /// Makes an organization whose credits are counted.
    pub(crate) async fn open(server: &Server) -> Self {
        Self::open_with(server, Sink::start().await).await
    }

    /// As `open`, with a sink of its own.
    pub(crate) async fn open_with(server: &Server, sink: Sink) -> Self {
        let database = match server.database_url() {
            Some(url) => url.parse().unwrap(),
            None => DatabaseUrl::Sqlite(server.data_dir().join("switchyard.db")),
        };
        let admin = server.admin().await;
        let made = admin.organization("Faulty", None).await;
        let change = UpdateOrganizationRequest {
            organization_id: made.organization_id.clone(),
            credits: Some(at_most(CREDITS)),
            ..Default::default()
        };
        admin.change(change).await;
        Self {
            database,
            api: server.api(Some(&made.api_key)),
            organization_id: made.organization_id,
            sink,
        }
    }

    /// Makes workflows of these kinds and lets them go live.
    pub(crate) async fn round(&self, kinds: &[Kind]) -> Round<'_> {
        let mut flows = Vec::new();
        for kind in kinds {
            self.add(*kind, &mut flows).await;
        }
        let hooks = flows.iter().filter_map(|flow: &Flow| flow.hook.clone());
        Round {
            tenant: self,
            ledger: Ledger::new(self.api.key(), hooks.collect()),
            flows,
        }
    }

    async fn add(&self, kind: Kind, flows: &mut Vec<Flow>) {
        let hook = ("webhook_trigger", json!({}));
        let set = ("set", json!({ "fields": { "done": true } }));
        match kind {
            Kind::Quick => self.called(flows, workload::graph(), 4, Then::Leave).await,
            Kind::Again => self.called(flows, workload::graph(), 4, Then::Rerun).await,
            Kind::Waiting => {
                let graph = workload::graph_with_wait(WAIT_SECONDS);
                self.called(flows, graph, 6, Then::Leave).await;
            }
            Kind::Sleeping => {
                let graph = workload::graph_with_wait(SLEEP_SECONDS);
                self.called(flows, graph, 6, Then::Leave).await;
            }
            Kind::Calling => {
                let call = |node| {
                    let params = json!({ "method": "POST", "url": self.sink.url(node) });
                    ("http_request", params)
                };
                let graph = graphs::chain(&[hook, call(2), set.clone(), call(4), set]);
                self.called(flows, graph, 5, Then::Leave).await;
            }
            Kind::Asking => {
                let fields = json!([{ "name": "value", "type": "text", "required": true }]);
                let ask = ("human_input", json!({ "title": "Well?", "fields": fields }));
                let graph = graphs::chain(&[hook, ask, set]);
                self.called(flows, graph, 3, Then::Respond).await;
            }
            Kind::Storing => {
                let columns = json!([{ "name": "run", "type": "text" }]);
                let table = json!({ "name": "Runs", "columns": columns });
                let table = self.api.post("/databases", table).await.data(201);
                let insert = json!({ "databaseId": table["id"], "row": { "run": "{{$run.id}}" } });
                let graph = graphs::chain(&[hook, ("database_insert", insert), set]);
                self.called(flows, graph, 3, Then::Leave).await;
            }
            Kind::Parent => {
                let callee = graphs::chain(&[("workflow_trigger", json!({})), set.clone()]);
                let callee = self.live("Callee", callee).await;
                let call = json!({ "workflowId": callee, "input": {} });
                let graph = graphs::chain(&[hook, ("run_workflow", call), set]);
                self.called(flows, graph, 3, Then::Leave).await;
                flows.push(caused(callee, flows.len() - 1));
            }
            Kind::Failing => {
                let stop = json!({ "status": "failed", "message": "no" });
                let graph = graphs::chain(&[hook, ("stop", stop)]);
                self.called(flows, graph, 2, Then::Leave).await;
                let place = flows.len() - 1;
                flows[place].status = "failed";
                let trigger = json!({ "workflowIds": [flows[place].workflow] });
                let reacting = graphs::chain(&[("error_trigger", trigger), set]);
                flows.push(caused(self.live("Reacting", reacting).await, place));
            }
        }
    }

    async fn called(&self, flows: &mut Vec<Flow>, graph: Value, nodes: i64, then: Then) {
        let workflow = self.live("Called", graph).await;
        let id = self.api.mint(&workflow, 1).await;
        flows.push(Flow {
            workflow,
            hook: Some(Hook { id, then }),
            cause: None,
            status: "succeeded",
            nodes,
        });
    }

    /// A workflow that has gone live.
    pub(crate) async fn live(&self, name: &str, graph: Value) -> String {
        let workflow = self.api.workflow_with(name, graph).await;
        self.api.go_live(&workflow).await;
        workflow
    }

    /// What all runs of the organization have cost, as they say.
    pub(crate) async fn credits_used(&self, api: &Api) -> i64 {
        let mut used = 0.0;
        for workflow in api.all_pages("/workflows?limit=200").await {
            let path = format!("/runs?workflowId={}&limit=200", text(&workflow["id"]));
            let runs = api.all_pages(&path).await;
            let of_runs = runs.iter().filter_map(|run| run["creditsUsed"].as_f64());
            used += of_runs.sum::<f64>();
        }
        used as i64
    }

    /// How many credits the organization has too few or too many, those that nothing holds any more included.
    pub(crate) async fn credit_drift(&self, api: &Api) -> i64 {
        let used = self.credits_used(api).await;
        let store = Store::open(&self.database).await.unwrap();
        let organization = store.organization(&self.organization_id).await.unwrap();
        store.close().await;
        let left = organization.credits.unwrap_or_default();
        (CREDITS - used - left).abs() + organization.credits_held
    }
}

/// A flow with two nodes that runs for each run of another.
fn caused(workflow: String, cause: usize) -> Flow {
    Flow {
        workflow,
        hook: None,
        cause: Some(cause),
        status: "succeeded",
        nodes: 2,
    }
}

impl Round<'_> {
    /// Sends every call once more, and counts what went wrong; nothing may have.
    pub(crate) async fn comes_out_even(&self, doors: &[SocketAddr], api: &Api) {
        self.ledger.send_again(CONNECTIONS, doors).await;
        Reckoning::of(self, api).await.assert_even();
    }
}

/// Connections at the same time.
pub(crate) const CONNECTIONS: usize = 32;
