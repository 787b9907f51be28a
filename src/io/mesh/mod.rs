//! Bounded lanes between executors.
//!
//! One lane for each ordered pair of members. Messages pushed during one turn travel as one batch with at most one
//! wake-up. A lane counts the messages that its receiver has not taken yet; at `MESH_QUEUE_MESSAGES_MAX` it is full,
//! and whoever makes new work for that member waits ([`Outbox::ready`]). Answers are pushed even then
//! ([`Outbox::push_answer`]): they are as many as the requests that were let in, and holding them back could stop both
//! sides for ever.
//!
//! [`foreign_lane`] leads from threads that run no executor into one that does.

mod foreign;
mod inbox;
mod outbox;
mod seat;
#[cfg(test)]
mod tests;

pub use foreign::{ForeignReceiver, ForeignSendError, ForeignSender, foreign_lane};
pub use inbox::Inbox;
pub use outbox::Outbox;
pub use seat::{MeshEnd, MeshSeat, seats};
