//! Requests and answers of one call: with the credential's secrets at home and nowhere else, with a token that is renewed when
//! it was refused, and with nothing secret in what comes of it.

use std::borrow::Cow;
use std::time::Instant;

use engine::failure::NodeError;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use super::call::{self, Call, is_repeatable};
use super::output::{self, unreadable};
use super::pagination::{Pages, Pagination};
use super::{CREDENTIAL_INVALID, Caller, HTTP_BLOCKED, HTTP_ERROR, HttpCaller, refused_credential};
use crate::connectors::{Step, ToldFailure, Walk};
use crate::credentials::OpenCredential;
use crate::outbound::{MAX_BODY_BYTES, OutboundError, Response, Secrets};
use crate::secret::{Mask, Secret};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Calls under way.
pub(super) struct Exchange<'a> {
    http: &'a HttpCaller,
    caller: Caller<'a>,
    /// Where it began; secrets go nowhere else.
    home: Url,
    secrets: Secrets,
    /// What is secret, that of a token that was refused included.
    hidden: Vec<Secret>,
    mask: Mask,
    /// The credential with another token, after the first was refused.
    renewed: Option<OpenCredential>,
    /// Whether the token may still be renewed: a service that refuses every token is not asked for ever.
    may_renew: bool,
}

impl<'a> Exchange<'a> {
    /// Begins at `home` with what the caller's credential adds.
    ///
    /// # Errors
    /// When the credential cannot be used.
    pub(super) fn new(http: &'a HttpCaller, home: Url, caller: Caller<'a>) -> Result<Self, NodeError> {
        let mut exchange = Self {
            http,
            home,
            mask: Mask::default(),
            hidden: Vec::new(),
            secrets: Secrets::default(),
            caller,
            renewed: None,
            may_renew: true,
        };
        exchange.take_up()?;
        Ok(exchange)
    }
}

