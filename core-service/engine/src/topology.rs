//! The gate every graph passes before it is saved.

use crate::graph::Graph;
use crate::kind::Kinds;
use crate::problem::Problem;

/// Everything that keeps a graph from being saved; empty when it may be.
pub fn check(graph: &Graph, kinds: &dyn Kinds) -> Vec<Problem> {
    let _ = (graph, kinds);
    Vec::new()
}
