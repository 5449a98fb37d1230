//! Schedules: they follow their workflow, and each of their instants is taken once.

use core_service::store::{
    Actor, CreateOutcome, Deploy, Driver, DueSchedule, NewDeployment, NewRun, Pass, RunBatch, RunChange,
    RunStatus, Tick, Trouble, Workflow, WorkflowChange,
};

use crate::fixture::{Fixture, LONG, graph, summary};

on_both_databases!(
    only_a_live_workflow_has_a_schedule_to_look_at,
    what_changes_nothing_leaves_a_schedule_alone,
    an_instant_is_taken_once,
    an_instant_of_an_older_schedule_is_not_due,
    a_run_that_goes_on_can_keep_an_instant_from_running,
    an_instant_without_credits_is_dealt_with,
    what_keeps_instants_from_running_is_told_once,
    a_claimed_schedule_is_not_given_to_others,
);

async fn set(fixture: &Fixture, workflow: &Workflow, change: WorkflowChange) {
    fixture
        .store
        .update_workflow(
            &Actor::default(),
            fixture.organization_id(),
            &workflow.id,
            &change,
        )
        .await
        .unwrap();
}

fn recurring(recurrence: Option<&str>) -> WorkflowChange {
    WorkflowChange {
        recurrence: Some(recurrence.map(|text| text.as_bytes().to_vec())),
        ..WorkflowChange::default()
    }
}

fn active(active: bool) -> WorkflowChange {
    WorkflowChange {
        active: Some(active),
        ..WorkflowChange::default()
    }
}

async fn deploy(fixture: &Fixture, workflow: &Workflow, text: &str) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let current = store.workflow(organization, &workflow.id).await.unwrap();
    let new = NewDeployment {
        expected_updated_at: current.updated_at,
        graph: &graph(text),
        error_triggers: &[],
        polls: &[],
        registrations: &[],
    };
    let deployed = store
        .deploy_workflow(&Actor::default(), organization, &workflow.id, &new)
        .await;
    assert!(matches!(deployed, Ok(Deploy::Deployed(_))), "{deployed:?}");
}

async fn live(fixture: &Fixture) -> Workflow {
    let workflow = fixture.workflow("scheduled").await;
    set(fixture, &workflow, recurring(Some("{}"))).await;
    set(fixture, &workflow, active(true)).await;
    deploy(fixture, &workflow, "one").await;
    workflow
}

/// All schedules that have to be looked at now.
async fn claimed(fixture: &Fixture) -> Vec<DueSchedule> {
    fixture.store.claim_schedules(LONG, 100).await.unwrap()
}

/// The only schedule, standing at an instant.
async fn standing_at(fixture: &Fixture, instant: i64) -> DueSchedule {
    let [due] = claimed(fixture).await.try_into().unwrap();
    let pass = Pass {
        after: due.after,
        next: Some(instant),
        trouble: None,
    };
    assert!(fixture.store.pass_schedule(&due, &pass).await.unwrap());
    DueSchedule {
        due_at: Some(instant),
        ..due
    }
}

fn ticking(fixture: &Fixture, due: &DueSchedule, next: Option<i64>) -> NewRun {
    NewRun {
        tick: Some(Tick {
            revision: due.revision,
            instant: due.due_at.unwrap(),
            next,
            skip_if_running: false,
        }),
        ..fixture.run(&due.workflow.id)
    }
}

async fn commit(fixture: &Fixture, creates: Vec<NewRun>) -> Vec<CreateOutcome> {
    let lease = fixture.lease().await;
    let batch = RunBatch {
        creates,
        ..RunBatch::default()
    };
    fixture.commit(&lease, batch).await
}

async fn runs_of(fixture: &Fixture, workflow_id: &str) -> usize {
    let listed = fixture
        .store
        .list_runs(fixture.organization_id(), workflow_id, None, None, 100);
    listed.await.unwrap().len()
}

