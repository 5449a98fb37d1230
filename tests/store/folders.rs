//! Folders and tags: trees without circles, and labels that go without a trace.

use core_service::store::{Actor, Folder, FolderChange, StoreError, UpdateFolder, WorkflowChange};

use crate::fixture::Fixture;

on_both_databases!(
    a_folder_is_never_inside_itself,
    contents_outlive_their_folder,
    a_deleted_folder_takes_nothing_in,
    tags_change_and_go,
);

async fn folder(fixture: &Fixture, name: &str, parent_id: Option<&str>) -> Folder {
    fixture
        .store
        .create_folder(&Actor::default(), fixture.organization_id(), name, parent_id)
        .await
        .unwrap()
}

async fn move_to(fixture: &Fixture, folder_id: &str, parent_id: Option<&str>) -> UpdateFolder {
    let change = FolderChange {
        name: None,
        parent_id: Some(parent_id),
    };
    fixture
        .store
        .update_folder(&Actor::default(), fixture.organization_id(), folder_id, &change)
        .await
        .unwrap()
}

async fn a_folder_is_never_inside_itself(fixture: &Fixture) {
    let top = folder(fixture, "top", None).await;
    let inner = folder(fixture, "inner", Some(&top.id)).await;
    assert_eq!(
        move_to(fixture, &top.id, Some(&inner.id)).await,
        UpdateFolder::Cycle
    );
    assert_eq!(
        move_to(fixture, &top.id, Some(&top.id)).await,
        UpdateFolder::Cycle
    );
    assert_eq!(
        move_to(fixture, &top.id, Some("folder_none")).await,
        UpdateFolder::NoParent
    );
    assert!(matches!(
        move_to(fixture, &inner.id, None).await,
        UpdateFolder::Updated(Folder { parent_id: None, .. })
    ));
    assert!(matches!(
        move_to(fixture, &top.id, Some(&inner.id)).await,
        UpdateFolder::Updated(_)
    ));
}

async fn contents_outlive_their_folder(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let top = folder(fixture, "top", None).await;
    let middle = folder(fixture, "middle", Some(&top.id)).await;
    let bottom = folder(fixture, "bottom", Some(&middle.id)).await;
    let workflow = fixture.workflow("kept").await;
    let change = WorkflowChange {
        folder_id: Some(Some(middle.id.clone())),
        ..WorkflowChange::default()
    };
    let before = store
        .update_workflow(&actor, fixture.organization_id(), &workflow.id, &change)
        .await
        .unwrap();
    store
        .delete_folder(&actor, fixture.organization_id(), &middle.id)
        .await
        .unwrap();
    let after = store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert_eq!(after.folder_id.as_deref(), Some(top.id.as_str()));
    assert!(after.updated_at > before.updated_at);
    let tree = store
        .folder_descendants(fixture.organization_id(), &top.id)
        .await
        .unwrap();
    assert!(tree.contains(&bottom.id) && tree.len() == 2, "{tree:?}");
}

async fn a_deleted_folder_takes_nothing_in(fixture: &Fixture) {
    for _ in 0..8 {
        let doomed = folder(fixture, "doomed", None).await;
        let (store, organization_id) = (fixture.store.clone(), fixture.organization_id().to_owned());
        let parent_id = doomed.id.clone();
        let inside = tokio::spawn(async move {
            store
                .create_folder(&Actor::default(), &organization_id, "inside", Some(&parent_id))
                .await
        });
        let deleted = fixture
            .store
            .delete_folder(&Actor::default(), fixture.organization_id(), &doomed.id)
            .await;
        deleted.unwrap();
        match inside.await.unwrap() {
            Ok(_) | Err(StoreError::NotFound("folder") | StoreError::BrokenReference(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    let left = fixture
        .store
        .list_folders(fixture.organization_id())
        .await
        .unwrap();
    assert!(left.iter().all(|folder| folder.parent_id.is_none()), "{left:?}");
}

async fn tags_change_and_go(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let organization_id = fixture.organization_id();
    let tag = store
        .create_tag(&actor, organization_id, "Äh", "red")
        .await
        .unwrap();
    let workflow = fixture.workflow("tagged").await;
    store
        .set_workflow_tags(&actor, organization_id, &workflow.id, &[&tag.id])
        .await
        .unwrap();
    let changed = store
        .update_tag(&actor, organization_id, &tag.id, None, Some("blue"))
        .await
        .unwrap();
    assert_eq!((changed.name.as_str(), changed.color.as_str()), ("Äh", "blue"));
    assert!(matches!(
        store
            .update_tag(&actor, "org_other", &tag.id, Some("x"), None)
            .await,
        Err(StoreError::NotFound("tag"))
    ));
    assert!(matches!(
        store.delete_tag(&actor, "org_other", &tag.id).await,
        Err(StoreError::NotFound("tag"))
    ));
    store.delete_tag(&actor, organization_id, &tag.id).await.unwrap();
    assert!(store.list_tags(organization_id).await.unwrap().is_empty());
}
