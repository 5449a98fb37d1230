//! Operations on edges.

use serde_json::Value;

use crate::filter::CompiledFilter;
use crate::graph::{Edge, EdgeType, MAX_EDGES};
use crate::ops::EdgeRef;
use crate::ops::apply::{Editor, Refusal};

impl Editor<'_> {
    pub(super) fn connect(
        &mut self,
        from: i64,
        to: i64,
        edge_type: EdgeType,
        order: Option<i64>,
        filter: Option<Value>,
    ) -> Result<(), Refusal> {
        let id = Edge::id_of(from, to, edge_type);
        if self.graph.edge(&id).is_some() {
            let message = format!(
                "there is a {} edge from {from} to {to} already",
                edge_type.as_str()
            );
            return Err(Refusal::new("EDGE_EXISTS", message));
        }
        require_room(&self.graph.edges, 1)?;
        let filter = self.checked_filter(filter)?;
        let order = order.unwrap_or_else(|| self.next_order(from, edge_type));
        self.graph.edges.push(Edge {
            id,
            from,
            to,
            edge_type,
            order,
            filter,
        });
        Ok(())
    }

    pub(super) fn disconnect(&mut self, reference: &EdgeRef) -> Result<(), Refusal> {
        let position = self.edge_position(reference)?;
        self.graph.edges.remove(position);
        Ok(())
    }

    pub(super) fn set_edge_filter(
        &mut self,
        reference: &EdgeRef,
        filter: Option<Value>,
    ) -> Result<(), Refusal> {
        let position = self.edge_position(reference)?;
        let filter = self.checked_filter(filter)?;
        self.graph.edges[position].filter = filter;
        Ok(())
    }

    fn checked_filter(&self, filter: Option<Value>) -> Result<Option<Value>, Refusal> {
        let Some(filter) = filter.filter(|filter| !filter.is_null()) else {
            return Ok(None);
        };
        match CompiledFilter::compile(&filter, self.context.functions) {
            Ok(_) => Ok(Some(filter)),
            Err(found) => {
                let said: Vec<String> = found.into_iter().map(|p| p.under("filter").to_string()).collect();
                Err(Refusal::new("INVALID_FILTER", said.join("; ")))
            }
        }
    }

    fn edge_position(&self, reference: &EdgeRef) -> Result<usize, Refusal> {
        let (matching, what): (Vec<usize>, String) = match reference {
            EdgeRef::Id(id) => (self.edges_where(|edge| edge.id == *id), format!("edge {id:?}")),
            EdgeRef::Ends { from, to, edge_type } => {
                let (from, to) = (self.node_id(from)?, self.node_id(to)?);
                let wanted = |edge: &Edge| {
                    edge.from == from
                        && edge.to == to
                        && edge_type.is_none_or(|wanted| wanted == edge.edge_type)
                };
                (self.edges_where(wanted), format!("an edge from {from} to {to}"))
            }
        };
        match matching.as_slice() {
            [only] => Ok(*only),
            [] => Err(Refusal::new("EDGE_NOT_FOUND", format!("{what} does not exist"))),
            _ => Err(Refusal::new(
                "EDGE_AMBIGUOUS",
                format!("{what} exists with several types: give the type"),
            )),
        }
    }

    fn edges_where(&self, wanted: impl Fn(&Edge) -> bool) -> Vec<usize> {
        let numbered = self.graph.edges.iter().enumerate();
        numbered
            .filter(|(_, edge)| wanted(edge))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Refuses when there is no room for `more` edges.
pub(super) fn require_room(edges: &[Edge], more: usize) -> Result<(), Refusal> {
    if edges.len() + more > MAX_EDGES {
        let message = format!("a workflow has at most {MAX_EDGES} edges");
        return Err(Refusal::new("TOO_MANY_EDGES", message));
    }
    Ok(())
}

/// Leads what led to a removed node on to that node's successors, where no such edge is kept already.
///
/// An edge of the node to itself leads nowhere once the node is gone.
pub(super) fn heal(kept: &mut Vec<Edge>, gone: &[Edge], removed: i64) -> Result<(), Refusal> {
    let onward = |edge: &&Edge| edge.to != removed && edge.edge_type == EdgeType::Normal;
    for next in gone.iter().filter(onward) {
        let before = gone
            .iter()
            .filter(|edge| edge.from != removed && edge.from != next.to);
        for before in before {
            let id = Edge::id_of(before.from, next.to, before.edge_type);
            if kept.iter().all(|edge| edge.id != id) {
                require_room(kept, 1)?;
                kept.push(Edge {
                    id,
                    to: next.to,
                    ..before.clone()
                });
            }
        }
    }
    Ok(())
}
