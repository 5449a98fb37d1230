//! Calls of webhook URLs: the product's hottest path. A call is answered once its run is durable.
//!
//! Deliberately absent: the modes that answer with the run's output, and verification. A trigger that asks for one of
//! them is refused rather than answered otherwise.

use std::sync::Arc;

use contract::access::Public;
use contract::v1::{self, ErrorReason};
use engine::kinds::{ResponseMode, Verify};
use engine::start::{Start, StartError, StartFrom};
use serde_json::{Map, Value, json};

use super::run::start;
use super::target::Target;
use super::{Services, service};
use crate::auth::Authorized;
use crate::clock;
use crate::error::{Error, Result};
use crate::runtime::{GraphRef, PlanError, StartRun, StartRunError, Trigger};
use crate::store::IdempotencyKey;

/// The largest message: the largest body an operator may allow, and its headers.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The deepest nesting of a JSON body.
const MAX_DEPTH: usize = contract::json::MAX_DEPTH;
/// Headers that make a repeated delivery find the first run, in order of precedence.
const DELIVERY_IDS: [&str; 2] = ["webhook-id", "idempotency-key"];
const MAX_DELIVERY_ID: usize = 255;

pub(super) struct WebhookIngress {
    services: Services,
}

contract::webhook_ingress_service_methods!(service, WebhookIngress);

impl WebhookIngress {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn receive_webhook(
        &self,
        _caller: Authorized<Public>,
        request: v1::ReceiveWebhookRequest,
    ) -> Result<v1::ReceiveWebhookResponse> {
        let target = self.services.targets.find(&request.webhook_id).await?;
        let target = target.ok_or_else(|| Error::not_found("webhook"))?;
        if target.method() != request.method {
            let message = format!("The webhook takes {}, not {}.", target.method(), request.method);
            return Err(Error::new(ErrorReason::MethodNotAllowed, message).with_allow(target.method()));
        }
        let run = run(&target, request)?;
        start::check_billing(&target.row.organization)?;
        let started = self
            .services
            .runtime
            .start_run(run)
            .await
            .map_err(|error| match error {
                StartRunError::Start(StartError::UnknownNode(_) | StartError::NotATrigger(_))
                | StartRunError::Plan(PlanError::NotFound) => not_live(),
                error => error.into(),
            })?;
        tracing::debug!(
            run_id = started.run_id,
            replayed = started.replayed,
            "a webhook was accepted"
        );
        let body = format!(
            "{{\"data\":{{\"runId\":\"{}\",\"accepted\":true}}}}",
            started.run_id
        );
        let json = v1::HttpHeader {
            name: "content-type".to_owned(),
            value: b"application/json".to_vec(),
        };
        Ok(v1::ReceiveWebhookResponse {
            status: 202,
            headers: vec![json],
            body: body.into_bytes(),
        })
    }
}

fn not_live() -> Error {
    Error::new(
        ErrorReason::WorkflowNotLive,
        "The workflow behind the webhook is not active, not deployed, or lacks its trigger.",
    )
}

/// The run that a call starts.
fn run(target: &Target, request: v1::ReceiveWebhookRequest) -> Result<StartRun> {
    let body = body(&request)?;
    let Target {
        row: target,
        settings,
    } = target;
    let live = target.enabled && target.active;
    let (Some(binding), Some(deployment), Some(settings), true) =
        (&target.binding, &target.deployment, settings, live)
    else {
        return Err(not_live());
    };
    if settings.response_mode != ResponseMode::Immediate || settings.verify != Verify::None {
        return Err(Error::unimplemented());
    }
    let idempotency = delivery_id(&request);
    let v1::ReceiveWebhookRequest {
        webhook_id,
        method,
        headers,
        query,
        ..
    } = request;
    let input = json!({ "body": body, "headers": header_object(headers), "query": query_object(&query), "method": method });
    Ok(StartRun {
        organization_id: target.organization.id.clone(),
        workflow_id: binding.workflow_id.clone(),
        workflow_name: target.workflow_name.clone().unwrap_or_default(),
        graph: GraphRef::Stored(deployment.content_hash.clone()),
        version_no: Some(deployment.version_no),
        start: Start {
            attempt: 1,
            from: StartFrom::Trigger(binding.node_id),
            input: Arc::new(input),
            seeds: Vec::new(),
            timeout_ms: target.execution_timeout_ms.map(i64::unsigned_abs),
        },
        trigger: Trigger {
            kind: "webhook".to_owned(),
            node_id: Some(binding.node_id),
            webhook_id: Some(webhook_id),
        },
        idempotency,
        tick: None,
        created_by: None,
        metered: target.organization.is_metered(),
    })
}

