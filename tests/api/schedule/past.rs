//! Moves schedules back in time.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use test_support::until;

use crate::world::World;

const MOVE: &str = "UPDATE schedules SET anchor = anchor - $1, after_at = after_at - $1, due_at = due_at - $1, \
                    wake_at = 0 WHERE workflow_id = $2 AND due_at IS NOT NULL";

/// Lets a workflow's schedule stand where it would if nobody had looked at it for so many milliseconds.
pub(super) async fn nobody_looked_for(world: &World, workflow: &str, milliseconds: i64) {
    // It has to be computed first where the schedule stands.
    let moved = until(async || (move_back(world, workflow, milliseconds).await == 1).then_some(()));
    assert!(
        moved.await.is_some(),
        "the schedule of {workflow} does not stand anywhere"
    );
}

async fn move_back(world: &World, workflow: &str, milliseconds: i64) -> u64 {
    let statement = AssertSqlSafe(MOVE);
    match world.server.database_url() {
        Some(url) => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            let query = sqlx::query(statement).bind(milliseconds).bind(workflow);
            query.execute(&mut connection).await.unwrap().rows_affected()
        }
        None => {
            let file = world.server.data_dir().join("switchyard.db");
            let url = format!("sqlite://{}", file.display());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            let query = sqlx::query(statement).bind(milliseconds).bind(workflow);
            query.execute(&mut connection).await.unwrap().rows_affected()
        }
    }
}
