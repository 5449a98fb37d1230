//! Waking other parts of the service: LISTEN/NOTIFY between PostgreSQL's nodes, a channel within the one process that a
//! SQLite database serves. A wake-up may be lost; whoever waits for one also looks for work now and then.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::sync::broadcast;

use super::database::Database;
use super::value::{values, words};
use super::{Store, StoreError};

words! {
    /// What a notification is about; one channel each.
    Topic {
        /// Runs are ready to be claimed.
        Ready = "switchyard_ready",
        /// A signal for the run that the payload names.
        Signal = "switchyard_signal",
        /// Something that nodes cache has changed; the payload names it.
        Changed = "switchyard_changed",
        /// Schedules have changed.
        Schedules = "switchyard_schedules",
        /// Triggers that poll have changed.
        Polls = "switchyard_polls",
        /// Triggers that services call have changed.
        Registrations = "switchyard_registrations",
        /// Runs have ended that somebody has to be told of.
        Endings = "switchyard_endings",
        /// The token of the credential that the payload names has been fetched, or could not be.
        Tokens = "switchyard_tokens",
    }
}

const TOPICS: [Topic; 8] = [
    Topic::Ready,
    Topic::Signal,
    Topic::Changed,
    Topic::Schedules,
    Topic::Polls,
    Topic::Registrations,
    Topic::Endings,
    Topic::Tokens,
];

/// A wake-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What it is about.
    pub topic: Topic,
    /// Which one; at most a few hundred bytes.
    pub payload: String,
}

/// Notifications from now on.
pub struct Subscription {
    receiver: broadcast::Receiver<Notification>,
}

impl Subscription {
    /// The next notification; `None` means that some may have been missed, so look everywhere.
    /// Pends for ever once the store is gone. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<Notification> {
        match self.receiver.recv().await {
            Ok(notification) => Some(notification),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Hands notifications out within this process.
#[derive(Clone)]
pub(super) struct Notifier {
    sender: broadcast::Sender<Notification>,
}

/// Notifications that a slow subscriber may be behind.
const BACKLOG: usize = 1_024;
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// How long nothing may be heard before the database is asked whether it is there, and how long it may take to say so.
const ASK_AFTER: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Notifier {
    /// Starts to listen, when there are other nodes to hear from. Ends with the pool.
    pub(super) fn start(database: &Database) -> Self {
        let (sender, _) = broadcast::channel(BACKLOG);
        if let Database::Postgres { pool, .. } = database {
            tokio::spawn(listen(pool.clone(), sender.clone()));
        }
        Self { sender }
    }

    /// Wakes subscribers of this process.
    pub(super) fn wake_own(&self, topic: Topic) {
        let payload = String::new();
        // Nobody listening is fine.
        let _listeners = self.sender.send(Notification { topic, payload });
    }
}

impl Store {
    /// Subscribes to all topics.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription {
            receiver: self.notifier.sender.subscribe(),
        }
    }

    /// Wakes every subscriber on every node.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notify(&self, topic: Topic, payload: &str) -> Result<(), StoreError> {
        match &self.database {
            Database::Sqlite { .. } => {
                // Nobody listening is fine.
                let _listeners = self.notifier.sender.send(Notification {
                    topic,
                    payload: payload.to_owned(),
                });
            }
            Database::Postgres { .. } => {
                let mut session = self.database.read().await?;
                session
                    .execute("SELECT pg_notify($1, $2)", &values![topic.as_word(), payload])
                    .await?;
            }
        }
        Ok(())
    }
}

/// Passes on what PostgreSQL says, until the pool is closed.
async fn listen(pool: PgPool, sender: broadcast::Sender<Notification>) {
    while !pool.is_closed() {
        if let Err(error) = listen_once(&pool, &sender).await
            && !pool.is_closed()
        {
            tracing::warn!(%error, "the listener lost the database; it will try again");
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_AFTER) => {}
                () = pool.close_event() => {}
            }
        }
    }
}

async fn listen_once(pool: &PgPool, sender: &broadcast::Sender<Notification>) -> Result<(), sqlx::Error> {
    // A connection of its own: one that was cut off takes no place from others.
    let options = pool.connect_options().as_ref().clone();
    let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen_all(TOPICS.map(Topic::as_word)).await?;
    loop {
        let heard = tokio::select! {
            heard = listener.recv() => heard?,
            () = tokio::time::sleep(ASK_AFTER) => {
                ask(&mut listener).await?;
                continue;
            }
            () = pool.close_event() => return Ok(()),
        };
        if let Some(topic) = Topic::from_word(heard.channel()) {
            let _listeners = sender.send(Notification {
                topic,
                payload: heard.payload().to_owned(),
            });
        }
    }
}

/// Whether the database still answers: nothing else tells a connection that was cut off from one with nothing to say.
async fn ask(listener: &mut PgListener) -> Result<(), sqlx::Error> {
    let asked = tokio::time::timeout(ANSWER_WITHIN, sqlx::query("SELECT 1").execute(listener));
    let silent = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    asked.await.map_err(|_elapsed| silent())?.map(drop)
}
