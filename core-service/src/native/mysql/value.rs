//! Values as the server sends them as JSON.
//!
//! Exact: whole numbers are numbers; `decimal` is a text, because JSON's numbers would round it; times are ISO 8601, and a
//! `timestamp` in UTC; bytes are Base64; `json` is what it holds, where the server says that it is (MariaDB keeps it as text).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mysql_async::Column;
use mysql_async::consts::ColumnType;
use serde_json::Value;

use crate::native::Failure;
use crate::native::values::{float, short_float};

/// The number of the character set that is none.
const BINARY: u16 = 63;

/// The bytes that a value holds.
pub fn size(value: &mysql_async::Value) -> u64 {
    match value {
        mysql_async::Value::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        _ => 8,
    }
}

/// A value as JSON; `name` is for people.
pub fn shown(value: mysql_async::Value, column: &Column, name: &str) -> Result<Value, Failure> {
    use mysql_async::Value as Sent;
    Ok(match value {
        Sent::NULL => Value::Null,
        Sent::Int(number) => number.into(),
        Sent::UInt(number) => number.into(),
        Sent::Float(number) => short_float(number),
        Sent::Double(number) => float(number),
        Sent::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let time = clock(u32::from(hour), minute, second, micros);
            match column.column_type() {
                ColumnType::MYSQL_TYPE_DATE => date.into(),
                ColumnType::MYSQL_TYPE_TIMESTAMP => format!("{date}T{time}Z").into(),
                _ => format!("{date}T{time}").into(),
            }
        }
        Sent::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = days.saturating_mul(24).saturating_add(u32::from(hours));
            format!("{sign}{}", clock(hours, minutes, seconds, micros)).into()
        }
        Sent::Bytes(bytes) => of_bytes(bytes, column, name)?,
    })
}

fn of_bytes(bytes: Vec<u8>, column: &Column, name: &str) -> Result<Value, Failure> {
    let is_binary = column.character_set() == BINARY;
    match column.column_type() {
        ColumnType::MYSQL_TYPE_JSON => serde_json::from_slice(&bytes).map_err(|_| unreadable(name)),
        ColumnType::MYSQL_TYPE_BIT => {
            let number = bytes
                .iter()
                .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
            Ok(number.into())
        }
        ColumnType::MYSQL_TYPE_GEOMETRY => Ok(STANDARD.encode(bytes).into()),
        ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
            if is_binary =>
        {
            Ok(STANDARD.encode(bytes).into())
        }
        _ => String::from_utf8(bytes)
            .map(Value::from)
            .map_err(|_| unreadable(name)),
    }
}

fn unreadable(name: &str) -> Failure {
    Failure::Refused(format!(
        "column {name}: its value cannot be read; select HEX({name})"
    ))
}

fn clock(hours: u32, minutes: u8, seconds: u8, micros: u32) -> String {
    let whole = format!("{hours:02}:{minutes:02}:{seconds:02}");
    match micros {
        0 => whole,
        micros => format!("{whole}.{}", format!("{micros:06}").trim_end_matches('0')),
    }
}
