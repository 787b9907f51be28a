use std::time::Duration;

use super::answer::{Committed, FetchedOffset, GroupAnswer, GroupError};
use super::group_offsets::{GroupOffsets, StoredOffset};
use super::id::GroupId;
use super::membership::Membership;
use super::pending_writes::{Awaited, CommittingOffset};
use super::record::{encode_group_key, encode_offset_key};
use super::request::{
    CommitRequest, DeleteOffsetsRequest, FetchPartitions, GroupRequest, OffsetToCommit,
};
use super::rules::GroupRules;
use super::state::GroupState;
use super::turn::Turn;
use super::write::{GroupRecord, WriteRefused};
use crate::model::limits::OFFSETS_PER_GROUP_MAX;
use crate::model::{PartitionIndex, TimestampMs, TopicId, TopicName};

/// The longest metadata that a record can hold.
const RECORD_STRING_BYTES_MAX: usize = i16::MAX as usize;

/// One group: its members, and the offsets that they, or others while nobody is here, have committed.
#[derive(Debug)]
pub struct ClassicGroup<T> {
    pub membership: Membership<T>,
    offsets: GroupOffsets,
    /// Writes of this group that are not on disk yet.
    writing: usize,
    /// The log has a record of the group itself, which takes a tombstone.
    is_logged: bool,
    /// Its tombstones are on their way to the disk.
    is_ending: bool,
}

impl<T> ClassicGroup<T> {
    pub fn new(id: GroupId) -> Self {
        Self {
            membership: Membership::new(id),
            offsets: GroupOffsets::default(),
            writing: 0,
            is_logged: false,
            is_ending: false,
        }
    }

    pub fn id(&self) -> &GroupId {
        self.membership.group()
    }

    pub fn state(&self) -> GroupState {
        match self.is_ending {
            true => GroupState::Dead,
            false => self.membership.state(),
        }
    }

    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Nothing would be lost without it.
    pub fn is_nothing(&self) -> bool {
        self.membership.is_deserted()
            && self.offsets.is_empty()
            && self.writing == 0
            && !self.is_logged
    }

    pub fn bytes(&self) -> usize {
        const FIXED_BYTES: usize = 768;
        FIXED_BYTES + 3 * self.id().as_str().len() + self.membership.bytes() + self.offsets.bytes()
    }

    /// Writes were begun for this group; `is_logged`: one is a record of the group itself.
    pub fn count_writes(&mut self, count: usize, is_logged: bool) {
        self.writing += count;
        self.is_logged |= is_logged;
    }

    /// How much more memory the request wants, roughly; what would be answered with an error counts all the same.
    pub fn growth(&self, request: &GroupRequest) -> usize {
        match request {
            GroupRequest::Join(request) => self.membership.join_growth(request),
            GroupRequest::Sync(request) => self.membership.sync_growth(request),
            GroupRequest::Commit(request) => {
                let mut growth = 0usize;
                for wanted in &request.offsets {
                    let held = self.offsets.bytes_of(&wanted.topic, wanted.partition);
                    let wanted = GroupOffsets::SLOT_BYTES + wanted.metadata.len();
                    growth += wanted.saturating_sub(held);
                }
                growth
            }
            _ => 0,
        }
    }

    /// Does what the request asks. Those that only ask are answered without a turn.
    pub fn execute(&mut self, turn: &mut Turn<'_, T>, request: GroupRequest, token: T) {
        match request {
            GroupRequest::Join(request) => self.membership.join(turn, &request, token),
            GroupRequest::Sync(request) => self.membership.sync(turn, &request, token),
            GroupRequest::Heartbeat(request) => {
                let result = self.membership.heartbeat(turn, &request);
                turn.answer(token, GroupAnswer::Heartbeat(result));
            }
            GroupRequest::Leave(request) => {
                let results = self.membership.leave(turn, &request.members);
                turn.answer(token, GroupAnswer::Leave(Ok(results)));
            }
            GroupRequest::Commit(request) => self.commit(turn, request, token),
            GroupRequest::DeleteOffsets(request) => self.delete_offsets(turn, request, token),
            GroupRequest::DeleteGroup(_) => self.delete(turn, token),
            GroupRequest::FetchOffsets(request) => {
                let offsets = self.fetch(&request.partitions);
                turn.answer(token, GroupAnswer::FetchOffsets(Ok(offsets)));
            }
            GroupRequest::Describe(_) => {
                let described = self.membership.describe();
                turn.answer(token, GroupAnswer::Describe(Ok(described)));
            }
            GroupRequest::List(_) => unreachable!("a list is of all groups"),
        }
    }

