//! The expression language: `{{ … }}` inside the strings of parameters, filters and config.
//!
//! A string is compiled once ([`Template`], or [`CompiledValue`] for a whole JSON value) and evaluated many
//! times against a [`Scope`], which is everything an expression can reach. Evaluation borrows from the scope
//! and clones only what ends up in the result.
//!
//! Deliberately absent: a clock, randomness, I/O and host objects. `$now` and custom functions come through
//! the scope. Every evaluation is bounded (see [`limits`]), so a stored template cannot hurt the service.

mod compiled;
mod error;
mod evaluator;
mod functions;
mod gather;
mod lexer;
pub mod limits;
mod numbers;
mod parser;
mod patterns;
mod reference;
mod syntax;
mod template;
mod values;

pub use compiled::{CompiledPart, CompiledValue};
pub use error::{EvaluationError, ParseError};
pub(crate) use gather::Gather;
pub use reference::reference;
pub use template::Template;

use std::cmp::Ordering;

use regex::Regex;
use serde_json::{Number, Value};

use numbers::Numeric;

use crate::graph::FrozenFunction;

/// The values an expression can name besides nodes and variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// `$run`: the run's `id`, `attemptNumber`, `trigger`, `createdAt`.
    Run,
    /// `$workflow`: the workflow's `id` and `name`.
    Workflow,
    /// `$item`: the current item, where a node kind works item by item or inside a splitter's region.
    Item,
    /// `error`: the failure that an error edge carries (`code`, `message`).
    Error,
}

/// Everything an expression can reach while it is evaluated.
///
/// What is missing is `None`, which an expression sees as null.
pub trait Scope {
    /// The whole output of a node.
    fn node(&self, id: i64) -> Option<&Value>;
    /// A value with a name of its own.
    fn root(&self, root: Root) -> Option<&Value>;
    /// `$index`: the place of the current item, from zero.
    fn index(&self) -> Option<i64>;
    /// `$now` in epoch milliseconds. It must not change during an evaluation.
    fn now(&self) -> i64;
    /// `$vars.NAME`.
    fn variable(&self, name: &str) -> Option<&Value>;
    /// Calls a custom function. The number of arguments was checked when the template was parsed.
    /// [`EvaluationError::unanswered`] when the evaluation has to be repeated once the answer is there.
    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError>;
}

/// Whether a name means something in expressions already, so that no custom function can be called by it.
pub fn is_reserved(name: &str) -> bool {
    const WORDS: [&str; 15] = [
        "and", "error", "false", "in", "index", "item", "node", "not", "now", "null", "or", "run", "true",
        "vars", "workflow",
    ];
    WORDS.contains(&name) || functions::find(name).is_some()
}

/// The regular expression of a text, or what is wrong with it: the same in filters as in expressions.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    patterns::compile(text, "").map(|pattern| pattern.regex)
}

/// The order of two numbers: integers and decimals are one type, and none is rounded.
pub(crate) fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    Numeric::of(left).compare(Numeric::of(right))
}

/// The custom functions that a template may call, asked while it is parsed.
pub trait CustomFunctions {
    /// The least and the greatest number of arguments, or `None` when there is no such function.
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)>;

    /// The function with an id, for nodes that call one.
    fn by_id(&self, _id: &str) -> Option<FrozenFunction> {
        None
    }

    /// Whether a plain name is short for the variable of that name: `parameters` for `$vars.parameters`. Workflows have
    /// no such names; the manifests of apps do.
    fn is_variable(&self, _name: &str) -> bool {
        false
    }
}

/// For templates that may call built-in functions only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCustomFunctions;

impl CustomFunctions for NoCustomFunctions {
    fn parameter_count(&self, _name: &str) -> Option<(usize, usize)> {
        None
    }
}
