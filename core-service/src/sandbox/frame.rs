//! Frames between the two sides: a length in four bytes, then that many bytes.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a frame's length.
const HEAD: usize = 4;

/// A frame around a JSON value.
pub(super) fn of(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEAD];
    serde_json::to_writer(&mut frame, value)?;
    let length = u32::try_from(frame.len() - HEAD).map_err(io::Error::other)?;
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Writes a frame around a JSON value.
pub(super) fn write(to: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    to.write_all(&of(value)?)?;
    to.flush()
}

/// Reads the bytes of the next frame.
pub(super) fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let mut bytes = vec![0; length(head)];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads the bytes of the next frame, which has at most `most`.
pub(super) async fn receive(from: &mut (impl AsyncRead + Unpin), most: usize) -> io::Result<Vec<u8>> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).await?;
    let length = length(head);
    if length > most {
        return Err(io::Error::other("the worker sent more than it may"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn length(head: [u8; HEAD]) -> usize {
    u32::from_le_bytes(head) as usize
}
