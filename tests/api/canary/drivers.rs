//! Secrets of drivers, at servers that are not there, and at some that repeat what they hear.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Server, Target, text};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::secrets::Secrets;
use super::watcher::Watcher;

/// A server of lines. Ends when it is dropped.
struct Lines {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Lines {
    /// One that greets, and answers each line.
    async fn start(greeting: &'static str, answer: fn(&str) -> String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (read, mut write) = stream.into_split();
                    let _ = write.write_all(greeting.as_bytes()).await;
                    let mut lines = BufReader::new(read).split(b'\n');
                    while let Ok(Some(line)) = lines.next_segment().await {
                        let line = String::from_utf8_lossy(&line);
                        if write.write_all(answer(line.trim_end()).as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, task }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn redis(line: &str) -> String {
    match line.contains("canary") {
        true => format!("-ERR you said {line}\r\n"),
        false => String::new(),
    }
}

fn smtp(line: &str) -> String {
    match line.starts_with("EHLO") {
        true => "250-parrot\r\n250 AUTH PLAIN LOGIN\r\n".to_owned(),
        false => format!("535 you said {line}\r\n"),
    }
}

fn imap(line: &str) -> String {
    let tag = line.split(' ').next().unwrap_or_default();
    match line.contains("CAPABILITY") {
        true => format!("* CAPABILITY IMAP4rev1\r\n{tag} OK done\r\n"),
        false => format!("{tag} NO you said {line}\r\n"),
    }
}

/// An object store that repeats the token it is asked with, at such length that somebody will cut it.
async fn store() -> Target {
    Target::start(|asked: &Asked| {
        let query = asked.uri.query().unwrap_or_default();
        let mut query = form_urlencoded::parse(query.as_bytes());
        let token = query.find(|(name, _)| name == "X-Amz-Security-Token");
        let token = token.map_or_else(String::new, |(_, token)| token.replace('&', "&amp;"));
        let said = [230, 1_600]
            .map(|before| format!("{} {token}", "x".repeat(before)))
            .concat();
        let body = format!("<Error><Code>Refused</Code><Message>{said}</Message></Error>");
        Response::builder().status(403).body(Bytes::from(body)).unwrap()
    })
    .await
}

/// A driver's app, what it connects with, and a module with its parameters.
type Use = (&'static str, Value, &'static str, Value);

pub(super) async fn exercise(watcher: &Watcher, server: &Server, secrets: &mut Secrets) {
    let store = store().await;
    let closed = TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let redis = Lines::start("", redis).await;
    let smtp = Lines::start("220 parrot\r\n", smtp).await;
    let imap = Lines::start("* OK parrot\r\n", imap).await;
    let at = |address: SocketAddr, more: Value| {
        let mut data = json!({ "host": "127.0.0.1", "port": address.port(), "username": "ada" });
        data.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        data
    };
    let key = format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        secrets.give("a private key").replace('-', "\n")
    );
    let sql = |app, secrets: &mut Secrets| -> Use {
        let password = secrets.give(&format!("the password of {app}"));
        let data = at(
            closed,
            json!({ "database": "shop", "password": password, "tls": "disable" }),
        );
        (app, data, "query", json!({ "query": "SELECT 1" }))
    };
    let (postgresql, mysql) = (sql("postgresql", secrets), sql("mysql", secrets));
    let uses: [Use; 7] = [
        postgresql,
        mysql,
        (
            "redis",
            at(
                redis.address,
                json!({ "password": secrets.give("the password of redis"), "tls": "disable" }),
            ),
            "get",
            json!({ "key": "k" }),
        ),
        (
            "smtp",
            at(
                smtp.address,
                json!({ "password": secrets.give("the password of smtp"), "security": "none" }),
            ),
            "send_email",
            json!({ "from": "ada@example.com", "to": ["eva@example.com"], "subject": "S", "text": "T" }),
        ),
        (
            "imap",
            at(
                imap.address,
                json!({ "password": secrets.give("the password of imap"), "security": "none" }),
            ),
            "search_messages",
            json!({}),
        ),
        (
            "sftp",
            at(
                closed,
                json!({ "privateKey": key, "passphrase": secrets.give("a passphrase"),
                "hostKey": "SHA256:n7jxsoOJe9qtCW0xDsxhZlnzcQ7qsJVNCTw1dGLyOx8" }),
            ),
            "list",
            json!({ "path": "/" }),
        ),
        (
            "s3",
            json!({ "accessKeyId": "AKIA7", "secretAccessKey": secrets.give("a key of S3"),
                "sessionToken": secrets.give_ascii("a session token of S3"), "endpoint": store.url("/"),
                "bucket": "shop" }),
            "list_objects",
            json!({}),
        ),
    ];
    for (app, data, module, params) in uses {
        let made = watcher.credential(app, "server", data).await;
        let credential = text(&made["credentialId"]);
        watcher
            .use_module(server, (app, module), params, &credential)
            .await;
        watcher.verify(&credential).await;
    }
    let seen = watcher.seen();
    assert!(
        seen.matches("you said").count() >= 3,
        "the servers of lines were not heard"
    );
    let heard = format!("{} ***{}", "x".repeat(230), "x".repeat(1_600));
    assert!(seen.contains(&heard), "the object store was not heard");
}
