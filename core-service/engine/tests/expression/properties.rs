//! Laws that hold for all inputs.

use crate::support::{Custom, Fixture, parse, render};
use engine::expression::Template;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Expressions put together at random, mostly well formed, often of the wrong types.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f32>()
            .prop_filter("a literal", |number| number.is_finite())
            .prop_map(|number| number.to_string()),
        "[a-zäß \\\\{}']{0,6}".prop_map(|text| format!("\"{text}\"")),
        prop_oneof![
            Just("null"),
            Just("true"),
            Just("1.body"),
            Just("1.body.items[].sku"),
            Just("1.body.tags[-1]"),
            Just("1.body.name"),
            Just("$item"),
            Just("$index"),
            Just("$now"),
            Just("2.id"),
            Just("x"),
            Just("[]"),
            Just("$run.id"),
            Just("2.deep[][]"),
        ]
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let operators = [
            "+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "or", "??", "in",
        ];
        let functions = [
            "upper",
            "length",
            "sum",
            "round",
            "split",
            "join",
            "reverse",
            "flatten",
            "sort",
            "keys",
            "first",
            "toString",
            "parseNumber",
            "base64",
            "decodeURL",
            "formatDate",
            "addMonths",
            "setDay",
            "test",
            "substring",
            "slice",
            "padStart",
            "repeat",
            "range",
            "merge",
            "get",
            "parseDate",
            "replaceRegex",
            "stripHTML",
            "if",
            "switch",
            "dateDifference",
            "formatNumber",
            "toCollection",
            "stdevS",
            "parseJSON",
            "toJSON",
            "median",
        ];
        prop_oneof![
            (
                inner.clone(),
                prop::sample::select(operators.to_vec()),
                inner.clone()
            )
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (
                prop::sample::select(functions.to_vec()),
                prop::collection::vec(inner.clone(), 1..4)
            )
                .prop_map(|(name, arguments)| format!("{name}({})", arguments.join("; "))),
            (inner.clone(), inner.clone())
                .prop_map(|(array, body)| format!("map([{array}, 1]; x => {body})")),
            (inner.clone(), inner.clone()).prop_map(|(array, body)| format!("filter({array}; x => {body})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("reduce([{a}]; (x, y) => {b}; 0)")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {{k: {b}}}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}][{b}]")),
            inner.prop_map(|operand| format!("!{operand}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        let _ = parse(&text);
        let _ = Template::parse_reference(&text, &Custom);
    }

    #[test]
    fn any_near_expression_is_parsed_or_refused(
        text in "(\\{\\{|\\}\\}|\\\\|[0-9]|[a-z]|\\$|\\.|\\[|\\]|\\(|\\)|\\{|\\}|\"|'|=|>|<|!|&|\\||\\?|:|;|,|-|\\+| |é){0,40}"
    ) {
        if let Err(problem) = parse(&format!("{{{{{text}")) {
            prop_assert!(problem.position <= text.chars().count() + 2);
        }
    }

    #[test]
    fn what_parses_evaluates_or_fails_and_always_alike(expression in expression()) {
        let text = format!("{{{{map([{{a: 1}}]; x => {expression})}}}}");
        if let Ok(template) = parse(&text) {
            let fixture = Fixture::default();
            let first = template.evaluate(&fixture);
            prop_assert_eq!(&first, &template.evaluate(&fixture));
            if let Err(problem) = first {
                prop_assert!(!problem.message.is_empty());
            }
        }
    }

    #[test]
    fn text_without_braces_is_itself(text in "[^{]{0,40}") {
        prop_assert_eq!(render(&text), Ok(json!(text)));
    }

    #[test]
    fn integers_add_and_subtract_exactly(left in any::<i64>(), right in any::<i64>()) {
        let scope = Fixture::default().with_node(5, json!({"l": left, "r": right}));
        let value = |text: &str| parse(text).unwrap().evaluate(&scope);
        match left.checked_add(right) {
            Some(sum) => {
                prop_assert_eq!(value("{{5.l + 5.r}}"), Ok(json!(sum)));
                prop_assert_eq!(value("{{5.l + 5.r - 5.r}}"), Ok(json!(left)));
            }
            None if left < 0 => prop_assert!(value("{{5.l + 5.r}}").is_err()),
            None => prop_assert_eq!(value("{{5.l + 5.r}}"), Ok(json!(left as u64 + right as u64))),
        }
        prop_assert_eq!(value("{{5.l < 5.r}}"), Ok(json!(left < right)));
        prop_assert_eq!(value("{{5.l == 5.r}}"), Ok(json!(left == right)));
        prop_assert_eq!(value("{{5.l == 5.l}}"), Ok(json!(true)));
    }

    #[test]
    fn division_undoes_multiplication(left in -1_000_000_000_i64..1_000_000_000, right in 1_i64..1_000_000_000) {
        let scope = Fixture::default().with_node(5, json!({"l": left, "r": right}));
        let value = |text: &str| parse(text).unwrap().evaluate(&scope);
        prop_assert_eq!(value("{{5.l * 5.r / 5.r}}"), Ok(json!(left)));
        prop_assert_eq!(value("{{floor((5.l - (5.l % 5.r)) / 5.r) * 5.r + 5.l % 5.r}}"), Ok(json!(left)));
    }

    #[test]
    fn exactly_one_order_holds(left in -1e9_f64..1e9, right in any::<i32>()) {
        let scope = Fixture::default().with_node(5, json!({"l": left, "r": right}));
        let value = |text: &str| parse(text).unwrap().evaluate(&scope) == Ok(json!(true));
        let held = ["{{5.l < 5.r}}", "{{5.l == 5.r}}", "{{5.l > 5.r}}"].into_iter().filter(|text| value(text)).count();
        prop_assert_eq!(held, 1);
    }

    #[test]
    fn encodings_are_undone_by_decodings(text in "\\PC{0,30}") {
        let scope = Fixture::default().with_node(5, json!({"t": text}));
        for round_trip in [
            "{{decodeBase64(base64(5.t))}}", "{{decodeHex(hex(5.t))}}", "{{decodeURL(encodeURL(5.t))}}",
            "{{parseJSON(toJSON($node(5))).t}}", "{{reverse(reverse(5.t))}}", "{{join(split(5.t))}}",
        ] {
            let value = parse(round_trip).unwrap().evaluate(&scope);
            prop_assert_eq!(value, Ok(json!(text.clone())), "{}", round_trip);
        }
    }

    #[test]
    fn sorting_is_idempotent_and_keeps_elements(numbers in prop::collection::vec(-50_i64..50, 0..20)) {
        let scope = Fixture::default().with_node(5, json!({"n": numbers}));
        let value = |text: &str| parse(text).unwrap().evaluate(&scope).unwrap();
        let mut sorted = numbers;
        sorted.sort_unstable();
        prop_assert_eq!(value("{{sort(5.n)}}"), json!(sorted));
        prop_assert_eq!(value("{{sort(sort(5.n))}}"), json!(sorted));
        prop_assert_eq!(value("{{sum(groupBy(5.n; x => x) == {} ? [] : flatten(values(groupBy(5.n; x => x))))}}"), json!(sorted.iter().sum::<i64>()));
    }

    #[test]
    fn formatted_dates_parse_back(epoch in -1_600_000_000_000_i64..4_000_000_000_000) {
        let scope = Fixture::default().with_node(5, json!({"d": epoch}));
        let text = "{{toTimestamp(parseDate(formatDate(5.d; \"YYYY-MM-DD HH:mm:ss.SSS Z\"; \"Asia/Kolkata\"); \"YYYY-MM-DD HH:mm:ss.SSS Z\"))}}";
        prop_assert_eq!(parse(text).unwrap().evaluate(&scope), Ok(Value::from(epoch)));
    }
}
