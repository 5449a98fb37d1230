//! Walks the tree. Values are borrowed from the tree, the scope and the frames of lambdas, and copied only
//! where something new is built of them.

use super::gather::{Gather, gather};
use super::limits::Budget;
use super::numbers::{self, Numeric};
use super::patterns::Pattern;
use super::syntax::{Call, Conditional, Expression, Operator, Step};
use super::{EvaluationError, Root, Scope, values};
use crate::expression::functions::Arguments;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;

pub(super) type Outcome<'v> = Result<Cow<'v, Value>, EvaluationError>;

/// What an evaluation works with.
pub(super) struct Context<'c> {
    pub(super) scope: &'c dyn Scope,
    pub(super) budget: &'c Budget,
    /// The regular expressions it used last, the newest at the end: compiling is paid for once in a loop.
    pub(super) patterns: &'c RefCell<Vec<Pattern>>,
}

/// The parameters of one lambda call.
pub(super) struct Frame<'f> {
    pub(super) values: &'f [Cow<'f, Value>],
    pub(super) outer: Option<&'f Frame<'f>>,
}

#[derive(Clone, Copy)]
pub(super) struct Environment<'e> {
    pub(super) context: &'e Context<'e>,
    pub(super) frame: Option<&'e Frame<'e>>,
}

