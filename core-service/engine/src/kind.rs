//! What a node kind is: its specification, its parameter check and its behaviour; and the registry of kinds.
//!
//! Kinds that need nothing but their inputs live in [`crate::kinds`]. A kind that needs I/O lives with its I/O and
//! implements the same trait, so that checks, plans and steps treat all kinds alike.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::Retry;
use crate::expression::CustomFunctions;
use crate::failure::NodeError;
use crate::graph::{EdgeType, NATIVE_APP, Node};
use crate::kinds::{Aggregator, Splitter, Stop, Wait};
use crate::params::{Completeness, FieldSpec, ParamProblem};
use crate::scope::NodeScope;

/// A node kind.
pub trait Kind: Send + Sync {
    /// Everything there is to know about the kind. Asked once, when it is registered.
    fn spec(&self) -> NodeSpec;

    /// What is wrong with parameters beyond what the shape says. Templates and literal types were checked.
    fn check(&self, _params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        Vec::new()
    }

    /// The parameters in the form that runs. Called once for each node of a plan, after the checks passed.
    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>>;
}

/// What a node does when it runs.
pub enum Behaviour {
    /// Starts a run; its output is the run's input.
    Trigger,
    /// Computes its output from its inputs, inside the engine.
    Pure(Box<dyn Pure>),
    /// Is executed outside the engine, which computes the request.
    External(Box<dyn External>),
    /// Takes the edges whose filters hold.
    Condition(ConditionMode),
    /// Goes on at an instant.
    Wait(Wait),
    /// Ends the run.
    Stop(Stop),
    /// Opens a scope with an iteration for each item.
    Splitter(Splitter),
    /// Collects what came of the iterations.
    Aggregator(Aggregator),
}

/// A computation without effects.
pub trait Pure: Send + Sync {
    /// The node's output. A value that is no object is wrapped by the engine.
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError>;
}

/// A node executed outside the engine.
pub trait External: Send + Sync {
    /// What the executor is given: the parameters with their templates evaluated.
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError>;

    /// Whether an execution does nothing but compute its output, so that nobody can tell whether it was executed.
    fn only_computes(&self) -> bool {
        false
    }

    /// The output of a node that was parked and got no answer in time; it fails as `NODE_TIMEOUT` when there is none.
    fn timed_out(&self, _scope: &dyn NodeScope) -> Result<Option<Value>, NodeError> {
        Ok(None)
    }
}

/// Which of its edges a condition takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionMode {
    /// The first whose filter holds.
    First,
    /// All whose filters hold.
    #[default]
    All,
}

/// Where in a graph a kind may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the start: no edges lead into it.
    Trigger,
    /// Anywhere else.
    Step,
}

/// The specification of a kind.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// [`NATIVE_APP`], or the app whose module this is.
    pub app_id: String,
    /// The native kind, or the app's module.
    pub kind: String,
    /// For people.
    pub label: String,
    /// What it does and what its output is.
    pub description: String,
    /// Where it may stand.
    pub placement: Placement,
    /// Whether callers may add it themselves.
    pub insertable: bool,
    /// The parameters, in the order they are shown.
    pub shape: Vec<FieldSpec>,
    /// Parameters that pass the kind's own check.
    pub example: Value,
    /// The edge types the kind offers.
    pub routes: Vec<EdgeType>,
    /// How its edges are taken.
    pub edge_model: String,
    /// What one execution costs.
    pub credits: u32,
    /// Whether what is below it runs once for each thing it gives, up to the aggregator that names it.
    pub opens_scope: bool,
    /// When it is tried again after a temporary failure, if its node says nothing.
    pub retry: Option<Retry>,
}

impl NodeSpec {
    /// The member of a node that holds what [`NodeSpec::shape`] describes.
    pub const PERSISTS_UNDER: &'static str = "params";

    /// The grammar of templates in one paragraph.
    pub const EXPRESSION_GRAMMAR: &'static str = "Strings may hold {{ expression }}. A string that is one single \
        template gives the native JSON value; mixed text is joined. References: 1.body.name, 1.items[0], \
        1.items[].email, $node(1), $run, $workflow, $vars.NAME, $item, $index, $now, and error on error edges. \
        Operators: = == != < <= > >= and && or || not ! + - * / % ?: ?? in. Calls: upper(1.name), \
        map(1.items; x => x.id). Write \\{{ for literal braces.";

    /// The edge model of kinds that simply go on.
    pub const PLAIN_EDGES: &'static str = "Every normal edge whose filter holds is taken when the node completes; \
        the fallback edge when none was; error edges whose filter holds when it fails after its retries.";

    /// The edge model of triggers.
    pub const TRIGGER_EDGES: &'static str =
        "No edges lead in. Every normal edge whose filter holds is taken, the fallback edge when none was.";

