//! References, operators, literals, templates.

use crate::support::{Custom, Fixture, check, failure, parse, render, value};
use engine::expression::{NoCustomFunctions, Template};
use serde_json::{Value, json};

#[test]
fn references_follow_paths() {
    check(&[
        ("1.body.id", json!(7)),
        ("1.body.tags[0]", json!("new")),
        ("1.body.tags[-1]", json!("vip")),
        ("1.body.tags[-2]", json!("new")),
        ("1[\"headers\"]['content-type']", json!("application/json")),
        ("1.body[$item.path]", json!("Ann")),
        ("1.body.tags[$index - 1]", json!("vip")),
        ("1 . body . name", json!("Ann")),
        ("1.body.in", json!("keyword")),
        ("1.body.null", json!("also")),
        ("1.body.größe", json!("L")),
        ("$node(3)", json!("only text")),
        ("$node(1).body.id", json!(7)),
        ("$run.id", json!("run_1")),
        ("$item.sku", json!("A1")),
        ("$index", json!(2)),
        ("$now", json!("2026-07-23T09:30:00.000Z")),
        ("$vars.BASE_URL", json!("https://example.com")),
        ("$vars[\"BASE_URL\"]", json!("https://example.com")),
        ("error.code", json!("HTTP_ERROR")),
        ("2.id", json!(u64::MAX)),
        ("2.small", json!(i64::MIN)),
        ("[10, 20, 30][1]", json!(20)),
        ("{a: {b: 5}}.a.b", json!(5)),
        ("(1.body).name", json!("Ann")),
        ("split(\"a,b\"; \",\")[-1]", json!("b")),
    ]);
}

#[test]
fn what_is_missing_is_null() {
    for missing in [
        "1.body.nothing",
        "1.body.nothing.more[3].still[]",
        "1.body.note.more",
        "1.body.tags[2]",
        "1.body.tags[-3]",
        "1.body.tags.name",
        "1.body.tags[\"0\"]",
        "1.body.tags[1.5]",
        "1.body[true]",
        "1.body.name[0]",
        "99.body",
        "$node(99)",
        "$workflow.name",
        "$vars.UNKNOWN",
        "1.body.name[].x",
        "first([])",
        "[1, 2][5].x",
        "{a: 1}.b.c",
        "1.body[9223372036854775807]",
        "1.body.tags[-9223372036854775807]",
    ] {
        assert_eq!(value(missing), Value::Null, "{missing}");
    }
}

#[test]
fn brackets_map_over_arrays() {
    check(&[
        ("1.body.items[].sku", json!(["A1", "B2", "C3"])),
        ("1.body.items[].price", json!([5, 7.5, null])),
        ("1.body.items[].missing", json!([null, null, null])),
        ("1.body.items[].lines[].n", json!([[1, 2], [], null])),
        ("1.body.items[].lines[-1].n", json!([2, null, null])),
        ("1.body.tags[]", json!(["new", "vip"])),
        ("1.body.empty[].x", json!([])),
        ("[[1, 2], [3]][][0]", json!([1, 3])),
        ("1.body.items[][$item.path]", json!([null, null, null])),
    ]);
}

