//! E-mails in the mailboxes of a real server.

use serde_json::{Value, json};
use test_support::{MailboxServer, text};

use super::call::{self, credential, fails, output, verify};
use crate::world::World;

on_both_databases!(
    emails_are_found_and_read,
    emails_are_flagged_moved_and_deleted,
    each_way_of_security_is_spoken,
    new_emails_start_runs,
    what_cannot_be_done_is_told,
);

const LOGIN: (&str, &str) = ("ada", "s3cret \"pass\" \\ word");

async fn server() -> Option<MailboxServer> {
    MailboxServer::start_or_skip("mailboxes", LOGIN).await
}

fn data(server: &MailboxServer) -> Value {
    json!({
        "host": "localhost", "port": server.tls_port(), "security": "tls", "username": LOGIN.0, "password": LOGIN.1,
        "caCertificate": server.certificate(),
    })
}

/// An e-mail with a text in another character set, HTML and a file.
fn email(number: u32, subject: &str) -> String {
    format!(
        "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>\r\nTo: ada@example.com\r\nSubject: {subject}\r\n\
         Message-ID: <{number}@example.com>\r\nDate: Thu, 23 Jul 2026 11:05:00 +0200\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n\
         --c\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe {number}\r\n\
         --c\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Gr\u{fc}\u{df}e</p>\r\n--c--\r\n\
         --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQ=\r\n--b--\r\n"
    )
}

/// The e-mails that a search gives.
async fn found(world: &World, credential: &str, params: Value) -> Vec<Value> {
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "find", "appId": "imap", "moduleSlug": "search_messages", "after": "start",
          "credentialId": credential, "params": params },
        { "op": "add_node", "tempId": "each", "kind": "set", "after": "find", "params": { "fields": { "email": "{{$item}}" } } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "each",
          "params": { "of": 2, "collect": "{{3.email}}" } },
    ]);
    let workflow = world.api.workflow_with("emails", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    let all = nodes.iter().find(|node| node["nodeId"] == 4).unwrap();
    all["output"]["items"].as_array().unwrap().clone()
}

fn subjects(emails: &[Value]) -> Vec<&str> {
    emails
        .iter()
        .map(|email| email["subject"].as_str().unwrap())
        .collect()
}

async fn emails_are_found_and_read(world: &World) {
    let Some(server) = server().await else { return };
    let credential = credential(world, "imap", data(&server)).await;
    assert_eq!(verify(world, &credential).await, json!({ "status": "valid" }));
    assert!(found(world, &credential, json!({})).await.is_empty());
    server.deliver("1", &email(1, "Order 1"));
    let all = found(world, &credential, json!({})).await;
    server.deliver("2", &email(2, "=?utf-8?b?R3LDvMOfZQ==?="));
    let both = found(world, &credential, json!({})).await;
    assert_eq!(subjects(&both), ["Grüße", "Order 1"], "the latest first");
    assert_eq!(both[1]["uid"], all[0]["uid"]);
    let first = &both[0];
    assert_eq!(
        first["from"],
        json!([{ "name": "Jörg", "address": "joerg@example.com" }])
    );
    assert_eq!(
        first["to"],
        json!([{ "name": null, "address": "ada@example.com" }])
    );
    assert_eq!(
        (&first["messageId"], &first["date"]),
        (&json!("<2@example.com>"), &json!("2026-07-23T11:05:00+02:00"))
    );
    assert_eq!(
        (&first["text"], &first["html"]),
        (&json!("Grüße 2"), &json!("<p>Grüße</p>"))
    );
    assert_eq!(
        first["attachments"],
        json!([{ "filename": "a.pdf", "mimeType": "application/pdf", "size": 8 }])
    );
    assert_eq!(
        (&first["mailbox"], &first["flags"]),
        (&json!("INBOX"), &json!(["recent"])),
        "looking is not reading"
    );
    assert_eq!(first["truncated"], false);
    for (params, expected) in [
        (json!({ "subject": "Grüße" }), vec!["Grüße"]),
        (json!({ "subject": "order", "from": "joerg" }), vec!["Order 1"]),
        (json!({ "containing": "Grüße 2" }), vec!["Grüße"]),
        (json!({ "from": "nobody" }), vec![]),
        (json!({ "unread": true, "limit": 1 }), vec!["Grüße"]),
        (
            json!({ "since": "2020-01-01", "before": "2099-01-01" }),
            vec!["Grüße", "Order 1"],
        ),
        (json!({ "mailbox": "Archive" }), vec![]),
    ] {
        assert_eq!(
            subjects(&found(world, &credential, params.clone()).await),
            expected,
            "{params}"
        );
    }
    let params = json!({ "uid": first["uid"], "uidValidity": first["uidValidity"] });
    let whole = output(world, ("imap", "get_message"), &credential, params).await;
    assert_eq!(
        (&whole["attachments"][0]["base64"], &whole["text"]),
        (&json!("JVBERi0xLjQ="), &json!("Grüße 2"))
    );
    let long = email(3, "Long") + &"x".repeat(300 * 1024);
    server.deliver("3", &long);
    let cut = found(world, &credential, json!({ "subject": "Long" })).await;
    assert_eq!(
        (&cut[0]["truncated"], &cut[0]["size"]),
        (&json!(true), &json!(long.len()))
    );
    assert_eq!(cut[0]["text"], "Grüße 3");
}

