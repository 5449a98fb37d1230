//! Organizations, members, keys, settings: and that nobody sees another organization's.

use core_service::store::{
    Actor, BillingStatus, Founding, NewApiKey, OrganizationChange, Plan, Role, StoreError,
};

use crate::fixture::{Fixture, organization};

on_both_databases!(
    an_organization_comes_with_owner_and_team,
    emails_are_unique_regardless_of_case,
    a_key_brings_all_that_a_request_needs,
    a_key_cannot_be_made_for_another_organizations_member,
    the_first_of_several_settings_holds,
    plans_and_credits_change,
    rows_of_another_organization_are_not_found,
    text_with_nul_is_refused_and_nothing_breaks,
);

async fn an_organization_comes_with_owner_and_team(fixture: &Fixture) {
    let made = &fixture.organization;
    let owner = fixture
        .store
        .member(&made.organization_id, &made.owner_user_id)
        .await
        .unwrap();
    assert_eq!(
        (owner.email.as_str(), owner.role, owner.name),
        ("owner@example.com", Role::Owner, None)
    );
    let teams = fixture.store.list_teams(&made.organization_id).await.unwrap();
    assert_eq!(
        teams
            .iter()
            .map(|team| (&team.id, team.is_default))
            .collect::<Vec<_>>(),
        [(&made.team_id, true)]
    );
    let kept = fixture.store.organization(&made.organization_id).await.unwrap();
    assert_eq!((kept.plan.id.as_str(), kept.credits), ("unlimited", None));
    let missing = fixture
        .store
        .found_organization(
            &Actor::default(),
            &Founding {
                name: "No plan",
                plan_id: "none",
                owner_email: "a@b.c",
                key: None,
            },
        )
        .await;
    assert!(matches!(missing, Err(StoreError::NotFound("plan"))));
    assert_eq!(
        fixture.store.count_organizations().await.unwrap(),
        1,
        "a refused one leaves nothing"
    );
}

async fn emails_are_unique_regardless_of_case(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let again = store
        .create_member(
            &actor,
            fixture.organization_id(),
            "OWNER@Example.com",
            None,
            Role::Viewer,
        )
        .await;
    assert!(matches!(again, Err(StoreError::Duplicate(_))), "{again:?}");
    let other = organization(store).await;
    assert_ne!(
        other.owner_user_id, fixture.organization.owner_user_id,
        "each organization has its own"
    );
    let id = store
        .create_member(
            &actor,
            fixture.organization_id(),
            "Ünïcode@x.y",
            Some("雪"),
            Role::Viewer,
        )
        .await
        .unwrap();
    let members = store
        .list_members(fixture.organization_id(), None, 10)
        .await
        .unwrap();
    assert_eq!(members[0].user_id, id, "newest first");
    assert_eq!(members[0].name.as_deref(), Some("雪"));
    let rest = store
        .list_members(fixture.organization_id(), Some(&id), 10)
        .await
        .unwrap();
    assert_eq!(rest.len(), 1);
}

async fn a_key_brings_all_that_a_request_needs(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let hash = [0_u8, 255, 7];
    let new = NewApiKey {
        organization_id: fixture.organization_id(),
        user_id: &fixture.organization.owner_user_id,
        hash: &hash,
        scopes: &["workflow:read", "webhook:write"],
        expires_at: Some(5),
    };
    let key_id = store.create_api_key(&actor, &new).await.unwrap();
    let found = store.find_by_hash(&hash).await.unwrap().unwrap();
    assert_eq!(found.key.id, key_id);
    assert_eq!(found.key.scopes, ["workflow:read", "webhook:write"]);
    assert_eq!((found.key.expires_at, found.key.revoked_at), (Some(5), None));
    assert_eq!(
        (found.role, found.organization.id.as_str()),
        (Role::Owner, fixture.organization_id())
    );
    assert!(found.organization.plan.api_access);
    assert_eq!(store.find_by_hash(&[1]).await.unwrap(), None);

    store.revoke_api_key(&actor, &key_id).await.unwrap();
    let revoked = store.find_by_hash(&hash).await.unwrap().unwrap().key.revoked_at;
    store.revoke_api_key(&actor, &key_id).await.unwrap();
    let again = store.find_by_hash(&hash).await.unwrap().unwrap().key.revoked_at;
    assert!(revoked.is_some() && again == revoked, "the first time counts");
    assert!(matches!(
        store.revoke_api_key(&actor, "key_none").await,
        Err(StoreError::NotFound(_))
    ));
}

