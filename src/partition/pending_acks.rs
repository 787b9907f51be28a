//! Those who wait until the log is confirmed up to an offset.

use std::collections::VecDeque;

use crate::model::Offset;

/// Ordered by offset, since appends are. Bounded by the requests in flight, which are bounded per connection and shard.
#[derive(Debug)]
pub struct PendingAcks<T> {
    waiting: VecDeque<(Offset, T)>,
}

impl<T> Default for PendingAcks<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
        }
    }
}

impl<T> PendingAcks<T> {
    /// `token` is handed back once the log is confirmed up to `end`, the offset behind the batch's last record.
    pub fn push(&mut self, end: Offset, token: T) {
        // A repeat of an earlier batch waits for that one's end; it goes in front of those behind it.
        let at = self.waiting.partition_point(|(other, _)| *other <= end);
        self.waiting.insert(at, (end, token));
    }

    pub fn complete(&mut self, confirmed: Offset) -> impl Iterator<Item = T> {
        let done = self.waiting.partition_point(|(end, _)| *end <= confirmed);
        self.waiting.drain(..done).map(|(_, token)| token)
    }

    /// Everybody who waits, when the log can confirm nothing any more.
    pub fn fail_all(&mut self) -> impl Iterator<Item = T> {
        self.waiting.drain(..).map(|(_, token)| token)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_complete_in_offset_order_and_only_when_covered() {
        let mut acks = PendingAcks::default();
        acks.push(Offset(5), 'a');
        acks.push(Offset(9), 'b');
        acks.push(Offset(5), 'c');
        assert_eq!(acks.complete(Offset(4)).count(), 0);
        assert_eq!(acks.complete(Offset(8)).collect::<String>(), "ac");
        assert_eq!(acks.complete(Offset(9)).collect::<String>(), "b");
        assert!(acks.is_empty());
    }
}
