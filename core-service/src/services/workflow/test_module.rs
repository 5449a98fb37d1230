//! Trying one app node out: executed once with its current parameters, and nothing is recorded.
//!
//! Templates see the most recent run of the workflow, as `resolve` does, and secrets too, because the node executes;
//! what it says is masked. It is refused where a start would be for a bill, and costs nothing: it is no run.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::scope::WorkflowWrite;
use contract::v1::{self, node_identifier};
use contract::validation::Violation;
use engine::event::NodeKey;
use engine::expression::{EvaluationError, NoCustomFunctions, Root, Scope};
use engine::failure::NodeError;
use engine::graph::{Graph, NATIVE_APP, Node};
use engine::kind::{Behaviour, External, Kinds};
use engine::params::{Completeness, ParamProblem};
use engine::scope::NodeScope;
use serde_json::{Map, Value, json};

use super::resolve::roots;
use super::{Workflows, graph};
use crate::auth::Authorized;
use crate::connectors::Apps;
use crate::error::{Error, Result};
use crate::nodes::{Executed, Execution, Log};
use crate::runtime::{Report, ReportError};
use crate::secret::Hide;
use crate::services::run::start;
use crate::store::Workflow;
use crate::variables::VariableSet;
use crate::{clock, id};

impl Workflows {
    pub(super) async fn test_module(
        &self,
        caller: Authorized<WorkflowWrite>,
        request: v1::TestModuleRequest,
    ) -> Result<v1::TestModuleResponse> {
        let organization_id = caller.organization_id();
        let workflow = self.services.store.workflow(organization_id, &request.id).await?;
        let draft = graph::parse(&workflow.draft.graph)?;
        let node = app_node(&draft, request.node_id.as_ref())?;
        let kinds = self.services.kinds(organization_id).await?;
        let module = module(node, &kinds)?;
        start::check_billing(caller.organization())?;
        let report = self.latest_run(organization_id, &request.id).await?;
        let variables = self.services.variables.of_workflow(organization_id, &request.id);
        let variables = variables.await.map_err(Error::from)?;
        // What templates give is computed before anything is waited for.
        let wanted = module.request(&Trial::new(&draft, node, &workflow, report.as_ref(), &variables));
        let result = match wanted {
            Ok(wanted) => {
                let hide = hide(Arc::clone(&variables));
                self.execute(&workflow, node, wanted, (kinds.apps(), hide)).await
            }
            Err(error) => Err(error),
        };
        let mut output = output(result);
        variables.mask(&mut output);
        Ok(v1::TestModuleResponse {
            data: Some(graph::object(&output)?),
        })
    }

