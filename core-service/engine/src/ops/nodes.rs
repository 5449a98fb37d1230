//! Operations on nodes.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::NodeConfig;
use crate::graph::{EdgeType, MAX_NODES, NATIVE_APP, Node};
use crate::kind::Registered;
use crate::ops::apply::{Editor, Refusal, checked_name};
use crate::ops::{AddNode, KindRef, NodeRef, UpdateMode, edges, merge_patch};
use crate::params::{Completeness, ParamProblem};
use crate::regions::AGGREGATOR;

/// Canvas distance between a node and the one after it.
const STEP_X: f64 = 240.0;
/// Canvas distance between branches.
const STEP_Y: f64 = 160.0;

impl Editor<'_> {
    pub(super) fn add_node(&mut self, add: AddNode) -> Result<(), Refusal> {
        if self.applied.iter().any(|(temp_id, _)| *temp_id == add.temp_id) {
            let message = format!("tempId {:?} is used twice in this batch", add.temp_id);
            return Err(Refusal::new("DUPLICATE_TEMP_ID", message));
        }
        let (app_id, module_slug) = match &add.kind {
            KindRef::Native(kind) => (NATIVE_APP, kind.as_str()),
            KindRef::Module { app_id, module_slug } => (app_id.as_str(), module_slug.as_str()),
        };
        let kind = self.find_kind(app_id, module_slug)?;
        if !kind.spec.insertable {
            let message = format!("{module_slug} nodes cannot be added on their own");
            return Err(Refusal::new("NOT_INSERTABLE", message));
        }
        let scaffolds = add.scaffold && kind.spec.opens_scope;
        self.require_room(
            1 + usize::from(scaffolds),
            usize::from(add.after.is_some()) + usize::from(scaffolds),
        )?;
        let after = add.after.as_ref().map(|after| self.node_id(after)).transpose()?;
        self.check_params(&kind, &add.params)?;
        let config = checked_config(add.config)?;
        if let Some(credential_id) = &add.credential_id {
            self.check_credential(app_id, credential_id)?;
        }
        let name = checked_name(add.name.as_deref().unwrap_or(&kind.spec.label))?;
        let (x, y) = self.position(after, add.x, add.y);
        let node = Node {
            id: self.graph.next_node_id,
            app_id: app_id.to_owned(),
            module_slug: module_slug.to_owned(),
            kind: (app_id == NATIVE_APP).then(|| module_slug.to_owned()),
            name,
            x,
            y,
            params: add.params,
            config,
            connection_id: add.connection_id,
            credential_id: add.credential_id,
        };
        let id = self.insert(node);
        self.applied.push((add.temp_id, id));
        if let Some(after) = after {
            self.connect(after, id, EdgeType::Normal, None, None)?;
        }
        if scaffolds {
            self.scaffold_aggregator(id)?;
        }
        Ok(())
    }

    /// A splitter's companion: collects what comes out of its region.
    fn scaffold_aggregator(&mut self, splitter: i64) -> Result<(), Refusal> {
        let kind = self.find_kind(NATIVE_APP, AGGREGATOR)?;
        let (x, y) = self.position(Some(splitter), None, None);
        let params = Map::from_iter([(String::from("of"), Value::from(splitter))]);
        self.check_params(&kind, &params)?;
        let node = Node {
            id: self.graph.next_node_id,
            app_id: NATIVE_APP.into(),
            module_slug: kind.spec.kind.clone(),
            kind: Some(kind.spec.kind.clone()),
            name: kind.spec.label.clone(),
            x,
            y,
            params,
            config: NodeConfig::default(),
            connection_id: None,
            credential_id: None,
        };
        let aggregator = self.insert(node);
        self.connect(splitter, aggregator, EdgeType::Normal, None, None)
    }

    /// Asked before anything is added, so that an operation is applied wholly or not at all.
    fn require_room(&self, nodes: usize, edges: usize) -> Result<(), Refusal> {
        if self.graph.nodes.len() + nodes > MAX_NODES {
            return Err(Refusal::new(
                "TOO_MANY_NODES",
                format!("a workflow has at most {MAX_NODES} nodes"),
            ));
        }
        edges::require_room(&self.graph.edges, edges)
    }

    fn insert(&mut self, node: Node) -> i64 {
        let id = node.id;
        self.graph.next_node_id = id.saturating_add(1);
        self.graph.nodes.push(node);
        self.touched.push(id);
        id
    }

    pub(super) fn update_params(
        &mut self,
        reference: &NodeRef,
        params: Map<String, Value>,
        mode: UpdateMode,
    ) -> Result<(), Refusal> {
        let node = self.node_mut(reference)?;
        let updated = updated(node.params.clone(), params, mode);
        let (id, app_id, module_slug) = (node.id, node.app_id.clone(), node.module_slug.clone());
        let kind = self.find_kind(&app_id, &module_slug)?;
        self.check_params(&kind, &updated)?;
        self.node_mut(reference)?.params = updated;
        self.touched.push(id);
        Ok(())
    }

    pub(super) fn update_config(
        &mut self,
        reference: &NodeRef,
        mut config: Map<String, Value>,
        mode: UpdateMode,
    ) -> Result<(), Refusal> {
        let x = take_coordinate(&mut config, "x")?;
        let y = take_coordinate(&mut config, "y")?;
        let connection_id = take_text(&mut config, "connectionId")?;
        let node = self.node_mut(reference)?;
        let current = match serde_json::to_value(&node.config) {
            Ok(Value::Object(current)) => current,
            _ => Map::new(),
        };
        let checked = checked_config(updated(current, config, mode))?;
        node.config = checked;
        node.x = x.unwrap_or(node.x);
        node.y = y.unwrap_or(node.y);
        if let Some(connection_id) = connection_id {
            node.connection_id = connection_id;
        }
        let id = node.id;
        self.touched.push(id);
        Ok(())
    }

    pub(super) fn remove_node(&mut self, reference: &NodeRef, heal: bool) -> Result<(), Refusal> {
        let id = self.node_id(reference)?;
        let (gone, mut kept): (Vec<_>, Vec<_>) = self
            .graph
            .edges
            .iter()
            .cloned()
            .partition(|edge| edge.from == id || edge.to == id);
        if heal {
            edges::heal(&mut kept, &gone, id)?;
        }
        self.graph.edges = kept;
        self.graph.nodes.retain(|node| node.id != id);
        Ok(())
    }

    pub(super) fn set_credential(
        &mut self,
        reference: &NodeRef,
        credential_id: Option<String>,
    ) -> Result<(), Refusal> {
        let app_id = self.node_mut(reference)?.app_id.clone();
        if let Some(credential_id) = &credential_id {
            self.check_credential(&app_id, credential_id)?;
        }
        let node = self.node_mut(reference)?;
        node.credential_id = credential_id;
        let id = node.id;
        self.touched.push(id);
        Ok(())
    }

    fn find_kind(&self, app_id: &str, module_slug: &str) -> Result<Arc<Registered>, Refusal> {
        let found = self.context.kinds.find(app_id, module_slug);
        found.map_err(|unknown| Refusal::new("UNKNOWN_KIND", unknown.to_string()))
    }

    fn check_params(&self, kind: &Registered, params: &Map<String, Value>) -> Result<(), Refusal> {
        let found = kind.check(params, self.context.functions, Completeness::Draft);
        if found.is_empty() {
            return Ok(());
        }
        Err(Refusal::new("INVALID_PARAMS", sentences(found)))
    }

    /// A native node, such as `http_request`, may use a credential of any app.
    fn check_credential(&self, app_id: &str, credential_id: &str) -> Result<(), Refusal> {
        match (self.context.credential_app)(credential_id) {
            None => {
                let message = format!("credential {credential_id} does not exist");
                Err(Refusal::new("CREDENTIAL_NOT_FOUND", message))
            }
            Some(owner) if owner == app_id || app_id == NATIVE_APP => Ok(()),
            Some(owner) => {
                let message = format!("credential {credential_id} is for {owner}, the node is of {app_id}");
                Err(Refusal::new("CREDENTIAL_MISMATCH", message))
            }
        }
    }

    /// Where a node goes: right of the one it follows and below that one's other successors, else below all nodes.
    fn position(&self, after: Option<i64>, x: Option<f64>, y: Option<f64>) -> (f64, f64) {
        let (default_x, default_y) = match after.and_then(|id| self.graph.node(id)) {
            Some(before) => {
                let branches = self
                    .graph
                    .edges
                    .iter()
                    .filter(|edge| edge.from == before.id)
                    .count();
                (before.x + STEP_X, before.y + STEP_Y * branches as f64)
            }
            None => {
                let lowest = self.graph.nodes.iter().map(|node| node.y).reduce(f64::max);
                (0.0, lowest.map_or(0.0, |y| y + STEP_Y))
            }
        };
        (x.unwrap_or(default_x), y.unwrap_or(default_y))
    }
}

