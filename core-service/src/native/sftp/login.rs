//! A session with a server of SSH that has proved itself, and to which somebody has proved who is asking.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key};
use russh::{ChannelMsg, MethodKind, MethodSet};
use russh_sftp::client::{Config, SftpSession};

use super::host_key::{HostKeys, fingerprint_of};
use crate::native::bounded::Budget;
use crate::native::server::{Server, bounded};
use crate::native::{Failure, Limits, Session, Values};

const PORT: u16 = 22;
/// Rounds of questions that a server may ask for one password.
const MOST_QUESTIONS: usize = 5;
/// What SSH and SFTP add to the content of files, besides an eighth of it.
const OVERHEAD: u64 = 256 * 1024;

/// A session of files.
pub(super) struct Login {
    pub(super) files: SftpSession,
    /// How much may still come.
    pub(super) budget: Budget,
    /// Ends the connection when it is dropped.
    _session: Handle<Check>,
}

/// How somebody proves who is asking.
enum Proof<'a> {
    Password(&'a str),
    Key(Box<PrivateKey>),
}

/// Checks the key that the server shows, and keeps what was wrong with it.
struct Check {
    known: HostKeys,
    refused: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Check {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let key = shown.public_key();
        let is_known = self.known.hold(&key);
        if !is_known {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            *refused = Some(fingerprint_of(&key));
        }
        Ok(is_known)
    }
}

impl Login {
    /// Opens a session with the server that a connection's fields name.
    pub(super) async fn of(session: Session<'_>) -> Result<Self, Failure> {
        let fields = session.connection;
        let user = fields.required_text("username")?;
        let known = HostKeys::read(fields.required_text("hostKey")?)?;
        let proof = Proof::of(fields)?;
        let server = Server {
            host: fields.required_text("host")?,
            port: fields.port(PORT)?,
            is_encrypted: false,
            ca_certificate: None,
        };
        let stream = server.dial(session).await?;
        let bytes = session.limits.bytes + session.limits.bytes / 8 + OVERHEAD;
        let roomy = Session {
            limits: Limits {
                bytes,
                ..session.limits
            },
            ..session
        };
        let (stream, budget) = bounded(Box::new(stream), roomy);
        let refused = Arc::default();
        let check = Check {
            known,
            refused: Arc::clone(&refused),
        };
        let config = client::Config {
            inactivity_timeout: Some(session.limits.timeout),
            ..client::Config::default()
        };
        let connected = client::connect_stream(Arc::new(config), stream, check).await;
        let mut connected = connected.map_err(|error| {
            let shown = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            not_connected(server.host, shown, &error)
        })?;
        proof.show(&mut connected, user).await?;
        let files = open_files(&connected, session.limits.timeout).await?;
        Ok(Self {
            files,
            budget,
            _session: connected,
        })
    }
}

impl<'a> Proof<'a> {
    /// A private key if there is one, else the password.
    fn of(fields: Values<'a>) -> Result<Self, Failure> {
        let Some(key) = fields.text("privateKey")? else {
            let password = fields.text("password")?;
            let message = "the connection needs a password or a private key";
            return password
                .map(Proof::Password)
                .ok_or_else(|| Failure::Credential(message.to_owned()));
        };
        let read = decode_secret_key(key, fields.text("passphrase")?);
        let read =
            read.map_err(|error| Failure::Credential(format!("the private key cannot be read: {error}")))?;
        Ok(Proof::Key(Box::new(read)))
    }

    async fn show(self, session: &mut Handle<Check>, user: &str) -> Result<(), Failure> {
        let answered = match self {
            Proof::Key(key) => {
                let hash = session
                    .best_supported_rsa_hash()
                    .await
                    .map_err(|error| broken(&error))?;
                let key = PrivateKeyWithHashAlg::new(Arc::from(key), hash.flatten());
                session.authenticate_publickey(user, key).await
            }
            Proof::Password(password) => {
                let answered = session.authenticate_password(user, password).await;
                match answered.map_err(|error| broken(&error))? {
                    AuthResult::Failure {
                        remaining_methods, ..
                    } if asks(&remaining_methods) => {
                        return answer(session, user, password).await;
                    }
                    answered => Ok(answered),
                }
            }
        };
        match answered.map_err(|error| broken(&error))? {
            AuthResult::Success => Ok(()),
            AuthResult::Failure {
                remaining_methods,
                partial_success,
            } => Err(refused(user, &remaining_methods, partial_success)),
        }
    }
}

fn asks(methods: &MethodSet) -> bool {
    methods.contains(&MethodKind::KeyboardInteractive)
}

/// Answers the questions of a server that asks for the password in its own words.
async fn answer(session: &mut Handle<Check>, user: &str, password: &str) -> Result<(), Failure> {
    let begun = session.authenticate_keyboard_interactive_start(user, None).await;
    let mut asked = begun.map_err(|error| broken(&error))?;
    for _ in 0..MOST_QUESTIONS {
        let prompts = match asked {
            KeyboardInteractiveAuthResponse::Success => return Ok(()),
            KeyboardInteractiveAuthResponse::Failure {
                remaining_methods,
                partial_success,
            } => {
                return Err(refused(user, &remaining_methods, partial_success));
            }
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
        };
        // What may be seen while it is typed is no password.
        let answers = prompts
            .iter()
            .map(|prompt| if prompt.echo { "" } else { password });
        let answers = answers.map(str::to_owned).collect();
        let next = session.authenticate_keyboard_interactive_respond(answers).await;
        asked = next.map_err(|error| broken(&error))?;
    }
    Err(Failure::Credential(
        "the server asks more than a password".to_owned(),
    ))
}

async fn open_files(session: &Handle<Check>, timeout: Duration) -> Result<SftpSession, Failure> {
    let unable = || Failure::Refused("the server does not offer SFTP to this user".to_owned());
    let mut channel = session.channel_open_session().await.map_err(|_| unable())?;
    channel
        .request_subsystem(true, "sftp")
        .await
        .map_err(|error| broken(&error))?;
    loop {
        match channel.wait().await {
            Some(ChannelMsg::Success) => break,
            Some(ChannelMsg::WindowAdjusted { .. }) => {}
            _ => return Err(unable()),
        }
    }
    let config = Config {
        request_timeout_secs: timeout.as_secs().max(1),
        ..Config::default()
    };
    let opened = SftpSession::new_with_config(channel.into_stream(), config).await;
    opened.map_err(|error| Failure::Unreachable(format!("the server does not speak SFTP: {error}")))
}

fn not_connected(host: &str, shown: Option<String>, error: &russh::Error) -> Failure {
    match shown {
        Some(fingerprint) => Failure::Credential(format!(
            "{host} shows another key than hostKey names: {fingerprint}. Either it is not the server that is meant, or its key \
             has changed; ask who runs it before you put that into hostKey"
        )),
        None => Failure::Unreachable(format!("{host} cannot be spoken to by SSH: {error}")),
    }
}

fn broken(error: &russh::Error) -> Failure {
    Failure::Unreachable(format!("the connection broke before anything was done: {error}"))
}

fn refused(user: &str, remaining: &MethodSet, partial_success: bool) -> Failure {
    let methods: Vec<&str> = remaining.iter().map(Into::into).collect();
    let methods = methods.join(", ");
    Failure::Credential(match partial_success {
        true => format!("the server wants more of {user} than one proof: {methods}"),
        false => format!("the server does not let {user} in by this; it accepts: {methods}"),
    })
}
