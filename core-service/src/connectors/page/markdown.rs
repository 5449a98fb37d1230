//! Markdown whose texts come from elsewhere: what they hold stays text.

use std::fmt;

use url::Url;

/// What begins a heading, a list, a quotation or a rule when it begins a block.
const BEGINNINGS: [char; 5] = ['#', '-', '+', '=', '~'];

/// A text in one line, in which nothing means anything.
pub(super) fn text(given: &str) -> String {
    let line = given.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::with_capacity(line.len());
    let mut before = None;
    let mut letters = line.chars().peekable();
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let ends_number =
        (number.len() < line.len() && number.starts_with(['.', ')'])).then(|| line.len() - number.len());
    let mut place = 0;
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied();
        let is_special = match letter {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' => true,
            '_' => !(is_word(before) && is_word(after)),
            '&' => after.is_some_and(|after| after.is_ascii_alphanumeric() || after == '#'),
            letter if before.is_none() => BEGINNINGS.contains(&letter),
            _ => ends_number == Some(place),
        };
        if is_special {
            escaped.push('\\');
        }
        escaped.push(letter);
        before = Some(letter);
        place += letter.len_utf8();
    }
    escaped
}

fn is_word(letter: Option<char>) -> bool {
    letter.is_some_and(char::is_alphanumeric)
}

/// Something to be read to the letter.
pub(super) fn code(given: &str) -> String {
    let line = given.split(['\r', '\n']).collect::<Vec<_>>().join(" ");
    let is_plain = !line.contains(['`', '|']) && !line.trim().is_empty();
    match is_plain {
        true => format!("`{line}`"),
        // Neither a backtick within backticks nor a pipe within a table can be written otherwise.
        false => format!("<code>{}</code>", line.chars().map(by_number).collect::<String>()),
    }
}

fn by_number(letter: char) -> String {
    match letter.is_ascii_punctuation() {
        true => format!("&#{};", u32::from(letter)),
        false => letter.to_string(),
    }
}

/// Several such things, with commas between.
pub(super) fn codes<'a>(given: impl IntoIterator<Item = &'a str>) -> String {
    given.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// A link to a page of the web; what is none stays text.
pub(super) fn link(given: &str) -> String {
    match Url::parse(given) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            format!("<{}>", url.as_str().replace('|', "%7C"))
        }
        _ => text(given),
    }
}

/// JSON in a block of its own.
pub(super) fn json(value: &serde_json::Value) -> String {
    format!("```json\n{value:#}\n```")
}

/// A table, row by row. Its cells are Markdown.
pub(super) struct Table(Vec<String>);

impl Table {
    pub(super) fn new(columns: &[&str]) -> Self {
        let mut table = Self(Vec::new());
        table.row(columns.iter().map(|&column| column.to_owned()));
        table.0.push(format!("|{}", "---|".repeat(columns.len())));
        table
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.0.push(format!("| {} |", cells.join(" | ")));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\n"))
    }
}
