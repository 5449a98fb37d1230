//! A core of one closure, and a client of the router.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body as HttpBody;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use rest_facade::{CoreService, FacadeConfig};
use tonic::Status;
use tonic::body::Body;
use tower::ServiceExt;

/// A call that the core got.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub metadata: HeaderMap,
    pub message: Bytes,
}

impl Seen {
    pub fn message<M: Message + Default>(&self) -> M {
        M::decode(self.message.clone()).unwrap()
    }

    pub fn authorizes_only(&self) -> bool {
        self.metadata.contains_key("x-switchyard-authorize-only")
    }
}

/// What the core answers: metadata and messages.
#[derive(Debug, Default)]
pub struct Answer {
    pub metadata: HeaderMap,
    pub messages: Vec<Bytes>,
}

impl Answer {
    pub fn of(message: &impl Message) -> Self {
        Self {
            messages: vec![message.encode_to_vec().into()],
            ..Self::default()
        }
    }

    fn into_response(self) -> Response<Body> {
        let mut frames: Vec<Result<Frame<Bytes>, Status>> = Vec::new();
        for message in self.messages {
            let mut framed = BytesMut::new();
            framed.put_u8(0);
            framed.put_u32(u32::try_from(message.len()).unwrap());
            framed.put(message);
            frames.push(Ok(Frame::data(framed.freeze())));
        }
        let done = [("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))];
        frames.push(Ok(Frame::trailers(done.into_iter().collect())));
        let mut response = Response::new(Body::new(StreamBody::new(tokio_stream::iter(frames))));
        *response.headers_mut() = self.metadata;
        response
            .headers_mut()
            .insert("content-type", HeaderValue::from_static("application/grpc"));
        response
    }
}

type Behaviour = dyn Fn(&Seen) -> Result<Answer, Status> + Send + Sync;

/// The core.
#[derive(Clone)]
pub struct Fake {
    behaviour: Arc<Behaviour>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    pub fn new(behaviour: impl Fn(&Seen) -> Result<Answer, Status> + Send + Sync + 'static) -> Self {
        Self {
            behaviour: Arc::new(behaviour),
            seen: Arc::default(),
        }
    }

    /// A core that answers every call with this message.
    pub fn answering(message: &impl Message) -> Self {
        let message: Bytes = message.encode_to_vec().into();
        Self::new(move |_| {
            Ok(Answer {
                messages: vec![message.clone()],
                ..Answer::default()
            })
        })
    }

    /// A core that refuses every call.
    pub fn refusing(status: Status) -> Self {
        Self::new(move |_| Err(status.clone()))
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The one call that the core got.
    pub fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    pub async fn answer(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (parts, body) = request.into_parts();
        let framed = body.collect().await.unwrap().to_bytes();
        let seen = Seen {
            path: parts.uri.path().to_owned(),
            metadata: parts.headers,
            message: framed.slice(5..),
        };
        self.seen.lock().unwrap().push(seen.clone());
        Ok((self.behaviour)(&seen).map_or_else(|status| status.into_http(), Answer::into_response))
    }

    pub fn core(&self) -> CoreService {
        let fake = self.clone();
        CoreService::in_process(tower::service_fn(move |request| fake.clone().answer(request)))
    }

    pub fn router(&self) -> Router {
        rest_facade::router(self.core(), FacadeConfig::default())
    }

    /// Sends a request to the facade in front of this core.
    pub async fn send(&self, request: Request<HttpBody>) -> Reply {
        send(self.router(), request).await
    }
}

/// What the facade answered.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status and code of an error, whose envelope is checked.
    pub fn error(&self) -> (u16, String) {
        let json = self.json();
        let error = &json["error"];
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert_eq!(error["request_id"].as_str(), self.header("x-request-id"));
        assert_eq!(self.header("content-type"), Some("application/json"));
        (self.status.as_u16(), error["code"].as_str().unwrap().to_owned())
    }

    /// The paths of an error's details.
    pub fn wrong_paths(&self) -> Vec<String> {
        let json = self.json();
        let details = json["error"]["details"].as_array().unwrap();
        details
            .iter()
            .map(|detail| detail["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub async fn send(router: Router, request: Request<HttpBody>) -> Reply {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Reply {
        status: parts.status,
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

/// A request without a body.
pub fn request(verb: &str, path: &str) -> Request<HttpBody> {
    Request::builder()
        .method(verb)
        .uri(path)
        .body(HttpBody::empty())
        .unwrap()
}

/// A request with a JSON body.
pub fn json(verb: &str, path: &str, body: &str) -> Request<HttpBody> {
    let request = Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", "application/json");
    request.body(HttpBody::from(body.to_owned())).unwrap()
}
