//! Going on past calls of custom functions that have no answer yet.
//!
//! An evaluation that lacks an answer is repeated. What does not depend on the answer is evaluated all the same, so that
//! the calls in there are asked for together with it.

use super::EvaluationError;

/// Whether any of several evaluations lacked an answer.
#[derive(Default)]
pub(crate) struct Gather {
    unanswered: Option<EvaluationError>,
}

impl Gather {
    /// The value of one of them; nothing when it lacks an answer.
    pub(crate) fn pass<T>(
        &mut self,
        outcome: Result<T, EvaluationError>,
    ) -> Result<Option<T>, EvaluationError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_unanswered() => {
                self.unanswered = Some(error);
                Ok(None)
            }
            // What comes first is told, and that may be the failure of the function.
            Err(error) => Err(self.unanswered.take().unwrap_or(error)),
        }
    }

    /// Fails when any of them lacked an answer.
    pub(crate) fn end(self) -> Result<(), EvaluationError> {
        self.unanswered.map_or(Ok(()), Err)
    }
}

/// The values of several evaluations that do not depend on each other.
pub(super) fn gather<T>(
    outcomes: impl Iterator<Item = Result<T, EvaluationError>>,
) -> Result<Vec<T>, EvaluationError> {
    let mut gather = Gather::default();
    let mut values = Vec::with_capacity(outcomes.size_hint().0);
    for outcome in outcomes {
        values.extend(gather.pass(outcome)?);
    }
    gather.end()?;
    Ok(values)
}
