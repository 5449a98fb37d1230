//! Bodies that are not as their endpoint wants them: each is refused with the place that is wrong, and changes nothing.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};
use test_support::Answer;

use super::document::Document;
use super::endpoint::{Endpoint, implemented};
use super::example::examples;
use super::home::Home;
use super::place::Place;
use super::request::Example;
use super::snapshot::Snapshot;
use crate::world::World;

on_both_databases!(
    a_body_that_is_not_json_is_refused,
    each_field_is_of_its_type,
    each_text_is_text,
);

/// The most that a body may hold, bytes.
const BODY_LIMIT: usize = 1 << 20;

/// The schema of a body where none is documented: nothing but an empty object is taken.
static NOTHING: LazyLock<Value> = LazyLock::new(|| json!({ "type": "object", "properties": {} }));

/// A body that is to be refused.
struct Wrong {
    what: String,
    body: Bytes,
    status: u16,
    /// Path of a detail of the error; none where the body as a whole is wrong.
    path: Option<String>,
}

impl Wrong {
    fn field(what: impl Into<String>, body: &Value, path: String) -> Self {
        Self::text(what, body.to_string(), path)
    }

    fn text(what: impl Into<String>, body: String, path: String) -> Self {
        Self {
            what: what.into(),
            body: body.into(),
            status: 400,
            path: Some(path),
        }
    }

    fn whole(what: &str, body: impl Into<Bytes>) -> Self {
        Self {
            what: what.to_owned(),
            body: body.into(),
            status: 400,
            path: None,
        }
    }

    /// What is not as it should be in the refusal.
    fn complaint(&self, answer: &Answer) -> Option<String> {
        let code = match self.status {
            413 => "PAYLOAD_TOO_LARGE",
            415 => "UNSUPPORTED_MEDIA_TYPE",
            _ => "VALIDATION_ERROR",
        };
        let error = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()["error"].take();
        let details = error["details"].as_array();
        let named =
            |path: &String| details.is_some_and(|details| details.iter().any(|one| one["path"] == *path));
        let fits =
            answer.status == self.status && error["code"] == code && self.path.as_ref().is_none_or(named);
        let shown: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        let wanted = self.path.as_deref().unwrap_or("(whole)");
        (!fits).then(|| {
            format!(
                "{} at {wanted}: {shown}\n    {} {}",
                self.what,
                answer.status,
                answer.text()
            )
        })
    }
}

