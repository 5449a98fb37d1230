//! Calls: which function, how many arguments, and the lambdas among them.

use super::super::functions::{self, Function, Parameter};
use super::super::lexer::Token;
use super::super::patterns;
use super::super::syntax::{Call, Expression};
use super::{ParseError, Parser};
use serde_json::Value;

impl Parser<'_> {
    /// The call of a function whose name was read; the current token is its `(`.
    pub(super) fn parse_call(&mut self, name: String, start: usize) -> Result<Expression, ParseError> {
        let function = functions::find(&name);
        self.advance()?;
        let mut arguments = Vec::new();
        while !self.at(")") {
            arguments.push(self.parse_argument(function, arguments.len())?);
            if !self.accept_separator()? {
                break;
            }
        }
        self.expect(")")?;
        match function {
            Some(function) => self.built_in(function, arguments, start),
            None => self.custom(name, arguments, start),
        }
    }

    fn built_in(
        &self,
        function: &'static Function,
        arguments: Vec<Expression>,
        start: usize,
    ) -> Result<Expression, ParseError> {
        let (least, most) = function.argument_count();
        self.check_count(function.name, arguments.len(), least, most, start)?;
        check_pattern(function, &arguments).map_err(|message| self.lexer.error(start, message))?;
        Ok(Expression::Call(Box::new(Call { function, arguments })))
    }

    fn custom(
        &mut self,
        name: String,
        arguments: Vec<Expression>,
        start: usize,
    ) -> Result<Expression, ParseError> {
        let Some((least, most)) = self.functions.parameter_count(&name) else {
            let hint = functions::similar(&name)
                .map_or_else(String::new, |other| format!("; did you mean `{other}`?"));
            return Err(self
                .lexer
                .error(start, format!("there is no function `{name}`{hint}")));
        };
        self.check_count(&name, arguments.len(), least, most, start)?;
        self.references.custom_functions.insert(name.clone());
        Ok(Expression::CustomCall { name, arguments })
    }

    fn check_count(
        &self,
        name: &str,
        count: usize,
        least: usize,
        most: usize,
        start: usize,
    ) -> Result<(), ParseError> {
        if (least..=most).contains(&count) {
            return Ok(());
        }
        let wanted = match (least, most) {
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        let noun = if wanted == "1" || wanted == "at least 1" {
            "argument"
        } else {
            "arguments"
        };
        Err(self
            .lexer
            .error(start, format!("`{name}` takes {wanted} {noun}, not {count}")))
    }

    fn parse_argument(
        &mut self,
        function: Option<&'static Function>,
        index: usize,
    ) -> Result<Expression, ParseError> {
        let parameter = function.map(|function| function.parameter(index));
        let start = self.start;
        let Some(names) = self.lambda_parameters() else {
            if matches!(parameter, Some(Parameter::Lambda { .. })) {
                return Err(self.unexpected("a lambda such as `x => x.name`"));
            }
            return self.parse_expression();
        };
        let (least, most) = match parameter {
            Some(Parameter::Lambda { names } | Parameter::LambdaOrKey { names }) => names,
            Some(Parameter::Value) | None => {
                return Err(self.lexer.error(start, "a lambda (`x => …`) is not taken here"));
            }
        };
        if !(least..=most).contains(&names.len()) {
            let message = format!(
                "the lambda takes {least} to {most} parameters here, not {}",
                names.len()
            );
            return Err(self.lexer.error(start, message));
        }
        self.lambdas.push(names);
        let body = self.parse_lambda_body();
        self.lambdas.pop();
        Ok(Expression::Lambda(Box::new(body?)))
    }

    /// Skips `x =>` or `(a, b) =>`, whose names `lambda_parameters` has read ahead.
    fn parse_lambda_body(&mut self) -> Result<Expression, ParseError> {
        while !self.at("=>") {
            self.advance()?;
        }
        self.advance()?;
        self.parse_expression()
    }

    /// The parameters of the lambda that starts here, if one does. Reads ahead, consumes nothing.
    fn lambda_parameters(&self) -> Option<Vec<String>> {
        let mut ahead = self.lexer.clone();
        let mut next = || ahead.next().ok().map(|(_, token)| token);
        let mut names = Vec::new();
        match &self.token {
            Token::Name(name) => names.push(name.clone()),
            Token::Symbol("(") => loop {
                match next()? {
                    Token::Name(name) => names.push(name),
                    _ => return None,
                }
                match next()? {
                    Token::Symbol("," | ";") => {}
                    Token::Symbol(")") => break,
                    _ => return None,
                }
            },
            _ => return None,
        }
        (next()? == Token::Symbol("=>")).then_some(names)
    }
}

/// Checks the regular expression of a call, when it is a literal with literal flags.
fn check_pattern(function: &Function, arguments: &[Expression]) -> Result<(), String> {
    let argument = |parameter: &str| {
        function
            .parameter_named(parameter)
            .and_then(|index| arguments.get(index))
    };
    match (argument("pattern"), argument("[flags]")) {
        (Some(Expression::Constant(Value::String(pattern))), None) => patterns::check(pattern, ""),
        (
            Some(Expression::Constant(Value::String(pattern))),
            Some(Expression::Constant(Value::String(flags))),
        ) => patterns::check(pattern, flags),
        _ => Ok(()),
    }
}
