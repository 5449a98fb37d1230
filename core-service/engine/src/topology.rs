//! The gate every graph passes before it is saved.
//!
//! It looks at nodes and edges only: parameters may be incomplete in a draft, and an unconnected node is fine.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::graph::{Edge, EdgeType, Graph, MAX_EDGES, MAX_NODES};
use crate::kind::{Kinds, Registered};
use crate::problem::Problem;
use crate::regions;

/// Everything that keeps a graph from being saved; empty when it may be.
pub fn check(graph: &Graph, kinds: &dyn Kinds) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_limits(graph, &mut problems);
    check_identity(graph, &mut problems);
    check_ends(graph, &mut problems);
    check_kinds(graph, kinds, &mut problems);
    // What follows walks the graph, which has to be one.
    if problems.is_empty() {
        match find_cycle(graph) {
            None => problems.extend(regions::check(graph, kinds)),
            Some(cycle) => problems.push(cycle),
        }
    }
    problems
}

fn check_limits(graph: &Graph, problems: &mut Vec<Problem>) {
    let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
    if nodes > MAX_NODES {
        problems.push(Problem::graph(format!(
            "has {nodes} nodes; a workflow has at most {MAX_NODES}"
        )));
    }
    if edges > MAX_EDGES {
        problems.push(Problem::graph(format!(
            "has {edges} edges; a workflow has at most {MAX_EDGES}"
        )));
    }
}

fn check_identity(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut nodes = HashSet::new();
    for node in &graph.nodes {
        if node.id < 1 {
            problems.push(Problem::node(
                node.id,
                format!("node id {} is not from 1 upwards", node.id),
            ));
        }
        if !nodes.insert(node.id) {
            problems.push(Problem::node(
                node.id,
                format!("node id {} is used more than once", node.id),
            ));
        }
    }
    let mut ids = HashSet::new();
    let mut first_between: HashMap<(i64, i64, EdgeType), &Edge> = HashMap::new();
    let mut fallbacks: BTreeMap<i64, Vec<&Edge>> = BTreeMap::new();
    for edge in &graph.edges {
        if !ids.insert(edge.id.as_str()) {
            problems.push(Problem::edge(
                &edge.id,
                format!("edge id {} is used more than once", edge.id),
            ));
        }
        if let Some(first) = first_between.insert((edge.from, edge.to, edge.edge_type), edge) {
            let what = format!(
                "two {} edges lead from {} to {}",
                edge.edge_type.as_str(),
                edge.from,
                edge.to
            );
            problems.push(Problem::edge(&first.id, what).with_edges([edge.id.clone()]));
        }
        if edge.edge_type == EdgeType::Fallback {
            fallbacks.entry(edge.from).or_default().push(edge);
        }
    }
    for (from, edges) in fallbacks.into_iter().filter(|(_, edges)| edges.len() > 1) {
        let what = format!(
            "node {from} has {} fallback edges; at most one is possible",
            edges.len()
        );
        problems.push(Problem::node(from, what).with_edges(edges.into_iter().map(|edge| edge.id.clone())));
    }
}

fn check_ends(graph: &Graph, problems: &mut Vec<Problem>) {
    let nodes: HashSet<i64> = graph.nodes.iter().map(|node| node.id).collect();
    for edge in &graph.edges {
        let ends = BTreeSet::from([edge.from, edge.to]);
        for missing in ends.iter().filter(|end| !nodes.contains(end)) {
            let what = format!(
                "edge {} is connected to node {missing}, which does not exist",
                edge.id
            );
            problems.push(Problem::edge(&edge.id, what).with_nodes([*missing]));
        }
        if edge.from == edge.to {
            let what = format!("edge {} leads from node {} to itself", edge.id, edge.from);
            problems.push(Problem::edge(&edge.id, what).with_nodes([edge.from]));
        }
    }
}

fn check_kinds(graph: &Graph, kinds: &dyn Kinds, problems: &mut Vec<Problem>) {
    let mut known: HashMap<i64, Arc<Registered>> = HashMap::new();
    for node in &graph.nodes {
        match kinds.find(&node.app_id, &node.module_slug) {
            Ok(kind) => {
                known.insert(node.id, kind);
            }
            Err(unknown) => problems.push(Problem::node(node.id, unknown.to_string())),
        }
    }
    for edge in &graph.edges {
        if known.get(&edge.to).is_some_and(|kind| kind.spec.is_trigger()) && edge.from != edge.to {
            let what = format!("edge {} leads into node {}, which is a trigger", edge.id, edge.to);
            problems.push(Problem::edge(&edge.id, what).with_nodes([edge.to]));
        }
        if let Some(kind) = known
            .get(&edge.from)
            .filter(|kind| !kind.spec.routes.contains(&edge.edge_type))
        {
            let word = edge.edge_type.as_str();
            let what = format!(
                "node {} is a {}, which offers no {word} edges",
                edge.from, kind.spec.kind
            );
            problems.push(Problem::edge(&edge.id, what).with_nodes([edge.from]));
        }
    }
}

