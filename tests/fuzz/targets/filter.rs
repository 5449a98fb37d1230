//! The filter of an edge: compiled or refused with its places, and meaning what its parts mean.

#![no_main]

use engine::expression::Template;
use engine::filter::{CompiledFilter, Operator};
use fuzz::{Functions, evaluate};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    // Whatever takes a filter has checked its JSON: depth and duplicate keys.
    if contract::json::check(text.as_bytes()).is_err() {
        return;
    }
    let Ok(filter) = serde_json::from_str::<Value>(text) else {
        return;
    };
    match CompiledFilter::compile(&filter, &Functions) {
        Ok(compiled) => {
            let outcome = evaluate(&compiled);
            let written = serde_json::from_str(&filter.to_string()).expect("JSON is read back");
            assert_eq!(evaluate(&compile(&written)), outcome, "read back");
            check_parts(&filter, outcome.ok());
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(!problem.message.is_empty());
            }
        }
    }
});

fn compile(filter: &Value) -> CompiledFilter {
    CompiledFilter::compile(filter, &Functions).expect("a part of a filter is one")
}

/// Any of its groups holds, and a group holds when all its conditions do.
fn check_parts(filter: &Value, outcome: Option<Value>) {
    let Some(groups) = filter.get("any").and_then(Value::as_array) else {
        return;
    };
    let mut any = Some(false);
    for group in groups {
        let conditions = group["all"].as_array().into_iter().flatten();
        let mut all = Some(true);
        for condition in conditions {
            let holds = check_condition(condition);
            all = if all == Some(true) { holds } else { all };
        }
        any = if any == Some(false) { all } else { any };
    }
    assert_eq!(outcome.and_then(|outcome| outcome.as_bool()), any);
}

/// Whether a condition holds; nothing when it fails.
fn check_condition(condition: &Value) -> Option<bool> {
    let holds = outcome(condition)?;
    let operator = condition["operator"]
        .as_str()
        .and_then(Operator::parse)
        .expect("was compiled");
    if let Some(opposite) = opposite(operator) {
        let mut condition = condition.clone();
        condition["operator"] = json!(opposite);
        assert_eq!(outcome(&condition), Some(!holds), "{opposite}");
    }
    if let Some(symbol) = symbol(operator) {
        agrees_with_expressions(condition, symbol, holds);
    }
    Some(holds)
}

fn outcome(condition: &Value) -> Option<bool> {
    let filter = compile(&json!({"any": [{"all": [condition]}]}));
    evaluate(&filter).ok()?.as_bool()
}

fn opposite(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "neq",
        Operator::Contains => "not_contains",
        Operator::In => "not_in",
        Operator::IsNull => "is_not_null",
        Operator::IsEmpty => "is_not_empty",
        _ => return None,
    })
}

fn symbol(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "==",
        Operator::Gt => ">",
        Operator::Gte => ">=",
        Operator::Lt => "<",
        Operator::Lte => "<=",
        _ => return None,
    })
}

/// Two numbers compare alike in a filter and in an expression.
fn agrees_with_expressions(condition: &Value, symbol: &str, holds: bool) {
    let (Some(left), Some(right)) = (condition["left"].as_number(), condition["right"].as_number()) else {
        return;
    };
    let text = format!("{{{{ {left} {symbol} {right} }}}}");
    if let Ok(template) = Template::parse(&text, &Functions) {
        assert_eq!(evaluate(&template), Ok(Value::Bool(holds)), "{text}");
    }
}
