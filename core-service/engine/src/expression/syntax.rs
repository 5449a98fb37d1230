//! The tree that the parser builds and the evaluator walks.
//!
//! Chains of operators of one rank are one node, so a long sum is not a deep tree. Every call is resolved and
//! its number of arguments checked; names of lambda parameters are replaced by their places.

use super::Root;
use super::functions::Function;
use serde_json::Value;

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Constant(Value),
    Node(i64),
    Root(Root),
    Variable(String),
    Index,
    Now,
    /// A lambda's parameter: `up` lambdas outwards, the `slot`th of its parameters.
    Local {
        up: usize,
        slot: usize,
    },
    Access {
        base: Box<Expression>,
        steps: Vec<Step>,
    },
    Array(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    Not(Box<Expression>),
    Negate(Box<Expression>),
    /// `first op second op third …`, from the left.
    Chain {
        first: Box<Expression>,
        rest: Vec<(Operator, Expression)>,
    },
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Coalesce(Vec<Expression>),
    Conditional(Box<Conditional>),
    Call(Box<Call>),
    CustomCall {
        name: String,
        arguments: Vec<Expression>,
    },
    /// Only as an argument of a call.
    Lambda(Box<Expression>),
}

#[derive(Clone, Debug)]
pub(super) struct Conditional {
    pub(super) condition: Expression,
    pub(super) then: Expression,
    pub(super) otherwise: Expression,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: &'static Function,
    pub(super) arguments: Vec<Expression>,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// `.name` or `["name"]`
    Name(String),
    /// `[0]`, `[-1]`
    Index(i64),
    /// `[]`: the following steps apply to each element.
    Each,
    /// `[expression]`
    Dynamic(Expression),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// How messages write it.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl Expression {
    /// How many levels the tree has.
    pub(super) fn height(&self) -> usize {
        1 + self
            .children()
            .into_iter()
            .map(Expression::height)
            .max()
            .unwrap_or(0)
    }

    fn children(&self) -> Vec<&Expression> {
        match self {
            Self::Constant(_)
            | Self::Node(_)
            | Self::Root(_)
            | Self::Variable(_)
            | Self::Index
            | Self::Now
            | Self::Local { .. } => Vec::new(),
            Self::Access { base, steps } => {
                let dynamic = steps.iter().filter_map(|step| match step {
                    Step::Dynamic(expression) => Some(expression),
                    Step::Name(_) | Step::Index(_) | Step::Each => None,
                });
                std::iter::once(base.as_ref()).chain(dynamic).collect()
            }
            Self::Array(items) | Self::And(items) | Self::Or(items) | Self::Coalesce(items) => {
                items.iter().collect()
            }
            Self::Object(fields) => fields.iter().map(|(_, value)| value).collect(),
            Self::Not(operand) | Self::Negate(operand) | Self::Lambda(operand) => vec![operand],
            Self::Chain { first, rest } => std::iter::once(first.as_ref())
                .chain(rest.iter().map(|(_, operand)| operand))
                .collect(),
            Self::Conditional(parts) => vec![&parts.condition, &parts.then, &parts.otherwise],
            Self::Call(call) => call.arguments.iter().collect(),
            Self::CustomCall { arguments, .. } => arguments.iter().collect(),
        }
    }
}
