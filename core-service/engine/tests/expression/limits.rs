//! Hostile templates fail within their limits and nothing else notices.

use crate::support::{Custom, Fixture, failure, parse, render, value};
use engine::expression::limits::{MAX_CHARACTERS, MAX_DEPTH, MAX_RESULT_BYTES, MAX_VALUE_DEPTH};
use engine::expression::{CompiledValue, Template};
use serde_json::{Value, json};

/// Half of what a server's threads get.
const STACK_BYTES: usize = 1024 * 1024;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

/// `open`, `count` times, around `core`.
fn nested(open: &str, core: &str, close: &str, count: usize) -> String {
    format!("{{{{{}{core}{}}}}}", open.repeat(count), close.repeat(count))
}

#[test]
fn ten_thousand_characters() {
    let fits = format!("{{{{1}}}}{}", "ä".repeat(MAX_CHARACTERS - 5));
    assert!(parse(&fits).is_ok());
    let problem = parse(&format!("{fits}ä")).unwrap_err();
    assert!(problem.message.contains("10000 characters"), "{problem}");
    assert!(parse(&"plain ".repeat(MAX_CHARACTERS)).unwrap().is_literal());
}

#[test]
fn nesting_within_the_limit_is_evaluated_on_a_small_stack() {
    on_a_small_stack(|| {
        let deep = MAX_DEPTH - 2;
        for (text, expected) in [
            (nested("(", "1 + 1", ")", deep), json!(2)),
            (nested("!", "true", "", deep - deep % 2), json!(true)),
            (nested("upper(", "\"a\"", ")", deep), json!("A")),
            (nested("true ? ", "5", " : 0", deep / 2), json!(5)),
            (nested("map([1]; x => ", "1", ")[0]", 21), json!(1)),
            (nested("reduce([1]; (t, x) => ", "1", "; 0)", 21), json!(1)),
            (nested("1 + (", "1", ")", 31), json!(32)),
            (nested("if(true; ", "1", "; 0)", deep), json!(1)),
            (nested("{a: ", "1.body.id", "}", 1), json!({"a": 7})),
        ] {
            assert_eq!(render(&text), Ok(expected), "{text}");
        }
    });
}

#[test]
fn nesting_beyond_the_limit_is_refused_without_a_crash() {
    on_a_small_stack(|| {
        for text in [
            nested("(", "1", ")", 4_900),
            nested("[", "1", "]", 4_900),
            nested("{a:", "1", "}", 2_400),
            nested("!", "1", "", 9_900),
            nested("-", "1", "", 9_900),
            nested("not ", "1", "", 2_400),
            nested("upper(", "1", ")", 1_400),
            nested("true ? 1 : ", "1", "", 900),
            nested("1[", "1", "]", 3_300),
            nested("map([1]; x => ", "1", ")", 660),
            nested("1 + (", "1", ")", 1_600),
            nested("(", "1", ")", MAX_DEPTH),
            // Each parenthesis holds a whole ladder of operators.
            nested("1 ?? 1.a or true and 1 == 1 < 1 + 1 * (", "1", ")", 20),
            format!("{{{{{}", "(".repeat(9_900)),
            format!("{{{{{}", "{a:[(".repeat(1_900)),
        ] {
            let problem = parse(&text).unwrap_err();
            assert!(
                problem.message.contains("nested deeper"),
                "{}: {problem}",
                text.get(..20).unwrap()
            );
        }
    });
}

#[test]
fn long_chains_are_not_deep() {
    on_a_small_stack(|| {
        let sum = format!("{{{{{}0}}}}", "1+".repeat(4_900));
        assert_eq!(render(&sum), Ok(json!(4_900)));
        let path = format!("{{{{1{}}}}}", ".a".repeat(4_900));
        assert_eq!(render(&path), Ok(Value::Null));
        let each = format!("{{{{1.body.items{}}}}}", "[]".repeat(4_900));
        assert_eq!(render(&each), Ok(json!([null, null, null])));
        let all = format!("{{{{{}true}}}}", "true&&".repeat(1_600));
        assert_eq!(render(&all), Ok(json!(true)));
    });
}

