//! Triggers that services call: they follow their workflow, outlive it until the service knows, and whoever comes back late
//! has no say.

use core_service::id;
use core_service::store::{
    Actor, Deploy, DueRegistration, LONGEST_CLAIM_MS, NewDeployment, NewRegistration, Registration,
    RegistrationStatus, Told, Trouble, Workflow, WorkflowChange,
};

use crate::fixture::{EXPIRED, Fixture, LONG, graph};

on_both_databases!(
    a_service_is_told_of_a_live_workflow,
    a_service_is_told_when_it_is_over,
    the_same_question_keeps_its_url_and_another_gets_one,
    what_is_over_comes_first,
    several_that_are_over_do_not_wait_for_each_other,
    what_is_under_way_is_finished_first,
    a_claim_is_one_processes,
    failures_are_told_once_and_wait,
    a_url_leads_to_its_workflow,
);

const SECRET: &[u8] = b"sealed";

fn asking(node_id: i64, question: &str) -> NewRegistration {
    NewRegistration {
        node_id,
        question: question.into(),
        source: format!("source of {question}").into_bytes(),
        id: id::new_registration().unwrap(),
        secret: SECRET.to_vec(),
    }
}

async fn deploy(fixture: &Fixture, workflow: &Workflow, text: &str, registrations: &[NewRegistration]) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let current = store.workflow(organization, &workflow.id).await.unwrap();
    let new = NewDeployment {
        expected_updated_at: current.updated_at,
        graph: &graph(text),
        error_triggers: &[],
        polls: &[],
        registrations,
    };
    let actor = Actor::default();
    let deployed = store.deploy_workflow(&actor, organization, &workflow.id, &new);
    assert!(matches!(deployed.await, Ok(Deploy::Deployed(_))));
}

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

async fn undeploy(fixture: &Fixture, workflow: &Workflow) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let actor = Actor::default();
    let undeployed = store.undeploy_workflow(&actor, organization, &workflow.id);
    undeployed.await.unwrap();
}

/// A live workflow with one trigger.
async fn live(fixture: &Fixture) -> Workflow {
    let workflow = fixture.workflow("letters").await;
    set_active(fixture, &workflow, true).await;
    deploy(fixture, &workflow, "one", &[asking(1, "stamped")]).await;
    workflow
}

async fn claimed(fixture: &Fixture) -> Vec<DueRegistration> {
    let claimed = fixture.store.claim_registrations(LONGEST_CLAIM_MS, 100).await;
    claimed.unwrap()
}

/// The only one that is due.
async fn due(fixture: &Fixture) -> DueRegistration {
    let due: [DueRegistration; 1] = claimed(fixture).await.try_into().ok().unwrap();
    let [due] = due;
    due
}

async fn tell(fixture: &Fixture, due: &DueRegistration, told: Told<'_>) -> bool {
    fixture.store.told(due, told).await.unwrap()
}

async fn of(fixture: &Fixture, workflow: &Workflow, node_id: i64) -> Option<Registration> {
    let registration = fixture
        .store
        .registration(fixture.organization_id(), &workflow.id, node_id);
    registration.await.unwrap()
}

async fn nothing_to_tell(fixture: &Fixture) -> bool {
    claimed(fixture).await.is_empty() && fixture.store.next_registration().await.unwrap().is_none()
}

async fn a_service_is_told_of_a_live_workflow(fixture: &Fixture) {
    let workflow = fixture.workflow("letters").await;
    deploy(fixture, &workflow, "one", &[asking(1, "stamped")]).await;
    let registration = of(fixture, &workflow, 1).await.unwrap();
    assert_eq!(registration.status, RegistrationStatus::Detached);
    assert!(nothing_to_tell(fixture).await, "not active");
    set_active(fixture, &workflow, true).await;
    let first = due(fixture).await;
    assert_eq!(first.registration.id, registration.id);
    assert_eq!(first.registration.status, RegistrationStatus::Attaching);
    assert_eq!(first.registration.source, b"source of stamped");
    assert_eq!(
        (first.failures, first.registration.secret.as_slice()),
        (0, SECRET)
    );
    let kept = Some(b"id".as_slice());
    assert!(tell(fixture, &first, Told::Attached { kept }).await);
    assert!(nothing_to_tell(fixture).await);
    set_active(fixture, &workflow, false).await;
    let over = due(fixture).await;
    assert_eq!(over.registration.status, RegistrationStatus::Detaching);
    assert_eq!(over.registration.kept.as_deref(), kept);
    assert!(over.round > first.round, "it is told something else");
    assert!(tell(fixture, &over, Told::Detached).await);
    let registration = of(fixture, &workflow, 1).await.unwrap();
    assert_eq!(registration.status, RegistrationStatus::Detached);
    assert_eq!(registration.kept, None);
    assert!(nothing_to_tell(fixture).await);
}

