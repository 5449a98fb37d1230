//! Tokens to the tree: operators by rank and paths. What they work on is in [`primary`], calls and lambdas are in
//! [`calls`].
//!
//! Whatever can be known without data is refused here: unknown names, functions and roots, wrong numbers of
//! arguments, malformed regular expressions, nesting deeper than [`MAX_DEPTH`].

mod calls;
mod primary;

use super::lexer::{Lexer, Token};
use super::limits::MAX_DEPTH;
use super::syntax::{Conditional, Expression, Operator, Step};
use super::{CustomFunctions, ParseError, numbers};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a template reads besides its functions' arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    pub(super) nodes: BTreeSet<i64>,
    pub(super) variables: BTreeSet<String>,
    /// The fields of variables that are named in plain text, each after its variable.
    pub(super) variable_fields: BTreeSet<(String, String)>,
    pub(super) custom_functions: BTreeSet<String>,
}

/// Reads one expression that starts at a byte offset of a text.
pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token,
    /// Where `token` starts, in bytes.
    start: usize,
    depth: usize,
    functions: &'t dyn CustomFunctions,
    references: &'t mut References,
    /// The parameters of the lambdas around, outermost first.
    lambdas: Vec<Vec<String>>,
}

/// The ranks of binary operators, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Coalesce,
    Or,
    And,
    Equality,
    Relation,
    Sum,
    Product,
}

#[derive(Clone, Copy)]
enum Binary {
    Coalesce,
    Or,
    And,
    Operator(Operator),
}

