//! Runs: what is committed is read back, byte for byte.

use core_service::store::{
    Driver, NewRun, Payload, RunBatch, RunChange, RunStatus, Segment, StoreError, Timer,
};

use crate::fixture::{Fixture, segment, summary};

on_both_databases!(
    a_run_is_read_back_as_committed,
    payloads_may_hold_any_byte,
    a_workflows_runs_are_listed_newest_first,
    runs_are_found_by_status_and_id,
    a_large_batch_keeps_every_row,
    an_empty_batch_is_fine,
    an_attempts_journal_is_its_own,
    large_outputs_are_kept_once,
);

async fn a_run_is_read_back_as_committed(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let workflow = fixture.workflow("w").await;
    let mut new = fixture.run(&workflow.id);
    new.version_no = Some(3);
    new.created_by = Some("user_1".to_owned());
    let run_id = new.id.clone();
    fixture.start(&lease, vec![new.clone()]).await;
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!(
        (run.status, run.attempt_number, run.finished_at),
        (RunStatus::Running, 1, None)
    );
    assert_eq!(
        (run.workflow_id.as_deref(), run.version_no),
        (Some(workflow.id.as_str()), Some(3))
    );
    assert_eq!(
        (run.created_at, run.created_by, run.crashes),
        (new.created_at, new.created_by, 0)
    );
    assert_eq!(run.process_id.as_deref(), Some(lease.process_id.as_str()));

    let mut end = summary(RunStatus::Failed, Driver::This);
    end.error = Some("a \0 and 雪".to_owned());
    end.credits_used = 4;
    let change = RunChange {
        run_id: run_id.clone(),
        segments: vec![segment(1), segment(2)],
        summary: Some(end.clone()),
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!(
        (run.status, run.finished_at, run.error),
        (RunStatus::Failed, end.finished_at, end.error)
    );
    assert_eq!(
        (run.credits_used, run.process_id),
        (4, None),
        "a finished run has no driver"
    );
    let journal = fixture.store.load_segments(&run_id, None).await.unwrap();
    assert_eq!(journal, [segment(0), segment(1), segment(2)]);
    let missing = fixture.store.run(fixture.organization_id(), "run_none").await;
    assert!(matches!(missing, Err(StoreError::NotFound("run"))));
}

async fn payloads_may_hold_any_byte(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let mut new = fixture.run("wf_1");
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    new.start_input = b"\0\xff\xfe not UTF-8".to_vec();
    new.segments = vec![
        Segment {
            attempt: 1,
            seq: 0,
            events: every_byte.clone(),
        },
        Segment {
            attempt: 1,
            seq: 1,
            events: Vec::new(),
        },
    ];
    let (run_id, segments, input) = (new.id.clone(), new.segments.clone(), new.start_input.clone());
    fixture.start(&lease, vec![new]).await;
    assert_eq!(
        fixture.store.load_segments(&run_id, None).await.unwrap(),
        segments
    );
    let run = fixture
        .store
        .run(fixture.organization_id(), &run_id)
        .await
        .unwrap();
    assert_eq!(run.start_input, input);
}

async fn a_workflows_runs_are_listed_newest_first(fixture: &Fixture) {
    let (lease, workflow) = (fixture.lease().await, fixture.workflow("w").await);
    let new: Vec<_> = (0..5).map(|_| fixture.run(&workflow.id)).collect();
    let ids: Vec<String> = new.iter().rev().map(|run| run.id.clone()).collect();
    fixture.start(&lease, new).await;
    let list = async |after: Option<&str>| {
        let runs = fixture
            .store
            .list_runs(fixture.organization_id(), &workflow.id, None, after, 2)
            .await
            .unwrap();
        runs.into_iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None).await, ids[..2]);
    let newer = fixture.run(&workflow.id);
    fixture.start(&lease, vec![newer]).await;
    assert_eq!(list(Some(&ids[1])).await, ids[2..4], "a new run moves no page");
    assert_eq!(list(Some(&ids[3])).await, ids[4..]);
    assert_eq!(list(Some(&ids[4])).await, [""; 0]);
}

