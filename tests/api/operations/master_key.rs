//! The master key in the environment: serving with it, rotating it, and what is refused.

use std::process::Command;

use contract::v1::RotateSecretsRequest;
use serde_json::json;
use test_support::{Server, ServerOptions, ShowLog, binary, graphs};

const VARIABLE: &str = "SWITCHYARD_MASTER_KEY";
/// 32 bytes in hexadecimal, and others in Base64.
const FIRST: &str = "abababababababababababababababababababababababababababababababab";
const SECOND: &str = "zc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc0=";

fn environment(key: &str) -> Vec<(String, String)> {
    vec![(VARIABLE.to_owned(), key.to_owned())]
}

#[tokio::test]
async fn a_key_of_the_environment_serves_and_is_rotated() {
    let mut server = Server::start(ServerOptions {
        environment: environment(FIRST),
        ..ServerOptions::default()
    })
    .await;
    let api = server.first_api();
    let body = json!({ "value": "sealed", "isSecret": true });
    let _ = api.put("/variables/SEALED", body).await.data(201);
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "set",
            json!({ "fields": { "known": "{{$vars.SEALED == 'sealed'}}" } }),
        ),
    ]);
    let workflow = api.workflow_with("x", flow).await;
    assert!(!server.data_dir().join("master-key").exists());

    // There is nothing to rotate to: the operator is told what to do, and no key.
    let mut admin = server.admin().await.client;
    let refused = admin.rotate_secrets(RotateSecretsRequest {}).await.unwrap_err();
    assert!(refused.message().contains("1:KEY,2:NEWKEY"), "{refused}");
    assert!(!refused.message().contains(FIRST));

    let both = format!("1:{FIRST},2:{SECOND}");
    for (key, rotates) in [(both, true), (format!("2:{SECOND}"), false)] {
        server.restart_with(environment(&key)).await;
        let _log = ShowLog(&server);
        let run = api.start(&workflow, json!({})).await;
        let report = api.ended(&run).await;
        assert_eq!(report["nodes"][1]["output"], json!({ "known": true }), "{report}");
        if rotates {
            let mut admin = server.admin().await.client;
            let rotated = admin.rotate_secrets(RotateSecretsRequest {}).await.unwrap();
            assert_eq!(rotated.into_inner().master_key_version, 2);
        }
    }
    assert!(!server.log().contains(FIRST) && !server.log().contains(SECOND));
    server.kill_hard();
    let outdated = refusal(&server, FIRST, &[]);
    assert!(
        outdated.contains("version 2") && outdated.contains(VARIABLE),
        "{outdated}"
    );
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_refused_and_not_shown() {
    let server = Server::start(ServerOptions::default()).await;
    let both = refusal(&server, FIRST, &["--master-key-file", "some-file"]);
    assert!(
        both.contains(VARIABLE) && both.contains("--master-key-file"),
        "{both}"
    );
    for wrong in ["", "too-short", &format!("1:{FIRST},1:{FIRST}"), &FIRST[1..]] {
        let refused = refusal(&server, wrong, &[]);
        assert!(refused.contains("32 bytes"), "{refused}");
        assert!(wrong.is_empty() || !refused.contains(wrong), "{refused}");
    }
    let another = refusal(&server, FIRST, &[]);
    assert!(another.contains("does not open"), "{another}");
}

/// What another start on a server's data says when it refuses.
fn refusal(server: &Server, key: &str, flags: &[&str]) -> String {
    let output = Command::new(binary("switchyard"))
        .args([
            "serve",
            "--rest-listen",
            "127.0.0.1:0",
            "--grpc-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(server.data_dir())
        .args(flags)
        .env(VARIABLE, key)
        .output()
        .unwrap();
    assert!(!output.status.success());
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
