//! Callers of webhooks, and the ledger of what they sent and what was answered.
//!
//! A caller is as careful as the documentation asks: it gives each call an id, waits as long as it is told to, and sends
//! the call again under the same id until it is acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::wire::{Answer, Connection, request};
use test_support::{PATIENCE, text, workload};
use tokio::sync::watch;

/// What a caller does besides the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Leave,
    /// Answers what the run's second node asks.
    Respond,
    /// Has the run, which ends at once, do it all again.
    Rerun,
}

/// Where calls go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The webhook's id.
    pub(crate) id: String,
    pub(crate) then: Then,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Its `webhook-id`.
    pub(crate) id: String,
    pub(crate) hook: Hook,
    /// The runs it was acknowledged with, each time that it was.
    pub(crate) acknowledged: Vec<String>,
}

/// Calls to be made over and over until each is acknowledged.
#[derive(Clone)]
pub(crate) struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    /// Key of the API, for what callers do besides.
    key: String,
    hooks: Vec<Hook>,
    /// How many calls are to be made in all.
    limit: AtomicUsize,
    next: AtomicUsize,
    calls: Mutex<Vec<Call>>,
    acknowledged: watch::Sender<usize>,
    /// Answers 429 and 503 that say when to come again.
    refused: watch::Sender<usize>,
    /// Exchanges that broke off.
    broken: Mutex<Vec<String>>,
    /// Answers that nobody may get.
    wrong: Mutex<Vec<String>>,
}

/// Callers at work.
pub(crate) struct Load {
    ledger: Ledger,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Waits until all calls are made.
    pub(crate) async fn finish(self) {
        let joined = tokio::task::spawn_blocking(move || {
            for caller in self.callers {
                caller.join().expect("a caller panicked");
            }
        });
        joined.await.unwrap();
    }

    /// Makes no further calls, and waits for those that are under way.
    pub(crate) async fn stop(self) {
        let shared = &self.ledger.shared;
        shared
            .limit
            .store(shared.next.load(Ordering::SeqCst), Ordering::SeqCst);
        self.finish().await;
    }
}

impl Ledger {
    pub(crate) fn new(key: &str, hooks: Vec<Hook>) -> Self {
        Self {
            shared: Arc::new(Shared {
                key: key.to_owned(),
                hooks,
                limit: AtomicUsize::new(0),
                next: AtomicUsize::new(0),
                calls: Mutex::default(),
                acknowledged: watch::Sender::new(0),
                refused: watch::Sender::new(0),
                broken: Mutex::default(),
                wrong: Mutex::default(),
            }),
        }
    }

    /// Makes so many calls over many connections, in turn to each of the hooks. Connections are spread over the doors.
    pub(crate) fn send(&self, calls: usize, connections: usize, doors: &[SocketAddr]) -> Load {
        self.shared
            .limit
            .store(self.shared.next.load(Ordering::SeqCst) + calls, Ordering::SeqCst);
        self.callers(connections, doors)
    }

    /// As `send`, until the load is stopped.
    pub(crate) fn send_on_and_on(&self, connections: usize, doors: &[SocketAddr]) -> Load {
        self.shared.limit.store(usize::MAX, Ordering::SeqCst);
        self.callers(connections, doors)
    }

    fn callers(&self, connections: usize, doors: &[SocketAddr]) -> Load {
        let caller = |number| {
            let (shared, doors) = (Arc::clone(&self.shared), doors.to_vec());
            std::thread::spawn(move || Caller::new(shared, doors, number).work())
        };
        Load {
            ledger: self.clone(),
            callers: (0..connections).map(caller).collect(),
        }
    }

    /// Sends each call once more under its id.
    pub(crate) async fn send_again(&self, connections: usize, doors: &[SocketAddr]) {
        let next = Arc::new(AtomicUsize::new(0));
        let caller = |number| {
            let (shared, doors, next) = (Arc::clone(&self.shared), doors.to_vec(), Arc::clone(&next));
            std::thread::spawn(move || {
                let mut caller = Caller::new(shared, doors, number);
                while let Some(call) = caller.shared.call(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = caller.deliver(&call);
                    caller.shared.acknowledge(&call, run);
                }
            })
        };
        let load = Load {
            ledger: self.clone(),
            callers: (0..connections).map(caller).collect(),
        };
        load.finish().await;
    }

