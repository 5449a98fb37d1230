//! Credits: held by a start, paid by what is executed, refused when none is left.

use core_service::store::{
    Actor, ChangeOutcome, CommitError, CreateOutcome, Driver, Lease, NewRun, OrganizationChange, RunBatch,
    RunChange, RunStatus, Segment, StoreError,
};

use crate::fixture::{Fixture, key, segment, summary};

on_both_databases!(
    a_start_holds_a_credit_until_it_pays,
    a_run_that_ends_at_once_pays_at_once,
    a_refused_start_gives_its_key_back,
    a_replay_is_never_refused,
    unlimited_credits_are_never_short,
    parallel_starts_do_not_overdraw,
    a_restart_is_billed_like_a_start,
    a_restart_that_is_written_twice_counts_once,
    a_restart_decides_anew_whether_credits_count,
);

async fn give(fixture: &Fixture, credits: Option<i64>) {
    let change = OrganizationChange {
        credits: Some(credits),
        ..OrganizationChange::default()
    };
    fixture
        .store
        .change_organization(&Actor::default(), fixture.organization_id(), &change)
        .await
        .unwrap();
}

/// What is left, and what is held.
async fn account(fixture: &Fixture) -> (Option<i64>, i64) {
    let organization = fixture
        .store
        .organization(fixture.organization_id())
        .await
        .unwrap();
    (organization.credits, organization.credits_held)
}

fn metered(fixture: &Fixture) -> NewRun {
    NewRun {
        metered: true,
        ..fixture.run("wf_1")
    }
}

fn batch(creates: Vec<NewRun>) -> RunBatch {
    RunBatch {
        creates,
        ..RunBatch::default()
    }
}

fn paid(run_id: &str, seq: i64, credits_spent: i64, end: Option<RunStatus>) -> RunChange {
    RunChange {
        run_id: run_id.to_owned(),
        segments: vec![segment(seq)],
        summary: end.map(|status| summary(status, Driver::This)),
        metered: true,
        credits_spent,
        ..RunChange::default()
    }
}

async fn a_start_holds_a_credit_until_it_pays(fixture: &Fixture) {
    give(fixture, Some(2)).await;
    let lease = fixture.lease().await;
    let runs = vec![metered(fixture), metered(fixture), metered(fixture)];
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let outcomes = fixture.commit(&lease, batch(runs)).await;
    assert_eq!(
        outcomes,
        [
            CreateOutcome::Created,
            CreateOutcome::Created,
            CreateOutcome::OutOfCredits
        ]
    );
    assert_eq!(account(fixture).await, (Some(2), 2));
    assert!(
        fixture
            .store
            .run(fixture.organization_id(), &ids[2])
            .await
            .is_err()
    );
    assert!(
        fixture
            .store
            .run(fixture.organization_id(), &ids[0])
            .await
            .unwrap()
            .metered
    );

    fixture.change(&lease, paid(&ids[0], 1, 0, None)).await;
    assert_eq!(account(fixture).await, (Some(2), 2), "free nodes keep the hold");
    fixture.change(&lease, paid(&ids[0], 2, 1, None)).await;
    assert_eq!(account(fixture).await, (Some(1), 1));
    fixture
        .change(&lease, paid(&ids[0], 3, 5, Some(RunStatus::Succeeded)))
        .await;
    assert_eq!(
        account(fixture).await,
        (Some(-4), 1),
        "a run in flight finishes, whatever it costs"
    );
    fixture
        .change(&lease, paid(&ids[1], 1, 0, Some(RunStatus::Cancelled)))
        .await;
    assert_eq!(
        account(fixture).await,
        (Some(-4), 0),
        "its end gives the hold back"
    );
    let refused = fixture.commit(&lease, batch(vec![metered(fixture)])).await;
    assert_eq!(refused, [CreateOutcome::OutOfCredits]);
}

async fn a_run_that_ends_at_once_pays_at_once(fixture: &Fixture) {
    give(fixture, Some(3)).await;
    let lease = fixture.lease().await;
    let finished = || {
        let mut run = metered(fixture);
        run.summary = summary(RunStatus::Succeeded, Driver::This);
        run.summary.credits_used = 3;
        run
    };
    let outcomes = fixture.commit(&lease, batch(vec![finished(), finished()])).await;
    assert_eq!(outcomes, [CreateOutcome::Created, CreateOutcome::OutOfCredits]);
    assert_eq!(account(fixture).await, (Some(0), 0));
}

async fn a_refused_start_gives_its_key_back(fixture: &Fixture) {
    give(fixture, Some(0)).await;
    let lease = fixture.lease().await;
    let keyed = || NewRun {
        idempotency: Some(key("k", "body")),
        ..metered(fixture)
    };
    let outcomes = fixture.commit(&lease, batch(vec![keyed(), keyed()])).await;
    assert_eq!(
        outcomes,
        [CreateOutcome::OutOfCredits, CreateOutcome::OutOfCredits]
    );
    give(fixture, Some(1)).await;
    assert_eq!(
        fixture.commit(&lease, batch(vec![keyed()])).await,
        [CreateOutcome::Created]
    );
}

async fn a_replay_is_never_refused(fixture: &Fixture) {
    give(fixture, Some(1)).await;
    let lease = fixture.lease().await;
    let keyed = || NewRun {
        idempotency: Some(key("k", "body")),
        ..metered(fixture)
    };
    let first = keyed();
    let run_id = first.id.clone();
    fixture.start(&lease, vec![first]).await;
    let outcomes = fixture
        .commit(&lease, batch(vec![keyed(), metered(fixture)]))
        .await;
    assert_eq!(
        outcomes,
        [CreateOutcome::Replayed { run_id }, CreateOutcome::OutOfCredits]
    );
    assert_eq!(account(fixture).await, (Some(1), 1));
}

