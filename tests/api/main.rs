//! The product through its public doors: real processes, real sockets, both databases.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

/// Makes two tests of each case, which is an `async fn(&World)` of the module that lists it.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                let world = crate::world::World::sqlite().await;
                let _log = world.show_log();
                super::$case(&world).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                if let Some(world) = crate::world::World::postgres(stringify!($case)).await {
                    let _log = world.show_log();
                    super::$case(&world).await;
                }
            })+
        }
    };
}

mod activity;
mod admin;
mod billing;
mod canary;
mod catalog;
mod conformance;
mod credential;
mod database;
mod deletion;
mod differential;
mod folder;
mod function;
mod grpc;
mod invitation;
mod listener;
mod member;
mod native;
mod oauth;
mod operations;
mod overload;
mod poll;
mod rate;
mod registration;
mod run;
mod schedule;
mod structure;
mod tag;
mod team;
mod unimplemented;
mod variable;
mod webhook;
mod workflow;
mod world;
mod writes;
