//! Arrays as a whole; what works element by element with a lambda is in `each`.
//! null counts as an empty array, as a missing field does.

use super::super::evaluator::{Outcome, boolean, position};
use super::super::values;
use super::text::text;
use super::{Arguments, Function};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "add",
        &["array", "value…"],
        "The array with values behind it.",
        ("add([1, 2]; 3; 4)", "[1,2,3,4]"),
        add,
    ),
    Function::new(
        "arrayDifference",
        &["array", "other", "[mode]"],
        "The elements of the array that the other lacks; with the mode \"symmetric\", those that only one has.",
        ("arrayDifference([1, 2, 3]; [2])", "[1,3]"),
        difference,
    ),
    Function::new(
        "contains",
        &["whole", "part"],
        "Whether an array has an element, a text a part or an object a key.",
        ("contains([\"a\", \"b\"]; \"b\")", "true"),
        contains,
    ),
    Function::new(
        "deduplicate",
        &["array"],
        "The array with the first of equal elements only.",
        ("deduplicate([1, 2, 1.0])", "[1,2]"),
        deduplicate,
    ),
    Function::new(
        "first",
        &["array"],
        "The first element, or null.",
        ("first([1, 2, 3])", "1"),
        first,
    ),
    Function::new(
        "flatten",
        &["array", "[depth]"],
        "The array with the elements of inner arrays in their place, one level deep unless a depth is given.",
        ("flatten([1, [2, [3]]])", "[1,2,[3]]"),
        flatten,
    ),
    Function::new(
        "indexOf",
        &["whole", "part", "[start]"],
        "The first place of an element in an array or of a part in a text, from zero, or -1.",
        ("indexOf(\"workflow\"; \"flow\")", "4"),
        index_of,
    ),
    Function::new(
        "join",
        &["array", "[separator]"],
        "The elements as one text with a separator (none by default) between them.",
        ("join([1, 2, 3]; \"-\")", "\"1-2-3\""),
        join,
    ),
    Function::new(
        "last",
        &["array"],
        "The last element, or null.",
        ("last([1, 2, 3])", "3"),
        last,
    ),
    Function::new(
        "length",
        &["value"],
        "The number of characters of a text, of elements of an array or of fields of an object.",
        ("length(\"héllo\")", "5"),
        length,
    ),
    Function::new(
        "merge",
        &["first", "[more…]"],
        "One array of the elements of several, or one object of the fields of several (the last of a name wins).",
        ("merge([1]; [2, 3])", "[1,2,3]"),
        merge,
    ),
    Function::new(
        "range",
        &["start", "end", "[step]"],
        "The whole numbers from one up to before another.",
        ("range(0; 4)", "[0,1,2,3]"),
        range,
    ),
    Function::new(
        "remove",
        &["array", "value…"],
        "The array without the elements that equal one of the values.",
        ("remove([1, 2, 3, 2]; 2)", "[1,3]"),
        remove,
    ),
    Function::new(
        "reverse",
        &["value"],
        "An array or a text from its end to its start.",
        ("reverse([1, 2, 3])", "[3,2,1]"),
        reverse,
    ),
    Function::new(
        "slice",
        &["array", "start", "[end]"],
        "The elements from one place up to before another; negative places count from the end.",
        ("slice([1, 2, 3, 4]; 1; 3)", "[2,3]"),
        slice,
    ),
];

pub(super) fn array<'a>(items: Vec<Value>) -> Outcome<'a> {
    Ok(Cow::Owned(Value::Array(items)))
}

/// The elements as values of one's own.
pub(super) fn elements(
    arguments: &Arguments<'_>,
    index: usize,
) -> Result<Vec<Value>, super::super::EvaluationError> {
    match arguments.value(index)? {
        Cow::Owned(Value::Array(items)) => Ok(items),
        value => arguments
            .as_items(index, value)?
            .map(|item| arguments.own(item))
            .collect(),
    }
}

fn add<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let mut items = elements(arguments, 0)?;
    for value in arguments.rest(1) {
        items.push(arguments.own(value?)?);
    }
    array(items)
}

fn difference<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let budget = arguments.budget();
    let identities = |items: &[Value]| {
        items
            .iter()
            .map(|item| values::identity(item, budget))
            .collect::<Result<HashSet<_>, _>>()
    };
    let (items, other) = (elements(arguments, 0)?, elements(arguments, 1)?);
    let is_symmetric = match arguments.text_or(2, "classic")?.as_ref() {
        "classic" => false,
        "symmetric" => true,
        _ => return Err(arguments.error("the mode is \"classic\" or \"symmetric\"")),
    };
    let (known, known_other) = (identities(&items)?, identities(&other)?);
    let mut result = Vec::new();
    for item in items {
        if !known_other.contains(&values::identity(&item, budget)?) {
            result.push(item);
        }
    }
    for item in other.into_iter().filter(|_| is_symmetric) {
        if !known.contains(&values::identity(&item, budget)?) {
            result.push(item);
        }
    }
    array(result)
}

fn contains<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (whole, part) = (arguments.value(0)?, arguments.value(1)?);
    if whole.is_string() {
        let part = arguments.as_text(1, part)?;
        return Ok(boolean(arguments.as_text(0, whole)?.contains(part.as_ref())));
    }
    arguments.environment().contains(&whole, &part).map(boolean)
}

