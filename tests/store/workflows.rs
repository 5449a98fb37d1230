//! Workflows: writes, versions, and that the last writer is never silently overwritten.

use std::collections::HashSet;

use core_service::store::{Actor, Delete, Deploy, NewDeployment, Save, StoreError, Workflow, WorkflowChange};

use crate::fixture::{Fixture, draft, graph};

on_both_databases!(
    a_patch_changes_only_what_it_names,
    updated_at_rises_strictly_with_every_write,
    one_of_fifty_parallel_saves_wins,
    an_unchanged_draft_deploys_as_the_same_version,
    a_stale_deploy_is_told_so,
    only_idle_workflows_are_deleted,
    an_undeployed_workflow_keeps_its_versions,
);

async fn deploy(fixture: &Fixture, workflow: &Workflow, text: &str) -> Deploy {
    let current = fixture
        .store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    let graph = graph(text);
    let new = NewDeployment {
        expected_updated_at: current.updated_at,
        graph: &graph,
        error_triggers: &[],
        polls: &[],
        registrations: &[],
    };
    fixture
        .store
        .deploy_workflow(&Actor::default(), fixture.organization_id(), &workflow.id, &new)
        .await
        .unwrap()
}

async fn version_of(fixture: &Fixture, workflow: &Workflow, text: &str) -> i64 {
    match deploy(fixture, workflow, text).await {
        Deploy::Deployed(deployment) => deployment.version_no,
        Deploy::Modified { .. } => panic!("nobody else writes"),
    }
}

async fn a_patch_changes_only_what_it_names(fixture: &Fixture) {
    let (store, actor) = (&fixture.store, Actor::default());
    let workflow = fixture.workflow("before").await;
    let folder = store
        .create_folder(&actor, fixture.organization_id(), "f", None)
        .await
        .unwrap();
    let change = WorkflowChange {
        description: Some(Some("what it does".to_owned())),
        folder_id: Some(Some(folder.id.clone())),
        recurrence: Some(Some(vec![0, 159, 146, 150])),
        execution_timeout_ms: Some(Some(1)),
        ..WorkflowChange::default()
    };
    store
        .update_workflow(&actor, fixture.organization_id(), &workflow.id, &change)
        .await
        .unwrap();
    let change = WorkflowChange {
        name: Some("after".to_owned()),
        folder_id: Some(None),
        active: Some(true),
        ..WorkflowChange::default()
    };
    let answered = store
        .update_workflow(&actor, fixture.organization_id(), &workflow.id, &change)
        .await
        .unwrap();
    let kept = store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert_eq!(answered, kept);
    assert_eq!(
        (kept.name.as_str(), kept.description.as_deref()),
        ("after", Some("what it does"))
    );
    assert_eq!(
        (kept.folder_id, kept.active, kept.execution_timeout_ms),
        (None, true, Some(1))
    );
    assert_eq!(
        kept.recurrence,
        Some(vec![0, 159, 146, 150]),
        "bytes that are no UTF-8 come back"
    );
    let nowhere = WorkflowChange {
        folder_id: Some(Some("folder_none".to_owned())),
        ..WorkflowChange::default()
    };
    let refused = store
        .update_workflow(&actor, fixture.organization_id(), &workflow.id, &nowhere)
        .await;
    assert!(matches!(refused, Err(StoreError::NotFound("folder"))));
}