    /// Waits until so many calls have been acknowledged.
    pub(crate) async fn acknowledged(&self, number: usize) {
        self.shared.reached(&self.shared.acknowledged, number).await;
    }

    /// How many calls have been acknowledged.
    pub(crate) fn acknowledged_now(&self) -> usize {
        *self.shared.acknowledged.borrow()
    }

    /// Waits until callers have been told to come again so many times more.
    pub(crate) async fn refused_again(&self, number: usize) {
        let so_far = *self.shared.refused.borrow();
        self.shared.reached(&self.shared.refused, so_far + number).await;
    }

    /// How often callers were told to come again.
    pub(crate) fn refused(&self) -> usize {
        *self.shared.refused.borrow()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        lock(&self.shared.calls).clone()
    }

    pub(crate) fn broken(&self) -> Vec<String> {
        lock(&self.shared.broken).clone()
    }

    pub(crate) fn wrong(&self) -> Vec<String> {
        lock(&self.shared.wrong).clone()
    }
}

impl Shared {
    async fn reached(&self, count: &watch::Sender<usize>, number: usize) {
        let mut count = count.subscribe();
        let waited = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count >= number));
        let is_reached = waited.await.is_ok();
        assert!(
            is_reached,
            "{} of {number} after {PATIENCE:?}; broken: {:?}, wrong: {:?}",
            *count.borrow(),
            lock(&self.broken).last(),
            lock(&self.wrong),
        );
    }

    fn call(&self, number: usize) -> Option<Call> {
        lock(&self.calls).get(number).cloned()
    }

    fn acknowledge(&self, call: &Call, run: String) {
        let mut calls = lock(&self.calls);
        if let Some(known) = calls.iter_mut().find(|known| known.id == call.id) {
            known.acknowledged.push(run);
        }
    }
}

/// One connection after the other, one call after the other.
struct Caller {
    shared: Arc<Shared>,
    doors: Vec<SocketAddr>,
    /// The door in use.
    door: usize,
    connection: Option<Connection>,
}

/// Before a call that broke off is sent again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a call may be sent again and again.
const STUBBORNNESS: Duration = Duration::from_secs(120);

impl Caller {
    fn new(shared: Arc<Shared>, doors: Vec<SocketAddr>, number: usize) -> Self {
        Self {
            shared,
            doors,
            door: number,
            connection: None,
        }
    }

    fn work(mut self) {
        loop {
            let number = self.shared.next.fetch_add(1, Ordering::SeqCst);
            if number >= self.shared.limit.load(Ordering::SeqCst) {
                return;
            }
            let call = Call {
                id: format!("call-{number}"),
                hook: self.shared.hooks[number % self.shared.hooks.len()].clone(),
                acknowledged: Vec::new(),
            };
            // Entered before it is sent, so that nothing is sent that the ledger does not know.
            lock(&self.shared.calls).push(call.clone());
            let run = self.deliver(&call);
            self.shared.acknowledge(&call, run.clone());
            self.shared.acknowledged.send_modify(|count| *count += 1);
            match call.hook.then {
                Then::Leave => {}
                Then::Respond => self.respond(&call, &run),
                Then::Rerun => self.rerun(&run),
            }
        }
    }

    /// Makes a call until it is acknowledged, and gives the run.
    fn deliver(&mut self, call: &Call) -> String {
        let path = format!("/hooks/{}", call.hook.id);
        let request = request("POST", &path, &[("webhook-id", &call.id)], &workload::body());
        self.insist(&call.id, &request, |answer| match answer.status {
            202 => Reaction::Done(text(&data(answer)["runId"])),
            _ => Reaction::Wrong,
        })
    }

