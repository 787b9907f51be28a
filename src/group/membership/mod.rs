//! Who is in a group and which rebalance it is in: the state machine of the classic protocol, as Kafka's coordinator runs it.
//!
//! `join` takes members in, `rebalance` gathers them and begins a generation, `sync` hands out its assignments, `session` lets
//! members go. Every transition is a method here or there that is given the `Turn` it happens in.

mod join;
mod rebalance;
mod session;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::answer::{DescribedGroup, DescribedMember, GroupAnswer, GroupError, JoinedMember};
use super::id::{Generation, GroupId, InstanceId, MemberId};
use super::member::{Member, Protocols, millis};
use super::members::Members;
use super::record::{GroupValue, MemberValue, encode_group_key};
use super::state::GroupState;
use super::subscription::subscribed_topics;
use super::timers::{Alarm, TimerKey};
use super::turn::Turn;
use super::write::GroupRecord;
use crate::model::{TimestampMs, TopicName};
use rebalance::InitialDelay;

/// The protocol type whose metadata names topics.
const CONSUMER: &str = "consumer";

#[derive(Debug)]
pub struct Membership<T> {
    group: GroupId,
    state: GroupState,
    generation: Generation,
    /// `None`: the group has had no member yet.
    protocol_type: Option<Arc<str>>,
    /// The assignor of this generation.
    protocol: Option<Arc<str>>,
    /// Of the last change of state by the wall clock; `NONE` where an old record does not say.
    state_time: TimestampMs,
    members: Members<T>,
    /// Ids that were given to clients who must join again with them, each until its session would end.
    given_ids: BTreeMap<MemberId, Alarm>,
    /// Who has not asked for its assignment in this generation.
    unsynced: BTreeSet<MemberId>,
    /// The leader's assignment is on its way to the disk.
    is_storing: bool,
    /// What the state waits for: members to join, or to sync.
    alarm: Alarm,
    /// The rebalance began with the group's first member, and waits for more to come.
    initial: Option<InitialDelay>,
    /// Topics of all members; `None` where that cannot be told.
    subscribed: Option<BTreeSet<TopicName>>,
}

impl<T> Membership<T> {
    pub fn new(group: GroupId) -> Self {
        Self {
            group,
            state: GroupState::Empty,
            generation: Generation::BEFORE_FIRST,
            protocol_type: None,
            protocol: None,
            state_time: TimestampMs::NONE,
            members: Members::default(),
            given_ids: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            is_storing: false,
            alarm: Alarm::default(),
            initial: None,
            subscribed: None,
        }
    }

    /// As the log has it: stable, or empty.
    pub fn restored(group: GroupId, value: &GroupValue<'_>) -> Self {
        let mut membership = Self::new(group);
        membership.generation = value.generation;
        membership.state_time = value.state_time;
        membership.protocol_type = Some(value.protocol_type)
            .filter(|name| !name.is_empty())
            .map(Into::into);
        membership.protocol = value.protocol.map(Into::into);
        for stored in &value.members {
            let id = MemberId::new(stored.member);
            // A record that names a member, or an instance, twice: the later one counts.
            membership.members.remove(&id);
            let instance = stored.instance.map(InstanceId::new);
            if let Some(bearer) = instance
                .as_ref()
                .and_then(|instance| membership.members.with_instance(instance).cloned())
            {
                membership.members.remove(&bearer);
            }
            membership.members.insert(Member {
                id,
                instance,
                client_id: stored.client_id.into(),
                client_host: stored.client_host.into(),
                session_timeout_ms: stored.session_timeout_ms,
                rebalance_timeout_ms: stored.rebalance_timeout_ms,
                protocols: Protocols::chosen(
                    value.protocol.unwrap_or_default(),
                    stored.subscription,
                ),
                assignment: Bytes::copy_from_slice(stored.assignment),
                is_new: false,
                joining: None,
                syncing: None,
                session: Alarm::default(),
            });
        }
        let leader = value.leader.map(MemberId::new);
        if let Some(leader) = leader.filter(|leader| membership.members.contains(leader)) {
            membership.members.set_leader(&leader);
        }
        if !membership.members.is_empty() {
            membership.state = GroupState::Stable;
        }
        membership.subscribed = membership.find_subscribed();
        membership
    }

    /// The log was read: the members have a whole session to be heard of.
    pub fn begin_sessions(&mut self, turn: &mut Turn<'_, T>) {
        for id in self.members.ids() {
            self.touch(turn, &id);
        }
        if self.members.len() > turn.rules.max_size {
            self.rebalance(turn);
        }
    }

    pub fn group(&self) -> &GroupId {
        &self.group
    }

    pub fn state(&self) -> GroupState {
        self.state
    }

    pub fn state_time(&self) -> TimestampMs {
        self.state_time
    }

    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    /// Nobody is here, and nobody was given an id to come with.
    pub fn is_deserted(&self) -> bool {
        self.members.is_empty() && self.given_ids.is_empty() && self.state == GroupState::Empty
    }

    /// Only offsets were ever committed to the group.
    pub fn is_simple(&self) -> bool {
        self.protocol_type.is_none()
    }

