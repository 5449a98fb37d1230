//! SQL that grows with its parameters.

use std::ops::Bound;

use super::super::value::Value;
use crate::table::KeyTest;

/// A statement under construction.
#[derive(Default)]
pub(super) struct Statement<'a> {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value<'a>>,
}

impl<'a> Statement<'a> {
    pub(super) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    /// Writes a parameter.
    pub(super) fn value(&mut self, value: impl Into<Value<'a>>) {
        self.parameters.push(value.into());
        self.sql.push_str(&format!("${}", self.parameters.len()));
    }

    /// Writes text and a parameter after it.
    pub(super) fn with(&mut self, sql: &str, value: impl Into<Value<'a>>) {
        self.push(sql);
        self.value(value);
    }

    /// Writes conditions on a sort key, each after an `AND`. `operand` writes what gives the key.
    pub(super) fn key_test(&mut self, test: &'a KeyTest, operand: impl Fn(&mut Self)) {
        match test {
            KeyTest::Between(low, high) => self.between(low, high, operand),
            KeyTest::OneOf(keys) => match keys.as_slice() {
                [] => self.push(" AND FALSE"),
                [key] => self.compare(" = ", key, operand),
                keys => self.listed(" IN (", keys, operand),
            },
            KeyTest::NoneOf(keys) if keys.is_empty() => {}
            KeyTest::NoneOf(keys) => self.listed(" NOT IN (", keys, operand),
        }
    }

    /// Writes the ends of a range, each after an `AND`.
    pub(super) fn between(
        &mut self,
        low: &'a Bound<Vec<u8>>,
        high: &'a Bound<Vec<u8>>,
        operand: impl Fn(&mut Self),
    ) {
        match low {
            Bound::Included(key) => self.compare(" >= ", key, &operand),
            Bound::Excluded(key) => self.compare(" > ", key, &operand),
            Bound::Unbounded => {}
        }
        match high {
            Bound::Included(key) => self.compare(" <= ", key, &operand),
            Bound::Excluded(key) => self.compare(" < ", key, &operand),
            Bound::Unbounded => {}
        }
    }

    fn compare(&mut self, operator: &str, key: &'a Vec<u8>, operand: impl Fn(&mut Self)) {
        self.push(" AND ");
        operand(self);
        self.with(operator, key);
    }

    fn listed(&mut self, operator: &str, keys: &'a [Vec<u8>], operand: impl Fn(&mut Self)) {
        self.push(" AND ");
        operand(self);
        for (place, key) in keys.iter().enumerate() {
            self.with(if place == 0 { operator } else { ", " }, key);
        }
        self.push(")");
    }
}
