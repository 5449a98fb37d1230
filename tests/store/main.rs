//! The store's suite: each case is written once and runs on both databases.
#![allow(clippy::unwrap_used, reason = "tests")]

/// Makes two tests of each case, which is an `async fn(&Fixture)` of the module that lists it.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case(&crate::fixture::Fixture::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(fixture) = crate::fixture::Fixture::postgres(stringify!($case)).await {
                    super::$case(&fixture).await;
                    fixture.end().await;
                }
            })+
        }
    };
}

mod activity;
mod backup;
mod consents;
mod credentials;
mod durability;
mod effects;
mod endings;
mod fixture;
mod folders;
mod functions;
mod human_requests;
mod idempotency;
mod invitations;
mod manifests;
mod metering;
mod polls;
mod processes;
mod registrations;
mod retention;
mod run_lists;
mod runs;
mod schedules;
mod signals;
mod space;
mod structures;
mod table_pages;
mod tables;
mod tenants;
mod throughput;
mod tokens;
mod variables;
mod webhooks;
mod workflow_lists;
mod workflows;
