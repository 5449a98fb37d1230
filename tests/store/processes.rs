//! Leases, the fence, take-over, and timers that wake runs nobody drives.

use std::collections::HashSet;

use core_service::clock;
use core_service::store::{
    ChangeOutcome, ClaimCause, ClaimOne, ClaimedRun, CommitError, Driver, Due, Lease, NewRun, RunBatch,
    RunChange, RunStatus, Share, StoreError, Timer,
};

use crate::fixture::{EXPIRED, Fixture, LONG, organization, segment, summary};

on_both_databases!(
    a_process_that_was_taken_over_is_refused,
    an_earlier_epoch_of_a_living_process_is_refused,
    a_live_process_keeps_its_runs,
    a_late_process_may_write_until_it_is_taken_over,
    crashes_are_counted_for_each_take_over,
    a_loss_blames_the_run_on_trial_alone,
    a_run_that_ends_its_process_when_it_is_woken_is_a_suspect,
    what_is_written_again_undoes_nothing,
    a_run_that_waits_or_sleeps_is_no_suspect,
    a_retired_process_hands_its_runs_on,
    released_runs_are_claimed_once,
    a_parked_run_waits_for_its_timer,
    organizations_take_turns_when_much_is_due,
    timers_move_and_are_forgotten,
    one_named_run_can_be_claimed,
    dead_processes_are_forgotten,
);

/// A process whose lease has run out already.
async fn lost(fixture: &Fixture) -> Lease {
    fixture.store.register_process(EXPIRED).await.unwrap()
}

fn parked(fixture: &Fixture, due_at: i64) -> NewRun {
    NewRun {
        summary: summary(RunStatus::Waiting, Driver::Nobody),
        timers: vec![Timer {
            key: "wait".to_owned(),
            due_at,
            kind: "wait".to_owned(),
        }],
        ..fixture.run("wf_1")
    }
}

async fn claimed(fixture: &Fixture, lease: &Lease, now: i64) -> Vec<(String, ClaimCause)> {
    let claimed = fixture
        .store
        .claim_runs(lease, now, 100, &Due::Soonest)
        .await
        .unwrap();
    claimed
        .into_iter()
        .map(|claim| (claim.run.id, claim.cause))
        .collect()
}

async fn organizations_take_turns_when_much_is_due(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let other = organization(store).await.organization_id;
    let of = |organization_id: &str, due_at| NewRun {
        organization_id: organization_id.to_owned(),
        ..parked(fixture, due_at)
    };
    let flood: Vec<NewRun> = (1..=6)
        .map(|due_at| of(fixture.organization_id(), due_at))
        .collect();
    let quiet: Vec<NewRun> = (8..=10).map(|due_at| of(&other, due_at)).collect();
    let id = |run: &NewRun| run.id.clone();
    let (flood_ids, quiet_ids): (Vec<_>, Vec<_>) =
        (flood.iter().map(id).collect(), quiet.iter().map(id).collect());
    fixture.start(&lease, flood).await;
    fixture.start(&lease, quiet).await;
    let due = async |now, after: &str| store.organizations_due(now, after, 10).await.unwrap();
    assert_eq!(due(0, "").await, [""; 0]);
    assert_eq!(due(7, "").await, [fixture.organization_id()]);
    let mut both = [fixture.organization_id().to_owned(), other.clone()];
    both.sort();
    assert_eq!(due(8, "").await, both);
    assert_eq!(due(8, &both[0]).await, both[1..]);
    assert_eq!(store.organizations_due(8, "", 1).await.unwrap(), both[..1]);

    let share = |organization_id: &str, most| Share {
        organization_id: organization_id.to_owned(),
        most,
    };
    let turns = Due::InTurn(vec![share(fixture.organization_id(), 2), share(&other, 5)]);
    let mut claimed: Vec<String> = store
        .claim_runs(&lease, 9, 100, &turns)
        .await
        .unwrap()
        .into_iter()
        .map(|claimed| claimed.run.id)
        .collect();
    claimed.sort();
    let mut expected = [&flood_ids[..2], &quiet_ids[..2]].concat();
    expected.sort();
    assert_eq!(
        claimed, expected,
        "the soonest of each, and nothing that is not due"
    );
    let further = store.claim_runs(&lease, 10, 3, &turns).await.unwrap();
    let own = |one: &&ClaimedRun| one.run.organization_id == other;
    assert_eq!((further.len(), further.iter().filter(own).count()), (3, 1));
}

