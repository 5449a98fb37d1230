//! A scope to evaluate in, and shorthands.

use engine::expression::{CustomFunctions, EvaluationError, ParseError, Root, Scope, Template};
use serde_json::{Value, json};
use std::collections::HashMap;

/// 2026-07-23T09:30:00.000Z
pub(crate) const NOW: i64 = 1_784_799_000_000;

pub(crate) struct Fixture {
    nodes: HashMap<i64, Value>,
    run: Value,
    item: Value,
    error: Value,
    variable: Value,
}

impl Default for Fixture {
    fn default() -> Self {
        let order = json!({
            "body": {
                "id": 7,
                "name": "Ann",
                "total": 12.5,
                "paid": true,
                "note": null,
                "tags": ["new", "vip"],
                "items": [
                    {"sku": "A1", "price": 5, "lines": [{"n": 1}, {"n": 2}]},
                    {"sku": "B2", "price": 7.5, "lines": []},
                    {"sku": "C3", "lines": null},
                ],
                "empty": [],
                "in": "keyword",
                "null": "also",
                "größe": "L",
            },
            "headers": {"content-type": "application/json"},
        });
        let big = json!({"id": u64::MAX, "small": i64::MIN, "deep": [[[1]]]});
        Self {
            nodes: HashMap::from([(1, order), (2, big), (3, json!("only text"))]),
            run: json!({"id": "run_1", "attemptNumber": 1}),
            item: json!({"sku": "A1", "path": "name"}),
            error: json!({"code": "HTTP_ERROR", "message": "status 500"}),
            variable: json!("https://example.com"),
        }
    }
}

impl Fixture {
    pub(crate) fn with_node(mut self, id: i64, output: Value) -> Self {
        self.nodes.insert(id, output);
        self
    }
}

impl Scope for Fixture {
    fn node(&self, id: i64) -> Option<&Value> {
        self.nodes.get(&id)
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Run => Some(&self.run),
            Root::Item => Some(&self.item),
            Root::Error => Some(&self.error),
            Root::Workflow => None,
        }
    }

    fn index(&self) -> Option<i64> {
        Some(2)
    }

    fn now(&self) -> i64 {
        NOW
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        (name == "BASE_URL").then_some(&self.variable)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        match name {
            "addVat" => Ok(json!({"called": name, "with": arguments})),
            _ => Err(EvaluationError::with_code("CODE_TIMEOUT", "it took too long")),
        }
    }
}

/// Knows `addVat` (one or two arguments) and `slow` (none).
pub(crate) struct Custom;

impl CustomFunctions for Custom {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        match name {
            "addVat" => Some((1, 2)),
            "slow" => Some((0, 0)),
            _ => None,
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<Template, ParseError> {
    Template::parse(text, &Custom)
}

/// The value of a whole template string.
pub(crate) fn render(text: &str) -> Result<Value, EvaluationError> {
    let template = parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
    template.evaluate(&Fixture::default())
}

/// The value of an expression.
pub(crate) fn value(expression: &str) -> Value {
    render(&format!("{{{{ {expression} }}}}")).unwrap_or_else(|problem| panic!("{expression}: {problem}"))
}

/// What evaluating an expression complains about.
pub(crate) fn failure(expression: &str) -> String {
    match render(&format!("{{{{ {expression} }}}}")) {
        Ok(value) => panic!("{expression} gives {value}"),
        Err(problem) => problem.message,
    }
}

/// Each expression gives its value.
#[track_caller]
pub(crate) fn check(table: &[(&str, Value)]) {
    for (expression, expected) in table {
        assert_eq!(value(expression), *expected, "{expression}");
    }
}
