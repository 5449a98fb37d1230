//! `splitter`: runs what is below it once for each item of a list.

use serde_json::{Map, Value, json};

use crate::config::MAX_CONCURRENCY;
use crate::expression::{CompiledValue, CustomFunctions, Scope};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem};

use super::support::{compile_field, list};

/// Most items of one scope.
pub(crate) const MAX_ITEMS: usize = 10_000;

pub(crate) struct SplitterKind;

impl Kind for SplitterKind {
    fn spec(&self) -> NodeSpec {
        let mut spec = NodeSpec::flow(
            "splitter",
            "Splitter",
            "Runs what is below it, up to the aggregator that names it, once for each item of a list. Output for \
             each item: item, index.",
        )
        .with_shape([
            FieldSpec::required("items", FieldType::Array, "The list, of at most 10,000 items."),
            FieldSpec::optional(
                "concurrency",
                FieldType::Integer,
                "Items at the same time, from 1 to 100; the config's, else 1, by default.",
            ),
        ])
        .with_example(json!({ "items": "{{1.body.orders}}", "concurrency": 5 }));
        spec.opens_scope = true;
        spec.edge_model = String::from(
            "Normal edges whose filter holds for the item are taken for it, the fallback edge when none was. Error \
             edges are taken when the list cannot be evaluated.",
        );
        spec
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let in_range = |given: &Value| {
            given
                .as_u64()
                .is_some_and(|n| (1..=u64::from(MAX_CONCURRENCY)).contains(&n))
        };
        let given = params.get("concurrency").filter(|given| given.is_number());
        let problem = || ParamProblem::new("concurrency", format!("must be from 1 to {MAX_CONCURRENCY}"));
        given
            .filter(|given| !in_range(given))
            .map(|_| problem())
            .into_iter()
            .collect()
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let items = compile_field(node, "items", functions)?;
        let concurrency = match node.params.get("concurrency").unwrap_or(&Value::Null) {
            Value::Null => node.config.concurrency,
            given => match given.as_u64().and_then(|given| u32::try_from(given).ok()) {
                Some(given) => Some(given),
                None => {
                    return Err(vec![ParamProblem::new(
                        "concurrency",
                        "must be a number, not a template",
                    )]);
                }
            },
        };
        Ok(Behaviour::Splitter(Splitter {
            items,
            concurrency: concurrency.unwrap_or(1).max(1),
        }))
    }
}

/// The parameters of a splitter.
pub struct Splitter {
    items: CompiledValue,
    concurrency: u32,
}

impl Splitter {
    /// The items, in order.
    pub fn items(&self, scope: &dyn Scope) -> Result<Vec<Value>, NodeError> {
        let items = list(&self.items, "items", scope)?;
        match items.len() {
            0..=MAX_ITEMS => Ok(items),
            count => Err(NodeError::expression(format!(
                "items has {count} entries; at most {MAX_ITEMS} are possible"
            ))),
        }
    }

    /// Items at the same time.
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }
}
