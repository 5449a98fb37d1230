//! Heads of requests that come slowly, or are too large.

use test_support::frames::{Frame, FrameConnection, header_block, kind};

use super::{Door, Line, assert_well, get, server, soon};

#[tokio::test]
async fn slow_heads_are_not_waited_for() {
    let server = server(&["--header-timeout-ms", "500"]).await;
    let beginnings = ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nhost: x\r\n"];
    for door in Door::BOTH {
        for beginning in beginnings {
            let mut line = Line::open(door.address(&server)).await;
            line.say(beginning).await;
            line.end().await;
        }
    }
    // Neither is the head of a second request.
    let mut line = Line::open(server.rest_address()).await;
    line.say(&get("/healthz")).await;
    assert_eq!(line.hear().await.0, 200);
    line.say("GET / HTTP/1.1\r\nx-slow: ").await;
    line.end().await;
    assert_well(&server).await;
}

#[tokio::test]
async fn large_heads_are_refused() {
    let server = server(&["--max-header-bytes", "8192"]).await;
    let large = "x".repeat(20_000);
    let mut line = Line::open(server.rest_address()).await;
    line.say(&format!("GET /healthz HTTP/1.1\r\nx-large: {large}\r\n\r\n"))
        .await;
    assert_eq!(line.hear().await.0, 431);
    for door in Door::BOTH {
        let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        let mut block = door.head(1).payload;
        block.extend(header_block(&[("x-large", &large)]));
        let (first, rest) = block.split_at(10_000);
        let frames = [
            Frame::of(kind::HEADERS, 0, 1, first.to_vec()),
            Frame::of(kind::CONTINUATION, 4, 1, rest.to_vec()),
        ];
        connection.send(&frames).await.unwrap();
        // Refused with 431, with a reset, or with the connection, as far as it is beyond; never read on.
        let refused = soon(async {
            loop {
                match connection.receive().await {
                    Some(frame)
                        if [kind::SETTINGS, kind::WINDOW_UPDATE, kind::PING].contains(&frame.kind) => {}
                    other => return other,
                }
            }
        })
        .await;
        let refused = refused.map(|frame| frame.kind);
        let ways = [
            None,
            Some(kind::HEADERS),
            Some(kind::RST_STREAM),
            Some(kind::GOAWAY),
        ];
        assert!(ways.contains(&refused), "{door:?}: {refused:?}");
    }
    // A head without an end.
    for door in Door::BOTH {
        let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        let endless = async {
            let part = header_block(&[("x", &"x".repeat(8_000))]);
            let mut frame = Frame::of(kind::HEADERS, 0, 1, door.head(1).payload);
            while connection.send(&[frame]).await.is_ok() {
                frame = Frame::of(kind::CONTINUATION, 0, 1, part.clone());
            }
        };
        soon(endless).await;
    }
    assert_well(&server).await;
}
