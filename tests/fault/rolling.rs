//! Nodes and facades are restarted one after the other (SIGTERM) under load: callers get their answers or are told to come
//! again, and none sees a connection break.

use std::net::SocketAddr;

use test_support::{Database, Facade, Server, ServerOptions, postgres_or_skip, say_loudly};

use crate::balancer::Balancer;
use crate::cluster::{self, Cluster};
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Round, Tenant};

const KINDS: [Kind; 5] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Calling,
    Kind::Asking,
    Kind::Parent,
];
/// Calls between the restarts.
const CALLS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_behind_facades_fail_no_request() {
    let Some(database) = postgres_or_skip("a rolling restart of nodes").await else {
        return;
    };
    let mut cluster = three_nodes(&database).await;
    let cores: Vec<&Server> = cluster.nodes.iter().collect();
    let facades = [Facade::start(&cores).await, Facade::start(&cores).await];
    let doors = facades.each_ref().map(Facade::address);
    for _ in 0..settings::rounds(1, 20) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let nodes = &mut cluster.nodes;
        roll("nodes behind facades", &round, &doors, nodes, async |node| {
            stop(node).await;
            node.restart().await;
        })
        .await;
        let _logs = cluster.show_logs();
        let api = facades[0].api(Some(tenant.api.key()));
        round.comes_out_even(&doors, &api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn facades_behind_a_balancer_fail_no_request() {
    let Some(database) = postgres_or_skip("a rolling restart of facades").await else {
        return;
    };
    let cluster = three_nodes(&database).await;
    let cores: Vec<&Server> = cluster.nodes.iter().collect();
    let mut facades = [Facade::start(&cores).await, Facade::start(&cores).await];
    let balancer = Balancer::start(facades.each_ref().map(Facade::address).into()).await;
    for _ in 0..settings::rounds(1, 20) {
        let _logs = cluster.show_logs();
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = [balancer.address()];
        roll(
            "facades behind a balancer",
            &round,
            &doors,
            &mut facades,
            Facade::restart,
        )
        .await;
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_behind_a_balancer_fail_no_request() {
    let Some(database) = postgres_or_skip("a rolling restart of nodes with REST of their own").await else {
        return;
    };
    let mut cluster = three_nodes(&database).await;
    let balancer = Balancer::start(cluster.doors()).await;
    for _ in 0..settings::rounds(1, 20) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = [balancer.address()];
        let nodes = &mut cluster.nodes;
        roll("nodes behind a balancer", &round, &doors, nodes, async |node| {
            stop(node).await;
            node.restart().await;
        })
        .await;
        let _logs = cluster.show_logs();
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

async fn three_nodes(database: &Database) -> Cluster {
    let node = || ServerOptions {
        database_url: Some(database.url.clone()),
        ..cluster::options(5_000)
    };
    Cluster::of(vec![node(), node(), node()]).await
}

async fn stop(node: &mut Server) {
    let ended = node.terminate().await;
    assert!(ended.success(), "{ended}: {}", node.log());
}

/// Restarts one after the other under load.
async fn roll<S>(
    what: &str,
    round: &Round<'_>,
    doors: &[SocketAddr],
    servers: &mut [S],
    mut restart: impl AsyncFnMut(&mut S),
) {
    let ledger = &round.ledger;
    let load = ledger.send_on_and_on(CONNECTIONS, doors);
    for server in servers {
        let so_far = ledger.acknowledged_now();
        ledger.acknowledged(so_far + CALLS).await;
        restart(server).await;
    }
    let so_far = ledger.acknowledged_now();
    ledger.acknowledged(so_far + CALLS).await;
    load.stop().await;
    assert_eq!(ledger.broken(), [""; 0], "{what}");
    say_loudly(&format!(
        "a rolling restart of {what} under {} calls: {} were told to come again, none failed",
        ledger.acknowledged_now(),
        ledger.refused()
    ));
}