impl Exchange<'_> {
    fn credential(&self) -> Option<&OpenCredential> {
        self.renewed.as_ref().or(self.caller.credential)
    }

    /// Takes up what the credential adds to requests.
    fn take_up(&mut self) -> Result<(), NodeError> {
        let grant = self.credential().map(OpenCredential::grant).transpose();
        if let Some(grant) = grant.map_err(|error| refused_credential(&error.into()))? {
            self.secrets = grant.secrets;
            self.hidden.extend(grant.hidden);
            self.mask = Mask::of(self.hidden.iter().map(Secret::expose));
        }
        Ok(())
    }

    /// Renews the token that the service has refused, once. Gives whether there is another.
    async fn renew(&mut self) -> Result<bool, NodeError> {
        let refused = self.credential().filter(|_| self.may_renew);
        let Some(refused) = refused else { return Ok(false) };
        let renewed = self.http.renewed(refused).await;
        self.may_renew = false;
        self.renewed = renewed.map_err(|error| refused_credential(&error))?;
        match self.renewed {
            Some(_) => self.take_up().map(|()| true),
            None => Ok(false),
        }
    }

    /// The output of a call that is made once.
    pub(super) async fn whole(&mut self, call: &Call) -> Result<Value, NodeError> {
        let started = Instant::now();
        let response = self.send(call, self.home.clone(), 1).await?;
        self.check_status(call, &response)?;
        let body = output::body(&response, call.response_type)?;
        Ok(output::of(&response, body, started.elapsed()))
    }

    /// What a manifest's module makes of the answers.
    pub(super) async fn walk(&mut self, mut walk: Walk<'_>, mut call: Call) -> Result<Value, NodeError> {
        let mut size = 0;
        loop {
            let (response, answer) = self.answer(&call, walk.page()).await?;
            size += response.body.len();
            if size > MAX_BODY_BYTES {
                let too_large = || NodeError::new(HTTP_ERROR, OutboundError::TooLarge.to_string());
                return walk.cut_short().ok_or_else(too_large);
            }
            let shown = self.shown(&answer);
            let told = walk.failure(&shown);
            if let Some(told) = told.map_err(|error| self.masked(unreadable(&error)))? {
                if refuses_credential(&told) && self.renew().await? {
                    continue;
                }
                return Err(self.told(&call, &response, told));
            }
            self.check_status(&call, &response)?;
            let step = walk.take(&shown, &answer);
            match step.map_err(|error| self.masked(unreadable(&error)))? {
                Step::Done(output) => return Ok(output),
                Step::Again => {
                    let next = Call::read(walk.call().clone());
                    call = next.map_err(|error| self.masked(error))?;
                }
            }
        }
    }

    /// The status of the one answer that tests a credential, and the failure that it is by the manifest.
    pub(super) async fn test(
        &mut self,
        walk: &Walk<'_>,
        call: &Call,
    ) -> Result<(StatusCode, Option<ToldFailure>), NodeError> {
        loop {
            let (response, answer) = self.answer(call, 1).await?;
            let told = walk.failure(&self.shown(&answer));
            let told = told.map_err(|error| self.masked(unreadable(&error)))?;
            if !told.as_ref().is_some_and(refuses_credential) || !self.renew().await? {
                return Ok((response.status, told));
            }
        }
    }

    /// The answer to a call, whatever its status, with what it may repeat of secrets.
    async fn answer(&mut self, call: &Call, page: u32) -> Result<(Response, Value), NodeError> {
        let started = Instant::now();
        let response = self.send(call, call.url()?, page).await?;
        let body = output::body(&response, call.response_type)?;
        let answer = output::of(&response, body, started.elapsed());
        Ok((response, answer))
    }

    /// An answer as templates see it.
    fn shown<'v>(&self, answer: &'v Value) -> Cow<'v, Value> {
        let mut shown = Cow::Borrowed(answer);
        if !self.mask.is_empty() {
            self.mask(shown.to_mut());
        }
        shown
    }

    /// The output of a call that is made page by page.
    pub(super) async fn paged(&mut self, call: &Call, pagination: &Pagination) -> Result<Value, NodeError> {
        let started = Instant::now();
        let mut pages = Pages::new(pagination, self.home.clone());
        let mut size = 0;
        loop {
            let response = self.send(call, pages.url().clone(), pages.number()).await?;
            self.check_status(call, &response)?;
            size += response.body.len();
            if size > MAX_BODY_BYTES {
                return Err(NodeError::new(HTTP_ERROR, OutboundError::TooLarge.to_string()));
            }
            let body = output::body(&response, call.response_type)?;
            if !pages.take(&response.headers, &body)? {
                let (items, summary) = pages.finish();
                let mut whole = output::of(&response, items, started.elapsed());
                if let Value::Object(fields) = &mut whole {
                    fields.extend(summary);
                }
                return Ok(whole);
            }
        }
    }

    /// The request for one page, counted from 1, and its response, whatever its status.
    async fn send(&mut self, call: &Call, url: Url, page: u32) -> Result<Response, NodeError> {
        let sent = self.send_renewing(call, url, page).await;
        // The first URL is the caller's own, and no service has copied anything into it.
        sent.map_err(|error| if page == 1 { error } else { self.masked(error) })
    }

    /// As [`Self::send`]. A token that is refused is renewed first.
    async fn send_renewing(&mut self, call: &Call, url: Url, page: u32) -> Result<Response, NodeError> {
        let response = self.send_once(call, url.clone(), page).await?;
        let is_refused = response.status == StatusCode::UNAUTHORIZED && url.origin() == self.home.origin();
        match is_refused && self.renew().await? {
            true => self.send_once(call, url, page).await,
            false => Ok(response),
        }
    }

    async fn send_once(&self, call: &Call, url: Url, page: u32) -> Result<Response, NodeError> {
        let is_at_home = url.origin() == self.home.origin();
        self.check_host(&url, is_at_home)?;
        let secrets = match is_at_home {
            true => self.secrets_of(&url),
            false => Secrets::default(),
        };
        let url = match is_at_home {
            true => url,
            false => self.without_secrets(url)?,
        };
        let mut request = call.request(url, self.caller.timeout)?;
        self.add_idempotency_key(&mut request.headers, page);
        request.secrets = secrets;
        if !is_at_home {
            call::without_private_headers(&mut request.headers);
        }
        if let Some(app) = self.caller.app {
            self.http.pace.wait(app, &self.caller.account).await;
        }
        let may_repeat = is_repeatable(&request.method);
        let response = self.http.outbound.send(request).await;
        response.map_err(|error| NodeError {
            temporary: may_repeat && error.is_temporary(),
            ..NodeError::new(error.code(), error.to_string())
        })
    }

    /// What is added to a URL at home. A link that the service made has the path whole.
    fn secrets_of(&self, url: &Url) -> Secrets {
        let mut secrets = self.secrets.clone();
        if url.path() != self.home.path() && secrets.has_path_of(url) {
            secrets.path = None;
        }
        secrets
    }

    /// A URL that leads away, without what the service copied into it.
    fn without_secrets(&self, url: Url) -> Result<Url, NodeError> {
        let mut text = String::from(url);
        self.mask.text(&mut text);
        let parsed = Url::parse(&text);
        parsed.map_err(|_| NodeError::new(HTTP_ERROR, "the next page's URL is not one"))
    }

    /// Fails by the status, when the call lets it.
    fn check_status(&self, call: &Call, response: &Response) -> Result<(), NodeError> {
        match call.fails_on_status() && response.status.as_u16() >= 400 {
            true => Err(self.failure(call, response)),
            false => Ok(()),
        }
    }

    /// The failure that the manifest's rules have told.
    fn told(&self, call: &Call, response: &Response, told: ToldFailure) -> NodeError {
        let mut error = output::named(self.failure(call, response), told);
        // What the credential knows was masked before the rule saw the answer.
        self.caller.hide.text(&mut error.message);
        error
    }

    fn failure(&self, call: &Call, response: &Response) -> NodeError {
        output::failure(call, response, |text| self.hide(text))
    }

    /// A failure whose words may be the service's, as it may be told.
    fn masked(&self, mut error: NodeError) -> NodeError {
        self.hide(&mut error.message);
        error
    }

    fn hide(&self, text: &mut String) {
        self.mask.text(text);
        self.caller.hide.text(text);
    }

    /// Masks what came from outside; the names of the output's own fields stay.
    pub(super) fn mask(&self, output: &mut Value) {
        for part in ["headers", "body"] {
            output
                .get_mut(part)
                .into_iter()
                .for_each(|part| self.mask.value(part));
        }
    }

    /// A key that is the same whenever this page is asked for again, unless the call brings its own.
    fn add_idempotency_key(&self, headers: &mut HeaderMap, page: u32) {
        let Some(key) = &self.caller.idempotency_key else {
            return;
        };
        let key = match page {
            1 => HeaderValue::try_from(key),
            page => HeaderValue::try_from(format!("{key}-p{page}")),
        };
        if let Ok(key) = key {
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
    }

    /// Keeps requests, and credentials with them, at the hosts of their apps.
    fn check_host(&self, url: &Url, with_credential: bool) -> Result<(), NodeError> {
        let opened = self.credential();
        let of_credential = opened.filter(|_| with_credential).map(|opened| &*opened.app);
        for app in self.caller.app.into_iter().chain(of_credential) {
            let own = opened.filter(|opened| opened.app.id == app.id);
            let permitted = app.permits(url, own.map(OpenCredential::connected));
            permitted.map_err(|refused| NodeError::new(HTTP_BLOCKED, refused.to_string()))?;
        }
        Ok(())
    }
}

/// Whether a failure says that the credential is at fault.
fn refuses_credential(told: &ToldFailure) -> bool {
    told.code.as_deref() == Some(CREDENTIAL_INVALID)
}
