//! What a service delivers to a trigger's webhook: whether it proves where it comes from, and what it is for.
//!
//! Pure: it is told what came. Absent on purpose: receiving, answering, starting runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use serde_json::{Map, Value};
use sha1::Sha1;
use sha2::Sha256;

use super::connection::{Connection, ConnectionData};
use super::field::with_defaults;
use super::module::Module;
use super::template::{Reach, Template, TemplateError};
use super::trigger::{Encoding, HashFunction, Signature, Webhook};
use super::walk::Connected;
use crate::secret::Secret;

/// How far the clock of a sender may be off, in seconds.
const TOLERANCE_S: i64 = 300;

/// What is known of a trigger when something comes.
pub struct Receiver<'a> {
    /// The node's parameters.
    pub parameters: &'a Map<String, Value>,
    /// The connection it uses.
    pub connected: Connected<'a>,
    /// `url`, `secret` and what `keep` kept.
    pub webhook: &'a Value,
    /// The time, in epoch milliseconds.
    pub now_ms: i64,
}

/// What a delivery is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivered {
    /// It does not prove where it comes from.
    Unproven,
    /// It asks for this answer, and starts nothing.
    Challenge(Value),
    /// It starts nothing.
    Passed,
    /// It starts a run.
    Accepted {
        /// The run's input.
        input: Value,
        /// What tells the delivery from all others, when the manifest says it; a text, whatever its key is.
        key: Option<String>,
    },
}

impl Module {
    /// What a delivery is for: an object with `method`, `query`, `headers` by lower-case name, `body`, and `text`, the body
    /// as it came.
    ///
    /// # Errors
    /// When the manifest's templates give nothing usable, or the module has no webhook.
    pub fn receive(&self, delivery: &Value, receiver: &Receiver<'_>) -> Result<Delivered, TemplateError> {
        let Some(webhook) = &self.webhook else {
            return Err(TemplateError::new("the module has no webhook"));
        };
        let parameters = self.with_defaults(receiver.parameters);
        let public = receiver
            .connected
            .map(|(connection, data)| connection.public(data));
        let mut reach = Reach::new();
        reach.parameters = Some(&parameters);
        reach.connection = public.as_ref();
        reach.webhook = Some(receiver.webhook);
        reach.request = Some(delivery);
        // Only what proves and answers may know secrets; what becomes a run's input may not.
        let all = receiver
            .connected
            .map(|(connection, data)| whole(connection, data));
        let mut privy = reach;
        privy.connection = all.as_ref();
        webhook.answer(&reach, &privy, receiver.now_ms, self.output.as_ref())
    }
}

fn whole(connection: &Connection, data: &ConnectionData) -> Value {
    with_defaults(&connection.fields, data.values())
}

impl Webhook {
    fn answer(
        &self,
        reach: &Reach<'_>,
        privy: &Reach<'_>,
        now_ms: i64,
        output: Option<&Template>,
    ) -> Result<Delivered, TemplateError> {
        // A challenge comes before there is anything to sign with, and gives away no more than its answer.
        if let Some(challenge) = &self.challenge
            && challenge.when.holds(reach)?
        {
            return challenge.answer.evaluate(privy).map(Delivered::Challenge);
        }
        // A template that finds no signature is a delivery without one.
        if !self.verify.holds(privy, now_ms).unwrap_or(false) {
            return Ok(Delivered::Unproven);
        }
        if let Some(accept) = &self.accept
            && !accept.holds(reach)?
        {
            return Ok(Delivered::Passed);
        }
        let input = match output {
            Some(output) => output.evaluate_given(reach)?,
            None => reach
                .request
                .and_then(|request| request.get("body"))
                .cloned()
                .unwrap_or_default(),
        };
        let key = self.key.as_ref().map(|key| key.evaluate(reach)).transpose()?;
        let key = key.filter(|key| !key.is_null()).map(|key| key.to_string());
        Ok(Delivered::Accepted { input, key })
    }
}

