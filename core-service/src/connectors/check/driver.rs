//! Whether an app with a driver makes sense: it names what the driver has, and nothing that belongs to requests.

use std::collections::BTreeSet;

use super::Check;
use crate::connectors::connection::ConnectionType;
use crate::connectors::field::Field;
use crate::connectors::module::{Module, ModuleType};
use crate::connectors::options::Rpc;
use crate::native::{self, Driver, Gives, Operation};

impl<'a> Check<'a> {
    pub(super) fn driver(&mut self, name: &str) {
        let app = self.app;
        let Some(driver) = native::driver(name) else {
            let known: Vec<&str> = native::names().collect();
            let message = format!("{name:?} is not known; there are {}", known.join(", "));
            return self.report("driver", message);
        };
        let absent = [
            ("baseUrl", app.base_url.is_some()),
            ("headers", app.headers.is_some()),
            ("hosts", !app.hosts.is_empty()),
            ("errors", !app.errors.is_empty()),
            ("tests", !app.tests.is_empty()),
        ];
        for (part, is_there) in absent {
            self.without(part, is_there);
        }
        self.driver_connections(driver);
        for module in &app.modules {
            self.driver_module(driver, module);
        }
        for rpc in &app.rpcs {
            self.driver_rpc(driver, rpc);
        }
    }

    fn without(&mut self, path: impl Into<String>, is_there: bool) {
        if is_there {
            self.report(path, "does not belong to an app with a driver");
        }
    }

    fn driver_connections(&mut self, driver: &dyn Driver) {
        let known = driver.connection_fields();
        for connection in &self.app.connections {
            let path = format!("connections.{}", connection.id);
            if connection.connection_type != ConnectionType::Server {
                let message = "must be server: the app has a driver, whose fields say who is asking";
                self.report(format!("{path}.type"), message);
            }
            self.without(format!("{path}.apply"), !connection.additions().is_empty());
            self.without(format!("{path}.verify"), connection.verify.is_some());
            for field in connection
                .fields
                .iter()
                .filter(|field| !known.contains(&field.name.as_str()))
            {
                let message = format!("the driver {} reads {}", driver.name(), known.join(", "));
                self.report(format!("{path}.fields.{}", field.name), message);
            }
        }
    }

    fn driver_module(&mut self, driver: &dyn Driver, module: &Module) {
        let path = format!("modules.{}", module.id);
        let absent = [
            ("request", module.request.is_some()),
            ("pagination", module.pagination.is_some()),
            ("output", module.output.is_some()),
            ("items", module.items.is_some()),
            ("limit", module.limit.is_some()),
            ("refuse", !module.refuse.is_empty()),
            ("errors", !module.errors.is_empty()),
            ("webhook", module.webhook.is_some()),
        ];
        for (part, is_there) in absent {
            self.without(format!("{path}.{part}"), is_there);
        }
        // That one is named is checked with the rest of the module.
        let Some(operation) = self.operation(driver, &path, module.operation.as_deref()) else {
            return;
        };
        let wanted = match module.module_type {
            ModuleType::Action => Gives::One,
            ModuleType::Search | ModuleType::Trigger => Gives::List,
        };
        self.gives(&path, operation, wanted);
        let bound = module.poll.as_ref().and_then(|poll| poll.limit.as_deref());
        if let Some(limit) = bound.filter(|limit| operation.parameters().all(|known| known != *limit)) {
            let message = format!("{} takes no {limit}", operation.name);
            self.report(format!("{path}.poll.limit"), message);
        }
        self.driver_fields(&path, operation, module);
    }

    /// That the fields are parameters, and all that the operation needs are among them.
    fn driver_fields(&mut self, path: &str, operation: &Operation, module: &Module) {
        let asks: BTreeSet<&str> = module.poll.iter().flat_map(polled).collect();
        let is_known = |name: &str| operation.parameters().any(|known| known == name) || asks.contains(name);
        for field in module.fields.iter().filter(|field| !is_known(&field.name)) {
            let known: Vec<&str> = operation.parameters().collect();
            let message = format!("the operation {} takes {}", operation.name, known.join(", "));
            self.report(format!("{path}.fields.{}", field.name), message);
        }
        let is_sure = |field: &Field| field.required || field.default.is_some();
        for name in operation.required {
            if !module
                .fields
                .iter()
                .any(|field| field.name == *name && is_sure(field))
            {
                let message = format!(
                    "must have a required field {name}, which {} needs",
                    operation.name
                );
                self.report(format!("{path}.fields"), message);
            }
        }
    }

    fn driver_rpc(&mut self, driver: &dyn Driver, rpc: &Rpc) {
        let path = format!("rpcs.{}", rpc.id);
        self.without(format!("{path}.pagination"), rpc.pagination.is_some());
        let Some(operation) = self.operation(driver, &path, rpc.operation.as_deref()) else {
            return;
        };
        self.gives(&path, operation, Gives::List);
        let is_known = |name: &String| operation.parameters().any(|known| known == name);
        let is_given = |name: &&str| rpc.depends_on.iter().any(|given| given == name);
        for name in rpc.depends_on.iter().filter(|name| !is_known(name)) {
            self.report(
                format!("{path}.dependsOn"),
                format!("{} takes no {name}", operation.name),
            );
        }
        for name in operation.required.iter().filter(|name| !is_given(name)) {
            self.report(
                format!("{path}.dependsOn"),
                format!("{} needs {name}", operation.name),
            );
        }
    }

    fn operation(
        &mut self,
        driver: &dyn Driver,
        path: &str,
        name: Option<&str>,
    ) -> Option<&'static Operation> {
        let name = name?;
        let found = driver.operation(name);
        if found.is_none() {
            let known: Vec<&str> = driver
                .operations()
                .iter()
                .map(|operation| operation.name)
                .collect();
            let message = format!(
                "{name:?} is no operation of {}; it has {}",
                driver.name(),
                known.join(", ")
            );
            self.report(format!("{path}.operation"), message);
        }
        found
    }

    fn gives(&mut self, path: &str, operation: &Operation, wanted: Gives) {
        if operation.gives != wanted {
            let given = match operation.gives {
                Gives::One => "one value, and belongs to actions",
                Gives::List => "a list, and belongs to searches, triggers that poll, and rpcs",
            };
            self.report(
                format!("{path}.operation"),
                format!("{} gives {given}", operation.name),
            );
        }
    }
}

/// The parameters that a trigger's own templates reach.
fn polled(poll: &crate::connectors::trigger::Poll) -> impl Iterator<Item = &str> {
    let reached = poll.templates().flat_map(|(_, template)| template.fields());
    reached.filter_map(|(root, name)| (root == "parameters").then_some(name))
}
