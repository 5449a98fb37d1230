//! The body of a request: it arrives in time, and within the memory there is.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::capacity::Account;

/// How long, and how far, a body that nobody wants is read on.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 64 << 20;

/// The body of a request. One of HTTP/1.1 that is dropped before its end is read on for a while: a connection that
/// closes while the client still writes takes the answer away.
#[derive(Debug)]
pub struct Body {
    /// Taken when it is dropped.
    incoming: Option<Incoming>,
    /// Memory, and time until it is whole; none for one that may last.
    bounds: Option<Bounds>,
    lingers: bool,
}

#[derive(Debug)]
struct Bounds {
    account: Arc<Account>,
    patience: Duration,
    /// Begins when something is waited for.
    late: Option<Pin<Box<Sleep>>>,
}

/// Why a body does not arrive.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The client takes too long.
    #[error("the body did not arrive in time")]
    Late,
    /// The bodies of other requests fill the memory that there is for them.
    #[error("there is no memory for the body now")]
    NoRoom,
    /// The client has left, or does not speak HTTP.
    #[error("the body ended early")]
    Broken(#[source] hyper::Error),
}

impl BodyError {
    /// The error of this kind among the causes of another.
    pub fn among<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

impl Body {
    /// A body that must be whole within a time, and is paid for.
    pub(crate) fn bounded(
        incoming: Incoming,
        lingers: bool,
        account: Arc<Account>,
        patience: Duration,
    ) -> Self {
        let bounds = Bounds {
            account,
            patience,
            late: None,
        };
        Self {
            incoming: Some(incoming),
            bounds: Some(bounds),
            lingers,
        }
    }

    /// A body that may last.
    pub(crate) fn lasting(incoming: Incoming, lingers: bool) -> Self {
        Self {
            incoming: Some(incoming),
            bounds: None,
            lingers,
        }
    }
}

impl Bounds {
    /// Ready when the client has had its time.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let patience = self.patience;
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        late.as_mut().poll(context)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Some(incoming) = &mut this.incoming else {
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(incoming).poll_frame(context) else {
            let Some(bounds) = &mut this.bounds else {
                return Poll::Pending;
            };
            ready!(bounds.poll_late(context));
            return Poll::Ready(Some(Err(BodyError::Late)));
        };
        let frame = match frame {
            Some(Ok(frame)) => frame,
            end => {
                // Nothing is left to be read on.
                this.incoming = None;
                return Poll::Ready(end.map(|end| end.map_err(BodyError::Broken)));
            }
        };
        let length = frame.data_ref().map_or(0, Bytes::len);
        match &this.bounds {
            Some(bounds) if !bounds.account.take(length) => Poll::Ready(Some(Err(BodyError::NoRoom))),
            _ => Poll::Ready(Some(Ok(frame))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map(Incoming::size_hint)
            .unwrap_or_default()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let unread = self.incoming.take().filter(|incoming| !incoming.is_end_stream());
        if let (true, Some(unread), Ok(runtime)) = (self.lingers, unread, Handle::try_current()) {
            runtime.spawn(linger(unread));
        }
    }
}

/// Reads on and throws away.
async fn linger(mut body: Incoming) {
    let mut left = LINGER_BYTES;
    let discard = async {
        while let Some(Ok(frame)) =
            std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // A client that takes longer has had its chance.
    let _late = tokio::time::timeout(LINGER, discard).await;
}
