//! PostgreSQL is stopped and started under load: callers are told to come again, and nobody has to start Switchyard again.

use test_support::{ServerOptions, StopMode, postgres_server_or_skip};

use crate::cluster::{self, Cluster};
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Tenant};

const KINDS: [Kind; 5] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Calling,
    Kind::Asking,
    Kind::Storing,
];
/// Calls between the restarts.
const CALLS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_postgres_is_restarted() {
    let Some(server) = postgres_server_or_skip("restarts of PostgreSQL").await else {
        return;
    };
    let node = || ServerOptions {
        database_url: Some(server.url()),
        ..cluster::options(5_000)
    };
    let cluster = Cluster::of(vec![node(), node()]).await;
    for _ in 0..settings::rounds(1, 20) {
        for mode in [StopMode::Fast, StopMode::Immediate] {
            let tenant = Tenant::open(&cluster.nodes[0]).await;
            let round = tenant.round(&KINDS).await;
            let doors = cluster.doors();
            let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
            round.ledger.acknowledged(CALLS).await;
            tokio::task::block_in_place(|| server.restart(mode)).unwrap();
            let so_far = round.ledger.acknowledged_now();
            let _logs = cluster.show_logs();
            round.ledger.acknowledged(so_far + CALLS).await;
            load.stop().await;
            assert_eq!(round.ledger.broken(), [""; 0], "a call was not answered");
            round.comes_out_even(&doors, &tenant.api).await;
        }
    }
}
