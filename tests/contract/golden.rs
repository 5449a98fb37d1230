//! What the contract looks like from outside, as files that a review can read. `UPDATE_GOLDENS=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::path::Path;

use contract::access::{Access, Method};
use contract::json::Words;
use contract::v1::Scope;
use core_service::connectors::Apps;

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((number, (old, new))) = golden
        .lines()
        .zip(text.lines())
        .enumerate()
        .find(|(_, (old, new))| old != new)
    {
        panic!(
            "{name} differs at line {}:\n- {old}\n+ {new}\nIf that is wanted, run the tests with UPDATE_GOLDENS=1.",
            number + 1
        );
    }
    assert_eq!(
        golden.len(),
        text.len(),
        "{name} differs in length; run the tests with UPDATE_GOLDENS=1"
    );
}

#[test]
fn openapi_is_as_reviewed() {
    let document = rest_facade::openapi::document().unwrap();
    compare(
        "openapi.json",
        &(serde_json::to_string_pretty(&document).unwrap() + "\n"),
    );
}

#[test]
fn routes_are_as_reviewed() {
    let mut routes = crate::routes();
    routes.sort_by_key(|route| (route.path, route.verb));
    let mut text = String::new();
    for route in routes {
        let method = Method::find(route.rpc).unwrap();
        let access = match method.access {
            Access::Key(scope) => Scope::to_word(scope as i32).unwrap_or("?"),
            Access::Public => "public",
            Access::Operator => "operator",
        };
        let admin = if method.admin_only { " admin" } else { "" };
        writeln!(
            text,
            "{} {} {} {access}{admin} {}",
            route.verb, route.path, route.rpc, route.success_status
        )
        .unwrap();
    }
    compare("routes.txt", &text);
}

#[test]
fn every_app_has_its_page() {
    let apps = Apps::built_in().unwrap();
    compare("../../docs/apps/README.md", &apps.index());
    let mut named = vec!["README.md".to_owned()];
    for app in apps.iter() {
        let name = format!("{}.md", app.id);
        compare(&format!("../../docs/apps/{name}"), &app.page());
        named.push(name);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/apps");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(named.contains(&name), "docs/apps/{name} is the page of no app");
    }
}

#[test]
fn the_form_of_manifests_is_as_published() {
    let schema = core_service::connectors::App::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    compare("../../docs/manifest.schema.json", &text);
}
