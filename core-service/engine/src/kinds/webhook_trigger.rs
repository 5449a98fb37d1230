//! `webhook_trigger`: starts a run for each accepted request to the webhook's URL.
//!
//! Receiving, verifying and answering requests is the service's; the settings it needs are read here.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::expression::CustomFunctions;
use crate::graph::{MAX_NAME, Node};
use crate::kind::{Behaviour, Kind, NodeSpec};
use crate::params::{Completeness, FieldSpec, FieldType, ParamProblem};

/// The methods a webhook may be called with.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Longest time a caller waits for the response, in milliseconds.
const MAX_RESPONSE_TIMEOUT_MS: u64 = 300_000;

/// The parameters of a webhook trigger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// The method requests must have.
    pub method: String,
    /// When and with what a request is answered.
    pub response_mode: ResponseMode,
    /// Milliseconds until a caller who waits for the run is answered with a time-out.
    pub response_timeout_ms: u64,
    /// How requests prove where they come from.
    pub verify: Verify,
}

/// When and with what a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseMode {
    /// As soon as the run is accepted.
    #[default]
    Immediate,
    /// When the run ends, with the output of the node that finished last.
    LastNode,
    /// With what a `webhook_response` node says.
    RespondNode,
}

/// How requests prove where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verify {
    /// Not at all.
    #[default]
    None,
    /// The header holds the secret.
    Header {
        /// Its name.
        header: String,
        /// Text, or a template of a variable.
        secret: String,
    },
    /// The header holds the HMAC-SHA-256 of the body in hexadecimal.
    HmacSha256 {
        /// Its name.
        #[serde(default = "default_signature_header")]
        header: String,
        /// Text, or a template of a variable.
        secret: String,
    },
    /// As the Standard Webhooks specification says.
    StandardWebhooks {
        /// Text, or a template of a variable.
        secret: String,
    },
}

fn default_signature_header() -> String {
    String::from("x-signature")
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            method: String::from("POST"),
            response_mode: ResponseMode::default(),
            response_timeout_ms: 30_000,
            verify: Verify::default(),
        }
    }
}

impl WebhookSettings {
    /// Reads the parameters of a webhook trigger node.
    pub fn from_params(params: &Map<String, Value>) -> Result<Self, ParamProblem> {
        let given = params.iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self::deserialize(Value::Object(given)).map_err(|error| ParamProblem::new("", error.to_string()))
    }
}

pub(crate) struct WebhookTrigger;

impl Kind for WebhookTrigger {
    fn spec(&self) -> NodeSpec {
        NodeSpec::trigger(
            "webhook_trigger",
            "Webhook",
            "Starts a run for each accepted request to the webhook's URL. Output: body, headers, query, method.",
        )
        .with_shape([
            FieldSpec::optional("method", FieldType::choice(&METHODS), "The method of requests; POST by default."),
            FieldSpec::optional(
                "responseMode",
                FieldType::choice(&["immediate", "last_node", "respond_node"]),
                "Answer at once (the default), with the output of the node that finished last, or with what a \
                 webhook_response node says.",
            ),
            FieldSpec::optional(
                "responseTimeoutMs",
                FieldType::Integer,
                "Milliseconds a caller waits at most when the answer depends on the run; 30,000 by default.",
            ),
            FieldSpec::optional(
                "verify",
                FieldType::Object,
                "How requests prove where they come from: type (none, header, hmac_sha256, standard_webhooks), \
                 header, secret. The secret may be {{$vars.NAME}}.",
            ),
        ])
        .with_example(json!({
            "method": "POST",
            "responseMode": "immediate",
            "verify": { "type": "hmac_sha256", "header": "x-signature", "secret": "{{$vars.WEBHOOK_SECRET}}" }
        }))
    }

    fn check(&self, params: &Map<String, Value>, completeness: Completeness) -> Vec<ParamProblem> {
        let mut problems = Vec::new();
        let in_range = |timeout: &Value| {
            timeout
                .as_u64()
                .is_some_and(|ms| (1..=MAX_RESPONSE_TIMEOUT_MS).contains(&ms))
        };
        if params
            .get("responseTimeoutMs")
            .is_some_and(|timeout| timeout.is_number() && !in_range(timeout))
        {
            let message = format!("must be from 1 to {MAX_RESPONSE_TIMEOUT_MS}");
            problems.push(ParamProblem::new("responseTimeoutMs", message));
        }
        if let (Completeness::Complete, true) = (completeness, problems.is_empty()) {
            match WebhookSettings::from_params(params) {
                Ok(settings) => {
                    problems.extend(header_problem(&settings.verify));
                    problems.extend(secret_problem(&settings.verify));
                }
                Err(problem) => problems.push(problem),
            }
        }
        problems
    }

    fn compile(
        &self,
        _node: &Node,
        _functions: &dyn CustomFunctions,
    ) -> Result<Behaviour, Vec<ParamProblem>> {
        Ok(Behaviour::Trigger)
    }
}

/// An empty secret would be everybody's.
fn secret_problem(verify: &Verify) -> Option<ParamProblem> {
    let (Verify::Header { secret, .. }
    | Verify::HmacSha256 { secret, .. }
    | Verify::StandardWebhooks { secret }) = verify
    else {
        return None;
    };
    secret
        .is_empty()
        .then(|| ParamProblem::new("verify.secret", "must not be empty"))
}

fn header_problem(verify: &Verify) -> Option<ParamProblem> {
    let (Verify::Header { header, .. } | Verify::HmacSha256 { header, .. }) = verify else {
        return None;
    };
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let valid = !header.is_empty() && header.len() <= MAX_NAME && header.bytes().all(is_token);
    (!valid).then(|| ParamProblem::new("verify.header", "must be the name of an HTTP header"))
}
