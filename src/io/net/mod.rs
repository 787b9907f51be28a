//! TCP: one listening socket per executor behind one address, connections that two tasks share.
//!
//! [`bind`] is called once, before the executors start, so that an address that is taken is one clear error. The
//! kernel spreads connections over the listeners; an [`Accepted`] one may still be sent to another executor before it
//! becomes a [`Connection`] there.

mod connection;
mod error;
mod listener;
#[cfg(test)]
mod tests;

pub use connection::{Closer, Connection, LowWaterMark, Reader, Writer};
pub use error::{ConnectionOperation, NetError};
pub use listener::{Accepted, BoundListener, Listener, bind};
