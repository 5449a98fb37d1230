//! Variables: set by name, read by id, and what runs make of them.

use serde_json::{Value, json};
use test_support::{graphs, text, together};

use crate::world::World;

on_both_databases!(
    a_variable_is_made_and_then_set,
    secrets_are_written_and_never_read,
    names_and_values_have_their_limits,
    a_value_is_needed_unless_a_secret_has_one,
    teams_have_their_own,
    a_deleted_variable_is_gone_and_its_name_free,
    another_organizations_variables_do_not_exist,
    of_several_at_once_one_makes_it,
    runs_read_variables_and_record_no_secret,
    the_master_key_is_rotated_while_serving,
);

async fn set(world: &World, name: &str, body: Value, status: u16) -> Value {
    world
        .api
        .put(format!("/variables/{name}"), body)
        .await
        .data(status)
}

async fn a_variable_is_made_and_then_set(world: &World) {
    let made = set(world, "GREETING", json!({ "value": "grüß dich 👋" }), 201).await;
    let mut names: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["created", "id", "isSecret", "name", "teamId", "updatedAt"]
    );
    assert_eq!(
        (
            &made["created"],
            &made["isSecret"],
            &made["teamId"],
            &made["name"]
        ),
        (&json!(true), &json!(false), &Value::Null, &json!("GREETING"))
    );
    assert!(text(&made["id"]).starts_with("var_") && made["updatedAt"].is_i64());
    let again = set(world, "GREETING", json!({ "value": " servus " }), 200).await;
    assert_eq!((&again["created"], &again["id"]), (&json!(false), &made["id"]));
    let read = world
        .api
        .get(format!("/variables/{}", text(&made["id"])))
        .await
        .data(200);
    let expected = json!({
        "id": made["id"], "name": "GREETING", "isSecret": false, "value": " servus ", "teamId": null,
        "createdAt": made["updatedAt"], "updatedAt": again["updatedAt"],
    });
    assert_eq!(read, expected);
    // Names are exact.
    let other = set(world, "greeting", json!({ "value": "x", "teamId": null }), 201).await;
    let list = world.api.get("/variables").await.body(200);
    assert_eq!(list.as_object().unwrap().len(), 1, "no cursor: {list}");
    let ids: Vec<&Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["id"])
        .collect();
    assert_eq!(ids, [&other["id"], &made["id"]], "newest first");
    world.api.get("/variables?limit=3").await.invalid("limit");
}

async fn secrets_are_written_and_never_read(world: &World) {
    let made = set(
        world,
        "TOKEN",
        json!({ "value": "hunter22", "isSecret": true }),
        201,
    )
    .await;
    assert_eq!(made["isSecret"], true);
    assert_eq!(made.get("value"), None);
    let path = format!("/variables/{}", text(&made["id"]));
    let read = world.api.get(&path).await.data(200);
    assert_eq!((&read["isSecret"], &read["value"]), (&json!(true), &Value::Null));
    assert_eq!(
        world.api.get("/variables").await.data(200)[0]["value"],
        Value::Null
    );
    // What a variable is, is decided when it is made.
    let set_again = set(
        world,
        "TOKEN",
        json!({ "value": "longer than before", "isSecret": false }),
        200,
    )
    .await;
    assert_eq!(set_again["isSecret"], true);
    assert_eq!(world.api.get(&path).await.data(200)["value"], Value::Null);
    let plain = set(world, "PLAIN", json!({ "value": "seen" }), 201).await;
    let still = set(
        world,
        "PLAIN",
        json!({ "value": "seen still", "isSecret": true }),
        200,
    )
    .await;
    assert_eq!(still["isSecret"], false);
    let read = world
        .api
        .get(format!("/variables/{}", text(&plain["id"])))
        .await
        .data(200);
    assert_eq!(read["value"], "seen still");
    let store = world.store().await;
    let row = store
        .variable(&world.organization, &text(&made["id"]))
        .await
        .unwrap();
    assert!(
        !row.value.windows(6).any(|part| part == b"longer"),
        "it is encrypted at rest"
    );
}

