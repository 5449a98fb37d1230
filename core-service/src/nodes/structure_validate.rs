//! `structure_validate`: tells whether a value has the shape of a structure.

use std::sync::Arc;

use contract::v1::StructureField;
use engine::expression::CustomFunctions;
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, Kind, NodeSpec};
use engine::params::{FieldSpec, FieldType, ParamProblem, Resource};
use serde_json::{Value, json};

use super::parameters;
use super::patient::Patient;
use super::request::{Request, store_failure};
use super::{BoxFuture, Executed, Execution, Executor, Registry};
use crate::store::{Store, StoreError};
use crate::structure::issues;

pub(super) fn register(registry: &mut Registry, store: &Store) {
    let store = store.clone();
    registry.add_executed(StructureValidate, Arc::new(Patient(Validator { store })));
}

struct StructureValidate;

impl Kind for StructureValidate {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "structure_validate",
            "Validate against a structure",
            "Tells whether a value has a structure's fields; it may have others. Output: valid; issues, each path and \
             message. A value that is not valid does not fail the node; it fails with NOT_FOUND when there is no such \
             structure.",
        )
        .with_shape([
            FieldSpec::required("structureId", FieldType::String, "The structure's id.")
                .naming(Resource::Structure),
            FieldSpec::optional("value", FieldType::Any, "The value; it must be an object to be valid."),
        ])
        .with_example(json!({ "structureId": "struct_…", "value": "{{1.body}}" }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        parameters::compile(node, functions)
    }
}

struct Validator {
    store: Store,
}

impl Executor for Validator {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let request = Request::of(&execution)?;
            let structure = self
                .store
                .structure(&execution.organization_id, request.text("structureId")?)
                .await
                .map_err(store_failure)?;
            let fields: Vec<StructureField> = serde_json::from_slice(&structure.fields)
                .map_err(|error| store_failure(StoreError::Corrupt(error.to_string())))?;
            let issues = issues(&fields, request.get("value").unwrap_or(&Value::Null));
            let shown: Vec<Value> = issues
                .iter()
                .map(|issue| json!({ "path": issue.path, "message": issue.message }))
                .collect();
            Ok(Executed::Output(
                json!({ "valid": shown.is_empty(), "issues": shown }),
            ))
        })
    }
}
