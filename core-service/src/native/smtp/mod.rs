//! Sends e-mails over SMTP.

mod addresses;
mod attachment;
mod conversation;
mod failure;
mod message;

use serde_json::{Value, json};

use self::conversation::{Conversation, Delivery, ask_for_tls};
use self::message::{Email, Identity};
use super::server::{Server, bounded};
use super::values::misfit;
use super::{Call, Driver, Failure, Operation, Pending, Session};
use crate::clock;

/// The driver `smtp`.
pub struct Smtp;

const OPERATIONS: &[Operation] = &[Operation::one(
    "send_email",
    &[],
    &[
        "from",
        "to",
        "cc",
        "bcc",
        "replyTo",
        "subject",
        "text",
        "html",
        "inReplyTo",
        "attachments",
        "headers",
    ],
)];

impl Driver for Smtp {
    fn name(&self) -> &'static str {
        "smtp"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        &[
            "host",
            "port",
            "security",
            "username",
            "password",
            "sender",
            "caCertificate",
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(send_email(call))
    }

    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            connect(session).await?.end().await;
            Ok(())
        })
    }
}

async fn send_email(call: Call<'_>) -> Result<Value, Failure> {
    let session = call.session;
    let only_nodes = || Failure::Refused("only nodes send e-mails".to_owned());
    let key = call.idempotency_key.ok_or_else(only_nodes)?;
    let identity = Identity {
        key,
        at_ms: clock::now_ms(),
    };
    let email = Email::read(call.parameters.0).map_err(Failure::Parameters)?;
    let letter = email.write(&identity, session.connection.text("sender")?);
    let letter = letter.map_err(Failure::Parameters)?;
    let mut conversation = connect(session).await?;
    let delivery = conversation.send(&letter).await?;
    conversation.end().await;
    Ok(told(&letter.message_id, &delivery))
}

/// How a connection becomes safe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Security {
    /// It begins in the open, and goes on with TLS or not at all.
    StartTls,
    /// TLS from the beginning.
    Tls,
    /// Never.
    None,
}

impl Security {
    fn of(session: Session<'_>) -> Result<Self, Failure> {
        match session.connection.text("security")? {
            None | Some("starttls") => Ok(Self::StartTls),
            Some("tls") => Ok(Self::Tls),
            Some("none") => Ok(Self::None),
            Some(_) => Err(misfit("security", "starttls, tls or none")),
        }
    }

    /// The port that servers listen on for it.
    fn usual_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::None => 25,
        }
    }
}

/// A server that knows who is there, when the connection says it.
async fn connect(session: Session<'_>) -> Result<Conversation, Failure> {
    let security = Security::of(session)?;
    let fields = session.connection;
    let server = Server {
        host: fields.required_text("host")?,
        port: fields.port(security.usual_port())?,
        is_encrypted: security != Security::None,
        ca_certificate: fields.text("caCertificate")?,
    };
    let mut stream = server.dial(session).await?;
    let greeting = match security {
        Security::StartTls => ask_for_tls(&mut stream).await?,
        Security::Tls | Security::None => Vec::new(),
    };
    let (stream, _budget) = bounded(server.secured(session, stream).await?, session);
    let mut conversation = Conversation::begin(stream, greeting).await?;
    if let Some(user) = fields.text("username")? {
        let password = fields.text("password")?.unwrap_or_default();
        conversation.log_in(user, password).await?;
    }
    Ok(conversation)
}

fn told(message_id: &str, delivery: &Delivery) -> Value {
    let accepted: Vec<&str> = delivery.accepted.iter().map(AsRef::as_ref).collect();
    let refused = delivery.refused.iter().map(|one| {
        let address: &str = one.address.as_ref();
        json!({ "address": address, "code": one.code, "message": one.says, "temporary": one.code < 500 })
    });
    json!({
        "messageId": message_id,
        "accepted": accepted,
        "refused": refused.collect::<Vec<_>>(),
        "response": delivery.says,
    })
}
