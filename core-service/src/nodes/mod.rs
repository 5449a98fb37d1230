//! Node kinds as the service knows them: the engine's pure ones, and those that reach outside it.
//!
//! A kind with I/O is a [`Kind`] (what it is) and an [`Executor`] (what it does). Absent on purpose: retries, time-outs,
//! limits and recording; the engine decides those and the runtime does them for every kind alike.

pub mod app_caller;
mod app_module;
mod database;
mod function_call;
pub mod http;
mod http_request;
pub mod human_input;
mod js_code;
mod lengthening;
pub mod native;
mod organization;
mod parameters;
mod patient;
mod request;
mod run_workflow;
mod structure_validate;
mod variable_set;
pub mod verification;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use engine::event::{LogLine, NodeKey};
use engine::failure::NodeError;
use engine::graph::NATIVE_APP;
use engine::kind::{Kind, Kinds, NodeSpec, Registered, UnknownKind};
use serde_json::Value;

pub use self::organization::OrganizationKinds;
pub use self::run_workflow::{CallMode, CalledVersion, RunWorkflow, WorkflowCall};

use self::app_caller::AppCaller;
use self::app_module::{AppModule, AppModules};
use self::http_request::{HttpRequest, HttpRequests};
use crate::catalog::Catalog;
use crate::connectors::Apps;
use crate::form::Question;
use crate::sandbox::Sandbox;
use crate::secret::Hide;
use crate::store::Store;
use crate::variables::Variables;

/// A future without a name.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One execution of a node outside the engine.
#[derive(Clone)]
pub struct Execution {
    /// The organization whose run it is.
    pub organization_id: Arc<str>,
    /// The run's workflow.
    pub workflow_id: Arc<str>,
    /// The run.
    pub run_id: Arc<str>,
    /// The run's attempt, from 1.
    pub run_attempt: u32,
    /// The node and its iteration.
    pub key: NodeKey,
    /// The attempt at the node, from 1.
    pub attempt: u32,
    /// When the node began in its run, epoch milliseconds. The same for all its attempts, also after a crash; another one
    /// when somebody lets the node run again.
    pub started_at_ms: i64,
    /// The app whose module the node is.
    pub app_id: String,
    /// The app's module, or the native kind.
    pub module_slug: String,
    /// The credential the node uses.
    pub credential_id: Option<String>,
    /// The connection type the node uses.
    pub connection_id: Option<String>,
    /// The apps as the run's graph pinned them.
    pub apps: Apps,
    /// What the kind asked for: the parameters with their templates evaluated.
    pub request: Value,
    /// How long the attempt may take, in milliseconds; the runtime gives it up afterwards.
    pub timeout_ms: u64,
    /// Takes the secrets of variables out of what is cut, because nobody finds half of one afterwards.
    pub hide: Hide,
    /// Takes what the node writes besides its output.
    pub log: Log,
}

/// What an execution writes; the run's report shows it, whatever becomes of the execution. Clones are the same log.
#[derive(Debug, Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<LogLine>>>,
}

impl Log {
    /// Adds a line.
    pub fn write(&self, line: LogLine) {
        self.lock().push(line);
    }

    /// Takes the lines out.
    #[must_use]
    pub fn take(&self) -> Vec<LogLine> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<LogLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Execution {
    /// The `Idempotency-Key` of outgoing requests: the same however often this node of this attempt is executed.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let (run, attempt, node) = (&self.run_id, self.run_attempt, self.key.node);
        if self.key.iteration.is_root() {
            format!("{run}-{attempt}-{node}")
        } else {
            format!("{run}-{attempt}-{node}-{}", self.key.iteration)
        }
    }
}

/// What came of an execution.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// The node's output.
    Output(Value),
    /// A person or another run brings the output later; until then the run needs no memory.
    Parked {
        /// When the node's time is over without one, in epoch milliseconds.
        due_at_ms: Option<i64>,
    },
    /// As `Parked`, and people are asked for the output.
    Asked {
        /// What they are asked.
        question: Box<Question>,
        /// When the node's time is over without an answer, in epoch milliseconds.
        due_at_ms: Option<i64>,
    },
}

