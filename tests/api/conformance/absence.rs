//! What is not there: an unknown id, one that is none, and another organization's are the same to whoever asks.

use serde_json::Value;
use test_support::Answer;

use super::endpoint::{Endpoint, implemented};
use super::example::examples;
use super::home::Home;
use super::request::Example;
use super::snapshot::Snapshot;
use crate::world::World;

on_both_databases!(
    what_a_path_names_is_there_or_is_not_found,
    what_a_request_refers_to_is_there_or_is_refused,
    what_was_deleted_is_not_found,
    what_others_have_is_in_no_list,
);

/// An id of the form of another, of nothing that ever was.
fn never_given(id: &str) -> String {
    match id.split_once('_') {
        Some((kind, _)) => format!("{kind}_01h455vb4pex5vsknk084sn02q"),
        None => panic!("{id} is no id"),
    }
}

/// Texts in the place of an id that are none.
fn no_ids(id: &str) -> [String; 7] {
    [
        "x".to_owned(),
        "1".to_owned(),
        " ".to_owned(),
        "größe/../..".to_owned(),
        id.to_uppercase(),
        format!("{id}0"),
        "x".repeat(5000),
    ]
}

async fn what_a_path_names_is_there_or_is_not_found(world: &World) {
    let mut complaints = Vec::new();
    for endpoint in implemented().into_iter().filter(Endpoint::is_about_one) {
        let (mine, stranger) = (Home::found(world).await, Home::found(world).await);
        let examples_of_mine = examples(&mine, &endpoint).await;
        // The stranger's own request, but for the id: nothing else in it is wrong.
        let theirs = examples(&stranger, &endpoint).await.remove(0);
        let before = Snapshot::of(&mine.api).await;
        let my_id = &examples_of_mine[0].at[0];
        let never = at(&theirs, &never_given(my_id))
            .send(&stranger.api, &endpoint)
            .await;
        never.error(404, "NOT_FOUND");
        for id in no_ids(my_id).iter().chain([my_id]) {
            let answer = at(&theirs, id).send(&stranger.api, &endpoint).await;
            if !same(&answer, &never) {
                complaints.push(format!(
                    "{} {id}: {}\n    not {}",
                    endpoint.name,
                    shown(&answer),
                    shown(&never)
                ));
            }
        }
        let changes = before.differences(&Snapshot::of(&mine.api).await);
        complaints.extend(
            changes
                .iter()
                .map(|change| format!("{} changed {change}", endpoint.name)),
        );
    }
    assert!(
        complaints.is_empty(),
        "{}:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

fn at(example: &Example, id: &str) -> Example {
    let mut example = example.clone();
    example.at[0] = id.to_owned();
    example
}

/// Whether two answers are the same, to the byte and but for the date.
fn same(one: &Answer, other: &Answer) -> bool {
    let headers = |answer: &Answer| {
        let mut headers = answer.headers.clone();
        headers.remove("date");
        headers
    };
    (one.status, &one.body) == (other.status, &other.body) && headers(one) == headers(other)
}

fn shown(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.text())
}

/// What a field or a parameter of this name refers to, made at a home.
async fn referred_to(home: &Home<'_>, name: &str) -> Option<String> {
    Some(match name {
        "folderId" | "parentId" => home.folder().await,
        "teamId" => home.team.clone(),
        "tagIds" => home.tag().await,
        "runId" => home.ended_run().await.1,
        "workflowId" => home.workflow().await,
        "actorUserId" => home.owner.clone(),
        _ => return None,
    })
}

async fn what_a_request_refers_to_is_there_or_is_refused(world: &World) {
    let stranger = Home::found(world).await;
    let (mut complaints, mut seen) = (Vec::new(), 0);
    for endpoint in implemented() {
        let home = Home::found(world).await;
        let examples = examples(&home, &endpoint).await;
        let before = Snapshot::of(&home.api).await;
        for reference in references(&examples) {
            let name = reference.rsplit('.').next().unwrap().trim_end_matches("[0]");
            let Some(theirs) = referred_to(&stranger, name).await else {
                continue;
            };
            seen += 1;
            let example = examples
                .iter()
                .find(|example| names(example).contains(&reference))
                .unwrap();
            let mut answers = Vec::new();
            for id in [&never_given(&theirs), &theirs] {
                answers.push(set(example, &reference, id).send(&home.api, &endpoint).await);
            }
            let [never, theirs] = answers.as_slice() else {
                unreachable!()
            };
            let place = format!("{} {reference}", endpoint.name);
            if !same(never, theirs) {
                complaints.push(format!("{place}: {}\n    not {}", shown(theirs), shown(never)));
            }
            // A filter finds nothing and an expression has no outputs to read; a body that names what is not there is
            // wrong.
            let finds_nothing = example.body.is_none() || endpoint.name.ends_with("/resolve-expression");
            if !finds_nothing {
                let details = never.error(400, "VALIDATION_ERROR")["details"].take();
                let path = details[0]["path"].as_str().unwrap_or_default().to_owned();
                if path != reference && path != reference.trim_end_matches("[0]") {
                    complaints.push(format!("{place}: {}", shown(never)));
                }
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
    assert!(seen > 15, "only {seen} references were tried");
}

/// The fields and parameters of examples by their paths, each once.
fn references(examples: &[Example]) -> Vec<String> {
    let mut all: Vec<String> = examples.iter().flat_map(names).collect();
    all.sort();
    all.dedup();
    all
}

/// The texts of an example by their paths.
fn names(example: &Example) -> Vec<String> {
    let mut names: Vec<String> = example.query.iter().map(|(name, _)| name.clone()).collect();
    if let Some(body) = &example.body {
        collect(body, "", &mut names);
    }
    names
}

fn collect(value: &Value, path: &str, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, &format!("{path}{dot}{key}"), names);
            }
        }
        // One item stands for all.
        Value::Array(items) => {
            if let Some(value) = items.first() {
                collect(value, &format!("{path}[0]"), names);
            }
        }
        Value::String(_) => names.push(path.to_owned()),
        _ => {}
    }
}

