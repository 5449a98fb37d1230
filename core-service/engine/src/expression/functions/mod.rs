//! The functions: one table, from which calls are resolved and `docs/expressions.md` is written.
//!
//! A function reads its arguments through [`Arguments`], which evaluates each when it is asked for: that is
//! how `if` leaves the other branch alone, and why what is wrong is said with the argument's name.

mod arguments;
mod array;
mod collection;
mod date;
mod date_format;
mod each;
mod encoding;
mod general;
mod math;
mod regex;
mod text;

pub(super) use arguments::Arguments;
pub(super) use date::date_text;
pub(super) use date_format::TOKENS as DATE_TOKENS;

use super::evaluator::Outcome;
use std::fmt;

/// A built-in function.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// In order: `name`, `[optional]`, `more…` (one or more), `[more…]`, and `x => …` or `(total, x) => …` for
    /// lambdas, with `| …` when a plain value will do as well.
    pub(super) parameters: &'static [&'static str],
    /// One sentence.
    pub(super) description: &'static str,
    /// An expression and its value as JSON.
    pub(super) example: (&'static str, &'static str),
    pub(super) run: for<'a> fn(&Arguments<'a>) -> Outcome<'a>,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Value,
    /// A lambda with this many parameters, least and most.
    Lambda {
        names: (usize, usize),
    },
    LambdaOrKey {
        names: (usize, usize),
    },
}

/// The functions by category, in the order of the documentation.
pub(super) const CATEGORIES: &[(&str, &[Function])] = &[
    ("General", general::FUNCTIONS),
    ("Text", text::FUNCTIONS),
    ("Arrays", array::FUNCTIONS),
    ("Arrays, with lambdas", each::FUNCTIONS),
    ("Collections", collection::FUNCTIONS),
    ("Numbers", math::FUNCTIONS),
    ("Dates", date::FUNCTIONS),
    ("Regular expressions", regex::FUNCTIONS),
    ("JSON, encoding and hashing", encoding::FUNCTIONS),
];

/// The function of a name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name == name)
}

/// A function whose name is nearly this one.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    let wanted = name.to_lowercase();
    let least_shared = wanted.chars().count().div_ceil(2).max(3);
    let shared = |candidate: &str| {
        candidate
            .chars()
            .zip(wanted.chars())
            .take_while(|(left, right)| left == right)
            .count()
    };
    all()
        .map(|function| (function.name, shared(&function.name.to_lowercase())))
        .filter(|(_, count)| *count >= least_shared)
        .max_by_key(|(candidate, count)| (*count, std::cmp::Reverse(candidate.len())))
        .map(|(candidate, _)| candidate)
}

fn all() -> impl Iterator<Item = &'static Function> {
    CATEGORIES.iter().flat_map(|(_, functions)| functions.iter())
}

impl Function {
    const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        description: &'static str,
        example: (&'static str, &'static str),
        run: for<'a> fn(&Arguments<'a>) -> Outcome<'a>,
    ) -> Self {
        Self {
            name,
            parameters,
            description,
            example,
            run,
        }
    }

    /// The least and the greatest number of arguments.
    pub(super) fn argument_count(&self) -> (usize, usize) {
        let least = self
            .parameters
            .iter()
            .filter(|parameter| !parameter.starts_with('['))
            .count();
        let most = if self.is_variadic() {
            usize::MAX
        } else {
            self.parameters.len()
        };
        (least, most)
    }

    /// What the argument at an index may be.
    pub(super) fn parameter(&self, index: usize) -> Parameter {
        let parameter = self.parameter_text(index);
        let Some((names, value)) = parameter.split_once("=>") else {
            return Parameter::Value;
        };
        // Every lambda may take the index after what its spelling names.
        let named = names.split(',').count();
        let names = (named, named + 1);
        if value.contains('|') {
            Parameter::LambdaOrKey { names }
        } else {
            Parameter::Lambda { names }
        }
    }

    /// The index of the parameter that is spelled so.
    pub(super) fn parameter_named(&self, parameter: &str) -> Option<usize> {
        self.parameters
            .iter()
            .position(|candidate| *candidate == parameter)
    }

    /// How messages call the parameter at an index.
    fn parameter_text(&self, index: usize) -> &'static str {
        let last = if self.is_variadic() {
            self.parameters.last()
        } else {
            None
        };
        self.parameters.get(index).or(last).copied().unwrap_or_default()
    }

    fn is_variadic(&self) -> bool {
        self.parameters
            .last()
            .is_some_and(|last| last.trim_end_matches(']').ends_with('…'))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
