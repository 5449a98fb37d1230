//! Ends of runs that somebody has to be told of: kept with the end, and given to one at a time.

use core_service::clock;
use core_service::store::{
    Actor, CreateOutcome, Driver, Ending, ErrorTrigger, IdempotencyKey, NewDeployment, NewEnding, NewRun,
    NextWake, RunBatch, RunChange, RunStatus, Workflow, WorkflowChange,
};

use crate::fixture::{Fixture, LONG, graph, summary};

on_both_databases!(
    a_failure_is_kept_while_somebody_listens,
    an_awaited_end_is_kept_whoever_listens,
    a_claimed_end_is_not_given_to_others,
    only_live_workflows_listen,
    unfinished_children_are_known,
    a_run_that_has_ended_starts_no_children,
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
        polls: &[],
        registrations: &[],
    };
    fixture
        .store
        .deploy_workflow(&Actor::default(), fixture.organization_id(), &workflow.id, &new)
        .await
        .unwrap();
    workflow
}

async fn is_due(fixture: &Fixture) -> bool {
    let next = fixture.store.next_ending().await.unwrap();
    next.is_some_and(NextWake::is_due)
}

async fn a_failure_is_kept_while_somebody_listens(fixture: &Fixture) {
    failed(fixture, true).await;
    assert!(!is_due(fixture).await, "nobody listens");
    let workflow = listening(fixture).await;
    let run_id = failed(fixture, true).await;
    assert!(is_due(fixture).await);
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
    assert!(!is_due(fixture).await, "nobody listens any more");
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
    // A resumed run ends again; the same end twice is one.
    for seq in [1, 4, 4] {
        let (store, organization) = (&fixture.store, fixture.organization_id());
        store.claim_run(&lease, organization, &run_id).await.unwrap();
        fixture.change(&lease, ended(seq)).await;
    }
    let mut kept: Vec<i64> = claimed(fixture).await.iter().map(|kept| kept.seq).collect();
    kept.sort_unstable();
    assert_eq!(kept, [1, 4]);
}

async fn a_claimed_end_is_not_given_to_others(fixture: &Fixture) {
    failed(fixture, false).await;
    let [first] = claimed(fixture).await.try_into().unwrap();
    assert!(claimed(fixture).await.is_empty());
    assert!(!is_due(fixture).await);
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
    let [parent, other] = ["wf_parent", "wf_other"].map(|workflow| fixture.run(workflow));
    let [parent_id, other_id] = [&parent, &other].map(|run| run.id.clone());
    fixture.start(&lease, vec![parent, other]).await;
    let child = |status, parent: &str| NewRun {
        summary: summary(status, Driver::Nobody),
        parent_run_id: Some(parent.to_owned()),
        ..fixture.run("wf_child")
    };
    let waiting = child(RunStatus::Waiting, &parent_id);
    let expected = vec![waiting.id.clone()];
    let runs = vec![
        waiting,
        child(RunStatus::Succeeded, &parent_id),
        child(RunStatus::Waiting, &other_id),
    ];
    fixture.start(&lease, runs).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let known = store.unfinished_children(organization, &parent_id).await;
    assert_eq!(known.unwrap(), expected);
    let known = store.unfinished_children("org_other", &parent_id).await;
    assert!(known.unwrap().is_empty());
}

async fn a_run_that_has_ended_starts_no_children(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let [going_on, ended] = ["wf_going_on", "wf_ended"].map(|workflow| fixture.run(workflow));
    let [going_on_id, ended_id] = [&going_on, &ended].map(|run| run.id.clone());
    fixture.start(&lease, vec![going_on, ended]).await;
    let end = |run_id: &str| RunChange {
        run_id: run_id.to_owned(),
        summary: Some(summary(RunStatus::Cancelled, Driver::Nobody)),
        ..RunChange::default()
    };
    fixture.change(&lease, end(&ended_id)).await;
    let child = |parent: &str, key: &str| NewRun {
        parent_run_id: Some(parent.to_owned()),
        idempotency: Some(IdempotencyKey {
            key: key.to_owned(),
            body_hash: Vec::new(),
            expires_at: clock::now_ms() + LONG,
        }),
        ..fixture.run("wf_child")
    };
    let creates = vec![
        child(&going_on_id, "a"),
        child(&ended_id, "b"),
        child("run_unknown", "c"),
    ];
    let outcomes = fixture
        .commit(
            &lease,
            RunBatch {
                creates,
                // Who tells of this end finds the child.
                changes: vec![end(&going_on_id)],
                ..RunBatch::default()
            },
        )
        .await;
    let refused = CreateOutcome::ParentEnded;
    assert_eq!(outcomes, [CreateOutcome::Created, refused.clone(), refused]);
    let children = async |parent: &str| {
        let listed = fixture
            .store
            .unfinished_children(fixture.organization_id(), parent);
        listed.await.unwrap().len()
    };
    assert_eq!((children(&going_on_id).await, children(&ended_id).await), (1, 0));
    for (key, is_used) in [("a", true), ("b", false)] {
        let known = fixture
            .store
            .idempotent_run(fixture.organization_id(), "wf_child", key)
            .await;
        assert_eq!(known.unwrap().is_some(), is_used, "{key}");
    }
}
