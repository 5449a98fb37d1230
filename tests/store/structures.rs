//! Structures: kept, changed, and no more of them than the plan allows.

use core_service::store::{
    Actor, FunctionSaved, NewFunction, NewStructure, OrganizationChange, Plan, Store, StoreError, Structure,
    StructureChange, StructureCreated,
};

use crate::fixture::Fixture;

on_both_databases!(
    a_structure_changes_by_field,
    folder_and_team_must_exist,
    a_deleted_folders_contents_move_up,
    no_more_than_the_plan_allows,
);

fn new(name: &str) -> NewStructure<'_> {
    NewStructure {
        name,
        description: Some("What an order is"),
        fields: b"[]",
        field_count: 0,
        folder_id: None,
        team_id: None,
    }
}

async fn create(fixture: &Fixture, new: &NewStructure<'_>) -> Result<StructureCreated, StoreError> {
    let store: &Store = &fixture.store;
    store
        .create_structure(&fixture.actor(), fixture.organization_id(), new)
        .await
}

async fn created(fixture: &Fixture, name: &str) -> Structure {
    match create(fixture, &new(name)).await.unwrap() {
        StructureCreated::Created(structure) => structure,
        StructureCreated::LimitReached(most) => panic!("limited to {most}"),
    }
}

async fn a_structure_changes_by_field(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let first = created(fixture, "Order").await;
    let second = created(fixture, "Order").await;
    assert_eq!(
        store.list_structures(organization, 10).await.unwrap(),
        [second, first.clone()]
    );
    let folder = store
        .create_folder(&fixture.actor(), organization, "Shapes", None)
        .await
        .unwrap();
    let change = StructureChange {
        name: Some("Invoice".to_owned()),
        description: Some(None),
        fields: Some((b"[1]".to_vec(), 1)),
        folder_id: Some(Some(folder.id.clone())),
    };
    let changed = store
        .update_structure(&fixture.actor(), organization, &first.id, &change)
        .await
        .unwrap();
    assert_eq!(
        (changed.name.as_str(), changed.description.clone()),
        ("Invoice", None)
    );
    assert_eq!((changed.fields.as_slice(), changed.field_count), (&b"[1]"[..], 1));
    assert_eq!(changed.folder_id, Some(folder.id));
    assert!(changed.updated_at > first.updated_at);
    assert_eq!(store.structure(organization, &first.id).await.unwrap(), changed);
    let nothing = StructureChange::default();
    let foreign = store
        .update_structure(&fixture.actor(), "org_other", &first.id, &nothing)
        .await;
    assert!(matches!(foreign, Err(StoreError::NotFound("structure"))));
    let trail = fixture.activity().await;
    assert_eq!(trail[0].action, "structure.updated");
    assert_eq!(
        (trail[0].target_id.as_str(), trail[0].label.as_str()),
        (first.id.as_str(), "Invoice")
    );
}

async fn folder_and_team_must_exist(fixture: &Fixture) {
    let in_folder = NewStructure {
        folder_id: Some("folder_none"),
        ..new("Order")
    };
    assert!(matches!(
        create(fixture, &in_folder).await,
        Err(StoreError::NotFound("folder"))
    ));
    let in_team = NewStructure {
        team_id: Some("team_none"),
        ..new("Order")
    };
    assert!(matches!(
        create(fixture, &in_team).await,
        Err(StoreError::NotFound("team"))
    ));
    let team = fixture.organization.team_id.clone();
    let in_team = NewStructure {
        team_id: Some(&team),
        ..new("Order")
    };
    assert!(
        matches!(create(fixture, &in_team).await, Ok(StructureCreated::Created(made)) if made.team_id == Some(team.clone()))
    );
}

async fn a_deleted_folders_contents_move_up(fixture: &Fixture) {
    let (store, organization, actor) = (&fixture.store, fixture.organization_id(), fixture.actor());
    let outer = store
        .create_folder(&actor, organization, "Outer", None)
        .await
        .unwrap();
    let inner = store
        .create_folder(&actor, organization, "Inner", Some(&outer.id))
        .await
        .unwrap();
    let in_folder = NewStructure {
        folder_id: Some(&inner.id),
        ..new("Order")
    };
    let StructureCreated::Created(structure) = create(fixture, &in_folder).await.unwrap() else {
        panic!("the plan has no limit");
    };
    let function = NewFunction {
        name: "vatRate",
        description: None,
        code: "return 1",
        parameters: b"[]",
        folder_id: Some(&inner.id),
        team_id: None,
    };
    let FunctionSaved::Saved(function) = store
        .create_function(&actor, organization, &function)
        .await
        .unwrap()
    else {
        panic!("the name is free");
    };
    store
        .delete_folder(&actor, organization, &inner.id)
        .await
        .unwrap();
    let structure = store.structure(organization, &structure.id).await.unwrap();
    let function = store.function(organization, &function.id).await.unwrap();
    assert_eq!(
        (structure.folder_id.as_ref(), function.folder_id.as_ref()),
        (Some(&outer.id), Some(&outer.id))
    );
}

async fn no_more_than_the_plan_allows(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let plan = Plan {
        id: "three".to_owned(),
        structures_created: Some(3),
        ..store.plan("unlimited").await.unwrap()
    };
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    let change = OrganizationChange {
        plan_id: Some(plan.id),
        ..OrganizationChange::default()
    };
    store
        .change_organization(&fixture.actor(), organization, &change)
        .await
        .unwrap();
    created(fixture, "First").await;
    let attempts: Vec<_> = (0..20)
        .map(|_| {
            let (store, actor, organization) = (store.clone(), fixture.actor(), organization.to_owned());
            tokio::spawn(async move { store.create_structure(&actor, &organization, &new("Next")).await })
        })
        .collect();
    let mut made = 0;
    for attempt in attempts {
        match attempt.await.unwrap().unwrap() {
            StructureCreated::Created(_) => made += 1,
            StructureCreated::LimitReached(most) => assert_eq!(most, 3),
        }
    }
    assert_eq!(made, 2);
    assert_eq!(store.list_structures(organization, 10).await.unwrap().len(), 3);
}
