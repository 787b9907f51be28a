use std::collections::HashMap;

use super::answer::{GroupAnswer, GroupError, ListedGroup};
use super::check::check;
use super::classic_group::ClassicGroup;
use super::group_offsets::StoredOffset;
use super::id::GroupId;
use super::membership::Membership;
use super::pending_writes::{Awaited, PendingWrites};
use super::record::{BadRecord, GroupValue, OffsetValue, RecordKey};
use super::request::{
    DeleteOffsetsRequest, GroupRequest, HeartbeatRequest, LeaveRequest, ListRequest, SyncRequest,
};
use super::rules::GroupRules;
use super::sweep::Sweep;
use super::timers::{TimerKey, Timers};
use super::turn::Turn;
use super::write::{Effects, GroupWriteId, WriteRefused};
use crate::io::clock::Monotonic;
use crate::model::limits::{
    GROUP_BYTES_PER_PARTITION_MAX, GROUPS_PER_PARTITION_MAX, GROUPS_SWEPT_PER_TICK_MAX,
};
use crate::model::{TimestampMs, TopicName};

/// All groups of one partition of `__consumer_offsets`. `T` is where an answer goes; each one that came with a request is handed
/// back with its answer exactly once.
///
/// The life of one: `new`, `replay` of every record in the log's order, `loaded`, then `execute`, `tick`, `on_confirmed` and
/// `on_refused` in any order, at last `stop`. Every write in `Effects` must be told of exactly once, with `on_confirmed` when its
/// records are on disk or `on_refused` when they will never be; those that are confirmed, in the order of their ids. Both may come
/// much later, and other calls meanwhile.
#[derive(Debug)]
pub struct Coordinator<T> {
    rules: GroupRules,
    groups: HashMap<GroupId, ClassicGroup<T>>,
    timers: Timers,
    writes: PendingWrites<T>,
    sweep: Sweep,
    bytes: usize,
    bytes_max: usize,
    member_count: usize,
}

/// What came of a record that was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    Applied,
    /// A record of a kind that this coordinator does not keep (transactions', KIP-848's), by the version of its key.
    OtherKind(i16),
}

impl<T> Coordinator<T> {
    pub fn new(rules: GroupRules) -> Self {
        Self {
            rules,
            groups: HashMap::new(),
            timers: Timers::default(),
            writes: PendingWrites::default(),
            sweep: Sweep::default(),
            bytes: 0,
            bytes_max: GROUP_BYTES_PER_PARTITION_MAX,
            member_count: 0,
        }
    }

    /// New settings. They count from the next request, and for sessions from the next join, on.
    pub fn set_rules(&mut self, rules: GroupRules) {
        self.rules = rules;
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub fn member_count(&self) -> usize {
        self.member_count
    }

    /// From now on the groups may take so much memory, where that is less than `GROUP_BYTES_PER_PARTITION_MAX`. What they take already stays.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max.min(GROUP_BYTES_PER_PARTITION_MAX);
    }

    /// What the groups take in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// One record of the log, at the start. `value` is `None` for a tombstone. A bad record changes nothing.
    pub fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Replayed, BadRecord> {
        match RecordKey::decode(key)? {
            RecordKey::Offset {
                group,
                topic,
                partition,
            } => {
                let stored = value.map(OffsetValue::decode).transpose()?;
                let stored = stored.as_ref().map(StoredOffset::of);
                self.replay_into(group, |group| {
                    group.restore_offset(&topic, partition, stored);
                });
            }
            RecordKey::Group(id) => {
                let value = value.map(GroupValue::decode).transpose()?;
                self.replay_into(id.clone(), |group| match &value {
                    Some(value) => group.restore_membership(Membership::restored(id, value)),
                    None => group.restore_tombstone(),
                });
            }
            RecordKey::Other(kind) => return Ok(Replayed::OtherKind(kind)),
        }
        Ok(Replayed::Applied)
    }

    fn replay_into(&mut self, id: GroupId, change: impl FnOnce(&mut ClassicGroup<T>)) {
        let group = self
            .groups
            .entry(id.clone())
            .or_insert_with(|| ClassicGroup::new(id.clone()));
        change(group);
        if group.is_nothing() {
            self.groups.remove(&id);
        }
    }

    /// Everything was replayed. What is left is to `begin_sessions` in every group.
    pub fn loaded(&mut self, now: Monotonic) {
        self.bytes = self.groups.values().map(ClassicGroup::bytes).sum();
        self.member_count = self
            .groups
            .values()
            .map(|group| group.membership.member_count())
            .sum();
        self.sweep
            .put_off(now + self.rules.offsets_retention_check_interval);
    }