    // ---- from the log

    pub fn restore_membership(&mut self, membership: Membership<T>) {
        self.membership = membership;
        self.is_logged = true;
    }

    pub fn restore_tombstone(&mut self) {
        self.membership = Membership::new(self.id().clone());
        self.is_logged = false;
    }

    pub fn restore_offset(
        &mut self,
        topic: &TopicName,
        partition: PartitionIndex,
        stored: Option<StoredOffset>,
    ) {
        match stored {
            Some(stored) => self.offsets.put(topic, partition, stored),
            None => self.offsets.remove(topic, partition),
        }
    }

    // ---- offsets

    fn commit(&mut self, turn: &mut Turn<'_, T>, request: CommitRequest, token: T) {
        let checked = self.membership.check_commit(
            turn,
            request.generation,
            &request.member,
            request.instance.as_ref(),
        );
        if let Err(error) = checked {
            let results = vec![Err(error); request.offsets.len()];
            return turn.answer(token, GroupAnswer::Commit(results));
        }
        let expire_time = match request.retention_ms {
            Some(retention_ms) => TimestampMs(turn.wall.0.saturating_add(retention_ms)),
            None => TimestampMs::NONE,
        };
        let mut results = Vec::with_capacity(request.offsets.len());
        let mut records = Vec::new();
        let mut offsets = Vec::new();
        for (index, wanted) in request.offsets.into_iter().enumerate() {
            let checked = self.check_offset(turn, &wanted);
            results.push(checked);
            if checked.is_ok() {
                self.offsets.begin(&wanted.topic, wanted.partition);
                let stored = StoredOffset {
                    offset: wanted.offset,
                    leader_epoch: wanted.leader_epoch,
                    metadata: wanted.metadata.into(),
                    commit_time: turn.wall,
                    expire_time,
                    topic_id: wanted.topic_id,
                };
                records.push(self.offset_record(&wanted.topic, wanted.partition, &stored));
                offsets.push(CommittingOffset {
                    index,
                    topic: wanted.topic,
                    partition: wanted.partition,
                    stored,
                });
            }
        }
        if records.is_empty() {
            return turn.answer(token, GroupAnswer::Commit(results));
        }
        let awaited = Awaited::Commit {
            token,
            results,
            offsets,
        };
        turn.write(self.id(), records, awaited);
    }

    fn check_offset(&self, turn: &Turn<'_, T>, wanted: &OffsetToCommit) -> Result<(), GroupError> {
        let metadata_max = turn.rules.offset_metadata_max_bytes;
        if wanted.metadata.len() > metadata_max.min(RECORD_STRING_BYTES_MAX) {
            return Err(GroupError::OffsetMetadataTooLarge);
        }
        if self.offsets.len() >= OFFSETS_PER_GROUP_MAX
            && !self.offsets.has(&wanted.topic, wanted.partition)
        {
            return Err(GroupError::CommitTooLarge);
        }
        Ok(())
    }

    pub fn fetch(&self, partitions: &FetchPartitions) -> Vec<FetchedOffset> {
        match partitions {
            FetchPartitions::All => {
                let stored = self.offsets.iter();
                let stored = stored.filter_map(|(topic, partition, stored)| {
                    Some(fetched(topic, partition, Some(stored?)))
                });
                stored.collect()
            }
            FetchPartitions::These(topics) => {
                let mut found = Vec::new();
                for asked in topics {
                    for &partition in &asked.partitions {
                        let stored = self.offsets.get(&asked.topic, partition);
                        let stored = stored.filter(|it| is_same_topic(it.topic_id, asked.topic_id));
                        found.push(fetched(&asked.topic, partition, stored));
                    }
                }
                found
            }
        }
    }

