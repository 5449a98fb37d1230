//! Rehearsals of triggers that services call: what these are told, and what comes of what they deliver.

use serde_json::{Map, Value, json};

use super::request::gathered;
use super::{Stage, compare};
use crate::connectors::{Becomes, Delivered, Module, Receiver, Trial, TrialDelivery};

const FORM: &str = "application/x-www-form-urlencoded";

impl Stage<'_> {
    /// Runs one test of a trigger with a webhook. Says what is not as expected.
    pub(super) fn listen(
        &self,
        module: &Module,
        trial: &Trial,
        webhook: &Map<String, Value>,
    ) -> Result<(), String> {
        let webhook = Value::Object(webhook.clone());
        if let Some(delivery) = &trial.delivery {
            let receiver = Receiver {
                parameters: &trial.parameters,
                connected: self.connected,
                webhook: &webhook,
                now_ms: delivery.at.saturating_mul(1_000),
            };
            return delivered(module, trial, delivery, &receiver);
        }
        let walk = self
            .app
            .attach(module, &trial.parameters, self.connected, &webhook, trial.detach);
        let walk = walk.map_err(|error| error.to_string())?;
        let walk = walk.ok_or("nobody is told anything")?;
        let outcome = self.perform(walk, &trial.exchanges)?;
        compare(trial, outcome, trial.output.clone())
    }
}

fn delivered(
    module: &Module,
    trial: &Trial,
    delivery: &TrialDelivery,
    receiver: &Receiver<'_>,
) -> Result<(), String> {
    let request = json!({
        "method": delivery.method,
        "query": delivery.query,
        "headers": delivery.headers,
        "body": body(delivery),
        "text": delivery.text,
    });
    let received = module.receive(&request, receiver);
    let (becomes, output, key) = match received.map_err(|error| error.to_string())? {
        Delivered::Accepted { input, key } => (Becomes::Run, Some(input), key),
        Delivered::Challenge(answer) => (Becomes::Answer, Some(answer), None),
        Delivered::Passed => (Becomes::Nothing, None, None),
        Delivered::Unproven => (Becomes::Refused, None, None),
    };
    if becomes != delivery.becomes {
        return Err(format!("becomes {becomes:?} and not {:?}", delivery.becomes));
    }
    let wanted = delivery.key.as_ref().map(Value::to_string);
    if wanted.is_some() && wanted != key {
        return Err(format!("has the key {key:?}\n  and not {wanted:?}"));
    }
    match output {
        Some(output) => compare(trial, Ok(output), trial.output.clone()),
        None => Ok(()),
    }
}

fn body(delivery: &TrialDelivery) -> Value {
    let content_type = delivery.headers.get("content-type").and_then(Value::as_str);
    match content_type {
        Some(FORM) => gathered(
            form_urlencoded::parse(delivery.text.as_bytes()).map(|(name, value)| (name.into(), value.into())),
        ),
        _ => serde_json::from_str(&delivery.text).unwrap_or_default(),
    }
}
