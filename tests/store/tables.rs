//! Tables: schemas that change under their rows, rows that are written, values that stay unique.

use core_service::store::{
    ColumnsReplaced, NewTable, RowError, RowOrder, RowQuery, StoreError, Table, Upsert,
};
use core_service::table::{Column, ColumnInput, ColumnType, Row, RowProblem, arrange, parse_conditions};
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;

on_both_databases!(
    a_table_lives_until_it_is_deleted,
    rows_and_their_number_change_together,
    what_does_not_fit_is_refused_whole,
    a_unique_value_has_one_row,
    an_upsert_changes_or_inserts,
    a_column_whose_name_stays_keeps_its_values,
    values_follow_a_type_or_refuse_it,
    rows_must_satisfy_new_demands,
    a_new_index_knows_old_rows,
    writers_of_one_value_at_once,
);

pub(crate) fn column(name: &str, column_type: ColumnType) -> ColumnInput {
    ColumnInput {
        name: name.to_owned(),
        column_type,
        required: false,
        indexed: false,
        unique: false,
    }
}

pub(crate) fn indexed(name: &str, column_type: ColumnType) -> ColumnInput {
    ColumnInput {
        indexed: true,
        ..column(name, column_type)
    }
}

fn key(name: &str) -> ColumnInput {
    ColumnInput {
        unique: true,
        ..column(name, ColumnType::Text)
    }
}

pub(crate) async fn table(fixture: &Fixture, columns: Vec<ColumnInput>) -> Table {
    let columns: Vec<Column> = arrange(&[], columns).unwrap();
    let new = NewTable {
        name: "Orders",
        description: None,
        team_id: None,
        columns: &columns,
    };
    let created = fixture
        .store
        .create_table(&fixture.actor(), fixture.organization_id(), &new)
        .await;
    created.unwrap()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

pub(crate) async fn insert(fixture: &Fixture, table: &Table, rows: Vec<Value>) -> Result<Vec<Row>, RowError> {
    let rows: Vec<Map<String, Value>> = rows.into_iter().map(object).collect();
    fixture
        .store
        .insert_rows(fixture.organization_id(), &table.id, &rows)
        .await
}

async fn current(fixture: &Fixture, table: &Table) -> Table {
    let read = fixture.store.table(fixture.organization_id(), &table.id).await;
    read.unwrap()
}

/// All rows as callers see them, oldest first, without what the service adds.
async fn rows(fixture: &Fixture, table: &Table) -> Vec<Value> {
    let table = current(fixture, table).await;
    let query = RowQuery {
        conditions: &[],
        order: &RowOrder {
            column: None,
            descending: false,
        },
        after: None,
        limit: 1_000,
    };
    let rows = fixture.store.list_rows(&table, &query).await.unwrap();
    assert_eq!(table.row_count, i64::try_from(rows.len()).unwrap());
    let plain = |row: &Row| {
        let mut object = row.to_object(&table.columns);
        object.retain(|name, _| !["id", "createdAt", "updatedAt"].contains(&name.as_str()));
        Value::Object(object)
    };
    rows.iter().map(plain).collect()
}

async fn replace(fixture: &Fixture, table: &Table, columns: Vec<ColumnInput>) -> ColumnsReplaced {
    let replaced = fixture
        .store
        .replace_columns(&fixture.actor(), fixture.organization_id(), &table.id, columns)
        .await;
    replaced.unwrap()
}

async fn replaced(fixture: &Fixture, table: &Table, columns: Vec<ColumnInput>) -> Table {
    match replace(fixture, table, columns).await {
        ColumnsReplaced::Replaced(table) => table,
        ColumnsReplaced::Refused(violations) => panic!("{violations:?}"),
    }
}

async fn refused(fixture: &Fixture, table: &Table, columns: Vec<ColumnInput>) -> String {
    match replace(fixture, table, columns).await {
        ColumnsReplaced::Replaced(table) => panic!("{table:?}"),
        ColumnsReplaced::Refused(violations) => violations[0].path.clone(),
    }
}

async fn a_table_lives_until_it_is_deleted(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let first = table(fixture, vec![column("a", ColumnType::Text)]).await;
    let second = table(fixture, vec![key("b")]).await;
    let listed = store.list_tables(organization, 10).await.unwrap();
    assert_eq!(listed, [second.clone(), first.clone()]);
    assert_eq!(store.list_tables(organization, 1).await.unwrap().len(), 1);
    assert!(second.unique_column().is_some_and(|column| column.indexed));
    assert_eq!(store.table(organization, &first.id).await.unwrap(), first);
    let foreign = store.table("org_other", &first.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound("database"))));

    store
        .delete_table(&fixture.actor(), organization, &first.id)
        .await
        .unwrap();
    let gone = store.table(organization, &first.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound("database"))));
    let again = store
        .delete_table(&fixture.actor(), organization, &first.id)
        .await;
    assert!(matches!(again, Err(StoreError::NotFound("database"))));
    assert!(matches!(
        insert(fixture, &first, vec![json!({})]).await,
        Err(RowError::Store(StoreError::NotFound("database")))
    ));
    assert_eq!(store.list_tables(organization, 10).await.unwrap(), [second]);
}

