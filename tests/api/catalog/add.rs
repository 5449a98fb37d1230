//! Apps that are added from manifests: who has them, what can be done with them, and what is refused.

use std::process::Command;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Server, ServerOptions, ShowLog, Target, binary, text, until};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{add, bring, credential, flow, output, service, shop};
use crate::world::World;

on_both_databases!(
    an_app_is_the_organizations_alone,
    its_nodes_run_with_its_credentials,
    its_fields_have_choices_and_its_nodes_are_tried_out,
    the_same_again_is_no_new_version,
    its_triggers_start_runs,
    what_cannot_be_is_refused_with_its_place,
    the_command_line_adds_it,
);

async fn an_app_is_the_organizations_alone(world: &World) {
    let stranger = world.stranger().await;
    let (search, module) = (
        "/catalog/apps?query=corner",
        "/catalog/apps/corner_shop/modules/get_order",
    );
    assert_eq!(world.api.get(search).await.data(200), json!([]));
    assert_eq!(bring(world, &shop("https://shop.test", "/orders")).await, 1);
    let found = world.api.get(search).await.data(200);
    let modules: Vec<String> = found[0]["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| text(&module["id"]))
        .collect();
    assert_eq!(
        (text(&found[0]["appId"]).as_str(), modules),
        (
            "corner_shop",
            vec!["get_order".to_owned(), "new_order".to_owned()]
        )
    );
    let spec = world.api.get(module).await.data(200);
    assert_eq!(spec["meta"]["connections"][0]["id"], "key", "{spec}");
    assert_eq!(spec["requiresConnection"], true);

    assert_eq!(stranger.get(search).await.data(200), json!([]));
    stranger.get(module).await.error(404, "NOT_FOUND");
    let credential = json!({ "appId": "corner_shop", "connectionId": "key", "name": "Mine" });
    stranger.post("/credentials", credential).await.invalid("appId");
    let workflow = stranger.workflow("Foreign").await;
    let draft = stranger.get(format!("/workflows/{workflow}")).await.data(200);
    let ops = json!([{ "op": "add_node", "tempId": "n", "appId": "corner_shop", "moduleSlug": "get_order" }]);
    let body = json!({ "ops": ops, "expectedUpdatedAt": draft["updatedAt"] });
    let result = stranger
        .post(format!("/workflows/{workflow}/ops"), body)
        .await
        .data(200);
    assert!(
        text(&result["errors"][0]).contains("there is no app corner_shop"),
        "{result}"
    );

    let page = world.api.get("/activity?targetType=manifest").await.data(200);
    assert_eq!(page["events"][0]["action"], "manifest.added");
    assert_eq!(
        (&page["events"][0]["targetId"], &page["events"][0]["label"]),
        (&json!("corner_shop"), &json!("Corner Shop"))
    );
}

async fn its_nodes_run_with_its_credentials(world: &World) {
    let service = service().await;
    bring(world, &shop(&service.url(""), "/orders")).await;
    let credential = credential(world, "k-1").await;
    let workflow = world
        .api
        .workflow_with("Orders", flow(("manual_trigger", json!({})), &credential))
        .await;
    let valid = world
        .api
        .post(format!("/workflows/{workflow}/validate"), json!({}))
        .await;
    assert_eq!(valid.data(200)["valid"], true);
    let output = output(world, &workflow).await;
    assert_eq!(output["path"], "/orders/7");
    assert_eq!(service.asked()[0].header("x-api-key"), "k-1");
    assert_ne!(output["key"], "k-1", "what the service says of the key is masked");
    let verified = world
        .api
        .post(format!("/credentials/{credential}/verify"), json!({}))
        .await;
    assert_eq!(verified.data(200)["status"], "valid");
    // Its credentials go where its manifest says, whoever sends them.
    let elsewhere = json!([
        { "op": "add_node", "tempId": "start", "kind": "manual_trigger" },
        { "op": "add_node", "tempId": "ask", "kind": "http_request", "after": "start", "credentialId": credential,
          "params": { "url": "http://127.0.0.1:9/" } },
    ]);
    let workflow = world.api.workflow_with("Elsewhere", elsewhere).await;
    let run = world.api.start(&workflow, json!({})).await;
    let report = world.api.ended(&run).await;
    assert_eq!(report["nodes"][1]["error"]["code"], "HTTP_BLOCKED", "{report}");
}

async fn its_fields_have_choices_and_its_nodes_are_tried_out(world: &World) {
    let service = service().await;
    bring(world, &shop(&service.url(""), "/orders")).await;
    let credential = credential(world, "k-1").await;
    let body = json!({ "appId": "corner_shop", "rpcId": "customers", "credentialId": credential });
    let options = world.api.post("/credentials/dynamic-options", body).await;
    let path = "/catalog/apps/corner_shop/modules/get_order";
    let fields = world.api.get(path).await.data(200);
    assert!(
        fields["mappableFields"].as_array().unwrap().len() == 2,
        "{fields}"
    );
    assert_eq!(
        options.data(200)["items"],
        json!([{ "value": "c1", "label": "Ada" }])
    );
    let workflow = world
        .api
        .workflow_with("Orders", flow(("manual_trigger", json!({})), &credential))
        .await;
    let tried = world
        .api
        .post(
            format!("/workflows/{workflow}/test-module"),
            json!({ "nodeId": 2 }),
        )
        .await
        .data(200);
    assert_eq!(tried["path"], "/orders/7");
}

async fn the_same_again_is_no_new_version(world: &World) {
    let (first, second) = (shop("https://shop.test", "/a"), shop("https://shop.test", "/b"));
    assert_eq!(bring(world, &first).await, 1);
    assert_eq!(bring(world, &first).await, 1);
    assert_eq!(bring(world, &second).await, 2);
    assert_eq!(bring(world, &first).await, 3);
    let page = world.api.get("/activity?action=manifest.added").await.data(200);
    assert_eq!(
        page["events"].as_array().unwrap().len(),
        3,
        "a repetition is no news"
    );
}

async fn its_triggers_start_runs(world: &World) {
    let orders = std::sync::Arc::new(std::sync::Mutex::new(vec![1]));
    let shown = std::sync::Arc::clone(&orders);
    let service = Target::start(move |_: &Asked| {
        let orders: Vec<Value> = shown
            .lock()
            .unwrap()
            .iter()
            .map(|id| json!({ "id": id }))
            .collect();
        let answer = Response::builder().header("content-type", "application/json");
        answer
            .body(Bytes::from(json!({ "orders": orders }).to_string()))
            .unwrap()
    })
    .await;
    bring(world, &shop(&service.url(""), "/orders")).await;
    let credential = credential(world, "k-1").await;
    let operations = json!([
        { "op": "add_node", "tempId": "new", "appId": "corner_shop", "moduleSlug": "new_order",
          "credentialId": credential },
        { "op": "add_node", "tempId": "show", "kind": "set", "after": "new",
          "params": { "fields": { "order": "{{1.id}}" } } },
    ]);
    let workflow = world.api.workflow_with("New orders", operations).await;
    world.api.go_live(&workflow).await;
    let asked = until(async || (service.asked().len() >= 2).then_some(())).await;
    assert!(asked.is_some(), "nobody asks");
    orders.lock().unwrap().insert(0, 2);
    let path = format!("/runs?workflowId={workflow}");
    let run = until(async || {
        let runs = world.api.all_pages(&path).await;
        runs.first().map(|run| text(&run["id"]))
    });
    let report = world.api.ended(&run.await.expect("a run")).await;
    assert_eq!(report["nodes"][1]["output"], json!({ "order": 2 }), "{report}");
    assert_eq!(service.asked()[0].header("x-api-key"), "k-1");
}

async fn what_cannot_be_is_refused_with_its_place(world: &World) {
    let good = shop("https://shop.test", "/orders");
    let large = format!("{good}# {}", "x".repeat(1 << 20));
    for (manifest, place, says) in [
        ("surprise: 1".to_owned(), "manifest", "unknown field"),
        ("[1, 2".to_owned(), "manifest", "line"),
        (
            good.replace("id: corner_shop", "id: http"),
            "manifest.id",
            "comes with the service",
        ),
        (
            good.replace("id: corner_shop", "id: native"),
            "manifest.id",
            "comes with the service",
        ),
        (
            good.replace("id: corner_shop", "id: Corner-Shop"),
            "manifest.id",
            "lower-case",
        ),
        (
            good.replace("name: Corner Shop", "name: ''"),
            "manifest.name",
            "characters",
        ),
        (
            good.replace("parameters.customer", "parameters.client"),
            "manifest.modules.get_order.request.query",
            "no field",
        ),
        (
            good.replace("output: { id: 3 }", "output: { id: 4 }"),
            "manifest",
            "tests[an order]",
        ),
        (large, "manifest", "at most 1048576"),
    ] {
        let refused = add(&world.admin, Some(&world.organization), &manifest)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let details = refused.get_error_details();
        let found = details.bad_request().unwrap().field_violations.iter();
        let found: Vec<(&str, &str)> = found
            .map(|one| (one.field.as_str(), one.description.as_str()))
            .collect();
        assert!(
            found
                .iter()
                .any(|(field, description)| *field == place && description.contains(says)),
            "{place} {says}: {found:?}"
        );
    }
    let unknown = add(&world.admin, Some("org_unknown"), &good).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(
        world.api.get("/catalog/apps?query=corner").await.data(200),
        json!([])
    );
}

async fn the_command_line_adds_it(world: &World) {
    let folder = test_support::TemporaryDirectory::new("catalog").unwrap();
    let file = folder.path().join("shop.yaml");
    let run = |text: String| {
        std::fs::write(&file, text).unwrap();
        let command = Command::new(binary("switchyard"))
            .args(["admin", "catalog", "add"])
            .arg(&file)
            .args(["--org", &world.organization, "--json"])
            .env("SWITCHYARD_CORE", world.server.grpc_url())
            .env("SWITCHYARD_DATA_DIR", world.server.data_dir())
            .output()
            .unwrap();
        (
            command.status.success(),
            String::from_utf8(command.stdout).unwrap(),
            String::from_utf8(command.stderr).unwrap(),
        )
    };
    let good = shop("https://shop.test", "/orders");
    let (done, out, err) = run(good.clone());
    assert!(done, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        told,
        json!({ "appId": "corner_shop", "version": 1, "modules": 2 })
    );
    let twice = good
        .replace("parameters.customer", "parameters.client")
        .replace("parameters.id", "parameters.number");
    let (done, _, err) = run(twice);
    assert!(
        !done && err.contains("parameters.client") && err.contains("manifest.modules.get_order.request.path"),
        "{err}"
    );
}

#[tokio::test]
async fn an_app_for_all_gives_way_to_an_organizations_own() {
    let server = Server::start(ServerOptions::default()).await;
    let _log = ShowLog(&server);
    let admin = server.admin().await;
    let own = admin.organization("Own", None).await;
    let (own_api, other_api) = (server.api(Some(&own.api_key)), server.first_api());
    let of_all = shop("https://shop.test", "/orders").replace("name: Corner Shop", "name: For all");
    let search = "/catalog/apps?query=corner_shop";
    add(&admin, None, &of_all).await.unwrap();
    for api in [&own_api, &other_api] {
        assert_eq!(api.get(search).await.data(200)[0]["name"], "For all");
    }
    let made = add(
        &admin,
        Some(&own.organization_id),
        &shop("https://shop.test", "/orders"),
    )
    .await;
    assert_eq!(made.unwrap().version, 1, "each has versions of its own");
    assert_eq!(own_api.get(search).await.data(200)[0]["name"], "Corner Shop");
    assert_eq!(other_api.get(search).await.data(200)[0]["name"], "For all");
}
