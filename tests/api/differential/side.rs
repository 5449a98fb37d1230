//! One of the worlds that are compared: a database, a door, an organization.

use core_service::store::Store;
use serde_json::{Map, Value};
use test_support::until;

use super::door::{Door, Outcome};
use super::names::Names;
use super::operation::{self, Operation};
use super::script::Step;
use crate::world::World;

/// Segments of paths, and the kind of id that follows them.
const KINDS: [(&str, &str); 7] = [
    ("databases", "db"),
    ("functions", "fn"),
    ("runs", "run"),
    ("structures", "struct"),
    ("variables", "var"),
    ("webhooks", "wh"),
    ("workflows", "wf"),
];

pub(crate) struct Side {
    pub(crate) label: String,
    world: World,
    store: Store,
    door: Door,
    names: Names,
}

impl Side {
    pub(crate) fn over_rest(database: &str, world: World, store: Store) -> Self {
        let door = Door::Rest(world.api.clone());
        Self::new(format!("REST on {database}"), world, store, door)
    }

    pub(crate) async fn over_grpc(database: &str, world: World, store: Store) -> Self {
        let door = Door::Grpc {
            channel: world.server.channel().await,
            key: world.api.key().to_owned(),
        };
        Self::new(format!("gRPC on {database}"), world, store, door)
    }

    fn new(label: String, world: World, store: Store, door: Door) -> Self {
        let names = Names::new(world.server.rest_url());
        Self {
            label,
            world,
            store,
            door,
            names,
        }
    }

    /// Takes a step and tells what came of it, in the names that all sides share.
    pub(crate) async fn take(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Call(operation) => {
                let outcome = self.call(operation).await;
                if !operation.reads() {
                    self.settle().await;
                }
                outcome
            }
            Step::InsertRows { table, rows } => self.insert(table, rows).await,
        }
    }

    async fn call(&mut self, operation: &Operation) -> Outcome {
        let parameters = operation.parameters.iter();
        let actual = Operation {
            parameters: parameters
                .map(|(name, value)| (*name, self.names.actual_text(value)))
                .collect(),
            body: self.names.actual(&operation.body),
            ..operation.clone()
        };
        let outcome = self.door.call(&actual).await;
        let subject = actual.parameters.first().map_or("", |(_, value)| value);
        Outcome {
            body: self.names.shared(&outcome.body, subject),
            ..outcome
        }
    }

    /// Waits until no run is on its way: what it is at an instant, nobody promises.
    async fn settle(&mut self) {
        for run in self.names.all("run") {
            let run = self.names.actual_text(&run);
            let rests = until(async || {
                let report = self.world.api.get(format!("/runs/{run}")).await.data(200);
                let moving = ["queued", "running"]
                    .iter()
                    .any(|status| report["status"] == *status);
                (!moving).then_some(())
            });
            assert!(
                rests.await.is_some(),
                "{run} does not come to rest on {}",
                self.label
            );
        }
    }

    /// Rows come from runs alone, so there is no method that makes them.
    async fn insert(&mut self, table: &str, rows: &[Map<String, Value>]) -> Outcome {
        let table = self.names.actual_text(table);
        let organization = &self.world.organization;
        // A transaction that is given up would keep the server from writing to SQLite.
        if let Err(error) = self.store.table(organization, &table).await {
            return Outcome {
                status: 404,
                body: error.to_string().into(),
            };
        }
        let inserted = self.store.insert_rows(organization, &table, rows).await;
        let (status, said) = match inserted {
            Ok(rows) => (200, format!("{} rows", rows.len())),
            Err(error) => (400, error.to_string()),
        };
        Outcome {
            status,
            body: self.names.shared(&said.into(), ""),
        }
    }

    /// Everything that can be read: each list, and all that is known by an id.
    pub(crate) async fn read_all(&mut self) -> Vec<(Operation, Outcome)> {
        let mut state = Vec::new();
        for read in self.reads() {
            let outcome = self.call(&read).await;
            state.push((read, outcome));
        }
        state
    }

    fn reads(&self) -> Vec<Operation> {
        let mut reads = Vec::new();
        for route in operation::reads() {
            let segments: Vec<&str> = route.path.trim_start_matches("/api/v1/").split('/').collect();
            let kind = KINDS.iter().find(|(segment, _)| *segment == segments[0]);
            let ids = |kind: &str| self.names.all(kind).into_iter();
            match (segments.as_slice(), kind) {
                (["runs"], _) => {
                    let of = |id| Operation::read(route, vec![("workflowId", id)]);
                    reads.extend(ids("wf").map(of));
                }
                ([_], _) => reads.push(Operation::read(route, Vec::new())),
                ([_, "{id}", .., "{versionNo}"], _) => {
                    let first = |id| Operation::read(route, vec![("id", id), ("versionNo", "1".to_owned())]);
                    reads.extend(ids("wf").map(first));
                }
                ([_, "{id}", ..], Some((_, kind))) => {
                    reads.extend(ids(kind).map(|id| Operation::read(route, vec![("id", id)])));
                }
                _ => {}
            }
        }
        reads
    }
}