#[test]
fn arithmetic_keeps_integers() {
    check(&[
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("7 / 2", json!(3.5)),
        ("6 / 2", json!(3)),
        ("7 % 3", json!(1)),
        ("-7 % 3", json!(-1)),
        ("7.5 % 2", json!(1.5)),
        ("10 - 2 - 3", json!(5)),
        ("100 / 10 / 2", json!(5)),
        ("1.5 + 1.5", json!(3)),
        ("0.5 * 2.5", json!(1.25)),
        ("-3", json!(-3)),
        ("--3", json!(3)),
        ("-1.body.id", json!(-7)),
        ("- - 2", json!(2)),
        ("2 - -2", json!(4)),
        ("1e3", json!(1000.0)),
        ("9223372036854775806 + 1", json!(i64::MAX)),
        ("9223372036854775807 + 1", json!(9_223_372_036_854_775_808_u64)),
        ("9223372036854775807 * 1.0", json!(9_223_372_036_854_775_807_f64)),
        ("2.id - 1", json!(u64::MAX - 1)),
        ("2.small + 1", json!(i64::MIN + 1)),
    ]);
    for overflow in [
        "2.id + 1",
        "2.small - 1",
        "9223372036854775807 * 9223372036854775807",
        "2.id * 2.id",
    ] {
        assert!(failure(overflow).contains("64-bit"), "{overflow}");
    }
    assert!(failure("1 / 0").contains("zero"));
    assert!(failure("1 % 0").contains("zero"));
    assert!(failure("1.5 / 0.0").contains("zero"));
    assert!(failure("1e308 * 1e308").contains("too large"));
}

#[test]
fn arithmetic_on_other_types_is_an_error() {
    for wrong in [
        "1.body.missing + 1",
        "null - 1",
        "true + 1",
        "[1] + [2]",
        "\"3\" * 2",
        "-\"3\"",
        "-null",
    ] {
        let message = failure(wrong);
        assert!(message.contains("number"), "{wrong}: {message}");
    }
}

#[test]
fn plus_concatenates_texts() {
    check(&[
        ("\"a\" + \"b\"", json!("ab")),
        ("\"n\" + 1", json!("n1")),
        ("1 + \"n\"", json!("1n")),
        ("1 + 2 + \"n\"", json!("3n")),
        ("\"n\" + 1 + 2", json!("n12")),
        ("\"x\" + null", json!("x")),
        ("null + \"x\"", json!("x")),
        ("\"x\" + true", json!("xtrue")),
        ("\"x\" + [1, null, \"y\"]", json!("x[1,null,\"y\"]")),
        ("\"x\" + {a: 1}", json!("x{\"a\":1}")),
        ("\"x\" + 2.0", json!("x2")),
        ("\"x\" + 0.1", json!("x0.1")),
    ]);
}

#[test]
fn equality_does_not_convert() {
    check(&[
        ("1 == 1.0", json!(true)),
        ("1 = 1", json!(true)),
        ("1 == \"1\"", json!(false)),
        ("0 == false", json!(false)),
        ("null == false", json!(false)),
        ("null == 1.body.note", json!(true)),
        ("1 != 2", json!(true)),
        ("[1, 2.0] == [1.0, 2]", json!(true)),
        ("{a: 1, b: 2} == {b: 2, a: 1}", json!(true)),
        ("{a: 1} == {a: 1, b: null}", json!(false)),
        ("2.id == 18446744073709551614.0", json!(false)),
        ("9007199254740993 == 9007199254740992.0", json!(false)),
    ]);
}

#[test]
fn comparisons_want_two_of_a_kind() {
    check(&[
        ("1 < 2", json!(true)),
        ("2 <= 2.0", json!(true)),
        ("2.5 > 2", json!(true)),
        ("\"a\" < \"b\"", json!(true)),
        ("\"2026-01-01\" < $now", json!(true)),
        ("2.id > 9223372036854775807", json!(true)),
        ("9007199254740993 > 9007199254740992.0", json!(true)),
        ("-9007199254740993 < -9007199254740992.0", json!(true)),
        ("1 < 1.5", json!(true)),
        ("-1 > -1.5", json!(true)),
        ("1 > 1e300", json!(false)),
        ("1 > -1e300", json!(true)),
    ]);
    for wrong in ["1 < \"2\"", "null < 1", "1 > null", "[1] < [2]", "true < false"] {
        assert!(failure(wrong).contains("two numbers or two texts"), "{wrong}");
    }
}

