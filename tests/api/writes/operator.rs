//! What the operator writes is told to the organizations that it concerns.

use contract::v1::{self, MemberRole};
use http::Method;
use serde_json::{Value, json};
use test_support::{Api, graphs, text};

use super::{asks_a_service, is_missing, told, writing_routes};
use crate::world::World;

on_both_databases!(what_the_operator_writes_leaves_one_entry);

/// A request of the operator under an id.
fn asked<M>(message: M, id: &str) -> tonic::Request<M> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("x-request-id", id.parse().unwrap());
    request
}

async fn what_the_operator_writes_leaves_one_entry(world: &World) {
    let organization_id = world.organization.clone();
    let plan = format!("told-{}", organization_id.to_lowercase());
    let of_plan = || v1::SetPlanRequest {
        id: plan.clone(),
        ..Default::default()
    };
    world.admin.plan(of_plan()).await;
    let without_routes = contract::METHODS.iter().filter(|method| {
        let has_route = writing_routes()
            .iter()
            .any(|(_, known)| known.path == method.path);
        !method.reads && !has_route && !is_missing(method) && !asks_a_service(method)
    });
    for method in without_routes {
        let name = method.path.rsplit('/').next().unwrap();
        let (mut client, id) = (world.admin.client.clone(), format!("operator-{name}"));
        let expected: &[&str] = match name {
            "UpdateOrganization" => {
                let request = v1::UpdateOrganizationRequest {
                    organization_id: organization_id.clone(),
                    plan_id: Some(plan.clone()),
                    ..Default::default()
                };
                client.update_organization(asked(request, &id)).await.unwrap();
                &["organization.updated"]
            }
            "SetPlan" => {
                let on_it = v1::UpdateOrganizationRequest {
                    organization_id: organization_id.clone(),
                    plan_id: Some(plan.clone()),
                    ..Default::default()
                };
                world.admin.change(on_it).await;
                client.set_plan(asked(of_plan(), &id)).await.unwrap();
                &["plan.updated"]
            }
            "CreateUser" => {
                let request = v1::CreateUserRequest {
                    organization_id: organization_id.clone(),
                    email: "told@users.test".to_owned(),
                    role: MemberRole::Member.into(),
                    name: None,
                };
                client.create_user(asked(request, &id)).await.unwrap();
                &["member.created"]
            }
            "AddManifest" => {
                let request = v1::AddManifestRequest {
                    manifest: b"manifest: 1\nid: told\nname: Told\nhosts: [told.test]".to_vec(),
                    organization_id: Some(organization_id.clone()),
                };
                client.add_manifest(asked(request, &id)).await.unwrap();
                &["manifest.added"]
            }
            "ImportOpenApi" => {
                let document = json!({ "openapi": "3.1.0", "paths": { "/told": { "get": {} } } });
                let request = v1::ImportOpenApiRequest {
                    document: document.to_string().into_bytes(),
                    organization_id: Some(organization_id.clone()),
                    app_id: Some("told_too".to_owned()),
                    base_url: Some("https://told.test".to_owned()),
                    dry_run: None,
                };
                client.import_open_api(asked(request, &id)).await.unwrap();
                &["manifest.added"]
            }
            "CreateApiKey" => {
                let request = v1::CreateApiKeyRequest {
                    organization_id: organization_id.clone(),
                    user_id: world.owner.clone(),
                    ..Default::default()
                };
                client.create_api_key(asked(request, &id)).await.unwrap();
                &["api_key.created"]
            }
            "RevokeApiKey" => {
                let key = world.admin.key(&organization_id, &world.owner, &[], None).await;
                let request = v1::RevokeApiKeyRequest { id: key.id };
                client.revoke_api_key(asked(request, &id)).await.unwrap();
                &["api_key.revoked"]
            }
            "CreateOrganization" => {
                let request = v1::CreateOrganizationRequest {
                    name: "New".to_owned(),
                    plan_id: None,
                };
                let made = client.create_organization(asked(request, &id)).await;
                let api = world.server.api(Some(&made.unwrap().into_inner().api_key));
                assert_told(&api, &id, &["api_key.created", "organization.created"]).await;
                continue;
            }
            "ServePage" => {
                let body = json!({ "email": "told-too@users.test", "role": "member" });
                let invitation = world.api.post("/invitations", body).await.data(201);
                let url = text(&invitation["invite_url"]);
                let path = &url[url.find("/invite/").unwrap()..];
                let headers = [("x-request-id", id.as_str())];
                let browser = world.api.with_key(None);
                let joined = browser.send(Method::POST, path, &headers, "".into()).await;
                assert_eq!(joined.status, 200, "{}", joined.text());
                let entries = told(&world.api, &id).await;
                let actions: Vec<&Value> = entries.iter().map(|entry| &entry["action"]).collect();
                assert_eq!(actions, ["member.created", "invitation.accepted"]);
                continue;
            }
            "ReceiveWebhook" => {
                // What a stranger starts is in the run history.
                let workflow = world
                    .api
                    .workflow_with("Hooked", graphs::chain(&[("webhook_trigger", json!({}))]))
                    .await;
                world.api.go_live(&workflow).await;
                let webhook = world.api.mint(&workflow, 1).await;
                let headers = [("x-request-id", id.as_str())];
                let _ = world.api.call_hook(&webhook, &headers, json!({})).await.data(202);
                &[]
            }
            // It concerns everybody on the server: see the test of rotations.
            "RotateSecrets" => continue,
            name => panic!("{name} writes: say here how it is called and what the feed tells of it"),
        };
        assert_told(&world.api, &id, expected).await;
    }
    let refused = asked(
        v1::UpdateOrganizationRequest {
            organization_id: organization_id.clone(),
            plan_id: Some("no such plan".to_owned()),
            ..Default::default()
        },
        "operator-refused",
    );
    world
        .admin
        .client
        .clone()
        .update_organization(refused)
        .await
        .unwrap_err();
    assert_told(&world.api, "operator-refused", &[]).await;
}

/// The feed tells this of a request that no member has made.
async fn assert_told(api: &Api, id: &str, actions: &[&str]) {
    let entries = told(api, id).await;
    let seen: Vec<&Value> = entries.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(seen, actions, "{id}");
    for entry in &entries {
        assert_eq!(
            (&entry["actorUserId"], &entry["metadata"]["apiKeyId"]),
            (&Value::Null, &Value::Null),
            "{id}"
        );
    }
}
