//! The filter of an edge, compiled: a template that gives a boolean, or conditions of operands and an operator.

mod operator;
mod read;
#[cfg(test)]
mod tests;

pub use operator::Operator;

use regex::Regex;
use serde_json::Value;

use crate::expression::{self, CompiledValue, CustomFunctions, EvaluationError, Scope, Template};
use crate::failure::brief;
use crate::params::ParamProblem;

use operator::both_strings;
use read::Reader;

/// A condition for taking an edge or keeping an item.
#[derive(Clone, Debug)]
pub struct CompiledFilter {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Template(Template),
    /// Any of these groups holds; a group holds when all its conditions do.
    AnyOfAll(Vec<Vec<Condition>>),
}

#[derive(Clone, Debug)]
struct Condition {
    left: CompiledValue,
    operator: Operator,
    right: CompiledValue,
    /// The pattern of `matches`, when it is known beforehand.
    pattern: Option<Regex>,
}

impl CompiledFilter {
    /// Compiles the stored form, or gives everything wrong with it.
    pub fn compile(filter: &Value, functions: &dyn CustomFunctions) -> Result<Self, Vec<ParamProblem>> {
        match filter {
            Value::String(text) => match Template::parse(text, functions) {
                Ok(template) if template.is_literal() => Err(vec![ParamProblem::new(
                    "",
                    "must hold a template, such as {{1.paid}}",
                )]),
                Ok(template) => Ok(Self {
                    form: Form::Template(template),
                }),
                Err(error) => Err(vec![ParamProblem::new("", error.to_string())]),
            },
            Value::Object(fields) => {
                let mut reader = Reader {
                    functions,
                    problems: Vec::new(),
                };
                let groups = reader.groups(fields);
                match reader.problems.is_empty() {
                    true => Ok(Self {
                        form: Form::AnyOfAll(groups),
                    }),
                    false => Err(reader.problems),
                }
            }
            _ => Err(vec![ParamProblem::new(
                "",
                "must be a template string or an object with any",
            )]),
        }
    }

    /// Whether the filter holds.
    pub fn matches(&self, scope: &dyn Scope) -> Result<bool, EvaluationError> {
        match &self.form {
            Form::Template(template) => match template.evaluate(scope)? {
                Value::Bool(holds) => Ok(holds),
                other => Err(EvaluationError::new(format!(
                    "a filter must give true or false, not {}",
                    brief(&other)
                ))),
            },
            Form::AnyOfAll(groups) => {
                for group in groups {
                    if all_hold(group, scope)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

fn all_hold(group: &[Condition], scope: &dyn Scope) -> Result<bool, EvaluationError> {
    for condition in group {
        if !condition.holds(scope)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Condition {
    fn holds(&self, scope: &dyn Scope) -> Result<bool, EvaluationError> {
        let left = self.left.evaluate(scope)?;
        if self.operator.is_unary() {
            return Ok(self.operator.holds(&left, &Value::Null));
        }
        if let Some(pattern) = &self.pattern {
            return Ok(left.as_str().is_some_and(|text| pattern.is_match(text)));
        }
        let right = self.right.evaluate(scope)?;
        if self.operator != Operator::Matches {
            return Ok(self.operator.holds(&left, &right));
        }
        match both_strings(&left, &right) {
            Some((text, pattern)) => Ok(expression::pattern(pattern)
                .map_err(EvaluationError::new)?
                .is_match(text)),
            None => Ok(false),
        }
    }
}
