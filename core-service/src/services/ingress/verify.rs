//! How calls prove where they come from. Secrets are resolved when a target is looked up, compared in constant time, and
//! what fails is told nothing about why.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contract::v1::{self, ErrorReason};
use engine::expression::{EvaluationError, NoCustomFunctions, Root, Scope, Template};
use engine::kinds::Verify;
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::header;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::variables::VariableSet;

/// What a run sees of a secret.
const HIDDEN: &[u8] = b"***";

/// How far the clock of a sender may be off, in seconds.
const TOLERANCE_S: i64 = 300;
/// What a secret of Standard Webhooks begins with.
const STANDARD_PREFIX: &str = "whsec_";
/// What a signature of Standard Webhooks begins with, when it is a symmetric one.
const STANDARD_VERSION: &str = "v1,";

/// A check of calls, with its secret.
pub(in crate::services) enum Verifier {
    /// All calls pass.
    Open,
    /// A header holds the secret.
    Header { name: String, secret: Secret },
    /// A header holds the HMAC-SHA-256 of the body in hexadecimal, perhaps after `sha256=`.
    Hmac { name: String, key: Hmac<Sha256> },
    /// As the Standard Webhooks specification says.
    Standard { key: Hmac<Sha256> },
    /// No call passes: the secret is missing or unusable.
    Closed,
}

impl Verifier {
    /// The check that a trigger asks for. `variables` are those that its secret may name.
    pub(in crate::services) fn of(verify: &Verify, variables: &VariableSet) -> Self {
        let made = match verify {
            Verify::None => return Self::Open,
            Verify::Header { header, secret } => resolve(secret, variables).map(|secret| Self::Header {
                name: header.to_ascii_lowercase(),
                secret: Secret::from(secret),
            }),
            Verify::HmacSha256 { header, secret } => {
                let key = resolve(secret, variables).and_then(|secret| key(secret.as_bytes()));
                key.map(|key| Self::Hmac {
                    name: header.to_ascii_lowercase(),
                    key,
                })
            }
            Verify::StandardWebhooks { secret } => {
                let key = resolve(secret, variables).and_then(|secret| standard_key(&secret));
                key.map(|key| Self::Standard { key })
            }
        };
        made.unwrap_or_else(|| {
            tracing::warn!("a webhook's secret is missing or unusable; its calls are refused");
            Self::Closed
        })
    }

    /// Whether a trigger's secret is made of variables.
    pub(in crate::services) fn reads_variables(verify: &Verify) -> bool {
        match verify {
            Verify::None => false,
            Verify::Header { secret, .. }
            | Verify::HmacSha256 { secret, .. }
            | Verify::StandardWebhooks { secret } => secret.contains("{{"),
        }
    }

    /// Hides the secret that a call has shown: its run keeps what started it.
    pub(super) fn hide(&self, request: &mut v1::ReceiveWebhookRequest) {
        if let Self::Header { name, .. } = self {
            let shown = request.headers.iter_mut();
            for header in shown.filter(|header| header.name == *name) {
                header.value = HIDDEN.to_vec();
            }
        }
    }

    /// Refuses a call that does not prove where it comes from. `now_ms` is the time of the call.
    ///
    /// # Errors
    /// UNAUTHENTICATED
    pub(super) fn check(&self, request: &v1::ReceiveWebhookRequest, now_ms: i64) -> Result<()> {
        let proven = match self {
            Self::Open => true,
            Self::Closed => false,
            Self::Header { name, secret } => header(request, name).is_some_and(|given| secret.matches(given)),
            Self::Hmac { name, key } => header(request, name).is_some_and(|given| {
                let given = given.strip_prefix("sha256=").unwrap_or(given);
                hex::decode(given).is_ok_and(|given| is_of(key, &[&request.body], &given))
            }),
            Self::Standard { key } => is_standard(key, request, now_ms).unwrap_or(false),
        };
        match proven {
            true => Ok(()),
            false => Err(Error::new(
                ErrorReason::Unauthenticated,
                "The call does not prove where it comes from: its secret or signature is missing or wrong.",
            )),
        }
    }
}