async fn an_earlier_epoch_of_a_living_process_is_refused(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let earlier = Lease {
        epoch: lease.epoch - 1,
        ..lease.clone()
    };
    let late = RunBatch {
        creates: vec![fixture.run("wf_1")],
        ..RunBatch::default()
    };
    let store = &fixture.store;
    let committed = store.commit_runs(&earlier, &late).await;
    assert!(matches!(committed, Err(CommitError::LeaseLost)), "{committed:?}");
    let claimed = store.claim_runs(&earlier, 0, 1, &Due::Soonest).await;
    assert!(matches!(claimed, Err(CommitError::LeaseLost)), "{claimed:?}");
    let renewed = store.renew_lease(&earlier).await;
    assert!(matches!(renewed, Err(CommitError::LeaseLost)), "{renewed:?}");
    let retired = store.retire_process(&earlier).await;
    assert!(matches!(retired, Err(CommitError::LeaseLost)), "{retired:?}");
    // The process itself is none the worse.
    fixture.commit(&lease, late).await;
}

async fn a_process_that_was_taken_over_is_refused(fixture: &Fixture) {
    let old = lost(fixture).await;
    let new_run = fixture.run("wf_1");
    let run_id = new_run.id.clone();
    fixture.start(&old, vec![new_run]).await;
    let new = fixture.lease().await;
    assert_eq!(
        claimed(fixture, &new, 0).await,
        [(run_id.clone(), ClaimCause::TakenOver)]
    );

    let late = RunBatch {
        creates: vec![fixture.run("wf_1")],
        changes: vec![RunChange {
            run_id: run_id.clone(),
            segments: vec![segment(1)],
            summary: Some(summary(RunStatus::Failed, Driver::This)),
            ..RunChange::default()
        }],
        ..RunBatch::default()
    };
    let refused = fixture.store.commit_runs(&old, &late).await;
    assert!(matches!(refused, Err(CommitError::LeaseLost)), "{refused:?}");
    assert!(matches!(
        fixture.store.renew_lease(&old).await,
        Err(CommitError::LeaseLost)
    ));
    assert!(matches!(
        fixture.store.claim_runs(&old, 0, 1, &Due::Soonest).await,
        Err(CommitError::LeaseLost)
    ));
    assert!(matches!(
        fixture.store.retire_process(&old).await,
        Err(CommitError::LeaseLost)
    ));
    assert_eq!(
        fixture.store.load_segments(&run_id, None).await.unwrap(),
        [segment(0)],
        "nothing of it is there"
    );
    assert!(
        fixture
            .store
            .run(fixture.organization_id(), &late.creates[0].id)
            .await
            .is_err()
    );

    let change = RunChange {
        run_id: run_id.clone(),
        segments: vec![segment(1)],
        summary: Some(summary(RunStatus::Succeeded, Driver::This)),
        ..RunChange::default()
    };
    fixture.change(&new, change).await;
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!((run.status, run.crashes), (RunStatus::Succeeded, 1));
}

async fn a_live_process_keeps_its_runs(fixture: &Fixture) {
    if fixture.is_sqlite() {
        // There a second process means that the first is gone.
        let first = fixture.lease().await;
        let second = fixture.lease().await;
        assert!(matches!(
            fixture.store.renew_lease(&first).await,
            Err(CommitError::LeaseLost)
        ));
        fixture.store.renew_lease(&second).await.unwrap();
        return;
    }
    let (first, second) = (fixture.lease().await, fixture.lease().await);
    fixture.start(&first, vec![fixture.run("wf_1")]).await;
    assert_eq!(claimed(fixture, &second, i64::MAX).await, []);
    fixture.store.renew_lease(&first).await.unwrap();
    fixture.store.renew_lease(&second).await.unwrap();
}

async fn a_late_process_may_write_until_it_is_taken_over(fixture: &Fixture) {
    let mut late = lost(fixture).await;
    fixture.start(&late, vec![fixture.run("wf_1")]).await;
    late.duration_ms = LONG;
    fixture.store.renew_lease(&late).await.unwrap();
    if !fixture.is_sqlite() {
        let other = fixture.lease().await;
        assert_eq!(claimed(fixture, &other, 0).await, [], "the renewal came in time");
    }
}

