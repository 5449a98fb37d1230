//! Calls of apps, whatever they are spoken to by: requests that a manifest makes, or a driver.
//!
//! The one way for nodes, triggers that poll, choices and verifications. Absent on purpose: which node or trigger it is
//! for, and what becomes of the answer.

use engine::failure::NodeError;
use serde_json::{Map, Value};

use super::http::{Caller, HttpCaller};
use super::lengthening::Lengthening;
use super::native::NativeCaller;
use crate::connectors::{App, Apps, ConnectionNeed, Listed, Module, Rpc, Until};
use crate::credentials::OpenCredential;

/// Calls apps. Cheap to clone.
#[derive(Clone)]
pub struct AppCaller {
    http: HttpCaller,
    native: NativeCaller,
}

impl AppCaller {
    /// A caller over both.
    pub fn new(http: HttpCaller, native: NativeCaller) -> Self {
        Self { http, native }
    }

    /// The caller of services over HTTP.
    pub fn http(&self) -> &HttpCaller {
        &self.http
    }

    /// The credential with which a module is called, for the app as it was pinned.
    ///
    /// # Errors
    /// When it cannot be used, or the module needs another one: `CREDENTIAL_INVALID`.
    pub async fn credential(
        &self,
        (app, module): (&App, &Module),
        organization_id: &str,
        credential_id: Option<&str>,
        pinned: &Apps,
    ) -> Result<Option<OpenCredential>, NodeError> {
        let credential = self
            .http
            .credential(organization_id, credential_id, pinned)
            .await?;
        check_credential(app, module, credential.as_ref())?;
        Ok(credential)
    }

    /// Calls a module: an action's output, or the list of a search.
    ///
    /// # Errors
    /// With the codes of the way it is called by, and of the manifest.
    pub async fn call(
        &self,
        (app, module): (&App, &Module),
        parameters: &Map<String, Value>,
        caller: Caller<'_>,
    ) -> Result<Value, NodeError> {
        if app.driver.is_some() {
            let parameters = module.with_defaults(parameters);
            let parameters = parameters.as_object().unwrap_or(&EMPTY);
            let operation = module.operation.as_deref();
            return self.native.call(app, operation, parameters, &caller).await;
        }
        let connected = caller.credential.map(OpenCredential::connected);
        let walk = app.begin(module, parameters, connected);
        let walk = walk.map_err(|error| NodeError::expression(error.to_string()))?;
        self.http.walk(walk, caller).await
    }

    /// Asks for the list of a trigger that polls, no further than it is wanted.
    ///
    /// # Errors
    /// As [`AppCaller::call`].
    pub async fn list(
        &self,
        (app, module): (&App, &Module),
        parameters: &Map<String, Value>,
        until: Until<'_>,
        caller: Caller<'_>,
    ) -> Result<Listed, NodeError> {
        if app.driver.is_some() {
            let lengthening = Lengthening::new(&self.native, (app, module), until);
            return lengthening.list(parameters, &caller).await;
        }
        let connected = caller.credential.map(OpenCredential::connected);
        let walk = app.begin(module, parameters, connected);
        let walk = walk.map_err(|error| NodeError::expression(error.to_string()))?;
        let walked = self.http.walk(walk.until(until), caller).await;
        walked.map(Listed::of_walk)
    }

    /// Asks for the list of which choices are made.
    ///
    /// # Errors
    /// As [`AppCaller::call`].
    pub async fn ask(
        &self,
        app: &App,
        rpc: &Rpc,
        parameters: Map<String, Value>,
        caller: Caller<'_>,
    ) -> Result<Listed, NodeError> {
        if app.driver.is_some() {
            let operation = rpc.operation.as_deref();
            let called = self.native.call(app, operation, &parameters, &caller).await;
            return called.map(Listed::whole);
        }
        let connected = caller.credential.map(OpenCredential::connected);
        let walk = app.ask(rpc, parameters, connected);
        let walk = walk.map_err(|error| NodeError::expression(error.to_string()))?;
        self.http.walk(walk, caller).await.map(Listed::of_walk)
    }

    /// Asks the server of an app with a driver whether it accepts the caller's credential.
    ///
    /// # Errors
    /// `CREDENTIAL_INVALID` when it does not, and others when it cannot be asked.
    pub(super) async fn ask_driver(&self, app: &App, caller: &Caller<'_>) -> Result<(), NodeError> {
        self.native.verify(app, caller).await
    }
}

static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

/// Whether a module can be used with a credential, or without.
fn check_credential(
    app: &App,
    module: &Module,
    credential: Option<&OpenCredential>,
) -> Result<(), NodeError> {
    let problem = match credential {
        Some(opened) if opened.app.id != app.id => {
            format!("the credential is for {}, not for {}", opened.app.id, app.id)
        }
        None if module.connection == ConnectionNeed::Required => {
            "the module works only with a credential".to_owned()
        }
        _ => return Ok(()),
    };
    Err(NodeError::new("CREDENTIAL_INVALID", problem))
}
