//! Executors, the engine and the database failing: one run may fail, the process and the others go on.

use std::time::Duration;

use core_service::store::{DatabaseUrl, RunStatus};
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::graphs::{after_trigger, probe, set, start};
use crate::world::World;

on_both_databases!(
    a_panicking_executor_fails_its_node,
    a_panicking_engine_fails_its_run,
    a_node_that_takes_too_long_is_given_up,
    a_refused_write_fails_its_run_only,
    a_lost_connection_is_survived,
);

async fn a_panicking_executor_fails_its_node(world: &World) {
    let process = world.process().await;
    let on_error = json!({ "onError": "continue" });
    let graph = after_trigger(&[
        ("probe", json!({ "do": "panic" }), on_error),
        set(json!({ "code": "{{2.error.code}}" })),
    ]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    assert_eq!(world.ended(&started.run_id).await.status, RunStatus::Succeeded);
    let report = process.report(world, &started.run_id).await;
    assert_eq!(
        **report.state.last_output().unwrap(),
        json!({ "code": "ENGINE_ERROR" })
    );
}

async fn a_panicking_engine_fails_its_run(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("ok"), ("panic", json!({}), json!({}))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let run = world.ended(&started.run_id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.error.unwrap().starts_with("ENGINE_ERROR: "));
    let other = process
        .start(start(
            &world.organization_id,
            &after_trigger(&[probe("ok")]),
            json!({}),
        ))
        .await;
    assert_eq!(
        world.ended(&other.unwrap().run_id).await.status,
        RunStatus::Succeeded
    );
}

async fn a_node_that_takes_too_long_is_given_up(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[("probe", json!({ "do": "wait" }), json!({ "timeoutMs": 50 }))]);
    let started = process
        .start(start(&world.organization_id, &graph, json!({})))
        .await
        .unwrap();
    let run = world.ended(&started.run_id).await;
    assert!(run.error.unwrap().starts_with("NODE_TIMEOUT: "));
    world.probe.given_up(1).await;
}

/// Makes the database refuse further segments of one run.
async fn refuse_segments(world: &World, run_id: &str) {
    match &world.url {
        DatabaseUrl::Sqlite(path) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            let mut connection = options.connect().await.unwrap();
            let trigger = format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON segments WHEN NEW.run_id = '{run_id}'
                 BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
            );
            sqlx::raw_sql(AssertSqlSafe(trigger))
                .execute(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
        }
        DatabaseUrl::Postgres(url) => {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            let trigger = format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
                 CREATE TRIGGER refuse BEFORE INSERT ON segments FOR EACH ROW
                     WHEN (NEW.run_id = '{run_id}') EXECUTE FUNCTION refuse()"
            );
            sqlx::raw_sql(AssertSqlSafe(trigger))
                .execute(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
        }
    }
}

async fn a_refused_write_fails_its_run_only(world: &World) {
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), set(json!({}))]);
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(
            process
                .start(start(&world.organization_id, &graph, json!({})))
                .await
                .unwrap()
                .run_id,
        );
    }
    world.probe.begun(runs.len()).await;
    refuse_segments(world, &runs[7]).await;
    world.probe.open(runs.len());
    for (place, run_id) in runs.iter().enumerate() {
        let run = world.ended(run_id).await;
        let expected = if place == 7 {
            RunStatus::Failed
        } else {
            RunStatus::Succeeded
        };
        assert_eq!(run.status, expected, "{:?}", run.error);
    }
}

async fn a_lost_connection_is_survived(world: &World) {
    let DatabaseUrl::Postgres(url) = &world.url else {
        return; // There is no connection to lose.
    };
    let process = world.process().await;
    let graph = after_trigger(&[probe("wait"), set(json!({}))]);
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(
            process
                .start(start(&world.organization_id, &graph, json!({})))
                .await
                .unwrap()
                .run_id,
        );
    }
    world.probe.begun(runs.len()).await;
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for _ in &runs {
        world.probe.open(1);
        sqlx::raw_sql(kill).execute(&mut connection).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    connection.close().await.unwrap();
    let ended = async {
        for run_id in &runs {
            // The test's own connections were cut too.
            while !world
                .store
                .run(&world.organization_id, run_id)
                .await
                .is_ok_and(|run| run.status.is_terminal())
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(world.run(run_id).await.status, RunStatus::Succeeded);
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, ended).await.unwrap();
}