async fn crashes_are_counted_for_each_take_over(fixture: &Fixture) {
    let first = lost(fixture).await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&first, vec![run, parked(fixture, i64::MAX)]).await;
    let next = lost(fixture).await;
    let claimed_runs = fixture
        .store
        .claim_runs(&next, 0, 100, &Due::Soonest)
        .await
        .unwrap();
    assert_eq!(claimed_runs.len(), 1, "a parked run had no driver to lose");
    let run = &claimed_runs[0].run;
    assert_eq!((run.id.as_str(), run.crashes), (run_id.as_str(), 1));
    assert_eq!(
        run.workflow_id.as_deref(),
        Some("wf_1"),
        "a claimed run knows its workflow"
    );
    for crashes in 2..=3 {
        let next = lost(fixture).await;
        assert_eq!(claimed(fixture, &next, 0).await, [], "a suspect is tried alone");
        assert_eq!(
            suspect(fixture, &next).await,
            Some((run_id.clone(), crashes, crashes == 3))
        );
        assert_eq!(suspect(fixture, &next).await, None);
    }
}

/// Claims a suspect: which, how often its process was lost, and whether it was on trial then.
async fn suspect(fixture: &Fixture, lease: &Lease) -> Option<(String, i64, bool)> {
    let claimed = fixture.store.claim_suspect(lease).await.unwrap();
    claimed.map(|claimed| (claimed.run.id, claimed.run.crashes, claimed.run.on_trial))
}

async fn a_loss_blames_the_run_on_trial_alone(fixture: &Fixture) {
    let first = lost(fixture).await;
    let (innocent, guilty) = (fixture.run("wf_1"), fixture.run("wf_1"));
    let (innocent_id, guilty_id) = (innocent.id.clone(), guilty.id.clone());
    fixture.start(&first, vec![innocent, guilty]).await;
    let second = lost(fixture).await;
    assert_eq!(claimed(fixture, &second, 0).await.len(), 2);

    let third = lost(fixture).await;
    assert_eq!(claimed(fixture, &third, 0).await, []);
    assert!(fixture.store.has_suspects().await.unwrap());
    assert_eq!(
        suspect(fixture, &third).await,
        Some((innocent_id.clone(), 2, false))
    );
    fixture.store.end_trial(&third, &innocent_id).await.unwrap();
    assert_eq!(
        suspect(fixture, &third).await,
        Some((guilty_id.clone(), 2, false))
    );
    assert!(!fixture.store.has_suspects().await.unwrap());

    let fourth = fixture.lease().await;
    assert_eq!(claimed(fixture, &fourth, 0).await, []);
    assert_eq!(suspect(fixture, &fourth).await, Some((innocent_id, 3, false)));
    assert_eq!(suspect(fixture, &fourth).await, Some((guilty_id, 3, true)));
}

async fn a_run_that_ends_its_process_when_it_is_woken_is_a_suspect(fixture: &Fixture) {
    let first = lost(fixture).await;
    let run = parked(fixture, 1);
    let run_id = run.id.clone();
    fixture.start(&first, vec![run]).await;
    assert_eq!(claimed(fixture, &first, 1).await.len(), 1, "its time has come");
    let second = lost(fixture).await;
    assert_eq!(claimed(fixture, &second, 1).await.len(), 1);
    for crashes in 2..=3 {
        let next = lost(fixture).await;
        assert_eq!(claimed(fixture, &next, 1).await, []);
        assert_eq!(
            suspect(fixture, &next).await,
            Some((run_id.clone(), crashes, crashes == 3))
        );
    }
}

