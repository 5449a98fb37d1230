//! Effects: what one execution writes is written once.

use core_service::store::{
    Actor, Effect, NewVariable, RowWrite, RowsWritten, RunBatch, RunStatus, Table, VariableWrite,
};
use core_service::table::ColumnType;
use core_service::{clock, id};
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, summary};
use crate::tables::{column, indexed, object, table};

on_both_databases!(
    an_execution_writes_once,
    every_write_of_rows_happens_once,
    what_is_asked_for_anew_is_another_effect,
    a_refused_write_leaves_no_effect,
    of_two_executions_at_once_one_writes,
    a_variable_is_set_once,
    effects_are_kept_while_their_run_goes_on,
);

fn effect<'a>(key: &'a str, started_at: i64, hash: Option<u8>) -> Effect<'a> {
    Effect {
        key,
        run_id: "run_1",
        started_at,
        request_hash: hash.map(|byte| [byte; 32]),
    }
}

async fn orders(fixture: &Fixture) -> Table {
    let columns = vec![
        indexed("sku", ColumnType::Text),
        column("price", ColumnType::Number),
    ];
    table(fixture, columns).await
}

async fn write(fixture: &Fixture, table: &Table, effect: &Effect<'_>, write: RowWrite<'_>) -> RowsWritten {
    let written = fixture
        .store
        .write_rows_once(fixture.organization_id(), &table.id, effect, write)
        .await;
    written.unwrap()
}

async fn row_count(fixture: &Fixture, table: &Table) -> i64 {
    let table = fixture.store.table(fixture.organization_id(), &table.id).await;
    table.unwrap().row_count
}

fn row(sku: &str, price: u32) -> Map<String, Value> {
    object(json!({ "sku": sku, "price": price }))
}

async fn an_execution_writes_once(fixture: &Fixture) {
    let table = orders(fixture).await;
    let rows = [row("a", 1), row("b", 2)];
    let first = write(fixture, &table, &effect("k", 5, Some(1)), RowWrite::Insert(&rows)).await;
    assert_eq!((first.count, first.rows.len()), (2, 2));
    // What follows a crash has begun at the same time; its request may differ, as variables do.
    for again in [
        effect("k", 5, Some(1)),
        effect("k", 5, Some(2)),
        effect("k", 6, Some(1)),
    ] {
        assert_eq!(
            write(fixture, &table, &again, RowWrite::Insert(&rows)).await,
            first
        );
    }
    assert_eq!(row_count(fixture, &table).await, 2);
    // The first result is given whatever has become of the table.
    let deleted = fixture
        .store
        .delete_table(&fixture.actor(), fixture.organization_id(), &table.id)
        .await;
    deleted.unwrap();
    let again = write(fixture, &table, &effect("k", 5, Some(1)), RowWrite::Insert(&rows)).await;
    assert_eq!(again, first);
}

async fn every_write_of_rows_happens_once(fixture: &Fixture) {
    let table = orders(fixture).await;
    let (a, one, two) = (object(json!({ "sku": "a" })), row("a", 1), row("a", 2));
    let filters = r#"[{"columnId": "sku", "operator": "eq", "value": "a"}]"#;
    let upsert = RowWrite::Upsert {
        wanted: &a,
        given: &one,
    };
    let inserted = write(fixture, &table, &effect("upsert", 1, None), upsert).await;
    let update = RowWrite::Update {
        wanted: &a,
        changes: &two,
    };
    let updated = write(fixture, &table, &effect("update", 1, None), update).await;
    assert_eq!(
        (&inserted.rows[0]["price"], &updated.rows[0]["price"]),
        (&json!(1), &json!(2))
    );
    // Again, an upsert would change the row back.
    assert_eq!(
        write(fixture, &table, &effect("upsert", 1, None), upsert).await,
        inserted
    );
    let delete = RowWrite::Delete { filters };
    let deleted = write(fixture, &table, &effect("delete", 1, None), delete).await;
    assert_eq!(
        deleted,
        RowsWritten {
            rows: Vec::new(),
            count: 1
        }
    );
    let _ = write(
        fixture,
        &table,
        &effect("insert", 1, None),
        RowWrite::Insert(std::slice::from_ref(&one)),
    )
    .await;
    assert_eq!(
        write(fixture, &table, &effect("delete", 1, None), delete).await,
        deleted
    );
    assert_eq!(
        write(fixture, &table, &effect("update", 1, None), update).await,
        updated
    );
    assert_eq!(row_count(fixture, &table).await, 1);
}

