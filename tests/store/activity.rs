//! The trail: written with the change, found by what it tells.

use core_service::store::{
    Activity, ActivityFilter, Actor, NewRun, Plan, Position, RunActivity, RunBatch, WorkflowChange,
};

use crate::fixture::Fixture;

on_both_databases!(
    a_write_leaves_its_trace,
    pages_hold_everything_once,
    a_refused_write_leaves_none,
    a_run_brings_its_entries_or_is_not_there,
    a_plan_concerns_whoever_is_on_it,
);

async fn trail(fixture: &Fixture, filter: &ActivityFilter) -> Vec<Activity> {
    let mut entries: Vec<Activity> = Vec::new();
    loop {
        let after = entries.last().map(|last| Position {
            value: last.ts,
            id: last.id.clone(),
        });
        let page = fixture
            .store
            .list_activity(fixture.organization_id(), filter, after.as_ref(), 2)
            .await
            .unwrap();
        if page.is_empty() {
            return entries;
        }
        entries.extend(page);
    }
}

async fn a_write_leaves_its_trace(fixture: &Fixture) {
    let workflow = fixture.workflow("traced").await;
    let actor = Actor {
        user_id: Some(fixture.organization.owner_user_id.clone()),
        api_key_id: Some("key_1".to_owned()),
        request_id: Some("req \" 1".to_owned()),
        ip: None,
    };
    let change = WorkflowChange {
        name: Some("renamed".to_owned()),
        active: Some(true),
        ..WorkflowChange::default()
    };
    fixture
        .store
        .update_workflow(&actor, fixture.organization_id(), &workflow.id, &change)
        .await
        .unwrap();
    let filter = ActivityFilter {
        target_id: Some(workflow.id.clone()),
        ..ActivityFilter::default()
    };
    let entries = trail(fixture, &filter).await;
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["workflow.updated", "workflow.created"]);
    let updated = &entries[0];
    assert_eq!(
        (updated.label.as_str(), updated.target_type.as_str()),
        ("renamed", "workflow")
    );
    assert_eq!(updated.actor_user_id, actor.user_id);
    let metadata = String::from_utf8(updated.metadata.clone()).unwrap();
    assert!(metadata.contains(r#""fields":["name","active"]"#), "{metadata}");
    assert!(metadata.contains(r#""requestId":"req \" 1""#), "{metadata}");
    assert!(metadata.contains(r#""ip":null"#), "{metadata}");
}

async fn pages_hold_everything_once(fixture: &Fixture) {
    for number in 0..7 {
        fixture.workflow(&format!("{number}")).await;
    }
    let created = ActivityFilter {
        action: Some("workflow.created".to_owned()),
        ..ActivityFilter::default()
    };
    let labels: Vec<String> = trail(fixture, &created)
        .await
        .into_iter()
        .map(|entry| entry.label)
        .collect();
    assert_eq!(labels, ["6", "5", "4", "3", "2", "1", "0"]);
    let all = trail(fixture, &ActivityFilter::default()).await;
    assert_eq!(all.len(), 8, "and the organization itself");
    let instant = all[0].ts;
    let until = ActivityFilter {
        until: Some(instant),
        ..ActivityFilter::default()
    };
    let since = ActivityFilter {
        since: Some(instant),
        ..ActivityFilter::default()
    };
    assert_eq!(
        trail(fixture, &until).await.len() + trail(fixture, &since).await.len(),
        8
    );
    assert!(
        trail(fixture, &until)
            .await
            .iter()
            .all(|entry| entry.ts < instant),
        "until is exclusive"
    );
    let nobody = ActivityFilter {
        actor_user_id: Some("user_none".to_owned()),
        ..ActivityFilter::default()
    };
    assert!(trail(fixture, &nobody).await.is_empty());
}

async fn a_refused_write_leaves_none(fixture: &Fixture) {
    let workflow = fixture.workflow("quiet").await;
    let before = trail(fixture, &ActivityFilter::default()).await;
    let draft = crate::fixture::draft("late");
    let stale = workflow.updated_at - 1;
    let actor = Actor::default();
    fixture
        .store
        .save_draft(&actor, fixture.organization_id(), &workflow.id, stale, &draft)
        .await
        .unwrap();
    assert_eq!(trail(fixture, &ActivityFilter::default()).await, before);
}

async fn a_run_brings_its_entries_or_is_not_there(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let started_in = |organization_id: &str| NewRun {
        activity: vec![RunActivity {
            organization_id: organization_id.to_owned(),
            actor: fixture.actor(),
            action: "run.started",
        }],
        ..fixture.run("wf_1")
    };
    let run = started_in(fixture.organization_id());
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run, fixture.run("wf_1")]).await;
    let started = ActivityFilter {
        action: Some("run.started".to_owned()),
        ..ActivityFilter::default()
    };
    let entries = trail(fixture, &started).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].target_type.as_str(), &entries[0].target_id),
        ("run", &run_id)
    );
    assert_eq!(entries[0].actor_user_id, fixture.actor().user_id);
    // An entry that cannot be written takes its run with it.
    let run = started_in("org_none");
    let run_id = run.id.clone();
    let batch = RunBatch {
        creates: vec![run],
        ..RunBatch::default()
    };
    assert!(fixture.store.commit_runs(&lease, &batch).await.is_err());
    assert!(
        fixture
            .store
            .run(fixture.organization_id(), &run_id)
            .await
            .is_err()
    );
}

async fn a_plan_concerns_whoever_is_on_it(fixture: &Fixture) {
    let store = &fixture.store;
    let other = crate::fixture::organization(store).await;
    let plan = store.plan("unlimited").await.unwrap();
    let mine = Plan {
        id: "mine".to_owned(),
        ..plan.clone()
    };
    store.put_plan(&Actor::default(), &mine).await.unwrap();
    let told = ActivityFilter {
        action: Some("plan.updated".to_owned()),
        ..ActivityFilter::default()
    };
    assert_eq!(trail(fixture, &told).await, [], "nobody is on it");
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    let entries = trail(fixture, &told).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].target_id, "unlimited");
    let theirs = store.list_activity(&other.organization_id, &told, None, 10).await;
    assert_eq!(theirs.unwrap().len(), 1);
}
