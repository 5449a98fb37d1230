//! The runtime's suite: what it promises, with the fault injected. Each case runs on both databases.
#![allow(clippy::unwrap_used, reason = "tests")]

/// Makes two tests of each case, which is an `async fn(&World)` of the module that lists it.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(&crate::world::World::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(world) = crate::world::World::postgres(stringify!($case)).await {
                    super::$case(&world).await;
                    world.end().await;
                }
            })+
        }
    };
}

mod children;
mod computing;
mod crashes;
mod credits;
mod failures;
mod fairness;
mod graphs;
mod probe;
mod races;
mod requests;
mod retention;
mod runs;
mod starts;
mod waits;
mod world;