#[test]
fn values_nested_too_deep_are_refused_on_a_small_stack() {
    on_a_small_stack(|| {
        let message = failure("reduce(range(0; 100000); (t, x) => [t]; 0)");
        assert!(message.contains("nested deeper"), "{message}");
        let message = failure("reduce(range(0; 100000); (t, x) => {a: t}; 0)");
        assert!(message.contains("nested deeper"), "{message}");
        let message = failure("reduce(range(0; 100000); (t, x) => add([]; t); 0)");
        assert!(message.contains("nested deeper"), "{message}");
        let message = failure("parseJSON(repeat(\"[\"; 100000))");
        assert!(message.contains("not JSON"), "{message}");
        let fits = format!("reduce(range(0; {}); (t, x) => [t]; 0)", MAX_VALUE_DEPTH - 1);
        assert!(value(&fits).is_array());
    });
}

#[test]
fn work_is_bounded() {
    for endless in [
        "map(range(0; 100000000); x => x)",
        "range(0; 9223372036854775807)",
        "map(range(0; 2000); x => map(range(0; 2000); y => x * y))",
        "reduce(range(0; 100000); (t, x) => t + \"some text that grows\"; \"\")",
        "map(range(0; 100000); x => repeat(\"a\"; 5000))",
        "map(range(0; 100000); x => repeat(\"ab\"; 1000000) == repeat(\"ab\"; 1000000))",
        "map(range(0; 100000); x => test(\"a\"; \"a\" + x))",
        "split(repeat(\"a\"; 5000000))",
        "map(range(0; 10000); x => sort(range(0; 10000)))",
        "reduce(range(0; 60); (t, x) => merge(t; t); [1])",
        "matchAll(repeat(\"a\"; 1000000); \"a\")",
        "parseJSON(\"[1\" + repeat(\",1\"; 2000000) + \"]\")",
        "map(range(0; 100000); x => addVat(x))",
        "map(range(0; 10000); x => formatDate(0; repeat(\"YYYY\"; 200)))",
        "map(range(0; 1000); x => get(1; repeat(\".\"; 500000)))",
        "map(range(0; 100000); \"a\" + repeat(\".b\"; 100000))",
        "formatNumber(1e300; 0; \".\"; repeat(\"x\"; 1000000))",
        "map(range(0; 100000); x => replace(repeat(\"a\"; 10000); \"a\"; \"bb\"))",
        "map(range(0; 300000); x => sha512(repeat(\"a\"; 100000)))",
    ] {
        let message = failure(endless);
        assert!(
            message.contains("steps") || message.contains("larger"),
            "{endless}: {message}"
        );
    }
}

#[test]
fn texts_are_bounded_before_they_are_built() {
    for bomb in [
        "repeat(\"a\"; 9223372036854775807)",
        "repeat(\"aaaaaaaaaa\"; 600000)",
        "padStart(\"a\"; 9223372036854775807)",
        "padEnd(\"a\"; 6000000; \"ä\")",
        "replace(repeat(\"a\"; 100000); \"a\"; repeat(\"b\"; 100000))",
        "replaceRegex(repeat(\"a\"; 3000); \"a\"; repeat(\"b\"; 100000))",
        "replaceRegex(repeat(\"a\"; 100000); \".*\"; repeat(\"$0\"; 1000))",
        "join(map(range(0; 100); x => repeat(\"a\"; 100000)))",
        "repeat(\"a\"; 5000000) + repeat(\"a\"; 5000000)",
        "hex(repeat(\"a\"; 5000000))",
        "escapeHTML(repeat(\"'\"; 5000000))",
    ] {
        let message = failure(bomb);
        assert!(message.contains("larger than 5 MiB"), "{bomb}: {message}");
    }
    let mixed = "{{repeat(\"a\"; 5000000)}}{{repeat(\"a\"; 5000000)}}";
    assert!(render(mixed).unwrap_err().message.contains("larger than 5 MiB"));
}

