//! What is said before TLS, to servers that behave badly.

#![allow(clippy::unwrap_used, reason = "tests")]

use tokio::io::duplex;

use super::*;

const GREETING: &str = "220-mail.test says\r\n220 hello\r\n";
const ABLE: &str = "250-mail.test\r\n250-SIZE 1000\r\n250 starttls\r\n";

/// What comes of asking a server for TLS that says all this, and what is left of its words.
async fn asked(says: &str) -> (Result<Vec<u8>, SmtpError>, Vec<u8>) {
    let (mut client, mut server) = duplex(64 * 1024);
    server.write_all(says.as_bytes()).await.unwrap();
    server.shutdown().await.unwrap();
    let asked = ask_for_tls(&mut client).await;
    let mut left = Vec::new();
    client.read_to_end(&mut left).await.unwrap();
    (asked, left)
}

#[tokio::test]
async fn nothing_is_read_beyond_the_agreement() {
    let injected = "250 what was put in before TLS\r\n";
    let (greeting, left) = asked(&format!("{GREETING}{ABLE}220 go ahead\r\n{injected}")).await;
    assert_eq!(greeting.unwrap(), GREETING.as_bytes());
    assert_eq!(
        left,
        injected.as_bytes(),
        "it is left to the handshake, which it breaks"
    );
}

#[tokio::test]
async fn without_tls_there_is_no_way_on() {
    let (refused, _) = asked(&format!("{GREETING}250-mail.test\r\n250 SIZE 1000\r\n")).await;
    assert!(matches!(refused, Err(SmtpError::Unable(_))), "{refused:?}");
    let (refused, _) = asked(&format!("{GREETING}{ABLE}454 not now\r\n")).await;
    assert!(
        matches!(refused, Err(SmtpError::Refused { code: 454, .. })),
        "{refused:?}"
    );
    let (refused, _) = asked("554 go away\r\n").await;
    assert!(
        matches!(refused, Err(SmtpError::Refused { code: 554, .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_no_server_of_smtp_is_told_as_broken() {
    let endless = format!("220-{}", "x".repeat(LONGEST_REPLY));
    for says in [
        "",
        "220-hello\r\n",
        "220",
        "SSH-2.0-OpenSSH\r\n",
        "\u{e9}\u{e9}\r\n",
        &endless,
    ] {
        let (broken, _) = asked(says).await;
        assert!(
            matches!(broken, Err(SmtpError::Broken { .. })),
            "{says:.20}: {broken:?}"
        );
    }
}
