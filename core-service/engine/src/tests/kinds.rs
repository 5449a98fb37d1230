//! What the pure kinds make of their parameters.

use serde_json::{Value, json};

use crate::expression::NoCustomFunctions;
use crate::kind::Kinds;
use crate::params::Completeness;
use crate::start::Start;
use crate::state::RunStatus;
use crate::step::Input;
use crate::testing::world::World;
use crate::testing::{graph, plan, registry, set_params};

/// The output of one node of a kind, or the run's error.
fn output(kind: &str, params: Value, input: Value) -> Result<Value, String> {
    let mut graph = graph(&format!("1:manual_trigger 2:{kind} | 1-2"));
    set_params(&mut graph, 2, params);
    let mut world = World::new(plan(&graph));
    world.input(Input::Start(Start {
        input: std::sync::Arc::new(input),
        ..Start::manual()
    }));
    match world.state.status() {
        RunStatus::Failed => Err(world.finished.unwrap().1.unwrap().to_string()),
        _ => Ok(Value::clone(world.state.output(2).unwrap())),
    }
}

fn problems(kind: &str, params: Value) -> Vec<String> {
    let kind = registry().find("native", kind).unwrap();
    let params = params.as_object().cloned().unwrap();
    kind.check(&params, &NoCustomFunctions, Completeness::Complete)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn set_makes_an_object_and_may_keep_its_input() {
    let params =
        |keep| json!({ "fields": { "b": "{{1.a + 1}}", "text": "a is {{1.a}}" }, "keepInput": keep });
    assert_eq!(
        output("set", params(json!(false)), json!({ "a": 1 })),
        Ok(json!({ "b": 2, "text": "a is 1" }))
    );
    let kept = json!({ "a": 1, "b": 2, "text": "a is 1" });
    assert_eq!(
        output("set", params(json!("{{true}}")), json!({ "a": 1 })),
        Ok(kept)
    );
    assert!(
        output("set", json!({ "fields": "{{1.a}}" }), json!({ "a": 1 }))
            .unwrap_err()
            .contains("EXPRESSION_ERROR")
    );
    assert_eq!(problems("set", json!({})), ["fields is required"]);
}

#[test]
fn filter_keeps_what_satisfies_the_condition() {
    let params = |condition: Value| json!({ "items": "{{1.list}}", "condition": condition });
    let input = json!({ "list": [1, 5, 3] });
    assert_eq!(
        output("filter", params(json!("{{$item > 2}}")), input.clone()),
        Ok(json!({ "items": [5, 3], "count": 2 }))
    );
    let conditions = json!({ "any": [{ "all": [{ "left": "{{$index}}", "operator": "eq", "right": 0 }] }] });
    assert_eq!(
        output("filter", params(conditions), input.clone()),
        Ok(json!({ "items": [1], "count": 1 }))
    );
    assert!(
        output("filter", params(json!("{{$item}}")), input)
            .unwrap_err()
            .contains("true or false")
    );
}

#[test]
fn sort_orders_and_keeps_ties() {
    let people =
        json!({ "list": [{ "n": "b", "age": 2 }, { "n": "a", "age": 10 }, { "n": "c", "age": 2.0 }] });
    let names = |params: Value| {
        output("sort", params, people.clone()).map(|sorted| {
            sorted["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["n"].as_str().unwrap())
                .collect::<String>()
        })
    };
    assert_eq!(
        names(json!({ "items": "{{1.list}}", "by": "{{$item.age}}" })),
        Ok("bca".into())
    );
    assert_eq!(
        names(json!({ "items": "{{1.list}}", "by": "{{$item.age}}", "direction": "desc" })),
        Ok("abc".into())
    );
    let mixed = output(
        "sort",
        json!({ "items": ["b", 2, null, "a", true, 1.5] }),
        json!({}),
    )
    .unwrap();
    assert_eq!(mixed["items"], json!([null, true, 1.5, 2, "a", "b"]));
}

#[test]
fn dedupe_keeps_the_first() {
    let by_id = json!({ "items": [{ "id": 1, "n": 1 }, { "id": 1.0, "n": 2 }, { "id": "1", "n": 3 }], "by": "{{$item.id}}" });
    let kept = json!({ "items": [{ "id": 1, "n": 1 }, { "id": "1", "n": 3 }], "count": 2 });
    assert_eq!(output("dedupe", by_id, json!({})), Ok(kept));
    assert_eq!(
        output("dedupe", json!({ "items": [1, 2, 1] }), json!({})),
        Ok(json!({ "items": [1, 2], "count": 2 }))
    );
}

#[test]
fn limit_keeps_the_first_items() {
    let limited = |count: Value| {
        output(
            "limit",
            json!({ "items": [1, 2, 3], "count": count }),
            json!({ "n": 2 }),
        )
    };
    assert_eq!(
        limited(json!("{{1.n}}")),
        Ok(json!({ "items": [1, 2], "count": 2 }))
    );
    assert_eq!(limited(json!(9)), Ok(json!({ "items": [1, 2, 3], "count": 3 })));
    assert!(limited(json!(-1)).is_err());
}

#[test]
fn sort_rounds_no_numbers() {
    // As decimals the first two are equal, and an order that says so now and then is none.
    let exact = [9_007_199_254_740_993_i64, 9_007_199_254_740_992];
    let items: Vec<Value> = (0..60)
        .map(|place| match place % 3 {
            2 => json!(9_007_199_254_740_992.0),
            of_two => json!(exact[of_two]),
        })
        .collect();
    let sorted = output(
        "sort",
        json!({ "items": "{{1.items}}" }),
        json!({ "items": items }),
    )
    .unwrap();
    let last = &sorted["items"].as_array().unwrap()[40..];
    assert!(
        last.iter().all(|number| number.as_i64() == Some(exact[0])),
        "{last:?}"
    );
}

#[test]
fn webhook_response_says_what_is_answered() {
    let params = json!({ "status": "{{1.code}}", "body": "{{1.code}}" });
    let expected = json!({ "status": 201, "headers": {}, "body": 201 });
    assert_eq!(
        output("webhook_response", params.clone(), json!({ "code": 201 })),
        Ok(expected)
    );
    assert!(
        output("webhook_response", params, json!({ "code": 99 }))
            .unwrap_err()
            .contains("from 200 to 599")
    );
}

#[test]
fn checks_name_the_parameter() {
    assert_eq!(
        problems("wait", json!({ "amount": 1 })),
        ["unit is required with amount"]
    );
    assert!(problems("wait", json!({ "amount": 1, "unit": "weeks" }))[0].contains("one of seconds"));
    assert!(problems("wait", json!({ "until": 1, "amount": 1 }))[0].starts_with("until excludes"));
    assert!(problems("webhook_trigger", json!({ "method": "BREW" }))[0].contains("one of GET"));
    assert!(
        problems(
            "webhook_trigger",
            json!({ "verify": { "type": "header", "header": "a b", "secret": "s" } })
        )[0]
        .contains("HTTP header")
    );
    assert!(problems("webhook_trigger", json!({ "responseTimeoutMs": 0 }))[0].contains("from 1 to"));
    for (ids, place) in [
        (json!([1]), "workflowIds[0]"),
        (json!(["wf_1", "{{$vars.ID}}"]), "workflowIds[1]"),
        (json!("{{$vars.IDS}}"), "workflowIds"),
    ] {
        let found = problems("error_trigger", json!({ "workflowIds": ids }));
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{place} must be")),
            "{found:?}"
        );
    }
    assert!(problems("splitter", json!({ "items": [], "concurrency": 101 }))[0].contains("from 1 to 100"));
    assert!(problems("set", json!({ "fields": { "a": "{{1 +}}" } }))[0].starts_with("fields.a"));
}
