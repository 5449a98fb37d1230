//! Custom functions.

use contract::v1::SetPlanRequest;
use serde_json::{Value, json};
use test_support::text;

use crate::world::World;

on_both_databases!(
    a_function_has_all_its_fields,
    code_is_checked_where_it_is_saved,
    names_are_camel_case_and_unique,
    a_change_fits_what_stays,
    functions_are_paged_and_searched,
    the_plan_must_have_functions,
);

fn body(name: &str) -> Value {
    json!({ "name": name, "code": "return 1" })
}

async fn create(world: &World, name: &str) -> Value {
    world.api.post("/functions", body(name)).await.data(201)
}

async fn a_function_has_all_its_fields(world: &World) {
    let parameters = json!([
        { "name": "net", "type": "number", "description": "Before tax", "required": true },
        { "name": "rate", "type": "number" },
    ]);
    let given = json!({
        "name": "addTax", "description": "Adds tax", "code": "return net * (1 + (rate ?? 0.2));",
        "parameters": parameters, "teamId": world.team, "folderId": null,
    });
    let created = world.api.post("/functions", given).await.data(201);
    let expected = json!({
        "id": created["id"],
        "name": "addTax",
        "description": "Adds tax",
        "code": "return net * (1 + (rate ?? 0.2));",
        "parameters": [
            { "name": "net", "type": "number", "description": "Before tax", "required": true },
            { "name": "rate", "type": "number", "required": false },
        ],
        "folderId": null,
        "teamId": world.team,
    });
    assert_eq!(created, expected);
    assert!(text(&created["id"]).starts_with("fn_"));
    let read = world
        .api
        .get(format!("/functions/{}", text(&created["id"])))
        .await
        .data(200);
    assert_eq!(read, expected);
    let arrow = json!({ "name": "whole", "code": "function (a, b) { return a + b }" });
    let _ = world.api.post("/functions", arrow).await.data(201);
}

async fn code_is_checked_where_it_is_saved(world: &World) {
    let refused = async |more: Value, place: &str| {
        let mut given = body("broken");
        given
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        world.api.post("/functions", given).await.invalid(place);
    };
    for code in [
        "return (",
        "}); stolen(); (function () {",
        "function (a) {",
        "((((",
        "import x from 'y'",
    ] {
        refused(json!({ "code": code }), "code").await;
    }
    refused(json!({ "code": "(".repeat(200_000) }), "code").await;
    refused(json!({ "code": "" }), "code").await;
    refused(json!({ "code": null }), "code").await;
    refused(json!({ "code": "x".repeat(262_145) }), "code").await;
    let parameter = |name: &str| json!({ "name": name, "type": "any" });
    refused(
        json!({ "parameters": [parameter("class")] }),
        "parameters[0].name",
    )
    .await;
    refused(
        json!({ "parameters": [parameter("a"), parameter("a")] }),
        "parameters[1].name",
    )
    .await;
    refused(json!({ "parameters": [parameter("a b")] }), "parameters[0].name").await;
    refused(
        json!({ "parameters": [{ "name": "a", "type": "url" }] }),
        "parameters[0].type",
    )
    .await;
    refused(json!({ "folderId": "folder_none" }), "folderId").await;
    refused(json!({ "teamId": "team_none" }), "teamId").await;
    let syntax = world
        .api
        .post(
            "/functions",
            json!({ "name": "broken", "code": "let a = 1;\nlet b = ;" }),
        )
        .await;
    let message = text(&syntax.error(400, "VALIDATION_ERROR")["details"][0]["message"]);
    assert!(message.contains("line 2"), "{message}");
}

async fn names_are_camel_case_and_unique(world: &World) {
    for name in [
        "",
        "Upper",
        "snake_case",
        "2x",
        "with space",
        "größe",
        "upper",
        "if",
        "and",
        "now",
    ] {
        world.api.post("/functions", body(name)).await.invalid("name");
    }
    create(world, "vatRate").await;
    world
        .api
        .post("/functions", body("vatRate"))
        .await
        .invalid("name");
    let mut of_team = body("vatRate");
    of_team["teamId"] = json!(world.team);
    let _ = world.api.post("/functions", of_team.clone()).await.data(201);
    world.api.post("/functions", of_team).await.invalid("name");
}

