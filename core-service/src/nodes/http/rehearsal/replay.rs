//! The tests of the built-in manifests once more, through the caller that nodes use and over real sockets: what arrives is
//! compared, not what was meant to be sent.
//!
//! The one thing that differs from a service is the way there: every name leads to the stand-in, without encryption.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tempfile::TempDir;
use test_support::{Asked, Target};
use url::Url;

use super::request::{self, Proof, Sent};
use super::*;
use crate::catalog::Catalog;
use crate::connectors::Apps;
use crate::credentials::{Credentials, OpenCredential};
use crate::nodes::http::{Caller, HTTP_ERROR, HttpCaller};
use crate::outbound::Outbound;
use crate::secret::Hide;
use crate::secret::{MasterKeySource, Vault};
use crate::store::{DatabaseUrl, Store};

/// What the stand-in answers next.
type Answers = Arc<Mutex<VecDeque<http::Response<Bytes>>>>;

struct Theatre {
    _folder: TempDir,
    service: Target,
    answers: Answers,
    http: HttpCaller,
    /// How many requests were looked at.
    heard: usize,
}

impl Theatre {
    async fn open() -> Self {
        let answers = Answers::default();
        let queue = Arc::clone(&answers);
        let service = Target::start(move |_: &Asked| {
            let next = queue.lock().unwrap().pop_front();
            next.unwrap_or_else(|| http::Response::builder().status(500).body(Bytes::new()).unwrap())
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let http = caller(folder.path(), Outbound::standing_in(service.address())).await;
        Self {
            _folder: folder,
            service,
            answers,
            http,
            heard: 0,
        }
    }

    /// Plays one test. Says what is not as expected.
    async fn play(&mut self, app: &Arc<App>, trial: &Trial) -> Result<(), String> {
        let answers = trial.exchanges.iter().map(|exchange| answer(&exchange.response));
        *self.answers.lock().unwrap() = answers.collect::<Result<_, _>>()?;
        let connected = connected(app, trial)?;
        let credential = connected
            .as_ref()
            .map(|(connection, data)| OpenCredential::made_up(app, &connection.id, data.clone()));
        let outcome = self.perform(app, trial, credential.as_ref()).await?;
        let asked = self.service.asked().split_off(self.heard);
        self.heard += asked.len();
        if asked.len() != trial.exchanges.len() {
            return Err(format!(
                "{} requests came; it ended with {outcome:?}",
                asked.len()
            ));
        }
        let grant = credential.as_ref().map(OpenCredential::grant).transpose();
        let grant = grant.map_err(|error| error.to_string())?;
        let proof = Proof::of(trial, grant.as_ref());
        for (asked, exchange) in asked.iter().zip(&trial.exchanges) {
            let url = format!("https://{}{}", asked.header("host"), asked.uri);
            let sent = Sent {
                method: &asked.method,
                url: &Url::parse(&url).map_err(|error| format!("{url}: {error}"))?,
                headers: &asked.headers,
                body: &asked.body,
            };
            request::check(&sent, &exchange.request, &proof)?;
        }
        let expected = trial.error.as_ref().map(|error| error.code.clone());
        let found = outcome.err().map(|error| error.code.into_owned());
        match found == expected {
            true => Ok(()),
            false => Err(format!("fails with {found:?} and not with {expected:?}")),
        }
    }

    async fn perform(
        &self,
        app: &App,
        trial: &Trial,
        credential: Option<&OpenCredential>,
    ) -> Result<Result<Value, NodeError>, String> {
        let caller = Caller {
            app: Some(app),
            credential,
            hide: Hide::default(),
            idempotency_key: Some("key-1".to_owned()),
            // Nobody waits for the rate of another test.
            account: trial.name.clone(),
            timeout: Duration::from_secs(10),
        };
        let connected = credential.map(OpenCredential::connected);
        if trial.verify.is_some() {
            let (connection, data) = connected.ok_or("verify needs a connection")?;
            let walk = app.verify(connection, data).map_err(|error| error.to_string())?;
            let walk = walk.ok_or("the connection has nothing to verify")?;
            let tested = self.http.test(&walk, caller).await;
            return Ok(tested.and_then(|(status, told)| match told {
                None if status.is_success() => Ok(Value::Null),
                told => {
                    let code = told.and_then(|told| told.code);
                    Err(NodeError::new(code.unwrap_or_else(|| HTTP_ERROR.to_owned()), ""))
                }
            }));
        }
        let walk = match (&trial.module, &trial.rpc) {
            (Some(id), _) => {
                let module = app.module(id).ok_or("the module is not there")?;
                match &trial.webhook {
                    None => app.begin(module, &trial.parameters, connected).map(Some),
                    Some(webhook) => {
                        let webhook = Value::Object(webhook.clone());
                        app.attach(module, &trial.parameters, connected, &webhook, trial.detach)
                    }
                }
            }
            (None, Some(id)) => {
                let rpc = app.rpc(id).ok_or("the rpc is not there")?;
                app.ask(rpc, trial.parameters.clone(), connected).map(Some)
            }
            (None, None) => return Err("the test is of nothing".to_owned()),
        };
        let walk = walk
            .map_err(|error| error.to_string())?
            .ok_or("nobody is asked")?;
        Ok(self.http.walk(walk, caller).await)
    }
}

/// The caller that nodes use, over a database of its own.
async fn caller(folder: &Path, outbound: Outbound) -> HttpCaller {
    let store = Store::open(&DatabaseUrl::in_directory(folder)).await.unwrap();
    let key = MasterKeySource::File(folder.join("master.key"));
    let vault = Vault::open(store.clone(), key).await.unwrap();
    let catalog = Catalog::new(store.clone(), Apps::default());
    HttpCaller::new(outbound, Credentials::new(store.clone(), vault, catalog), store)
}

fn answer(given: &TrialResponse) -> Result<http::Response<Bytes>, String> {
    let response = response(given)?;
    let mut answer = http::Response::new(response.body);
    *answer.status_mut() = response.status;
    *answer.headers_mut() = response.headers;
    Ok(answer)
}

#[tokio::test]
async fn what_arrives_is_what_the_tests_of_every_built_in_app_say() {
    let apps = Apps::built_in().unwrap();
    let mut theatre = Theatre::open().await;
    let mut failed = Vec::new();
    for app in apps.iter() {
        for trial in app.tests.iter().filter(|trial| !trial.exchanges.is_empty()) {
            if let Err(message) = theatre.play(app, trial).await {
                failed.push(format!("{}: tests[{}]: {message}", app.id, trial.name));
            }
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    assert!(theatre.heard > 300, "only {} requests were made", theatre.heard);
}
