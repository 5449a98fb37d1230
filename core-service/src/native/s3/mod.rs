//! Objects in S3, and in what speaks its protocol (MinIO, Ceph, R2, Spaces and others).
//!
//! Requests are signed here and sent by the one HTTP client. Each can be repeated without harm.

mod account;
mod answer;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, Method};
use rusty_s3::S3Action as _;
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::actions::list_objects_v2::ListObjectsContent;
use serde_json::{Value, json};
use url::Url;

use self::account::{Account, key, now, signed};
use super::content;
use super::values::misfit;
use super::{Call, Driver, Failure, Operation, Pending, Session, Values};
use crate::outbound::{Request, Response};

/// Objects that are listed when nothing else is said.
const USUAL_LIST: usize = 1_000;
/// Objects that one request lists at most.
const A_PAGE: usize = 1_000;
/// How long a URL works when nothing else is said, and at most (seven days).
const USUAL_LIFE: i64 = 3_600;
const LONGEST_LIFE: i64 = 604_800;

/// The driver `s3`.
pub struct S3;

const OPERATIONS: &[Operation] = &[
    Operation::one(
        "put_object",
        &["key"],
        &["bucket", "text", "base64", "contentType"],
    ),
    Operation::one("get_object", &["key"], &["bucket", "as"]),
    Operation::one("delete_object", &["key"], &["bucket"]),
    Operation::one("presign_url", &["key"], &["bucket", "method", "expiresInSeconds"]),
    Operation::list("list_objects", &[], &["bucket", "prefix", "limit"]),
];

impl Driver for S3 {
    fn name(&self) -> &'static str {
        "s3"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        &[
            "endpoint",
            "region",
            "bucket",
            "pathStyle",
            "accessKeyId",
            "secretAccessKey",
            "sessionToken",
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let account = Account::of(call.session.connection)?;
            let wanted = Wanted {
                account,
                parameters: call.parameters,
                session: call.session,
            };
            match call.operation {
                "put_object" => wanted.put().await,
                "get_object" => wanted.get().await,
                "delete_object" => wanted.delete().await,
                "presign_url" => wanted.presign(),
                _ => wanted.list().await,
            }
        })
    }

    /// By the list of the usual bucket, or without one by that of all buckets.
    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            let account = Account::of(session.connection)?;
            let url = match account.has_bucket() {
                false => account.buckets_url(),
                true => {
                    let bucket = account.bucket(None)?;
                    let mut list = bucket.list_objects_v2(Some(&account.credentials));
                    list.with_max_keys(1);
                    signed(&list)
                }
            };
            send(session, Request::new(Method::GET, url, session.limits.timeout))
                .await
                .map(drop)
        })
    }
}

/// What is asked of an account.
struct Wanted<'a> {
    account: Account,
    parameters: Values<'a>,
    session: Session<'a>,
}

