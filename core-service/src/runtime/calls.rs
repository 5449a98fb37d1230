//! Calls of custom functions that evaluations ask for.
//!
//! The engine cannot wait, and a custom function runs in another process. So an evaluation that needs an answer which is
//! not there fails as unanswered, whatever it belongs to is left undecided, and it is evaluated again once the answers
//! are there. Calls that do not wait for each other are asked for, and answered, together. Until then the clock of the
//! evaluation stands still, so that the second one asks for the same.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::expression::EvaluationError;
use serde_json::Value;

use crate::clock;

/// A call of a custom function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// The function's name.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<Value>,
}

/// What came of a call.
pub type FunctionAnswer = Result<Value, EvaluationError>;

/// The calls of one evaluation after the other.
#[derive(Default)]
pub struct Calls {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Not answered yet, by their text.
    wanted: Vec<(String, FunctionCall)>,
    answers: HashMap<String, FunctionAnswer>,
    /// When the evaluation began that waits, in epoch milliseconds.
    asked_at_ms: Option<i64>,
}

impl Calls {
    /// The answer to a call, or the error that says that there is none yet.
    ///
    /// # Errors
    /// What the function failed with; [`EvaluationError::unanswered`].
    pub fn ask(&self, name: &str, arguments: Vec<Value>) -> FunctionAnswer {
        let name = name.to_owned();
        let call = FunctionCall { name, arguments };
        let key = key(&call);
        let mut inner = self.lock();
        if let Some(answer) = inner.answers.get(&key) {
            return answer.clone();
        }
        if !inner.wanted.iter().any(|(wanted, _)| *wanted == key) {
            inner.wanted.push((key, call));
        }
        Err(EvaluationError::unanswered())
    }

    /// Whether calls wait for an answer.
    pub fn are_wanted(&self) -> bool {
        !self.lock().wanted.is_empty()
    }

    /// The calls that wait for an answer.
    pub fn wanted(&self) -> Vec<FunctionCall> {
        self.lock().wanted.iter().map(|(_, call)| call.clone()).collect()
    }

    /// Takes answers in, in the order of [`Calls::wanted`].
    pub fn answer(&self, answers: Vec<FunctionAnswer>) {
        let mut inner = self.lock();
        let wanted = std::mem::take(&mut inner.wanted);
        let keys = wanted.into_iter().map(|(key, _)| key);
        inner.answers.extend(keys.zip(answers));
    }

    /// The evaluation that waits is given up: what comes next has an instant of its own.
    pub(super) fn give_up(&self) {
        let mut inner = self.lock();
        inner.wanted.clear();
        inner.asked_at_ms = None;
    }

    /// Forgets the answers: what they were for is recorded.
    pub(super) fn forget(&self) {
        self.lock().answers.clear();
    }

    /// An evaluation begins. Gives its instant: now, or that of the one it repeats.
    pub(super) fn begin(&self) -> i64 {
        let mut inner = self.lock();
        // Whoever still wants them asks again.
        inner.wanted.clear();
        inner.asked_at_ms.unwrap_or_else(clock::now_ms)
    }

    /// An evaluation that began at this instant has ended.
    pub(super) fn end(&self, now_ms: i64) {
        let mut inner = self.lock();
        let waits = !inner.wanted.is_empty();
        inner.asked_at_ms = waits.then_some(now_ms);
        if !waits {
            inner.answers.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two calls with the same text have the same answer.
fn key(call: &FunctionCall) -> String {
    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
    format!("{}{arguments}", call.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_there_until_something_is_recorded() {
        let calls = Calls::default();
        let ask = || calls.ask("twice", vec![json!(2)]);
        assert!(ask().is_err_and(|error| error.is_unanswered()));
        assert!(ask().is_err_and(|error| error.is_unanswered()));
        assert_eq!(calls.wanted().len(), 1, "asked for once");
        calls.answer(vec![Ok(json!(4))]);
        assert_eq!((ask(), calls.are_wanted()), (Ok(json!(4)), false));
        calls.forget();
        assert!(ask().is_err_and(|error| error.is_unanswered()));
    }

    #[test]
    fn the_clock_stands_still_while_an_answer_is_awaited() {
        let calls = Calls::default();
        let began = calls.begin();
        assert!(calls.ask("f", Vec::new()).is_err());
        calls.end(began - 1_000);
        assert_eq!(calls.begin(), began - 1_000);
        assert!(calls.ask("f", Vec::new()).is_err());
        calls.end(began - 1_000);
        calls.give_up();
        assert!(calls.begin() >= began && !calls.are_wanted());
        calls.end(began - 1_000);
        assert!(calls.begin() >= began, "nothing was asked for");
    }
}
