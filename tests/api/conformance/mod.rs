//! Every endpoint against the specification as data, `spec/endpoints.json`, and against the document that the server
//! itself serves, `openapi.json`.
//!
//! The walks know no endpoint. What one answers, needs and takes is in the data; how a live example of it is made is one
//! entry of `example.rs`, and an endpoint without one fails the suite. What an endpoint *means* is tested in its noun's
//! own module, not here.

mod absence;
mod access;
mod body;
mod document;
mod endpoint;
mod example;
mod home;
mod order;
mod paging;
mod place;
mod query;
mod repetition;
mod request;
mod shape;
mod snapshot;
mod success;