    pub fn group_ids(&self) -> Vec<GroupId> {
        self.groups.keys().cloned().collect()
    }

    /// The sessions of the members of `groups` begin anew.
    pub fn begin_sessions(
        &mut self,
        groups: &[GroupId],
        now: Monotonic,
        wall: TimestampMs,
    ) -> Effects<T> {
        let mut effects = Effects::default();
        for id in groups {
            self.on_group(id, now, wall, &mut effects, |group, turn| {
                group.membership.begin_sessions(turn);
            });
        }
        effects
    }

    pub fn execute(
        &mut self,
        request: GroupRequest,
        token: T,
        now: Monotonic,
        wall: TimestampMs,
    ) -> Effects<T> {
        let mut effects = Effects::default();
        match self.admit(&request, now) {
            Ok(Admitted::ToGroup(id)) => {
                self.on_group(&id, now, wall, &mut effects, |group, turn| {
                    group.execute(turn, request, token);
                });
            }
            Ok(Admitted::Answered(answer)) => effects.answers.push((token, answer)),
            Err(error) => effects.answers.push((token, request.refused(error))),
        }
        effects
    }

    /// Whether the request goes to its group, which is made where a request may make one.
    fn admit(&mut self, request: &GroupRequest, now: Monotonic) -> Result<Admitted, GroupError> {
        check(request, &self.rules)?;
        let (id, if_missing) = match request {
            GroupRequest::List(request) => {
                return Ok(Admitted::Answered(GroupAnswer::List(self.list(request))));
            }
            GroupRequest::FetchOffsets(request) => {
                let offsets = match self.groups.get(&request.group) {
                    Some(group) => group.fetch(&request.partitions),
                    None => {
                        ClassicGroup::<T>::new(request.group.clone()).fetch(&request.partitions)
                    }
                };
                return Ok(Admitted::Answered(GroupAnswer::FetchOffsets(Ok(offsets))));
            }
            GroupRequest::Describe(id) => {
                let group = self.groups.get(id).filter(|group| !group.is_ending());
                let described = group.map(|group| group.membership.describe());
                let described = described.ok_or(GroupError::GroupNotFound);
                return Ok(Admitted::Answered(GroupAnswer::Describe(described)));
            }
            GroupRequest::Join(request) => (
                &request.group,
                match request.member.is_unknown() {
                    true => Ok(()),
                    false => Err(GroupError::UnknownMember),
                },
            ),
            // Somebody who uses the group only to keep offsets makes it with the first.
            GroupRequest::Commit(request) => (
                &request.group,
                match request.generation.0 < 0 {
                    true => Ok(()),
                    false => Err(GroupError::IllegalGeneration),
                },
            ),
            GroupRequest::Sync(SyncRequest { group, .. })
            | GroupRequest::Heartbeat(HeartbeatRequest { group, .. })
            | GroupRequest::Leave(LeaveRequest { group, .. }) => {
                (group, Err(GroupError::UnknownMember))
            }
            GroupRequest::DeleteOffsets(DeleteOffsetsRequest { group, .. })
            | GroupRequest::DeleteGroup(group) => (group, Err(GroupError::GroupNotFound)),
        };
        let is_new = match self.groups.get(id) {
            Some(group) if group.is_ending() => return Err(GroupError::CoordinatorLoading),
            Some(_) => false,
            None => {
                if_missing?;
                true
            }
        };
        let group = self.groups.get(id);
        let growth = match group {
            Some(group) => group.growth(request),
            None => ClassicGroup::<T>::new(id.clone()).growth(request),
        };
        let is_full = growth > 0 && self.bytes + growth > self.bytes_max;
        if is_full || (is_new && self.groups.len() >= GROUPS_PER_PARTITION_MAX) {
            self.sweep.hurry(now);
            return Err(match request {
                GroupRequest::Commit(_) => GroupError::CommitTooLarge,
                _ => GroupError::GroupFull,
            });
        }
        if is_new {
            let group = ClassicGroup::new(id.clone());
            self.bytes += group.bytes();
            self.groups.insert(id.clone(), group);
        }
        Ok(Admitted::ToGroup(id.clone()))
    }

