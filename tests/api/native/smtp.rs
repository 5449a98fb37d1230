//! E-mails through a real mail server.

use serde_json::{Value, json};
use test_support::{MailSecurity, MailServer, text};

use super::call::{self, credential, fails, output, verify};
use crate::world::World;

on_both_databases!(
    an_email_arrives_as_it_was_written,
    each_way_of_security_is_spoken,
    the_server_decides_who_may_send,
    some_recipients_may_be_refused,
    what_the_server_says_decides_whether_it_is_tried_again,
    an_email_keeps_its_id,
    a_server_that_goes_away_is_told_of,
    parameters_that_make_no_email_are_refused,
);

const SEND: (&str, &str) = ("smtp", "send_email");
const LOGIN: (&str, &str) = ("ada", "s3cret-password");

async fn server(security: MailSecurity, login: Option<(&str, &str)>) -> Option<MailServer> {
    MailServer::start_or_skip("e-mails", security, login).await
}

fn open_data(server: &MailServer) -> Value {
    json!({ "host": "127.0.0.1", "port": server.port(), "security": "none", "sender": "Shop <shop@example.com>" })
}

fn secured_data(server: &MailServer, security: &str, password: &str) -> Value {
    json!({
        "host": "localhost", "port": server.port(), "security": security, "sender": "shop@example.com",
        "username": LOGIN.0, "password": password, "caCertificate": server.certificate(),
    })
}

async fn an_email_arrives_as_it_was_written(world: &World) {
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    assert_eq!(verify(world, &credential).await, json!({ "status": "valid" }));
    let params = json!({
        "from": "Café Zürich <cafe@example.com>",
        "to": ["Jörg <j@example.com>", { "name": "Hopper, Grace", "address": "grace@example.com" }],
        "cc": "ada@example.com",
        "bcc": "hidden@example.com",
        "replyTo": "answers@example.com",
        "subject": "Grüße 👋\r\nBcc: evil@example.com",
        "text": "Zeile eins\n.\nZeile drei: 今日は",
        "html": "<p>Grüße</p>",
        "attachments": [{ "filename": "Größe.pdf", "mimeType": "application/pdf", "base64": "JVBERi0xLjQ=" }],
        "headers": { "X-Order": "{{40 + 2}}" },
    });
    let sent = output(world, SEND, &credential, params).await;
    let recipients = json!([
        "j@example.com",
        "grace@example.com",
        "ada@example.com",
        "hidden@example.com"
    ]);
    assert_eq!(
        (&sent["accepted"], &sent["refused"]),
        (&recipients, &json!([])),
        "{sent}"
    );
    assert!(text(&sent["response"]).contains("queued as 1"), "{sent}");
    let letters = server.waited_for(1).await;
    let letter = &letters[0];
    assert_eq!(
        (&letter["from"], &letter["to"]),
        (&json!("cafe@example.com"), &recipients)
    );
    assert_eq!(letter["subject"], "Grüße 👋 Bcc: evil@example.com");
    assert_eq!(lines(&letter["text"]), ["Zeile eins", ".", "Zeile drei: 今日は"]);
    assert_eq!(lines(&letter["html"]), ["<p>Grüße</p>"]);
    assert_eq!(
        letter["attachments"],
        json!([{ "filename": "Größe.pdf", "mimeType": "application/pdf", "base64": "JVBERi0xLjQ=" }])
    );
    let header = |name: &str| headers(letter, name);
    assert_eq!(header("From"), ["Café Zürich <cafe@example.com>"]);
    assert_eq!(
        header("To"),
        ["Jörg <j@example.com>, \"Hopper, Grace\" <grace@example.com>"]
    );
    assert_eq!(header("X-Order"), ["42"]);
    assert_eq!(header("Message-ID"), [text(&sent["messageId"])]);
    assert_eq!(header("Bcc"), [""; 0], "nobody sees who else got it");
}

fn lines(value: &Value) -> Vec<String> {
    text(value).trim_end().lines().map(str::to_owned).collect()
}

fn headers(letter: &Value, name: &str) -> Vec<String> {
    let all = letter["headers"].as_array().unwrap().iter();
    let found = all.filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name));
    found.map(|header| text(&header[1])).collect()
}

async fn each_way_of_security_is_spoken(world: &World) {
    for (security, word) in [(MailSecurity::StartTls, "starttls"), (MailSecurity::Tls, "tls")] {
        let Some(server) = server(security, Some(LOGIN)).await else {
            return;
        };
        let data = secured_data(&server, word, LOGIN.1);
        let right = credential(world, "smtp", data.clone()).await;
        assert_eq!(
            verify(world, &right).await,
            json!({ "status": "valid" }),
            "{word}"
        );
        let params = json!({ "to": "b@example.com", "text": "hello" });
        let _ = output(world, SEND, &right, params.clone()).await;
        let letters = server.waited_for(1).await;
        assert_eq!(
            (&letters[0]["encrypted"], &letters[0]["login"]),
            (&json!(true), &json!(LOGIN.0)),
            "{word}"
        );
        let mut stranger = data.clone();
        stranger["caCertificate"] = Value::Null;
        let unknown = credential(world, "smtp", stranger).await;
        call::refused(world, &unknown, "TLS failed").await;
        // A server that speaks TLS from the beginning has nothing to say to others.
        if security == MailSecurity::StartTls {
            let mut other = data;
            other["security"] = json!("none");
            let open = credential(world, "smtp", other).await;
            let node = call::node(world, SEND, &open, params, json!({})).await;
            assert_eq!(node["status"], "failed", "nothing goes out in the open: {node}");
        }
        assert_eq!(server.received().len(), 1);
    }
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let data = secured_data(&server, "starttls", LOGIN.1);
    let stripped = credential(world, "smtp", data).await;
    call::refused(world, &stripped, "does not offer STARTTLS").await;
}