async fn what_is_asked_for_anew_is_another_effect(fixture: &Fixture) {
    let table = orders(fixture).await;
    let rows = [row("a", 1)];
    let first = write(fixture, &table, &effect("k", 1, Some(1)), RowWrite::Insert(&rows)).await;
    // A person let the node run again, and above it something has changed.
    let other = [row("b", 1)];
    let second = write(
        fixture,
        &table,
        &effect("k", 2, Some(2)),
        RowWrite::Insert(&other),
    )
    .await;
    assert_ne!(first, second);
    let again = write(
        fixture,
        &table,
        &effect("k", 2, Some(2)),
        RowWrite::Insert(&other),
    )
    .await;
    assert_eq!(again, second);
    // Without a hash only the time tells.
    let third = write(fixture, &table, &effect("k", 3, None), RowWrite::Insert(&other)).await;
    assert_ne!(third, second);
    assert_eq!(row_count(fixture, &table).await, 3);
}

async fn a_refused_write_leaves_no_effect(fixture: &Fixture) {
    let table = orders(fixture).await;
    let (wrong, right) = ([object(json!({ "price": "x" }))], [row("a", 1)]);
    let refused = fixture
        .store
        .write_rows_once(
            fixture.organization_id(),
            &table.id,
            &effect("k", 1, Some(1)),
            RowWrite::Insert(&wrong),
        )
        .await;
    assert!(refused.is_err());
    let written = write(
        fixture,
        &table,
        &effect("k", 1, Some(1)),
        RowWrite::Insert(&right),
    )
    .await;
    assert_eq!(written.count, 1);
}

async fn of_two_executions_at_once_one_writes(fixture: &Fixture) {
    let table = orders(fixture).await;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, organization) = (fixture.store.clone(), fixture.organization_id().to_owned());
            let table_id = table.id.clone();
            tokio::spawn(async move {
                let rows = [row("a", 1)];
                let effect = effect("k", 1, Some(1));
                let write = RowWrite::Insert(&rows);
                let written = store
                    .write_rows_once(&organization, &table_id, &effect, write)
                    .await;
                written.unwrap()
            })
        })
        .collect();
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.unwrap());
    }
    assert!(written.iter().all(|one| *one == written[0]));
    assert_eq!(row_count(fixture, &table).await, 1);
}

async fn a_variable_is_set_once(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let actor = Actor::default();
    let variable_id = id::new(id::Kind::Variable);
    let new = NewVariable {
        id: &variable_id,
        name: "LAST",
        team_id: None,
        is_secret: false,
        value: b"1",
    };
    let create = VariableWrite::Create(&new);
    let made = store
        .write_variable_once(&actor, organization, &effect("a", 1, None), create)
        .await
        .unwrap();
    let set = VariableWrite::Set {
        id: &variable_id,
        value: b"2",
    };
    let written = store
        .write_variable_once(&actor, organization, &effect("b", 1, None), set)
        .await
        .unwrap();
    assert!(made.is_some() && written >= made);
    let later = store
        .set_variable(&actor, organization, &variable_id, Some(b"3"))
        .await;
    assert!(later.unwrap() >= written.unwrap());
    let again = store
        .write_variable_once(&actor, organization, &effect("b", 1, None), set)
        .await;
    assert_eq!(again.unwrap(), written);
    let stored = store.variable(organization, &variable_id).await.unwrap();
    assert_eq!(stored.value, b"3", "the late execution changes nothing");
    let told = fixture.activity().await;
    let told = told.iter().filter(|entry| entry.target_id == variable_id);
    assert_eq!(told.count(), 3);
}

async fn effects_are_kept_while_their_run_goes_on(fixture: &Fixture) {
    let table = orders(fixture).await;
    let workflow = fixture.workflow("Writes").await;
    let lease = fixture.lease().await;
    let (going_on, mut over) = (fixture.run(&workflow.id), fixture.run(&workflow.id));
    over.summary = summary(RunStatus::Succeeded, core_service::store::Driver::Nobody);

    let ids = [going_on.id.clone(), over.id.clone()];
    let batch = RunBatch {
        creates: vec![going_on, over],
        ..RunBatch::default()
    };
    let _ = fixture.store.commit_runs(&lease, &batch).await.unwrap();
    let rows = [row("a", 1)];
    for run_id in &ids {
        let effect = Effect {
            run_id,
            ..effect(run_id, 1, None)
        };
        let _ = write(fixture, &table, &effect, RowWrite::Insert(&rows)).await;
    }
    let store = &fixture.store;
    assert_eq!(
        store
            .delete_effects(clock::now_ms() - 60_000, 10)
            .await
            .unwrap()
            .deleted,
        0
    );
    assert_eq!(
        store
            .delete_effects(clock::now_ms() + 60_000, 10)
            .await
            .unwrap()
            .deleted,
        1
    );
    let effect = Effect {
        run_id: &ids[0],
        ..effect(&ids[0], 1, None)
    };
    let _ = write(fixture, &table, &effect, RowWrite::Insert(&rows)).await;
    assert_eq!(
        row_count(fixture, &table).await,
        2,
        "the one that goes on is remembered"
    );
}
