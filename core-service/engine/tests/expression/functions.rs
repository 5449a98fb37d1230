//! The corners of the functions; the plain case of each is its example in the table.

use crate::support::{check, failure};
use serde_json::json;

#[test]
fn choices_evaluate_only_what_they_choose() {
    check(&[
        ("if(true; 1; 1 / 0)", json!(1)),
        ("if(1.body.missing; 1 / 0)", json!(null)),
        ("ifempty(1.body.note; 5)", json!(5)),
        ("ifempty(0; 5)", json!(0)),
        ("ifempty([]; 5)", json!(5)),
        ("ifempty(\"x\"; 1 / 0)", json!("x")),
        ("switch(2; 1; 1 / 0; 2; \"two\"; 1 / 0)", json!("two")),
        ("switch(3; 1; \"one\"; \"default\")", json!("default")),
        ("switch(3; 1; \"one\")", json!(null)),
        ("switch(\"1\"; 1; \"number\"; \"other\")", json!("other")),
    ]);
}

#[test]
fn text_functions_count_characters() {
    check(&[
        ("length(\"größe ☃\")", json!(7)),
        ("substring(\"größe\"; 1; 3)", json!("rö")),
        ("substring(\"größe\"; -2)", json!("ße")),
        ("substring(\"abc\"; 2; 1)", json!("")),
        ("substring(\"abc\"; 5; 9)", json!("")),
        ("substring(\"abc\"; -9; 2)", json!("ab")),
        ("indexOf(\"größe\"; \"ß\")", json!(3)),
        ("indexOf(\"größe ß\"; \"ß\"; 4)", json!(6)),
        ("indexOf(\"abc\"; \"x\")", json!(-1)),
        ("reverse(\"aß☃\")", json!("☃ßa")),
        ("upper(\"straße\")", json!("STRASSE")),
        ("capitalize(\"\")", json!("")),
        ("capitalize(\"éa\")", json!("Éa")),
        ("startcase(\"it's a dog-day\")", json!("It's A Dog-Day")),
        ("padStart(\"ß\"; 3; \"ab\")", json!("abß")),
        ("padStart(\"abc\"; 2)", json!("abc")),
        ("padEnd(\"a\"; 3; \"\")", json!("a")),
        ("repeat(\"a\"; -1)", json!("")),
        ("split(\"aßc\")", json!(["a", "ß", "c"])),
        ("split(\"\"; \",\")", json!([""])),
        ("replace(\"aaa\"; \"aa\"; \"b\")", json!("ba")),
        ("replace(\"abc\"; \"\"; \"x\")", json!("abc")),
        ("upper(1.body.missing)", json!("")),
        ("upper(12.50)", json!("12.5")),
        ("toString(null)", json!("")),
        ("toString(1.body.tags)", json!("[\"new\",\"vip\"]")),
        ("contains(\"a1b\"; 1)", json!(true)),
        ("contains({a: 1}; \"a\")", json!(true)),
        ("contains(1.body.missing; \"a\")", json!(false)),
        (
            "stripHTML(\"1 < 2 <a title='>'>x</a><!-- <b> -->y<br/>\")",
            json!("1 < 2 xy"),
        ),
        ("stripHTML(\"a <b\")", json!("a ")),
        ("stripHTML(\"<\")", json!("<")),
        (
            "replaceEmojiCharacters(\"a👩‍👩‍👧b🇩🇪c❤️d1️⃣e\"; \"$0\")",
            json!("a$0b$0c$0d$0e"),
        ),
        ("replaceEmojiCharacters(\"© 1 # ß ™\"; \"\")", json!("© 1 # ß ™")),
    ]);
    assert_eq!(
        failure("upper([1])"),
        "`upper`: the argument `text` must be a text, not an array"
    );
}

