//! Apps with a driver, against real servers: what their modules do, what their values become, and how they fail.
//!
//! Each server is a process of the test's own. Which database Switchyard itself uses makes no difference to most of this, so
//! only what is cheap runs on both.

mod burst;
mod call;
mod example;
mod guard;
mod imap;
mod mysql;
mod postgresql;
mod redis;
mod s3;
mod sftp;
mod smtp;

use serde_json::{Value, json};
use test_support::{text, until};

use crate::world::World;

/// A credential of an app, and what is done with it.
pub(crate) struct Connected<'a> {
    world: &'a World,
    app: &'static str,
    pub(crate) credential: String,
}

impl<'a> Connected<'a> {
    /// Makes a credential of these values.
    pub(crate) async fn new(world: &'a World, app: &'static str, data: Value) -> Self {
        let body = json!({ "appId": app, "connectionId": "server", "name": "Mine", "data": data });
        let made = world.api.post("/credentials", body).await.data(200);
        assert_eq!(made["status"], "active", "{made}");
        Self {
            world,
            app,
            credential: text(&made["credentialId"]),
        }
    }

    /// What verifying says.
    pub(crate) async fn verified(&self) -> Value {
        let path = format!("/credentials/{}/verify", self.credential);
        self.world.api.post(path, json!({})).await.data(200)
    }

    /// A workflow (manual trigger, then this module), deployed.
    pub(crate) async fn workflow(&self, module: &str, params: Value, config: Value) -> String {
        let operations = json!([
            { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "call", "appId": self.app, "moduleSlug": module, "after": "start",
              "params": params, "config": config, "credentialId": self.credential },
        ]);
        let workflow = self.world.api.workflow_with(module, operations).await;
        self.world.api.go_live(&workflow).await;
        workflow
    }

    /// Starts a run of a module, with this as what the trigger before it gave.
    pub(crate) async fn started(&self, module: &str, params: Value, input: Value) -> String {
        let config = json!({ "retry": { "maxAttempts": 1 } });
        let workflow = self.workflow(module, params, config).await;
        let body = json!({ "nodeId": "2", "upstreamOutputs": { "1": input } });
        self.world.api.start(&workflow, body).await
    }

    /// What a run of a module records of its node: the output, or the error.
    pub(crate) async fn ran(&self, module: &str, params: Value, input: Value) -> Value {
        let run = self.started(module, params, input).await;
        self.recorded(&run).await
    }

    /// What a run has recorded of its second node.
    pub(crate) async fn recorded(&self, run: &str) -> Value {
        let report = self.world.api.ended(run).await;
        let nodes = report["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["nodeId"] == 2).unwrap();
        match report["status"] == "succeeded" {
            true => node["output"].clone(),
            false => json!({ "error": node["error"] }),
        }
    }

    /// The output of a module.
    pub(crate) async fn output(&self, module: &str, params: Value) -> Value {
        let output = self.ran(module, params, json!({})).await;
        assert!(output.get("error").is_none(), "{module}: {output}");
        output
    }

    /// The things that a search finds.
    pub(crate) async fn found(&self, module: &str, params: Value) -> Vec<Value> {
        let operations = json!([
            { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "call", "appId": self.app, "moduleSlug": module, "after": "start",
              "params": params, "credentialId": self.credential },
            { "op": "add_node", "tempId": "each", "kind": "set", "after": "call", "params": { "fields": { "row": "{{$item}}" } } },
            { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "each", "params": { "of": 2 } },
        ]);
        let workflow = self.world.api.workflow_with(module, operations).await;
        let run = self.world.api.start(&workflow, json!({})).await;
        let report = self.world.api.ended(&run).await;
        assert_eq!(report["status"], "succeeded", "{report}");
        let nodes = report["nodes"].as_array().unwrap();
        let all = nodes.iter().find(|node| node["nodeId"] == 4).unwrap();
        let items = all["output"]["items"].as_array().unwrap().iter();
        items.map(|item| item["row"].clone()).collect()
    }

    /// The code and the sentence of a module's failure.
    pub(crate) async fn failure(&self, module: &str, params: Value) -> (String, String) {
        let output = self.ran(module, params, json!({})).await;
        let error = &output["error"];
        assert!(error.is_object(), "{module} did not fail: {output}");
        (text(&error["code"]), text(&error["message"]))
    }

    /// The choices of a field.
    pub(crate) async fn choices(&self, rpc: &str, params: Value) -> Vec<String> {
        let body =
            json!({ "appId": self.app, "rpcId": rpc, "credentialId": self.credential, "params": params });
        let found = self
            .world
            .api
            .post("/credentials/dynamic-options", body)
            .await
            .data(200);
        let items = found["items"].as_array().unwrap();
        items.iter().map(|item| text(&item["label"])).collect()
    }

    /// What runs of a trigger were given, oldest first, once there are so many; `add` brings what is new once it asks.
    pub(crate) async fn given(&self, trigger: &str, params: Value, add: impl AsyncFn(usize)) -> Vec<Value> {
        let operations = json!([
            { "op": "add_node", "tempId": "new", "appId": self.app, "moduleSlug": trigger, "params": params,
              "credentialId": self.credential },
            { "op": "add_node", "tempId": "show", "kind": "set", "after": "new", "params": { "fields": { "row": "{{$node(1)}}" } } },
        ]);
        let workflow = self.world.api.workflow_with(trigger, operations).await;
        self.world.api.go_live(&workflow).await;
        let path = format!("/runs?workflowId={workflow}&limit=200");
        // What is there when it begins starts nothing, so rows are added until one has started a run.
        let mut added = 0;
        let first = until(async || {
            add(added).await;
            added += 1;
            let runs = self.world.api.all_pages(&path).await;
            (!runs.is_empty()).then_some(())
        });
        assert!(first.await.is_some(), "no row starts a run");
        let mut seen = Vec::new();
        let mut given = Vec::new();
        for run in self.world.api.all_pages(&path).await {
            let run = text(&run["id"]);
            let report = self.world.api.ended(&run).await;
            assert_eq!(report["trigger"]["kind"], "poll", "{report}");
            seen.push(run);
            given.push(report["nodes"][1]["output"]["row"].clone());
        }
        given.reverse();
        given
    }
}
