//! Probes, figures, health and reflection.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use test_support::Answer;
use tokio_stream::StreamExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use crate::world::World;

on_both_databases!(
    a_server_says_that_it_is_alive_and_ready,
    figures_are_prometheus_text,
    health_is_served_over_grpc,
    reflection_lists_the_services_in_both_versions,
    openapi_is_public,
);

async fn open(world: &World, path: &str) -> Answer {
    world
        .api
        .with_key(None)
        .send(Method::GET, path, &[], Bytes::new())
        .await
}

async fn a_server_says_that_it_is_alive_and_ready(world: &World) {
    for path in ["/healthz", "/readyz"] {
        let answer = open(world, path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(!answer.header("x-request-id").is_empty() || path == "/readyz");
    }
}

async fn figures_are_prometheus_text(world: &World) {
    let _ = world.api.get("/workflows").await.page();
    let answer = open(world, "/metrics").await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    assert_eq!(text.lines().last(), Some("# EOF"));
    let mut families = BTreeSet::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some("EOF") => {}
            Some(comment) => {
                let words: Vec<&str> = comment.splitn(3, ' ').collect();
                assert!(
                    ["HELP", "TYPE", "UNIT"].contains(&words[0]) && words.len() == 3,
                    "{line}"
                );
                families.insert(words[1].to_owned());
            }
            None => {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = series.split('{').next().unwrap();
                assert!(
                    families.iter().any(|family| name.starts_with(family.as_str())),
                    "{line}"
                );
                assert!(!series.contains('{') || series.ends_with('}'), "{line}");
            }
        }
    }
    let counted = text.lines().find(|line| {
        line.starts_with("switchyard_calls_total{")
            && line.contains("/ListWorkflows\"")
            && line.contains("code=\"0\"")
    });
    assert!(counted.is_some(), "{text}");
    assert!(families.len() > 10, "{families:?}");
}

async fn health_is_served_over_grpc(world: &World) {
    let mut client = HealthClient::new(world.server.channel().await);
    let answer = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    let unknown = HealthCheckRequest {
        service: "nothing".to_owned(),
    };
    assert_eq!(
        client.check(unknown).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}

/// Asks one version of reflection for the services and for the file of one of them.
macro_rules! reflected {
    ($version:ident, $channel:expr) => {{
        use $version::server_reflection_client::ServerReflectionClient;
        use $version::server_reflection_request::MessageRequest;
        use $version::server_reflection_response::MessageResponse;

        let ask = |question| $version::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        };
        let symbol = "switchyard.v1.WorkflowService".to_owned();
        let questions = [
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol(symbol)),
        ];
        let mut client = ServerReflectionClient::new($channel);
        let answers = client
            .server_reflection_info(tokio_stream::iter(questions))
            .await
            .unwrap();
        let answers: Vec<_> = answers.into_inner().collect::<Result<_, _>>().await.unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = &answers[0].message_response else {
            panic!("{:?}", answers[0]);
        };
        let Some(MessageResponse::FileDescriptorResponse(file)) = &answers[1].message_response else {
            panic!("{:?}", answers[1]);
        };
        assert!(!file.file_descriptor_proto.is_empty());
        let names = list.service.iter().map(|service| service.name.clone());
        // Each version lists itself besides.
        let others = names.filter(|name| !name.starts_with("grpc.reflection."));
        others.collect::<BTreeSet<String>>()
    }};
}

async fn reflection_lists_the_services_in_both_versions(world: &World) {
    let channel = world.server.channel().await;
    let current = reflected!(v1, channel.clone());
    let service = |path: &str| path.trim_start_matches('/').split('/').next().unwrap().to_owned();
    let wanted: BTreeSet<String> = contract::METHODS
        .iter()
        .map(|method| service(method.path))
        .collect();
    assert!(current.is_superset(&wanted), "{current:?}");
    assert!(current.contains("grpc.health.v1.Health"), "{current:?}");
    assert_eq!(reflected!(v1alpha, channel), current);
}

async fn openapi_is_public(world: &World) {
    let answer = open(world, "/api/v1/openapi.json").await;
    let document = answer.body(200);
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{document}"
    );
    assert!(
        document["paths"]["/workflows/{id}"]["patch"].is_object()
            || document["paths"]["/api/v1/workflows/{id}"]["patch"].is_object()
    );
}
