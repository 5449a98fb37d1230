//! A JSON value whose strings are templates, compiled.

use super::gather::Gather;
use super::limits::{self, MAX_PARAMETERS_BYTES};
use super::template::Evaluation;
use super::{CustomFunctions, EvaluationError, ParseError, Scope, Template};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A JSON value (a node's parameters, say) whose strings are compiled templates.
///
/// A part without any expression is kept as a plain value and only cloned.
#[derive(Clone, Debug)]
pub struct CompiledValue {
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Literal(Value),
    Template(Box<Template>),
    Array(Vec<CompiledValue>),
    Object(Vec<(String, CompiledValue)>),
}

/// A part of a [`CompiledValue`]: what a node kind takes by name and evaluates on its own.
#[derive(Clone, Copy, Debug)]
pub struct CompiledPart<'p> {
    inner: PartShape<'p>,
}

#[derive(Clone, Copy, Debug)]
enum PartShape<'p> {
    Literal(&'p Value),
    Compiled(&'p CompiledValue),
}

impl CompiledValue {
    /// Compiles a value, or gives every problem found with its path (`fields.total`, `rows[2].name`).
    pub fn compile(
        value: &Value,
        functions: &dyn CustomFunctions,
    ) -> Result<Self, Vec<(String, ParseError)>> {
        let mut compiler = Compiler {
            functions,
            path: String::new(),
            problems: Vec::new(),
        };
        let compiled = compiler.compile(value);
        if compiler.problems.is_empty() {
            Ok(compiled)
        } else {
            Err(compiler.problems)
        }
    }

    /// The whole value as a part.
    pub fn part(&self) -> CompiledPart<'_> {
        let inner = match &self.shape {
            Shape::Literal(value) => PartShape::Literal(value),
            Shape::Template(_) | Shape::Array(_) | Shape::Object(_) => PartShape::Compiled(self),
        };
        CompiledPart { inner }
    }

    /// The field of an object.
    pub fn get(&self, name: &str) -> Option<CompiledPart<'_>> {
        self.part().get(name)
    }

    /// The plain value, when it holds no expression.
    pub fn as_literal(&self) -> Option<&Value> {
        self.part().as_literal()
    }

    /// Every template with an expression in it, in order.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = Vec::new();
        self.collect_templates(&mut found);
        found
    }

    /// The ids of the nodes it reads, ascending, each once.
    pub fn node_references(&self) -> impl Iterator<Item = i64> {
        let ids: BTreeSet<i64> = self
            .templates()
            .into_iter()
            .flat_map(Template::node_references)
            .collect();
        ids.into_iter()
    }

    /// The names of the `$vars` it reads, in alphabetical order, each once.
    pub fn variable_references(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .templates()
            .into_iter()
            .flat_map(Template::variable_references)
            .collect();
        names.into_iter()
    }

    /// The variables' fields that it names in plain text, in alphabetical order, each once.
    pub fn variable_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields: BTreeSet<(&str, &str)> = self
            .templates()
            .into_iter()
            .flat_map(Template::variable_fields)
            .collect();
        fields.into_iter()
    }

    /// The names of the custom functions it calls, in alphabetical order, each once.
    pub fn custom_functions(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self
            .templates()
            .into_iter()
            .flat_map(Template::custom_functions)
            .collect();
        names.into_iter()
    }

    /// The value with every template evaluated, all within one budget of steps.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.part().evaluate(scope)
    }

    fn is_literal(&self) -> bool {
        matches!(self.shape, Shape::Literal(_))
    }

    fn into_literal(self) -> Option<Value> {
        match self.shape {
            Shape::Literal(value) => Some(value),
            Shape::Template(_) | Shape::Array(_) | Shape::Object(_) => None,
        }
    }

    fn collect_templates<'c>(&'c self, found: &mut Vec<&'c Template>) {
        match &self.shape {
            Shape::Literal(_) => {}
            Shape::Template(template) => found.push(template),
            Shape::Array(items) => items.iter().for_each(|item| item.collect_templates(found)),
            Shape::Object(fields) => fields
                .iter()
                .for_each(|(_, field)| field.collect_templates(found)),
        }
    }
}

impl<'p> CompiledPart<'p> {
    /// The field of an object.
    pub fn get(self, name: &str) -> Option<CompiledPart<'p>> {
        match self.inner {
            PartShape::Literal(value) => value.get(name).map(Self::literal),
            PartShape::Compiled(CompiledValue {
                shape: Shape::Object(fields),
            }) => fields
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value.part()),
            PartShape::Compiled(_) => None,
        }
    }

    /// The fields of an object in their order; `None` for anything else.
    pub fn entries(self) -> Option<Vec<(&'p str, CompiledPart<'p>)>> {
        match self.inner {
            PartShape::Literal(Value::Object(fields)) => Some(
                fields
                    .iter()
                    .map(|(name, value)| (name.as_str(), Self::literal(value)))
                    .collect(),
            ),
            PartShape::Compiled(CompiledValue {
                shape: Shape::Object(fields),
            }) => Some(
                fields
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.part()))
                    .collect(),
            ),
            PartShape::Literal(_) | PartShape::Compiled(_) => None,
        }
    }

    /// The elements of an array; `None` for anything else.
    pub fn items(self) -> Option<Vec<CompiledPart<'p>>> {
        match self.inner {
            PartShape::Literal(Value::Array(items)) => Some(items.iter().map(Self::literal).collect()),
            PartShape::Compiled(CompiledValue {
                shape: Shape::Array(items),
            }) => Some(items.iter().map(CompiledValue::part).collect()),
            PartShape::Literal(_) | PartShape::Compiled(_) => None,
        }
    }

    /// The plain value, when it holds no expression.
    pub fn as_literal(self) -> Option<&'p Value> {
        match self.inner {
            PartShape::Literal(value) => Some(value),
            PartShape::Compiled(_) => None,
        }
    }

    /// The template, when the part is one string with an expression in it.
    pub fn as_template(self) -> Option<&'p Template> {
        match self.inner {
            PartShape::Compiled(CompiledValue {
                shape: Shape::Template(template),
            }) => Some(template),
            PartShape::Literal(_) | PartShape::Compiled(_) => None,
        }
    }

    /// The part with every template evaluated, all within one budget of steps.
    pub fn evaluate(self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        match self.inner {
            PartShape::Literal(value) => Ok(value.clone()),
            PartShape::Compiled(compiled) => {
                let mut evaluator = Evaluator {
                    evaluation: Evaluation::new(scope),
                    bytes_left: MAX_PARAMETERS_BYTES,
                };
                evaluator
                    .evaluate(compiled)
                    .map_err(|(path, error)| error.at(&path))
            }
        }
    }

    fn literal(value: &'p Value) -> Self {
        Self {
            inner: PartShape::Literal(value),
        }
    }
}