fn is_standard(key: &Hmac<Sha256>, request: &v1::ReceiveWebhookRequest, now_ms: i64) -> Option<bool> {
    let id = header(request, "webhook-id")?;
    let sent_at = header(request, "webhook-timestamp")?;
    let age_s = (now_ms / 1000).checked_sub(sent_at.parse::<i64>().ok()?)?;
    if !(-TOLERANCE_S..=TOLERANCE_S).contains(&age_s) {
        return Some(false);
    }
    // Several, while a secret is being replaced.
    let signatures = header(request, "webhook-signature")?.split(' ');
    let mut signatures =
        signatures.filter_map(|one| STANDARD.decode(one.strip_prefix(STANDARD_VERSION)?).ok());
    let signed = [id.as_bytes(), b".", sent_at.as_bytes(), b".", &request.body];
    Some(signatures.any(|signature| is_of(key, &signed, &signature)))
}

/// Whether a signature is that of these bytes, one after the other.
fn is_of(key: &Hmac<Sha256>, signed: &[&[u8]], signature: &[u8]) -> bool {
    let mut hmac = key.clone();
    signed.iter().for_each(|part| hmac.update(part));
    hmac.verify_slice(signature).is_ok()
}

fn key(secret: &[u8]) -> Option<Hmac<Sha256>> {
    Hmac::new_from_slice(secret).ok().filter(|_| !secret.is_empty())
}

fn standard_key(secret: &str) -> Option<Hmac<Sha256>> {
    let secret = secret.strip_prefix(STANDARD_PREFIX).unwrap_or(secret);
    key(&STANDARD.decode(secret).ok()?)
}

/// The text of a secret: as it is, or what the variables in it give.
fn resolve(secret: &str, variables: &VariableSet) -> Option<String> {
    let template = Template::parse(secret, &NoCustomFunctions).ok()?;
    let text = match template.evaluate(&OnlyVariables(variables)).ok()? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// A scope without a run.
struct OnlyVariables<'a>(&'a VariableSet);

