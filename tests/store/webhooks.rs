//! Webhooks: one a trigger node, found by their id alone.

use core_service::id;
use core_service::store::{
    Actor, Delete, Mint, NewDeployment, NewWebhook, Position, StoreError, Webhook, WorkflowChange,
};

use crate::fixture::{Fixture, graph};

on_both_databases!(
    a_node_has_one_webhook,
    a_delivery_learns_all_in_one_query,
    a_search_covers_name_and_url,
    a_bound_webhook_needs_force,
    a_webhook_outlives_its_workflow,
);

async fn mint(fixture: &Fixture, workflow_id: &str, node_id: i64, node_name: &str) -> Mint {
    let webhook_id = id::new_webhook().unwrap();
    let new = NewWebhook {
        workflow_id,
        node_id,
        node_name,
        method: "POST",
        webhook_id: &webhook_id,
    };
    fixture
        .store
        .mint_webhook(&Actor::default(), fixture.organization_id(), &new)
        .await
        .unwrap()
}

async fn minted(fixture: &Fixture, workflow_id: &str, node_id: i64, node_name: &str) -> Webhook {
    match mint(fixture, workflow_id, node_id, node_name).await {
        Mint::Minted(webhook) => webhook,
        Mint::Existing(webhook) => panic!("{} exists", webhook.id),
    }
}

async fn a_node_has_one_webhook(fixture: &Fixture) {
    let workflow = fixture.workflow("orders").await;
    let first = minted(fixture, &workflow.id, 1, "hook").await;
    assert_eq!(first.name(), "orders / hook");
    assert_eq!(
        mint(fixture, &workflow.id, 1, "hook").await,
        Mint::Existing(first.clone())
    );
    let second = minted(fixture, &workflow.id, 2, "hook").await;
    assert_ne!(first.id, second.id);
    let new = NewWebhook {
        workflow_id: &workflow.id,
        node_id: 3,
        node_name: "x",
        method: "GET",
        webhook_id: &id::new_webhook().unwrap(),
    };
    let foreign = fixture
        .store
        .mint_webhook(&Actor::default(), "org_other", &new)
        .await;
    assert!(matches!(foreign, Err(StoreError::NotFound("workflow"))));
}

async fn a_delivery_learns_all_in_one_query(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("orders").await;
    let webhook = minted(fixture, &workflow.id, 1, "hook").await;
    let idle = store.webhook_target(&webhook.id).await.unwrap().unwrap();
    assert_eq!((idle.active, idle.deployment, idle.enabled), (false, None, true));

    let frozen = graph("one");
    let new = NewDeployment {
        expected_updated_at: workflow.updated_at,
        graph: &frozen,
        error_triggers: &[],
        polls: &[],
        registrations: &[],
    };
    store
        .deploy_workflow(&actor, organization, &workflow.id, &new)
        .await
        .unwrap();
    let change = WorkflowChange {
        active: Some(true),
        ..WorkflowChange::default()
    };
    store
        .update_workflow(&actor, organization, &workflow.id, &change)
        .await
        .unwrap();
    store
        .set_webhook_enabled(&actor, organization, &webhook.id, false)
        .await
        .unwrap();
    store
        .sync_webhooks(organization, &workflow.id, &[(1, "renamed", "PUT")])
        .await
        .unwrap();
    let live = store.webhook_target(&webhook.id).await.unwrap().unwrap();
    assert!(live.active && !live.enabled);
    assert_eq!(live.method, "PUT");
    assert_eq!(
        live.deployment
            .map(|deployed| (deployed.version_no, deployed.content_hash)),
        Some((1, frozen.content_hash))
    );
    assert_eq!(
        (live.organization.id.as_str(), live.organization.plan.id.as_str()),
        (organization, "unlimited")
    );
    assert_eq!(store.webhook_target("wh_none").await.unwrap(), None);
    assert_eq!(
        store.webhook(organization, &webhook.id).await.unwrap().node_name,
        "renamed"
    );
}

async fn a_search_covers_name_and_url(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let orders = fixture.workflow("Orders").await;
    let first = minted(fixture, &orders.id, 1, "Incoming").await;
    let second = minted(fixture, &orders.id, 2, "100%").await;
    let prefix = "https://Host/hooks/";
    let search = async |query: &str| {
        let found = store
            .list_webhooks(organization, Some(query), prefix, None, 10)
            .await
            .unwrap();
        found.into_iter().map(|webhook| webhook.id).collect::<Vec<_>>()
    };
    assert_eq!(search("orders / inc").await, [first.id.as_str()]);
    assert_eq!(search("0%").await, [second.id.as_str()]);
    assert_eq!(search(&first.id[5..]).await, [first.id.as_str()]);
    assert_eq!(search("HOST/hooks").await.len(), 2);
    assert_eq!(search("nothing").await, [""; 0]);

    let page = store
        .list_webhooks(organization, None, prefix, None, 1)
        .await
        .unwrap();
    let after = Position {
        value: page[0].created_at,
        id: page[0].id.clone(),
    };
    let rest = store
        .list_webhooks(organization, None, prefix, Some(&after), 10)
        .await
        .unwrap();
    assert_eq!(rest.len(), 1);
    assert_ne!(rest[0].id, page[0].id);
    let both = store
        .list_webhooks(organization, Some("orders"), prefix, Some(&after), 10)
        .await
        .unwrap();
    assert_eq!(both, rest);
}

async fn a_bound_webhook_needs_force(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("orders").await;
    let webhook = minted(fixture, &workflow.id, 1, "hook").await;
    assert!(
        !store
            .delete_webhook(&actor, organization, &webhook.id, true)
            .await
            .unwrap()
    );
    assert!(
        store
            .delete_webhook(&actor, organization, &webhook.id, false)
            .await
            .unwrap()
    );
    let gone = store
        .delete_webhook(&actor, organization, &webhook.id, false)
        .await;
    assert!(matches!(gone, Err(StoreError::NotFound("webhook"))));
    assert_ne!(
        minted(fixture, &workflow.id, 1, "hook").await.id,
        webhook.id,
        "the old address stays dead"
    );
}

async fn a_webhook_outlives_its_workflow(fixture: &Fixture) {
    let (store, actor, organization) = (&fixture.store, Actor::default(), fixture.organization_id());
    let workflow = fixture.workflow("orders").await;
    let webhook = minted(fixture, &workflow.id, 1, "hook").await;
    assert_eq!(
        store
            .delete_workflow(&actor, organization, &workflow.id)
            .await
            .unwrap(),
        Delete::Deleted
    );
    let left = store.webhook(organization, &webhook.id).await.unwrap();
    assert_eq!((left.binding.clone(), left.name()), (None, "hook".to_owned()));
    assert_eq!(
        store.webhook_target(&webhook.id).await.unwrap().unwrap().binding,
        None
    );
    let listed = store
        .list_webhooks(organization, Some("hook"), "", None, 10)
        .await
        .unwrap();
    assert_eq!(listed, [left]);
    assert!(
        store
            .delete_webhook(&actor, organization, &webhook.id, true)
            .await
            .unwrap()
    );
}
