//! Tables and their rows.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::script::Step;
use super::values::{
    Steps, Values, call, cursor, description, flag, id, limit, mostly, name, nothing, object, one_of,
    reference_or_null, text,
};

/// Columns by name and type; those of the first table among them.
static COLUMNS: [(&str, &str); 6] = [
    ("sku", "text"),
    ("price", "number"),
    ("sold", "boolean"),
    ("since", "date"),
    ("more", "json"),
    ("Preis €", "integer"),
];

pub(super) fn databases() -> Steps {
    let column = (select(&COLUMNS[..]), mostly(&[true], &[false]), flag()).prop_map(
        |((name, kind), fits, indexed)| {
            let kind = if fits == true { kind } else { "datetime" };
            json!({ "name": name, "type": kind, "indexed": indexed, "required": fits == false })
        },
    );
    let unique = |columns: Vec<Value>| -> Value {
        let mut names = BTreeSet::new();
        let fresh = columns.into_iter();
        fresh
            .filter(|column| names.insert(column["name"].to_string()))
            .collect()
    };
    let columns = prop_oneof![
        8 => vec(column.clone(), 1..5).prop_map(unique),
        1 => vec(column, 0..5).prop_map(Value::from),
    ]
    .boxed();
    let made = object([
        ("name*", name()),
        ("description", description()),
        ("columns*", columns.clone()),
        ("teamId", reference_or_null("team")),
    ]);
    let operators = [
        "eq",
        "neq",
        "gt",
        "lte",
        "is_null",
        "is_not_null",
        "in",
        "contains",
        "starts_with",
    ];
    let condition =
        (select(&COLUMNS[..5]), mostly(&operators, &["like"])).prop_flat_map(|((name, kind), operator)| {
            cell(kind).prop_map(move |value| match operator.as_str() {
                Some("is_null" | "is_not_null") => json!({ "columnId": name, "operator": operator }),
                Some("in") => json!({ "columnId": name, "operator": operator, "value": [value] }),
                _ => json!({ "columnId": name, "operator": operator, "value": value }),
            })
        });
    let filters = vec(condition, 0..2).prop_map(|conditions| match conditions.as_slice() {
        [] => String::new(),
        conditions => json!(conditions).to_string(),
    });
    let first = || prop_oneof![3 => Just("db#0".to_owned()), 1 => id("db")].boxed();
    let list = [
        ("id", first()),
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
        ("sku*", cell("text")),
        ("price", cell("number")),
        ("sold", cell("boolean")),
        ("since", cell("date")),
        ("more", cell("json")),
    ]);
    let rows = vec(
        row.prop_map(|row| row.as_object().cloned().unwrap_or_default()),
        1..4,
    );
    prop_oneof![
        1 => call("CreateDatabase", [], made),
        1 => call("UpdateDatabase", [("id", id("db"))], object([("columns*", columns)])),
        1 => call("DeleteDatabase", [("id", id("db"))], nothing()),
        6 => call("ListDatabaseRows", list, nothing()),
        5 => (first(), rows).prop_map(|(table, rows)| Step::InsertRows { table, rows }),
    ]
    .boxed()
}

/// A value of a type, now and then of another, or none.
fn cell(kind: &str) -> Values {
    let good = match kind {
        "text" => json!(["a", "B", "ä", "", "a%", "a_c", "Z", "10", "9"]),
        "number" => json!([1, -2.5, 10, 1e21, 0.1, -0.0, 9]),
        "boolean" => json!([true, false]),
        "date" => json!(["1999-12-31", "1999-01-01", "2199-06-15"]),
        _ => json!([{ "b": 1, "a": [null] }, ["a", 1], "text", 5]),
    };
    let good: Vec<Value> = good.as_array().cloned().unwrap_or_default();
    let bad = [json!("1999-02-30"), json!(true), json!([1]), Value::Null];
    prop_oneof![20 => one_of(&good), 1 => one_of(&bad)].boxed()
}
