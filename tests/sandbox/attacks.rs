//! Code that means harm: it fails with a clear code, and whoever comes next notices nothing.

use core_service::sandbox::{Call, FailureKind};
use serde_json::{Value, json};

use crate::{call, failed, heard, returned, run, run_for, sandbox};

/// Code that never ends, in the interpreter's loop and in native ones.
const ENDLESS: &[&str] = &[
    "while (true) {}",
    "for (;;) await null",
    "const again = () => Promise.resolve().then(again); await again()",
    "for (;;) { try { for (;;) {} } catch {} finally { continue } }",
    "await { then(resolve) { for (;;) {} } }",
    "return { toJSON() { for (;;) {} } }",
    "throw { get message() { for (;;) {} }, toString() { for (;;) {} }, toJSON() { for (;;) {} } }",
    "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;) {} } })",
    "return new Proxy({}, { ownKeys() { for (;;) {} } })",
    "/^(a+)+$/.test('a'.repeat(60) + 'b')",
    "const x = 7n ** 300000n; for (;;) String(x)",
    "let x = 3n; for (;;) x = x * x % (2n ** 65536n - 1n)",
    "new Array(2 ** 32 - 2).indexOf(1)",
    "Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)",
    "return [...Array(5e5).keys()].sort(() => { for (;;) {} })",
];

/// Code that wants more memory than there is.
const GREEDY: &[&str] = &[
    "const a = []; for (;;) a.push({})",
    "return 'x'.repeat(100 * 2 ** 20)",
    "return new Uint8Array(2 ** 30).length",
    "const a = []; for (;;) a.push(new ArrayBuffer(2 ** 20))",
    "let a = [1]; for (;;) a = [...a, ...a]",
    "let node = null; for (;;) node = { node }",
    "const a = []; for (;;) { try { for (;;) a.push('x'.repeat(1000) + a.length) } catch (e) { if (a.length > 10) throw e } }",
    "return JSON.stringify(Array(1e7).fill('xxxxxxxxxx')).length",
    "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
];

/// Code that breaks a rule of the language's own.
const WRONG: &[&str] = &[
    "const f = () => f() + 1; return f()",
    "const f = (a) => [a].map(f); return f(1)",
    "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a)",
    "return JSON.parse('['.repeat(1e6))",
    "return 2n ** (2n ** 64n)",
    "await new Promise(() => {})",
    "await new Promise((resolve) => { globalThis.keep = resolve })",
    "return new Array(-1)",
    "let s = 'x'; for (;;) s += s",
    "return require('fs')",
    "return await import('fs')",
    "return process.env",
    "return Deno.readTextFile('/etc/passwd')",
    "return std.open('/etc/passwd')",
    "return os.exec(['ls'])",
    "return fetch('http://127.0.0.1')",
    "setTimeout(() => {}, 0)",
    "return (0, eval)('scriptArgs')",
];

/// Short, so that the suite is quick.
fn short(code: &str) -> Call {
    Call {
        limit_ms: 150,
        ..call(code, json!({}))
    }
}

#[tokio::test]
async fn endless_code_is_stopped() {
    let sandbox = sandbox().await;
    for code in ENDLESS {
        let outcome = run_for(&sandbox, "org_1", short(code)).await;
        let failure = outcome.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{code}: {failure}");
        assert_eq!(failure.message, "the code did not finish within 150 ms");
        assert_eq!(returned(&sandbox, "return 1", json!({})).await, 1, "after {code}");
    }
}

#[tokio::test]
async fn greedy_code_is_stopped() {
    let sandbox = sandbox().await;
    for code in GREEDY {
        let (kind, message) = failed(&sandbox, code).await;
        assert_eq!(kind, FailureKind::Memory, "{code}: {message}");
        assert_eq!(returned(&sandbox, "return 1", json!({})).await, 1, "after {code}");
    }
}

#[tokio::test]
async fn wrong_code_fails_and_finds_nothing_outside() {
    let sandbox = sandbox().await;
    for code in WRONG {
        let (kind, message) = failed(&sandbox, code).await;
        assert_eq!(kind, FailureKind::Error, "{code}: {message}");
        assert_eq!(returned(&sandbox, "return 1", json!({})).await, 1, "after {code}");
    }
}

#[tokio::test]
async fn memory_that_ran_out_can_be_caught_but_not_kept() {
    let sandbox = sandbox().await;
    let code =
        "let a = []; try { for (;;) a.push('x'.repeat(1000) + a.length) } catch { a = null } return 'caught'";
    let first = run(&sandbox, code, json!({})).await;
    assert!(
        first.result == Ok(json!("caught"))
            || first
                .result
                .is_err_and(|failure| failure.kind == FailureKind::Memory)
    );
    assert_eq!(returned(&sandbox, "return 1", json!({})).await, 1);
}

#[tokio::test]
async fn nothing_of_a_call_is_left_for_the_next() {
    let sandbox = sandbox().await;
    let pollute = "
        globalThis.secret = input.secret;
        Object.prototype.polluted = input.secret;
        Array.prototype.map = () => input.secret;
        JSON.stringify = JSON.parse = () => input.secret;
        console.log = () => {};
        Object.freeze(globalThis.console);
        Promise.prototype.then = function () { return this };
        String.prototype.toWellFormed = undefined;
        Object.defineProperty(globalThis, 'input', { value: input.secret, writable: false });
        Function.prototype.call = () => { throw new Error(input.secret) };
        return [1]";
    let before = run(&sandbox, pollute, json!({ "secret": "hidden" })).await;
    assert_eq!(before.result, Ok(json!([1])));
    let look = "
        console.log('seen');
        return [typeof secret, {}.polluted ?? null, [1].map((x) => x + 1), JSON.stringify({}), Object.keys(globalThis)]";
    let (after, lines) = heard(&sandbox, call(look, json!({}))).await;
    assert_eq!(
        (after.process_id, before.process_id.is_some()),
        (before.process_id, true),
        "the same process served both"
    );
    let seen = after.result.unwrap();
    assert_eq!(
        seen.as_array().unwrap()[..4],
        [json!("undefined"), Value::Null, json!([2]), json!("{}")]
    );
    assert!(!seen.to_string().contains("hidden"));
    assert_eq!(lines.len(), 1);
}

#[tokio::test]
async fn too_much_to_see_is_refused_before_it_is_sent() {
    let sandbox = sandbox().await;
    let outcome = run(&sandbox, "return input.length", json!("x".repeat(9 << 20))).await;
    let failure = outcome.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Error);
    assert!(failure.message.contains("larger than"), "{failure}");
    assert_eq!(
        returned(&sandbox, "return input.length", json!("x".repeat(7 << 20))).await,
        7 << 20
    );
}
