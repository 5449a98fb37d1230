//! Tokens: one at a time fetches the next, and none takes a later one's place.

use core_service::store::{
    Actor, CredentialStatus, LeaseToken, NewToken, TokenFailure, TokenFailureKind, TokenLease, Topic,
};
use test_support::together;

use crate::credentials::{make, read};
use crate::fixture::{Fixture, LONG};

on_both_databases!(
    of_many_who_ask_one_fetches,
    a_lease_is_over_by_itself,
    a_late_token_takes_nobodys_place,
    a_failure_is_told_to_those_who_wait,
    a_refusal_ends_an_active_credential,
    a_credential_takes_its_token_along,
);

const NEW: NewToken<'_> = NewToken {
    data: b"sealed",
    renew_at: Some(7),
};

async fn lease(fixture: &Fixture, credential: &str, revision: i64, lasts_ms: i64) -> TokenLease {
    match fixture
        .store
        .lease_token(credential, revision, lasts_ms)
        .await
        .unwrap()
    {
        LeaseToken::Granted(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn failure(kind: TokenFailureKind) -> TokenFailure {
    TokenFailure {
        kind,
        reason: "it rains".to_owned(),
    }
}

async fn of_many_who_ask_one_fetches(fixture: &Fixture) {
    let credential = make(fixture, None).await.id;
    let asked = (0..16).map(|_| {
        let (store, credential) = (fixture.store.clone(), credential.clone());
        async move { store.lease_token(&credential, 0, LONG).await.unwrap() }
    });
    let asked = together(asked).await;
    let granted = asked.iter().filter(|one| matches!(one, LeaseToken::Granted(_)));
    assert_eq!(granted.count(), 1, "{asked:?}");
    let held = asked.iter().filter(|one| matches!(one, LeaseToken::Held));
    assert_eq!(held.count(), 15, "{asked:?}");
}

async fn a_lease_is_over_by_itself(fixture: &Fixture) {
    let credential = make(fixture, None).await.id;
    let lost = lease(fixture, &credential, 0, 0).await;
    let next = lease(fixture, &credential, 0, LONG).await;
    let temporary = failure(TokenFailureKind::Temporary);
    fixture.store.token_failed(&lost, &temporary).await.unwrap();
    let again = fixture.store.lease_token(&credential, 0, LONG).await.unwrap();
    assert!(
        matches!(again, LeaseToken::Held),
        "the lost one ends no other: {again:?}"
    );
    assert_eq!(fixture.store.save_token(&next, &NEW).await.unwrap(), Some(1));
    let kept = fixture.store.token(&credential).await.unwrap().unwrap();
    assert_eq!(
        (kept.revision, kept.data.as_deref(), kept.renew_at),
        (1, Some(&b"sealed"[..]), Some(7))
    );
}

async fn a_late_token_takes_nobodys_place(fixture: &Fixture) {
    let credential = make(fixture, None).await.id;
    let mut heard = fixture.store.subscribe();
    let slow = lease(fixture, &credential, 0, 0).await;
    let fast = lease(fixture, &credential, 0, LONG).await;
    // The one that was slow has the only token there is, and is first after all.
    assert_eq!(fixture.store.save_token(&slow, &NEW).await.unwrap(), Some(1));
    let other = NewToken {
        data: b"other",
        renew_at: None,
    };
    assert_eq!(fixture.store.save_token(&fast, &other).await.unwrap(), None);
    let kept = fixture.store.token(&credential).await.unwrap().unwrap();
    assert_eq!(kept.data.as_deref(), Some(&b"sealed"[..]));
    let asked = fixture.store.lease_token(&credential, 0, LONG).await.unwrap();
    assert!(matches!(asked, LeaseToken::Changed), "{asked:?}");
    let told = async {
        loop {
            if let Some(told) = heard.next().await
                && told.topic == Topic::Tokens
            {
                return told.payload;
            }
        }
    };
    let told = tokio::time::timeout(test_support::PATIENCE, told).await;
    assert_eq!(told.unwrap(), credential);
}

async fn a_failure_is_told_to_those_who_wait(fixture: &Fixture) {
    let credential = make(fixture, None).await.id;
    let held = lease(fixture, &credential, 0, LONG).await;
    let temporary = failure(TokenFailureKind::Temporary);
    fixture.store.token_failed(&held, &temporary).await.unwrap();
    let kept = fixture.store.token(&credential).await.unwrap().unwrap();
    assert_eq!(
        (kept.failures, kept.failure, kept.data),
        (1, Some(temporary), None)
    );
    let next = lease(fixture, &credential, 0, LONG).await;
    assert_eq!(fixture.store.save_token(&next, &NEW).await.unwrap(), Some(1));
    let kept = fixture.store.token(&credential).await.unwrap().unwrap();
    assert_eq!((kept.failures, kept.failure), (1, None));
}

async fn a_refusal_ends_an_active_credential(fixture: &Fixture) {
    let credential = make(fixture, None).await.id;
    let (store, own) = (&fixture.store, fixture.organization_id());
    let refused = failure(TokenFailureKind::Refused);
    let lost = lease(fixture, &credential, 0, 0).await;
    let held = lease(fixture, &credential, 0, LONG).await;
    let expired = CredentialStatus::Expired;
    store.token_refused(&lost, own, expired, &refused).await.unwrap();
    assert!(read(fixture, &credential).await.status == CredentialStatus::Active);
    store.token_refused(&held, own, expired, &refused).await.unwrap();
    assert!(read(fixture, &credential).await.status == expired);
    // Another answer does not change what a person has to deal with.
    let again = lease(fixture, &credential, 0, LONG).await;
    let invalid = CredentialStatus::Invalid;
    store.token_refused(&again, own, invalid, &refused).await.unwrap();
    assert!(read(fixture, &credential).await.status == expired);
}

async fn a_credential_takes_its_token_along(fixture: &Fixture) {
    let made = make(fixture, Some((b"hash", LONG))).await;
    let (store, own, actor) = (&fixture.store, fixture.organization_id(), Actor::default());
    let connected = store
        .connect_credential(&actor, b"hash", b"data", Some(&NEW))
        .await;
    assert!(connected.unwrap());
    assert_eq!(store.token(&made.id).await.unwrap().unwrap().revision, 1);
    store.delete_credential(&actor, own, &made.id).await.unwrap();
    assert!(store.token(&made.id).await.unwrap().is_none());
    let asked = store.lease_token(&made.id, 0, LONG).await.unwrap();
    assert!(matches!(asked, LeaseToken::Changed), "{asked:?}");
}