/// Sends wrong bodies to every endpoint that takes one, each in an organization of its own that must stay as it was.
async fn walk(
    world: &World,
    wrong_of: impl AsyncFn(&Document, &Endpoint, &[Example]) -> Vec<(usize, Wrong)>,
) {
    let document = Document::read(&world.api).await;
    let mut complaints = Vec::new();
    for endpoint in implemented().into_iter().filter(|endpoint| endpoint.has_body) {
        let home = Home::found(world).await;
        let examples = examples(&home, &endpoint).await;
        if examples.is_empty() {
            continue;
        }
        let before = Snapshot::of(&home.api).await;
        for (number, wrong) in wrong_of(&document, &endpoint, &examples).await {
            let media_type = if wrong.status == 415 {
                "text/plain"
            } else {
                "application/json"
            };
            let answer = examples[number]
                .send_typed(&home.api, &endpoint, media_type, wrong.body.clone())
                .await;
            let complaint = wrong.complaint(&answer);
            complaints.extend(complaint.map(|complaint| format!("{}: {complaint}", endpoint.name)));
        }
        let changes = before.differences(&Snapshot::of(&home.api).await);
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

async fn a_body_that_is_not_json_is_refused(world: &World) {
    let wholly_wrong = async |document: &Document, endpoint: &Endpoint, examples: &[Example]| {
        let good = examples[0].body.clone().unwrap_or(json!({})).to_string();
        let deep = format!("{{\"deep\":{}{}}}", "[".repeat(64), "]".repeat(64));
        let mut wrong = vec![
            Wrong::whole("half an object", good[..good.len() - 1].to_owned()),
            Wrong::whole("something behind it", format!("{good} x")),
            Wrong::whole("two bodies", format!("{good}{good}")),
            Wrong::whole("white space alone", "  "),
            Wrong::whole("text that is not UTF-8", &b"{\"\xff\": 1}"[..]),
            Wrong::whole("a byte order mark", format!("\u{feff}{good}")),
            Wrong::whole("a lone surrogate", r#"{"a": "\ud800"}"#),
            Wrong::whole("no JSON", "name=Orders"),
            Wrong::whole("65 levels", deep),
            Wrong {
                status: 413,
                ..Wrong::whole("too large", vec![b' '; BODY_LIMIT + 1])
            },
            Wrong {
                status: 415,
                ..Wrong::whole("not called JSON", good)
            },
        ];
        for value in [json!([]), json!("text"), json!(null), json!(7), json!(true)] {
            wrong.push(Wrong::whole("no object", value.to_string()));
        }
        if document.requires_body(endpoint) {
            wrong.push(Wrong::whole("no body", ""));
            wrong.push(Wrong::whole("an empty object", "{}"));
        }
        wrong.into_iter().map(|wrong| (0, wrong)).collect()
    };
    walk(world, wholly_wrong).await;
}

async fn each_field_is_of_its_type(world: &World) {
    walk(world, async |document, endpoint, examples| {
        wrong_in_places(document, endpoint, examples, |place, body| {
            let mut wrong = of_another_type(place, body);
            wrong.extend(beyond_its_limits(place, body));
            wrong.extend(members_that_are_wrong(place, body));
            wrong
        })
    })
    .await;
}

/// What text cannot hold, in each field that is text.
async fn each_text_is_text(world: &World) {
    walk(world, async |document, endpoint, examples| {
        wrong_in_places(document, endpoint, examples, |place, body| {
            if !place.takes(&json!("")) || place.takes(&json!({})) {
                return Vec::new();
            }
            let with = |escape: &str| {
                place
                    .replaced(body, json!("@@"))
                    .to_string()
                    .replace("@@", escape)
            };
            vec![
                Wrong::text("NUL", with(r"a\u0000b"), place.path()),
                Wrong::whole("half a surrogate pair", with(r"a\udc00b")),
                Wrong::whole("an unknown escape", with(r"a\x00b")),
                Wrong::whole("a line break", with("a\nb")),
            ]
        })
    })
    .await;
}

/// What can be wrong in each place of the examples' bodies, each kind of place once.
fn wrong_in_places(
    document: &Document,
    endpoint: &Endpoint,
    examples: &[Example],
    wrong_at: impl Fn(&Place<'_>, &Value) -> Vec<Wrong>,
) -> Vec<(usize, Wrong)> {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    for (number, example) in examples.iter().enumerate() {
        let empty = json!({});
        let (schema, body) = match (document.body(endpoint), &example.body) {
            (Some(schema), Some(body)) => (schema, body),
            _ => (&*NOTHING, &empty),
        };
        document.places(schema, body, &mut |place| {
            if seen.insert(place.field.clone()) {
                all.extend(wrong_at(&place, body).into_iter().map(|wrong| (number, wrong)));
            }
        });
    }
    all
}

fn of_another_type(place: &Place<'_>, body: &Value) -> Vec<Wrong> {
    let values = [
        json!(null),
        json!(true),
        json!(7),
        json!(1.5),
        json!("text"),
        json!([]),
        json!({}),
    ];
    let wrong = values.into_iter().filter(|value| !place.takes(value));
    wrong
        .map(|value| Wrong::field(format!("{value}"), &place.replaced(body, value), place.path()))
        .collect()
}

/// Values of the right type that the schema rules out.
fn beyond_its_limits(place: &Place<'_>, body: &Value) -> Vec<Wrong> {
    let limit = |name: &str| place.schema[name].as_i64();
    let length = |name: &str| limit(name).map(|length| usize::try_from(length).unwrap());
    let mut values = Vec::new();
    if place.schema.get("enum").is_some() || place.schema.get("const").is_some() {
        values.push(json!("no such word"));
    }
    values.extend(length("maxLength").map(|longest| json!("x".repeat(longest + 1))));
    // No name is that long.
    values.extend(place.schema.get("pattern").map(|_| json!("x".repeat(300))));
    values.extend(length("minLength").map(|shortest| json!("x".repeat(shortest - 1))));
    values.extend(limit("minimum").map(|least| json!(least - 1)));
    values.extend(limit("maximum").map(|most| json!(most + 1)));
    if place.schema["format"] == "int32" {
        values.push(json!(i64::from(i32::MAX) + 1));
    }
    if place.schema["format"] == "int64" {
        values.push(json!(u64::try_from(i64::MAX).unwrap() + 1));
    }
    values.extend(length("minItems").filter(|least| *least > 0).map(|_| json!([])));
    let out_of_bounds = values
        .into_iter()
        .map(|value| Wrong::field("beyond its limits", &place.replaced(body, value), place.path()));
    out_of_bounds.collect()
}

/// Members that are missing, unknown or there twice.
fn members_that_are_wrong(place: &Place<'_>, body: &Value) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    if place.required && place.is_member {
        wrong.push(Wrong::field("missing", &place.removed(body), place.path()));
    }
    if place.is_closed_object() {
        let marked = place.replaced(body, json!("@@")).to_string();
        let object = place.value(body);
        let members = object.to_string();
        let inside = members[1..members.len() - 1].to_owned();
        let comma = if inside.is_empty() { "" } else { "," };
        let unknown = format!("{{{inside}{comma}\"colour\":1}}");
        wrong.push(Wrong::text(
            "an unknown field",
            marked.replace("\"@@\"", &unknown),
            place.path_of("colour"),
        ));
        if let Some((key, value)) = object.as_object().and_then(|members| members.iter().next()) {
            let twice = format!("{{{inside},{}:{value}}}", json!(key));
            wrong.push(Wrong::text(
                "a key twice",
                marked.replace("\"@@\"", &twice),
                place.path(),
            ));
        }
    }
    wrong
}
