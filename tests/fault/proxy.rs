//! A TCP proxy before PostgreSQL that can stop passing anything on, without a word to either end: a cable that was cut.

use std::net::SocketAddr;
use std::str::FromStr as _;
use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) struct Proxy {
    address: SocketAddr,
    upstream: Arc<PgConnectOptions>,
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    is_cut: bool,
    /// Connections from before the last cut stay dead for ever, as those do that a router has forgotten.
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy before the server of a database URL.
    pub(crate) async fn start(database_url: &str) -> Self {
        let upstream = Arc::new(PgConnectOptions::from_str(database_url).unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = watch::Sender::new(State::default());
        let (server, states) = (Arc::clone(&upstream), state.subscribe());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, Arc::clone(&server), states.clone()));
            }
        });
        Self {
            address,
            upstream,
            state,
            task,
        }
    }

    /// The database's URL through the proxy.
    pub(crate) fn url(&self) -> String {
        let user = self.upstream.get_username();
        let database = self.upstream.get_database().unwrap_or_default();
        format!("postgres://{user}@{}/{database}?sslmode=disable", self.address)
    }

    /// Passes nothing on any more.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| {
            state.is_cut = true;
            state.cuts += 1;
        });
    }

    /// Passes on what comes over connections that are made from now on.
    pub(crate) fn mend(&self) {
        self.state.send_modify(|state| state.is_cut = false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(client: TcpStream, upstream: Arc<PgConnectOptions>, states: watch::Receiver<State>) {
    let began = *states.borrow();
    if began.is_cut {
        return hold(client).await;
    }
    // That an end closes a connection is no news.
    let _closed = match upstream.get_socket() {
        Some(directory) => {
            let path = directory.join(format!(".s.PGSQL.{}", upstream.get_port()));
            join(client, UnixStream::connect(path).await, states, began).await
        }
        None => {
            let address = (upstream.get_host(), upstream.get_port());
            join(client, TcpStream::connect(address).await, states, began).await
        }
    };
}

/// Joins both ends until one closes. When the connection is cut, both stay as they are.
async fn join(
    mut client: TcpStream,
    server: std::io::Result<impl AsyncRead + AsyncWrite + Unpin>,
    mut states: watch::Receiver<State>,
    began: State,
) -> std::io::Result<()> {
    let mut server = server?;
    let cut = async { states.wait_for(|state| state.cuts > began.cuts).await.is_ok() };
    tokio::select! {
        copied = copy_bidirectional(&mut client, &mut server) => return copied.map(drop),
        _proxy_lives = cut => {}
    }
    hold((client, server)).await;
    Ok(())
}

/// Keeps what it is given, and says nothing.
async fn hold<T>(ends: T) {
    std::future::pending::<()>().await;
    drop(ends);
}
