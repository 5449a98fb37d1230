//! `schedule_trigger`: starts a run at each instant of the workflow's recurrence.

use crate::expression::CustomFunctions;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::ParamProblem;

pub(crate) struct ScheduleTrigger;

impl Kind for ScheduleTrigger {
    fn spec(&self) -> NodeSpec {
        NodeSpec::trigger(
            "schedule_trigger",
            "Schedule",
            "Starts a run at each instant of the workflow's recurrence. Output: scheduledAt and firedAt.",
        )
    }

    fn compile(
        &self,
        _node: &Node,
        _functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::Trigger)
    }
}
