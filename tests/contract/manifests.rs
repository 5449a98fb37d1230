//! The published form of manifests: what editors check by it is what the service takes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("docs/manifest.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn manifests() -> Vec<(String, Value)> {
    let folder = std::fs::read_dir(root().join("core-service/src/connectors/apps")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let read = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        (file.display().to_string(), serde_saphyr::from_str(&text).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn every_app_has_the_published_form() {
    let (schema, manifests) = (schema(), manifests());
    assert!(manifests.len() > 5, "the apps are not there");
    for (file, manifest) in manifests {
        let problems = schema.iter_errors(&manifest);
        let problems: Vec<String> = problems
            .map(|problem| format!("{file}: {}: {problem}", problem.instance_path()))
            .collect();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}

#[test]
fn what_has_not_the_form_does_not_fit() {
    let schema = schema();
    let right = json!({ "manifest": 1, "id": "shop", "name": "Shop", "hosts": ["api.shop.test"] });
    assert!(schema.is_valid(&right));
    let mut made = right.clone();
    made["hosts"] = json!([
        "{{connection.shop}}.shop.test",
        "{{connection.host}}",
        "*.shop.test:8443",
        "*"
    ]);
    assert!(schema.is_valid(&made));
    for (name, value) in [
        ("surprise", json!(1)),
        ("hosts", json!(["https://x"])),
        ("hosts", json!(["{{connection.shop}}shop.test"])),
        ("hosts", json!(["https://{{connection.shop}}"])),
        ("modules", json!([{ "id": "m" }])),
        (
            "connections",
            json!([{ "id": "c", "label": "C", "type": "magic" }]),
        ),
        ("rateLimit", json!({ "requests": 1 })),
        ("name", Value::Null),
    ] {
        let mut wrong = right.clone();
        wrong[name] = value;
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
