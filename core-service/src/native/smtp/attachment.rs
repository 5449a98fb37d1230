//! Files of an e-mail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::message::header::ContentType;
use lettre::message::{Attachment, SinglePart};
use serde::Deserialize;

use super::message::check_line;

/// A file of an e-mail: its bytes in Base64, or its text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Attached {
    filename: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    base64: Option<String>,
    #[serde(default)]
    text: Option<String>,
    /// By which the HTML shows it: `<img src="cid:…">`.
    #[serde(default)]
    pub(super) content_id: Option<String>,
}

impl Attached {
    /// The part of the e-mail that it becomes.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub(super) fn part(&self) -> Result<SinglePart, String> {
        let name = &self.filename;
        check_line("attachments: a file's name", name)?;
        let content_type = match &self.mime_type {
            Some(text) => ContentType::parse(text)
                .map_err(|_| format!("attachments: {text:?} is no MIME type such as application/pdf"))?,
            None if self.text.is_some() => ContentType::TEXT_PLAIN,
            None => ContentType::parse("application/octet-stream").map_err(|error| error.to_string())?,
        };
        let bytes = match (&self.base64, &self.text) {
            (Some(base64), None) => {
                let packed: String = base64.split_ascii_whitespace().collect();
                let decoded = STANDARD.decode(packed);
                decoded.map_err(|error| format!("attachments: {name} is not Base64: {error}"))?
            }
            (None, Some(text)) => text.clone().into_bytes(),
            _ => return Err(format!("attachments: {name} needs base64 or text")),
        };
        Ok(match &self.content_id {
            None => Attachment::new(name.clone()).body(bytes, content_type),
            Some(id) => {
                check_line("attachments: a contentId", id)?;
                if id.contains(['<', '>']) {
                    return Err("attachments: a contentId must not hold < or >".to_owned());
                }
                Attachment::new_inline_with_name(id.clone(), name.clone()).body(bytes, content_type)
            }
        })
    }
}
