//! The account that a connection's fields name: where its objects are, and how requests for them are signed.

use std::time::Duration;

use jiff::Timestamp;
use rusty_s3::signing::sign;
use rusty_s3::{Bucket, Credentials, Method, S3Action, UrlStyle};
use url::Url;

use crate::clock;
use crate::native::values::misfit;
use crate::native::{Failure, Values};

/// How long a signed request may be on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(300);
/// Where most people's account is.
const USUAL_REGION: &str = "us-east-1";

/// An account, and where it is.
pub(super) struct Account {
    endpoint: Url,
    style: UrlStyle,
    region: String,
    usual_bucket: Option<String>,
    pub(super) credentials: Credentials,
}

impl Account {
    /// What a connection's fields say.
    pub(super) fn of(fields: Values<'_>) -> Result<Self, Failure> {
        let region = fields.text("region")?.unwrap_or(USUAL_REGION).to_owned();
        let own = fields.text("endpoint")?;
        let endpoint = match own {
            Some(endpoint) => endpoint.to_owned(),
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let endpoint = Url::parse(&endpoint).ok();
        let endpoint = endpoint.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let endpoint =
            endpoint.ok_or_else(|| misfit("endpoint", "a URL such as https://objects.example.com"))?;
        // Hosts with the bucket's name need names and certificates that other servers seldom have.
        let has_paths = match fields.get("pathStyle") {
            None => own.is_some(),
            Some(given) => given
                .as_bool()
                .ok_or_else(|| misfit("pathStyle", "true or false"))?,
        };
        let (key, secret) = (
            fields.required_text("accessKeyId")?,
            fields.required_text("secretAccessKey")?,
        );
        let credentials = match fields.text("sessionToken")? {
            None => Credentials::new(key, secret),
            Some(token) => Credentials::new_with_token(key, secret, token),
        };
        Ok(Self {
            endpoint,
            style: if has_paths {
                UrlStyle::Path
            } else {
                UrlStyle::VirtualHost
            },
            region,
            usual_bucket: fields.text("bucket")?.map(str::to_owned),
            credentials,
        })
    }

    /// The bucket that a parameter names, or the connection's.
    pub(super) fn bucket(&self, named: Option<&str>) -> Result<Bucket, Failure> {
        let name = named
            .or(self.usual_bucket.as_deref())
            .filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| {
            let message = "bucket is required: neither the node nor the connection names one";
            Failure::Parameters(message.to_owned())
        })?;
        let made = Bucket::new(
            self.endpoint.clone(),
            self.style,
            name.to_owned(),
            self.region.clone(),
        );
        made.map_err(|error| Failure::Parameters(format!("bucket {name:?} makes no URL: {error}")))
    }

    /// Whether there is a bucket when none is named.
    pub(super) fn has_bucket(&self) -> bool {
        self.usual_bucket.is_some()
    }

    /// The URL that asks for all buckets.
    pub(super) fn buckets_url(&self) -> Url {
        sign(
            &now(),
            Method::Get,
            self.endpoint.clone(),
            self.credentials.key(),
            self.credentials.secret(),
            self.credentials.token(),
            &self.region,
            ON_ITS_WAY.as_secs(),
            std::iter::empty(),
            std::iter::empty(),
        )
    }
}

/// The URL of a request that is sent at once.
pub(super) fn signed<'a>(action: &impl S3Action<'a>) -> Url {
    action.sign_with_time(ON_ITS_WAY, &now())
}

/// The present time.
pub(super) fn now() -> Timestamp {
    Timestamp::from_millisecond(clock::now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// An object's name that a URL can hold: a part `.` or `..` would name another object.
pub(super) fn key(parameters: Values<'_>) -> Result<&str, Failure> {
    let key = parameters.required_text("key")?;
    match key.split('/').any(|part| part == "." || part == "..") {
        true => Err(misfit("key", "without the parts . and .., which no URL can hold")),
        false => Ok(key),
    }
}