async fn the_server_decides_who_may_send(world: &World) {
    let Some(server) = server(MailSecurity::StartTls, Some(LOGIN)).await else {
        return;
    };
    let wrong = credential(
        world,
        "smtp",
        secured_data(&server, "starttls", "another-password"),
    )
    .await;
    call::refused(world, &wrong, "535").await;
    let (rows, _) = world.api.get("/credentials").await.page();
    let listed = rows.iter().find(|row| row["id"] == wrong.as_str()).unwrap();
    assert_eq!(listed["status"], "invalid");
    let mut nobody = secured_data(&server, "starttls", LOGIN.1);
    nobody["username"] = Value::Null;
    let nobody = credential(world, "smtp", nobody).await;
    let params = json!({ "to": "b@example.com" });
    fails(world, SEND, &nobody, params, ("CREDENTIAL_INVALID", "530", 1)).await;
    assert!(server.received().is_empty());
}

async fn some_recipients_may_be_refused(world: &World) {
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    let params = json!({ "to": "refused@example.com, b@example.com", "cc": "later@example.com" });
    let sent = output(world, SEND, &credential, params).await;
    assert_eq!(sent["accepted"], json!(["b@example.com"]));
    let refused = json!([
        { "address": "refused@example.com", "code": 550, "message": "5.1.1 there is no such mailbox", "temporary": false },
        { "address": "later@example.com", "code": 451, "message": "4.2.1 the mailbox is locked", "temporary": true },
    ]);
    assert_eq!(sent["refused"], refused);
    assert_eq!(server.waited_for(1).await[0]["to"], json!(["b@example.com"]));
}

async fn what_the_server_says_decides_whether_it_is_tried_again(world: &World) {
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    for (params, expected) in [
        (json!({ "to": "later@example.com" }), ("SERVER_BUSY", "451", 2)),
        (
            json!({ "to": "b@example.com", "from": "busy@example.com" }),
            ("SERVER_BUSY", "451", 2),
        ),
        (
            json!({ "to": "later@example.com, refused@example.com" }),
            ("SERVER_BUSY", "every recipient", 2),
        ),
        (json!({ "to": "refused@example.com" }), ("SERVER_ERROR", "550", 1)),
        (
            json!({ "to": "drop@example.com" }),
            ("CONNECTION_LOST", "is not known", 1),
        ),
    ] {
        fails(world, SEND, &credential, params, expected).await;
    }
    assert_eq!(server.received().len(), 1, "the one whose answer was lost, once");
}

/// The Message-ID is the execution's: sent again, it is the same; sent by another node, it is another.
async fn an_email_keeps_its_id(world: &World) {
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    let email = |temp: &str, after: &str, to: &str| {
        json!({ "op": "add_node", "tempId": temp, "appId": "smtp", "moduleSlug": "send_email", "after": after,
                "credentialId": credential, "params": { "to": to } })
    };
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        email("one", "start", "b@example.com"), email("two", "one", "drop@example.com"),
    ]);
    let workflow = world.api.workflow_with("twice", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    assert_eq!(world.api.ended(&run).await["status"], "failed");
    let again = world
        .api
        .post(format!("/runs/{run}/retry-node"), json!({ "nodeId": 3 }))
        .await;
    let _ = again.data(200);
    let ids: Vec<_> = server
        .waited_for(3)
        .await
        .iter()
        .map(|letter| headers(letter, "Message-ID"))
        .collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[1], ids[2]);
    assert!(ids[0][0].ends_with("@example.com>"), "{ids:?}");
    assert!(!ids[0][0].contains(run.as_str()), "nothing of the run is told");
}

async fn a_server_that_goes_away_is_told_of(world: &World) {
    let Some(mut server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    server.kill();
    call::refused(world, &credential, "cannot be reached").await;
    let params = json!({ "to": "b@example.com" });
    fails(
        world,
        SEND,
        &credential,
        params,
        ("CONNECTION_FAILED", "127.0.0.1", 2),
    )
    .await;
    let mut private = open_data(&server);
    private["host"] = json!("127.0.0.2");
    let private = call::credential(world, "smtp", private).await;
    call::refused(world, &private, "private or reserved").await;
}

async fn parameters_that_make_no_email_are_refused(world: &World) {
    let Some(server) = server(MailSecurity::None, None).await else {
        return;
    };
    let credential = credential(world, "smtp", open_data(&server)).await;
    for (params, says) in [
        (json!({ "text": "to nobody" }), "must name somebody"),
        (
            json!({ "to": "{{'b@example.com>\\r\\nRCPT TO:<evil@example.com'}}" }),
            "line breaks",
        ),
        (
            json!({ "to": "b@example.com", "headers": { "X-A": "{{'1\\r\\nBcc: evil@example.com'}}" } }),
            "line breaks",
        ),
        (
            json!({ "to": "b@example.com", "attachments": [{ "filename": "f", "base64": "{{'%'}}" }] }),
            "is not Base64",
        ),
    ] {
        fails(world, SEND, &credential, params, ("EXPRESSION_ERROR", says, 1)).await;
    }
    assert!(server.received().is_empty());
}