    /// Answers the node that asks, once it does.
    fn respond(&mut self, call: &Call, run: &str) {
        let path = format!("/api/v1/runs/{run}/nodes/2/respond");
        let body = json!({ "response": { "value": call.id } }).to_string();
        let request = self.authorized("POST", &path, &body);
        self.insist(&call.id, &request, |answer| match answer.status {
            // An answer that broke off may have been taken (409); whose it was is seen in the run.
            200 | 409 => Reaction::Done(()),
            // The node does not ask yet.
            404 => Reaction::NotYet,
            _ => Reaction::Wrong,
        });
    }

    /// Has a run start again, unless it has.
    fn rerun(&mut self, run: &str) {
        let read = self.authorized("GET", &format!("/api/v1/runs/{run}"), "");
        let again = self.authorized("POST", &format!("/api/v1/runs/{run}/rerun"), "");
        // A rerun that broke off may have been done, so it is looked at before it is asked for again.
        while self.insist(run, &read, attempt) == 1 {
            if let Err(error) = self.once(&again) {
                self.broke_off(run, &error);
            }
        }
    }

    fn authorized(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let token = format!("Bearer {}", self.shared.key);
        request(method, path, &[("authorization", &token)], body)
    }

    /// Sends a request until its answer is what was wanted.
    fn insist<T>(&mut self, name: &str, request: &[u8], react: impl Fn(&Answer) -> Reaction<T>) -> T {
        let began = Instant::now();
        loop {
            match self.once(request) {
                Ok(answer) => match (told_to_wait(&answer), react(&answer)) {
                    (_, Reaction::Done(done)) => return done,
                    (Some(pause), _) => {
                        self.shared.refused.send_modify(|count| *count += 1);
                        std::thread::sleep(pause);
                    }
                    (None, Reaction::NotYet) => std::thread::sleep(PAUSE),
                    (None, Reaction::Wrong) => {
                        let body = String::from_utf8_lossy(&answer.body);
                        lock(&self.shared.wrong).push(format!("{name}: {} {body}", answer.status));
                        std::thread::sleep(PAUSE);
                    }
                },
                Err(error) => self.broke_off(name, &error),
            }
            assert!(
                began.elapsed() < STUBBORNNESS,
                "{name} is not answered; broken: {:?}, wrong: {:?}",
                lock(&self.shared.broken).last(),
                lock(&self.shared.wrong)
            );
        }
    }

    /// Tries the next door.
    fn broke_off(&mut self, name: &str, error: &std::io::Error) {
        let door = self.doors[self.door % self.doors.len()];
        lock(&self.shared.broken).push(format!("{name} at {door}: {error}"));
        self.door += 1;
        std::thread::sleep(PAUSE);
    }

    fn once(&mut self, request: &[u8]) -> std::io::Result<Answer> {
        let door = self.doors[self.door % self.doors.len()];
        let mut connection = match self.connection.take() {
            Some(connection) if connection.is_open()? => connection,
            _ => Connection::open(door)?,
        };
        let answer = connection.exchange(request)?;
        // A server that stops says that the connection is at its end.
        let closes = answer.header("connection").is_some_and(|value| value == "close");
        self.connection = (!closes).then_some(connection);
        Ok(answer)
    }
}

/// What to make of an answer.
enum Reaction<T> {
    /// It is the last one.
    Done(T),
    /// It may be another one soon.
    NotYet,
    /// Nobody may get it.
    Wrong,
}

/// How long a refusal says that its caller should wait.
fn told_to_wait(answer: &Answer) -> Option<Duration> {
    let seconds = answer.header("retry-after")?.parse().ok()?;
    matches!(answer.status, 429 | 503).then_some(Duration::from_secs(seconds))
}

fn attempt(answer: &Answer) -> Reaction<i64> {
    match data(answer)["attemptNumber"].as_i64() {
        Some(attempt) => Reaction::Done(attempt),
        None => Reaction::Wrong,
    }
}

fn data(answer: &Answer) -> Value {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body["data"].clone()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
