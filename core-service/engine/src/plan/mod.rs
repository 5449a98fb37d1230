//! A graph compiled for running: checked, templates parsed, adjacency by index.
//!
//! A plan is immutable and shared; whoever keeps plans keeps them by [`Graph::content_hash`]. Nodes are addressed by
//! index in order of id, edges by index in the graph's order.

mod scopes;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::{Join, OnError, Retry};
use crate::expression::CustomFunctions;
use crate::filter::CompiledFilter;
use crate::graph::{Edge, EdgeType, Graph, Node};
use crate::kind::{Behaviour, Kinds, NodeSpec, Registered};
use crate::params::{Completeness, ParamProblem};
use crate::problem::Problem;
use crate::step::as_object;
use crate::{regions, topology};

pub(crate) use scopes::PlanScope;

/// A graph ready to run.
pub struct Plan {
    /// In order of id.
    nodes: Vec<PlanNode>,
    /// In the graph's order.
    edges: Vec<PlanEdge>,
    /// The run's own scope first.
    scopes: Vec<PlanScope>,
}

/// A node ready to run.
pub struct PlanNode {
    /// The node's id.
    pub id: i64,
    /// The name people gave it.
    pub label: String,
    /// The app whose module this is.
    pub app_id: String,
    /// The app's module, or the native kind.
    pub module_slug: String,
    /// The native kind; absent for a module of an app.
    pub kind: Option<String>,
    /// The credential it uses.
    pub credential_id: Option<String>,
    /// The connection type it uses.
    pub connection_id: Option<String>,
    /// Milliseconds an attempt may take.
    pub timeout_ms: u64,
    /// When it is tried again, whatever it failed by.
    pub retry: Option<Retry>,
    /// When it is tried again after a temporary failure, if `retry` says nothing.
    pub own_retry: Option<Retry>,
    /// What its failure does; absent means what is around it decides.
    pub on_error: Option<OnError>,
    /// Passes its input through.
    pub disabled: bool,
    /// How many incoming edges it waits for.
    pub join: Join,
    /// Of a node that opens a scope: items at the same time.
    concurrency: u32,
    /// What executing it costs.
    pub credits: u32,
    /// Whether it starts runs.
    pub is_trigger: bool,
    pub(crate) behaviour: Behaviour,
    /// Edge indexes sorted by order, then id.
    pub(crate) outgoing: Vec<u32>,
    /// Edge indexes in the order of their sources.
    pub(crate) incoming: Vec<u32>,
    /// The scope it belongs to, and its place in there.
    pub(crate) scope: u32,
    pub(crate) local: u32,
    /// Decisions it waits for: its incoming edges, and the scope it closes.
    pub(crate) fan_in: u32,
    /// The scope it opens.
    pub(crate) opens: Option<u32>,
    /// The scope it closes.
    pub(crate) closes: Option<u32>,
    /// One bit for each node above it.
    ancestors: Box<[u64]>,
}

/// An edge ready to be taken.
pub struct PlanEdge {
    /// The edge's id.
    pub id: String,
    /// Index of its source.
    pub from: u32,
    /// Index of its target.
    pub to: u32,
    /// When it is taken.
    pub edge_type: EdgeType,
    pub(crate) filter: Option<CompiledFilter>,
    /// The scope it belongs to, and its place in there.
    pub(crate) scope: u32,
    pub(crate) local: u32,
}

/// Nodes and edges in brief: `1:manual_trigger 2:set 1-2`.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plan(")?;
        self.nodes
            .iter()
            .try_for_each(|node| write!(f, "{}:{} ", node.id, node.module_slug))?;
        self.edges.iter().try_for_each(|edge| write!(f, "{} ", edge.id))?;
        f.write_str(")")
    }
}

impl PlanNode {
    /// Of a node that opens a scope: items at the same time.
    pub(crate) fn concurrency(&self) -> u32 {
        match &self.behaviour {
            Behaviour::Splitter(splitter) => splitter.concurrency(),
            _ => self.concurrency,
        }
    }

