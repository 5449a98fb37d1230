//! What becomes of documents.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::connectors::App;

/// A document with these paths and components.
fn document(paths: Value, components: Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": "https://api.shop.test/v1/" }],
        "paths": paths,
        "components": components,
    })
}

fn import_all(document: &Value) -> Result<(Value, Vec<String>), ImportError> {
    let imported = import(document.to_string().as_bytes(), &Wishes::default())?;
    let app = App::read(&imported.manifest);
    assert!(app.is_ok(), "{}\n{}", app.err().unwrap(), imported.manifest);
    let manifest = serde_saphyr::from_str(&imported.manifest).unwrap();
    Ok((manifest, imported.warnings))
}

/// The manifest of a document with these paths, and the warnings.
fn imported(paths: Value, components: Value) -> (Value, Vec<String>) {
    import_all(&document(paths, components)).unwrap()
}

/// The one module of an operation, and the warnings.
fn module(operation: Value) -> (Value, Vec<String>) {
    let (manifest, warnings) = imported(json!({ "/things/{id}": { "post": operation } }), json!({}));
    (manifest["modules"][0].clone(), warnings)
}

fn refusal(document: &Value) -> ImportError {
    import_all(document).unwrap_err()
}

#[test]
fn an_operation_is_a_module() {
    let (module, warnings) = module(json!({
        "operationId": "Things_updateOne",
        "summary": "Change a thing",
        "description": "Changes\n\na  thing.",
        "parameters": [
            { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
            { "name": "dry-run", "in": "query", "schema": { "type": ["boolean", "null"], "default": false } },
            { "name": "Content-Type", "in": "header", "schema": { "type": "string" } },
        ],
    }));
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        module,
        json!({
            "id": "things_update_one",
            "label": "Change a thing",
            "type": "action",
            "description": "Changes a thing.",
            "connection": "optional",
            "fields": [
                { "name": "id", "label": "Id", "type": "text", "required": true, "mappable": true },
                { "name": "dry_run", "label": "Dry run", "type": "boolean", "mappable": true, "default": false },
            ],
            "example": { "id": "{{1.value}}" },
            "request": {
                "method": "POST",
                "path": "/things/{{parameters.id}}",
                "query": { "dry-run": "{{parameters.dry_run}}" },
            },
            "output": "{{response.body}}",
        })
    );
}

