//! Manifests: versions that rise with the content, of one organization or of all.

use core_service::store::{Actor, NewManifest, StoreError};

use crate::fixture::{Fixture, organization};

on_both_databases!(
    a_version_rises_with_the_content,
    an_organization_has_its_own_before_those_for_all,
    another_organizations_manifest_is_not_found,
    versions_added_at_once_are_numbered_one_after_another,
);

fn new<'a>(organization_id: Option<&'a str>, app_id: &'a str, content: &'a str) -> NewManifest<'a> {
    NewManifest {
        organization_id,
        app_id,
        label: "Shop",
        digest: content,
        content: content.as_bytes(),
    }
}

async fn add(fixture: &Fixture, organization_id: Option<&str>, app_id: &str, content: &str) -> i64 {
    let new = new(organization_id, app_id, content);
    let added = fixture.store.add_manifest(&fixture.actor(), &new).await;
    added.unwrap()
}

/// The newest manifests of an organization, as `app content`.
async fn newest(fixture: &Fixture, organization_id: &str) -> Vec<String> {
    let found = fixture.store.newest_manifests(organization_id).await.unwrap();
    let shown = found
        .into_iter()
        .map(|newest| format!("{} {}", newest.app_id, newest.digest));
    shown.collect()
}

async fn a_version_rises_with_the_content(fixture: &Fixture) {
    let own = Some(fixture.organization_id());
    assert_eq!(add(fixture, own, "shop", "a").await, 1);
    assert_eq!(
        add(fixture, own, "shop", "a").await,
        1,
        "the same again is no new one"
    );
    assert_eq!(add(fixture, own, "shop", "b").await, 2);
    assert_eq!(
        add(fixture, own, "shop", "a").await,
        3,
        "one of before is a new one"
    );
    assert_eq!(add(fixture, own, "bank", "c").await, 1);
    assert_eq!(
        newest(fixture, fixture.organization_id()).await,
        ["bank c", "shop a"]
    );
    let told = fixture.activity().await;
    let told: Vec<_> = told
        .iter()
        .filter(|entry| entry.action == "manifest.added")
        .collect();
    assert_eq!(told.len(), 4);
    assert_eq!(
        (told[0].target_type.as_str(), told[0].target_id.as_str()),
        ("manifest", "bank")
    );
    let unknown = new(Some("org_unknown"), "shop", "a");
    let refused = fixture.store.add_manifest(&Actor::default(), &unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound("organization"))));
}

async fn an_organization_has_its_own_before_those_for_all(fixture: &Fixture) {
    let own = fixture.organization_id();
    let other = organization(&fixture.store).await.organization_id;
    add(fixture, Some(own), "shop", "own").await;
    add(fixture, None, "shop", "for all").await;
    add(fixture, None, "bank", "for all too").await;
    assert_eq!(newest(fixture, own).await, ["bank for all too", "shop own"]);
    assert_eq!(
        newest(fixture, &other).await,
        ["bank for all too", "shop for all"]
    );
    let told = fixture.activity().await;
    assert_eq!(told[0].action, "manifest.added", "what all get, all are told of");
}

async fn another_organizations_manifest_is_not_found(fixture: &Fixture) {
    let (store, own) = (&fixture.store, fixture.organization_id());
    let other = organization(store).await.organization_id;
    add(fixture, Some(own), "shop", "a").await;
    add(fixture, Some(own), "shop", "b").await;
    add(fixture, None, "bank", "c").await;
    assert_eq!(
        store.manifest(own, "a").await.unwrap(),
        b"a",
        "versions of before stay"
    );
    assert_eq!(store.manifest(&other, "c").await.unwrap(), b"c");
    for (organization_id, digest) in [(other.as_str(), "a"), (own, "d")] {
        let found = store.manifest(organization_id, digest).await;
        assert!(matches!(found, Err(StoreError::NotFound("manifest"))));
    }
    assert_eq!(newest(fixture, &other).await, ["bank c"]);
}

async fn versions_added_at_once_are_numbered_one_after_another(fixture: &Fixture) {
    let contents: Vec<String> = (0..8).map(|number| format!("content {number}")).collect();
    let mut adding = tokio::task::JoinSet::new();
    for content in contents {
        let (store, own) = (fixture.store.clone(), fixture.organization_id().to_owned());
        adding.spawn(async move {
            let new = new(Some(&own), "shop", &content);
            store.add_manifest(&Actor::default(), &new).await.unwrap()
        });
    }
    let mut versions = adding.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<i64>>());
}
