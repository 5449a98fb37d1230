//! Every list with a cursor, read page by page to its end while others write into it: what was there throughout comes
//! exactly once, whatever the order.

use std::collections::BTreeSet;

use contract::v1::{CreateUserRequest, MemberRole};
use serde_json::{Value, json};
use test_support::{Api, graphs, percent_encoded, text};

use super::endpoint::{Endpoint, implemented};
use super::home::Home;
use crate::world::World;

on_both_databases!(
    nothing_is_skipped_and_nothing_comes_twice,
    a_cursor_belongs_to_its_list_and_query,
);

/// Items that are there throughout.
const KEPT: usize = 13;
/// Few, and no divisor of [`KEPT`].
const LIMIT: usize = 3;

/// A list with a cursor, and what it takes to write into it.
struct List<'h> {
    home: &'h Home<'h>,
    world: &'h World,
    /// As the endpoint is named.
    name: String,
    /// Path below `/api/v1`.
    path: String,
    /// Queries of each order that it offers.
    orders: Vec<String>,
    /// What an item's identity is.
    id: fn(&Value) -> String,
}

fn own_id(item: &Value) -> String {
    text(&item["id"])
}

/// The endpoints of lists with a cursor.
fn listing() -> impl Iterator<Item = Endpoint> {
    let listing = |endpoint: &Endpoint| endpoint.query.contains(&"cursor");
    implemented().into_iter().filter(listing)
}

/// A list, with what it is about made.
///
/// # Panics
/// When it has no entry here.
async fn list_of<'h>(world: &'h World, home: &'h Home<'h>, endpoint: &Endpoint) -> List<'h> {
    let plain = |path: String| List {
        home,
        world,
        name: endpoint.name.clone(),
        path,
        orders: vec![String::new()],
        id: own_id,
    };
    match endpoint.name.as_str() {
        "GET /workflows" => {
            let of = |by: &str| ["asc", "desc"].map(|direction| format!("sortBy={by}&sortDir={direction}&"));
            List {
                orders: ["name", "createdAt", "updatedAt"]
                    .iter()
                    .flat_map(|by| of(by))
                    .collect(),
                ..plain("/workflows?".to_owned())
            }
        }
        "GET /workflows/{id}/versions" => List {
            id: |item| item["versionNo"].to_string(),
            ..plain(format!("/workflows/{}/versions?", home.workflow().await))
        },
        "GET /runs" => plain(format!("/runs?workflowId={}&", home.small_workflow().await)),
        "GET /runs/{id}/nodes" => List {
            id: |item| item["nodeId"].to_string(),
            ..plain(format!("/runs/{}/nodes?", run_of_many_nodes(home).await))
        },
        "GET /databases/{id}/rows" => List {
            orders: [
                "",
                "sortDir=asc&",
                "sortColumnId=price&",
                "sortColumnId=price&sortDir=desc&",
            ]
            .map(str::to_owned)
            .into(),
            ..plain(format!("/databases/{}/rows?", home.table().await))
        },
        "GET /human-requests" => plain("/human-requests?".to_owned()),
        "GET /credentials" => plain("/credentials?".to_owned()),
        "GET /functions" => plain("/functions?".to_owned()),
        "GET /webhooks" => plain("/webhooks?".to_owned()),
        "GET /members" => List {
            id: |item| text(&item["userId"]),
            ..plain("/members?".to_owned())
        },
        "GET /activity" => plain("/activity?".to_owned()),
        name => {
            panic!("{name} has no entry; say in tests/api/conformance/paging.rs how it is written into")
        }
    }
}

/// A run that fills a list of its nodes before it is read: it takes no more.
async fn run_of_many_nodes(home: &Home<'_>) -> String {
    let set = ("set", json!({ "fields": { "a": 1 } }));
    let nodes: Vec<_> = std::iter::once(("manual_trigger", json!({})))
        .chain(std::iter::repeat_n(set, KEPT))
        .collect();
    let workflow = home.api.workflow_with("Long", graphs::chain(&nodes)).await;
    let run = home.api.start(&workflow, json!({})).await;
    let _ = home.api.ended(&run).await;
    run
}

