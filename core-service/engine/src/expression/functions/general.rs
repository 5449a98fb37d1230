//! Choosing and defaulting.

use super::super::evaluator::{Outcome, boolean};
use super::super::values;
use super::{Arguments, Function};
use serde_json::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "if",
        &["condition", "then", "[otherwise]"],
        "The second argument when the condition holds, else the third; only the chosen one is evaluated.",
        ("if(3 > 2; \"more\"; \"less\")", "\"more\""),
        choose,
    ),
    Function::new(
        "ifempty",
        &["value", "default"],
        "The default when the value is null, \"\", an empty array or an empty object, else the value.",
        ("ifempty(\"\"; \"none\")", "\"none\""),
        if_empty,
    ),
    Function::new(
        "isEmpty",
        &["value"],
        "Whether the value is null, \"\", an empty array or an empty object.",
        ("isEmpty([])", "true"),
        is_empty,
    ),
    Function::new(
        "switch",
        &["value", "case", "result", "[case, result, default…]"],
        "The result after the first case that equals the value; an argument left over at the end is the default.",
        ("switch(\"b\"; \"a\"; 1; \"b\"; 2; 0)", "2"),
        switch,
    ),
    Function::new(
        "typeOf",
        &["value"],
        "The JSON type of a value: null, boolean, number, string, array or object.",
        ("typeOf([1])", "\"array\""),
        type_of,
    ),
];

fn choose<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    if arguments.condition(0)? {
        arguments.value(1)
    } else {
        arguments.value(2)
    }
}

fn if_empty<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    if values::is_empty(&value) {
        arguments.value(1)
    } else {
        Ok(value)
    }
}

fn is_empty<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    arguments.value(0).map(|value| boolean(values::is_empty(&value)))
}

fn switch<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    let mut index = 1;
    while index + 1 < arguments.count() {
        let case = arguments.value(index)?;
        if values::equal(&value, &case, arguments.budget())? {
            return arguments.value(index + 1);
        }
        index += 2;
    }
    arguments.value(index)
}

fn type_of<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let name = match arguments.value(0)?.as_ref() {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Ok(Cow::Owned(Value::from(name)))
}
