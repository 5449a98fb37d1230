//! The arguments of one call: evaluated when asked for, checked for their type, paid for when read.

use super::super::evaluator::{Environment, Frame, Outcome};
use super::super::limits::Budget;
use super::super::numbers::Numeric;
use super::super::syntax::{Call, Expression};
use super::super::{EvaluationError, patterns, values};
use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Compiling a regular expression costs as much as this many steps.
const PATTERN_STEPS: usize = 10_000;
/// How many regular expressions an evaluation pays for once only.
const KNOWN_PATTERNS: usize = 16;

pub(in super::super) struct Arguments<'a> {
    call: &'a Call,
    environment: Environment<'a>,
}

/// A lambda given as an argument.
#[derive(Clone, Copy)]
pub(super) struct Lambda<'a> {
    body: &'a Expression,
    environment: Environment<'a>,
}

/// The elements of an array, borrowed or moved out of it.
pub(super) enum Items<'a> {
    Borrowed(std::slice::Iter<'a, Value>),
    Owned(std::vec::IntoIter<Value>),
}

impl<'a> Arguments<'a> {
    pub(in super::super) fn new(call: &'a Call, environment: Environment<'a>) -> Self {
        Self { call, environment }
    }

    pub(super) fn count(&self) -> usize {
        self.call.arguments.len()
    }