async fn a_service_is_told_when_it_is_over(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let attach = due(fixture).await;
    assert!(tell(fixture, &attach, Told::Attached { kept: None }).await);
    undeploy(fixture, &workflow).await;
    assert!(of(fixture, &workflow, 1).await.is_none(), "it is no version's");
    set_active(fixture, &workflow, false).await;
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let actor = Actor::default();
    let deleted = store.delete_workflow(&actor, organization, &workflow.id);
    deleted.await.unwrap();
    let detach = due(fixture).await;
    assert_eq!(detach.registration.id, attach.registration.id);
    assert!(!detach.registration.wanted);
    let trouble = trouble("workflow.detach_failed");
    assert!(tell(fixture, &detach, Told::Abandoned { trouble }).await);
    assert!(nothing_to_tell(fixture).await, "nothing is left");
    let told = &fixture.activity().await[0];
    assert_eq!((&*told.action, &*told.label), (trouble.action, "letters"));
    assert!(!tell(fixture, &detach, Told::Detached).await);
}

async fn the_same_question_keeps_its_url_and_another_gets_one(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let attach = due(fixture).await;
    assert!(tell(fixture, &attach, Told::Attached { kept: None }).await);
    let same = NewRegistration {
        source: b"as it is now".to_vec(),
        ..asking(1, "stamped")
    };
    deploy(fixture, &workflow, "two", &[same]).await;
    let registration = of(fixture, &workflow, 1).await.unwrap();
    assert_eq!(registration.id, attach.registration.id);
    assert_eq!(registration.source, b"as it is now");
    assert_eq!(registration.status, RegistrationStatus::Attached);
    assert!(nothing_to_tell(fixture).await, "the service knows");
    deploy(fixture, &workflow, "three", &[asking(1, "plain")]).await;
    let other = of(fixture, &workflow, 1).await.unwrap();
    assert_ne!(other.id, attach.registration.id);
    assert_eq!(due(fixture).await.registration.id, attach.registration.id);
}

async fn what_is_over_comes_first(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let attach = due(fixture).await;
    assert!(tell(fixture, &attach, Told::Attached { kept: None }).await);
    deploy(fixture, &workflow, "two", &[asking(2, "stamped")]).await;
    let detach = due(fixture).await;
    assert_eq!(detach.registration.node_id, 1);
    assert!(claimed(fixture).await.is_empty(), "the other one waits");
    // One that cannot be detached holds nobody up.
    let failed = Told::Failed {
        pause_ms: LONG,
        answered: true,
        trouble: None,
    };
    assert!(tell(fixture, &detach, failed).await);
    let other = due(fixture).await;
    assert_eq!(other.registration.node_id, 2);
    // Other workflows are not concerned.
    let _other = live(fixture).await;
    assert_eq!(claimed(fixture).await.len(), 1);
}

async fn several_that_are_over_do_not_wait_for_each_other(fixture: &Fixture) {
    let workflow = fixture.workflow("letters").await;
    set_active(fixture, &workflow, true).await;
    deploy(fixture, &workflow, "one", &[asking(1, "a"), asking(2, "b")]).await;
    let refused = claimed(fixture).await;
    for due in &refused {
        let failed = Told::Failed {
            pause_ms: LONG,
            answered: true,
            trouble: None,
        };
        assert!(tell(fixture, due, failed).await);
    }
    deploy(fixture, &workflow, "two", &[asking(1, "c"), asking(2, "d")]).await;
    let over = claimed(fixture).await;
    assert_eq!(over.len(), 2, "both of the first version");
    for due in &over {
        assert!(!due.registration.wanted);
        assert!(tell(fixture, due, Told::Detached).await);
    }
    let new = claimed(fixture).await;
    assert!(new.len() == 2 && new.iter().all(|due| due.registration.wanted));
}

