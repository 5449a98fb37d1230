//! The content of files and objects, which parameters give and outputs tell as text or in Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::values::misfit;
use super::{Failure, Values};

/// The form in which content is told; the parameter `as`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text when it is UTF-8, and in Base64 otherwise.
    Auto,
    /// As text; a failure when it is none.
    Text,
    /// In Base64.
    Base64,
}

/// Content that a call brings.
pub struct Given {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their type, as far as the parameter tells it.
    pub content_type: &'static str,
}

/// What the parameters `text` or `base64` hold, of which one has to be there.
pub fn given(parameters: Values<'_>) -> Result<Given, Failure> {
    match (parameters.get("text"), parameters.text("base64")?) {
        (Some(text), None) => Ok(Given {
            bytes: match text {
                Value::String(text) => text.clone().into_bytes(),
                value => value.to_string().into_bytes(),
            },
            content_type: "text/plain; charset=utf-8",
        }),
        (None, Some(base64)) => {
            let packed: String = base64.split_ascii_whitespace().collect();
            let decoded = STANDARD.decode(packed);
            Ok(Given {
                bytes: decoded.map_err(|error| misfit("base64", &format!("Base64: {error}")))?,
                content_type: "application/octet-stream",
            })
        }
        (Some(_), Some(_)) => Err(Failure::Parameters(
            "text and base64 exclude each other".to_owned(),
        )),
        (None, None) => Err(Failure::Parameters("text or base64 must be given".to_owned())),
    }
}

impl Form {
    /// What the parameter `as` says.
    pub fn of(parameters: Values<'_>) -> Result<Self, Failure> {
        match parameters.text("as")? {
            None | Some("auto") => Ok(Self::Auto),
            Some("text") => Ok(Self::Text),
            Some("base64") => Ok(Self::Base64),
            Some(_) => Err(misfit("as", "auto, text or base64")),
        }
    }

    /// Adds the content to an output, as `text` or `base64`; the other one is null.
    pub fn put(self, output: &mut Value, bytes: &[u8]) -> Result<(), Failure> {
        let text = std::str::from_utf8(bytes).ok().filter(|_| self != Self::Base64);
        if self == Self::Text && text.is_none() {
            let message = "it is no text in UTF-8; with `as: base64` it can be had anyway";
            return Err(Failure::Refused(message.to_owned()));
        }
        let base64 = text.is_none().then(|| STANDARD.encode(bytes));
        output["text"] = text.map_or(Value::Null, Value::from);
        output["base64"] = base64.map_or(Value::Null, Value::from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn told(parameters: Value, bytes: &[u8]) -> Result<Value, Failure> {
        let mut output = json!({});
        Form::of(Values(parameters.as_object().unwrap()))?.put(&mut output, bytes)?;
        Ok(output)
    }

    #[test]
    fn content_is_told_as_it_is_wanted() {
        let (text, bytes) = ("Grüße".as_bytes(), [0xff, 0].as_slice());
        assert_eq!(
            told(json!({}), text).unwrap(),
            json!({ "text": "Grüße", "base64": null })
        );
        assert_eq!(
            told(json!({ "as": "auto" }), bytes).unwrap(),
            json!({ "text": null, "base64": "/wA=" })
        );
        assert_eq!(
            told(json!({ "as": "base64" }), b"a").unwrap(),
            json!({ "text": null, "base64": "YQ==" })
        );
        assert!(matches!(
            told(json!({ "as": "text" }), bytes),
            Err(Failure::Refused(_))
        ));
        assert!(matches!(
            told(json!({ "as": "word" }), text),
            Err(Failure::Parameters(_))
        ));
    }

    #[test]
    fn content_is_given_once() {
        let bytes =
            |parameters: Value| given(Values(parameters.as_object().unwrap())).map(|given| given.bytes);
        assert_eq!(bytes(json!({ "text": "ü" })).unwrap(), "ü".as_bytes());
        assert_eq!(bytes(json!({ "text": { "a": 1 } })).unwrap(), b"{\"a\":1}");
        assert_eq!(
            bytes(json!({ "base64": "YW\nJj", "text": null })).unwrap(),
            b"abc"
        );
        assert_eq!(bytes(json!({ "text": "" })).unwrap(), b"");
        for wrong in [
            json!({}),
            json!({ "text": "", "base64": "" }),
            json!({ "base64": "%" }),
        ] {
            assert!(matches!(bytes(wrong), Err(Failure::Parameters(_))));
        }
    }
}
