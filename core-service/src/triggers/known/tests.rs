//! What is new by what is known.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::answer::MOST_LISTED;
use super::*;
use crate::connectors::{Listed, Poll};

/// A poll that says this, too.
fn poll(says: &[(&str, Value)]) -> Poll {
    let mut poll = json!({ "key": "{{$item}}" });
    for (name, value) in says {
        poll[name] = value.clone();
    }
    serde_json::from_value(poll).unwrap()
}

fn mixed() -> Poll {
    poll(&[])
}

fn latest_first() -> Poll {
    poll(&[("latestFirst", json!(true))])
}

fn ordered() -> Poll {
    poll(&[("order", json!("{{$item}}"))])
}

/// An answer with these items, after which the list goes on.
fn part(poll: &Poll, ids: impl IntoIterator<Item = i64>) -> Answer {
    let items = ids.into_iter().map(Value::from).collect();
    let listed = Listed { items, goes_on: true };
    Answer::read(listed, poll, &Value::Null).unwrap()
}

/// An answer with these items, which are all there are.
fn whole(poll: &Poll, ids: impl IntoIterator<Item = i64>) -> Answer {
    let part = part(poll, ids);
    Answer {
        goes_on: false,
        ..part
    }
}

fn ids(news: &News<'_>) -> Vec<i64> {
    let items = news.items.iter();
    items.map(|item| item.value.as_i64().unwrap()).collect()
}

/// What each answer after the first one brings that is new, and whether it may be not all.
fn told(answers: &[Answer]) -> Vec<(Vec<i64>, bool)> {
    let mut bytes = Known::first(&answers[0]).write();
    let later = answers[1..].iter().map(|answer| {
        let mut known = Known::read(&bytes);
        let news = known.news(answer);
        bytes = known.with(answer, &[]).write();
        (ids(&news), news.is_partial)
    });
    later.collect()
}

/// What each answer after the first one brings that is new, where each is a part of the list.
fn new(poll: &Poll, answers: &[&[i64]]) -> Vec<Vec<i64>> {
    let answers: Vec<_> = answers
        .iter()
        .map(|ids| part(poll, ids.iter().copied()))
        .collect();
    told(&answers).into_iter().map(|(new, _)| new).collect()
}

#[test]
fn what_slides_into_the_list_is_old() {
    let answers: [&[i64]; 4] = [&[5, 4, 3], &[6, 5, 2], &[2, 1, 0], &[7, 6, 0]];
    assert_eq!(
        new(&mixed(), &answers),
        [vec![6, 2], vec![1, 0], vec![7]],
        "without a word on the order, what is not known is new"
    );
    assert_eq!(
        new(&latest_first(), &answers),
        [vec![6], vec![], vec![7]],
        "what stands below a known one is old"
    );
    assert_eq!(
        new(&ordered(), &answers),
        [vec![6], vec![], vec![7]],
        "what is below the first answer is old"
    );
    let whole_window: [&[i64]; 2] = [&[5, 4, 3], &[2, 1, 0]];
    assert_eq!(new(&ordered(), &whole_window), [vec![0; 0]]);
    let burst: [&[i64]; 3] = [&[5, 4, 3], &[9, 8, 7], &[10, 9, 6]];
    assert_eq!(
        new(&ordered(), &burst),
        [vec![9, 8, 7], vec![10, 6]],
        "what came in between is new, even when it is seen late"
    );
}

#[test]
fn without_a_known_item_only_a_list_that_was_seen_to_its_end_has_new_ones() {
    let poll = latest_first();
    let seen_in_part = [part(&poll, [5, 4]), part(&poll, [3, 2]), whole(&poll, [7, 6])];
    assert_eq!(
        told(&seen_in_part),
        [(vec![], true), (vec![], true)],
        "they may have been there all the time"
    );
    let seen_whole = [
        part(&poll, [5, 4]),
        whole(&poll, [6, 5, 4]),
        part(&poll, [8, 7]),
        whole(&poll, []),
        whole(&poll, [9]),
    ];
    assert_eq!(
        told(&seen_whole),
        [
            (vec![6], false),
            (vec![8, 7], true),
            (vec![], false),
            (vec![9], false)
        ],
    );
    let empty = [whole(&poll, []), part(&poll, [2, 1])];
    assert_eq!(told(&empty), [(vec![2, 1], true)]);
}