async fn emails_are_flagged_moved_and_deleted(world: &World) {
    let Some(server) = server().await else { return };
    let credential = credential(world, "imap", data(&server)).await;
    for number in 1..=3 {
        server.deliver(&number.to_string(), &email(number, &format!("Order {number}")));
        assert_eq!(
            found(world, &credential, json!({})).await.len(),
            usize::try_from(number).unwrap()
        );
    }
    let emails = found(world, &credential, json!({})).await;
    let uid = |place: usize| emails[place]["uid"].clone();
    let call = async |module: &'static str, params: Value| {
        output(world, ("imap", module), &credential, params).await
    };
    let flagged = call("flag_message", json!({ "uid": uid(0), "flag": "flagged" })).await;
    assert_eq!(
        flagged,
        json!({ "uid": uid(0), "mailbox": "INBOX", "flag": "flagged", "set": true })
    );
    let _ = call("flag_message", json!({ "uid": uid(0), "flag": "$Done" })).await;
    let _ = call("flag_message", json!({ "uid": uid(1), "flag": "seen" })).await;
    let marked = found(world, &credential, json!({ "flagged": true })).await;
    assert_eq!(subjects(&marked), ["Order 3"]);
    let flags = marked[0]["flags"].as_array().unwrap();
    assert!(
        flags.contains(&json!("flagged")) && flags.contains(&json!("$Done")),
        "{flags:?}"
    );
    assert_eq!(
        subjects(&found(world, &credential, json!({ "unread": false })).await),
        ["Order 2"]
    );
    let _ = call(
        "flag_message",
        json!({ "uid": uid(1), "flag": "seen", "set": false }),
    )
    .await;
    assert!(
        found(world, &credential, json!({ "unread": false }))
            .await
            .is_empty()
    );
    let moved = call("move_message", json!({ "uid": uid(0), "to": "Archive" })).await;
    assert_eq!(
        moved,
        json!({ "uid": uid(0), "mailbox": "INBOX", "to": "Archive" })
    );
    assert_eq!(
        subjects(&found(world, &credential, json!({ "mailbox": "Archive" })).await),
        ["Order 3"]
    );
    let deleted = call(
        "delete_message",
        json!({ "uid": uid(1), "uidValidity": emails[1]["uidValidity"] }),
    )
    .await;
    assert_eq!(
        deleted,
        json!({ "uid": uid(1), "mailbox": "INBOX", "expunged": true })
    );
    assert_eq!(subjects(&found(world, &credential, json!({})).await), ["Order 1"]);
}