    /// Of a node that opens a scope: its output for an item. A splitter wraps items, which may be anything; what a module
    /// finds is an output itself.
    pub(crate) fn item_output(&self, index: u32, item: &Value) -> Value {
        match &self.behaviour {
            Behaviour::Splitter(_) => json!({ "item": item, "index": index }),
            _ => as_object(item.clone()),
        }
    }

    /// The item inside what [`PlanNode::item_output`] gave.
    pub(crate) fn item_in<'v>(&self, output: &'v Value) -> Option<&'v Value> {
        match &self.behaviour {
            Behaviour::Splitter(_) => output.get("item"),
            _ => Some(output),
        }
    }
}

impl Plan {
    /// Compiles a graph, or gives everything that keeps it from running.
    pub fn compile(
        graph: &Graph,
        kinds: &dyn Kinds,
        functions: &dyn CustomFunctions,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = topology::check(graph, kinds);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut sorted: Vec<&Node> = graph.nodes.iter().collect();
        sorted.sort_by_key(|node| node.id);
        let mut nodes = Vec::with_capacity(sorted.len());
        for node in sorted {
            match compile_node(node, kinds, functions) {
                Ok(compiled) => nodes.push(compiled),
                Err(found) => problems.extend(found),
            }
        }
        problems.extend(regions::check_complete(graph, kinds));
        let filters = compile_filters(graph, functions, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let edges = Vec::with_capacity(graph.edges.len());
        let mut plan = Self {
            nodes,
            edges,
            scopes: Vec::new(),
        };
        plan.connect(&graph.edges, filters);
        plan.find_ancestors();
        plan.divide(graph, kinds);
        Ok(plan)
    }

    /// The nodes in order of id.
    pub fn nodes(&self) -> &[PlanNode] {
        &self.nodes
    }

    /// The edges in the graph's order.
    pub fn edges(&self) -> &[PlanEdge] {
        &self.edges
    }

    /// The node with this id.
    pub fn node(&self, id: i64) -> Option<&PlanNode> {
        self.index_of(id).map(|index| self.node_at(index))
    }

    /// The ids of the nodes above a node: those whose outputs it sees. Empty when there is no such node.
    pub fn ancestor_ids(&self, id: i64) -> Vec<i64> {
        let Some(index) = self.index_of(id) else {
            return Vec::new();
        };
        self.ancestors(index)
            .map(|above| self.node_at(above).id)
            .collect()
    }

    pub(crate) fn index_of(&self, id: i64) -> Option<u32> {
        // Ids count from one, so without removed nodes the place is known.
        let guess = usize::try_from(id - 1).unwrap_or(usize::MAX);
        let found = match self.nodes.get(guess) {
            Some(node) if node.id == id => guess,
            _ => self.nodes.binary_search_by_key(&id, |node| node.id).ok()?,
        };
        u32::try_from(found).ok()
    }

    pub(crate) fn node_at(&self, index: u32) -> &PlanNode {
        &self.nodes[index as usize]
    }

    pub(crate) fn edge_at(&self, index: u32) -> &PlanEdge {
        &self.edges[index as usize]
    }

    pub(crate) fn indexes(&self) -> std::ops::Range<u32> {
        0..self.nodes.len() as u32
    }

    pub(crate) fn is_above(&self, above: u32, below: u32) -> bool {
        let bits = &self.node_at(below).ancestors;
        bits.get(above as usize / 64)
            .is_some_and(|word| word & (1 << (above % 64)) != 0)
    }

    pub(crate) fn ancestors(&self, index: u32) -> impl Iterator<Item = u32> {
        self.indexes().filter(move |above| self.is_above(*above, index))
    }

    fn connect(&mut self, edges: &[Edge], filters: Vec<Option<CompiledFilter>>) {
        let mut by_order: Vec<u32> = (0..edges.len() as u32).collect();
        by_order.sort_by_key(|&at| (edges[at as usize].order, &edges[at as usize].id));
        for (edge, filter) in edges.iter().zip(filters) {
            // The topology gate has made sure that both ends exist.
            let (Some(from), Some(to)) = (self.index_of(edge.from), self.index_of(edge.to)) else {
                continue;
            };
            self.edges.push(PlanEdge {
                id: edge.id.clone(),
                from,
                to,
                edge_type: edge.edge_type,
                filter,
                scope: 0,
                local: 0,
            });
        }
        for at in by_order {
            let (from, to) = (self.edges[at as usize].from, self.edges[at as usize].to);
            self.nodes[from as usize].outgoing.push(at);
            self.nodes[to as usize].incoming.push(at);
        }
        for node in &mut self.nodes {
            node.incoming
                .sort_by_key(|&at| (self.edges[at as usize].from, at));
        }
    }

    fn find_ancestors(&mut self) {
        let words = self.nodes.len().div_ceil(64);
        let mut above = vec![vec![0_u64; words]; self.nodes.len()];
        let mut open: Vec<usize> = self.nodes.iter().map(|node| node.incoming.len()).collect();
        let mut next: Vec<usize> = (0..open.len()).filter(|&index| open[index] == 0).collect();
        while let Some(index) = next.pop() {
            for &edge in &self.nodes[index].outgoing {
                let to = self.edges[edge as usize].to as usize;
                let inherited = above[index].clone();
                above[to]
                    .iter_mut()
                    .zip(inherited)
                    .for_each(|(word, more)| *word |= more);
                above[to][index / 64] |= 1 << (index % 64);
                open[to] -= 1;
                if open[to] == 0 {
                    next.push(to);
                }
            }
        }
        for (node, bits) in self.nodes.iter_mut().zip(above) {
            node.ancestors = bits.into_boxed_slice();
        }
    }
}

fn compile_node(
    node: &Node,
    kinds: &dyn Kinds,
    functions: &dyn CustomFunctions,
) -> Result<PlanNode, Vec<Problem>> {
    let kind = match kinds.find(&node.app_id, &node.module_slug) {
        Ok(kind) => kind,
        Err(unknown) => return Err(vec![Problem::node(node.id, unknown.to_string())]),
    };
    let found = kind.check(&node.params, functions, Completeness::Complete);
    if !found.is_empty() {
        return Err(located(node, found));
    }
    let behaviour = kind
        .compile(node, functions)
        .map_err(|found| located(node, found))?;
    Ok(plan_node(node, &kind, behaviour))
}

fn plan_node(node: &Node, kind: &Arc<Registered>, behaviour: Behaviour) -> PlanNode {
    let spec: &NodeSpec = &kind.spec;
    PlanNode {
        id: node.id,
        label: node.name.clone(),
        app_id: node.app_id.clone(),
        module_slug: node.module_slug.clone(),
        kind: node.kind.clone(),
        credential_id: node.credential_id.clone(),
        connection_id: node.connection_id.clone(),
        timeout_ms: node.config.timeout_ms(),
        retry: node.config.retry.clone(),
        own_retry: spec.retry.clone(),
        on_error: node.config.on_error,
        disabled: node.config.is_disabled(),
        join: node.config.join(),
        concurrency: node.config.concurrency.unwrap_or(1).max(1),
        credits: spec.credits,
        is_trigger: spec.is_trigger(),
        behaviour,
        outgoing: Vec::new(),
        incoming: Vec::new(),
        scope: 0,
        local: 0,
        fan_in: 0,
        opens: None,
        closes: None,
        ancestors: Box::default(),
    }
}

fn located(node: &Node, found: Vec<ParamProblem>) -> Vec<Problem> {
    let locate = |problem: ParamProblem| {
        Problem::node(node.id, problem.message).at(format!("{}.{}", NodeSpec::PERSISTS_UNDER, problem.path))
    };
    found.into_iter().map(locate).collect()
}

fn compile_filters(
    graph: &Graph,
    functions: &dyn CustomFunctions,
    problems: &mut Vec<Problem>,
) -> Vec<Option<CompiledFilter>> {
    let mut compile = |edge: &Edge| {
        let filter = edge.filter.as_ref()?;
        match CompiledFilter::compile(filter, functions) {
            Ok(compiled) => Some(compiled),
            Err(found) => {
                let found = found.into_iter().map(|problem| problem.under("filter"));
                problems.extend(found.map(|p| Problem::edge(&edge.id, p.message).at(p.path)));
                None
            }
        }
    };
    graph.edges.iter().map(&mut compile).collect()
}
