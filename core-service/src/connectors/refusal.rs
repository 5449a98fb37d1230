//! What the answer of a token's endpoint means that brings no token.

use serde_json::Value;

use super::template::TemplateError;
use crate::secret::Mask;

/// The most characters of what a service says about it.
const LONGEST_SENTENCE: usize = 300;

/// Why there is no token. Each holds a sentence for people, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenProblem {
    /// What was presented is over: a person has to consent again.
    #[error("{0}")]
    Over(String),
    /// The service refuses the client.
    #[error("{0}")]
    Refused(String),
    /// It may work later.
    #[error("{0}")]
    Temporary(String),
    /// The answer cannot be made sense of.
    #[error("{0}")]
    Unusable(String),
}

impl From<TemplateError> for TokenProblem {
    fn from(error: TemplateError) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// What an answer without a token means.
pub(super) fn refusal(answer: &Value, mask: &Mask) -> TokenProblem {
    let status = answer["status"].as_u64().unwrap_or_default();
    let body = &answer["body"];
    let mut said = body.clone();
    // Before it is cut, so that no part of a secret is left.
    mask.value(&mut said);
    let code = word(&said, &["error", "code"]);
    let sentence = [
        code,
        word(&said, &["error_description", "message", "error_message"]),
    ];
    let sentence: Vec<String> = sentence.iter().flatten().map(|text| shown(text)).collect();
    let says = match sentence.is_empty() {
        true => format!("The service answers the request for a token with status {status}"),
        false => format!("The service gives no token: {}", sentence.join(": ")),
    };
    if status == 429 || status >= 500 {
        return TokenProblem::Temporary(format!("{says}."));
    }
    match code {
        Some(
            "invalid_grant"
            | "bad_refresh_token"
            | "bad_verification_code"
            | "token_expired"
            | "invalid_refresh_token"
            | "invalid_code"
            | "code_already_used"
            | "token_revoked",
        ) => TokenProblem::Over(format!("{says}.")),
        Some(
            "temporarily_unavailable"
            | "server_error"
            | "slow_down"
            | "ratelimited"
            | "internal_error"
            | "service_unavailable",
        ) => TokenProblem::Temporary(format!("{says}.")),
        Some(
            "invalid_client"
            | "unauthorized_client"
            | "invalid_client_id"
            | "bad_client_secret"
            | "incorrect_client_credentials"
            | "access_denied",
        ) => TokenProblem::Refused(format!("{says}.")),
        _ if matches!(status, 400 | 401 | 403) => TokenProblem::Refused(format!("{says}.")),
        _ if !body.is_object() => TokenProblem::Unusable(format!("{says}, and with no JSON object.")),
        _ => TokenProblem::Unusable(format!("{says}.")),
    }
}

/// The first of these members that is a text.
fn word<'a>(body: &'a Value, names: &[&str]) -> Option<&'a str> {
    let mut texts = names.iter().filter_map(|name| body[*name].as_str());
    texts.find(|text| !text.trim().is_empty())
}

/// A text in one line of a bearable length.
fn shown(text: &str) -> String {
    let line = text.trim().trim_end_matches('.').chars();
    let line = line.map(|letter| if letter.is_control() { ' ' } else { letter });
    line.take(LONGEST_SENTENCE).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(status: u16, body: Value) -> TokenProblem {
        let mask = Mask::of(["s3cret"].into_iter());
        refusal(&json!({ "status": status, "headers": {}, "body": body }), &mask)
    }

    #[test]
    fn a_code_says_who_is_at_fault() {
        let over = told(
            400,
            json!({ "error": "invalid_grant", "error_description": "s3cret is over." }),
        );
        let says = "The service gives no token: invalid_grant: *** is over.";
        assert_eq!(over, TokenProblem::Over(says.to_owned()));
        for (status, body, expected) in [
            (200, json!({ "error": "bad_refresh_token" }), "over"),
            (200, json!({ "ok": false, "error": "token_expired" }), "over"),
            (401, json!({ "error": "invalid_client" }), "refused"),
            (400, json!({ "error": "odd" }), "refused"),
            (403, json!("nothing"), "refused"),
            (503, json!({ "error": "invalid_grant" }), "temporary"),
            (429, json!(null), "temporary"),
            (400, json!({ "error": "temporarily_unavailable" }), "temporary"),
            (200, json!({}), "unusable"),
            (200, json!("<html>"), "unusable"),
            (404, json!({ "error": { "message": "s3cret" } }), "unusable"),
        ] {
            let problem = told(status, body.clone());
            let kind = match &problem {
                TokenProblem::Over(_) => "over",
                TokenProblem::Refused(_) => "refused",
                TokenProblem::Temporary(_) => "temporary",
                TokenProblem::Unusable(_) => "unusable",
            };
            assert_eq!(kind, expected, "{status} {body}");
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn what_a_service_says_is_cut_after_it_is_masked() {
        let long = format!("{} s3cret\n", "x".repeat(LONGEST_SENTENCE - 4));
        let problem = told(
            400,
            json!({ "error": "invalid_grant", "error_description": long }),
        );
        assert!(!problem.to_string().contains("s3c"), "{problem}");
    }
}
