//! The client against real sockets, whose other ends do what no decent server does.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, COOKIE};
use test_support::Certificate;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

/// Longer than anything here takes that goes well.
const PATIENCE: Duration = Duration::from_secs(30);

fn client() -> Outbound {
    Outbound::trusting(&[network("127.0.0.1").unwrap()], Vec::new())
}

fn get(url: &str) -> Request {
    Request::new(Method::GET, Url::parse(url).unwrap(), PATIENCE)
}

/// The bytes of a request's head.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// A server that answers each connection's first request with these bytes; and the heads of the requests.
async fn server(answer: impl Into<Vec<u8>>) -> (SocketAddr, UnboundedReceiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = unbounded_channel();
    let answer = answer.into();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(head) = head(&mut stream).await else {
                continue;
            };
            let _ = sender.send(head);
            let _ = stream.write_all(&answer).await;
        }
    });
    (address, heads)
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect(location: &str) -> Vec<u8> {
    answer(&format!("302 Found\r\nlocation: {location}"), b"")
}

/// The other end of one connection that a test plays itself.
async fn play(
    url_of: impl FnOnce(SocketAddr) -> Request,
) -> (
    TcpStream,
    tokio::task::JoinHandle<Result<Response, OutboundError>>,
) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let request = url_of(listener.local_addr().unwrap());
    let sending = tokio::spawn(async move { client().send(request).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    head(&mut stream).await.unwrap();
    (stream, sending)
}

#[tokio::test]
async fn a_plain_answer_comes_whole() {
    let (address, mut heads) = server(answer("201 Created\r\nx-a: 1", b"hello")).await;
    let response = client()
        .send(get(&format!("http://{address}/p?q=1#f")))
        .await
        .unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.body[..]),
        (201, b"hello".as_slice())
    );
    assert_eq!(response.headers["x-a"], "1");
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("GET /p?q=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("accept-encoding: gzip\r\n"), "{head}");
}

#[tokio::test]
async fn an_answer_without_room_is_given_up_for_now() {
    let (address, _heads) = server(answer("200 OK", &[0; 40_000])).await;
    let mut client = client();
    client.memory = Memory::new(32 * 1024);
    let refused = client.send(get(&format!("http://{address}/"))).await;
    let error = refused.err().unwrap();
    assert!(matches!(error, OutboundError::NoRoom) && error.is_temporary());
    client.memory = Memory::new(64 * 1024);
    for _ in 0..3 {
        let response = client.send(get(&format!("http://{address}/"))).await.unwrap();
        assert_eq!(response.body.len(), 40_000, "what was read takes no room");
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            head(&mut stream).await.unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await
                .unwrap();
        }
    });
    let client = client();
    for _ in 0..2 {
        assert_eq!(client.send(get(&url)).await.unwrap().body, "ok");
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn addresses_are_checked_however_they_are_written() {
    let (address, mut heads) = server(answer("200 OK", b"")).await;
    let port = address.port();
    let shut = Outbound::trusting(&[], Vec::new());
    for host in [
        "127.0.0.1",
        "localhost",
        "0x7f000001",
        "2130706433",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0",
    ] {
        let refused = shut.send(get(&format!("http://{host}:{port}/"))).await;
        assert!(
            matches!(refused, Err(OutboundError::Blocked(_))),
            "{host}: {:?}",
            refused.err()
        );
    }
    assert!(heads.try_recv().is_err(), "nothing was sent");
    // Allowed is what was listed, under any name.
    assert!(
        client()
            .send(get(&format!("http://localhost:{port}/")))
            .await
            .is_ok()
    );
    assert!(
        client()
            .send(get(&format!("http://[::ffff:127.0.0.1]:{port}/")))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn each_redirect_is_checked() {
    let (address, _heads) = server(redirect("http://127.0.0.2/")).await;
    let refused = client().send(get(&format!("http://{address}/"))).await;
    assert!(
        matches!(refused, Err(OutboundError::Blocked(_))),
        "{:?}",
        refused.err()
    );
    let (address, mut heads) = server(redirect("/again")).await;
    let refused = client().send(get(&format!("http://{address}/"))).await;
    assert!(
        matches!(refused, Err(OutboundError::TooManyRedirects)),
        "{:?}",
        refused.err()
    );
    let mut count = 0;
    while heads.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, 1 + MAX_REDIRECTS);
    for location in ["ftp://example.com/", "http://user:word@example.com/", "http://"] {
        let (address, _heads) = server(redirect(location)).await;
        let refused = client().send(get(&format!("http://{address}/"))).await;
        assert!(
            matches!(refused, Err(OutboundError::BadAnswer { .. })),
            "{location}: {:?}",
            refused.err()
        );
    }
}

/// A request with secrets in its headers and its query.
fn with_secrets(url: &str) -> Request {
    let mut request = get(url);
    request.headers.insert(COOKIE, HeaderValue::from_static("c=own"));
    request.secrets = Secrets {
        headers: vec![(AUTHORIZATION, HeaderValue::from_static("Bearer hidden"))],
        query: vec![("key".to_owned(), Secret::from("hi dden".to_owned()))],
        path: None,
    };
    request
}

#[tokio::test]
async fn secrets_stay_at_their_origin() {
    // Another port is another origin; the other side even copies the secret into its redirect.
    let (other, mut heads) = server(answer("200 OK", b"")).await;
    let (home, mut home_heads) = server(redirect(&format!("http://{other}/x?key=hi%20dden&page=2"))).await;
    client()
        .send(with_secrets(&format!("http://{home}/")))
        .await
        .unwrap();
    let first = home_heads.recv().await.unwrap();
    assert!(
        first.contains("Bearer hidden") && first.starts_with("GET /?key=hi+dden "),
        "{first}"
    );
    let second = heads.recv().await.unwrap();
    assert!(second.starts_with("GET /x?page=2 "), "{second}");
    for absent in ["hidden", "dden", "cookie", "authorization"] {
        assert!(!second.to_lowercase().contains(absent), "{second}");
    }
}

#[tokio::test]
async fn secrets_follow_within_their_origin() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut heads = Vec::new();
        for bytes in [redirect("/next?a=1"), answer("200 OK", b"")] {
            let (mut stream, _) = listener.accept().await.unwrap();
            heads.push(head(&mut stream).await.unwrap());
            stream.write_all(&bytes).await.unwrap();
        }
        heads
    });
    client().send(with_secrets(&url)).await.unwrap();
    let heads = serving.await.unwrap();
    assert!(
        heads[1].starts_with("GET /next?a=1&key=hi+dden ") && heads[1].contains("Bearer hidden"),
        "{}",
        heads[1]
    );
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
    ] {
        let (mut stream, sending) = play(|address| get(&format!("http://{address}/"))).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let block = vec![b'x'; 64 * 1024];
        while stream.write_all(&block).await.is_ok() {}
        let refused = sending.await.unwrap();
        assert!(
            matches!(refused, Err(OutboundError::TooLarge)),
            "{:?}",
            refused.err()
        );
    }
}

