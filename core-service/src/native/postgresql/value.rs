//! Values as the server sends them, in their binary form, as JSON.
//!
//! Exact, or not at all: whole numbers are numbers; `numeric` is a text, because JSON's numbers would round it; times are
//! ISO 8601, with a zone in UTC; bytes are Base64; what JSON has no number for (`NaN`) is a text. A type that is not known
//! here is refused with what would help, rather than guessed.

mod binary;

use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tokio_postgres::types::{FromSql, Kind, Type};

use self::binary::{Bytes, Damaged};
use crate::native::Failure;
use crate::native::values::{float, short_float};

/// A value as it came; none for null.
pub struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_type: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_type: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_type: &Type) -> bool {
        true
    }
}

impl Raw<'_> {
    /// The value as JSON; `column` is for people.
    pub fn value(&self, of: &Type, column: &str) -> Result<Value, Failure> {
        let Some(raw) = self.0 else { return Ok(Value::Null) };
        let read = value(of, Bytes::new(raw));
        read.map_err(|reason| {
            Failure::Refused(match reason {
                Unreadable::Type(name) => {
                    format!("column {column}: the type {name} has no form in JSON; select {column}::text")
                }
                Unreadable::Value => {
                    format!("column {column}: its value cannot be read as {of}; select {column}::text")
                }
            })
        })
    }
}

/// Why a value has no form in JSON.
enum Unreadable {
    /// Nothing of the type has.
    Type(String),
    /// It is not what its type says, or beyond what can be said.
    Value,
}

impl From<Damaged> for Unreadable {
    fn from(_damaged: Damaged) -> Self {
        Self::Value
    }
}

fn value(of: &Type, mut raw: Bytes<'_>) -> Result<Value, Unreadable> {
    match of.kind() {
        Kind::Domain(inner) => return value(inner, raw),
        Kind::Enum(_) => return Ok(raw.text()?.into()),
        Kind::Array(element) => return array(element, raw),
        Kind::Composite(fields) => {
            let fields = fields.iter().map(|field| (field.name(), field.type_()));
            return composite(fields, raw);
        }
        _ => {}
    }
    Ok(match *of {
        Type::BOOL => Value::from(raw.byte()? != 0),
        Type::INT2 => raw.int2()?.into(),
        Type::INT4 => raw.int4()?.into(),
        Type::INT8 => raw.int8()?.into(),
        Type::OID | Type::XID | Type::CID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC => {
            raw.oid()?.into()
        }
        Type::FLOAT4 => short_float(f32::from_bits(raw.oid()?)),
        Type::FLOAT8 => float(f64::from_bits(u64::from_be_bytes(raw.array()?))),
        Type::NUMERIC => binary::numeric(&mut raw)?.into(),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::XML | Type::UNKNOWN => {
            raw.text()?.into()
        }
        Type::CHAR => char::from(raw.byte()?).to_string().into(),
        Type::JSON => json(raw)?,
        Type::JSONB => {
            let _version = raw.byte()?;
            json(raw)?
        }
        Type::UUID => uuid::Uuid::from_bytes(raw.array()?).to_string().into(),
        Type::BYTEA => STANDARD.encode(raw.rest()).into(),
        Type::TIMESTAMPTZ => binary::timestamp(raw.int8()?, true)?.into(),
        Type::TIMESTAMP => binary::timestamp(raw.int8()?, false)?.into(),
        Type::DATE => binary::date(raw.int4()?)?.into(),
        Type::TIME => binary::time(raw.int8()?)?.into(),
        Type::TIMETZ => (binary::time(raw.int8()?)? + &binary::zone(raw.int4()?)).into(),
        Type::INTERVAL => binary::interval(raw.int8()?, raw.int4()?, raw.int4()?).into(),
        Type::INET | Type::CIDR => binary::network(&mut raw)?.into(),
        Type::MACADDR | Type::MACADDR8 => binary::hardware_address(raw).into(),
        Type::BIT | Type::VARBIT => binary::bits(&mut raw)?.into(),
        Type::VOID => Value::Null,
        // Types of extensions have no fixed number.
        ref other if other.name() == "citext" => raw.text()?.into(),
        ref other => return Err(Unreadable::Type(other.to_string())),
    })
}

fn json(raw: Bytes<'_>) -> Result<Value, Unreadable> {
    serde_json::from_slice(raw.rest()).map_err(|_| Unreadable::Value)
}

/// A list, or a list of lists.
fn array(element: &Type, mut raw: Bytes<'_>) -> Result<Value, Unreadable> {
    let dimensions = raw.int4()?;
    let (_has_nulls, _element) = (raw.int4()?, raw.oid()?);
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(raw.int4()?).map_err(|_| Unreadable::Value)?);
        let _begins_at = raw.int4()?;
    }
    match lengths.as_slice() {
        [] => Ok(Value::Array(Vec::new())),
        lengths => elements(element, lengths, &mut raw),
    }
}

fn elements(element: &Type, lengths: &[usize], raw: &mut Bytes<'_>) -> Result<Value, Unreadable> {
    let Some((length, inner)) = lengths.split_first() else {
        return match raw.sized()? {
            None => Ok(Value::Null),
            Some(one) => value(element, one),
        };
    };
    // A damaged length ends with the bytes.
    (0..*length).map(|_| elements(element, inner, raw)).collect()
}

fn composite<'t>(
    fields: impl Iterator<Item = (&'t str, &'t Type)>,
    mut raw: Bytes<'_>,
) -> Result<Value, Unreadable> {
    let _count = raw.int4()?;
    let mut values = Map::new();
    for (name, of) in fields {
        let _type = raw.oid()?;
        let field = match raw.sized()? {
            None => Value::Null,
            Some(one) => value(of, one)?,
        };
        values.insert(name.to_owned(), field);
    }
    Ok(Value::Object(values))
}
