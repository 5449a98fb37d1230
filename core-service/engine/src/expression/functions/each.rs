//! Arrays, element by element. A lambda takes the element and, if it wants to, its index.

use super::super::evaluator::{Outcome, boolean};
use super::super::gather::Gather;
use super::super::{EvaluationError, values};
use super::array::array;
use super::collection::at_path;
use super::{Arguments, Function};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "distinct",
        &["array", "[x => value | key]"],
        "The array with the first of the elements that share a value (of a lambda or of a key) only.",
        (
            "distinct([{id: 1}, {id: 2}, {id: 1}]; \"id\")",
            r#"[{"id":1},{"id":2}]"#,
        ),
        distinct,
    ),
    Function::new(
        "every",
        &["array", "x => condition"],
        "Whether the condition holds for each element.",
        ("every([2, 4]; x => x % 2 = 0)", "true"),
        every,
    ),
    Function::new(
        "filter",
        &["array", "x => condition"],
        "The elements for which the condition holds.",
        ("filter([1, 5, 9]; x => x > 4)", "[5,9]"),
        filter,
    ),
    Function::new(
        "find",
        &["array", "x => condition"],
        "The first element for which the condition holds, or null.",
        ("find([1, 5, 9]; x => x > 4)", "5"),
        find,
    ),
    Function::new(
        "groupBy",
        &["array", "x => value | key"],
        "An object of arrays: the elements by the text of a lambda's value or of a key.",
        (
            "groupBy([1, 2, 3]; x => if(x % 2 = 0; \"even\"; \"odd\"))",
            r#"{"odd":[1,3],"even":[2]}"#,
        ),
        group_by,
    ),
    Function::new(
        "map",
        &["array", "x => value | key", "[keyForFiltering]", "[values]"],
        "The lambda's value, or the value of a key, for each element; with a second key only for the elements whose value of it is among the values (an array, or a text split at commas).",
        ("map([1, 2, 3]; x => x * 10)", "[10,20,30]"),
        map,
    ),
    Function::new(
        "reduce",
        &["array", "(total, x) => value", "[start]"],
        "What the lambda makes of the start (null by default) and each element in turn.",
        ("reduce([1, 2, 3]; (total, x) => total + x; 0)", "6"),
        reduce,
    ),
    Function::new(
        "some",
        &["array", "x => condition"],
        "Whether the condition holds for at least one element.",
        ("some([1, 5, 9]; x => x > 8)", "true"),
        some,
    ),
    Function::new(
        "sort",
        &["array", "[x => value | order]", "[order or key]"],
        "The array in order (asc, desc, asc ci, desc ci; ci ignores case), by a lambda's value or by a key: numbers, texts, booleans, then the rest, null last.",
        ("sort([3, 1, 2]; x => -x)", "[3,2,1]"),
        sort,
    ),
];

/// An element and its index, as a lambda takes them.
fn parameters(item: Cow<'_, Value>, index: usize) -> [Cow<'_, Value>; 2] {
    [item, Cow::Owned(Value::from(index))]
}

/// What a lambda, or else a key, gives for an element.
enum Selector<'a> {
    Lambda(super::arguments::Lambda<'a>),
    Key(Cow<'a, str>),
}

impl<'a> Selector<'a> {
    fn new(arguments: &Arguments<'a>, index: usize) -> Result<Self, EvaluationError> {
        match arguments.lambda(index) {
            Some(lambda) => Ok(Self::Lambda(lambda)),
            None => arguments.text(index).map(Self::Key),
        }
    }

    fn select(
        &self,
        arguments: &Arguments<'_>,
        parameters: &[Cow<'_, Value>; 2],
    ) -> Result<Value, EvaluationError> {
        match self {
            Self::Lambda(lambda) => lambda.call(parameters),
            Self::Key(key) => {
                let [item, _] = parameters;
                at_path(item, key, arguments.budget())?
                    .map_or(Ok(Value::Null), |value| arguments.own(Cow::Borrowed(value)))
            }
        }
    }
}

fn distinct<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let selector = if arguments.count() > 1 {
        Some(Selector::new(arguments, 1)?)
    } else {
        None
    };
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for (index, item) in arguments.items(0)?.enumerate() {
        let parameters = parameters(item, index);
        let identity = match &selector {
            Some(selector) => {
                values::identity(&selector.select(arguments, &parameters)?, arguments.budget())?
            }
            None => values::identity(&parameters[0], arguments.budget())?,
        };
        if seen.insert(identity) {
            let [item, _] = parameters;
            kept.push(arguments.own(item)?);
        }
    }
    array(kept)
}

fn every<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let lambda = arguments.required_lambda(1)?;
    for (index, item) in arguments.items(0)?.enumerate() {
        if !lambda.holds(&parameters(item, index))? {
            return Ok(boolean(false));
        }
    }
    Ok(boolean(true))
}

fn some<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let lambda = arguments.required_lambda(1)?;
    for (index, item) in arguments.items(0)?.enumerate() {
        if lambda.holds(&parameters(item, index))? {
            return Ok(boolean(true));
        }
    }
    Ok(boolean(false))
}

fn filter<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let lambda = arguments.required_lambda(1)?;
    let mut kept = Vec::new();
    let mut gather = Gather::default();
    for (index, item) in arguments.items(0)?.enumerate() {
        let parameters = parameters(item, index);
        if gather.pass(lambda.holds(&parameters))? == Some(true) {
            let [item, _] = parameters;
            kept.push(arguments.own(item)?);
        }
    }
    gather.end()?;
    array(kept)
}