async fn unlimited_credits_are_never_short(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = metered(fixture);
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    fixture
        .change(&lease, paid(&run_id, 1, 10, Some(RunStatus::Succeeded)))
        .await;
    assert_eq!(account(fixture).await, (None, 0));
}

async fn parallel_starts_do_not_overdraw(fixture: &Fixture) {
    give(fixture, Some(5)).await;
    let shared = fixture.lease().await;
    let mut commits = Vec::new();
    for _ in 0..6 {
        let lease = if fixture.is_sqlite() {
            shared.clone()
        } else {
            fixture.lease().await
        };
        let (store, creates) = (fixture.store.clone(), vec![metered(fixture), metered(fixture)]);
        commits.push(tokio::spawn(async move {
            store.commit_runs(&lease, &batch(creates)).await.unwrap().creates
        }));
    }
    let mut created = 0;
    for commit in commits {
        let outcomes = commit.await.unwrap();
        created += outcomes
            .iter()
            .filter(|outcome| **outcome == CreateOutcome::Created)
            .count();
    }
    assert_eq!(created, 5);
    assert_eq!(account(fixture).await, (Some(5), 5));
}

/// The second attempt of a run, which goes on or ends at once.
fn restart(run_id: &str, metered: bool, credits_spent: i64, end: Option<RunStatus>) -> RunBatch {
    let mut after = summary(end.unwrap_or(RunStatus::Running), Driver::This);
    after.attempt_number = 2;
    let change = RunChange {
        segments: vec![Segment {
            attempt: 2,
            ..segment(0)
        }],
        summary: Some(after),
        restarts: true,
        ..RunChange {
            metered,
            ..paid(run_id, 0, credits_spent, None)
        }
    };
    RunBatch {
        changes: vec![change],
        ..RunBatch::default()
    }
}

/// A run that has ended and cost nothing.
async fn ended(fixture: &Fixture, lease: &Lease, metered: bool) -> String {
    let run = NewRun {
        metered,
        summary: summary(RunStatus::Cancelled, Driver::This),
        ..fixture.run("wf_1")
    };
    let run_id = run.id.clone();
    fixture.start(lease, vec![run]).await;
    run_id
}

async fn restarted(fixture: &Fixture, lease: &Lease, batch: &RunBatch) -> ChangeOutcome {
    let outcome = fixture.store.commit_runs(lease, batch).await.unwrap();
    outcome.changes[0]
}

async fn a_restart_is_billed_like_a_start(fixture: &Fixture) {
    give(fixture, Some(1)).await;
    let lease = fixture.lease().await;
    let run_id = ended(fixture, &lease, true).await;
    let claimed = fixture
        .store
        .claim_run(&lease, fixture.organization_id(), &run_id)
        .await;
    assert!(claimed.is_ok());
    let at_once = restart(&run_id, true, 1, Some(RunStatus::Succeeded));
    give(fixture, Some(0)).await;
    assert_eq!(
        restarted(fixture, &lease, &at_once).await,
        ChangeOutcome::OutOfCredits
    );
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!(
        (run.status, run.attempt_number, run.process_id),
        (RunStatus::Cancelled, 1, None)
    );
    assert_eq!(fixture.store.load_segments(&run_id, Some(2)).await.unwrap(), []);
    give(fixture, Some(1)).await;
    assert_eq!(restarted(fixture, &lease, &at_once).await, ChangeOutcome::Written);
    assert_eq!(account(fixture).await, (Some(0), 0));

    give(fixture, Some(1)).await;
    let slow = ended(fixture, &lease, true).await;
    let goes_on = restart(&slow, true, 0, None);
    assert_eq!(restarted(fixture, &lease, &goes_on).await, ChangeOutcome::Written);
    assert_eq!(account(fixture).await, (Some(1), 1));
    let refused = fixture.commit(&lease, batch(vec![metered(fixture)])).await;
    assert_eq!(refused, [CreateOutcome::OutOfCredits]);
    let end = RunChange {
        segments: vec![Segment {
            attempt: 2,
            ..segment(1)
        }],
        ..paid(&slow, 1, 1, Some(RunStatus::Succeeded))
    };
    fixture.change(&lease, end).await;
    assert_eq!(account(fixture).await, (Some(0), 0));
}

async fn a_restart_that_is_written_twice_counts_once(fixture: &Fixture) {
    give(fixture, Some(1)).await;
    let lease = fixture.lease().await;
    let run_id = ended(fixture, &lease, true).await;
    let goes_on = restart(&run_id, true, 0, None);
    assert_eq!(restarted(fixture, &lease, &goes_on).await, ChangeOutcome::Written);
    // Whoever is in doubt about the commit writes it again, and learns that it is there: no credit is left for it.
    let again = fixture.store.commit_runs(&lease, &goes_on).await;
    assert!(
        matches!(again, Err(CommitError::Store(StoreError::Duplicate(_)))),
        "{again:?}"
    );
    assert_eq!(account(fixture).await, (Some(1), 1));
}

async fn a_restart_decides_anew_whether_credits_count(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let (free, counted) = (
        ended(fixture, &lease, false).await,
        ended(fixture, &lease, true).await,
    );
    give(fixture, Some(1)).await;
    restarted(fixture, &lease, &restart(&free, true, 0, None)).await;
    assert_eq!(account(fixture).await, (Some(1), 1));
    restarted(fixture, &lease, &restart(&counted, false, 0, None)).await;
    assert_eq!(account(fixture).await, (Some(1), 1));
    for (run_id, metered) in [(&free, true), (&counted, false)] {
        let run = fixture.store.run(fixture.organization_id(), run_id).await;
        assert_eq!(run.unwrap().metered, metered);
    }
}
