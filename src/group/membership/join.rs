//! JoinGroup: who is taken in, under which id, and whether that takes a rebalance.

use super::{Membership, refused_join};
use crate::group::answer::{GroupAnswer, GroupError};
use crate::group::id::MemberId;
use crate::group::member::{Member, Protocols, millis};
use crate::group::pending_writes::{Awaited, Takeover};
use crate::group::request::JoinRequest;
use crate::group::state::GroupState;
use crate::group::subscription::subscribed_topics;
use crate::group::timers::{Alarm, TimerKey};
use crate::group::turn::Turn;
use crate::group::write::WriteRefused;
use crate::model::limits::{GIVEN_MEMBER_IDS_PER_GROUP_MAX, NEW_MEMBER_JOIN_MS_MAX};

impl<T> Membership<T> {
    /// The request was checked for what has nothing to do with the group.
    pub fn join(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, token: T) {
        if !self.has_room_for(turn, &request.member) {
            let unknown = MemberId::new("");
            self.forget_member(turn, &request.member);
            turn.refuse_join(token, GroupError::GroupFull, unknown);
            return self.complete_if_all_joined(turn);
        }
        if !self.can_speak_with(request) {
            let error = GroupError::InconsistentProtocol;
            return turn.refuse_join(token, error, request.member.clone());
        }
        match request.member.is_unknown() {
            true => self.join_new(turn, request, token),
            false => self.join_known(turn, request, token),
        }
    }

    /// How much more memory the member would take, roughly.
    pub fn join_growth(&self, request: &JoinRequest) -> usize {
        let wanted = Protocols::bytes_wanted(&request.protocols);
        match self.members.get(&request.member) {
            Some(member) => wanted.saturating_sub(member.protocols.bytes()),
            None => wanted + Member::<T>::FIXED_BYTES,
        }
    }

