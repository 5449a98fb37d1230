//! One string of parameters, compiled.

use super::evaluator::{Context, Environment};
use super::gather::Gather;
use super::limits::{self, Budget, MAX_CHARACTERS};
use super::parser::{Parser, References};
use super::patterns::Pattern;
use super::syntax::Expression;
use super::{CustomFunctions, EvaluationError, ParseError, Scope, values};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::RefCell;

/// One string: a literal, a single `{{ … }}` (which gives a JSON value) or text mixed with some.
#[derive(Clone, Debug)]
pub struct Template {
    content: Content,
    references: References,
}

#[derive(Clone, Debug)]
enum Content {
    Literal(String),
    Single(Expression),
    Mixed(Vec<Piece>),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Expression(Expression),
}

/// What the templates evaluated together share: the scope and one budget.
pub(super) struct Evaluation<'s> {
    scope: &'s dyn Scope,
    budget: Budget,
    patterns: RefCell<Vec<Pattern>>,
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(scope: &'s dyn Scope) -> Self {
        Self {
            scope,
            budget: Budget::new(),
            patterns: RefCell::new(Vec::new()),
        }
    }
}

impl Template {
    /// Compiles a string of parameters, filters or config.
    pub fn parse(text: &str, functions: &dyn CustomFunctions) -> Result<Self, ParseError> {
        let mut references = References::default();
        if !text.contains("{{") {
            return Ok(Self {
                content: Content::Literal(text.to_owned()),
                references,
            });
        }
        check_length(text)?;
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut offset = 0;
        while let Some(rest) = text.get(offset..).filter(|rest| !rest.is_empty()) {
            let Some(brace) = rest.find("{{") else {
                plain.push_str(rest);
                break;
            };
            let before = rest.get(..brace).unwrap_or_default();
            if let Some(before) = before.strip_suffix('\\') {
                plain.push_str(before);
                plain.push_str("{{");
                offset += brace + 2;
                continue;
            }
            plain.push_str(before);
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            let (expression, end) =
                Parser::new(text, offset + brace + 2, functions, &mut references)?.parse_braced()?;
            pieces.push(Piece::Expression(expression));
            offset = end;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self {
            content: Content::from(pieces),
            references,
        })
    }

    /// Compiles the bare form that resolve-expression takes (`1`, `1.body`), or a `{{ … }}` template.
    pub fn parse_reference(text: &str, functions: &dyn CustomFunctions) -> Result<Self, ParseError> {
        if text.contains("{{") {
            return Self::parse(text, functions);
        }
        check_length(text)?;
        let mut references = References::default();
        let expression = Parser::new(text, 0, functions, &mut references)?.parse_bare()?;
        Ok(Self {
            content: Content::Single(expression),
            references,
        })
    }

    /// Whether the string holds no expression, so that its value is always the same.
    pub fn is_literal(&self) -> bool {
        self.as_literal().is_some()
    }

    /// The text, when it holds no expression.
    pub fn as_literal(&self) -> Option<&str> {
        match &self.content {
            Content::Literal(text) => Some(text),
            Content::Single(_) | Content::Mixed(_) => None,
        }
    }

    /// The ids of the nodes it reads, ascending, each once.
    pub fn node_references(&self) -> impl Iterator<Item = i64> {
        self.references.nodes.iter().copied()
    }

    /// The names of the `$vars` it reads, in alphabetical order, each once.
    pub fn variable_references(&self) -> impl Iterator<Item = &str> {
        self.references.variables.iter().map(String::as_str)
    }

    /// The variables' fields that it names in plain text, in alphabetical order, each once.
    pub fn variable_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.references.variable_fields.iter();
        fields.map(|(variable, field)| (variable.as_str(), field.as_str()))
    }

    /// The names of the custom functions it calls, in alphabetical order, each once.
    pub fn custom_functions(&self) -> impl Iterator<Item = &str> {
        self.references.custom_functions.iter().map(String::as_str)
    }

    /// The value: any JSON value of a single expression, else text.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        self.evaluate_in(&Evaluation::new(scope)).map(|(value, _)| value)
    }

    /// The value and its size in bytes.
    pub(super) fn evaluate_in(&self, evaluation: &Evaluation<'_>) -> Result<(Value, usize), EvaluationError> {
        let context = Context {
            scope: evaluation.scope,
            budget: &evaluation.budget,
            patterns: &evaluation.patterns,
        };
        let environment = Environment {
            context: &context,
            frame: None,
        };
        match &self.content {
            Content::Literal(text) => Ok((Value::String(text.clone()), text.len())),
            Content::Single(expression) => {
                let value = environment.evaluate(expression)?;
                let size = limits::check_result(&value)?;
                Ok((value.into_owned(), size))
            }
            Content::Mixed(pieces) => {
                let mut text = String::new();
                let mut gather = Gather::default();
                for piece in pieces {
                    let value;
                    let part = match piece {
                        Piece::Text(text) => Cow::Borrowed(text.as_str()),
                        Piece::Expression(expression) => {
                            let Some(found) = gather.pass(environment.evaluate(expression))? else {
                                continue;
                            };
                            value = found;
                            values::text(&value, environment.budget())?
                        }
                    };
                    environment.budget().spend_growth(text.len(), part.len())?;
                    text.push_str(&part);
                }
                gather.end()?;
                let size = text.len();
                Ok((Value::String(text), size))
            }
        }
    }
}

impl From<Vec<Piece>> for Content {
    fn from(mut pieces: Vec<Piece>) -> Self {
        if pieces.len() > 1 {
            return Self::Mixed(pieces);
        }
        match pieces.pop() {
            Some(Piece::Expression(expression)) => Self::Single(expression),
            Some(Piece::Text(text)) => Self::Literal(text),
            None => Self::Literal(String::new()),
        }
    }
}

/// Only what holds expressions is limited; plain text may be as long as a request.
fn check_length(text: &str) -> Result<(), ParseError> {
    if text.len() > MAX_CHARACTERS && text.chars().count() > MAX_CHARACTERS {
        let message = format!(
            "a template may have {MAX_CHARACTERS} characters; put long text into a variable or a node"
        );
        return Err(ParseError {
            position: MAX_CHARACTERS,
            message,
        });
    }
    Ok(())
}