async fn only_a_live_workflow_has_a_schedule_to_look_at(fixture: &Fixture) {
    let workflow = fixture.workflow("scheduled").await;
    let look = async || fixture.store.next_schedule().await.unwrap().is_some();
    assert!(!look().await);
    set(fixture, &workflow, recurring(Some("{}"))).await;
    assert!(!look().await, "neither active nor deployed");
    set(fixture, &workflow, active(true)).await;
    assert!(!look().await, "not deployed");
    deploy(fixture, &workflow, "one").await;
    assert!(look().await);
    set(fixture, &workflow, active(false)).await;
    assert!(!look().await, "not active");
    set(fixture, &workflow, active(true)).await;
    assert!(look().await);
    fixture
        .store
        .undeploy_workflow(&Actor::default(), fixture.organization_id(), &workflow.id)
        .await
        .unwrap();
    assert!(!look().await, "not deployed any more");
    deploy(fixture, &workflow, "one").await;
    set(fixture, &workflow, recurring(None)).await;
    assert!(!look().await, "no recurrence");
    assert!(claimed(fixture).await.is_empty());
}

async fn what_changes_nothing_leaves_a_schedule_alone(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let before = standing_at(fixture, 0).await;
    set(fixture, &workflow, recurring(Some("{}"))).await;
    set(fixture, &workflow, active(true)).await;
    let renamed = WorkflowChange {
        name: Some("renamed".to_owned()),
        ..WorkflowChange::default()
    };
    set(fixture, &workflow, renamed).await;
    deploy(fixture, &workflow, "two").await;
    let [after] = claimed(fixture).await.try_into().unwrap();
    assert_eq!(
        (after.revision, after.anchor, after.after, after.due_at),
        (before.revision, before.anchor, before.after, Some(0))
    );
    assert_eq!(after.workflow.name, "renamed");
    assert_eq!(after.workflow.deployment.version_no, 2);
    // A pause keeps what intervals count from; another recurrence does not.
    set(fixture, &workflow, active(false)).await;
    set(fixture, &workflow, active(true)).await;
    let [paused] = claimed(fixture).await.try_into().unwrap();
    assert_eq!((paused.anchor, paused.due_at), (before.anchor, None));
    assert!(paused.after >= before.after && paused.revision > before.revision);
    set(fixture, &workflow, recurring(Some("{\"kind\":\"once\"}"))).await;
    let [other] = claimed(fixture).await.try_into().unwrap();
    assert!(other.anchor > before.anchor, "{} {}", other.anchor, before.anchor);
}

async fn an_instant_is_taken_once(fixture: &Fixture) {
    live(fixture).await;
    let due = standing_at(fixture, 1_000).await;
    let workflow_id = due.workflow.id.clone();
    let twice = vec![
        ticking(fixture, &due, Some(2_000)),
        ticking(fixture, &due, Some(2_000)),
    ];
    assert_eq!(
        commit(fixture, twice).await,
        [CreateOutcome::Created, CreateOutcome::NotDue]
    );
    assert_eq!(
        commit(fixture, vec![ticking(fixture, &due, Some(3_000))]).await,
        [CreateOutcome::NotDue]
    );
    assert_eq!(runs_of(fixture, &workflow_id).await, 1);
    let [next] = claimed(fixture).await.try_into().unwrap();
    assert_eq!((next.due_at, next.after), (Some(2_000), 1_000));
    // The last instant leaves nothing to look at.
    assert_eq!(
        commit(fixture, vec![ticking(fixture, &next, None)]).await,
        [CreateOutcome::Created]
    );
    assert_eq!(fixture.store.next_schedule().await.unwrap(), None);
    assert_eq!(runs_of(fixture, &workflow_id).await, 2);
}

async fn an_instant_of_an_older_schedule_is_not_due(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let due = standing_at(fixture, 1_000).await;
    set(fixture, &workflow, active(false)).await;
    assert_eq!(
        commit(fixture, vec![ticking(fixture, &due, None)]).await,
        [CreateOutcome::NotDue],
        "no run starts after the answer to the change"
    );
    let pass = Pass {
        after: 1_000,
        next: None,
        trouble: None,
    };
    assert!(!fixture.store.pass_schedule(&due, &pass).await.unwrap());
    assert_eq!(runs_of(fixture, &workflow.id).await, 0);
}

