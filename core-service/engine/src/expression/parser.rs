//! Tokens to the tree: operators by rank, paths, literals. Calls and lambdas are in [`calls`].
//!
//! Whatever can be known without data is refused here: unknown names, functions and roots, wrong numbers of
//! arguments, malformed regular expressions, nesting deeper than [`MAX_DEPTH`].

mod calls;

use super::lexer::{Lexer, Token};
use super::limits::MAX_DEPTH;
use super::syntax::{Conditional, Expression, Operator, Step};
use super::{CustomFunctions, ParseError, Root, numbers};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What a template reads besides its functions' arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    pub(super) nodes: BTreeSet<i64>,
    pub(super) variables: BTreeSet<String>,
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

    fn parse_primary(&mut self) -> Result<Expression, ParseError> {
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
