//! Servers killed (`kill -9`) at random instants under load: what was acknowledged has happened, and happened once.
//!
//! A lone server is killed when some random number of calls has been acknowledged, and started again; of three nodes,
//! one or two at a time, again and again. Callers send their calls under the same ids until they are acknowledged, and once
//! more at the end.

use std::time::Duration;

use core_service::clock::now_ms as now;
use test_support::{Server, ServerOptions, ShowLog, postgres_or_skip};

use crate::cluster::{self, Cluster, figure};
use crate::random::Random;
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Tenant};

/// Calls of one round.
const CALLS: usize = 160;
const KINDS: [Kind; 4] = [Kind::Quick, Kind::Waiting, Kind::Calling, Kind::Asking];
/// Of several nodes, one often has to tell another that a person has answered or a child has ended.
const KINDS_OF_NODES: [Kind; 5] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Calling,
    Kind::Asking,
    Kind::Parent,
];
/// How long nodes are killed in a round, in milliseconds.
const KILLED_FOR_MS: i64 = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_loses_nothing_when_it_is_killed() {
    kill_again_and_again(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_loses_nothing_when_it_is_killed() {
    let Some(database) = postgres_or_skip("kill -9 under load").await else {
        return;
    };
    kill_again_and_again(Some(database.url.clone())).await;
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_lose_nothing_when_they_are_killed() {
    let Some(database) = postgres_or_skip("kill -9 of nodes under load").await else {
        return;
    };
    let seed = settings::seed();
    eprintln!("SWITCHYARD_FAULT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start(Some(&database.url)).await;
    let doors = cluster.doors();
    for _ in 0..settings::rounds(3, 100) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS_OF_NODES).await;
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        cluster
            .kill_between(&mut random, now(), now() + KILLED_FOR_MS)
            .await;
        load.stop().await;
        let _logs = cluster.show_logs();
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

async fn kill_again_and_again(database_url: Option<String>) {
    let rounds = settings::rounds(20, 500);
    let seed = settings::seed();
    let options = ServerOptions {
        database_url,
        ..cluster::options(1_000)
    };
    let mut server = Server::start(options).await;
    let mut found_under_way = 0;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        eprintln!("round {round} of {rounds}: SWITCHYARD_FAULT_SEED={seed}");
        found_under_way += kill_once(&mut server, Random::new(seed)).await;
    }
    // One round may be over before it begins; many are not.
    assert!(found_under_way > 0 || rounds < 5, "no kill found a run under way");
}

/// Gives how many runs the kill found under way.
async fn kill_once(server: &mut Server, mut random: Random) -> u64 {
    let tenant = Tenant::open(server).await;
    let round = tenant.round(&KINDS).await;
    let doors = [server.rest_address()];
    let load = round.ledger.send(CALLS, CONNECTIONS, &doors);
    round.ledger.acknowledged(random.below(CALLS)).await;
    tokio::time::sleep(Duration::from_micros(random.below(20_000) as u64)).await;
    server.kill_hard();
    server.restart().await;
    let _log = ShowLog(server);
    load.finish().await;
    round.comes_out_even(&doors, &tenant.api).await;
    figure(server, "switchyard_runs_taken_over_total").await
}
