//! The interpreter: which request a module makes, what the answer means, which request comes next.
//!
//! Pure: it is told what the service answered, and whoever sends (nodes, services, rehearsals) asks it what to do.

use serde_json::{Map, Value};

use super::connection::{Connection, ConnectionData};
use super::failure::{FailureRule, ToldFailure};
use super::guard::Guard;
use super::manifest::App;
use super::module::{Module, ModuleType};
use super::options::{Listed, OptionsTemplate, Rpc};
use super::pagination::{After, Pagination, Progress};
use super::request::RequestTemplate;
use super::template::{Reach, Template, TemplateError};
use super::until::Until;

/// A module, rpc or test of a credential at work.
pub struct Walk<'a> {
    app: &'a App,
    purpose: Purpose<'a>,
    parameters: Value,
    /// The connection's values without the secret ones, which get into requests by the connection's own rules alone.
    connection: Option<Value>,
    /// What a trigger's webhook is known by.
    webhook: Option<Value>,
    call: Value,
    most: Option<usize>,
    until: Option<Until<'a>>,
    items: Vec<Value>,
    pages: u32,
}

/// What a walk is for: what its answers are read by.
struct Purpose<'a> {
    request: &'a RequestTemplate,
    rules: &'a [FailureRule],
    pagination: Option<&'a Pagination>,
    /// The most pages.
    most_pages: u32,
    reading: Reading<'a>,
}

#[derive(Clone, Copy)]
enum Reading<'a> {
    /// One value; the body by default.
    Output(Option<&'a Template>),
    /// A list; the body by default.
    Items(Option<&'a Template>),
    /// The list of an rpc, with whether it goes on: a [`Listed`].
    Options(&'a OptionsTemplate),
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
            most_pages: module.most_pages(),
            reading: match gives_one {
                true => Reading::Output(module.output.as_ref()),
                false => Reading::Items(module.items.as_ref()),
            },
        };
        let parameters = module.with_defaults(parameters);
        let values = connected.map(|(connection, data)| connection.public(data));
        let mut reach = Reach::new();
        reach.parameters = Some(&parameters);
        reach.connection = values.as_ref();
        Guard::check(&module.refuse, &reach)?;
        let walk = self.walk(purpose, parameters, module.limit.as_ref(), connected, None)?;
        walk.ok_or_else(|| TemplateError::new("the request has no URL"))
    }

    /// A question of the app's at work; it gives a [`Listed`].
    ///
    /// # Errors
    /// When the templates make no request of the parameters.
    pub fn ask<'a>(
        &'a self,
        rpc: &'a Rpc,
        parameters: Map<String, Value>,
        connected: Connected<'_>,
    ) -> Result<Walk<'a>, TemplateError> {
        let Some(request) = &rpc.request else {
            return Err(TemplateError::new("the rpc makes no request"));
        };
        let purpose = Purpose {
            request,
            rules: &[],
            pagination: rpc.pagination.as_ref(),
            most_pages: rpc.pagination.as_ref().map_or(1, |pages| pages.most(false)),
            reading: Reading::Options(&rpc.options),
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
            most_pages: 1,
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
            most_pages: 1,
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
            webhook: webhook.cloned(),
            call,
            most,
            until: None,
            items: Vec::new(),
            pages: 0,
        }))
    }
}

impl<'a> Walk<'a> {
    /// Reads a list no further than somebody wants it. It gives a [`Listed`] then.
    #[must_use]
    pub fn until(self, until: Until<'a>) -> Self {
        Self {
            until: Some(until),
            ..self
        }
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

    /// Takes in an answer that is no failure, in which secrets are masked. How the list goes on is read from the `whole`
    /// answer: the next page's URL may hold the key that the service was asked with.
    ///
    /// # Errors
    /// When it is not what the manifest expects.
    pub fn take(&mut self, response: &Value, whole: &Value) -> Result<Step, TemplateError> {
        let reach = self.reach(response);
        let found = match self.purpose.reading {
            Reading::Output(None) => return Ok(Step::Done(body(response))),
            Reading::Output(Some(output)) => return output.evaluate_given(&reach).map(Step::Done),
            Reading::Items(items) => list(items, response, &reach)?,
            Reading::Options(options) => list(options.items.as_ref(), response, &reach)?,
        };
        let on_page = found.len();
        let until = self.until.as_ref();
        let is_last = until.is_some_and(|until| until.ends_with(&found, self.items.len()));
        self.items.extend(found);
        self.pages += 1;
        let is_enough = self.most.is_some_and(|most| self.items.len() >= most);
        let after = match is_enough {
            true => After::Unasked,
            false => self.advance(on_page, whole)?,
        };
        match after {
            After::Another if !is_last => Ok(Step::Again),
            After::Another | After::Unasked => self.whole(After::Unasked, response).map(Step::Done),
            After::Nothing => self.whole(after, response).map(Step::Done),
        }
    }

    /// What was found so far, when a part of the list is of use.
    pub fn cut_short(&mut self) -> Option<Value> {
        let is_part = self.until.is_some() && self.pages > 0;
        let items = is_part.then(|| std::mem::take(&mut self.items))?;
        Some(Listed { items, goes_on: true }.into_value())
    }

    /// All that was found.
    fn whole(&mut self, after: After, response: &Value) -> Result<Value, TemplateError> {
        let mut items = std::mem::take(&mut self.items);
        items.truncate(self.most.unwrap_or(usize::MAX));
        match self.purpose.reading {
            Reading::Options(options) => {
                let more = options.more.as_ref();
                let more = more.map(|more| more.holds(&self.reach(response))).transpose()?;
                let goes_on = after == After::Unasked || more.unwrap_or_default();
                Ok(Listed { items, goes_on }.into_value())
            }
            Reading::Items(_) if self.until.is_some() => {
                let goes_on = after == After::Unasked;
                Ok(Listed { items, goes_on }.into_value())
            }
            Reading::Items(_) | Reading::Output(_) => Ok(Value::Array(items)),
        }
    }

    fn advance(&mut self, on_page: usize, response: &Value) -> Result<After, TemplateError> {
        let Some(pagination) = self.purpose.pagination else {
            return Ok(After::Nothing);
        };
        let progress = Progress {
            pages: self.pages,
            items: self.items.len(),
            on_page,
            most: self.purpose.most_pages,
        };
        let mut call = self.call.clone();
        let after = pagination.advance(&mut call, progress, &self.reach(response))?;
        self.call = call;
        Ok(after)
    }

    fn reach<'r>(&'r self, response: &'r Value) -> Reach<'r> {
        let mut reach = Reach::new();
        reach.parameters = Some(&self.parameters);
        reach.connection = self.connection.as_ref();
        reach.webhook = self.webhook.as_ref();
        reach.response = Some(response);
        reach
    }
}

fn body(response: &Value) -> Value {
    response.get("body").cloned().unwrap_or_default()
}

/// The list in an answer; the body by default.
fn list(items: Option<&Template>, response: &Value, reach: &Reach<'_>) -> Result<Vec<Value>, TemplateError> {
    let found = match items {
        Some(items) => items.evaluate(reach)?,
        None => body(response),
    };
    match found {
        Value::Array(found) => Ok(found),
        _ => Err(TemplateError::new(
            "the answer has no list where the app expects one",
        )),
    }
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
