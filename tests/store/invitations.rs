//! Invitations and seats: one pending for each email, none beyond the seats, each accepted once.

use core_service::store::{
    Accept, Actor, InvitationStatus, Invite, NewInvitation, OrganizationChange, Plan, Role, StoreError,
};
use core_service::{clock, id};

use crate::fixture::{Fixture, LONG};

on_both_databases!(
    an_invitation_expires_and_frees_its_email,
    of_many_who_accept_one_joins,
    seats_are_never_exceeded,
);

async fn invite(fixture: &Fixture, email: &str, token: &[u8], expires_at: i64) -> Result<Invite, StoreError> {
    let new = NewInvitation {
        id: &id::new(id::Kind::Invitation),
        email,
        role: Role::Member,
        team_id: Some(&fixture.organization.team_id),
        inviter_id: &fixture.organization.owner_user_id,
        token_hash: token,
        token: b"sealed",
        expires_at,
    };
    fixture
        .store
        .create_invitation(&Actor::default(), fixture.organization_id(), &new)
        .await
}

async fn an_invitation_expires_and_frees_its_email(fixture: &Fixture) {
    let store = &fixture.store;
    let past = clock::now_ms() - 1;
    assert!(matches!(
        invite(fixture, "Ä@b.c", b"1", past).await,
        Ok(Invite::Invited(_))
    ));
    let found = store.find_invitation(b"1").await.unwrap().unwrap();
    assert_eq!(found.status, InvitationStatus::Expired);
    let expired = store
        .accept_invitation(&Actor::default(), b"1", None)
        .await
        .unwrap();
    assert_eq!(expired, Accept::NotPending);
    let cancelled = store
        .cancel_invitation(&Actor::default(), fixture.organization_id(), &found.id)
        .await;
    assert!(!cancelled.unwrap());
    let later = clock::now_ms() + LONG;
    assert!(matches!(
        invite(fixture, "ä@B.C", b"2", later).await,
        Ok(Invite::Invited(_))
    ));
    assert!(matches!(
        invite(fixture, "ä@b.c", b"3", later).await,
        Ok(Invite::Pending)
    ));
    for (status, number) in [
        (None, 2),
        (Some(InvitationStatus::Expired), 1),
        (Some(InvitationStatus::Pending), 1),
        (Some(InvitationStatus::Accepted), 0),
    ] {
        let listed = store
            .list_invitations(fixture.organization_id(), status, 10)
            .await
            .unwrap();
        assert_eq!(listed.len(), number, "{status:?}");
        assert!(
            listed
                .iter()
                .all(|row| status.is_none_or(|status| row.status == status))
        );
    }
}

async fn of_many_who_accept_one_joins(fixture: &Fixture) {
    let later = clock::now_ms() + LONG;
    assert!(matches!(
        invite(fixture, "a@b.c", b"t", later).await,
        Ok(Invite::Invited(_))
    ));
    let accepting: Vec<_> = (0..6)
        .map(|_| {
            let store = fixture.store.clone();
            tokio::spawn(async move {
                store
                    .accept_invitation(&Actor::default(), b"t", Some("Ada"))
                    .await
            })
        })
        .collect();
    let mut joined = Vec::new();
    for accepted in accepting {
        if let Accept::Joined(user_id) = accepted.await.unwrap().unwrap() {
            joined.push(user_id);
        }
    }
    assert_eq!(joined.len(), 1);
    let member = fixture
        .store
        .member(fixture.organization_id(), &joined[0])
        .await
        .unwrap();
    assert_eq!((member.role, member.name.as_deref()), (Role::Member, Some("Ada")));
    assert!(matches!(
        invite(fixture, "A@B.C", b"u", later).await,
        Ok(Invite::Member)
    ));
    let known = [member.user_id.as_str(), "user_none"];
    let members = fixture
        .store
        .members(fixture.organization_id(), &known)
        .await
        .unwrap();
    assert_eq!(members, [member]);
}

async fn seats_are_never_exceeded(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let mut plan: Plan = store.plan("unlimited").await.unwrap();
    plan.id = "three".to_owned();
    plan.seats = Some(3);
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    let change = OrganizationChange {
        plan_id: Some(plan.id),
        ..OrganizationChange::default()
    };
    store
        .change_organization(&actor, fixture.organization_id(), &change)
        .await
        .unwrap();
    let expired = invite(fixture, "late@b.c", b"late", clock::now_ms() - 1).await;
    assert!(matches!(expired, Ok(Invite::Invited(_))));
    let later = clock::now_ms() + LONG;
    let mut seated = 0;
    for number in 0..3 {
        let token = format!("token {number}");
        seated += usize::from(
            invite(fixture, &format!("{number}@b.c"), token.as_bytes(), later)
                .await
                .is_ok(),
        );
    }
    assert_eq!(
        seated, 2,
        "the owner has a seat, too; an expired invitation has none"
    );
    let refused = store
        .create_member(&actor, fixture.organization_id(), "x@b.c", None, Role::Viewer)
        .await;
    assert!(matches!(refused, Err(StoreError::NoSeat)), "{refused:?}");
    // Accepting takes the seat that the invitation held.
    let accepted = store.accept_invitation(&actor, b"token 0", None).await.unwrap();
    assert!(matches!(accepted, Accept::Joined(_)));
}