async fn names_and_values_have_their_limits(world: &World) {
    for name in ["1ST", "A-B", "%C3%84", "A.B", "A%20B", &"x".repeat(201)] {
        world
            .api
            .put(format!("/variables/{name}"), json!({ "value": "x" }))
            .await
            .invalid("id");
    }
    let _ = set(world, &"_".repeat(200), json!({ "value": "x" }), 201).await;
    for value in [json!(7), json!(null), json!({}), json!("x".repeat(262_145))] {
        world
            .api
            .put("/variables/A", json!({ "value": value }))
            .await
            .invalid("value");
    }
    world
        .api
        .put("/variables/A", json!({ "value": "x", "isSecret": "yes" }))
        .await
        .invalid("isSecret");
    world
        .api
        .put("/variables/A", json!({ "value": "x", "secret": true }))
        .await
        .invalid("secret");
    for short in ["12345", "ä😀ö😀ü"] {
        let body = json!({ "value": short, "isSecret": true });
        world.api.put("/variables/A", body).await.invalid("value");
    }
    let _ = set(world, "A", json!({ "value": "123456", "isSecret": true }), 201).await;
    world
        .api
        .put("/variables/A", json!({ "value": "12345" }))
        .await
        .invalid("value");
    for team in ["team_unknown", ""] {
        world
            .api
            .put("/variables/B", json!({ "value": "x", "teamId": team }))
            .await
            .invalid("teamId");
    }
}

async fn a_value_is_needed_unless_a_secret_has_one(world: &World) {
    for body in [
        json!({}),
        json!({ "value": "" }),
        json!({ "value": "  ", "isSecret": true }),
    ] {
        world.api.put("/variables/NEW", body).await.invalid("value");
    }
    let _ = set(world, "NEW", json!({ "value": "x" }), 201).await;
    for body in [json!({}), json!({ "value": "" })] {
        world.api.put("/variables/NEW", body).await.invalid("value");
    }
    let _ = set(
        world,
        "KEPT",
        json!({ "value": "kept secret", "isSecret": true }),
        201,
    )
    .await;
    for body in [json!({}), json!({ "value": "" }), json!({ "value": "   " })] {
        assert_eq!(set(world, "KEPT", body, 200).await["created"], false);
    }
    assert_eq!(said(world, "{{$vars.KEPT == 'kept secret'}}").await, true);
}

/// What a node makes of a template.
async fn said(world: &World, template: &str) -> Value {
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        ("set", json!({ "fields": { "said": template } })),
    ]);
    let workflow = world.api.workflow_with("Says", flow).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    report["nodes"][1]["output"]["said"].clone()
}

async fn teams_have_their_own(world: &World) {
    let team = &world.team;
    let own = set(world, "WHERE", json!({ "value": "team", "teamId": team }), 201).await;
    assert_eq!(own["teamId"], team.as_str());
    assert_eq!(said(world, "{{$vars.WHERE}}").await, "team");
    let shared = set(world, "WHERE", json!({ "value": "organization" }), 201).await;
    assert_ne!(own["id"], shared["id"]);
    assert_eq!(said(world, "{{$vars.WHERE}}").await, "team");
    let _ = world
        .api
        .delete(format!("/variables/{}", text(&own["id"])))
        .await
        .data(200);
    assert_eq!(said(world, "{{$vars.WHERE}}").await, "organization");
    let stranger = world.stranger().await;
    let theirs = stranger.get("/teams").await.data(200)[0]["id"].clone();
    world
        .api
        .put("/variables/X", json!({ "value": "x", "teamId": theirs }))
        .await
        .invalid("teamId");
}

async fn a_deleted_variable_is_gone_and_its_name_free(world: &World) {
    let made = set(world, "GONE", json!({ "value": "x" }), 201).await;
    let path = format!("/variables/{}", text(&made["id"]));
    // Not by its name.
    world.api.delete("/variables/GONE").await.error(404, "NOT_FOUND");
    assert_eq!(world.api.delete(&path).await.data(200), json!({ "ok": true }));
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    world.api.get(&path).await.error(404, "NOT_FOUND");
    assert_eq!(world.api.get("/variables").await.data(200), json!([]));
    assert_eq!(said(world, "{{ifempty($vars.GONE; 'nothing')}}").await, "nothing");
    let again = set(
        world,
        "GONE",
        json!({ "value": "secret again", "isSecret": true }),
        201,
    )
    .await;
    assert_ne!(again["id"], made["id"]);
    assert_eq!(again["isSecret"], true);
}

async fn another_organizations_variables_do_not_exist(world: &World) {
    let stranger = world.stranger().await;
    let theirs = stranger
        .put("/variables/THEIRS", json!({ "value": "x" }))
        .await
        .data(201);
    let path = format!("/variables/{}", text(&theirs["id"]));
    world.api.get(&path).await.error(404, "NOT_FOUND");
    world.api.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(world.api.get("/variables").await.data(200), json!([]));
    assert_eq!(
        set(world, "THEIRS", json!({ "value": "y" }), 201).await["created"],
        true
    );
    assert_eq!(stranger.get(&path).await.data(200)["value"], "x");
}

