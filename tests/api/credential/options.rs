//! Choices of fields: how many there are, and whether that is known.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use test_support::{Asked, Target};

use crate::catalog::bring;
use crate::world::World;

on_both_databases!(choices_that_are_cut_say_so);

/// A library that lists its books by the page, each with the number of the next one, up to as many as the path says.
async fn library() -> Target {
    Target::start(|asked: &Asked| {
        let most: usize = asked.uri.path().trim_start_matches('/').parse().unwrap();
        let query = asked.uri.query().unwrap_or_default();
        let first: usize = query
            .strip_prefix("from=")
            .map_or(0, |from| from.parse().unwrap());
        let next = first + 100;
        let books: Vec<usize> = (first..next.min(most)).collect();
        let body = json!({ "books": books, "next": (next < most).then_some(next) });
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(body.to_string())).unwrap()
    })
    .await
}

async fn choices(world: &World, rpc: &str, books: usize) -> Value {
    let body = json!({ "appId": "library", "rpcId": rpc, "params": { "most": books } });
    world
        .api
        .post("/credentials/dynamic-options", body)
        .await
        .data(200)
}

async fn choices_that_are_cut_say_so(world: &World) {
    let library = library().await;
    let request = "dependsOn: [most], request: { path: '/{{parameters.most}}' }";
    let next = "type: cursor, next: '{{response.body.next}}', parameter: from";
    let options = "items: '{{response.body.books}}', value: '{{$item}}', label: 'Book {{$item}}'";
    let manifest = format!(
        "manifest: 1
id: library
name: Library
baseUrl: {}
rpcs:
  - {{ id: all, label: All, {request}, pagination: {{ {next} }}, options: {{ {options} }} }}
  - {{ id: two_pages, label: Two pages, {request}, pagination: {{ {next}, maxPages: 2 }}, options: {{ {options} }} }}
  - {{ id: page, label: One page, {request}, options: {{ {options}, more: '{{{{response.body.next != null}}}}' }} }}
",
        library.url("")
    );
    bring(world, &manifest).await;
    for (rpc, books, given, truncated, total) in [
        ("all", 200, 200, false, None),
        ("all", 250, 200, true, Some(250)),
        ("all", 1_000, 200, true, Some(1_000)),
        // Ten pages are asked for, and there is an eleventh.
        ("all", 1_001, 200, true, None),
        ("two_pages", 200, 200, false, None),
        ("two_pages", 250, 200, true, None),
        ("page", 100, 100, false, None),
        ("page", 250, 100, true, None),
    ] {
        let found = choices(world, rpc, books).await;
        assert_eq!(
            found["items"].as_array().map(Vec::len),
            Some(given),
            "{rpc} {books}"
        );
        assert_eq!(found["truncated"], truncated, "{rpc} {books}");
        let total: Option<i32> = total;
        assert_eq!(
            found.get("total"),
            total.map(Value::from).as_ref(),
            "{rpc} {books}"
        );
    }
}
