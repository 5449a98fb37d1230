//! Signals reach the driver of a run, or give the run one.

use core_service::store::{
    ClaimCause, Driver, Due, Lease, NewRun, RunChange, RunStatus, SignalDone, Store, Topic,
};

use crate::fixture::{Fixture, summary};

/// What came of a signal.
const OUTCOME: &[u8] = b"\0done";

on_both_databases!(
    a_signal_waits_until_its_effect_is_durable,
    a_signal_wakes_a_parked_run,
    a_run_is_not_parked_past_a_signal,
    a_finished_run_takes_none,
    a_run_that_begins_again_is_not_kept_awake_by_forgotten_signals,
    an_outcome_that_nobody_asks_for_is_forgotten,
    a_notification_reaches_every_subscriber,
);

async fn a_signal_waits_until_its_effect_is_durable(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let first = store
        .send_signal(organization, &run_id, "respond", b"\0yes")
        .await
        .unwrap()
        .unwrap();
    let second = store
        .send_signal(organization, &run_id, "cancel", b"")
        .await
        .unwrap()
        .unwrap();
    let pending = store.pending_signals(&lease.process_id, 10).await.unwrap();
    let seen: Vec<_> = pending
        .iter()
        .map(|signal| (&signal.id, signal.kind.as_str()))
        .collect();
    assert_eq!(seen, [(&first, "respond"), (&second, "cancel")]);
    assert_eq!(pending[0].payload, b"\0yes");
    assert!(store.pending_signals("proc_other", 10).await.unwrap().is_empty());
    assert_eq!(
        store.pending_signals(&lease.process_id, 10).await.unwrap(),
        pending,
        "reading takes nothing"
    );

    let change = RunChange {
        run_id,
        signals_done: vec![done(&first)],
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    assert_eq!(
        store.pending_signals(&lease.process_id, 10).await.unwrap(),
        pending[1..]
    );
    assert_eq!(
        store.take_signal_outcome(&first).await.unwrap().as_deref(),
        Some(OUTCOME)
    );
    assert_eq!(
        store.take_signal_outcome(&first).await.unwrap(),
        None,
        "told once"
    );
    assert_eq!(store.take_signal_outcome(&second).await.unwrap(), None);
}

/// A signal that was acted upon.
fn done(signal_id: &str) -> SignalDone {
    SignalDone {
        id: signal_id.to_owned(),
        outcome: OUTCOME.to_owned(),
    }
}

async fn a_signal_wakes_a_parked_run(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let lease = fixture.lease().await;
    let run = NewRun {
        summary: summary(RunStatus::Waiting, Driver::Nobody),
        ..fixture.run("wf_1")
    };
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    assert!(
        store
            .claim_runs(&lease, 0, 10, &Due::Soonest)
            .await
            .unwrap()
            .is_empty()
    );
    store
        .send_signal(organization, &run_id, "cancel", b"")
        .await
        .unwrap();
    let claimed = store.claim_runs(&lease, 0, 10, &Due::Soonest).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].cause), (1, ClaimCause::Ready));
    assert_eq!(
        store.pending_signals(&lease.process_id, 10).await.unwrap().len(),
        1
    );
}

async fn a_run_is_not_parked_past_a_signal(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    // The driver has not seen this one when it parks the run.
    let signal = store
        .send_signal(organization, &run_id, "respond", b"")
        .await
        .unwrap()
        .unwrap();
    let park = |signals_done| RunChange {
        run_id: run_id.clone(),
        summary: Some(summary(RunStatus::Waiting, Driver::Nobody)),
        signals_done,
        ..RunChange::default()
    };
    fixture.change(&lease, park(Vec::new())).await;
    assert_eq!(
        store
            .claim_runs(&lease, 0, 10, &Due::Soonest)
            .await
            .unwrap()
            .len(),
        1,
        "it is ready again at once"
    );
    fixture.change(&lease, park(vec![done(&signal)])).await;
    assert!(
        store
            .claim_runs(&lease, 0, 10, &Due::Soonest)
            .await
            .unwrap()
            .is_empty(),
        "now it may rest"
    );
}

/// A run that has ended without acting upon a signal.
async fn ended_with_a_late_signal(fixture: &Fixture, lease: &Lease) -> String {
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(lease, vec![run]).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let sent = store.send_signal(organization, &run_id, "late", b"");
    assert!(sent.await.unwrap().is_some());
    let end = RunChange {
        run_id: run_id.clone(),
        summary: Some(summary(RunStatus::Succeeded, Driver::Nobody)),
        ..RunChange::default()
    };
    fixture.change(lease, end).await;
    run_id
}

async fn a_finished_run_takes_none(fixture: &Fixture) {
    let run_id = ended_with_a_late_signal(fixture, &fixture.lease().await).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let sent = store.send_signal(organization, &run_id, "cancel", b"");
    assert_eq!(sent.await.unwrap(), None);
    assert_eq!(store.delete_late_signals(0).await.unwrap(), 1);
    assert_eq!(store.delete_late_signals(0).await.unwrap(), 0);
}

async fn a_run_that_begins_again_is_not_kept_awake_by_forgotten_signals(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run_id = ended_with_a_late_signal(fixture, &lease).await;
    assert_eq!(fixture.store.delete_late_signals(0).await.unwrap(), 1);
    let again = RunChange {
        run_id: run_id.clone(),
        summary: Some(summary(RunStatus::Waiting, Driver::Nobody)),
        restarts: true,
        ..RunChange::default()
    };
    fixture.change(&lease, again).await;
    let store = &fixture.store;
    assert_eq!(store.pending_signals_of(&run_id, 10).await.unwrap(), []);
    assert_eq!(store.claim_runs(&lease, 0, 10, &Due::Soonest).await.unwrap(), []);
}

async fn an_outcome_that_nobody_asks_for_is_forgotten(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let signal = store
        .send_signal(organization, &run_id, "x", b"")
        .await
        .unwrap()
        .unwrap();
    let change = RunChange {
        run_id,
        signals_done: vec![done(&signal)],
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    assert_eq!(
        store.delete_late_signals(0).await.unwrap(),
        0,
        "somebody may still ask"
    );
    assert_eq!(store.delete_late_signals(i64::MAX).await.unwrap(), 1);
}

async fn a_notification_reaches_every_subscriber(fixture: &Fixture) {
    // On PostgreSQL another node hears it too.
    let listener = if fixture.is_sqlite() {
        fixture.store.clone()
    } else {
        Store::open(&fixture.url).await.unwrap()
    };
    let (mut first, mut second) = (listener.subscribe(), listener.subscribe());
    let (store, (stop, mut stopped)) = (fixture.store.clone(), tokio::sync::oneshot::channel::<()>());
    // A listener may still be connecting, so say it until it was heard.
    let speaker = tokio::spawn(async move {
        while matches!(
            stopped.try_recv(),
            Err(tokio::sync::oneshot::error::TryRecvError::Empty)
        ) {
            store.notify(Topic::Ready, "run_1").await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    for subscription in [&mut first, &mut second] {
        let heard = loop {
            if let Some(heard) = subscription.next().await {
                break heard;
            }
        };
        assert_eq!((heard.topic, heard.payload.as_str()), (Topic::Ready, "run_1"));
    }
    stop.send(()).unwrap();
    speaker.await.unwrap();
    listener.close().await;
}
