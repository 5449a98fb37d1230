//! The scopes of a plan: which nodes and edges run once, and which once for each item.

use super::Plan;
use crate::graph::{EdgeType, Graph};
use crate::kind::Kinds;
use crate::regions;

/// A scope: the run's own, or the region of a splitter. Each node and each edge belongs to one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanScope {
    /// The splitter; absent for the run's own scope.
    pub(crate) opener: Option<u32>,
    /// Its aggregator, which belongs to the scope around it.
    pub(crate) closer: Option<u32>,
    /// The scope the opener belongs to.
    pub(crate) outer: u32,
    /// Its nodes.
    pub(crate) nodes: Vec<u32>,
    /// Its edges: those that leave its nodes, and those of the opener that are taken for each item.
    pub(crate) edges: Vec<u32>,
}

impl Plan {
    /// Gives each node and each edge to the innermost scope around it.
    pub(super) fn divide(&mut self, graph: &Graph, kinds: &dyn Kinds) {
        self.scopes.push(PlanScope::default());
        let mut regions: Vec<regions::Region> = regions::find(graph, kinds).into_values().collect();
        // A region inside another is the smaller one, so the innermost has the last word.
        regions.sort_by_key(|region| std::cmp::Reverse(region.inside.len()));
        for region in regions {
            let Some(opener) = self.index_of(region.opener) else {
                continue;
            };
            let closer = region.closer.and_then(|closer| self.index_of(closer));
            let scope = self.scopes.len() as u32;
            let outer = self.node_at(opener).scope;
            self.scopes.push(PlanScope {
                opener: Some(opener),
                closer,
                outer,
                ..PlanScope::default()
            });
            self.nodes[opener as usize].opens = Some(scope);
            if let Some(closer) = closer {
                self.nodes[closer as usize].closes = Some(scope);
            }
            for id in &region.inside {
                let Some(index) = self.index_of(*id) else { continue };
                self.nodes[index as usize].scope = scope;
            }
        }
        for (index, node) in (0_u32..).zip(&mut self.nodes) {
            let members = &mut self.scopes[node.scope as usize].nodes;
            node.local = members.len() as u32;
            members.push(index);
        }
        for (index, edge) in (0_u32..).zip(&mut self.edges) {
            let source = &self.nodes[edge.from as usize];
            edge.scope = match source.opens {
                Some(scope) if edge.edge_type != EdgeType::Error => scope,
                _ => source.scope,
            };
            let members = &mut self.scopes[edge.scope as usize].edges;
            edge.local = members.len() as u32;
            members.push(index);
            let target = &mut self.nodes[edge.to as usize];
            // An edge into an aggregator from its own region is decided once for each item, the region once.
            target.fan_in += u32::from(target.scope == edge.scope);
        }
        for node in &mut self.nodes {
            node.fan_in += u32::from(node.closes.is_some());
        }
    }

    pub(crate) fn scopes(&self) -> &[PlanScope] {
        &self.scopes
    }

    pub(crate) fn scope_at(&self, index: u32) -> &PlanScope {
        &self.scopes[index as usize]
    }

    /// The splitter of the outermost scope around a node, or the node itself in the run's own scope.
    pub(crate) fn outermost(&self, node: u32) -> u32 {
        let mut at = node;
        while let Some(opener) = self.scope_at(self.node_at(at).scope).opener {
            at = opener;
        }
        at
    }
}