fn find<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let lambda = arguments.required_lambda(1)?;
    for (index, item) in arguments.items(0)?.enumerate() {
        let parameters = parameters(item, index);
        if lambda.holds(&parameters)? {
            let [item, _] = parameters;
            return Ok(item);
        }
    }
    Ok(Cow::Owned(Value::Null))
}

fn group_by<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let selector = Selector::new(arguments, 1)?;
    let mut groups: Map<String, Value> = Map::new();
    let mut gather = Gather::default();
    for (index, item) in arguments.items(0)?.enumerate() {
        let parameters = parameters(item, index);
        let Some(key) = gather.pass(selector.select(arguments, &parameters))? else {
            continue;
        };
        let key = values::text(&key, arguments.budget())?;
        let [item, _] = parameters;
        let item = arguments.own(item)?;
        arguments.budget().spend_values(1)?;
        match groups.get_mut(key.as_ref()) {
            Some(Value::Array(group)) => group.push(item),
            _ => {
                groups.insert(key.into_owned(), Value::Array(vec![item]));
            }
        }
    }
    gather.end()?;
    Ok(Cow::Owned(Value::Object(groups)))
}

fn map<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let selector = Selector::new(arguments, 1)?;
    let wanted = if arguments.count() > 2 {
        Some((arguments.text(2)?, wanted_values(arguments)?))
    } else {
        None
    };
    let mut mapped = Vec::new();
    let mut gather = Gather::default();
    for (index, item) in arguments.items(0)?.enumerate() {
        if let Some((key, wanted)) = &wanted {
            let value = at_path(&item, key, arguments.budget())?.unwrap_or(&Value::Null);
            if !wanted.contains(values::text(value, arguments.budget())?.as_ref()) {
                continue;
            }
        }
        arguments.budget().spend_values(1)?;
        mapped.extend(gather.pass(selector.select(arguments, &parameters(item, index)))?);
    }
    gather.end()?;
    array(mapped)
}

/// The values that `map` filters by, as texts.
fn wanted_values(arguments: &Arguments<'_>) -> Result<HashSet<String>, EvaluationError> {
    const VALUES: usize = 3;
    let given = arguments.value(VALUES)?;
    if given.is_array() {
        return arguments
            .as_items(VALUES, given)?
            .map(|value| values::text(&value, arguments.budget()).map(Cow::into_owned))
            .collect();
    }
    Ok(arguments
        .as_text(VALUES, given)?
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect())
}

fn reduce<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let lambda = arguments.required_lambda(1)?;
    let mut total = arguments.value(2)?;
    for (index, item) in arguments.items(0)?.enumerate() {
        total = Cow::Owned(lambda.call(&[total, item, Cow::Owned(Value::from(index))])?);
    }
    Ok(total)
}

#[derive(Clone, Copy)]
struct Order {
    is_descending: bool,
    ignores_case: bool,
}

impl Order {
    fn parse(arguments: &Arguments<'_>, text: &str) -> Result<Self, EvaluationError> {
        let order = |is_descending, ignores_case| {
            Ok(Self {
                is_descending,
                ignores_case,
            })
        };
        match text {
            "asc" | "" => order(false, false),
            "desc" => order(true, false),
            "asc ci" => order(false, true),
            "desc ci" => order(true, true),
            other => Err(arguments.error(&format!(
                "the order is asc, desc, asc ci or desc ci, not \"{}\"",
                values::shown(other)
            ))),
        }
    }
}

fn sort<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (selector, order) = match arguments.lambda(1) {
        Some(lambda) => (Some(Selector::Lambda(lambda)), arguments.text(2)?),
        None if arguments.count() > 2 => (Some(Selector::Key(arguments.text(2)?)), arguments.text(1)?),
        None => (None, arguments.text(1)?),
    };
    let order = Order::parse(arguments, &order)?;
    let mut keyed: Vec<(Value, Value)> = Vec::new();
    let mut key_bytes = 0_usize;
    let mut gather = Gather::default();
    for (index, item) in arguments.items(0)?.enumerate() {
        let parameters = parameters(item, index);
        let mut key = match &selector {
            Some(selector) => match gather.pass(selector.select(arguments, &parameters))? {
                Some(key) => key,
                None => continue,
            },
            None => arguments.own(Cow::Borrowed(&parameters[0]))?,
        };
        if let (true, Value::String(text)) = (order.ignores_case, &key) {
            key = Value::String(text.to_lowercase());
        }
        key_bytes += key.as_str().map_or(0, str::len);
        let [item, _] = parameters;
        keyed.push((key, arguments.own(item)?));
    }
    gather.end()?;
    let rounds = usize::BITS as usize - keyed.len().leading_zeros() as usize;
    arguments.budget().spend(keyed.len() * rounds)?;
    arguments.budget().spend_bytes(key_bytes.saturating_mul(rounds))?;
    keyed.sort_by(|(left, _), (right, _)| compare(left, right, order.is_descending));
    array(keyed.into_iter().map(|(_, item)| item).collect())
}

/// A total order; null is last whatever the direction.
fn compare(left: &Value, right: &Value, is_descending: bool) -> Ordering {
    use super::super::numbers::Numeric;
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) | Value::Object(_) => 3,
        Value::Null => 4,
    };
    if left.is_null() || right.is_null() {
        return left.is_null().cmp(&right.is_null());
    }
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => Numeric::of(left).compare(Numeric::of(right)),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    };
    if is_descending { order.reverse() } else { order }
}
