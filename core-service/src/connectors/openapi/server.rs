//! Where the API is: the document's first server.

use serde_json::Value;
use url::Url;

use super::document::Part;
use super::{ImportError, Warnings, Wishes};
use crate::connectors::host::HostRule;

/// The server that the app's requests go to.
pub(super) struct Server {
    pub(super) base_url: String,
    url: Url,
}

impl Server {
    pub(super) fn of(root: &Part<'_>, wishes: &Wishes, warnings: &mut Warnings) -> Result<Self, ImportError> {
        if let Some(base_url) = &wishes.base_url {
            return Self::at(base_url, "baseUrl");
        }
        let servers = root.elements("servers", warnings);
        let Some((first, others)) = servers.split_first() else {
            return Err(ImportError::new(
                "document.servers",
                "is missing: say where the API is, as the base URL of the import",
            ));
        };
        let written = first.text("url").unwrap_or_default();
        let server = Self::at(
            &filled_in(first, written, warnings),
            &format!("document.{}.url", first.place),
        )?;
        for other in others {
            let url = other.text("url").unwrap_or_default();
            warnings.say(
                &other.place,
                format!("{url} is left out; baseUrl can be changed to it"),
            );
        }
        Ok(server)
    }

    fn at(text: &str, place: &str) -> Result<Self, ImportError> {
        let refused = |message: String| ImportError::new(place, message);
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| {
            refused(format!(
                "{text:?} does not begin with https:// or http://; say where the API is, as the base URL of the import"
            ))
        })?;
        if text.contains(['{', '}']) || !url.username().is_empty() || url.query().is_some() {
            return Err(refused(format!(
                "{text:?} must be a plain URL, without braces, user or query"
            )));
        }
        Ok(Self {
            base_url: text.trim_end_matches('/').to_owned(),
            url,
        })
    }

    /// The URL that a text is, seen from here.
    pub(super) fn join(&self, text: &str) -> Option<Url> {
        let url = self.url.join(text).ok()?;
        matches!(url.scheme(), "http" | "https").then_some(url)
    }

    /// The hosts that requests may go to, as manifests write them.
    pub(super) fn host(&self) -> String {
        host(&self.url)
    }
}

/// A host as manifests write it.
pub(super) fn host(url: &Url) -> String {
    HostRule::of_url(url)
        .map(|rule| rule.to_string())
        .unwrap_or_default()
}

/// The URL with the defaults of its variables.
fn filled_in(server: &Part<'_>, written: &str, warnings: &mut Warnings) -> String {
    let mut url = written.to_owned();
    for (name, variable) in server.members("variables", warnings) {
        let default = variable.value.get("default").map(|default| match default {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let (marked, Some(default)) = (format!("{{{name}}}"), default) else {
            continue;
        };
        if url.contains(&marked) {
            url = url.replace(&marked, &default);
            warnings.say(
                &variable.place,
                format!("is taken to be {default:?}; baseUrl can be changed"),
            );
        }
    }
    url
}
