//! E-mails in mailboxes, over IMAP (RFC 3501).

mod criteria;
mod letter;
mod login;

use std::pin::pin;

use async_imap::types::{Fetch, Flag};
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;

use self::letter::Attachments;
use self::login::{Login, Opened, reading, writing};
use super::values::misfit;
use super::{Call, Driver, Failure, Operation, Pending, Session, Values};

/// E-mails that a search gives when nothing else is said.
const USUAL_LIST: usize = 20;
/// The most bytes of each e-mail that a search reads; longer ones are cut.
const BYTES_EACH: usize = 256 * 1024;
const INBOX: &str = "INBOX";

/// The driver `imap`.
pub struct Imap;

const OPERATIONS: &[Operation] = &[
    Operation::list(
        "search_messages",
        &[],
        &[
            "mailbox",
            "from",
            "to",
            "subject",
            "containing",
            "since",
            "before",
            "unread",
            "flagged",
            "limit",
        ],
    ),
    Operation::one("get_message", &["uid"], &["mailbox", "uidValidity"]),
    Operation::one("move_message", &["uid", "to"], &["mailbox", "uidValidity"]),
    Operation::one(
        "flag_message",
        &["uid", "flag"],
        &["mailbox", "uidValidity", "set"],
    ),
    Operation::one("delete_message", &["uid"], &["mailbox", "uidValidity"]),
];

impl Driver for Imap {
    fn name(&self) -> &'static str {
        "imap"
    }

    fn connection_fields(&self) -> &'static [&'static str] {
        &[
            "host",
            "port",
            "security",
            "username",
            "password",
            "caCertificate",
        ]
    }

    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let mut wanted = Wanted {
                login: Login::of(call.session).await?,
                parameters: call.parameters,
            };
            let done = match call.operation {
                "search_messages" => wanted.search(call.session.limits.items).await,
                "get_message" => wanted.get().await,
                "move_message" => wanted.relocate().await,
                "flag_message" => wanted.flag().await,
                _ => wanted.delete().await,
            };
            if wanted.login.budget.is_exceeded() {
                return Err(wanted.login.budget.failure());
            }
            let done = done?;
            wanted.login.end().await;
            Ok(done)
        })
    }

    fn verify<'a>(&'a self, session: Session<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            Login::of(session).await?.end().await;
            Ok(())
        })
    }
}

/// What is asked of a server.
struct Wanted<'a> {
    login: Login,
    parameters: Values<'a>,
}

/// What is read of an e-mail.
#[derive(Clone, Copy)]
enum Extent {
    /// Its beginning.
    Beginning,
    /// All of it.
    Whole,
}

