//! Variables: one for each name of a team or an organization, until it is deleted.

use core_service::id;
use core_service::store::{Actor, NewVariable, StoreError, Variable};

use crate::fixture::{Fixture, organization};

on_both_databases!(
    a_name_is_taken_once,
    a_team_and_its_organization_have_names_of_their_own,
    workflows_see_their_teams_and_the_organizations,
    a_deleted_value_is_gone,
);

fn variable<'a>(id: &'a str, name: &'a str, team_id: Option<&'a str>, value: &'a [u8]) -> NewVariable<'a> {
    NewVariable {
        id,
        name,
        team_id,
        is_secret: false,
        value,
    }
}

async fn make(fixture: &Fixture, name: &str, team_id: Option<&str>, value: &[u8]) -> Option<String> {
    let variable_id = id::new(id::Kind::Variable);
    let new = variable(&variable_id, name, team_id, value);
    let made = fixture
        .store
        .create_variable(&Actor::default(), fixture.organization_id(), &new)
        .await;
    made.unwrap().map(|_| variable_id)
}

async fn find(fixture: &Fixture, name: &str, team_id: Option<&str>) -> Option<Variable> {
    fixture
        .store
        .find_variable(fixture.organization_id(), team_id, name)
        .await
        .unwrap()
}

async fn a_name_is_taken_once(fixture: &Fixture) {
    let makers: Vec<_> = (0..8_u8)
        .map(|value| {
            let (store, organization_id) = (fixture.store.clone(), fixture.organization_id().to_owned());
            tokio::spawn(async move {
                let variable_id = id::new(id::Kind::Variable);
                let value = [value];
                let new = variable(&variable_id, "ONE", None, &value);
                let made = store
                    .create_variable(&Actor::default(), &organization_id, &new)
                    .await;
                made.unwrap().is_some()
            })
        })
        .collect();
    let mut made = 0;
    for maker in makers {
        made += usize::from(maker.await.unwrap());
    }
    assert_eq!(made, 1);
    let listed = fixture
        .store
        .list_variables(fixture.organization_id(), 10)
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
}

async fn a_team_and_its_organization_have_names_of_their_own(fixture: &Fixture) {
    let team = fixture.organization.team_id.as_str();
    let shared = make(fixture, "NAME", None, b"shared").await.unwrap();
    let own = make(fixture, "NAME", Some(team), b"own").await.unwrap();
    assert_eq!(make(fixture, "NAME", Some(team), b"again").await, None);
    assert_eq!(find(fixture, "NAME", None).await.unwrap().id, shared);
    assert_eq!(find(fixture, "NAME", Some(team)).await.unwrap().id, own);
    assert!(find(fixture, "name", None).await.is_none(), "names are exact");
    let other = organization(&fixture.store).await;
    let elsewhere = fixture
        .store
        .find_variable(fixture.organization_id(), Some(&other.team_id), "NAME")
        .await;
    assert!(matches!(elsewhere, Err(StoreError::NotFound("team"))));
    let theirs = fixture.store.variable(&other.organization_id, &shared).await;
    assert!(matches!(theirs, Err(StoreError::NotFound("variable"))));
}

async fn workflows_see_their_teams_and_the_organizations(fixture: &Fixture) {
    let workflow = fixture.workflow("reads").await;
    make(fixture, "A", None, b"1").await.unwrap();
    make(fixture, "B", Some(&workflow.team_id), b"2").await.unwrap();
    let seen = async |workflow_id: &str| {
        let rows = fixture
            .store
            .workflow_variables(fixture.organization_id(), workflow_id)
            .await
            .unwrap();
        let mut names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(seen(&workflow.id).await, ["A", "B"]);
    assert_eq!(seen("wf_gone").await, ["A"]);
}

async fn a_deleted_value_is_gone(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let made = make(fixture, "NAME", None, b"old").await.unwrap();
    store
        .delete_variable(&actor, fixture.organization_id(), &made)
        .await
        .unwrap();
    for again in [
        store
            .delete_variable(&actor, fixture.organization_id(), &made)
            .await,
        store
            .set_variable(&actor, fixture.organization_id(), &made, Some(b"x"))
            .await
            .map(drop),
    ] {
        assert!(
            matches!(again, Err(StoreError::NotFound("variable"))),
            "{again:?}"
        );
    }
    assert!(find(fixture, "NAME", None).await.is_none());
    let next = make(fixture, "NAME", None, b"new").await.unwrap();
    store
        .set_variable(&actor, fixture.organization_id(), &next, None)
        .await
        .unwrap();
    assert_eq!(
        find(fixture, "NAME", None).await.unwrap().value,
        b"new",
        "no value keeps it"
    );
}
