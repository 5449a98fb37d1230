//! Idempotency keys: one key starts one run, whoever is first.

use std::collections::HashSet;

use core_service::clock;
use core_service::store::{CreateOutcome, NewRun, RunBatch};

use crate::fixture::{Fixture, LONG, key};

on_both_databases!(
    a_repeated_request_finds_its_run,
    equal_keys_in_one_batch_start_one_run,
    equal_keys_from_many_processes_start_one_run,
    an_expired_key_starts_anew,
    keys_belong_to_a_workflow,
);

fn keyed(fixture: &Fixture, name: &str, body: &str) -> NewRun {
    NewRun {
        idempotency: Some(key(name, body)),
        ..fixture.run("wf_1")
    }
}

fn batch(creates: Vec<NewRun>) -> RunBatch {
    RunBatch {
        creates,
        ..RunBatch::default()
    }
}

async fn a_repeated_request_finds_its_run(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let first = keyed(fixture, "k", "body");
    let first_id = first.id.clone();
    fixture.start(&lease, vec![first]).await;
    let (again, other) = (keyed(fixture, "k", "body"), keyed(fixture, "k", "other body"));
    let ids = [again.id.clone(), other.id.clone()];
    let outcomes = fixture
        .commit(&lease, batch(vec![again, other, fixture.run("wf_1")]))
        .await;
    assert_eq!(
        outcomes,
        [
            CreateOutcome::Replayed { run_id: first_id },
            CreateOutcome::KeyReused,
            CreateOutcome::Created
        ]
    );
    for id in ids {
        assert!(
            fixture.store.run(fixture.organization_id(), &id).await.is_err(),
            "it was not written"
        );
        assert!(fixture.store.load_segments(&id, None).await.unwrap().is_empty());
    }
}

async fn equal_keys_in_one_batch_start_one_run(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let creates = vec![
        keyed(fixture, "k", "body"),
        keyed(fixture, "k", "body"),
        keyed(fixture, "k", "other"),
        keyed(fixture, "l", "body"),
    ];
    let first_id = creates[0].id.clone();
    assert_eq!(
        fixture.commit(&lease, batch(creates)).await,
        [
            CreateOutcome::Created,
            CreateOutcome::Replayed { run_id: first_id },
            CreateOutcome::KeyReused,
            CreateOutcome::Created
        ]
    );
}

async fn equal_keys_from_many_processes_start_one_run(fixture: &Fixture) {
    // A SQLite database serves one process, so there all commit under one lease.
    let shared = fixture.lease().await;
    let mut commits = Vec::new();
    for number in 0..8 {
        let lease = if fixture.is_sqlite() {
            shared.clone()
        } else {
            fixture.lease().await
        };
        let store = fixture.store.clone();
        let mut creates: Vec<NewRun> = (0..10)
            .map(|name| keyed(fixture, &format!("k{name}"), "body"))
            .collect();
        if number % 2 == 1 {
            creates.reverse();
        }
        commits.push(tokio::spawn(async move {
            let ids: Vec<String> = creates.iter().map(|run| run.id.clone()).collect();
            let outcomes = store.commit_runs(&lease, &batch(creates)).await.unwrap().creates;
            ids.into_iter().zip(outcomes).collect::<Vec<_>>()
        }));
    }
    let mut created = HashSet::new();
    let mut replayed = Vec::new();
    for commit in commits {
        for (id, outcome) in commit.await.unwrap() {
            match outcome {
                CreateOutcome::Created => assert!(created.insert(id)),
                CreateOutcome::Replayed { run_id } => replayed.push(run_id),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((created.len(), replayed.len()), (10, 70));
    assert!(
        replayed.iter().all(|id| created.contains(id)),
        "a replay names a run that exists"
    );
}

async fn an_expired_key_starts_anew(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let mut first = keyed(fixture, "k", "body");
    first.idempotency.as_mut().unwrap().expires_at = clock::now_ms() - 1;
    fixture.start(&lease, vec![first]).await;
    fixture
        .start(&lease, vec![keyed(fixture, "k", "other body")])
        .await;
    assert_eq!(
        fixture
            .store
            .delete_expired_keys(clock::now_ms(), 10)
            .await
            .unwrap()
            .deleted,
        0,
        "it was renewed"
    );
    assert_eq!(
        fixture
            .store
            .delete_expired_keys(clock::now_ms() + 2 * LONG, 10)
            .await
            .unwrap()
            .deleted,
        1
    );
    fixture.start(&lease, vec![keyed(fixture, "k", "third")]).await;
}

async fn keys_belong_to_a_workflow(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let elsewhere = NewRun {
        workflow_id: "wf_2".to_owned(),
        ..keyed(fixture, "k", "body")
    };
    let foreign = NewRun {
        organization_id: "org_2".to_owned(),
        ..keyed(fixture, "k", "body")
    };
    fixture
        .start(&lease, vec![keyed(fixture, "k", "body"), elsewhere, foreign])
        .await;
}
