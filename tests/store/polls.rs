//! Triggers that poll: they follow their workflow, and of several that ask at the same time the first has its say.

use core_service::store::{
    Actor, Deploy, DuePoll, NewDeployment, NewPoll, Polled, Trouble, Workflow, WorkflowChange,
};

use crate::fixture::{Fixture, LONG, graph};

on_both_databases!(
    only_a_live_workflow_polls,
    the_same_question_goes_on_and_another_begins_anew,
    a_claimed_trigger_is_not_given_to_others,
    the_first_of_several_has_its_say,
);

async fn set_active(fixture: &Fixture, workflow: &Workflow, active: bool) {
    let change = WorkflowChange {
        active: Some(active),
        ..WorkflowChange::default()
    };
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let actor = Actor::default();
    let changed = store.update_workflow(&actor, organization, &workflow.id, &change);
    assert_eq!(changed.await.unwrap().active, active);
}

fn asking(node_id: i64, question: &str) -> NewPoll {
    NewPoll {
        node_id,
        question: question.into(),
    }
}

async fn deploy(fixture: &Fixture, workflow: &Workflow, text: &str, polls: &[NewPoll]) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let current = store.workflow(organization, &workflow.id).await.unwrap();
    let new = NewDeployment {
        expected_updated_at: current.updated_at,
        graph: &graph(text),
        error_triggers: &[],
        polls,
        registrations: &[],
    };
    let actor = Actor::default();
    let deployed = store.deploy_workflow(&actor, organization, &workflow.id, &new);
    assert!(matches!(deployed.await, Ok(Deploy::Deployed(_))));
}

/// A live workflow with one trigger.
async fn live(fixture: &Fixture) -> Workflow {
    let workflow = fixture.workflow("polling").await;
    set_active(fixture, &workflow, true).await;
    deploy(fixture, &workflow, "one", &[asking(1, "orders")]).await;
    workflow
}

async fn claimed(fixture: &Fixture) -> Vec<DuePoll> {
    fixture.store.claim_polls(LONG, 100).await.unwrap()
}

/// Notes that these items are known, and that it asks again at once. Gives whether that was heard.
async fn note(fixture: &Fixture, due: &DuePoll, known: &[u8]) -> bool {
    let polled = Polled {
        known: Some(known),
        pause_ms: 0,
        trouble: None,
    };
    fixture.store.polled(due, &polled).await.unwrap()
}

async fn only_a_live_workflow_polls(fixture: &Fixture) {
    let look = async || fixture.store.next_poll().await.unwrap().is_some();
    let workflow = fixture.workflow("polling").await;
    deploy(fixture, &workflow, "one", &[asking(1, "orders")]).await;
    assert!(!look().await, "not active");
    set_active(fixture, &workflow, true).await;
    let [due] = claimed(fixture).await.try_into().unwrap();
    assert_eq!((due.node_id, &due.known), (1, &None));
    assert_eq!(due.workflow.id, workflow.id);
    assert!(note(fixture, &due, b"a").await);
    set_active(fixture, &workflow, false).await;
    assert!(!look().await);
    set_active(fixture, &workflow, true).await;
    let [due] = claimed(fixture).await.try_into().unwrap();
    assert_eq!(due.known, None, "what came meanwhile is not new");
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let actor = Actor::default();
    let undeployed = store.undeploy_workflow(&actor, organization, &workflow.id);
    undeployed.await.unwrap();
    assert!(!look().await, "not deployed");
    assert!(!note(fixture, &due, b"a").await, "it is gone");
}

async fn the_same_question_goes_on_and_another_begins_anew(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let [due] = claimed(fixture).await.try_into().unwrap();
    assert!(note(fixture, &due, b"a").await);
    deploy(
        fixture,
        &workflow,
        "two",
        &[asking(1, "orders"), asking(2, "customers")],
    )
    .await;
    let mut due = claimed(fixture).await;
    due.sort_by_key(|due| due.node_id);
    let known: Vec<_> = due.iter().map(|due| (due.node_id, due.known.clone())).collect();
    assert_eq!(known, [(1, Some(b"a".to_vec())), (2, None)]);
    deploy(fixture, &workflow, "three", &[asking(1, "invoices")]).await;
    let [other] = claimed(fixture).await.try_into().unwrap();
    assert_eq!((other.node_id, other.known), (1, None));
    assert!(
        !note(fixture, &due[0], b"b").await,
        "the answer to another question"
    );
}

async fn a_claimed_trigger_is_not_given_to_others(fixture: &Fixture) {
    let _workflow = live(fixture).await;
    assert_eq!(claimed(fixture).await.len(), 1);
    assert!(claimed(fixture).await.is_empty());
}

async fn the_first_of_several_has_its_say(fixture: &Fixture) {
    let _workflow = live(fixture).await;
    let [due] = claimed(fixture).await.try_into().unwrap();
    let late = due.clone();
    assert!(note(fixture, &due, b"a").await);
    assert!(!note(fixture, &late, b"b").await);
    let [due] = claimed(fixture).await.try_into().unwrap();
    assert_eq!(due.known, Some(b"a".to_vec()));
    let unanswered = Polled {
        known: None,
        pause_ms: LONG,
        trouble: Some(Trouble {
            action: "workflow.poll_failed",
            node_id: Some(1),
            reason: &"é".repeat(2_000),
        }),
    };
    assert!(fixture.store.polled(&due, &unanswered).await.unwrap());
    assert!(claimed(fixture).await.is_empty(), "it waits");
    let activity = fixture.activity().await;
    let told = activity
        .iter()
        .find(|entry| entry.action == "workflow.poll_failed");
    let metadata: serde_json::Value = serde_json::from_slice(&told.unwrap().metadata).unwrap();
    assert_eq!(metadata["nodeId"], 1);
    assert_eq!(metadata["reason"], "é".repeat(1_000));
}