async fn a_change_fits_what_stays(world: &World) {
    let function = create(world, "vatRate").await;
    create(world, "other").await;
    let path = format!("/functions/{}", text(&function["id"]));
    let parameter = json!({ "name": "net", "type": "number", "required": true });
    let given = json!({ "name": "tax", "description": "d", "code": "return net", "parameters": [parameter] });
    let changed = world.api.patch(&path, given).await.data(200);
    assert_eq!(
        (&changed["name"], &changed["code"]),
        (&json!("tax"), &json!("return net"))
    );
    assert_eq!(changed["parameters"], json!([parameter]));
    let cleared = world
        .api
        .patch(&path, json!({ "description": null }))
        .await
        .data(200);
    assert_eq!(
        (&cleared["description"], &cleared["code"]),
        (&Value::Null, &json!("return net"))
    );
    for (given, place) in [
        // `let net` would declare a parameter again.
        (json!({ "code": "let net = 1" }), "code"),
        (json!({ "name": "other" }), "name"),
        (json!({ "name": "lower" }), "name"),
        (json!({ "name": null }), "name"),
        (json!({ "code": null }), "code"),
        (json!({ "folderId": "folder_none" }), "folderId"),
        (json!({ "teamId": null }), "teamId"),
    ] {
        world.api.patch(&path, given).await.invalid(place);
    }
    let _ = world
        .api
        .patch(&path, json!({ "code": "let net = 1", "parameters": [] }))
        .await
        .data(200);
    let clash = json!({ "parameters": [parameter] });
    world.api.patch(&path, clash).await.invalid("code");
    world
        .api
        .patch("/functions/fn_none", json!({ "name": "x" }))
        .await
        .error(404, "NOT_FOUND");
}

async fn functions_are_paged_and_searched(world: &World) {
    for n in 0..7 {
        let mut given = body(&format!("price{n}"));
        given["description"] = json!(if n % 2 == 0 { "Gross" } else { "Net" });
        let _ = world.api.post("/functions", given).await.data(201);
    }
    let names = |functions: &[Value]| functions.iter().map(|one| text(&one["name"])).collect::<Vec<_>>();
    let all = world.api.all_pages("/functions?limit=3").await;
    assert_eq!(
        names(&all),
        [
            "price6", "price5", "price4", "price3", "price2", "price1", "price0"
        ]
    );
    let summary = all[0].as_object().unwrap();
    assert_eq!(summary.keys().collect::<Vec<_>>(), ["id", "name", "description"]);
    let gross = world.api.all_pages("/functions?limit=2&q=GROSS").await;
    assert_eq!(names(&gross), ["price6", "price4", "price2", "price0"]);
    let (_, cursor) = world.api.get("/functions?limit=3").await.page();
    let other = format!("/functions?q=x&cursor={}", cursor.unwrap());
    world.api.get(other).await.invalid("cursor");
    world.api.get("/functions?limit=0").await.invalid("limit");
}

async fn the_plan_must_have_functions(world: &World) {
    let plan = |custom_functions: bool| SetPlanRequest {
        id: "with-functions".to_owned(),
        custom_functions: Some(custom_functions),
        ..SetPlanRequest::default()
    };
    world.admin.plan(plan(true)).await;
    let made = world.admin.organization("Small", Some("with-functions")).await;
    let api = world.server.api(Some(&made.api_key));
    let function = api.post("/functions", body("vatRate")).await.data(201);
    let path = format!("/functions/{}", text(&function["id"]));
    world.admin.plan(plan(false)).await;
    api.post("/functions", body("more"))
        .await
        .error(403, "FEATURE_NOT_IN_PLAN");
    api.patch(&path, json!({ "name": "less" }))
        .await
        .error(403, "FEATURE_NOT_IN_PLAN");
    assert_eq!(api.get(&path).await.data(200)["name"], "vatRate");
    assert_eq!(api.get("/functions").await.page().0.len(), 1);
}