/// An example with another text at a path.
fn set(example: &Example, path: &str, text: &str) -> Example {
    let Some(body) = &example.body else {
        return example.clone().query(path, text);
    };
    let mut body = body.clone();
    let pointer = format!("/{}", path.replace("[0]", ".0").replace('.', "/"));
    *body.pointer_mut(&pointer).unwrap() = text.into();
    example.clone().with(body)
}

async fn what_was_deleted_is_not_found(world: &World) {
    let home = Home::found(world).await;
    for endpoint in implemented()
        .iter()
        .filter(|endpoint| endpoint.route.verb == "DELETE")
    {
        let gone = examples(&home, endpoint).await.remove(0);
        let deleted = gone.send(&home.api, endpoint).await;
        assert_eq!(
            deleted.status,
            endpoint.route.success_status,
            "{}",
            deleted.text()
        );
        let again = gone.send(&home.api, endpoint).await;
        // What was cancelled is still there to be told of.
        match endpoint.name.as_str() {
            "DELETE /invitations/{id}" => _ = again.error(409, "invitation_not_pending"),
            _ => {
                let never = at(&gone, &never_given(&gone.at[0]))
                    .send(&home.api, endpoint)
                    .await;
                assert!(same(&again, &never), "{}: {}", endpoint.name, shown(&again));
            }
        }
    }
}

async fn what_others_have_is_in_no_list(world: &World) {
    let (mine, stranger) = (Home::found(world).await, Home::found(world).await);
    for endpoint in implemented()
        .iter()
        .filter(|endpoint| endpoint.route.verb == "GET")
    {
        for home in [&mine, &stranger] {
            let _ = examples(home, endpoint).await;
        }
    }
    let (own, theirs) = (
        Snapshot::of(&mine.api).await.ids(),
        Snapshot::of(&stranger.api).await.ids(),
    );
    assert!(own.len() > 50, "only {} ids", own.len());
    let shared: Vec<_> = own.intersection(&theirs).collect();
    assert!(shared.is_empty(), "{shared:?}");
}
