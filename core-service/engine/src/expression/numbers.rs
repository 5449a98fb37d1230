//! Arithmetic: integers stay integers and never lose digits silently.
//!
//! Integers and decimals are one type. A result without a fraction is an integer (`6 / 2`, `1.5 + 1.5`) as
//! long as a decimal holds it exactly; an integer result that does not fit in 64 bits is an error, not a
//! rounded decimal.

use super::EvaluationError;
use super::syntax::Operator;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// The greatest integer up to which every integer is a decimal too.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Clone, Copy, Debug)]
pub(super) enum Numeric {
    /// Within the range of `i64` or `u64`.
    Integer(i128),
    /// Finite.
    Decimal(f64),
}

impl Numeric {
    pub(super) fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_i64() {
            Self::Integer(integer.into())
        } else if let Some(integer) = number.as_u64() {
            Self::Integer(integer.into())
        } else {
            Self::Decimal(number.as_f64().unwrap_or_default())
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "asked for: a decimal holds 53 bits")]
    pub(super) fn as_decimal(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Decimal(decimal) => decimal,
        }
    }

    pub(super) fn into_value(self) -> Result<Value, EvaluationError> {
        match self {
            Self::Integer(integer) => integer_value(integer),
            Self::Decimal(decimal) => decimal_value(decimal),
        }
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            (Self::Decimal(left), Self::Decimal(right)) => compare_decimals(left, right),
            (Self::Integer(left), Self::Decimal(right)) => compare_mixed(left, right),
            (Self::Decimal(left), Self::Integer(right)) => compare_mixed(right, left).reverse(),
        }
    }
}

/// Exact, where turning the integer into a decimal would round it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the decimal has no fraction and is in range"
)]
fn compare_mixed(integer: i128, decimal: f64) -> Ordering {
    const BEYOND: f64 = 1e30;
    if decimal > BEYOND {
        return Ordering::Less;
    }
    if decimal < -BEYOND {
        return Ordering::Greater;
    }
    let whole = decimal.trunc();
    integer
        .cmp(&(whole as i128))
        .then_with(|| compare_decimals(0.0, decimal - whole))
}

/// JSON has no decimals without an order.
fn compare_decimals(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// An integer as a JSON number.
pub(super) fn integer_value(integer: i128) -> Result<Value, EvaluationError> {
    if let Ok(small) = i64::try_from(integer) {
        Ok(Value::from(small))
    } else if let Ok(large) = u64::try_from(integer) {
        Ok(Value::from(large))
    } else {
        Err(EvaluationError::new(
            "the result does not fit in a 64-bit integer; make one operand a decimal, such as 1.0",
        ))
    }
}

/// A decimal as a JSON number: an integer when it has no fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the decimal has no fraction and is in range"
)]
pub(super) fn decimal_value(decimal: f64) -> Result<Value, EvaluationError> {
    if decimal.fract() == 0.0 && decimal.abs() <= EXACT {
        return Ok(Value::from(decimal as i64));
    }
    Number::from_f64(decimal)
        .map(Value::Number)
        .ok_or_else(|| EvaluationError::new("the result is too large for a number, or is none"))
}

/// `-number`, for a literal.
pub(super) fn negated(number: &Number) -> Value {
    let negative = match Numeric::of(number) {
        Numeric::Integer(integer) => Numeric::Integer(-integer),
        Numeric::Decimal(decimal) => Numeric::Decimal(-decimal),
    };
    match negative {
        Numeric::Decimal(decimal) => Value::from(decimal),
        integer @ Numeric::Integer(_) => integer.into_value().unwrap_or_default(),
    }
}

/// An arithmetic operator on two numbers.
pub(super) fn calculate(operator: Operator, left: Numeric, right: Numeric) -> Result<Value, EvaluationError> {
    let is_division = matches!(operator, Operator::Divide | Operator::Remainder);
    if is_division && right.as_decimal() == 0.0 {
        return Err(EvaluationError::new(
            "a number cannot be divided by zero; check the divisor first",
        ));
    }
    if let (Numeric::Integer(left), Numeric::Integer(right)) = (left, right)
        && let Some(result) = calculate_integers(operator, left, right)
    {
        return integer_value(result);
    }
    let (left, right) = (left.as_decimal(), right.as_decimal());
    decimal_value(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
        other => {
            return Err(EvaluationError::new(format!(
                "`{}` is no arithmetic",
                other.symbol()
            )));
        }
    })
}

/// `None` where the result has a fraction. Operands of 64 bits cannot overflow 128.
fn calculate_integers(operator: Operator, left: i128, right: i128) -> Option<i128> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right).or(Some(i128::MAX)),
        Operator::Divide if left.checked_rem(right)? == 0 => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => None,
    }
}

/// As text: decimals without a fraction look like integers, as everywhere else.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(decimal) if number.is_f64() && decimal.fract() == 0.0 && decimal.abs() <= EXACT => {
            format!("{decimal:.0}")
        }
        _ => number.to_string(),
    }
}
