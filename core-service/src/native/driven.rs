//! A connection that a task of its own would drive in other programs: here it moves while somebody waits for it, so that
//! it ends with the call.

use std::pin::Pin;
use std::time::Duration;

/// How long a good-bye may take.
pub const GOOD_BYE: Duration = Duration::from_secs(1);

/// What moves bytes between a client and its stream.
pub struct Driven(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Driven {
    pub fn new(driving: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(driving)))
    }

    /// Does something with the client. When the connection ends meanwhile, the client says so.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        if let Some(driving) = &mut self.0 {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = driving => self.0 = None,
            }
        }
        work.await
    }

    /// Lets the connection say good-bye, once its client is gone.
    pub async fn end(self) {
        if let Some(driving) = self.0 {
            // Who does not listen is left without it.
            let _elapsed = tokio::time::timeout(GOOD_BYE, driving).await;
        }
    }
}