async fn what_is_under_way_is_finished_first(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let attach = due(fixture).await;
    set_active(fixture, &workflow, false).await;
    assert!(claimed(fixture).await.is_empty(), "somebody is at it");
    let kept = Some(b"id".as_slice());
    assert!(tell(fixture, &attach, Told::Attached { kept }).await);
    let detach = due(fixture).await;
    assert_eq!(detach.registration.status, RegistrationStatus::Detaching);
    assert_eq!(detach.registration.kept.as_deref(), kept);
    set_active(fixture, &workflow, true).await;
    assert!(claimed(fixture).await.is_empty(), "somebody is at it");
    assert!(tell(fixture, &detach, Told::Detached).await);
    let again = due(fixture).await;
    assert_eq!(again.registration.status, RegistrationStatus::Attaching);
    assert_eq!(again.registration.id, attach.registration.id);
    // A service that cannot be told that it is over is not told so when it is wanted again.
    assert!(tell(fixture, &again, Told::Attached { kept }).await);
    set_active(fixture, &workflow, false).await;
    let detach = due(fixture).await;
    set_active(fixture, &workflow, true).await;
    let failed = Told::Failed {
        pause_ms: LONG,
        answered: true,
        trouble: None,
    };
    assert!(tell(fixture, &detach, failed).await);
    let third = due(fixture).await;
    assert_eq!(third.registration.status, RegistrationStatus::Attaching);
    assert_eq!(third.failures, 0);
    assert!(third.round > detach.round);
}

async fn a_claim_is_one_processes(fixture: &Fixture) {
    let _workflow = live(fixture).await;
    let claim = async |claim_ms| fixture.store.claim_registrations(claim_ms, 100).await.unwrap();
    let late = claim(EXPIRED).await.remove(0);
    let due = claim(LONGEST_CLAIM_MS).await.remove(0);
    assert_eq!(late.round, due.round, "the service is told the same");
    assert!(claim(LONGEST_CLAIM_MS).await.is_empty());
    assert!(!tell(fixture, &late, Told::Attached { kept: None }).await);
    assert!(tell(fixture, &due, Told::Attached { kept: None }).await);
    assert!(!tell(fixture, &due, Told::Detached).await, "a claim is used once");
}

fn trouble(action: &str) -> Trouble<'_> {
    Trouble {
        action,
        node_id: Some(1),
        reason: "no",
    }
}

async fn failures_are_told_once_and_wait(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let fail = async |due: &DueRegistration, answered, pause_ms| {
        let failed = Told::Failed {
            pause_ms,
            answered,
            trouble: Some(trouble("workflow.attach_failed")),
        };
        assert!(tell(fixture, due, failed).await);
    };
    let first = due(fixture).await;
    fail(&first, false, 0).await;
    let second = due(fixture).await;
    assert_eq!((second.round, second.failures), (first.round, 1));
    fail(&second, true, LONG).await;
    assert!(claimed(fixture).await.is_empty(), "it waits");
    let activity = fixture.activity().await;
    let told = activity
        .iter()
        .filter(|entry| entry.action == "workflow.attach_failed");
    assert_eq!(told.count(), 1);
    // Switched off and on, it is tried at once.
    set_active(fixture, &workflow, false).await;
    set_active(fixture, &workflow, true).await;
    let third = due(fixture).await;
    assert_eq!(third.failures, 0);
    assert!(third.round > second.round);
}

async fn a_url_leads_to_its_workflow(fixture: &Fixture) {
    let workflow = live(fixture).await;
    let id = of(fixture, &workflow, 1).await.unwrap().id;
    let target = async || fixture.store.registration_target(&id).await.unwrap();
    let found = target().await.unwrap();
    assert_eq!(
        (found.registration.node_id, &found.workflow.id),
        (1, &workflow.id)
    );
    assert!(found.workflow.active);
    assert_eq!(found.workflow.deployment.version_no, 1);
    set_active(fixture, &workflow, false).await;
    assert!(!target().await.unwrap().workflow.active);
    undeploy(fixture, &workflow).await;
    assert!(target().await.is_none());
    assert!(
        fixture
            .store
            .registration_target("hook_")
            .await
            .unwrap()
            .is_none()
    );
}
