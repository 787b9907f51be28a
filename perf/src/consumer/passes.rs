//! A consumer that reads from a place in the log to its end, then again from there, beside whatever else goes on. It looks at no
//! more than batch headers, and whose records they are does not matter to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reader::{Position, ReadPlan, Reader};
use crate::client::batches::whole_batches;
use crate::client::cluster::{BrokerAddress, Topic};
use crate::client::error::ClientError;
use crate::client::fetch::FetchLimits;
use crate::client::offsets::OffsetAt;
use crate::clock::Clock;
use crate::live::Live;
use crate::replay_from::ReplayFrom;

/// How long to leave a broker alone that failed, and how long to wait where there is nothing to read yet.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// What one thread reads over and over from one broker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PassesPlan {
    pub topic: String,
    pub leader: BrokerAddress,
    pub partitions: Vec<usize>,
    #[serde(with = "crate::replay_from::as_written")]
    pub from: ReplayFrom,
    /// One pass is enough.
    pub once: bool,
    pub limits: FetchLimits,
}

impl PassesPlan {
    /// One for each broker that leads a part of the topic: together they are one consumer, which reads all of it.
    pub fn of(
        topic: &Arc<Topic>,
        from: ReplayFrom,
        once: bool,
        limits: FetchLimits,
    ) -> impl Iterator<Item = Self> {
        let by_leader = topic.partitions_by_leader().into_iter();
        by_leader.map(move |(leader, partitions)| Self {
            topic: topic.name.clone(),
            leader: leader.clone(),
            partitions,
            from,
            once,
            limits,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassesResult {
    /// Times that it came to the end of the log, which is where the log ended when the pass began.
    pub passes: u64,
    pub fetches: u64,
    /// Failed fetches and connections by what went wrong.
    pub errors: BTreeMap<String, u64>,
}

enum Pass {
    ToTheEnd,
    /// Nothing lies between the beginning and the end.
    Nothing,
    Ended,
}

/// Reads until `done`. A broker that goes away is asked again until it is back, and the pass begins anew.
pub fn passes(plan: &PassesPlan, clock: Clock, live: &Live, done: &AtomicBool) -> PassesResult {
    let mut result = PassesResult::default();
    let mut reader = None;
    let is_ended = || done.load(Relaxed) || live.is_stopped();
    while !is_ended() {
        match pass(&mut reader, plan, clock, live, &is_ended, &mut result) {
            Ok(Pass::ToTheEnd) => {
                result.passes += 1;
                if plan.once {
                    break;
                }
            }
            Ok(Pass::Nothing) => sleep(RETRY_DELAY),
            Ok(Pass::Ended) => break,
            Err(error) => {
                reader = None;
                *result.errors.entry(error.to_string()).or_default() += 1;
                sleep(RETRY_DELAY);
            }
        }
    }
    result
}

fn pass(
    reader: &mut Option<Reader>,
    plan: &PassesPlan,
    clock: Clock,
    live: &Live,
    is_ended: &impl Fn() -> bool,
    result: &mut PassesResult,
) -> Result<Pass, ClientError> {
    let reader = match reader {
        Some(reader) => reader,
        None => reader.insert(Reader::open(ReadPlan {
            topic: plan.topic.clone(),
            leader: plan.leader.clone(),
            positions: Vec::new(),
            limits: plan.limits,
        })?),
    };
    let positions = positions(reader, plan, clock)?;
    if positions.is_empty() {
        return Ok(Pass::Nothing);
    }
    reader.rewind(positions);
    loop {
        let (mut records, mut bytes) = (0, 0);
        let more = reader.step(|fetched| {
            bytes += fetched.records.len() as u64;
            records += whole_batches(fetched.records)
                .map(|batch| batch.record_count.max(0) as u64)
                .sum::<u64>();
        })?;
        Live::add(&live.replayed_records, records);
        Live::add(&live.replayed_bytes, bytes);
        result.fetches += u64::from(more);
        if !more {
            return Ok(Pass::ToTheEnd);
        }
        if is_ended() {
            return Ok(Pass::Ended);
        }
    }
}

/// Where a pass begins and ends; partitions with nothing in between are left out.
fn positions(
    reader: &mut Reader,
    plan: &PassesPlan,
    clock: Clock,
) -> Result<Vec<Position>, ClientError> {
    let ends = reader.offsets(&plan.partitions, OffsetAt::Latest)?;
    let at = match plan.from {
        ReplayFrom::Earliest | ReplayFrom::Offset(_) => OffsetAt::Earliest,
        ReplayFrom::Time(time) => OffsetAt::UnixMs(time.as_millisecond()),
        ReplayFrom::Ago(ago) => {
            let now_ms = clock.unix_ns(clock.now_ns()) / 1_000_000;
            OffsetAt::UnixMs(now_ms.saturating_sub_unsigned(ago.as_millis() as u64))
        }
    };
    let starts = reader.offsets(&plan.partitions, at)?;
    let between = |(partition, start): (usize, Option<i64>)| {
        let end_offset = ends.get(&partition).copied().flatten()?;
        // No record is as young as that: nothing is to be read.
        let start = start?;
        let next_offset = match plan.from {
            ReplayFrom::Offset(offset) => start.max(offset),
            _ => start,
        };
        (next_offset < end_offset).then_some(Position {
            partition,
            next_offset,
            end_offset,
        })
    };
    Ok(starts.into_iter().filter_map(between).collect())
}
