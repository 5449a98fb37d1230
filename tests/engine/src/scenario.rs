//! A scenario as its file tells it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::drawing::{Drawing, Edge, Node};
use crate::surroundings::{Function, Structure, Table};

/// A run of a workflow and what must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its extension.
    #[serde(skip)]
    pub name: String,
    /// What it shows, in a sentence.
    pub shows: String,
    /// The nodes by id, from 1 without gaps.
    pub nodes: BTreeMap<i64, Node>,
    /// The edges by id.
    #[serde(default)]
    pub edges: BTreeMap<String, Edge>,
    /// How the run begins.
    #[serde(default)]
    pub start: Start,
    /// Variables of the organization.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Secret ones.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// Other workflows of the organization, by name: live ones.
    #[serde(default)]
    pub workflows: BTreeMap<String, Drawing>,
    /// Custom functions, by name.
    #[serde(default)]
    pub functions: BTreeMap<String, Function>,
    /// Databases, by name.
    #[serde(default)]
    pub tables: BTreeMap<String, Table>,
    /// Structures, by name.
    #[serde(default)]
    pub structures: BTreeMap<String, Structure>,
    /// What the other kinds that reach outside the engine bring, by place and attempt as in `outside`. The product's own
    /// nodes must bring the same: it is part of what must come of it.
    #[serde(default)]
    pub answers: BTreeMap<String, Vec<Outside>>,
    /// What comes of requests (kind `http_request`), by place (`2`, `2/0`, or `2` for all iterations), attempt by attempt;
    /// the last one stands for all that follow.
    #[serde(default)]
    pub outside: BTreeMap<String, Vec<Outside>>,
    /// Whether it takes more time than a test has, or depends on how long requests take.
    #[serde(default)]
    pub simulated: bool,
    /// What somebody does, in this order.
    #[serde(default)]
    pub then: Vec<Action>,
    /// What must come of it; see [`crate::differences`].
    pub expect: Value,
}

/// How a run begins.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Start {
    /// Where a scoped run begins.
    pub node: Option<i64>,
    /// Outputs of nodes that do not run, and of the trigger that it starts at.
    pub outputs: BTreeMap<i64, Value>,
    /// The body with which somebody calls the webhook of the first node. What the trigger makes of the call is in
    /// `outputs`, and part of what must come of it.
    pub webhook: Option<Value>,
    /// One of the other workflows, whose failure starts it by the error trigger that is its first node; likewise.
    pub failure_of: Option<String>,
    /// Milliseconds the run may take.
    pub timeout_ms: Option<u64>,
}

/// What comes of one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outside {
    /// The body of the answer to a request; of other kinds the whole output.
    pub output: Option<Value>,
    /// Its failure; for the product, which sees a status of 500, `HTTP_ERROR`.
    pub error: Option<OutsideError>,
    /// After so many milliseconds of simulated time.
    #[serde(default = "one")]
    pub after_ms: u64,
}

/// Why an execution failed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutsideError {
    /// Its code.
    pub code: String,
    /// A sentence.
    pub message: String,
    /// How long the other side asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

const fn one() -> u64 {
    1
}

/// Something that somebody does.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Cancels the run once it waits.
    Cancel,
    /// Sets variables.
    Set(BTreeMap<String, String>),
    /// Lets a failed node of a run that has ended run again.
    Retry(i64),
    /// Begins the next attempt of a run that has ended.
    Rerun,
    /// Starts another run at a node, with the outputs of this one, which has ended. What must come of it, comes of that.
    StartAt(i64),
    /// Answers a node that asks people, once it does or has done.
    Respond(Response),
}

/// What a person answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Response {
    /// The node that asks.
    pub node: i64,
    /// Its iteration; empty outside of scopes.
    #[serde(default)]
    pub iteration: String,
    /// The values of the form's fields.
    pub says: Value,
    /// What becomes of them, where that is something else.
    pub taken: Option<Value>,
    /// The code with which the answer is refused. [`Response::is_late`] is up to the engine, the rest to the form.
    pub refused: Option<String>,
    /// After so many milliseconds of simulated time.
    #[serde(default)]
    pub after_ms: u64,
}

impl Response {
    /// Whether somebody else was first, or nobody waits any more.
    #[must_use]
    pub fn is_late(&self) -> bool {
        matches!(
            self.refused.as_deref(),
            Some("resume_in_flight" | "run_terminal_conflict")
        )
    }
}

impl Scenario {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document: Value =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut scenario: Self =
            serde_json::from_value(document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().and_then(|name| name.to_str());
        scenario.name = name.unwrap_or_default().to_owned();
        scenario
    }

    /// Whether the whole product can let it happen within a test.
    #[must_use]
    pub fn is_for_the_product(&self) -> bool {
        !self.simulated
    }

    /// What it draws.
    #[must_use]
    pub fn drawing(&self) -> Drawing {
        Drawing {
            nodes: self.nodes.clone(),
            edges: self.edges.clone(),
        }
    }

    /// What an attempt (from 1) comes to at a place outside the engine.
    #[must_use]
    pub fn outside(&self, node: i64, iteration: &str, attempt: u32) -> &Outside {
        let is_request = self
            .nodes
            .get(&node)
            .is_some_and(|node| node.kind == "http_request");
        let told = if is_request { &self.outside } else { &self.answers };
        let of_place = told.get(&format!("{node}/{iteration}"));
        let results = of_place.or_else(|| told.get(&node.to_string()));
        let results = results.unwrap_or_else(|| panic!("{}: nothing is told of node {node}", self.name));
        let at = usize::try_from(attempt).unwrap_or(usize::MAX).min(results.len()) - 1;
        &results[at]
    }
}
