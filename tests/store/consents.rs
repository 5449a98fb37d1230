//! Questions of consent: answered once and in time, and gone with their credential.

use core_service::clock;
use core_service::store::{Actor, NewConsentRequest};
use test_support::together;

use crate::credentials::make;
use crate::fixture::{Fixture, LONG};

on_both_databases!(
    an_answer_is_taken_once,
    a_question_is_over_in_time,
    only_the_latest_questions_are_kept,
);

async fn ask(fixture: &Fixture, credential: &str, state: &[u8], lasts_ms: i64) {
    let new = NewConsentRequest {
        credential_id: credential,
        state_hash: state,
        data: b"sealed",
        expires_at: clock::now_ms() + lasts_ms,
    };
    fixture.store.ask_consent(&new).await.unwrap();
}

async fn is_open(fixture: &Fixture, state: &[u8]) -> Option<bool> {
    let found = fixture.store.consent_request(state).await.unwrap();
    found.map(|request| request.is_open)
}

async fn an_answer_is_taken_once(fixture: &Fixture) {
    let made = make(fixture, Some((b"hash", LONG))).await;
    ask(fixture, &made.id, b"state", LONG).await;
    assert_eq!(is_open(fixture, b"state").await, Some(true));
    let taken = (0..8).map(|_| {
        let store = fixture.store.clone();
        async move { store.take_consent(b"state").await.unwrap() }
    });
    let taken = together(taken).await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    assert_eq!(is_open(fixture, b"state").await, Some(false));
    assert!(!fixture.store.take_consent(b"other").await.unwrap());
    assert_eq!(is_open(fixture, b"other").await, None);
}

async fn a_question_is_over_in_time(fixture: &Fixture) {
    let late = make(fixture, Some((b"late", -1))).await;
    ask(fixture, &late.id, b"of a link that is over", LONG).await;
    assert_eq!(is_open(fixture, b"of a link that is over").await, Some(false));
    let made = make(fixture, Some((b"hash", LONG))).await;
    ask(fixture, &made.id, b"short", 0).await;
    assert_eq!(is_open(fixture, b"short").await, Some(false));
    ask(fixture, &made.id, b"long", LONG).await;
    fixture
        .store
        .delete_credential(&Actor::default(), fixture.organization_id(), &made.id)
        .await
        .unwrap();
    assert_eq!(is_open(fixture, b"long").await, None);
    assert!(fixture.store.last_consent(&made.id).await.unwrap().is_none());
}

async fn only_the_latest_questions_are_kept(fixture: &Fixture) {
    let made = make(fixture, Some((b"hash", LONG))).await;
    let other = make(fixture, Some((b"other", LONG))).await;
    ask(fixture, &other.id, b"other", LONG).await;
    for number in 0..40_u8 {
        ask(fixture, &made.id, &[number], LONG).await;
    }
    let mut kept = 0;
    for number in 0..40_u8 {
        kept += usize::from(is_open(fixture, &[number]).await.is_some());
    }
    assert_eq!(kept, 16);
    assert_eq!(is_open(fixture, &[39]).await, Some(true));
    assert_eq!(is_open(fixture, b"other").await, Some(true), "another's stay");
}
