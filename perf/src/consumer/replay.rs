//! Reads a stretch of the log as fast as the broker gives it, once or over and over, and looks at no more than
//! batch headers.

use super::reader::{ReadPlan, Reader};
use crate::client::batches::whole_batches;
use crate::client::error::ClientError;
use crate::clock::Clock;
use crate::live::Live;

#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayResult {
    pub records: u64,
    pub fetches: u64,
    /// Whether at least one whole pass was made.
    pub passes: u64,
}

/// Reads until `until_ns`, or until the end if that comes first and `repeat` is off.
pub fn replay(
    plan: ReadPlan,
    message_bytes: u64,
    repeat: bool,
    until_ns: u64,
    clock: Clock,
    live: &Live,
) -> Result<ReplayResult, ClientError> {
    let start = plan.positions.clone();
    let mut reader = Reader::open(plan)?;
    let mut result = ReplayResult::default();
    while clock.now_ns() < until_ns && !live.is_stopped() {
        let mut records = 0;
        let more = reader.step(|fetched| {
            records += whole_batches(fetched.records)
                .map(|batch| batch.record_count.max(0) as u64)
                .sum::<u64>();
        });
        live.moved(reader.take_traffic());
        let more = more?;
        Live::add(&live.consumed_records, records);
        Live::add(&live.consumed_bytes, records * message_bytes);
        result.records += records;
        result.fetches += u64::from(more);
        if !more {
            result.passes += 1;
            if !repeat {
                break;
            }
            reader.rewind(start.clone());
        }
    }
    Ok(result)
}
