//! The body of an answer, in pieces that a slow client cannot make the process keep.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::capacity::Place;
use crate::pulse::InFlight;
use crate::stall::Mark;

/// Most bytes that are handed to the connection at once; what was handed over waits there without an end.
const PIECE: usize = 16 * 1024;

/// The body of an answer; its request is in flight until it has been handed over.
pub(crate) struct Answer<B> {
    body: B,
    /// What the body has given and is still to be handed over.
    rest: Bytes,
    mark: Option<Mark>,
    _place: Option<Place>,
    _in_flight: InFlight,
}

impl<B> Answer<B> {
    pub(crate) fn new(body: B, place: Option<Place>, in_flight: InFlight) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            mark: Mark::current(),
            _place: place,
            _in_flight: in_flight,
        }
    }

    /// The next piece of what the body has given.
    fn piece(&mut self) -> Frame<Bytes> {
        Frame::data(self.rest.split_to(self.rest.len().min(PIECE)))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        if let Some(mark) = &this.mark {
            mark.taken();
        }
        let frame = if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.rest = data;
                        this.piece()
                    }
                    Err(trailers) => trailers,
                },
                end => return Poll::Ready(end),
            }
        } else {
            this.piece()
        };
        if let Some(mark) = &this.mark {
            mark.given();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