    fn delete_offsets(&mut self, turn: &mut Turn<'_, T>, request: DeleteOffsetsRequest, token: T) {
        if self.state() != GroupState::Empty && !self.membership.is_consumers() {
            let error = GroupError::NonEmptyGroup;
            return turn.answer(token, GroupAnswer::DeleteOffsets(Err(error)));
        }
        let (mut results, mut gone) = (Vec::new(), Vec::new());
        for (topic, partitions) in request.partitions {
            let is_subscribed = self.membership.is_subscribed(&topic);
            for partition in partitions {
                if is_subscribed {
                    results.push(Err(GroupError::SubscribedToTopic));
                    continue;
                }
                results.push(Ok(()));
                if self.offsets.has(&topic, partition) {
                    gone.push((topic.clone(), partition));
                }
            }
        }
        if gone.is_empty() {
            return turn.answer(token, GroupAnswer::DeleteOffsets(Ok(results)));
        }
        self.write_offset_tombstones(turn, gone, Some((token, results)));
    }

    /// What was committed for a topic that is no more.
    pub fn forget_topics(&mut self, turn: &mut Turn<'_, T>, topics: &[TopicName]) {
        let mut gone = Vec::new();
        for topic in topics {
            let partitions = self.offsets.partitions_of(topic);
            gone.extend(
                partitions
                    .into_iter()
                    .map(|partition| (topic.clone(), partition)),
            );
        }
        if !gone.is_empty() && !self.is_ending {
            self.write_offset_tombstones(turn, gone, None);
        }
    }

    fn write_offset_tombstones(
        &mut self,
        turn: &mut Turn<'_, T>,
        gone: Vec<(TopicName, PartitionIndex)>,
        answer: Option<(T, Vec<Result<(), GroupError>>)>,
    ) {
        let records = gone
            .iter()
            .map(|(topic, partition)| self.offset_tombstone(topic, *partition))
            .collect();
        let awaited = Awaited::OffsetsGone {
            offsets: gone,
            answer,
        };
        turn.write(self.id(), records, awaited);
    }

    // ---- the end

    fn delete(&mut self, turn: &mut Turn<'_, T>, token: T) {
        if self.state() != GroupState::Empty {
            let error = GroupError::NonEmptyGroup;
            return turn.answer(token, GroupAnswer::DeleteGroup(Err(error)));
        }
        self.end(turn, Some(token));
    }

    fn end(&mut self, turn: &mut Turn<'_, T>, token: Option<T>) {
        let offsets = self.offsets.iter();
        let mut records: Vec<GroupRecord> = offsets
            .map(|(topic, partition, _)| self.offset_tombstone(topic, partition))
            .collect();
        if self.is_logged {
            records.push(GroupRecord {
                key: encode_group_key(self.id()),
                value: None,
            });
        }
        if records.is_empty() {
            // It is only an id that somebody was given.
            if let Some(token) = token {
                turn.answer(token, GroupAnswer::DeleteGroup(Ok(())));
            }
            return self.membership.take_back_ids(turn);
        }
        self.is_ending = true;
        turn.write(self.id(), records, Awaited::GroupGone { token });
    }

    /// KIP-211: the offsets of a group that has been empty for the retention time, those of topics that no member wants any more and of
    /// groups without members by their own age, all as of `judging`. The group goes with the last of them.
    pub fn expire(&mut self, turn: &mut Turn<'_, T>, judging: TimestampMs) {
        if self.writing > 0 || self.is_ending {
            return;
        }
        let mut gone = Vec::new();
        for (topic, partition, stored) in self.offsets.iter() {
            if stored.is_some_and(|stored| self.is_expired(turn.rules, judging, topic, stored)) {
                gone.push((topic.clone(), partition));
            }
        }
        if gone.len() == self.offsets.len() && self.membership.is_deserted() {
            return self.end(turn, None);
        }
        if !gone.is_empty() {
            self.write_offset_tombstones(turn, gone, None);
        }
    }