async fn updated_at_rises_strictly_with_every_write(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("busy").await;
    let mut seen = vec![workflow.updated_at];
    for _ in 0..5 {
        let change = WorkflowChange {
            active: Some(false),
            ..WorkflowChange::default()
        };
        seen.push(
            store
                .update_workflow(&actor, organization, &workflow.id, &change)
                .await
                .unwrap()
                .updated_at,
        );
        let last = *seen.last().unwrap();
        match store
            .save_draft(&actor, organization, &workflow.id, last, &draft("x"))
            .await
            .unwrap()
        {
            Save::Saved { updated_at } => seen.push(updated_at),
            Save::Modified { .. } => panic!("nobody else writes"),
        }
        store
            .set_workflow_tags(&actor, organization, &workflow.id, &[])
            .await
            .unwrap();
        seen.push(
            store
                .workflow(organization, &workflow.id)
                .await
                .unwrap()
                .updated_at,
        );
        version_of(fixture, &workflow, &format!("{}", seen.len())).await;
        seen.push(
            store
                .workflow(organization, &workflow.id)
                .await
                .unwrap()
                .updated_at,
        );
        store
            .undeploy_workflow(&actor, organization, &workflow.id)
            .await
            .unwrap();
        seen.push(
            store
                .workflow(organization, &workflow.id)
                .await
                .unwrap()
                .updated_at,
        );
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

async fn one_of_fifty_parallel_saves_wins(fixture: &Fixture) {
    let workflow = fixture.workflow("contended").await;
    let writers: Vec<_> = (0..50)
        .map(|number| {
            let (store, organization) = (fixture.store.clone(), fixture.organization_id().to_owned());
            let (id, expected) = (workflow.id.clone(), workflow.updated_at);
            tokio::spawn(async move {
                let draft = draft(&format!("draft {number}"));
                let saved = store
                    .save_draft(&Actor::default(), &organization, &id, expected, &draft)
                    .await
                    .unwrap();
                (draft, saved)
            })
        })
        .collect();
    let mut winners = Vec::new();
    let mut told = HashSet::new();
    for writer in writers {
        match writer.await.unwrap() {
            (draft, Save::Saved { updated_at }) => winners.push((draft, updated_at)),
            (_, Save::Modified { updated_at }) => {
                told.insert(updated_at);
            }
        }
    }
    assert_eq!(winners.len(), 1);
    let (draft, updated_at) = &winners[0];
    let kept = fixture
        .store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert_eq!((&kept.draft, &kept.updated_at), (draft, updated_at));
    assert_eq!(
        told,
        HashSet::from([*updated_at]),
        "losers are told what they lost against"
    );
}

async fn an_unchanged_draft_deploys_as_the_same_version(fixture: &Fixture) {
    let workflow = fixture.workflow("deployed").await;
    assert_eq!(version_of(fixture, &workflow, "one").await, 1);
    let after_first = fixture
        .store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert_eq!(version_of(fixture, &workflow, "one").await, 1);
    let after_second = fixture
        .store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert_eq!(after_first, after_second, "the repetition writes nothing");
    assert_eq!(version_of(fixture, &workflow, "two").await, 2);
    assert_eq!(
        version_of(fixture, &workflow, "one").await,
        3,
        "an earlier content is a new version again"
    );

    let versions = fixture
        .store
        .list_versions(fixture.organization_id(), &workflow.id, None, 2)
        .await
        .unwrap();
    assert_eq!(
        versions
            .iter()
            .map(|version| version.version_no)
            .collect::<Vec<_>>(),
        [3, 2]
    );
    let rest = fixture
        .store
        .list_versions(fixture.organization_id(), &workflow.id, Some(2), 2)
        .await
        .unwrap();
    assert_eq!(
        rest.iter().map(|version| version.version_no).collect::<Vec<_>>(),
        [1]
    );
    let first = fixture
        .store
        .version(fixture.organization_id(), &workflow.id, 1)
        .await
        .unwrap();
    let bytes = fixture
        .store
        .graph(fixture.organization_id(), &first.content_hash)
        .await
        .unwrap();
    assert_eq!(bytes, b"one");
    assert!(
        fixture
            .store
            .graph("org_other", &first.content_hash)
            .await
            .is_err()
    );
    assert!(
        fixture
            .store
            .version(fixture.organization_id(), &workflow.id, 4)
            .await
            .is_err()
    );
}

async fn a_stale_deploy_is_told_so(fixture: &Fixture) {
    let workflow = fixture.workflow("stale").await;
    let graph = graph("one");
    let new = NewDeployment {
        expected_updated_at: workflow.updated_at - 1,
        graph: &graph,
        error_triggers: &[],
        polls: &[],
        registrations: &[],
    };
    let (actor, organization) = (Actor::default(), fixture.organization_id());
    let outcome = fixture
        .store
        .deploy_workflow(&actor, organization, &workflow.id, &new)
        .await
        .unwrap();
    assert_eq!(
        outcome,
        Deploy::Modified {
            updated_at: workflow.updated_at
        }
    );
    let new = NewDeployment {
        expected_updated_at: workflow.updated_at,
        graph: &graph,
        error_triggers: &[],
        polls: &[],
        registrations: &[],
    };
    let first = fixture
        .store
        .deploy_workflow(&actor, organization, &workflow.id, &new)
        .await
        .unwrap();
    let repeated = fixture
        .store
        .deploy_workflow(&actor, organization, &workflow.id, &new)
        .await
        .unwrap();
    assert_eq!(first, repeated, "the same request again finds what it made");
}

async fn only_idle_workflows_are_deleted(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("kept").await;
    let lease = fixture.lease().await;
    let run = fixture.run(&workflow.id);
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;

    version_of(fixture, &workflow, "one").await;
    assert_eq!(
        store
            .delete_workflow(&actor, organization, &workflow.id)
            .await
            .unwrap(),
        Delete::InUse
    );
    store
        .undeploy_workflow(&actor, organization, &workflow.id)
        .await
        .unwrap();
    let activate = |active| WorkflowChange {
        active: Some(active),
        ..WorkflowChange::default()
    };
    store
        .update_workflow(&actor, organization, &workflow.id, &activate(true))
        .await
        .unwrap();
    assert_eq!(
        store
            .delete_workflow(&actor, organization, &workflow.id)
            .await
            .unwrap(),
        Delete::InUse
    );
    store
        .update_workflow(&actor, organization, &workflow.id, &activate(false))
        .await
        .unwrap();
    assert_eq!(
        store
            .delete_workflow(&actor, organization, &workflow.id)
            .await
            .unwrap(),
        Delete::Deleted
    );
    assert!(matches!(
        store.workflow(organization, &workflow.id).await,
        Err(StoreError::NotFound(_))
    ));
    let run = store.run(organization, &run_id).await.unwrap();
    assert_eq!(run.workflow_id, None, "its runs stay and say that it is gone");
}

async fn an_undeployed_workflow_keeps_its_versions(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("off").await;
    assert_eq!(
        store.last_version(organization, &workflow.id).await.unwrap(),
        None
    );
    version_of(fixture, &workflow, "one").await;
    store
        .undeploy_workflow(&actor, organization, &workflow.id)
        .await
        .unwrap();
    let before = store.workflow(organization, &workflow.id).await.unwrap();
    assert_eq!(before.deployment, None);
    assert_eq!(
        store
            .last_version(organization, &workflow.id)
            .await
            .unwrap()
            .unwrap()
            .version_no,
        1
    );
    store
        .undeploy_workflow(&actor, organization, &workflow.id)
        .await
        .unwrap();
    assert_eq!(
        store.workflow(organization, &workflow.id).await.unwrap(),
        before,
        "again changes nothing"
    );
    assert_eq!(version_of(fixture, &workflow, "one").await, 2);
}
