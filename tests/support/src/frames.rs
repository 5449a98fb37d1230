//! HTTP/2 by the frame, for clients that do not keep to it: what is sent is up to the test, and so is what is answered.
//!
//! Absent on purpose: states, windows, and reading heads, which a real client is for.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How a client begins.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames.
pub mod kind {
    /// A part of a body.
    pub const DATA: u8 = 0;
    /// A head, or its first part.
    pub const HEADERS: u8 = 1;
    /// The end of a stream before its time.
    pub const RST_STREAM: u8 = 3;
    /// What one side asks of the other.
    pub const SETTINGS: u8 = 4;
    /// Is anybody there?
    pub const PING: u8 = 6;
    /// The end of a connection.
    pub const GOAWAY: u8 = 7;
    /// How much more may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// A further part of a head.
    pub const CONTINUATION: u8 = 9;
}

/// The last frame of a stream.
pub const END_STREAM: u8 = 1;
/// An answer to the same kind of frame.
pub const ACK: u8 = 1;
/// The last part of a head.
pub const END_HEADERS: u8 = 4;

/// How many streams there may be: a setting.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
/// How much of each stream may be sent before a window update: a setting.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The stream was not looked at: a code.
pub const REFUSED_STREAM: u32 = 7;
/// The client does not want it any more: a code.
pub const CANCEL: u32 = 8;
/// The client is too much: a code.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// See [`kind`].
    pub kind: u8,
    /// Flags of the kind.
    pub flags: u8,
    /// Which stream; 0 for the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Settings.
    #[must_use]
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        Self::of(kind::SETTINGS, 0, 0, payload)
    }

    /// A head that fits into one frame.
    #[must_use]
    pub fn headers(stream: u32, headers: &[(&str, &str)]) -> Self {
        Self::of(kind::HEADERS, END_HEADERS, stream, header_block(headers))
    }

    /// A part of a body.
    #[must_use]
    pub fn data(stream: u32, bytes: &[u8]) -> Self {
        Self::of(kind::DATA, 0, stream, bytes.to_vec())
    }

    /// A stream that is given up.
    #[must_use]
    pub fn reset(stream: u32) -> Self {
        Self::of(kind::RST_STREAM, 0, stream, CANCEL.to_be_bytes().to_vec())
    }

    /// A question whether anybody is there.
    #[must_use]
    pub fn ping() -> Self {
        Self::of(kind::PING, 0, 0, vec![0; 8])
    }

    /// Any frame.
    #[must_use]
    pub fn of(kind: u8, flags: u8, stream: u32, payload: Vec<u8>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload,
        }
    }

    /// With further flags.
    #[must_use]
    pub fn with(mut self, flags: u8) -> Self {
        self.flags |= flags;
        self
    }

    /// The frame as it travels.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        let mut bytes = Vec::with_capacity(9 + self.payload.len());
        bytes.extend(&length[1..]);
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// The number at this place of the payload.
    #[must_use]
    pub fn number(&self, place: usize) -> Option<u32> {
        let bytes = self.payload.get(place..place + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The value of a setting that the frame names.
    #[must_use]
    pub fn setting(&self, name: u16) -> Option<u32> {
        let settings = self.payload.chunks_exact(6);
        let value = settings
            .rev()
            .find(|setting| setting[..2] == name.to_be_bytes())?;
        Some(u32::from_be_bytes(value[2..].try_into().ok()?))
    }
}

/// A request's head, as HPACK without any compression.
#[must_use]
pub fn header_block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            push_length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A number in HPACK's form, behind one bit.
fn push_length(block: &mut Vec<u8>, length: usize) {
    const MOST: usize = 127;
    let Some(mut rest) = length.checked_sub(MOST) else {
        block.push(length.to_le_bytes()[0]);
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push(rest.to_le_bytes()[0] | 128);
        rest >>= 7;
    }
    block.push(rest.to_le_bytes()[0]);
}

/// A connection that sends what it is told, and answers nothing by itself.
#[derive(Debug)]
pub struct FrameConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl FrameConnection {
    /// Connects, and says that HTTP/2 comes, with these settings.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn open(address: SocketAddr, settings: &[(u16, u32)]) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream,
            buffer: Vec::new(),
        };
        let mut beginning = PREFACE.to_vec();
        beginning.extend(Frame::settings(settings).bytes());
        connection.stream.write_all(&beginning).await?;
        Ok(connection)
    }

    /// Sends frames, all at once.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.stream.write_all(&bytes).await
    }

    /// The next frame that the server sends; none when the connection has ended.
    pub async fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.buffered() {
                return Some(frame);
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// The next frame of this kind; none when the connection ends before.
    pub async fn receive_kind(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.receive().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    fn buffered(&mut self) -> Option<Frame> {
        let head: [u8; 9] = self.buffer.get(..9)?.try_into().ok()?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = self.buffer.get(9..9 + length)?.to_vec();
        self.buffer.drain(..9 + length);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1);
        Some(Frame::of(head[3], head[4], stream, payload))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn lengths_are_those_of_hpack() {
        let length = |number| {
            let mut block = Vec::new();
            push_length(&mut block, number);
            block
        };
        assert_eq!(length(10), [10]);
        assert_eq!(length(127), [127, 0]);
        assert_eq!(length(1337), [127, 186, 9]);
    }

    #[test]
    fn settings_are_found_by_name() {
        let frame = Frame::settings(&[(MAX_CONCURRENT_STREAMS, 2), (INITIAL_WINDOW_SIZE, 70_000)]);
        assert_eq!(frame.setting(INITIAL_WINDOW_SIZE), Some(70_000));
        assert_eq!(frame.setting(1), None);
        assert_eq!(frame.bytes()[..9], [0, 0, 12, kind::SETTINGS, 0, 0, 0, 0, 0]);
    }
}
