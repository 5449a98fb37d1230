//! Three nodes behind two facades are restarted one after the other (SIGTERM) under load: callers get their answers or
//! are told to come again, and none sees a connection break.

use test_support::{Facade, Server, ServerOptions, postgres_or_skip, say_loudly};

use crate::cluster::{self, Cluster};
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Tenant};

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
async fn a_rolling_restart_fails_no_request() {
    let Some(database) = postgres_or_skip("a rolling restart").await else {
        return;
    };
    let node = || ServerOptions {
        database_url: Some(database.url.clone()),
        ..cluster::options(5_000)
    };
    let mut cluster = Cluster::of(vec![node(), node(), node()]).await;
    let cores: Vec<&Server> = cluster.nodes.iter().collect();
    let facades = [Facade::start(&cores).await, Facade::start(&cores).await];
    let doors = facades.each_ref().map(Facade::address);
    for _ in 0..settings::rounds(1, 20) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let api = facades[0].api(Some(tenant.api.key()));
        let round = tenant.round(&KINDS).await;
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        for node in &mut cluster.nodes {
            let so_far = round.ledger.acknowledged_now();
            round.ledger.acknowledged(so_far + CALLS).await;
            let ended = node.terminate().await;
            assert!(ended.success(), "{ended}: {}", node.log());
            node.restart().await;
        }
        load.stop().await;
        let _logs = cluster.show_logs();
        assert_eq!(
            round.ledger.broken(),
            [""; 0],
            "{}\n{}",
            facades[0].log(),
            facades[1].log()
        );
        say_loudly(&format!(
            "a rolling restart under {} calls: {} were told to come again, none failed",
            round.ledger.acknowledged_now(),
            round.ledger.refused()
        ));
        round.comes_out_even(&doors, &api).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}
