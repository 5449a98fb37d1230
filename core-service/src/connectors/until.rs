//! How far a list is read by somebody who wants only its beginning.

use serde_json::Value;

/// What ends a list before its own end.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    /// Whether this page is the last one that is wanted.
    pub is_last: &'a (dyn Fn(&[Value]) -> bool + Send + Sync),
    /// The most items. No page is asked for that would bring more, were it as long as the one before.
    pub most: usize,
}

impl Until<'_> {
    /// Whether a page that comes after so many items is the last.
    pub(super) fn ends_with(&self, page: &[Value], before: usize) -> bool {
        before + 2 * page.len() > self.most || (self.is_last)(page)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Map, json};

    use super::*;
    use crate::connectors::{App, Step, Walk};

    const APP: &str = "
manifest: 1
id: shop
name: Shop
baseUrl: https://api.shop.test
connections: []
modules:
  - id: new
    label: New
    type: trigger
    description: New ones.
    connection: optional
    request: { path: /rows }
    pagination: { type: cursor, next: '{{response.body.next}}', parameter: after }
    items: '{{response.body.rows}}'
    poll: { key: '{{$item}}', latestFirst: true }
";

    /// What a walk gives for pages of these rows, each but the last with a next one, and how many it has asked for.
    fn walked(pages: &[&[i64]], until: Until<'_>) -> (Value, u32) {
        let app = App::read(APP).unwrap();
        let module = app.module("new").unwrap();
        let mut walk = app.begin(module, &Map::new(), None).unwrap().until(until);
        for (number, rows) in pages.iter().enumerate() {
            let next = (number + 1 < pages.len()).then_some(number);
            if let Step::Done(listed) = took(&mut walk, &json!({ "rows": rows, "next": next })) {
                return (listed, u32::try_from(number + 1).unwrap());
            }
        }
        panic!("it wants more pages than there are");
    }

    fn took(walk: &mut Walk<'_>, body: &Value) -> Step {
        let response = json!({ "body": body });
        walk.take(&response, &response).unwrap()
    }

    /// Whether there is something below ten.
    fn has_small(page: &[Value]) -> bool {
        page.iter().any(|row| row.as_i64().unwrap() < 10)
    }

    const SMALL: Until<'static> = Until {
        is_last: &has_small,
        most: 1_000,
    };

    #[test]
    fn a_walk_ends_with_the_page_that_is_the_last_one_wanted() {
        let pages: [&[i64]; 4] = [&[14, 13], &[12, 9], &[8, 7], &[6]];
        let (listed, asked) = walked(&pages, SMALL);
        assert_eq!(listed, json!({ "items": [14, 13, 12, 9], "goesOn": true }));
        assert_eq!(asked, 2);
        let (listed, asked) = walked(&pages[3..], SMALL);
        assert_eq!(
            (listed, asked),
            (json!({ "items": [6], "goesOn": false }), 1),
            "the list ends there, too"
        );
    }

    #[test]
    fn a_walk_ends_with_the_list_or_before_there_are_too_many() {
        let pages: [&[i64]; 3] = [&[16, 15], &[14, 13], &[12]];
        let (listed, _) = walked(&pages, SMALL);
        assert_eq!(listed, json!({ "items": [16, 15, 14, 13, 12], "goesOn": false }));
        let (listed, _) = walked(&pages, Until { most: 5, ..SMALL });
        assert_eq!(listed, json!({ "items": [16, 15, 14, 13], "goesOn": true }));
    }

    #[test]
    fn a_trigger_has_a_hundred_pages() {
        let rows: [&[i64]; 101] = [&[10]; 101];
        let (listed, asked) = walked(&rows, SMALL);
        assert_eq!((&listed["goesOn"], asked), (&json!(true), 100));
    }

    #[test]
    fn a_part_is_worth_something_only_to_who_wants_one() {
        let app = App::read(APP).unwrap();
        let begin = || app.begin(app.module("new").unwrap(), &Map::new(), None).unwrap();
        let page = json!({ "rows": [11], "next": 1 });
        let mut whole = begin();
        assert_eq!(took(&mut whole, &page), Step::Again);
        assert_eq!(whole.cut_short(), None);
        let mut part = begin().until(SMALL);
        assert_eq!(part.cut_short(), None, "there is nothing yet");
        assert_eq!(took(&mut part, &page), Step::Again);
        let listed = json!({ "items": [11], "goesOn": true });
        assert_eq!(part.cut_short(), Some(listed));
    }
}
