//! `set`: makes an object of named values.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{boolean, compile_field};

pub(crate) struct Set;

impl Kind for Set {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "set",
            "Set fields",
            "Makes an object of named values. Output: the fields.",
        )
        .with_shape([
            FieldSpec::required("fields", FieldType::Object, "The values by name."),
            FieldSpec::optional(
                "keepInput",
                FieldType::Boolean,
                "Also keep the fields of the node before; false by default.",
            ),
        ])
        .with_example(json!({ "fields": { "total": "{{1.body.price * 2}}" }, "keepInput": true }))
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let fields = compile_field(node, "fields", functions)?;
        let keep_input = compile_field(node, "keepInput", functions)?;
        Ok(Behaviour::Pure(Box::new(Fields { fields, keep_input })))
    }
}

struct Fields {
    fields: CompiledValue,
    keep_input: CompiledValue,
}

impl Pure for Fields {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let Value::Object(fields) = self.fields.evaluate(scope)? else {
            return Err(NodeError::expression(
                "fields must be an object of values by name",
            ));
        };
        if !boolean(&self.keep_input, "keepInput", scope)?.unwrap_or(false) {
            return Ok(Value::Object(fields));
        }
        let mut output = match Arc::unwrap_or_clone(scope.input()) {
            Value::Object(input) => input,
            _ => Map::new(),
        };
        output.extend(fields);
        Ok(Value::Object(output))
    }
}
