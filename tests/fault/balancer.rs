//! A TCP load balancer: each connection goes to the next server that takes it, and ends when that ends it.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) struct Balancer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Balancer {
    /// Starts a balancer before these servers.
    pub(crate) async fn start(servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut turn = 0;
            while let Ok((client, _)) = listener.accept().await {
                let mut order = servers.clone();
                order.rotate_left(turn % servers.len());
                turn += 1;
                tokio::spawn(pass(client, order));
            }
        });
        Self { address, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Joins a client with the first server that takes the connection.
async fn pass(mut client: TcpStream, servers: Vec<SocketAddr>) {
    for address in servers {
        if let Ok(mut server) = TcpStream::connect(address).await {
            // That an end closes a connection is no news.
            let _closed = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}
