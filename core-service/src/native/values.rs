//! The values of a call: parameters of operations, and fields of connections.

use serde_json::{Map, Number, Value};

use super::Failure;

/// Values by name. A null counts as absent.
#[derive(Clone, Copy)]
pub struct Values<'a>(pub &'a Map<String, Value>);

impl<'a> Values<'a> {
    /// The value of this name, whatever it is.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// The value of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn required(self, name: &str) -> Result<&'a Value, Failure> {
        self.get(name).ok_or_else(|| misfit(name, "given"))
    }

    /// A text that may be left out.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, Failure> {
        let value = self.get(name);
        value
            .map(|value| value.as_str().ok_or_else(|| misfit(name, "a text")))
            .transpose()
    }

    /// A text that has to be there.
    ///
    /// # Errors
    /// When it is absent, blank, or something else.
    pub fn required_text(self, name: &str) -> Result<&'a str, Failure> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| misfit(name, "a text that is not blank"))
    }

    /// A whole number that may be left out.
    ///
    /// # Errors
    /// When it is something else.
    pub fn integer(self, name: &str) -> Result<Option<i64>, Failure> {
        let value = self.get(name);
        value
            .map(|value| value.as_i64().ok_or_else(|| misfit(name, "a whole number")))
            .transpose()
    }

    /// A number of things, from 1 upwards, that may be left out.
    ///
    /// # Errors
    /// When it is something else.
    pub fn count(self, name: &str) -> Result<Option<usize>, Failure> {
        let count = self.integer(name)?;
        let fits = |count: i64| usize::try_from(count).ok().filter(|count| *count > 0);
        count
            .map(|count| fits(count).ok_or_else(|| misfit(name, "a whole number from 1 upwards")))
            .transpose()
    }

    /// A list that may be left out; empty then.
    ///
    /// # Errors
    /// When it is something else.
    pub fn list(self, name: &str) -> Result<&'a [Value], Failure> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(misfit(name, "a list")),
        }
    }

    /// The port of a connection, or the one that the protocol usually has.
    ///
    /// # Errors
    /// When it is none.
    pub fn port(self, usual: u16) -> Result<u16, Failure> {
        let port = self.integer("port")?.map_or(Ok(usual), u16::try_from).ok();
        port.filter(|port| *port > 0)
            .ok_or_else(|| misfit("port", "from 1 to 65535"))
    }
}

/// A value that is something else than it should be.
pub fn misfit(name: &str, expected: &str) -> Failure {
    Failure::Parameters(format!("{name} must be {expected}"))
}

/// A number as JSON; what JSON has no number for is a text.
#[must_use]
pub fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// A short number, with no more digits than it has.
#[must_use]
pub fn short_float(number: f32) -> Value {
    // The shortest digits that tell it apart, which a wider number would not have.
    float(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
}