async fn a_run_that_goes_on_can_keep_an_instant_from_running(fixture: &Fixture) {
    let workflow = live(fixture).await;
    // One that was not scheduled does not count.
    let lease = fixture.lease().await;
    fixture.start(&lease, vec![fixture.run(&workflow.id)]).await;
    let mut due = standing_at(fixture, 1_000).await;
    let skipping = |due: &DueSchedule, next: i64| {
        let mut run = ticking(fixture, due, Some(next));
        run.tick.as_mut().unwrap().skip_if_running = true;
        run
    };
    let first = skipping(&due, 2_000);
    let first_id = first.id.clone();
    fixture.start(&lease, vec![first]).await;
    due.due_at = Some(2_000);
    let batch = RunBatch {
        creates: vec![skipping(&due, 3_000)],
        ..RunBatch::default()
    };
    assert_eq!(fixture.commit(&lease, batch).await, [CreateOutcome::StillRunning]);
    let ended = RunChange {
        run_id: first_id,
        summary: Some(summary(RunStatus::Succeeded, Driver::Nobody)),
        ..RunChange::default()
    };
    fixture.change(&lease, ended).await;
    due.due_at = Some(3_000);
    fixture.start(&lease, vec![skipping(&due, 4_000)]).await;
    // Without the wish, instants run whatever goes on.
    due.due_at = Some(4_000);
    fixture.start(&lease, vec![ticking(fixture, &due, None)]).await;
    assert_eq!(runs_of(fixture, &workflow.id).await, 4);
}

async fn an_instant_without_credits_is_dealt_with(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let change = core_service::store::OrganizationChange {
        credits: Some(Some(0)),
        ..Default::default()
    };
    let store = &fixture.store;
    store
        .change_organization(&Actor::default(), fixture.organization_id(), &change)
        .await
        .unwrap();
    let due = standing_at(fixture, 1_000).await;
    let run = NewRun {
        metered: true,
        ..ticking(fixture, &due, None)
    };
    assert_eq!(commit(fixture, vec![run]).await, [CreateOutcome::OutOfCredits]);
    assert_eq!(store.next_schedule().await.unwrap(), None);
    for _ in 0..2 {
        let refused = trouble("workflow.schedule_refused");
        store.trouble_schedule(&due, refused).await.unwrap();
    }
    let activity = fixture.activity().await;
    let told = activity
        .iter()
        .filter(|entry| entry.action == "workflow.schedule_refused");
    assert_eq!(told.count(), 1, "once for instants that follow one another");
    assert_eq!(runs_of(fixture, &workflow.id).await, 0);
}

fn trouble(action: &'static str) -> Trouble<'static> {
    Trouble {
        action,
        node_id: None,
        reason: "no",
    }
}

async fn what_keeps_instants_from_running_is_told_once(fixture: &Fixture) {
    live(fixture).await;
    let mut due = standing_at(fixture, 1_000).await;
    for (instant, activity) in [
        (1_000, Some("workflow.schedule_refused")),
        (2_000, Some("workflow.schedule_refused")),
        (3_000, None),
        (4_000, Some("workflow.schedule_refused")),
        (5_000, Some("workflow.schedule_missed")),
    ] {
        due.due_at = Some(instant);
        let pass = Pass {
            after: instant,
            next: Some(instant + 1_000),
            trouble: activity.map(trouble),
        };
        assert!(fixture.store.pass_schedule(&due, &pass).await.unwrap());
    }
    let told = fixture.activity().await;
    let told = told
        .iter()
        .filter(|entry| entry.action.starts_with("workflow.schedule_"));
    assert_eq!(
        told.map(|entry| entry.action.as_str()).collect::<Vec<_>>(),
        [
            "workflow.schedule_missed",
            "workflow.schedule_refused",
            "workflow.schedule_refused"
        ]
    );
}

async fn a_claimed_schedule_is_not_given_to_others(fixture: &Fixture) {
    for _ in 0..3 {
        live(fixture).await;
    }
    let store = &fixture.store;
    let first = store.claim_schedules(LONG, 2).await.unwrap();
    let second = store.claim_schedules(0, 2).await.unwrap();
    assert_eq!((first.len(), second.len()), (2, 1));
    let claimed: std::collections::BTreeSet<&String> =
        first.iter().chain(&second).map(|due| &due.workflow.id).collect();
    assert_eq!(claimed.len(), 3);
    // The claim of the third is over; of the others it is not.
    let again = store.claim_schedules(LONG, 100).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].workflow.id, second[0].workflow.id);
    let next = store.next_schedule().await.unwrap().unwrap();
    assert!(next.wake_at > next.now);
}
