//! Whole parameter values: compiled once, taken apart by node kinds, evaluated.

use crate::support::{Custom, Fixture};
use engine::expression::CompiledValue;
use serde_json::{Value, json};

fn compile(value: &Value) -> CompiledValue {
    CompiledValue::compile(value, &Custom).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn parameters() -> Value {
    json!({
        "fields": {"total": "{{1.body.total * 2}}", "kind": "order", "none": null},
        "list": ["a", "{{1.body.name}}", ["{{2.small}}"]],
        "literal": {"deep": [1, {"text": "no template"}]},
        "escaped": r"\{{literal}}",
        "url": "{{$vars.BASE_URL}}/{{1.body.id}}",
        "custom": "{{addVat(1)}}",
        "{{1.body.name}}": "keys are not templates",
    })
}

#[test]
fn strings_are_evaluated_and_the_rest_stays() {
    let value = compile(&parameters()).evaluate(&Fixture::default()).unwrap();
    let expected = json!({
        "fields": {"total": 25, "kind": "order", "none": null},
        "list": ["a", "Ann", [i64::MIN]],
        "literal": {"deep": [1, {"text": "no template"}]},
        "escaped": "{{literal}}",
        "url": "https://example.com/7",
        "custom": {"called": "addVat", "with": [1]},
        "{{1.body.name}}": "keys are not templates",
    });
    assert_eq!(value, expected);
    assert_eq!(
        value.to_string(),
        expected.to_string(),
        "the order of fields is kept"
    );
}

#[test]
fn parts_are_taken_by_name() {
    let compiled = compile(&parameters());
    let fixture = Fixture::default();
    let fields = compiled.get("fields").unwrap();
    assert_eq!(fields.as_literal(), None);
    assert_eq!(fields.get("kind").unwrap().as_literal(), Some(&json!("order")));
    assert_eq!(fields.get("total").unwrap().evaluate(&fixture), Ok(json!(25)));
    assert!(fields.get("total").unwrap().as_template().is_some());
    assert!(fields.get("missing").is_none());
    let names: Vec<&str> = fields
        .entries()
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["total", "kind", "none"]);

    let list = compiled.get("list").unwrap().items().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[1].evaluate(&fixture), Ok(json!("Ann")));
    assert_eq!(list[0].as_literal(), Some(&json!("a")));

    let literal = compiled.get("literal").unwrap();
    assert_eq!(
        literal.as_literal(),
        Some(&json!({"deep": [1, {"text": "no template"}]}))
    );
    assert_eq!(literal.get("deep").unwrap().items().unwrap().len(), 2);
    assert_eq!(literal.entries().unwrap().len(), 1);
    assert_eq!(
        compiled.get("escaped").unwrap().as_literal(),
        Some(&json!("{{literal}}"))
    );
    assert!(compiled.get("url").unwrap().items().is_none());
    assert!(compiled.get("url").unwrap().entries().is_none());
    assert!(compile(&json!("text")).get("x").is_none());
}

#[test]
fn a_value_names_what_it_reads() {
    let compiled = compile(&parameters());
    assert_eq!(compiled.node_references().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(compiled.variable_references().collect::<Vec<_>>(), ["BASE_URL"]);
    assert_eq!(compiled.custom_functions().collect::<Vec<_>>(), ["addVat"]);
    assert_eq!(compiled.templates().len(), 5);
}

#[test]
fn every_problem_is_reported_with_its_path() {
    let value = json!({
        "fields": {"total": "{{1.}}", "fine": "{{1.a}}"},
        "rows": [{}, {}, {"name": "{{nothing}}"}],
        "url": "https://{{"
    });
    let problems = CompiledValue::compile(&value, &Custom).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["fields.total", "rows[2].name", "url"]);
    let (path, problem) = &CompiledValue::compile(&json!("{{"), &Custom).unwrap_err()[0];
    assert_eq!((path.as_str(), problem.position), ("", 2));
}

#[test]
fn failures_name_the_path() {
    let fixture = Fixture::default();
    let failure = |value: Value| compile(&value).evaluate(&fixture).unwrap_err().message;
    assert_eq!(
        failure(json!({"rows": [1, {"total": "{{1.body.note + 1}}"}]})),
        "rows[1].total: `+` wants two numbers, not null and a number"
    );
    assert_eq!(
        failure(json!("{{1 / 0}}")),
        "a number cannot be divided by zero; check the divisor first"
    );
    assert_eq!(failure(json!({"a": "{{slow()}}"})), "a: it took too long");
}

#[test]
fn plain_values_pass_through() {
    for value in [
        json!(null),
        json!(1.5),
        json!("text"),
        json!([1, [2]]),
        json!({"a": {"b": []}}),
        json!({}),
    ] {
        let compiled = compile(&value);
        assert_eq!(compiled.as_literal(), Some(&value));
        assert_eq!(compiled.evaluate(&Fixture::default()), Ok(value));
    }
}
