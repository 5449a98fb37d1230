//! Files on servers over SFTP.

mod host_key;
mod login;

use std::io;

use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::fs::{DirEntry, Metadata};
use russh_sftp::protocol::{FileType, OpenFlags, Status, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::login::Login;
use super::content;
use super::values::misfit;
use super::{Call, Driver, Failure, Operation, Pending, Session, Values};

/// Files that are listed when nothing else is said.
const USUAL_LIST: usize = 1_000;

/// The driver `sftp`.
pub struct Sftp;

const OPERATIONS: &[Operation] = &[
    Operation::one("upload", &["path"], &["text", "base64", "overwrite"]),
    Operation::one("download", &["path"], &["as"]),
    Operation::one("delete", &["path"], &[]),
    Operation::one("rename", &["from", "to"], &[]),
    Operation::one("make_directory", &["path"], &["parents"]),
    Operation::list("list", &["path"], &["limit"]),
];

impl Driver for Sftp {
    fn name(&self) -> &'static str {
        "sftp"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        &[
            "host",
            "port",
            "username",
            "password",
            "privateKey",
            "passphrase",
            "hostKey",
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let wanted = Wanted {
                login: Login::of(call.session).await?,
                parameters: call.parameters,
                session: call.session,
            };
            let done = match call.operation {
                "upload" => wanted.upload().await,
                "download" => wanted.download().await,
                "delete" => wanted.delete().await,
                "rename" => wanted.rename().await,
                "make_directory" => wanted.make_directory().await,
                _ => wanted.list().await,
            };
            match wanted.login.budget.is_exceeded() {
                true => Err(wanted.login.budget.failure()),
                false => done,
            }
        })
    }

    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            let login = Login::of(session).await?;
            login
                .files
                .canonicalize(".")
                .await
                .map(drop)
                .map_err(|error| reading(".", error))
        })
    }
}

/// What is asked of a server.
struct Wanted<'a> {
    login: Login,
    parameters: Values<'a>,
    session: Session<'a>,
}

impl Wanted<'_> {
    fn flag(&self, name: &str, usual: bool) -> Result<bool, Failure> {
        let given = self.parameters.get(name);
        given.map_or(Ok(usual), |given| {
            given.as_bool().ok_or_else(|| misfit(name, "true or false"))
        })
    }

    async fn upload(&self) -> Result<Value, Failure> {
        let path = path(self.parameters, "path")?;
        let bytes = content::given(self.parameters)?.bytes;
        let how = match self.flag("overwrite", true)? {
            true => OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::TRUNCATE,
            false => OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::EXCLUDE,
        };
        let opened = self.login.files.open_with_flags(path, how).await;
        let mut file = opened.map_err(|error| writing(path, error))?;
        file.write_all(&bytes)
            .await
            .map_err(|error| writing(path, cause(error)))?;
        // What is not closed may not have been written.
        file.shutdown()
            .await
            .map_err(|error| writing(path, cause(error)))?;
        Ok(json!({ "path": path, "size": bytes.len() }))
    }

    async fn download(&self) -> Result<Value, Failure> {
        let path = path(self.parameters, "path")?;
        let form = content::Form::of(self.parameters)?;
        let most = self.session.limits.bytes;
        let file = self
            .login
            .files
            .open(path)
            .await
            .map_err(|error| reading(path, error))?;
        let metadata = file.metadata().await.map_err(|error| reading(path, error))?;
        let mut bytes = Vec::new();
        let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes).await;
        read.map_err(|error| reading(path, cause(error)))?;
        if u64::try_from(bytes.len()).is_ok_and(|read| read > most) {
            return Err(Failure::TooLarge(format!(
                "{path} is larger than {} MiB",
                most / (1024 * 1024)
            )));
        }
        let mut told = json!({ "path": path, "size": bytes.len(), "modifiedAt": modified_at(&metadata) });
        form.put(&mut told, &bytes)?;
        Ok(told)
    }

    /// Of a link, the link.
    async fn delete(&self) -> Result<Value, Failure> {
        let path = path(self.parameters, "path")?;
        let files = &self.login.files;
        let metadata = files
            .symlink_metadata(path)
            .await
            .map_err(|error| reading(path, error))?;
        let deleted = match metadata.file_type() {
            FileType::Dir => files.remove_dir(path).await,
            FileType::File | FileType::Symlink | FileType::Other => files.remove_file(path).await,
        };
        deleted.map_err(|error| writing(path, error))?;
        Ok(json!({ "path": path }))
    }

    async fn rename(&self) -> Result<Value, Failure> {
        let (from, to) = (path(self.parameters, "from")?, path(self.parameters, "to")?);
        let renamed = self.login.files.rename(from, to).await;
        renamed.map_err(|error| writing(&format!("{from} to {to}"), error))?;
        Ok(json!({ "from": from, "to": to }))
    }

    async fn make_directory(&self) -> Result<Value, Failure> {
        let path = path(self.parameters, "path")?;
        let files = &self.login.files;
        if !self.flag("parents", false)? {
            files
                .create_dir(path)
                .await
                .map_err(|error| writing(path, error))?;
            return Ok(json!({ "path": path }));
        }
        let ends = path
            .match_indices('/')
            .map(|(place, _)| place)
            .filter(|place| *place > 0);
        for end in ends.chain([path.len()]) {
            let folder = &path[..end];
            let there = files.metadata(folder).await;
            if !there.is_ok_and(|metadata| metadata.file_type().is_dir()) {
                files
                    .create_dir(folder)
                    .await
                    .map_err(|error| writing(folder, error))?;
            }
        }
        Ok(json!({ "path": path }))
    }

    async fn list(&self) -> Result<Value, Failure> {
        let path = path(self.parameters, "path")?;
        let most = self.parameters.count("limit")?.unwrap_or(USUAL_LIST);
        let found = self
            .login
            .files
            .read_dir(path)
            .await
            .map_err(|error| reading(path, error))?;
        let mut found: Vec<DirEntry> = found.collect();
        found.sort_by_key(DirEntry::file_name);
        let shown = found.iter().take(most.min(self.session.limits.items)).map(listed);
        Ok(Value::Array(shown.collect()))
    }
}

