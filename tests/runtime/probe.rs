//! A kind whose executions tests can see and steer: it succeeds, fails, panics, or waits until it is let go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use core_service::nodes::{BoxFuture, Executed, Execution, Executor, Registry};
use engine::expression::{CompiledValue, CustomFunctions};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External, Kind, NodeSpec, Pure};
use engine::params::{FieldSpec, FieldType, ParamProblem};
use engine::scope::NodeScope;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// What executions did, over all processes of a test.
pub(crate) struct Probe {
    begun: watch::Sender<Vec<Execution>>,
    given_up: watch::Sender<usize>,
    gate: Semaphore,
    failures: Mutex<HashMap<Arc<str>, u32>>,
}

impl Probe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: watch::Sender::default(),
            given_up: watch::Sender::default(),
            gate: Semaphore::new(0),
            failures: Mutex::default(),
        })
    }

    /// The engine's kinds, the probe with an effect and without, and a pure kind that panics.
    pub(crate) fn registry(self: &Arc<Self>) -> Registry {
        let mut registry = Registry::new();
        for kind in [ProbeKind::Effect, ProbeKind::Computation] {
            registry.add_executed(kind, Arc::clone(self) as Arc<dyn Executor>);
        }
        registry.add(PanicKind);
        registry
    }

    /// Lets so many executions that wait at the gate go on.
    pub(crate) fn open(&self, executions: usize) {
        self.gate.add_permits(executions);
    }

    /// Takes back what was let go and did not go on.
    pub(crate) fn shut(&self) {
        while let Ok(permit) = self.gate.try_acquire() {
            permit.forget();
        }
    }

    /// All executions begun so far, once there are at least so many.
    pub(crate) async fn begun(&self, at_least: usize) -> Vec<Execution> {
        let mut begun = self.begun.subscribe();
        let seen = begun.wait_for(|begun| begun.len() >= at_least).await.unwrap();
        seen.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.begun.borrow().len()
    }

    /// Waits until so many executions were given up.
    pub(crate) async fn given_up(&self, at_least: usize) {
        let mut given_up = self.given_up.subscribe();
        let _seen = given_up.wait_for(|count| *count >= at_least).await.unwrap();
    }
}

/// Counts an execution that is dropped before its end.
struct UntilEnd<'a>(Option<&'a Probe>);

impl Drop for UntilEnd<'_> {
    fn drop(&mut self) {
        if let Some(probe) = self.0 {
            probe.given_up.send_modify(|count| *count += 1);
        }
    }
}

impl Executor for Probe {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let mut until_end = UntilEnd(Some(self));
            let run_id = Arc::clone(&execution.run_id);
            let told = execution.request["do"].as_str().unwrap_or_default().to_owned();
            self.begun.send_modify(|begun| begun.push(execution));
            let result = match told.as_str() {
                "wait" => {
                    self.gate.acquire().await.unwrap().forget();
                    Ok(json!({ "waited": true }))
                }
                "wait and fail" => {
                    self.gate.acquire().await.unwrap().forget();
                    Err(NodeError::new("PROBE_FAILED", "told to fail"))
                }
                "fail" => Err(NodeError::new("PROBE_FAILED", "told to fail")),
                "fail twice" => {
                    let mut failures = self.failures.lock().unwrap();
                    let count = failures.entry(run_id).or_default();
                    *count += 1;
                    if *count <= 2 {
                        Err(NodeError::new("PROBE_FAILED", "not yet"))
                    } else {
                        Ok(json!({ "tries": *count }))
                    }
                }
                "panic" => panic!("told to panic"),
                _ => Ok(json!({ "done": told })),
            };
            until_end.0 = None;
            match told.as_str() {
                "park" => Ok(Executed::Parked { due_at_ms: None }),
                _ => result.map(Executed::Output),
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ProbeKind {
    Effect,
    Computation,
}

impl Kind for ProbeKind {
    fn spec(&self) -> NodeSpec {
        let kind = match self {
            Self::Effect => "probe",
            Self::Computation => "computing_probe",
        };
        NodeSpec::step(kind, "Probe", "Does what it is told.")
            .with_shape([FieldSpec::required("do", FieldType::String, "What to do.")])
            .with_example(json!({ "do": "succeed" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let params = Value::Object(node.params.clone());
        let compiled = CompiledValue::compile(&params, functions);
        let compiled = compiled.map_err(|_| vec![ParamProblem::new("do", "cannot be read")])?;
        Ok(Behaviour::External(Box::new(ProbeRequest {
            kind: *self,
            params: compiled,
        })))
    }
}

struct ProbeRequest {
    kind: ProbeKind,
    params: CompiledValue,
}

impl External for ProbeRequest {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        Ok(self.params.evaluate(scope)?)
    }

    fn only_computes(&self) -> bool {
        self.kind == ProbeKind::Computation
    }
}

struct PanicKind;

impl Kind for PanicKind {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step("panic", "Panic", "A defect in the engine.")
    }

    fn compile(
        &self,
        _node: &Node,
        _functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::Pure(Box::new(Self)))
    }
}

impl Pure for PanicKind {
    fn evaluate(&self, _scope: &dyn NodeScope) -> Result<Value, NodeError> {
        panic!("a defect");
    }
}
