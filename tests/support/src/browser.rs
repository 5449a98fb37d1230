//! A real browser: Debian's Chromium, driven through its WebDriver.
//!
//! Where there is none, tests say loudly that they are skipped; `SWITCHYARD_TEST_REQUIRE_BROWSER=1` makes that a failure.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::api::until;
use crate::http::HttpClient;
use crate::process::Process;
use crate::server::free_address;
use crate::{TemporaryDirectory, say_loudly, wire};

/// The key of an element's id in WebDriver's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window and no past. It is closed when dropped.
pub struct Browser {
    client: HttpClient,
    address: SocketAddr,
    session: String,
    _driver: Process,
    _directory: TemporaryDirectory,
}

/// A browser, or nothing after saying so, loudly.
///
/// # Panics
/// When `SWITCHYARD_TEST_REQUIRE_BROWSER=1` and there is none, and when there is one that does not work.
pub async fn browser_or_skip(test: &str) -> Option<Browser> {
    let found = ["chromedriver", "chromium"].map(on_path);
    if let [Some(driver), Some(chromium)] = &found {
        return Some(Browser::start(driver, chromium).await);
    }
    let missing = "no browser; install one (Debian: apt-get install chromium chromium-driver)";
    let required = std::env::var("SWITCHYARD_TEST_REQUIRE_BROWSER").is_ok_and(|value| value == "1");
    assert!(!required, "{test} needs a browser: {missing}");
    say_loudly(&format!("SKIPPED: {test}: {missing}"));
    None
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates.find(|candidate| candidate.is_file())
}

impl Browser {
    async fn start(driver: &Path, chromium: &Path) -> Self {
        let directory = TemporaryDirectory::new("browser").expect("a temporary directory");
        let address = free_address();
        let log = directory.path().join("log");
        let arguments = [format!("--port={}", address.port())];
        let process = Process::start(driver, &arguments, &[], directory.path(), &log);
        let client = HttpClient::new(address, None);
        let ready = until(async || {
            let answer = exchange(&client, Method::GET, "/status", None).await.ok()?;
            (answer["value"]["ready"] == true).then_some(())
        });
        assert!(ready.await.is_some(), "the browser's driver does not get ready");
        let profile = directory.path().join("profile");
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": chromium, "args": arguments_of_chromium(&profile) },
        } } });
        let made = exchange(&client, Method::POST, "/session", Some(capabilities)).await;
        let made = made.expect("a browser session");
        let session = made["value"]["sessionId"].as_str();
        let session = session
            .unwrap_or_else(|| panic!("no browser session: {made}"))
            .to_owned();
        Self {
            client,
            address,
            session,
            _driver: process,
            _directory: directory,
        }
    }

    /// Opens a page and waits until it is loaded.
    pub async fn open(&self, url: &str) {
        let _null = self
            .command(Method::POST, "/url", Some(json!({ "url": url })))
            .await;
    }

    /// The page's title.
    pub async fn title(&self) -> String {
        text(&self.command(Method::GET, "/title", None).await)
    }

    /// The text that a person reads in the element that a CSS selector finds.
    pub async fn text(&self, selector: &str) -> String {
        let path = format!("{}/text", self.element(selector).await);
        text(&self.command(Method::GET, &path, None).await)
    }

    /// Waits until the element shows this text, perhaps among more: a click may be loading another page.
    pub async fn shows(&self, selector: &str, wanted: &str) {
        let mut last = None;
        let shown = until(async || {
            last = self.try_text(selector).await;
            last.as_ref()
                .is_some_and(|text| text.contains(wanted))
                .then_some(())
        });
        let shown = shown.await;
        assert!(shown.is_some(), "{selector} shows {last:?}, not {wanted:?}");
    }

    /// The text of an element, unless the page is being replaced.
    async fn try_text(&self, selector: &str) -> Option<String> {
        let session = format!("/session/{}/element", self.session);
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = exchange(&self.client, Method::POST, &session, Some(wanted))
            .await
            .ok()?;
        let element = found["value"][ELEMENT].as_str()?;
        let path = format!("{session}/{element}/text");
        let text = exchange(&self.client, Method::GET, &path, None).await.ok()?;
        text["value"].as_str().map(str::to_owned)
    }

    /// What a form's control holds.
    pub async fn value(&self, selector: &str) -> String {
        let path = format!("{}/property/value", self.element(selector).await);
        text(&self.command(Method::GET, &path, None).await)
    }

    /// Types into a control, in place of what it holds.
    pub async fn type_into(&self, selector: &str, typed: &str) {
        let element = self.element(selector).await;
        let _null = self
            .command(Method::POST, &format!("{element}/clear"), Some(json!({})))
            .await;
        let keys = json!({ "text": typed });
        let _null = self
            .command(Method::POST, &format!("{element}/value"), Some(keys))
            .await;
    }

    /// Clicks on an element; a page that this opens is loaded afterwards.
    pub async fn click(&self, selector: &str) {
        let path = format!("{}/click", self.element(selector).await);
        let _null = self.command(Method::POST, &path, Some(json!({}))).await;
    }

    async fn element(&self, selector: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.command(Method::POST, "/element", Some(wanted)).await;
        format!("/element/{}", text(&found[ELEMENT]))
    }

    async fn command(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let path = format!("/session/{}{path}", self.session);
        let answer = exchange(&self.client, method, &path, body).await;
        let answer = answer.unwrap_or_else(|error| panic!("the browser does not answer to {path}: {error}"));
        let error = &answer["value"]["error"];
        assert!(error.is_null(), "{path}: {}", answer["value"]);
        answer["value"].clone()
    }
}

/// Nobody is asked anything, and nobody but the tests' own servers is talked to.
fn arguments_of_chromium(profile: &Path) -> Vec<String> {
    let fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--lang=en-US",
    ];
    let profile = format!("--user-data-dir={}", profile.display());
    fixed.into_iter().map(str::to_owned).chain([profile]).collect()
}

async fn exchange(
    client: &HttpClient,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> std::io::Result<Value> {
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body)
        .expect("a request that can be sent");
    Ok(client.send(request).await?.json())
}

fn text(value: &Value) -> String {
    crate::api::text(value)
}

impl Drop for Browser {
    /// The driver's end alone would leave the browser running.
    fn drop(&mut self) {
        let request = format!(
            "DELETE /session/{} HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.session, self.address
        );
        let closed = wire::Connection::open(self.address)
            .and_then(|mut connection| connection.exchange(request.as_bytes()));
        if let Err(error) = closed {
            eprintln!("the browser is not closed: {error}");
        }
    }
}
