//! What is changed on one node holds on another: keys, plans, webhooks, deployments, variables. Each test says after how
//! long; a second is promised.

use std::time::Instant;

use contract::v1::SetPlanRequest;
use serde_json::{Value, json};
use test_support::{Api, ServerOptions, graphs, postgres_or_skip, say_loudly, until};

use crate::cluster::{self, Cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_one_node_holds_on_another() {
    let Some(database) = postgres_or_skip("changes on two nodes").await else {
        return;
    };
    let node = || ServerOptions {
        database_url: Some(database.url.clone()),
        ..cluster::options(5_000)
    };
    let cluster = Cluster::of(vec![node(), node()]).await;
    let pair = Pair::of(&cluster).await;
    pair.a_deployment_reaches_the_webhook().await;
    pair.a_variable_is_the_new_one().await;
    pair.a_webhook_is_disabled().await;
    pair.a_plan_is_changed().await;
    pair.a_key_is_revoked().await;
    drop(cluster);
    database.drop_now().await.unwrap();
}

const PLAN: &str = "changing";

/// Two nodes as one organization sees them.
struct Pair<'a> {
    cluster: &'a Cluster,
    /// Where things are changed.
    here: Api,
    /// Where they have to hold.
    there: Api,
    organization_id: String,
    owner_id: String,
}

impl<'a> Pair<'a> {
    async fn of(cluster: &'a Cluster) -> Self {
        let admin = cluster.nodes[0].admin().await;
        admin.plan(plan(true)).await;
        let made = admin.organization("Changing", Some(PLAN)).await;
        Self {
            cluster,
            here: cluster.nodes[0].api(Some(&made.api_key)),
            there: cluster.nodes[1].api(Some(&made.api_key)),
            organization_id: made.organization_id,
            owner_id: made.owner_user_id,
        }
    }

    /// A workflow that answers its webhook with a text, deployed; and the webhook.
    async fn answering(&self, answer: &str) -> (String, String) {
        let graph = graphs::chain(&[
            ("webhook_trigger", json!({ "responseMode": "last_node" })),
            ("set", json!({ "fields": { "answer": answer } })),
        ]);
        let workflow = self.here.workflow_with("Answering", graph).await;
        self.here.go_live(&workflow).await;
        let hook = self.here.mint(&workflow, 1).await;
        (workflow, hook)
    }

    async fn answer_there(&self, hook: &str) -> Value {
        let called = self.there.call_hook(hook, &[], json!({})).await;
        if called.status == 200 {
            called.json()["answer"].clone()
        } else {
            json!(called.status)
        }
    }

    async fn a_deployment_reaches_the_webhook(&self) {
        let (workflow, hook) = self.answering("old").await;
        assert_eq!(self.answer_there(&hook).await, "old");
        let params = json!({ "fields": { "answer": "new" } });
        let edit = json!([{ "op": "update_params", "nodeId": 2, "params": params }]);
        self.here.edit(&workflow, edit).await;
        let deployed = self
            .here
            .post(format!("/workflows/{workflow}/deploy"), json!({}))
            .await;
        let _deployment = deployed.data(200);
        holds("a deployment", async || self.answer_there(&hook).await == "new").await;
    }

    async fn a_variable_is_the_new_one(&self) {
        self.set_variable("old").await;
        let (_, hook) = self.answering("{{$vars.WORD}}").await;
        assert_eq!(self.answer_there(&hook).await, "old");
        self.set_variable("new").await;
        holds("a variable", async || self.answer_there(&hook).await == "new").await;
    }

    async fn set_variable(&self, value: &str) {
        let set = self.here.put("/variables/WORD", json!({ "value": value })).await;
        assert!(set.status < 300, "{}", set.text());
    }

    async fn a_webhook_is_disabled(&self) {
        let (_, hook) = self.answering("well").await;
        assert_eq!(self.answer_there(&hook).await, "well");
        let disabled = self
            .here
            .patch(format!("/webhooks/{hook}"), json!({ "enabled": false }))
            .await;
        let _webhook = disabled.data(200);
        holds("a webhook's end", async || self.answer_there(&hook).await == 409).await;
    }

    async fn a_plan_is_changed(&self) {
        let _list = self.there.get("/workflows").await.body(200);
        let admin = self.cluster.nodes[0].admin().await;
        admin.plan(plan(false)).await;
        holds("a plan", async || {
            self.there.get("/workflows").await.status == 403
        })
        .await;
        admin.plan(plan(true)).await;
        holds("a plan", async || {
            self.there.get("/workflows").await.status == 200
        })
        .await;
    }

    async fn a_key_is_revoked(&self) {
        let admin = self.cluster.nodes[0].admin().await;
        let key = admin.key(&self.organization_id, &self.owner_id, &[], None).await;
        let there = self.there.with_key(Some(&key.api_key));
        let _list = there.get("/workflows").await.body(200);
        let revoke = contract::v1::RevokeApiKeyRequest { id: key.id };
        admin.client.clone().revoke_api_key(revoke).await.unwrap();
        holds("a key's end", async || {
            there.get("/workflows").await.status == 401
        })
        .await;
    }
}

fn plan(api_access: bool) -> SetPlanRequest {
    SetPlanRequest {
        id: PLAN.to_owned(),
        api_access: Some(api_access),
        ..Default::default()
    }
}

/// Waits until something holds, and says how long that took.
async fn holds(what: &str, mut ask: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    let held = until(async || ask().await.then_some(())).await;
    assert!(held.is_some(), "{what} does not hold on the other node");
    say_loudly(&format!(
        "{what} held on the other node after {} ms",
        began.elapsed().as_millis()
    ));
}