#[tokio::test]
async fn a_body_that_drips_runs_out_of_time() {
    let limit = Duration::from_millis(300);
    let (mut stream, sending) = play(|address| Request {
        timeout: limit,
        ..get(&format!("http://{address}/"))
    })
    .await;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        .await
        .unwrap();
    while stream.write_all(b"x").await.is_ok() && !sending.is_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = sending.await.unwrap();
    assert!(
        matches!(refused, Err(OutboundError::Timeout(time)) if time == limit),
        "{:?}",
        refused.err()
    );
}

#[tokio::test]
async fn giving_up_closes_the_connection() {
    let (mut stream, sending) = play(|address| get(&format!("http://{address}/"))).await;
    sending.abort();
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_read_up_to_the_limit() {
    let text = "compressible ".repeat(1_000);
    let (address, _heads) = server(answer("200 OK\r\ncontent-encoding: gzip", &gzip(text.as_bytes()))).await;
    let response = client().send(get(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(response.body, text);
    assert!(!response.headers.contains_key(CONTENT_ENCODING));
    let full = vec![0; MAX_BODY_BYTES];
    let (address, _heads) = server(answer("200 OK\r\ncontent-encoding: gzip", &gzip(&full))).await;
    assert_eq!(
        client()
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap()
            .body
            .len(),
        MAX_BODY_BYTES
    );
    // A bomb: 200 MiB in 200 KiB.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..20 {
        encoder.write_all(&full).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 400 * 1024);
    let (address, _heads) = server(answer("200 OK\r\ncontent-encoding: gzip", &bomb)).await;
    let refused = client().send(get(&format!("http://{address}/"))).await;
    assert!(
        matches!(refused, Err(OutboundError::TooLarge)),
        "{:?}",
        refused.err()
    );
    for damaged in [b"no gzip".as_slice(), &gzip(text.as_bytes())[..60]] {
        let (address, _heads) = server(answer("200 OK\r\ncontent-encoding: gzip", damaged)).await;
        let refused = client().send(get(&format!("http://{address}/"))).await;
        assert!(
            matches!(refused, Err(OutboundError::BadAnswer { .. })),
            "{:?}",
            refused.err()
        );
    }
    let (address, _heads) = server(answer("200 OK\r\ncontent-encoding: gzip", b"")).await;
    assert!(
        client()
            .send(get(&format!("http://{address}/")))
            .await
            .unwrap()
            .body
            .is_empty()
    );
}

#[tokio::test]
async fn dead_ends_say_what_happened() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let (nonsense, _heads) = server(b"SSH-2.0-server\r\n".as_slice()).await;
    let (silent, _heads) = server(b"".as_slice()).await;
    for url in [
        format!("http://{nobody}/"),
        format!("http://{nonsense}/"),
        format!("http://{silent}/"),
        "http://no-such-host.invalid/".to_owned(),
    ] {
        let refused = client().send(get(&url)).await;
        assert!(
            matches!(refused, Err(OutboundError::Unreachable { .. })),
            "{url}: {:?}",
            refused.err()
        );
    }
    for url in [
        "ftp://example.com/",
        "data:text/plain,x",
        "http://user@example.com/",
    ] {
        let refused = client().send(get(url)).await;
        assert!(
            matches!(refused, Err(OutboundError::Invalid(_))),
            "{url}: {:?}",
            refused.err()
        );
    }
}

#[tokio::test]
async fn only_trusted_servers_are_talked_to() {
    let folder = tempfile::tempdir().unwrap();
    let made = Certificate::for_localhost(folder.path());
    let certificate = CertificateDer::from_pem_slice(made.pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_file(&made.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                respond(&mut stream).await;
            }
        }
    });
    let refused = client().send(get(&url)).await;
    let error = refused.err().unwrap();
    assert!(
        matches!(error, OutboundError::Unreachable { .. }) && error.to_string().contains("TLS"),
        "{error}"
    );
    let trusting = Outbound::trusting(&[network("127.0.0.1").unwrap()], vec![certificate]);
    assert_eq!(trusting.send(get(&url)).await.unwrap().body, "safe");
}

async fn respond(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    if head(stream).await.is_some() {
        let _ = stream.write_all(&answer("200 OK", b"safe")).await;
        let _ = stream.shutdown().await;
    }
}