impl Signature {
    fn holds(&self, privy: &Reach<'_>, now_ms: i64) -> Result<bool, TemplateError> {
        match self {
            Self::None {} => Ok(true),
            Self::Secret { given, secret } => {
                let secret = key(secret.as_ref(), privy)?;
                Ok(secret.is_some_and(|secret| given.text(privy).is_ok_and(|given| secret.matches(&given))))
            }
            Self::Hmac {
                algorithm,
                signature,
                encoding,
                signed,
                secret,
                timestamp,
            } => {
                if let Some(timestamp) = timestamp
                    && !is_recent(&timestamp.text(privy)?, now_ms)
                {
                    return Ok(false);
                }
                let signed = match signed {
                    Some(signed) => signed.text(privy)?,
                    None => body_text(privy),
                };
                let (Some(key), Some(signature)) = (
                    key(secret.as_ref(), privy)?,
                    encoding.decode(&signature.text(privy)?),
                ) else {
                    return Ok(false);
                };
                let key = key.expose().as_bytes();
                Ok(match algorithm {
                    HashFunction::Sha1 => is_of::<Hmac<Sha1>>(key, &signed, &signature),
                    HashFunction::Sha256 => is_of::<Hmac<Sha256>>(key, &signed, &signature),
                })
            }
        }
    }
}

impl Encoding {
    fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
        }
    }
}

/// The key, `webhook.secret` by default. An empty one would be everybody's.
fn key(secret: Option<&Template>, privy: &Reach<'_>) -> Result<Option<Secret>, TemplateError> {
    let text = match secret {
        Some(secret) => secret.text(privy)?,
        None => {
            let webhook = privy.webhook.and_then(|webhook| webhook.get("secret"));
            webhook.and_then(Value::as_str).unwrap_or_default().to_owned()
        }
    };
    Ok((!text.is_empty()).then(|| Secret::from(text)))
}