#[test]
fn arrays_take_null_for_empty() {
    check(&[
        ("length(1.body.missing)", json!(0)),
        ("map(1.body.missing; x => x)", json!([])),
        ("join(1.body.missing; \",\")", json!("")),
        ("add(1.body.missing; 1)", json!([1])),
        ("merge(1.body.missing; [1])", json!([1])),
        ("merge(null)", json!([])),
        ("merge({a: 1, b: 1}; {b: 2})", json!({"a": 1, "b": 2})),
        ("keys(1.body.missing)", json!([])),
        ("sum(1.body.missing)", json!(0)),
        ("first(1.body.missing)", json!(null)),
    ]);
    assert!(failure("merge([1]; {a: 1})").contains("must be an array"));
    assert!(failure("map(\"text\"; x => x)").contains("must be an array"));
}

#[test]
fn array_functions() {
    check(&[
        ("slice([1, 2, 3, 4]; -2)", json!([3, 4])),
        ("slice([1, 2, 3, 4]; 1; -1)", json!([2, 3])),
        ("slice([1]; 5)", json!([])),
        ("flatten([1, [2, [3, [4]]]]; 2)", json!([1, 2, 3, [4]])),
        ("flatten([[], [1]]; 100)", json!([1])),
        ("indexOf([1, 2.0, 3]; 2)", json!(1)),
        ("indexOf([1, 2, 1]; 1; 1)", json!(2)),
        ("indexOf(1.body.missing; 1)", json!(-1)),
        ("remove([1, 2.0, \"2\"]; 2)", json!([1, "2"])),
        ("arrayDifference([1, 2]; [2, 3]; \"symmetric\")", json!([1, 3])),
        (
            "deduplicate([{a: 1, b: 2}, {b: 2.0, a: 1}, \"1\", 1])",
            json!([{"a": 1, "b": 2}, "1", 1]),
        ),
        ("distinct([1, 1.0, \"1\"])", json!([1, "1"])),
        ("distinct([1, 2, 3]; x => x % 2)", json!([1, 2])),
        ("range(3; 0; -1)", json!([3, 2, 1])),
        ("range(0; 0)", json!([])),
        ("join([1, null, {a: 1}]; \"|\")", json!("1||{\"a\":1}")),
        (
            "toArray({a: 1, b: null})",
            json!([{"key": "a", "value": 1}, {"key": "b", "value": null}]),
        ),
        (
            "toCollection([{k: \"a\", v: 1}, {v: 2}, {k: 3}]; \"k\"; \"v\")",
            json!({"a": 1, "3": null}),
        ),
        ("pick({a: 1, b: 2}; [\"b\", \"c\"])", json!({"b": 2})),
        ("omit({a: 1, b: 2}; [\"b\"]; \"c\")", json!({"a": 1})),
        ("get(1.body; \"items[1].sku\")", json!("B2")),
        ("get(1.body; \"items.-1.sku\")", json!("C3")),
        ("get(1.headers; \"content-type\")", json!("application/json")),
        ("get(1.body; \"nothing.at.all\")", json!(null)),
        ("get([1, 2]; 1)", json!(2)),
    ]);
    assert!(failure("range(0; 5; 0)").contains("step"));
    assert!(failure("arrayDifference([]; []; \"x\")").contains("symmetric"));
}

#[test]
fn sorting_is_stable_and_total() {
    check(&[
        (
            "sort([3, \"b\", null, 1.5, true, \"a\", 2])",
            json!([1.5, 2, 3, "a", "b", true, null]),
        ),
        ("sort([3, null, 1]; \"desc\")", json!([3, 1, null])),
        ("sort([\"b\", \"A\", \"a\"]; \"asc ci\")", json!(["A", "a", "b"])),
        ("sort([\"b\", \"A\", \"a\"])", json!(["A", "a", "b"])),
        ("sort([\"a\", \"B\"]; \"desc ci\")", json!(["B", "a"])),
        (
            "sort(1.body.items; \"desc\"; \"price\")[].sku",
            json!(["B2", "A1", "C3"]),
        ),
        (
            "sort(1.body.items; x => x.price; \"desc\")[].sku",
            json!(["B2", "A1", "C3"]),
        ),
        (
            "sort([{k: 1, n: 1}, {k: 0, n: 2}, {k: 1, n: 3}]; x => x.k)[].n",
            json!([2, 1, 3]),
        ),
        (
            "sort([{k: 1, n: 1}, {k: 1, n: 3}]; x => x.k; \"desc\")[].n",
            json!([1, 3]),
        ),
    ]);
    assert!(failure("sort([1]; \"up\")").contains("desc ci"));
}