impl List<'_> {
    /// The id in the path, or in the query.
    fn of(&self) -> &str {
        let mut ids = self.path.split(['/', '=', '&', '?']);
        ids.find(|part| part.contains('_')).unwrap()
    }

    /// Writes one more item.
    async fn insert(&self) {
        let (api, number) = (&self.home.api, self.home.number());
        match self.name.as_str() {
            // Names that fall before, between and behind the others.
            "GET /workflows" => {
                let name = ["aaa", "same", "zzz"][number as usize % 3];
                api.workflow(name).await;
            }
            "GET /workflows/{id}/versions" => {
                let rename = json!([{ "op": "rename_node", "nodeId": 1, "name": format!("n{number}") }]);
                api.edit(self.of(), rename).await;
                let path = format!("/workflows/{}/deploy", self.of());
                let _ = api.post(path, json!({})).await.data(200);
            }
            "GET /runs" => {
                api.start(self.of(), json!({})).await;
            }
            "GET /runs/{id}/nodes" => {}
            "GET /databases/{id}/rows" => {
                let row = json!({ "sku": format!("s{number}"), "price": number % 4 });
                self.home.insert_row(self.of(), row).await;
            }
            "GET /human-requests" => {
                self.home.asking_run(&["a"]).await;
            }
            "GET /credentials" => {
                self.home.credential().await;
            }
            "GET /functions" => {
                self.home.function().await;
            }
            "GET /webhooks" => {
                let workflow = self.home.workflow().await;
                api.mint(&workflow, 1).await;
            }
            "GET /members" => {
                let user = CreateUserRequest {
                    organization_id: self.home.organization.clone(),
                    email: format!("member{number}@users.test"),
                    role: MemberRole::Member.into(),
                    name: None,
                };
                let _ = self.world.admin.client.clone().create_user(user).await.unwrap();
            }
            "GET /activity" => {
                self.home.tag().await;
            }
            name => panic!("how is one more written into {name}?"),
        }
    }

    /// Changes or deletes an item that need not be there throughout, where the list has such a thing.
    async fn disturb(&self, item: &str, delete: bool) {
        let api = &self.home.api;
        let (path, change) = match self.name.as_str() {
            "GET /workflows" => (
                format!("/workflows/{item}"),
                json!({ "name": format!("z{item}") }),
            ),
            "GET /webhooks" => (format!("/webhooks/{item}"), json!({ "enabled": false })),
            "GET /functions" if !delete => (
                format!("/functions/{item}"),
                json!({ "name": format!("renamed{}", self.home.number()) }),
            ),
            _ => return,
        };
        match delete {
            true if self.name == "GET /webhooks" => _ = api.delete(format!("{path}?force=1")).await,
            true => _ = api.delete(path).await.data(200),
            false => _ = api.patch(path, change).await.data(200),
        }
    }

    async fn page(&self, order: &str, limit: usize, cursor: Option<&str>) -> (Vec<Value>, Option<String>) {
        let cursor = cursor.map(|cursor| format!("&cursor={}", percent_encoded(cursor)));
        let path = format!("{}{order}limit={limit}{}", self.path, cursor.unwrap_or_default());
        page_of(&self.home.api, &path).await
    }
}

/// One page; the activity feed has its own shape.
async fn page_of(api: &Api, path: &str) -> (Vec<Value>, Option<String>) {
    let body = api.get(path).await.body(200);
    let page = if body["data"].is_object() {
        &body["data"]
    } else {
        &body
    };
    let items = page.get("events").unwrap_or(&page["data"]);
    (
        items.as_array().unwrap().clone(),
        page["next_cursor"].as_str().map(str::to_owned),
    )
}

