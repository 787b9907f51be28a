//! The coordinators of groups: one for each partition of the offsets topic that this shard owns. Here requests reach them, and what comes
//! of each call goes on: answers to who waits, records to the log, deadlines to the timer.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::config::GroupConfig;
use crate::group::{
    Coordinator, Effects, GroupAnswer, GroupError, GroupId, GroupRules, GroupWrite, GroupWriteId,
};
use crate::io::clock::Monotonic;
use crate::io::event::Signal;
use crate::io::executor;
use crate::metadata::MetadataDelta;
use crate::metrics::{Counter, Gauge};
use crate::model::internal_topic::OFFSETS_TOPIC;
use crate::model::limits::{GROUP_TICK_MIN_MS, GROUPS_PER_SLICE};
use crate::model::{TimestampMs, TopicName, TopicPartition};
use crate::shard::call::{Call, ReplyTo};
use crate::shard::command::{AppendReply, GroupItem, GroupReply};
use crate::shard::hosted::HostedPartition;
use crate::shard::reply_group::{Complete, ReplyGroup, ReplySlot};
use crate::shard::runtime::Shard;

/// All coordinators of a shard, and what wakes the tasks that work for them.
#[derive(Default)]
pub struct GroupHost {
    hosted: RefCell<FxHashMap<TopicPartition, Rc<HostedGroups>>>,
    /// Those with records to write.
    unwritten: RefCell<Vec<Rc<HostedGroups>>>,
    write: Signal,
    /// A deadline came that is earlier than the one the timer is set to.
    earlier: Signal,
    timer: Cell<Option<Monotonic>>,
}

/// The groups of one partition.
pub struct HostedGroups {
    pub(super) partition: Rc<HostedPartition>,
    pub(super) coordinator: RefCell<HostedCoordinator>,
    pub(super) state: Cell<Loading>,
    /// Topics that were deleted while the partition was loading.
    pub(super) forgotten: RefCell<Vec<TopicName>>,
    /// To be appended.
    pub(super) writes: RefCell<Vec<GroupWrite>>,
    /// Appended and not yet confirmed, in the log's order.
    pub(super) appends: RefCell<VecDeque<OwnAppend>>,
    pub(super) is_confirming: Cell<bool>,
    /// Changes of all groups that are under way, some groups at a time.
    begun_slices: Cell<usize>,
}

/// A batch of a coordinator on its way to the disk.
pub struct OwnAppend {
    pub(super) writes: Vec<GroupWriteId>,
    pub(super) done: Call<Vec<AppendReply>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    Waits,
    Reads,
    Done,
}

impl GroupHost {
    pub fn all(&self) -> Vec<Rc<HostedGroups>> {
        self.hosted.borrow().values().cloned().collect()
    }

    /// Raised when there are records to write.
    pub fn write(&self) -> &Signal {
        &self.write
    }

    pub fn take_unwritten(&self) -> Vec<Rc<HostedGroups>> {
        std::mem::take(&mut *self.unwritten.borrow_mut())
    }

    /// There may be an earlier deadline than the one that is waited for.
    pub fn wake_timer(&self) {
        self.earlier.raise();
    }

    fn loaded(&self) -> Vec<Rc<HostedGroups>> {
        let hosted = self.hosted.borrow();
        hosted
            .values()
            .filter(|it| it.is_loaded())
            .cloned()
            .collect()
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        let hosted = self.hosted.borrow();
        let loaded = hosted.values().filter(|it| it.is_loaded());
        loaded
            .filter_map(|it| it.coordinator.borrow().next_deadline())
            .min()
    }
}

impl HostedGroups {
    pub fn is_loaded(&self) -> bool {
        self.state.get() == Loading::Done
    }
}

impl Shard {
    /// Gives every partition of the offsets topic that is hosted here its coordinator.
    pub(super) fn open_groups(self: &Rc<Self>) {
        let rules = rules_of(&self.config().groups);
        let image = self.image();
        let topic = image.topic(OFFSETS_TOPIC).into_iter();
        for (id, _) in topic.flat_map(|topic| topic.partitions_from(0)) {
            let mut hosted = self.groups().hosted.borrow_mut();
            let Some(partition) = self.partition(id).filter(|_| !hosted.contains_key(&id)) else {
                continue;
            };
            let groups = HostedGroups {
                coordinator: RefCell::new(Coordinator::new(rules.clone())),
                state: Cell::new(Loading::Waits),
                forgotten: RefCell::default(),
                writes: RefCell::default(),
                appends: RefCell::default(),
                is_confirming: Cell::new(false),
                begun_slices: Cell::new(0),
                partition,
            };
            hosted.insert(groups.partition.partition, Rc::new(groups));
        }
        self.load_groups();
    }

