//! Those who wait for a partition's high watermark to pass an offset: long polls.

use crate::model::Offset;

#[derive(Debug)]
pub struct FetchWaiters<T> {
    waiting: Vec<(Offset, T)>,
}

impl<T> Default for FetchWaiters<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
        }
    }
}

impl<T> FetchWaiters<T> {
    /// `token` is handed back once the high watermark is above `offset`.
    pub fn push(&mut self, offset: Offset, token: T) {
        self.waiting.push((offset, token));
    }

    pub fn fire(&mut self, high_watermark: Offset) -> impl Iterator<Item = T> {
        self.waiting
            .extract_if(.., move |(offset, _)| *offset < high_watermark)
            .map(|(_, token)| token)
    }

    /// Everybody, when the partition goes away.
    pub fn fire_all(&mut self) -> impl Iterator<Item = T> {
        self.waiting.drain(..).map(|(_, token)| token)
    }

    /// Forgets those whose poll has ended by its time limit.
    pub fn retain(&mut self, mut still_waits: impl FnMut(&T) -> bool) {
        self.waiting.retain(|(_, token)| still_waits(token));
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_fires_once_when_the_high_watermark_passes_its_offset() {
        let mut waiters = FetchWaiters::default();
        waiters.push(Offset(5), 'a');
        waiters.push(Offset(7), 'b');
        assert_eq!(waiters.fire(Offset(5)).count(), 0);
        assert_eq!(waiters.fire(Offset(6)).collect::<String>(), "a");
        assert_eq!(waiters.fire(Offset(6)).count(), 0);
        assert_eq!(waiters.fire_all().collect::<String>(), "b");
    }
}
