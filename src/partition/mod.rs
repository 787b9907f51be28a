//! One partition's roles: today the leader, with its high watermark, pending acks and fetch waiters.
//!
//! Owns: when a batch may be confirmed and shown. Must never know: sockets, clocks, files, other cores; who waits is a token that it
//! hands back. Runs on: the shard that owns the partition. After a crash: the high watermark is the log's recovered end.

pub mod confirmation;
pub mod confirmed_end;
pub mod fetch_waiters;
pub mod leader;
pub mod pending_acks;