async fn nothing_is_skipped_and_nothing_comes_twice(world: &World) {
    for endpoint in listing() {
        // A home for each: what one list deletes, another may be about.
        let home = Home::found(world).await;
        let list = list_of(world, &home, &endpoint).await;
        for order in &list.orders {
            read_while_others_write(&list, order).await;
        }
    }
}

async fn read_while_others_write(list: &List<'_>, order: &str) {
    let place = format!("{} {order}", list.path);
    let mut there = ids(list, &list.page(order, 200, None).await.0);
    while there.len() < KEPT + LIMIT {
        list.insert().await;
        let before = there.len();
        there = ids(list, &list.page(order, 200, None).await.0);
        if there.len() == before {
            break;
        }
    }
    // Every fifth is changed, or deleted, while the others stay.
    let disturbed: Vec<String> = there.iter().skip(1).step_by(5).cloned().collect();
    let kept: Vec<&String> = there.iter().filter(|id| !disturbed.contains(id)).collect();
    let mut to_disturb = disturbed.iter();
    let (mut seen, mut cursor): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let write = async {
            list.insert().await;
            if let Some(item) = to_disturb.next() {
                list.disturb(item, seen.len() % 2 == 1).await;
            }
        };
        let read = list.page(order, LIMIT, cursor.as_deref());
        let (_, (items, next)) = tokio::join!(write, read);
        assert!(
            items.len() == LIMIT || next.is_none(),
            "{place}: {} items and more",
            items.len()
        );
        seen.extend(ids(list, &items));
        assert!(seen.len() < 500, "{place} has no end");
        match next {
            None => break,
            next => cursor = next,
        }
    }
    let mut once = BTreeSet::new();
    for id in seen.iter().filter(|id| !disturbed.contains(id)) {
        assert!(once.insert(id), "{place}: {id} comes twice");
    }
    let found: Vec<&String> = seen.iter().filter(|id| kept.contains(id)).collect();
    assert_eq!(found, kept, "{place}: what was there throughout, in its order");
}

fn ids(list: &List<'_>, items: &[Value]) -> Vec<String> {
    items.iter().map(|item| (list.id)(item)).collect()
}

async fn a_cursor_belongs_to_its_list_and_query(world: &World) {
    let home = Home::found(world).await;
    let mut lists = Vec::new();
    for endpoint in listing() {
        lists.push(list_of(world, &home, &endpoint).await);
    }
    let mut cursors = Vec::new();
    for list in &lists {
        for _ in 0..3 {
            list.insert().await;
        }
        let (_, cursor) = list.page(&list.orders[0], 1, None).await;
        cursors.push(cursor.unwrap_or_else(|| panic!("{} has one page", list.path)));
    }
    for (at, list) in lists.iter().enumerate() {
        for (of, cursor) in cursors.iter().enumerate() {
            let own = format!(
                "{}{}limit=2&cursor={}",
                list.path,
                list.orders[0],
                percent_encoded(cursor)
            );
            match at == of {
                true => _ = page_of(&home.api, &own).await,
                false => home.api.get(own).await.invalid("cursor"),
            }
        }
        // The form of the feed's cursors, which the specification fixes, has no room for its query.
        if list.name == "GET /activity" {
            continue;
        }
        let others = list.orders.iter().skip(1).map(String::as_str);
        let searches = ["GET /workflows", "GET /functions", "GET /webhooks", "GET /runs"];
        let search = searches.contains(&list.name.as_str()).then_some("q=other&");
        for other in others.chain(search) {
            let path = format!(
                "{}{other}limit=2&cursor={}",
                list.path,
                percent_encoded(&cursors[at])
            );
            home.api.get(path).await.invalid("cursor");
        }
        let cut = &cursors[at][..cursors[at].len() - 2];
        let path = format!(
            "{}{}limit=2&cursor={}",
            list.path,
            list.orders[0],
            percent_encoded(cut)
        );
        home.api.get(path).await.invalid("cursor");
    }
}
