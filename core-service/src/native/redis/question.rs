//! What is asked: the command that an operation makes of its parameters, and what is read of the answer.

use ::redis::{Cmd, cmd};
use serde_json::{Value, json};

use super::open::Open;
use super::value::fields;
use crate::native::values::misfit;
use crate::native::{Call, Failure, Values};

/// What is asked, and how the answer is read.
pub enum Question {
    /// One command. The answer is the member of this name.
    One(Cmd, &'static str),
    /// As `One`, and the answer is whether anything but nothing came.
    Done(Cmd),
    /// As `One`, and the answer is a list in any case.
    Listed(Cmd, &'static str),
    /// The fields of a hash.
    Fields(Cmd),
    /// A list of things, as it is.
    List(Cmd),
    /// All keys that match, as many as this.
    Keys(String, usize),
}

impl Question {
    pub fn of(call: Call<'_>) -> Result<Self, Failure> {
        let given = call.parameters;
        let most = given.count("limit")?.map_or(call.session.limits.items, |limit| {
            limit.min(call.session.limits.items)
        });
        Ok(match call.operation {
            "get" => Self::One(with_key("GET", given)?, "value"),
            "set" => Self::Done(set(given)?),
            "delete" => Self::One(with_all("DEL", None, given, "keys")?, "count"),
            "increment" => {
                let mut command = with_key("INCRBY", given)?;
                command.arg(given.integer("by")?.unwrap_or(1));
                Self::One(command, "value")
            }
            "hash_get" => match given.text("field")? {
                None => Self::Fields(with_key("HGETALL", given)?),
                Some(field) => {
                    let mut command = with_key("HGET", given)?;
                    command.arg(field);
                    Self::One(command, "value")
                }
            },
            "hash_set" => Self::One(hash_set(given)?, "added"),
            "list_push" => {
                let name = at_end(given, "LPUSH", "RPUSH", "right")?;
                Self::One(with_all(name, Some("key"), given, "values")?, "length")
            }
            "list_pop" => {
                let mut command = with_key(at_end(given, "LPOP", "RPOP", "left")?, given)?;
                command.arg(given.count("count")?.unwrap_or(1));
                Self::Listed(command, "values")
            }
            "publish" => {
                let mut command = cmd("PUBLISH");
                command.arg(given.required_text("channel")?);
                command.arg(argument("message", given.required("message")?)?);
                Self::One(command, "receivers")
            }
            "list_range" => {
                let mut command = with_key("LRANGE", given)?;
                command.arg(0).arg(most - 1);
                Self::List(command)
            }
            "find_keys" => Self::Keys(given.text("pattern")?.unwrap_or("*").to_owned(), most),
            other => return Err(misfit("operation", &format!("known; {other} is not"))),
        })
    }

    pub async fn ask(self, open: &mut Open) -> Result<Value, Failure> {
        Ok(match self {
            Self::One(command, name) => {
                let answer = open.ask(&command).await?;
                json!({ name: answer })
            }
            Self::Done(command) => json!({ "done": !open.ask(&command).await?.is_null() }),
            Self::Listed(command, name) => match open.ask(&command).await? {
                Value::Null => json!({ name: [] }),
                answer => json!({ name: answer }),
            },
            Self::Fields(command) => json!({ "values": fields(open.ask(&command).await?) }),
            Self::List(command) => open.ask(&command).await?,
            Self::Keys(pattern, most) => open.keys(&pattern, most).await?,
        })
    }
}

fn with_key(name: &str, given: Values<'_>) -> Result<Cmd, Failure> {
    let mut command = cmd(name);
    command.arg(given.required_text("key")?);
    Ok(command)
}

/// A command with each of a list of things, or with the one that is no list.
fn with_all(name: &str, key: Option<&str>, given: Values<'_>, list: &str) -> Result<Cmd, Failure> {
    let mut command = cmd(name);
    if let Some(key) = key {
        command.arg(given.required_text(key)?);
    }
    match given.required(list)? {
        Value::Array(items) if items.is_empty() => return Err(misfit(list, "a list that is not empty")),
        Value::Array(items) => {
            for item in items {
                command.arg(argument(list, item)?);
            }
        }
        item => {
            command.arg(argument(list, item)?);
        }
    }
    Ok(command)
}

fn set(given: Values<'_>) -> Result<Cmd, Failure> {
    let mut command = with_key("SET", given)?;
    command.arg(argument("value", given.required("value")?)?);
    if let Some(seconds) = given.count("expiresInSeconds")? {
        command.arg("EX").arg(seconds);
    }
    match given.text("when")? {
        None | Some("always") => {}
        Some("absent") => {
            command.arg("NX");
        }
        Some("present") => {
            command.arg("XX");
        }
        Some(_) => return Err(misfit("when", "always, absent or present")),
    }
    Ok(command)
}

fn hash_set(given: Values<'_>) -> Result<Cmd, Failure> {
    let mut command = with_key("HSET", given)?;
    let values = given
        .required("values")?
        .as_object()
        .filter(|values| !values.is_empty());
    for (field, value) in values.ok_or_else(|| misfit("values", "an object that is not empty"))? {
        command.arg(field).arg(argument(field, value)?);
    }
    Ok(command)
}

fn at_end<'a>(given: Values<'_>, left: &'a str, right: &'a str, usual: &str) -> Result<&'a str, Failure> {
    match given.text("end")?.unwrap_or(usual) {
        "left" => Ok(left),
        "right" => Ok(right),
        _ => Err(misfit("end", "left or right")),
    }
}

/// A value as it is kept: texts as they are, all else as JSON.
fn argument(name: &str, value: &Value) -> Result<String, Failure> {
    match value {
        Value::Null => Err(misfit(name, "given")),
        Value::String(text) => Ok(text.clone()),
        other => Ok(other.to_string()),
    }
}