async fn each_way_of_security_is_spoken(world: &World) {
    let Some(server) = server().await else { return };
    let with = |changes: Value| {
        let mut data = data(&server);
        data.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        data
    };
    for right in [
        json!({ "security": "starttls", "port": server.port() }),
        json!({ "security": "none", "port": server.port(), "host": "127.0.0.1" }),
    ] {
        let right = credential(world, "imap", with(right)).await;
        assert_eq!(verify(world, &right).await, json!({ "status": "valid" }));
        assert!(found(world, &right, json!({})).await.is_empty());
    }
    for (wrong, says) in [
        (
            json!({ "password": "another-password" }),
            "refuses the user name and password",
        ),
        (
            json!({ "username": "grace" }),
            "refuses the user name and password",
        ),
        (json!({ "caCertificate": null }), "TLS failed"),
        (
            json!({ "security": "starttls", "port": server.port(), "caCertificate": null }),
            "TLS failed",
        ),
        (json!({ "host": "127.0.0.2" }), "private or reserved"),
    ] {
        let wrong = credential(world, "imap", with(wrong)).await;
        call::refused(world, &wrong, says).await;
    }
    let wrong = credential(world, "imap", with(json!({ "password": "another-password" }))).await;
    let expected = ("CREDENTIAL_INVALID", "refuses the user name", 1);
    fails(world, ("imap", "search_messages"), &wrong, json!({}), expected).await;
}

async fn new_emails_start_runs(world: &World) {
    let Some(server) = server().await else { return };
    let credential = credential(world, "imap", data(&server)).await;
    server.deliver("old", &email(0, "Old"));
    call::starts_runs(
        world,
        &credential,
        ("imap", "new_message", json!({ "subject": "New" })),
        async |number| server.deliver(&format!("new-{number}"), &email(number, &format!("New {number}"))),
        |started| {
            assert!(text(&started["subject"]).starts_with("New "), "{started}");
            assert!(text(&started["text"]).starts_with("Grüße"), "{started}");
        },
    )
    .await;
}

async fn what_cannot_be_done_is_told(world: &World) {
    let Some(mut server) = server().await else { return };
    let credential = credential(world, "imap", data(&server)).await;
    server.deliver("1", &email(1, "Order 1"));
    let uid = found(world, &credential, json!({})).await[0]["uid"].clone();
    for (module, params, expected) in [
        (
            "search_messages",
            json!({ "mailbox": "Nowhere" }),
            ("SERVER_ERROR", "Nowhere", 1),
        ),
        (
            "get_message",
            json!({ "uid": 999 }),
            ("SERVER_ERROR", "no e-mail with the uid 999", 1),
        ),
        (
            "flag_message",
            json!({ "uid": 999, "flag": "seen" }),
            ("SERVER_ERROR", "no e-mail", 1),
        ),
        (
            "delete_message",
            json!({ "uid": uid, "uidValidity": 1 }),
            ("SERVER_ERROR", "new uids", 1),
        ),
        (
            "move_message",
            json!({ "uid": uid, "to": "Nowhere" }),
            ("SERVER_ERROR", "Nowhere", 1),
        ),
        (
            "search_messages",
            json!({ "from": "{{'a\\r\\nA1 LOGOUT'}}" }),
            ("EXPRESSION_ERROR", "line breaks", 1),
        ),
        (
            "flag_message",
            json!({ "uid": uid, "flag": "\\Deleted" }),
            ("EXPRESSION_ERROR", "flag must be", 1),
        ),
    ] {
        fails(world, ("imap", module), &credential, params, expected).await;
    }
    assert_eq!(
        found(world, &credential, json!({})).await.len(),
        1,
        "nothing was done"
    );
    server.kill();
    let expected = ("CONNECTION_FAILED", "localhost", 2);
    fails(
        world,
        ("imap", "search_messages"),
        &credential,
        json!({}),
        expected,
    )
    .await;
    call::refused(world, &credential, "cannot be reached").await;
}