    async fn latest_run(&self, organization_id: &str, workflow_id: &str) -> Result<Option<Report>> {
        let store = &self.services.store;
        let mut latest = store
            .list_runs(organization_id, workflow_id, None, None, 1)
            .await?;
        let Some(latest) = latest.pop() else {
            return Ok(None);
        };
        match self.services.runtime.report(organization_id, &latest.id).await {
            Ok(report) => Ok(Some(report)),
            Err(ReportError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn execute(
        &self,
        workflow: &Workflow,
        node: &Node,
        request: Value,
        (apps, hide): (&Apps, Hide),
    ) -> Result<Value, NodeError> {
        let execution = Execution {
            organization_id: workflow.organization_id.as_str().into(),
            workflow_id: workflow.id.as_str().into(),
            // No run has this id: it makes the keys of outgoing requests this trial's own.
            run_id: id::new(id::Kind::Run).into(),
            run_attempt: 1,
            key: NodeKey::root(node.id),
            attempt: 1,
            started_at_ms: clock::now_ms(),
            app_id: node.app_id.clone(),
            module_slug: node.module_slug.clone(),
            credential_id: node.credential_id.clone(),
            connection_id: node.connection_id.clone(),
            apps: apps.clone(),
            request,
            timeout_ms: node.config.timeout_ms(),
            hide,
            log: Log::default(),
        };
        match self.services.runtime.execute(execution).await? {
            Executed::Output(output) => Ok(output),
            Executed::Parked { .. } | Executed::Asked { .. } => Ok(
                json!({ "waiting": "the module waits for an answer from elsewhere, which only a run can do" }),
            ),
        }
    }
}

fn hide(variables: Arc<VariableSet>) -> Hide {
    Hide::by(move |text| variables.mask_text(text))
}

/// What makes the requests of a node's module.
fn module(node: &Node, kinds: &dyn Kinds) -> Result<Box<dyn External>> {
    let found = kinds.find(&node.app_id, &node.module_slug);
    let registered =
        found.map_err(|unknown| Error::invalid("nodeId", format!("cannot be executed: {unknown}")))?;
    let problems = registered.check(&node.params, &NoCustomFunctions, Completeness::Complete);
    if !problems.is_empty() {
        return Err(unusable(problems));
    }
    match registered.compile(node, &NoCustomFunctions).map_err(unusable)? {
        Behaviour::External(module) => Ok(module),
        Behaviour::Trigger => Err(Error::invalid(
            "nodeId",
            format!(
                "names node {}, a trigger, which starts runs and cannot be tried out",
                node.id
            ),
        )),
        _ => Err(not_an_app_node(node.id)),
    }
}

/// The node that a request names, when it is one of an app.
fn app_node<'a>(draft: &'a Graph, named: Option<&v1::NodeIdentifier>) -> Result<&'a Node> {
    let id = match named.and_then(|named| named.value.as_ref()) {
        Some(node_identifier::Value::Number(id)) => Some(*id),
        Some(node_identifier::Value::Text(text)) => text.parse().ok(),
        None => None,
    };
    let id = id.ok_or_else(|| Error::invalid("nodeId", "must be the number of a node"))?;
    match draft.node(id) {
        None => Err(Error::invalid(
            "nodeId",
            format!("names node {id}, which the workflow does not have"),
        )),
        Some(node) if node.app_id == NATIVE_APP => Err(not_an_app_node(id)),
        Some(node) => Ok(node),
    }
}

fn not_an_app_node(id: i64) -> Error {
    Error::invalid(
        "nodeId",
        format!("names node {id}, which is not a node of an app"),
    )
}

fn unusable(problems: Vec<ParamProblem>) -> Error {
    let violation = |problem: ParamProblem| {
        let ParamProblem { path, message } = problem.under("params");
        Violation { path, message }
    };
    Error::violations(problems.into_iter().map(violation).collect())
}

/// What a run would record: an object, and of a failure what the nodes after it see.
fn output(result: Result<Value, NodeError>) -> Value {
    match result {
        Ok(Value::Object(output)) => Value::Object(output),
        Ok(value) => json!({ "value": value }),
        Err(error) => json!({ "error": { "code": error.code, "message": error.message } }),
    }
}

/// A node of the draft, as if the most recent run came to it.
struct Trial<'a> {
    report: Option<&'a Report>,
    variables: &'a VariableSet,
    /// The nodes before it, and all above it.
    before: BTreeSet<i64>,
    above: BTreeSet<i64>,
    roots: Option<(Value, Value)>,
    now: i64,
}

impl<'a> Trial<'a> {
    fn new(
        draft: &Graph,
        node: &Node,
        workflow: &Workflow,
        report: Option<&'a Report>,
        variables: &'a VariableSet,
    ) -> Self {
        let before = |to: i64| {
            draft
                .edges
                .iter()
                .filter(move |edge| edge.to == to)
                .map(|edge| edge.from)
        };
        let (mut above, mut next): (BTreeSet<i64>, Vec<i64>) = (BTreeSet::new(), before(node.id).collect());
        while let Some(id) = next.pop() {
            if above.insert(id) {
                next.extend(before(id));
            }
        }
        Self {
            report,
            variables,
            before: before(node.id).collect(),
            above,
            roots: report.map(|report| roots(report, &workflow.name)),
            now: clock::now_ms(),
        }
    }

    fn outputs(&self, ids: &BTreeSet<i64>) -> Vec<(i64, Arc<Value>)> {
        let output = |id: &i64| Some((*id, Arc::clone(self.report?.state.output(*id)?)));
        ids.iter().filter_map(output).collect()
    }
}

impl Scope for Trial<'_> {
    fn node(&self, id: i64) -> Option<&Value> {
        let visible = self.above.contains(&id);
        let output = self.report.filter(|_| visible)?.state.output(id);
        output.map(|output| &**output)
    }

    fn root(&self, name: Root) -> Option<&Value> {
        let (run, workflow) = self.roots.as_ref()?;
        match name {
            Root::Run => Some(run),
            Root::Workflow => Some(workflow),
            Root::Item | Root::Error => None,
        }
    }

    fn index(&self) -> Option<i64> {
        None
    }

    fn now(&self) -> i64 {
        self.now
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(format!(
            "the function {name} only runs in a run"
        )))
    }
}

impl NodeScope for Trial<'_> {
    fn input(&self) -> Arc<Value> {
        match self.outputs(&self.before).as_slice() {
            [(_, only)] => Arc::clone(only),
            several => {
                let by_id = several
                    .iter()
                    .map(|(id, output)| (id.to_string(), Value::clone(output)));
                Arc::new(Value::Object(by_id.collect::<Map<_, _>>()))
            }
        }
    }

    fn ancestors(&self) -> Vec<(i64, Arc<Value>)> {
        self.outputs(&self.above)
    }
}
