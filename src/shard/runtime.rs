//! The shard itself: its partitions, and the table of what it can be asked.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::BrokerConfig;
use crate::io::chunk::ChunkPool;
use crate::io::clock::Clock;
use crate::io::event::Signal;
use crate::io::executor;
use crate::metadata::MetadataImage;
use crate::metrics::{Gauge, ShardMetrics};
use crate::model::{ShardId, TopicPartition};
use crate::record::InflateBounds;
use crate::shard::cache_budget::CacheBudget;
use crate::shard::cache_order::CacheOrder;
use crate::shard::call::{Call, ReplyTo};
use crate::shard::check_slots::CheckSlots;
use crate::shard::command::{Command, Message};
use crate::shard::deleted_files::DeletedFiles;
use crate::shard::group_host::GroupHost;
use crate::shard::hosted::{HostedLeader, HostedPartition};
use crate::shard::log_dir::LogDir;
use crate::shard::memory_share::MemoryShare;
use crate::shard::metadata::MetadataChange;
use crate::shard::metadata_queue::MetadataQueue;
use crate::shard::pending_partitions::PendingPartitions;
use crate::shard::retention_clock::RetentionClock;
use crate::shard::router::Router;
use crate::shard::stray_directories::StrayDirectories;
use crate::shard::sync::SyncGroup;
use crate::storage::log::LogId;
use crate::storage::open_files::OpenFiles;
use crate::storage::read_ahead::ReadAhead;

/// What a shard is made of besides its partitions.
pub struct ShardParts {
    pub router: Router,
    pub clock: Clock,
    pub metrics: ShardMetrics,
    pub log_dir: LogDir,
    pub config: Arc<BrokerConfig>,
    /// Memory for the tails of logs.
    pub cache_budget: CacheBudget,
    pub memory: MemoryShare,
    /// Segment files that this shard may have open.
    pub open_files_max: usize,
}

pub struct Shard {
    router: Router,
    clock: Clock,
    metrics: ShardMetrics,
    log_dir: LogDir,
    config: RefCell<Arc<BrokerConfig>>,
    image: RefCell<Arc<MetadataImage>>,
    partitions: RefCell<FxHashMap<TopicPartition, Rc<HostedPartition>>>,
    pending: PendingPartitions,
    metadata_queue: MetadataQueue<MetadataChange>,
    next_log_id: Cell<u64>,
    pool: ChunkPool,
    files: OpenFiles,
    memory: MemoryShare,
    ahead: ReadAhead,
    syncs: SyncGroup,
    check_slots: CheckSlots,
    /// For lookups by time, which inflate batches too; each holds its largest record beside the window.
    lookup_slots: CheckSlots,
    groups: GroupHost,
    retention_clock: RefCell<RetentionClock>,
    deleted_files: RefCell<DeletedFiles>,
    stray_directories: RefCell<StrayDirectories>,
    turn: Signal,
    dirty: RefCell<Vec<Rc<HostedPartition>>>,
    active: RefCell<Vec<Rc<HostedPartition>>>,
    cache: RefCell<CacheOrder<HostedPartition>>,
    /// Commands that clients wait for.
    served_count: Cell<u64>,
    is_stopping: Cell<bool>,
    is_ended: Cell<bool>,
}

impl Shard {
    pub fn new(parts: ShardParts, image: Arc<MetadataImage>) -> Rc<Self> {
        let files = OpenFiles::new(parts.open_files_max);
        Rc::new(Self {
            router: parts.router,
            clock: parts.clock,
            metrics: parts.metrics.clone(),
            log_dir: parts.log_dir,
            config: RefCell::new(parts.config),
            image: RefCell::new(image),
            partitions: RefCell::default(),
            pending: PendingPartitions::default(),
            metadata_queue: MetadataQueue::default(),
            next_log_id: Cell::new(0),
            pool: ChunkPool::new(parts.memory.free_chunks_bytes),
            ahead: ReadAhead::new(parts.memory.read_blocks_bytes, files.clone(), parts.metrics),
            files,
            memory: parts.memory,
            syncs: SyncGroup::default(),
            check_slots: CheckSlots::default(),
            lookup_slots: CheckSlots::default(),
            groups: GroupHost::default(),
            retention_clock: RefCell::default(),
            deleted_files: RefCell::default(),
            stray_directories: RefCell::default(),
            turn: Signal::new(),
            dirty: RefCell::default(),
            active: RefCell::default(),
            cache: RefCell::new(CacheOrder::new(parts.cache_budget.share())),
            served_count: Cell::new(0),
            is_stopping: Cell::new(false),
            is_ended: Cell::new(false),
        })
    }

    /// Starts the tasks that run as long as the shard does.
    pub fn start(self: &Rc<Self>) {
        executor::spawn_local(self.clone().flush_turns()).detach();
        executor::spawn_local(self.clone().keep_house()).detach();
        executor::spawn_local(self.clone().follow_metadata()).detach();
        executor::spawn_local(self.clone().write_groups()).detach();
        executor::spawn_local(self.clone().tick_groups()).detach();
        self.open_groups();
        if self.is_first() {
            executor::spawn_local(self.clone().watch_disk()).detach();
        }
        executor::spawn_background(self.clone().clean_logs()).detach();
    }

