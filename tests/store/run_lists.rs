//! A list of runs takes the same time whatever the others do.

use core_service::store::{DatabaseUrl, Driver, NewRun, RunStatus};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::fixture::{Fixture, summary};

/// Runs of the workflow that was quiet since.
const QUIET: usize = 60;
/// Newer ones of another.
const NEWER: i64 = 20_000;

/// Makes newer runs like the one that is there, of another workflow, and lets the planner know.
async fn overtake(connection: &mut PgConnection) {
    let script = format!(
        "CREATE TEMPORARY TABLE newer AS
             SELECT r.* FROM (SELECT * FROM runs LIMIT 1) r, generate_series(1, {NEWER});
         UPDATE newer SET workflow_id = 'wf_busy', id = 'run_z' || gen_random_uuid();
         INSERT INTO runs SELECT * FROM newer;
         ANALYZE runs"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(script))
        .execute(connection)
        .await
        .unwrap();
}

/// Rows that PostgreSQL has looked at for lists, of whatever workflow.
async fn looked_at(connection: &mut PgConnection) -> i64 {
    let sql = "SELECT SUM(idx_tup_read)::bigint + (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'runs')
               FROM pg_stat_user_indexes WHERE relname = 'runs'";
    sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_workflows_runs_are_not_looked_for_among_all() {
    let Some(fixture) = Fixture::postgres("lists of a quiet workflow").await else {
        return;
    };
    let DatabaseUrl::Postgres(url) = &fixture.url else {
        panic!("not PostgreSQL");
    };
    let mut connection = PgConnection::connect(url).await.unwrap();
    let (lease, workflow) = (fixture.lease().await, fixture.workflow("quiet").await);
    let ended = |number: usize| {
        let status = match number % 2 {
            0 => RunStatus::Failed,
            _ => RunStatus::Succeeded,
        };
        NewRun {
            summary: summary(status, Driver::Nobody),
            ..fixture.run(&workflow.id)
        }
    };
    fixture.start(&lease, (0..QUIET).map(ended).collect()).await;
    let one = fixture
        .store
        .list_runs(fixture.organization_id(), &workflow.id, None, None, 1);
    let one = one.await.unwrap()[0].id.clone();
    overtake(&mut connection).await;
    let before = looked_at(&mut connection).await;
    let lists = [
        (None, 50),
        (Some("failed"), QUIET / 2),
        (Some("succeeded"), QUIET / 2),
        (Some("waiting"), 0),
        (Some("run_0"), 50),
        (Some(one.as_str()), 1),
    ];
    // Often enough that PostgreSQL plans without the values, too.
    for _ in 0..8 {
        for (query, number) in lists {
            let organization_id = fixture.organization_id();
            let runs = fixture
                .store
                .list_runs(organization_id, &workflow.id, query, None, 50);
            assert_eq!(runs.await.unwrap().len(), number, "{query:?}");
        }
    }
    // What a connection has looked at is counted when it ends, if not before.
    fixture.store.close().await;
    let rows = looked_at(&mut connection).await - before;
    assert!(
        rows < NEWER / 2,
        "{rows} rows were looked at for {} lists",
        8 * lists.len()
    );
    fixture.end().await;
}
