//! Files on real servers over SSH.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::{FileServer, text};

use super::call::{self, credential, fails, output, verify};
use crate::world::World;

on_both_databases!(
    files_are_written_read_moved_and_deleted,
    what_is_found_runs_once_each,
    keys_and_passwords_let_in,
    only_the_named_server_is_spoken_to,
    what_cannot_be_done_is_told,
);

async fn server() -> Option<FileServer> {
    FileServer::openssh_or_skip("files").await
}

fn data(server: &FileServer) -> Value {
    json!({
        "host": "127.0.0.1", "port": server.port(), "username": server.user(),
        "privateKey": server.private_key("client"), "hostKey": server.fingerprint(),
    })
}

fn path(server: &FileServer, name: &str) -> String {
    server.files().join(name).display().to_string()
}

async fn files_are_written_read_moved_and_deleted(world: &World) {
    let Some(server) = server().await else { return };
    let credential = credential(world, "sftp", data(&server)).await;
    assert_eq!(verify(world, &credential).await, json!({ "status": "valid" }));
    let path = |name: &str| path(&server, name);
    let call = async |module: &'static str, params: Value| {
        output(world, ("sftp", module), &credential, params).await
    };
    let deep = json!({ "path": path("a/b ü/c"), "parents": true });
    for _twice in 0..2 {
        assert_eq!(call("make_directory", deep.clone()).await["path"], deep["path"]);
    }
    let file = path("a/b ü/Grüße.txt");
    let written = call("upload", json!({ "path": file, "text": "Grüße\n今日は" })).await;
    assert_eq!(written, json!({ "path": file, "size": 17 }));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Grüße\n今日は");
    let read = call("download", json!({ "path": file })).await;
    assert_eq!(
        (&read["text"], &read["size"], &read["base64"]),
        (&json!("Grüße\n今日は"), &json!(17), &Value::Null)
    );
    assert!(read["modifiedAt"].as_i64().unwrap() > 1_700_000_000_000, "{read}");
    let _ = call("upload", json!({ "path": file, "text": { "a": 1 } })).await;
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "{\"a\":1}",
        "what was there is gone"
    );
    let once = json!({ "path": file, "text": "", "overwrite": false });
    fails(
        world,
        ("sftp", "upload"),
        &credential,
        once,
        ("SERVER_ERROR", "refuses", 1),
    )
    .await;
    let bytes: Vec<u8> = (0..175_000_u32).flat_map(u32::to_le_bytes).collect();
    let large = path("large");
    let _ = call(
        "upload",
        json!({ "path": large, "base64": STANDARD.encode(&bytes) }),
    )
    .await;
    assert_eq!(std::fs::read(&large).unwrap(), bytes);
    let read = call("download", json!({ "path": large, "as": "base64" })).await;
    assert_eq!(STANDARD.decode(text(&read["base64"])).unwrap(), bytes);
    let moved = path("moved");
    let _ = call("rename", json!({ "from": large, "to": moved })).await;
    assert_eq!(std::fs::metadata(&moved).unwrap().len(), 700_000);
    for gone in [moved, file, path("a/b ü/c"), path("a/b ü")] {
        let _ = call("delete", json!({ "path": gone })).await;
        assert!(!std::fs::exists(&gone).unwrap(), "{gone}");
    }
}

async fn what_is_found_runs_once_each(world: &World) {
    let Some(server) = server().await else { return };
    let credential = credential(world, "sftp", data(&server)).await;
    for name in ["b.txt", "a.txt", "ü.txt"] {
        std::fs::write(server.files().join(name), name).unwrap();
    }
    std::fs::create_dir(server.files().join("folder")).unwrap();
    std::os::unix::fs::symlink("a.txt", server.files().join("link")).unwrap();
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "list", "appId": "sftp", "moduleSlug": "list", "after": "start",
          "credentialId": credential, "params": { "path": server.files() } },
        { "op": "add_node", "tempId": "read", "appId": "sftp", "moduleSlug": "download", "after": "list",
          "credentialId": credential, "params": { "path": "{{2.path}}" } },
        { "op": "add_node", "tempId": "all", "kind": "aggregator", "after": "read",
          "params": { "of": 2, "collect": { "name": "{{2.name}}", "type": "{{2.type}}", "size": "{{2.size}}", "text": "{{3.text}}" } } },
    ]);
    let mut operations = operations;
    operations[1]["config"] = json!({ "onError": "continue" });
    let workflow = world.api.workflow_with("files", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    let all = &nodes.iter().find(|node| node["nodeId"] == 4).unwrap()["output"];
    let file = |name: &str| json!({ "name": name, "type": "file", "size": name.len(), "text": name });
    let link = json!({ "name": "link", "type": "link", "size": 5, "text": "a.txt" });
    assert_eq!(
        all["items"],
        json!([file("a.txt"), file("b.txt"), link, file("ü.txt")])
    );
    assert_eq!(all["errors"][0]["index"], 2, "a folder is no file: {all}");
}

