//! Calls to the core, with messages as bytes: one instance of the client's code serves every method.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use crate::core::{CoreService, never_sent};

/// Metadata key that asks for the checks before a method's handler, and not for the handler.
const AUTHORIZE_ONLY: &str = "x-switchyard-authorize-only";

/// A call that is about to be made.
pub(crate) struct Call<'a> {
    pub core: &'a CoreService,
    /// gRPC path of the method.
    pub rpc: &'static str,
    pub metadata: MetadataMap,
    /// How long the answer may take.
    pub timeout: Duration,
}

impl Call<'_> {
    /// Makes a call that has one answer.
    pub async fn unary(mut self, message: Bytes) -> Result<Response<Bytes>, Status> {
        let timeout = self.timeout;
        let answer = async {
            for _ in 1..self.core.attempts() {
                match self.once(self.metadata.clone(), message.clone()).await {
                    Err(status) if never_sent(&status) => {}
                    answer => return answer,
                }
            }
            let metadata = std::mem::take(&mut self.metadata);
            self.once(metadata, message).await
        };
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::deadline_exceeded("the core did not answer in time")),
        }
    }

    /// Makes a call whose answers follow one another.
    pub async fn streaming(self, message: Bytes) -> Result<Response<Streaming<Bytes>>, Status> {
        let mut attempts = self.core.attempts();
        loop {
            attempts -= 1;
            let mut grpc = self.client().await?;
            let mut request = Request::new(message.clone());
            *request.metadata_mut() = self.metadata.clone();
            let path = PathAndQuery::from_static(self.rpc);
            let answer = tokio::time::timeout(self.timeout, grpc.server_streaming(request, path, BytesCodec));
            match answer.await {
                Ok(Err(status)) if attempts > 0 && never_sent(&status) => {}
                Ok(answer) => return answer,
                Err(_) => return Err(Status::deadline_exceeded("the core did not answer in time")),
            }
        }
    }

    /// Asks whether the caller may call the method at all. Gives what an answer's metadata would tell.
    pub async fn authorize(mut self) -> Result<MetadataMap, Status> {
        let yes = tonic::metadata::MetadataValue::from_static("1");
        self.metadata.insert(AUTHORIZE_ONLY, yes);
        // A yes is a status without a message, which only a stream may be.
        let yes = self.streaming(Bytes::new()).await?;
        Ok(yes.into_parts().0)
    }

    async fn once(&self, metadata: MetadataMap, message: Bytes) -> Result<Response<Bytes>, Status> {
        let mut grpc = self.client().await?;
        let mut request = Request::new(message);
        *request.metadata_mut() = metadata;
        request.set_timeout(self.timeout);
        grpc.unary(request, PathAndQuery::from_static(self.rpc), BytesCodec)
            .await
    }

    async fn client(&self) -> Result<Grpc<CoreService>, Status> {
        // The core's answers are as large as the core lets them be.
        let mut grpc = Grpc::new(self.core.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await?;
        Ok(grpc)
    }
}

/// A codec that leaves messages encoded.
#[derive(Debug, Clone, Copy)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(length)))
    }
}
