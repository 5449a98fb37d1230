//! Credentials: finished once, tested, deleted with what they hold.

use core_service::store::{Actor, Credential, CredentialStatus, NewCredential, NewLink, StoreError};
use core_service::{clock, id};

use crate::fixture::{Fixture, LONG, organization};

on_both_databases!(
    a_link_finishes_a_credential_once,
    a_link_runs_out,
    a_test_changes_the_status_or_nothing,
    only_own_and_living_credentials_are_found,
);

/// A credential with a link of this token that lasts so long, or without.
pub(crate) async fn make(fixture: &Fixture, link: Option<(&[u8], i64)>) -> Credential {
    let link = link.map(|(token_hash, lasts)| NewLink {
        token_hash,
        expires_at: clock::now_ms() + lasts,
    });
    let new = NewCredential {
        id: &id::new(id::Kind::Credential),
        name: "Mine",
        app_id: "http",
        connection_id: "bearer",
        data: b"sealed",
        team_id: None,
        link,
    };
    let made = fixture
        .store
        .create_credential(&Actor::default(), fixture.organization_id(), &new)
        .await;
    made.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) async fn read(fixture: &Fixture, id: &str) -> Credential {
    let found = fixture.store.credential(fixture.organization_id(), id).await;
    found.unwrap_or_else(|error| panic!("{error}"))
}

async fn a_link_finishes_a_credential_once(fixture: &Fixture) {
    let made = make(fixture, Some((b"hash", LONG))).await;
    assert!(made.status == CredentialStatus::CredentialRequired && made.can_be_connected());
    let tries = (0..8_u8).map(|number| {
        let store = fixture.store.clone();
        async move {
            store
                .connect_credential(&Actor::default(), b"hash", &[number], None)
                .await
                .unwrap()
        }
    });
    let done = test_support::together(tries).await;
    assert_eq!(done.iter().filter(|done| **done).count(), 1);
    let finished = read(fixture, &made.id).await;
    assert!(finished.status == CredentialStatus::Active && finished.data.len() == 1);
    assert!(finished.updated_at > made.updated_at);
}

async fn a_link_runs_out(fixture: &Fixture) {
    let made = make(fixture, Some((b"hash", -1))).await;
    let store = &fixture.store;
    assert!(
        store
            .linked_credential(b"hash")
            .await
            .unwrap()
            .is_some_and(|found| !found.can_be_connected())
    );
    assert!(
        !store
            .connect_credential(&Actor::default(), b"hash", b"new", None)
            .await
            .unwrap()
    );
    assert!(store.linked_credential(b"other").await.unwrap().is_none());
    assert!(read(fixture, &made.id).await == made);
}

async fn a_test_changes_the_status_or_nothing(fixture: &Fixture) {
    let made = make(fixture, None).await;
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    for unchanged in [None, Some(CredentialStatus::Active)] {
        store
            .credential_verified(&actor, organization, &made.id, unchanged)
            .await
            .unwrap();
        assert!(read(fixture, &made.id).await == made);
    }
    let invalid = Some(CredentialStatus::Invalid);
    store
        .credential_verified(&actor, organization, &made.id, invalid)
        .await
        .unwrap();
    let after = read(fixture, &made.id).await;
    assert!(after.status == CredentialStatus::Invalid && after.updated_at > made.updated_at);
}

async fn only_own_and_living_credentials_are_found(fixture: &Fixture) {
    let (store, actor, own) = (&fixture.store, Actor::default(), fixture.organization_id());
    let kept = make(fixture, None).await;
    let deleted = make(fixture, Some((b"hash", LONG))).await;
    store.delete_credential(&actor, own, &deleted.id).await.unwrap();
    let other = organization(store).await;
    let ids = [kept.id.as_str(), deleted.id.as_str(), "cred_none"];
    let found = store.credentials(own, &ids).await.unwrap();
    assert!(found == [kept.clone()]);
    assert!(
        store
            .credentials(&other.organization_id, &ids)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.credentials(own, &[]).await.unwrap().is_empty());
    assert!(store.linked_credential(b"hash").await.unwrap().is_none());
    assert!(
        !store
            .connect_credential(&actor, b"hash", b"new", None)
            .await
            .unwrap()
    );
    for again in [
        store.delete_credential(&actor, own, &deleted.id).await,
        store.credential_verified(&actor, own, &deleted.id, None).await,
        store
            .delete_credential(&actor, &other.organization_id, &kept.id)
            .await,
    ] {
        assert!(
            matches!(again, Err(StoreError::NotFound("credential"))),
            "{again:?}"
        );
    }
}
