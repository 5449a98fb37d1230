//! Numbers. What takes several numbers takes them as arguments, as arrays, or both; null is left out.

use super::super::EvaluationError;
use super::super::evaluator::Outcome;
use super::super::numbers::{Numeric, calculate, decimal_value};
use super::super::syntax::Operator;
use super::super::values;
use super::text::text;
use super::{Arguments, Function};
use serde_json::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "abs",
        &["number"],
        "The number without its sign.",
        ("abs(-3)", "3"),
        abs,
    ),
    Function::new(
        "average",
        &["number…"],
        "The mean of the numbers, or null.",
        ("average([1, 2, 6])", "3"),
        average,
    ),
    Function::new(
        "ceil",
        &["number"],
        "The next whole number up.",
        ("ceil(1.2)", "2"),
        ceil,
    ),
    Function::new(
        "floor",
        &["number"],
        "The next whole number down.",
        ("floor(-1.2)", "-2"),
        floor,
    ),
    Function::new(
        "formatNumber",
        &["number", "decimals", "[decimalSeparator]", "[thousandsSeparator]"],
        "The number as text with that many decimals; the separators are \".\" and \",\" by default.",
        ("formatNumber(1234567.891; 2)", "\"1,234,567.89\""),
        format_number,
    ),
    Function::new(
        "max",
        &["number…"],
        "The greatest number, or null.",
        ("max(3; 7; 5)", "7"),
        max,
    ),
    Function::new(
        "median",
        &["number…"],
        "The middle number, or null.",
        ("median([1, 9, 3, 5])", "4"),
        median,
    ),
    Function::new(
        "min",
        &["number…"],
        "The least number, or null.",
        ("min([3, 7, 5])", "3"),
        min,
    ),
    Function::new(
        "parseNumber",
        &["text", "[decimalSeparator]"],
        "The number that a text spells; spaces and thousands separators are ignored.",
        ("parseNumber(\"1.234,5\"; \",\")", "1234.5"),
        parse_number,
    ),
    Function::new(
        "power",
        &["base", "exponent"],
        "The base raised to the exponent.",
        ("power(2; 10)", "1024"),
        power,
    ),
    Function::new(
        "round",
        &["number", "[decimals]"],
        "The number with that many decimals (none by default), halves away from zero.",
        ("round(1.005; 2)", "1.01"),
        round,
    ),
    Function::new("sqrt", &["number"], "The square root.", ("sqrt(16)", "4"), sqrt),
    Function::new(
        "stdevP",
        &["number…"],
        "The standard deviation of a whole population, or null.",
        ("stdevP([2, 4, 4, 4, 5, 5, 7, 9])", "2"),
        population_deviation,
    ),
    Function::new(
        "stdevS",
        &["number…"],
        "The standard deviation of a sample, or null for fewer than two numbers.",
        ("stdevS([1, 3])", "1.4142135623730951"),
        sample_deviation,
    ),
    Function::new(
        "sum",
        &["number…"],
        "The sum of the numbers.",
        ("sum([1, 2, 3])", "6"),
        sum,
    ),
    Function::new(
        "trunc",
        &["number", "[decimals]"],
        "The number with the digits after that many decimals (none by default) cut off.",
        ("trunc(-1.79; 1)", "-1.7"),
        trunc,
    ),
];

fn number<'a>(number: Result<Value, EvaluationError>) -> Outcome<'a> {
    number.map(Cow::Owned)
}

/// All numbers of all arguments.
fn numbers(arguments: &Arguments<'_>) -> Result<Vec<Numeric>, EvaluationError> {
    let mut numbers = Vec::new();
    let mut take = |value: &Value| match value {
        Value::Number(number) => {
            numbers.push(Numeric::of(number));
            Ok(())
        }
        Value::Null => Ok(()),
        other => Err(arguments.wants(0, "a number or an array of numbers", other)),
    };
    for (index, value) in arguments.rest(0).enumerate() {
        let value = value?;
        if value.is_array() {
            for item in arguments.as_items(index, value)? {
                take(&item)?;
            }
        } else {
            take(&value)?;
        }
    }
    Ok(numbers)
}

