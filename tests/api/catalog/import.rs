//! Apps that are made of OpenAPI documents.

use std::process::{Command, Output};

use bytes::Bytes;
use contract::v1;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target, TemporaryDirectory, binary, text};
use tonic_types::StatusExt as _;

use crate::world::World;

on_both_databases!(
    a_document_becomes_an_app_whose_operations_run,
    a_document_is_printed_edited_and_added,
    a_changed_document_is_the_next_version,
    what_cannot_be_imported_is_refused_with_its_place,
);

const PET_SHOP: &str = include_str!("pet_shop.yaml");

/// A service that says what it was asked.
async fn pets() -> Target {
    Target::start(|asked: &Asked| {
        let answer = json!({
            "method": asked.method.as_str(),
            "path": asked.uri.path(),
            "query": asked.uri.query(),
            "body": asked.json(),
        });
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(answer.to_string())).unwrap()
    })
    .await
}

fn pet_shop(url: &str) -> String {
    PET_SHOP.replace("BASE_URL", url)
}

async fn import(world: &World, document: &str) -> Result<v1::ImportOpenApiResponse, tonic::Status> {
    let request = v1::ImportOpenApiRequest {
        document: document.as_bytes().to_vec(),
        organization_id: Some(world.organization.clone()),
        ..Default::default()
    };
    let imported = world.admin.client.clone().import_open_api(request).await?;
    Ok(imported.into_inner())
}

async fn a_document_becomes_an_app_whose_operations_run(world: &World) {
    let service = pets().await;
    let imported = import(world, &pet_shop(&service.url(""))).await.unwrap();
    let app = imported.app.unwrap();
    assert_eq!(
        (app.app_id.as_str(), app.version, app.module_count),
        ("pet_shop", 1, 6)
    );
    let warnings = imported.warnings.join("\n");
    for said in [
        "servers[1]",
        "variables.stage",
        "session",
        "sign_in",
        "default \"box\"",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    let found = world.api.get("/catalog/apps?query=pet_shop").await.data(200);
    assert_eq!(
        found[0]["description"],
        "Pets of a small shop, and who takes them home."
    );
    let ids: Vec<String> = found[0]["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| text(&module["id"]))
        .collect();
    assert_eq!(
        ids,
        [
            "list_pets",
            "create_pet",
            "get_pet",
            "delete_pets_pet_id",
            "rename_pet",
            "shop_status"
        ]
    );
    let body =
        json!({ "appId": "pet_shop", "connectionId": "token", "name": "Mine", "data": { "token": "t-1" } });
    let credential = text(&world.api.post("/credentials", body).await.data(200)["credentialId"]);
    let module = |id: &str, params: Value| {
        json!({ "op": "add_node", "tempId": id, "appId": "pet_shop", "moduleSlug": id, "after": "start",
                "credentialId": credential, "params": params })
    };
    let operations = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        module("list_pets", json!({ "kind": "cat", "tags": ["a", "b"], "ids": [1, 2], "X_Trace": "t" })),
        module("create_pet", json!({ "name": "Tom", "in": "cage", "mother": { "name": "Kate" } })),
        module("get_pet", json!({ "petId": "{{1.none ?? 7}}" })),
        module("rename_pet", json!({ "petId": "7", "body": "Tim\nTom" })),
        module("shop_status", json!({})),
    ]);
    let workflow = world.api.workflow_with("Pets", operations).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["status"], "succeeded", "{report}");
    let output = |id: i64| {
        let nodes = report["nodes"].as_array().unwrap().iter();
        nodes.clone().find(|node| node["nodeId"] == id).unwrap()["output"].clone()
    };
    assert_eq!(output(2)["query"], "kind=cat&tags=a&tags=b&ids=1%2C2&limit=20");
    assert_eq!(
        output(3)["body"],
        json!({ "name": "Tom", "vaccinated": false, "mother": { "name": "Kate" }, "in": "cage" })
    );
    assert_eq!(
        (&output(4)["method"], &output(4)["path"]),
        (&json!("GET"), &json!("/v2/pets/7"))
    );
    assert_eq!(
        (&output(5)["method"], &output(5)["path"]),
        (&json!("PUT"), &json!("/v2/pets/7/name"))
    );
    assert_eq!(output(6)["path"], "/v2/shop");
    let asked = service.asked();
    let listed = asked.iter().find(|asked| asked.uri.path() == "/v2/pets").unwrap();
    assert_eq!(listed.header("authorization"), "Bearer t-1");
    let renamed = asked
        .iter()
        .find(|asked| asked.uri.path().ends_with("/name"))
        .unwrap();
    assert_eq!(
        (&renamed.body[..], renamed.header("content-type")),
        (&b"Tim\nTom"[..], "text/plain")
    );
}

