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
        let compare = |statement: &mut Self, operator: &str, key: &'a Vec<u8>| {
            statement.push(" AND ");
            operand(statement);
            statement.with(operator, key);
        };
        match test {
            KeyTest::Between(low, high) => {
                match low {
                    Bound::Included(key) => compare(self, " >= ", key),
                    Bound::Excluded(key) => compare(self, " > ", key),
                    Bound::Unbounded => {}
                }
                match high {
                    Bound::Included(key) => compare(self, " <= ", key),
                    Bound::Excluded(key) => compare(self, " < ", key),
                    Bound::Unbounded => {}
                }
            }
            KeyTest::OneOf(keys) => match keys.as_slice() {
                [] => self.push(" AND FALSE"),
                [key] => compare(self, " = ", key),
                keys => self.listed(" IN (", keys, operand),
            },
            KeyTest::NoneOf(keys) if keys.is_empty() => {}
            KeyTest::NoneOf(keys) => self.listed(" NOT IN (", keys, operand),
        }
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