/// The key that a delivery's own id makes; the body does not count, a repeated id is a repeated delivery.
fn delivery_id(request: &v1::ReceiveWebhookRequest) -> Option<IdempotencyKey> {
    let id = DELIVERY_IDS.iter().find_map(|name| header(request, name))?;
    let usable = (1..=MAX_DELIVERY_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    usable.then(|| IdempotencyKey {
        key: format!("{}/{id}", request.webhook_id),
        body_hash: Vec::new(),
        expires_at: clock::now_ms() + start::KEY_LIFETIME_MS,
    })
}

fn header<'a>(request: &'a v1::ReceiveWebhookRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|header| header.name == name)?;
    std::str::from_utf8(&found.value).ok()
}

/// The body as its content type says.
fn body(request: &v1::ReceiveWebhookRequest) -> Result<Value> {
    let declared = header(request, "content-type").unwrap_or_default();
    let kind = declared
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind.as_str() {
        _ if request.body.is_empty() => Ok(Value::Null),
        "" | "application/json" => json_body(&request.body),
        kind if kind.starts_with("application/") && kind.ends_with("+json") => json_body(&request.body),
        "application/x-www-form-urlencoded" => Ok(query_object(&text_body(&request.body)?)),
        kind if kind.starts_with("text/") => Ok(Value::String(text_body(&request.body)?)),
        kind => {
            let message = format!("The webhook takes JSON, forms and text, not {kind}.");
            Err(Error::new(ErrorReason::UnsupportedMediaType, message))
        }
    }
}

fn json_body(bytes: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid("", format!("the body is not JSON: {error}")))?;
    match is_deeper(&value, MAX_DEPTH) {
        true => Err(Error::invalid(
            "",
            format!("the body is nested deeper than {MAX_DEPTH} levels"),
        )),
        false => Ok(value),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
        _ => false,
    }
}

fn text_body(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::invalid("", "the body is not UTF-8 text"))
}

/// Headers by name; those that come several times are joined by commas.
fn header_object(headers: Vec<v1::HttpHeader>) -> Value {
    let mut object = Map::new();
    for header in headers {
        let text = String::from_utf8_lossy(&header.value).into_owned();
        match object.get_mut(&header.name) {
            Some(Value::String(before)) => {
                before.push_str(", ");
                before.push_str(&text);
            }
            _ => _ = object.insert(header.name, Value::String(text)),
        }
    }
    Value::Object(object)
}

/// Parameters by name; those that come several times are arrays.
fn query_object(query: &str) -> Value {
    let mut object = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = Value::String(value.into_owned());
        match object.get_mut(name.as_ref()) {
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
            None => _ = object.insert(name.into_owned(), value),
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn call(content_type: &str, body: &[u8]) -> v1::ReceiveWebhookRequest {
        let header = v1::HttpHeader {
            name: "content-type".to_owned(),
            value: content_type.as_bytes().to_vec(),
        };
        v1::ReceiveWebhookRequest {
            headers: vec![header],
            body: body.to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn bodies_are_read_as_their_type_says() {
        assert_eq!(
            body(&call("application/json; charset=utf-8", b"{\"a\":1}")).unwrap(),
            json!({"a": 1})
        );
        assert_eq!(
            body(&call("application/cloudevents+json", b"[1]")).unwrap(),
            json!([1])
        );
        assert_eq!(
            body(&call("text/plain", "grüß".as_bytes())).unwrap(),
            json!("grüß")
        );
        let form = body(&call("application/x-www-form-urlencoded", b"a=1&b=x+y&a=2")).unwrap();
        assert_eq!(form, json!({"a": ["1", "2"], "b": "x y"}));
        assert_eq!(body(&call("application/json", b"")).unwrap(), Value::Null);
        assert!(body(&call("application/json", b"{")).is_err());
        assert!(body(&call("text/plain", &[0xff])).is_err());
        assert_eq!(
            body(&call("image/png", b"x")).unwrap_err().reason(),
            ErrorReason::UnsupportedMediaType
        );
    }

    #[test]
    fn bodies_nest_to_the_limit() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(body(&call("application/json", nested(64).as_bytes())).is_ok());
        assert!(body(&call("application/json", nested(65).as_bytes())).is_err());
    }

    #[test]
    fn repeated_headers_are_joined() {
        let header = |value: &str| v1::HttpHeader {
            name: "accept".to_owned(),
            value: value.as_bytes().to_vec(),
        };
        assert_eq!(
            header_object(vec![header("a"), header("b")]),
            json!({"accept": "a, b"})
        );
    }
}