fn catalog(world: &World, arguments: &[&str]) -> Output {
    Command::new(binary("switchyard"))
        .args(["admin", "catalog"])
        .args(arguments)
        .args(["--org", &world.organization])
        .env("SWITCHYARD_CORE", world.server.grpc_url())
        .env("SWITCHYARD_DATA_DIR", world.server.data_dir())
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

async fn a_document_is_printed_edited_and_added(world: &World) {
    let folder = TemporaryDirectory::new("import").unwrap();
    let (document, manifest) = (
        folder.path().join("pets.yaml"),
        folder.path().join("manifest.yaml"),
    );
    std::fs::write(&document, pet_shop("https://pets.test")).unwrap();
    let (document, manifest_name) = (document.to_str().unwrap(), manifest.to_str().unwrap());
    let printed = out(&catalog(
        world,
        &["import-openapi", document, "--print", "--id", "my_pets"],
    ));
    assert!(printed.starts_with("# servers"), "{printed}");
    let found = world.api.get("/catalog/apps?query=my_pets").await.data(200);
    let found: Vec<&str> = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|app| app["appId"].as_str())
        .collect();
    assert!(!found.contains(&"my_pets"), "{found:?}");
    std::fs::write(&manifest, printed.replace("name: Pet Shop", "name: My Pets")).unwrap();
    let checked = Command::new(binary("switchyard"))
        .args(["manifest", "check", manifest_name])
        .output();
    assert!(out(&checked.unwrap()).contains("6 modules"));
    let added = out(&catalog(world, &["add", manifest_name]));
    assert!(
        added.contains("appId: my_pets") && added.contains("version: 1"),
        "{added}"
    );
    let found = world.api.get("/catalog/apps?query=my_pets").await.data(200);
    assert_eq!(found[0]["name"], "My Pets");
    let imported = out(&catalog(
        world,
        &["import-openapi", document, "--base-url", "https://other.test"],
    ));
    assert!(
        imported.contains("appId: pet_shop") && imported.contains("warnings: "),
        "{imported}"
    );
}

async fn a_changed_document_is_the_next_version(world: &World) {
    let document = pet_shop("https://pets.test");
    let version = async |document: &str| import(world, document).await.unwrap().app.unwrap().version;
    assert_eq!(version(&document).await, 1);
    assert_eq!(version(&document).await, 1);
    assert_eq!(version(&document.replace("getPet", "readPet")).await, 2);
}

async fn what_cannot_be_imported_is_refused_with_its_place(world: &World) {
    let good = pet_shop("https://pets.test");
    for (document, place, says) in [
        ("{\"openapi\": ".to_owned(), "document", "line 1"),
        ("a: [".to_owned(), "document", "line"),
        ("[]".to_owned(), "document", "no OpenAPI document"),
        ("swagger: '2.0'".to_owned(), "document.swagger", "older form"),
        (good.replace("3.0.3", "2.9"), "document.openapi", "3.0 and 3.1"),
        (
            good.replace("title: Pet Shop", "title: 店"),
            "appId",
            "is required",
        ),
        (
            good.replace("title: Pet Shop", "title: HTTP"),
            "manifest.id",
            "comes with the service",
        ),
        (
            good.replace("https://pets.test/{stage}", "/{stage}"),
            "document.servers[0].url",
            "base URL",
        ),
        (
            "openapi: 3.1.0\ninfo: { title: x }\nservers: [{ url: 'https://x.test' }]".to_owned(),
            "document.paths",
            "no operation",
        ),
    ] {
        let refused = import(world, &document).await.unwrap_err();
        let details = refused.get_error_details();
        let violations = &details
            .bad_request()
            .unwrap_or_else(|| panic!("{refused:?}"))
            .field_violations;
        let found = violations
            .iter()
            .any(|one| one.field == place && one.description.contains(says));
        assert!(found, "{place} {says}: {violations:?}");
    }
}