    pub fn is_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether members want the topic, as far as it can be told; if it cannot, whether they could.
    pub fn is_subscribed(&self, topic: &TopicName) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_consumers(),
        }
    }

    /// Whether it is known of every member which topics it wants.
    pub fn knows_subscriptions(&self) -> bool {
        self.subscribed.is_some()
    }

    /// What it takes in memory, roughly.
    pub fn bytes(&self) -> usize {
        const GIVEN_ID_BYTES: usize = 192;
        self.members.bytes() + self.given_ids.len() * GIVEN_ID_BYTES
    }

    pub fn protocol_type(&self) -> Arc<str> {
        self.protocol_type.clone().unwrap_or_else(|| "".into())
    }

    fn protocol_name(&self) -> Arc<str> {
        self.protocol.clone().unwrap_or_else(|| "".into())
    }

    pub fn describe(&self) -> DescribedGroup {
        let shown = self
            .protocol
            .clone()
            .filter(|_| self.state == GroupState::Stable);
        let members = self.members.iter().map(|member| DescribedMember {
            member: member.id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: shown
                .as_deref()
                .map(|protocol| member.protocols.metadata(protocol))
                .unwrap_or_default(),
            assignment: shown
                .as_ref()
                .map(|_| member.assignment.clone())
                .unwrap_or_default(),
        });
        DescribedGroup {
            group: self.group.clone(),
            state: self.state,
            protocol_type: self.protocol_type(),
            members: members.collect(),
            protocol_name: shown.unwrap_or_else(|| "".into()),
        }
    }

    /// Whether somebody may commit offsets (KIP-211 and KIP-345 for members; tools and consumers on their own only while nobody is
    /// here). A member that may is heard of by it.
    pub fn check_commit(
        &mut self,
        turn: &mut Turn<'_, T>,
        generation: Generation,
        member: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(), GroupError> {
        let is_member = generation.0 >= 0 || !member.is_unknown() || instance.is_some();
        if generation.0 < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        if !is_member {
            return Err(GroupError::UnknownMember);
        }
        self.members.check(member, instance)?;
        if generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        if self.state == GroupState::CompletingRebalance {
            // It knows the new generation, so it has to sync first.
            return Err(GroupError::RebalanceInProgress);
        }
        self.touch(turn, member);
        Ok(())
    }

    /// Everybody who waits, when the coordinator ends.
    pub fn stop(&mut self) -> Vec<(T, GroupAnswer)> {
        let mut answers = Vec::new();
        for id in self.members.ids() {
            let waiting = self
                .members
                .update(&id, |member| (member.joining.take(), member.syncing.take()));
            let (joining, syncing) = waiting.unwrap_or_default();
            let error = GroupError::NotCoordinator;
            answers.extend(joining.map(|token| (token, refused_join(error, id.clone()))));
            answers.extend(syncing.map(|token| (token, GroupAnswer::Sync(Err(error)))));
        }
        answers
    }

    fn enter(&mut self, turn: &Turn<'_, T>, state: GroupState) {
        self.state = state;
        self.state_time = turn.wall;
    }

    /// The member was heard of, or has just been answered: its session begins anew.
    fn touch(&mut self, turn: &mut Turn<'_, T>, id: &MemberId) {
        let group = &self.group;
        if let Some(member) = self.members.session_mut(id) {
            let due = turn.now + member.session_timeout();
            let key = || TimerKey::Session(group.clone(), id.clone());
            turn.timers.set(&mut member.session, due, key);
        }
    }

    fn set_alarm(&mut self, turn: &mut Turn<'_, T>, after: std::time::Duration) {
        let key = || TimerKey::Rebalance(self.group.clone());
        turn.timers.set(&mut self.alarm, turn.now + after, key);
    }

    fn cancel_alarm(&mut self, turn: &mut Turn<'_, T>) {
        let key = || TimerKey::Rebalance(self.group.clone());
        turn.timers.cancel(&mut self.alarm, key);
    }

    /// Everybody, with what the chosen assignor is told about them.
    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol_name();
        let members = self.members.iter().map(|member| JoinedMember {
            member: member.id.clone(),
            instance: member.instance.clone(),
            metadata: member.protocols.metadata(&protocol),
        });
        members.collect()
    }

    fn find_subscribed(&self) -> Option<BTreeSet<TopicName>> {
        if self.members.is_empty() {
            return self.protocol_type.as_ref().map(|_| BTreeSet::new());
        }
        let protocol = self.protocol.as_deref().filter(|_| self.is_consumers())?;
        let mut topics = BTreeSet::new();
        for member in self.members.iter() {
            topics.extend(subscribed_topics(&member.protocols.metadata(protocol))?);
        }
        Some(topics)
    }

    /// The group as it is, with these assignments or else those that it has.
    fn record(
        &self,
        turn: &Turn<'_, T>,
        assignments: Option<&BTreeMap<MemberId, Bytes>>,
    ) -> GroupRecord {
        let protocol = self.protocol_name();
        let metadata: Vec<Bytes> = self
            .members
            .iter()
            .map(|member| member.protocols.metadata(&protocol))
            .collect();
        let members = self.members.iter().zip(&metadata);
        let members = members.map(|(member, metadata)| MemberValue {
            member: member.id.as_str(),
            instance: member.instance.as_ref().map(InstanceId::as_str),
            client_id: &member.client_id,
            client_host: &member.client_host,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: metadata,
            assignment: match assignments {
                Some(assignments) => assignments
                    .get(&member.id)
                    .map(|assignment| &assignment[..])
                    .unwrap_or_default(),
                None => &member.assignment,
            },
        });
        let value = GroupValue {
            protocol_type: self.protocol_type.as_deref().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.as_deref(),
            leader: self.members.leader().map(MemberId::as_str),
            state_time: match self.state {
                GroupState::Empty => self.state_time,
                _ => turn.wall,
            },
            members: members.collect(),
        };
        GroupRecord {
            key: encode_group_key(&self.group),
            value: Some(value.encode()),
        }
    }

    fn rebalance_timeout(&self) -> std::time::Duration {
        // A client may well say 0, or less: the others need a moment all the same.
        millis(self.members.rebalance_timeout_ms().max(1))
    }
}

fn refused_join(error: GroupError, member: MemberId) -> GroupAnswer {
    GroupAnswer::Join(Err(super::answer::JoinRefused { error, member }))
}
