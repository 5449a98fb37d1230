//! What operators work on: literals, references, roots, variables, arrays and objects.

use super::super::Root;
use super::super::lexer::Token;
use super::super::syntax::{Expression, Step};
use super::{ParseError, Parser};
use serde_json::{Map, Value};

impl Parser<'_> {
    pub(super) fn parse_primary(&mut self) -> Result<Expression, ParseError> {
        let start = self.start;
        match self.token.clone() {
            Token::Integer(number) => {
                self.advance()?;
                if self.at(".") || self.at("[") {
                    return Ok(self.node_reference(number));
                }
                Ok(Expression::Constant(Value::from(number)))
            }
            Token::Decimal(number) => {
                self.advance()?;
                Ok(Expression::Constant(Value::from(number)))
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expression::Constant(Value::String(text)))
            }
            Token::Name(name) => {
                self.advance()?;
                self.parse_named(name, start)
            }
            Token::Dollar(name) => {
                self.advance()?;
                self.parse_root(&name, start)
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.parse_expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => self.parse_array(),
            Token::Symbol("{") => self.parse_object(),
            Token::Symbol(_) | Token::End => Err(self.unexpected("a value")),
        }
    }

    fn node_reference(&mut self, id: i64) -> Expression {
        self.references.nodes.insert(id);
        Expression::Node(id)
    }

    fn parse_named(&mut self, name: String, start: usize) -> Result<Expression, ParseError> {
        if self.at("(") {
            return self.parse_call(name, start);
        }
        for (up, parameters) in self.lambdas.iter().rev().enumerate() {
            if let Some(slot) = parameters.iter().position(|parameter| *parameter == name) {
                return Ok(Expression::Local { up, slot });
            }
        }
        Ok(match name.as_str() {
            "true" => Expression::Constant(Value::Bool(true)),
            "false" => Expression::Constant(Value::Bool(false)),
            "null" => Expression::Constant(Value::Null),
            "error" => Expression::Root(Root::Error),
            _ if self.functions.is_variable(&name) => {
                self.references.variables.insert(name.clone());
                Expression::Variable(name)
            }
            "now" | "item" | "index" | "run" | "workflow" | "vars" => {
                return Err(self
                    .lexer
                    .error(start, format!("`{name}` is written `${name}` here")));
            }
            _ => {
                let message = format!(
                    "`{name}` is not known; a text is written \"{name}\", a node's field `1.{name}`, a call `{name}(…)`"
                );
                return Err(self.lexer.error(start, message));
            }
        })
    }

    fn parse_root(&mut self, name: &str, start: usize) -> Result<Expression, ParseError> {
        Ok(match name {
            "run" => Expression::Root(Root::Run),
            "workflow" => Expression::Root(Root::Workflow),
            "item" => Expression::Root(Root::Item),
            "index" => Expression::Index,
            "now" => Expression::Now,
            "vars" => return self.parse_variable(),
            "node" => {
                self.expect("(")?;
                let Token::Integer(id) = self.token else {
                    return Err(self.unexpected("the node's number"));
                };
                self.advance()?;
                self.expect(")")?;
                return Ok(self.node_reference(id));
            }
            _ => {
                let message = format!(
                    "`${name}` is not known; there are $run, $workflow, $vars, $item, $index, $now and $node(1)"
                );
                return Err(self.lexer.error(start, message));
            }
        })
    }

    fn parse_variable(&mut self) -> Result<Expression, ParseError> {
        let name = if self.accept(".")? {
            self.parse_name_step()?
        } else if self.accept("[")? {
            self.parse_bracket_step()?
        } else {
            return Err(self.unexpected("the variable's name, as in `$vars.NAME`"));
        };
        let Step::Name(name) = name else {
            return Err(self.error_here("a variable is named by a plain text, as in `$vars.NAME`".to_owned()));
        };
        self.references.variables.insert(name.clone());
        Ok(Expression::Variable(name))
    }

    fn parse_array(&mut self) -> Result<Expression, ParseError> {
        self.advance()?;
        let mut items = Vec::new();
        while !self.at("]") {
            items.push(self.parse_expression()?);
            if !self.accept_separator()? {
                break;
            }
        }
        self.expect("]")?;
        Ok(match constants(&items) {
            Some(values) => Expression::Constant(Value::Array(values)),
            None => Expression::Array(items),
        })
    }

    fn parse_object(&mut self) -> Result<Expression, ParseError> {
        self.advance()?;
        let mut fields: Vec<(String, Expression)> = Vec::new();
        while !self.at("}") {
            let name = match self.token.clone() {
                Token::Name(name) | Token::Text(name) => name,
                Token::Integer(number) => number.to_string(),
                _ => return Err(self.unexpected("a field's name")),
            };
            self.advance()?;
            self.expect(":")?;
            fields.push((name, self.parse_expression()?));
            if !self.accept_separator()? {
                break;
            }
        }
        self.expect("}")?;
        let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        Ok(match constants(&values) {
            Some(values) => {
                Expression::Constant(Value::Object(Map::from_iter(names.into_iter().zip(values))))
            }
            None => Expression::Object(names.into_iter().zip(values).collect()),
        })
    }
}

/// The values, when all are constant: a literal array or object is then one value, never built again.
fn constants(expressions: &[Expression]) -> Option<Vec<Value>> {
    expressions
        .iter()
        .map(|expression| match expression {
            Expression::Constant(value) => Some(value.clone()),
            _ => None,
        })
        .collect()
}
