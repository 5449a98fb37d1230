//! Lists of drivers, for triggers that poll: longer and longer ones, as far as they are wanted.
//!
//! A driver knows no pages. What bounds its list is a parameter, so that the list is asked for again with a greater one.

use std::time::Instant;

use engine::failure::NodeError;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::http::Caller;
use super::native::NativeCaller;
use crate::connectors::{App, Listed, Module, Until};
use crate::native::Failure;

/// How many times as long each list is as the one before.
const GROWTH: usize = 4;

/// What is asked, and how far.
pub(super) struct Lengthening<'a> {
    native: &'a NativeCaller,
    app: &'a App,
    module: &'a Module,
    until: Until<'a>,
}

impl<'a> Lengthening<'a> {
    pub(super) fn new(
        native: &'a NativeCaller,
        (app, module): (&'a App, &'a Module),
        until: Until<'a>,
    ) -> Self {
        Self {
            native,
            app,
            module,
            until,
        }
    }

    /// The list. All questions together take no longer than one may; of several lists the longest that came counts.
    pub(super) async fn list(
        &self,
        parameters: &Map<String, Value>,
        caller: &Caller<'_>,
    ) -> Result<Listed, NodeError> {
        let poll = self.module.poll.as_ref();
        let Value::Object(mut parameters) = self.module.with_defaults(parameters) else {
            return Ok(Listed::whole(Value::Null));
        };
        let Some(limit) = poll.and_then(|poll| poll.limit.as_deref()) else {
            return self.ask(&parameters, caller).await.map(Listed::whole);
        };
        let started = Instant::now();
        let given = parameters.get(limit).filter(|given| !given.is_null());
        let mut most = self.first_bound(given);
        if given.is_none() {
            parameters.insert(limit.to_owned(), most.into());
        }
        let mut found = Listed::whole(self.ask(&parameters, caller).await?);
        loop {
            found.goes_on = found.items.len() >= most;
            let is_enough = most >= self.until.most || (self.until.is_last)(&found.items);
            if !found.goes_on || is_enough {
                return Ok(found);
            }
            most = most.saturating_mul(GROWTH).min(self.until.most);
            parameters.insert(limit.to_owned(), most.into());
            let left = caller.timeout.saturating_sub(started.elapsed());
            found = match timeout(left, self.ask(&parameters, caller)).await {
                Ok(Ok(longer)) => Listed::whole(longer),
                Ok(Err(error)) if error.code != Failure::TOO_LARGE => return Err(error),
                // It is too long, or takes too long.
                Ok(Err(_)) | Err(_) => return Ok(found),
            };
        }
    }

    /// How many things the first list has at most, by the parameter's value. One that makes no sense is the driver's to
    /// refuse.
    fn first_bound(&self, given: Option<&Value>) -> usize {
        let given = given.and_then(Value::as_u64).map(usize::try_from);
        given
            .and_then(Result::ok)
            .map_or(self.until.most, |most| most.min(self.until.most))
    }

    async fn ask(&self, parameters: &Map<String, Value>, caller: &Caller<'_>) -> Result<Value, NodeError> {
        let operation = self.module.operation.as_deref();
        let asked = self
            .native
            .call_for(self.until.most, self.app, operation, parameters, caller);
        asked.await
    }
}
