//! Query parameters that are not as their endpoint wants them: each is refused by name, and changes nothing.

use serde_json::Value;
use test_support::{Answer, percent_encoded};

use super::document::Document;
use super::endpoint::{Endpoint, implemented};
use super::example::examples;
use super::home::Home;
use super::request::Example;
use super::snapshot::Snapshot;
use crate::world::World;

on_both_databases!(each_parameter_is_checked);

/// Texts that are a cursor of no list.
const NO_CURSORS: [&str; 6] = ["x", "!!!", "AAAAAAAAAAAAAAAA", "1_2", "eyJ9", "größe"];

/// A query that is to be refused.
struct Wrong {
    /// As it is sent.
    query: String,
    /// The parameter that the error names.
    parameter: String,
}

impl Wrong {
    /// An example with another value of a parameter.
    fn value(example: &Example, parameter: &str, value: &str) -> Self {
        let example = example.clone().query(parameter, value);
        Self {
            query: written(&example),
            parameter: parameter.to_owned(),
        }
    }

    fn added(example: &Example, parameter: &str, pair: &str) -> Self {
        let query = written(example);
        let separator = if query.is_empty() { "" } else { "&" };
        Self {
            query: format!("{query}{separator}{pair}"),
            parameter: parameter.to_owned(),
        }
    }
}

fn written(example: &Example) -> String {
    let pairs = example.query.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    pairs.join("&")
}

async fn each_parameter_is_checked(world: &World) {
    let document = Document::read(&world.api).await;
    let mut complaints = Vec::new();
    for endpoint in implemented() {
        let home = Home::found(world).await;
        let Some(example) = examples(&home, &endpoint).await.pop() else {
            continue;
        };
        let before = Snapshot::of(&home.api).await;
        for wrong in wrong_queries(&document, &endpoint, &example) {
            let mut bare = example.clone();
            bare.query.clear();
            let target = format!("{}?{}", bare.target(&endpoint), wrong.query);
            let verb = endpoint.route.verb.parse().unwrap();
            let headers = [("content-type", "application/json")];
            let answer = home.api.send(verb, &target, &headers, example.bytes()).await;
            if !refuses(&answer, &wrong.parameter) {
                let shown: String = target.chars().take(300).collect();
                complaints.push(format!("{shown}\n    {} {}", answer.status, answer.text()));
            }
        }
        complaints.extend(before.differences(&Snapshot::of(&home.api).await));
    }
    assert!(
        complaints.is_empty(),
        "{}:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

fn refuses(answer: &Answer, parameter: &str) -> bool {
    let error = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()["error"].take();
    let mut details = error["details"].as_array().into_iter().flatten();
    answer.status == 400
        && error["code"] == "VALIDATION_ERROR"
        && details.any(|detail| detail["path"] == parameter)
}

fn wrong_queries(document: &Document, endpoint: &Endpoint, example: &Example) -> Vec<Wrong> {
    let mut wrong = vec![
        Wrong::added(example, "colour", "colour=red"),
        Wrong::added(example, "%ff", "%ff=1"),
    ];
    for parameter in document.query(endpoint) {
        let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
        let value = |value: &str| Wrong::value(example, name, value);
        wrong.push(Wrong::added(example, name, &format!("{name}=1&{name}=1")));
        wrong.push(Wrong::added(
            &without(example, name),
            name,
            &format!("{name}=%ff"),
        ));
        if schema["type"] == "integer" {
            wrong.extend(["x", "", "1.5", "1e1", " 1", "0x1", "99999999999999999999"].map(value));
        }
        if let Some(least) = schema["minimum"].as_i64() {
            wrong.extend([value(&(least - 1).to_string()), value("-1")]);
        }
        if let Some(most) = schema["maximum"].as_i64() {
            wrong.push(value(&(most + 1).to_string()));
        }
        if schema.get("enum").is_some() {
            wrong.push(value("no such word"));
        }
        // A longer one than fits a request line is refused before it is read.
        if let Some(longest) = schema["maxLength"].as_u64().filter(|longest| *longest < 60_000) {
            wrong.push(value(&"x".repeat(usize::try_from(longest).unwrap() + 1)));
        }
        if parameter["required"] == true {
            wrong.push(Wrong {
                query: written(&without(example, name)),
                parameter: name.to_owned(),
            });
        }
        if name == "cursor" {
            wrong.extend(NO_CURSORS.map(value));
        }
    }
    wrong
}

fn without(example: &Example, parameter: &str) -> Example {
    let mut example = example.clone();
    example.query.retain(|(name, _)| name != parameter);
    example
}
