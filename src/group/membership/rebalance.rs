//! From the first who joins to the generation that they make: gathering members, for how long, and who is left out.

use std::time::Duration;

use super::Membership;
use crate::group::answer::{GroupAnswer, GroupError, Joined};
use crate::group::id::{Generation, MemberId};
use crate::group::pending_writes::Awaited;
use crate::group::state::GroupState;
use crate::group::turn::Turn;

/// How long a group that had no member waits for more of them: `group.initial.rebalance.delay.ms`, and again as long while new ones
/// come, up to the rebalance time-out.
#[derive(Debug)]
pub struct InitialDelay {
    step: Duration,
    remaining: Duration,
    somebody_came: bool,
}

impl<T> Membership<T> {
    /// Something changed that takes a rebalance; where one is under way already, it may be what that was waiting for.
    pub(super) fn rebalance(&mut self, turn: &mut Turn<'_, T>) {
        match self.state {
            GroupState::PreparingRebalance => self.complete_if_all_joined(turn),
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => {
                self.prepare_rebalance(turn);
            }
            GroupState::Dead => {}
        }
    }

    fn prepare_rebalance(&mut self, turn: &mut Turn<'_, T>) {
        if self.state == GroupState::CompletingRebalance {
            self.fail_syncs(turn, GroupError::RebalanceInProgress);
        }
        self.unsynced.clear();
        self.cancel_alarm(turn);
        let is_first = self.state == GroupState::Empty;
        self.enter(turn, GroupState::PreparingRebalance);
        let delay = turn.rules.initial_rebalance_delay;
        if is_first && !delay.is_zero() {
            self.initial = Some(InitialDelay {
                step: delay,
                remaining: self.rebalance_timeout().saturating_sub(delay),
                somebody_came: false,
            });
            self.set_alarm(turn, delay);
        } else {
            self.set_alarm(turn, self.rebalance_timeout());
            self.complete_if_all_joined(turn);
        }
    }

    pub(super) fn note_new_member(&mut self) {
        if self.generation == Generation::BEFORE_FIRST
            && let Some(initial) = &mut self.initial
        {
            initial.somebody_came = true;
        }
    }

    pub(super) fn complete_if_all_joined(&mut self, turn: &mut Turn<'_, T>) {
        if self.state == GroupState::PreparingRebalance
            && self.initial.is_none()
            && self.members.all_are_joining()
            && self.given_ids.is_empty()
        {
            self.complete_join(turn);
        }
    }

    /// What the state waits for has not come in time.
    pub fn on_alarm(&mut self, turn: &mut Turn<'_, T>) {
        match self.state {
            GroupState::PreparingRebalance => self.on_join_time_out(turn),
            GroupState::CompletingRebalance | GroupState::Stable => self.on_sync_time_out(turn),
            GroupState::Empty | GroupState::Dead => {}
        }
    }

    fn on_join_time_out(&mut self, turn: &mut Turn<'_, T>) {
        if let Some(mut initial) = self.initial.take()
            && initial.somebody_came
            && !initial.remaining.is_zero()
        {
            let step = initial
                .remaining
                .min(turn.rules.initial_rebalance_delay)
                .max(Duration::from_millis(1));
            initial.remaining = initial.remaining.saturating_sub(initial.step);
            initial.step = step;
            initial.somebody_came = false;
            self.initial = Some(initial);
            self.set_alarm(turn, step);
            return;
        }
        self.complete_join(turn);
    }

    /// Ends the gathering. Dynamic members that did not come are out. Static ones stay until their sessions end; while none of the
    /// members came, the gathering goes on.
    fn complete_join(&mut self, turn: &mut Turn<'_, T>) {
        self.initial = None;
        self.cancel_alarm(turn);
        for id in self.members.ids() {
            let member = self.members.get(&id);
            if member.is_some_and(|member| member.joining.is_none() && member.instance.is_none()) {
                self.forget_member(turn, &id);
            }
        }
        if self.members.is_empty() {
            return self.become_empty(turn);
        }
        if !self.members.elect_joined_leader() {
            self.set_alarm(turn, self.rebalance_timeout());
            return;
        }
        self.generation = self.generation.next();
        turn.effects.generation_count += 1;
        self.protocol = self.members.choose_protocol();
        self.subscribed = self.find_subscribed();
        self.enter(turn, GroupState::CompletingRebalance);
        self.unsynced = self.members.ids().into_iter().collect();
        let everybody = self.joined_members();
        for id in self.members.ids() {
            let members = match self.members.is_leader(&id) {
                true => everybody.clone(),
                false => Vec::new(),
            };
            let answer = self.joined(id.clone(), members, false);
            let joining = self.members.update(&id, |member| {
                member.is_new = false;
                member.joining.take()
            });
            if let Some(token) = joining.flatten() {
                turn.answer(token, answer);
            }
            self.touch(turn, &id);
        }
        self.set_alarm(turn, self.rebalance_timeout());
    }

    fn become_empty(&mut self, turn: &mut Turn<'_, T>) {
        self.generation = self.generation.next();
        self.protocol = None;
        self.enter(turn, GroupState::Empty);
        self.subscribed = self.find_subscribed();
        let record = self.record(turn, None);
        turn.write(&self.group, vec![record], Awaited::Emptied);
    }

    pub(super) fn joined(
        &self,
        member: MemberId,
        members: Vec<crate::group::answer::JoinedMember>,
        skip_assignment: bool,
    ) -> GroupAnswer {
        GroupAnswer::Join(Ok(Joined {
            member,
            generation: self.generation,
            protocol_type: self.protocol_type(),
            protocol_name: self.protocol_name(),
            leader: self
                .members
                .leader()
                .cloned()
                .expect("a group with members has a leader"),
            members,
            skip_assignment,
        }))
    }
}