#[test]
fn lambda_functions() {
    check(&[
        ("map(1.body.items; \"sku\")", json!(["A1", "B2", "C3"])),
        ("map(1.body.items; \"sku\"; \"price\"; 7.5)", json!(["B2"])),
        (
            "map(1.body.items; \"price\"; \"sku\"; \"A1, B2\")",
            json!([5, 7.5]),
        ),
        ("map(1.body.items; x => x.price; \"sku\"; [\"A1\"])", json!([5])),
        ("map(1.body.items; \"lines[0].n\")", json!([1, null, null])),
        ("reduce([1, 2]; (t, x, i) => t + x * i; 10)", json!(12)),
        ("reduce([]; (t, x) => t + x; \"start\")", json!("start")),
        ("reduce([\"a\", \"b\"]; (t, x) => (t ?? \"\") + x)", json!("ab")),
        ("find([1]; x => x > 5)", json!(null)),
        ("find(1.body.items; x => x.sku == \"B2\").price", json!(7.5)),
        ("some([]; x => true)", json!(false)),
        ("every([]; x => false)", json!(true)),
        ("filter([1, 2, 3]; (x, i) => i != 1)", json!([1, 3])),
        ("filter([0, null, \"\", \"x\"]; x => x)", json!(["x"])),
        (
            "groupBy([{s: \"a\", n: 1}, {s: \"b\"}, {s: \"a\", n: 2}]; \"s\").a[].n",
            json!([1, 2]),
        ),
        ("groupBy([1.0, 1, 2]; x => x)", json!({"1": [1.0, 1], "2": [2]})),
        ("groupBy([]; x => x)", json!({})),
    ]);
}

#[test]
fn math_functions() {
    check(&[
        ("sum(1; [2, 3]; null; 4)", json!(10)),
        ("sum([0.5, 0.5])", json!(1)),
        (
            "sum([9223372036854775807, 1])",
            json!(9_223_372_036_854_775_808_u64),
        ),
        ("average([1, 2])", json!(1.5)),
        ("average([])", json!(null)),
        ("max([1, null, 2.5])", json!(2.5)),
        ("min([])", json!(null)),
        ("median([3, 1, 2])", json!(2)),
        ("median([])", json!(null)),
        ("round(2.5)", json!(3)),
        ("round(-2.5)", json!(-3)),
        ("round(1.255; 2)", json!(1.26)),
        ("round(7; 2)", json!(7)),
        ("round(1e300; 5)", json!(1e300)),
        ("trunc(2.79)", json!(2)),
        ("trunc(1.15; 2)", json!(1.15)),
        ("abs(-9223372036854775807)", json!(i64::MAX)),
        ("abs(-1.5)", json!(1.5)),
        ("power(2; 0.5)", json!(std::f64::consts::SQRT_2)),
        ("power(2; -1)", json!(0.5)),
        ("power(2; 63)", json!(9_223_372_036_854_775_808_u64)),
        ("formatNumber(1234.5; 2; \",\"; \".\")", json!("1.234,50")),
        ("formatNumber(-1234567; 0)", json!("-1,234,567")),
        ("formatNumber(-123; 1)", json!("-123.0")),
        ("formatNumber(999.999; 2; \".\"; \"\")", json!("1000.00")),
        ("formatNumber(0.5; 3)", json!("0.500")),
        ("parseNumber(\" 1,234.50 \")", json!(1234.5)),
        ("parseNumber(\"-7\")", json!(-7)),
        ("parseNumber(\"1 234\")", json!(1234)),
        ("parseNumber(\"1e3\")", json!(1000)),
        ("parseNumber(5)", json!(5)),
        ("stdevP([5])", json!(0)),
        ("stdevS([5])", json!(null)),
    ]);
    for wrong in ["\"\"", "\"abc\"", "\"inf\"", "\"NaN\"", "\"1.2.3\"", "\"0x10\""] {
        let message = failure(&format!("parseNumber({wrong})"));
        assert!(message.contains("not a number"), "{wrong}: {message}");
    }
    assert!(failure("round(\"2.5\")").contains("parseNumber"));
    assert!(failure("sqrt(-1)").contains("number"));
    assert!(failure("power(10; 1000)").contains("64-bit"));
    assert!(failure("round(1.5; 99)").contains("from 0 to 15"));
    assert!(failure("sum([\"1\"])").contains("numbers"));
}

