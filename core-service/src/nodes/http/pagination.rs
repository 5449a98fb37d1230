//! Page after page of a list, gathered into one.

use engine::failure::NodeError;
use http::HeaderMap;
use http::header::LINK;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::HTTP_ERROR;

/// Pages asked for when the parameters do not say.
const DEFAULT_PAGES: u32 = 10;
/// The most pages that are asked for.
const MAX_PAGES: u32 = 100;

/// How a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pagination {
    #[serde(rename = "type")]
    style: Style,
    /// Where the list is in the body, `data.rows`; the body itself when absent.
    #[serde(default)]
    items: String,
    /// Where the next page's URL or cursor is in the body.
    #[serde(default)]
    next: String,
    /// The query parameter that asks for a page.
    #[serde(default)]
    parameter: String,
    /// The first page or offset.
    #[serde(default)]
    start: Option<u64>,
    #[serde(default)]
    max_pages: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Style {
    /// The header `Link` with `rel="next"` names the next page.
    LinkHeader,
    /// `next` in the body is the next page's URL.
    NextUrl,
    /// `next` in the body is the value of `parameter` for the next page.
    Cursor,
    /// `parameter` is the page's number.
    Page,
    /// `parameter` is the number of items before the page.
    Offset,
}

impl Pagination {
    /// What is wrong with it, if anything: the field and a sentence.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        if !(1..=MAX_PAGES).contains(&self.most()) {
            return Some(("maxPages", format!("must be from 1 to {MAX_PAGES}")));
        }
        let needs_next = matches!(self.style, Style::NextUrl | Style::Cursor);
        if needs_next && self.next.is_empty() {
            return Some(("next", "is required: where the body says how to go on".to_owned()));
        }
        let needs_parameter = matches!(self.style, Style::Cursor | Style::Page | Style::Offset);
        if needs_parameter && self.parameter.is_empty() {
            return Some(("parameter", "is required: what asks for a page".to_owned()));
        }
        None
    }

    fn most(&self) -> u32 {
        self.max_pages.unwrap_or(DEFAULT_PAGES)
    }

    fn start(&self) -> u64 {
        self.start.unwrap_or(u64::from(self.style == Style::Page))
    }
}