async fn rows_and_their_number_change_together(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let columns = vec![
        indexed("name", ColumnType::Text),
        column("n", ColumnType::Integer),
    ];
    let table = table(fixture, columns).await;
    let given = vec![
        json!({"name": "a", "n": 1}),
        json!({"name": "b", "n": 2.0}),
        json!({"name": null}),
        json!({"name": "b\u{0}", "n": 4}),
    ];
    let inserted = insert(fixture, &table, given).await.unwrap();
    assert!(inserted.is_sorted_by(|earlier, later| earlier.id < later.id));
    assert_eq!(
        rows(fixture, &table).await,
        [
            json!({"name": "a", "n": 1}),
            json!({"name": "b", "n": 2}),
            json!({"name": null, "n": null}),
            json!({"name": "b\u{0}", "n": 4}),
        ]
    );

    let wanted = object(json!({"name": "b"}));
    let found = store
        .row_by_match(organization, &table.id, &wanted)
        .await
        .unwrap();
    assert_eq!(found.as_ref(), Some(&inserted[1]));
    let changes = object(json!({"name": "c", "n": null}));
    let changed = store
        .update_rows(organization, &table.id, &wanted, &changes)
        .await
        .unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (&changed[0].id, changed[0].created_at),
        (&inserted[1].id, inserted[1].created_at)
    );
    assert_eq!(
        store
            .row_by_match(organization, &table.id, &wanted)
            .await
            .unwrap(),
        None
    );
    let renamed = object(json!({"name": "c", "n": null}));
    assert_eq!(
        store
            .row_by_match(organization, &table.id, &renamed)
            .await
            .unwrap()
            .as_ref(),
        changed.first()
    );

    let without_name = r#"[{"columnId": "name", "operator": "is_null"}]"#;
    let conditions = parse_conditions(&table.columns, without_name).unwrap();
    assert_eq!(
        store
            .delete_rows(organization, &table.id, &conditions)
            .await
            .unwrap(),
        1
    );
    assert_eq!(rows(fixture, &table).await.len(), 3);
    assert_eq!(store.delete_rows(organization, &table.id, &[]).await.unwrap(), 3);
    assert_eq!(rows(fixture, &table).await, [json!(null); 0]);
}

