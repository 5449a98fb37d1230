//! A connection of which only so much can be read.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that breaks once more has come of it than a call may read: no server can fill the memory, whatever its
/// protocol lets it announce.
pub struct Bounded<S> {
    stream: S,
    budget: Budget,
}

/// How much may still be read. Clones are the same budget.
#[derive(Clone)]
pub struct Budget {
    most: u64,
    read: Arc<AtomicU64>,
}

impl Budget {
    /// So many bytes.
    pub fn new(most: u64) -> Self {
        Self {
            most,
            read: Arc::default(),
        }
    }

    /// Whether more came than that.
    pub fn is_exceeded(&self) -> bool {
        self.read.load(Relaxed) > self.most
    }

    /// What to say then.
    pub fn failure(&self) -> super::Failure {
        super::Failure::TooLarge(format!(
            "the server's answer is larger than {} MiB",
            self.most / (1024 * 1024)
        ))
    }
}

impl<S> Bounded<S> {
    /// Lets so much be read of a stream.
    pub fn new(stream: S, budget: Budget) -> Self {
        Self { stream, budget }
    }
}

impl<S> fmt::Debug for Bounded<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a connection")
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = u64::try_from(buffer.filled().len() - before).unwrap_or(u64::MAX);
        self.budget.read.fetch_add(read, Relaxed);
        Poll::Ready(match self.budget.is_exceeded() {
            true => Err(io::Error::other("the answer is too large")),
            false => Ok(()),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