/// A walk over pages.
pub(super) struct Pages<'a> {
    pagination: &'a Pagination,
    url: Url,
    items: Vec<Value>,
    pages: u32,
    has_more: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(pagination: &'a Pagination, mut url: Url) -> Self {
        if matches!(pagination.style, Style::Page | Style::Offset) {
            set_parameter(&mut url, &pagination.parameter, &pagination.start().to_string());
        }
        Self {
            pagination,
            url,
            items: Vec::new(),
            pages: 0,
            has_more: false,
        }
    }

    /// The page to be asked for.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Its number, from 1.
    pub(super) fn number(&self) -> u32 {
        self.pages + 1
    }

    /// Takes a page in; whether there is another to be asked for.
    pub(super) fn take(&mut self, headers: &HeaderMap, body: &Value) -> Result<bool, NodeError> {
        if let Some((field, problem)) = self.pagination.problem() {
            return Err(NodeError::expression(format!("pagination.{field} {problem}")));
        }
        let Some(Value::Array(items)) = at(body, &self.pagination.items) else {
            let place = match self.pagination.items.as_str() {
                "" => "as its body".to_owned(),
                path => format!("at {path}"),
            };
            return Err(NodeError::new(
                HTTP_ERROR,
                format!("the page has no list {place}"),
            ));
        };
        self.items.extend(items.iter().cloned());
        self.pages += 1;
        let next = self.next(headers, body, items.is_empty())?;
        self.has_more = next.is_some();
        match next {
            Some(url) if self.pages < self.pagination.most() => {
                self.url = url;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// All items, and what there is to say of the walk.
    pub(super) fn finish(self) -> (Value, Map<String, Value>) {
        let summary = json!({ "pages": self.pages, "hasMore": self.has_more });
        let summary = match summary {
            Value::Object(summary) => summary,
            _ => Map::new(),
        };
        (Value::Array(self.items), summary)
    }

    fn next(&self, headers: &HeaderMap, body: &Value, is_empty: bool) -> Result<Option<Url>, NodeError> {
        let pagination = self.pagination;
        let named = at(body, &pagination.next).and_then(word);
        let place = match pagination.style {
            Style::LinkHeader => next_link(headers),
            Style::NextUrl => named,
            Style::Cursor => return Ok(named.map(|cursor| self.with_parameter(&cursor))),
            Style::Page if !is_empty => {
                let page = pagination.start().saturating_add(u64::from(self.pages));
                return Ok(Some(self.with_parameter(&page.to_string())));
            }
            Style::Offset if !is_empty => {
                let offset = pagination.start().saturating_add(self.items.len() as u64);
                return Ok(Some(self.with_parameter(&offset.to_string())));
            }
            Style::Page | Style::Offset => None,
        };
        let joined = place.map(|place| self.url.join(&place)).transpose();
        joined.map_err(|_| NodeError::new(HTTP_ERROR, "the next page's URL is not one"))
    }

    fn with_parameter(&self, value: &str) -> Url {
        let mut url = self.url.clone();
        set_parameter(&mut url, &self.pagination.parameter, value);
        url
    }
}

/// The value at a path of names and numbers with dots between; the value itself for none.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    steps.try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A text or number that is something.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Sets a query parameter, in the place of one of the same name.
fn set_parameter(url: &mut Url, name: &str, value: &str) {
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(known, _)| known != name)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut pairs = url.query_pairs_mut();
    pairs.clear().extend_pairs(others).append_pair(name, value);
}

/// The URL of `Link: <…>; rel="next"`.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let values = headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut links = values.flat_map(|value| value.split(",").map(str::trim));
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

    use http::HeaderValue;

    use super::*;

    fn pagination(value: Value) -> Pagination {
        serde_json::from_value(value).unwrap()
    }

    /// The URL after a page, or nothing.
    fn after(pagination: &Pagination, headers: &HeaderMap, body: Value) -> Option<String> {
        let url = Url::parse("https://api.test/rows?size=2&page=9").unwrap();
        let mut pages = Pages::new(pagination, url);
        let goes_on = pages.take(headers, &body).unwrap();
        goes_on.then(|| pages.url().to_string())
    }

    #[test]
    fn each_style_finds_its_next_page() {
        let none = HeaderMap::new();
        let mut linked = HeaderMap::new();
        let link = "</first>; rel=\"first\", <https://api.test/rows?page=2>; rel=\"next\"";
        linked.insert(LINK, HeaderValue::from_static(link));
        let header = pagination(json!({ "type": "link_header" }));
        assert_eq!(
            after(&header, &linked, json!([1])).unwrap(),
            "https://api.test/rows?page=2"
        );
        assert_eq!(after(&header, &none, json!([1])), None);
        let next_url = pagination(json!({ "type": "next_url", "items": "d.rows", "next": "next" }));
        let body = |next: Value| json!({ "d": { "rows": [1] }, "next": next });
        assert_eq!(
            after(&next_url, &none, body(json!("?page=2"))).unwrap(),
            "https://api.test/rows?page=2"
        );
        assert_eq!(after(&next_url, &none, body(Value::Null)), None);
        let cursor =
            pagination(json!({ "type": "cursor", "items": "d.rows", "next": "next", "parameter": "after" }));
        assert_eq!(
            after(&cursor, &none, body(json!(7))).unwrap(),
            "https://api.test/rows?size=2&page=9&after=7"
        );
        assert_eq!(after(&cursor, &none, body(json!(""))), None);
        let page = pagination(json!({ "type": "page", "parameter": "page" }));
        assert_eq!(
            after(&page, &none, json!([1])).unwrap(),
            "https://api.test/rows?size=2&page=2"
        );
        assert_eq!(after(&page, &none, json!([])), None);
        let offset = pagination(json!({ "type": "offset", "parameter": "from", "start": 10 }));
        assert_eq!(
            after(&offset, &none, json!([1, 2])).unwrap(),
            "https://api.test/rows?size=2&page=9&from=12"
        );
    }

    #[test]
    fn a_walk_ends() {
        let page = pagination(json!({ "type": "page", "parameter": "page", "maxPages": 3 }));
        let mut pages = Pages::new(&page, Url::parse("https://api.test/").unwrap());
        let taken: Vec<bool> = (0..3)
            .map(|_| pages.take(&HeaderMap::new(), &json!([1])).unwrap())
            .collect();
        assert_eq!(taken, [true, true, false]);
        let (items, summary) = pages.finish();
        assert_eq!(items, json!([1, 1, 1]));
        assert_eq!(Value::Object(summary), json!({ "pages": 3, "hasMore": true }));
    }

    #[test]
    fn what_cannot_be_walked_is_named() {
        for (value, place) in [
            (json!({ "type": "page" }), "parameter"),
            (json!({ "type": "cursor", "parameter": "c" }), "next"),
            (json!({ "type": "next_url" }), "next"),
            (json!({ "type": "link_header", "maxPages": 0 }), "maxPages"),
            (json!({ "type": "link_header", "maxPages": 101 }), "maxPages"),
        ] {
            assert_eq!(pagination(value).problem().unwrap().0, place);
        }
        assert!(serde_json::from_value::<Pagination>(json!({ "type": "guess" })).is_err());
        let header = pagination(json!({ "type": "link_header" }));
        let mut pages = Pages::new(&header, Url::parse("https://api.test/").unwrap());
        assert!(pages.take(&HeaderMap::new(), &json!({ "rows": [] })).is_err());
    }
}