impl Wanted<'_> {
    fn bucket(&self) -> Result<rusty_s3::Bucket, Failure> {
        self.account.bucket(self.parameters.text("bucket")?)
    }

    fn request(&self, method: Method, url: Url) -> Request {
        Request::new(method, url, self.session.limits.timeout)
    }

    async fn put(&self) -> Result<Value, Failure> {
        let (bucket, key) = (self.bucket()?, key(self.parameters)?);
        let given = content::given(self.parameters)?;
        let content_type = self.parameters.text("contentType")?.unwrap_or(given.content_type);
        let header = HeaderValue::try_from(content_type)
            .map_err(|_| misfit("contentType", "a type such as text/csv, without line breaks"))?;
        let mut action = bucket.put_object(Some(&self.account.credentials), key);
        action.headers_mut().insert("content-type", content_type);
        let mut request = self.request(Method::PUT, signed(&action));
        request.headers.insert(CONTENT_TYPE, header);
        let size = given.bytes.len();
        request.body = Bytes::from(given.bytes);
        let response = send(self.session, request).await?;
        Ok(json!({
            "bucket": bucket.name(),
            "key": key,
            "size": size,
            "etag": etag(&response.headers),
            "versionId": text_of(&response.headers, HeaderName::from_static("x-amz-version-id")),
        }))
    }

    async fn get(&self) -> Result<Value, Failure> {
        let (bucket, key) = (self.bucket()?, key(self.parameters)?);
        let form = content::Form::of(self.parameters)?;
        let url = signed(&bucket.get_object(Some(&self.account.credentials), key));
        let response = send(self.session, self.request(Method::GET, url)).await?;
        let mut object = json!({
            "bucket": bucket.name(),
            "key": key,
            "size": response.body.len(),
            "contentType": text_of(&response.headers, CONTENT_TYPE),
            "etag": etag(&response.headers),
            "lastModified": text_of(&response.headers, LAST_MODIFIED),
        });
        form.put(&mut object, &response.body)?;
        Ok(object)
    }

    async fn delete(&self) -> Result<Value, Failure> {
        let (bucket, key) = (self.bucket()?, key(self.parameters)?);
        let url = signed(&bucket.delete_object(Some(&self.account.credentials), key));
        send(self.session, self.request(Method::DELETE, url)).await?;
        Ok(json!({ "bucket": bucket.name(), "key": key }))
    }

    fn presign(&self) -> Result<Value, Failure> {
        let (bucket, key) = (self.bucket()?, key(self.parameters)?);
        if self.account.credentials.token().is_some() {
            let message = "a URL by a session token would show the token to whoever has the URL; it needs a key without one";
            return Err(Failure::Refused(message.to_owned()));
        }
        let seconds = self.parameters.integer("expiresInSeconds")?.unwrap_or(USUAL_LIFE);
        let lasts = u64::try_from(seconds)
            .ok()
            .filter(|_| (1..=LONGEST_LIFE).contains(&seconds));
        let lasts =
            lasts.ok_or_else(|| misfit("expiresInSeconds", "from 1 to 604800, which is seven days"))?;
        let (now, lasts) = (now(), Duration::from_secs(lasts));
        let credentials = Some(&self.account.credentials);
        let method = self.parameters.text("method")?.unwrap_or("get");
        let url = match method {
            "get" => bucket.get_object(credentials, key).sign_with_time(lasts, &now),
            "put" => bucket.put_object(credentials, key).sign_with_time(lasts, &now),
            _ => return Err(misfit("method", "get or put")),
        };
        let expires_at = now.as_millisecond() + seconds * 1_000;
        Ok(json!({ "url": url.as_str(), "method": method.to_ascii_uppercase(), "expiresAt": expires_at }))
    }

    /// Page after page, up to the limit.
    async fn list(&self) -> Result<Value, Failure> {
        let bucket = self.bucket()?;
        let most = self.parameters.count("limit")?.unwrap_or(USUAL_LIST);
        let most = most.min(self.session.limits.items);
        let prefix = self.parameters.text("prefix")?;
        let (mut objects, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut list = bucket.list_objects_v2(Some(&self.account.credentials));
            list.with_max_keys(A_PAGE.min(most - objects.len()));
            prefix.into_iter().for_each(|prefix| list.with_prefix(prefix));
            next.into_iter()
                .for_each(|token| list.with_continuation_token(token));
            let response = send(self.session, self.request(Method::GET, signed(&list))).await?;
            let page = ListObjectsV2::parse_response(&String::from_utf8_lossy(&response.body));
            let page = page
                .map_err(|error| Failure::Refused(format!("the service's list cannot be read: {error}")))?;
            objects.extend(page.contents.iter().map(|object| listed(bucket.name(), object)));
            next = page.next_continuation_token;
            if next.is_none() || objects.len() >= most {
                objects.truncate(most);
                return Ok(Value::Array(objects));
            }
        }
    }
}

async fn send(session: Session<'_>, mut request: Request) -> Result<Response, Failure> {
    // A redirect leads to another region, whose signature would be another.
    request.follow_redirects = false;
    let response = session.http.send(request).await.map_err(answer::unsent)?;
    answer::accepted(response)
}

fn listed(bucket: &str, object: &ListObjectsContent) -> Value {
    json!({
        "bucket": bucket,
        "key": object.key,
        "size": object.size,
        "etag": object.etag.as_deref().map(unquoted),
        "lastModified": object.last_modified,
        "storageClass": object.storage_class,
    })
}

fn etag(headers: &HeaderMap) -> Option<String> {
    text_of(headers, ETAG).map(|etag| unquoted(&etag).to_owned())
}

fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
