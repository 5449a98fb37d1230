//! Drivers: what speaks to servers in protocols other than HTTP.
//!
//! An app whose manifest names a driver is like any other: its connections, modules and fields stand in the manifest, and
//! each module names an operation of the driver instead of a request. The names of its fields are the names of the
//! operation's parameters, and the fields of its connections those that the driver reads.
//!
//! A driver opens connections through the [`Dialer`] alone, so that it reaches no address that requests may not reach. It
//! opens one for each call and closes it afterwards: nothing that one run leaves in a session (settings, locks, a
//! transaction) reaches another, and a changed credential holds at once.
//!
//! To add one: a file here that implements [`Driver`], its entry in `DRIVERS`, and a manifest.
//!
//! Absent on purpose: manifests (`connectors`), credentials and masking (`nodes`), when to try again (the engine).

mod bounded;
mod content;
mod driven;
mod failure;
mod imap;
mod mysql;
mod postgresql;
mod redis;
mod s3;
mod server;
mod sftp;
mod smtp;
mod sql;
mod values;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;

pub use failure::Failure;
pub use values::Values;

use crate::outbound::{Dialer, Outbound};

/// A future without a name.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// All there are.
const DRIVERS: &[&dyn Driver] = &[
    &imap::Imap,
    &mysql::MySql,
    &postgresql::PostgreSql,
    &redis::Redis,
    &s3::S3,
    &sftp::Sftp,
    &smtp::Smtp,
];

/// Speaks a protocol. Holds nothing: what a call needs comes with it.
pub trait Driver: Send + Sync {
    /// Its name in manifests.
    fn name(&self) -> &'static str;

    /// The fields of connections that it reads.
    fn connection_fields(&self) -> &'static [&'static str];

    /// What it can do.
    fn operations(&self) -> &'static [Operation];

    /// Does it. Dropping the future gives the call up and closes its connection. Of an operation that
    /// [`Gives::List`], the value is an array.
    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value>;

    /// Whether the server accepts the connection's data: [`Failure::Credential`] when it does not.
    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()>;
}

/// Something that a driver can do.
pub struct Operation {
    /// Its name in manifests.
    pub name: &'static str,
    /// The parameters without which it cannot be called.
    pub required: &'static [&'static str],
    /// Those that may be left out.
    pub optional: &'static [&'static str],
    /// What comes of it.
    pub gives: Gives,
}

/// What comes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// One value; for actions.
    One,
    /// A list; for searches, triggers that poll, and choices.
    List,
}

/// Whom a driver speaks to.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The values of the connection's fields, secret ones included.
    pub connection: Values<'a>,
    /// Opens connections.
    pub dialer: &'a Dialer,
    /// Sends requests, for protocols over HTTP.
    pub http: &'a Outbound,
    /// What the call may take.
    pub limits: Limits,
}

/// An operation, and what it is called with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// Its parameters, defaults of the manifest included.
    pub parameters: Values<'a>,
    /// The same however often the call is repeated; absent where nothing is changed.
    pub idempotency_key: Option<&'a str>,
    /// Whom it is asked of.
    pub session: Session<'a>,
}

/// What a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it may take in all. Whoever calls gives it up then; a driver that can tell its server does.
    pub timeout: Duration,
    /// The most bytes that may be read of the server.
    pub bytes: u64,
    /// The most things in a list.
    pub items: usize,
}

/// The driver of this name.
#[must_use]
pub fn driver(name: &str) -> Option<&'static dyn Driver> {
    DRIVERS.iter().copied().find(|driver| driver.name() == name)
}

/// The names of all drivers.
pub fn names() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().map(|driver| driver.name())
}

impl dyn Driver + '_ {
    /// The operation of this name.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<&'static Operation> {
        self.operations().iter().find(|operation| operation.name == name)
    }
}

impl Operation {
    /// One that gives one value.
    #[must_use]
    pub const fn one(
        name: &'static str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            required,
            optional,
            gives: Gives::One,
        }
    }

    /// One that gives a list.
    #[must_use]
    pub const fn list(
        name: &'static str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Self {
        Self {
            gives: Gives::List,
            ..Self::one(name, required, optional)
        }
    }

    /// All its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.required.iter().chain(self.optional).copied()
    }
}
