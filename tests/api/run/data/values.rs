//! Variables that nodes set, and values that they check.

use serde_json::{Value, json};

use super::{failure, outputs};
use crate::world::World;

on_both_databases!(
    a_variable_is_set_by_a_node,
    a_secret_stays_one,
    a_team_has_its_own_variable,
    a_value_is_checked_against_a_structure,
);

async fn variable(world: &World, name: &str) -> Value {
    let list = world.api.get("/variables").await.data(200);
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|variable| variable["name"] == name);
    found.cloned().unwrap_or_default()
}

async fn a_variable_is_set_by_a_node(world: &World) {
    let set = |value: Value| [("variable_set", json!({ "name": "LAST_ORDER", "value": value }))];
    let shown = outputs(&world.api, &set(json!("{{1.id}} 🧾")), json!({ "id": "o-1" })).await;
    let made = variable(world, "LAST_ORDER").await;
    assert_eq!(
        shown[2],
        json!({ "name": "LAST_ORDER", "updatedAt": made["updatedAt"] })
    );
    assert_eq!(
        (&made["value"], &made["isSecret"], &made["teamId"]),
        (&json!("o-1 🧾"), &json!(false), &Value::Null)
    );
    for (value, stored) in [(json!(7), "7"), (json!({ "a": [true] }), r#"{"a":[true]}"#)] {
        let _ = outputs(&world.api, &set(value), json!({})).await;
        assert_eq!(variable(world, "LAST_ORDER").await["value"], stored);
    }
    let trail = world.api.get("/activity?targetType=variable").await.data(200);
    let told: Vec<(&Value, &Value)> = trail["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["action"], &entry["actorUserId"]))
        .collect();
    let (updated, created) = (json!("variable.updated"), json!("variable.created"));
    assert_eq!(
        told,
        [
            (&updated, &Value::Null),
            (&updated, &Value::Null),
            (&created, &Value::Null)
        ]
    );
    for (name, value) in [
        ("1ST", json!("x")),
        ("Ä", json!("x")),
        ("", json!("x")),
        ("BLANK", json!(" ")),
        ("LONG", json!("x".repeat(262_145))),
    ] {
        let params = json!({ "name": "{{1.name}}", "value": "{{1.value}}" });
        let input = json!({ "name": name, "value": value });
        let (code, message) = failure(&world.api, "variable_set", params, input).await;
        assert_eq!(code, "VALIDATION_ERROR", "{name}: {message}");
    }
    let params = json!({ "name": "NULL", "value": "{{1.missing}}" });
    assert_eq!(
        failure(&world.api, "variable_set", params, json!({})).await.0,
        "EXPRESSION_ERROR"
    );
    assert_eq!(
        world
            .api
            .get("/variables")
            .await
            .data(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

async fn a_secret_stays_one(world: &World) {
    let body = json!({ "value": "old secret", "isSecret": true });
    let _ = world.api.put("/variables/TOKEN", body).await.data(201);
    let nodes = [("variable_set", json!({ "name": "TOKEN", "value": "{{1.token}}" }))];
    let shown = outputs(&world.api, &nodes, json!({ "token": "brand new" })).await;
    assert_eq!(shown[2]["name"], "TOKEN");
    let secret = variable(world, "TOKEN").await;
    assert_eq!(
        (&secret["isSecret"], &secret["value"]),
        (&json!(true), &Value::Null)
    );
    let says = [(
        "set",
        json!({ "fields": { "said": "<{{$vars.TOKEN}}>", "same": "{{$vars.TOKEN == 'brand new'}}" } }),
    )];
    let shown = outputs(&world.api, &says, json!({})).await;
    assert_eq!(shown[2], json!({ "said": "<***>", "same": true }));
    let (code, message) = failure(
        &world.api,
        "variable_set",
        nodes[0].1.clone(),
        json!({ "token": "short" }),
    )
    .await;
    assert_eq!(code, "VALIDATION_ERROR");
    assert!(message.contains("at least 6"), "{message}");
}

async fn a_team_has_its_own_variable(world: &World) {
    let body = json!({ "value": "team's", "teamId": world.team });
    let _ = world.api.put("/variables/WHERE", body).await.data(201);
    let nodes = [(
        "variable_set",
        json!({ "name": "WHERE", "value": "set by a node" }),
    )];
    let _ = outputs(&world.api, &nodes, json!({})).await;
    let only = variable(world, "WHERE").await;
    assert_eq!(
        (&only["value"], &only["teamId"]),
        (&json!("set by a node"), &json!(world.team)),
        "it is the one that $vars.WHERE gives"
    );
    assert_eq!(
        world
            .api
            .get("/variables")
            .await
            .data(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

async fn a_value_is_checked_against_a_structure(world: &World) {
    let fields = json!([
        { "name": "email", "type": "email", "required": true },
        { "name": "größe", "type": "integer" },
    ]);
    let structure = world
        .api
        .post("/structures", json!({ "name": "Customer", "fields": fields }))
        .await
        .data(201);
    let check = |value: &str| {
        (
            "structure_validate",
            json!({ "structureId": structure["id"], "value": value }),
        )
    };
    let nodes = [check("{{1.right}}"), check("{{1.wrong}}"), check("{{1.missing}}")];
    let input = json!({
        "right": { "email": "a@example.com", "größe": 1, "more": true },
        "wrong": { "größe": 1.5 },
    });
    let shown = outputs(&world.api, &nodes, input).await;
    assert_eq!(shown[2], json!({ "valid": true, "issues": [] }));
    assert_eq!(
        shown[3],
        json!({ "valid": false, "issues": [
            { "path": "email", "message": "must have a value" },
            { "path": "größe", "message": "must be a whole number of 64 bits" },
        ] })
    );
    assert_eq!(
        shown[4],
        json!({ "valid": false, "issues": [{ "path": "", "message": "must be an object" }] })
    );
}
