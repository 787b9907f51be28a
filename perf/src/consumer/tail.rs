//! A consumer that keeps up with the producers and takes the time from a record's intended sending to its arrival.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use super::reader::{Fetched, ReadPlan, Reader};
use crate::client::batches::whole_batches;
use crate::client::error::ClientError;
use crate::client::failure::Failure;
use crate::clock::Clock;
use crate::histogram::LatencyHistogram;
use crate::live::Live;
use crate::load_stage::LoadStage;
use crate::producer::Window;
use crate::record::{RunId, Stamp};

const RETRY_DELAY: Duration = Duration::from_millis(100);

/// How often a consumer that pauses looks whether it may go on.
const PAUSE_TICK: Duration = Duration::from_millis(10);

/// What all consumers of a load step have in common.
#[derive(Clone)]
pub struct Following {
    pub run: RunId,
    pub message_bytes: u64,
    pub clock: Clock,
    pub live: Arc<Live>,
    /// Set when the load begins; consumers may be there before.
    pub begun: Arc<OnceLock<Begun>>,
}

/// When the load began, and what of it is measured, on the crew's clock.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub start_ns: u64,
    pub window: Window,
}

/// Whoever has to know which offsets a consumer was handed.
pub trait Handover {
    /// Of what is to be handed out from `first` on, the first that no consumer of the subscription had before.
    fn first_new(&self, partition: usize, first: i64) -> i64;
    fn handed(&self, partition: usize, offsets: Range<i64>);
}

/// A consumer that has its partitions alone, for as long as it is there.
pub struct Assigned;

impl Handover for Assigned {
    fn first_new(&self, _partition: usize, first: i64) -> i64 {
        first
    }

    fn handed(&self, _partition: usize, _offsets: Range<i64>) {}
}

pub struct TailResult {
    pub end_to_end: LatencyHistogram,
    /// Failed fetches and connections by what went wrong.
    pub errors: BTreeMap<String, u64>,
}

/// Reads until `is_over`. A broker that goes away is asked again until it is back. While a backlog is built it has no connection, so
/// that none goes idle for too long.
pub fn tail(
    mut plan: ReadPlan,
    following: &Following,
    handover: &impl Handover,
    is_over: impl Fn() -> bool,
) -> TailResult {
    let live = &following.live;
    let mut result = TailResult::new();
    while !is_over() {
        if live.stage() == LoadStage::Building {
            sleep(PAUSE_TICK);
            continue;
        }
        let mut reader = match Reader::open(plan.clone()) {
            Ok(reader) => reader,
            Err(error) => {
                result.fail(&error, live);
                continue;
            }
        };
        while !is_over() && live.stage() != LoadStage::Building {
            let step = reader.step(|fetched| result.take(fetched, following, handover));
            live.moved(reader.take_traffic());
            if let Err(error) = step {
                result.fail(&error, live);
                break;
            }
            Live::add(&live.fetches, 1);
        }
        plan.positions = reader.positions().to_vec();
    }
    result
}

impl TailResult {
    pub fn new() -> Self {
        Self {
            end_to_end: LatencyHistogram::new(),
            errors: BTreeMap::new(),
        }
    }

    fn take(&mut self, fetched: Fetched, following: &Following, handover: &impl Handover) {
        let Following {
            run,
            message_bytes,
            clock,
            live,
            begun,
        } = following;
        let now_unix_ns = clock.unix_ns(clock.now_ns());
        let is_measured = |intended_unix_ns| {
            let at_ns = clock.at_ns(intended_unix_ns);
            begun.get().is_some_and(|it| it.window.contains(at_ns))
        };
        let first_new = handover.first_new(fetched.partition, fetched.offsets.start);
        let mut records = 0;
        for batch in whole_batches(fetched.records) {
            let _ = batch.records(|offset, value| match Stamp::decode(value) {
                Ok(stamp) if stamp.run == *run && offset >= first_new => {
                    records += 1;
                    if is_measured(stamp.intended_unix_ns) {
                        let latency_ns = (now_unix_ns - stamp.intended_unix_ns).max(0);
                        self.end_to_end.record_ns(latency_ns as u64);
                    }
                }
                _ => {}
            });
        }
        handover.handed(fetched.partition, fetched.offsets);
        Live::add(&live.consumed_records, records);
        Live::add(&live.consumed_bytes, records * message_bytes);
    }

    /// Of the same consumer at another time, or from another broker.
    pub fn merge(&mut self, other: Self) {
        self.end_to_end.merge(&other.end_to_end);
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }

    /// Counts it, and leaves the broker alone for a moment.
    pub fn fail(&mut self, error: &ClientError, live: &Live) {
        live.consumer_failed(Failure::from(error));
        *self.errors.entry(error.to_string()).or_default() += 1;
        sleep(RETRY_DELAY);
    }
}
