//! `webhook_response`: says what the caller of the webhook is answered.

use serde_json::{Map, Value, json};

use crate::expression::{CompiledValue, CustomFunctions};
use crate::failure::{NodeError, brief};
use crate::graph::{MAX_NAME, Node};
use crate::kind::{Behaviour, Kind, NodeSpec, Pure};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem};
use crate::scope::NodeScope;

use super::support::{compile_field, type_name};

/// Headers that belong to the connection or that the server sets itself.
const NOT_THE_WORKFLOWS: [&str; 10] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const MAX_HEADERS: usize = 100;
/// Longest value of a header, in bytes.
const MAX_HEADER: usize = 8_192;

pub(crate) struct WebhookResponse;

impl Kind for WebhookResponse {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            "webhook_response",
            "Webhook response",
            "Says what the caller of the webhook is answered, when its trigger's responseMode is respond_node; the first \
             one that completes counts, and the run goes on. A run that succeeds without one is answered with 204. \
             Output: status, headers, body.",
        )
        .with_shape([
            FieldSpec::optional(
                "status",
                FieldType::Integer,
                "The HTTP status, from 200 to 599; 200 by default.",
            ),
            FieldSpec::optional(
                "headers",
                FieldType::Object,
                "Header values by name; not those of the connection, such as Content-Length.",
            ),
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

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let headers = params.get("headers").and_then(Value::as_object);
        let problem = |(name, value): (&String, &Value)| {
            let is_template = value.as_str().is_some_and(|text| text.contains("{{"));
            let found = name_problem(name).or_else(|| {
                if is_template {
                    None
                } else {
                    header_text(value).err()
                }
            });
            found.map(|message| ParamProblem::new(format!("headers.{name}"), message))
        };
        headers.into_iter().flatten().filter_map(problem).collect()
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
                        "status must be from 200 to 599, not {}",
                        brief(&given)
                    )));
                }
            },
        };
        let headers = match self.headers.evaluate(scope)? {
            Value::Null => Map::new(),
            Value::Object(headers) => checked(headers)?,
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

/// Headers that can be sent, their values as text.
fn checked(headers: Map<String, Value>) -> Result<Map<String, Value>, NodeError> {
    if headers.len() > MAX_HEADERS {
        return Err(NodeError::expression(format!(
            "headers has more than {MAX_HEADERS} names"
        )));
    }
    let check = |(name, value): (String, Value)| {
        let text = name_problem(&name).map_or_else(|| header_text(&value), Err);
        match text {
            Ok(text) => Ok((name, Value::String(text))),
            Err(message) => Err(NodeError::expression(format!("headers.{name:.60} {message}"))),
        }
    };
    headers.into_iter().map(check).collect()
}

/// Why a name is none that a workflow may set.
fn name_problem(name: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token) {
        return Some(String::from("must be the name of an HTTP header"));
    }
    let own = NOT_THE_WORKFLOWS.iter().any(|own| own.eq_ignore_ascii_case(name));
    own.then(|| String::from("is the server's to set"))
}

/// The text of a header: nothing that would begin another one.
fn header_text(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        other => return Err(format!("must be text, not {}", type_name(other))),
    };
    let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    match text.len() <= MAX_HEADER && text.bytes().all(visible) {
        true => Ok(text),
        false => Err(format!(
            "must be at most {MAX_HEADER} printable ASCII characters in one line"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_cannot_be_sent_are_refused_when_they_are_saved() {
        let headers = json!({ "headers": {
            "x-ok": "{{1.body.id}}",
            "x-number": 5,
            "Content-Length": "5",
            "transfer-encoding": "chunked",
            "a b": "x",
            "x-split": "a\r\nset-cookie: b",
            "x-list": [],
        } });
        let found = WebhookResponse.check(headers.as_object().unwrap_or(&Map::new()), Completeness::Draft);
        let paths: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
        let expected = ["Content-Length", "transfer-encoding", "a b", "x-split", "x-list"];
        assert_eq!(paths, expected.map(|name| format!("headers.{name}")));
    }

    #[test]
    fn evaluated_headers_are_text() {
        let headers = json!({ "a": 1, "b": true, "c": "d" });
        let checked = checked(headers.as_object().cloned().unwrap_or_default());
        assert_eq!(
            checked.ok().map(Value::Object),
            Some(json!({ "a": "1", "b": "true", "c": "d" }))
        );
        for wrong in [
            json!({ "a": "x\ny" }),
            json!({ "a": null }),
            json!({ "a": "ü" }),
            json!({ "": "x" }),
        ] {
            assert!(
                super::checked(wrong.as_object().cloned().unwrap_or_default()).is_err(),
                "{wrong}"
            );
        }
    }
}
