//! What is done: random calls of every noun's methods, most of them good, some of them not.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use test_support::graphs;

use super::graph;
use super::operation::Operation;

/// The most steps after the beginning.
const LONGEST: usize = 40;

/// One thing that is done on every side.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A call of a method.
    Call(Operation),
    /// Rows for a table, as runs make them.
    InsertRows {
        table: String,
        rows: Vec<Map<String, Value>>,
    },
}

/// What every script begins with, so that random references find something.
pub(crate) fn beginning() -> Vec<Step> {
    let call = |method, parameters: &[(&'static str, &str)], body| {
        let parameters = parameters
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Step::Call(Operation::new(method, parameters.collect(), body))
    };
    let columns = json!([
        { "name": "sku", "type": "text", "uniqueKey": true },
        { "name": "price", "type": "number", "indexed": true },
        { "name": "sold", "type": "boolean" },
        { "name": "since", "type": "date" },
        { "name": "more", "type": "json" },
    ]);
    vec![
        call("ListTeams", &[], Value::Null),
        call("CreateFolder", &[], json!({ "name": "Shop" })),
        call("CreateTag", &[], json!({ "name": "daily", "color": "#12abEF" })),
        call(
            "CreateWorkflow",
            &[],
            json!({ "name": "Orders", "folderId": "folder#0" }),
        ),
        call(
            "ApplyGraphOps",
            &[("id", "wf#0")],
            json!({ "ops": graphs::order_flow(), "expectedUpdatedAt": "wf#0@0" }),
        ),
        call("CreateWorkflow", &[], json!({ "name": "answers" })),
        call(
            "ApplyGraphOps",
            &[("id", "wf#1")],
            json!({ "ops": graphs::small_flow(), "expectedUpdatedAt": "wf#1@0" }),
        ),
        call(
            "CreateDatabase",
            &[],
            json!({ "name": "Products", "columns": columns }),
        ),
        call("SetVariable", &[("id", "RATE")], json!({ "value": "1.5" })),
    ]
}

/// Random steps.
pub(crate) fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => workflows(),
        5 => graph::edits(),
        4 => deployments(),
        5 => runs(),
        3 => variables(),
        2 => folders(),
        2 => tags(),
        3 => webhooks(),
        4 => databases(),
        2 => structures(),
        2 => functions(),
        2 => invitations(),
    ];
    vec(step, 1..LONGEST)
}

type Steps = BoxedStrategy<Step>;
type Values = BoxedStrategy<Value>;