#[test]
fn in_looks_into_arrays_texts_and_objects() {
    check(&[
        ("\"vip\" in 1.body.tags", json!(true)),
        ("2.0 in [1, 2]", json!(true)),
        ("\"x\" in 1.body.tags", json!(false)),
        ("\"ell\" in \"hello\"", json!(true)),
        ("\"sku\" in $item", json!(true)),
        ("1 in 1.body.missing", json!(false)),
        ("not \"x\" in 1.body.tags", json!(true)),
    ]);
    assert!(failure("1 in 5").contains("cannot be in"));
}

#[test]
fn logic_gives_booleans_and_stops_early() {
    check(&[
        ("true && false || true", json!(true)),
        ("true || false && false", json!(true)),
        ("true and not false", json!(true)),
        ("1.body.missing or true", json!(true)),
        ("1.body.missing && true", json!(false)),
        ("1.body.name && 1.body.paid", json!(true)),
        ("!1.body.missing", json!(true)),
        ("!!1.body.name", json!(true)),
        ("not 1 == 2", json!(true)),
        ("not 1.body.paid or true", json!(true)),
        ("false && 1 / 0", json!(false)),
        ("true || 1 / 0", json!(true)),
        ("1.body.missing ?? \"none\"", json!("none")),
        ("1.body.missing ?? 1.body.note ?? 3", json!(3)),
        ("0 ?? 1 / 0", json!(0)),
        ("false ?? true", json!(false)),
        ("true ? 1 : 1 / 0", json!(1)),
        ("false ? 1 : true ? 2 : 3", json!(2)),
        ("1.body.paid ? {a: 1} : {b: 2}", json!({"a": 1})),
        ("1.body.missing ?? false ? 1 : 2", json!(2)),
        ("\"\" ? 1 : 2", json!(2)),
        ("[] ? 1 : 2", json!(1)),
        ("0 ? 1 : 2", json!(2)),
    ]);
}

