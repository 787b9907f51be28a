use super::answer::{GroupAnswer, GroupError, JoinRefused};
use super::id::{GroupId, MemberId};
use super::pending_writes::{Awaited, PendingWrites};
use super::rules::GroupRules;
use super::timers::Timers;
use super::write::{Effects, GroupRecord, GroupWrite};
use crate::io::clock::Monotonic;
use crate::model::TimestampMs;

/// One call of the coordinator: what a group needs of it, and what comes of it.
pub struct Turn<'a, T> {
    pub rules: &'a GroupRules,
    pub now: Monotonic,
    /// What is written down as the time of this turn.
    pub wall: TimestampMs,
    pub timers: &'a mut Timers,
    pub writes: &'a mut PendingWrites<T>,
    pub effects: &'a mut Effects<T>,
    /// Writes that were begun in this turn.
    pub written: usize,
    /// One of them is a record of the group itself.
    pub is_logged: bool,
}

impl<T> Turn<'_, T> {
    pub fn answer(&mut self, token: T, answer: GroupAnswer) {
        self.effects.answers.push((token, answer));
    }

    pub fn refuse_join(&mut self, token: T, error: GroupError, member: MemberId) {
        self.answer(token, GroupAnswer::Join(Err(JoinRefused { error, member })));
    }

    pub fn write(&mut self, group: &GroupId, records: Vec<GroupRecord>, awaited: Awaited<T>) {
        self.written += 1;
        self.is_logged |= awaited.is_of_group();
        let id = self.writes.begin(group.clone(), awaited);
        self.effects.writes.push(GroupWrite { id, records });
    }
}
