//! The golden list of methods that answer UNIMPLEMENTED: it is only ever to get shorter.
//!
//! Each method is called over gRPC with a key that may do everything and a message that passes its validation.
//! `UPDATE_GOLDENS=1` writes the list anew.

use std::path::Path;

use contract::access::Access;
use contract::v1;
use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::grpc;
use crate::world::World;

/// Methods that no message passes yet: none of the built-in apps can be asked for options.
const NOTHING_TO_ASK: [&str; 1] = ["/switchyard.v1.CredentialService/ListDynamicOptions"];

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment says whether to write goldens"
)]
async fn only_listed_methods_are_unimplemented() {
    let world = World::sqlite().await;
    let _log = world.show_log();
    let channel = world.server.channel().await;
    let mut missing = String::new();
    for method in contract::METHODS {
        let token = match method.access {
            Access::Operator => world.server.operator_token(),
            Access::Key(_) | Access::Public => world.api.key().to_owned(),
        };
        let message = message(method.path.rsplit('/').next().unwrap());
        let answer = grpc::call(channel.clone(), method.path, &token, message).await;
        let status = answer.err().unwrap_or_else(|| Status::ok(""));
        let reason = status
            .get_error_details()
            .error_info()
            .map(|info| info.reason.clone());
        let invalid = reason.as_deref() == Some("VALIDATION_ERROR");
        assert!(
            !invalid || NOTHING_TO_ASK.contains(&method.path),
            "{} wants a message here: {}",
            method.path,
            status.message()
        );
        assert_ne!(status.code(), Code::Unauthenticated, "{}", method.path);
        assert_ne!(status.code(), Code::PermissionDenied, "{}", method.path);
        if status.code() == Code::Unimplemented {
            missing.push_str(&format!("{}\n", method.path));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/unimplemented.txt");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &missing).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        missing, golden,
        "run the tests with UPDATE_GOLDENS=1 if that is wanted"
    );
}

/// The least that passes a method's validation.
fn message(method: &str) -> Vec<u8> {
    let name = || "x".to_owned();
    let number = || {
        let value = Some(v1::node_identifier::Value::Number(1));
        Some(v1::NodeIdentifier { value })
    };
    let columns = || {
        let column = v1::DatabaseColumnInput {
            name: name(),
            r#type: v1::DatabaseColumnType::Text.into(),
            ..Default::default()
        };
        vec![column]
    };
    match method {
        "AddManifest" => v1::AddManifestRequest {
            manifest: b"manifest: 1\nid: x\nname: X\nhosts: [x.test]".to_vec(),
            organization_id: Some(name()),
        }
        .encode_to_vec(),
        "ApplyGraphOps" => {
            let reference = v1::NodeReference {
                reference: Some(v1::node_reference::Reference::Id(1)),
            };
            let remove = v1::RemoveNode {
                node_id: Some(reference),
                heal: None,
            };
            let ops = vec![v1::GraphOp {
                op: Some(v1::graph_op::Op::RemoveNode(remove)),
            }];
            v1::ApplyGraphOpsRequest {
                ops,
                expected_updated_at: Some(1),
                ..Default::default()
            }
            .encode_to_vec()
        }
        "CreateApiKey" => v1::CreateApiKeyRequest {
            organization_id: name(),
            user_id: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateCredential" => v1::CreateCredentialRequest {
            app_id: "http".to_owned(),
            connection_id: "none".to_owned(),
            name: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateDatabase" => v1::CreateDatabaseRequest {
            name: name(),
            columns: columns(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateFolder" => v1::CreateFolderRequest {
            name: name(),
            parent_id: None,
        }
        .encode_to_vec(),
        "CreateFunction" => v1::CreateFunctionRequest {
            name: name(),
            code: "return 1".to_owned(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateInvitation" => v1::CreateInvitationRequest {
            email: "x@users.test".to_owned(),
            role: v1::MemberRole::Member.into(),
            team_id: None,
        }
        .encode_to_vec(),
        "CreateOrganization" => v1::CreateOrganizationRequest {
            name: name(),
            plan_id: None,
        }
        .encode_to_vec(),
        "CreateStructure" => v1::CreateStructureRequest {
            name: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateTag" => v1::CreateTagRequest {
            name: name(),
            color: "red".to_owned(),
        }
        .encode_to_vec(),
        "CreateUser" => v1::CreateUserRequest {
            organization_id: name(),
            email: "x@users.test".to_owned(),
            role: v1::MemberRole::Member.into(),
            name: None,
        }
        .encode_to_vec(),
        "CreateWorkflow" => v1::CreateWorkflowRequest {
            name: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ImportOpenApi" => v1::ImportOpenApiRequest {
            document: br#"{"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}"#.to_vec(),
            organization_id: Some(name()),
            app_id: Some(name()),
            base_url: Some("https://x.test".to_owned()),
            dry_run: None,
        }
        .encode_to_vec(),
        "ListDynamicOptions" => v1::ListDynamicOptionsRequest {
            app_id: name(),
            rpc_id: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ListRuns" => v1::ListRunsRequest {
            workflow_id: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "MintWebhook" => v1::MintWebhookRequest {
            workflow_id: name(),
            node_id: "1".to_owned(),
        }
        .encode_to_vec(),
        "ResolveExpression" => v1::ResolveExpressionRequest {
            expression: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "RespondRunNode" => {
            let response = Some(v1::JsonObject {
                json: "{}".to_owned(),
            });
            v1::RespondRunNodeRequest {
                node_id: "1".to_owned(),
                response,
                ..Default::default()
            }
            .encode_to_vec()
        }
        "RetryRunNode" => v1::RetryRunNodeRequest {
            node_id: Some(1),
            ..Default::default()
        }
        .encode_to_vec(),
        "RevokeApiKey" => v1::RevokeApiKeyRequest { id: name() }.encode_to_vec(),
        "SearchApps" => v1::SearchAppsRequest {
            query: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "ServePage" => v1::ServePageRequest {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            ..Default::default()
        }
        .encode_to_vec(),
        "SetPlan" => v1::SetPlanRequest {
            id: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "SetVariable" => v1::SetVariableRequest {
            id: name(),
            value: Some(name()),
            ..Default::default()
        }
        .encode_to_vec(),
        "TestModule" => v1::TestModuleRequest {
            id: name(),
            node_id: number(),
        }
        .encode_to_vec(),
        "UpdateDatabase" => v1::UpdateDatabaseRequest {
            id: name(),
            columns: columns(),
        }
        .encode_to_vec(),
        "UpdateOrganization" => v1::UpdateOrganizationRequest {
            organization_id: name(),
            ..Default::default()
        }
        .encode_to_vec(),
        "UpdateWebhook" => v1::UpdateWebhookRequest {
            id: name(),
            enabled: Some(true),
        }
        .encode_to_vec(),
        _ => Vec::new(),
    }
}
