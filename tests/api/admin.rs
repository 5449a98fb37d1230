//! The operator: `switchyard admin` against a running server, and AdminService behind it.

use std::process::{Command, Output};

use contract::v1;
use serde_json::{Value, json};
use test_support::{binary, text};
use tonic::Code;

use crate::world::World;

on_both_databases!(
    an_organization_is_made_and_used_from_the_command_line,
    users_and_keys_come_and_go_from_the_command_line,
    plans_and_bills_are_set_from_the_command_line,
    mistakes_are_told,
    administration_needs_the_operators_token,
    what_cannot_be_is_refused,
);

/// Runs `switchyard admin`.
fn admin(world: &World, arguments: &[&str]) -> Output {
    let data_dir = world.server.data_dir();
    Command::new(binary("switchyard"))
        .arg("admin")
        .args(arguments)
        .env("SWITCHYARD_CORE", world.server.grpc_url())
        .env("SWITCHYARD_DATA_DIR", data_dir)
        .output()
        .unwrap()
}

/// What a command that succeeds answers to machines.
#[track_caller]
fn told(world: &World, arguments: &[&str]) -> Value {
    let output = admin(world, &[arguments, &["--json"]].concat());
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

async fn an_organization_is_made_and_used_from_the_command_line(world: &World) {
    let made = told(world, &["org", "create", "--name", "Acme"]);
    for (name, prefix) in [
        ("organizationId", "org_"),
        ("ownerUserId", "user_"),
        ("teamId", "team_"),
        ("apiKey", "swy_local_"),
    ] {
        assert!(text(&made[name]).starts_with(prefix), "{made}");
    }
    let api = world.server.api(made["apiKey"].as_str());
    let created = api.post("/workflows", json!({ "name": "First" })).await.data(201);
    assert_eq!(created["teamId"], made["teamId"]);
    // For people, a line each.
    let output = admin(world, &["org", "create", "--name", "Plain"]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(
        out.lines().any(|line| line.starts_with("apiKey: swy_local_")),
        "{out}"
    );
}

async fn users_and_keys_come_and_go_from_the_command_line(world: &World) {
    let organization = world.organization.as_str();
    let user = [
        "user",
        "create",
        "--org",
        organization,
        "--email",
        "Ada@Users.test",
        "--role",
        "member",
    ];
    let user = text(&told(world, &user)["userId"]);
    let again = admin(
        world,
        &[
            "user",
            "create",
            "--org",
            organization,
            "--email",
            "ada@users.TEST",
            "--role",
            "viewer",
        ],
    );
    assert!(!again.status.success());
    let key = |scopes: &str| {
        told(
            world,
            &[
                "key",
                "create",
                "--org",
                organization,
                "--user",
                &user,
                "--scopes",
                scopes,
            ],
        )
    };
    let reader = key("workflow:read,webhook:write");
    let api = world.server.api(reader["apiKey"].as_str());
    let _ = api.get("/workflows").await.page();
    api.post("/workflows", json!({ "name": "x" }))
        .await
        .error(403, "MISSING_SCOPE");
    let writer = key("all");
    let _ = world
        .server
        .api(writer["apiKey"].as_str())
        .post("/workflows", json!({ "name": "x" }))
        .await
        .data(201);
    told(world, &["key", "revoke", "--id", reader["id"].as_str().unwrap()]);
    api.get("/workflows").await.error(401, "UNAUTHENTICATED");
}

async fn plans_and_bills_are_set_from_the_command_line(world: &World) {
    let plan = format!("small-{}", world.organization.to_lowercase());
    told(
        world,
        &[
            "plan",
            "set",
            "--id",
            &plan,
            "--credits",
            "3",
            "--seats",
            "unlimited",
            "--read-rpm",
            "600",
        ],
    );
    told(
        world,
        &[
            "--json",
            "org",
            "set",
            "--org",
            &world.organization,
            "--plan",
            &plan,
            "--credits",
            "0",
        ],
    );
    let workflow = world
        .api
        .workflow_with("x", test_support::graphs::small_flow())
        .await;
    let start = || world.api.post(format!("/workflows/{workflow}/runs"), json!({}));
    start().await.error(403, "PLAN_LIMIT_EXCEEDED");
    told(
        world,
        &[
            "org",
            "set",
            "--org",
            &world.organization,
            "--credits",
            "unlimited",
        ],
    );
    let _ = start().await.data(201);
    told(
        world,
        &[
            "org",
            "set",
            "--org",
            &world.organization,
            "--billing-status",
            "past_due",
        ],
    );
    start().await.error(402, "PAYMENT_REQUIRED");
    told(world, &["plan", "set", "--id", &plan, "--api-access", "false"]);
    start().await.error(403, "API_ACCESS_DENIED");
}

async fn mistakes_are_told(world: &World) {
    let organization = world.organization.as_str();
    for arguments in [
        &["org", "set", "--org", "org_unknown", "--plan", "unlimited"][..],
        &["org", "set", "--org", organization, "--plan", "nothing"],
        &["org", "create", "--name", "   "],
        &[
            "user",
            "create",
            "--org",
            organization,
            "--email",
            "no address",
            "--role",
            "member",
        ],
        &[
            "user",
            "create",
            "--org",
            organization,
            "--email",
            "a@b.test",
            "--role",
            "king",
        ],
        &[
            "key",
            "create",
            "--org",
            organization,
            "--user",
            &world.owner,
            "--scopes",
            "workflow:everything",
        ],
        &[
            "key",
            "create",
            "--org",
            organization,
            "--user",
            "user_unknown",
            "--scopes",
            "all",
        ],
        &[
            "key",
            "create",
            "--org",
            organization,
            "--user",
            &world.owner,
            "--scopes",
            "all",
            "--expires-in",
            "1y",
        ],
        &["key", "revoke", "--id", "key_unknown"],
        &["plan", "set", "--id", "Not An Id"],
        &["org", "create", "--name", "x", "--operator-token", "wrong"],
        &["org", "create", "--name", "x", "--core", "http://127.0.0.1:1"],
    ] {
        let output = admin(world, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            !told.trim().is_empty() && output.stdout.is_empty(),
            "{arguments:?}: {told}"
        );
        assert!(!told.contains("panicked"), "{told}");
    }
}

async fn administration_needs_the_operators_token(world: &World) {
    let channel = world.server.channel().await;
    for token in [world.api.key(), "wrong", "swyop_0000"] {
        let bearer = test_support::Bearer::new(token);
        let mut client =
            v1::admin_service_client::AdminServiceClient::with_interceptor(channel.clone(), bearer);
        let request = v1::CreateOrganizationRequest {
            name: "x".to_owned(),
            plan_id: None,
        };
        let refused = client.create_organization(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{token}");
    }
    let mut open = v1::admin_service_client::AdminServiceClient::new(channel);
    let refused = open
        .rotate_secrets(v1::RotateSecretsRequest {})
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}

async fn what_cannot_be_is_refused(world: &World) {
    let mut client = world.admin.client.clone();
    let key = |user: &str, expires_in_s| v1::CreateApiKeyRequest {
        organization_id: world.organization.clone(),
        user_id: user.to_owned(),
        scopes: vec![],
        expires_in_s,
    };
    for wrong in [0, -5] {
        let refused = client
            .create_api_key(key(&world.owner, Some(wrong)))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    // A user of another organization is none of this one.
    let other = world.admin.organization("Other", None).await;
    let refused = client
        .create_api_key(key(&other.owner_user_id, None))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let request = v1::CreateOrganizationRequest {
        name: "x".to_owned(),
        plan_id: Some("nothing".to_owned()),
    };
    let refused = client.create_organization(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}
