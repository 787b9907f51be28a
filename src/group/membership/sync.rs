//! SyncGroup: the leader's assignment is written, then every member is told its own.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Membership;
use crate::group::answer::{GroupAnswer, GroupError, Synced};
use crate::group::id::{Generation, MemberId};
use crate::group::pending_writes::Awaited;
use crate::group::request::SyncRequest;
use crate::group::state::GroupState;
use crate::group::turn::Turn;
use crate::group::write::WriteRefused;

impl<T> Membership<T> {
    pub fn sync(&mut self, turn: &mut Turn<'_, T>, request: &SyncRequest, token: T) {
        if let Err(error) = self.check_sync(request) {
            return turn.answer(token, GroupAnswer::Sync(Err(error)));
        }
        let id = &request.member;
        self.unsynced.remove(id);
        if self.unsynced.is_empty() {
            self.cancel_alarm(turn);
        }
        if self.state == GroupState::Stable {
            turn.answer(token, self.synced(id));
            return self.touch(turn, id);
        }
        let waited = self
            .members
            .update(id, |member| member.syncing.replace(token));
        if let Some(token) = waited.flatten() {
            let error = GroupError::RebalanceInProgress;
            turn.answer(token, GroupAnswer::Sync(Err(error)));
        }
        if self.members.is_leader(id) && !self.is_storing {
            self.store_assignments(turn, request);
        }
    }

    /// How much more memory the assignments would take.
    pub fn sync_growth(&self, request: &SyncRequest) -> usize {
        let wanted = request.assignments.iter();
        let wanted: usize = wanted.map(|(_, assignment)| assignment.len()).sum();
        match wanted {
            0 => 0,
            _ => {
                let held = self.members.iter().map(|member| member.assignment.len());
                wanted.saturating_sub(held.sum())
            }
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), GroupError> {
        let id = &request.member;
        self.members.check(id, request.instance.as_ref())?;
        if request.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        let differs = |said: &Option<String>, own: &Option<std::sync::Arc<str>>| {
            said.is_some() && said.as_deref() != own.as_deref()
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol)
        {
            return Err(GroupError::InconsistentProtocol);
        }
        match self.state {
            GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
            GroupState::PreparingRebalance => Err(GroupError::RebalanceInProgress),
            GroupState::Empty | GroupState::Dead => Err(GroupError::UnknownMember),
        }
    }

    /// Members that the leader left out get an empty assignment; who is not a member gets none.
    fn store_assignments(&mut self, turn: &mut Turn<'_, T>, request: &SyncRequest) {
        let mut assignments: BTreeMap<MemberId, Bytes> = BTreeMap::new();
        for (id, assignment) in &request.assignments {
            if self.members.contains(id) {
                assignments.insert(id.clone(), Bytes::copy_from_slice(assignment));
            }
        }
        self.is_storing = true;
        let record = self.record(turn, Some(&assignments));
        let awaited = Awaited::Assignment {
            generation: self.generation,
            assignments,
        };
        turn.write(&self.group, vec![record], awaited);
    }

    /// The generation is on disk. Another rebalance may have begun meanwhile; then nobody waits for this one.
    pub fn on_assignment_confirmed(
        &mut self,
        turn: &mut Turn<'_, T>,
        generation: Generation,
        mut assignments: BTreeMap<MemberId, Bytes>,
    ) {
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        self.is_storing = false;
        self.enter(turn, GroupState::Stable);
        for id in self.members.ids() {
            let assignment = assignments.remove(&id).unwrap_or_default();
            let waiting = self.members.update(&id, |member| {
                member.assignment = assignment;
                member.syncing.take()
            });
            if let Some(token) = waiting.flatten() {
                turn.answer(token, self.synced(&id));
            }
            // A session that ended while the member waited was let pass, so it needs a new one.
            self.touch(turn, &id);
        }
    }

    /// It could not be written: the members join again.
    pub fn on_assignment_refused(
        &mut self,
        turn: &mut Turn<'_, T>,
        generation: Generation,
        why: WriteRefused,
    ) {
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        self.fail_syncs(turn, why.error());
        self.rebalance(turn);
    }

    /// Ends what waits for this generation's assignments.
    pub(super) fn fail_syncs(&mut self, turn: &mut Turn<'_, T>, error: GroupError) {
        self.is_storing = false;
        for id in self.members.ids() {
            let waiting = self.members.update(&id, |member| {
                member.assignment = Bytes::new();
                member.syncing.take()
            });
            if let Some(token) = waiting.flatten() {
                turn.answer(token, GroupAnswer::Sync(Err(error)));
                self.touch(turn, &id);
            }
        }
    }

    /// Who has not asked for its assignment within the rebalance time-out is out, and the others share anew.
    pub(super) fn on_sync_time_out(&mut self, turn: &mut Turn<'_, T>) {
        let late = std::mem::take(&mut self.unsynced);
        if late.is_empty() {
            return;
        }
        for id in late {
            self.forget_member(turn, &id);
        }
        self.rebalance(turn);
    }

    fn synced(&self, id: &MemberId) -> GroupAnswer {
        let member = self.members.get(id);
        GroupAnswer::Sync(Ok(Synced {
            protocol_type: self.protocol_type(),
            protocol_name: self.protocol_name(),
            assignment: member
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
        }))
    }
}
