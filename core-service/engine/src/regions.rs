//! The regions of nodes that open scopes, splitters and modules that give several things: what runs once for each item.
//!
//! A region is what lies downstream of its opener up to the aggregator that names it, else to the end. The only way
//! into a region is its opener, the only way out its aggregator: otherwise a node would belong to two scopes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::graph::{Edge, EdgeType, Graph, NATIVE_APP, Node};
use crate::kind::Kinds;
use crate::problem::Problem;

/// The native kind that closes a scope.
pub const AGGREGATOR: &str = "aggregator";

/// A region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The splitter or module.
    pub opener: i64,
    /// The aggregator that names it.
    pub closer: Option<i64>,
    /// The nodes that run once for each item, those of regions inside included.
    pub inside: BTreeSet<i64>,
    /// The nodes below the aggregator.
    beyond: BTreeSet<i64>,
}

/// The regions of a graph without cycles, by opener.
pub fn find(graph: &Graph, kinds: &dyn Kinds) -> BTreeMap<i64, Region> {
    let mut outgoing: Outgoing = HashMap::new();
    for edge in &graph.edges {
        outgoing.entry(edge.from).or_default().push(edge.to);
    }
    let opens = |node: &&Node| {
        let kind = kinds.find(&node.app_id, &node.module_slug);
        kind.is_ok_and(|kind| kind.spec.opens_scope)
    };
    let openers = graph.nodes.iter().filter(opens);
    openers
        .map(|opener| (opener.id, region(graph, opener.id, &outgoing)))
        .collect()
}

/// Targets by source.
type Outgoing = HashMap<i64, Vec<i64>>;

fn region(graph: &Graph, opener: i64, outgoing: &Outgoing) -> Region {
    let closer = graph
        .nodes
        .iter()
        .find(|node| closes(node) == Some(opener))
        .map(|node| node.id);
    let entries = graph
        .edges
        .iter()
        .filter(|edge| edge.from == opener && opens(edge));
    let reached = reach(entries.map(|edge| edge.to).collect(), closer, outgoing);
    let after = closer
        .and_then(|closer| outgoing.get(&closer))
        .cloned()
        .unwrap_or_default();
    let beyond = reach(after, None, outgoing);
    let inside = reached.difference(&beyond).copied().collect();
    Region {
        opener,
        closer,
        inside,
        beyond,
    }
}

/// Whether an edge of an opener is taken for each item; its error edges are taken when it fails itself.
pub(crate) fn opens(edge: &Edge) -> bool {
    edge.edge_type != EdgeType::Error
}

/// These nodes and all below them, without `end` and what is only reached through it.
fn reach(mut next: Vec<i64>, end: Option<i64>, outgoing: &Outgoing) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    while let Some(id) = next.pop() {
        if Some(id) != end && found.insert(id) {
            next.extend(outgoing.get(&id).into_iter().flatten());
        }
    }
    found
}

/// The opener that an aggregator names.
fn closes(node: &Node) -> Option<i64> {
    is_native(node, AGGREGATOR)
        .then(|| node.params.get("of").and_then(Value::as_i64))
        .flatten()
}

fn is_native(node: &Node, kind: &str) -> bool {
    node.app_id == NATIVE_APP && node.module_slug == kind
}

/// What is wrong with the regions of a graph without cycles, finished or not.
pub(crate) fn check(graph: &Graph, kinds: &dyn Kinds) -> Vec<Problem> {
    let regions = find(graph, kinds);
    let mut problems = Vec::new();
    for region in regions.values() {
        problems.extend(graph.edges.iter().filter_map(|edge| crossing(edge, region)));
        problems.extend(regions.values().filter_map(|inner| unclosed(inner, region)));
    }
    problems
}

/// An edge that leads into or out of a region elsewhere than at its ends.
fn crossing(edge: &Edge, region: &Region) -> Option<Problem> {
    let Region {
        opener,
        closer,
        inside,
        beyond,
    } = region;
    let from_inside = (edge.from == *opener && opens(edge)) || inside.contains(&edge.from);
    let what = match closer {
        Some(closer) if from_inside && beyond.contains(&edge.to) => {
            format!(
                "edge {} leads out of the region of splitter {opener} past its aggregator {closer}",
                edge.id
            )
        }
        _ if !from_inside && inside.contains(&edge.to) => {
            format!(
                "edge {} leads into the region of splitter {opener} from outside",
                edge.id
            )
        }
        _ => return None,
    };
    Some(
        Problem::edge(&edge.id, what)
            .with_nodes([*opener])
            .with_nodes(*closer),
    )
}

