//! Ends of runs that somebody has to be told of: kept with the end, and given to one at a time.

use core_service::store::{
    Actor, Driver, Ending, ErrorTrigger, NewDeployment, NewEnding, NewRun, RunChange, RunStatus, Workflow,
    WorkflowChange,
};

use crate::fixture::{Fixture, LONG, graph, summary};

on_both_databases!(
    a_failure_is_kept_while_somebody_listens,
    an_awaited_end_is_kept_whoever_listens,
    a_claimed_end_is_not_given_to_others,
    only_live_workflows_listen,
    unfinished_children_are_known,
);

fn ending(fixture: &Fixture, seq: i64, for_error_triggers: bool) -> Option<NewEnding> {
    Some(NewEnding {
        attempt: 1,
        seq,
        organization_id: fixture.organization_id().to_owned(),
        notice: b"notice".to_vec(),
        for_error_triggers,
    })
}

/// A run that has failed in its first commit.
async fn failed(fixture: &Fixture, for_error_triggers: bool) -> String {
    let lease = fixture.lease().await;
    let run = NewRun {
        summary: summary(RunStatus::Failed, Driver::Nobody),
        ending: ending(fixture, 0, for_error_triggers),
        ..fixture.run("wf_failed")
    };
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    run_id
}

async fn claimed(fixture: &Fixture) -> Vec<Ending> {
    fixture.store.claim_endings(LONG, 100).await.unwrap()
}

async fn listening(fixture: &Fixture) -> Workflow {
    let workflow = fixture.workflow("listens").await;
    let current = fixture
        .store
        .workflow(fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    let trigger = |node_id| ErrorTrigger {
        node_id,
        workflow_ids: b"[]".to_vec(),
    };
    let new = NewDeployment {
        expected_updated_at: current.updated_at,
        graph: &graph("listens"),
        error_triggers: &[trigger(3), trigger(1)],
    };
    fixture
        .store
        .deploy_workflow(&Actor::default(), fixture.organization_id(), &workflow.id, &new)
        .await
        .unwrap();
    workflow
}

async fn a_failure_is_kept_while_somebody_listens(fixture: &Fixture) {
    failed(fixture, true).await;
    assert!(!fixture.store.has_endings().await.unwrap(), "nobody listens");
    let workflow = listening(fixture).await;
    let run_id = failed(fixture, true).await;
    assert!(fixture.store.has_endings().await.unwrap());
    let [kept] = claimed(fixture).await.try_into().unwrap();
    assert_eq!(
        (kept.run_id.as_str(), kept.attempt, kept.seq),
        (run_id.as_str(), 1, 0)
    );
    assert_eq!(kept.notice, b"notice");
    fixture.store.delete_ending(&kept).await.unwrap();
    fixture
        .store
        .undeploy_workflow(&Actor::default(), fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    failed(fixture, true).await;
    assert!(
        !fixture.store.has_endings().await.unwrap(),
        "nobody listens any more"
    );
}

async fn an_awaited_end_is_kept_whoever_listens(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = fixture.run("wf_awaited");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let ended = |seq| RunChange {
        run_id: run_id.clone(),
        summary: Some(summary(RunStatus::Succeeded, Driver::Nobody)),
        ending: ending(fixture, seq, false),
        ..RunChange::default()
    };
    fixture.change(&lease, ended(1)).await;
    // A resumed run ends again; the same end twice is one.
    fixture.change(&lease, ended(4)).await;
    fixture.change(&lease, ended(4)).await;
    let mut kept: Vec<i64> = claimed(fixture).await.iter().map(|kept| kept.seq).collect();
    kept.sort_unstable();
    assert_eq!(kept, [1, 4]);
}

async fn a_claimed_end_is_not_given_to_others(fixture: &Fixture) {
    failed(fixture, false).await;
    let [first] = claimed(fixture).await.try_into().unwrap();
    assert!(claimed(fixture).await.is_empty());
    assert!(!fixture.store.has_endings().await.unwrap());
    fixture.store.delete_ending(&first).await.unwrap();
    // Somebody died on this one.
    failed(fixture, false).await;
    assert_eq!(fixture.store.claim_endings(0, 100).await.unwrap().len(), 1);
    assert_eq!(claimed(fixture).await.len(), 1);
}

async fn only_live_workflows_listen(fixture: &Fixture) {
    let workflow = listening(fixture).await;
    let listeners = async || {
        let listeners = fixture.store.error_listeners(fixture.organization_id()).await;
        let named = listeners.unwrap().into_iter();
        named
            .map(|one| (one.workflow.id, one.trigger.node_id))
            .collect::<Vec<_>>()
    };
    assert_eq!(listeners().await, [], "not active");
    let active = WorkflowChange {
        active: Some(true),
        ..WorkflowChange::default()
    };
    fixture
        .store
        .update_workflow(
            &Actor::default(),
            fixture.organization_id(),
            &workflow.id,
            &active,
        )
        .await
        .unwrap();
    let id = workflow.id.clone();
    assert_eq!(listeners().await, [(id.clone(), 1), (id, 3)]);
    let others = fixture.store.error_listeners("org_other").await.unwrap();
    assert!(others.is_empty());
}

async fn unfinished_children_are_known(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let child = |status, parent: &str| NewRun {
        summary: summary(status, Driver::Nobody),
        parent_run_id: Some(parent.to_owned()),
        ..fixture.run("wf_child")
    };
    let waiting = child(RunStatus::Waiting, "run_parent");
    let expected = vec![waiting.id.clone()];
    let runs = vec![
        waiting,
        child(RunStatus::Succeeded, "run_parent"),
        child(RunStatus::Waiting, "run_other"),
    ];
    fixture.start(&lease, runs).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    assert_eq!(
        store
            .unfinished_children(organization, "run_parent")
            .await
            .unwrap(),
        expected
    );
    assert!(
        store
            .unfinished_children("org_other", "run_parent")
            .await
            .unwrap()
            .is_empty()
    );
}
