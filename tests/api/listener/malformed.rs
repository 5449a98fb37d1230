//! Malformed HTTP in masses, at both doors: nobody else notices.
//!
//! `SWITCHYARD_MALFORMED_FRAMES=1000000 cargo test -p contract --test api malformed -- --nocapture` sends so many and
//! tells how long health checks took meanwhile; `SWITCHYARD_MALFORMED_SEED` repeats a sequence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use test_support::Server;
use test_support::frames::{Frame, PREFACE, kind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{Door, assert_well, health_over_rest, server, soon};

/// How many are sent when nobody says.
const FRAMES: u64 = 20_000;
/// Broken clients at a time.
const CLIENTS: u64 = 16;
/// Most frames of one connection.
const MOST: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_frames_are_no_matter_to_others() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let wanted = number("SWITCHYARD_MALFORMED_FRAMES").unwrap_or(FRAMES);
    let seed = number("SWITCHYARD_MALFORMED_SEED").unwrap_or(1);
    let server = Arc::new(server(&[]).await);
    let sent = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (server, sent) = (Arc::clone(&server), Arc::clone(&sent));
        clients.spawn(async move {
            let mut random = Random(seed.wrapping_mul(CLIENTS).wrapping_add(client));
            while sent.load(Ordering::Relaxed) < wanted {
                let door = if random.below(2) == 0 {
                    Door::Rest
                } else {
                    Door::Grpc
                };
                let (bytes, frames) = random.connection(door);
                soon(send(&server, door, &bytes)).await;
                sent.fetch_add(frames, Ordering::Relaxed);
            }
        });
    }
    let over = Arc::new(AtomicBool::new(false));
    let checks = tokio::spawn(check(Arc::clone(&server), Arc::clone(&over)));
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let mut times = checks.await.unwrap();
    times.sort();
    println!(
        "{} malformed frames; {} health checks: half within {:?}, the slowest {:?}",
        sent.load(Ordering::Relaxed),
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1],
    );
    assert!(server.ended().is_none());
    assert!(!server.log().contains("panicked"), "{}", server.log());
    assert_well(&server).await;
}

/// Asks at both doors how the server is, again and again; each time there must be an answer. Gives how long they took.
async fn check(server: Arc<Server>, over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut client = HealthClient::new(server.channel().await);
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) || times.is_empty() {
        let begun = Instant::now();
        assert!(soon(health_over_rest(&server)).await);
        times.push(begun.elapsed());
        let begun = Instant::now();
        soon(client.check(HealthCheckRequest::default())).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

/// Sends bytes, says that nothing more comes, and waits for the server to end the connection.
async fn send(server: &Server, door: Door, bytes: &[u8]) {
    let mut stream = TcpStream::connect(door.address(server)).await.unwrap();
    // A server that has had enough may be gone before all is sent.
    if stream.write_all(bytes).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    }
}

/// Numbers that look random and are the same for a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.byte()).collect()
    }

    /// A connection's bytes, and of how many frames (or requests of HTTP/1.1) they are.
    fn connection(&mut self, door: Door) -> (Vec<u8>, u64) {
        if matches!(door, Door::Rest) && self.below(2) == 0 {
            return (self.request(), 1);
        }
        let mut bytes = PREFACE.to_vec();
        if self.below(8) == 0 {
            let place = self.below(PREFACE.len() as u64) as usize;
            bytes[place] = self.byte();
        }
        if self.below(8) != 0 {
            bytes.extend(Frame::settings(&[]).bytes());
        }
        let count = 1 + self.below(MOST);
        for position in 0..count {
            bytes.extend(self.frame(door, position));
        }
        if self.below(4) == 0 {
            bytes.truncate(bytes.len() - self.below(9) as usize);
        }
        (bytes, count + 1)
    }

    /// A frame with something wrong about it, most of the time.
    fn frame(&mut self, door: Door, position: u64) -> Vec<u8> {
        let stream = match self.below(4) {
            0 => 0,
            1 => self.next() as u32,
            _ => 2 * position as u32 + 1,
        };
        let head = door.head(stream);
        let frame = match self.below(8) {
            0 => head,
            1 => {
                let mut payload = head.payload;
                let place = self.below(payload.len() as u64) as usize;
                payload[place] = self.byte();
                Frame::of(kind::HEADERS, self.byte(), stream, payload)
            }
            2 => Frame::of(kind::DATA, self.byte(), stream, self.bytes(200)),
            3 => Frame::of(
                kind::WINDOW_UPDATE,
                0,
                stream,
                (self.next() as u32).to_be_bytes().into(),
            ),
            4 => Frame::settings(&[(self.below(8) as u16, self.next() as u32)]),
            5 => Frame::reset(stream),
            6 => Frame::of(kind::CONTINUATION, self.byte(), stream, self.bytes(100)),
            _ => Frame::of(self.byte(), self.byte(), stream, self.bytes(100)),
        };
        let mut bytes = frame.bytes();
        // One in sixteen lies about its length.
        if self.below(16) == 0 {
            bytes[self.below(3) as usize] = self.byte();
        }
        bytes
    }

    /// A request of HTTP/1.1 with something wrong about it.
    fn request(&mut self) -> Vec<u8> {
        let mut bytes = match self.below(6) {
            0 => b"POST /hooks/none HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n".to_vec(),
            1 => b"POST /hooks/none HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n".to_vec(),
            2 => b"POST /hooks/none HTTP/1.1\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n5\r\nx".to_vec(),
            3 => b"GET /healthz HTTP/9.9\r\nhost\r\n\r\n".to_vec(),
            4 => b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
            _ => return self.bytes(500),
        };
        for _ in 0..self.below(6) {
            let place = self.below(bytes.len() as u64) as usize;
            bytes[place] = self.byte();
        }
        bytes
    }
}
