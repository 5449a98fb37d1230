//! Reads the stored form of conditions.

use regex::Regex;
use serde_json::{Map, Value};

use crate::expression::{self, CompiledValue, CustomFunctions, ParseError};
use crate::params::ParamProblem;

use super::{Condition, Operator};

/// Reads the stored form, noting every problem with its path.
pub(super) struct Reader<'a> {
    pub(super) functions: &'a dyn CustomFunctions,
    pub(super) problems: Vec<ParamProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ParamProblem::new(path, message));
    }

    pub(super) fn groups(&mut self, fields: &Map<String, Value>) -> Vec<Vec<Condition>> {
        let Some(groups) = self.only_list(fields, "any", "") else {
            return Vec::new();
        };
        let mut read = Vec::with_capacity(groups.len());
        for (at, group) in groups.iter().enumerate() {
            let path = format!("any[{at}]");
            let Some(fields) = group.as_object() else {
                self.problem(path, "must be an object with all");
                continue;
            };
            let conditions = self.only_list(fields, "all", &path).unwrap_or_default();
            let conditions = conditions.iter().enumerate();
            read.push(
                conditions
                    .filter_map(|(at, c)| self.condition(c, &format!("{path}.all[{at}]")))
                    .collect(),
            );
        }
        read
    }

    /// The list under the only field an object may have.
    fn only_list<'v>(
        &mut self,
        fields: &'v Map<String, Value>,
        name: &str,
        path: &str,
    ) -> Option<&'v [Value]> {
        let inner = |field: &str| {
            if path.is_empty() {
                field.to_owned()
            } else {
                format!("{path}.{field}")
            }
        };
        for unknown in fields.keys().filter(|key| *key != name) {
            self.problem(inner(unknown), format!("is unknown here; a filter has {name}"));
        }
        match fields.get(name) {
            Some(Value::Array(items)) if !items.is_empty() => Some(items),
            _ => {
                self.problem(inner(name), "must be a list with at least one entry");
                None
            }
        }
    }

    fn condition(&mut self, condition: &Value, path: &str) -> Option<Condition> {
        let Some(fields) = condition.as_object() else {
            self.problem(path, "must be an object with left, operator and right");
            return None;
        };
        for unknown in fields
            .keys()
            .filter(|key| !matches!(key.as_str(), "left" | "operator" | "right"))
        {
            self.problem(
                format!("{path}.{unknown}"),
                "is unknown here; a condition has left, operator and right",
            );
        }
        let word = fields.get("operator").and_then(Value::as_str).unwrap_or_default();
        let Some(operator) = Operator::parse(word) else {
            let known: Vec<_> = Operator::ALL.iter().map(|(name, _)| *name).collect();
            self.problem(
                format!("{path}.operator"),
                format!("must be one of {}", known.join(", ")),
            );
            return None;
        };
        let left = self.operand(fields, "left", path)?;
        if operator.is_unary() && fields.get("right").is_some_and(|right| !right.is_null()) {
            self.problem(
                format!("{path}.right"),
                format!("must be absent: {word} looks at left only"),
            );
            return None;
        }
        let right = match operator.is_unary() {
            true => CompiledValue::compile(&Value::Null, self.functions).ok()?,
            false => self.operand(fields, "right", path)?,
        };
        let pattern = match operator {
            Operator::Matches => self.pattern(&right, path)?,
            _ => None,
        };
        Some(Condition {
            left,
            operator,
            right,
            pattern,
        })
    }

    fn operand(&mut self, fields: &Map<String, Value>, name: &str, path: &str) -> Option<CompiledValue> {
        let path = format!("{path}.{name}");
        let Some(operand) = fields.get(name) else {
            self.problem(path, "is required");
            return None;
        };
        match CompiledValue::compile(operand, self.functions) {
            Ok(compiled) => Some(compiled),
            Err(found) => {
                let locate = |(inner, error): (String, ParseError)| {
                    ParamProblem::new(inner, error.to_string()).under(&path)
                };
                self.problems.extend(found.into_iter().map(locate));
                None
            }
        }
    }

    /// The compiled pattern when the operand is a literal; the outer `None` when it is no pattern at all.
    fn pattern(&mut self, right: &CompiledValue, path: &str) -> Option<Option<Regex>> {
        let Some(literal) = right.as_literal() else {
            return Some(None);
        };
        let compiled = match literal.as_str() {
            Some(text) => expression::pattern(text).map_err(|why| format!("is of no use: {why}")),
            None => Err(String::from("must be a regular expression in a string")),
        };
        match compiled {
            Ok(pattern) => Some(Some(pattern)),
            Err(message) => {
                self.problem(format!("{path}.right"), message);
                None
            }
        }
    }
}
