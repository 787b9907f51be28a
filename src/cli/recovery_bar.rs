//! Recovery's progress on the terminal: a bar where somebody looks, lines where not; and at the end one line of what was found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::broker::Progress;
use crate::storage::recovery::Recovered;

/// Shown only once recovery has taken this long: a start after a clean stop should be quiet.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Cut logs that the summary names.
const CUTS_SHOWN_MAX: usize = 3;

#[derive(Default)]
pub(super) struct RecoveryBar {
    shown: OnceLock<ProgressBar>,
    started: OnceLock<Instant>,
    found: Found,
}

/// What was found over all partitions; each of them is told at the level debug.
#[derive(Default)]
struct Found {
    scanned_bytes: AtomicU64,
    /// Logs whose end was not whole, as a kill or a power cut leaves it, and the bytes there.
    cut_logs: AtomicU64,
    cut_bytes: AtomicU64,
    /// The first of these, up to `CUTS_SHOWN_MAX`.
    cuts_shown: Mutex<Vec<String>>,
    /// Segments whose indexes were made anew.
    rebuilt_indexes: AtomicU64,
    /// Logs without a checkpoint that could be believed.
    whole_logs: AtomicU64,
}

impl Found {
    fn add(&self, recovered: &Recovered) {
        let add = |to: &AtomicU64, count: u64| to.fetch_add(count, Ordering::Relaxed);
        add(&self.scanned_bytes, recovered.bytes_scanned);
        add(&self.cut_logs, u64::from(!recovered.cuts.is_empty()));
        let cut_bytes = recovered.cuts.iter().map(|cut| cut.dropped_bytes);
        add(&self.cut_bytes, cut_bytes.sum());
        if let Some(cut) = recovered.cuts.first() {
            let mut shown = self
                .cuts_shown
                .lock()
                .expect("no holder of the lock panics");
            if shown.len() < CUTS_SHOWN_MAX {
                shown.push(format!("{} at {}", cut.path.display(), cut.position));
            }
        }
        add(&self.rebuilt_indexes, recovered.indexes_rebuilt as u64);
        add(&self.whole_logs, u64::from(recovered.distrust.is_some()));
    }

    fn tell(&self, partition_count: usize, took: Duration) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let elapsed_ms = took.as_millis() as u64;
        let scanned_bytes = of(&self.scanned_bytes);
        let damage = of(&self.cut_logs) + of(&self.rebuilt_indexes) + of(&self.whole_logs);
        if damage == 0 {
            tracing::info!(
                partitions = partition_count,
                scanned_bytes,
                elapsed_ms,
                "partitions are open"
            );
        } else {
            let cuts = self
                .cuts_shown
                .lock()
                .expect("no holder of the lock panics");
            tracing::warn!(
                partitions = partition_count,
                scanned_bytes,
                elapsed_ms,
                cut_logs = of(&self.cut_logs),
                cut_bytes = of(&self.cut_bytes),
                cuts = %cuts.join(", "),
                rebuilt_indexes = of(&self.rebuilt_indexes),
                logs_read_whole = of(&self.whole_logs),
                "partitions are open; the broker had not stopped cleanly (RUST_LOG=corelog::storage=debug names each)"
            );
        }
    }
}

impl Progress for RecoveryBar {
    fn partition_done(&self, done_count: usize, all_count: usize, recovered: Option<&Recovered>) {
        if let Some(recovered) = recovered {
            self.found.add(recovered);
        }
        let started = *self.started.get_or_init(Instant::now);
        if started.elapsed() < SHOWN_AFTER {
            return;
        }
        let bar = self.shown.get_or_init(|| {
            let style = ProgressStyle::with_template(
                "recovering {wide_bar} {pos}/{len} partitions, {msg} read, {eta} left",
            );
            ProgressBar::new(all_count as u64)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(done_count as u64);
        let scanned_bytes = self.found.scanned_bytes.load(Ordering::Relaxed);
        bar.set_message(indicatif::DecimalBytes(scanned_bytes).to_string());
    }

    fn all_done(&self, open_count: usize) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
        if let Some(started) = self.started.get() {
            self.found.tell(open_count, started.elapsed());
        }
    }
}
