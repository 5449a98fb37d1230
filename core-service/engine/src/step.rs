//! What happens next: `(state, input) -> (events, commands)`.
//!
//! A step runs everything that needs no effect to quiescence, so that a pure stretch of a run is one segment of the
//! journal. The caller makes the events durable first and carries out the commands then: an effect is never started
//! before its intent is recorded. Only an execution that has none, because it does nothing but compute, may begin sooner.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::driver::Driver;
use crate::event::{Event, Failure, LogLine, NodeKey, Outcome};
use crate::failure::NodeError;
use crate::scope::Environment;
use crate::start::{Start, StartError};
use crate::state::RunState;
use crate::timer::TimerKey;

/// Most nodes one step evaluates; after that many it asks to be continued, so that one run never holds a thread.
pub const STEP_BUDGET: usize = 256;

/// What reached the run from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin the run.
    Start(Start),
    /// An execution ended.
    NodeFinished {
        /// Which node.
        key: NodeKey,
        /// Which attempt, from the command that started it.
        attempt: u32,
        /// Its output or why it failed.
        result: Result<Value, NodeError>,
    },
    /// An execution that is about to end, or to be given up, has written these lines.
    NodeLogged {
        /// Which node.
        key: NodeKey,
        /// Which attempt, from the command that started it.
        attempt: u32,
        /// What it wrote.
        lines: Vec<LogLine>,
    },
    /// An execution goes on elsewhere: a person or another run brings its result, as [`Input::NodeAnswered`].
    NodeParked {
        /// Which node.
        key: NodeKey,
        /// Which attempt, from the command that started it.
        attempt: u32,
        /// When its time is over without a result, in epoch milliseconds: it fails as `NODE_TIMEOUT`, unless its kind
        /// has an output for that.
        due_at_ms: Option<i64>,
    },
    /// A person or another run answers a node. Of several answers to one attempt the first counts, and one to an attempt
    /// that is over is refused.
    NodeAnswered {
        /// Which node.
        key: NodeKey,
        /// Which attempt was asked for it.
        asked: NodeAttempt,
        /// The node's output or why it failed.
        result: Result<Value, NodeError>,
    },
    /// A timer is due. One that fires late, early or twice does no harm.
    TimerFired(TimerKey),
    /// Somebody cancelled the run. Without effect on one that has not started or has ended.
    Cancel,
    /// The run cannot go on: what is in flight is given up.
    Fail(Failure),
    /// The failed node and all below it are to run again.
    RetryNode(i64),
    /// The state was rebuilt from the journal: what is outstanding?
    Resume,
    /// The last step asked to be continued, perhaps because custom functions have to answer first.
    Continue,
}

/// What the runtime has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Execute a node and report [`Input::NodeFinished`].
    Execute(Execute),
    /// Report [`Input::TimerFired`] at an instant in epoch milliseconds. Replaces a timer with the same key.
    SetTimer {
        /// Which timer.
        key: TimerKey,
        /// When.
        due_at_ms: i64,
    },
    /// Forget a timer.
    CancelTimer(TimerKey),
    /// Forget all timers of the run.
    CancelTimers,
    /// Abort one execution; its result is ignored.
    AbortExecution(NodeKey),
    /// Abort all executions of the run; results that come nevertheless may still be reported.
    AbortExecutions,
    /// The run is over.
    Finish {
        /// How.
        outcome: Outcome,
        /// Why it failed.
        failure: Option<Failure>,
    },
    /// Step again with [`Input::Continue`].
    Continue,
}

/// An execution outside the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    /// Which node. With the run and its attempt, the key of its outgoing requests.
    pub key: NodeKey,
    /// The run's attempt, from 1.
    pub run_attempt: u32,
    /// The attempt at the node, from 1.
    pub attempt: u32,
    /// When the node began in its run, epoch milliseconds: the same for all attempts, also after a crash.
    pub started_at_ms: i64,
    /// What the node's executor asked for, with templates evaluated.
    pub request: Value,
    /// After this long the runtime reports [`NodeError::timeout`].
    pub timeout_ms: u64,
    /// Nobody can tell whether it was executed: it may begin before anything is durable, and again after a crash.
    pub only_computes: bool,
}

/// One attempt at a node, among all that the run makes: with the same number there may be others, before somebody let
/// the node run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAttempt {
    /// As [`Execute::started_at_ms`].
    pub started_at_ms: i64,
    /// As [`Execute::attempt`].
    pub number: u32,
}

/// What one step decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be made durable, in this order, before any command is carried out.
    pub events: Vec<Event>,
    /// To be carried out in this order.
    pub commands: Vec<Command>,
}

/// An input that the run refuses. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The run cannot start like this.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Custom functions have not answered yet: the same input has to come again once they have.
    #[error("custom functions have not answered yet")]
    Unanswered,
    /// Only a run that has ended can be retried from a node.
    #[error("the run has not ended yet")]
    NotFinished,
    /// Only a failed node can be retried.
    #[error("node {0} has not failed in this run")]
    NotFailed(i64),
    /// The node waits for no answer in this run.
    #[error("node {0} does not wait for an answer in this run")]
    NotWaiting(i64),
    /// Another answer was first, or the attempt is over.
    #[error("node {0} was answered already")]
    Answered(i64),
}

impl Execute {
    /// Which of all attempts at the node it is.
    pub fn node_attempt(&self) -> NodeAttempt {
        NodeAttempt {
            started_at_ms: self.started_at_ms,
            number: self.attempt,
        }
    }
}

impl RunState {
    /// Takes one input in at an instant (epoch milliseconds), which is `$now` for every node that begins in it.
    pub fn step(
        &mut self,
        input: Input,
        now_ms: i64,
        environment: &dyn Environment,
    ) -> Result<Step, StepError> {
        let mut driver = Driver::new(self, now_ms, environment);
        driver.accept(input)?;
        if environment.lacks_answers() {
            return Err(StepError::Unanswered);
        }
        driver.run();
        Ok(driver.finish())
    }

    /// The output of a node in the run's own scope.
    pub fn output(&self, node: i64) -> Option<&Arc<Value>> {
        let place = self.place(&NodeKey::root(node))?;
        self.slot(place).output.as_ref()
    }
}

/// An output, which is always an object.
pub(crate) fn as_object(output: Value) -> Value {
    match output {
        Value::Object(_) => output,
        other => Value::Object(Map::from_iter([(String::from("value"), other)])),
    }
}
