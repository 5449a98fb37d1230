//! How lists go on: which page is the next one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::template::{Reach, Template, TemplateError};

/// Pages asked for when the manifest does not say, except by triggers that poll.
const DEFAULT_PAGES: u32 = 10;
/// The most pages that are asked for.
const MAX_PAGES: u32 = 100;

/// How a list goes on.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pagination {
    /// In which way.
    #[serde(rename = "type")]
    style: Style,
    /// Of the response: the next page's cursor (`cursor`) or URL (`next_url`); null, empty or false on the last page.
    #[serde(default)]
    pub(super) next: Option<Template>,
    /// What asks for a page (`cursor`, `page`, `offset`): the name of a query parameter, or the member of the body.
    #[serde(default)]
    parameter: Option<String>,
    /// Whether `parameter` stands in the query, as it does by default, or in the body.
    #[serde(default, rename = "in")]
    place: Place,
    /// The first page (1 by default) or offset (0 by default).
    #[serde(default)]
    start: Option<u64>,
    /// Of the response: whether there is another page; by default, whether the page has items.
    #[serde(default)]
    pub(super) more: Option<Template>,
    /// The most pages that are asked for, from 1 to 100; 10 by default, and 100 for triggers that poll.
    #[serde(default)]
    max_pages: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Style {
    /// The header `Link` with `rel="next"` names the next page.
    LinkHeader,
    /// `next` is the next page's URL.
    NextUrl,
    /// `next` is the value of `parameter` for the next page.
    Cursor,
    /// `parameter` is the page's number.
    Page,
    /// `parameter` is the number of items before the page.
    Offset,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    #[default]
    Query,
    Body,
}

/// How a list goes on after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The call asks for the next page now.
    Another,
    /// That was the last page.
    Nothing,
    /// There is more, and no more is asked for.
    Unasked,
}

/// How far a walk has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Pages that were read.
    pub(super) pages: u32,
    /// Items on all of them.
    pub(super) items: usize,
    /// Items on the last of them.
    pub(super) on_page: usize,
    /// The most pages that may be read.
    pub(super) most: u32,
}

impl Pagination {
    /// What is wrong with it, if anything: the field and a sentence.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        if !(1..=MAX_PAGES).contains(&self.most(false)) {
            return Some(("maxPages", format!("must be from 1 to {MAX_PAGES}")));
        }
        if matches!(self.style, Style::NextUrl | Style::Cursor) != self.next.is_some() {
            return Some(("next", "belongs to the types next_url and cursor".to_owned()));
        }
        let takes_parameter = matches!(self.style, Style::Cursor | Style::Page | Style::Offset);
        if takes_parameter != self.parameter.is_some() {
            return Some((
                "parameter",
                "belongs to the types cursor, page and offset".to_owned(),
            ));
        }
        None
    }

    /// Makes the first page's call of a call.
    pub(super) fn begin(&self, call: &mut Value) {
        if matches!(self.style, Style::Page | Style::Offset) {
            self.set(call, Value::from(self.start()));
        }
    }

    /// Makes the next page's call of the last one's, when there is a next page that may be asked for.
    ///
    /// # Errors
    /// When the response does not say how to go on.
    pub(super) fn advance(
        &self,
        call: &mut Value,
        progress: Progress,
        reach: &Reach<'_>,
    ) -> Result<After, TemplateError> {
        let next = match self.has_more(progress, reach)? {
            true => self.next_page(progress, reach)?,
            false => None,
        };
        let Some(next) = next else {
            return Ok(After::Nothing);
        };
        if progress.pages >= progress.most {
            return Ok(After::Unasked);
        }
        match (self.style, next) {
            (Style::NextUrl | Style::LinkHeader, next) => go(call, next.as_str().unwrap_or_default())?,
            (Style::Page | Style::Offset | Style::Cursor, next) => self.set(call, next),
        }
        Ok(After::Another)
    }

    /// What leads to the next page: a URL, or the value of `parameter`.
    fn next_page(&self, progress: Progress, reach: &Reach<'_>) -> Result<Option<Value>, TemplateError> {
        Ok(match self.style {
            Style::Page => Some(self.start().saturating_add(u64::from(progress.pages)).into()),
            Style::Offset => Some(self.start().saturating_add(progress.items as u64).into()),
            Style::Cursor => self.next(reach)?,
            Style::NextUrl => self.next(reach)?.filter(Value::is_string),
            Style::LinkHeader => link(reach).map(Value::String),
        })
    }

    fn has_more(&self, progress: Progress, reach: &Reach<'_>) -> Result<bool, TemplateError> {
        match (&self.more, self.style) {
            (Some(more), _) => more.holds(reach),
            (None, Style::Page | Style::Offset) => Ok(progress.on_page > 0),
            (None, Style::LinkHeader | Style::NextUrl | Style::Cursor) => Ok(true),
        }
    }

    fn next(&self, reach: &Reach<'_>) -> Result<Option<Value>, TemplateError> {
        let Some(next) = &self.next else { return Ok(None) };
        Ok(match next.evaluate(reach)? {
            Value::Null | Value::Bool(false) => None,
            Value::String(text) if text.is_empty() => None,
            value => Some(value),
        })
    }

    fn set(&self, call: &mut Value, value: Value) {
        let (Some(parameter), Value::Object(call)) = (&self.parameter, call) else {
            return;
        };
        let name = match self.place {
            Place::Query => "query",
            Place::Body => "body",
        };
        let part = call.entry(name).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(part) = part {
            part.insert(parameter.clone(), value);
        }
    }

    /// The most pages that are asked for, by a trigger that polls or by others.
    pub(super) fn most(&self, polls: bool) -> u32 {
        self.max_pages
            .unwrap_or(if polls { MAX_PAGES } else { DEFAULT_PAGES })
    }

    fn start(&self) -> u64 {
        self.start.unwrap_or(u64::from(self.style == Style::Page))
    }
}