#[test]
fn an_answer_that_does_not_come_to_a_known_item_may_be_not_all() {
    for (poll, is_partial) in [(ordered(), [true, false, false]), (mixed(), [true, true, false])] {
        let answers = [
            whole(&poll, [1]),
            part(&poll, [3, 2]),
            part(&poll, [4, 3]),
            whole(&poll, [6, 5]),
        ];
        let told: Vec<_> = told(&answers).into_iter().map(|(_, partial)| partial).collect();
        assert_eq!(told, is_partial);
    }
}

#[test]
fn what_is_not_accepted_is_known_all_the_same() {
    let poll = poll(&[("accept", json!("{{$item < 10}}")), ("order", json!("{{$item}}"))]);
    let mut known = Known::first(&part(&poll, [11]));
    let answer = part(&poll, [13, 12, 9]);
    assert!(known.old().holds(&answer.items[2].mark), "it is below the first");
    assert_eq!(ids(&known.news(&answer)), [0; 0]);
    let known = known.with(&answer, &[]);
    assert!(known.old().holds(&answer.items[1].mark));
}

#[test]
fn an_empty_first_answer_says_of_nothing_that_it_is_old() {
    let answers: [&[i64]; 3] = [&[], &[5, 4], &[5, 3]];
    assert_eq!(new(&ordered(), &answers), [vec![5, 4], vec![3]]);
}

#[test]
fn lists_in_any_order_start_what_is_not_known() {
    let answers: [&[i64]; 3] = [&[1, 2], &[1, 2, 3, 3], &[4, 1, 5, 2, 3]];
    assert_eq!(new(&mixed(), &answers), [vec![3], vec![4, 5]]);
}

#[test]
fn what_is_left_for_another_time_is_new_again() {
    let poll = latest_first();
    let mut known = Known::first(&whole(&poll, [1]));
    let answer = whole(&poll, [4, 3, 2, 1]);
    let news = known.news(&answer);
    assert_eq!(ids(&news), [4, 3, 2]);
    let mut known = known.with(&answer, &news.items[..2]);
    assert_eq!(ids(&known.news(&answer)), [4, 3]);
}

#[test]
fn all_that_is_listed_is_remembered() {
    let poll = mixed();
    let listed = i64::try_from(MOST_LISTED).unwrap();
    let first = whole(&poll, 0..listed);
    let mut known = Known::read(&Known::first(&first).write());
    assert!(known.news(&first).items.is_empty());
    // One more, and nothing of what is still listed is forgotten for it.
    let second = whole(&poll, 1..=listed);
    assert_eq!(ids(&known.news(&second)), [listed]);
    let mut known = known.with(&second, &[]);
    assert!(known.news(&second).items.is_empty());
    // Of what is listed no more, the latest are remembered.
    let known = known.with(&whole(&poll, [listed + 1]), &[]);
    assert_eq!(known.digests.len(), REMEMBERED);
}

#[test]
fn what_was_written_without_a_floor_gets_one_from_what_is_known() {
    let poll = ordered();
    let items = part(&poll, [4, 5]).items;
    let before: Vec<u8> = items.iter().flat_map(|item| item.mark.digest).collect();
    let mut known = Known::read(&before);
    assert_eq!(Known::read(&known.write()).floor, Floor::Unsaid);
    assert_eq!(ids(&known.news(&part(&poll, [6, 5, 3]))), [6]);
    let written = known.write();
    assert_eq!(Known::read(&written).floor, known.floor);
    // A server that knows no floor reads what is known all the same.
    let (digests, _rest) = written.as_chunks::<DIGEST>();
    assert_eq!(digests[..2].as_flattened(), before);
}