impl<'t> Parser<'t> {
    pub(super) fn new(
        text: &'t str,
        offset: usize,
        functions: &'t dyn CustomFunctions,
        references: &'t mut References,
    ) -> Result<Self, ParseError> {
        let mut lexer = Lexer::new(text, offset);
        let (start, token) = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            start,
            depth: 0,
            functions,
            references,
            lambdas: Vec::new(),
        })
    }

    /// The expression up to its `}}`, and the byte after that.
    pub(super) fn parse_braced(mut self) -> Result<(Expression, usize), ParseError> {
        if self.at("}") {
            return Err(self.unexpected("an expression"));
        }
        let expression = self.parse_whole()?;
        // The second brace is not read as a token: what follows it is plain text.
        let end = self.lexer.offset();
        if !self.at("}")
            || !self
                .lexer
                .clone()
                .next()
                .is_ok_and(|next| next == (end, Token::Symbol("}")))
        {
            return Err(self.unexpected("`}}`"));
        }
        Ok((expression, end + 1))
    }

    /// The expression up to the end of the text.
    pub(super) fn parse_bare(mut self) -> Result<Expression, ParseError> {
        let expression = self.parse_whole()?;
        if self.token != Token::End {
            return Err(self.unexpected("the end"));
        }
        Ok(match expression {
            Expression::Constant(Value::Number(number)) if number.is_i64() => {
                let id = number.as_i64().unwrap_or_default();
                self.references.nodes.insert(id);
                Expression::Node(id)
            }
            other => other,
        })
    }

    fn parse_whole(&mut self) -> Result<Expression, ParseError> {
        let start = self.start;
        let expression = self.parse_expression()?;
        if expression.height() > MAX_DEPTH {
            return Err(self.lexer.error(start, too_deep()));
        }
        Ok(expression)
    }

    fn parse_expression(&mut self) -> Result<Expression, ParseError> {
        self.nested(|parser| {
            let condition = parser.parse_binary(Rank::Coalesce)?;
            if !parser.accept("?")? {
                return Ok(condition);
            }
            let then = parser.parse_expression()?;
            parser.expect(":")?;
            let otherwise = parser.parse_expression()?;
            Ok(Expression::Conditional(Box::new(Conditional {
                condition,
                then,
                otherwise,
            })))
        })
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error_here(too_deep()));
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Operators of this rank and tighter ones.
    fn parse_binary(&mut self, loosest: Rank) -> Result<Expression, ParseError> {
        let left_start = self.start;
        let mut left = self.parse_unary()?;
        while let Some((rank, first)) = self.binary_operator().filter(|(rank, _)| *rank >= loosest) {
            let mut rest = Vec::new();
            let mut next = Some(first);
            while let Some(operator) = next {
                self.advance()?;
                let start = self.start;
                rest.push((operator, start, self.parse_tighter(rank)?));
                next = self
                    .binary_operator()
                    .filter(|(other, _)| *other == rank)
                    .map(|(_, binary)| binary);
            }
            left = self.combine(rank, (left_start, left), rest)?;
        }
        Ok(left)
    }

    fn parse_tighter(&mut self, rank: Rank) -> Result<Expression, ParseError> {
        match rank {
            Rank::Coalesce => self.parse_binary(Rank::Or),
            Rank::Or => self.parse_binary(Rank::And),
            Rank::And => self.parse_binary(Rank::Equality),
            Rank::Equality => self.parse_binary(Rank::Relation),
            Rank::Relation => self.parse_binary(Rank::Sum),
            Rank::Sum => self.parse_binary(Rank::Product),
            Rank::Product => self.parse_unary(),
        }
    }

    fn combine(
        &self,
        rank: Rank,
        first: (usize, Expression),
        rest: Vec<(Binary, usize, Expression)>,
    ) -> Result<Expression, ParseError> {
        if matches!(rank, Rank::Or | Rank::And) {
            self.refuse_defaults(first.0, &first.1)?;
            for (_, start, operand) in &rest {
                self.refuse_defaults(*start, operand)?;
            }
        }
        let all = |first: Expression, rest: Vec<(Binary, usize, Expression)>| {
            std::iter::once(first)
                .chain(rest.into_iter().map(|(_, _, operand)| operand))
                .collect()
        };
        Ok(match rank {
            Rank::Coalesce => Expression::Coalesce(all(first.1, rest)),
            Rank::Or => Expression::Or(all(first.1, rest)),
            Rank::And => Expression::And(all(first.1, rest)),
            _ => Expression::Chain {
                first: Box::new(first.1),
                rest: rest
                    .into_iter()
                    .filter_map(|(binary, _, operand)| match binary {
                        Binary::Operator(operator) => Some((operator, operand)),
                        Binary::Coalesce | Binary::Or | Binary::And => None,
                    })
                    .collect(),
            },
        })
    }

    /// `1.name || "someone"` gives true here, which nobody who writes it means.
    fn refuse_defaults(&self, start: usize, operand: &Expression) -> Result<(), ParseError> {
        let is_plain_value = match operand {
            Expression::Constant(value) => !value.is_boolean() && !value.is_null(),
            Expression::Array(_) | Expression::Object(_) => true,
            _ => false,
        };
        if is_plain_value {
            let message = "`&&` and `||` give true or false; for a default write `??`, for a choice `if`";
            return Err(self.lexer.error(start, message));
        }
        Ok(())
    }

    fn binary_operator(&self) -> Option<(Rank, Binary)> {
        let text = match &self.token {
            Token::Symbol(symbol) => symbol,
            Token::Name(name) => name.as_str(),
            _ => return None,
        };
        let operator = |rank, operator| Some((rank, Binary::Operator(operator)));
        match text {
            "??" => Some((Rank::Coalesce, Binary::Coalesce)),
            "||" | "or" => Some((Rank::Or, Binary::Or)),
            "&&" | "and" => Some((Rank::And, Binary::And)),
            "=" | "==" => operator(Rank::Equality, Operator::Equal),
            "!=" => operator(Rank::Equality, Operator::NotEqual),
            "<" => operator(Rank::Relation, Operator::Less),
            "<=" => operator(Rank::Relation, Operator::LessOrEqual),
            ">" => operator(Rank::Relation, Operator::Greater),
            ">=" => operator(Rank::Relation, Operator::GreaterOrEqual),
            "in" => operator(Rank::Relation, Operator::In),
            "+" => operator(Rank::Sum, Operator::Add),
            "-" => operator(Rank::Sum, Operator::Subtract),
            "*" => operator(Rank::Product, Operator::Multiply),
            "/" => operator(Rank::Product, Operator::Divide),
            "%" => operator(Rank::Product, Operator::Remainder),
            _ => None,
        }
    }

    fn parse_unary(&mut self) -> Result<Expression, ParseError> {
        if self.accept("!")? {
            let operand = self.nested(Self::parse_unary)?;
            return Ok(Expression::Not(Box::new(operand)));
        }
        if self.accept("-")? {
            let operand = self.nested(Self::parse_unary)?;
            return Ok(match operand {
                Expression::Constant(Value::Number(number)) => {
                    Expression::Constant(numbers::negated(&number))
                }
                operand => Expression::Negate(Box::new(operand)),
            });
        }
        if self.token == Token::Name("not".to_owned()) {
            // Looser than a comparison: `not a == b` is `not (a == b)`.
            self.advance()?;
            let operand = self.nested(|parser| parser.parse_binary(Rank::Equality))?;
            return Ok(Expression::Not(Box::new(operand)));
        }
        self.parse_path()
    }

    fn parse_path(&mut self) -> Result<Expression, ParseError> {
        let start = self.start;
        let base = self.parse_primary()?;
        let mut steps = Vec::new();
        loop {
            let step_start = self.start;
            if self.accept(".")? {
                steps.push(self.parse_name_step()?);
            } else if self.accept("[")? {
                steps.push(self.parse_bracket_step()?);
            } else {
                break;
            }
            if matches!(base, Expression::Constant(Value::Number(_))) {
                let message = "a path starts with the whole number of a node, such as `1.name`";
                return Err(self.lexer.error(step_start, message));
            }
        }
        if let Expression::Constant(Value::String(_)) | Expression::Lambda(_) = base
            && !steps.is_empty()
        {
            return Err(self.lexer.error(start, "a text has no fields to step into"));
        }
        if let (Expression::Variable(variable), Some(Step::Name(field))) = (&base, steps.first()) {
            let named = (variable.clone(), field.clone());
            self.references.variable_fields.insert(named);
        }
        Ok(if steps.is_empty() {
            base
        } else {
            Expression::Access {
                base: Box::new(base),
                steps,
            }
        })
    }

    fn parse_name_step(&mut self) -> Result<Step, ParseError> {
        let name = match &self.token {
            Token::Name(name) => name.clone(),
            Token::Dollar(name) => format!("${name}"),
            _ => {
                return Err(self.unexpected("a name (an element is written `[0]`, other keys `[\"a key\"]`)"));
            }
        };
        self.advance()?;
        Ok(Step::Name(name))
    }

    fn parse_bracket_step(&mut self) -> Result<Step, ParseError> {
        if self.accept("]")? {
            return Ok(Step::Each);
        }
        let key = self.parse_expression()?;
        self.expect("]")?;
        Ok(match key {
            Expression::Constant(Value::String(name)) => Step::Name(name),
            Expression::Constant(Value::Number(number)) if number.is_i64() => {
                Step::Index(number.as_i64().unwrap_or_default())
            }
            key => Step::Dynamic(key),
        })
    }

    fn at(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(current) if current == symbol)
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.start, self.token) = self.lexer.next()?;
        Ok(())
    }

    fn accept(&mut self, symbol: &str) -> Result<bool, ParseError> {
        let found = self.at(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn accept_separator(&mut self) -> Result<bool, ParseError> {
        Ok(self.accept(",")? || self.accept(";")?)
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), ParseError> {
        if self.accept(symbol)? {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        self.error_here(format!("{wanted} is wanted here, not {}", self.token.describe()))
    }

    fn error_here(&self, message: String) -> ParseError {
        self.lexer.error(self.start, message)
    }
}

fn too_deep() -> String {
    format!("the expression is nested deeper than {MAX_DEPTH} levels")
}