    pub(super) fn set_group_rules(&self) {
        let rules = rules_of(&self.config().groups);
        for groups in self.groups().all() {
            groups.coordinator.borrow_mut().set_rules(rules.clone());
        }
    }

    pub(super) fn ask_groups(
        self: &Rc<Self>,
        items: Vec<GroupItem>,
        reply: ReplyTo<Vec<GroupReply>>,
    ) {
        match ReplyGroup::open(items.len(), reply) {
            Ok(slots) => {
                for (item, slot) in items.into_iter().zip(slots) {
                    self.ask_group(item, slot);
                }
            }
            Err(Complete { reply, replies }) => self.answer(reply, replies),
        }
    }

    fn ask_group(self: &Rc<Self>, item: GroupItem, slot: ReplySlot<GroupReply>) {
        let groups = match self.coordinator_of(item.partition) {
            Ok(groups) => groups,
            Err(error) => return self.answer_group(slot, Err(error)),
        };
        self.run_groups(&groups, |coordinator, now, wall| {
            coordinator.execute(item.request, slot, now, wall)
        });
    }

    fn coordinator_of(&self, partition: TopicPartition) -> Result<Rc<HostedGroups>, GroupError> {
        let hosted = self.groups().hosted.borrow();
        match hosted.get(&partition) {
            // Its groups are loaded when it is open; until then there is nobody else to ask.
            None if self.pending().why(partition).is_some() => Err(GroupError::CoordinatorLoading),
            None => Err(GroupError::NotCoordinator),
            Some(_) if self.is_stopping() => Err(GroupError::NotCoordinator),
            Some(groups) if !groups.is_loaded() => Err(GroupError::CoordinatorLoading),
            Some(groups) => Ok(groups.clone()),
        }
    }

    /// Calls a coordinator and sees to what comes of it.
    pub(super) fn run_groups(
        self: &Rc<Self>,
        groups: &Rc<HostedGroups>,
        call: impl FnOnce(&mut HostedCoordinator, Monotonic, TimestampMs) -> GroupEffects,
    ) {
        let (now, wall) = (self.clock().monotonic(), self.stamping_time());
        let (effects, deadline) = {
            let mut coordinator = groups.coordinator.borrow_mut();
            let effects = call(&mut coordinator, now, wall);
            (effects, coordinator.next_deadline())
        };
        let Effects {
            answers,
            writes,
            generation_count,
        } = effects;
        self.metrics()
            .count(Counter::GroupRebalances, generation_count);
        for (slot, answer) in answers {
            self.count_answer(&answer);
            self.answer_group(slot, Ok(answer));
        }
        let host = self.groups();
        if !writes.is_empty() {
            let mut unwritten = groups.writes.borrow_mut();
            if unwritten.is_empty() {
                host.unwritten.borrow_mut().push(groups.clone());
            }
            unwritten.extend(writes);
            host.write.raise();
        }
        if let Some(deadline) = deadline
            && host.timer.get().is_none_or(|timer| deadline < timer)
        {
            host.earlier.raise();
        }
    }

    /// The same for all groups of a coordinator, some at a time, between which others have their turn.
    pub(super) async fn run_in_slices(
        self: &Rc<Self>,
        groups: &Rc<HostedGroups>,
        call: impl Fn(&mut HostedCoordinator, &[GroupId], Monotonic, TimestampMs) -> GroupEffects,
    ) {
        groups.begun_slices.set(groups.begun_slices.get() + 1);
        let ids = groups.coordinator.borrow().group_ids();
        for slice in ids.chunks(GROUPS_PER_SLICE) {
            self.run_groups(groups, |coordinator, now, wall| {
                call(coordinator, slice, now, wall)
            });
            executor::yield_if_needed().await;
        }
        groups.begun_slices.set(groups.begun_slices.get() - 1);
    }

    fn answer_group(&self, slot: ReplySlot<GroupReply>, answer: GroupReply) {
        if let Some(Complete { reply, replies }) = slot.fill(answer) {
            self.answer(reply, replies);
        }
    }

    fn count_answer(&self, answer: &GroupAnswer) {
        if let GroupAnswer::Commit(offsets) = answer {
            let committed_count = offsets.iter().filter(|it| it.is_ok()).count();
            self.metrics()
                .count(Counter::OffsetCommits, committed_count as u64);
        }
    }

