//! Secrets that are given in every place where one can be given, used in runs that succeed and that fail, told back by a
//! service that repeats all it hears, and then looked for: in the log at its most talkative, in all answers, and in the
//! database.

mod drivers;
mod hooks;
mod parrot;
mod paths;
mod secrets;
mod watcher;

use std::path::Path;

use http::Method;
use serde_json::json;
use test_support::{
    CLIENT_ID, Database, OAuthServer, Server, ServerOptions, ShowLog, graphs, percent_encoded, text,
};

use crate::oauth::{Visitor, bring, flow, path};
use parrot::parrot;
use secrets::Secrets;
use watcher::Watcher;

#[tokio::test]
async fn no_secret_is_seen_again_on_sqlite() {
    let server = Server::start(options(None)).await;
    let secrets = exercise(&server).await;
    let stored = files(&server.data_dir());
    secrets.are_not_in("the database's files", &stored);
}

#[tokio::test]
async fn no_secret_is_seen_again_on_postgres() {
    let Some(database) = test_support::postgres_or_skip("the search for secrets").await else {
        return;
    };
    let server = Server::start(options(Some(&database))).await;
    let secrets = exercise(&server).await;
    secrets.are_not_in("the database", &database.dump().await);
}

fn options(database: Option<&Database>) -> ServerOptions {
    let flags = ["--outbound-allow", "127.0.0.1", "--log", "debug"];
    ServerOptions {
        database_url: database.map(|database| database.url.clone()),
        flags: flags.map(str::to_owned).into(),
        ..ServerOptions::default()
    }
}

/// The files of a SQLite database, its journals included.
fn files(data: &Path) -> String {
    let mut whole = String::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("switchyard.db") {
            whole.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
    assert!(whole.contains("credential.connected"), "this is not the database");
    whole
}

/// Gives secrets everywhere, uses them, and looks for them in answers and in the log. Gives them, to be looked for in the
/// database.
async fn exercise(server: &Server) -> Secrets {
    let _log = ShowLog(server);
    let watcher = Watcher::new(server.first_api());
    let mut secrets = Secrets::default();
    let mut secret = |given: &str| secrets.give(given);
    let parrot = parrot().await;
    let mut used = Vec::new();
    for (connection, data) in [
        ("bearer", json!({ "token": secret("a bearer token") })),
        (
            "basic",
            json!({ "username": "ada", "password": secret("a password") }),
        ),
        (
            "api_key",
            json!({ "name": "x-key", "value": secret("a key in a header"), "in": "header" }),
        ),
        (
            "api_key",
            json!({ "name": "key", "value": secret("a key in the query"), "in": "query" }),
        ),
    ] {
        let made = watcher.credential("http", connection, data).await;
        let credential = text(&made["credentialId"]);
        let params = json!({ "url": parrot.url("/200"), "items": "headers" });
        watcher
            .use_module(server, ("http", "list"), params, &credential)
            .await;
        used.push(credential);
    }
    let typed = watcher.credential("http", "bearer", json!({})).await;
    let token = percent_encoded(&secret("a token typed on the page"));
    let mut visitor = Visitor::new(&watcher.api);
    let page = path(&text(&typed["connect_url"]));
    let wrong = visitor
        .submit(&page, &format!("token={token}%0A&verifyUrl={token}"))
        .await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    watcher.note(&wrong);
    let refused = visitor.submit(&page, &format!("token={token}")).await;
    watcher.note(&refused);
    used.push(text(&typed["credentialId"]));
    let variable = secret("a secret variable");
    let body = json!({ "value": variable, "isSecret": true });
    let _ = watcher
        .send(Method::PUT, "/variables/CANARY", body)
        .await
        .data(201);
    for credential in &used {
        for path in ["/200", "/404", "/503", "/401"] {
            let params = json!({ "url": parrot.url(path), "method": "POST", "credentialId": credential,
                "body": { "variable": "{{$vars.CANARY}}" } });
            let operations = graphs::chain(&[("manual_trigger", json!({})), ("http_request", params)]);
            watcher.run(server, operations).await;
        }
        watcher.verify(credential).await;
    }
    let failing = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "js_code",
            json!({ "code": "throw new Error('with {{$vars.CANARY}}')" }),
        ),
    ]);
    let workflow = watcher.api.workflow("Fails").await;
    let draft = watcher.get(&format!("/workflows/{workflow}")).await.data(200);
    let body = json!({ "ops": failing, "expectedUpdatedAt": draft["updatedAt"] });
    let edited = watcher
        .send(Method::POST, &format!("/workflows/{workflow}/ops"), body)
        .await;
    if edited.data(200)["errors"] == json!([]) {
        let run = watcher.api.start(&workflow, json!({})).await;
        watcher.look_at(server, &run).await;
    }
    let hook = secrets.give_ascii("the secret of a webhook");
    let mut secret = |given: &str| secrets.give(given);
    let body = json!({ "value": hook, "isSecret": true });
    let _ = watcher.send(Method::PUT, "/variables/HOOK", body).await.data(201);
    knock(&watcher, server, &hook).await;
    let client_secret = secret("the secret of an OAuth client");
    let key = secret("a key that is exchanged for tokens");
    let mistyped = secret("a client's secret that was mistyped");
    let service = OAuthServer::start(&client_secret, &key).await;
    bring(&server.admin().await, None, &service, "s256").await;
    connect(&watcher, server, &service, (&client_secret, &mistyped, &key)).await;
    for (number, issued) in service.issued().into_iter().enumerate() {
        secrets.know(&format!("token or code {number}"), &issued);
    }
    drivers::exercise(&watcher, server, &mut secrets).await;
    paths::exercise(&watcher, server, &parrot, &mut secrets).await;
    let ways_in = hooks::exercise(&watcher, server, &mut secrets).await;
    secrets.know("the API key", watcher.api.key());
    secrets.know("the operator's token", &server.operator_token());
    for path in [
        "/credentials",
        "/variables",
        "/activity",
        "/workflows",
        "/webhooks",
    ] {
        let answer = watcher.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    secrets.are_not_in("an answer", &watcher.seen());
    let log = server.whole_log();
    assert!(log.contains("DEBUG"), "the log is not talkative: {log}");
    // The first start shows its key to who started it.
    let greeting = format!("{}\n", watcher.api.key());
    let log = log.replacen(&greeting, "\n", 1);
    let log = log.replacen(&format!("Bearer {}'", watcher.api.key()), "", 1);
    let log = log.replacen(&format!("Bearer {}'", watcher.api.key()), "", 1);
    secrets.are_not_in("the log", &log);
    ways_in.are_not_in("the log", &log);
    secrets
}

