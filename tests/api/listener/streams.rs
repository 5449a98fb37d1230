//! Streams of HTTP/2: how many there may be, and clients that give them up at once.

use test_support::frames::{
    END_STREAM, ENHANCE_YOUR_CALM, Frame, FrameConnection, MAX_CONCURRENT_STREAMS, REFUSED_STREAM, kind,
};

use super::{Door, assert_well, server, soon};

#[tokio::test]
async fn further_streams_are_refused() {
    let server = server(&["--http2-max-streams", "2", "--grpc-max-streams", "2"]).await;
    for door in Door::BOTH {
        let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        let settings = soon(connection.receive_kind(kind::SETTINGS)).await.unwrap();
        assert_eq!(settings.setting(MAX_CONCURRENT_STREAMS), Some(2), "{door:?}");
        let heads = [1, 3, 5].map(|stream| door.head(stream));
        connection.send(&heads).await.unwrap();
        let refused = soon(connection.receive_kind(kind::RST_STREAM)).await.unwrap();
        assert_eq!(
            (refused.stream, refused.number(0)),
            (5, Some(REFUSED_STREAM)),
            "{door:?}"
        );
        // The others go on: one that ends makes room.
        connection
            .send(&[Frame::data(1, b"").with(END_STREAM)])
            .await
            .unwrap();
        let answered = soon(connection.receive_kind(kind::HEADERS)).await.unwrap();
        assert_eq!(answered.stream, 1, "{door:?}");
    }
    assert_well(&server).await;
}

/// Heads of so many streams, and what follows each of them.
fn each(door: Door, count: usize, follows: impl Fn(u32) -> Frame) -> Vec<Frame> {
    let streams = (0..).map(|number| 2 * number + 1).take(count);
    let pair = |stream| [door.head(stream), follows(stream)];
    streams.flat_map(pair).collect()
}

#[tokio::test]
async fn clients_that_give_up_what_they_ask_for_are_calmed() {
    let server = server(&[]).await;
    for door in Door::BOTH {
        let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        connection.send(&each(door, 40, Frame::reset)).await.unwrap();
        let goodbye = soon(connection.receive_kind(kind::GOAWAY)).await.unwrap();
        assert_eq!(goodbye.number(4), Some(ENHANCE_YOUR_CALM), "{door:?}");
        for _ in 0..20 {
            let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
            // The server may have closed before all are sent.
            drop(connection.send(&each(door, 1_000, Frame::reset)).await);
            while soon(connection.receive()).await.is_some() {}
        }
        assert_well(&server).await;
    }
}

#[tokio::test]
async fn clients_that_keep_making_errors_are_calmed() {
    let server = server(&["--http2-max-error-resets", "10"]).await;
    for door in Door::BOTH {
        let mut connection = FrameConnection::open(door.address(&server), &[]).await.unwrap();
        // Each opens a window wider than there may be, which the server answers with a reset.
        let too_wide = |stream| Frame::of(kind::WINDOW_UPDATE, 0, stream, vec![127, 255, 255, 255]);
        connection.send(&each(door, 40, too_wide)).await.unwrap();
        let goodbye = soon(connection.receive_kind(kind::GOAWAY)).await.unwrap();
        assert_eq!(goodbye.number(4), Some(ENHANCE_YOUR_CALM), "{door:?}");
        assert_well(&server).await;
    }
}
