//! What is kept: a file for each noun, over SQLite or PostgreSQL.
//!
//! The only module that speaks SQL. Each statement is written once for both databases; `dialect` holds what differs.
//! Every function of a tenant's noun takes the organization's id: another organization's row is simply not found.
//! Every write of a noun records its activity in the same transaction. Absent on purpose: validation, permissions and
//! what payloads mean; those belong to the services and the engine.

mod activity;
mod api_key;
mod backup;
mod batch;
mod claim;
mod commit;
mod consent;
mod credential;
mod credit;
mod database;
mod deployment;
mod dialect;
mod effect;
mod ending;
mod error;
mod folder;
mod founding;
mod function;
mod graph;
mod human_request;
mod idempotency;
mod invitation;
mod manifest;
mod member;
mod migration;
mod notify;
mod open;
mod organization;
mod page;
mod payload;
mod plan;
mod poll;
mod process;
mod registration;
mod registration_told;
mod retention;
mod run;
mod run_batch;
mod run_list;
mod schedule;
mod setting;
mod signal;
mod space;
mod structure;
mod suspect;
mod table;
mod tag;
mod team;
mod timer;
mod token;
mod value;
mod variable;
mod version;
mod wake;
mod webhook;
mod workflow;
mod workflow_list;
mod wrapped_key;

pub use activity::{Activity, ActivityFilter, Actor, Trouble};
pub use api_key::{ApiKey, Authentication, NewApiKey};
pub use backup::{BackupProgress, back_up};
pub use claim::{ClaimCause, ClaimOne, ClaimedRun, Due, Share};
pub use commit::CommitError;
pub use consent::{ConsentRequest, NewConsentRequest};
pub use credential::{Credential, CredentialChange, CredentialStatus, NewCredential, NewLink};
pub use deployment::{Deploy, Deployment, LiveWorkflow, NewDeployment};
pub use effect::Effect;
pub use ending::{Ending, ErrorListener, ErrorTrigger, NewEnding};
pub use error::StoreError;
pub use folder::{Folder, FolderChange, UpdateFolder};
pub use founding::{Founded, Founding, FoundingKey};
pub use function::{Function, FunctionChange, FunctionSaved, NewFunction};
pub use graph::Graph;
pub use human_request::{HumanRequest, HumanRequestFilter, HumanRequestPlace, NewHumanRequest};
pub use idempotency::IdempotentRun;
pub use invitation::{Accept, Invitation, InvitationStatus, Invite, NewInvitation};
pub use manifest::{NewManifest, NewestManifest};
pub use member::{Member, Role};
pub use notify::{Notification, Subscription, Topic};
pub use open::DatabaseUrl;
pub use organization::{BillingStatus, Organization, OrganizationChange, Refusal};
pub use page::Position;
pub use payload::Payload;
pub use plan::Plan;
pub use poll::{DuePoll, NewPoll, Polled};
pub use process::Lease;
pub use registration::{
    LONGEST_CLAIM_MS, NewRegistration, Registration, RegistrationStatus, RegistrationTarget,
};
pub use registration_told::{DueRegistration, Told};
pub use retention::{RetentionRule, Swept};
pub use run::{Run, RunStatus};
pub use run_batch::{
    BatchOutcome, ChangeOutcome, CreateOutcome, Driver, IdempotencyKey, NewRun, RunActivity, RunBatch,
    RunChange, RunSummary, Segment, SignalDone,
};
pub use schedule::{DueSchedule, Pass, Tick};
pub use signal::Signal;
pub use structure::{NewStructure, Structure, StructureChange, StructureCreated};
pub use table::{
    ColumnsReplaced, NewTable, RowError, RowOrder, RowQuery, RowWrite, RowsWritten, Table, Upsert,
};
pub use tag::Tag;
pub use team::Team;
pub use timer::Timer;
pub use token::{LeaseToken, NewToken, Token, TokenFailure, TokenFailureKind, TokenLease};
pub use variable::{NewVariable, Variable, VariableWrite};
pub use version::Version;
pub use wake::NextWake;
pub use webhook::{Binding, Mint, NewWebhook, Webhook, WebhookTarget};
pub use workflow::{Delete, Draft, NewWorkflow, Save, Workflow, WorkflowChange};
pub use workflow_list::{Sort, SortBy, StatusFilter, TagFilter, WorkflowFilter, WorkflowSummary};
pub use wrapped_key::{InsertKey, WrappedKey};

use database::Database;
use notify::Notifier;

/// The open database. Cheap to clone; all clones share its connections.
#[derive(Clone)]
pub struct Store {
    database: Database,
    notifier: Notifier,
}