#[test]
fn names_are_told_apart() {
    let (module, warnings) = module(json!({
        "parameters": [{ "name": "id", "in": "query", "schema": { "type": "integer" } }],
        "requestBody": { "content": { "application/json": { "schema": {
            "type": "object",
            "properties": { "id": { "type": "integer" }, "in": { "type": "number" }, "9 lives": {}, "{{x}}": {} },
        } } } },
    }));
    assert_eq!(warnings, [""; 0]);
    let names: Vec<&str> = module["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["id", "id_2", "id_3", "in", "_9_lives", "x"]);
    assert_eq!(
        module["request"],
        json!({
            "method": "POST",
            "path": "/things/{{parameters.id_2}}",
            "query": { "id": "{{parameters.id}}" },
            "body": {
                "id": "{{parameters.id_3}}", "in": "{{parameters.in}}", "9 lives": "{{parameters._9_lives}}",
                "{{x}}": "{{parameters.x}}",
            },
        })
    );
}

#[test]
fn bodies_are_written_as_their_type_says() {
    for (media_type, schema, request, field_types) in [
        (
            "application/merge-patch+json",
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            json!({ "body": { "a": "{{parameters.a}}" }, "headers": { "content-type": "application/merge-patch+json" } }),
            vec!["any"],
        ),
        (
            "application/json; charset=utf-8",
            json!({ "type": "array", "items": {} }),
            json!({ "body": "{{parameters.body}}" }),
            vec!["array"],
        ),
        (
            "application/json",
            json!({ "oneOf": [{ "type": "object", "properties": { "a": {} } }, { "type": "null" }], "properties": { "b": {} } }),
            json!({ "body": "{{parameters.body}}" }),
            vec!["object"],
        ),
        (
            "application/x-www-form-urlencoded",
            json!({ "properties": { "a": { "type": "integer" } } }),
            json!({ "bodyType": "form", "body": { "a": "{{parameters.a}}" } }),
            vec!["integer"],
        ),
        (
            "multipart/form-data",
            json!({ "properties": { "file": { "type": "string", "format": "binary" } } }),
            json!({ "bodyType": "multipart", "body": { "file": "{{parameters.file}}" } }),
            vec!["any"],
        ),
        (
            "application/xml",
            json!({ "type": "object", "properties": { "a": {} } }),
            json!({ "bodyType": "raw", "body": "{{parameters.body}}", "headers": { "content-type": "application/xml" } }),
            vec!["any"],
        ),
    ] {
        let content = json!({ media_type: { "schema": schema } });
        let (module, warnings) = module(json!({ "requestBody": { "content": content } }));
        assert_eq!(warnings, [""; 0], "{media_type}");
        let mut wanted = json!({ "method": "POST", "path": "/things/{{parameters.id}}" });
        wanted
            .as_object_mut()
            .unwrap()
            .extend(request.as_object().unwrap().clone());
        assert_eq!(module["request"], wanted, "{media_type}");
        let types: Vec<&str> = module["fields"].as_array().unwrap()[1..]
            .iter()
            .map(|field| field["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, field_types, "{media_type}");
    }
}

#[test]
fn schemes_are_ways_to_connect() {
    let components = json!({ "securitySchemes": {
        "login": { "type": "http", "scheme": "Basic" },
        "appKey": { "type": "apiKey", "in": "header", "name": "X-App" },
        "userKey": { "type": "apiKey", "in": "query", "name": "user" },
        "cookie": { "type": "apiKey", "in": "cookie", "name": "session" },
        "digest": { "type": "http", "scheme": "digest" },
        "account": { "type": "oauth2", "flows": {
            "authorizationCode": {
                "authorizationUrl": "https://login.shop.test/authorize", "tokenUrl": "https://login.shop.test:8443/token",
                "scopes": { "read": "", "write": "", "admin": "" },
            },
            "clientCredentials": { "tokenUrl": "/token", "scopes": {} },
            "implicit": { "authorizationUrl": "https://login.shop.test/authorize", "scopes": {} },
        } },
    } });
    let paths = json!({
        "/a": { "get": { "security": [{ "appKey": [], "userKey": [] }], "parameters": [
            { "name": "user", "in": "query", "required": true, "schema": { "type": "string" } } ] } },
        "/b": { "get": { "security": [{ "account": ["read", "write"] }] } },
        "/c": { "get": { "security": [{ "digest": [] }] } },
        "/d": { "get": { "security": [{ "login": [] }, {}] } },
    });
    let (manifest, warnings) = imported(paths, components);
    assert_eq!(
        manifest["hosts"],
        json!(["api.shop.test", "login.shop.test:8443"])
    );
    let connections = manifest["connections"].as_array().unwrap();
    let ids: Vec<&str> = connections
        .iter()
        .map(|connection| connection["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "login",
            "app_key",
            "user_key",
            "account",
            "account_2",
            "app_key_and_user_key"
        ]
    );
    assert_eq!(connections[3]["oauth2"]["scopes"], json!(["read", "write"]));
    assert_eq!(
        connections[4]["oauth2"]["tokenUrl"],
        "https://api.shop.test/token"
    );
    assert_eq!(
        connections[5]["apply"][1],
        json!({ "to": "query", "name": "user", "value": "{{connection.userKey}}" })
    );
    let needs: Vec<&Value> = manifest["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| &module["connection"])
        .collect();
    assert_eq!(
        needs,
        [&Value::Null, &Value::Null, &json!("optional"), &json!("optional")]
    );
    assert_eq!(
        manifest["modules"][0]["fields"],
        Value::Null,
        "the connection brings it"
    );
    let warnings = warnings.join("\n");
    for said in [
        "securitySchemes.cookie",
        "securitySchemes.digest",
        "flows.implicit",
        "paths./c.get",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
}

#[test]
fn references_that_lead_nowhere_or_back_are_told() {
    let components = json!({
        "parameters": { "Loop": { "$ref": "#/components/parameters/Loop" } },
        "schemas": {
            "Tree": { "type": "object", "properties": { "left": { "$ref": "#/components/schemas/Tree" } } },
            "Snake": { "allOf": [{ "$ref": "#/components/schemas/Snake" }, { "type": "object", "properties": { "a": {} } }] },
        },
    });
    let body = |name: &str| json!({ "content": { "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } } });
    let paths = json!({
        "/a": { "post": { "parameters": [
            { "$ref": "#/components/parameters/Loop" }, { "$ref": "#/components/parameters/None" },
            { "$ref": "other.yaml#/parameters/X" },
        ], "requestBody": body("Tree") } },
        "/b": { "post": { "requestBody": body("Snake") } },
        "/c~d": { "get": {} },
        "/e": { "$ref": "#/paths/~1c~0d" },
        "/f": { "$ref": "#/paths/%2Fb" },
    });
    let (manifest, warnings) = imported(paths, components);
    let fields = |number: usize| manifest["modules"][number]["fields"][0]["name"].clone();
    assert_eq!((fields(0), fields(1)), (json!("left"), json!("a")));
    assert_eq!(manifest["modules"][3]["request"]["path"], "/e");
    let warnings = warnings.join("\n");
    for said in [
        "parameters[0]: is left out: its reference leads back",
        "None leads to nothing",
        "other.yaml",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
}

#[test]
fn what_cannot_be_sent_is_told_and_left_out() {
    let object = json!({ "type": "object", "properties": { "a": {} } });
    let paths = json!({
        "/a": { "get": { "parameters": [{ "name": "filter", "in": "query", "style": "deepObject", "schema": object }] },
                "trace": {} },
        "/b": { "get": { "parameters": [{ "name": "filter", "in": "query", "required": true, "schema": object }] } },
        "/c": { "get": { "servers": [{ "url": "https://other.test" }] } },
        "/d?x=1": { "get": {} },
        "/e/{id": { "get": {} },
        "/f": { "get": { "parameters": [{ "in": "query" }, { "name": "x", "in": "elsewhere" },
            { "name": "json", "in": "query", "content": { "application/json": { "schema": object } } }] } },
    });
    let (manifest, warnings) = imported(paths, json!({}));
    let modules = manifest["modules"].as_array().unwrap();
    let ids: Vec<&str> = modules
        .iter()
        .map(|module| module["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["get_a", "get_f"]);
    assert_eq!(
        modules[1]["request"]["query"]["json"],
        "{{parameters.json == null ? null : toJSON(parameters.json)}}"
    );
    let warnings = warnings.join("\n");
    for said in [
        "paths./a.get.parameters[0]",
        "trace",
        "paths./b.get: is left out",
        "servers of its own",
        "paths./d?x=1",
        "paths./e/{id",
        "has no name",
        "its place is not known",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
}

#[test]
fn documents_are_bounded() {
    let many = |number: usize| {
        let paths = (0..number).map(|number| (format!("/{number}"), json!({ "get": {} })));
        document(paths.collect(), json!({}))
    };
    assert!(import_all(&many(MOST_OPERATIONS)).is_ok());
    let refused = refusal(&many(MOST_OPERATIONS + 1));
    assert_eq!(refused.place(), "document.paths");
    assert!(refused.to_string().contains("501 operations"));
    let wide = vec![b' '; MOST_BYTES + 1];
    assert!(
        import(&wide, &Wishes::default())
            .unwrap_err()
            .to_string()
            .contains("at most")
    );
    let deep = format!("openapi: 3.1.0\nx: {}{}", "[".repeat(120), "]".repeat(120));
    assert!(import(deep.as_bytes(), &Wishes::default()).is_err());
    let laughs: String = (1..12)
        .map(|level| {
            format!(
                "a{level}: &a{level} [{}]\n",
                format!("*a{},", level - 1).repeat(9)
            )
        })
        .collect();
    let laughs = format!("openapi: 3.1.0\na0: &a0 [x]\n{laughs}");
    assert!(import(laughs.as_bytes(), &Wishes::default()).is_err());
    assert!(
        import(b"\xff\xfe", &Wishes::default())
            .unwrap_err()
            .to_string()
            .contains("byte 0")
    );
}

#[test]
fn every_text_survives_its_way_into_yaml() {
    let texts = [
        "yes",
        "1.0",
        "~",
        "a: b # c",
        "- x",
        "it's \"so\"",
        "{{1.x}}",
        "null",
        "\u{1f408}",
        "@x",
        "%y",
        "2026-01-01",
        "=",
        "<<",
    ];
    for text in texts {
        let operation = json!({ "operationId": "x", "summary": text, "description": text, "parameters": [
            { "name": text, "in": "query", "description": text, "schema": { "type": "string", "enum": [text], "default": text } } ] });
        let (manifest, _) = imported(json!({ "/x": { "get": operation } }), json!({}));
        let module = &manifest["modules"][0];
        assert_eq!(module["label"], text);
        assert_eq!(module["fields"][0]["choices"], json!([text]));
        assert_eq!(module["fields"][0]["default"], text);
        assert!(module["request"]["query"].get(text).is_some(), "{module}");
    }
}

/// Every place in a value, as a pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                places(value, &format!("{at}/{number}"), found);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn whatever_stands_in_a_document_there_is_a_manifest_or_a_refusal() {
    let operation = json!({
        "operationId": "x", "security": [{ "a": [] }, { "b": ["s"] }],
        "parameters": [{ "name": "q", "in": "query", "explode": false, "schema": { "type": "array", "enum": ["a"], "default": "a" } }],
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
            "allOf": [{ "required": ["p"], "properties": { "p": { "anyOf": [{ "type": "string" }] } } }],
        } } } },
    });
    let flow = json!({ "tokenUrl": "https://x.test/t", "authorizationUrl": "https://x.test/a", "scopes": { "s": "" } });
    let good = document(
        json!({ "/a/{b}": { "post": operation } }),
        json!({ "securitySchemes": {
            "a": { "type": "apiKey", "in": "header", "name": "K" },
            "b": { "type": "oauth2", "flows": { "authorizationCode": flow } },
        } }),
    );
    let mut found = Vec::new();
    places(&good, "", &mut found);
    let others = [
        json!(null),
        json!(1),
        json!("{{x"),
        json!([]),
        json!([{}]),
        json!({}),
        json!({ "$ref": "#" }),
    ];
    let mut made = 0;
    for place in &found {
        for other in &others {
            let mut document = good.clone();
            *document.pointer_mut(place).unwrap() = other.clone();
            match import(document.to_string().as_bytes(), &Wishes::default()) {
                Ok(imported) => {
                    let read = App::read(&imported.manifest);
                    assert!(
                        read.is_ok(),
                        "{place} {other}: {}\n{}",
                        read.err().unwrap(),
                        imported.manifest
                    );
                    made += 1;
                }
                Err(refused) => assert!(!refused.to_string().is_empty()),
            }
        }
    }
    assert!(made > found.len(), "{made} of {}", found.len() * others.len());
}