    /// A native kind that runs as a step, offers all edge types and costs one credit.
    pub fn step(kind: &str, label: &str, description: &str) -> Self {
        Self {
            app_id: NATIVE_APP.into(),
            kind: kind.into(),
            label: label.into(),
            description: description.into(),
            placement: Placement::Step,
            insertable: true,
            shape: Vec::new(),
            example: Value::Object(Map::new()),
            routes: vec![EdgeType::Normal, EdgeType::Fallback, EdgeType::Error],
            edge_model: Self::PLAIN_EDGES.into(),
            credits: 1,
            opens_scope: false,
            retry: None,
        }
    }

    /// A native kind that steers the run: a step that costs nothing.
    pub fn flow(kind: &str, label: &str, description: &str) -> Self {
        Self {
            credits: 0,
            ..Self::step(kind, label, description)
        }
    }

    /// A native kind that starts runs.
    pub fn trigger(kind: &str, label: &str, description: &str) -> Self {
        Self {
            placement: Placement::Trigger,
            routes: vec![EdgeType::Normal, EdgeType::Fallback],
            edge_model: Self::TRIGGER_EDGES.into(),
            ..Self::flow(kind, label, description)
        }
    }

    /// With these parameters.
    #[must_use]
    pub fn with_shape(mut self, shape: impl IntoIterator<Item = FieldSpec>) -> Self {
        self.shape = shape.into_iter().collect();
        self
    }

    /// With this example.
    #[must_use]
    pub fn with_example(mut self, example: Value) -> Self {
        self.example = example;
        self
    }

    /// Whether nodes of the kind start runs.
    pub fn is_trigger(&self) -> bool {
        self.placement == Placement::Trigger
    }
}

/// A kind and its specification.
pub struct Registered {
    /// What the kind said about itself.
    pub spec: NodeSpec,
    kind: Box<dyn Kind>,
}

impl Registered {
    /// Asks the kind for its specification.
    pub fn new(kind: impl Kind + 'static) -> Self {
        Self {
            spec: kind.spec(),
            kind: Box::new(kind),
        }
    }

    /// Everything wrong with the parameters.
    pub fn check(
        &self,
        params: &Map<String, Value>,
        functions: &dyn CustomFunctions,
        completeness: Completeness,
    ) -> Vec<ParamProblem> {
        let mut problems = crate::params::check(&self.spec, params, functions, completeness);
        if problems.is_empty() {
            problems = self.kind.check(params, completeness);
        }
        problems
    }

    /// See [`Kind::compile`].
    pub fn compile(
        &self,
        node: &Node,
        functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        self.kind.compile(node, functions)
    }
}

/// A node names a kind that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownKind {
    /// No native kind of this name.
    #[error("there is no node kind {0}")]
    Kind(String),
    /// No app with this id.
    #[error("there is no app {0}")]
    App(String),
    /// The app has no such module.
    #[error("the app {app} has no module {module}")]
    Module {
        /// The app.
        app: String,
        /// The module it lacks.
        module: String,
    },
}

/// Where kinds are looked up: a [`Registry`], or one with an organization's own apps in front of it.
pub trait Kinds: Send + Sync {
    /// The kind of an app's module; the app of native kinds is [`NATIVE_APP`].
    fn find(&self, app_id: &str, module_slug: &str) -> Result<Arc<Registered>, UnknownKind>;
}

/// The kinds of a process.
#[derive(Clone, Default)]
pub struct Registry {
    apps: HashMap<String, HashMap<String, Arc<Registered>>>,
}

impl Registry {
    /// The kinds that live in the engine.
    pub fn pure() -> Self {
        let mut registry = Self::default();
        crate::kinds::register(&mut registry);
        registry
    }

    /// Adds a kind, in place of one with the same app and name.
    pub fn add(&mut self, kind: impl Kind + 'static) {
        let registered = Registered::new(kind);
        let app = self.apps.entry(registered.spec.app_id.clone()).or_default();
        app.insert(registered.spec.kind.clone(), Arc::new(registered));
    }

    /// Every kind, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.apps.values().flat_map(HashMap::values)
    }
}

impl Kinds for Registry {
    fn find(&self, app_id: &str, module_slug: &str) -> Result<Arc<Registered>, UnknownKind> {
        let Some(app) = self.apps.get(app_id) else {
            return Err(UnknownKind::App(app_id.into()));
        };
        app.get(module_slug).cloned().ok_or_else(|| match app_id {
            NATIVE_APP => UnknownKind::Kind(module_slug.into()),
            _ => UnknownKind::Module {
                app: app_id.into(),
                module: module_slug.into(),
            },
        })
    }
}
