//! What a server of S3 answers, and what its refusals mean.

use http::StatusCode;

use crate::native::Failure;
use crate::outbound::{OutboundError, Response};

/// Codes by which the service says that it does not believe who is asking.
const CREDENTIAL: [&str; 7] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "TokenRefreshRequired",
    "InvalidSecurity",
    "AccountProblem",
];

/// Nothing came back. All requests can be repeated: they put, get, list or delete.
pub(super) fn unsent(error: OutboundError) -> Failure {
    match error {
        OutboundError::Blocked(host) => Failure::Blocked(host),
        OutboundError::Invalid(message) => Failure::Parameters(message),
        OutboundError::TooLarge => Failure::TooLarge(error.to_string()),
        OutboundError::Unreachable { .. } | OutboundError::Timeout(_) | OutboundError::NoRoom => {
            Failure::Unreachable(error.to_string())
        }
        OutboundError::TooManyRedirects | OutboundError::BadAnswer { .. } => {
            Failure::Refused(error.to_string())
        }
    }
}

/// A response that says yes.
pub(super) fn accepted(response: Response) -> Result<Response, Failure> {
    match response.status.is_success() {
        true => Ok(response),
        false => Err(refusal(&response)),
    }
}

fn refusal(response: &Response) -> Failure {
    let text = String::from_utf8_lossy(&response.body);
    let (code, message) = (element(&text, "Code"), element(&text, "Message"));
    let status = response.status;
    let says = match (&code, &message) {
        (Some(code), Some(message)) => format!("the service answered {}: {code}: {message}", status.as_u16()),
        (Some(code), None) => format!("the service answered {}: {code}", status.as_u16()),
        _ if status.is_redirection() => {
            let message = "the bucket is elsewhere; the connection needs its region or endpoint";
            format!("the service answered {}: {message}", status.as_u16())
        }
        _ => format!("the service answered {status}"),
    };
    match (status, code.as_deref()) {
        (_, Some(code)) if CREDENTIAL.contains(&code) => Failure::Credential(says),
        (StatusCode::UNAUTHORIZED, _) => Failure::Credential(says),
        (StatusCode::TOO_MANY_REQUESTS, _) | (_, Some("SlowDown" | "RequestTimeout")) => Failure::Busy(says),
        (status, _) if status.is_server_error() => Failure::Busy(says),
        _ => Failure::Refused(says),
    }
}

/// The text of the first element of this name: errors are a flat list of them.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let text = plain
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    Some(text.chars().filter(|c| !c.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn answered(status: u16, body: &'static str) -> Failure {
        let response = Response {
            status: StatusCode::from_u16(status).unwrap_or_default(),
            headers: HeaderMap::new(),
            body: body.into(),
        };
        refusal(&response)
    }

    #[test]
    fn refusals_are_told_apart_by_their_code() {
        let xml = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>a &lt;b&gt; &amp;amp;\n</Message></Error>";
        let Failure::Credential(says) = answered(403, xml) else {
            panic!("{xml}")
        };
        assert_eq!(
            says,
            "the service answered 403: SignatureDoesNotMatch: a <b> &amp;"
        );
        let denied = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
        assert!(matches!(answered(403, denied), Failure::Refused(_)));
        let slow = "<Error><Code>SlowDown</Code></Error>";
        assert!(matches!(answered(400, slow), Failure::Busy(_)));
        assert!(matches!(answered(503, ""), Failure::Busy(_)));
        assert!(matches!(answered(401, ""), Failure::Credential(_)));
        let Failure::Refused(says) = answered(301, "") else {
            panic!("a redirect")
        };
        assert!(says.contains("elsewhere"), "{says}");
        let Failure::Refused(says) = answered(404, "not XML <Code>") else {
            panic!("no XML")
        };
        assert_eq!(says, "the service answered 404 Not Found");
    }
}
