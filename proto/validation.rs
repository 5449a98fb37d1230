//! The checks behind `buf.validate` rules. `build.rs` writes which field has which; a violation says where and what.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::Hash;
use std::sync::OnceLock;

use regex::Regex;

use crate::json::Words;

/// A message that knows its rules.
pub trait Validate {
    /// Checks every rule and tells the checker what is broken.
    fn check(&self, checker: &mut Checker);

    /// All broken rules, empty when there are none.
    fn violations(&self) -> Vec<Violation> {
        let mut checker = Checker::default();
        self.check(&mut checker);
        checker.violations
    }
}

/// A rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field in JSON names, such as `ops[2].nodeId`; empty for the request as a whole.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// Collects what is broken and knows where it looks.
#[derive(Debug, Default)]
pub struct Checker {
    path: Vec<Segment>,
    violations: Vec<Violation>,
}

#[derive(Debug)]
enum Segment {
    Field(&'static str),
    Item(usize),
}

impl Checker {
    /// Looks at a field; an empty name stands for the place that is looked at already.
    pub fn field(&mut self, name: &'static str, look: impl FnOnce(&mut Self)) {
        self.path.push(Segment::Field(name));
        look(self);
        self.path.pop();
    }

    /// Looks at an item of a list.
    pub fn item(&mut self, index: usize, look: impl FnOnce(&mut Self)) {
        self.path.push(Segment::Item(index));
        look(self);
        self.path.pop();
    }

    /// Tells that the place looked at breaks a rule.
    pub fn refuse(&mut self, message: String) {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field("") => {}
                Segment::Field(name) if path.is_empty() => path.push_str(name),
                Segment::Field(name) => _ = write!(path, ".{name}"),
                Segment::Item(index) => _ = write!(path, "[{index}]"),
            }
        }
        self.violations.push(Violation { path, message });
    }

    fn demand(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.refuse(message());
        }
    }

    pub(crate) fn no_nul(&mut self, text: &str) {
        self.demand(!text.contains('\0'), || {
            "must not contain the NUL character".to_owned()
        });
    }

    pub(crate) fn min_len(&mut self, text: &str, least: usize) {
        self.demand(
            text.chars().nth(least.saturating_sub(1)).is_some() || least == 0,
            || match least {
                1 => "must not be empty".to_owned(),
                least => format!("must have at least {least} characters"),
            },
        );
    }

    pub(crate) fn max_len(&mut self, text: &str, most: usize) {
        let fits = text.len() <= most || text.chars().count() <= most;
        self.demand(fits, || format!("must have at most {most} characters"));
    }

    pub(crate) fn max_bytes(&mut self, text: &str, most: usize) {
        self.demand(text.len() <= most, || {
            format!("must be at most {most} bytes long")
        });
    }

    pub(crate) fn pattern(&mut self, text: &str, pattern: &Pattern) {
        self.demand(pattern.matches(text), || format!("must match {}", pattern.text));
    }

    pub(crate) fn email(&mut self, text: &str) {
        self.demand(is_email(text), || "must be an email address".to_owned());
    }

    pub(crate) fn at_least(&mut self, number: impl Into<i64>, least: i64) {
        self.demand(number.into() >= least, || format!("must be {least} or more"));
    }

    pub(crate) fn at_most(&mut self, number: impl Into<i64>, most: i64) {
        self.demand(number.into() <= most, || format!("must be {most} or less"));
    }

    /// JSON has no other numbers: one of gRPC would be stored as what cannot be read again.
    pub(crate) fn finite(&mut self, number: f64) {
        self.demand(number.is_finite(), || "must be a finite number".to_owned());
    }

    pub(crate) fn defined<T: Words>(&mut self, number: i32) {
        let known = number == 0 || T::to_word(number).is_some();
        self.demand(known, || format!("must be one of {}", T::choices()));
    }

    pub(crate) fn specified(&mut self, number: i32) {
        self.demand(number != 0, || "must be given".to_owned());
    }

    pub(crate) fn constant(&mut self, value: bool, wanted: bool) {
        self.demand(value == wanted, || format!("must be {wanted}"));
    }

    pub(crate) fn min_items(&mut self, count: usize, least: usize) {
        self.demand(count >= least, || format!("must have at least {least} item(s)"));
    }

    pub(crate) fn max_items(&mut self, count: usize, most: usize) {
        self.demand(count <= most, || format!("must have at most {most} items"));
    }

    pub(crate) fn unique<T: Hash + Eq>(&mut self, items: &[T]) {
        let mut seen = HashSet::new();
        self.demand(items.iter().all(|item| seen.insert(item)), || {
            "must not hold an item twice".to_owned()
        });
    }
}

/// Whether a text is an email address.
pub fn is_email(text: &str) -> bool {
    static EMAIL: Pattern =
        Pattern::new(r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$");
    EMAIL.matches(text)
}

/// A regular expression, compiled at its first use.
#[derive(Debug)]
pub struct Pattern {
    text: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern; one that is not a regular expression matches nothing.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            regex: OnceLock::new(),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| Regex::new(self.text).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}