    pub(super) fn budget(&self) -> &'a Budget {
        self.environment.budget()
    }

    pub(super) fn environment(&self) -> Environment<'a> {
        self.environment
    }

    /// Any value; null when the argument was left out.
    pub(super) fn value(&self, index: usize) -> Outcome<'a> {
        match self.call.arguments.get(index) {
            Some(expression) => self.environment.evaluate(expression),
            None => Ok(Cow::Owned(Value::Null)),
        }
    }

    /// Any value, of one's own.
    pub(super) fn owned(&self, index: usize) -> Result<Value, EvaluationError> {
        self.own(self.value(index)?)
    }

    /// A value of one's own; a copy is paid for.
    pub(super) fn own(&self, value: Cow<'_, Value>) -> Result<Value, EvaluationError> {
        self.environment.own(value)
    }

    /// The values from an index on.
    pub(super) fn rest(&self, from: usize) -> impl Iterator<Item = Outcome<'a>> {
        let environment = self.environment;
        self.call
            .arguments
            .iter()
            .skip(from)
            .map(move |expression| environment.evaluate(expression))
    }

    /// Whether a condition holds.
    pub(super) fn condition(&self, index: usize) -> Result<bool, EvaluationError> {
        self.value(index).map(|value| values::is_true(&value))
    }

    /// A text: numbers and booleans are written out, null is empty.
    pub(super) fn text(&self, index: usize) -> Result<Cow<'a, str>, EvaluationError> {
        self.as_text(index, self.value(index)?)
    }

    pub(super) fn as_text(
        &self,
        index: usize,
        value: Cow<'a, Value>,
    ) -> Result<Cow<'a, str>, EvaluationError> {
        let text = match value {
            Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Cow::Owned(Value::String(text)) => Cow::Owned(text),
            value if value.is_array() || value.is_object() => return Err(self.wants(index, "a text", &value)),
            value => Cow::Owned(values::text(&value, self.budget())?.into_owned()),
        };
        self.budget().spend_bytes(text.len())?;
        Ok(text)
    }

    /// A text, or this one when the argument was left out or is null.
    pub(super) fn text_or(
        &self,
        index: usize,
        default: &'static str,
    ) -> Result<Cow<'a, str>, EvaluationError> {
        let value = self.value(index)?;
        if value.is_null() {
            Ok(Cow::Borrowed(default))
        } else {
            self.as_text(index, value)
        }
    }

    pub(super) fn number(&self, index: usize) -> Result<Numeric, EvaluationError> {
        let value = self.value(index)?;
        match value.as_ref() {
            Value::Number(number) => Ok(Numeric::of(number)),
            other => Err(self.wants(index, "a number (`parseNumber` makes one of a text)", other)),
        }
    }

    /// A whole number.
    pub(super) fn integer(&self, index: usize) -> Result<i64, EvaluationError> {
        let value = self.value(index)?;
        self.as_integer(index, &value)
    }

    /// A whole number, or `None` when the argument was left out or is null.
    pub(super) fn optional_integer(&self, index: usize) -> Result<Option<i64>, EvaluationError> {
        let value = self.value(index)?;
        if value.is_null() {
            Ok(None)
        } else {
            self.as_integer(index, &value).map(Some)
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the decimal has no fraction and is in range"
    )]
    pub(super) fn as_integer(&self, index: usize, value: &Value) -> Result<i64, EvaluationError> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        value
            .as_i64()
            .or_else(|| {
                value
                    .as_f64()
                    .filter(|decimal| decimal.fract() == 0.0 && decimal.abs() <= EXACT)
                    .map(|decimal| decimal as i64)
            })
            .ok_or_else(|| self.wants(index, "a whole number", value))
    }

    /// The elements of an array; null has none.
    pub(super) fn items(&self, index: usize) -> Result<Items<'a>, EvaluationError> {
        self.as_items(index, self.value(index)?)
    }

    pub(super) fn as_items(&self, index: usize, value: Cow<'a, Value>) -> Result<Items<'a>, EvaluationError> {
        let items = match value {
            Cow::Borrowed(Value::Array(items)) => Items::Borrowed(items.iter()),
            Cow::Owned(Value::Array(items)) => Items::Owned(items.into_iter()),
            value if value.is_null() => Items::Borrowed([].iter()),
            value => return Err(self.wants(index, "an array", &value)),
        };
        self.budget().spend(items.len())?;
        Ok(items)
    }

    /// An object of one's own; null is an empty one.
    pub(super) fn object(&self, index: usize) -> Result<Map<String, Value>, EvaluationError> {
        match self.owned(index)? {
            Value::Object(fields) => Ok(fields),
            Value::Null => Ok(Map::new()),
            other => Err(self.wants(index, "an object", &other)),
        }
    }

    /// The lambda at an index, when a lambda was given.
    pub(super) fn lambda(&self, index: usize) -> Option<Lambda<'a>> {
        match self.call.arguments.get(index) {
            Some(Expression::Lambda(body)) => Some(Lambda {
                body,
                environment: self.environment,
            }),
            _ => None,
        }
    }

    /// The lambda at an index, where only a lambda will do.
    pub(super) fn required_lambda(&self, index: usize) -> Result<Lambda<'a>, EvaluationError> {
        self.lambda(index)
            .ok_or_else(|| self.error("a lambda such as `x => x.name` is wanted"))
    }

    /// A regular expression with its flags. What it costs does not depend on what other evaluations compiled.
    pub(super) fn pattern(&self, index: usize, flags: usize) -> Result<Regex, EvaluationError> {
        let (pattern, flags) = (self.text(index)?, self.text(flags)?);
        let mut known = self.environment.context.patterns.borrow_mut();
        if let Some(known) = known.iter().find(|known| known.is(&pattern, &flags)) {
            return Ok(known.regex.clone());
        }
        self.budget().spend(PATTERN_STEPS)?;
        let compiled = patterns::compile(&pattern, &flags).map_err(|message| self.error(&message))?;
        let regex = compiled.regex.clone();
        if known.len() >= KNOWN_PATTERNS {
            known.remove(0);
        }
        known.push(compiled);
        Ok(regex)
    }

    /// What is wrong, after the function's name.
    pub(super) fn error(&self, message: &str) -> EvaluationError {
        EvaluationError::new(format!("`{}`: {message}", self.call.function.name))
    }

    /// An argument of the wrong type.
    pub(super) fn wants(&self, index: usize, wanted: &str, given: &Value) -> EvaluationError {
        let parameter = self.call.function.parameter_text(index);
        let parameter = parameter.trim_matches(['[', ']']).trim_end_matches('…');
        self.error(&format!(
            "the argument `{parameter}` must be {wanted}, not {}",
            values::kind(given)
        ))
    }
}

impl Lambda<'_> {
    /// The lambda's value for these parameters.
    pub(super) fn call(&self, parameters: &[Cow<'_, Value>]) -> Result<Value, EvaluationError> {
        let frame = Frame {
            values: parameters,
            outer: self.environment.frame,
        };
        let environment = Environment {
            context: self.environment.context,
            frame: Some(&frame),
        };
        let value = environment.evaluate(self.body)?;
        environment.own(value)
    }

    /// Whether the lambda's condition holds for these parameters.
    pub(super) fn holds(&self, parameters: &[Cow<'_, Value>]) -> Result<bool, EvaluationError> {
        let frame = Frame {
            values: parameters,
            outer: self.environment.frame,
        };
        let environment = Environment {
            context: self.environment.context,
            frame: Some(&frame),
        };
        environment.holds(self.body)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Cow<'a, Value>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Borrowed(items) => items.next().map(Cow::Borrowed),
            Self::Owned(items) => items.next().map(Cow::Owned),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Borrowed(items) => items.size_hint(),
            Self::Owned(items) => items.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Items<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Borrowed(items) => items.next_back().map(Cow::Borrowed),
            Self::Owned(items) => items.next_back().map(Cow::Owned),
        }
    }
}

impl ExactSizeIterator for Items<'_> {}
