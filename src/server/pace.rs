//! When a connection is worth a wake-up.
//!
//! A client that has many requests under way gains nothing from each of them being taken as it comes: replies leave in order,
//! behind all that is under way already. So the socket wakes the shard only when as much has arrived as is a fair part of that.
//! A turn then takes dozens of requests, writes and replies in place of one. A connection with little under way is woken at the
//! first byte of a request, and then once for the rest of it: to hold it back, and to let it go again, is a system call each.

use crate::io::net::LowWaterMark;
use crate::model::limits::{WAKE_UP_BYTES_MAX, WAKE_UP_PART_BYTES_MIN};
use crate::server::response_order::ResponseOrder;

/// The part of what is under way that may arrive before the shard is woken: it bounds what the wait adds to a latency.
const PART_UNDER_WAY: usize = 16;

/// Sets the low-water mark of one connection.
pub struct Pace {
    mark: LowWaterMark,
    order: ResponseOrder,
}

impl Pace {
    pub fn new(mark: LowWaterMark, order: ResponseOrder) -> Self {
        Self { mark, order }
    }

    /// Before a wait for more bytes, of which the frame under way lacks `missing_bytes`.
    pub fn before_receive(&self, missing_bytes: usize) {
        self.mark
            .set(wake_up_bytes(missing_bytes, self.order.open_bytes()));
    }

    /// After replies, of which the last may have been what the wait was justified by.
    pub fn after_replies(&self) {
        let bytes = wake_up_bytes(0, self.order.open_bytes());
        if bytes < self.mark.bytes() {
            self.mark.set(bytes);
        }
    }
}

/// How many bytes must arrive. It changes in powers of two, so that not each reply costs a system call.
fn wake_up_bytes(missing_bytes: usize, open_bytes: usize) -> usize {
    let part_bytes = match open_bytes / PART_UNDER_WAY {
        part if part < WAKE_UP_PART_BYTES_MIN => 0,
        part => 1 << part.ilog2(),
    };
    missing_bytes.max(part_bytes).clamp(1, WAKE_UP_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_little_under_way_the_first_byte_wakes() {
        assert_eq!(wake_up_bytes(0, 0), 1);
        assert_eq!(
            wake_up_bytes(0, PART_UNDER_WAY * WAKE_UP_PART_BYTES_MIN - 1),
            1
        );
    }

    #[test]
    fn the_rest_of_a_frame_wakes_once() {
        assert_eq!(wake_up_bytes(5_000, 0), 5_000);
        assert_eq!(wake_up_bytes(10 << 20, 0), WAKE_UP_BYTES_MAX);
    }

    #[test]
    fn a_wait_is_a_sixteenth_of_what_is_under_way_at_most() {
        for open_bytes in [17_000, 1_000_000, 4_000_000] {
            let bytes = wake_up_bytes(0, open_bytes);
            assert!(bytes <= open_bytes / 16 && bytes * 2 > open_bytes / 16);
        }
        assert_eq!(wake_up_bytes(0, 1 << 30), WAKE_UP_BYTES_MAX);
    }
}
