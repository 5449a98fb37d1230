//! What was looked up a moment ago, and what is being looked up: of all who ask for the same thing at the same time,
//! one asks the database and the others wait for its answer.
//!
//! "There is none" is an answer like any other. An error reaches all who wait for it and is not kept.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::OnceCell;

/// Answers by what was asked for. Cheap to clone; all clones are the same answers.
#[derive(Clone)]
pub struct Lookups<K, V, E> {
    /// A cell is put here before it is filled, so that forgetting reaches look-ups under way: they answer those who
    /// wait for them, and nobody else. So an answer is also believed from before it was looked up.
    known: Cache<K, Arc<OnceCell<Result<V, E>>>>,
}

impl<K, V, E> Lookups<K, V, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    /// Keeps so many answers at most, each for as long as there is room.
    pub fn lasting(most: u64) -> Self {
        Self {
            known: Cache::new(most),
        }
    }

    /// Keeps so many answers at most, each for so long.
    pub fn for_a_while(most: u64, believed: Duration) -> Self {
        let known = Cache::builder().max_capacity(most).time_to_live(believed);
        Self { known: known.build() }
    }

    /// The answer that is known, or that comes of a look-up: this one, or that of another caller who was first. When
    /// that caller goes away meanwhile, one of those who wait looks it up instead. Until then a look-up takes no memory in
    /// the caller's future: there are many callers, and what asks a database is large.
    ///
    /// # Errors
    /// Those of the look-up.
    pub async fn find<Q, F>(&self, key: &Q, look_up: impl FnOnce() -> F) -> Result<V, E>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        F: Future<Output = Result<V, E>>,
    {
        let cell = self.known.get_with_by_ref(key, Arc::default);
        let found = cell.get_or_init(async || {
            let found = Box::pin(look_up()).await;
            if found.is_err() {
                self.known.invalidate(key);
            }
            found
        });
        found.await.clone()
    }

    /// Forgets all answers, so that a change made here holds at once.
    pub fn forget(&self) {
        self.known.invalidate_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;

    type Numbers = Lookups<String, usize, &'static str>;

    fn numbers() -> Numbers {
        Lookups::lasting(10)
    }

    /// A database whose answers are held back, and which counts how often it was asked.
    #[derive(Default)]
    struct Asked {
        times: AtomicUsize,
        answers: Option<Semaphore>,
    }

    impl Asked {
        fn held_back() -> Arc<Self> {
            Arc::new(Self {
                answers: Some(Semaphore::new(0)),
                ..Self::default()
            })
        }

        fn answer(&self) {
            self.answers.iter().for_each(|answers| answers.add_permits(1));
        }

        /// The number of this question.
        async fn ask(&self) -> usize {
            let number = self.times.fetch_add(1, Relaxed) + 1;
            if let Some(answers) = &self.answers
                && let Ok(answer) = answers.acquire().await
            {
                answer.forget();
            }
            number
        }
    }

    fn asking(
        numbers: &Numbers,
        asked: &Arc<Asked>,
    ) -> impl Future<Output = Result<usize, &'static str>> + use<> {
        let (numbers, asked) = (numbers.clone(), Arc::clone(asked));
        async move { numbers.find("a", async || Ok(asked.ask().await)).await }
    }

    #[tokio::test]
    async fn all_who_ask_at_once_share_one_look_up() {
        let (numbers, asked) = (numbers(), Asked::held_back());
        let mut callers: JoinSet<_> = (0..100).map(|_| asking(&numbers, &asked)).collect();
        tokio::task::yield_now().await;
        asked.answer();
        while let Some(answer) = callers.join_next().await {
            assert!(matches!(answer, Ok(Ok(1))), "{answer:?}");
        }
        assert_eq!(asking(&numbers, &asked).await, Ok(1), "it is known");
        assert_eq!(asked.times.load(Relaxed), 1);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_look_up_to_the_next() {
        let (numbers, asked) = (numbers(), Asked::held_back());
        let first = tokio::spawn(asking(&numbers, &asked));
        tokio::task::yield_now().await;
        let second = tokio::spawn(asking(&numbers, &asked));
        tokio::task::yield_now().await;
        first.abort();
        assert!(first.await.is_err());
        asked.answer();
        assert!(matches!(second.await, Ok(Ok(2))));
    }

    #[tokio::test]
    async fn an_error_is_shared_and_not_kept() {
        let numbers = numbers();
        let (fails, asked) = (Asked::held_back(), Arc::<Asked>::default());
        let failing = || {
            let (numbers, fails) = (numbers.clone(), Arc::clone(&fails));
            async move {
                let look_up = async || {
                    fails.ask().await;
                    Err("broken")
                };
                numbers.find("a", look_up).await
            }
        };
        let mut callers: JoinSet<_> = (0..10).map(|_| failing()).collect();
        tokio::task::yield_now().await;
        fails.answer();
        while let Some(answer) = callers.join_next().await {
            assert!(matches!(answer, Ok(Err("broken"))), "{answer:?}");
        }
        assert_eq!(fails.times.load(Relaxed), 1);
        assert_eq!(asking(&numbers, &asked).await, Ok(1));
    }

    #[tokio::test]
    async fn what_was_asked_before_a_change_is_no_answer_after_it() {
        let (numbers, asked) = (numbers(), Asked::held_back());
        let before = tokio::spawn(asking(&numbers, &asked));
        tokio::task::yield_now().await;
        numbers.forget();
        let after = tokio::spawn(asking(&numbers, &asked));
        tokio::task::yield_now().await;
        asked.answer();
        asked.answer();
        assert!(matches!(before.await, Ok(Ok(1))));
        assert!(matches!(after.await, Ok(Ok(2))));
        assert_eq!(asking(&numbers, &asked).await, Ok(2));
    }
}