/// A call with random parameters and a random body.
pub(super) fn call<const N: usize>(
    method: &'static str,
    parameters: [(&'static str, BoxedStrategy<String>); N],
    body: impl Strategy<Value = Value> + 'static,
) -> Steps {
    let (names, values): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
    (values, body)
        .prop_map(move |(values, body)| {
            // A parameter that is nothing is left out.
            let parameters = names.iter().copied().zip(values);
            let given = parameters.filter(|(_, value)| !value.is_empty());
            Step::Call(Operation::new(method, given.collect(), body))
        })
        .boxed()
}

fn nothing() -> Values {
    Just(Value::Null).boxed()
}

/// An object that has each of these members, or lacks it now and then.
pub(super) fn object<const N: usize>(members: [(&'static str, Values); N]) -> Values {
    let (names, values): (Vec<_>, Vec<_>) = members
        .into_iter()
        .map(|(name, value)| (name, weighted(0.8, value)))
        .unzip();
    values
        .prop_map(move |values| {
            let members = names.iter().zip(values);
            let given = members.filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            Value::Object(given.collect())
        })
        .boxed()
}

pub(super) fn one_of<T: Into<Value> + Clone>(values: &[T]) -> Values {
    let values: Vec<Value> = values.iter().cloned().map(Into::into).collect();
    select(values).boxed()
}

fn text(values: &'static [&'static str]) -> BoxedStrategy<String> {
    select(values).prop_map(str::to_owned).boxed()
}

/// The name of a thing of this kind, now and then one that there is not.
pub(super) fn id(kind: &'static str) -> BoxedStrategy<String> {
    prop_oneof![
        12 => (0..4).prop_map(move |number| format!("{kind}#{number}")),
        1 => Just(format!("{kind}_unknown")),
        1 => Just("folder#0".to_owned()),
    ]
    .boxed()
}

fn reference(kind: &'static str) -> Values {
    id(kind).prop_map(Value::from).boxed()
}

fn reference_or_null(kind: &'static str) -> Values {
    prop_oneof![3 => reference(kind), 1 => nothing()].boxed()
}

fn name() -> Values {
    let long = "x".repeat(201);
    let names = [
        "Orders",
        "orders",
        "  spaced  ",
        "Übung ✓",
        "100% of_it",
        "a\"b\\c",
        "",
        "z",
        &long,
    ];
    one_of(&names)
}

fn description() -> Values {
    one_of(&["what it is for", "", "Zeile\nzwei 🎉", "50%"])
}

fn description_or_null() -> Values {
    prop_oneof![3 => description(), 1 => nothing()].boxed()
}

fn flag() -> Values {
    one_of(&[true, false])
}

fn limit() -> BoxedStrategy<String> {
    text(&["", "", "1", "2", "500", "0", "-1"])
}

fn cursor() -> BoxedStrategy<String> {
    prop_oneof![4 => text(&["", "nonsense"]), 1 => (0..3).prop_map(|number| format!("cursor#{number}"))]
        .boxed()
}

fn workflows() -> Steps {
    let recurrence = one_of(&[
        json!({ "kind": "daily", "at": ["09:00"], "timezone": "Europe/Berlin" }),
        json!({ "kind": "interval", "every": 90, "unit": "minutes", "startAt": 7_258_118_400_000_i64 }),
        json!({ "kind": "cron", "expression": "*/5 * * * *", "endAt": "2199-01-01T00:00:00Z" }),
        json!({ "kind": "cron", "expression": "61 * * * *" }),
        json!({ "kind": "weekly", "days": [8], "at": ["25:00"] }),
        json!({ "kind": "once", "at": 7_258_118_400_000_i64, "timezone": "Mars/Olympus" }),
        Value::Null,
    ]);
    let made = object([
        ("name", name()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
        ("description", description_or_null()),
    ]);
    let changed = object([
        ("name", name()),
        ("active", flag()),
        ("recurrence", recurrence),
        ("folderId", reference_or_null("folder")),
        ("description", description_or_null()),
        (
            "executionTimeoutMs",
            one_of(&[json!(60_000), json!(0), Value::Null]),
        ),
    ]);
    let tag_ids = prop::collection::vec(reference("tag"), 0..3)
        .prop_map(Value::from)
        .boxed();
    let list = [
        ("q", text(&["", "", "ord", "%", "_", "Ü"])),
        (
            "status",
            text(&["", "", "active", "inactive", "draft", "deployed", "modified"]),
        ),
        ("folderId", prop_oneof![Just(String::new()), id("folder")].boxed()),
        ("tagIds", prop_oneof![Just(String::new()), id("tag")].boxed()),
        ("tagMatch", text(&["", "any", "all"])),
        ("sortBy", text(&["", "name", "createdAt", "updatedAt"])),
        ("sortDir", text(&["", "asc", "desc"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        2 => call("CreateWorkflow", [], made),
        4 => call("UpdateWorkflow", [("id", id("wf"))], changed),
        1 => call("DeleteWorkflow", [("id", id("wf"))], nothing()),
        2 => call("SetWorkflowTags", [("id", id("wf"))], object([("tagIds", tag_ids)])),
        2 => call("ListWorkflows", list, nothing()),
        1 => call("GetWorkflow", [("id", id("wf")), ("view", text(&["", "draft", "deployed"]))], nothing()),
    ]
    .boxed()
}

fn deployments() -> Steps {
    let expected = (0..3, 0..3).prop_map(|(workflow, back)| format!("wf#{workflow}@{back}").into());
    let deploy = object([("expectedUpdatedAt", expected.boxed())]);
    let expressions = [
        "1.body.price",
        "{{2.answer + 1}}",
        "{{upper(\"ß\")}}",
        "{{$vars.RATE}}",
        "{{1 +}}",
        "{{nothing()}}",
        "",
        "{{[3, 1, 2]}}",
        "{{sort([\"b\", \"Ä\", \"a\"])}}",
        "{{0.1 + 0.2}}",
        "{{1 / 3}}",
        "{{9007199254740993}}",
    ];
    let expression = object([
        ("expression", one_of(&expressions)),
        ("fromNodeId", one_of(&["2", "9", "x"])),
        ("runId", reference("run")),
    ]);
    prop_oneof![
        4 => call("DeployWorkflow", [("id", id("wf"))], deploy),
        1 => call("UndeployWorkflow", [("id", id("wf"))], Just(json!({}))),
        1 => call("ValidateWorkflow", [("id", id("wf"))], Just(json!({}))),
        1 => call("ListWorkflowVersions", [("id", id("wf")), ("limit", limit()), ("cursor", cursor())], nothing()),
        1 => call("GetWorkflowVersion", [("id", id("wf")), ("versionNo", text(&["1", "2", "0", "-1"]))], nothing()),
        2 => call("ResolveExpression", [("id", id("wf"))], expression),
    ]
    .boxed()
}

fn runs() -> Steps {
    let outputs = one_of(&[
        json!({}),
        json!({ "1": { "body": { "price": 60, "customer": "Ada", "id": 7 } } }),
        json!({ "1": { "body": { "price": "many", "customer": null } } }),
        json!({ "9": {}, "x": {} }),
        json!({ "1": [1, 2] }),
    ]);
    let seed = (id("run"), one_of(&[json!(2), json!(9), Value::Null])).prop_map(|(run, node)| match node {
        Value::Null => json!({ "runId": run }),
        node => json!({ "runId": run, "nodeId": node }),
    });
    let node = one_of(&["1", "2", "3", "9", "x", ""]);
    let seeded = prop_oneof![
        object([("nodeId", node.clone()), ("upstreamOutputs", outputs.clone())]),
        object([("nodeId", node), ("seedFromRun", seed.boxed())]),
        object([("upstreamOutputs", outputs)]),
        Just(json!({})),
        Just(json!({})),
    ];
    let key = text(&["", "", "once", "twice", "with space"]);
    let retry = object([
        ("nodeId", one_of(&[1, 2, 3, 9])),
        ("attemptNumber", one_of(&[1, 2])),
    ]);
    let pages = || [("limit", limit()), ("cursor", cursor())];
    let [limit, cursor] = pages();
    let [node_limit, node_cursor] = pages();
    let respond = object([
        ("response", one_of(&[json!({}), json!({ "approved": true })])),
        ("attemptNumber", one_of(&[1, 2])),
    ]);
    let body = || Just(json!({}));
    prop_oneof![
        8 => call("StartRun", [("workflowId", id("wf")), ("idempotencyKey", key)], seeded),
        2 => call("CancelRun", [("id", id("run"))], body()),
        2 => call("RerunRun", [("id", id("run"))], body()),
        2 => call("RetryRunNode", [("id", id("run"))], retry),
        1 => call("RespondRunNode", [("id", id("run")), ("nodeId", text(&["1", "2", "9"]))], respond),
        1 => call("ListRuns", [("workflowId", id("wf")), limit, cursor], nothing()),
        1 => call("ListRunNodes", [("id", id("run")), node_limit, node_cursor], nothing()),
    ]
    .boxed()
}

fn variables() -> Steps {
    let name = || text(&["RATE", "TOKEN", "rate", "_x", "1x", "Ü"]);
    let set = object([
        ("value", one_of(&["1.5", "", " ", "geheim 🔑", "\"quoted\"\n"])),
        ("isSecret", flag()),
        ("teamId", reference_or_null("team")),
    ]);
    prop_oneof![
        5 => call("SetVariable", [("id", name())], set),
        2 => call("DeleteVariable", [("id", prop_oneof![id("var"), name()].boxed())], nothing()),
        1 => call("GetVariable", [("id", prop_oneof![id("var"), name()].boxed())], nothing()),
    ]
    .boxed()
}

fn folders() -> Steps {
    let fields = || object([("name", name()), ("parentId", reference_or_null("folder"))]);
    prop_oneof![
        3 => call("CreateFolder", [], fields()),
        2 => call("UpdateFolder", [("id", id("folder"))], fields()),
        1 => call("DeleteFolder", [("id", id("folder"))], nothing()),
    ]
    .boxed()
}

fn tags() -> Steps {
    let fields = || {
        object([
            ("name", name()),
            ("color", one_of(&["red", "#00ff00", "#0F0", "crimson", ""])),
        ])
    };
    prop_oneof![
        3 => call("CreateTag", [], fields()),
        2 => call("UpdateTag", [("id", id("tag"))], fields()),
        1 => call("DeleteTag", [("id", id("tag"))], nothing()),
    ]
    .boxed()
}

fn webhooks() -> Steps {
    let list = [
        ("q", text(&["", "ord", "hooks", "%"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        4 => call("MintWebhook", [("workflowId", id("wf"))], object([("nodeId", one_of(&["1", "2", "9", "x"]))])),
        2 => call("UpdateWebhook", [("id", id("wh"))], object([("enabled", flag())])),
        1 => call("DeleteWebhook", [("id", id("wh")), ("force", text(&["", "1", "true", "x"]))], nothing()),
        1 => call("ListWebhooks", list, nothing()),
    ]
    .boxed()
}

fn databases() -> Steps {
    let column = object([
        (
            "name",
            one_of(&["sku", "price", "sold", "Preis €", "since", "more", "id", ""]),
        ),
        (
            "type",
            one_of(&["text", "number", "integer", "boolean", "date", "datetime", "json"]),
        ),
        ("required", flag()),
        ("indexed", flag()),
        ("uniqueKey", flag()),
    ]);
    let columns = || vec(column.clone(), 0..4).prop_map(Value::from).boxed();
    let made = object([
        ("name", name()),
        ("description", description()),
        ("columns", columns()),
        ("teamId", reference_or_null("team")),
    ]);
    let condition = object([
        (
            "columnId",
            one_of(&[
                "sku", "price", "sold", "since", "more", "col#0", "col#1", "nothing",
            ]),
        ),
        (
            "operator",
            one_of(&[
                "eq",
                "neq",
                "gt",
                "lte",
                "contains",
                "starts_with",
                "in",
                "is_null",
                "is_not_null",
                "like",
            ]),
        ),
        ("value", cell()),
    ]);
    let filters = vec(condition, 0..2).prop_map(|conditions| match conditions.as_slice() {
        [] => String::new(),
        conditions => json!(conditions).to_string(),
    });
    let list = [
        ("id", id("db")),
        ("filters", filters.boxed()),
        (
            "sortColumnId",
            text(&["", "sku", "price", "sold", "since", "col#1", "more", "nothing"]),
        ),
        ("sortDir", text(&["", "asc", "desc"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    let row = object([
        ("sku", cell()),
        ("price", cell()),
        ("sold", cell()),
        ("since", cell()),
        ("more", cell()),
    ]);
    let rows = vec(
        row.prop_map(|row| row.as_object().cloned().unwrap_or_default()),
        1..4,
    );
    prop_oneof![
        1 => call("CreateDatabase", [], made),
        1 => call("UpdateDatabase", [("id", id("db"))], object([("columns", columns())])),
        1 => call("DeleteDatabase", [("id", id("db"))], nothing()),
        6 => call("ListDatabaseRows", list, nothing()),
        5 => (id("db"), rows).prop_map(|(table, rows)| Step::InsertRows { table, rows }),
    ]
    .boxed()
}

/// A value of a row, of some type or none.
fn cell() -> Values {
    one_of(&[
        json!("a"),
        json!("B"),
        json!("ä"),
        json!(""),
        json!("a%"),
        json!(1),
        json!(-2.5),
        json!(10),
        json!(1e21),
        json!(true),
        json!(false),
        json!("1999-12-31"),
        json!("1999-02-30"),
        json!({ "b": 1, "a": [null] }),
        json!(["a", 1]),
        Value::Null,
    ])
}

fn structures() -> Steps {
    let field = object([
        ("name", one_of(&["sku", "Sku", "email", ""])),
        ("type", one_of(&["text", "email", "array", "any"])),
        ("required", flag()),
    ]);
    let fields = || vec(field.clone(), 0..3).prop_map(Value::from).boxed();
    let made = object([
        ("name", name()),
        ("description", description()),
        ("fields", fields()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
    ]);
    let changed = object([
        ("name", name()),
        ("description", description_or_null()),
        ("fields", fields()),
        ("folderId", reference_or_null("folder")),
    ]);
    prop_oneof![
        3 => call("CreateStructure", [], made),
        2 => call("UpdateStructure", [("id", id("struct"))], changed),
        1 => call("ListStructures", [("limit", limit())], nothing()),
    ]
    .boxed()
}

fn functions() -> Steps {
    let parameter = object([
        ("name", one_of(&["a", "b", "1a"])),
        ("type", one_of(&["number", "any"])),
        ("description", description()),
        ("required", flag()),
    ]);
    let parameters = || vec(parameter.clone(), 0..3).prop_map(Value::from).boxed();
    let called = || one_of(&["double", "half", "upper", "Double", ""]);
    let code = || one_of(&["return a * 2", "(a) => a / 2", "return (", ""]);
    let made = object([
        ("name", called()),
        ("code", code()),
        ("description", description()),
        ("parameters", parameters()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
    ]);
    let changed = object([
        ("name", called()),
        ("code", code()),
        ("description", description_or_null()),
        ("parameters", parameters()),
        ("folderId", reference_or_null("folder")),
    ]);
    let list = [
        ("q", text(&["", "dou", "%"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        3 => call("CreateFunction", [], made),
        2 => call("UpdateFunction", [("id", id("fn"))], changed),
        1 => call("ListFunctions", list, nothing()),
    ]
    .boxed()
}

fn invitations() -> Steps {
    let made = object([
        (
            "email",
            one_of(&[
                "ada@example.com",
                "ADA@example.com",
                "bob@example.com",
                "owner@localhost",
                "nobody",
                "",
            ]),
        ),
        ("role", one_of(&["owner", "admin", "member", "viewer"])),
        ("teamId", reference_or_null("team")),
    ]);
    let list = [
        ("status", text(&["", "pending", "cancelled", "expired"])),
        ("limit", limit()),
    ];
    prop_oneof![
        3 => call("CreateInvitation", [], made),
        2 => call("DeleteInvitation", [("id", id("inv"))], nothing()),
        1 => call("ListInvitations", list, nothing()),
    ]
    .boxed()
}