#[test]
fn literals() {
    check(&[
        (r#""a\n\t\"\\\d""#, json!("a\n\t\"\\\\d")),
        (r#"'it\'s'"#, json!("it's")),
        (r#""{{1}} }}""#, json!("{{1}} }}")),
        ("[1, \"a\"; null]", json!([1, "a", null])),
        ("[]", json!([])),
        ("{}", json!({})),
        (
            "{a: 1, \"b c\": [2]; 3: {d: 4}}",
            json!({"a": 1, "b c": [2], "3": {"d": 4}}),
        ),
        ("{a: 1.body.id, b: [1.body.name]}", json!({"a": 7, "b": ["Ann"]})),
        ("[1, 2,]", json!([1, 2])),
        ("12", json!(12)),
        ("2.50", json!(2.5)),
        ("true", json!(true)),
    ]);
}

#[test]
fn lambdas_see_their_parameters_and_what_is_around_them() {
    check(&[
        ("map(1.body.items; x => x.sku)", json!(["A1", "B2", "C3"])),
        ("map(1.body.tags, (tag, i) => i + tag)", json!(["0new", "1vip"])),
        (
            "map([1, 2]; x => map([10, 20]; y => x * y))",
            json!([[10, 20], [20, 40]]),
        ),
        ("map([1, 2]; x => map([5]; x => x))", json!([[5], [5]])),
        (
            "map([1]; x => map([2]; (y, i) => [x, y, i]))",
            json!([[[1, 2, 0]]]),
        ),
        ("map([1, 2]; x => 1.body.name + x)", json!(["Ann1", "Ann2"])),
        ("map(map([1, 2]; x => {v: x}); x => x.v)", json!([1, 2])),
        (
            "filter(1.body.items; x => (x.price ?? 0) > 5)[].sku",
            json!(["B2"]),
        ),
        ("map([1]; error => error)", json!([1])),
        ("map([[1, 2], [3]]; x => x[0])", json!([1, 3])),
        ("map([3]; upper => upper + upper(\"a\"))", json!(["3A"])),
    ]);
    // The loosest operator takes the whole comparison, so the missing price is compared.
    assert!(failure("filter(1.body.items; x => x.price > 5 ?? false)").contains("two numbers"));
}

#[test]
fn custom_functions_are_called_with_values() {
    check(&[
        (
            "addVat(1.body.total)",
            json!({"called": "addVat", "with": [12.5]}),
        ),
        ("addVat(1, [2]).with[1]", json!([2])),
        ("map([1]; x => addVat(x, 2))[0].with", json!([1, 2])),
    ]);
    let problem = render("{{slow()}}").unwrap_err();
    assert_eq!(
        (problem.code.as_ref(), problem.message.as_str()),
        ("CODE_TIMEOUT", "it took too long")
    );
    assert_eq!(render("{{1 / 0}}").unwrap_err().code, "EXPRESSION_ERROR");
}

#[test]
fn a_single_template_gives_the_value_and_mixed_text_gives_text() {
    for (text, expected) in [
        ("{{1.body.tags}}", json!(["new", "vip"])),
        ("{{1}}", json!(1)),
        ("{{ 1.body.missing }}", json!(null)),
        (" {{1.body.id}}", json!(" 7")),
        ("Hello {{1.body.name}}!", json!("Hello Ann!")),
        ("{{1.body.name}}{{1.body.id}}", json!("Ann7")),
        ("a{{1.body.missing}}b", json!("ab")),
        (
            "{{1.body.tags}} {{ $item }}",
            json!("[\"new\",\"vip\"] {\"sku\":\"A1\",\"path\":\"name\"}"),
        ),
        ("{{ {a: {b: 1}}}} x", json!("{\"a\":{\"b\":1}} x")),
        ("{{ {a: {b: 1}}}}", json!({"a": {"b": 1}})),
        ("{{\"}}\"}}'s {{'{{'}}", json!("}}'s {{")),
        ("{{1.body.id}}'s \" # unclosed", json!("7's \" # unclosed")),
        ("plain", json!("plain")),
        ("", json!("")),
        ("a } }} { b", json!("a } }} { b")),
        (r"\{{1.body.id}}", json!("{{1.body.id}}")),
        (r"\{{1}} {{1.body.id}}", json!("{{1}} 7")),
        (r"\\{{1}}", json!(r"\{{1}}")),
        ("{{1.body.total}} {{2.0}} {{1.body.paid}}", json!("12.5 2 true")),
        ("é{{1.body.größe}}é", json!("éLé")),
    ] {
        assert_eq!(render(text), Ok(expected), "{text}");
    }
}

#[test]
fn bare_references_are_for_resolving() {
    let resolve = |text: &str| {
        Template::parse_reference(text, &NoCustomFunctions)
            .unwrap()
            .evaluate(&Fixture::default())
            .unwrap()
    };
    assert_eq!(resolve("3"), json!("only text"));
    assert_eq!(resolve(" 3 "), json!("only text"));
    assert_eq!(resolve("1.body.name"), json!("Ann"));
    assert_eq!(resolve("{{1.body.name}}"), json!("Ann"));
    assert_eq!(resolve("{{3}}"), json!(3));
    assert_eq!(resolve("id {{1.body.id}}"), json!("id 7"));
    assert_eq!(resolve("$run.id"), json!("run_1"));
    assert!(Template::parse_reference("hello", &NoCustomFunctions).is_err());
    assert!(Template::parse_reference("", &NoCustomFunctions).is_err());
}

#[test]
fn a_template_names_what_it_reads() {
    let template =
        parse("{{2.a + 1.b}} {{$node(2)}} {{map(3.c; x => $vars.KEY + addVat(x))}} {{4}}").unwrap();
    assert_eq!(template.node_references().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(template.variable_references().collect::<Vec<_>>(), ["KEY"]);
    assert_eq!(template.custom_functions().collect::<Vec<_>>(), ["addVat"]);
    assert!(!template.is_literal());
    assert!(parse(r"no \{{ template").unwrap().is_literal());
    let bare = Template::parse_reference("5", &Custom).unwrap();
    assert_eq!(bare.node_references().collect::<Vec<_>>(), [5]);
}
