//! The requests of manifests: from templates to the parameters of a call.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use url::Url;

use super::template::{Reach, Template, TemplateError};

/// A request to be made of parameters and a connection. Members that evaluate to null are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestTemplate {
    /// GET by default.
    #[serde(default)]
    pub(super) method: Option<Template>,
    /// Where it goes, below the app's `baseUrl`. What a template gives stays within its part of the path.
    #[serde(default)]
    pub(super) path: Option<PathTemplate>,
    /// Where it goes, as a whole URL; in place of `path`.
    #[serde(default)]
    pub(super) url: Option<Template>,
    /// Parameters of the query by name; a list gives several of one name.
    #[serde(default)]
    pub(super) query: Option<Template>,
    /// Headers by name, besides the app's.
    #[serde(default)]
    pub(super) headers: Option<Template>,
    /// What is sent.
    #[serde(default)]
    pub(super) body: Option<Template>,
    /// How the body is written: `json` (the default), `form`, `multipart` or `raw`.
    #[serde(default)]
    pub(super) body_type: Option<Template>,
    /// How the response's body is read: `auto` (the default, by its content type), `json`, `text` or `base64`.
    #[serde(default)]
    pub(super) response_type: Option<Template>,
    /// Whether redirects are followed, as they are by default.
    #[serde(default)]
    pub(super) follow_redirects: Option<Template>,
    /// `error_status` (the default): a status of 400 and up fails, whatever the app's `errors` say; or `never`.
    #[serde(default)]
    pub(super) fail_on: Option<Template>,
}

/// A path whose parts are templates.
pub struct PathTemplate(Vec<Template>);

impl RequestTemplate {
    /// The parameters of its call; nothing when its URL is empty.
    ///
    /// # Errors
    /// When a template gives nothing usable.
    pub(super) fn call(&self, home: &Home<'_>, reach: &Reach<'_>) -> Result<Option<Value>, TemplateError> {
        let url = match (&self.url, &self.path) {
            (Some(url), _) => url.text(reach)?,
            (None, path) => home.join(path.as_ref(), reach)?,
        };
        if url.is_empty() {
            return Ok(None);
        }
        let mut call = Map::from_iter([("url".to_owned(), Value::String(url))]);
        let parts = [
            ("method", &self.method),
            ("query", &self.query),
            ("body", &self.body),
            ("bodyType", &self.body_type),
            ("responseType", &self.response_type),
            ("followRedirects", &self.follow_redirects),
            ("failOn", &self.fail_on),
        ];
        for (name, template) in parts {
            let Some(template) = template else { continue };
            match template.evaluate_given(reach)? {
                Value::Null => {}
                value => {
                    call.insert(name.to_owned(), value);
                }
            }
        }
        let headers = home.headers(self.headers.as_ref(), reach)?;
        if !headers.is_empty() {
            call.insert("headers".to_owned(), Value::Object(headers));
        }
        Ok(Some(Value::Object(call)))
    }

    /// Every template in it, after the place it stands at.
    pub(super) fn templates(&self) -> Vec<(&'static str, &Template)> {
        let own = [
            ("method", &self.method),
            ("url", &self.url),
            ("query", &self.query),
            ("headers", &self.headers),
            ("body", &self.body),
            ("bodyType", &self.body_type),
            ("responseType", &self.response_type),
            ("followRedirects", &self.follow_redirects),
            ("failOn", &self.fail_on),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, template)| Some((name, template.as_ref()?)));
        let path = self.path.iter().flat_map(|path| &path.0);
        own.chain(path.map(|part| ("path", part))).collect()
    }
}

/// What all requests of an app begin with.
pub(super) struct Home<'a> {
    pub(super) base_url: Option<&'a Template>,
    pub(super) headers: Option<&'a Template>,
}

