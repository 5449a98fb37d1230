//! REST v1's JSON of the messages: what is read, what is refused and where, and what is written.

#![allow(clippy::unwrap_used, reason = "tests")]

use contract::json::{JsonError, MAX_DEPTH, check, parse};
use contract::rest::RestRequest;
use contract::v1::graph_op::Op;
use contract::v1::node_reference::Reference;
use contract::v1::{
    AddNode, ApplyGraphOpsRequest, CreateDatabaseRequest, CreateWorkflowRequest, Edge, EdgeType, GraphOp,
    JsonObject, JsonValue, ListWorkflowsRequest, RunSummary, StartRunRequest, UpdateWorkflowRequest,
    WorkflowSummary,
};
use contract::validation::Validate as _;
use serde_json::json;

fn error_of<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> JsonError {
    parse::<T>(text.as_bytes()).unwrap_err()
}

#[test]
fn a_nullable_field_is_written_as_null_and_an_optional_one_not_at_all() {
    let summary = serde_json::to_value(WorkflowSummary::default()).unwrap();
    assert_eq!(summary["folderId"], json!(null));
    assert!(summary.as_object().unwrap().contains_key("folderId"));
    let edge = serde_json::to_value(Edge::default()).unwrap();
    assert!(!edge.as_object().unwrap().contains_key("filter"));
}

