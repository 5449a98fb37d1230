//! What filters hold, and every mistake in one.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;
use crate::expression::{NoCustomFunctions, Root};

struct Empty;

impl Scope for Empty {
    fn node(&self, _id: i64) -> Option<&Value> {
        None
    }

    fn root(&self, _root: Root) -> Option<&Value> {
        None
    }

    fn index(&self) -> Option<i64> {
        None
    }

    fn now(&self) -> i64 {
        0
    }

    fn variable(&self, _name: &str) -> Option<&Value> {
        None
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(name))
    }
}

fn holds(left: Value, operator: &str, right: Value) -> bool {
    let mut condition = json!({ "left": left, "operator": operator });
    if !Operator::parse(operator).unwrap().is_unary() {
        condition["right"] = right;
    }
    let filter = json!({ "any": [{ "all": [condition] }] });
    CompiledFilter::compile(&filter, &NoCustomFunctions)
        .unwrap()
        .matches(&Empty)
        .unwrap()
}

fn problems(filter: Value) -> Vec<String> {
    let found = CompiledFilter::compile(&filter, &NoCustomFunctions)
        .err()
        .unwrap_or_default();
    found.iter().map(ParamProblem::to_string).collect()
}

#[test]
fn operators_compare_without_coercion() {
    let true_cases = [
        (json!(1), "eq", json!(1.0)),
        (json!({"a": [1]}), "eq", json!({"a": [1.0]})),
        (json!("1"), "neq", json!(1)),
        (
            json!(9_007_199_254_740_993_i64),
            "gt",
            json!(9_007_199_254_740_992_i64),
        ),
        (json!(u64::MAX), "gt", json!(u64::MAX - 1)),
        (
            json!(9_007_199_254_740_993_i64),
            "neq",
            json!(9_007_199_254_740_992.0),
        ),
        (json!("b"), "gte", json!("a")),
        (json!(1), "lt", json!(1.5)),
        (json!(1), "lte", json!(1)),
        (json!("abc"), "contains", json!("b")),
        (json!([1, 2]), "contains", json!(2.0)),
        (json!(5), "not_contains", json!(5)),
        (json!("abc"), "starts_with", json!("ab")),
        (json!("abc"), "ends_with", json!("bc")),
        (json!("order-17"), "matches", json!("^order-\\d+$")),
        (json!("a"), "in", json!(["a"])),
        (json!("a"), "not_in", json!("abc")),
        (json!(null), "is_null", json!(null)),
        (json!(0), "is_not_null", json!(null)),
        (json!([]), "is_empty", json!(null)),
        (json!(0), "is_not_empty", json!(null)),
        (json!(true), "is_true", json!(null)),
        (json!(false), "is_false", json!(null)),
    ];
    for (left, operator, right) in true_cases {
        assert!(
            holds(left.clone(), operator, right.clone()),
            "{left} {operator} {right}"
        );
    }
    let false_cases = [
        (json!("2"), "gt", json!(1)),
        (json!(null), "lt", json!(1)),
        (json!(null), "gte", json!(null)),
        (json!("true"), "is_true", json!(null)),
        (json!(17), "matches", json!("17")),
        (json!(null), "starts_with", json!("")),
    ];
    for (left, operator, right) in false_cases {
        assert!(
            !holds(left.clone(), operator, right.clone()),
            "{left} {operator} {right}"
        );
    }
}

#[test]
fn groups_are_any_of_all() {
    let yes = json!({ "left": 1, "operator": "eq", "right": 1 });
    let no = json!({ "left": 1, "operator": "eq", "right": 2 });
    let cases = [
        (json!([yes, yes]), json!([no]), true),
        (json!([yes, no]), json!([no, yes]), false),
    ];
    for (first, second, expected) in cases {
        let filter = json!({ "any": [{ "all": first }, { "all": second }] });
        let compiled = CompiledFilter::compile(&filter, &NoCustomFunctions).unwrap();
        assert_eq!(compiled.matches(&Empty).unwrap(), expected);
    }
}

#[test]
fn every_mistake_is_named_with_its_path() {
    assert!(problems(json!(true))[0].contains("template string"));
    assert!(problems(json!({ "any": [] }))[0].contains("any must be a list with at least one"));
    assert!(problems(json!({ "all": [] }))[0].contains("all is unknown here"));
    let condition = |condition: Value| problems(json!({ "any": [{ "all": [condition] }] }));
    assert!(
        condition(json!({ "left": 1, "operator": "like", "right": 1 }))[0]
            .starts_with("any[0].all[0].operator")
    );
    assert!(condition(json!({ "left": 1, "operator": "eq" }))[0].contains("any[0].all[0].right is required"));
    assert!(condition(json!({ "left": 1, "operator": "is_null", "right": 1 }))[0].contains("must be absent"));
    assert!(
        condition(json!({ "left": "a", "operator": "matches", "right": "(" }))[0]
            .contains("regular expression")
    );
    assert!(
        condition(json!({ "left": "a", "operator": "eq", "right": 1, "x": 1 }))[0]
            .contains("is unknown here")
    );
}

#[test]
fn patterns_are_bounded() {
    let bomb = json!({ "left": "a", "operator": "matches", "right": "((a{0,100}){0,100}){0,100}" });
    assert_eq!(problems(json!({ "any": [{ "all": [bomb] }] })).len(), 1);
    // One that is computed, too: the text of a pattern costs some hundred times its length.
    let long = json!({ "left": "a", "operator": "matches", "right": "{{repeat('a'; 5000000)}}" });
    let failure = failure(&json!({ "any": [{ "all": [long] }] }));
    assert!(failure.contains("at most 4096 bytes"), "{failure}");
}

#[test]
fn failures_show_the_beginning_of_a_value() {
    let failure = failure(&json!("{{repeat('ä'; 5000)}}"));
    assert!(failure.contains("not \"äää") && failure.len() < 300, "{failure}");
}

fn failure(filter: &Value) -> String {
    let compiled = CompiledFilter::compile(filter, &NoCustomFunctions).unwrap();
    compiled.matches(&Empty).unwrap_err().message
}