    /// While members gather, those count who came: where the limit was lowered, the last to come are left out.
    fn has_room_for(&self, turn: &Turn<'_, T>, member: &MemberId) -> bool {
        let max = turn.rules.max_size;
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => {
                let known = self.members.get(member);
                known.is_some_and(|known| known.joining.is_some())
                    || self.members.joining_count() < max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.members.contains(member) || self.members.len() < max
            }
        }
    }

    fn can_speak_with(&self, request: &JoinRequest) -> bool {
        if self.members.is_empty() {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        let names = request.protocols.iter();
        self.protocol_type.as_deref() == Some(&request.protocol_type)
            && self
                .members
                .all_have_any(names.map(|protocol| &*protocol.name))
    }

    fn join_new(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, token: T) {
        let prefix = match &request.instance {
            Some(instance) => instance.as_str(),
            None => &request.client_id,
        };
        let id = MemberId::new(&format!("{prefix}-{}", request.fresh));
        let Some(instance) = &request.instance else {
            return match request.member_id_required {
                true => self.give_id(turn, request, id, token),
                false => self.add(turn, request, id, token),
            };
        };
        match self.members.with_instance(instance).cloned() {
            Some(old) => self.take_over(turn, request, &old, id, token),
            None => self.add(turn, request, id, token),
        }
    }

    /// The client has to come back with its id. So one that gives up waiting and asks anew is not two members (KIP-394).
    fn give_id(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, id: MemberId, token: T) {
        if self.given_ids.len() >= GIVEN_MEMBER_IDS_PER_GROUP_MAX {
            return turn.refuse_join(token, GroupError::GroupFull, MemberId::new(""));
        }
        let mut session = Alarm::default();
        let due = turn.now + millis(request.session_timeout_ms);
        let key = || TimerKey::Session(self.group.clone(), id.clone());
        turn.timers.set(&mut session, due, key);
        self.given_ids.insert(id.clone(), session);
        turn.refuse_join(token, GroupError::MemberIdRequired, id);
    }

    fn add(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, id: MemberId, token: T) {
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.as_str().into());
        }
        self.note_new_member();
        let mut member = Member::new(id.clone(), request);
        member.joining = Some(token);
        // Nothing tells whether a client that waits still lives, so it may not wait for ever: it tries again.
        let due = turn.now + std::time::Duration::from_millis(NEW_MEMBER_JOIN_MS_MAX);
        let key = || TimerKey::Session(self.group.clone(), id.clone());
        turn.timers.set(&mut member.session, due, key);
        self.members.insert(member);
        self.rebalance(turn);
    }

    fn join_known(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, token: T) {
        let id = &request.member;
        // Ids are given to dynamic members only.
        if request.instance.is_none()
            && let Some(mut session) = self.given_ids.remove(id)
        {
            let key = || TimerKey::Session(self.group.clone(), id.clone());
            turn.timers.cancel(&mut session, key);
            return self.add(turn, request, id.clone(), token);
        }
        if let Err(error) = self.members.check(id, request.instance.as_ref()) {
            return turn.refuse_join(token, error, id.clone());
        }
        let member = self.members.get(id).expect("it was just checked");
        let is_same = member.protocols.are(&request.protocols);
        let is_leader = self.members.is_leader(id);
        match self.state {
            GroupState::PreparingRebalance => self.rejoin(turn, request, token),
            // The answer of its join was lost.
            GroupState::CompletingRebalance if is_same => {
                let members = match is_leader {
                    true => self.joined_members(),
                    false => Vec::new(),
                };
                let answer = self.joined(id.clone(), members, false);
                turn.answer(token, answer);
            }
            // A leader asks where it wants another assignment: topics have changed.
            GroupState::Stable if is_same && !is_leader => {
                let answer = self.joined(id.clone(), Vec::new(), false);
                turn.answer(token, answer);
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.rejoin(turn, request, token);
            }
            GroupState::Empty | GroupState::Dead => {
                turn.refuse_join(token, GroupError::UnknownMember, id.clone());
            }
        }
    }

    fn rejoin(&mut self, turn: &mut Turn<'_, T>, request: &JoinRequest, token: T) {
        self.renew(turn, &request.member, request, token);
        self.rebalance(turn);
    }

    /// The member says anew what it is, and waits. A request of it that waits already is answered: nobody listens there any more.
    fn renew(&mut self, turn: &mut Turn<'_, T>, id: &MemberId, request: &JoinRequest, token: T) {
        let waited = self.members.update(id, |member| {
            member.protocols = Protocols::new(&request.protocols);
            member.session_timeout_ms = request.session_timeout_ms;
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
            member.joining.replace(token)
        });
        if let Some(token) = waited.flatten() {
            turn.refuse_join(token, GroupError::RebalanceInProgress, id.clone());
        }
    }

    /// A static member came back: it is the one that it was, under a new member id, and whoever still uses the old one is fenced.
    fn take_over(
        &mut self,
        turn: &mut Turn<'_, T>,
        request: &JoinRequest,
        old_id: &MemberId,
        id: MemberId,
        token: T,
    ) {
        let old_leader = self.members.leader().cloned();
        let old = self
            .members
            .get(old_id)
            .expect("an instance id is a member's");
        let old_topics = self.topics_of(&old.protocols);
        let takeover = Takeover {
            generation: self.generation,
            member: id.clone(),
            can_skip_assignment: request.can_skip_assignment,
            old_leader,
            old_member: old_id.clone(),
            old_protocols: old.protocols.clone(),
            old_session_timeout_ms: old.session_timeout_ms,
            old_rebalance_timeout_ms: old.rebalance_timeout_ms,
        };
        self.replace_id(turn, old_id, id.clone());
        self.renew(turn, &id, request, token);
        // It has its place, so it may wait as a member does, even if the one that it was never came to a rebalance.
        self.members.update(&id, |member| member.is_new = false);
        self.touch(turn, &id);
        let renewed = self.members.get(&id).expect("it was just renamed");
        let goes_on = self.state == GroupState::Stable
            && self.members.choose_protocol() == self.protocol
            && self.topics_of(&renewed.protocols) == old_topics;
        if goes_on {
            let record = self.record(turn, None);
            turn.write(&self.group, vec![record], Awaited::Takeover(takeover));
        } else {
            self.rebalance(turn);
        }
    }

    /// What a consumer is subscribed to, as far as it can be told.
    fn topics_of(
        &self,
        protocols: &Protocols,
    ) -> Option<std::collections::BTreeSet<crate::model::TopicName>> {
        let protocol = self.protocol.as_deref().filter(|_| self.is_consumers())?;
        subscribed_topics(&protocols.metadata(protocol))
    }

    fn replace_id(&mut self, turn: &mut Turn<'_, T>, old: &MemberId, new: MemberId) {
        let group = self.group.clone();
        let waited = self.members.update(old, |member| {
            let key = || TimerKey::Session(group, old.clone());
            turn.timers.cancel(&mut member.session, key);
            (member.joining.take(), member.syncing.take())
        });
        let (joining, syncing) = waited.unwrap_or_default();
        let error = GroupError::FencedInstance;
        if let Some(token) = joining {
            turn.answer(token, refused_join(error, old.clone()));
        }
        if let Some(token) = syncing {
            turn.answer(token, GroupAnswer::Sync(Err(error)));
        }
        if self.unsynced.remove(old) {
            self.unsynced.insert(new.clone());
        }
        self.members.rename(old, new);
    }

    /// The group with the member's new id is on disk. A rebalance that began meanwhile answers the member instead.
    pub fn on_takeover_confirmed(&mut self, turn: &mut Turn<'_, T>, takeover: Takeover) {
        let Some(token) = self.overtaken(&takeover) else {
            return;
        };
        let id = &takeover.member;
        let is_leader = self.members.is_leader(id);
        let skips = takeover.can_skip_assignment && is_leader;
        let members = match skips {
            true => self.joined_members(),
            false => Vec::new(),
        };
        let mut answer = self.joined(id.clone(), members, skips);
        if let (GroupAnswer::Join(Ok(joined)), false) = (&mut answer, takeover.can_skip_assignment)
        {
            // A client that is told that it leads would have to assign anew, so an older one hears of the leader that was.
            joined.leader = takeover.old_leader.unwrap_or_else(|| joined.leader.clone());
        }
        turn.answer(token, answer);
        self.touch(turn, id);
    }

    /// It is not: the member is again the one that it was.
    pub fn on_takeover_refused(
        &mut self,
        turn: &mut Turn<'_, T>,
        takeover: Takeover,
        why: WriteRefused,
    ) {
        let Some(token) = self.overtaken(&takeover) else {
            return;
        };
        turn.refuse_join(token, why.error(), MemberId::new(""));
        self.replace_id(turn, &takeover.member, takeover.old_member.clone());
        self.members.update(&takeover.old_member, |member| {
            member.protocols = takeover.old_protocols;
            member.session_timeout_ms = takeover.old_session_timeout_ms;
            member.rebalance_timeout_ms = takeover.old_rebalance_timeout_ms;
        });
        self.touch(turn, &takeover.old_member);
    }

    /// The join that still waits for the write of its takeover.
    fn overtaken(&mut self, takeover: &Takeover) -> Option<T> {
        if self.state != GroupState::Stable || self.generation != takeover.generation {
            return None;
        }
        let joining = self
            .members
            .update(&takeover.member, |member| member.joining.take());
        joining.flatten()
    }
}
