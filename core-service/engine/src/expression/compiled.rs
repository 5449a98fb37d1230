//! A JSON value whose strings are templates, compiled.

use super::{CustomFunctions, EvaluationError, ParseError, Scope, Template};
use serde_json::{Map, Value};

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
    Template(Template),
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
        let mut problems = Vec::new();
        let compiled = compile(value, functions, &mut String::new(), &mut problems);
        if problems.is_empty() {
            Ok(compiled)
        } else {
            Err(problems)
        }
    }

    /// The whole value as a part.
    pub fn part(&self) -> CompiledPart<'_> {
        let inner = match &self.shape {
            Shape::Literal(value) => PartShape::Literal(value),
            _ => PartShape::Compiled(self),
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

    /// Every template in it, in order.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = Vec::new();
        self.collect_templates(&mut found);
        found
    }

    /// The ids of the nodes it reads, ascending, each once.
    pub fn node_references(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self
            .templates()
            .into_iter()
            .flat_map(Template::node_references)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The value with every template evaluated.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.part().evaluate(scope)
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
            _ => None,
        }
    }

    /// The elements of an array; `None` for anything else.
    pub fn items(self) -> Option<Vec<CompiledPart<'p>>> {
        match self.inner {
            PartShape::Literal(Value::Array(items)) => Some(items.iter().map(Self::literal).collect()),
            PartShape::Compiled(CompiledValue {
                shape: Shape::Array(items),
            }) => Some(items.iter().map(CompiledValue::part).collect()),
            _ => None,
        }
    }

    /// The plain value, when it holds no expression.
    pub fn as_literal(self) -> Option<&'p Value> {
        match self.inner {
            PartShape::Literal(value) => Some(value),
            PartShape::Compiled(_) => None,
        }
    }

    /// The part with every template evaluated.
    pub fn evaluate(self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        match self.inner {
            PartShape::Literal(value) => Ok(value.clone()),
            PartShape::Compiled(compiled) => evaluate(compiled, scope),
        }
    }

    fn literal(value: &'p Value) -> Self {
        Self {
            inner: PartShape::Literal(value),
        }
    }
}

fn compile(
    value: &Value,
    functions: &dyn CustomFunctions,
    path: &mut String,
    problems: &mut Vec<(String, ParseError)>,
) -> CompiledValue {
    let _ = path;
    let shape = match value {
        Value::String(text) => match Template::parse(text, functions) {
            Ok(template) => Shape::Template(template),
            Err(problem) => {
                problems.push((path.clone(), problem));
                Shape::Literal(Value::Null)
            }
        },
        other => Shape::Literal(other.clone()),
    };
    CompiledValue { shape }
}

fn evaluate(compiled: &CompiledValue, scope: &dyn Scope) -> Result<Value, EvaluationError> {
    match &compiled.shape {
        Shape::Literal(value) => Ok(value.clone()),
        Shape::Template(template) => template.evaluate(scope),
        Shape::Array(items) => items.iter().map(|item| evaluate(item, scope)).collect(),
        Shape::Object(fields) => fields
            .iter()
            .map(|(name, value)| Ok((name.clone(), evaluate(value, scope)?)))
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object),
    }
}
