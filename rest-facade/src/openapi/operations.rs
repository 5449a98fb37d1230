//! Methods as operations: parameters, bodies, answers and errors.

use std::collections::BTreeMap;

use contract::options::{Contract, Http, MethodOptions, in_path};
use contract::v1::ErrorReason;
use heck::ToLowerCamelCase;
use prost_reflect::{FieldDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use super::comments::Comments;
use super::schemas::{Direction, Schemas, reference};

/// Errors that each method with a key can answer.
const COMMON: [ErrorReason; 11] = [
    ErrorReason::ValidationError,
    ErrorReason::Unauthenticated,
    ErrorReason::MissingScope,
    ErrorReason::ApiAccessDenied,
    ErrorReason::PlanLimitExceeded,
    ErrorReason::WrongRegion,
    ErrorReason::RateLimited,
    ErrorReason::Cancelled,
    ErrorReason::Internal,
    ErrorReason::Unavailable,
    ErrorReason::DeadlineExceeded,
];

/// Errors that each method with a body can answer besides.
const OF_BODIES: [ErrorReason; 3] = [
    ErrorReason::RequestTimeout,
    ErrorReason::PayloadTooLarge,
    ErrorReason::UnsupportedMediaType,
];

/// Makes operations and collects the answers that they share.
pub(super) struct Operations<'a, 's> {
    contract: &'a Contract,
    comments: &'a Comments,
    schemas: &'s mut Schemas<'a>,
    /// Error answers by name.
    shared: BTreeMap<String, Value>,
}

impl<'a, 's> Operations<'a, 's> {
    pub fn new(contract: &'a Contract, comments: &'a Comments, schemas: &'s mut Schemas<'a>) -> Self {
        Self {
            contract,
            comments,
            schemas,
            shared: BTreeMap::new(),
        }
    }

    pub fn shared_responses(self) -> BTreeMap<String, Value> {
        self.shared
    }

    /// Path, verb and operation of a method, if it has a REST route.
    pub fn operation(
        &mut self,
        method: &MethodDescriptor,
        tag: &str,
    ) -> Option<(String, &'static str, Value)> {
        let options = self.contract.method_options(method);
        let http = options.http.as_ref()?;
        let comment = self.comments.of(&method.parent_file(), method.path());
        let summary = comment
            .split_once(['.', ':', ';'])
            .map_or(comment, |(summary, _)| summary);
        let scope = options
            .scope
            .as_deref()
            .unwrap_or_default()
            .to_lowercase()
            .replacen('_', ":", 1);
        let mut description = comment.to_owned();
        if options.admin_only {
            description.push_str(" For owners and admins only.");
        }
        let mut operation = json!({
            "operationId": method.name().to_lower_camel_case(),
            "tags": [tag],
            "summary": summary,
            "description": description,
            "security": [{"bearer": [scope]}],
        });
        if options.admin_only {
            operation["x-admin-only"] = json!(true);
        }
        let parameters = self.parameters(method, http);
        if !parameters.is_empty() {
            operation["parameters"] = json!(parameters);
        }
        let body = match http.has_body {
            true => self.schemas.body(&method.input(), http),
            false => None,
        };
        if let Some(schema) = body {
            operation["requestBody"] = self.request_body(method, http, schema);
        }
        let mut responses = self.successes(method, &options);
        responses.extend(self.errors(&options, http));
        responses.extend(refusals_of_the_server());
        operation["responses"] = Value::Object(responses);
        Some((path(method, http), http.verb, operation))
    }

    fn request_body(&self, method: &MethodDescriptor, http: &Http, schema: Value) -> Value {
        let in_body =
            |field: &FieldDescriptor| !contract::options::is_outside_body(self.contract, http, field);
        let required = method.input().fields().filter(in_body).any(|field| {
            let rules = self.contract.field_rules(&field);
            self.contract.field_options(&field).required_key
                || rules.is_some_and(|rules| contract::options::is_required(&rules))
        });
        json!({"required": required, "content": {"application/json": {"schema": schema}}})
    }

    fn parameters(&mut self, method: &MethodDescriptor, http: &Http) -> Vec<Value> {
        let mut parameters = Vec::new();
        for field in method
            .input()
            .fields()
            .filter(|field| field.name() != contract::options::MASK)
        {
            let header = self.contract.field_options(&field).header;
            let (place, name) = if in_path(http, &field) {
                ("path", field.json_name())
            } else if !header.is_empty() {
                ("header", header.as_str())
            } else if !http.has_body {
                ("query", field.json_name())
            } else {
                continue;
            };
            let rules = self.contract.field_rules(&field);
            let required =
                place == "path" || rules.is_some_and(|rules| contract::options::is_required(&rules));
            let mut schema = self.schemas.field(&field, Direction::Request);
            let description = schema
                .as_object_mut()
                .and_then(|schema| schema.remove("description"));
            let mut parameter = json!({"name": name, "in": place, "required": required, "schema": schema});
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameters.push(parameter);
        }
        // Path parameters first, in the order of the path.
        parameters.sort_by_key(|parameter| {
            let name = format!("{{{}}}", parameter["name"].as_str().unwrap_or_default());
            match parameter["in"] == "path" {
                true => path(method, http).find(&name).unwrap_or_default(),
                false => usize::MAX,
            }
        });
        parameters
    }

    fn successes(&mut self, method: &MethodDescriptor, options: &MethodOptions) -> Map<String, Value> {
        let headers: Map<String, Value> = shared_headers()
            .keys()
            .filter(|name| !["Retry-After", "Allow"].contains(&name.as_str()))
            .map(|name| {
                (
                    name.clone(),
                    json!({"$ref": format!("#/components/headers/{name}")}),
                )
            })
            .collect();
        let content = if method.is_server_streaming() {
            json!({"text/event-stream": {"schema": self.event(method)}})
        } else if options.success_status == 204 {
            json!({})
        } else {
            json!({"application/json": {"schema": self.schemas.message(&method.output(), Direction::Response)}})
        };
        let mut statuses = vec![options.success_status];
        if !options.created_when.is_empty() {
            statuses.push(201);
        }
        let answer = |status: i32| {
            let mut answer = json!({"description": meaning(status), "headers": headers});
            if content != json!({}) {
                answer["content"] = content.clone();
            }
            (status.to_string(), answer)
        };
        statuses.into_iter().map(answer).collect()
    }

    /// The schema of one Server-Sent Event of a stream.
    fn event(&mut self, method: &MethodDescriptor) -> Value {
        let changes: Vec<FieldDescriptor> = method
            .output()
            .oneofs()
            .flat_map(|oneof| oneof.fields().collect::<Vec<_>>())
            .collect();
        let words: Vec<&str> = changes.iter().map(FieldDescriptor::name).collect();
        let messages = changes
            .iter()
            .filter_map(|field| field.kind().as_message().cloned());
        let schemas: Vec<Value> = messages
            .map(|message| self.schemas.message(&message, Direction::Response))
            .collect();
        json!({
            "type": "object",
            "description": "One of the Server-Sent Events.",
            "properties": {
                "id": {"type": "string", "description": "To continue after it."},
                "event": {"type": "string", "enum": words},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {"oneOf": schemas},
                },
            },
            "required": ["id", "event", "data"],
        })
    }

    /// The errors of a method by HTTP status.
    fn errors(&mut self, options: &MethodOptions, http: &Http) -> Map<String, Value> {
        let mut reasons: Vec<ErrorReason> = COMMON.to_vec();
        if http.has_body {
            reasons.extend(OF_BODIES);
        }
        if options.admin_only {
            reasons.push(ErrorReason::AdminRequired);
        }
        let own = options
            .errors
            .iter()
            .filter_map(|name| ErrorReason::from_name(name));
        for reason in own {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let mut by_status = BTreeMap::<u16, Vec<ErrorReason>>::new();
        for reason in reasons {
            by_status
                .entry(reason.row().http_status)
                .or_default()
                .push(reason);
        }
        by_status
            .into_iter()
            .map(|(status, reasons)| (status.to_string(), self.error(status, &reasons)))
            .collect()
    }

    /// A reference to the answer of one status with these codes; operations with the same codes share it.
    fn error(&mut self, status: u16, reasons: &[ErrorReason]) -> Value {
        let codes: Vec<&str> = reasons.iter().map(|reason| reason.row().code).collect();
        let name = format!("{status}_{}", codes.join("_"));
        if !self.shared.contains_key(&name) {
            let answer = self.error_response(status, reasons);
            self.shared.insert(name.clone(), answer);
        }
        json!({"$ref": format!("#/components/responses/{name}")})
    }

    fn error_response(&mut self, status: u16, reasons: &[ErrorReason]) -> Value {
        let schema = match self
            .contract
            .messages()
            .find(|message| message.name() == "ErrorResponse")
        {
            Some(message) => self.schemas.message(&message, Direction::Response),
            None => reference("ErrorResponse"),
        };
        let table = self.contract.enums().find(|kind| kind.name() == "ErrorReason");
        let comment = |reason: &ErrorReason| {
            let value = table.as_ref().and_then(|table| table.get_value(*reason as i32));
            value.map(|value| {
                self.comments
                    .of(&value.parent_enum().parent_file(), value.path())
                    .to_owned()
            })
        };
        let examples: Map<String, Value> = reasons
            .iter()
            .map(|reason| {
                let message = comment(reason).unwrap_or_default();
                let mut error = json!({"code": reason.row().code, "message": message, "request_id": "0199", "details": []});
                match reason {
                    ErrorReason::WrongRegion => error["base_url"] = json!("https://eu1.example.com"),
                    ErrorReason::RateLimited | ErrorReason::Unavailable => error["retry_after_s"] = json!(3),
                    _ => {}
                }
                (reason.row().code.to_owned(), json!({"summary": message, "value": {"error": error}}))
            })
            .collect();
        let mut headers = json!({"x-request-id": {"$ref": "#/components/headers/x-request-id"}});
        if [429, 503].contains(&status) {
            headers["Retry-After"] = json!({"$ref": "#/components/headers/Retry-After"});
        }
        json!({
            "description": meaning(i32::from(status)),
            "headers": headers,
            "content": {"application/json": {"schema": schema, "examples": examples}},
        })
    }

    /// The operation that serves the document itself.
    pub fn of_this_document(&self) -> Value {
        json!({
            "operationId": "getOpenApi",
            "summary": "Get this document",
            "description": "Get this document. Nobody needs a key for it.",
            "security": [],
            "responses": {
                "200": {
                    "description": meaning(200),
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "304": {"description": meaning(304)},
            },
        })
    }
}

/// What the HTTP server itself answers, before it knows the path: without a body.
fn refusals_of_the_server() -> impl Iterator<Item = (String, Value)> {
    [414, 431]
        .map(|status| (status.to_string(), json!({"description": meaning(status)})))
        .into_iter()
}

/// The path with its parameters by their JSON names.
fn path(method: &MethodDescriptor, http: &Http) -> String {
    method.input().fields().fold(http.path.clone(), |path, field| {
        path.replace(
            &format!("{{{}}}", field.name()),
            &format!("{{{}}}", field.json_name()),
        )
    })
}

/// The headers of answers.
pub(super) fn shared_headers() -> Map<String, Value> {
    let header = |name: &str, kind: &str, description: &str| {
        (
            name.to_owned(),
            json!({"description": description, "schema": {"type": kind}}),
        )
    };
    [
        header(
            "x-request-id",
            "string",
            "The request's id: the caller's, or a new one.",
        ),
        header(
            "RateLimit",
            "string",
            "What is left of the rate limit (IETF draft RateLimit header fields).",
        ),
        header(
            "RateLimit-Policy",
            "string",
            "The rate limit (IETF draft RateLimit header fields).",
        ),
        header("Retry-After", "integer", "Seconds to wait before the next try."),
    ]
    .into_iter()
    .collect()
}

fn meaning(status: i32) -> &'static str {
    match status {
        200 => "Done.",
        201 => "Created.",
        204 => "Done; there is nothing to tell.",
        304 => "The document is the one that the caller has.",
        400 => "The request is not valid, or does not fit the state of what it names.",
        401 => "There is no valid API key.",
        402 => "There is a bill to settle first.",
        403 => "The key, its user or the plan may not do this.",
        404 => "There is no such resource.",
        409 => "The request conflicts with the state of the resource.",
        413 => "The body is too large.",
        414 => "The URL is too long; there is no body.",
        415 => "The body is not JSON.",
        421 => "The key belongs to another region.",
        429 => "Too many requests.",
        431 => "URL and headers together are too long; there is no body.",
        499 => "The caller went away.",
        503 => "The service cannot answer now.",
        504 => "The answer did not come in time.",
        _ => "Something broke inside the service.",
    }
}