fn total(numbers: &[Numeric]) -> Result<Numeric, EvaluationError> {
    numbers.iter().try_fold(Numeric::Integer(0), |total, number| {
        match calculate(Operator::Add, total, *number)? {
            Value::Number(total) => Ok(Numeric::of(&total)),
            _ => Ok(total),
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "a count of values in memory")]
fn mean(numbers: &[Numeric]) -> Result<f64, EvaluationError> {
    Ok(total(numbers)?.as_decimal() / numbers.len() as f64)
}

fn abs<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    number(match arguments.number(0)? {
        Numeric::Integer(integer) => Numeric::Integer(integer.abs()).into_value(),
        Numeric::Decimal(decimal) => decimal_value(decimal.abs()),
    })
}

fn average<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let numbers = numbers(arguments)?;
    if numbers.is_empty() {
        return Ok(Cow::Owned(Value::Null));
    }
    number(calculate(
        Operator::Divide,
        total(&numbers)?,
        Numeric::Integer(numbers.len() as i128),
    ))
}

fn ceil<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    whole(arguments, f64::ceil)
}

fn floor<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    whole(arguments, f64::floor)
}

fn whole<'a>(arguments: &Arguments<'a>, round: fn(f64) -> f64) -> Outcome<'a> {
    number(match arguments.number(0)? {
        integer @ Numeric::Integer(_) => integer.into_value(),
        Numeric::Decimal(decimal) => decimal_value(round(decimal)),
    })
}

/// Rounds in decimal: 1.005 is a bit less than that in binary, yet its two decimals are 1.01.
fn at_decimals(number: f64, decimals: i64, round: fn(f64) -> f64) -> f64 {
    let shifted = |number: f64, by: i64| format!("{number}e{by}").parse().unwrap_or(number);
    let rounded = shifted(round(shifted(number, decimals)), -decimals);
    // Numbers too large to shift have no decimals to lose.
    if rounded.is_finite() { rounded } else { number }
}

fn decimals(arguments: &Arguments<'_>, index: usize) -> Result<i64, EvaluationError> {
    const MOST: i64 = 15;
    let decimals = arguments.optional_integer(index)?.unwrap_or(0);
    if (0..=MOST).contains(&decimals) {
        Ok(decimals)
    } else {
        Err(arguments.error(&format!("the number of decimals must be from 0 to {MOST}")))
    }
}

fn round<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    cut(arguments, f64::round)
}

fn trunc<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    cut(arguments, f64::trunc)
}

fn cut<'a>(arguments: &Arguments<'a>, round: fn(f64) -> f64) -> Outcome<'a> {
    let decimals = decimals(arguments, 1)?;
    number(match arguments.number(0)? {
        integer @ Numeric::Integer(_) => integer.into_value(),
        Numeric::Decimal(decimal) => decimal_value(at_decimals(decimal, decimals, round)),
    })
}

fn format_number<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.number(0)?;
    let decimals = decimals(arguments, 1)?;
    let (point, thousands) = (arguments.text_or(2, ".")?, arguments.text_or(3, ",")?);
    let width = usize::try_from(decimals).unwrap_or(0);
    let plain = match value {
        Numeric::Integer(integer) if width == 0 => integer.to_string(),
        Numeric::Integer(integer) => format!("{integer}.{:0width$}", 0),
        Numeric::Decimal(decimal) => format!("{:.width$}", at_decimals(decimal, decimals, f64::round)),
    };
    let (sign, digits) = plain
        .strip_prefix('-')
        .map_or(("", plain.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    arguments.budget().spend_text(
        whole
            .len()
            .saturating_mul(thousands.len())
            .saturating_add(point.len()),
    )?;
    let mut formatted = sign.to_owned();
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            formatted.push_str(&thousands);
        }
        formatted.push(digit);
    }
    if !fraction.is_empty() {
        formatted.push_str(&point);
        formatted.push_str(fraction);
    }
    text(formatted)
}