/// Does what a kind with I/O is for.
pub trait Executor: Send + Sync {
    /// Executes a node once. Dropping the future gives the execution up. It may be executed again
    /// after a crash, with the same [`Execution::idempotency_key`].
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>>;
}

/// All kinds of a process, and who executes those that reach outside the engine.
#[derive(Clone)]
pub struct Registry {
    kinds: engine::kind::Registry,
    executors: HashMap<String, HashMap<String, Arc<dyn Executor>>>,
    interpreter: Option<Arc<dyn Executor>>,
    catalog: Option<Catalog>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// The engine's own kinds and those of this module.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Self {
            kinds: engine::kind::Registry::pure(),
            executors: HashMap::new(),
            interpreter: None,
            catalog: None,
        };
        registry.add_executed(human_input::HumanInput, Arc::new(human_input::Park));
        registry
    }

    /// Adds the kinds that run code of users.
    pub fn add_code_kinds(&mut self, sandbox: &Sandbox) {
        function_call::register(self, sandbox);
        js_code::register(self, sandbox);
    }

    /// Adds the kinds that keep data in the service itself.
    pub fn add_data_kinds(&mut self, store: &Store, variables: &Variables) {
        database::register(self, store);
        variable_set::register(self, variables);
        structure_validate::register(self, store);
    }

    /// Adds the kinds that call other services, and the modules of apps.
    pub fn add_request_kinds(&mut self, catalog: &Catalog, caller: &AppCaller) {
        self.add_executed(HttpRequest, Arc::new(HttpRequests(caller.http().clone())));
        for module in catalog.built_in().iter().flat_map(AppModule::all) {
            self.add(module);
        }
        self.catalog = Some(catalog.clone());
        self.set_interpreter(Arc::new(AppModules(caller.clone())));
    }

    /// Adds a kind without I/O of its own.
    pub fn add(&mut self, kind: impl Kind + 'static) {
        self.kinds.add(kind);
    }

    /// Adds a kind and who executes it.
    pub fn add_executed(&mut self, kind: impl Kind + 'static, executor: Arc<dyn Executor>) {
        let spec = kind.spec();
        self.kinds.add(kind);
        self.executors
            .entry(spec.app_id)
            .or_default()
            .insert(spec.kind, executor);
    }

    /// Lets modules of apps that have no executor of their own be executed by this one.
    pub fn set_interpreter(&mut self, interpreter: Arc<dyn Executor>) {
        self.interpreter = Some(interpreter);
    }

    /// The engine's view: specifications, checks, behaviours.
    #[must_use]
    pub fn kinds(&self) -> &engine::kind::Registry {
        &self.kinds
    }

    /// The native kinds, by name.
    #[must_use]
    pub fn native_specs(&self) -> Vec<NodeSpec> {
        let native = self.kinds.iter().filter(|kind| kind.spec.app_id == NATIVE_APP);
        let mut specs: Vec<NodeSpec> = native.map(|kind| kind.spec.clone()).collect();
        specs.sort_by(|one, other| one.kind.cmp(&other.kind));
        specs
    }

    /// Who executes a module.
    #[must_use]
    pub fn executor(&self, app_id: &str, module_slug: &str) -> Option<&Arc<dyn Executor>> {
        let own = self
            .executors
            .get(app_id)
            .and_then(|modules| modules.get(module_slug));
        own.or_else(|| self.interpreter.as_ref().filter(|_| app_id != NATIVE_APP))
    }
}

impl Kinds for Registry {
    fn find(&self, app_id: &str, module_slug: &str) -> Result<Arc<Registered>, UnknownKind> {
        self.kinds.find(app_id, module_slug)
    }
}
