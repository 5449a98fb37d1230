//! What is past its time is deleted with everything that hangs on it, and nothing else is.

use core_service::store::{
    ActivityFilter, Actor, Driver, NewEnding, NewRun, OrganizationChange, Payload, Plan, RunBatch, RunChange,
    RunStatus, RunSummary, Timer,
};
use core_service::{clock, id};

use crate::fixture::{Fixture, LONG, key, segment, summary};

on_both_databases!(
    what_is_too_old_goes_with_its_journal,
    the_oldest_go_first_and_so_many_at_once,
    the_newest_so_many_are_told_apart,
    what_goes_on_stays,
    what_somebody_waits_for_stays,
    what_is_taken_up_again_stays,
    a_payload_goes_with_the_last_run_that_uses_it,
    a_payload_is_used_again_while_it_is_deleted,
    rules_are_those_of_plans,
    old_entries_of_the_feed_go,
    keys_outlive_their_runs,
);

/// A run that ended at this instant.
fn ended(fixture: &Fixture, at: i64) -> NewRun {
    NewRun {
        summary: RunSummary {
            finished_at: Some(at),
            ..summary(RunStatus::Succeeded, Driver::Nobody)
        },
        segments: (0..3).map(segment).collect(),
        ..fixture.run("wf_1")
    }
}

async fn delete_runs(fixture: &Fixture, before: i64, limit: i64) -> u64 {
    let organization = fixture.organization_id();
    let swept = fixture.store.delete_runs(organization, before, limit).await;
    swept.unwrap().deleted
}

/// Deletes all that hung on deleted runs, a few rows at a time.
async fn delete_remains(fixture: &Fixture) {
    while fixture.store.delete_remains(2).await.unwrap().deleted > 0 {}
}

async fn is_there(fixture: &Fixture, run_id: &str) -> bool {
    fixture.store.run(fixture.organization_id(), run_id).await.is_ok()
}

async fn what_is_too_old_goes_with_its_journal(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let mut old = ended(fixture, 1_000);
    old.timers = vec![Timer {
        key: "left".to_owned(),
        due_at: 5,
        kind: "left".to_owned(),
    }];
    let (young, old_id) = (ended(fixture, 2_000), old.id.clone());
    let young_id = young.id.clone();
    fixture.start(&lease, vec![old, young]).await;
    assert_eq!(delete_runs(fixture, 2_000, 10).await, 1);
    assert!(!is_there(fixture, &old_id).await);
    delete_remains(fixture).await;
    assert_eq!(store.load_segments(&old_id, None).await.unwrap(), []);
    assert_eq!(store.run_timers(&old_id).await.unwrap(), []);
    assert!(is_there(fixture, &young_id).await);
    assert_eq!(store.load_segments(&young_id, None).await.unwrap().len(), 3);
    assert_eq!(delete_runs(fixture, 2_000, 10).await, 0);
}

async fn the_oldest_go_first_and_so_many_at_once(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let runs: Vec<NewRun> = [5, 3, 1, 4, 2].map(|at| ended(fixture, at)).into();
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let foreign = NewRun {
        organization_id: "org_other".to_owned(),
        ..ended(fixture, 1)
    };
    let foreign_id = foreign.id.clone();
    fixture.start(&lease, runs).await;
    fixture.start(&lease, vec![foreign]).await;
    assert_eq!(delete_runs(fixture, 5, 3).await, 3);
    for (id, stays) in ids.iter().zip([true, false, false, true, false]) {
        assert_eq!(is_there(fixture, id).await, stays);
    }
    assert_eq!(delete_runs(fixture, 5, 3).await, 1, "the last is not too old");
    assert!(fixture.store.run("org_other", &foreign_id).await.is_ok());
}

