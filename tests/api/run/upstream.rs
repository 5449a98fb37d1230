//! Services that do what no decent one does: they hang, drip, hang up, never end, or send bombs. A node that asks one
//! fails by its code within its own limits, and nobody else notices.

use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use test_support::{Api, Target, graphs, text, together};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep};

use crate::world::World;

on_both_databases!(
    a_node_fails_within_its_own_limits,
    slow_services_hold_up_nobody_else,
    a_flood_of_slow_requests_is_its_own_matter,
    a_database_that_says_nothing_holds_up_nobody_else,
);

/// Ways to misbehave, as paths.
const HANG: &str = "/hang";
const HANG_AFTER_HEAD: &str = "/hang-after-head";
const DRIP: &str = "/drip";
const RESET: &str = "/reset";
const ENDLESS: &str = "/endless";
const BOMB: &str = "/bomb";

/// Those that only a time-out ends.
const SLOW: [&str; 3] = [HANG, HANG_AFTER_HEAD, DRIP];

/// A service that misbehaves as its paths say.
struct Misbehaving {
    url: String,
    /// One for each request that has come.
    asked: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Misbehaving {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Semaphore::new(0));
        let (seen, bomb): (_, Arc<[u8]>) = (Arc::clone(&asked), bomb().into());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever asked may hang up at any time.
                let (seen, bomb) = (Arc::clone(&seen), Arc::clone(&bomb));
                tokio::spawn(async move { misbehave(stream, &seen, &bomb).await });
            }
        });
        Self { url, asked, task }
    }

    /// Waits until so many requests have come.
    async fn was_asked(&self, times: u32) {
        let asked = tokio::time::timeout(test_support::PATIENCE, self.asked.acquire_many(times)).await;
        asked.expect("the requests do not come").unwrap().forget();
    }
}

impl Drop for Misbehaving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn misbehave(mut stream: TcpStream, seen: &Semaphore, bomb: &[u8]) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    seen.add_permits(1);
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    match path {
        HANG => {}
        HANG_AFTER_HEAD => stream.write_all(begun).await?,
        DRIP => {
            stream.write_all(begun).await?;
            loop {
                stream.write_all(b"x").await?;
                sleep(Duration::from_secs(1)).await;
            }
        }
        RESET => {
            stream.write_all(begun).await?;
            stream.write_all(b"half of it").await?;
            stream.set_zero_linger()?;
            return Ok(());
        }
        ENDLESS => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            let block = vec![b'x'; 64 << 10];
            loop {
                stream.write_all(&block).await?;
            }
        }
        _ => {
            let length = bomb.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(bomb).await?;
        }
    }
    // Until the other side has enough.
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}

/// 200 MiB in 200 KiB.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..200).for_each(|_| encoder.write_all(&zeros).unwrap());
    encoder.finish().unwrap()
}

/// A request to a URL, after a trigger, with so much time.
fn asking(url: &str, timeout_ms: u32) -> Value {
    json!([
        { "op": "add_node", "tempId": "a", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "b", "kind": "http_request", "after": "a", "params": { "url": url },
          "config": { "timeoutMs": timeout_ms } },
    ])
}

async fn a_node_fails_within_its_own_limits(world: &World) {
    let service = Misbehaving::start().await;
    let run = |path: &'static str, timeout_ms| {
        let (api, url) = (world.api.clone(), format!("{}{path}", service.url));
        async move {
            let workflow = api.workflow_with(path, asking(&url, timeout_ms)).await;
            let run = api.start(&workflow, json!({})).await;
            let report = api.ended(&run).await;
            assert_eq!(report["status"], "failed", "{path}: {report}");
            (path, text(&report["nodes"][1]["error"]["code"]))
        }
    };
    let patient = 60_000;
    let runs = [
        run(HANG, 300),
        run(HANG_AFTER_HEAD, 300),
        run(DRIP, 300),
        run(RESET, patient),
        run(ENDLESS, patient),
        run(BOMB, patient),
    ];
    let mut codes = together(runs).await;
    codes.sort_unstable();
    let expected = [
        (BOMB, "HTTP_ERROR"),
        (DRIP, "NODE_TIMEOUT"),
        (ENDLESS, "HTTP_ERROR"),
        (HANG, "NODE_TIMEOUT"),
        (HANG_AFTER_HEAD, "NODE_TIMEOUT"),
        (RESET, "HTTP_UNREACHABLE"),
    ];
    assert_eq!(codes, expected.map(|(path, code)| (path, code.to_owned())));
}

