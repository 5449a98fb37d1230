//! The interpreter: which request a module makes, what the answer means, which request comes next.
//!
//! Pure: it is told what the service answered, and whoever sends (nodes, services, rehearsals) asks it what to do.

use serde_json::{Map, Value};

use super::connection::{Connection, ConnectionData};
use super::failure::{FailureRule, ToldFailure};
use super::manifest::App;
use super::module::{Module, ModuleType};
use super::options::Rpc;
use super::pagination::{Pagination, Progress};
use super::request::RequestTemplate;
use super::template::{Reach, Template, TemplateError};

/// A module, rpc or test of a credential at work.
pub struct Walk<'a> {
    app: &'a App,
    purpose: Purpose<'a>,
    parameters: Value,
    /// The connection's values without the secret ones, which get into requests by the connection's own rules alone.
    connection: Option<Value>,
    call: Value,
    most: Option<usize>,
    items: Vec<Value>,
    pages: u32,
}

/// What a walk is for: what its answers are read by.
struct Purpose<'a> {
    request: &'a RequestTemplate,
    rules: &'a [FailureRule],
    pagination: Option<&'a Pagination>,
    reading: Reading<'a>,
}

#[derive(Clone, Copy)]
enum Reading<'a> {
    /// One value; the body by default.
    Output(Option<&'a Template>),
    /// A list; the body by default.
    Items(Option<&'a Template>),
}

/// What a walk has come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There is another request to be made.
    Again,
    /// This is the output, or the list of a module that gives several.
    Done(Value),
}

/// Whom a walk is made for, as the manifest's templates see it.
pub type Connected<'a> = Option<(&'a Connection, &'a ConnectionData)>;

impl App {
    /// A module of the app at work.
    ///
    /// # Errors
    /// When the templates make no request of the parameters.
    pub fn begin<'a>(
        &'a self,
        module: &'a Module,
        parameters: &Map<String, Value>,
        connected: Connected<'_>,
    ) -> Result<Walk<'a>, TemplateError> {
        let Some(request) = &module.request else {
            return Err(TemplateError::new("the module makes no request"));
        };
        let gives_one = module.module_type == ModuleType::Action;
        let purpose = Purpose {
            request,
            rules: &module.errors,
            pagination: module.pagination.as_ref(),
            reading: match gives_one {
                true => Reading::Output(module.output.as_ref()),
                false => Reading::Items(module.items.as_ref()),
            },
        };
        let parameters = module.with_defaults(parameters);
        let walk = self.walk(purpose, parameters, module.limit.as_ref(), connected, None)?;
        walk.ok_or_else(|| TemplateError::new("the request has no URL"))
    }

    /// A question of the app's at work; it gives a list.
    ///
    /// # Errors
    /// When the templates make no request of the parameters.
    pub fn ask<'a>(
        &'a self,
        rpc: &'a Rpc,
        parameters: Map<String, Value>,
        connected: Connected<'_>,
    ) -> Result<Walk<'a>, TemplateError> {
        let purpose = Purpose {
            request: &rpc.request,
            rules: &[],
            pagination: rpc.pagination.as_ref(),
            reading: Reading::Items(Some(&rpc.options.items)),
        };
        let walk = self.walk(purpose, Value::Object(parameters), None, connected, None)?;
        walk.ok_or_else(|| TemplateError::new("the request has no URL"))
    }

    /// What tells the service to call a trigger's webhook, or with `detach` to call it no longer; nothing when nobody has to
    /// be told. `webhook` has `url`, `secret`, and what was kept.
    ///
    /// # Errors
    /// When the templates make no request of the parameters.
    pub fn attach<'a>(
        &'a self,
        module: &'a Module,
        parameters: &Map<String, Value>,
        connected: Connected<'_>,
        webhook: &Value,
        detach: bool,
    ) -> Result<Option<Walk<'a>>, TemplateError> {
        let Some(source) = &module.webhook else {
            return Ok(None);
        };
        let request = match detach {
            true => source.detach.as_ref(),
            false => source.attach.as_ref(),
        };
        let Some(request) = request else { return Ok(None) };
        let purpose = Purpose {
            request,
            rules: &module.errors,
            pagination: None,
            reading: Reading::Output(source.keep.as_ref().filter(|_| !detach)),
        };
        let parameters = module.with_defaults(parameters);
        self.walk(purpose, parameters, None, connected, Some(webhook))
    }

    /// The test of a credential; nothing when there is no service to ask.
    ///
    /// # Errors
    /// When the templates make no request of the connection.
    pub fn verify<'a>(
        &'a self,
        connection: &'a Connection,
        data: &ConnectionData,
    ) -> Result<Option<Walk<'a>>, TemplateError> {
        let Some(request) = &connection.verify else {
            return Ok(None);
        };
        let purpose = Purpose {
            request,
            rules: &[],
            pagination: None,
            reading: Reading::Output(None),
        };
        self.walk(purpose, Value::Null, None, Some((connection, data)), None)
    }

    fn walk<'a>(
        &'a self,
        purpose: Purpose<'a>,
        parameters: Value,
        limit: Option<&Template>,
        connected: Connected<'_>,
        webhook: Option<&Value>,
    ) -> Result<Option<Walk<'a>>, TemplateError> {
        let connection = connected.map(|(connection, data)| connection.public(data));
        let mut reach = Reach::new();
        reach.parameters = Some(&parameters);
        reach.connection = connection.as_ref();
        reach.webhook = webhook;
        let most = limit.map(|limit| most(limit, &reach)).transpose()?.flatten();
        let Some(mut call) = purpose.request.call(&self.home(), &reach)? else {
            return Ok(None);
        };
        if let Some(pagination) = purpose.pagination {
            pagination.begin(&mut call);
        }
        Ok(Some(Walk {
            app: self,
            purpose,
            parameters,
            connection,
            call,
            most,
            items: Vec::new(),
            pages: 0,
        }))
    }
}

