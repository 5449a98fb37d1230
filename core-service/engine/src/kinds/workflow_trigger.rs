//! `workflow_trigger`: starts a run that another workflow asks for.

use crate::expression::CustomFunctions;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::ParamProblem;

pub(crate) struct WorkflowTrigger;

impl Kind for WorkflowTrigger {
    fn spec(&self) -> NodeSpec {
        NodeSpec::trigger(
            "workflow_trigger",
            "Called by a workflow",
            "Starts a run that another workflow's run_workflow asks for. Output: that node's input.",
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
