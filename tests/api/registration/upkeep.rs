//! What services are told over the life of a workflow.

use http::{Method, Response};
use serde_json::{Value, json};
use test_support::{Asked, Target, text, until};

use super::office::{self, Office, given};
use crate::catalog::bring;
use crate::world::World;

on_both_databases!(
    it_is_over_with_the_workflow,
    the_same_trigger_keeps_its_url,
    another_trigger_takes_its_place,
    an_inactive_workflow_is_not_called,
    a_service_that_refuses_is_told_again,
    nothing_is_stranded,
    what_the_service_has_forgotten_is_over,
    a_service_that_repeats_gives_nothing_away,
);

async fn undeploy(world: &World, workflow: &str) {
    let undeployed = world
        .api
        .post(format!("/workflows/{workflow}/undeploy"), json!({}))
        .await;
    let _ = undeployed.data(200);
}

async fn switch(world: &World, workflow: &str, active: bool) {
    let change = json!({ "active": active });
    let _ = world
        .api
        .patch(format!("/workflows/{workflow}"), change)
        .await
        .data(200);
}

/// Changes a node of the draft and deploys it.
async fn redeploy(world: &World, workflow: &str, operation: Value) {
    let _ = world.api.edit(workflow, json!([operation])).await;
    let deployed = world
        .api
        .post(format!("/workflows/{workflow}/deploy"), json!({}))
        .await;
    let _ = deployed.data(200);
}

/// The activities of a workflow with this name.
async fn told_of(world: &World, workflow: &str, action: &str) -> usize {
    let page = format!("/activity?targetType=workflow&targetId={workflow}&limit=200");
    let page = world.api.get(page).await.data(200);
    let events = page["events"].as_array().unwrap().iter();
    let told = events.filter(|event| event["action"] == action);
    told.inspect(|event| {
        let metadata = &event["metadata"];
        assert_eq!(metadata["nodeId"], 1, "{event}");
        assert!(text(&metadata["reason"]).starts_with("HTTP_"), "{event}");
    })
    .count()
}

/// Waits until a delivery is answered with this status.
async fn answered_by(world: &World, told: &Value, status: u16) {
    let (path, secret) = (office::path(told), text(&told["secret"]));
    let mut last = 0;
    let answered = until(async || {
        let other = json!({ "kind": "of another kind" });
        last = office::deliver(world, &path, &secret, &other).await.status;
        (last == status).then_some(())
    });
    assert!(answered.await.is_some(), "it is answered by {last}");
}

async fn it_is_over_with_the_workflow(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let told = office.called(1).await.json();
    undeploy(world, &workflow).await;
    let over = office.called(2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::DELETE, "/calls/call-1")
    );
    assert_eq!(over.header("x-api-key"), "k-1");
    assert!(
        over.uri.query().unwrap().contains("hooks%2Fhook_"),
        "{}",
        over.uri
    );
    answered_by(world, &told, 404).await;
}

async fn the_same_trigger_keeps_its_url(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let told = office.called(1).await.json();
    redeploy(
        world,
        &workflow,
        json!({ "op": "rename_node", "nodeId": 2, "name": "Shown" }),
    )
    .await;
    let letter = json!({ "kind": "stamped", "letter": 1 });
    let answer = office::deliver(world, &office::path(&told), &text(&told["secret"]), &letter).await;
    assert_eq!(answer.status, 200);
    assert_eq!(given(world, &workflow, 1).await.len(), 1);
    let run = &office::runs(world, &workflow).await[0];
    let report = world
        .api
        .get(format!("/runs/{}", text(&run["id"])))
        .await
        .data(200);
    assert_eq!(
        report["nodes"][1]["label"], "Shown",
        "the new version runs: {report}"
    );
    assert_eq!(office.service.asked().len(), 1, "the service knows already");
}

async fn another_trigger_takes_its_place(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let before = office.called(1).await.json();
    redeploy(
        world,
        &workflow,
        json!({ "op": "update_params", "nodeId": 1, "params": { "kind": "plain" } }),
    )
    .await;
    let over = office.called(2).await;
    assert_eq!(
        (&over.method, over.uri.path()),
        (&Method::DELETE, "/calls/call-1"),
        "what is over comes first"
    );
    let after = office.called(3).await.json();
    assert_eq!(after["kind"], "plain");
    assert_ne!(
        (&before["to"], &before["secret"]),
        (&after["to"], &after["secret"])
    );
    answered_by(world, &before, 404).await;
    answered_by(world, &after, 200).await;
}