    /// Lets one group do something; what it then takes is counted, and if it is nothing any more it goes.
    fn on_group(
        &mut self,
        id: &GroupId,
        now: Monotonic,
        wall: TimestampMs,
        effects: &mut Effects<T>,
        change: impl FnOnce(&mut ClassicGroup<T>, &mut Turn<'_, T>),
    ) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        let bytes = group.bytes();
        let member_count = group.membership.member_count();
        let mut turn = Turn {
            rules: &self.rules,
            now,
            wall,
            timers: &mut self.timers,
            writes: &mut self.writes,
            effects,
            written: 0,
            is_logged: false,
        };
        change(group, &mut turn);
        let (written, is_logged) = (turn.written, turn.is_logged);
        group.count_writes(written, is_logged);
        self.bytes = self.bytes + group.bytes() - bytes;
        self.member_count = self.member_count + group.membership.member_count() - member_count;
        if group.is_nothing() {
            self.bytes -= group.bytes();
            self.groups.remove(id);
        }
    }

    fn list(&self, request: &ListRequest) -> Vec<ListedGroup> {
        let asked = |state| match &request.states {
            Some(states) => states.contains(&state),
            None => true,
        };
        let groups = self.groups.iter().filter(|(_, group)| !group.is_ending());
        let groups = groups.filter(|(_, group)| asked(group.state()));
        let listed = groups.map(|(id, group)| ListedGroup {
            group: id.clone(),
            protocol_type: group.membership.protocol_type(),
            state: group.state(),
        });
        listed.collect()
    }

    /// What is due: sessions, rebalances, expired offsets; how old an offset is goes by `judging`, the time without what the wall clock may
    /// have jumped ahead. To be called when `next_deadline` has come; earlier or more often does no harm.
    pub fn tick(&mut self, now: Monotonic, wall: TimestampMs, judging: TimestampMs) -> Effects<T> {
        let mut effects = Effects::default();
        while let Some(key) = self.timers.pop(now) {
            match key {
                TimerKey::Session(id, member) => {
                    self.on_group(&id, now, wall, &mut effects, |group, turn| {
                        group.membership.on_session_end(turn, &member);
                    });
                }
                TimerKey::Rebalance(id) => {
                    self.on_group(&id, now, wall, &mut effects, |group, turn| {
                        if group.membership.alarm_came(turn) {
                            group.membership.on_alarm(turn);
                        }
                    });
                }
            }
        }
        let again = now + self.rules.offsets_retention_check_interval;
        if self.sweep.is_due(now) {
            self.sweep.begin(now, again, self.groups.keys().cloned());
        }
        for id in self.sweep.take(GROUPS_SWEPT_PER_TICK_MAX) {
            self.on_group(&id, now, wall, &mut effects, |group, turn| {
                group.expire(turn, judging);
            });
        }
        effects
    }

    /// When `tick` has something to do. It may turn out to be nothing.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let sweep = self.sweep.next().filter(|_| !self.groups.is_empty());
        [self.timers.next(), sweep].into_iter().flatten().min()
    }

    /// The records of that write are on disk.
    pub fn on_confirmed(
        &mut self,
        write: GroupWriteId,
        now: Monotonic,
        wall: TimestampMs,
    ) -> Effects<T> {
        let mut effects = Effects::default();
        if let Some((id, awaited)) = self.writes.end(write) {
            self.on_group(&id, now, wall, &mut effects, |group, turn| {
                group.on_confirmed(turn, awaited);
            });
        }
        effects
    }

    /// The records of that write will never be in the log.
    pub fn on_refused(
        &mut self,
        write: GroupWriteId,
        why: WriteRefused,
        now: Monotonic,
        wall: TimestampMs,
    ) -> Effects<T> {
        let mut effects = Effects::default();
        if let Some((id, awaited)) = self.writes.end(write) {
            self.on_group(&id, now, wall, &mut effects, |group, turn| {
                group.on_refused(turn, awaited, why);
            });
        }
        effects
    }

    /// These topics were deleted: what was committed for them goes.
    pub fn forget_topics(
        &mut self,
        groups: &[GroupId],
        topics: &[TopicName],
        now: Monotonic,
        wall: TimestampMs,
    ) -> Effects<T> {
        let mut effects = Effects::default();
        for id in groups {
            self.on_group(id, now, wall, &mut effects, |group, turn| {
                group.forget_topics(turn, topics);
            });
        }
        effects
    }

    /// This is not the coordinator any more: everybody who waits is told so.
    pub fn stop(&mut self) -> Vec<(T, GroupAnswer)> {
        let mut answers: Vec<_> = self.writes.drain().filter_map(Awaited::stopped).collect();
        for group in self.groups.values_mut() {
            answers.extend(group.membership.stop());
        }
        answers
    }
}

/// Where a request goes.
enum Admitted {
    ToGroup(GroupId),
    Answered(GroupAnswer),
}
