//! Rust sources as text.

use std::path::Path;

use regex::Regex;

/// A source file.
pub(crate) struct Source {
    /// Path below the folder that was read, parts separated by `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// Numbers and texts of the lines whose code holds a word.
    pub(crate) fn lines_holding(&self, word: &Regex) -> Vec<(usize, &str)> {
        let numbered = self.text.lines().enumerate();
        let holding = numbered.filter(|(_, line)| word.is_match(code(line)));
        holding.map(|(index, line)| (index + 1, line.trim())).collect()
    }
}

/// A line without its comment. A `//` inside a text, as in a URL, cuts the rest of the line off too.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// All Rust files below a folder.
pub(crate) fn rust_sources(folder: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .replace('\\', "/");
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push(Source { name, text });
            }
        }
    }
    assert!(!sources.is_empty(), "{} holds no Rust", folder.display());
    sources
}
