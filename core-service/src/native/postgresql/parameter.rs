//! Values as the server reads them: in the text form of the type that it expects at each place of a statement.

use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, BytesMut};
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};

use crate::native::Failure;
use crate::native::values::misfit;

/// A value in text form; none for null.
#[derive(Debug)]
pub struct Parameter(Option<String>);

impl Parameter {
    /// The values for the places of a statement.
    pub fn all(values: &[Value], types: &[Type]) -> Result<Vec<Self>, Failure> {
        if values.len() != types.len() {
            let message = format!("{} of them, as the statement has places ($1 …)", types.len());
            return Err(misfit("parameters", &message));
        }
        let parameters = values
            .iter()
            .zip(types)
            .enumerate()
            .map(|(place, (value, expected))| {
                let text = text(value, expected);
                let text = text.map_err(|message| misfit(&format!("${}", place + 1), message))?;
                Ok(Self(text))
            });
        parameters.collect()
    }
}

fn text(value: &Value, expected: &Type) -> Result<Option<String>, &'static str> {
    let element = match expected.kind() {
        Kind::Domain(inner) => return text(value, inner),
        Kind::Array(element) => Some(element),
        _ => None,
    };
    Ok(Some(match (value, element) {
        (Value::Null, _) => return Ok(None),
        (value, None) if matches!(*expected, Type::JSON | Type::JSONB) => value.to_string(),
        (Value::String(text), _) if *expected == Type::BYTEA => {
            let bytes = STANDARD.decode(text).map_err(|_| "bytes in Base64")?;
            format!("\\x{}", hex::encode(bytes))
        }
        (Value::Array(items), Some(element)) => array(items, element)?,
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), _) => match number.as_f64().filter(|_| number.is_f64()) {
            // 3.0 is a whole number to templates, and none to a column of integers.
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        (other, _) => other.to_string(),
    }))
}

/// A list as the server writes its arrays: `{1,2,NULL,"a b"}`.
fn array(items: &[Value], element: &Type) -> Result<String, &'static str> {
    let item = |item: &Value| match item {
        Value::Array(inner) if !matches!(*element, Type::JSON | Type::JSONB) => array(inner, element),
        item => Ok(text(item, element)?.map_or_else(|| "NULL".to_owned(), |text| in_array(&text))),
    };
    let items = items.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{{{}}}", items.join(",")))
}

fn in_array(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl ToSql for Parameter {
    fn to_sql(&self, _expected: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = &self.0 else {
            return Ok(IsNull::Yes);
        };
        out.put_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_expected: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        expected: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(expected, out)
    }

    fn encode_format(&self, _expected: &Type) -> Format {
        Format::Text
    }
}
