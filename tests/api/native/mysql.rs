//! MySQL, by the server that Debian has: MariaDB.

use serde_json::{Value, json};
use test_support::native::{PASSWORD, mariadb_or_skip};
use test_support::until;

use super::Connected;
use crate::world::World;

/// Where a server of this machine is, for its user.
fn data(port: u16) -> Value {
    json!({ "host": "127.0.0.1", "port": port, "database": "shop", "username": "ada", "password": PASSWORD, "tls": "disable" })
}

const ORDERS: &str = "CREATE TABLE orders (\n  id int AUTO_INCREMENT PRIMARY KEY,\n  name varchar(200) NOT NULL UNIQUE,\n  total decimal(10, 2) DEFAULT 1.50\n)";

#[tokio::test]
async fn operations_do_what_they_say() {
    let Some(server) = mariadb_or_skip("operations of MySQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "mysql", data(server.port())).await;
    assert_eq!(connected.verified().await, json!({ "status": "valid" }));

    let made = connected.output("execute", json!({ "query": ORDERS })).await;
    assert_eq!(made, json!({ "count": 0, "rows": [], "insertId": null }));
    let rows =
        json!([{ "name": "Ada" }, { "name": "Grace", "total": "12.30" }, { "total": null, "name": "Linus" }]);
    let inserted = connected
        .output("insert", json!({ "table": "shop.orders", "rows": rows }))
        .await;
    assert_eq!(inserted, json!({ "count": 3, "rows": [], "insertId": 1 }));
    let query = json!({ "query": "SELECT id, name, total FROM orders\nWHERE id >= ? ORDER BY id", "parameters": [2] });
    let found = connected.found("query", query).await;
    assert_eq!(
        found,
        [
            json!({ "id": 2, "name": "Grace", "total": "12.30" }),
            json!({ "id": 3, "name": "Linus", "total": null })
        ]
    );
    let update = json!({ "query": "UPDATE orders SET total = ? WHERE id < ?", "parameters": [7, 3] });
    assert_eq!(connected.output("execute", update).await["count"], 2);
    assert_eq!(connected.choices("tables", json!({})).await, ["orders"]);
    let columns = connected.choices("columns", json!({ "table": "orders" })).await;
    assert_eq!(
        columns,
        ["id (int(11))", "name (varchar(200))", "total (decimal(10,2))"]
    );

    // What is given stays data.
    let evil = "'); DROP TABLE orders; -- \" ` \\ ? {{1.x}}";
    let params = json!({ "table": "orders", "rows": "{{1.rows}}" });
    let inserted = connected
        .ran("insert", params, json!({ "rows": { "name": evil } }))
        .await;
    assert_eq!(inserted["count"], 1, "{inserted}");
    let params = json!({ "query": "SELECT name FROM orders WHERE name = ?", "parameters": [evil.replace("{{", "\\{{")] });
    assert_eq!(connected.found("query", params).await, [json!({ "name": evil })]);
    let params = json!({ "table": "orders", "rows": [{ "name`) VALUES ('x'); DROP TABLE orders; --": 1 }] });
    let (code, message) = connected.failure("insert", params).await;
    assert!(
        code == "SERVER_ERROR" && message.contains("1054"),
        "{code} {message}"
    );

    // Each new row starts one run.
    let add = async |number: usize| {
        let rows = json!({ "name": format!("row {number}") });
        let _inserted = connected
            .output("insert", json!({ "table": "orders", "rows": rows }))
            .await;
    };
    let params = json!({ "table": "orders", "column": "id", "everySeconds": 1 });
    let given = connected.given("new_row", params, add).await;
    let ids: Vec<i64> = given.iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert!(
        ids.is_sorted_by(|one, next| one < next) && ids[0] > 3,
        "{given:?}"
    );
}

#[tokio::test]
async fn values_become_json_and_failures_are_told() {
    let Some(mut server) = mariadb_or_skip("types and failures of MySQL").await else {
        return;
    };
    let world = World::sqlite().await;
    let _log = world.show_log();
    let connected = Connected::new(&world, "mysql", data(server.port())).await;
    values_become_json(&connected).await;
    failures_are_told(&connected).await;
    credentials_are_refused(&world, server.port()).await;
    the_server_has_to_be_the_one_it_says(&world, server.port(), server.certificate()).await;

    // A server that dies leaves in doubt what was written, and nothing of what was read.
    let wait = "SELECT SLEEP(600)";
    let writes = connected.started(
        "execute",
        json!({ "query": format!("INSERT INTO kinds (a) {wait}") }),
        json!({}),
    );
    let reads = connected.started("query", json!({ "query": wait }), json!({}));
    let (writes, reads) = (writes.await, reads.await);
    let sleeping =
        json!({ "query": "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'" });
    let both = until(async || (connected.found("query", sleeping.clone()).await.len() == 2).then_some(()));
    assert!(both.await.is_some(), "the statements do not run");
    server.kill();
    let error = connected.recorded(&writes).await["error"].clone();
    assert_eq!(error["code"], "CONNECTION_LOST", "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("not known"),
        "{error}"
    );
    let error = connected.recorded(&reads).await["error"].clone();
    assert_eq!(error["code"], "CONNECTION_FAILED", "{error}");
}

async fn values_become_json(connected: &Connected<'_>) {
    let cases = [
        ("tinyint", json!(-7)),
        ("bigint", json!(i64::MIN)),
        ("bigint unsigned", json!(u64::MAX)),
        ("float", json!(0.1)),
        ("double", json!(1e-300)),
        ("decimal(30, 8)", json!("1234567890123456789012.00012300")),
        ("varchar(20)", json!("häß\n\"'\\ 🦀")),
        ("text", json!("long")),
        ("enum('a', 'b')", json!("b")),
        ("date", json!("2024-02-29")),
        ("datetime(6)", json!("1969-12-31T23:59:59.999999")),
        ("time(1)", json!("-30:00:01.5")),
        ("year", json!(2026)),
        ("bit(10)", json!(515)),
    ];
    let columns: Vec<String> = ('a'..)
        .zip(&cases)
        .map(|(name, (of, _))| format!("{name} {of}"))
        .collect();
    let table = format!(
        "CREATE TABLE kinds ({}, bytes blob, at timestamp(3) NULL, nothing int)",
        columns.join(", ")
    );
    let _made = connected.output("execute", json!({ "query": table })).await;
    let mut row: Value = ('a'..)
        .zip(&cases)
        .map(|(name, (_, value))| (name.to_string(), value.clone()))
        .collect();
    row["bytes"] = json!({ "base64": "AAH/" });
    row["at"] = json!("2026-11-22 08:30:00.5");
    let _inserted = connected
        .output("insert", json!({ "table": "kinds", "rows": row }))
        .await;
    let found = connected
        .found("query", json!({ "query": "SELECT * FROM kinds" }))
        .await;
    for (name, (of, value)) in ('a'..).zip(&cases) {
        assert_eq!(&found[0][name.to_string()], value, "{of}");
    }
    assert_eq!(found[0]["bytes"], "AAH/");
    assert_eq!(found[0]["at"], "2026-11-22T08:30:00.5Z");
    assert_eq!(found[0]["nothing"], Value::Null);
}

async fn failures_are_told(connected: &Connected<'_>) {
    let _made = connected.output("execute", json!({ "query": ORDERS })).await;
    let ada = json!({ "table": "orders", "rows": { "name": "Ada" } });
    let _inserted = connected.output("insert", ada.clone()).await;
    let many = "SELECT seq FROM seq_1_to_10001";
    for (module, params, expected, says) in [
        ("execute", json!({ "query": "SELEC 1" }), "SERVER_ERROR", "1064"),
        (
            "execute",
            json!({ "query": "SELECT 1; SELECT 2" }),
            "SERVER_ERROR",
            "1064",
        ),
        ("insert", ada, "SERVER_ERROR", "1062"),
        (
            "query",
            json!({ "query": "DELETE FROM orders" }),
            "SERVER_ERROR",
            "1792",
        ),
        (
            "query",
            json!({ "query": "SELECT ?" }),
            "EXPRESSION_ERROR",
            "1 of them",
        ),
        (
            "insert",
            json!({ "table": "orders", "rows": [1] }),
            "EXPRESSION_ERROR",
            "rows must be",
        ),
        (
            "query",
            json!({ "query": many }),
            "ANSWER_TOO_LARGE",
            "10000 rows",
        ),
        (
            "query",
            json!({ "query": "SELECT repeat('x', 12000000)" }),
            "ANSWER_TOO_LARGE",
            "larger",
        ),
        (
            "execute",
            json!({ "query": "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders" }),
            "SERVER_ERROR",
            "a file of this machine",
        ),
    ] {
        let (code, message) = connected.failure(module, params.clone()).await;
        assert_eq!(code, expected, "{params}: {message}");
        assert!(
            message.contains(says) && !message.contains(PASSWORD),
            "{params}: {message}"
        );
    }
    let few = json!({ "query": many, "limit": 3 });
    assert_eq!(connected.found("query", few).await.len(), 3);
}

async fn credentials_are_refused(world: &World, port: u16) {
    for (name, value, says) in [
        ("password", "wr0ng-pass", "1045"),
        ("username", "nobody-here", "1045"),
        ("database", "elsewhere", "1044"),
    ] {
        let mut wrong = data(port);
        wrong[name] = json!(value);
        let refused = Connected::new(world, "mysql", wrong).await.verified().await;
        assert_eq!(refused["status"], "invalid");
        assert!(refused["error"].as_str().unwrap().contains(says), "{refused}");
    }
}

async fn the_server_has_to_be_the_one_it_says(world: &World, port: u16, certificate: &str) {
    for (host, trusted, is_right) in [
        ("localhost", Some(certificate), true),
        ("localhost", None, false),
        ("127.0.0.1", Some(certificate), false),
    ] {
        let mut data = data(port);
        data["host"] = json!(host);
        data["tls"] = json!("require");
        data["caCertificate"] = json!(trusted);
        let connected = Connected::new(world, "mysql", data).await;
        let verified = connected.verified().await;
        assert_eq!(verified["status"] == "valid", is_right, "{host} {verified}");
        if is_right {
            let query = json!({ "query": "SHOW SESSION STATUS LIKE 'Ssl_version'" });
            assert_eq!(connected.found("query", query).await[0]["Value"], "TLSv1.3");
        }
    }
}
