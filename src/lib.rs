//! Corelog: a message broker that speaks the Kafka protocol, one shard per CPU core.
//!
//! The folders are layers; each imports only layers below it (`tests/architecture.rs` holds the table).
//! `ARCHITECTURE.md` is the map.

pub mod admin;
pub mod api;
pub mod broker;
pub mod cli;
pub mod client;
pub mod config;
pub mod controller;
pub mod group;
pub mod io;
pub mod metadata;
pub mod metrics;
pub mod model;
pub mod partition;
pub mod protocol;
pub mod record;
pub mod server;
pub mod shard;
pub mod storage;
