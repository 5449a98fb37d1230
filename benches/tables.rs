//! How long a page of a large table takes, wherever in the table it is.
//!
//! `cargo bench -p contract --bench tables -- [OPTIONS]`, where the options and their defaults are `--database both` (or
//! `sqlite`, `postgres`) and `--rows 100000`.
//!
//! A table is paged to its end in several orders and under several filters, 200 rows a page, from the store up. Each line
//! is one query: how many rows match and how long counting them took, then how long its pages took: those at the
//! beginning, in the middle and at the end (medians), and the slowest of all. Flat means that the three are alike.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on must stop")]

use std::time::{Duration, Instant};

use core_service::store::{
    Actor, DatabaseUrl, Founding, NewTable, Position, RowOrder, RowQuery, Store, Table,
};
use core_service::table::{ColumnInput, ColumnType, Condition, Key, arrange, parse_conditions};
use serde_json::{Map, Value, json};
use test_support::{TemporaryDirectory, postgres_url};

const PAGE: i64 = 200;
const CHUNK: usize = 10_000;

struct Options {
    databases: &'static [&'static str],
    rows: usize,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            databases: &["sqlite", "postgres"],
            rows: 100_000,
        };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(flag) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
            match (flag.as_str(), value.as_str()) {
                ("--database", "both") => options.databases = &["sqlite", "postgres"],
                ("--database", "sqlite") => options.databases = &["sqlite"],
                ("--database", "postgres") => options.databases = &["postgres"],
                ("--rows", number) => options.rows = number.parse().unwrap(),
                _ => panic!("{flag} {value} is not an option; the head of this file lists them"),
            }
        }
        options
    }
}

#[tokio::main]
async fn main() {
    let options = Options::read();
    for database in options.databases {
        if *database == "postgres" {
            let database = postgres_url().await.unwrap();
            measure("PostgreSQL", &database.url.parse().unwrap(), options.rows).await;
            database.drop_now().await.unwrap();
        } else {
            let directory = TemporaryDirectory::new("bench").unwrap();
            let url = DatabaseUrl::Sqlite(directory.path().join("bench.db"));
            measure("SQLite", &url, options.rows).await;
        }
    }
}

async fn measure(database: &str, url: &DatabaseUrl, size: usize) {
    let store = Store::open(url).await.unwrap();
    let table = fill(&store, size).await;
    println!(
        "{database:<44} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "rows", "count", "beginning", "middle", "end", "slowest"
    );
    let common = r#"[{"columnId": "status", "operator": "neq", "value": "open"}]"#;
    let rare = r#"[{"columnId": "status", "operator": "eq", "value": "lost"}]"#;
    let range = r#"[{"columnId": "price", "operator": "lt", "value": 500}]"#;
    let part = r#"[{"columnId": "note", "operator": "contains", "value": "77"}]"#;
    for (name, filters, order) in [
        ("newest first", "[]", None),
        ("a common status, newest first", common, None),
        ("by price", "[]", Some("price")),
        ("price below the middle, by price", range, Some("price")),
        ("price below the middle, by status", range, Some("status")),
        ("a common status, by price", common, Some("price")),
        ("a rare status, by price", rare, Some("price")),
        ("a part of a note (no index), by price", part, Some("price")),
        ("a rare status, by note (no index)", rare, Some("note")),
    ] {
        let conditions = parse_conditions(&table.columns, filters).unwrap();
        let column = order.and_then(|name| table.columns.iter().find(|column| column.name == name));
        let order = RowOrder {
            column: column.cloned(),
            descending: column.is_none(),
        };
        line(&store, &table, name, &conditions, &order).await;
    }
    store.close().await;
}

async fn fill(store: &Store, size: usize) -> Table {
    let actor = Actor::default();
    let founding = Founding {
        name: "Bench",
        plan_id: "unlimited",
        owner_email: "bench@example.com",
        key: None,
    };
    let founded = store.found_organization(&actor, &founding).await.unwrap();
    let organization = founded.organization_id;
    let column = |name: &str, column_type: ColumnType, indexed: bool| ColumnInput {
        name: name.to_owned(),
        column_type,
        required: false,
        indexed,
        unique: false,
    };
    let wanted = vec![
        column("price", ColumnType::Number, true),
        column("status", ColumnType::Text, true),
        column("note", ColumnType::Text, false),
    ];
    let new = NewTable {
        name: "Offers",
        description: None,
        team_id: None,
        columns: &arrange(&[], wanted).unwrap(),
    };
    let table = store.create_table(&actor, &organization, &new).await.unwrap();
    let started = Instant::now();
    let row = |place: usize| -> Map<String, Value> {
        let status = match place % 1_000 {
            0 => "lost",
            odd if odd % 2 == 1 => "open",
            _ => "won",
        };
        let row = json!({
            "price": (place * 7_919) % 1_000, "status": status, "note": format!("offer number {place}"),
        });
        row.as_object().unwrap().clone()
    };
    for chunk in (0..size).collect::<Vec<_>>().chunks(CHUNK) {
        let rows: Vec<Map<String, Value>> = chunk.iter().map(|place| row(*place)).collect();
        store.insert_rows(&organization, &table.id, &rows).await.unwrap();
    }
    println!("inserted {size} rows in {:.1} s", started.elapsed().as_secs_f64());
    store.table(&organization, &table.id).await.unwrap()
}

async fn line(store: &Store, table: &Table, name: &str, conditions: &[Condition], order: &RowOrder) {
    let started = Instant::now();
    let rows = store.count_rows(table, conditions).await.unwrap();
    let count = started.elapsed();
    let mut pages = Vec::new();
    let mut after: Option<Position<Key>> = None;
    loop {
        let query = RowQuery {
            conditions,
            order,
            after: after.as_ref(),
            limit: PAGE,
        };
        let started = Instant::now();
        let page = store.list_rows(table, &query).await.unwrap();
        let Some(last) = page.last() else { break };
        pages.push(started.elapsed());
        after = Some(Position {
            value: order
                .column
                .as_ref()
                .map(|column| last.key(column))
                .unwrap_or_default(),
            id: last.id.clone(),
        });
    }
    let shown = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1_000.0);
    let [count, beginning, middle, end, slowest] = [
        count,
        median_around(&pages, 0),
        median_around(&pages, pages.len() / 2),
        median_around(&pages, pages.len()),
        pages.iter().copied().max().unwrap_or_default(),
    ]
    .map(shown);
    println!("{name:<44} {rows:>7} {count:>9} {beginning:>9} {middle:>9} {end:>9} {slowest:>9}");
}

/// The median of the pages next to a place: one page alone may have been interrupted.
fn median_around(pages: &[Duration], place: usize) -> Duration {
    const SOME: usize = 15;
    let some = SOME.min(pages.len());
    let start = place.saturating_sub(some / 2).min(pages.len() - some);
    let mut near = pages[start..start + some].to_vec();
    near.sort_unstable();
    near[some / 2]
}