fn updated(
    mut current: Map<String, Value>,
    change: Map<String, Value>,
    mode: UpdateMode,
) -> Map<String, Value> {
    match mode {
        UpdateMode::Replace => change,
        UpdateMode::Merge => {
            merge_patch(&mut current, change);
            current
        }
    }
}

fn checked_config(config: Map<String, Value>) -> Result<NodeConfig, Refusal> {
    let invalid = |message: String| Refusal::new("INVALID_CONFIG", message);
    let config =
        NodeConfig::deserialize(Value::Object(config)).map_err(|error| invalid(error.to_string()))?;
    let violations = config.violations();
    if violations.is_empty() {
        return Ok(config);
    }
    let found = violations
        .into_iter()
        .map(|(path, message)| ParamProblem::new(path, message))
        .collect();
    Err(invalid(sentences(found)))
}

fn take_coordinate(config: &mut Map<String, Value>, name: &str) -> Result<Option<f64>, Refusal> {
    let Some(value) = config.shift_remove(name) else {
        return Ok(None);
    };
    let not_a_number = || Refusal::new("INVALID_CONFIG", format!("{name} must be a number"));
    value.as_f64().map(Some).ok_or_else(not_a_number)
}

fn take_text(config: &mut Map<String, Value>, name: &str) -> Result<Option<Option<String>>, Refusal> {
    match config.shift_remove(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(Value::String(text)) => Ok(Some(Some(text))),
        Some(_) => Err(Refusal::new(
            "INVALID_CONFIG",
            format!("{name} must be a string or null"),
        )),
    }
}

fn sentences(problems: Vec<ParamProblem>) -> String {
    let said: Vec<String> = problems.iter().map(ParamProblem::to_string).collect();
    said.join("; ")
}