async fn a_key_cannot_be_made_for_another_organizations_member(fixture: &Fixture) {
    let other = organization(&fixture.store).await;
    let new = NewApiKey {
        organization_id: fixture.organization_id(),
        user_id: &other.owner_user_id,
        hash: b"h",
        scopes: &[],
        expires_at: None,
    };
    let refused = fixture.store.create_api_key(&Actor::default(), &new).await;
    assert!(matches!(refused, Err(StoreError::NotFound("member"))));
    assert_eq!(fixture.store.find_by_hash(b"h").await.unwrap(), None);
}

async fn the_first_of_several_settings_holds(fixture: &Fixture) {
    let writers: Vec<_> = (0..8_u8)
        .map(|value| {
            let store = fixture.store.clone();
            tokio::spawn(async move { store.insert_setting("secret", &[value, 0]).await.unwrap() })
        })
        .collect();
    let mut seen = Vec::new();
    for writer in writers {
        seen.push(writer.await.unwrap());
    }
    let kept = fixture.store.setting("secret").await.unwrap().unwrap();
    assert!(
        seen.iter().all(|value| *value == kept),
        "all nodes agree: {seen:?}"
    );
    fixture.store.put_setting("secret", b"new").await.unwrap();
    assert_eq!(
        fixture.store.setting("secret").await.unwrap().as_deref(),
        Some(&b"new"[..])
    );
    assert_eq!(fixture.store.setting("other").await.unwrap(), None);
}

async fn plans_and_credits_change(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let plan = Plan {
        id: "small".to_owned(),
        api_access: true,
        active: false,
        custom_functions: false,
        structures_created: Some(3),
        seats: None,
        credits: Some(100),
        read_rpm: Some(60),
        write_rpm: Some(0),
        retention_days: Some(30),
        retention_runs: None,
        activity_days: Some(365),
    };
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    assert_eq!(store.plan("small").await.unwrap(), plan);
    let change = OrganizationChange {
        plan_id: Some("small".to_owned()),
        credits: Some(Some(7)),
        billing_status: Some(BillingStatus::PastDue),
    };
    store
        .change_organization(&actor, fixture.organization_id(), &change)
        .await
        .unwrap();
    let kept = store.organization(fixture.organization_id()).await.unwrap();
    assert_eq!(
        (kept.plan, kept.credits, kept.billing_status),
        (plan, Some(7), BillingStatus::PastDue)
    );
    let unlimited = OrganizationChange {
        credits: Some(None),
        ..OrganizationChange::default()
    };
    store
        .change_organization(&actor, fixture.organization_id(), &unlimited)
        .await
        .unwrap();
    let kept = store.organization(fixture.organization_id()).await.unwrap();
    assert_eq!(
        (kept.plan.id.as_str(), kept.credits, kept.billing_status),
        ("small", None, BillingStatus::PastDue)
    );
    let nowhere = store.change_organization(&actor, "org_none", &unlimited).await;
    assert!(matches!(nowhere, Err(StoreError::NotFound("organization"))));
}

async fn rows_of_another_organization_are_not_found(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let workflow = fixture.workflow("mine").await;
    let folder = store
        .create_folder(&actor, fixture.organization_id(), "mine", None)
        .await
        .unwrap();
    let lease = fixture.lease().await;
    let run = fixture.run(&workflow.id);
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let other = organization(store).await.organization_id;

    assert!(matches!(
        store.workflow(&other, &workflow.id).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        store.delete_workflow(&actor, &other, &workflow.id).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        store.run(&other, &run_id).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(
        store
            .list_runs(&other, &workflow.id, None, None, 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .folder_descendants(&other, &folder.id)
            .await
            .unwrap()
            .is_empty()
    );
    let inside = store
        .create_folder(&actor, &other, "theirs", Some(&folder.id))
        .await;
    assert!(matches!(inside, Err(StoreError::NotFound("folder"))));
    assert!(matches!(
        store.member(&other, &fixture.organization.owner_user_id).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        store.send_signal(&other, &run_id, "cancel", b"").await,
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        store.set_workflow_tags(&actor, &other, &workflow.id, &[]).await,
        Err(StoreError::NotFound(_))
    ));
}

async fn text_with_nul_is_refused_and_nothing_breaks(fixture: &Fixture) {
    let refused = fixture
        .store
        .create_folder(&Actor::default(), fixture.organization_id(), "a\0b", None)
        .await;
    assert!(matches!(refused, Err(StoreError::NulInText)), "{refused:?}");
    fixture
        .store
        .create_folder(&Actor::default(), fixture.organization_id(), "fine", None)
        .await
        .unwrap();
    let folders = fixture
        .store
        .list_folders(fixture.organization_id())
        .await
        .unwrap();
    assert_eq!(folders.len(), 1);
}