#[test]
fn integers_are_numbers_and_enums_are_words() {
    let edge = Edge {
        id: "e".into(),
        from: 9_007_199_254_740_993,
        r#type: EdgeType::Fallback.into(),
        ..Edge::default()
    };
    let text = serde_json::to_string(&edge).unwrap();
    assert!(text.contains(r#""from":9007199254740993"#), "{text}");
    assert!(text.contains(r#""type":"fallback""#), "{text}");
}

#[test]
fn null_is_taken_where_a_field_can_be_cleared_and_refused_elsewhere() {
    let request: UpdateWorkflowRequest = parse(br#"{"folderId": null, "recurrence": null}"#).unwrap();
    assert_eq!((request.folder_id, request.recurrence), (None, None));
    let error = error_of::<UpdateWorkflowRequest>(r#"{"name": null}"#);
    assert_eq!(error.path, "name");
}

#[test]
fn a_body_names_no_field_that_it_does_not_have() {
    assert_eq!(
        error_of::<CreateWorkflowRequest>(r#"{"name": "a", "nme": "b"}"#).path,
        "nme"
    );
    // The id is the path's and the mask is the facade's.
    assert!(parse::<UpdateWorkflowRequest>(br#"{"id": "wf_1"}"#).is_err());
    assert!(parse::<UpdateWorkflowRequest>(br#"{"updateMask": "name"}"#).is_err());
}

#[test]
fn wrong_types_and_words_are_refused_with_their_path() {
    assert_eq!(error_of::<CreateWorkflowRequest>(r#"{"name": 1}"#).path, "name");
    let error = error_of::<ApplyGraphOpsRequest>(r#"{"expectedUpdatedAt": "1", "ops": []}"#);
    assert_eq!(error.path, "expectedUpdatedAt");
    let error = error_of::<ApplyGraphOpsRequest>(
        r#"{"ops": [{"op": "update_params", "nodeId": 1, "params": {}, "mode": "mix"}]}"#,
    );
    assert_eq!(
        (error.path.as_str(), error.message.contains("merge, replace")),
        ("ops[0].mode", true),
        "{error}"
    );
}

#[test]
fn an_operation_is_told_by_its_tag_wherever_it_stands() {
    let request: ApplyGraphOpsRequest = parse(
        br#"{"ops": [{"tempId": "a", "op": "add_node", "kind": "set", "after": 3, "params": {"b": 1, "a": 2.50}}]}"#,
    )
    .unwrap();
    let Some(Op::AddNode(node)) = &request.ops[0].op else {
        panic!("not an add_node")
    };
    assert_eq!(node.after.as_ref().unwrap().reference, Some(Reference::Id(3)));
    assert_eq!(
        node.params.as_ref().unwrap().json,
        r#"{"b": 1, "a": 2.50}"#,
        "kept as it was sent"
    );
    let again: serde_json::Value = serde_json::to_value(&request.ops[0]).unwrap();
    assert_eq!(
        (again["op"].as_str(), again["tempId"].as_str()),
        (Some("add_node"), Some("a"))
    );
}

#[test]
fn what_is_wrong_inside_an_operation_has_the_whole_path() {
    let with = |third: &str| {
        format!(
            r#"{{"ops": [{{"op": "remove_node", "nodeId": 1}}, {{"op": "remove_node", "nodeId": "t"}}, {third}]}}"#
        )
    };
    for (operation, path) in [
        (
            r#"{"op": "rename_node", "nodeId": true, "name": "x"}"#,
            "ops[2].nodeId",
        ),
        (
            r#"{"op": "rename_node", "nodeId": 1.5, "name": "x"}"#,
            "ops[2].nodeId",
        ),
        (r#"{"op": "explode"}"#, "ops[2].op"),
        (
            r#"{"op": "remove_node", "nodeId": 1, "force": true}"#,
            "ops[2].force",
        ),
        (
            r#"{"op": "update_params", "nodeId": 1, "params": [1]}"#,
            "ops[2].params",
        ),
        ("7", "ops[2]"),
        (r#"{"nodeId": 1}"#, "ops[2].op"),
        (r#"{"op": "set_credential", "nodeId": 1}"#, "ops[2].credentialId"),
        (r#"{"op": "set_edge_filter", "edgeId": "e1"}"#, "ops[2].filter"),
    ] {
        assert_eq!(
            error_of::<ApplyGraphOpsRequest>(&with(operation)).path,
            path,
            "{operation}"
        );
    }
    // What must be there may be null.
    for operation in [
        r#"{"op": "set_credential", "nodeId": 1, "credentialId": null}"#,
        r#"{"op": "set_edge_filter", "edgeId": "e1", "filter": null}"#,
    ] {
        let request: ApplyGraphOpsRequest = parse(with(operation).as_bytes()).unwrap();
        assert_eq!(request.ops.len(), 3);
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused_even_in_free_form_values() {
    assert!(
        error_of::<CreateWorkflowRequest>(r#"{"name": "a", "name": "b"}"#)
            .message
            .contains("twice")
    );
    let error = error_of::<StartRunRequest>(r#"{"upstreamOutputs": {"1": {"a": {"b": 1, "b": 2}}}}"#);
    assert_eq!(error.path, "upstreamOutputs.1.a");
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(check(nested(MAX_DEPTH).as_bytes()), Ok(()));
    let error = check(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err();
    assert!(error.message.contains("deeper than 64"), "{error}");
    // Deep enough to break a reader that recurses without a limit.
    assert!(check("[".repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn text_that_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "nul",
        "{} {}",
        "{\"a\":}",
        "[1,]",
        "\u{feff}{}",
        "NaN",
        "{'a': 1}",
    ] {
        assert!(
            parse::<CreateWorkflowRequest>(text.as_bytes()).is_err(),
            "{text:?}"
        );
    }
    assert!(parse::<CreateWorkflowRequest>(b"{\"name\": \"\xff\"}").is_err());
}

#[test]
fn text_holds_no_nul_wherever_it_stands() {
    let nul = r#"{"name": "a\u0000", "teamId": "\u0000", "columns": [{"name": "ok", "type": "text"}, {"name": "\u0000", "type": "text"}]}"#;
    let request: CreateDatabaseRequest = parse(nul.as_bytes()).unwrap();
    let violations = request.violations();
    let paths: Vec<&str> = violations
        .iter()
        .map(|violation| violation.path.as_str())
        .collect();
    assert_eq!(paths, ["name", "columns[1].name", "teamId"]);
}

#[test]
fn a_place_on_the_canvas_is_a_number_that_json_has() {
    let request = |x| ApplyGraphOpsRequest {
        expected_updated_at: Some(0),
        ops: vec![GraphOp {
            op: Some(Op::AddNode(AddNode {
                temp_id: "a".to_owned(),
                x: Some(x),
                ..AddNode::default()
            })),
        }],
        ..ApplyGraphOpsRequest::default()
    };
    assert_eq!(request(1.5).violations(), []);
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let violations = request(x).violations();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "ops[0].x");
    }
}

#[test]
fn an_array_is_no_object_wherever_it_stands() {
    assert!(parse::<CreateWorkflowRequest>(b"[]").is_err());
    assert!(parse::<CreateWorkflowRequest>(br#"["name"]"#).is_err());
    for (path, body) in [
        ("seedFromRun", r#"{"seedFromRun": ["run_1", 1]}"#),
        ("seedFromRun", r#"{"seedFromRun": null}"#),
    ] {
        assert_eq!(error_of::<StartRunRequest>(body).path, path);
    }
    assert_eq!(
        error_of::<UpdateWorkflowRequest>(r#"{"recurrence": []}"#).path,
        "recurrence"
    );
    let columns = r#"{"name": "a", "columns": [[]]}"#;
    assert_eq!(error_of::<CreateDatabaseRequest>(columns).path, "columns[0]");
}

#[test]
fn free_form_values_are_exact() {
    for text in [
        "1",
        "1.0",
        "18446744073709551616",
        "1e400",
        "\"\\u0000\"",
        "null",
        "{\"z\":1,\"a\":2}",
    ] {
        let value: JsonValue = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
    }
    assert_eq!(serde_json::to_string(&JsonValue::default()).unwrap(), "null");
    assert_eq!(serde_json::to_string(&JsonObject::default()).unwrap(), "{}");
}

#[test]
fn times_are_utc_with_milliseconds() {
    let at = |seconds, nanos| {
        let run = RunSummary {
            created_at: Some(pbjson_types::Timestamp { seconds, nanos }),
            ..RunSummary::default()
        };
        serde_json::to_value(run).unwrap()["createdAt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
    assert_eq!(at(951_782_399, 999_999_999), "2000-02-28T23:59:59.999Z");
    assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
    assert_eq!(at(1_709_251_199, 1_000_000), "2024-02-29T23:59:59.001Z");
    assert_eq!(
        at(4_107_542_400, 0),
        "2100-03-01T00:00:00.000Z",
        "2100 has no leap day"
    );
    assert_eq!(at(-1, 0), "1969-12-31T23:59:59.000Z");
    let finished = serde_json::to_value(RunSummary::default()).unwrap();
    assert_eq!(finished["finishedAt"], json!(null));
}

#[test]
fn parameters_are_bound_by_type() {
    let mut request = ListWorkflowsRequest::default();
    request.bind("limit", "20").unwrap();
    request.bind("sortBy", "createdAt").unwrap();
    assert_eq!(request.limit, Some(20));
    for (name, value) in [
        ("limit", ""),
        ("limit", "1.5"),
        ("limit", "99999999999"),
        ("sortBy", "CREATED_AT"),
        ("nme", "x"),
    ] {
        assert!(request.bind(name, value).is_err(), "{name}={value}");
    }
}

#[test]
fn a_mask_holds_the_bodys_keys_by_their_field_names() {
    let mut request = UpdateWorkflowRequest::default();
    let keys = contract::json::keys(br#"{"folderId": null, "name": "x"}"#);
    request.set_update_mask(&mut keys.iter().map(String::as_str));
    assert_eq!(request.update_mask.unwrap().paths, ["folder_id", "name"]);
}
