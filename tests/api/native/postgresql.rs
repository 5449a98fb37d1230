//! PostgreSQL.

use serde_json::{Value, json};
use test_support::native::{PASSWORD, postgresql_or_skip};
use test_support::{StopMode, until};

use super::Connected;
use crate::world::World;

/// Where a server of this machine is, for its user.
pub(super) fn data(port: u16) -> Value {
    json!({ "host": "127.0.0.1", "port": port, "database": "postgres", "username": "postgres", "password": PASSWORD,
            "tls": "disable" })
}

fn with(mut data: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        data[name] = value.clone();
    }
    data
}

pub(super) const ORDERS: &str = "CREATE TABLE orders (\n  id serial PRIMARY KEY,\n  name text NOT NULL UNIQUE,\n  total numeric DEFAULT 1.50\n)";

#[tokio::test]
async fn operations_do_what_they_say() {
    let Some((_server, port, _)) = postgresql_or_skip("operations of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    assert_eq!(connected.verified().await, json!({ "status": "valid" }));

    let made = connected.output("execute", json!({ "query": ORDERS })).await;
    assert_eq!(made, json!({ "count": 0, "rows": [] }));
    let rows =
        json!([{ "name": "Ada" }, { "name": "Grace", "total": "12.30" }, { "total": null, "name": "Linus" }]);
    let inserted = connected
        .output("insert", json!({ "table": "public.orders", "rows": rows }))
        .await;
    assert_eq!(inserted["count"], 3);
    assert_eq!(
        inserted["rows"][0],
        json!({ "id": 1, "name": "Ada", "total": "1.50" })
    );
    assert_eq!(inserted["rows"][2]["total"], Value::Null);

    let query =
        json!({ "query": "SELECT id, name FROM orders\nWHERE id >= $1 ORDER BY id", "parameters": [2.0] });
    let found = connected.found("query", query).await;
    assert_eq!(
        found,
        [
            json!({ "id": 2, "name": "Grace" }),
            json!({ "id": 3, "name": "Linus" })
        ]
    );
    let twice = connected
        .found("query", json!({ "query": "SELECT 1 AS a, 2 AS a" }))
        .await;
    assert_eq!(twice, [json!({ "a": 1, "a_2": 2 })]);

    let update = json!({ "query": "UPDATE orders SET total = $2 WHERE id = ANY($1) RETURNING total", "parameters": [[1, 2], 7] });
    let updated = connected.output("execute", update).await;
    assert_eq!(
        updated,
        json!({ "count": 2, "rows": [{ "total": "7" }, { "total": "7" }] })
    );

    assert_eq!(connected.choices("tables", json!({})).await, ["orders"]);
    let columns = connected.choices("columns", json!({ "table": "orders" })).await;
    assert_eq!(columns, ["id (integer)", "name (text)", "total (numeric)"]);
    let none = connected
        .choices("columns", json!({ "table": "x'; DROP TABLE orders; --" }))
        .await;
    assert!(none.is_empty());
}

#[tokio::test]
async fn what_is_given_stays_data() {
    let Some((_server, port, _)) = postgresql_or_skip("injection into PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let evil = "'); DROP TABLE orders; -- \" ` \\ $1 {{1.x}}";
    let params = json!({ "table": "orders", "rows": "{{1.rows}}" });
    let input = json!({ "rows": [{ "name": evil }] });
    let inserted = connected.ran("insert", params, input).await;
    assert_eq!(inserted["rows"][0]["name"], evil, "{inserted}");
    let params = json!({ "query": "SELECT name FROM orders WHERE name = $1", "parameters": [evil.replace("{{", "\\{{")] });
    assert_eq!(connected.found("query", params).await, [json!({ "name": evil })]);
    // Names are only names, too.
    let params = json!({ "table": "orders", "rows": [{ "name) VALUES ('x'); DROP TABLE orders; --": 1 }] });
    let (code, message) = connected.failure("insert", params).await;
    assert!(
        code == "SERVER_ERROR" && message.contains("42703"),
        "{code} {message}"
    );
    let left = connected
        .found("query", json!({ "query": "SELECT count(*) FROM orders" }))
        .await;
    assert_eq!(left, [json!({ "count": 1 })]);
}

#[tokio::test]
async fn values_become_json_and_come_back() {
    let Some((_server, port, _)) = postgresql_or_skip("types of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let cases = [
        ("int2", json!(-7)),
        ("int4", json!(2_147_483_647)),
        ("int8", json!(9_223_372_036_854_775_807_i64)),
        ("float4", json!(0.1)),
        ("float8", json!(1e-300)),
        ("float8", json!("NaN")),
        ("numeric", json!("12345678901234567890.00012300")),
        ("numeric", json!("-0.5")),
        ("numeric", json!("100000000")),
        ("numeric", json!("0.00000001")),
        ("numeric", json!("NaN")),
        ("bool", json!(true)),
        ("text", json!("häß\n\"'\\ 🦀")),
        ("varchar(3)", json!("abc")),
        ("bytea", json!("AAH/")),
        ("json", json!({ "b": [1, null, "x"], "a": {} })),
        ("jsonb", json!("a text")),
        ("jsonb", json!([1.5, false])),
        ("uuid", json!("6e0f7ba2-8f5d-4c3e-9a41-93a9d1f0b6cd")),
        ("date", json!("2024-02-29")),
        ("date", json!("infinity")),
        ("time", json!("23:59:59.5")),
        ("timestamp", json!("1969-12-31T23:59:59.999999")),
        ("timestamptz", json!("2026-11-22T08:30:00Z")),
        ("interval", json!("P1Y2M3DT4H5M6.5S")),
        ("inet", json!("10.0.0.1")),
        ("cidr", json!("10.0.0.0/8")),
        ("macaddr", json!("08:00:2b:01:02:03")),
        ("varbit", json!("10110")),
        ("int4[]", json!([1, null, -3])),
        ("text[]", json!(["a\"b\\c", "", null, "{,}", "NULL"])),
        ("int4[]", json!([[1, 2], [3, 4]])),
        ("text[]", json!([])),
        ("jsonb[]", json!([{ "a": 1 }, [2]])),
        ("timestamptz[]", json!(["2026-01-01T00:00:00Z"])),
    ];
    let columns: Vec<String> = cases
        .iter()
        .enumerate()
        .map(|(place, (of, _))| format!("${}::{of} AS c{place}", place + 1))
        .collect();
    let nulls: Vec<String> = cases
        .iter()
        .map(|(of, _)| format!("NULL::{of} IS NULL"))
        .collect();
    let text = format!("SELECT {}, {} AS nulls", columns.join(", "), nulls.join(" AND "));
    let values: Vec<&Value> = cases.iter().map(|(_, value)| value).collect();
    let found = connected
        .found("query", json!({ "query": text, "parameters": values }))
        .await;
    for (place, (of, value)) in cases.iter().enumerate() {
        assert_eq!(&found[0][format!("c{place}")], value, "{of}");
    }
    assert_eq!(found[0]["nulls"], true);

    let _made = connected
        .output("execute", json!({ "query": "CREATE TYPE mood AS ENUM ('calm')" }))
        .await;
    let _made = connected
        .output(
            "execute",
            json!({ "query": "CREATE TYPE pair AS (a int, b text)" }),
        )
        .await;
    let _made = connected
        .output("execute", json!({ "query": "CREATE DOMAIN short AS varchar(3)" }))
        .await;
    let query = "SELECT $1::mood AS mood, ROW(1, 'x')::pair AS pair, $2::short AS short, ARRAY['calm'::mood] AS moods, \
                 NULL::int AS nothing, '{}'::int[] AS empty";
    let found = connected
        .found("query", json!({ "query": query, "parameters": ["calm", "abc"] }))
        .await;
    assert_eq!(
        found,
        [
            json!({ "mood": "calm", "pair": { "a": 1, "b": "x" }, "short": "abc", "moods": ["calm"], "nothing": null, "empty": [] })
        ]
    );
    let (code, message) = connected
        .failure("query", json!({ "query": "SELECT int4range(1, 2) AS r" }))
        .await;
    assert!(
        code == "SERVER_ERROR" && message.contains("select r::text"),
        "{message}"
    );
}

#[tokio::test]
async fn failures_say_what_is_wrong() {
    let Some((_server, port, _)) = postgresql_or_skip("failures of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    for (wrong, says) in [
        (json!({ "password": "wr0ng-pass" }), "28P01"),
        (json!({ "username": "nobody-here" }), "28P01"),
        (json!({ "database": "elsewhere" }), "3D000"),
    ] {
        let refused = Connected::new(&world, "postgresql", with(data(port), wrong)).await;
        let verified = refused.verified().await;
        assert_eq!(verified["status"], "invalid");
        let error = verified["error"].as_str().unwrap().to_owned();
        assert!(error.contains(says) && !error.contains("wr0ng-pass"), "{error}");
        let path = "/credentials";
        let (rows, _) = world.api.get(path).await.page();
        let row = rows
            .iter()
            .find(|row| row["id"] == refused.credential.as_str())
            .unwrap();
        assert_eq!(row["status"], "invalid");
    }
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let name = json!({ "table": "orders", "rows": { "name": "Ada" } });
    let _inserted = connected.output("insert", name.clone()).await;
    for (module, params, expected, says) in [
        ("execute", json!({ "query": "SELEC 1" }), "SERVER_ERROR", "42601"),
        (
            "execute",
            json!({ "query": "SELECT 1; SELECT 2" }),
            "SERVER_ERROR",
            "42601",
        ),
        ("insert", name, "SERVER_ERROR", "23505"),
        (
            "query",
            json!({ "query": "DELETE FROM orders" }),
            "SERVER_ERROR",
            "25006",
        ),
        (
            "query",
            json!({ "query": "SELECT $1::int", "parameters": ["x"] }),
            "SERVER_ERROR",
            "22P02",
        ),
        (
            "query",
            json!({ "query": "SELECT $1::int" }),
            "EXPRESSION_ERROR",
            "1 of them",
        ),
        (
            "query",
            json!({ "query": "SELECT $1::bytea", "parameters": ["*"] }),
            "EXPRESSION_ERROR",
            "$1 must be bytes",
        ),
        (
            "insert",
            json!({ "table": "a.b.c", "rows": { "a": 1 } }),
            "EXPRESSION_ERROR",
            "schema.table",
        ),
        (
            "insert",
            json!({ "table": "orders", "rows": [] }),
            "EXPRESSION_ERROR",
            "rows must be",
        ),
        (
            "query",
            json!({ "query": "SELECT generate_series(1, 10001)" }),
            "ANSWER_TOO_LARGE",
            "10000 rows",
        ),
        (
            "query",
            json!({ "query": "SELECT repeat('x', 20000000)" }),
            "ANSWER_TOO_LARGE",
            "10 MiB",
        ),
        (
            "execute",
            json!({ "query": format!("SELECT '{PASSWORD}'::int") }),
            "SERVER_ERROR",
            "***",
        ),
    ] {
        let (code, message) = connected.failure(module, params.clone()).await;
        assert_eq!(code, expected, "{params}: {message}");
        assert!(
            message.contains(says) && !message.contains(PASSWORD),
            "{params}: {message}"
        );
    }
    let few = json!({ "query": "SELECT generate_series(1, 1000000) AS n", "limit": 3 });
    assert_eq!(connected.found("query", few).await.len(), 3);
}

#[tokio::test]
async fn the_server_has_to_be_the_one_it_says() {
    let Some((_server, port, certificate)) = postgresql_or_skip("TLS of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let right = json!({ "host": "localhost", "tls": "require", "caCertificate": certificate.pem });
    for (changes, says) in [
        (right.clone(), None),
        (json!({ "host": "localhost", "tls": "require" }), Some("TLS")),
        (with(right.clone(), json!({ "host": "127.0.0.1" })), Some("TLS")),
        (
            with(right.clone(), json!({ "caCertificate": "none" })),
            Some("CERTIFICATE"),
        ),
    ] {
        let connected = Connected::new(&world, "postgresql", with(data(port), changes)).await;
        let verified = connected.verified().await;
        match says {
            None => {
                assert_eq!(verified, json!({ "status": "valid" }));
                let query = json!({ "query": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()" });
                assert_eq!(connected.found("query", query).await, [json!({ "ssl": true })]);
            }
            Some(says) => assert!(verified["error"].as_str().unwrap().contains(says), "{verified}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_has_changed_nothing() {
    let Some((server, port, _)) = postgresql_or_skip("a PostgreSQL that dies").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let query = "INSERT INTO orders (name) SELECT 'slow' FROM pg_sleep(600)";
    let run = connected
        .started("execute", json!({ "query": query }), json!({}))
        .await;
    let sleeping = json!({ "query": "SELECT 1 AS one FROM pg_stat_activity WHERE wait_event = 'PgSleep'" });
    let sleeps = until(async || (connected.found("query", sleeping.clone()).await.len() == 1).then_some(()));
    assert!(sleeps.await.is_some(), "the statement does not run");
    server.restart(StopMode::Immediate).unwrap();
    let error = connected.recorded(&run).await["error"].clone();
    assert_eq!(error["code"], "CONNECTION_FAILED", "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("nothing was changed"),
        "{error}"
    );
    let left = connected
        .found("query", json!({ "query": "SELECT count(*) FROM orders" }))
        .await;
    assert_eq!(left, [json!({ "count": 0 })]);
}

#[tokio::test]
async fn a_node_given_up_ends_its_statement() {
    let Some((_server, port, _)) = postgresql_or_skip("time-outs of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let params = json!({ "query": "SELECT pg_sleep(600)" });
    let config = json!({ "timeoutMs": 500, "retry": { "maxAttempts": 1 } });
    let workflow = connected.workflow("execute", params, config).await;
    let run = world.api.start(&workflow, json!({})).await;
    let error = connected.recorded(&run).await["error"].clone();
    assert_eq!(error["code"], "NODE_TIMEOUT", "{error}");
    let sleeping = json!({ "query": "SELECT 1 AS one FROM pg_stat_activity WHERE wait_event = 'PgSleep'" });
    let ended = until(async || {
        connected
            .found("query", sleeping.clone())
            .await
            .is_empty()
            .then_some(())
    });
    assert!(ended.await.is_some(), "the statement goes on");
}

#[tokio::test]
async fn each_new_row_starts_one_run() {
    let Some((_server, port, _)) = postgresql_or_skip("new rows of PostgreSQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "postgresql", data(port)).await;
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let add = async |number: usize| {
        let rows = json!({ "name": format!("row {number}") });
        let _inserted = connected
            .output("insert", json!({ "table": "orders", "rows": rows }))
            .await;
    };
    add(1_000).await;
    let params = json!({ "table": "orders", "column": "id", "everySeconds": 1 });
    let given = connected.given("new_row", params, add).await;
    let ids: Vec<i64> = given.iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert!(
        ids.is_sorted_by(|one, next| one < next) && ids[0] > 1,
        "{given:?}"
    );
    assert_eq!(given[0]["total"], "1.50");
}