async fn the_newest_so_many_are_told_apart(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let runs = (1..=5).map(|at| ended(fixture, at * 10));
    fixture.start(&lease, runs.collect()).await;
    fixture.start(&lease, vec![fixture.run("wf_1")]).await;
    let oldest_of = async |runs| {
        let oldest = store.end_of_oldest_kept(fixture.organization_id(), runs);
        oldest.await.unwrap()
    };
    assert_eq!(oldest_of(1).await, Some(50));
    assert_eq!(oldest_of(3).await, Some(30));
    assert_eq!(oldest_of(6).await, None, "a run that goes on does not count");
    assert_eq!(store.end_of_oldest_kept("org_other", 1).await.unwrap(), None);
}

async fn what_goes_on_stays(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let mut ids = Vec::new();
    for status in [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting] {
        for driver in [Driver::This, Driver::Anyone, Driver::Nobody] {
            let run = NewRun {
                created_at: 0,
                summary: summary(status, driver),
                ..fixture.run("wf_1")
            };
            ids.push(run.id.clone());
            fixture.start(&lease, vec![run]).await;
        }
    }
    assert_eq!(delete_runs(fixture, i64::MAX, 100).await, 0);
    for id in &ids {
        assert!(is_there(fixture, id).await);
    }
}

async fn what_somebody_waits_for_stays(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let untold = NewRun {
        ending: Some(NewEnding {
            attempt: 1,
            seq: 0,
            organization_id: fixture.organization_id().to_owned(),
            notice: b"notice".to_vec(),
            for_error_triggers: false,
        }),
        ..ended(fixture, 1)
    };
    let parent = fixture.run("wf_1");
    let child = NewRun {
        parent_run_id: Some(parent.id.clone()),
        ..ended(fixture, 1)
    };
    let (untold_id, child_id, parent_id) = (untold.id.clone(), child.id.clone(), parent.id.clone());
    fixture.start(&lease, vec![untold, parent]).await;
    fixture.start(&lease, vec![child]).await;
    assert_eq!(delete_runs(fixture, 10, 10).await, 0);

    for ending in store.claim_endings(LONG, 10).await.unwrap() {
        store.delete_ending(&ending).await.unwrap();
    }
    assert_eq!(delete_runs(fixture, 10, 10).await, 1);
    assert!(!is_there(fixture, &untold_id).await);
    assert!(is_there(fixture, &child_id).await);

    let end = RunChange {
        run_id: parent_id,
        summary: Some(summary(RunStatus::Succeeded, Driver::Nobody)),
        ..RunChange::default()
    };
    fixture.change(&lease, end).await;
    assert_eq!(delete_runs(fixture, 10, 10).await, 1);
    assert!(!is_there(fixture, &child_id).await);
}

async fn what_is_taken_up_again_stays(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let lease = fixture.lease().await;
    let run = ended(fixture, 1);
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    store.claim_run(&lease, organization, &run_id).await.unwrap();
    assert_eq!(delete_runs(fixture, 10, 10).await, 0, "its next attempt begins");
    store.retire_process(&lease).await.unwrap();
    assert_eq!(delete_runs(fixture, 10, 10).await, 1, "nothing came of that");
}

fn payload(run: &NewRun, hash: &str) -> Payload {
    Payload {
        run_id: run.id.clone(),
        organization_id: run.organization_id.clone(),
        content_hash: hash.to_owned(),
        payload: b"large".to_vec(),
    }
}

async fn start_with_payloads(fixture: &Fixture, run: NewRun, hashes: &[&str]) {
    let lease = fixture.lease().await;
    let payloads = hashes.iter().map(|hash| payload(&run, hash)).collect();
    let batch = RunBatch {
        creates: vec![run],
        payloads,
        ..RunBatch::default()
    };
    fixture.commit(&lease, batch).await;
}

