//! A stream of messages as Server-Sent Events.

use std::convert::Infallible;

use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use server::Closing;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::FacadeConfig;
use crate::transcode::{AnswerError, OutgoingEvent};

/// Events that wait for a slow reader before the core waits.
const BUFFER: usize = 16;

/// The answer that carries a stream until it ends, its reader leaves, or the server closes.
pub(crate) fn response(
    stream: Streaming<Bytes>,
    write: fn(Bytes) -> Result<Option<OutgoingEvent>, AnswerError>,
    parts: &Parts,
    config: &FacadeConfig,
) -> Response {
    let closing = parts.extensions.get::<Closing>().cloned().unwrap_or_default();
    let (sender, receiver) = mpsc::channel(BUFFER);
    tokio::spawn(async move {
        tokio::select! {
            () = forward(stream, write, &sender) => {}
            () = sender.closed() => {}
            () = closing.wait() => {}
        }
    });
    let keep_alive = KeepAlive::new().interval(config.event_keep_alive);
    let mut response = Sse::new(ReceiverStream::new(receiver))
        .keep_alive(keep_alive)
        .into_response();
    // Proxies that buffer would hold events back.
    response
        .headers_mut()
        .insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    response
}

/// Hands on events until the stream ends. After a failure it just ends too: the reader comes back with the id of the
/// last event it has, and misses nothing.
async fn forward(
    mut stream: Streaming<Bytes>,
    write: fn(Bytes) -> Result<Option<OutgoingEvent>, AnswerError>,
    sender: &mpsc::Sender<Result<Event, Infallible>>,
) {
    loop {
        let event = match stream.message().await {
            Ok(Some(message)) => write(message),
            Ok(None) => return,
            Err(status) => {
                tracing::warn!(code = ?status.code(), message = status.message(), "an event stream broke");
                return;
            }
        };
        let event = match event {
            Ok(Some(event)) => sse_event(event),
            Ok(None) => continue,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "an event cannot be given on"
                );
                return;
            }
        };
        if sender.send(Ok(event)).await.is_err() {
            return;
        }
    }
}

/// The event's fields, without what would break out of a line.
fn sse_event(event: OutgoingEvent) -> Event {
    let id = event.id.replace(char::is_control, "");
    Event::default().id(id).event(event.name).data(event.json)
}