impl Wanted<'_> {
    fn mailbox(&self) -> Result<&str, Failure> {
        let named = self.parameters.text("mailbox")?;
        Ok(named.filter(|name| !name.is_empty()).unwrap_or(INBOX))
    }

    /// The latest first.
    async fn search(&mut self, most: usize) -> Result<Value, Failure> {
        let asked = criteria::search(self.parameters)?;
        let wanted = self.parameters.count("limit")?.unwrap_or(USUAL_LIST);
        let mailbox = self.mailbox()?.to_owned();
        let opened = self.login.open(&mailbox, false).await?;
        let found = self.login.session.uid_search(asked).await;
        let mut found: Vec<u32> = found
            .map_err(|error| reading("the search", &error))?
            .into_iter()
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(wanted.min(most));
        let mut letters = Vec::new();
        for uid in found {
            // One that was deleted meanwhile is not there.
            if let Some(letter) = self.read(&mailbox, &opened, uid, Extent::Beginning).await? {
                letters.push(letter);
            }
        }
        Ok(Value::Array(letters))
    }

    async fn get(&mut self) -> Result<Value, Failure> {
        let mailbox = self.mailbox()?.to_owned();
        let uid = self.uid()?;
        let opened = self.open_same(&mailbox, false).await?;
        let letter = self.read(&mailbox, &opened, uid, Extent::Whole).await?;
        letter.ok_or_else(|| absent(&mailbox, uid))
    }

    async fn relocate(&mut self) -> Result<Value, Failure> {
        let to = self.parameters.required_text("to")?.to_owned();
        let target = criteria::mailbox_name(&to)?;
        let (mailbox, uid) = self.found().await?;
        let set = uid.to_string();
        let what = format!("to move the e-mail to {to}");
        let session = &mut self.login.session;
        let can = session
            .capabilities()
            .await
            .map_err(|error| reading("its abilities", &error))?;
        if can.has_str("MOVE") {
            session
                .uid_mv(&set, &target)
                .await
                .map_err(|error| writing(&what, &error))?;
        } else {
            session
                .uid_copy(&set, &target)
                .await
                .map_err(|error| writing(&what, &error))?;
            self.expunge(uid).await?;
        }
        Ok(json!({ "uid": uid, "mailbox": mailbox, "to": to }))
    }

    async fn flag(&mut self) -> Result<Value, Failure> {
        let word = self.parameters.required_text("flag")?.to_owned();
        let flag = criteria::flag(&word)?;
        let set = self.parameters.get("set").map_or(Some(true), Value::as_bool);
        let set = set.ok_or_else(|| misfit("set", "true or false"))?;
        let (mailbox, uid) = self.found().await?;
        let sign = if set { '+' } else { '-' };
        self.store(uid, &format!("{sign}FLAGS.SILENT ({flag})")).await?;
        Ok(json!({ "uid": uid, "mailbox": mailbox, "flag": word, "set": set }))
    }

    async fn delete(&mut self) -> Result<Value, Failure> {
        let (mailbox, uid) = self.found().await?;
        let expunged = self.expunge(uid).await?;
        Ok(json!({ "uid": uid, "mailbox": mailbox, "expunged": expunged }))
    }

    /// The e-mail that the parameters name, in its mailbox, which is open to be changed.
    async fn found(&mut self) -> Result<(String, u32), Failure> {
        let mailbox = self.mailbox()?.to_owned();
        let uid = self.uid()?;
        self.open_same(&mailbox, true).await?;
        let found = self.login.session.uid_search(format!("UID {uid}")).await;
        match found
            .map_err(|error| reading("the search", &error))?
            .contains(&uid)
        {
            true => Ok((mailbox, uid)),
            false => Err(absent(&mailbox, uid)),
        }
    }

    fn uid(&self) -> Result<u32, Failure> {
        let uid = self
            .parameters
            .count("uid")?
            .and_then(|uid| u32::try_from(uid).ok());
        uid.ok_or_else(|| misfit("uid", "the uid of an e-mail"))
    }

    /// Opens a mailbox in which uids still mean what they meant when they were given.
    async fn open_same(&mut self, mailbox: &str, to_change: bool) -> Result<Opened, Failure> {
        let opened = self.login.open(mailbox, to_change).await?;
        match self.parameters.integer("uidValidity")? {
            Some(given) if given != i64::from(opened.uid_validity) => {
                let message = format!("the e-mails of {mailbox} have got new uids since the search");
                Err(Failure::Refused(message))
            }
            _ => Ok(opened),
        }
    }

    async fn read(
        &mut self,
        mailbox: &str,
        opened: &Opened,
        uid: u32,
        extent: Extent,
    ) -> Result<Option<Value>, Failure> {
        let body = match extent {
            Extent::Beginning => format!("BODY.PEEK[]<0.{BYTES_EACH}>"),
            Extent::Whole => "BODY.PEEK[]".to_owned(),
        };
        let query = format!("(UID FLAGS INTERNALDATE RFC822.SIZE {body})");
        let fetched = self.login.session.uid_fetch(uid.to_string(), query).await;
        let mut fetched = pin!(fetched.map_err(|error| reading("an e-mail", &error))?);
        let mut found = None;
        while let Some(one) = fetched.next().await {
            let one = one.map_err(|error| reading("an e-mail", &error))?;
            if one.uid == Some(uid) && one.body().is_some() {
                found = Some(told(mailbox, opened, &one, extent));
            }
        }
        Ok(found)
    }

    async fn store(&mut self, uid: u32, query: &str) -> Result<(), Failure> {
        let stored = self.login.session.uid_store(uid.to_string(), query).await;
        let mut stored = pin!(stored.map_err(|error| writing("the flag", &error))?);
        while let Some(one) = stored.next().await {
            one.map_err(|error| writing("the flag", &error))?;
        }
        Ok(())
    }

    /// Marks an e-mail as deleted, and has it removed where the server can do that to one alone.
    async fn expunge(&mut self, uid: u32) -> Result<bool, Failure> {
        self.store(uid, "+FLAGS.SILENT (\\Deleted)").await?;
        let session = &mut self.login.session;
        let can = session
            .capabilities()
            .await
            .map_err(|error| reading("its abilities", &error))?;
        if !can.has_str("UIDPLUS") {
            return Ok(false);
        }
        let removed = session.uid_expunge(uid.to_string()).await;
        let mut removed = pin!(removed.map_err(|error| writing("to remove the e-mail", &error))?);
        while let Some(one) = removed.next().await {
            one.map_err(|error| writing("to remove the e-mail", &error))?;
        }
        Ok(true)
    }
}

fn absent(mailbox: &str, uid: u32) -> Failure {
    Failure::Refused(format!("there is no e-mail with the uid {uid} in {mailbox}"))
}

fn told(mailbox: &str, opened: &Opened, fetched: &Fetch, extent: Extent) -> Value {
    let flags: Vec<String> = fetched.flags().map(|flag| word(&flag)).collect();
    let body = fetched.body().unwrap_or_default();
    let size = fetched
        .size
        .map_or(body.len(), |size| usize::try_from(size).unwrap_or(usize::MAX));
    let mut shown = json!({
        "uid": fetched.uid,
        "uidValidity": opened.uid_validity,
        "mailbox": mailbox,
        "flags": flags,
        "size": size,
        "receivedAt": fetched.internal_date().map(|date| date.timestamp_millis()),
        "truncated": body.len() < size,
    });
    let attachments = match extent {
        Extent::Beginning => Attachments::Named,
        Extent::Whole => Attachments::Whole,
    };
    if let Some(shown) = shown.as_object_mut() {
        shown.extend(letter::told(body, attachments));
    }
    shown
}

/// A flag as the parameter `flag` takes it.
fn word(flag: &Flag<'_>) -> String {
    match flag {
        Flag::Seen => "seen".to_owned(),
        Flag::Answered => "answered".to_owned(),
        Flag::Flagged => "flagged".to_owned(),
        Flag::Deleted => "deleted".to_owned(),
        Flag::Draft => "draft".to_owned(),
        Flag::Recent => "recent".to_owned(),
        Flag::MayCreate => "*".to_owned(),
        Flag::Custom(keyword) => keyword.to_string(),
    }
}