/// A process puts a run to sleep, is not told that it has, and says it again when others have gone on.
async fn what_is_written_again_undoes_nothing(fixture: &Fixture) {
    if fixture.is_sqlite() {
        return; // A SQLite database serves one process.
    }
    let (first, second) = (fixture.lease().await, fixture.lease().await);
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&first, vec![run]).await;
    let sleep = || RunBatch {
        changes: vec![RunChange {
            run_id: run_id.clone(),
            summary: Some(summary(RunStatus::Waiting, Driver::Nobody)),
            set_timers: vec![Timer {
                key: "wait".to_owned(),
                due_at: 1,
                kind: "wait".to_owned(),
            }],
            ..RunChange::default()
        }],
        ..RunBatch::default()
    };
    let write = async |lease: &Lease| fixture.store.commit_runs(lease, &sleep()).await.unwrap().changes;
    assert_eq!(write(&first).await, [ChangeOutcome::Written]);
    assert_eq!(claimed(fixture, &second, 1).await.len(), 1);
    assert_eq!(write(&first).await, [ChangeOutcome::NotDriven]);
    let end = RunChange {
        run_id: run_id.clone(),
        segments: vec![segment(1)],
        summary: Some(summary(RunStatus::Succeeded, Driver::Nobody)),
        clear_timers: vec!["wait".to_owned()],
        ..RunChange::default()
    };
    fixture.change(&second, end).await;
    assert_eq!(write(&first).await, [ChangeOutcome::NotDriven]);
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let run = store.run(organization, &run_id).await.unwrap();
    assert_eq!(run.status, RunStatus::Succeeded);
    assert_eq!(store.run_timers(&run_id).await.unwrap(), []);
}

async fn a_run_that_waits_or_sleeps_is_no_suspect(fixture: &Fixture) {
    let first = lost(fixture).await;
    let waiting = NewRun {
        summary: summary(RunStatus::Waiting, Driver::This),
        ..fixture.run("wf_1")
    };
    let executing = fixture.run("wf_1");
    let ids = [waiting.id.clone(), executing.id.clone()];
    fixture.start(&first, vec![waiting, executing]).await;
    let second = lost(fixture).await;
    let claimed_runs = fixture
        .store
        .claim_runs(&second, 0, 100, &Due::Soonest)
        .await
        .unwrap();
    let mut crashes: Vec<(String, i64)> = claimed_runs
        .into_iter()
        .map(|claimed| (claimed.run.id, claimed.run.crashes))
        .collect();
    crashes.sort();
    assert_eq!(crashes, [(ids[0].clone(), 0), (ids[1].clone(), 1)]);

    let change = RunChange {
        run_id: ids[1].clone(),
        segments: vec![segment(1)],
        summary: Some(summary(RunStatus::Waiting, Driver::Nobody)),
        ..RunChange::default()
    };
    fixture.change(&second, change).await;
    let run = fixture
        .store
        .run(fixture.organization_id(), &ids[1])
        .await
        .unwrap();
    assert_eq!(run.crashes, 0, "it is past whatever it was");
}

async fn a_retired_process_hands_its_runs_on(fixture: &Fixture) {
    let first = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&first, vec![run]).await;
    fixture.store.retire_process(&first).await.unwrap();
    let second = fixture.lease().await;
    assert_eq!(
        claimed(fixture, &second, 0).await,
        [(run_id.clone(), ClaimCause::Ready)]
    );
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!(run.crashes, 0, "an orderly stop is no crash");
}

async fn released_runs_are_claimed_once(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let ready = || NewRun {
        summary: summary(RunStatus::Queued, Driver::Anyone),
        ..fixture.run("wf_1")
    };
    let creates: Vec<NewRun> = (0..60).map(|_| ready()).collect();
    let ids: HashSet<String> = creates.iter().map(|run| run.id.clone()).collect();
    fixture.start(&lease, creates).await;
    let mut claims = Vec::new();
    for _ in 0..6 {
        let lease = if fixture.is_sqlite() {
            lease.clone()
        } else {
            fixture.lease().await
        };
        let store = fixture.store.clone();
        claims.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim_runs(&lease, 0, 7, &Due::Soonest).await.unwrap();
                if claimed.is_empty() {
                    return mine;
                }
                assert!(claimed.len() <= 7);
                mine.extend(claimed.into_iter().map(|claim| claim.run.id));
            }
        }));
    }
    let mut all = Vec::new();
    for claim in claims {
        all.extend(claim.await.unwrap());
    }
    assert_eq!(all.len(), 60, "none twice");
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), ids, "none left");
}

