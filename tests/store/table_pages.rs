//! Pages of rows: the same on both databases and as a plain evaluation in memory, whatever is asked.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use core_service::store::{Position, RowOrder, RowQuery, Table};
use core_service::table::{ColumnInput, ColumnType, Condition, Key, Row, parse_conditions};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;
use crate::tables::{indexed, insert, table};

on_both_databases!(rows_inserted_meanwhile_change_no_page);

const TYPES: [ColumnType; 7] = [
    ColumnType::Text,
    ColumnType::Number,
    ColumnType::Integer,
    ColumnType::Boolean,
    ColumnType::Date,
    ColumnType::Datetime,
    ColumnType::Json,
];

/// What is asked: filters as the API takes them, an order, and the size of a page.
#[derive(Debug, Clone)]
struct Question {
    filters: Vec<(ColumnType, &'static str, Value)>,
    order: Option<ColumnType>,
    descending: bool,
    limit: i64,
}

/// The same table on one database.
struct Place {
    fixture: Fixture,
    table: Table,
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_what_a_plain_evaluation_gives() {
    let mut runner = TestRunner::default();
    // Above a few thousand rows, the index is walked where fewer are sorted.
    for (size, questions, largest_page) in [(300, 50, 40), (300, 50, 40), (9_000, 10, 2_000)] {
        let rows = one(&mut runner, &prop::collection::vec(row(), size));
        let columns: Vec<ColumnInput> = one(&mut runner, &columns());
        let mut places = Vec::new();
        let mut fixtures = vec![Fixture::sqlite().await];
        fixtures.extend(Fixture::postgres("pages_are_what_a_plain_evaluation_gives").await);
        for fixture in fixtures {
            let table = table(&fixture, columns.clone()).await;
            for chunk in numbered(&rows).chunks(3_000) {
                insert(&fixture, &table, chunk.to_vec()).await.unwrap();
            }
            let table = fixture
                .store
                .table(fixture.organization_id(), &table.id)
                .await
                .unwrap();
            places.push(Place { fixture, table });
        }
        for _ in 0..questions {
            let question = one(&mut runner, &question(largest_page));
            let expected = plain(&rows, &question);
            for place in &places {
                assert_eq!(ask(place, &question).await, expected, "{question:?} {columns:?}");
            }
        }
        for place in places {
            place.fixture.end().await;
        }
    }
}

fn one<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

/// A value of a type, or nothing; few enough that many are equal.
fn value(column_type: ColumnType) -> BoxedStrategy<Value> {
    let long = |end: &str| json!(format!("{}{end}", "é".repeat(600)));
    let texts = || {
        prop::sample::select(vec![
            json!(""),
            json!("a"),
            json!("ab"),
            json!("Z"),
            json!("ä"),
            json!("🚚"),
            json!("\u{0}b"),
        ])
    };
    match column_type {
        ColumnType::Text => {
            prop_oneof![9 => texts(), 1 => prop::sample::select(vec![long("a"), long("a!")])].boxed()
        }
        ColumnType::Number => prop_oneof![
            (-3_i64..3).prop_map(|n| json!(n)),
            (-3_i64..3).prop_map(|n| json!(n as f64 / 2.0)),
            Just(json!(1e300)),
        ]
        .boxed(),
        ColumnType::Integer => prop_oneof![(-5_i64..5).prop_map(|n| json!(n)), Just(json!(i64::MAX))].boxed(),
        ColumnType::Boolean => any::<bool>().prop_map(|truth| json!(truth)).boxed(),
        ColumnType::Date => (1_u8..9)
            .prop_map(|day| json!(format!("196{day}-01-0{day}")))
            .boxed(),
        ColumnType::Datetime => (1_u8..9)
            .prop_map(|day| json!(format!("197{day}-01-01T00:00:00Z")))
            .boxed(),
        ColumnType::Json => prop_oneof![texts(), (0_i64..4).prop_map(|n| json!(n))].boxed(),
    }
}

fn row() -> impl Strategy<Value = Vec<Value>> {
    TYPES
        .map(|column_type| prop_oneof![1 => Just(Value::Null), 4 => value(column_type)].boxed())
        .to_vec()
}

fn columns() -> impl Strategy<Value = Vec<ColumnInput>> {
    any::<[bool; 7]>().prop_map(|has_index| {
        let column = |(column_type, indexed): (ColumnType, bool)| ColumnInput {
            indexed,
            ..crate::tables::column(column_type.as_word(), column_type)
        };
        let mut columns: Vec<ColumnInput> = TYPES.into_iter().zip(has_index).map(column).collect();
        columns.push(crate::tables::column("place", ColumnType::Integer));
        columns
    })
}

/// Rows as they are inserted, each with its place among all.
fn numbered(rows: &[Vec<Value>]) -> Vec<Value> {
    let numbered = |(place, row): (usize, &Vec<Value>)| {
        let mut object: Map<String, Value> = Map::new();
        for (column_type, value) in TYPES.iter().zip(row) {
            object.insert(column_type.as_word().to_owned(), value.clone());
        }
        object.insert("place".to_owned(), json!(place));
        Value::Object(object)
    };
    rows.iter().enumerate().map(numbered).collect()
}

fn filter() -> impl Strategy<Value = (ColumnType, &'static str, Value)> {
    prop::sample::select(TYPES.to_vec()).prop_flat_map(|column_type| {
        let list = prop::collection::vec(value(column_type), 0..4).prop_map(Value::Array);
        let with_value = prop::sample::select(vec!["eq", "neq", "gt", "gte", "lt", "lte"]);
        let with_list = prop::sample::select(vec!["in", "not_in"]);
        let alone = prop::sample::select(vec!["is_null", "is_not_null"]);
        let of_text = prop::sample::select(vec!["contains", "starts_with", "ends_with"]);
        let filter = prop_oneof![
            5 => (with_value, value(column_type)).boxed(),
            2 => (with_list, list).boxed(),
            1 => (alone, Just(Value::Null)).boxed(),
            2 => (of_text, value(ColumnType::Text)).boxed(),
        ];
        filter.prop_map(move |(operator, value)| {
            let is_text = matches!(operator, "contains" | "starts_with" | "ends_with");
            let column_type = if is_text { ColumnType::Text } else { column_type };
            (column_type, operator, value)
        })
    })
}

fn question(most: i64) -> impl Strategy<Value = Question> {
    let order = prop::option::of(prop::sample::select(TYPES.to_vec()));
    (
        prop::collection::vec(filter(), 0..4),
        order,
        any::<bool>(),
        most / 4..=most,
    )
        .prop_map(|(filters, order, descending, limit)| Question {
            filters,
            order,
            descending,
            limit,
        })
}

/// The places of the rows that answer, in order, by going through all rows.
fn plain(rows: &[Vec<Value>], question: &Question) -> Vec<usize> {
    let of = |place: usize, column_type: ColumnType| {
        let index = TYPES
            .iter()
            .position(|candidate| *candidate == column_type)
            .unwrap();
        &rows[place][index]
    };
    let mut places: Vec<usize> = (0..rows.len())
        .filter(|place| {
            question
                .filters
                .iter()
                .all(|(column_type, operator, wanted)| holds(of(*place, *column_type), operator, wanted))
        })
        .collect();
    places.sort_by(|left, right| {
        let directed = |order: Ordering| {
            if question.descending {
                order.reverse()
            } else {
                order
            }
        };
        let by_value = question.order.map_or(Ordering::Equal, |column| {
            let (left, right) = (of(*left, column), of(*right, column));
            let nulls_last = left.is_null().cmp(&right.is_null());
            nulls_last.then_with(|| directed(compare(left, right)))
        });
        by_value.then_with(|| directed(left.cmp(right)))
    });
    places
}

fn holds(value: &Value, operator: &str, wanted: &Value) -> bool {
    let list = || wanted.as_array().unwrap();
    let ordered = |accepts: fn(Ordering) -> bool| {
        let same_kind = value.is_string() == wanted.is_string() && value.is_number() == wanted.is_number();
        !value.is_null() && same_kind && accepts(compare(value, wanted))
    };
    let is = |other: &Value| value.is_null() == other.is_null() && compare(value, other) == Ordering::Equal;
    let text = || value.as_str().zip(wanted.as_str());
    match operator {
        "eq" => is(wanted),
        "neq" => !is(wanted),
        "in" => list().iter().any(is),
        "not_in" => !list().iter().any(is),
        "gt" => ordered(Ordering::is_gt),
        "gte" => ordered(Ordering::is_ge),
        "lt" => ordered(Ordering::is_lt),
        "lte" => ordered(Ordering::is_le),
        "is_null" => value.is_null(),
        "is_not_null" => !value.is_null(),
        "contains" => text().is_some_and(|(text, part)| text.contains(part)),
        "starts_with" => text().is_some_and(|(text, start)| text.starts_with(start)),
        "ends_with" => text().is_some_and(|(text, end)| text.ends_with(end)),
        other => panic!("{other}"),
    }
}

fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.chars().cmp(right.chars()),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap(),
        },
        // A JSON column has numbers before texts.
        (Value::Number(_), Value::String(_)) => Ordering::Less,
        (Value::String(_), Value::Number(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// The places of the rows that answer, in order, page by page.
async fn ask(place: &Place, question: &Question) -> Vec<usize> {
    let Place { fixture, table } = place;
    let filters: Vec<Value> = question
        .filters
        .iter()
        .map(|(column_type, operator, value)| {
            json!({"columnId": column_type.as_word(), "operator": operator, "value": value})
        })
        .collect();
    let conditions = parse_conditions(&table.columns, &Value::Array(filters).to_string()).unwrap();
    let column = question.order.map(|wanted| {
        let mut columns = table.columns.iter();
        columns
            .find(|column| column.column_type == wanted)
            .unwrap()
            .clone()
    });
    let order = RowOrder {
        column,
        descending: question.descending,
    };
    let rows = all_pages(fixture, table, &conditions, &order, question.limit, async || {}).await;
    let count = fixture.store.count_rows(table, &conditions).await.unwrap();
    assert_eq!(count, i64::try_from(rows.len()).unwrap(), "{question:?}");
    let id = &table.columns[7].id;
    rows.iter()
        .map(|row| usize::try_from(row.values[id].as_u64().unwrap()).unwrap())
        .collect()
}

/// Pages to the end, doing something between two pages.
async fn all_pages(
    fixture: &Fixture,
    table: &Table,
    conditions: &[Condition],
    order: &RowOrder,
    limit: i64,
    mut between: impl AsyncFnMut(),
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut after: Option<Position<Key>> = None;
    loop {
        let query = RowQuery {
            conditions,
            order,
            after: after.as_ref(),
            limit,
        };
        let page = fixture.store.list_rows(table, &query).await.unwrap();
        let is_last = i64::try_from(page.len()).unwrap() < limit;
        after = page.last().map(|last| Position {
            value: order
                .column
                .as_ref()
                .map(|column| last.key(column))
                .unwrap_or_default(),
            id: last.id.clone(),
        });
        rows.extend(page);
        if is_last {
            return rows;
        }
        between().await;
    }
}

async fn rows_inserted_meanwhile_change_no_page(fixture: &Fixture) {
    let columns = vec![
        indexed("n", ColumnType::Integer),
        indexed("kind", ColumnType::Text),
    ];
    let table = table(fixture, columns).await;
    let row = |n: i64| json!({"n": (n * 7_919) % 1_000, "kind": if n % 3 == 0 { "odd" } else { "even" }});
    let given = (0..4_000).map(row).collect();
    let before = insert(fixture, &table, given).await.unwrap();
    let filter = r#"[{"columnId": "kind", "operator": "eq", "value": "even"}]"#;
    let conditions = parse_conditions(&table.columns, filter).unwrap();
    let by = |column: Option<usize>, descending| RowOrder {
        column: column.map(|place| table.columns[place].clone()),
        descending,
    };
    for order in [
        by(Some(0), false),
        by(Some(0), true),
        by(Some(1), false),
        by(None, true),
    ] {
        let mut next = 0;
        let rows = all_pages(fixture, &table, &conditions, &order, 150, async || {
            next += 1;
            let new = (0..10).map(|n| row(n * 37 + next)).collect();
            insert(fixture, &table, new).await.unwrap();
        })
        .await;
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), rows.len(), "a row came twice");
        let matching = before
            .iter()
            .filter(|row| conditions[0].holds(row.values.get(&table.columns[1].id)));
        assert!(
            matching.map(|row| row.id.as_str()).all(|id| ids.contains(id)),
            "a row was skipped"
        );
    }
}
