//! A batch of graph operations as REST and gRPC bring it: read or refused, and applied so that a graph stays one.
//!
//! The input is an `ApplyGraphOpsRequest`: JSON when it begins with a brace, else protobuf.

#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use contract::rest::Trim as _;
use contract::v1::ApplyGraphOpsRequest;
use contract::validation::Validate as _;
use engine::filter::CompiledFilter;
use engine::graph::{Edge, FrozenGraph, Graph, MAX_NAME, MAX_NODES, Needs};
use engine::kind::Registry;
use engine::ops::{self, GraphOp, OpsContext, OpsResult};
use engine::plan::Plan;
use engine::topology;
use fuzz::Functions;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

static KINDS: LazyLock<Registry> = LazyLock::new(Registry::pure);

/// A graph that somebody has drawn already.
static DRAWN: LazyLock<Graph> = LazyLock::new(|| {
    let batch = read(include_bytes!("graph_op.json")).expect("is a request");
    let drawn = apply(
        &Graph::default(),
        wire::graph_op::batch(batch.ops).expect("is a batch"),
    );
    assert_eq!(drawn.errors, []);
    assert_eq!(topology::check(&drawn.graph, &*KINDS), []);
    drawn.graph
});

fuzz_target!(|bytes: &[u8]| {
    let Some(mut request) = read(bytes) else {
        return;
    };
    request.trim();
    if !request.violations().is_empty() {
        return;
    }
    match wire::graph_op::batch(request.ops) {
        Ok(batch) => {
            check_batch(&Graph::default(), &batch);
            check_batch(&DRAWN, &batch);
        }
        Err(violation) => {
            assert!(
                violation.path.starts_with("ops[") && !violation.message.is_empty(),
                "{violation:?}"
            );
        }
    }
});

fn read(bytes: &[u8]) -> Option<ApplyGraphOpsRequest> {
    match bytes.first() {
        Some(b'{') => contract::json::parse(bytes).ok(),
        _ => ApplyGraphOpsRequest::decode(bytes).ok(),
    }
}

fn apply(graph: &Graph, batch: Vec<GraphOp>) -> OpsResult {
    let context = OpsContext {
        kinds: &*KINDS,
        functions: &Functions,
        credential_app: &|id| id.strip_prefix("cred_").map(str::to_owned),
    };
    ops::apply(graph, batch, &context)
}

fn check_batch(before: &Graph, batch: &[GraphOp]) {
    let result = apply(before, batch.to_vec());
    assert_eq!(result, apply(before, batch.to_vec()), "applied twice");
    only_what_was_applied_counts(before, batch, &result);
    check_graph(before, &result.graph);
    let known: HashSet<i64> = result.graph.nodes.iter().map(|node| node.id).collect();
    assert!(result.touched.is_sorted() && result.touched.iter().all(|id| known.contains(id)));
    assert!(
        result.applied.iter().all(|(_, id)| *id >= before.next_node_id),
        "an id was used again"
    );
    is_read_back(&result.graph);
    if topology::check(&result.graph, &*KINDS).is_empty() {
        freezes(&result.graph);
    }
}

/// An operation is applied wholly or not at all: without those that were refused, the batch does the same.
fn only_what_was_applied_counts(before: &Graph, batch: &[GraphOp], result: &OpsResult) {
    for error in &result.errors {
        assert_eq!(error.op, batch[error.index].name());
        assert!(!error.code.is_empty() && !error.message.is_empty(), "{error}");
    }
    let refused: HashSet<usize> = result.errors.iter().map(|error| error.index).collect();
    assert_eq!(refused.len(), result.errors.len());
    let applied = (0..).zip(batch).filter(|(index, _)| !refused.contains(index));
    let again = apply(before, applied.map(|(_, op)| op.clone()).collect());
    let errors = Vec::new();
    assert_eq!(
        OpsResult {
            errors,
            ..result.clone()
        },
        again,
        "without the refused operations"
    );
}

/// What no batch can break. That edges lead somewhere sensible is the topology's to say.
fn check_graph(before: &Graph, graph: &Graph) {
    let mut nodes = HashSet::new();
    for node in &graph.nodes {
        assert!(nodes.insert(node.id), "two nodes {}", node.id);
        assert!(
            (1..graph.next_node_id).contains(&node.id),
            "node {} is beyond the next",
            node.id
        );
        assert!(
            (1..=MAX_NAME).contains(&node.name.chars().count()),
            "name {:?}",
            node.name
        );
        assert!(node.config.violations().is_empty(), "{:?}", node.config);
    }
    assert!(graph.next_node_id >= before.next_node_id && graph.nodes.len() <= MAX_NODES);
    let mut edges = HashSet::new();
    for edge in &graph.edges {
        assert!(edges.insert(&edge.id), "two edges {}", edge.id);
        assert_eq!(edge.id, Edge::id_of(edge.from, edge.to, edge.edge_type));
        assert!(
            nodes.contains(&edge.from) && nodes.contains(&edge.to),
            "edge {} has no end",
            edge.id
        );
        let filter = edge.filter.as_ref();
        assert!(filter.is_none_or(|filter| CompiledFilter::compile(filter, &Functions).is_ok()));
    }
}

/// Drafts are stored as JSON.
fn is_read_back(graph: &Graph) {
    let stored = serde_json::to_string(graph).expect("a graph is JSON");
    match serde_json::from_str::<Graph>(&stored) {
        Ok(read) => assert_eq!(read, *graph),
        Err(error) => panic!("{stored} is not read back: {error}"),
    }
}

/// Versions are stored as canonical JSON, by its hash; what runs is compiled of that.
fn freezes(graph: &Graph) {
    let stored = graph.canonical_json(&Needs::default());
    let frozen: FrozenGraph = serde_json::from_str(&stored).expect("a version is read back");
    let (read, needs) = frozen.into_parts();
    assert_eq!(read.canonical_json(&needs), stored);
    match Plan::compile(&read, &*KINDS, &Functions) {
        Ok(_) => {}
        Err(problems) => {
            assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty()))
        }
    }
}
