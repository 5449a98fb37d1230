//! Kills the server when a node has written to a database and the journal does not know it yet: the node is executed
//! again, and must not write again.

use serde_json::json;
use sqlx::{Connection as _, PgConnection, SqliteConnection, raw_sql};
use test_support::{Server, ServerOptions, ShowLog, graphs, postgres_or_skip, text, until};

use crate::cluster::figure;

/// From the first row on, journal writes take for ever. Triggers cannot hold recursive queries, but views can.
const HOLD_SQLITE: &str = "
    CREATE VIEW forever AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
    CREATE TRIGGER hold BEFORE INSERT ON segments WHEN EXISTS (SELECT 1 FROM database_rows)
    BEGIN SELECT COUNT(*) FROM forever; END";
const RELEASE_SQLITE: &str = "DROP TRIGGER hold; DROP VIEW forever";
const HOLD_POSTGRES: &str = "
    CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF EXISTS (SELECT 1 FROM database_rows) THEN PERFORM pg_sleep(600); END IF; RETURN NEW; END $$;
    CREATE TRIGGER hold BEFORE INSERT ON segments FOR EACH ROW EXECUTE FUNCTION hold()";
/// A connection whose client is dead would sleep on.
const RELEASE_POSTGRES: &str = "
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    DROP TRIGGER hold ON segments";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_one_row_of_an_interrupted_insert() {
    an_interrupted_insert_leaves_one_row(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_one_row_of_an_interrupted_insert() {
    let Some(database) = postgres_or_skip("an interrupted insert").await else {
        return;
    };
    an_interrupted_insert_leaves_one_row(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

async fn an_interrupted_insert_leaves_one_row(database_url: Option<String>) {
    let options = ServerOptions {
        database_url,
        // A dead process's runs are free soon.
        flags: ["--lease-ms", "2000"].map(str::to_owned).into(),
        ..ServerOptions::default()
    };
    let mut server = Server::start(options).await;
    let api = server.first_api();
    let columns = json!([{ "name": "run", "type": "text" }]);
    let table = api
        .post("/databases", json!({ "name": "Orders", "columns": columns }))
        .await
        .data(201);
    let insert = json!({ "databaseId": table["id"], "row": { "run": "{{$run.id}}" } });
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("database_insert", insert),
        ("set", json!({ "fields": { "id": "{{2.rows[0].id}}" } })),
    ]);
    let workflow = api.workflow_with("Writes", flow).await;
    execute(&server, HOLD_SQLITE, HOLD_POSTGRES).await;

    let run = api.start(&workflow, json!({})).await;
    let rows = format!("/databases/{}/rows", text(&table["id"]));
    let written = until(async || (api.get(&rows).await.body(200)["count"] == 1).then_some(())).await;
    assert!(written.is_some(), "the node writes no row");
    let report = api.get(format!("/runs/{run}")).await.data(200);
    assert_eq!(
        report["nodes"][1]["status"], "running",
        "the journal knows: {report}"
    );
    server.kill_hard();
    execute(&server, RELEASE_SQLITE, RELEASE_POSTGRES).await;

    server.restart().await;
    let _log = ShowLog(&server);
    let report = api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    assert_eq!(figure(&server, "switchyard_runs_taken_over_total").await, 1);
    let found = api.get(&rows).await.body(200);
    assert_eq!(found["count"], 1, "the row is there twice: {found}");
    assert_eq!(report["nodes"][1]["output"]["rows"], found["data"]);
    assert_eq!(report["nodes"][2]["output"]["id"], found["data"][0]["id"]);
}

/// Runs a script on the server's database, beside the server.
async fn execute(server: &Server, sqlite: &'static str, postgres: &'static str) {
    if let Some(url) = server.database_url() {
        let mut connection = PgConnection::connect(url).await.unwrap();
        raw_sql(postgres).execute(&mut connection).await.unwrap();
    } else {
        let path = server.data_dir().join("switchyard.db");
        let mut connection = SqliteConnection::connect(&path.display().to_string())
            .await
            .unwrap();
        raw_sql(sqlite).execute(&mut connection).await.unwrap();
    }
}