/// Calls a webhook whose secret stands in a header, with it and without.
async fn knock(watcher: &Watcher, server: &Server, hook: &str) {
    let verify = json!({ "type": "header", "header": "x-hook-secret", "secret": "{{$vars.HOOK}}" });
    let operations = graphs::chain(&[
        ("webhook_trigger", json!({ "verify": verify })),
        ("set", json!({ "fields": { "heard": "{{1.headers}}" } })),
    ]);
    let workflow = watcher.api.workflow_with("Hook", operations).await;
    watcher.api.go_live(&workflow).await;
    let webhook = watcher.api.mint(&workflow, 1).await;
    let refused = watcher
        .api
        .call_hook(&webhook, &[("x-hook-secret", "wrong")], json!({}))
        .await;
    assert_eq!(refused.status, 401);
    let taken = watcher
        .api
        .call_hook(&webhook, &[("x-hook-secret", hook)], json!({}))
        .await;
    watcher.note(&taken);
    watcher.look_at(server, &text(&taken.data(202)["runId"])).await;
}

/// Connects by consent and by a key, uses and renews what comes of it, and lets the service fail and repeat.
async fn connect(
    watcher: &Watcher,
    server: &Server,
    service: &OAuthServer,
    (client_secret, mistyped, key): (&str, &str, &str),
) {
    let made = watcher.credential("cloud_notes", "account", json!({})).await;
    let (account, page) = (text(&made["credentialId"]), path(&text(&made["connect_url"])));
    let mut visitor = Visitor::new(&watcher.api);
    let body = format!("clientId={CLIENT_ID}&clientSecret={}", percent_encoded(mistyped));
    let there = visitor.sent_to(&page, &body).await;
    let refused = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(refused.status, 502, "{}", refused.text());
    watcher.note(&refused);
    watcher.note(&visitor.open(&page).await);
    let there = visitor
        .sent_to(&page, &format!("clientSecret={}", percent_encoded(client_secret)))
        .await;
    let connected = visitor.open(&path(&service.consent(&there))).await;
    assert_eq!(connected.status, 200, "{}", connected.text());
    watcher.note(&connected);
    let session = watcher
        .credential("cloud_notes", "session", json!({ "key": key }))
        .await;
    let data = json!({ "clientId": CLIENT_ID, "clientSecret": client_secret });
    let machine = watcher.credential("cloud_notes", "machine", data).await;
    let used = [
        account,
        text(&session["credentialId"]),
        text(&machine["credentialId"]),
    ];
    for credential in &used {
        for note in ["n1", "echo", "fail"] {
            watcher.run(server, flow(note, credential)).await;
        }
        service.end_access();
        watcher.run(server, flow("echo", credential)).await;
        watcher.run(server, flow("n1", credential)).await;
        let body = json!({ "appId": "cloud_notes", "rpcId": "notes", "credentialId": credential });
        let _ = watcher
            .send(Method::POST, "/credentials/dynamic-options", body)
            .await;
    }
    service.end_all();
    for credential in &used {
        watcher.run(server, flow("n1", credential)).await;
        watcher.verify(credential).await;
    }
}
