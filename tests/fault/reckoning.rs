//! What went wrong, counted: the ledger and the sink against what the service says of its runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use test_support::{Api, text, together, until};

use crate::ledger::{Call, Then};
use crate::tenant::{Flow, Round};

/// All of it has to be nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reckoning {
    /// Calls and answers that were acknowledged, and of which nothing is to be found.
    pub(crate) lost_acknowledgements: usize,
    /// Runs beyond the one of each call, and nodes beyond the one execution that is recorded and paid.
    pub(crate) duplicate_runs: usize,
    /// Runs that have not ended as they should.
    pub(crate) stuck_runs: usize,
    /// Credits that the organization has too few or too many.
    pub(crate) credit_drift: i64,
    /// Nodes that called the sink under several keys.
    pub(crate) changed_keys: usize,
    /// Answers to callers that are neither an acknowledgement nor a refusal that says when to come again.
    pub(crate) wrong_answers: usize,
    /// What was counted, one by one.
    details: Vec<String>,
}

impl Reckoning {
    pub(crate) async fn of(round: &Round<'_>, api: &Api) -> Self {
        let mut reckoning = Self::default();
        let calls = round.ledger.calls();
        reckoning.count_acknowledgements(&calls);
        let mut causes: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, flow) in round.flows.iter().enumerate() {
            let expected = match (&flow.hook, flow.cause) {
                (Some(hook), _) => calls.iter().filter(|call| call.hook == *hook).count(),
                (None, cause) => cause.and_then(|cause| causes.get(&cause).copied()).unwrap_or(0),
            };
            causes.insert(place, expected);
            reckoning.count_runs(api, flow, &calls, expected).await;
        }
        reckoning.credit_drift = round.tenant.credit_drift(api).await;
        let changed = round.tenant.sink.changed_keys();
        reckoning.changed_keys = changed.len();
        reckoning.details.extend(changed);
        let wrong = round.ledger.wrong();
        reckoning.wrong_answers = wrong.len();
        reckoning.details.extend(wrong);
        reckoning
    }

    /// Nothing went wrong.
    #[track_caller]
    pub(crate) fn assert_even(&self) {
        assert_eq!(
            *self,
            Self::default(),
            "something is lost, double, stuck or astray"
        );
    }

    fn count_acknowledgements(&mut self, calls: &[Call]) {
        for call in calls {
            let runs: BTreeSet<&String> = call.acknowledged.iter().collect();
            if runs.len() > 1 {
                self.lost_acknowledgements += 1;
                self.details
                    .push(format!("{} was acknowledged with {runs:?}", call.id));
            }
        }
    }

    async fn count_runs(&mut self, api: &Api, flow: &Flow, calls: &[Call], expected: usize) {
        let runs = all_ended(api, flow, expected).await;
        let existing: BTreeSet<String> = runs.iter().map(|run| text(&run["id"])).collect();
        let unended = runs.iter().filter(|run| run["status"] != flow.status);
        let unended: Vec<String> = unended
            .map(|run| format!("{} is {}", run["id"], run["status"]))
            .collect();
        self.stuck_runs += unended.len() + expected.saturating_sub(runs.len());
        self.duplicate_runs += runs.len().saturating_sub(expected);
        self.details.extend(unended);
        if runs.len() != expected {
            self.details.push(format!(
                "{} runs for {expected} calls of {}",
                runs.len(),
                flow.workflow
            ));
        }
        let of_flow: Vec<&Call> = calls
            .iter()
            .filter(|call| flow.hook.as_ref() == Some(&call.hook))
            .collect();
        for call in &of_flow {
            let is_lost = |run: &&String| !existing.contains(*run);
            if let Some(run) = call.acknowledged.iter().find(is_lost) {
                self.lost_acknowledgements += 1;
                self.details.push(format!("{}: there is no run {run}", call.id));
            }
        }
        self.check_reports(api, flow, &of_flow, existing).await;
    }

    /// Each report shows each node once, at its first attempt, with the answer that was given.
    async fn check_reports(&mut self, api: &Api, flow: &Flow, calls: &[&Call], runs: BTreeSet<String>) {
        let read = |run: String| {
            let api = api.clone();
            async move { api.get(format!("/runs/{run}")).await.data(200) }
        };
        let reports = together(runs.into_iter().map(read).collect::<Vec<_>>()).await;
        let ids: Vec<Value> = (1..=flow.nodes).map(Value::from).collect();
        let mut costs = BTreeSet::new();
        for report in &reports {
            let nodes = report["nodes"].as_array().cloned().unwrap_or_default();
            let seen: Vec<Value> = nodes.iter().map(|node| node["nodeId"].clone()).collect();
            let again = nodes.iter().any(|node| node["attempt"] != 1);
            if seen != ids || again {
                self.duplicate_runs += 1;
                self.details
                    .push(format!("not each node once: {seen:?} in {report}"));
            }
            costs.insert(report["creditsUsed"].to_string());
        }
        if costs.len() > 1 {
            self.duplicate_runs += 1;
            self.details.push(format!("runs of one workflow cost {costs:?}"));
        }
        for call in calls {
            let report = reports
                .iter()
                .find(|report| call.acknowledged.contains(&text(&report["id"])));
            let Some(report) = report else { continue };
            let is_kept = match call.hook.then {
                Then::Leave => report["attemptNumber"] == 1,
                Then::Rerun => report["attemptNumber"] == 2,
                Then::Respond => report["nodes"][1]["output"]["response"] == json!({ "value": call.id }),
            };
            if !is_kept {
                self.lost_acknowledgements += 1;
                self.details
                    .push(format!("what {} asked for is not in {report}", call.id));
            }
        }
    }
}

/// The runs of a flow, when there are as many as expected and all have ended as they should; or after long enough.
async fn all_ended(api: &Api, flow: &Flow, expected: usize) -> Vec<Value> {
    let path = format!("/runs?workflowId={}&limit=200", flow.workflow);
    let mut runs = Vec::new();
    let _counted = until(async || {
        runs = api.all_pages(&path).await;
        let all = runs.iter().all(|run| run["status"] == flow.status);
        (all && runs.len() >= expected).then_some(())
    })
    .await;
    runs
}