/// Lets a call go to another URL, which brings its own query.
fn go(call: &mut Value, next: &str) -> Result<(), TemplateError> {
    let Value::Object(call) = call else { return Ok(()) };
    let from = call.get("url").and_then(Value::as_str).unwrap_or_default();
    let url = Url::parse(from).and_then(|from| from.join(next));
    let url = url.map_err(|_| TemplateError::new("the next page's URL is not one"))?;
    call.shift_remove("query");
    call.insert("url".to_owned(), Value::String(url.into()));
    Ok(())
}

/// The URL of `Link: <…>; rel="next"`.
fn link(reach: &Reach<'_>) -> Option<String> {
    let header = reach.response?.get("headers")?.get("link")?.as_str()?;
    let mut links = header.split(',').map(str::trim);
    let next = links.find(|link| {
        let mut attributes = link.split(';').skip(1).map(str::trim);
        attributes.any(|attribute| {
            let attribute = attribute.to_ascii_lowercase();
            attribute == "rel=next" || attribute == "rel=\"next\""
        })
    })?;
    let (_, rest) = next.split_once('<')?;
    rest.split_once('>').map(|(url, _)| url.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn pagination(value: Value) -> Pagination {
        let read: Pagination = serde_json::from_value(value).unwrap();
        assert_eq!(read.problem(), None);
        read
    }

    /// The call after the first page, which had two items.
    fn after(pagination: &Pagination, mut call: Value, response: &Value) -> Option<Value> {
        pagination.begin(&mut call);
        let progress = Progress {
            pages: 1,
            items: 2,
            on_page: 2,
            most: pagination.most(false),
        };
        let mut reach = Reach::new();
        reach.response = Some(response);
        let after = pagination.advance(&mut call, progress, &reach).unwrap();
        (after == After::Another).then_some(call)
    }

    #[test]
    fn each_type_finds_its_next_page() {
        let call = json!({ "url": "https://api.test/rows", "query": { "size": 2 } });
        let header = pagination(json!({ "type": "link_header" }));
        let link = "<https://api.test/rows?page=1>; rel=\"first\", </rows?page=2>; rel=\"next\"";
        let linked = json!({ "headers": { "link": link } });
        let next = after(&header, call.clone(), &linked);
        assert_eq!(next, Some(json!({ "url": "https://api.test/rows?page=2" })));
        assert_eq!(after(&header, call.clone(), &json!({ "headers": {} })), None);

        let url = pagination(json!({ "type": "next_url", "next": "{{response.body.next}}" }));
        let next = after(&url, call.clone(), &json!({ "body": { "next": "?after=7" } }));
        assert_eq!(next, Some(json!({ "url": "https://api.test/rows?after=7" })));
        assert_eq!(
            after(&url, call.clone(), &json!({ "body": { "next": null } })),
            None
        );

        let cursor = json!({ "type": "cursor", "next": "{{response.body.next}}", "parameter": "after" });
        let in_query = pagination(cursor.clone());
        let next = after(&in_query, call.clone(), &json!({ "body": { "next": "c" } })).unwrap();
        assert_eq!(next["query"], json!({ "size": 2, "after": "c" }));
        assert_eq!(
            after(&in_query, call.clone(), &json!({ "body": { "next": "" } })),
            None
        );
        let mut cursor = cursor;
        cursor["in"] = json!("body");
        let next = after(
            &pagination(cursor),
            call.clone(),
            &json!({ "body": { "next": 3 } }),
        )
        .unwrap();
        assert_eq!(next["body"], json!({ "after": 3 }));

        let page = pagination(json!({ "type": "page", "parameter": "page" }));
        let next = after(&page, call.clone(), &json!({})).unwrap();
        assert_eq!(next["query"], json!({ "size": 2, "page": 2 }));
        let offset = json!({ "type": "offset", "parameter": "from", "more": "{{response.body.more}}" });
        let offset = pagination(offset);
        let next = after(&offset, call.clone(), &json!({ "body": { "more": true } })).unwrap();
        assert_eq!(next["query"], json!({ "size": 2, "from": 2 }));
        assert_eq!(after(&offset, call, &json!({ "body": { "more": false } })), None);
    }

    #[test]
    fn a_walk_ends() {
        let page = pagination(json!({ "type": "page", "parameter": "page", "maxPages": 3 }));
        let mut call = json!({});
        let mut advance = |pages, on_page| {
            let progress = Progress {
                pages,
                items: 9,
                on_page,
                most: page.most(false),
            };
            page.advance(&mut call, progress, &Reach::new()).unwrap()
        };
        assert_eq!(advance(2, 1), After::Another);
        assert_eq!(advance(2, 0), After::Nothing, "an empty page is the last");
        assert_eq!(advance(3, 1), After::Unasked);
    }

    #[test]
    fn what_cannot_be_walked_is_named() {
        for (value, place) in [
            (json!({ "type": "page" }), "parameter"),
            (json!({ "type": "cursor", "parameter": "c" }), "next"),
            (json!({ "type": "next_url" }), "next"),
            (json!({ "type": "link_header", "parameter": "c" }), "parameter"),
            (json!({ "type": "link_header", "maxPages": 0 }), "maxPages"),
            (json!({ "type": "link_header", "maxPages": 101 }), "maxPages"),
        ] {
            let read: Pagination = serde_json::from_value(value).unwrap();
            assert_eq!(read.problem().unwrap().0, place);
        }
    }
}
