//! A cursor: leads on in its own query, and is refused in any other and when it is garbled.
//!
//! The input is a query, a line feed, and what is handed in as its cursor.

#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::cursor::Pages;

/// How many characters of a cursor stand for the query alone.
const QUERY: usize = 10;

fuzz_target!(|text: &str| {
    let (query, cursor) = text.split_once('\n').unwrap_or(("", text));
    let pages = Pages::of(&["things", query]);
    let number = i64::try_from(text.len()).unwrap_or_default();
    check(&pages, query, cursor, &cursor.to_owned());
    check(&pages, query, cursor, &(-number, query.to_owned()));
    check(&pages, query, cursor, &text.len());
    check(&pages, query, cursor, &(query.to_owned(), Some(number)));
});

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    pages: &Pages,
    query: &str,
    handed: &str,
    position: &T,
) {
    let cursor = cursor(pages, position);
    assert_eq!(
        pages.position::<T>(&cursor).expect("is its own").as_ref(),
        Some(position)
    );
    for other in [
        &["things", query, ""][..],
        &["thing", "s", query],
        &[query, "things!"],
        &[],
    ] {
        is_refused::<T>(&Pages::of(other), &cursor);
    }
    is_refused::<T>(pages, &garbled(&cursor, query.len() % QUERY));
    match pages.position::<T>(handed) {
        Ok(None) => assert_eq!(handed, ""),
        Ok(Some(found)) => {
            let again = self::cursor(pages, &found);
            assert_eq!(pages.position::<T>(&again), Ok(Some(found)));
        }
        Err(_) => is_refused::<T>(pages, handed),
    }
}

/// The cursor behind a page that ends with a position.
fn cursor<T: Serialize>(pages: &Pages, position: &T) -> String {
    pages
        .cut(&mut vec![(), ()], 1, |()| position)
        .expect("there is more")
}

fn is_refused<T: DeserializeOwned + Debug>(pages: &Pages, cursor: &str) {
    let violation = pages.position::<T>(cursor).expect_err("leads nowhere");
    assert!(
        violation.path == "cursor" && violation.message.ends_with("begin without one"),
        "{violation:?}"
    );
}

/// With another character at a place.
fn garbled(cursor: &str, place: usize) -> String {
    let garble = |(at, character)| match (at == place, character) {
        (true, 'A') => 'B',
        (true, _) => 'A',
        (false, same) => same,
    };
    cursor.chars().enumerate().map(garble).collect()
}
