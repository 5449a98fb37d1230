//! `manual_trigger`: starts a run that somebody asks for.

use crate::expression::CustomFunctions;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::ParamProblem;

pub(crate) struct ManualTrigger;

impl Kind for ManualTrigger {
    fn spec(&self) -> NodeSpec {
        NodeSpec::trigger(
            "manual_trigger",
            "Manual trigger",
            "Starts a run that somebody asks for. Output: an empty object.",
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