async fn keys_and_passwords_let_in(world: &World) {
    let Some(server) = server().await else { return };
    let with = |changes: Value| {
        let mut data = data(&server);
        data.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        data
    };
    let locked = server.private_key("locked");
    for right in [
        json!({ "privateKey": locked, "passphrase": FileServer::PASSPHRASE }),
        json!({ "hostKey": server.host_key() }),
        json!({ "hostKey": format!("SHA256:{}\n{}", "a".repeat(43), server.fingerprint()) }),
    ] {
        let right = credential(world, "sftp", with(right)).await;
        assert_eq!(verify(world, &right).await, json!({ "status": "valid" }));
    }
    for (wrong, says) in [
        (
            json!({ "privateKey": server.private_key("stranger") }),
            "does not let",
        ),
        (json!({ "privateKey": locked }), "cannot be read"),
        (
            json!({ "privateKey": locked, "passphrase": "another" }),
            "cannot be read",
        ),
        (json!({ "privateKey": "no key" }), "cannot be read"),
        (
            json!({ "privateKey": null, "password": "a-password" }),
            "does not let",
        ),
    ] {
        let wrong = credential(world, "sftp", with(wrong)).await;
        call::refused(world, &wrong, says).await;
    }
    for asks in [false, true] {
        let password = "s3cret-password";
        let Some(server) = FileServer::with_password_or_skip("files by password", password, asks).await
        else {
            return;
        };
        let data = |password: &str| {
            json!({ "host": "127.0.0.1", "port": server.port(), "username": server.user(), "password": password,
                    "hostKey": server.host_key() })
        };
        let right = credential(world, "sftp", data(password)).await;
        assert_eq!(
            verify(world, &right).await,
            json!({ "status": "valid" }),
            "asks: {asks}"
        );
        let _ = output(
            world,
            ("sftp", "upload"),
            &right,
            json!({ "path": "a.txt", "text": "a" }),
        )
        .await;
        assert_eq!(
            std::fs::read_to_string(server.files().join("a.txt")).unwrap(),
            "a"
        );
        let wrong = credential(world, "sftp", data("another-password")).await;
        call::refused(world, &wrong, "does not let ada in").await;
    }
}

/// A server with another key is not told who is asking.
async fn only_the_named_server_is_spoken_to(world: &World) {
    let Some(server) = server().await else { return };
    let mut data = data(&server);
    data["hostKey"] = json!(format!("SHA256:{}", "a".repeat(43)));
    let other = credential(world, "sftp", data.clone()).await;
    let verdict = verify(world, &other).await;
    assert_eq!(verdict["status"], "invalid");
    let said = text(&verdict["error"]);
    assert!(
        said.contains("shows another key") && said.contains(&server.fingerprint()),
        "{said}"
    );
    let expected = ("CREDENTIAL_INVALID", "shows another key", 1);
    fails(
        world,
        ("sftp", "list"),
        &credential(world, "sftp", data.clone()).await,
        json!({}),
        expected,
    )
    .await;
    data["hostKey"] = json!("any");
    let none = credential(world, "sftp", data.clone()).await;
    call::refused(world, &none, "hostKey must be a fingerprint").await;
    data["hostKey"] = Value::Null;
    let body = json!({ "appId": "sftp", "connectionId": "server", "name": "Mine", "data": data });
    world.api.post("/credentials", body).await.invalid("data.hostKey");
}

async fn what_cannot_be_done_is_told(world: &World) {
    let Some(mut server) = server().await else { return };
    let credential = credential(world, "sftp", data(&server)).await;
    let missing = path(&server, "missing");
    std::fs::write(server.files().join("there"), "").unwrap();
    for (module, params, says) in [
        ("download", json!({ "path": missing }), "No such file"),
        ("list", json!({ "path": missing }), "No such file"),
        ("delete", json!({ "path": missing }), "No such file"),
        (
            "rename",
            json!({ "from": missing, "to": path(&server, "x") }),
            "No such file",
        ),
        (
            "upload",
            json!({ "path": format!("{missing}/x"), "text": "" }),
            "No such file",
        ),
        (
            "make_directory",
            json!({ "path": path(&server, "there") }),
            "refuses",
        ),
        ("download", json!({ "path": server.files() }), "refuses"),
    ] {
        fails(
            world,
            ("sftp", module),
            &credential,
            params,
            ("SERVER_ERROR", says, 1),
        )
        .await;
    }
    // More than a call may read; it takes no room on the disk.
    let large = std::fs::File::create(server.files().join("large")).unwrap();
    large.set_len(11 * 1024 * 1024).unwrap();
    let params = json!({ "path": path(&server, "large") });
    fails(
        world,
        ("sftp", "download"),
        &credential,
        params,
        ("ANSWER_TOO_LARGE", "10 MiB", 1),
    )
    .await;
    server.kill();
    let params = json!({ "path": missing });
    fails(
        world,
        ("sftp", "download"),
        &credential,
        params,
        ("CONNECTION_FAILED", "127.0.0.1", 2),
    )
    .await;
    call::refused(world, &credential, "cannot be reached").await;
}
