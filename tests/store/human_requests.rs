//! Open requests to people come and go with the commits of their runs.

use core_service::store::{HumanRequestFilter, HumanRequestPlace, NewHumanRequest, RunChange};
use core_service::{clock, id};

use crate::fixture::Fixture;

on_both_databases!(
    a_request_comes_and_goes_with_commits,
    a_run_that_is_given_up_asks_nobody,
    a_refused_commit_asks_nobody,
);

fn place(iteration: &str) -> HumanRequestPlace {
    HumanRequestPlace {
        node_id: 2,
        iteration: iteration.to_owned(),
    }
}

fn request(fixture: &Fixture, iteration: &str) -> NewHumanRequest {
    NewHumanRequest {
        id: id::new(id::Kind::HumanRequest),
        organization_id: fixture.organization_id().to_owned(),
        workflow_id: "wf_1".to_owned(),
        run_attempt: 1,
        place: place(iteration),
        question: b"\0question".to_vec(),
        assignees: vec!["Ada".to_owned(), "50%_off".to_owned()],
        due_at: Some(7),
        created_at: clock::now_ms(),
    }
}

/// The iterations that are open, newest first.
async fn open(fixture: &Fixture, filter: &HumanRequestFilter<'_>) -> Vec<String> {
    let listed = fixture
        .store
        .list_human_requests(fixture.organization_id(), filter, None, 10)
        .await
        .unwrap();
    listed.into_iter().map(|request| request.iteration).collect()
}

async fn a_request_comes_and_goes_with_commits(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    let change = |opened, closed| RunChange {
        run_id: run_id.clone(),
        requests_opened: opened,
        requests_closed: closed,
        ..RunChange::default()
    };
    let all = HumanRequestFilter::default();
    let opened = vec![request(fixture, "0"), request(fixture, "1")];
    let first = opened[0].clone();
    fixture.change(&lease, change(opened, Vec::new())).await;
    assert_eq!(open(fixture, &all).await, ["1", "0"]);
    let found = fixture
        .store
        .find_human_request(&first.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.run_id.as_str(), found.question.as_slice()),
        (run_id.as_str(), b"\0question".as_slice())
    );
    assert_eq!(
        (found.workflow_id, found.due_at),
        (None, Some(7)),
        "there is no such workflow"
    );
    for (assignee, known) in [
        ("ada", true),
        ("50%_OFF", true),
        ("ad", false),
        ("50xyoff", false),
    ] {
        let filter = HumanRequestFilter {
            assignee: Some(assignee),
            ..all
        };
        assert_eq!(
            open(fixture, &filter).await.len(),
            if known { 2 } else { 0 },
            "{assignee}"
        );
    }
    let of_node = async |iteration| {
        let listed = fixture
            .store
            .human_requests_of_node(fixture.organization_id(), &run_id, 2, iteration, 10)
            .await;
        listed.unwrap().len()
    };
    assert_eq!(
        (
            of_node(None).await,
            of_node(Some("1")).await,
            of_node(Some("")).await
        ),
        (2, 1, 0)
    );
    // One is answered and asks again, in one commit.
    let again = vec![request(fixture, "0")];
    fixture
        .change(&lease, change(again, vec![place("0"), place("7")]))
        .await;
    assert_eq!(open(fixture, &all).await, ["0", "1"]);
    assert_eq!(fixture.store.find_human_request(&first.id).await.unwrap(), None);
    let strangers = fixture
        .store
        .list_human_requests("org_other", &all, None, 10)
        .await;
    assert_eq!(strangers.unwrap(), []);
}

async fn a_run_that_is_given_up_asks_nobody(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let runs = [fixture.run("wf_1"), fixture.run("wf_1")];
    let ids = runs.clone().map(|run| run.id);
    fixture.start(&lease, runs.to_vec()).await;
    for run_id in &ids {
        let change = RunChange {
            run_id: run_id.clone(),
            requests_opened: vec![request(fixture, "0"), request(fixture, "1")],
            ..RunChange::default()
        };
        fixture.change(&lease, change).await;
    }
    let change = RunChange {
        run_id: ids[0].clone(),
        all_requests_closed: true,
        ..RunChange::default()
    };
    fixture.change(&lease, change).await;
    let of = |run_id| HumanRequestFilter {
        run_id: Some(run_id),
        ..HumanRequestFilter::default()
    };
    assert_eq!(open(fixture, &of(&ids[0])).await.len(), 0);
    assert_eq!(open(fixture, &of(&ids[1])).await.len(), 2);
}

async fn a_refused_commit_asks_nobody(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let change = RunChange {
        run_id: run.id.clone(),
        // The run has this segment already.
        segments: run.segments.clone(),
        requests_opened: vec![request(fixture, "")],
        ..RunChange::default()
    };
    fixture.start(&lease, vec![run]).await;
    let batch = core_service::store::RunBatch {
        changes: vec![change],
        ..Default::default()
    };
    assert!(fixture.store.commit_runs(&lease, &batch).await.is_err());
    assert_eq!(
        open(fixture, &HumanRequestFilter::default()).await,
        Vec::<String>::new()
    );
}
