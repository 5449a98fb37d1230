//! Objects (Make calls them collections), and paths given as text.

use super::super::EvaluationError;
use super::super::evaluator::{Outcome, position};
use super::super::limits::Budget;
use super::super::values;
use super::array::array;
use super::{Arguments, Function};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "get",
        &["value", "path"],
        "What a path such as \"lines[0].name\" or \"lines.0.name\" leads to, or null.",
        ("get({lines: [{sku: \"A1\"}]}; \"lines[0].sku\")", "\"A1\""),
        get,
    ),
    Function::new(
        "keys",
        &["object"],
        "The names of an object's fields, or the indexes of an array.",
        ("keys({a: 1, b: 2})", "[\"a\",\"b\"]"),
        keys,
    ),
    Function::new(
        "omit",
        &["object", "name…"],
        "The object without the named fields (names, or arrays of names).",
        ("omit({a: 1, b: 2, c: 3}; \"a\"; \"c\")", "{\"b\":2}"),
        omit,
    ),
    Function::new(
        "pick",
        &["object", "name…"],
        "The object with only the named fields (names, or arrays of names).",
        ("pick({a: 1, b: 2, c: 3}; \"a\"; \"c\")", "{\"a\":1,\"c\":3}"),
        pick,
    ),
    Function::new(
        "toArray",
        &["object"],
        "The fields of an object as an array of {key, value}.",
        ("toArray({a: 1})", "[{\"key\":\"a\",\"value\":1}]"),
        to_array,
    ),
    Function::new(
        "toCollection",
        &["array", "key", "value"],
        "An object of an array of objects: the named field of each gives a name, the other its value.",
        (
            "toCollection([{id: \"a\", total: 7}]; \"id\"; \"total\")",
            "{\"a\":7}",
        ),
        to_collection,
    ),
    Function::new(
        "values",
        &["object"],
        "The values of an object's fields.",
        ("values({a: 1, b: 2})", "[1,2]"),
        field_values,
    ),
];

/// What a path leads to: names and indexes, split by dots or in brackets.
pub(super) fn at_path<'v>(
    value: &'v Value,
    path: &str,
    budget: &Budget,
) -> Result<Option<&'v Value>, EvaluationError> {
    const BYTES_PER_STEP: usize = 8;
    budget.spend(path.len() / BYTES_PER_STEP)?;
    let steps = path
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']').trim_matches(['"', '\'']));
    Ok(steps
        .filter(|step| !step.is_empty())
        .try_fold(value, |value, step| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(position(items.len(), step.parse().ok()?)?),
            _ => None,
        }))
}

fn get<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    let path = arguments.value(1)?;
    let path = values::text(&path, arguments.budget())?;
    let budget = arguments.budget();
    match value {
        Cow::Borrowed(value) => {
            Ok(at_path(value, &path, budget)?.map_or(Cow::Owned(Value::Null), Cow::Borrowed))
        }
        Cow::Owned(value) => match at_path(&value, &path, budget)? {
            Some(found) => arguments.own(Cow::Borrowed(found)).map(Cow::Owned),
            None => Ok(Cow::Owned(Value::Null)),
        },
    }
}

fn keys<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    match value.as_ref() {
        Value::Object(fields) => {
            arguments.budget().spend_values(fields.len())?;
            array(fields.keys().map(|name| Value::from(name.as_str())).collect())
        }
        Value::Array(items) => {
            arguments.budget().spend_values(items.len())?;
            array((0..items.len()).map(Value::from).collect())
        }
        Value::Null => array(Vec::new()),
        other => Err(arguments.wants(0, "an object or an array", other)),
    }
}

/// The names after the first argument.
fn names(arguments: &Arguments<'_>) -> Result<HashSet<String>, EvaluationError> {
    let mut names = HashSet::new();
    for (index, name) in arguments.rest(1).enumerate() {
        let name = name?;
        if name.is_array() {
            for name in arguments.as_items(index + 1, name)? {
                names.insert(values::text(&name, arguments.budget())?.into_owned());
            }
        } else {
            names.insert(arguments.as_text(index + 1, name)?.into_owned());
        }
    }
    Ok(names)
}

fn omit<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let names = names(arguments)?;
    let mut fields = arguments.object(0)?;
    fields.retain(|name, _| !names.contains(name));
    Ok(Cow::Owned(Value::Object(fields)))
}

fn pick<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let names = names(arguments)?;
    let mut fields = arguments.object(0)?;
    fields.retain(|name, _| names.contains(name));
    Ok(Cow::Owned(Value::Object(fields)))
}

fn to_array<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let fields = arguments.object(0)?;
    arguments.budget().spend_values(fields.len().saturating_mul(4))?;
    array(
        fields
            .into_iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect(),
    )
}

fn to_collection<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (key, value) = (arguments.text(1)?, arguments.text(2)?);
    let mut fields = Map::new();
    for item in arguments.items(0)? {
        let Some(name) = at_path(&item, &key, arguments.budget())? else {
            continue;
        };
        let name = values::text(name, arguments.budget())?.into_owned();
        let value = match at_path(&item, &value, arguments.budget())? {
            Some(value) => arguments.own(Cow::Borrowed(value))?,
            None => Value::Null,
        };
        arguments.budget().spend_values(1)?;
        fields.insert(name, value);
    }
    Ok(Cow::Owned(Value::Object(fields)))
}

fn field_values<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    array(arguments.object(0)?.into_iter().map(|(_, value)| value).collect())
}