async fn a_parked_run_waits_for_its_timer(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let now = clock::now_ms();
    let (soon, later) = (parked(fixture, now + 100), parked(fixture, now + 200));
    let (soon_id, later_id) = (soon.id.clone(), later.id.clone());
    fixture.start(&lease, vec![soon, later]).await;
    assert_eq!(fixture.store.next_due().await.unwrap(), Some(now + 100));
    assert_eq!(claimed(fixture, &lease, now + 99).await, []);
    assert_eq!(
        claimed(fixture, &lease, now + 100).await,
        [(soon_id.clone(), ClaimCause::Ready)]
    );
    assert_eq!(claimed(fixture, &lease, now + 100).await, [], "its driver has it");
    assert_eq!(
        fixture.store.next_due().await.unwrap(),
        Some(now + 200),
        "timers of driven runs are the driver's"
    );
    assert_eq!(
        fixture.store.run_timers(&soon_id).await.unwrap().len(),
        1,
        "until the driver clears it"
    );
    assert_eq!(
        claimed(fixture, &lease, now + 500).await,
        [(later_id, ClaimCause::Ready)]
    );
    assert_eq!(fixture.store.next_due().await.unwrap(), None);
}

async fn timers_move_and_are_forgotten(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = NewRun {
        timers: parked(fixture, 50).timers,
        ..fixture.run("wf_1")
    };
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let timer = |key: &str, due_at| Timer {
        key: key.to_owned(),
        due_at,
        kind: "wait".to_owned(),
    };
    let change = RunChange {
        run_id: run_id.clone(),
        set_timers: vec![timer("wait", 90), timer("other", 70)],
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    let timers = fixture.store.run_timers(&run_id).await.unwrap();
    assert_eq!(timers, [timer("other", 70), timer("wait", 90)]);
    let change = RunChange {
        run_id: run_id.clone(),
        clear_timers: vec!["other".to_owned(), "unknown".to_owned()],
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    assert_eq!(
        fixture.store.run_timers(&run_id).await.unwrap(),
        [timer("wait", 90)]
    );
}

async fn one_named_run_can_be_claimed(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let old = lost(fixture).await;
    let (driven, waiting) = (fixture.run("wf_1"), parked(fixture, i64::MAX));
    let (driven_id, waiting_id) = (driven.id.clone(), waiting.id.clone());
    fixture.start(&old, vec![driven, waiting]).await;
    let lease = fixture.lease().await;
    for id in [&driven_id, &waiting_id, &waiting_id] {
        match store.claim_run(&lease, organization, id).await.unwrap() {
            ClaimOne::Claimed(run) => assert_eq!(run.process_id.as_ref(), Some(&lease.process_id)),
            ClaimOne::DrivenElsewhere => panic!("its driver is lost"),
        }
    }
    let missing = store.claim_run(&lease, "org_other", &driven_id).await;
    assert!(matches!(
        missing,
        Err(CommitError::Store(StoreError::NotFound("run")))
    ));
    if !fixture.is_sqlite() {
        let other = fixture.lease().await;
        let outcome = store.claim_run(&other, organization, &driven_id).await.unwrap();
        assert_eq!(outcome, ClaimOne::DrivenElsewhere);
    }
    let end = RunChange {
        run_id: driven_id.clone(),
        summary: Some(summary(RunStatus::Failed, Driver::This)),
        ..RunChange::default()
    };
    fixture.change(&lease, end).await;
    let finished = store.claim_run(&lease, organization, &driven_id).await.unwrap();
    assert!(
        matches!(finished, ClaimOne::Claimed(run) if run.status == RunStatus::Failed),
        "for a rerun"
    );
}

async fn dead_processes_are_forgotten(fixture: &Fixture) {
    let old = lost(fixture).await;
    fixture.start(&old, vec![fixture.run("wf_1")]).await;
    let lease = fixture.lease().await;
    fixture
        .store
        .claim_runs(&lease, 0, 0, &Due::Soonest)
        .await
        .unwrap();
    assert_eq!(
        fixture.store.delete_dead_processes().await.unwrap(),
        0,
        "its run is still to be claimed"
    );
    assert_eq!(claimed(fixture, &lease, 0).await.len(), 1);
    assert_eq!(fixture.store.delete_dead_processes().await.unwrap(), 1);
    fixture.store.renew_lease(&lease).await.unwrap();
}
