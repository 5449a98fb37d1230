//! A load generator that costs little: one thread, plain sockets, the same bytes again and again, a look at the status.
//! Whoever is refused comes again when the answer says, as callers should.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use test_support::wire::{Whole, whole_answer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

/// What a connection sends, over and over.
#[derive(Clone)]
pub(crate) struct Calls {
    /// Requests, sent in turn; each connection begins at another one.
    pub(crate) requests: Vec<Vec<u8>>,
    /// Status of a success.
    pub(crate) success: u16,
    /// The time from one request to the next; without, each is sent when the one before is answered.
    pub(crate) every: Option<Duration>,
}

/// What came of a load.
#[derive(Default)]
pub(crate) struct Load {
    /// Times of the successes, in microseconds, ascending.
    times_us: Vec<u32>,
    /// Answers with another status.
    pub(crate) refused: u64,
}

impl Load {
    pub(crate) fn answered(&self) -> u64 {
        self.times_us.len() as u64
    }

    /// The time within which so many of a hundred were answered.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        let last = self.times_us.len().saturating_sub(1);
        let place = (last as f64 * percent / 100.0).round() as usize;
        self.times_us
            .get(place)
            .map_or(f64::NAN, |us| f64::from(*us) / 1000.0)
    }
}

/// Sends requests over each connection, each when the one before is answered, for a time.
pub(crate) async fn run(address: SocketAddr, calls: Calls, connections: usize, time: Duration) -> Load {
    run_on_all(vec![address], calls, connections, time).await
}

/// As [`run`], with connections to several servers in turn.
pub(crate) async fn run_on_all(
    addresses: Vec<SocketAddr>,
    calls: Calls,
    connections: usize,
    time: Duration,
) -> Load {
    apart(async move || all_connections(&addresses, calls, connections, time).await).await
}

/// Does something on a thread of its own.
async fn apart<T: Send + 'static>(work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(work())
    });
    tokio::task::spawn_blocking(|| thread.join().unwrap())
        .await
        .unwrap()
}

/// What came of calls that were made all at once.
pub(crate) struct Burst {
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// From the first call to the last answer.
    pub(crate) took: Duration,
}

/// Opens so many connections, then sends a request over each, all at the same time.
pub(crate) async fn burst(address: SocketAddr, request: Vec<u8>, connections: usize) -> Burst {
    apart(async move || {
        let (request, together) = (Arc::new(request), Arc::new(Barrier::new(connections + 1)));
        let mut callers = JoinSet::new();
        for _ in 0..connections {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let (request, together) = (Arc::clone(&request), Arc::clone(&together));
            callers.spawn(async move {
                together.wait().await;
                exchange(&mut stream, &request, &mut Vec::new()).await.status
            });
        }
        let mut by_status = BTreeMap::new();
        together.wait().await;
        let began = Instant::now();
        while let Some(status) = callers.join_next().await {
            *by_status.entry(status.unwrap()).or_default() += 1;
        }
        let took = began.elapsed();
        Burst { by_status, took }
    })
    .await
}

async fn all_connections(addresses: &[SocketAddr], calls: Calls, connections: usize, time: Duration) -> Load {
    let end = Instant::now() + time;
    let begin = Instant::now();
    let calls = Arc::new(calls);
    let mut callers = JoinSet::new();
    for connection in 0..connections {
        let first = connection * calls.requests.len() / connections;
        let address = addresses[connection % addresses.len()];
        // One after the other, lest calls of a rate come in bursts.
        let share = connection as f64 / connections as f64;
        let due = begin + calls.every.unwrap_or_default().mul_f64(share);
        callers.spawn(one_connection(address, calls.clone(), first, due, end));
    }
    let mut load = Load::default();
    for each in callers.join_all().await {
        load.times_us.extend(each.times_us);
        load.refused += each.refused;
    }
    load.times_us.sort_unstable();
    load
}

async fn one_connection(
    address: SocketAddr,
    calls: Arc<Calls>,
    first: usize,
    mut due: Instant,
    end: Instant,
) -> Load {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut load = Load::default();
    let mut buffer = Vec::with_capacity(64 * 1024);
    for request in calls.requests.iter().cycle().skip(first) {
        if let Some(every) = calls.every {
            sleep_until(due.into()).await;
            due += every;
        }
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        let answer = exchange(&mut stream, request, &mut buffer).await;
        if answer.status == calls.success {
            load.times_us
                .push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        } else {
            load.refused += 1;
            let pause = answer.retry_after.map_or(Duration::ZERO, Duration::from_secs);
            sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
        }
    }
    load
}

/// Sends a request and gives its answer.
async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) -> Whole {
    stream.write_all(request).await.unwrap();
    buffer.clear();
    loop {
        assert!(
            stream.read_buf(buffer).await.unwrap() > 0,
            "the server closed a connection"
        );
        if let Some(answer) = whole_answer(buffer).unwrap() {
            return answer;
        }
    }
}
