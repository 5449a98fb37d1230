//! Values for expressions to work on, and a scope that notes which of them are read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use engine::expression::{CustomFunctions, EvaluationError, Root, Scope};
use serde_json::{Value, json};

/// 2026-03-29T00:59:30.250Z, half a minute before summer time in Europe.
const NOW: i64 = 1_774_745_970_250;

struct Values {
    nodes: BTreeMap<i64, Value>,
    run: Value,
    item: Value,
    error: Value,
    variable: Value,
}

static VALUES: LazyLock<Values> = LazyLock::new(|| Values {
    nodes: BTreeMap::from([
        (
            1,
            json!({"body": {
                "id": 7, "name": "Ann", "total": 12.5, "paid": true, "note": null, "tags": ["new", "vip"],
                "items": [{"sku": "A1", "price": 5, "lines": [{"n": 1}, {"n": 2}]}, {"sku": "B2", "price": 0.1}],
                "größe": "L", "at": "2026-02-28T23:30:00+01:00", "html": "<b>1 &lt; 2</b>",
            }}),
        ),
        (
            2,
            json!({"most": u64::MAX, "least": i64::MIN, "tiny": 5e-324, "huge": f64::MAX, "deep": [[[1]]]}),
        ),
        (3, json!("only text")),
    ]),
    run: json!({"id": "run_1", "attemptNumber": 1}),
    item: json!({"sku": "A1", "path": "name"}),
    error: json!({"code": "HTTP_ERROR", "message": "status 500"}),
    variable: json!("https://example.com"),
});

/// The values, and what was read of them.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) nodes: RefCell<BTreeSet<i64>>,
    pub(crate) variables: RefCell<BTreeSet<String>>,
    pub(crate) functions: RefCell<BTreeSet<String>>,
}

impl Scope for World {
    fn node(&self, id: i64) -> Option<&Value> {
        self.nodes.borrow_mut().insert(id);
        VALUES.nodes.get(&id)
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Run => Some(&VALUES.run),
            Root::Item => Some(&VALUES.item),
            Root::Error => Some(&VALUES.error),
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
        self.variables.borrow_mut().insert(name.to_owned());
        (name == "BASE_URL").then_some(&VALUES.variable)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        self.functions.borrow_mut().insert(name.to_owned());
        match name {
            "echo" => Ok(Value::Array(arguments)),
            "later" => Err(EvaluationError::unanswered()),
            _ => Err(EvaluationError::with_code("CODE_TIMEOUT", "it took too long")),
        }
    }
}

/// The custom functions there are: `echo` gives its arguments, `later` has not answered, `slow` fails.
pub struct Functions;

impl CustomFunctions for Functions {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        match name {
            "echo" => Some((0, 3)),
            "later" | "slow" => Some((0, 1)),
            _ => None,
        }
    }
}
