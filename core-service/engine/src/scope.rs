//! What a node sees while it runs, and what the runtime contributes to that.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::{EvaluationError, Root, Scope};

/// What expressions reach outside the run's own state. Given by the runtime to each step.
pub trait Environment {
    /// `$run`: an object with `id`, `attemptNumber`, `trigger` and `createdAt`.
    fn run(&self) -> &Value;
    /// `$workflow`: an object with `id` and `name`.
    fn workflow(&self) -> &Value;
    /// `$vars.NAME`, secrets included: they resolve only here, while a node executes.
    fn variable(&self, name: &str) -> Option<&Value>;
    /// Calls a custom function. [`EvaluationError::unanswered`] when the answer is not there yet.
    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError>;
    /// Whether an evaluation of this step lacked an answer. Nothing is recorded then: the step is taken again.
    fn lacks_answers(&self) -> bool {
        false
    }
    /// Something was recorded: answers that were needed for it are not needed any more.
    fn recorded(&self) {}
    /// Replaces secret values inside an output before it is recorded.
    fn mask(&self, _output: &mut Value) {}
    /// Replaces secret values inside an error message before it is recorded.
    fn mask_text(&self, _message: &mut String) {}
}

/// The scope of a node about to run: what its templates see, and its input.
pub trait NodeScope: Scope {
    /// The output of the node before it; with several, an object by node id; with none, an empty object.
    fn input(&self) -> Arc<Value>;
    /// The outputs of the nodes above it, by id.
    fn ancestors(&self) -> Vec<(i64, Arc<Value>)>;
}

/// A scope with an item of its own: how a kind evaluates a template once for each element of a list.
pub struct ItemScope<'a> {
    outer: &'a dyn Scope,
    item: &'a Value,
    index: i64,
}

impl<'a> ItemScope<'a> {
    /// The outer scope with `$item` and `$index` replaced.
    pub fn new(outer: &'a dyn Scope, item: &'a Value, index: usize) -> Self {
        Self {
            outer,
            item,
            index: i64::try_from(index).unwrap_or(i64::MAX),
        }
    }
}

impl Scope for ItemScope<'_> {
    fn node(&self, id: i64) -> Option<&Value> {
        self.outer.node(id)
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Item => Some(self.item),
            other => self.outer.root(other),
        }
    }

    fn index(&self) -> Option<i64> {
        Some(self.index)
    }

    fn now(&self) -> i64 {
        self.outer.now()
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.outer.variable(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        self.outer.call_custom(name, arguments)
    }
}

/// A scope whose `error` is given: what the filters of error edges see.
pub(crate) struct ErrorScope<'a> {
    pub(crate) outer: &'a dyn Scope,
    pub(crate) error: &'a Value,
}

impl Scope for ErrorScope<'_> {
    fn node(&self, id: i64) -> Option<&Value> {
        self.outer.node(id)
    }

    fn root(&self, root: Root) -> Option<&Value> {
        match root {
            Root::Error => Some(self.error),
            other => self.outer.root(other),
        }
    }

    fn index(&self) -> Option<i64> {
        self.outer.index()
    }

    fn now(&self) -> i64 {
        self.outer.now()
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.outer.variable(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        self.outer.call_custom(name, arguments)
    }
}