/// A region that begins inside another has to end there too.
fn unclosed(inner: &Region, outer: &Region) -> Option<Problem> {
    let end = outer.closer?;
    let closes_inside = inner.closer.is_none_or(|closer| outer.inside.contains(&closer));
    let ends_inside = closes_inside && !inner.inside.contains(&end);
    if ends_inside || !outer.inside.contains(&inner.opener) {
        return None;
    }
    let (inner, outer) = (inner.opener, outer.opener);
    let what = format!(
        "the region of splitter {inner} begins inside that of splitter {outer} and leaks past its aggregator {end}"
    );
    Some(Problem::node(inner, what).with_nodes([outer, end]))
}

/// What keeps the regions of a graph from running.
pub(crate) fn check_complete(graph: &Graph, kinds: &dyn Kinds) -> Vec<Problem> {
    let regions = find(graph, kinds);
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for (aggregator, splitter) in graph
        .nodes
        .iter()
        .filter_map(|node| Some((node.id, closes(node)?)))
    {
        let what = match regions.get(&splitter) {
            None => format!("aggregator {aggregator} is of node {splitter}, which opens no scope"),
            Some(_) if !named.insert(splitter) => {
                format!("aggregator {aggregator} is not the only one of splitter {splitter}")
            }
            Some(region) if !leads_to(graph, region, aggregator) => {
                format!("aggregator {aggregator} is not downstream of its splitter {splitter}")
            }
            Some(_) => continue,
        };
        problems.push(
            Problem::node(aggregator, what)
                .with_nodes([splitter])
                .at("params.of"),
        );
    }
    problems
}

fn leads_to(graph: &Graph, region: &Region, aggregator: i64) -> bool {
    let from_region = |id: i64| id == region.opener || region.inside.contains(&id);
    graph
        .edges
        .iter()
        .any(|edge| edge.to == aggregator && from_region(edge.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, registry};

    const LOOP: &str = "1:manual_trigger 2:splitter 3:set 4:aggregator(2) 5:set | 1-2 2-3 3-4 4-5";

    fn problems(text: &str) -> Vec<String> {
        check(&graph(text), &registry())
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn a_region_ends_at_its_aggregator() {
        let regions = find(&graph(LOOP), &registry());
        assert_eq!(regions[&2].inside, BTreeSet::from([3]));
        assert_eq!(regions[&2].closer, Some(4));
        assert_eq!(problems(LOOP), [""; 0]);
    }

    #[test]
    fn a_region_without_aggregator_runs_to_the_end() {
        let regions = find(
            &graph("1:manual_trigger 2:splitter 3:set 4:set | 1-2 2-3 3-4"),
            &registry(),
        );
        assert_eq!(regions[&2].inside, BTreeSet::from([3, 4]));
    }

    #[test]
    fn edges_across_the_border_are_named() {
        let out = problems(&format!("{LOOP} 3-5"));
        assert_eq!(out.len(), 1, "{out:?}");
        assert!(
            out[0].contains("edge 3-5 leads out of the region of splitter 2 past its aggregator 4"),
            "{out:?}"
        );
        let into = problems(&format!("{LOOP} 1-3"));
        assert!(
            into[0].contains("edge 1-3 leads into the region of splitter 2"),
            "{into:?}"
        );
    }

    #[test]
    fn regions_nest_or_are_refused() {
        let nodes = "1:manual_trigger 2:splitter 3:splitter 4:aggregator(3) 5:aggregator(2)";
        assert_eq!(problems(&format!("{nodes} | 1-2 2-3 3-4 4-5")), [""; 0]);
        let crossed = problems(&format!("{nodes} | 1-2 2-3 3-5 5-4"));
        assert!(
            crossed
                .iter()
                .any(|p| p.contains("begins inside that of splitter 2")),
            "{crossed:?}"
        );
        // The inner region ends, and another way out of it leads past that end.
        let past = problems(&format!("{nodes} | 1-2 2-3 3-4 3-5"));
        assert!(
            past.iter().any(|p| p.contains("leaks past its aggregator 5")),
            "{past:?}"
        );
    }

    #[test]
    fn an_aggregator_needs_its_splitter_to_run() {
        let lost = graph("1:manual_trigger 2:aggregator(9) | 1-2");
        assert_eq!(check(&lost, &registry()), []);
        assert_eq!(check_complete(&lost, &registry()).len(), 1);
        assert_eq!(check_complete(&graph(LOOP), &registry()), []);
    }
}
