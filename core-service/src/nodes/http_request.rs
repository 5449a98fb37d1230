//! `http_request`: sends a request to any service.

use engine::expression::CustomFunctions;
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType, ParamProblem};
use serde_json::{Map, Value, json};

use super::http::{Call, Caller, HttpCaller, METHODS, Pagination};
use super::{BoxFuture, Executed, Execution, Executor, parameters};

/// The kind.
pub struct HttpRequest;

impl Kind for HttpRequest {
    fn spec(&self) -> NodeSpec {
        NodeSpec::step(
            "http_request",
            "HTTP request",
            "Sends a request to any service. Output: status, headers, body, durationMs. Private addresses, more than 5 \
             redirects and answers above 10 MiB are refused. Codes: HTTP_ERROR, HTTP_BLOCKED, HTTP_UNREACHABLE, \
             CREDENTIAL_INVALID.",
        )
        .with_shape(shape())
        .with_example(json!({
            "method": "POST",
            "url": "https://api.example.com/orders",
            "query": { "notify": true },
            "headers": { "x-source": "switchyard" },
            "body": { "id": "{{1.body.id}}", "total": "{{1.body.total}}" },
            "failOn": "error_status"
        }))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let pagination = params.get("pagination").filter(|value| value.is_object());
        let literal = pagination.filter(|value| !value.to_string().contains("{{"));
        let read = literal.map(serde_path_to_error::deserialize::<_, Pagination>);
        let problem = match read {
            None => None,
            Some(Ok(read)) => read
                .problem()
                .map(|(field, message)| ParamProblem::new(field, message).under("pagination")),
            Some(Err(error)) => Some(ParamProblem::new("pagination", error.to_string())),
        };
        problem.into_iter().collect()
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        parameters::compile(node, functions)
    }
}

fn shape() -> [FieldSpec; 11] {
    let optional = FieldSpec::optional;
    [
        optional(
            "method",
            FieldType::choice(&METHODS),
            "The method; GET by default.",
        ),
        FieldSpec::required("url", FieldType::String, "Where the request goes."),
        optional("headers", FieldType::Object, "Header values by name."),
        optional(
            "query",
            FieldType::Object,
            "Query parameters by name; they join the URL's own.",
        ),
        optional("body", FieldType::Any, "What is sent."),
        optional(
            "bodyType",
            FieldType::choice(&["json", "form", "multipart", "raw"]),
            "How the body is written: json by default; form and multipart take an object of values by name (a file of \
             multipart is {filename, contentType, content or base64}), raw a text or {base64}.",
        ),
        optional(
            "credentialId",
            FieldType::String,
            "The credential to send, of any app; the node's own by default.",
        ),
        optional(
            "pagination",
            FieldType::Object,
            "Gathers the pages of a list into body: type (link_header, next_url, cursor, page, offset), items (path of \
             the list in a page), next (path of the next URL or cursor), parameter (of the query), start, maxPages (10 \
             by default, at most 100).",
        ),
        optional(
            "failOn",
            FieldType::choice(&["error_status", "never"]),
            "Whether a status of 400 and up fails the node, as it does by default.",
        ),
        optional(
            "followRedirects",
            FieldType::Boolean,
            "Whether redirects are followed, as they are by default.",
        ),
        optional(
            "responseType",
            FieldType::choice(&["auto", "json", "text", "base64"]),
            "How the response's body is read; by its content type by default.",
        ),
    ]
}

/// Who executes the kind.
pub struct HttpRequests(pub HttpCaller);

impl Executor for HttpRequests {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let call = Call::read(execution.request.clone())?;
            let named = call
                .credential_id
                .as_deref()
                .or(execution.credential_id.as_deref());
            let (organization_id, apps) = (&execution.organization_id, &execution.apps);
            let credential = self.0.credential(organization_id, named, apps).await?;
            let caller = Caller::of_node(&execution, None, credential.as_ref());
            self.0.call(call, caller).await.map(Executed::Output)
        })
    }
}
