//! Up to where a log is confirmed: which of "written" and "synced" an ack waits for (`flush.messages`).

use crate::model::Offset;

/// The end of the confirmed prefix. It never goes back. With one replica it is the high watermark too.
///
/// ```text
/// flush.messages = 1    every ack waits for an fdatasync that covers its batch
/// flush.messages = n    the ack that makes n records unsynced waits, as do those behind it
/// unset                 an ack waits for the completed O_DIRECT write only
/// ```
#[derive(Debug)]
pub struct Confirmation {
    flush_messages: u64,
    confirmed: Offset,
}

/// What a step of the log means for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    pub up_to: Offset,
    /// An fdatasync must run before the rest can be confirmed.
    pub needs_sync: bool,
}

impl Confirmation {
    pub fn new(flush_messages: u64, confirmed: Offset) -> Self {
        assert!(flush_messages > 0, "flush.messages is at least 1");
        Self {
            flush_messages,
            confirmed,
        }
    }

    pub fn set_flush_messages(&mut self, flush_messages: u64) {
        assert!(flush_messages > 0, "flush.messages is at least 1");
        self.flush_messages = flush_messages;
    }

    pub fn confirmed(&self) -> Offset {
        self.confirmed
    }

    /// The log is written up to `written` and synced up to `synced`.
    pub fn advance(&mut self, written: Offset, synced: Offset) -> Confirmed {
        let unsynced_count =
            u64::try_from(written.since(synced)).expect("what is synced was written");
        let needs_sync = unsynced_count >= self.flush_messages;
        let candidate = if needs_sync { synced } else { written };
        self.confirmed = self.confirmed.max(candidate);
        Confirmed {
            up_to: self.confirmed,
            needs_sync,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_flush_messages_a_completed_write_confirms() {
        let mut confirmation = Confirmation::new(u64::MAX, Offset(0));
        assert_eq!(
            confirmation.advance(Offset(9), Offset(0)),
            Confirmed {
                up_to: Offset(9),
                needs_sync: false
            }
        );
    }

    #[test]
    fn with_flush_messages_1_only_a_sync_confirms() {
        let mut confirmation = Confirmation::new(1, Offset(0));
        assert_eq!(
            confirmation.advance(Offset(9), Offset(0)),
            Confirmed {
                up_to: Offset(0),
                needs_sync: true
            }
        );
        assert_eq!(confirmation.advance(Offset(12), Offset(9)).up_to, Offset(9));
        assert_eq!(
            confirmation.advance(Offset(12), Offset(12)),
            Confirmed {
                up_to: Offset(12),
                needs_sync: false
            }
        );
    }

    #[test]
    fn the_write_that_reaches_flush_messages_waits_and_nothing_goes_back() {
        let mut confirmation = Confirmation::new(10, Offset(0));
        assert_eq!(confirmation.advance(Offset(9), Offset(0)).up_to, Offset(9));
        assert_eq!(
            confirmation.advance(Offset(11), Offset(0)),
            Confirmed {
                up_to: Offset(9),
                needs_sync: true
            }
        );
        assert_eq!(
            confirmation.advance(Offset(12), Offset(11)).up_to,
            Offset(12)
        );
    }
}
