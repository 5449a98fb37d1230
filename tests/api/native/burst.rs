//! More new rows between two questions than a trigger looks at.

use serde_json::json;
use test_support::native::postgresql_or_skip;
use test_support::until;

use super::Connected;
use super::postgresql::{ORDERS, data};
use crate::world::World;

#[tokio::test]
async fn each_of_many_new_rows_starts_one_run() {
    let Some((_server, port, _)) = postgresql_or_skip("many new rows of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let add = async |from: usize, number: usize| {
        let rows: Vec<_> = (from..from + number)
            .map(|row| json!({ "name": format!("row {row}") }))
            .collect();
        let rows = json!({ "table": "orders", "rows": rows });
        let _inserted = connected.output("insert", rows).await;
    };
    add(0, 20).await;
    let params = json!({ "table": "orders", "column": "id", "limit": 3, "everySeconds": 1 });
    let operations = json!([
        { "op": "add_node", "tempId": "new", "appId": "postgresql", "moduleSlug": "new_row", "params": params,
          "credentialId": connected.credential },
    ]);
    let workflow = world.api.workflow_with("new_row", operations).await;
    world.api.go_live(&workflow).await;
    let path = format!("/runs?workflowId={workflow}&limit=200");
    let count = async || world.api.all_pages(&path).await.len();
    // When it has asked for the first time nobody can tell, so rows are added until one is new.
    let mut rows = 20;
    let first = until(async || {
        add(rows, 1).await;
        rows += 1;
        (count().await > 0).then_some(())
    });
    assert!(first.await.is_some(), "no row starts a run");
    // All rows that were added alone are dealt with once the runs are no more.
    let mut before = 0;
    let quiet = until(async || {
        let last = std::mem::replace(&mut before, count().await);
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        (last == before).then_some(())
    });
    assert!(quiet.await.is_some(), "runs go on");
    add(rows, 30).await;
    let all = until(async || (count().await >= before + 30).then_some(()));
    assert!(all.await.is_some(), "{} runs of 30", count().await - before);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(count().await, before + 30);
}
