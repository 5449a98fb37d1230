//! A quiet organization's webhook calls: alone, then beside another organization with 100 times the load.

use std::time::Duration;

use test_support::{Api, Server, wire, workload};

use crate::Options;
use crate::generator::{self, Calls, Load};
use crate::hooks::go_live;

/// How much more the other organization calls.
const TIMES: usize = 100;

/// For each number of connections of the quiet organization, its times alone and beside the flood.
pub(crate) async fn measure(server: &Server, options: &Options) {
    let flooding = server.admin().await.organization("Flood", None).await;
    let (quiet, flood) = (
        Caller::prepare(server, &server.first_api()).await,
        Caller::prepare(server, &server.api(Some(&flooding.api_key))).await,
    );
    println!(
        "{:>11} {:>8} {:>11} {:>8} {:>8} {:>8} {:>9}",
        "connections", "", "accepted/s", "p50 ms", "p99 ms", "max ms", "refused"
    );
    quiet.load(1, None, Duration::from_secs(1)).await;
    for &connections in &options.connections {
        let time = options.time();
        let alone = quiet.load(connections, options.rate, time).await;
        print(connections, "alone", &alone, time);
        let flood_rate = options.rate.map(|rate| rate * TIMES as f64);
        let (beside, flooded) = tokio::join!(
            quiet.load(connections, options.rate, time),
            flood.load(connections * TIMES, flood_rate, time)
        );
        print(connections, "beside", &beside, time);
        print(connections * TIMES, "flood", &flooded, time);
        let ratio = |percent| beside.percentile_ms(percent) / alone.percentile_ms(percent);
        println!("beside / alone: p50 {:.2}, p99 {:.2}", ratio(50.0), ratio(99.0));
    }
}

fn print(connections: usize, name: &str, load: &Load, time: Duration) {
    println!(
        "{connections:>11} {name:>8} {:>11.0} {:>8.2} {:>8.2} {:>8.2} {:>9}",
        load.answered() as f64 / time.as_secs_f64(),
        load.percentile_ms(50.0),
        load.percentile_ms(99.0),
        load.percentile_ms(100.0),
        load.refused,
    );
}

/// Calls the webhook of one organization.
struct Caller {
    address: std::net::SocketAddr,
    request: Vec<u8>,
}

impl Caller {
    async fn prepare(server: &Server, api: &Api) -> Self {
        let path = go_live(api, workload::graph()).await;
        Self {
            address: server.rest_address(),
            request: wire::request("POST", &path, &[], &workload::body()),
        }
    }

    /// Calls at this rate a second, spread over all connections; without, each calls when it is answered.
    async fn load(&self, connections: usize, rate: Option<f64>, time: Duration) -> Load {
        let calls = Calls {
            requests: vec![self.request.clone()],
            success: 202,
            every: rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate)),
        };
        generator::run(self.address, calls, connections, time).await
    }
}
