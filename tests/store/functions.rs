//! Custom functions: one a name and team, found by what they are called and described as.

use core_service::store::{Function, FunctionChange, FunctionSaved, NewFunction, StoreError};

use crate::fixture::Fixture;

on_both_databases!(
    a_name_is_taken_once_in_its_team,
    a_change_may_not_take_a_name,
    lists_are_paged_and_searched,
);

fn new<'a>(name: &'a str, team_id: Option<&'a str>) -> NewFunction<'a> {
    NewFunction {
        name,
        description: None,
        code: "return 1\0",
        parameters: b"[]",
        folder_id: None,
        team_id,
    }
}

async fn save(fixture: &Fixture, new: &NewFunction<'_>) -> FunctionSaved {
    let saved = fixture
        .store
        .create_function(&fixture.actor(), fixture.organization_id(), new)
        .await;
    saved.unwrap()
}

fn saved(outcome: FunctionSaved) -> Function {
    match outcome {
        FunctionSaved::Saved(function) => function,
        FunctionSaved::NameTaken => panic!("the name is taken"),
    }
}

async fn a_name_is_taken_once_in_its_team(fixture: &Fixture) {
    let team = fixture.organization.team_id.clone();
    let own = saved(save(fixture, &new("vatRate", None)).await);
    assert_eq!(own.code, "return 1\0");
    assert_eq!(
        save(fixture, &new("vatRate", None)).await,
        FunctionSaved::NameTaken
    );
    let teams = saved(save(fixture, &new("vatRate", Some(&team))).await);
    assert_ne!(own.id, teams.id);
    assert_eq!(
        save(fixture, &new("vatRate", Some(&team))).await,
        FunctionSaved::NameTaken
    );
    saved(save(fixture, &new("vatrate", None)).await);
    assert_eq!(fixture.activity().await[0].action, "function.created");
}

async fn a_change_may_not_take_a_name(fixture: &Fixture) {
    let (store, organization, actor) = (&fixture.store, fixture.organization_id(), fixture.actor());
    saved(save(fixture, &new("first", None)).await);
    let second = saved(save(fixture, &new("second", None)).await);
    let change = FunctionChange {
        name: Some("first".to_owned()),
        ..FunctionChange::default()
    };
    let taken = store
        .update_function(&actor, organization, &second.id, &change)
        .await
        .unwrap();
    assert_eq!(taken, FunctionSaved::NameTaken);
    assert_eq!(store.function(organization, &second.id).await.unwrap(), second);
    let change = FunctionChange {
        name: Some("third".to_owned()),
        code: Some("return 3".to_owned()),
        parameters: Some(b"[3]".to_vec()),
        ..FunctionChange::default()
    };
    let changed = saved(
        store
            .update_function(&actor, organization, &second.id, &change)
            .await
            .unwrap(),
    );
    assert_eq!(
        (changed.name.as_str(), changed.code.as_str()),
        ("third", "return 3")
    );
    assert_eq!(store.function(organization, &second.id).await.unwrap(), changed);
    let unknown = store
        .update_function(&actor, "org_other", &second.id, &change)
        .await;
    assert!(matches!(unknown, Err(StoreError::NotFound("function"))));
}

async fn lists_are_paged_and_searched(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let names = ["vatRate", "netPrice", "grossPrice"];
    let mut made = Vec::new();
    for name in names {
        let described = NewFunction {
            description: Some("100% of the Price"),
            ..new(name, None)
        };
        made.push(saved(save(fixture, &described).await).id);
    }
    let list = async |query: Option<&str>, after: Option<&str>| {
        let found = store.list_functions(organization, query, after, 2).await.unwrap();
        found.into_iter().map(|function| function.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None).await, [made[2].clone(), made[1].clone()]);
    assert_eq!(list(None, Some(&made[1])).await, [made[0].clone()]);
    assert_eq!(list(Some("VATR"), None).await, [made[0].clone()]);
    assert_eq!(
        list(Some("0% of the price"), Some(&made[2])).await,
        [made[1].clone(), made[0].clone()]
    );
    assert_eq!(list(Some("_"), None).await, [""; 0]);
}