async fn of_several_at_once_one_makes_it(world: &World) {
    for (number, is_secret) in [(2, false), (2, true), (12, false), (12, true)] {
        let name = format!("RACE_{number}_{is_secret}");
        let sets = (0..number).map(|number| {
            let (api, path) = (world.api.clone(), format!("/variables/{name}"));
            async move {
                let body = json!({ "value": format!("value {number}"), "isSecret": is_secret });
                let answer = api.put(path, body).await;
                (answer.status, answer.data(answer.status))
            }
        });
        let mut answers = together(sets).await;
        answers.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        for (place, (status, result)) in answers.iter().enumerate() {
            let expected = if place == 0 { (201, true) } else { (200, false) };
            assert_eq!((*status, result["created"] == true), expected, "{answers:?}");
            assert_eq!(result["id"], answers[0].1["id"]);
        }
        let said = said(world, &format!("{{{{substring($vars.{name}; 0; 5)}}}}")).await;
        assert_eq!(said, "value");
    }
}

async fn runs_read_variables_and_record_no_secret(world: &World) {
    let _ = set(
        world,
        "SECRET_TOKEN",
        json!({ "value": "tür&\"schlüssel", "isSecret": true }),
        201,
    )
    .await;
    let _ = set(world, "NAME", json!({ "value": "Ada" }), 201).await;
    assert_eq!(said(world, "{{$vars.NAME}}").await, "Ada");
    assert_eq!(said(world, "{{$vars.UNKNOWN}}").await, Value::Null);
    assert_eq!(said(world, "{{$vars.SECRET_TOKEN}}").await, "***");
    assert_eq!(
        said(world, "<{{$vars.NAME}}:{{$vars.SECRET_TOKEN}}>").await,
        "<Ada:***>"
    );
    assert_eq!(said(world, "{{length($vars.SECRET_TOKEN)}}").await, 14);
    // Errors are records, too.
    let flow = graphs::chain(&[
        ("manual_trigger", json!({})),
        (
            "stop",
            json!({ "error": true, "message": "no entry with {{$vars.SECRET_TOKEN}}" }),
        ),
    ]);
    let workflow = world.api.workflow("Fails").await;
    let draft = world.api.get(format!("/workflows/{workflow}")).await.data(200);
    let body = json!({ "ops": flow, "expectedUpdatedAt": draft["updatedAt"] });
    let edited = world
        .api
        .post(format!("/workflows/{workflow}/ops"), body)
        .await
        .data(200);
    if edited["errors"] == json!([]) {
        let run = world.api.start(&workflow, json!({})).await;
        let report = world.api.ended(&run).await.to_string();
        assert!(!report.contains("schlüssel"), "{report}");
    }
    // A change holds for the next run.
    let _ = set(world, "NAME", json!({ "value": "Grace" }), 200).await;
    assert_eq!(said(world, "{{$vars.NAME}}").await, "Grace");
}

async fn the_master_key_is_rotated_while_serving(world: &World) {
    let _ = set(
        world,
        "BEFORE",
        json!({ "value": "sealed before", "isSecret": true }),
        201,
    )
    .await;
    let file = world.server.data_dir().join("master-key");
    let old = std::fs::read_to_string(&file).unwrap();
    let rotate = async || {
        let mut client = world.admin.client.clone();
        let rotated = client.rotate_secrets(contract::v1::RotateSecretsRequest {}).await;
        rotated.unwrap().into_inner().master_key_version
    };
    let first = rotate().await;
    let second = rotate().await;
    assert!(second > first);
    let told = format!("/activity?action=master_key.rotated&targetId={second}");
    let told = world.api.get(told).await.data(200);
    assert_eq!(told["events"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["events"][0]["actorUserId"], Value::Null);
    let new = std::fs::read_to_string(&file).unwrap();
    assert_eq!(new.lines().count(), 1);
    assert_ne!(old, new);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(said(world, "{{$vars.BEFORE == 'sealed before'}}").await, true);
    let _ = set(
        world,
        "AFTER",
        json!({ "value": "sealed after", "isSecret": true }),
        201,
    )
    .await;
    assert_eq!(said(world, "{{$vars.AFTER == 'sealed after'}}").await, true);
    // Another node with the old file does not start, and says why.
    let directory = test_support::TemporaryDirectory::new("old-key").unwrap();
    let old_file = directory.path().join("master-key");
    std::fs::write(&old_file, old).unwrap();
    let database = match world.server.database_url() {
        Some(url) => url.to_owned(),
        None => format!(
            "sqlite:{}",
            world.server.data_dir().join("switchyard.db").display()
        ),
    };
    let output = std::process::Command::new(test_support::binary("switchyard"))
        .args([
            "serve",
            "--rest-listen",
            "127.0.0.1:0",
            "--grpc-listen",
            "127.0.0.1:0",
        ])
        .args(["--database-url", &database])
        .arg("--data-dir")
        .arg(directory.path())
        .arg("--master-key-file")
        .arg(&old_file)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && told.contains("of the master key"),
        "{told}"
    );
}