async fn a_payload_goes_with_the_last_run_that_uses_it(fixture: &Fixture) {
    start_with_payloads(fixture, ended(fixture, 1), &["shared", "own"]).await;
    start_with_payloads(fixture, ended(fixture, 2), &["shared"]).await;
    let foreign = NewRun {
        organization_id: "org_other".to_owned(),
        ..ended(fixture, 1)
    };
    start_with_payloads(fixture, foreign, &["shared", "own"]).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let is_stored =
        async |organization: &str, hash: &str| store.load_payload(organization, hash).await.is_ok();

    assert_eq!(delete_runs(fixture, 2, 10).await, 1);
    delete_remains(fixture).await;
    assert!(is_stored(organization, "shared").await);
    assert!(!is_stored(organization, "own").await);

    assert_eq!(delete_runs(fixture, 3, 10).await, 1);
    delete_remains(fixture).await;
    assert!(!is_stored(organization, "shared").await);
    assert!(is_stored("org_other", "shared").await && is_stored("org_other", "own").await);
}

/// Whoever begins to use a payload at this moment finds it, or stores it again.
async fn a_payload_is_used_again_while_it_is_deleted(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    for at in 1..=20 {
        start_with_payloads(fixture, ended(fixture, at), &["same"]).await;
        assert_eq!(delete_runs(fixture, at + 1, 10).await, 1);
        tokio::join!(
            delete_remains(fixture),
            start_with_payloads(fixture, ended(fixture, at + 1), &["same"]),
        );
        assert!(store.load_payload(organization, "same").await.is_ok());
        assert_eq!(delete_runs(fixture, at + 2, 10).await, 1);
        delete_remains(fixture).await;
        assert!(store.load_payload(organization, "same").await.is_err());
    }
}

async fn rules_are_those_of_plans(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    assert_eq!(store.retention_rules("", 10).await.unwrap(), []);
    let plan = Plan {
        id: "bounded".to_owned(),
        retention_days: Some(30),
        activity_days: Some(0),
        ..store.plan("unlimited").await.unwrap()
    };
    store.put_plan(&Actor::default(), &plan).await.unwrap();
    let change = OrganizationChange {
        plan_id: Some(plan.id),
        ..OrganizationChange::default()
    };
    let actor = Actor::default();
    let changed = store.change_organization(&actor, organization, &change).await;
    changed.unwrap();
    let rules = store.retention_rules("", 10).await.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(
        (
            rules[0].organization_id.as_str(),
            rules[0].days,
            rules[0].runs,
            rules[0].activity_days
        ),
        (organization, Some(30), None, Some(0))
    );
    assert_eq!(store.retention_rules(organization, 10).await.unwrap(), []);
}

async fn old_entries_of_the_feed_go(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let other = crate::fixture::organization(store).await;
    for name in ["first", "second"] {
        fixture.workflow(name).await;
    }
    let before = fixture.activity().await;
    let newest = &before[0];
    let delete = async |limit| {
        let swept = store.delete_activity(organization, newest.ts + 1, limit).await;
        swept.unwrap().deleted
    };
    assert_eq!(delete(1).await, 1);
    assert_eq!(fixture.activity().await, before[..before.len() - 1]);
    assert_eq!(delete(100).await, before.len() as u64 - 1);
    assert_eq!(fixture.activity().await, []);
    let filter = ActivityFilter::default();
    let theirs = store
        .list_activity(&other.organization_id, &filter, None, 10)
        .await;
    assert!(!theirs.unwrap().is_empty(), "another organization's are its own");
}

async fn keys_outlive_their_runs(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let run = NewRun {
        id: id::new(id::Kind::Run),
        idempotency: Some(key("k", "body")),
        ..ended(fixture, clock::now_ms() - 1)
    };
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    assert_eq!(delete_runs(fixture, i64::MAX, 10).await, 1);
    delete_remains(fixture).await;
    let found = store.idempotent_run(fixture.organization_id(), "wf_1", "k").await;
    assert_eq!(
        found.unwrap().unwrap().run_id,
        run_id,
        "a repeated request starts nothing"
    );
}
