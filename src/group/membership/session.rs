//! Heartbeat, LeaveGroup and members that are not heard of.

use super::{Membership, refused_join};
use crate::group::answer::{GroupAnswer, GroupError};
use crate::group::id::MemberId;
use crate::group::request::{HeartbeatRequest, LeavingMember};
use crate::group::state::GroupState;
use crate::group::timers::TimerKey;
use crate::group::turn::Turn;

impl<T> Membership<T> {
    pub fn heartbeat(
        &mut self,
        turn: &mut Turn<'_, T>,
        request: &HeartbeatRequest,
    ) -> Result<(), GroupError> {
        self.members
            .check(&request.member, request.instance.as_ref())?;
        if request.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        self.touch(turn, &request.member);
        match self.state {
            GroupState::PreparingRebalance => Err(GroupError::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// For each member, in order. What they leave behind is shared anew once.
    pub fn leave(
        &mut self,
        turn: &mut Turn<'_, T>,
        leaving: &[LeavingMember],
    ) -> Vec<Result<(), GroupError>> {
        let count = self.members.len();
        let results = leaving
            .iter()
            .map(|leaving| self.leave_one(turn, leaving))
            .collect();
        match self.members.len() < count {
            true => self.rebalance_without(turn),
            // An id that was given out may be what was waited for.
            false => self.complete_if_all_joined(turn),
        }
        results
    }

    fn leave_one(
        &mut self,
        turn: &mut Turn<'_, T>,
        leaving: &LeavingMember,
    ) -> Result<(), GroupError> {
        let mut id = leaving.member.clone();
        if id.is_unknown() {
            let bearer = leaving.instance.as_ref();
            let bearer = bearer.and_then(|instance| self.members.with_instance(instance));
            id = bearer.cloned().ok_or(GroupError::UnknownMember)?;
        } else if !self.given_ids.contains_key(&id) {
            self.members.check(&id, leaving.instance.as_ref())?;
        }
        self.forget_member(turn, &id);
        Ok(())
    }

    /// A session has ended. Who waits for an answer cannot send a heartbeat, and is let be; but not a new member, whose client may
    /// be gone.
    pub fn on_session_end(&mut self, turn: &mut Turn<'_, T>, id: &MemberId) {
        let key = || TimerKey::Session(self.group.clone(), id.clone());
        if let Some(session) = self.given_ids.get_mut(id) {
            if !turn.timers.came(session, turn.now, key()) {
                return;
            }
            self.forget_member(turn, id);
            self.complete_if_all_joined(turn);
        } else if let Some(member) = self.members.session_mut(id) {
            let has_ended = turn.timers.came(&mut member.session, turn.now, key());
            if !has_ended || (member.is_waiting() && !member.is_new) {
                return;
            }
            self.forget_member(turn, id);
            self.rebalance_without(turn);
        }
    }

    /// Whether the alarm that came is due.
    pub fn alarm_came(&mut self, turn: &mut Turn<'_, T>) -> bool {
        let key = TimerKey::Rebalance(self.group.clone());
        turn.timers.came(&mut self.alarm, turn.now, key)
    }

    /// The member, or the id that was given out, is no more. Requests of it that wait are answered.
    pub(super) fn forget_member(&mut self, turn: &mut Turn<'_, T>, id: &MemberId) {
        let key = || TimerKey::Session(self.group.clone(), id.clone());
        if let Some(mut session) = self.given_ids.remove(id) {
            turn.timers.cancel(&mut session, key);
        }
        let Some(mut member) = self.members.remove(id) else {
            return;
        };
        turn.timers.cancel(&mut member.session, key);
        self.unsynced.remove(id);
        let error = GroupError::UnknownMember;
        if let Some(token) = member.joining {
            turn.answer(token, refused_join(error, id.clone()));
        }
        if let Some(token) = member.syncing {
            turn.answer(token, GroupAnswer::Sync(Err(error)));
        }
    }

    /// The group has ended: nobody can come with an id that was given out any more.
    pub fn take_back_ids(&mut self, turn: &mut Turn<'_, T>) {
        let ids: Vec<MemberId> = self.given_ids.keys().cloned().collect();
        for id in ids {
            self.forget_member(turn, &id);
        }
    }

    /// Members went.
    fn rebalance_without(&mut self, turn: &mut Turn<'_, T>) {
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => self.rebalance(turn),
            GroupState::PreparingRebalance => self.complete_if_all_joined(turn),
            GroupState::Empty | GroupState::Dead => {}
        }
    }
}