    fn is_expired(
        &self,
        rules: &GroupRules,
        judging: TimestampMs,
        topic: &TopicName,
        stored: &StoredOffset,
    ) -> bool {
        let since = if self.membership.is_simple() {
            stored.commit_time
        } else {
            match self.membership.state() {
                // The later of the two: a tool may have set offsets since.
                GroupState::Empty => self.membership.state_time().max(stored.commit_time),
                GroupState::Stable
                    if self.membership.knows_subscriptions()
                        && !self.membership.is_subscribed(topic) =>
                {
                    stored.commit_time
                }
                _ => return false,
            }
        };
        if stored.expire_time != TimestampMs::NONE {
            return judging >= stored.expire_time;
        }
        let age_ms = judging.0.saturating_sub(since.0);
        u64::try_from(age_ms)
            .is_ok_and(|age_ms| Duration::from_millis(age_ms) >= rules.offsets_retention)
    }

    // ---- what has become of a write

    pub fn on_confirmed(&mut self, turn: &mut Turn<'_, T>, awaited: Awaited<T>) {
        self.writing -= 1;
        match awaited {
            Awaited::Commit {
                token,
                results,
                offsets,
            } => {
                for it in offsets {
                    self.offsets.confirm(&it.topic, it.partition, it.stored);
                }
                turn.answer(token, GroupAnswer::Commit(results));
            }
            Awaited::Assignment {
                generation,
                assignments,
            } => self
                .membership
                .on_assignment_confirmed(turn, generation, assignments),
            Awaited::Takeover(takeover) => {
                self.membership.on_takeover_confirmed(turn, takeover);
            }
            Awaited::Emptied => {}
            Awaited::OffsetsGone { offsets, answer } => {
                for (topic, partition) in offsets {
                    self.offsets.remove(&topic, partition);
                }
                if let Some((token, results)) = answer {
                    turn.answer(token, GroupAnswer::DeleteOffsets(Ok(results)));
                }
            }
            Awaited::GroupGone { token } => {
                self.is_logged = false;
                self.is_ending = false;
                self.offsets.remove_all();
                self.membership.take_back_ids(turn);
                if let Some(token) = token {
                    turn.answer(token, GroupAnswer::DeleteGroup(Ok(())));
                }
            }
        }
    }

    pub fn on_refused(&mut self, turn: &mut Turn<'_, T>, awaited: Awaited<T>, why: WriteRefused) {
        self.writing -= 1;
        match awaited {
            Awaited::Commit {
                token,
                mut results,
                offsets,
            } => {
                for it in offsets {
                    self.offsets.refuse(&it.topic, it.partition);
                    results[it.index] = Err(why.commit_error());
                }
                turn.answer(token, GroupAnswer::Commit(results));
            }
            Awaited::Assignment { generation, .. } => {
                self.membership.on_assignment_refused(turn, generation, why);
            }
            Awaited::Takeover(takeover) => {
                self.membership.on_takeover_refused(turn, takeover, why);
            }
            // The log then says that members are there; they are not heard of after a restart.
            Awaited::Emptied => {}
            Awaited::OffsetsGone { answer, .. } => {
                if let Some((token, _)) = answer {
                    turn.answer(token, GroupAnswer::DeleteOffsets(Err(why.commit_error())));
                }
            }
            Awaited::GroupGone { token } => {
                self.is_ending = false;
                if let Some(token) = token {
                    turn.answer(token, GroupAnswer::DeleteGroup(Err(why.error())));
                }
            }
        }
    }

    fn offset_record(
        &self,
        topic: &TopicName,
        partition: PartitionIndex,
        stored: &StoredOffset,
    ) -> GroupRecord {
        GroupRecord {
            key: encode_offset_key(self.id(), topic, partition),
            value: Some(stored.value().encode()),
        }
    }

    fn offset_tombstone(&self, topic: &TopicName, partition: PartitionIndex) -> GroupRecord {
        GroupRecord {
            key: encode_offset_key(self.id(), topic, partition),
            value: None,
        }
    }
}

fn fetched(
    topic: &TopicName,
    partition: PartitionIndex,
    stored: Option<&StoredOffset>,
) -> FetchedOffset {
    FetchedOffset {
        topic: topic.clone(),
        partition,
        committed: stored.map(|stored| Committed {
            offset: stored.offset,
            leader_epoch: stored.leader_epoch,
            metadata: stored.metadata.clone(),
        }),
    }
}

/// An offset of a topic that was deleted says nothing about the one that has its name now.
fn is_same_topic(stored: TopicId, asked: TopicId) -> bool {
    stored == asked || stored == TopicId::ZERO || asked == TopicId::ZERO
}
