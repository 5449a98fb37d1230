//! Workers as this process sees them: started, spoken to, killed.
//!
//! One thread starts all of them and waits for those that end. It lives as long as anybody can use a worker: the kernel
//! kills a worker when the thread that started it is gone, so none outlives this process, whatever way that ends.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use engine::event::LogLine;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::message::{Answer, Failure, Hello, MAX_SAID, Said};
use super::{frame, worker};

/// How long a worker may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Most bytes of a worker's first word.
const MAX_HELLO: usize = 64 << 10;
/// Most bytes of its last ones.
const MAX_LAST_WORDS: u64 = 4 << 10;

/// Asks the thread that keeps workers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    orders: mpsc::Sender<Order>,
}

enum Order {
    Start(oneshot::Sender<io::Result<(Child, Socket)>>),
    /// Wait for one that is ending.
    Bury(Child, Option<oneshot::Sender<Death>>),
}

/// How a worker ended.
struct Death {
    status: ExitStatus,
    /// What its runtime or its JavaScript engine said of it; the code it ran cannot.
    last_words: String,
}

/// A worker. It is killed when it is dropped.
pub(super) struct Worker {
    child: Option<Child>,
    /// Buffered, because a frame is read in two parts.
    socket: BufReader<UnixStream>,
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
                                let last_words = last_words(&mut child);
                                let _gone = reply.send(Death { status, last_words });
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
            socket: BufReader::new(UnixStream::from_std(socket)?),
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
        .stderr(Stdio::piped())
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

    /// Waits for the next answer; what the call writes until then is heard as it comes.
    pub(super) async fn answer(
        &mut self,
        hear: &mut (dyn FnMut(LogLine) + Send),
    ) -> io::Result<Answer<Box<RawValue>>> {
        let mut room = MAX_SAID;
        loop {
            let bytes = frame::receive(&mut self.socket, room).await?;
            room -= bytes.len();
            match serde_json::from_slice(&bytes)? {
                Said::Wrote(line) => hear(line),
                Said::Ended(answer) => return Ok(answer),
            }
        }
    }

    /// Why a worker cannot be spoken to any more that was running a call.
    pub(super) async fn cause_of_death(mut self, error: &io::Error, limit_ms: u64) -> Failure {
        let has_ended = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        );
        let Some(child) = self.child.take_if(|_| has_ended) else {
            tracing::error!(%error, "a process for user code does not keep to the protocol and is killed");
            return Failure::crashed();
        };
        let (reply, death) = oneshot::channel();
        let _thread_gone = self.keeper.orders.send(Order::Bury(child, Some(reply)));
        match death.await {
            Ok(death) => death.failure(limit_ms),
            Err(_) => Failure::crashed(),
        }
    }
}

impl Death {
    /// What it means for the call that ran.
    fn failure(&self, limit_ms: u64) -> Failure {
        let last_words = self.last_words.trim_end();
        match self.status.signal() {
            Some(libc::SIGXCPU) => Failure::timeout(limit_ms),
            // Nobody here killed it.
            Some(libc::SIGKILL) => {
                tracing::warn!("a process for user code was killed from outside");
                Failure::killed()
            }
            // What Rust says before it aborts for want of memory.
            Some(libc::SIGABRT) if last_words.starts_with("memory allocation of ") => Failure::memory(),
            _ => {
                tracing::error!(status = %self.status, last_words, "a process for user code crashed");
                Failure::crashed()
            }
        }
    }
}

fn last_words(child: &mut Child) -> String {
    let mut words = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // Whatever could be read is all there is.
        let _partly = stderr.take(MAX_LAST_WORDS).read_to_end(&mut words);
    }
    String::from_utf8_lossy(&words).into_owned()
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ended = child.kill();
            let _thread_gone = self.keeper.orders.send(Order::Bury(child, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_has_the_cause_that_it_shows() {
        // A raw status is the signal, or the exit code in the byte above.
        let death = |status: i32, last_words: &str| Death {
            status: ExitStatus::from_raw(status),
            last_words: last_words.to_owned(),
        };
        for (death, expected) in [
            (death(libc::SIGXCPU, ""), Failure::timeout(5)),
            (death(libc::SIGKILL, ""), Failure::killed()),
            (
                death(libc::SIGABRT, "memory allocation of 64 bytes failed\n"),
                Failure::memory(),
            ),
            (
                death(libc::SIGABRT, "quickjs.c:1: f: Assertion `x' failed.\n"),
                Failure::crashed(),
            ),
            (death(libc::SIGSEGV, ""), Failure::crashed()),
            (death(1 << 8, ""), Failure::crashed()),
        ] {
            assert_eq!(death.failure(5), expected, "{}", death.status);
        }
    }
}
