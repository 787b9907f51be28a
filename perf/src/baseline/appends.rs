//! What a disk and a core do to latency where there is hardly any load: small appends on a fixed schedule, each of
//! which a thread sleeps until, synced in the background as a broker's log is.

use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use serde::Serialize;

use super::disk::DiskError;
use super::ring::AlignedBuffer;
use super::scratch_file::ScratchFile;
use crate::histogram::{LatencyHistogram, LatencySummary};

const APPEND_BYTES: usize = 16 * 1024;
const APPENDS_PER_S: u64 = 1000;

/// How much is written between two fdatasyncs.
const SYNCED_EVERY_BYTES: usize = 256 * 1024;

/// A quantile of 0.99 needs some hundred appends, whatever time a single baseline is given.
const AT_LEAST: Duration = Duration::from_secs(1);

/// Beside it stand the latencies of a broker: of what it adds to these it is the cause.
#[derive(Clone, Debug, Serialize)]
pub struct PacedAppends {
    pub append_bytes: usize,
    pub appends_per_s: u64,
    /// One fdatasync at a time, by another thread, while appends go on.
    pub synced_every_bytes: usize,
    /// From when an append was due to its completion.
    pub latency: LatencySummary,
    /// How late a sleeping thread was woken for an append that nothing else kept waiting: timers, the scheduler, and
    /// on a virtual machine the host. None if each append kept the next one waiting.
    pub wake_up: Option<LatencySummary>,
    pub fdatasync: Option<LatencySummary>,
}

impl PacedAppends {
    /// For `each`, but at least a second.
    pub fn measure(directory: &Path, each: Duration) -> Result<Self, DiskError> {
        let file = ScratchFile::create(directory, "appends")?;
        let count = each.max(AT_LEAST).as_millis() as u64 * APPENDS_PER_S / 1000;
        // Blocks without data, as in a log's new segment. Where that is refused they come with each append.
        let _ = fallocate(
            file.file(),
            FallocateFlags::KEEP_SIZE,
            0,
            count * APPEND_BYTES as u64,
        );
        let (written, is_due) = sync_channel(1);
        let (appended, synced) = thread::scope(|scope| {
            let file = &file;
            let syncs = scope.spawn(move || sync_on_demand(file, is_due));
            // A thread of its own, since its timers are set to be precise. At its end the other one's channel is closed.
            let appends = scope.spawn(move || append_on_schedule(file, count, written));
            (
                appends.join().expect("appending does not panic"),
                syncs.join().expect("syncing does not panic"),
            )
        });
        let (latency, wake_up) = appended?;
        Ok(Self {
            append_bytes: APPEND_BYTES,
            appends_per_s: APPENDS_PER_S,
            synced_every_bytes: SYNCED_EVERY_BYTES,
            latency,
            wake_up,
            fdatasync: synced?,
        })
    }
}

/// The latencies of `count` appends, and of the wake-ups for them.
fn append_on_schedule(
    file: &ScratchFile,
    count: u64,
    written: SyncSender<()>,
) -> Result<(LatencySummary, Option<LatencySummary>), DiskError> {
    // The default of 50 us would be most of what is measured. Where it is refused, that shows.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let buffer = AlignedBuffer::filled(APPEND_BYTES);
    let (mut latency, mut wake_up) = (LatencyHistogram::new(), LatencyHistogram::new());
    let begin = Instant::now();
    for number in 0..count {
        let due = begin + Duration::from_nanos(number * 1_000_000_000 / APPENDS_PER_S);
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::sleep(left);
            wake_up.record_ns(due.elapsed().as_nanos() as u64);
        }
        let position = number * APPEND_BYTES as u64;
        (file.file().write_all_at(&buffer, position)).map_err(file.io("append"))?;
        latency.record_ns(due.elapsed().as_nanos() as u64);
        let end = position as usize + APPEND_BYTES;
        if end.is_multiple_of(SYNCED_EVERY_BYTES) {
            // Where a sync is asked for already, it covers this too. One that failed tells why itself.
            let _ = written.try_send(());
        }
    }
    let latency = latency.summary().expect("there was at least one append");
    Ok((latency, wake_up.summary()))
}

/// Until the other end is gone.
fn sync_on_demand(
    file: &ScratchFile,
    is_due: Receiver<()>,
) -> Result<Option<LatencySummary>, DiskError> {
    let mut latency = LatencyHistogram::new();
    for () in is_due {
        let begin = Instant::now();
        file.file().sync_data().map_err(file.io("fdatasync"))?;
        latency.record_ns(begin.elapsed().as_nanos() as u64);
    }
    Ok(latency.summary())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_are_paced_and_synced_and_the_file_is_gone_afterwards() {
        let directory =
            std::env::temp_dir().join(format!("corelog-perf-appends-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let appends = PacedAppends::measure(&directory, Duration::ZERO).unwrap();
        assert_eq!(appends.latency.count, APPENDS_PER_S);
        let wake_up = appends
            .wake_up
            .expect("a second has a millisecond without a write");
        assert!(wake_up.count <= APPENDS_PER_S && appends.latency.max_ms >= wake_up.p50_ms);
        assert!(appends.fdatasync.is_some());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(&directory).unwrap();
    }
}
