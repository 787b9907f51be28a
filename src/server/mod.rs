//! Client connections: bytes to frames, frames to requests, replies back in order.
//!
//! Owns: sockets, receive buffers, the order of replies, what may be in flight. Must never know: what a request means.
//! Runs on: the shard that accepted the connection. After a crash: nothing here survives; clients connect anew.

pub mod accept;
pub mod admission;
pub mod connection;
pub mod frame_receiver;
pub mod in_flight;
pub mod pace;
pub mod response_order;
pub mod roster;
