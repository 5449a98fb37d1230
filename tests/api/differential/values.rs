//! Values that calls are made of: mostly good ones.

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::operation::Operation;
use super::script::Step;

pub(super) type Steps = BoxedStrategy<Step>;
pub(super) type Values = BoxedStrategy<Value>;

/// A call with random parameters and a random body.
pub(super) fn call<const N: usize>(
    method: &'static str,
    parameters: [(&'static str, BoxedStrategy<String>); N],
    body: impl Strategy<Value = Value> + 'static,
) -> Steps {
    let (names, values): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
    (values, body)
        .prop_map(move |(values, body)| {
            // A parameter that is nothing is left out.
            let parameters = names.iter().copied().zip(values);
            let given = parameters.filter(|(_, value)| !value.is_empty());
            Step::Call(Operation::new(method, given.collect(), body))
        })
        .boxed()
}

pub(super) fn nothing() -> Values {
    Just(Value::Null).boxed()
}

/// An object of these members, of which any may be absent; those marked by a star only now and then.
pub(super) fn object<const N: usize>(members: [(&'static str, Values); N]) -> Values {
    let (names, values): (Vec<_>, Vec<_>) = members
        .into_iter()
        .map(|(name, value)| match name.strip_suffix('*') {
            Some(name) => (name, weighted(0.98, value)),
            None => (name, weighted(0.6, value)),
        })
        .unzip();
    values
        .prop_map(move |values| {
            let members = names.iter().zip(values);
            let given = members.filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            Value::Object(given.collect())
        })
        .boxed()
}

pub(super) fn one_of<T: Into<Value> + Clone>(values: &[T]) -> Values {
    let values: Vec<Value> = values.iter().cloned().map(Into::into).collect();
    select(values).boxed()
}

/// Good values, now and then bad ones.
pub(super) fn mostly<T: Into<Value> + Clone, B: Into<Value> + Clone>(good: &[T], bad: &[B]) -> Values {
    prop_oneof![12 => one_of(good), 1 => one_of(bad)].boxed()
}

pub(super) fn text(values: &'static [&'static str]) -> BoxedStrategy<String> {
    select(values).prop_map(str::to_owned).boxed()
}

/// The name of a thing of this kind, now and then one that there is not.
pub(super) fn id(kind: &'static str) -> BoxedStrategy<String> {
    prop_oneof![
        24 => (0..4).prop_map(move |number| format!("{kind}#{number}")),
        1 => Just(format!("{kind}_unknown")),
        1 => Just("folder#0".to_owned()),
    ]
    .boxed()
}

pub(super) fn reference(kind: &'static str) -> Values {
    id(kind).prop_map(Value::from).boxed()
}

pub(super) fn reference_or_null(kind: &'static str) -> Values {
    prop_oneof![3 => reference(kind), 1 => nothing()].boxed()
}

pub(super) fn name() -> Values {
    let long = "x".repeat(201);
    let good = [
        "Orders",
        "orders",
        "  spaced  ",
        "Übung ✓",
        "100% of_it",
        "a\"b\\c",
        "z",
    ];
    mostly(&good, &["", &long])
}

pub(super) fn description() -> Values {
    one_of(&["what it is for", "", "Zeile\nzwei 🎉", "50%"])
}

pub(super) fn description_or_null() -> Values {
    prop_oneof![3 => description(), 1 => nothing()].boxed()
}

pub(super) fn flag() -> Values {
    one_of(&[true, false])
}

pub(super) fn limit() -> BoxedStrategy<String> {
    prop_oneof![9 => text(&["", "1", "2", "500"]), 1 => text(&["0", "-1"])].boxed()
}

pub(super) fn cursor() -> BoxedStrategy<String> {
    let known = (0..3).prop_map(|number| format!("cursor#{number}"));
    prop_oneof![16 => Just(String::new()), 2 => known, 1 => Just("nonsense".to_owned())].boxed()
}
