//! What a graph names outside itself by a literal id, and whether it is there.
//!
//! Ids that templates make are known when their node executes; then a wrong one is the node's failure.

use std::collections::{BTreeMap, HashSet};

use engine::expression::{NoCustomFunctions, Template};
use engine::graph::{Graph, Node};
use engine::kind::Kinds as _;
use engine::params::Resource;
use engine::problem::Problem;
use serde_json::Value;

use super::Workflows;
use crate::error::Result;
use crate::services::credential::credential_problems;

/// A parameter that names something: its node, its name and the id.
struct Reference<'a> {
    node: i64,
    field: String,
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
        for node in &graph.nodes {
            self.collect(node, &mut references);
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
                Problem::node(reference.node, message).at(format!("params.{}", reference.field))
            }));
        }
        problems.extend(credential_problems(&self.services, organization_id, graph).await?);
        Ok(problems)
    }

    fn collect<'g>(&self, node: &'g Node, references: &mut BTreeMap<Resource, Vec<Reference<'g>>>) {
        let Ok(registered) = self.services.registry.find(&node.app_id, &node.module_slug) else {
            return;
        };
        for field in &registered.spec.shape {
            let Some(resource) = field.refers_to else { continue };
            let Some(Value::String(id)) = node.params.get(&field.name) else {
                continue;
            };
            if Template::parse(id, &NoCustomFunctions).is_ok_and(|template| template.is_literal()) {
                references.entry(resource).or_default().push(Reference {
                    node: node.id,
                    field: field.name.clone(),
                    id,
                });
            }
        }
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