fn max<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let greatest = numbers(arguments)?
        .into_iter()
        .max_by(|left, right| left.compare(*right));
    number(greatest.map_or(Ok(Value::Null), Numeric::into_value))
}

fn min<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let least = numbers(arguments)?
        .into_iter()
        .min_by(|left, right| left.compare(*right));
    number(least.map_or(Ok(Value::Null), Numeric::into_value))
}

fn median<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let mut numbers = numbers(arguments)?;
    numbers.sort_by(|left, right| left.compare(*right));
    let middle = numbers.len() / 2;
    let Some(upper) = numbers.get(middle) else {
        return Ok(Cow::Owned(Value::Null));
    };
    if numbers.len() % 2 == 1 {
        return number(upper.into_value());
    }
    let lower = numbers.get(middle - 1).unwrap_or(upper);
    number(calculate(
        Operator::Divide,
        total(&[*lower, *upper])?,
        Numeric::Integer(2),
    ))
}

fn parse_number<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let value = arguments.value(0)?;
    if value.is_number() {
        return Ok(value);
    }
    let spelled = arguments.as_text(0, value)?;
    let point = arguments.text_or(1, ".")?;
    let thousands = match point.as_ref() {
        "." => ',',
        "," => '.',
        _ => return Err(arguments.error("the decimal separator is \".\" or \",\"")),
    };
    let plain: String = spelled
        .chars()
        .filter(|character| !character.is_whitespace() && *character != thousands && *character != '\'')
        .map(|character| {
            if point.starts_with(character) {
                '.'
            } else {
                character
            }
        })
        .collect();
    let is_spelled = plain
        .chars()
        .all(|character| character.is_ascii_digit() || "+-.eE".contains(character));
    let parsed = match plain.parse::<i64>() {
        Ok(integer) => Some(Value::from(integer)),
        Err(_) if is_spelled => plain.parse().ok().and_then(|decimal| decimal_value(decimal).ok()),
        Err(_) => None,
    };
    match parsed {
        Some(parsed) => Ok(Cow::Owned(parsed)),
        None => {
            let shown = values::shown(&spelled);
            Err(arguments.error(&format!("\"{shown}\" is not a number")))
        }
    }
}

fn power<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let (base, exponent) = (arguments.number(0)?, arguments.number(1)?);
    if let (Numeric::Integer(base), Numeric::Integer(exponent)) = (base, exponent)
        && let Ok(exponent) = u32::try_from(exponent)
    {
        return number(Numeric::Integer(base.checked_pow(exponent).unwrap_or(i128::MAX)).into_value());
    }
    number(decimal_value(base.as_decimal().powf(exponent.as_decimal())))
}

fn sqrt<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    number(decimal_value(arguments.number(0)?.as_decimal().sqrt()))
}

fn sum<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    number(total(&numbers(arguments)?)?.into_value())
}

fn population_deviation<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    deviation(arguments, 0)
}

fn sample_deviation<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    deviation(arguments, 1)
}

#[expect(clippy::cast_precision_loss, reason = "a count of values in memory")]
fn deviation<'a>(arguments: &Arguments<'a>, fewer: usize) -> Outcome<'a> {
    let numbers = numbers(arguments)?;
    if numbers.len() <= fewer {
        return Ok(Cow::Owned(Value::Null));
    }
    let mean = mean(&numbers)?;
    let squares: f64 = numbers
        .iter()
        .map(|number| (number.as_decimal() - mean).powi(2))
        .sum();
    number(decimal_value((squares / (numbers.len() - fewer) as f64).sqrt()))
}
