//! HTTP/1.1 as tests and benchmarks need it: a connection that is kept, whole requests out, whole answers in.
//!
//! So small because a load generator must cost little, and a test must see exactly when a connection breaks. Absent on
//! purpose: chunks, redirects, TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request in the form in which it travels.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    use std::fmt::Write as _;
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
    for (name, value) in headers {
        let _infallible = write!(text, "{name}: {value}\r\n");
    }
    if !body.is_empty() {
        let _infallible = write!(
            text,
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// Body; empty when there is none.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's text, if the answer has it.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.split("\r\n").filter_map(|line| line.split_once(':'));
        let (_, value) = headers.find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// Where an answer stands in what has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// HTTP status.
    pub status: u16,
    /// Seconds to wait before the next try, if it says so.
    pub retry_after: Option<u64>,
    /// The bytes of the body; the answer ends with them.
    pub body: Range<usize>,
}

/// The answer that the bytes begin with; none when more has to be read.
///
/// # Errors
/// When the bytes are no answer of the kind that this module reads.
pub fn whole_answer(bytes: &[u8]) -> io::Result<Option<Whole>> {
    let Some(head_length) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..head_length]).map_err(|_| unreadable("its head is not text"))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| unreadable("it has no status"))?;
    let (mut length, mut retry_after) = (0, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value
                .trim()
                .parse()
                .map_err(|_| unreadable("its length is no number"))?;
        } else if name.eq_ignore_ascii_case("retry-after") {
            retry_after = value.trim().parse().ok();
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(unreadable("it comes in chunks"));
        }
    }
    let start = head_length + 4;
    let body = start..start + length;
    Ok((bytes.len() >= body.end).then_some(Whole {
        status,
        retry_after,
        body,
    }))
}

fn unreadable(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the answer cannot be read: {why}"),
    )
}

/// A connection that blocks.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Whether the server has left it open, as far as is known: one that is kept for long may have been closed.
    ///
    /// # Errors
    /// When the operating system cannot tell.
    pub fn is_open(&self) -> io::Result<bool> {
        self.stream.set_nonblocking(true)?;
        let next = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(next.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When the connection breaks or the answer is late or cannot be read.
    pub fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request)?;
        let mut chunk = [0_u8; 16 * 1024];
        loop {
            if let Some(Whole { status, body, .. }) = whole_answer(&self.buffer)? {
                let answer = Answer {
                    status,
                    head: String::from_utf8_lossy(&self.buffer[..body.start]).into_owned(),
                    body: self.buffer[body.clone()].to_vec(),
                };
                self.buffer.drain(..body.end);
                return Ok(answer);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_there() {
        let bytes = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nabcHTTP";
        for end in 0..bytes.len() - 4 {
            assert_eq!(whole_answer(&bytes[..end]).unwrap(), None);
        }
        let whole = whole_answer(bytes).unwrap().unwrap();
        assert_eq!((whole.status, &bytes[whole.body]), (202, b"abc".as_slice()));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        assert!(whole_answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(whole_answer(b"nonsense\r\n\r\n").is_err());
    }
}
