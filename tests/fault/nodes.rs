//! Three nodes on one PostgreSQL. One is killed, stopped past its lease and continued, or cut off from the database: the
//! others take its runs over, and what it still has to write is refused.
//!
//! Each test says how long the take-over took; docs/faults.md holds what was measured.

use std::time::Instant;

use test_support::{Server, ServerOptions, postgres_or_skip, say_loudly, until};

use crate::cluster::{self, Cluster, Processes, figure, lease_ms};
use crate::proxy::Proxy;
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Round, Tenant};

const NODES: usize = 3;
/// The one that suffers; it is not the one that the tests ask.
const VICTIM: usize = 2;
const KINDS: [Kind; 5] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Calling,
    Kind::Asking,
    Kind::Parent,
];
const KINDS_OF_ONE: [Kind; 7] = [
    Kind::Quick,
    Kind::Waiting,
    Kind::Sleeping,
    Kind::Calling,
    Kind::Asking,
    Kind::Parent,
    Kind::Failing,
];
/// Calls after the fault: what it did must not show in them either.
const FURTHER: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_taken_over() {
    let Some(database) = postgres_or_skip("a killed node").await else {
        return;
    };
    let urls = vec![database.url.clone(); NODES];
    let mut cluster = start(&urls).await;
    for _ in 0..settings::rounds(1, 10) {
        let mut processes = Processes::of(&database.url).await;
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        let victim = process_of_victim(&round, &mut processes).await;
        cluster.nodes[VICTIM].kill_hard();
        relieved("killed", &mut processes, &victim).await;
        further(&round).await;
        load.stop().await;
        let _logs = cluster.show_logs();
        round.comes_out_even(&doors, &tenant.api).await;
        drop(_logs);
        cluster.nodes[VICTIM].restart().await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_node_has_its_late_writes_refused() {
    let Some(database) = postgres_or_skip("a stopped node").await else {
        return;
    };
    let urls = vec![database.url.clone(); NODES];
    let cluster = start(&urls).await;
    for lost in 1..=settings::rounds(1, 10) {
        let mut processes = Processes::of(&database.url).await;
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        let victim = process_of_victim(&round, &mut processes).await;
        let stopped = &cluster.nodes[VICTIM];
        stopped.pause();
        relieved("stopped", &mut processes, &victim).await;
        stopped.go_on();
        loses_its_lease(stopped, lost).await;
        further(&round).await;
        load.stop().await;
        let _logs = cluster.show_logs();
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_is_taken_over_and_comes_back() {
    let Some(database) = postgres_or_skip("a node without its database").await else {
        return;
    };
    let proxy = Proxy::start(&database.url).await;
    let cluster = start(&[database.url.clone(), database.url.clone(), proxy.url()]).await;
    for lost in 1..=settings::rounds(1, 10) {
        let mut processes = Processes::of(&database.url).await;
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        let victim = process_of_victim(&round, &mut processes).await;
        proxy.cut();
        relieved("cut off", &mut processes, &victim).await;
        loses_its_lease(&cluster.nodes[VICTIM], lost).await;
        proxy.mend();
        cluster.nodes[VICTIM].get_ready().await;
        further(&round).await;
        load.stop().await;
        let _logs = cluster.show_logs();
        // Through the node that was cut off, too.
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

/// What it asked the database when it was cut off is never answered, and no other node does what that was for.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_node_that_is_cut_off_goes_on() {
    let Some(database) = postgres_or_skip("a lone node without its database").await else {
        return;
    };
    let proxy = Proxy::start(&database.url).await;
    let cluster = start(&[proxy.url()]).await;
    let node = &cluster.nodes[0];
    for lost in 1..=settings::rounds(1, 10) {
        let tenant = Tenant::open(node).await;
        let round = tenant.round(&KINDS_OF_ONE).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        round.ledger.acknowledged(FURTHER).await;
        proxy.cut();
        loses_its_lease(node, lost).await;
        proxy.mend();
        node.get_ready().await;
        further(&round).await;
        load.stop().await;
        let _logs = cluster.show_logs();
        // A statement is given up after 30 s, which is all that one look waits for.
        for _ in 0..3 {
            let ended = until(async || (figure(node, "switchyard_runs_live").await == 0).then_some(()));
            if ended.await.is_some() {
                break;
            }
        }
        round.comes_out_even(&doors, &tenant.api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

async fn start(urls: &[String]) -> Cluster {
    let options = urls.iter().map(|url| ServerOptions {
        database_url: Some(url.clone()),
        ..cluster::options(lease_ms())
    });
    Cluster::of(options.collect()).await
}

/// The process of the victim, which drives something at this moment.
async fn process_of_victim(round: &Round<'_>, processes: &mut Processes) -> String {
    round.ledger.acknowledged(FURTHER).await;
    let ids = processes.ids().await;
    // The one that registered last: the nodes start one after the other, and the victim starts last of all.
    let victim = ids[VICTIM].clone();
    processes.drives(&victim).await;
    victim
}

async fn relieved(what: &str, processes: &mut Processes, victim: &str) {
    let began = Instant::now();
    processes.is_relieved(victim).await;
    let (took, lease) = (began.elapsed(), lease_ms());
    say_loudly(&format!(
        "the runs of a node that was {what} were taken over after {:.1} s; its lease is {:.1} s",
        took.as_secs_f64(),
        lease as f64 / 1_000.0
    ));
}

/// Waits until a node knows that it lost its lease so many times.
async fn loses_its_lease(node: &Server, times: u64) {
    let lost = until(async || {
        let lost = figure(node, "switchyard_leases_lost_total").await;
        (lost >= times).then_some(())
    });
    assert!(lost.await.is_some(), "the lease is not lost:\n{}", node.log());
}

/// Waits for some more calls.
async fn further(round: &Round<'_>) {
    let so_far = round.ledger.acknowledged_now();
    round.ledger.acknowledged(so_far + FURTHER).await;
}
