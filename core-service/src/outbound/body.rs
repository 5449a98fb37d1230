//! The body of a response: read up to its limit, whatever its encoding grows it to.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::memory::{Account, Memory};
use super::{MAX_BODY_BYTES, OutboundError, Response};

/// Reads the rest of a response into what is left of the memory. `host` is who sends it.
pub(super) async fn read(
    response: http::Response<Incoming>,
    host: &str,
    memory: &Memory,
) -> Result<Response, OutboundError> {
    let (mut head, mut body) = response.into_parts();
    let is_gzip = is_gzip(&head.headers);
    let mut sink = match is_gzip {
        true => Sink::gzip(memory.account()),
        false => Sink::Plain(Capped::new(memory.account())),
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| OutboundError::Unreachable {
            host: host.to_owned(),
            why: "the connection broke while it answered".to_owned(),
        })?;
        if let Some(bytes) = frame.data_ref() {
            sink.write(bytes, host)?;
        }
    }
    if is_gzip {
        head.headers.remove(CONTENT_ENCODING);
        head.headers.remove(CONTENT_LENGTH);
    }
    Ok(Response {
        status: head.status,
        headers: head.headers,
        body: sink.finish(host)?,
    })
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map(|value| value.as_bytes().trim_ascii());
    encoding.is_some_and(|encoding| {
        encoding.eq_ignore_ascii_case(b"gzip") || encoding.eq_ignore_ascii_case(b"x-gzip")
    })
}

/// Where the bytes of a body go.
enum Sink {
    Plain(Capped),
    Gzip {
        decoder: Box<MultiGzDecoder<Capped>>,
        /// An answer without a body has no gzip header either.
        is_empty: bool,
    },
}

/// Bytes up to the limit.
struct Capped {
    bytes: Vec<u8>,
    account: Account,
    end: Option<End>,
}

/// Why no further bytes are taken.
#[derive(Debug, Clone, Copy)]
enum End {
    TooLarge,
    NoRoom,
}

impl Capped {
    fn new(account: Account) -> Self {
        Self {
            bytes: Vec::new(),
            account,
            end: None,
        }
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_BODY_BYTES {
            self.end = Some(End::TooLarge);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if !self.account.take(bytes.len()) {
            self.end = Some(End::NoRoom);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn gzip(account: Account) -> Self {
        Self::Gzip {
            decoder: Box::new(MultiGzDecoder::new(Capped::new(account))),
            is_empty: true,
        }
    }

    fn write(&mut self, bytes: &[u8], host: &str) -> Result<(), OutboundError> {
        let written = match self {
            Self::Plain(capped) => capped.write_all(bytes),
            Self::Gzip { decoder, is_empty } => {
                *is_empty &= bytes.is_empty();
                decoder.write_all(bytes)
            }
        };
        written.map_err(|_| self.refusal(host))
    }

    fn finish(mut self, host: &str) -> Result<Bytes, OutboundError> {
        if let Self::Gzip {
            decoder,
            is_empty: false,
        } = &mut self
            && decoder.try_finish().is_err()
        {
            return Err(self.refusal(host));
        }
        Ok(std::mem::take(&mut self.capped().bytes).into())
    }

    fn capped(&mut self) -> &mut Capped {
        match self {
            Self::Plain(capped) => capped,
            Self::Gzip { decoder, .. } => decoder.get_mut(),
        }
    }

    fn refusal(&mut self, host: &str) -> OutboundError {
        match self.capped().end {
            Some(End::TooLarge) => OutboundError::TooLarge,
            Some(End::NoRoom) => OutboundError::NoRoom,
            None => OutboundError::BadAnswer {
                host: host.to_owned(),
                why: "its gzip encoding is damaged".to_owned(),
            },
        }
    }
}
