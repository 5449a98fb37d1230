//! What an endpoint answers when all is well.

use std::collections::BTreeSet;

use contract::v1::SetPlanRequest;
use serde_json::Value;
use test_support::{Answer, at_most};

use super::document::Document;
use super::endpoint::{Endpoint, apps_are_there, implemented, specification};
use super::example::examples;
use super::home::Home;
use super::request::Example;
use super::shape::Shape;
use crate::world::World;

on_both_databases!(every_success_has_its_shape, every_parameter_is_taken);

/// A plan whose rates are there and never reached.
async fn rated_plan(world: &World) -> String {
    let id = format!("rated-{}", world.organization.to_lowercase());
    let plan = SetPlanRequest {
        id: id.clone(),
        api_access: Some(true),
        active: Some(true),
        custom_functions: Some(true),
        read_rpm: Some(at_most(1_000_000)),
        write_rpm: Some(at_most(1_000_000)),
        ..Default::default()
    };
    world.admin.plan(plan).await;
    id
}

async fn every_success_has_its_shape(world: &World) {
    let plan = rated_plan(world).await;
    let home = Home::found_on(world, Some(&plan)).await;
    let document = Document::read(&home.api).await;
    let specification = specification();
    let mut wrong = Vec::new();
    for endpoint in implemented() {
        for example in examples(&home, &endpoint).await {
            let answer = example.send(&home.api, &endpoint).await;
            let mut found = wrong_in_head(&endpoint, &answer);
            if found.is_empty() && endpoint.streams {
                found = wrong_in_events(&document, &answer);
            } else if found.is_empty() && !answer.body.is_empty() {
                found = wrong_in_body(&document, &specification, &endpoint, &answer);
            }
            let place = format!("{} {}", endpoint.name, example.target(&endpoint));
            wrong.extend(found.iter().map(|what| format!("{place}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong with status and headers.
fn wrong_in_head(endpoint: &Endpoint, answer: &Answer) -> Vec<String> {
    let mut wrong = Vec::new();
    let also = endpoint.success["alsoStatus"].as_array().into_iter().flatten();
    let mut statuses = also
        .filter_map(Value::as_u64)
        .chain([u64::from(endpoint.route.success_status)]);
    if !statuses.any(|status| status == u64::from(answer.status)) {
        wrong.push(format!("{} {}", answer.status, answer.text()));
    }
    let media_type = match (answer.status, endpoint.streams) {
        (204, _) => "",
        (_, true) => "text/event-stream",
        (_, false) => "application/json",
    };
    for (header, wanted) in [("content-type", media_type), ("x-request-id", "conformance")] {
        if answer.header(header) != wanted {
            wrong.push(format!("{header} is {:?}", answer.header(header)));
        }
    }
    for header in ["ratelimit", "ratelimit-policy"] {
        if answer.header(header).is_empty() {
            wrong.push(format!("{header} is missing"));
        }
    }
    if (answer.status == 204) != answer.body.is_empty() {
        wrong.push(format!("the body is {:?}", answer.text()));
    }
    wrong
}

/// What is wrong with a body by the specification, and by the document that the server itself serves.
fn wrong_in_body(
    document: &Document,
    specification: &Value,
    endpoint: &Endpoint,
    answer: &Answer,
) -> Vec<String> {
    let body = answer.json();
    let mut wrong = document.wrong_in_answer(endpoint, answer.status, &body);
    if !endpoint.success.is_null() {
        let mut shape = Shape::new(specification);
        shape.body(&endpoint.success, &body);
        wrong.append(&mut shape.wrong);
    }
    // A list without items shows nothing of them.
    let searches_apps = endpoint.name == "GET /catalog/apps";
    if body["data"] == Value::Array(Vec::new()) && (apps_are_there() || !searches_apps) {
        wrong.push("the list is empty".to_owned());
    }
    wrong
}

fn wrong_in_events(document: &Document, answer: &Answer) -> Vec<String> {
    let (text, mut wrong, mut seen) = (answer.text(), Vec::new(), BTreeSet::new());
    for event in text.split("\n\n") {
        let field = |name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let Some(data) = field("data:") else {
            continue;
        };
        let data = serde_json::from_str(data).unwrap();
        let schema = match field("event:") {
            Some("run") => "RunSummary",
            Some("node") => "RunNode",
            other => panic!("an event of the kind {other:?}"),
        };
        seen.insert(schema);
        wrong.extend(document.wrong_in_schema(schema, &data));
    }
    if seen.len() != 2 {
        wrong.push(format!("events of {seen:?} only"));
    }
    wrong
}

/// The examples use every query parameter, and every field of every body.
async fn every_parameter_is_taken(world: &World) {
    let home = Home::found(world).await;
    let document = Document::read(&home.api).await;
    for endpoint in implemented() {
        let examples = examples(&home, &endpoint).await;
        if examples.is_empty() {
            continue;
        }
        let used = |name: &str| {
            examples
                .iter()
                .any(|example| example.query.iter().any(|(used, _)| used == name))
        };
        for parameter in document.query(&endpoint) {
            let name = parameter["name"].as_str().unwrap();
            // A cursor is the next page's; paging has its own walk.
            assert!(
                used(name) || name == "cursor",
                "no example of {} uses {name}",
                endpoint.name
            );
        }
        let documented = documented_fields(&document, &endpoint);
        let used: BTreeSet<String> = used_fields(&document, &endpoint, &examples);
        let unused: Vec<_> = documented.difference(&used).collect();
        assert!(
            unused.is_empty(),
            "no example of {} uses {unused:?}",
            endpoint.name
        );
    }
}

/// Every field of a body, nested ones with the path to them.
fn documented_fields(document: &Document, endpoint: &Endpoint) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    if let Some(schema) = document.body(endpoint) {
        document.fields(schema, "", &mut fields);
    }
    fields
}

fn used_fields(document: &Document, endpoint: &Endpoint, examples: &[Example]) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for example in examples {
        if let (Some(schema), Some(body)) = (document.body(endpoint), &example.body) {
            document.places(schema, body, &mut |place| {
                fields.insert(place.field);
            });
        }
    }
    fields
}