impl Walk<'_> {
    /// The parameters of the call to be made now.
    pub fn call(&self) -> &Value {
        &self.call
    }

    /// Its number, from 1.
    pub fn page(&self) -> u32 {
        self.pages + 1
    }

    /// The failure that an answer is by the manifest's rules.
    ///
    /// # Errors
    /// When a rule gives nothing usable.
    pub fn failure(&self, response: &Value) -> Result<Option<ToldFailure>, TemplateError> {
        let rules = self.purpose.rules.iter().chain(&self.app.errors);
        FailureRule::first(rules, &self.reach(response))
    }

    /// Takes in an answer that is no failure.
    ///
    /// # Errors
    /// When it is not what the manifest expects.
    pub fn take(&mut self, response: &Value) -> Result<Step, TemplateError> {
        let reach = self.reach(response);
        let found = match self.purpose.reading {
            Reading::Output(None) => return Ok(Step::Done(body(response))),
            Reading::Output(Some(output)) => return output.evaluate_given(&reach).map(Step::Done),
            Reading::Items(None) => body(response),
            Reading::Items(Some(items)) => items.evaluate(&reach)?,
        };
        let Value::Array(found) = found else {
            return Err(TemplateError::new(
                "the answer has no list where the app expects one",
            ));
        };
        let on_page = found.len();
        self.items.extend(found);
        self.pages += 1;
        if self.most.is_some_and(|most| self.items.len() >= most) || !self.advance(on_page, response)? {
            self.items.truncate(self.most.unwrap_or(usize::MAX));
            return Ok(Step::Done(Value::Array(std::mem::take(&mut self.items))));
        }
        Ok(Step::Again)
    }

    fn advance(&mut self, on_page: usize, response: &Value) -> Result<bool, TemplateError> {
        let Some(pagination) = self.purpose.pagination else {
            return Ok(false);
        };
        let progress = Progress {
            pages: self.pages,
            items: self.items.len(),
            on_page,
        };
        let mut call = self.call.clone();
        let goes_on = pagination.advance(&mut call, progress, &self.reach(response))?;
        self.call = call;
        Ok(goes_on)
    }

    fn reach<'r>(&'r self, response: &'r Value) -> Reach<'r> {
        let mut reach = Reach::new();
        reach.parameters = Some(&self.parameters);
        reach.connection = self.connection.as_ref();
        reach.response = Some(response);
        reach
    }
}

fn body(response: &Value) -> Value {
    response.get("body").cloned().unwrap_or_default()
}

/// The most items; none for no bound.
fn most(limit: &Template, reach: &Reach<'_>) -> Result<Option<usize>, TemplateError> {
    match limit.evaluate(reach)? {
        Value::Null => Ok(None),
        Value::Number(number) if number.as_u64().is_some_and(|number| number > 0) => {
            Ok(number.as_u64().and_then(|number| usize::try_from(number).ok()))
        }
        _ => Err(TemplateError::new("limit must be a whole number from 1 upwards")),
    }
}
