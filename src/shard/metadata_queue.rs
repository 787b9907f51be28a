//! The changes of the metadata that a shard has yet to follow. One task takes them, one after the other in the order in which the
//! controller made them, so that no older image ever replaces a newer one, however long one of them takes.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::io::event::Signal;

/// The controller sends the next change when it has its answer or has waited for `FOLLOW_METADATA_MS`, so that the queue stays short.
#[derive(Debug)]
pub struct MetadataQueue<T> {
    waiting: RefCell<VecDeque<T>>,
    came: Signal,
}

impl<T> Default for MetadataQueue<T> {
    fn default() -> Self {
        Self {
            waiting: RefCell::default(),
            came: Signal::new(),
        }
    }
}

impl<T> MetadataQueue<T> {
    pub fn push(&self, change: T) {
        self.waiting.borrow_mut().push_back(change);
        self.came.raise();
    }

    /// The oldest change; completes when there is one. Dropped before it completes, it takes none.
    pub async fn next(&self) -> T {
        loop {
            if let Some(change) = self.waiting.borrow_mut().pop_front() {
                return change;
            }
            self.came.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::io::executor;

    #[test]
    fn a_change_waits_for_the_one_before_however_long_that_takes() {
        executor::block_on(async {
            let queue = Rc::new(MetadataQueue::default());
            let followed = Rc::new(RefCell::new(Vec::new()));
            let (changes, done) = (queue.clone(), followed.clone());
            executor::spawn_local(async move {
                loop {
                    let (number, takes_ms) = changes.next().await;
                    executor::sleep(Duration::from_millis(takes_ms)).await;
                    done.borrow_mut().push(number);
                }
            })
            .detach();
            for change in [(1, 30), (2, 0), (3, 10), (4, 0)] {
                queue.push(change);
                executor::sleep(Duration::from_millis(1)).await;
            }
            while followed.borrow().len() < 4 {
                executor::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(*followed.borrow(), [1, 2, 3, 4]);
        });
    }

    #[test]
    fn waiting_for_a_while_takes_nothing() {
        executor::block_on(async {
            let queue = MetadataQueue::default();
            let limit = Duration::from_millis(2);
            assert!(executor::timeout(limit, queue.next()).await.is_err());
            queue.push(1);
            queue.push(2);
            assert_eq!((queue.next().await, queue.next().await), (1, 2));
        });
    }
}
