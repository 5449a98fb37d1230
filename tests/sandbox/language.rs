//! What code sees, and what becomes of what it returns, throws and writes.

use core_service::sandbox::{Call, FailureKind, Form, MAX_RESULT};
use engine::event::LogLevel;
use serde_json::{Value, json};

use crate::{call, failed, heard, returned, run_for, sandbox};

#[tokio::test]
async fn values_cross_as_json() {
    let sandbox = sandbox().await;
    let input = json!({ "n": 1.5, "text": "ä\u{0}\u{2028}\u{1f980}\"", "list": [1, null, true], "deep": { "a": {} } });
    assert_eq!(returned(&sandbox, "return input", input.clone()).await, input);
    for (code, expected) in [
        ("", Value::Null),
        ("return undefined", Value::Null),
        ("return await Promise.resolve(7)", json!(7)),
        (
            "return { a: undefined, b: [undefined], c: NaN }",
            json!({ "b": [null], "c": null }),
        ),
        ("return new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        (
            "return new Map([[1, 2]]).size + [...new Set([1, 1])].length",
            json!(2),
        ),
        (
            "return typeof Math.random() + typeof Date.now()",
            json!("numbernumber"),
        ),
        ("return (() => this)() === undefined", json!(true)),
        (
            "for await (const x of [1, Promise.resolve(2)]) input = x; return input",
            json!(2),
        ),
        ("return { toJSON() { return undefined } }", Value::Null),
    ] {
        assert_eq!(returned(&sandbox, code, json!({})).await, expected, "{code}");
    }
}

#[tokio::test]
async fn what_is_thrown_is_told_with_its_place() {
    let sandbox = sandbox().await;
    for (code, expected) in [
        (
            "const a = 1;\n  throw new TypeError('no ' + a)",
            "TypeError: no 1 (line 2, column ",
        ),
        ("return input.a.b", "TypeError: "),
        ("return missing", "ReferenceError: missing is not defined (line 1"),
        ("throw 'plain'", "the code threw plain"),
        ("throw { code: 7 }", "the code threw {\"code\":7}"),
        ("throw null", "the code threw null"),
        ("await Promise.reject(new Error('later'))", "Error: later (line 1"),
        (
            "throw Object.create(null, { message: { get() { throw 1 } } })",
            "the code threw {}",
        ),
        ("return new Function('return }')", "SyntaxError: "),
        ("return a +", "SyntaxError: "),
    ] {
        let (kind, message) = failed(&sandbox, code).await;
        assert_eq!(kind, FailureKind::Error, "{code}: {message}");
        assert!(message.starts_with(expected), "{code}: {message}");
    }
    let (_, long) = failed(&sandbox, "throw new Error('x'.repeat(1e6))").await;
    assert!(long.chars().count() < 2_100, "{}", long.len());
}

#[tokio::test]
async fn results_that_are_no_json_say_what_they_are() {
    let sandbox = sandbox().await;
    for (code, expected) in [
        ("return 1n", "the result is a bigint"),
        ("return () => 1", "the result is a function"),
        ("return Symbol('x')", "the result is a symbol"),
        ("return { a: [{ b: 2n }] }", "the result has at \"b\" a bigint"),
        ("const a = {}; a.a = a; return a", "circular"),
        ("return '\\ud800'", "cannot be used as JSON"),
        (
            "let a = []; for (let i = 0; i < 1000; i++) a = [a]; return a",
            "recursion limit",
        ),
        ("return 'x'.repeat(6 * 2 ** 20)", "it may have at most"),
    ] {
        let (kind, message) = failed(&sandbox, code).await;
        assert_eq!(kind, FailureKind::Error, "{code}: {message}");
        assert!(message.contains(expected), "{code}: {message}");
    }
    let size = MAX_RESULT - 2;
    let text = returned(&sandbox, "return 'x'.repeat(input)", json!(size)).await;
    assert_eq!(text.as_str().map(str::len), Some(size));
}

#[tokio::test]
async fn console_output_is_kept_within_bounds() {
    let sandbox = sandbox().await;
    let code = "console.log('a', 1, { b: [2] }); console.debug(undefined, null, Symbol('s')); console.warn(new Error('e'));
        console.error('\\ud800', 5n, () => 1); throw new Error('after')";
    let (outcome, log) = heard(&sandbox, call(code, json!({}))).await;
    assert!(outcome.result.is_err());
    let lines: Vec<(LogLevel, &str)> = log.iter().map(|line| (line.level, &*line.message)).collect();
    assert_eq!(lines[0], (LogLevel::Info, "a 1 {\"b\":[2]}"));
    assert_eq!(lines[1], (LogLevel::Debug, "undefined null Symbol(s)"));
    assert_eq!(lines[2], (LogLevel::Warn, "Error: e"));
    assert!(
        lines[3].0 == LogLevel::Error && lines[3].1.starts_with("\u{fffd} 5 "),
        "{:?}",
        lines[3]
    );

    for code in [
        "for (let i = 0; i < 1e5; i++) console.log('')",
        "console.log('x'.repeat(1e7)); console.log('y')",
        "const a = []; for (let i = 0; i < 1e3; i++) a.push(i); for (let i = 0; i < 100; i++) console.log(...a)",
    ] {
        let (_, log) = heard(&sandbox, call(code, json!({}))).await;
        let size: usize = log.iter().map(|line| line.message.len()).sum();
        assert!(size < 70_000 && log.len() < 3_000, "{code}: {size}");
        let last = &log.last().unwrap().message;
        assert!(last.contains("is left out"), "{code}: {last}");
    }
    let (_, log) = heard(&sandbox, call("console.log('fits')", json!({}))).await;
    assert_eq!(log.len(), 1);
}

#[tokio::test]
async fn console_output_outlives_the_process_that_wrote_it() {
    let sandbox = sandbox().await;
    for code in [
        "console.log('before'); for (;;) {}",
        "console.log('before'); new Array(2 ** 32 - 2).indexOf(1)",
        "console.log('before'); return 'x'.repeat(100 * 2 ** 20)",
        "console.log('before'); await new Promise(() => {})",
    ] {
        let call = Call {
            limit_ms: 500,
            ..call(code, json!({}))
        };
        let (outcome, log) = heard(&sandbox, call).await;
        assert!(outcome.result.is_err(), "{code}: {outcome:?}");
        let lines: Vec<&str> = log.iter().map(|line| &*line.message).collect();
        assert_eq!(lines, ["before"], "{code}: {outcome:?}");
    }
    let endless = Call {
        limit_ms: 500,
        ..call("for (let i = 0; ; i++) console.log(i)", json!({}))
    };
    let (_, log) = heard(&sandbox, endless).await;
    assert!(log.len() < 3_000 && log.last().unwrap().message.contains("is left out"));
}

#[tokio::test]
async fn functions_are_bodies_or_whole_expressions() {
    let sandbox = sandbox().await;
    for code in [
        "return a + (b ?? 10)",
        "(a, b) => a + (b ?? 10)",
        "function (a, b) { return a + (b ?? 10) }",
        "// adds\nfunction add(a, b = 10) { return a + b }",
        "async (a, b) => a + await (b ?? 10)",
    ] {
        for (arguments, expected) in [(vec![json!(1), json!(2)], 3), (vec![json!(1)], 11)] {
            let function = Call {
                form: Form::Function,
                parameters: vec!["a".to_owned(), "b".to_owned()],
                arguments,
                ..call(code, Value::Null)
            };
            let outcome = run_for(&sandbox, "org_1", function).await;
            assert_eq!(outcome.result, Ok(json!(expected)), "{code}");
        }
    }
}