async fn an_inactive_workflow_is_not_called(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let before = office.called(1).await.json();
    switch(world, &workflow, false).await;
    assert_eq!(office.called(2).await.uri.path(), "/calls/call-1");
    let letter = json!({ "kind": "stamped", "letter": 1 });
    let (path, secret) = (office::path(&before), text(&before["secret"]));
    let answer = office::deliver(world, &path, &secret, &letter).await;
    answer.error(409, "workflow_not_live");
    switch(world, &workflow, true).await;
    let after = office.called(3).await.json();
    assert_eq!(after, before, "the URL is the trigger's");
    assert_eq!(office::deliver(world, &path, &secret, &letter).await.status, 200);
    assert_eq!(given(world, &workflow, 1).await.len(), 1);
    undeploy(world, &workflow).await;
    assert_eq!(office.called(4).await.uri.path(), "/calls/call-2");
}

async fn a_service_that_refuses_is_told_again(world: &World) {
    let office = Office::open(world).await;
    office.answer_by(500);
    let workflow = office.live(world, "stamped").await;
    let first = office.called(1).await;
    let told = until(async || (told_of(world, &workflow, "workflow.attach_failed").await == 1).then_some(()));
    assert!(told.await.is_some(), "the activity feed does not tell of it");
    office.answer_by(200);
    let second = office.called(2).await;
    assert_eq!(first.json(), second.json(), "it is told the same");
    assert_ne!(
        first.header("idempotency-key"),
        second.header("idempotency-key"),
        "what was refused is not what is asked now"
    );
    undeploy(world, &workflow).await;
    assert_eq!(office.called(3).await.uri.path(), "/calls/call-2");
    assert_eq!(told_of(world, &workflow, "workflow.attach_failed").await, 1);
}

async fn nothing_is_stranded(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let told = office.called(1).await.json();
    answered_by(world, &told, 200).await;
    office.answer_by(503);
    switch(world, &workflow, false).await;
    undeploy(world, &workflow).await;
    let deleted = world.api.delete(format!("/workflows/{workflow}")).await;
    assert!(deleted.status < 300, "{}", deleted.text());
    assert_eq!(office.called(2).await.uri.path(), "/calls/call-1");
    // The app is another one by now; its own requests are meant.
    let manifest = office::manifest(&office.service.url("")).replace("/calls/", "/moved/");
    crate::catalog::bring(world, &manifest).await;
    office.answer_by(200);
    assert_eq!(office.called(3).await.uri.path(), "/calls/call-1");
}

async fn what_the_service_has_forgotten_is_over(world: &World) {
    let office = Office::open(world).await;
    let workflow = office.live(world, "stamped").await;
    let before = office.called(1).await.json();
    answered_by(world, &before, 200).await;
    office.answer_by(404);
    switch(world, &workflow, false).await;
    assert_eq!(office.called(2).await.method, Method::DELETE);
    office.answer_by(200);
    switch(world, &workflow, true).await;
    assert_eq!(office.called(3).await.json(), before);
}

async fn a_service_that_repeats_gives_nothing_away(world: &World) {
    let service = Target::start(|asked: &Asked| {
        let answer = Response::builder().status(422);
        answer.body(asked.body.clone()).unwrap()
    })
    .await;
    bring(world, &office::manifest(&service.url(""))).await;
    let flow = office::flow(
        &office::credential(&world.api).await,
        "new_letter",
        json!({ "kind": "stamped" }),
    );
    let workflow = world.api.workflow_with("Letters", flow).await;
    world.api.go_live(&workflow).await;
    let told = office::called(&service, 1).await.json();
    let said = until(async || {
        let log = world.server.whole_log();
        let mut lines = log.lines();
        let said = lines.find(|line| line.contains("was not told of a trigger") && line.contains(&workflow));
        said.map(str::to_owned)
    });
    let said = said.await.unwrap();
    assert!(said.contains("422") && said.contains("stamped"), "{said}");
    let log = world.server.whole_log();
    let (url, secret) = (text(&told["to"]), text(&told["secret"]));
    let id = url.rsplit('/').next().unwrap();
    assert!(!log.contains(&secret) && !log.contains(id), "{said}");
}
