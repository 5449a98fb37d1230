//! The check of a node's parameters against the shape in its kind's specification: one rule for all kinds.

use std::fmt;

use serde_json::{Map, Value};

use crate::expression::{CompiledValue, CustomFunctions, Template};
use crate::filter::CompiledFilter;
use crate::kind::NodeSpec;

/// How finished parameters have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// What is there is right; things may be missing.
    Draft,
    /// Nothing required is missing.
    Complete,
}

/// One thing wrong with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamProblem {
    /// The place inside the parameters, such as `fields.total`.
    pub path: String,
    /// One sentence.
    pub message: String,
}

impl ParamProblem {
    /// A problem at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ParamProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{} {}", self.path, self.message)
        }
    }
}

/// One parameter of a kind.
#[derive(Clone, Debug)]
pub struct FieldSpec {
    /// Its name in `params`.
    pub name: String,
    /// What it takes.
    pub field_type: FieldType,
    /// Whether the node cannot run without it.
    pub required: bool,
    /// What the parameter names by its id. A literal one must exist when the graph is deployed.
    pub refers_to: Option<Resource>,
    /// What it means.
    pub description: String,
}

impl FieldSpec {
    /// A parameter the node cannot run without.
    pub fn required(name: &str, field_type: FieldType, description: &str) -> Self {
        Self {
            name: name.into(),
            field_type,
            required: true,
            refers_to: None,
            description: description.into(),
        }
    }

    /// A parameter that may be absent.
    pub fn optional(name: &str, field_type: FieldType, description: &str) -> Self {
        Self {
            required: false,
            ..Self::required(name, field_type, description)
        }
    }

    /// Holds the id of one of these.
    #[must_use]
    pub fn naming(mut self, resource: Resource) -> Self {
        self.refers_to = Some(resource);
        self
    }
}

/// What parameters name that lives outside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// A database.
    Database,
    /// A structure.
    Structure,
    /// A workflow.
    Workflow,
}

impl Resource {
    /// The noun of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Structure => "structure",
            Self::Workflow => "workflow",
        }
    }
}

/// What a parameter takes. A string with a template in it stands for any type but code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// Anything.
    Any,
    /// One of these words.
    Choice(Vec<String>),
    /// Text that is never read as a template.
    Code,
    /// A filter as edges have.
    Filter,
    /// A JSON value whose templates are evaluated once for each item.
    ItemTemplate,
}

impl FieldType {
    /// One of these words.
    pub fn choice(words: &[&str]) -> Self {
        Self::Choice(words.iter().map(|word| String::from(*word)).collect())
    }

    /// The word of the contract for the type.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::String | Self::Choice(_) => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Any | Self::ItemTemplate => "any",
            Self::Code => "code",
            Self::Filter => "filter",
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::String | Self::Code => value.is_string(),
            Self::Choice(words) => value
                .as_str()
                .is_some_and(|word| words.iter().any(|choice| choice == word)),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Any | Self::Filter | Self::ItemTemplate => true,
        }
    }

    fn expectation(&self) -> String {
        match self {
            Self::Choice(words) => format!("must be one of {}", words.join(", ")),
            Self::Integer | Self::Object | Self::Array => {
                format!("must be an {} or a template", self.as_str())
            }
            Self::Code => String::from("must be a string"),
            other => format!("must be a {} or a template", other.as_str()),
        }
    }
}

/// Everything wrong with parameters as far as the shape can tell. A null counts as absent.
pub fn check(
    spec: &NodeSpec,
    params: &Map<String, Value>,
    functions: &dyn CustomFunctions,
    completeness: Completeness,
) -> Vec<ParamProblem> {
    let mut problems = Vec::new();
    for (name, value) in params {
        match spec.shape.iter().find(|field| field.name == *name) {
            None => problems.push(unknown_field(spec, name)),
            Some(_) if value.is_null() => {}
            Some(field) => check_field(field, value, functions, &mut problems),
        }
    }
    if completeness == Completeness::Complete {
        let missing =
            |field: &&FieldSpec| field.required && params.get(&field.name).is_none_or(Value::is_null);
        for field in spec.shape.iter().filter(missing) {
            problems.push(ParamProblem::new(&field.name, "is required"));
        }
    }
    problems
}

fn unknown_field(spec: &NodeSpec, name: &str) -> ParamProblem {
    let known: Vec<_> = spec.shape.iter().map(|field| field.name.as_str()).collect();
    let message = match known.is_empty() {
        true => format!("{} takes no parameters", spec.kind),
        false => format!("{} has no such parameter; it has {}", spec.kind, known.join(", ")),
    };
    ParamProblem::new(name, message)
}

fn check_field(
    field: &FieldSpec,
    value: &Value,
    functions: &dyn CustomFunctions,
    problems: &mut Vec<ParamProblem>,
) {
    match &field.field_type {
        FieldType::Code => {}
        FieldType::Filter => {
            let found = CompiledFilter::compile(value, functions)
                .err()
                .unwrap_or_default();
            problems.extend(found.into_iter().map(|problem| problem.under(&field.name)));
            return;
        }
        _ => {
            let found = template_problems(value, functions);
            let templated = found.is_empty() && is_template(value, functions);
            problems.extend(found.into_iter().map(|problem| problem.under(&field.name)));
            if templated {
                return;
            }
        }
    }
    if !field.field_type.accepts(value) {
        problems.push(ParamProblem::new(&field.name, field.field_type.expectation()));
    }
}

/// Every template in the value that does not parse.
pub fn template_problems(value: &Value, functions: &dyn CustomFunctions) -> Vec<ParamProblem> {
    let found = CompiledValue::compile(value, functions).err().unwrap_or_default();
    found
        .into_iter()
        .map(|(path, error)| ParamProblem::new(path, error.to_string()))
        .collect()
}

fn is_template(value: &Value, functions: &dyn CustomFunctions) -> bool {
    let Value::String(text) = value else { return false };
    Template::parse(text, functions).is_ok_and(|template| !template.is_literal())
}

impl ParamProblem {
    /// The problem as seen from around the value it was found in.
    #[must_use]
    pub fn under(self, outer: &str) -> Self {
        let path = match self.path.as_str() {
            "" => outer.to_owned(),
            path if path.starts_with('[') => format!("{outer}{path}"),
            path => format!("{outer}.{path}"),
        };
        Self {
            path,
            message: self.message,
        }
    }
}