fn deduplicate<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let mut seen = HashSet::new();
    let mut result = Vec::new();
    for item in arguments.items(0)? {
        if seen.insert(values::identity(&item, arguments.budget())?) {
            result.push(arguments.own(item)?);
        }
    }
    array(result)
}

fn first<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    end(arguments, Iterator::next)
}

fn last<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    end(arguments, DoubleEndedIterator::next_back)
}

fn end<'a>(
    arguments: &Arguments<'a>,
    take: impl Fn(&mut super::arguments::Items<'a>) -> Option<Cow<'a, Value>>,
) -> Outcome<'a> {
    Ok(take(&mut arguments.items(0)?).unwrap_or(Cow::Owned(Value::Null)))
}

fn flatten<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let depth = arguments.optional_integer(1)?.unwrap_or(1);
    let mut items = elements(arguments, 0)?;
    for _ in 0..depth {
        if !items.iter().any(Value::is_array) {
            break;
        }
        arguments.budget().spend(items.len())?;
        let mut flat = Vec::new();
        for item in items {
            match item {
                Value::Array(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        items = flat;
    }
    array(items)
}

fn index_of<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let start = usize::try_from(arguments.optional_integer(2)?.unwrap_or(0)).unwrap_or(0);
    let (whole, part) = (arguments.value(0)?, arguments.value(1)?);
    let mut found = None;
    if whole.is_array() || whole.is_null() {
        for (index, item) in arguments.as_items(0, whole)?.enumerate().skip(start) {
            if values::equal(&item, &part, arguments.budget())? {
                found = Some(index);
                break;
            }
        }
    } else {
        let (whole, part) = (arguments.as_text(0, whole)?, arguments.as_text(1, part)?);
        let offset = whole
            .char_indices()
            .nth(start)
            .map_or(whole.len(), |(offset, _)| offset);
        let rest = whole.get(offset..).unwrap_or_default();
        found = rest
            .find(part.as_ref())
            .map(|index| start + rest.get(..index).map_or(0, |text| text.chars().count()));
    }
    Ok(Cow::Owned(found.map_or(Value::from(-1), Value::from)))
}

fn join<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let separator = arguments.text(1)?;
    let mut joined = String::new();
    for (index, item) in arguments.items(0)?.enumerate() {
        let item = values::text(&item, arguments.budget())?;
        let separator = if index == 0 { "" } else { separator.as_ref() };
        arguments
            .budget()
            .spend_growth(joined.len(), separator.len() + item.len())?;
        joined.push_str(separator);
        joined.push_str(&item);
    }
    text(joined)
}

fn length<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    let length = match value.as_ref() {
        Value::Null => 0,
        Value::String(text) => {
            arguments.budget().spend_bytes(text.len())?;
            text.chars().count()
        }
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        other => return Err(arguments.wants(0, "a text, an array or an object", other)),
    };
    Ok(Cow::Owned(Value::from(length)))
}

fn merge<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let mut merged = arguments.owned(0)?;
    for (index, more) in arguments.rest(1).enumerate() {
        let more = arguments.own(more?)?;
        match (&mut merged, more) {
            (_, Value::Null) => {}
            (Value::Array(items), Value::Array(more)) => items.extend(more),
            (Value::Object(fields), Value::Object(more)) => fields.extend(more),
            (merged @ Value::Null, more @ (Value::Array(_) | Value::Object(_))) => *merged = more,
            (Value::Object(_), more) => return Err(arguments.wants(index + 1, "an object", &more)),
            (_, more) => return Err(arguments.wants(index + 1, "an array", &more)),
        }
    }
    match merged {
        Value::Null => array(Vec::new()),
        merged @ (Value::Array(_) | Value::Object(_)) => Ok(Cow::Owned(merged)),
        other => Err(arguments.wants(0, "an array or an object", &other)),
    }
}

fn range<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (start, end) = (arguments.integer(0)?, arguments.integer(1)?);
    let step = arguments.optional_integer(2)?.unwrap_or(1);
    if step == 0 {
        return Err(arguments.error("the step must not be zero"));
    }
    let mut numbers = Vec::new();
    let mut next = Some(start);
    while let Some(number) = next.filter(|number| if step > 0 { *number < end } else { *number > end }) {
        arguments.budget().spend_values(1)?;
        numbers.push(Value::from(number));
        next = number.checked_add(step);
    }
    array(numbers)
}

fn remove<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let unwanted = arguments.rest(1).collect::<Result<Vec<_>, _>>()?;
    let mut kept = Vec::new();
    'items: for item in arguments.items(0)? {
        for value in &unwanted {
            arguments.budget().spend(1)?;
            if values::equal(&item, value, arguments.budget())? {
                continue 'items;
            }
        }
        kept.push(arguments.own(item)?);
    }
    array(kept)
}

fn reverse<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    if value.is_array() || value.is_null() {
        let reversed: Result<Vec<Value>, _> = arguments
            .as_items(0, value)?
            .rev()
            .map(|item| arguments.own(item))
            .collect();
        return array(reversed?);
    }
    text(arguments.as_text(0, value)?.chars().rev().collect::<String>())
}

fn slice<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let items = arguments.items(0)?;
    let length = items.len();
    let place = |index: i64| position(length, index).unwrap_or(0).min(length);
    let start = place(arguments.integer(1)?);
    let end = arguments.optional_integer(2)?.map_or(length, place);
    let kept: Result<Vec<Value>, _> = items
        .skip(start)
        .take(end.saturating_sub(start))
        .map(|item| arguments.own(item))
        .collect();
    array(kept?)
}
