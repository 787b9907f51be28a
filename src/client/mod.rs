//! The outbound Kafka client, on blocking sockets: what the command line and the load generator ask of a cluster.
//!
//! Owns: connections, the versions that both sides speak, which broker leads a partition, controls the cluster or coordinates a group,
//! and the requests about topics, settings, offsets, records and groups, as questions with typed answers. It talks to any broker that
//! speaks Kafka's protocol, so nothing in it counts on the peer being Corelog. Must never know: what this process serves, arguments,
//! terminals, tables.
//! Runs on: the thread that calls it, which it blocks for no longer than its timeouts; never on a shard's core.
//! After a crash: nothing here survives.

pub mod bootstrap;
pub mod cluster;
pub mod configs;
pub mod connection;
pub mod consumer_protocol;
pub mod error;
pub mod fetch;
pub mod groups;
pub mod membership;
pub mod metadata;
pub mod murmur2;
pub mod offsets;
pub mod outage;
pub mod produce;
pub mod range_assignor;
pub mod response_shapes;
pub mod topics;
