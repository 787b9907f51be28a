//! The answers of one command's items. The command is answered once each of them is.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::shard::call::ReplyTo;

pub struct ReplyGroup<T> {
    replies: RefCell<Vec<Option<T>>>,
    open_count: Cell<usize>,
    reply: Cell<Option<ReplyTo<Vec<T>>>>,
}

/// One item's place in its group.
pub struct ReplySlot<T> {
    group: Rc<ReplyGroup<T>>,
    index: usize,
}

/// What a whole command is answered, and where that goes.
pub struct Complete<T> {
    pub reply: ReplyTo<Vec<T>>,
    pub replies: Vec<T>,
}

impl<T> ReplyGroup<T> {
    /// A slot for each of `count` items. A command without items is complete at once.
    pub fn open(
        count: usize,
        reply: ReplyTo<Vec<T>>,
    ) -> Result<impl Iterator<Item = ReplySlot<T>>, Complete<T>> {
        if count == 0 {
            let replies = Vec::new();
            return Err(Complete { reply, replies });
        }
        let group = Rc::new(Self::new(count, reply));
        Ok((0..count).map(move |index| ReplySlot {
            group: group.clone(),
            index,
        }))
    }

    fn new(count: usize, reply: ReplyTo<Vec<T>>) -> Self {
        Self {
            replies: RefCell::new((0..count).map(|_| None).collect()),
            open_count: Cell::new(count),
            reply: Cell::new(Some(reply)),
        }
    }
}

impl<T> ReplySlot<T> {
    /// The slot of a command that has one item.
    pub fn of_one(reply: ReplyTo<Vec<T>>) -> Self {
        Self {
            group: Rc::new(ReplyGroup::new(1, reply)),
            index: 0,
        }
    }

    /// Gives the item its answer; the command's, if this was the last one.
    pub fn fill(self, answer: T) -> Option<Complete<T>> {
        let group = &self.group;
        group.replies.borrow_mut()[self.index] = Some(answer);
        group.open_count.set(group.open_count.get() - 1);
        if group.open_count.get() > 0 {
            return None;
        }
        let replies = std::mem::take(&mut *group.replies.borrow_mut());
        let replies = replies
            .into_iter()
            .map(|reply| reply.expect("every item was answered"))
            .collect();
        let reply = group.reply.take().expect("a command is answered once");
        Some(Complete { reply, replies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_answered_in_the_order_of_its_items_once_the_last_of_them_is() {
        let (reply, _receiver) = ReplyTo::<Vec<char>>::thread();
        let Ok(mut slots) = ReplyGroup::open(2, reply) else {
            panic!("two items are open");
        };
        let (first, second) = (slots.next().unwrap(), slots.next().unwrap());
        assert!(second.fill('b').is_none());
        assert_eq!(first.fill('a').map(|it| it.replies), Some(vec!['a', 'b']));
    }

    #[test]
    fn a_command_without_items_is_complete_at_once() {
        let (reply, _receiver) = ReplyTo::<Vec<char>>::thread();
        assert!(ReplyGroup::open(0, reply).is_err());
    }
}
