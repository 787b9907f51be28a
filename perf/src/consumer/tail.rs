//! A consumer that keeps up with the producers and takes the time from a record's intended sending to its arrival.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

pub struct TailResult {
    pub end_to_end: LatencyHistogram,
    /// Failed fetches and connections by what went wrong.
    pub errors: BTreeMap<String, u64>,
}

/// Reads until `done`. A broker that goes away is asked again until it is back. While a backlog is built it has no connection, so
/// that none goes idle for too long.
pub fn tail(
    mut plan: ReadPlan,
    run: RunId,
    message_bytes: u64,
    window: Window,
    clock: Clock,
    live: &Live,
    done: &AtomicBool,
) -> TailResult {
    let mut result = TailResult {
        end_to_end: LatencyHistogram::new(),
        errors: BTreeMap::new(),
    };
    while !done.load(Relaxed) {
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
        while !done.load(Relaxed) && live.stage() != LoadStage::Building {
            let arrived = |fetched: Fetched| {
                let now_unix_ns = clock.unix_ns(clock.now_ns());
                let mut records = 0;
                for batch in whole_batches(fetched.records) {
                    let _ = batch.records(|_, value| match Stamp::decode(value) {
                        Ok(stamp) if stamp.run == run => {
                            records += 1;
                            if window.contains(clock.at_ns(stamp.intended_unix_ns)) {
                                result.end_to_end.record_ns(
                                        (now_unix_ns - stamp.intended_unix_ns).max(0) as u64,
                                    );
                            }
                        }
                        _ => {}
                    });
                }
                Live::add(&live.consumed_records, records);
                Live::add(&live.consumed_bytes, records * message_bytes);
            };
            let step = reader.step(arrived);
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
    fn fail(&mut self, error: &ClientError, live: &Live) {
        live.consumer_failed(Failure::from(error));
        *self.errors.entry(error.to_string()).or_default() += 1;
        sleep(RETRY_DELAY);
    }
}