/// The nodes and edges of one cycle.
fn find_cycle(graph: &Graph) -> Option<Problem> {
    let mut open: BTreeMap<i64, usize> = graph.nodes.iter().map(|node| (node.id, 0)).collect();
    let mut outgoing: HashMap<i64, Vec<i64>> = HashMap::new();
    for edge in &graph.edges {
        *open.entry(edge.to).or_default() += 1;
        outgoing.entry(edge.from).or_default().push(edge.to);
    }
    let mut next: Vec<i64> = open
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(id, _)| *id)
        .collect();
    while let Some(id) = next.pop() {
        open.remove(&id);
        for to in outgoing.get(&id).into_iter().flatten() {
            let Some(count) = open.get_mut(to) else { continue };
            *count -= 1;
            if *count == 0 {
                next.push(*to);
            }
        }
    }
    let left = *open.first_key_value()?.0;
    Some(cycle_through(graph, left, &open))
}

/// Every node that is left over has a predecessor that is: following them backwards ends in a cycle.
fn cycle_through(graph: &Graph, start: i64, left: &BTreeMap<i64, usize>) -> Problem {
    let mut path: Vec<&Edge> = Vec::new();
    let mut seen = HashMap::from([(start, 0_usize)]);
    let mut at = start;
    while let Some(edge) = graph
        .edges
        .iter()
        .find(|edge| edge.to == at && left.contains_key(&edge.from))
    {
        path.push(edge);
        at = edge.from;
        if let Some(&begin) = seen.get(&at) {
            path.drain(..begin);
            break;
        }
        seen.insert(at, path.len());
    }
    path.reverse();
    let nodes: Vec<i64> = path.iter().map(|edge| edge.from).collect();
    let shown: Vec<String> = nodes.iter().chain(nodes.first()).map(i64::to_string).collect();
    Problem::graph(format!("the nodes {} form a cycle", shown.join(" -> ")))
        .with_nodes(nodes)
        .with_edges(path.into_iter().map(|edge| edge.id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NATIVE_APP;
    use crate::kind::Registry;
    use crate::testing::graph;

    fn problems(graph: &Graph) -> Vec<Problem> {
        check(graph, &Registry::pure())
    }

    #[track_caller]
    fn refused(text: &str, part: &str) -> Problem {
        let found = problems(&graph(text));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains(part), "{found:?}");
        found.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn sound_graphs_pass() {
        for text in [
            "|",
            "1:set |",
            "1:manual_trigger 2:set 3:set 4:set | 1-2 1-3 2-4 3-4 2-4-error",
        ] {
            assert_eq!(problems(&graph(text)), [], "{text}");
        }
    }

    #[test]
    fn cycles_name_their_nodes_and_edges() {
        let found = refused("1:set 2:set 3:set 4:set | 1-2 2-3 3-4 4-2", "form a cycle");
        assert_eq!(BTreeSet::from_iter(found.nodes), BTreeSet::from([2, 3, 4]));
        assert_eq!(found.edges.len(), 3);
        assert!(!found.edges.contains(&String::from("1-2")));
    }

    #[test]
    fn each_refusal_names_what_is_wrong() {
        refused("1:set | 1-1", "to itself");
        refused("1:set | 1-9", "does not exist");
        refused("1:set 2:manual_trigger | 1-2", "which is a trigger");
        refused(
            "1:set 2:set 3:set | 1-2-fallback 1-3-fallback",
            "2 fallback edges",
        );
        refused("1:stop 2:set | 1-2", "offers no normal edges");
        refused("1:manual_trigger 2:set | 1-2-error", "offers no error edges");
        refused("1:set 1:set |", "more than once");
        refused("0:set |", "from 1 upwards");
        refused("1:teleport |", "no node kind teleport");
    }

    #[test]
    fn equal_edges_and_ids_are_refused() {
        let mut doubled = graph("1:set 2:set | 1-2");
        doubled.edges.push(Edge {
            id: "other".into(),
            ..doubled.edges[0].clone()
        });
        assert!(
            problems(&doubled)[0]
                .message
                .contains("two normal edges lead from 1 to 2")
        );
        doubled.edges[1] = Edge {
            to: 1,
            from: 2,
            ..doubled.edges[0].clone()
        };
        assert!(
            problems(&doubled)[0]
                .message
                .contains("edge id 1-2 is used more than once")
        );
    }

    #[test]
    fn limits_hold() {
        let mut large = graph("1:set |");
        large.nodes = (1..=501)
            .map(|id| crate::graph::Node {
                id,
                ..large.nodes[0].clone()
            })
            .collect();
        assert!(problems(&large)[0].message.contains("has 501 nodes"));
        assert_eq!(large.nodes[0].app_id, NATIVE_APP);
    }
}