#[test]
fn regular_expressions() {
    check(&[
        (r#"match("a1"; "\d")[0]"#, json!("1")),
        (r#"match("a"; "\d")[0]"#, json!(null)),
        (r#"match("ab"; "a(x)?b")"#, json!(["ab", null])),
        (r#"matchAll("a1b22"; "\d+")"#, json!([["1"], ["22"]])),
        (r#"matchAll("abc"; "")"#, json!([[""], [""], [""], [""]])),
        (r#"test("ABC"; "b"; "i")"#, json!(true)),
        (r#"test("a\nb"; "^b$"; "m")"#, json!(true)),
        (
            r#"replaceRegex("John Doe"; "(?P<first>\w+) (?P<last>\w+)"; "${last} ${first}")"#,
            json!("Doe John"),
        ),
        (r#"replaceRegex("aaa"; "a"; "$$")"#, json!("$$$")),
        (r#"replaceRegex("äöü"; "ö"; "o")"#, json!("äoü")),
        (r#"map(["a+", "b"]; p => test("aa"; p))"#, json!([true, false])),
        (r#"test("x"; "X"; if(true; "i"; ""))"#, json!(true)),
    ]);
    assert!(failure(r#"test("a"; 1.body.name + "(")"#).contains("malformed"));
    assert!(failure(r#"test("a"; "a"; 1.body.name)"#).contains("flag `A`"));
}

#[test]
fn encodings() {
    check(&[
        ("base64(\"größe\")", json!("Z3LDtsOfZQ==")),
        ("decodeBase64(\"Z3LDtsOfZQ\")", json!("größe")),
        ("decodeBase64(\" Pz8_ Pg \")", json!("???>")),
        ("decodeHex(hex(\"ß☃\"))", json!("ß☃")),
        ("encodeURL(\"ß/?=+\")", json!("%C3%9F%2F%3F%3D%2B")),
        ("decodeURL(encodeURL(\"ß/?=+ %\"))", json!("ß/?=+ %")),
        ("decodeURL(\"a+b\")", json!("a b")),
        ("toJSON(null)", json!("null")),
        ("parseJSON(toJSON(1.body)) == 1.body", json!(true)),
        ("parseJSON(\"18446744073709551615\")", json!(u64::MAX)),
        (
            "sha256(\"hello\"; \"hex\"; \"key\") == hmac(\"hello\"; \"key\")",
            json!(true),
        ),
        (
            "hmac(\"hello\"; \"key\"; \"md5\")",
            json!("04130747afca4d79e32e87cf2104f087"),
        ),
        ("sha1(\"\")", json!("da39a3ee5e6b4b0d3255bfef95601890afd80709")),
    ]);
    for (wrong, words) in [
        ("decodeBase64(\"***\")", "not base64"),
        ("decodeBase64(\"/w==\")", "UTF-8"),
        ("decodeHex(\"abc\")", "hex digits"),
        ("decodeHex(\"zz\")", "hex digits"),
        ("decodeURL(\"%\")", "two hex digits"),
        ("decodeURL(\"%+1\")", "two hex digits"),
        ("decodeURL(\"%ff\")", "UTF-8"),
        ("parseJSON(\"{\")", "not JSON"),
        ("sha256(\"a\"; \"x\")", "\"base64\""),
        ("hmac(\"a\"; \"b\"; \"x\")", "sha512"),
    ] {
        let message = failure(wrong);
        assert!(message.contains(words), "{wrong}: {message}");
    }
}
