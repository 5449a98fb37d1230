//! More new items between two questions than a page holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, until};

use super::{flow_of, given, told};
use crate::catalog;
use crate::world::World;

on_both_databases!(
    each_item_of_several_pages_starts_one_run,
    the_first_question_is_for_one_page,
    a_known_item_ends_the_pages,
    a_list_in_any_order_is_read_to_its_end,
    a_burst_that_is_too_long_is_told_of,
);

/// An app whose list has pages of SIZE orders; what it says of their order stands in capitals.
const PAGES: &str = r#"
manifest: 1
id: pages
name: Pages
baseUrl: BASE_URL
connections: []
modules:
  - id: new_order
    label: New order
    type: trigger
    description: Starts a run for each new order.
    connection: optional
    request: { path: /orders, query: { size: SIZE } }
    pagination: { type: page, parameter: page }
    items: "{{response.body.rows}}"
    poll: { key: "{{$item.id}}", everySeconds: 1, ORDER }
"#;
const ORDERED: &str = r#"order: "{{$item.id}}""#;
const IN_ANY_ORDER: &str = "whole: true";

/// A service whose orders are numbered from 1, the latest on the first page.
struct Shop {
    service: Target,
    last: Arc<AtomicI64>,
}

impl Shop {
    /// Opens one with so many orders, and a workflow that starts for each new one; waits until it has asked.
    async fn open(world: &World, (last, size): (i64, i64), order: &str) -> (Self, String) {
        let last = Arc::new(AtomicI64::new(last));
        let shown = Arc::clone(&last);
        let service = Target::start(move |asked: &Asked| {
            let number = |name| query(asked, name).parse::<i64>().unwrap();
            let from = shown.load(SeqCst) - (number("page") - 1) * number("size");
            let rows = (1..=from).rev().take(usize::try_from(number("size")).unwrap());
            let rows: Vec<Value> = rows.map(|id| json!({ "id": id, "total": id * 10 })).collect();
            let answer = Response::builder().header("content-type", "application/json");
            answer
                .body(Bytes::from(json!({ "rows": rows }).to_string()))
                .unwrap()
        })
        .await;
        let manifest = PAGES
            .replace("BASE_URL", &service.url(""))
            .replace("SIZE", &size.to_string())
            .replace("ORDER", order);
        catalog::bring(world, &manifest).await;
        let flow = flow_of(("pages", "new_order"), json!({}));
        let workflow = world.api.workflow_with("Orders", flow).await;
        world.api.go_live(&workflow).await;
        let shop = Self { service, last };
        shop.asked_again().await;
        (shop, workflow)
    }

    /// So many orders come.
    fn add(&self, number: i64) {
        self.last.fetch_add(number, SeqCst);
    }

    /// How often a page was asked for.
    fn asked_for(&self, page: i64) -> usize {
        let asked = self.service.asked();
        let pages = asked.iter().map(|asked| query(asked, "page"));
        pages.filter(|asked| *asked == page.to_string()).count()
    }

    /// Waits until the list was asked for from now on, and what was asked before is dealt with.
    async fn asked_again(&self) {
        let before = self.asked_for(1);
        let asked = until(async || (self.asked_for(1) >= before + 2).then_some(()));
        assert!(asked.await.is_some(), "nobody asks");
    }
}

/// A parameter of a request's query.
fn query(asked: &Asked, name: &str) -> String {
    let query = asked.uri.query().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

async fn each_item_of_several_pages_starts_one_run(world: &World) {
    let (shop, workflow) = Shop::open(world, (1_000, 20), ORDERED).await;
    shop.add(250);
    let all: Vec<i64> = (1_001..=1_250).collect();
    assert_eq!(given(world, &workflow, all.len()).await, all);
    shop.asked_again().await;
    assert_eq!(given(world, &workflow, all.len()).await, all, "each once");
    assert_eq!(told(world, &workflow, "workflow.poll_incomplete").await, 0);
}

async fn the_first_question_is_for_one_page(world: &World) {
    let (shop, workflow) = Shop::open(world, (1_000, 100), ORDERED).await;
    assert_eq!(shop.asked_for(2), 0);
    assert_eq!(given(world, &workflow, 0).await, [0; 0]);
}

async fn a_known_item_ends_the_pages(world: &World) {
    let (shop, workflow) = Shop::open(world, (1_000, 4), ORDERED).await;
    shop.add(6);
    let all: Vec<i64> = (1_001..=1_006).collect();
    assert_eq!(given(world, &workflow, all.len()).await, all);
    shop.asked_again().await;
    assert_eq!((shop.asked_for(2), shop.asked_for(3)), (1, 0));
}

async fn a_list_in_any_order_is_read_to_its_end(world: &World) {
    let (shop, workflow) = Shop::open(world, (7, 3), IN_ANY_ORDER).await;
    assert!(shop.asked_for(3) > 0, "what is there is known");
    shop.add(2);
    assert_eq!(given(world, &workflow, 2).await, [8, 9]);
}

async fn a_burst_that_is_too_long_is_told_of(world: &World) {
    let (shop, workflow) = Shop::open(world, (10, 1), ORDERED).await;
    shop.add(101);
    let seen: Vec<i64> = (12..=111).collect();
    assert_eq!(given(world, &workflow, seen.len()).await, seen);
    shop.asked_again().await;
    assert_eq!(shop.asked_for(101), 0);
    assert_eq!(told(world, &workflow, "workflow.poll_incomplete").await, 1);
    assert_eq!(told(world, &workflow, "workflow.poll_failed").await, 0);
}
