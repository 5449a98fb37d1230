//! All that an organization's API tells of it, to be compared before and after.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;
use test_support::{Api, text};

use super::endpoint::{Endpoint, implemented};

/// Answers by the path that was read.
#[derive(PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    /// Reads every list, and of each thing in it everything that can be read of it.
    pub async fn of(api: &Api) -> Self {
        let mut readable = implemented();
        readable.retain(|endpoint| endpoint.route.verb == "GET" && !endpoint.streams);
        readable.retain(|endpoint| !endpoint.name.contains(" /catalog/"));
        let mut read = BTreeMap::new();
        let lists = readable
            .iter()
            .filter(|endpoint| !endpoint.route.path.contains('{'));
        // Runs are listed by workflow.
        for list in lists.filter(|list| list.name != "GET /runs") {
            let path = list.name.strip_prefix("GET ").unwrap();
            for item in take(api, path, &mut read).await {
                let Some(id) = item["id"].as_str() else {
                    continue;
                };
                Self::about(api, &readable, path, id, &mut read).await;
                if path == "/workflows" {
                    for run in take(api, &format!("/runs?workflowId={id}"), &mut read).await {
                        Self::about(api, &readable, "/runs", &text(&run["id"]), &mut read).await;
                    }
                }
            }
        }
        Self(read)
    }

    /// Reads what there is to read of one thing.
    async fn about(
        api: &Api,
        readable: &[Endpoint],
        list: &str,
        id: &str,
        read: &mut BTreeMap<String, String>,
    ) {
        let one = format!("GET {list}/{{id}}");
        let about = readable
            .iter()
            .filter(|endpoint| endpoint.name.starts_with(&one) && endpoint.path_parameters().len() == 1);
        for endpoint in about {
            let path = endpoint.path_with(id);
            take(api, path.strip_prefix("/api/v1").unwrap(), read).await;
        }
    }

    /// Every id that is in it.
    pub fn ids(&self) -> BTreeSet<String> {
        let id = Regex::new("[a-z]+_[0-9a-z]{26}").unwrap();
        let found = self.0.values().flat_map(|answer| id.find_iter(answer));
        found.map(|found| found.as_str().to_owned()).collect()
    }

    /// Paths whose answers are not the same in both.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let paths = self
            .0
            .keys()
            .chain(other.0.keys().filter(|path| !self.0.contains_key(*path)));
        let different = paths.filter(|path| self.0.get(*path) != other.0.get(*path));
        different
            .map(|path| format!("{path}: {:?} became {:?}", self.0.get(path), other.0.get(path)))
            .collect()
    }
}

/// Reads a path, and gives the items of a list.
async fn take(api: &Api, path: &str, read: &mut BTreeMap<String, String>) -> Vec<Value> {
    let answer = api.get(path).await;
    let body = answer.body(200);
    read.insert(path.to_owned(), answer.text());
    body["data"].as_array().cloned().unwrap_or_default()
}
