//! What a graph names outside itself by a literal id, and whether it is there.
//!
//! Ids that templates make are known when their node executes; then a wrong one is the node's failure.

use std::collections::{BTreeMap, HashSet};

use engine::expression::{NoCustomFunctions, Template};
use engine::graph::{Graph, Node};
use engine::kind::Kinds;
use engine::params::Resource;
use engine::problem::Problem;
use serde_json::Value;

use super::Workflows;
use crate::error::Result;
use crate::services::credential::credential_problems;

/// A parameter that names something, or one of a list that does: its node, its path and the id.
struct Reference<'a> {
    node: i64,
    path: String,
    id: &'a str,
}

impl Workflows {
    /// Each literal reference to something that the organization does not have, or that cannot be used.
    pub(super) async fn broken_references(
        &self,
        organization_id: &str,
        graph: &Graph,
    ) -> Result<Vec<Problem>> {
        let mut references: BTreeMap<Resource, Vec<Reference<'_>>> = BTreeMap::new();
        let kinds = self.services.kinds(organization_id).await?;
        for node in &graph.nodes {
            collect(node, &kinds, &mut references);
        }
        let mut problems = Vec::new();
        for (resource, references) in references {
            let ids: Vec<&str> = references.iter().map(|reference| reference.id).collect();
            let known = self.known(organization_id, resource, &ids).await?;
            let broken = references
                .iter()
                .filter(|reference| !known.contains(reference.id));
            problems.extend(broken.map(|reference| {
                let message = format!("must be the id of a {} of the organization", resource.as_str());
                Problem::node(reference.node, message).at(format!("params.{}", reference.path))
            }));
        }
        problems.extend(credential_problems(&self.services, organization_id, graph).await?);
        Ok(problems)
    }

    async fn known(
        &self,
        organization_id: &str,
        resource: Resource,
        ids: &[&str],
    ) -> Result<HashSet<String>> {
        let store = &self.services.store;
        Ok(match resource {
            Resource::Database => store.known_tables(organization_id, ids).await?,
            Resource::Structure => store.known_structures(organization_id, ids).await?,
            Resource::Workflow => store.known_workflows(organization_id, ids).await?,
        })
    }
}

fn collect<'g>(node: &'g Node, kinds: &dyn Kinds, references: &mut BTreeMap<Resource, Vec<Reference<'g>>>) {
    let Ok(registered) = kinds.find(&node.app_id, &node.module_slug) else {
        return;
    };
    for field in &registered.spec.shape {
        let (Some(resource), Some(given)) = (field.refers_to, node.params.get(&field.name)) else {
            continue;
        };
        let literal = named(&field.name, given)
            .into_iter()
            .filter(|(_, id)| Template::parse(id, &NoCustomFunctions).is_ok_and(|id| id.is_literal()));
        let node = node.id;
        let found = literal.map(|(path, id)| Reference { node, path, id });
        references.entry(resource).or_default().extend(found);
    }
}

/// The ids that a parameter gives, each with its path: one, or a list of them.
fn named<'a>(name: &str, given: &'a Value) -> Vec<(String, &'a str)> {
    match given {
        Value::String(id) => vec![(name.to_owned(), id)],
        Value::Array(ids) => ids
            .iter()
            .enumerate()
            .filter_map(|(at, id)| Some((format!("{name}[{at}]"), id.as_str()?)))
            .collect(),
        _ => Vec::new(),
    }
}