    pub(super) fn publish_group_gauges(&self) {
        let (mut group_count, mut member_count, mut bytes, mut loading_count) = (0, 0, 0, 0);
        for groups in self.groups().hosted.borrow().values() {
            let coordinator = groups.coordinator.borrow();
            group_count += coordinator.group_count();
            member_count += coordinator.member_count();
            bytes += coordinator.bytes();
            loading_count += usize::from(!groups.is_loaded());
        }
        self.divide_group_memory(bytes);
        let metrics = self.metrics();
        metrics.set_gauge(Gauge::Groups, group_count as u64);
        metrics.set_gauge(Gauge::GroupMembers, member_count as u64);
        metrics.set_gauge(Gauge::GroupBytes, bytes as u64);
        metrics.set_gauge(Gauge::GroupPartitionsLoading, loading_count as u64);
    }

    /// Each partition may grow by an equal part of what is left of the shard's memory for groups, so that together they never exceed it.
    fn divide_group_memory(&self, used_bytes: usize) {
        let hosted = self.groups().hosted.borrow();
        let left_bytes = self.memory().group_bytes.saturating_sub(used_bytes);
        let part_bytes = left_bytes / hosted.len().max(1);
        for groups in hosted.values() {
            let mut coordinator = groups.coordinator.borrow_mut();
            let bytes = coordinator.bytes();
            coordinator.set_bytes_max(bytes + part_bytes);
        }
    }

    // ---- time

    /// Runs as long as the shard does: lets the coordinators do what is due, when it is.
    pub(super) async fn tick_groups(self: Rc<Self>) {
        let host = self.groups();
        loop {
            let deadline = host.next_deadline();
            host.timer.set(deadline);
            match deadline {
                None => host.earlier.wait().await,
                Some(deadline) => {
                    let wait = deadline.since(self.clock().monotonic());
                    let wait = wait.max(Duration::from_millis(GROUP_TICK_MIN_MS));
                    // Either way the deadlines are looked at anew.
                    let _ = executor::timeout(wait, host.earlier.wait()).await;
                }
            }
            for groups in host.loaded() {
                let now = self.clock().monotonic();
                let deadline = groups.coordinator.borrow().next_deadline();
                if deadline.is_some_and(|deadline| deadline <= now) && !self.is_stopping() {
                    let judging = self.judging_time();
                    self.run_groups(&groups, |coordinator, now, wall| {
                        coordinator.tick(now, wall, judging)
                    });
                    executor::yield_if_needed().await;
                }
            }
        }
    }

    // ---- topics

    /// The offsets that were committed for deleted topics go.
    pub(super) async fn forget_offsets_of(self: &Rc<Self>, delta: &MetadataDelta) {
        let deleted = delta.topics.iter().filter_map(|change| change.deleted());
        let deleted: Vec<TopicName> = deleted.map(|topic| topic.name.clone()).collect();
        if deleted.is_empty() {
            return;
        }
        for groups in self.groups().all() {
            if groups.is_loaded() {
                self.run_in_slices(&groups, |coordinator, ids, now, wall| {
                    coordinator.forget_topics(ids, &deleted, now, wall)
                })
                .await;
            } else {
                groups
                    .forgotten
                    .borrow_mut()
                    .extend(deleted.iter().cloned());
            }
        }
    }

    // ---- the end

    /// Completes when everything that the coordinators had to write is written and everybody who waits has been told to look for
    /// another coordinator. The shard is stopping: no request comes any more.
    pub(super) async fn stop_groups(self: &Rc<Self>) {
        for groups in self.groups().all() {
            while !groups.writes.borrow().is_empty()
                || groups.is_confirming.get()
                || groups.begun_slices.get() > 0
            {
                self.write_out(&groups);
                executor::sleep(Duration::from_millis(GROUP_TICK_MIN_MS)).await;
            }
            let answers = groups.coordinator.borrow_mut().stop();
            for (slot, answer) in answers {
                self.answer_group(slot, Ok(answer));
            }
        }
    }
}

/// A coordinator, with what this product hands back to those who wait.
pub type HostedCoordinator = Coordinator<ReplySlot<GroupReply>>;

type GroupEffects = Effects<ReplySlot<GroupReply>>;

fn rules_of(config: &GroupConfig) -> GroupRules {
    GroupRules {
        min_session_timeout_ms: config.min_session_timeout_ms,
        max_session_timeout_ms: config.max_session_timeout_ms,
        initial_rebalance_delay: Duration::from_millis(config.initial_rebalance_delay_ms),
        max_size: config.max_size,
        offset_metadata_max_bytes: config.offset_metadata_max_bytes,
        offsets_retention: Duration::from_millis(config.offsets_retention_ms),
        offsets_retention_check_interval: Duration::from_millis(
            config.offsets_retention_check_interval_ms,
        ),
    }
}
