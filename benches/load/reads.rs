//! Reads over REST with a key: a list of 50 of 1,000 workflows, one workflow, and both in turn.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use test_support::{Api, Server, graphs, text, wire};

use crate::Options;
use crate::generator::{self, Calls};
use crate::process::Usage;

/// How many workflows there are.
const WORKFLOWS: usize = 1_000;

/// A line for each kind of read and number of connections.
pub(crate) async fn measure(server: &Server, options: &Options) {
    let api = server.first_api();
    let workflow = fill(&api).await;
    let get = |path: &str| {
        let authorization = format!("Bearer {}", api.key());
        wire::request("GET", path, &[("authorization", &authorization)], "")
    };
    let list = get("/api/v1/workflows?limit=50");
    let one = get(&format!("/api/v1/workflows/{workflow}"));
    println!(
        "{:>12} {:>11} {:>11} {:>8} {:>8} {:>8} {:>9} {:>14} {:>8}",
        "reads",
        "connections",
        "answered/s",
        "p50 ms",
        "p99 ms",
        "max ms",
        "refused",
        "CPU ms/answer",
        "RSS MiB"
    );
    for (name, requests) in [
        ("list of 50", vec![list.clone()]),
        ("one", vec![one.clone()]),
        ("both in turn", vec![list, one]),
    ] {
        let calls = Calls {
            requests,
            success: 200,
            every: None,
        };
        generator::run(server.rest_address(), calls.clone(), 16, Duration::from_secs(1)).await;
        for &connections in &options.connections {
            line(server, name, &calls, connections, options.time()).await;
        }
    }
}

/// Makes the workflows, some in folders and with tags; gives the id of one with a graph.
async fn fill(api: &Api) -> String {
    let folder = api.post("/folders", json!({ "name": "Shop" })).await.data(201);
    let tag = json!({ "name": "daily", "color": "blue" });
    let tag = api.post("/tags", tag).await.data(201);
    for number in 1..WORKFLOWS {
        let mut body = json!({ "name": format!("Workflow {number}") });
        if number % 2 == 0 {
            body["folderId"] = folder["id"].clone();
        }
        let made = api.post("/workflows", body).await.data(201);
        if number % 5 == 0 {
            let path = format!("/workflows/{}/tags", text(&made["id"]));
            let tagged = api.put(path, json!({ "tagIds": [tag["id"]] })).await;
            assert_eq!(tagged.status, 200);
        }
    }
    api.workflow_with("Orders", graphs::order_flow()).await
}

async fn line(server: &Server, name: &str, calls: &Calls, connections: usize, time: Duration) {
    let address: SocketAddr = server.rest_address();
    let before = Usage::of(server.pid());
    let started = Instant::now();
    let load = generator::run(address, calls.clone(), connections, time).await;
    let seconds = started.elapsed().as_secs_f64();
    let usage = Usage::of(server.pid());
    let answered = load.answered().max(1) as f64;
    println!(
        "{name:>12} {connections:>11} {:>11.0} {:>8.2} {:>8.2} {:>8.2} {:>9} {:>14.3} {:>8.0}",
        answered / seconds,
        load.percentile_ms(50.0),
        load.percentile_ms(99.0),
        load.percentile_ms(100.0),
        load.refused,
        1000.0 * (usage.cpu_seconds - before.cpu_seconds) / answered,
        usage.memory_mib,
    );
}