    /// Asks the core that owns the partition; at once if it is this one.
    pub fn call<T>(
        self: &Rc<Self>,
        owner: ShardId,
        command: impl FnOnce(ReplyTo<T>) -> Command,
    ) -> Call<T> {
        let (reply, call) = self.router.open_call();
        self.tell(owner, command(reply));
        call
    }

    /// Has the core execute what needs no answer; at once if it is this one.
    pub fn tell(self: &Rc<Self>, owner: ShardId, command: Command) {
        if owner == self.router.me() {
            self.execute(command);
        } else {
            self.router.send(owner, Message::Command(command));
        }
    }

    /// Takes what another core sent.
    pub fn receive(self: &Rc<Self>, message: Message) {
        match message {
            Message::Command(command) => self.execute(command),
            Message::Wake(slot) => self.router.wake(slot),
            Message::Start => {}
            Message::End => self.is_ended.set(true),
        }
    }

    fn execute(self: &Rc<Self>, command: Command) {
        if let Command::Append(..) | Command::Read(..) | Command::Groups(..) = command {
            self.served_count.set(self.served_count.get() + 1);
        }
        match command {
            Command::Append(items, reply) => self.append(items, reply),
            Command::Read(request, reply) => self.read(request, reply),
            Command::AwaitData(items, poll) => self.await_data(items, poll),
            Command::ListOffsets(items, reply) => self.list_offsets(items, reply),
            Command::EpochEnds(items, reply) => self.epoch_ends(items, reply),
            Command::DeleteRecords(items, reply) => self.delete_records(items, reply),
            Command::LogSizes(reply) => self.log_sizes(reply),
            Command::Producers(partitions, reply) => self.active_producers(partitions, reply),
            Command::Groups(items, reply) => self.ask_groups(items, reply),
            Command::ApplyMetadata(change) => self.metadata_queue.push(change),
            Command::Stop(reply) => {
                let shard = self.clone();
                executor::spawn_local(async move {
                    let stopped = shard.stop().await;
                    shard.answer(reply, stopped);
                })
                .detach();
            }
        }
    }

    pub(super) fn answer<T>(&self, reply: ReplyTo<T>, value: T) {
        self.router.answer(reply, value);
    }