struct Compiler<'c> {
    functions: &'c dyn CustomFunctions,
    path: String,
    problems: Vec<(String, ParseError)>,
}

impl Compiler<'_> {
    fn compile(&mut self, value: &Value) -> CompiledValue {
        let shape = match value {
            Value::String(text) => self.compile_text(text),
            Value::Array(items) => {
                let items: Vec<CompiledValue> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.compile_within(&format!("[{index}]"), item))
                    .collect();
                if items.iter().all(CompiledValue::is_literal) {
                    let values = items.into_iter().filter_map(CompiledValue::into_literal);
                    Shape::Literal(Value::Array(values.collect()))
                } else {
                    Shape::Array(items)
                }
            }
            Value::Object(fields) => {
                let fields: Vec<(String, CompiledValue)> = fields
                    .iter()
                    .map(|(name, field)| {
                        let dot = if self.path.is_empty() { "" } else { "." };
                        (name.clone(), self.compile_within(&format!("{dot}{name}"), field))
                    })
                    .collect();
                if fields.iter().all(|(_, field)| field.is_literal()) {
                    let values = fields
                        .into_iter()
                        .filter_map(|(name, field)| field.into_literal().map(|value| (name, value)));
                    Shape::Literal(Value::Object(values.collect()))
                } else {
                    Shape::Object(fields)
                }
            }
            other => Shape::Literal(other.clone()),
        };
        CompiledValue { shape }
    }

    fn compile_within(&mut self, step: &str, value: &Value) -> CompiledValue {
        let length = self.path.len();
        self.path.push_str(step);
        let compiled = self.compile(value);
        self.path.truncate(length);
        compiled
    }

    fn compile_text(&mut self, text: &str) -> Shape {
        match Template::parse(text, self.functions) {
            Ok(template) => match template.as_literal() {
                Some(text) => Shape::Literal(Value::from(text)),
                None => Shape::Template(Box::new(template)),
            },
            Err(problem) => {
                self.problems.push((self.path.clone(), problem));
                Shape::Literal(Value::Null)
            }
        }
    }
}

struct Evaluator<'s> {
    evaluation: Evaluation<'s>,
    /// How much larger the whole may become.
    bytes_left: usize,
}

/// A failure and the path to it, which is put together on the way out: success pays nothing for it.
type At<T> = Result<T, (String, EvaluationError)>;

impl Evaluator<'_> {
    fn evaluate(&mut self, compiled: &CompiledValue) -> At<Value> {
        match &compiled.shape {
            Shape::Literal(value) => Ok(value.clone()),
            Shape::Template(template) => self.evaluate_template(template),
            Shape::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                let mut gather = Gather::default();
                for (index, item) in items.iter().enumerate() {
                    let value = self.gathered(&mut gather, item);
                    let value = value.map_err(|failure| within(&format!("[{index}]"), failure))?;
                    values.push(value);
                }
                end(gather)?;
                Ok(Value::Array(values))
            }
            Shape::Object(fields) => {
                let mut object = Map::with_capacity(fields.len());
                let mut gather = Gather::default();
                for (name, field) in fields {
                    let value = self.gathered(&mut gather, field);
                    object.insert(name.clone(), value.map_err(|failure| within(name, failure))?);
                }
                end(gather)?;
                Ok(Value::Object(object))
            }
        }
    }

    /// The value of one part among others; null when it lacks an answer.
    fn gathered(&mut self, gather: &mut Gather, part: &CompiledValue) -> At<Value> {
        let (path, outcome) = match self.evaluate(part) {
            Ok(value) => (String::new(), Ok(value)),
            Err((path, error)) => (path, Err(error)),
        };
        match gather.pass(outcome) {
            Ok(value) => Ok(value.unwrap_or_default()),
            Err(error) => Err((path, error)),
        }
    }

    fn evaluate_template(&mut self, template: &Template) -> At<Value> {
        let (value, bytes) = template
            .evaluate_in(&self.evaluation)
            .map_err(|error| (String::new(), error))?;
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(value)
            }
            None => Err((String::new(), limits::too_large(MAX_PARAMETERS_BYTES))),
        }
    }
}

/// Fails when any of several parts lacked an answer; where does not matter.
fn end(gather: Gather) -> At<()> {
    gather.end().map_err(|error| (String::new(), error))
}

fn within(step: &str, (path, error): (String, EvaluationError)) -> (String, EvaluationError) {
    let dot = if path.is_empty() || path.starts_with('[') {
        ""
    } else {
        "."
    };
    (format!("{step}{dot}{path}"), error)
}
