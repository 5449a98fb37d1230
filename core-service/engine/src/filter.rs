//! The filter of an edge, compiled: a template that gives a boolean, or conditions of operands and an operator.

use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::expression::{CompiledValue, CustomFunctions, EvaluationError, Scope, Template};
use crate::params::ParamProblem;

/// Largest compiled size of a pattern in bytes: the matcher is linear in the text, its size is what a pattern costs.
const MAX_PATTERN_BYTES: usize = 1 << 20;

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

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Equal, without coercion.
    Eq,
    /// Not equal.
    Neq,
    /// Greater: two numbers or two strings.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// A string contains a string, or an array an element.
    Contains,
    /// Neither.
    NotContains,
    /// A string starts with a string.
    StartsWith,
    /// A string ends with a string.
    EndsWith,
    /// A string matches a regular expression somewhere.
    Matches,
    /// An element of the array on the right.
    In,
    /// No element of it.
    NotIn,
    /// Null or missing.
    IsNull,
    /// Neither null nor missing.
    IsNotNull,
    /// Null, an empty string, an empty array or an empty object.
    IsEmpty,
    /// Anything else.
    IsNotEmpty,
    /// True.
    IsTrue,
    /// False.
    IsFalse,
}

impl Operator {
    /// All operators with the contract's words.
    pub const ALL: [(&'static str, Self); 19] = [
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("contains", Self::Contains),
        ("not_contains", Self::NotContains),
        ("starts_with", Self::StartsWith),
        ("ends_with", Self::EndsWith),
        ("matches", Self::Matches),
        ("in", Self::In),
        ("not_in", Self::NotIn),
        ("is_null", Self::IsNull),
        ("is_not_null", Self::IsNotNull),
        ("is_empty", Self::IsEmpty),
        ("is_not_empty", Self::IsNotEmpty),
        ("is_true", Self::IsTrue),
        ("is_false", Self::IsFalse),
    ];

    /// The operator of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, operator)| operator)
    }

    /// Whether it looks at the left operand only.
    pub fn is_unary(self) -> bool {
        matches!(
            self,
            Self::IsNull | Self::IsNotNull | Self::IsEmpty | Self::IsNotEmpty | Self::IsTrue | Self::IsFalse
        )
    }

    /// Whether the operands satisfy it. An ordering of operands that have none does not hold, and `matches` is the
    /// caller's, who has the pattern.
    fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Eq => equal(left, right),
            Self::Neq => !equal(left, right),
            Self::Gt => order(left, right) == Some(Ordering::Greater),
            Self::Gte => order(left, right).is_some_and(Ordering::is_ge),
            Self::Lt => order(left, right) == Some(Ordering::Less),
            Self::Lte => order(left, right).is_some_and(Ordering::is_le),
            Self::Contains => contains(left, right),
            Self::NotContains => !contains(left, right),
            Self::StartsWith => {
                both_strings(left, right).is_some_and(|(text, start)| text.starts_with(start))
            }
            Self::EndsWith => both_strings(left, right).is_some_and(|(text, end)| text.ends_with(end)),
            Self::In => right.is_array() && contains(right, left),
            Self::NotIn => !(right.is_array() && contains(right, left)),
            Self::IsNull => left.is_null(),
            Self::IsNotNull => !left.is_null(),
            Self::IsEmpty => is_empty(left),
            Self::IsNotEmpty => !is_empty(left),
            Self::IsTrue => *left == Value::Bool(true),
            Self::IsFalse => *left == Value::Bool(false),
            Self::Matches => false,
        }
    }
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
                    "a filter must give true or false, not {other:.60}"
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
            Some((text, pattern)) => Ok(compile_pattern(pattern)
                .map_err(EvaluationError::new)?
                .is_match(text)),
            None => Ok(false),
        }
    }
}

/// Reads the stored form, noting every problem with its path.
struct Reader<'a> {
    functions: &'a dyn CustomFunctions,
    problems: Vec<ParamProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ParamProblem::new(path, message));
    }

    fn groups(&mut self, fields: &Map<String, Value>) -> Vec<Vec<Condition>> {
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
                let locate = |(inner, error): (String, crate::expression::ParseError)| {
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
            Some(text) => compile_pattern(text),
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

fn compile_pattern(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build();
    built.map_err(|_| format!("{text:?} is not a regular expression this service can run in linear time"))
}

/// Equality without coercion; integers and decimals are one type.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => left == right,
    }
}

/// The order of two numbers or two strings.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

fn contains(left: &Value, right: &Value) -> bool {
    match left {
        Value::Array(items) => items.iter().any(|item| equal(item, right)),
        Value::String(text) => right.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn both_strings<'v>(left: &'v Value, right: &'v Value) -> Option<(&'v str, &'v str)> {
    left.as_str().zip(right.as_str())
}
