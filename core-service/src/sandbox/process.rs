//! Workers as this process sees them: started, spoken to, killed.
//!
//! One thread starts all of them and waits for those that end. It lives as long as anybody can use a worker: the kernel
//! kills a worker when the thread that started it is gone, so none outlives this process, whatever way that ends.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::message::{Answer, Failure, Hello, MAX_ANSWER};
use super::{frame, worker};

/// How long a worker may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Most bytes of a worker's first word.
const MAX_HELLO: usize = 64 << 10;

/// Asks the thread that keeps workers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    orders: mpsc::Sender<Order>,
}

enum Order {
    Start(oneshot::Sender<io::Result<(Child, Socket)>>),
    /// Wait for one that is ending.
    Bury(Child, Option<oneshot::Sender<ExitStatus>>),
}

/// A worker. It is killed when it is dropped.
pub(super) struct Worker {
    child: Option<Child>,
    socket: UnixStream,
    keeper: Keeper,
    /// How long it has been running calls.
    pub(super) busy: Duration,
}

impl Keeper {
    pub(super) fn new(program: PathBuf) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("sandbox".to_owned())
            .spawn(move || {
                for order in inbox {
                    match order {
                        Order::Start(reply) => {
                            // Whoever asked may have gone; a worker without a parent's end of its socket ends.
                            let _gone = reply.send(start(&program));
                        }
                        Order::Bury(mut child, reply) => {
                            let ended = child.wait();
                            if let (Ok(status), Some(reply)) = (ended, reply) {
                                let _gone = reply.send(status);
                            }
                        }
                    }
                }
            })?;
        Ok(Self { orders })
    }

    /// Starts a worker and waits until it is ready. Gives also what of its confinement the kernel does not have.
    pub(super) async fn start(&self) -> io::Result<(Worker, Vec<String>)> {
        let (reply, started) = oneshot::channel();
        let gone = || io::Error::other("the sandbox's thread has ended");
        self.orders.send(Order::Start(reply)).map_err(|_| gone())?;
        let (child, socket) = started.await.map_err(|_| gone())??;
        let mut worker = Worker {
            child: Some(child),
            socket: UnixStream::from_std(socket)?,
            keeper: self.clone(),
            busy: Duration::ZERO,
        };
        let hello = timeout(READY_WITHIN, frame::receive(&mut worker.socket, MAX_HELLO)).await;
        let hello: Hello = serde_json::from_slice(&hello.map_err(io::Error::other)??)?;
        Ok((worker, hello.missing))
    }
}

fn start(program: &PathBuf) -> io::Result<(Child, Socket)> {
    let (ours, theirs) = Socket::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(program)
        // What lists of processes show.
        .arg0("switchyard")
        .arg(worker::COMMAND)
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(theirs.try_clone()?))
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        // What a terminal sends to the server is not for its workers.
        .process_group(0)
        .spawn()?;
    Ok((child, ours))
}

impl Worker {
    /// Whether it has not ended while it was resting.
    pub(super) fn is_alive(&mut self) -> bool {
        let ended = self.child.as_mut().map(Child::try_wait);
        matches!(ended, Some(Ok(None)))
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends a request.
    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.write_all(frame).await
    }

    /// Waits for the next answer.
    pub(super) async fn answer(&mut self) -> io::Result<Answer<Box<RawValue>>> {
        let bytes = frame::receive(&mut self.socket, MAX_ANSWER).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Why a worker ended that was running a call.
    pub(super) async fn cause_of_death(mut self, limit_ms: u64) -> Failure {
        let Some(mut child) = self.child.take() else {
            return crashed();
        };
        // It has ended, or it will not be listened to any more.
        let _ended = child.kill();
        let (reply, status) = oneshot::channel();
        let ordered = self.keeper.orders.send(Order::Bury(child, Some(reply)));
        let signal = match ordered {
            Ok(()) => status.await.ok().and_then(|status| status.signal()),
            Err(_) => None,
        };
        match signal {
            Some(libc::SIGXCPU) => Failure::timeout(limit_ms),
            // Without memory an allocation aborts; a machine without memory kills.
            Some(libc::SIGABRT | libc::SIGKILL) => Failure::memory(),
            _ => crashed(),
        }
    }
}

fn crashed() -> Failure {
    Failure::error("the code made the JavaScript engine fail")
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ended = child.kill();
            let _thread_gone = self.keeper.orders.send(Order::Bury(child, None));
        }
    }
}
