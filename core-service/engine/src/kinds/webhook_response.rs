//! `webhook_response`: says what the caller of the webhook is answered.

use serde_json::{Value, json};

use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::NodeError;
use crate::graph::Node;
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{compile_field, type_name};

pub(crate) struct WebhookResponse;

impl Kind for WebhookResponse {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            "webhook_response",
            "Webhook response",
            "Says what the caller of the webhook is answered. Output: status, headers, body.",
        )
        .with_shape([
            FieldSpec::optional(
                "status",
                FieldType::Integer,
                "The HTTP status, from 200 to 599; 200 by default.",
            ),
            FieldSpec::optional("headers", FieldType::Object, "Header values by name."),
            FieldSpec::optional(
                "body",
                FieldType::Any,
                "The body: text as it is, anything else as JSON.",
            ),
        ])
        .with_example(
            json!({ "status": 201, "headers": { "x-order": "{{1.body.id}}" }, "body": { "ok": true } }),
        )
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let status = compile_field(node, "status", functions)?;
        let headers = compile_field(node, "headers", functions)?;
        let body = compile_field(node, "body", functions)?;
        Ok(Behaviour::Pure(Box::new(Response {
            status,
            headers,
            body,
        })))
    }
}

struct Response {
    status: CompiledValue,
    headers: CompiledValue,
    body: CompiledValue,
}

impl Pure for Response {
    fn evaluate(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let status = match self.status.evaluate(scope)? {
            Value::Null => 200,
            given => match given.as_u64().filter(|status| (200..=599).contains(status)) {
                Some(status) => status,
                None => {
                    return Err(NodeError::expression(format!(
                        "status must be from 200 to 599, not {given:.60}"
                    )));
                }
            },
        };
        let headers = match self.headers.evaluate(scope)? {
            Value::Null => json!({}),
            Value::Object(headers) => Value::Object(headers),
            other => {
                let what = type_name(&other);
                return Err(NodeError::expression(format!(
                    "headers must be an object, not {what}"
                )));
            }
        };
        Ok(json!({ "status": status, "headers": headers, "body": self.body.evaluate(scope)? }))
    }
}
