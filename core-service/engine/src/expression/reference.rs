//! `docs/expressions.md`: the language in prose, the functions from their table.

use super::functions::{CATEGORIES, DATE_TOKENS, Function};
use super::limits::{MAX_CHARACTERS, MAX_DEPTH, MAX_PATTERN_BYTES, MAX_RESULT_BYTES, MAX_STEPS};
use std::fmt::Write as _;

/// The reference of the language, in Markdown.
pub fn reference() -> String {
    let mut text = include_str!("reference.md").to_owned();
    for (category, functions) in CATEGORIES {
        let _ = write!(
            text,
            "\n### {category}\n\n| Function | Gives | Example |\n|---|---|---|\n"
        );
        for function in *functions {
            let _ = writeln!(text, "{}", row(function));
        }
    }
    text.push_str(include_str!("reference_end.md"));
    text.push_str("| Token | Means |\n|---|---|\n");
    for (token, meaning) in DATE_TOKENS {
        let _ = writeln!(text, "| `{token}` | {meaning} |");
    }
    let _ = write!(
        text,
        "\n## Limits\n\n\
         A template has at most {MAX_CHARACTERS} characters and {MAX_DEPTH} levels of nesting; a regular \
         expression at most {MAX_PATTERN_BYTES} bytes. An evaluation takes at \
         most {MAX_STEPS} steps (a step is an operation, or 64 bytes read or made) and gives at most {} MiB. What goes \
         beyond fails the node with `EXPRESSION_ERROR`. An expression reaches nothing but its inputs, so the same \
         inputs always give the same value.\n\n\
         ## Coming from Make\n\n\
         Functions keep their names. Places count from zero (`get`, `slice`, `indexOf`), a week starts on Monday \
         (`setDay`), and numbers are written with a decimal point unless told otherwise (`formatNumber`, \
         `parseNumber`). `shuffle` is absent because nothing here is random, `toBinary` because JSON has no binary \
         data; `replace` takes plain text, `replaceRegex` a pattern. `$now` takes the place of `now`.\n",
        MAX_RESULT_BYTES / 1024 / 1024
    );
    text
}

fn row(function: &Function) -> String {
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| parameter.replace("…]", "]…"))
        .collect();
    let call = format!("{}({})", function.name, parameters.join("; "));
    let (expression, value) = function.example;
    format!(
        "| {} | {} | {} → {} |",
        code(&call),
        function.description,
        code(expression),
        code(value)
    )
}

/// Code within a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::expression::{EvaluationError, NoCustomFunctions, Root, Scope, Template};
    use serde_json::Value;
    use std::collections::HashSet;

    struct Nothing;

    impl Scope for Nothing {
        fn node(&self, _id: i64) -> Option<&Value> {
            None
        }
        fn root(&self, _root: Root) -> Option<&Value> {
            None
        }
        fn index(&self) -> Option<i64> {
            None
        }
        fn now(&self) -> i64 {
            0
        }
        fn variable(&self, _name: &str) -> Option<&Value> {
            None
        }
        fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
            Err(EvaluationError::new(format!("there is no function `{name}`")))
        }
    }

    #[test]
    fn every_example_gives_what_it_says() {
        for function in CATEGORIES.iter().flat_map(|(_, functions)| functions.iter()) {
            let (expression, expected) = function.example;
            let template = Template::parse(&format!("{{{{{expression}}}}}"), &NoCustomFunctions).unwrap();
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(template.evaluate(&Nothing), Ok(expected), "{expression}");
            assert!(
                expression.contains(function.name),
                "the example of {} calls it",
                function.name
            );
        }
    }

    #[test]
    fn no_two_functions_share_a_name() {
        let mut names = HashSet::new();
        for function in CATEGORIES.iter().flat_map(|(_, functions)| functions.iter()) {
            assert!(names.insert(function.name), "{}", function.name);
        }
    }

    /// `UPDATE_GOLDENS=1 cargo test` rewrites the file.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "goldens are rewritten on demand")]
    fn the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/expressions.md");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, reference()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == reference(),
            "docs/expressions.md is stale; run the tests with UPDATE_GOLDENS=1"
        );
    }
}
