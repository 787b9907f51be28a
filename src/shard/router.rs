//! Takes commands to the core that owns a partition and answers back; it knows only ids.

use crate::io::mesh::Outbox;
use crate::model::{ShardId, TopicPartition};
use crate::shard::call::{Call, CallSlot, CallTable, ReplyTo};
use crate::shard::command::Message;
use crate::shard::placement;

pub struct Router {
    me: ShardId,
    shard_count: u16,
    calls: CallTable,
    outbox: Outbox<Message>,
}

impl Router {
    pub fn new(me: ShardId, shard_count: u16, outbox: Outbox<Message>) -> Self {
        Self {
            me,
            shard_count,
            calls: CallTable::default(),
            outbox,
        }
    }

    pub fn me(&self) -> ShardId {
        self.me
    }

    pub fn shard_count(&self) -> u16 {
        self.shard_count
    }

    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shard_count).map(ShardId)
    }

    pub fn owner_of(&self, partition: TopicPartition) -> ShardId {
        placement::owner_of(partition, self.shard_count)
    }

    /// A place for an answer, and the call that waits for it.
    pub fn open_call<T>(&self) -> (ReplyTo<T>, Call<T>) {
        self.calls.open(self.me)
    }

    /// Lays new work out for `target`; it leaves at the end of this turn, with one wake-up for all of them. Only where `is_ready`.
    pub fn send(&self, target: ShardId, message: Message) {
        assert_ne!(target, self.me, "a core does not send to itself");
        self.outbox.push(target.index(), message);
    }

    /// Messages on their way to other cores.
    pub fn untaken_count(&self) -> usize {
        let others = self.shards().filter(|shard| *shard != self.me);
        others
            .map(|shard| self.outbox.untaken_count(shard.index()))
            .sum()
    }

    /// Whether every lane has room, so that a request may be dispatched whoever it is for.
    pub fn is_ready(&self) -> bool {
        self.full_lane().is_none()
    }

    /// Completes when every lane has room at the same time: connections are not read while one is full.
    pub async fn ready(&self) {
        while let Some(shard) = self.full_lane() {
            self.outbox.ready(shard.index()).await;
        }
    }

    fn full_lane(&self) -> Option<ShardId> {
        let mut others = self.shards().filter(|shard| *shard != self.me);
        others.find(|shard| self.outbox.is_full(shard.index()))
    }

    pub fn answer<T>(&self, reply: ReplyTo<T>, value: T) {
        match reply.fill(value) {
            Some((origin, slot)) if origin == self.me => self.wake(slot),
            Some((origin, slot)) => self.outbox.push_answer(origin.index(), Message::Wake(slot)),
            None => {}
        }
    }

    pub fn wake(&self, slot: CallSlot) {
        self.calls.wake(slot);
    }
}
