//! Whether code is JavaScript: it is parsed where it is saved and never run here.
//!
//! Parsing is the JavaScript engine's own, in a heap and a stack of fixed size that live for one check. Code is checked
//! as strict code. Deliberately absent: running it, which is for the sandbox.

mod mentions;

use rquickjs::context::intrinsic::{Eval, RegExpCompiler};
use rquickjs::{CatchResultExt as _, CaughtError, Context, Module, Runtime};

pub use mentions::Mentions;

/// How much memory a check may take, in bytes; far more than code of the greatest size needs.
const MEMORY: usize = 64 << 20;
/// How deep code may nest, in bytes of stack.
const STACK: usize = 256 << 10;

/// Why code is no function.
#[derive(Debug, thiserror::Error)]
pub enum CodeProblem {
    /// It cannot be parsed.
    #[error("{message} at line {line}")]
    Syntax {
        /// What the parser says.
        message: String,
        /// The line, from one.
        line: usize,
    },
    /// It does not parse, and where is not known.
    #[error("{0}")]
    Refused(String),
    /// The check itself failed.
    #[error("the JavaScript engine does not start")]
    Engine(#[source] rquickjs::Error),
}

/// Checks that code is a function body over these parameters, or a whole function expression.
///
/// # Errors
/// What is wrong with it, as a body unless it begins as a function does.
pub fn check_function(parameters: &[&str], code: &str) -> Result<(), CodeProblem> {
    let body = check_body(parameters, code);
    if body.is_err() && begins_with_function(code) {
        // In two kinds of brackets, so that code cannot close them and go on.
        return ["(", "["]
            .into_iter()
            .zip([")", "]"])
            .try_for_each(|(open, close)| check(open, code, close));
    }
    body
}

/// Whether a name can be a parameter of strict code.
///
/// # Errors
/// When the check itself fails.
pub fn is_parameter_name(name: &str) -> Result<bool, CodeProblem> {
    match check(&format!("(function({name}){{"), "", "})") {
        Ok(()) => Ok(true),
        Err(CodeProblem::Engine(error)) => Err(CodeProblem::Engine(error)),
        Err(_) => Ok(false),
    }
}

/// Checks that code is the body of an async function over these parameters.
///
/// # Errors
/// What is wrong with it.
pub fn check_async_body(parameters: &[&str], code: &str) -> Result<(), CodeProblem> {
    check_body_of("async ", parameters, code)
}

fn check_body(parameters: &[&str], code: &str) -> Result<(), CodeProblem> {
    check_body_of("", parameters, code)
}

/// Checks a body in three places. What follows a body that ends early would have to continue an expression, an object
/// and a class at once, and nothing does.
fn check_body_of(kind: &str, parameters: &[&str], code: &str) -> Result<(), CodeProblem> {
    let list = parameters.join(", ");
    [
        (format!("({kind}function({list}) {{"), "})"),
        (format!("({{ {kind}method({list}) {{"), "} })"),
        (format!("(class {{ {kind}method({list}) {{"), "} })"),
    ]
    .iter()
    .try_for_each(|(before, after)| check(before, code, after))
}

/// Parses code, on lines of its own, between two texts.
fn check(before: &str, code: &str, after: &str) -> Result<(), CodeProblem> {
    let source = format!("{before}\n{code}\n{after}");
    let runtime = Runtime::new().map_err(CodeProblem::Engine)?;
    runtime.set_memory_limit(MEMORY);
    runtime.set_max_stack_size(STACK);
    let context = Context::builder().with::<Eval>().with::<RegExpCompiler>();
    let context = context.build(&runtime).map_err(CodeProblem::Engine)?;
    context.with(|context| {
        let declared = Module::declare(context.clone(), "code", source);
        declared.catch(&context).map(drop).map_err(|error| match error {
            CaughtError::Exception(exception) => {
                let message = exception.message().unwrap_or_default();
                let last_line = code.lines().count().max(1);
                let line = exception.stack().as_deref().and_then(line);
                match line {
                    // The first line is ours.
                    Some(line) => CodeProblem::Syntax {
                        message,
                        line: line.saturating_sub(1).clamp(1, last_line),
                    },
                    None => CodeProblem::Refused(message),
                }
            }
            other => CodeProblem::Refused(other.to_string()),
        })
    })
}

/// The line in a stack such as `at code:3:1`.
fn line(stack: &str) -> Option<usize> {
    let (_, place) = stack.split_once("code:")?;
    place.split(':').next()?.parse().ok()
}

/// Whether code begins with `function` or `async function` after white space and comments.
fn begins_with_function(code: &str) -> bool {
    let mut rest = code.trim_start();
    loop {
        let after_comment = if let Some(comment) = rest.strip_prefix("//") {
            comment.split_once(['\n', '\r']).map(|(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map(|(_, after)| after)
        } else {
            break;
        };
        let Some(after) = after_comment else { return false };
        rest = after.trim_start();
    }
    let rest = rest.strip_prefix("async").map_or(rest, str::trim_start);
    rest.starts_with("function")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_function_expressions_pass() {
        for code in [
            "return a + b",
            "",
            "// nothing",
            "const c = `${a}`;\nreturn /x/u.test(c) // end",
            "function (a, b) { return a + b }",
            "/* doc */ // more\n function add(a, b) { return a + b }",
            "async function (a) { return await a }",
            "(a, b) => a + b",
            "a => a",
            "function helper(x) { return x }\nreturn helper(a)",
            "while (true) {}",
        ] {
            assert!(check_function(&["a", "b"], code).is_ok(), "{code}");
        }
    }

    #[test]
    fn what_does_not_parse_is_named_with_its_line() {
        for (code, wanted) in [
            ("return a +", 1),
            ("const x = 1;\nconst y = ;\nreturn x", 2),
            ("{", 1),
        ] {
            match check_function(&["a"], code) {
                Err(CodeProblem::Syntax { line, .. }) => assert_eq!(line, wanted, "{code}"),
                other => panic!("{code}: {other:?}"),
            }
        }
        for code in [
            "function (a) { return a",
            "await a",
            "return a\0",
            "import x from 'y'",
            "function (a) {} + 1 {",
        ] {
            assert!(check_function(&["a"], code).is_err(), "{code}");
        }
    }

    #[test]
    fn code_cannot_leave_its_function() {
        for code in [
            "} foo(); {",
            "}); foo(); (function () {",
            "}[x] = function () {",
            "} } + { m() {",
            "}, x, function () {",
            "} static m() {",
            "function () {}), (function () {}",
            "function () {}], [function () {}",
        ] {
            assert!(check_function(&[], code).is_err(), "{code}");
        }
    }

    #[test]
    fn nothing_runs_and_nothing_overflows() {
        assert!(check_function(&[], "throw new Error()").is_ok());
        for opening in ["(", "[", "{", "-", "a=>", "`${", "function f(){"] {
            let deep = opening.repeat(250_000 / opening.len());
            assert!(check_function(&["a"], &deep).is_err(), "{opening}");
        }
    }

    #[test]
    fn words_of_the_language_are_no_parameters() {
        for (name, is_one) in [
            ("a", true),
            ("$x_1", true),
            ("class", false),
            ("eval", false),
            ("await", false),
        ] {
            assert!(
                is_parameter_name(name).is_ok_and(|found| found == is_one),
                "{name}"
            );
        }
    }
}