/// A path that a server can be asked for. Which of them may be reached, the server decides.
fn path<'a>(parameters: Values<'a>, name: &str) -> Result<&'a str, Failure> {
    let path = parameters.required_text(name)?;
    match path.contains('\0') {
        true => Err(misfit(name, "a path, which holds no null character")),
        false => Ok(path),
    }
}

fn listed(entry: &DirEntry) -> Value {
    let metadata = entry.metadata();
    let word = match entry.file_type() {
        FileType::Dir => "directory",
        FileType::File => "file",
        FileType::Symlink => "link",
        FileType::Other => "other",
    };
    json!({
        "name": entry.file_name(),
        "path": entry.path(),
        "type": word,
        "size": metadata.size,
        "modifiedAt": modified_at(&metadata),
        "permissions": metadata.permissions.map(|mode| format!("{:04o}", mode & 0o7777)),
    })
}

/// Epoch milliseconds.
fn modified_at(metadata: &Metadata) -> Option<i64> {
    metadata.mtime.map(|seconds| i64::from(seconds) * 1_000)
}

/// What an open file's error is: one of the session, or the server's own sentence.
fn cause(error: io::Error) -> SftpError {
    error.downcast::<SftpError>().unwrap_or_else(|error| {
        SftpError::Status(Status {
            id: 0,
            status_code: StatusCode::Failure,
            error_message: error.to_string(),
            language_tag: String::new(),
        })
    })
}

/// A failure of what changes nothing.
fn reading(what: &str, error: SftpError) -> Failure {
    match refusal(what, &error) {
        Some(refused) => refused,
        None => Failure::Unreachable(format!("the connection broke at {what}: {error}")),
    }
}

/// A failure of what may have been done.
fn writing(what: &str, error: SftpError) -> Failure {
    refusal(what, &error).unwrap_or_else(|| Failure::Lost(error.to_string()))
}

/// What the server says.
fn refusal(what: &str, error: &SftpError) -> Option<Failure> {
    match error {
        SftpError::Status(Status {
            status_code: StatusCode::ConnectionLost | StatusCode::NoConnection,
            ..
        }) => None,
        SftpError::Status(status) => Some(Failure::Refused(format!(
            "the server refuses {what}: {}",
            status.error_message
        ))),
        SftpError::Limited(why) => Some(Failure::Refused(format!("{what}: {why}"))),
        SftpError::IO(_)
        | SftpError::Timeout
        | SftpError::UnexpectedPacket
        | SftpError::UnexpectedBehavior(_) => None,
    }
}
