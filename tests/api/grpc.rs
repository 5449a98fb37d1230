//! Calls over gRPC by path, with messages encoded: one function serves every method.

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use tokio_stream::Stream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// The first answer of the method at this path, called with this key.
pub(crate) async fn call(
    channel: Channel,
    path: &str,
    key: &str,
    message: Vec<u8>,
) -> Result<Vec<u8>, Status> {
    call_with(channel, path, key, tokio_stream::once(message)).await
}

/// As [`call`], with as many messages as come, whatever the method takes.
pub(crate) async fn call_with(
    channel: Channel,
    path: &str,
    key: &str,
    messages: impl Stream<Item = Vec<u8>> + Send + 'static,
) -> Result<Vec<u8>, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let mut request = Request::new(messages);
    let authorization = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", authorization);
    let path = PathAndQuery::try_from(path).unwrap();
    // A single answer is a stream of one.
    let answers = grpc.streaming(request, path, Bytes).await?;
    let first = answers.into_inner().message().await?;
    Ok(first.unwrap_or_default())
}

/// A codec that leaves messages encoded.
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}