impl<'e> Environment<'e> {
    pub(super) fn budget(self) -> &'e Budget {
        self.context.budget
    }

    /// The value of an expression.
    pub(super) fn evaluate(self, expression: &'e Expression) -> Outcome<'e> {
        self.budget().spend(1)?;
        match expression {
            Expression::Constant(value) => Ok(Cow::Borrowed(value)),
            Expression::Node(id) => Ok(found(self.context.scope.node(*id))),
            Expression::Root(root) => Ok(self.root(*root)),
            Expression::Variable(name) => Ok(found(self.context.scope.variable(name))),
            Expression::Index => Ok(Cow::Owned(
                self.context.scope.index().map_or(Value::Null, Value::from),
            )),
            Expression::Now => super::functions::date_text(self.context.scope.now()),
            Expression::Local { up, slot } => Ok(self.local(*up, *slot)),
            Expression::Access { base, steps } => self.access(base, steps),
            Expression::Array(items) => self.array(items),
            Expression::Object(fields) => self.object(fields),
            Expression::Not(operand) => self.not(operand),
            Expression::Negate(operand) => self.negate(operand),
            Expression::Chain { first, rest } => self.chain(first, rest),
            Expression::And(operands) => self.all(operands),
            Expression::Or(operands) => self.any(operands),
            Expression::Coalesce(operands) => self.coalesce(operands),
            Expression::Conditional(parts) => self.conditional(parts),
            Expression::Call(call) => self.call(call),
            Expression::CustomCall { name, arguments } => self.call_custom(name, arguments),
            Expression::Lambda(_) => Err(EvaluationError::new("a lambda is not a value")),
        }
    }

    /// A value of one's own; a copy is paid for.
    pub(super) fn own(self, value: Cow<'_, Value>) -> Result<Value, EvaluationError> {
        match value {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => {
                self.budget().spend_copy(value)?;
                Ok(value.clone())
            }
        }
    }

    fn evaluate_owned(self, expression: &'e Expression) -> Result<Value, EvaluationError> {
        let value = self.evaluate(expression)?;
        self.own(value)
    }

    fn root(self, root: Root) -> Cow<'e, Value> {
        found(self.context.scope.root(root))
    }

    fn local(self, up: usize, slot: usize) -> Cow<'e, Value> {
        let mut frame = self.frame;
        for _ in 0..up {
            frame = frame.and_then(|frame| frame.outer);
        }
        found(frame.and_then(|frame| frame.values.get(slot)).map(Cow::as_ref))
    }

    fn access(self, base: &'e Expression, steps: &'e [Step]) -> Outcome<'e> {
        match self.evaluate(base)? {
            Cow::Borrowed(value) => self.follow(value, steps),
            Cow::Owned(value) => self.follow_owned(value, steps).map(Cow::Owned),
        }
    }

    /// Follows a path into a borrowed value; the result is borrowed too unless `[]` makes a new array.
    fn follow<'v>(self, mut value: &'v Value, steps: &'e [Step]) -> Outcome<'v> {
        for (index, step) in steps.iter().enumerate() {
            self.budget().spend(1)?;
            let next = match step {
                Step::Name(name) => value.get(name),
                Step::Index(index) => element(value, *index),
                Step::Dynamic(key) => {
                    let key = self.evaluate(key)?;
                    match key.as_ref() {
                        Value::String(name) => value.get(name),
                        key => key.as_i64().and_then(|index| element(value, index)),
                    }
                }
                Step::Each => {
                    let rest = steps.get(index + 1..).unwrap_or_default();
                    return self.follow_each(value, rest).map(Cow::Owned);
                }
            };
            match next {
                Some(next) => value = next,
                None => return Ok(Cow::Owned(Value::Null)),
            }
        }
        Ok(Cow::Borrowed(value))
    }

    fn follow_each(self, value: &Value, rest: &'e [Step]) -> Result<Value, EvaluationError> {
        let Value::Array(items) = value else {
            return Ok(Value::Null);
        };
        self.budget().spend_values(items.len())?;
        items
            .iter()
            .map(|item| self.follow(item, rest).and_then(|found| self.own(found)))
            .collect::<Result<_, _>>()
            .map(Value::Array)
    }

    /// Follows a path into a value that nobody else needs: what is found is moved out of it.
    fn follow_owned(self, mut value: Value, steps: &'e [Step]) -> Result<Value, EvaluationError> {
        for (index, step) in steps.iter().enumerate() {
            let taken = match (step, &mut value) {
                (Step::Name(name), Value::Object(fields)) => fields.get_mut(name).map(Value::take),
                (Step::Index(index), Value::Array(items)) => position(items.len(), *index)
                    .and_then(|index| items.get_mut(index))
                    .map(Value::take),
                (Step::Name(_) | Step::Index(_), _) => None,
                (Step::Each | Step::Dynamic(_), _) => {
                    let rest = steps.get(index..).unwrap_or_default();
                    return self.follow(&value, rest).and_then(|found| self.own(found));
                }
            };
            match taken {
                Some(taken) => value = taken,
                None => return Ok(Value::Null),
            }
        }
        Ok(value)
    }

    fn array(self, items: &'e [Expression]) -> Outcome<'e> {
        self.budget().spend_values(items.len())?;
        let items = gather(items.iter().map(|item| self.evaluate_owned(item)));
        items.map(|items| Cow::Owned(Value::Array(items)))
    }

    fn object(self, fields: &'e [(String, Expression)]) -> Outcome<'e> {
        self.budget().spend_values(fields.len())?;
        let mut object = Map::with_capacity(fields.len());
        let mut gather = Gather::default();
        for (name, field) in fields {
            let value = gather.pass(self.evaluate_owned(field))?;
            object.insert(name.clone(), value.unwrap_or_default());
        }
        gather.end()?;
        Ok(Cow::Owned(Value::Object(object)))
    }

    pub(super) fn holds(self, expression: &'e Expression) -> Result<bool, EvaluationError> {
        self.evaluate(expression).map(|value| values::is_true(&value))
    }

    fn not(self, operand: &'e Expression) -> Outcome<'e> {
        self.holds(operand).map(|truth| boolean(!truth))
    }

    fn all(self, operands: &'e [Expression]) -> Outcome<'e> {
        for operand in operands {
            if !self.holds(operand)? {
                return Ok(boolean(false));
            }
        }
        Ok(boolean(true))
    }

    fn any(self, operands: &'e [Expression]) -> Outcome<'e> {
        for operand in operands {
            if self.holds(operand)? {
                return Ok(boolean(true));
            }
        }
        Ok(boolean(false))
    }

    fn coalesce(self, operands: &'e [Expression]) -> Outcome<'e> {
        let mut value = Cow::Owned(Value::Null);
        for operand in operands {
            value = self.evaluate(operand)?;
            if !value.is_null() {
                break;
            }
        }
        Ok(value)
    }

    fn conditional(self, parts: &'e Conditional) -> Outcome<'e> {
        if self.holds(&parts.condition)? {
            self.evaluate(&parts.then)
        } else {
            self.evaluate(&parts.otherwise)
        }
    }

    fn negate(self, operand: &'e Expression) -> Outcome<'e> {
        match self.evaluate(operand)?.as_ref() {
            Value::Number(number) => {
                numbers::calculate(Operator::Subtract, Numeric::Integer(0), Numeric::of(number))
                    .map(Cow::Owned)
            }
            other => Err(EvaluationError::new(format!(
                "`-` wants a number, not {}",
                values::kind(other)
            ))),
        }
    }

    fn chain(self, first: &'e Expression, rest: &'e [(Operator, Expression)]) -> Outcome<'e> {
        let mut gather = Gather::default();
        let mut left = gather.pass(self.evaluate(first))?;
        for (operator, right) in rest {
            let right = gather.pass(self.evaluate(right))?;
            left = match (left, right) {
                (Some(left), Some(right)) => Some(self.apply(*operator, left, &right)?),
                _ => None,
            };
        }
        gather.end()?;
        Ok(left.unwrap_or_default())
    }

    fn apply(self, operator: Operator, left: Cow<'e, Value>, right: &Value) -> Outcome<'e> {
        match operator {
            Operator::Equal => values::equal(&left, right, self.budget()).map(boolean),
            Operator::NotEqual => values::equal(&left, right, self.budget()).map(|equal| boolean(!equal)),
            Operator::Less => self.compare(operator, &left, right, Ordering::is_lt),
            Operator::LessOrEqual => self.compare(operator, &left, right, Ordering::is_le),
            Operator::Greater => self.compare(operator, &left, right, Ordering::is_gt),
            Operator::GreaterOrEqual => self.compare(operator, &left, right, Ordering::is_ge),
            Operator::In => self.contains(right, &left).map(boolean),
            Operator::Add if left.is_string() || right.is_string() => self.concatenate(left, right),
            _ => match (left.as_ref(), right) {
                (Value::Number(left), Value::Number(right)) => {
                    numbers::calculate(operator, Numeric::of(left), Numeric::of(right)).map(Cow::Owned)
                }
                _ => Err(wants(operator, "two numbers", &left, right)),
            },
        }
    }

    fn compare(
        self,
        operator: Operator,
        left: &Value,
        right: &Value,
        test: fn(Ordering) -> bool,
    ) -> Outcome<'e> {
        match values::order(left, right, self.budget())? {
            Some(order) => Ok(boolean(test(order))),
            None => Err(wants(operator, "two numbers or two texts", left, right)),
        }
    }

    /// Whether an array has an element, a text a part, an object a key; nothing is in null.
    pub(super) fn contains(self, whole: &Value, part: &Value) -> Result<bool, EvaluationError> {
        match (whole, part) {
            (Value::Null, _) => Ok(false),
            (Value::Array(items), part) => {
                for item in items {
                    self.budget().spend(1)?;
                    if values::equal(item, part, self.budget())? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::String(whole), Value::String(part)) => {
                self.budget().spend_bytes(whole.len())?;
                Ok(whole.contains(part.as_str()))
            }
            (Value::Object(fields), Value::String(name)) => Ok(fields.contains_key(name)),
            (whole, part) => Err(EvaluationError::new(format!(
                "{} cannot be in {}; look in an array, for a text in a text, or for a key in an object",
                values::kind(part),
                values::kind(whole)
            ))),
        }
    }

    fn concatenate(self, left: Cow<'e, Value>, right: &Value) -> Outcome<'e> {
        let right = values::text(right, self.budget())?;
        let mut text = match left {
            Cow::Owned(Value::String(text)) => text,
            left => {
                let left = values::text(&left, self.budget())?;
                self.budget().spend_bytes(left.len())?;
                left.into_owned()
            }
        };
        self.budget().spend_growth(text.len(), right.len())?;
        text.push_str(&right);
        Ok(Cow::Owned(Value::String(text)))
    }

    fn call(self, call: &'e Call) -> Outcome<'e> {
        let arguments = Arguments::new(call, self);
        let result = (call.function.run)(&arguments)?;
        if let Cow::Owned(Value::String(text)) = &result {
            self.budget().spend_text(text.len())?;
        }
        Ok(result)
    }

    fn call_custom(self, name: &str, arguments: &'e [Expression]) -> Outcome<'e> {
        const COST: usize = 100;
        self.budget().spend(COST)?;
        let arguments = gather(arguments.iter().map(|argument| self.evaluate_owned(argument)))?;
        let result = self.context.scope.call_custom(name, arguments)?;
        self.budget().spend_copy(&result)?;
        Ok(Cow::Owned(result))
    }
}

/// What is missing is null.
fn found(value: Option<&Value>) -> Cow<'_, Value> {
    value.map_or(Cow::Owned(Value::Null), Cow::Borrowed)
}

pub(super) fn boolean<'v>(truth: bool) -> Cow<'v, Value> {
    Cow::Owned(Value::Bool(truth))
}

fn element(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    items.get(position(items.len(), index)?)
}

/// The place that an index means: from zero, or from the end when it is negative.
pub(super) fn position(length: usize, index: i64) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn wants(operator: Operator, wanted: &str, left: &Value, right: &Value) -> EvaluationError {
    EvaluationError::new(format!(
        "`{}` wants {wanted}, not {} and {}",
        operator.symbol(),
        values::kind(left),
        values::kind(right)
    ))
}