async fn slow_services_hold_up_nobody_else(world: &World) {
    const OF_EACH: usize = 8;
    const OTHERS: usize = 50;
    let service = Misbehaving::start().await;
    let mut slow = Vec::new();
    for path in SLOW {
        let graph = asking(&format!("{}{path}", service.url), 600_000);
        let workflow = world.api.workflow_with(path, graph).await;
        for _ in 0..OF_EACH {
            slow.push(world.api.start(&workflow, json!({})).await);
        }
    }
    service.was_asked(u32::try_from(slow.len()).unwrap()).await;
    // These keep the service busy while they fail.
    for path in [ENDLESS, BOMB, RESET] {
        let graph = asking(&format!("{}{path}", service.url), 600_000);
        let workflow = world.api.workflow_with(path, graph).await;
        let _ = world.api.start(&workflow, json!({})).await;
    }
    let decent = Target::start(|_| http::Response::new("{}".into())).await;
    let other = world.stranger().await;
    tokio::join!(
        all_succeed(&world.api, &decent, OTHERS),
        all_succeed(&other, &decent, OTHERS)
    );
    assert_eq!(decent.asked().len(), 2 * OTHERS);
    for run in slow {
        let report = world.api.get(format!("/runs/{run}")).await.data(200);
        assert_eq!(report["status"], "running", "{report}");
        let _ = world
            .api
            .post(format!("/runs/{run}/cancel"), json!({}))
            .await
            .data(200);
    }
}

async fn a_flood_of_slow_requests_is_its_own_matter(world: &World) {
    // More than one organization may execute at once.
    const FLOOD: usize = 140;
    const AT_ONCE: u32 = 128;
    let service = Misbehaving::start().await;
    let graph = asking(&format!("{}{HANG}", service.url), 600_000);
    let workflow = world.api.workflow_with("flood", graph).await;
    let starts = (0..FLOOD).map(|_| {
        let (api, workflow) = (world.api.clone(), workflow.clone());
        async move { api.start(&workflow, json!({})).await }
    });
    let flood = together(starts).await;
    service.was_asked(AT_ONCE).await;
    let decent = Target::start(|_| http::Response::new("{}".into())).await;
    all_succeed(&world.stranger().await, &decent, 20).await;
    assert_eq!(
        service.asked.available_permits(),
        0,
        "the others wait for their turn"
    );
    let cancels = flood.into_iter().map(|run| {
        let api = world.api.clone();
        async move { api.post(format!("/runs/{run}/cancel"), json!({})).await.data(200) }
    });
    together(cancels).await;
}

async fn a_database_that_says_nothing_holds_up_nobody_else(world: &World) {
    // More than one credential may have connections; the others wait for one.
    const RUNS: usize = 15;
    const CONNECTIONS: usize = 10;
    let (silent, other) = (silent_database(world).await, silent_database(world).await);
    let workflow = silent.asked(world).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(world.api.start(&workflow, json!({})).await);
    }
    let mut connections = Vec::new();
    while connections.len() < CONNECTIONS {
        connections.push(silent.comes().await);
    }
    let decent = Target::start(|_| http::Response::new("{}".into())).await;
    all_succeed(&world.api, &decent, 20).await;
    // Another credential does not wait behind it.
    runs.push(world.api.start(&other.asked(world).await, json!({})).await);
    connections.push(other.comes().await);
    for run in runs {
        let _ = world
            .api
            .post(format!("/runs/{run}/cancel"), json!({}))
            .await
            .data(200);
    }
}

/// Where a database should be, and a credential for it.
struct SilentDatabase {
    listener: TcpListener,
    credential: String,
}

async fn silent_database(world: &World) -> SilentDatabase {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let body = json!({ "appId": "postgresql", "connectionId": "server", "name": "Silent", "data": {
        "host": "127.0.0.1", "port": port, "database": "d", "username": "u", "password": "p", "tls": "disable",
    } });
    let made = world.api.post("/credentials", body).await.data(200);
    SilentDatabase {
        listener,
        credential: text(&made["credentialId"]),
    }
}

impl SilentDatabase {
    /// A workflow that asks it.
    async fn asked(&self, world: &World) -> String {
        let operations = json!([
            { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
            { "op": "add_node", "tempId": "ask", "appId": "postgresql", "moduleSlug": "query", "after": "start",
              "params": { "query": "SELECT 1" }, "credentialId": self.credential, "config": { "timeoutMs": 600_000 } },
        ]);
        world.api.workflow_with("asks a database", operations).await
    }

    /// The next connection to it.
    async fn comes(&self) -> TcpStream {
        let accepted = tokio::time::timeout(test_support::PATIENCE, self.listener.accept()).await;
        accepted.expect("nobody comes").unwrap().0
    }
}

/// Lets runs ask a service that answers, all at the same time.
async fn all_succeed(api: &Api, decent: &Target, number: usize) {
    let chain = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("http_request", json!({ "url": decent.url("/") })),
        ("js_code", json!({ "code": "return { done: true }" })),
    ]);
    let workflow = api.workflow_with("decent", chain).await;
    let runs = (0..number).map(|_| {
        let (api, workflow) = (api.clone(), workflow.clone());
        async move {
            let run = api.start(&workflow, json!({})).await;
            api.ended(&run).await
        }
    });
    for report in together(runs).await {
        assert_eq!(report["status"], "succeeded", "{report}");
    }
}
