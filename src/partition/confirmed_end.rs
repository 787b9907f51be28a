//! Where in the log the confirmed prefix ends, to the byte.
//!
//! What is written often ends inside a batch, so the marks of written and synced bytes say less: a reader would be promised bytes that
//! cannot be shown yet.

use std::collections::VecDeque;

use crate::model::Offset;
use crate::storage::appender::LogMark;

#[derive(Debug)]
pub struct ConfirmedEnd {
    end: LogMark,
    /// The ends of the batches that are not confirmed, oldest first. Bounded by what a log lets wait for its writes.
    unconfirmed: VecDeque<LogMark>,
}

impl ConfirmedEnd {
    /// Of a log that is confirmed up to its end.
    pub fn new(end: LogMark) -> Self {
        Self {
            end,
            unconfirmed: VecDeque::new(),
        }
    }

    pub fn mark(&self) -> LogMark {
        self.end
    }

    /// A batch was appended that ends at `end`.
    pub fn on_appended(&mut self, end: LogMark) {
        self.unconfirmed.push_back(end);
    }

    /// Everything below `up_to` is confirmed. Returns how many bytes that are more; over a whole segment as many as anybody may wait for.
    pub fn advance(&mut self, up_to: Offset) -> u64 {
        let before = self.end;
        while let Some(&next) = self.unconfirmed.front()
            && next.offset <= up_to
        {
            self.end = next;
            self.unconfirmed.pop_front();
        }
        let now = self.end;
        if now.segment == before.segment {
            now.position.0 - before.position.0
        } else if now.segment == before.offset {
            now.position.0
        } else {
            u64::MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FilePosition;

    fn mark(segment: i64, position: u64, offset: i64) -> LogMark {
        LogMark {
            segment: Offset(segment),
            position: FilePosition(position),
            offset: Offset(offset),
        }
    }

    #[test]
    fn only_whole_confirmed_batches_count() {
        let mut end = ConfirmedEnd::new(mark(0, 100, 5));
        end.on_appended(mark(0, 150, 6));
        end.on_appended(mark(0, 300, 9));
        assert_eq!(end.advance(Offset(5)), 0);
        assert_eq!(end.advance(Offset(8)), 50);
        assert_eq!(end.mark(), mark(0, 150, 6));
        assert_eq!(end.advance(Offset(9)), 150);
        assert_eq!(end.advance(Offset(9)), 0);
    }

    #[test]
    fn bytes_are_counted_into_the_next_segment_and_no_further() {
        let mut end = ConfirmedEnd::new(mark(0, 100, 5));
        end.on_appended(mark(5, 40, 6));
        assert_eq!(end.advance(Offset(6)), 40);
        end.on_appended(mark(5, 80, 7));
        end.on_appended(mark(7, 40, 8));
        assert_eq!(end.advance(Offset(8)), u64::MAX);
    }
}