#[test]
fn five_mebibytes_of_result() {
    let fixture = |length: usize| Fixture::default().with_node(5, json!({"text": "a".repeat(length)}));
    let template = parse("{{5.text}}").unwrap();
    assert!(template.evaluate(&fixture(MAX_RESULT_BYTES)).is_ok());
    let problem = template.evaluate(&fixture(MAX_RESULT_BYTES + 1)).unwrap_err();
    assert!(problem.message.contains("larger than 5 MiB"), "{problem}");
    // A part of something larger is fine.
    let template = parse("{{length(5.text) > 0 ? \"big\" : \"small\"}}").unwrap();
    assert_eq!(
        template.evaluate(&fixture(MAX_RESULT_BYTES * 2)),
        Ok(json!("big"))
    );
}

#[test]
fn passing_a_large_value_on_costs_no_steps() {
    let items: Vec<Value> = (0..400_000).map(Value::from).collect();
    let fixture = Fixture::default().with_node(5, json!({"items": items}));
    let template = parse("{{5.items}}").unwrap();
    assert_eq!(
        template.evaluate(&fixture).unwrap().as_array().map(Vec::len),
        Some(400_000)
    );
}

#[test]
fn all_templates_of_one_value_share_a_budget() {
    let copies = |count: usize| {
        let texts: Vec<&str> = std::iter::repeat_n("{{5.text}}", count).collect();
        CompiledValue::compile(&json!({ "texts": texts }), &Custom).unwrap()
    };
    let fixture = Fixture::default().with_node(5, json!({"text": "a".repeat(4 * 1024 * 1024)}));
    assert!(copies(4).evaluate(&fixture).is_ok());
    let problem = copies(5).evaluate(&fixture).unwrap_err();
    assert!(
        problem.message.contains("texts[4]: ") && problem.message.contains("16 MiB"),
        "{problem}"
    );

    let loops: Vec<&str> = std::iter::repeat_n("{{map(range(0; 100000); x => x)}}", 20).collect();
    let problem = CompiledValue::compile(&json!(loops), &Custom)
        .unwrap()
        .evaluate(&Fixture::default())
        .unwrap_err();
    assert!(problem.message.contains("steps"), "{problem}");
}

#[test]
fn a_loop_pays_for_its_regular_expressions_once() {
    let count = "length(filter(range(0; 2000); x => test(x; \"7\") && test(x; \"1\") && !test(x; \"^9+$\")))";
    assert_eq!(value(count), json!(325));
}

#[test]
fn regular_expressions_that_compile_to_too_much_fail_when_they_are_used() {
    assert!(failure(r#"test("a"; "(?:a{1000}){1000}")"#).contains("too large"));
    assert!(failure(r#"test("a"; "\w{1000}")"#).contains("too large"));
    assert_eq!(value(r#"test(repeat("a"; 20); "^\w{20}$")"#), json!(true));
}

#[test]
fn regular_expressions_of_any_length_are_refused() {
    let literal = format!("{{{{test(1.body.name; \"{}\")}}}}", "a".repeat(5_000));
    assert!(
        parse(&literal)
            .unwrap_err()
            .message
            .contains("at most 4096 bytes")
    );
    assert!(failure("test(\"a\"; repeat(\"[a-z]\"; 1000000))").contains("at most 4096 bytes"));
    assert_eq!(value("test(\"a\"; repeat(\"a\"; 4096))"), json!(false));
}

#[test]
fn compiled_templates_go_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Template>();
    check::<CompiledValue>();
}

#[test]
fn regular_expressions_are_linear() {
    // Exponential for a backtracking engine.
    assert_eq!(
        value("test(repeat(\"a\"; 5000) + \"b\"; \"^(a+)+$\")"),
        json!(false)
    );
    assert_eq!(value("test(repeat(\"a\"; 5000); \"^(a|a|aa)*$\")"), json!(true));
}

#[test]
fn unfinished_templates_of_any_length_are_refused() {
    on_a_small_stack(|| {
        for text in [
            "{{", "{{ \"", "{{ 'a\\", "{{ \\", "{{ a(", "{{ x =>", "{{ (a, b", "{{ 1.", "{{ $", "{{ }",
        ] {
            assert!(parse(text).is_err(), "{text}");
            assert!(Template::parse_reference(text, &Custom).is_err(), "{text}");
        }
    });
}