fn body_text(privy: &Reach<'_>) -> String {
    let text = privy.request.and_then(|request| request.get("text"));
    text.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_recent(timestamp: &str, now_ms: i64) -> bool {
    let age_s = timestamp
        .parse::<i64>()
        .ok()
        .and_then(|sent_at| (now_ms / 1000).checked_sub(sent_at));
    age_s.is_some_and(|age_s| (-TOLERANCE_S..=TOLERANCE_S).contains(&age_s))
}

fn is_of<M: Mac + KeyInit>(key: &[u8], signed: &str, signature: &[u8]) -> bool {
    let Ok(mut mac) = <M as Mac>::new_from_slice(key) else {
        return false;
    };
    mac.update(signed.as_bytes());
    mac.verify_slice(signature).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;
    use crate::connectors::{App, Apps};

    const NOW_S: i64 = 1_700_000_000;

    fn built_in(app: &str) -> std::sync::Arc<App> {
        let apps = Apps::built_in().unwrap();
        std::sync::Arc::clone(apps.find(app).unwrap())
    }

    fn signed(key: &str, text: &str) -> String {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key.as_bytes()).unwrap();
        mac.update(text.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    fn delivery(headers: Value, body: &Value) -> Value {
        json!({ "method": "POST", "query": {}, "headers": headers, "body": body, "text": body.to_string() })
    }

    fn accepted(input: Value, key: Option<&str>) -> Delivered {
        let key = key.map(str::to_owned);
        Delivered::Accepted { input, key }
    }

    /// What a built-in trigger makes of a delivery.
    fn received(app: &str, module: &str, values: Value, webhook: &Value, delivery: &Value) -> Delivered {
        let app = built_in(app);
        let connection = &app.connections[0];
        let data = connection
            .read_whole(values.as_object().unwrap().clone())
            .ok()
            .unwrap();
        let receiver = Receiver {
            parameters: &Map::new(),
            connected: Some((connection, &data)),
            webhook,
            now_ms: NOW_S * 1000,
        };
        app.module(module).unwrap().receive(delivery, &receiver).unwrap()
    }

    #[test]
    fn a_signed_body_is_accepted() {
        let (body, webhook) = (json!({ "action": "opened" }), json!({ "secret": "s3cret" }));
        let github = |signature: String, event: &str| {
            let headers = json!({ "x-hub-signature-256": signature, "x-github-event": event });
            let values = json!({ "token": "t" });
            received(
                "github",
                "repository_event",
                values,
                &webhook,
                &delivery(headers, &body),
            )
        };
        let right = format!("sha256={}", signed("s3cret", &body.to_string()));
        let input = json!({ "event": "issues", "body": { "action": "opened" } });
        assert_eq!(github(right.clone(), "issues"), accepted(input, None));
        assert_eq!(github(right, "ping"), Delivered::Passed);
        assert_eq!(github(String::new(), "issues"), Delivered::Unproven);
        let wrong = format!("sha256={}", signed("other", &body.to_string()));
        assert_eq!(github(wrong, "issues"), Delivered::Unproven);
    }

    #[test]
    fn a_signature_holds_for_five_minutes() {
        let body = json!({ "type": "event_callback", "event": { "type": "message" }, "event_id": "E1" });
        let slack = |sent_at: i64| {
            let signature = signed("sign", &format!("v0:{sent_at}:{body}"));
            let headers = json!({
                "x-slack-signature": format!("v0={signature}"), "x-slack-request-timestamp": sent_at.to_string(),
            });
            let values = json!({ "token": "xoxb-1", "signingSecret": "sign" });
            received("slack", "event", values, &json!({}), &delivery(headers, &body))
        };
        let input = json!({ "event": { "type": "message" }, "id": "E1" });
        assert_eq!(slack(NOW_S), accepted(input, Some("\"E1\"")));
        assert_eq!(slack(NOW_S - 301), Delivered::Unproven);
        assert_eq!(slack(NOW_S + 301), Delivered::Unproven);
    }

    #[test]
    fn a_challenge_is_answered_and_an_empty_secret_proves_nothing() {
        let values = json!({ "token": "xoxb-1" });
        let body = json!({ "type": "url_verification", "challenge": "c" });
        let answer = received(
            "slack",
            "event",
            values.clone(),
            &json!({}),
            &delivery(json!({}), &body),
        );
        assert_eq!(answer, Delivered::Challenge(json!("c")));
        let body = json!({ "type": "event_callback" });
        let signature = signed("", &format!("v0:{NOW_S}:{body}"));
        let headers = json!({
            "x-slack-signature": format!("v0={signature}"), "x-slack-request-timestamp": NOW_S.to_string(),
        });
        let unsigned = received("slack", "event", values, &json!({}), &delivery(headers, &body));
        assert_eq!(unsigned, Delivered::Unproven);
    }

    #[test]
    fn a_secret_in_a_header_is_compared_and_a_signature_may_name_its_time() {
        let body = json!({ "update_id": 1 });
        let telegram = |secret: &str| {
            let headers = json!({ "x-telegram-bot-api-secret-token": secret });
            let webhook = json!({ "secret": "right" });
            received(
                "telegram",
                "update",
                json!({ "token": "1:a" }),
                &webhook,
                &delivery(headers, &body),
            )
        };
        assert_eq!(telegram("right"), accepted(body.clone(), Some("1")));
        assert_eq!(telegram("wrong"), Delivered::Unproven);
        let signature = signed("whsec", &format!("{NOW_S}.{body}"));
        let headers = json!({ "stripe-signature": format!("t={NOW_S},v1={signature},v0=00") });
        let webhook = json!({ "signingSecret": "whsec" });
        let stripe = received(
            "stripe",
            "event",
            json!({ "token": "sk_1" }),
            &webhook,
            &delivery(headers, &body),
        );
        assert_eq!(stripe, accepted(body, None));
    }
}