async fn runs_are_found_by_status_and_id(fixture: &Fixture) {
    let (lease, workflow) = (fixture.lease().await, fixture.workflow("w").await);
    let running = fixture.run(&workflow.id);
    let mut waiting = fixture.run(&workflow.id);
    waiting.summary = summary(RunStatus::Waiting, Driver::This);
    let (running_id, waiting_id) = (running.id.clone(), waiting.id.clone());
    fixture.start(&lease, vec![running, waiting]).await;
    let find = async |query: &str, after: Option<&str>| {
        let found = fixture
            .store
            .list_runs(fixture.organization_id(), &workflow.id, Some(query), after, 10)
            .await;
        found.unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(find("WAIT", None).await, [waiting_id.as_str()]);
    assert_eq!(find("run", None).await, [waiting_id.clone(), running_id.clone()]);
    assert_eq!(find("run", Some(&waiting_id)).await, [running_id.as_str()]);
    assert_eq!(find(&running_id, None).await, [running_id]);
    assert_eq!(find("%", None).await, [""; 0]);
    assert_eq!(find("r%n", None).await, [""; 0]);
}

async fn a_large_batch_keeps_every_row(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let creates: Vec<_> = (0..341).map(|_| fixture.run("wf_1")).collect();
    let ids: Vec<String> = creates.iter().map(|run| run.id.clone()).collect();
    fixture.start(&lease, creates).await;
    let changes = ids.iter().map(|run_id| RunChange {
        run_id: run_id.clone(),
        segments: vec![segment(1)],
        summary: Some(summary(RunStatus::Succeeded, Driver::This)),
        ..RunChange::default()
    });
    fixture
        .commit(
            &lease,
            RunBatch {
                changes: changes.collect(),
                ..RunBatch::default()
            },
        )
        .await;
    for run_id in &ids {
        let run = fixture
            .store
            .run(fixture.organization_id(), run_id)
            .await
            .unwrap();
        assert_eq!(run.status, RunStatus::Succeeded);
        assert_eq!(
            fixture.store.load_segments(run_id, None).await.unwrap(),
            [segment(0), segment(1)]
        );
    }
}

async fn an_empty_batch_is_fine(fixture: &Fixture) {
    let lease = fixture.lease().await;
    assert!(fixture.commit(&lease, RunBatch::default()).await.is_empty());
}

async fn an_attempts_journal_is_its_own(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let new = fixture.run("wf_1");
    let run_id = new.id.clone();
    fixture.start(&lease, vec![new]).await;
    let second = Segment {
        attempt: 2,
        seq: 0,
        events: b"again".to_vec(),
    };
    let mut rerun = summary(RunStatus::Queued, Driver::This);
    rerun.attempt_number = 2;
    let timer = Timer {
        key: "retry".to_owned(),
        due_at: 5,
        kind: "retry".to_owned(),
    };
    let change = RunChange {
        run_id: run_id.clone(),
        segments: vec![second.clone()],
        summary: Some(rerun),
        set_timers: vec![timer.clone()],
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    assert_eq!(
        fixture.store.load_segments(&run_id, Some(2)).await.unwrap(),
        [second]
    );
    assert_eq!(
        fixture.store.load_segments(&run_id, Some(1)).await.unwrap(),
        [segment(0)]
    );
    assert_eq!(fixture.store.load_segments(&run_id, Some(3)).await.unwrap(), []);
    assert_eq!(fixture.store.run_timers(&run_id).await.unwrap(), [timer]);
}

async fn large_outputs_are_kept_once(fixture: &Fixture) {
    let (store, lease) = (&fixture.store, fixture.lease().await);
    let (first, second) = (fixture.run("wf_1"), fixture.run("wf_1"));
    let payload = |run: &NewRun, hash: &str, text: &str| Payload {
        run_id: run.id.clone(),
        organization_id: fixture.organization_id().to_owned(),
        content_hash: hash.to_owned(),
        payload: text.as_bytes().to_vec(),
    };
    let payloads = vec![
        payload(&first, "same", "first"),
        payload(&first, "same", "first"),
        payload(&second, "same", "first"),
        payload(&fixture.run("wf_1"), "of nobody", "refused"),
    ];
    let batch = RunBatch {
        creates: vec![first, second],
        payloads,
        ..RunBatch::default()
    };
    fixture.commit(&lease, batch).await;
    let organization = fixture.organization_id();
    assert_eq!(store.load_payload(organization, "same").await.unwrap(), b"first");
    assert!(store.load_payload("org_other", "same").await.is_err());
    assert!(
        store.load_payload(organization, "of nobody").await.is_err(),
        "what is not written needs no payload"
    );
}