impl Home<'_> {
    fn join(&self, path: Option<&PathTemplate>, reach: &Reach<'_>) -> Result<String, TemplateError> {
        let Some(base_url) = self.base_url else {
            return Err(TemplateError::new("the app has no base URL"));
        };
        let base_url = base_url.text(reach)?;
        let mut url = Url::parse(&base_url)
            .map_err(|error| TemplateError::new(format!("the base URL {base_url:?} is not one: {error}")))?;
        if let Some(path) = path {
            path.extend(&mut url, reach)?;
        }
        Ok(url.into())
    }

    fn headers(
        &self,
        own: Option<&Template>,
        reach: &Reach<'_>,
    ) -> Result<Map<String, Value>, TemplateError> {
        let mut headers = Map::new();
        for template in self.headers.into_iter().chain(own) {
            match template.evaluate_given(reach)? {
                Value::Object(more) => headers.extend(more),
                Value::Null => {}
                _ => return Err(TemplateError::new("headers must be an object of values by name")),
            }
        }
        Ok(headers)
    }
}

impl PathTemplate {
    /// Adds the parts to a URL's path, each encoded, so that none of them leads elsewhere.
    fn extend(&self, url: &mut Url, reach: &Reach<'_>) -> Result<(), TemplateError> {
        let mut parts = Vec::with_capacity(self.0.len());
        for template in &self.0 {
            let part = template.text(reach)?;
            let written = template.literal().is_some();
            if !written && matches!(part.as_str(), "" | "." | "..") {
                return Err(TemplateError::new(format!(
                    "a part of the path is {part:?}, which would lead elsewhere"
                )));
            }
            parts.push(part);
        }
        let mut path = url
            .path_segments_mut()
            .map_err(|()| TemplateError::new("the base URL has no path"))?;
        path.pop_if_empty().extend(parts);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for PathTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some(path) = text.strip_prefix('/') else {
            return Err(D::Error::custom(format!("the path {text:?} must begin with /")));
        };
        let parts = parts(path).into_iter().map(|part| {
            if !part.contains("{{") && part.contains(['?', '#']) {
                return Err(D::Error::custom("a path has no query; write it under query"));
            }
            Template::compile(Value::from(part)).map_err(D::Error::custom)
        });
        parts.collect::<Result<_, _>>().map(Self)
    }
}

impl JsonSchema for PathTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PathTemplate".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^/",
            "description": "A path that begins with /; its parts may hold {{ expressions }}."
        })
    }
}

/// The parts between the slashes that stand outside of templates.
fn parts(path: &str) -> Vec<&str> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (place, byte) in path.bytes().enumerate() {
        match byte {
            b'{' if path[place..].starts_with("{{") => inside = true,
            b'}' if path[place..].starts_with("}}") => inside = false,
            b'/' if !inside => {
                parts.push(&path[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&path[start..]);
    parts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn call(request: Value, parameters: Value) -> Result<Option<Value>, TemplateError> {
        let request: RequestTemplate = serde_json::from_value(request).unwrap();
        let base_url = Template::compile(json!("https://api.test/v1/")).unwrap();
        let headers = Template::compile(json!({ "accept": "a/b", "x-version": "1" })).unwrap();
        let home = Home {
            base_url: Some(&base_url),
            headers: Some(&headers),
        };
        let mut reach = Reach::new();
        reach.parameters = Some(&parameters);
        request.call(&home, &reach)
    }

    #[test]
    fn a_call_is_made_of_parameters() {
        let request = json!({
            "method": "POST",
            "path": "/rows/{{parameters.id}}:{{'a/b' + 1}}/x",
            "query": { "a": "{{parameters.none}}", "b": 1 },
            "headers": { "x-version": "2" },
            "body": { "name": "{{parameters.name}}", "other": "{{parameters.none}}" }
        });
        let made = call(request, json!({ "id": "é/?#", "name": "N" }))
            .unwrap()
            .unwrap();
        assert_eq!(
            made,
            json!({
                "url": "https://api.test/v1/rows/%C3%A9%2F%3F%23:a%2Fb1/x",
                "method": "POST",
                "query": { "b": 1 },
                "body": { "name": "N" },
                "headers": { "accept": "a/b", "x-version": "2" }
            })
        );
    }

    #[test]
    fn no_parameter_leads_out_of_its_part_of_the_path() {
        for id in [json!(""), json!(".."), json!("."), json!(null), json!({})] {
            let made = call(json!({ "path": "/rows/{{parameters.id}}" }), json!({ "id": id }));
            assert!(made.is_err(), "{id}");
        }
        assert!(
            call(json!({ "url": "{{parameters.url}}" }), json!({}))
                .unwrap()
                .is_none()
        );
    }
}
