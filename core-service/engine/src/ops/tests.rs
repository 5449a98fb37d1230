//! What each operation does, and what no batch can do.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::expression::NoCustomFunctions;
use crate::graph::Node;
use crate::kind::Registry;
use crate::testing::{graph, registry};
use crate::topology;

fn run(graph: &Graph, ops: Vec<GraphOp>) -> OpsResult {
    let registry = registry();
    let credential_app = |id: &str| match id {
        "cred_http" => Some(String::from("http")),
        "cred_native" => Some(String::from("native")),
        _ => None,
    };
    let context = OpsContext {
        kinds: &registry,
        functions: &NoCustomFunctions,
        credential_app: &credential_app,
    };
    apply(graph, ops, &context)
}

fn errors(result: &OpsResult) -> Vec<String> {
    result.errors.iter().map(OpError::to_string).collect()
}

fn add_op(add: AddNode) -> GraphOp {
    GraphOp::AddNode(Box::new(add))
}

fn add(temp_id: &str, kind: &str) -> AddNode {
    AddNode {
        temp_id: temp_id.into(),
        kind: KindRef::Native(kind.into()),
        ..AddNode::default()
    }
}

fn temp(temp_id: &str) -> NodeRef {
    NodeRef::Temp(temp_id.into())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn connect(from: NodeRef, to: NodeRef) -> GraphOp {
    GraphOp::Connect {
        from,
        to,
        edge_type: EdgeType::Normal,
        order: None,
        filter: None,
    }
}

#[test]
fn a_batch_builds_a_workflow() {
    let params = object(json!({ "fields": { "a": 1 } }));
    let result = run(
        &Graph::default(),
        vec![
            add_op(add("start", "manual_trigger")),
            add_op(AddNode {
                params,
                after: Some(temp("start")),
                ..add("set", "set")
            }),
            add_op(add("call", "call")),
            connect(temp("set"), temp("call")),
            GraphOp::RenameNode {
                node: NodeRef::Id(3),
                name: "  Call it ".into(),
            },
        ],
    );
    assert_eq!(errors(&result), [""; 0]);
    assert_eq!(
        result.applied,
        [("start".into(), 1), ("set".into(), 2), ("call".into(), 3)]
    );
    assert_eq!(result.touched, [1, 2, 3]);
    let edges: Vec<_> = result.graph.edges.iter().map(|edge| edge.id.as_str()).collect();
    assert_eq!(edges, ["1-2", "2-3"]);
    assert_eq!(result.graph.node(3).unwrap().name, "Call it");
    assert_eq!(result.graph.node(1).unwrap().name, "Manual trigger");
    let place = |id| result.graph.node(id).map(|node: &Node| (node.x, node.y)).unwrap();
    assert!(place(2).0 > place(1).0 && place(3).1 > place(1).1);
}

#[test]
fn what_fails_says_where_and_the_rest_applies() {
    let result = run(
        &graph("1:set |"),
        vec![
            add_op(add("a", "teleport")),
            add_op(add("b", "set")),
            connect(NodeRef::Id(9), temp("b")),
            add_op(add("b", "set")),
            add_op(AddNode {
                after: Some(temp("zzz")),
                ..add("c", "set")
            }),
            add_op(AddNode {
                kind: KindRef::Module {
                    app_id: "slack".into(),
                    module_slug: "send".into(),
                },
                ..add("d", "")
            }),
            GraphOp::Disconnect(EdgeRef::Id("1-2".into())),
            GraphOp::RenameNode {
                node: NodeRef::Id(1),
                name: "   ".into(),
            },
        ],
    );
    let expected = [
        "ops[0] add_node: UNKNOWN_KIND: there is no node kind teleport",
        "ops[2] connect: NODE_NOT_FOUND: node 9 does not exist",
        "ops[3] add_node: DUPLICATE_TEMP_ID: tempId \"b\" is used twice in this batch",
        "ops[4] add_node: NODE_NOT_FOUND: node \"zzz\" does not exist",
        "ops[5] add_node: UNKNOWN_KIND: there is no app slack",
        "ops[6] disconnect: EDGE_NOT_FOUND: edge \"1-2\" does not exist",
        "ops[7] rename_node: INVALID_NAME: a name has 1 to 200 characters",
    ];
    assert_eq!(errors(&result), expected);
    assert_eq!(result.graph.nodes.len(), 2);
    assert_eq!(result.applied, [("b".into(), 2)]);
}

#[test]
fn ids_are_never_used_again() {
    let first = run(
        &graph("1:set 2:set |"),
        vec![GraphOp::RemoveNode {
            node: NodeRef::Id(2),
            heal: false,
        }],
    );
    let second = run(&first.graph, vec![add_op(add("new", "set"))]);
    assert_eq!(second.applied, [("new".into(), 3)]);
}

#[test]
fn parameters_are_merged_or_replaced_and_checked() {
    let mut start = graph("1:set |");
    crate::testing::set_params(&mut start, 1, json!({ "fields": { "a": 1, "b": 2 } }));
    let update = |params: Value, mode| GraphOp::UpdateParams {
        node: NodeRef::Id(1),
        params: object(params),
        mode,
    };
    let merged = run(
        &start,
        vec![update(
            json!({ "fields": { "a": null, "c": 3 } }),
            UpdateMode::Merge,
        )],
    );
    assert_eq!(merged.graph.nodes[0].params["fields"], json!({ "b": 2, "c": 3 }));
    let replaced = run(
        &start,
        vec![update(json!({ "keepInput": true }), UpdateMode::Replace)],
    );
    assert_eq!(
        Value::Object(replaced.graph.nodes[0].params.clone()),
        json!({ "keepInput": true })
    );
    for (params, part) in [
        (json!({ "field": {} }), "has no such parameter"),
        (json!({ "keepInput": 1 }), "boolean"),
    ] {
        let refused = run(&start, vec![update(params, UpdateMode::Merge)]);
        assert!(errors(&refused)[0].contains(part), "{:?}", refused.errors);
        assert_eq!(refused.graph, start);
        assert_eq!(refused.touched, [0; 0]);
    }
}

#[test]
fn config_takes_position_and_connection_too() {
    let config = object(json!({ "timeoutMs": 5, "x": 7, "y": -1.5, "connectionId": "basic" }));
    let op = |config| GraphOp::UpdateConfig {
        node: NodeRef::Id(1),
        config,
        mode: UpdateMode::Merge,
    };
    let result = run(&graph("1:set |"), vec![op(config)]);
    let node = &result.graph.nodes[0];
    assert_eq!((node.x, node.y, node.config.timeout_ms), (7.0, -1.5, Some(5)));
    assert_eq!(node.connection_id.as_deref(), Some("basic"));
    let cleared = run(
        &result.graph,
        vec![op(object(json!({ "connectionId": null, "timeoutMs": null })))],
    );
    assert_eq!(cleared.graph.nodes[0].connection_id, None);
    assert_eq!(cleared.graph.nodes[0].config.timeout_ms, None);
    let refused = run(
        &result.graph,
        vec![op(object(json!({ "timeoutMs": 0, "x": 100 })))],
    );
    assert!(errors(&refused)[0].contains("INVALID_CONFIG: timeoutMs must be from 1"));
    assert_eq!(refused.graph, result.graph);
}

#[test]
fn edges_are_found_by_their_ends() {
    let start = graph("1:set 2:set | 1-2 1-2-error");
    let ends = |edge_type| EdgeRef::Ends {
        from: NodeRef::Id(1),
        to: NodeRef::Id(2),
        edge_type,
    };
    let ambiguous = run(&start, vec![GraphOp::Disconnect(ends(None))]);
    assert!(errors(&ambiguous)[0].contains("EDGE_AMBIGUOUS"));
    let filter = Some(json!({ "any": [{ "all": [{ "left": 1, "operator": "eq", "right": 1 }] }] }));
    let set = GraphOp::SetEdgeFilter {
        edge: ends(Some(EdgeType::Error)),
        filter: filter.clone(),
    };
    let result = run(
        &start,
        vec![set, GraphOp::Disconnect(ends(Some(EdgeType::Normal)))],
    );
    assert_eq!(errors(&result), [""; 0]);
    assert_eq!(result.graph.edges.len(), 1);
    assert_eq!(result.graph.edges[0].filter, filter);
    let wrong = run(
        &start,
        vec![GraphOp::SetEdgeFilter {
            edge: EdgeRef::Id("1-2".into()),
            filter: Some(json!({})),
        }],
    );
    assert!(
        errors(&wrong)[0].contains("INVALID_FILTER: filter.any must be a list"),
        "{:?}",
        wrong.errors
    );
}

#[test]
fn healing_connects_what_was_before_with_what_came_after() {
    let start = graph("1:set 2:set 3:set 4:set 5:set | 1-3 2-3-error 3-4 3-5-error 1-4");
    let healed = run(
        &start,
        vec![GraphOp::RemoveNode {
            node: NodeRef::Id(3),
            heal: true,
        }],
    );
    let mut edges: Vec<_> = healed.graph.edges.iter().map(|edge| edge.id.as_str()).collect();
    edges.sort_unstable();
    assert_eq!(edges, ["1-4", "2-4-error"]);
    let cut = run(
        &start,
        vec![GraphOp::RemoveNode {
            node: NodeRef::Id(3),
            heal: false,
        }],
    );
    assert_eq!(cut.graph.edges.len(), 1);
}

#[test]
fn healing_follows_no_edge_of_the_removed_node_to_itself() {
    let removed = GraphOp::RemoveNode {
        node: NodeRef::Id(2),
        heal: true,
    };
    let healed = run(&graph("1:set 2:set 3:set | 1-2 2-2 2-3"), vec![removed]);
    assert_eq!(healed.errors, []);
    let edges: Vec<_> = healed.graph.edges.iter().map(|edge| edge.id.as_str()).collect();
    assert_eq!(edges, ["1-3"]);
}

#[test]
fn healing_beyond_the_limit_of_edges_is_refused_whole() {
    let fan = |from: i64, to: i64| format!(" {from}-{to}");
    let nodes: String = (1..=101).map(|id| format!("{id}:set ")).collect();
    let inward: String = (1..=50).map(|id| fan(id, 101)).collect();
    let onward: String = (51..=100).map(|id| fan(101, id)).collect();
    let start = graph(&format!("{nodes}|{inward}{onward}"));
    let removed = GraphOp::RemoveNode {
        node: NodeRef::Id(101),
        heal: true,
    };
    let result = run(&start, vec![removed]);
    assert!(errors(&result)[0].contains("TOO_MANY_EDGES"));
    assert_eq!(result.graph, start);
}

#[test]
fn credentials_belong_to_their_app() {
    let set = |id: &str| GraphOp::SetCredential {
        node: NodeRef::Id(1),
        credential_id: Some(id.into()),
    };
    let result = run(&graph("1:call |"), vec![set("cred_http"), set("cred_lost")]);
    assert_eq!(
        errors(&result),
        ["ops[1] set_credential: CREDENTIAL_NOT_FOUND: credential cred_lost does not exist"]
    );
    assert_eq!(result.graph.nodes[0].credential_id.as_deref(), Some("cred_http"));
    let mut foreign = graph("1:call |");
    foreign.nodes[0].app_id = "slack".into();
    assert!(errors(&run(&foreign, vec![set("cred_http")]))[0].contains("CREDENTIAL_MISMATCH"));
}

#[test]
fn later_edges_come_after_earlier_ones() {
    let result = run(
        &graph("1:set 2:set 3:set |"),
        vec![
            connect(NodeRef::Id(1), NodeRef::Id(2)),
            connect(NodeRef::Id(1), NodeRef::Id(3)),
        ],
    );
    assert_eq!(
        result
            .graph
            .edges
            .iter()
            .map(|edge| edge.order)
            .collect::<Vec<_>>(),
        [0, 1]
    );
    let again = run(&result.graph, vec![connect(NodeRef::Id(1), NodeRef::Id(2))]);
    assert!(errors(&again)[0].contains("EDGE_EXISTS: there is a normal edge from 1 to 2 already"));
}

#[test]
fn limits_refuse_the_operation() {
    let mut full = graph("1:set |");
    full.nodes = (1..=500)
        .map(|id| Node {
            id,
            ..full.nodes[0].clone()
        })
        .collect();
    full.next_node_id = 501;
    let result = run(&full, vec![add_op(add("more", "set"))]);
    assert!(errors(&result)[0].contains("TOO_MANY_NODES"));
    assert_eq!(result.graph, full);
}

/// Operations with small ids and names, so that many of them find something.
fn random_op() -> impl Strategy<Value = GraphOp> {
    let node = || prop_oneof![(1..8_i64).prop_map(NodeRef::Id), "[a-d]".prop_map(NodeRef::Temp)];
    let kind = prop::sample::select(vec!["set", "call", "condition", "manual_trigger", "stop", "none"]);
    let edge_type = || prop::sample::select(vec![EdgeType::Normal, EdgeType::Error, EdgeType::Fallback]);
    prop_oneof![
        3 => ("[a-d]", kind, prop::option::of(node())).prop_map(|(temp_id, kind, after)| {
            add_op(AddNode { after, ..add(&temp_id, kind) })
        }),
        3 => (node(), node(), edge_type()).prop_map(|(from, to, edge_type)| GraphOp::Connect {
            from, to, edge_type, order: None, filter: None
        }),
        1 => (node(), node()).prop_map(|(from, to)| GraphOp::Disconnect(EdgeRef::Ends { from, to, edge_type: None })),
        1 => (node(), any::<bool>()).prop_map(|(node, heal)| GraphOp::RemoveNode { node, heal }),
        1 => (node(), ".{0,3}").prop_map(|(node, name)| GraphOp::RenameNode { node, name }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_batch_breaks_the_rules_of_ids(batches in prop::collection::vec(prop::collection::vec(random_op(), 0..12), 1..4)) {
        let mut graph = Graph::default();
        let mut given = HashSet::new();
        for ops in batches {
            let count = ops.len();
            let result = run(&graph, ops);
            prop_assert!(result.errors.len() <= count);
            for (_, id) in &result.applied {
                prop_assert!(given.insert(*id), "id {} was given twice", id);
            }
            graph = result.graph;
            let ids: HashSet<i64> = graph.nodes.iter().map(|node| node.id).collect();
            prop_assert_eq!(ids.len(), graph.nodes.len());
            prop_assert!(ids.iter().all(|id| (1..graph.next_node_id).contains(id)));
            prop_assert!(result.touched.iter().all(|id| ids.contains(id)));
            prop_assert!(graph.edges.iter().all(|e| ids.contains(&e.from) && ids.contains(&e.to)));
            prop_assert!(graph.edges.iter().all(|e| e.id == crate::graph::Edge::id_of(e.from, e.to, e.edge_type)));
            let found = topology::check(&graph, &registry());
            prop_assert!(found.iter().all(|p| !p.message.contains("more than once")), "{:?}", found);
        }
    }
}

#[test]
fn the_example_of_every_kind_passes_its_own_check() {
    let registry = Registry::pure();
    for kind in registry.iter() {
        let example = object(kind.spec.example.clone());
        let found = kind.check(
            &example,
            &NoCustomFunctions,
            crate::params::Completeness::Complete,
        );
        assert_eq!(found, [], "{}", kind.spec.kind);
        let mut node = graph("1:set |").nodes.remove(0);
        node.params = example;
        assert!(
            kind.compile(&node, &NoCustomFunctions).is_ok(),
            "{}",
            kind.spec.kind
        );
    }
}
