use std::marker::PhantomData;

use super::answer::GroupAnswer;
use super::record::BadRecord;
use super::request::GroupRequest;
use super::rules::GroupRules;
use super::write::{Effects, GroupWriteId, WriteRefused};
use crate::io::clock::Monotonic;
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
    _token: PhantomData<T>,
}

impl<T> Coordinator<T> {
    pub fn new(rules: GroupRules) -> Self {
        Self {
            rules,
            _token: PhantomData,
        }
    }

    /// New settings. They count from the next request, and for sessions from the next join, on.
    pub fn set_rules(&mut self, rules: GroupRules) {
        self.rules = rules;
    }

    /// One record of the log, at the start. `value` is `None` for a tombstone. A bad record changes nothing.
    pub fn replay(&mut self, _key: &[u8], _value: Option<&[u8]>) -> Result<Replayed, BadRecord> {
        unimplemented!()
    }

    /// Everything was replayed: the members' sessions begin anew.
    pub fn loaded(&mut self, _now: Monotonic, _wall: TimestampMs) -> Effects<T> {
        unimplemented!()
    }

    pub fn execute(
        &mut self,
        _request: GroupRequest,
        _token: T,
        _now: Monotonic,
        _wall: TimestampMs,
    ) -> Effects<T> {
        unimplemented!()
    }

    /// What is due: sessions, rebalances, expired offsets. To be called when `next_deadline` has come; earlier or more often does
    /// no harm.
    pub fn tick(&mut self, _now: Monotonic, _wall: TimestampMs) -> Effects<T> {
        unimplemented!()
    }

    /// When `tick` has something to do. It may turn out to be nothing.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        unimplemented!()
    }

    /// The records of that write are on disk.
    pub fn on_confirmed(
        &mut self,
        _write: GroupWriteId,
        _now: Monotonic,
        _wall: TimestampMs,
    ) -> Effects<T> {
        unimplemented!()
    }

    /// The records of that write will never be in the log.
    pub fn on_refused(
        &mut self,
        _write: GroupWriteId,
        _why: WriteRefused,
        _now: Monotonic,
        _wall: TimestampMs,
    ) -> Effects<T> {
        unimplemented!()
    }

    /// These topics were deleted: what was committed for them goes.
    pub fn forget_topics(
        &mut self,
        _topics: &[TopicName],
        _now: Monotonic,
        _wall: TimestampMs,
    ) -> Effects<T> {
        unimplemented!()
    }

    /// This is not the coordinator any more: everybody who waits is told so.
    pub fn stop(&mut self) -> Vec<(T, GroupAnswer)> {
        unimplemented!()
    }
}

/// What came of a record that was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    Applied,
    /// A record of a kind that this coordinator does not keep (transactions', KIP-848's), by the version of its key.
    OtherKind(i16),
}