    pub fn router(&self) -> &Router {
        &self.router
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn metrics(&self) -> &ShardMetrics {
        &self.metrics
    }

    pub fn memory(&self) -> MemoryShare {
        self.memory
    }

    /// What each batch is bounded by that this shard inflates.
    pub(super) fn inflate_bounds(&self) -> InflateBounds {
        InflateBounds::holding(self.memory.inflate_window_bytes)
    }

    pub fn log_dir(&self) -> &LogDir {
        &self.log_dir
    }

    /// How much clients have asked this shard for since its start; it stands still while none is served.
    pub(super) fn served_count(&self) -> u64 {
        self.served_count.get()
    }

    pub fn config(&self) -> Arc<BrokerConfig> {
        self.config.borrow().clone()
    }

    pub fn image(&self) -> Arc<MetadataImage> {
        self.image.borrow().clone()
    }

    pub(super) fn set_image(&self, image: Arc<MetadataImage>) {
        *self.image.borrow_mut() = image;
    }

    pub(super) fn set_config(&self, config: Arc<BrokerConfig>) {
        *self.config.borrow_mut() = config;
    }

    pub(super) fn metadata_queue(&self) -> &MetadataQueue<MetadataChange> {
        &self.metadata_queue
    }

    pub(super) fn files(&self) -> &OpenFiles {
        &self.files
    }

    pub(super) fn read_ahead(&self) -> &ReadAhead {
        &self.ahead
    }

    pub(super) fn pool(&self) -> &ChunkPool {
        &self.pool
    }

    pub(super) fn groups(&self) -> &GroupHost {
        &self.groups
    }

    pub(super) fn syncs(&self) -> &SyncGroup {
        &self.syncs
    }

    pub(super) fn lookup_slots(&self) -> &CheckSlots {
        &self.lookup_slots
    }

    pub(super) fn check_slots(&self) -> &CheckSlots {
        &self.check_slots
    }

    pub(super) fn retention_clock(&self) -> &RefCell<RetentionClock> {
        &self.retention_clock
    }

    pub(super) fn deleted_files(&self) -> &RefCell<DeletedFiles> {
        &self.deleted_files
    }

    /// Whether this is the shard that does what one must do for all.
    pub(super) fn is_first(&self) -> bool {
        self.router.me() == ShardId(0)
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Whether the executor may end.
    pub fn is_ended(&self) -> bool {
        self.is_ended.get()
    }

    pub(super) fn set_stopping(&self) {
        self.is_stopping.set(true);
    }

    pub(super) fn stray_directories(&self) -> &RefCell<StrayDirectories> {
        &self.stray_directories
    }

    // ---- partitions

    pub(super) fn partition(&self, id: TopicPartition) -> Option<Rc<HostedPartition>> {
        self.partitions.borrow().get(&id).cloned()
    }

    /// Those that belong here and could not be opened.
    pub fn pending(&self) -> &PendingPartitions {
        &self.pending
    }

    pub(super) fn partitions(&self) -> Vec<Rc<HostedPartition>> {
        self.partitions.borrow().values().cloned().collect()
    }

    pub(super) fn next_log_id(&self) -> LogId {
        let id = self.next_log_id.get();
        self.next_log_id.set(id + 1);
        LogId(id)
    }

    pub(super) fn host(&self, partition: Rc<HostedPartition>) {
        let before = self
            .partitions
            .borrow_mut()
            .insert(partition.partition, partition);
        assert!(before.is_none(), "a partition is hosted once");
    }

    pub(super) fn unhost(&self, id: TopicPartition) -> Option<Rc<HostedPartition>> {
        self.partitions.borrow_mut().remove(&id)
    }

    // ---- turns

    /// Raised when something waits for the end of the turn; see `flush`.
    pub(super) fn turn(&self) -> &Signal {
        &self.turn
    }

    pub(super) fn mark_dirty(&self, partition: &Rc<HostedPartition>) {
        self.mark_active(partition);
        if !partition.flags.is_dirty.replace(true) {
            self.dirty.borrow_mut().push(partition.clone());
            self.turn.raise();
        }
    }

    /// Has the partition looked after until it is idle.
    pub(super) fn mark_active(&self, partition: &Rc<HostedPartition>) {
        if !partition.flags.is_gone.get() && !partition.flags.is_active.replace(true) {
            self.active.borrow_mut().push(partition.clone());
        }
    }

    pub(super) fn take_dirty(&self) -> Vec<Rc<HostedPartition>> {
        std::mem::take(&mut *self.dirty.borrow_mut())
    }

    pub(super) fn active_partitions(&self) -> Vec<Rc<HostedPartition>> {
        self.active.borrow().clone()
    }

    pub(super) fn set_inactive(&self, partition: &Rc<HostedPartition>) {
        partition.flags.is_active.set(false);
        self.active
            .borrow_mut()
            .retain(|it| !Rc::ptr_eq(it, partition));
    }

    // ---- memory

    /// `count` more chunks of `partition` are cached; frees the oldest ones of the shard if that is too much.
    pub(super) fn note_cached(&self, partition: &Rc<HostedPartition>, chunks: Cached) {
        if chunks.count == 0 {
            return;
        }
        let Cached { count, bytes } = chunks;
        self.cache.borrow_mut().add(partition, count, bytes);
        self.free_cache();
    }

    /// Frees this shard's oldest chunks as far as it is to.
    pub(super) fn free_cache(&self) {
        let mut cache = self.cache.borrow_mut();
        while let Some(oldest) = cache.next_to_free() {
            let freed_bytes = oldest.leader.borrow_mut().log_mut().drop_oldest_cached();
            cache.on_freed(freed_bytes);
        }
    }

    /// A deleted partition's log has let go of its cache.
    pub(super) fn note_uncached(&self, chunks: Cached) {
        let is_gone = |partition: &HostedPartition| partition.flags.is_gone.get();
        let Cached { count, bytes } = chunks;
        self.cache.borrow_mut().forget(count, bytes, is_gone);
    }

    /// What the partitions take on disk; looks at each of them.
    pub(super) fn publish_disk_bytes(&self) {
        let partitions = self.partitions.borrow();
        let sizes = partitions
            .values()
            .map(|it| it.leader.borrow().log().size_bytes());
        self.metrics.set_gauge(Gauge::DiskBytes, sizes.sum());
    }

    pub(super) fn publish_gauges(&self) {
        let open_count = self.files.len() as u64;
        self.metrics.set_gauge(Gauge::SegmentsOpen, open_count);
        self.metrics.set_gauge(Gauge::FilesOpen, open_count);
        let is_offline = self.log_dir.failure().is_some();
        self.metrics
            .set_gauge(Gauge::LogDirectoriesOffline, is_offline.into());
        let queued_count = self.router.untaken_count() as u64;
        self.metrics
            .set_gauge(Gauge::MeshQueueMessages, queued_count);
        self.metrics.set_gauge(
            Gauge::TailCacheBytes,
            self.cache.borrow().own_bytes() as u64,
        );
        self.metrics
            .set_gauge(Gauge::Partitions, self.partitions.borrow().len() as u64);
        self.metrics
            .set_gauge(Gauge::PartitionsNotOpen, self.pending.len() as u64);
    }
}

/// What a log has cached, or what one step has added to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    count: usize,
    bytes: usize,
}

impl Cached {
    pub fn of(leader: &HostedLeader) -> Self {
        let tail = leader.log().tail();
        Self {
            count: tail.chunk_count(),
            bytes: tail.bytes(),
        }
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            count: self.count - before.count,
            bytes: self.bytes - before.bytes,
        }
    }
}
