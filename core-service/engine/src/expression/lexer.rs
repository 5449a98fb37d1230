//! Text to tokens, one at a time: what follows an expression's `}}` is plain text and must not be read.

use super::ParseError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Integer(i64),
    Decimal(f64),
    Text(String),
    Name(String),
    /// `$name`, without the dollar.
    Dollar(String),
    Symbol(&'static str),
    End,
}

impl Token {
    /// How messages write it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Integer(number) => format!("`{number}`"),
            Self::Decimal(number) => format!("`{number}`"),
            Self::Text(_) => "a text".to_owned(),
            Self::Name(name) => format!("`{name}`"),
            Self::Dollar(name) => format!("`${name}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Longer ones first.
const SYMBOLS: [&str; 28] = [
    "==", "!=", "<=", ">=", "&&", "||", "??", "=>", "=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":",
    ",", ";", ".", "(", ")", "[", "]", "{", "}",
];

#[derive(Clone, Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// In bytes.
    offset: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str, offset: usize) -> Self {
        Self { text, offset }
    }

    /// Where the last token ended, in bytes.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// An error at a byte offset.
    pub(super) fn error(&self, offset: usize, message: impl Into<String>) -> ParseError {
        let position = self.text.get(..offset).unwrap_or(self.text).chars().count();
        ParseError {
            position,
            message: message.into(),
        }
    }

    /// The next token and the byte at which it starts.
    pub(super) fn next(&mut self) -> Result<(usize, Token), ParseError> {
        self.skip(char::is_whitespace);
        let start = self.offset;
        let Some(first) = self.rest().chars().next() else {
            return Ok((start, Token::End));
        };
        let token = match first {
            '"' | '\'' => self.text_literal(first)?,
            '0'..='9' => self.number()?,
            '$' => {
                self.offset += 1;
                Token::Dollar(self.name())
            }
            _ if is_name_start(first) => Token::Name(self.name()),
            _ => {
                let rest = self.rest();
                let symbol = SYMBOLS
                    .into_iter()
                    .find(|symbol| rest.starts_with(symbol))
                    .ok_or_else(|| self.error(start, format!("`{first}` has no meaning here")))?;
                self.offset += symbol.len();
                Token::Symbol(symbol)
            }
        };
        Ok((start, token))
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    /// Skips the characters that belong and gives them.
    fn skip(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.offset += length;
        rest.get(..length).unwrap_or_default()
    }

    fn name(&mut self) -> String {
        self.skip(is_name_part).to_owned()
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let start = self.offset;
        self.skip(|character| character.is_ascii_digit());
        let mut is_decimal = false;
        if self.rest().starts_with('.') && self.digit_at(1) {
            is_decimal = true;
            self.offset += 1;
            self.skip(|character| character.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            let sign = usize::from(
                self.rest()
                    .get(1..)
                    .is_some_and(|rest| rest.starts_with(['+', '-'])),
            );
            if self.digit_at(1 + sign) {
                is_decimal = true;
                self.offset += 1 + sign;
                self.skip(|character| character.is_ascii_digit());
            }
        }
        let digits = self.text.get(start..self.offset).unwrap_or_default();
        if self.rest().starts_with(is_name_part) {
            return Err(self.error(
                start,
                format!("a name cannot start with a digit, as `{digits}…` does"),
            ));
        }
        let token = if is_decimal {
            digits
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(Token::Decimal)
        } else {
            digits.parse().ok().map(Token::Integer)
        };
        token.ok_or_else(|| self.error(start, format!("the number {digits} is too large")))
    }

    fn digit_at(&self, index: usize) -> bool {
        self.rest().as_bytes().get(index).is_some_and(u8::is_ascii_digit)
    }

    fn text_literal(&mut self, quote: char) -> Result<Token, ParseError> {
        let start = self.offset;
        let mut content = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            if character == quote {
                self.offset += index + 1;
                return Ok(Token::Text(content));
            }
            if character != '\\' {
                content.push(character);
                continue;
            }
            // An unknown escape keeps its backslash, so that "\d+" needs no doubling.
            match characters.next() {
                Some((_, 'n')) => content.push('\n'),
                Some((_, 'r')) => content.push('\r'),
                Some((_, 't')) => content.push('\t'),
                Some((_, escaped @ ('\\' | '"' | '\''))) => content.push(escaped),
                Some((_, other)) => content.extend(['\\', other]),
                None => break,
            }
        }
        Err(self.error(start, format!("the text that starts here has no closing {quote}")))
    }
}

fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}