impl Scope for OnlyVariables<'_> {
    fn node(&self, _id: i64) -> Option<&Value> {
        None
    }

    fn root(&self, _root: Root) -> Option<&Value> {
        None
    }

    fn index(&self) -> Option<i64> {
        None
    }

    fn now(&self) -> i64 {
        0
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn call_custom(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        Err(EvaluationError::new(format!(
            "the function {name} only runs in a node"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures made by another implementation (`openssl dgst -sha256 -mac HMAC`) over this body.
    const BODY: &str = r#"{"event":"order.paid","total":60}"#;
    const HMAC: &str = "733a679f0597b2a38a6bce8d609cca24c0c14bbdbb7f3135c14fe1480fd52602";
    const STANDARD_SECRET: &str = "whsec_c3dpdGNoeWFyZCB0ZXN0IHNlY3JldCBvZiAzMiBieXRlcyE=";
    const STANDARD_SIGNATURE: &str = "v1,036kq+3PJ5kbMAStt5lZt/XlYdYiE0gNQYOIdpbQJLY=";
    const SENT_AT: &str = "1770000000";
    const SENT_AT_MS: i64 = 1_770_000_000_000;

    fn call(headers: &[(&str, &str)], body: &str) -> v1::ReceiveWebhookRequest {
        let header = |(name, value): &(&str, &str)| v1::HttpHeader {
            name: (*name).to_owned(),
            value: value.as_bytes().to_vec(),
        };
        v1::ReceiveWebhookRequest {
            headers: headers.iter().map(header).collect(),
            body: body.as_bytes().to_vec(),
            ..Default::default()
        }
    }

    fn passes(verify: &Verify, headers: &[(&str, &str)], body: &str, now_ms: i64) -> bool {
        let verifier = Verifier::of(verify, &VariableSet::default());
        verifier.check(&call(headers, body), now_ms).is_ok()
    }

    #[test]
    fn a_header_holds_the_secret() {
        let verify = Verify::Header {
            header: "X-Token".to_owned(),
            secret: "top secret".to_owned(),
        };
        assert!(passes(&verify, &[("x-token", "top secret")], "", 0));
        for wrong in ["", "top", "top secret ", "Top secret"] {
            assert!(!passes(&verify, &[("x-token", wrong)], "", 0), "{wrong}");
        }
        assert!(!passes(&verify, &[], "", 0));
    }

    #[test]
    fn an_hmac_is_of_the_raw_body() {
        let verify = Verify::HmacSha256 {
            header: "x-signature".to_owned(),
            secret: "top secret".to_owned(),
        };
        let prefixed = format!("sha256={HMAC}");
        let upper = HMAC.to_uppercase();
        for right in [HMAC, &prefixed, &upper] {
            assert!(passes(&verify, &[("x-signature", right)], BODY, 0), "{right}");
        }
        for wrong in ["", "sha256=", "zz", &HMAC[2..], &prefixed[..70]] {
            assert!(!passes(&verify, &[("x-signature", wrong)], BODY, 0), "{wrong}");
        }
        // The same JSON in another spelling is another body.
        let spaced = BODY.replace(':', ": ");
        assert!(!passes(&verify, &[("x-signature", HMAC)], &spaced, 0));
    }

    #[test]
    fn standard_webhooks_are_signed_with_id_and_time() {
        let verify = Verify::StandardWebhooks {
            secret: STANDARD_SECRET.to_owned(),
        };
        let headers = |id, sent_at, signature| {
            [
                ("webhook-id", id),
                ("webhook-timestamp", sent_at),
                ("webhook-signature", signature),
            ]
        };
        let several = format!("v1,AAAA v1a,{} {STANDARD_SIGNATURE}", "A".repeat(88));
        for signature in [STANDARD_SIGNATURE, &several] {
            for off in [0, 300_000, -300_000] {
                let headers = headers("msg_2b3c", SENT_AT, signature);
                assert!(passes(&verify, &headers, BODY, SENT_AT_MS + off), "{off}");
            }
        }
        for off in [301_000, -301_000, i64::MAX - SENT_AT_MS] {
            let headers = headers("msg_2b3c", SENT_AT, STANDARD_SIGNATURE);
            assert!(!passes(&verify, &headers, BODY, SENT_AT_MS + off), "{off}");
        }
        for (id, sent_at, signature) in [
            ("msg_other", SENT_AT, STANDARD_SIGNATURE),
            ("msg_2b3c", "1770000001", STANDARD_SIGNATURE),
            ("msg_2b3c", "now", STANDARD_SIGNATURE),
            ("msg_2b3c", SENT_AT, ""),
            ("msg_2b3c", SENT_AT, &STANDARD_SIGNATURE[3..]),
            ("msg_2b3c", SENT_AT, "v1,"),
        ] {
            let headers = headers(id, sent_at, signature);
            assert!(
                !passes(&verify, &headers, BODY, SENT_AT_MS),
                "{id} {sent_at} {signature}"
            );
        }
        assert!(!passes(&verify, &[], BODY, SENT_AT_MS));
    }

    #[test]
    fn an_unusable_secret_lets_nobody_in() {
        for secret in ["", "{{$vars.MISSING}}", "whsec_not base64!"] {
            let verify = Verify::StandardWebhooks {
                secret: secret.to_owned(),
            };
            assert!(
                matches!(Verifier::of(&verify, &VariableSet::default()), Verifier::Closed),
                "{secret}"
            );
        }
        let empty = Verify::Header {
            header: "x".to_owned(),
            secret: "{{$vars.MISSING}}".to_owned(),
        };
        assert!(!passes(&empty, &[("x", "")], "", 0));
        assert!(!passes(&empty, &[], "", 0));
    }
}