async fn what_does_not_fit_is_refused_whole(fixture: &Fixture) {
    let required = ColumnInput {
        required: true,
        ..column("day", ColumnType::Date)
    };
    let table = table(fixture, vec![required, column("n", ColumnType::Integer)]).await;
    for (bad, path) in [
        (json!({"n": 1}), "day"),
        (json!({"day": null}), "day"),
        (json!({"day": "2026-02-30"}), "day"),
        (json!({"day": "2026-01-01", "n": 1.5}), "n"),
        (json!({"day": "2026-01-01", "m": 1}), "m"),
    ] {
        let error = insert(fixture, &table, vec![json!({"day": "2026-01-01"}), bad]).await;
        match error {
            Err(RowError::Problem(RowProblem::InvalidRow(place, violations))) => {
                assert_eq!((place, violations[0].path.as_str()), (1, path));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rows(fixture, &table).await, [json!(null); 0]);
    insert(fixture, &table, vec![json!({"day": "2026-01-01"})])
        .await
        .unwrap();
    let (all, cleared) = (Map::new(), object(json!({"day": null})));
    let update = fixture
        .store
        .update_rows(fixture.organization_id(), &table.id, &all, &cleared)
        .await;
    assert!(matches!(update, Err(RowError::Problem(RowProblem::Invalid(_)))));
    let unknown = object(json!({"m": 1}));
    let found = fixture
        .store
        .row_by_match(fixture.organization_id(), &table.id, &unknown)
        .await;
    assert!(matches!(found, Err(RowError::Problem(RowProblem::Invalid(_)))));
}

fn is_duplicate<T>(result: &Result<T, RowError>) -> bool {
    matches!(result, Err(RowError::Problem(RowProblem::Duplicate(column))) if column == "sku")
}

async fn a_unique_value_has_one_row(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let table = table(fixture, vec![key("sku"), column("n", ColumnType::Integer)]).await;
    let long = "x".repeat(5_000);
    let given = vec![
        json!({"sku": "a"}),
        json!({"sku": "b"}),
        json!({}),
        json!({}),
        json!({"sku": long}),
    ];
    insert(fixture, &table, given).await.unwrap();
    assert!(is_duplicate(
        &insert(fixture, &table, vec![json!({"sku": "b"})]).await
    ));
    assert!(is_duplicate(
        &insert(fixture, &table, vec![json!({"sku": long})]).await
    ));
    let twice = vec![json!({"sku": "c"}), json!({"sku": "c"})];
    assert!(is_duplicate(&insert(fixture, &table, twice).await));
    assert_eq!(rows(fixture, &table).await.len(), 5);

    let a = object(json!({"sku": "a"}));
    let to_b = object(json!({"sku": "b"}));
    assert!(is_duplicate(
        &store.update_rows(organization, &table.id, &a, &to_b).await
    ));
    let same = object(json!({"sku": "a", "n": 7}));
    assert_eq!(
        store
            .update_rows(organization, &table.id, &a, &same)
            .await
            .unwrap()
            .len(),
        1
    );
    let to_c = object(json!({"sku": "c"}));
    assert!(is_duplicate(
        &store
            .update_rows(organization, &table.id, &Map::new(), &to_c)
            .await
    ));
    store
        .update_rows(organization, &table.id, &a, &to_c)
        .await
        .unwrap();
    insert(fixture, &table, vec![json!({"sku": "a"})]).await.unwrap();
    assert!(is_duplicate(
        &insert(fixture, &table, vec![json!({"sku": "c"})]).await
    ));
}

async fn an_upsert_changes_or_inserts(fixture: &Fixture) {
    let (store, organization) = (&fixture.store, fixture.organization_id());
    let table = table(fixture, vec![key("sku"), column("n", ColumnType::Integer)]).await;
    let wanted = object(json!({"sku": "a"}));
    let given = object(json!({"n": 1}));
    let first = store
        .upsert_row(organization, &table.id, &wanted, &given)
        .await
        .unwrap();
    let Upsert::Inserted(inserted) = first else {
        panic!("{first:?}")
    };
    let given = object(json!({"n": 2}));
    let second = store
        .upsert_row(organization, &table.id, &wanted, &given)
        .await
        .unwrap();
    let Upsert::Updated(updated) = second else {
        panic!("{second:?}")
    };
    assert_eq!(updated[0].id, inserted.id);
    assert_eq!(rows(fixture, &table).await, [json!({"sku": "a", "n": 2})]);
}

async fn a_column_whose_name_stays_keeps_its_values(fixture: &Fixture) {
    let columns = vec![column("a", ColumnType::Text), indexed("b", ColumnType::Text)];
    let table = table(fixture, columns).await;
    insert(fixture, &table, vec![json!({"a": "1", "b": "2"})])
        .await
        .unwrap();
    let columns = vec![column("c", ColumnType::Text), column("b", ColumnType::Text)];
    let changed = replaced(fixture, &table, columns).await;
    assert_eq!(changed.columns[1].id, table.columns[1].id);
    assert!(changed.updated_at > table.updated_at);
    assert_eq!(rows(fixture, &table).await, [json!({"c": null, "b": "2"})]);
    let columns = vec![column("a", ColumnType::Text), column("b", ColumnType::Text)];
    let back = replaced(fixture, &table, columns).await;
    assert_ne!(back.columns[0].id, table.columns[0].id);
    assert_eq!(rows(fixture, &table).await, [json!({"a": null, "b": "2"})]);
    let trail = fixture.activity().await;
    assert!(
        trail
            .iter()
            .any(|entry| entry.action == "database.updated" && entry.target_id == table.id)
    );
}

async fn values_follow_a_type_or_refuse_it(fixture: &Fixture) {
    let columns = vec![indexed("a", ColumnType::Text), column("b", ColumnType::Integer)];
    let table = table(fixture, columns).await;
    insert(
        fixture,
        &table,
        vec![json!({"a": "10", "b": 5}), json!({"a": "9"})],
    )
    .await
    .unwrap();
    let columns = vec![indexed("a", ColumnType::Integer), column("b", ColumnType::Text)];
    let changed = replaced(fixture, &table, columns).await;
    assert_eq!(
        rows(fixture, &table).await,
        [json!({"a": 10, "b": "5"}), json!({"a": 9, "b": null})]
    );
    // The index compares as the new type does.
    let conditions = parse_conditions(
        &changed.columns,
        r#"[{"columnId": "a", "operator": "lt", "value": 10}]"#,
    );
    assert_eq!(
        fixture
            .store
            .count_rows(&changed, &conditions.unwrap())
            .await
            .unwrap(),
        1
    );

    insert(fixture, &table, vec![json!({"a": 1, "b": "five"})])
        .await
        .unwrap();
    let columns = vec![
        indexed("a", ColumnType::Integer),
        column("b", ColumnType::Integer),
    ];
    assert_eq!(refused(fixture, &table, columns).await, "columns[1].type");
    let kept = vec![
        json!({"a": 10, "b": "5"}),
        json!({"a": 9, "b": null}),
        json!({"a": 1, "b": "five"}),
    ];
    assert_eq!(rows(fixture, &table).await, kept);
    let columns = vec![column("id", ColumnType::Text)];
    assert_eq!(refused(fixture, &table, columns).await, "columns[0].name");
}

async fn rows_must_satisfy_new_demands(fixture: &Fixture) {
    let table = table(fixture, vec![column("sku", ColumnType::Text)]).await;
    insert(
        fixture,
        &table,
        vec![json!({"sku": "a"}), json!({"sku": "a"}), json!({})],
    )
    .await
    .unwrap();
    let required = |name: &str| ColumnInput {
        required: true,
        ..column(name, ColumnType::Text)
    };
    assert_eq!(
        refused(fixture, &table, vec![required("sku")]).await,
        "columns[0].required"
    );
    let with_new = vec![column("sku", ColumnType::Text), required("new")];
    assert_eq!(refused(fixture, &table, with_new).await, "columns[1].required");
    assert_eq!(
        refused(fixture, &table, vec![key("sku")]).await,
        "columns[0].uniqueKey"
    );
    let conditions = parse_conditions(&table.columns, r#"[{"columnId": "sku", "operator": "is_null"}]"#);
    let organization = fixture.organization_id();
    fixture
        .store
        .delete_rows(organization, &table.id, &conditions.unwrap())
        .await
        .unwrap();
    replaced(fixture, &table, vec![required("sku")]).await;
    fixture
        .store
        .delete_rows(organization, &table.id, &[])
        .await
        .unwrap();
    replaced(fixture, &table, vec![key("sku"), required("new")]).await;
    insert(fixture, &table, vec![json!({"sku": "a", "new": "x"})])
        .await
        .unwrap();
    assert!(is_duplicate(
        &insert(fixture, &table, vec![json!({"sku": "a", "new": "x"})]).await
    ));
}

async fn a_new_index_knows_old_rows(fixture: &Fixture) {
    let table = table(fixture, vec![column("n", ColumnType::Integer)]).await;
    let given = (0..2_500).map(|n| json!({"n": n})).collect();
    insert(fixture, &table, given).await.unwrap();
    let table = replaced(fixture, &table, vec![indexed("n", ColumnType::Integer)]).await;
    let filter = r#"[{"columnId": "n", "operator": "gte", "value": 2400}]"#;
    let conditions = parse_conditions(&table.columns, filter).unwrap();
    assert_eq!(fixture.store.count_rows(&table, &conditions).await.unwrap(), 100);
    let order = RowOrder {
        column: Some(table.columns[0].clone()),
        descending: true,
    };
    let query = RowQuery {
        conditions: &conditions,
        order: &order,
        after: None,
        limit: 3,
    };
    let page = fixture.store.list_rows(&table, &query).await.unwrap();
    let numbers: Vec<&Value> = page
        .iter()
        .filter_map(|row| row.values.get(&table.columns[0].id))
        .collect();
    assert_eq!(numbers, [&json!(2499), &json!(2498), &json!(2497)]);
    let table = replaced(fixture, &table, vec![column("n", ColumnType::Integer)]).await;
    let conditions = parse_conditions(&table.columns, filter).unwrap();
    assert_eq!(fixture.store.count_rows(&table, &conditions).await.unwrap(), 100);
}

async fn writers_of_one_value_at_once(fixture: &Fixture) {
    let table = table(fixture, vec![key("sku")]).await;
    let writers: Vec<_> = (0..20)
        .map(|_| {
            let (store, organization, id) = (
                fixture.store.clone(),
                fixture.organization_id().to_owned(),
                table.id.clone(),
            );
            tokio::spawn(async move {
                store
                    .insert_rows(&organization, &id, &[object(json!({"sku": "a"}))])
                    .await
            })
        })
        .collect();
    let mut inserted = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => inserted += 1,
            other => assert!(is_duplicate(&other), "{other:?}"),
        }
    }
    assert_eq!(inserted, 1);
    assert_eq!(rows(fixture, &table).await.len(), 1);
}
