//! Recovery's progress on the terminal: a bar where somebody looks, lines where not.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::broker::Progress;

/// Shown only once recovery has taken this long: a start after a clean stop should be quiet.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct RecoveryBar {
    shown: OnceLock<ProgressBar>,
    started: OnceLock<Instant>,
    scanned_bytes: AtomicU64,
}

impl Progress for RecoveryBar {
    fn partition_done(&self, done_count: usize, all_count: usize, bytes_scanned: u64) {
        let scanned_bytes = self
            .scanned_bytes
            .fetch_add(bytes_scanned, Ordering::Relaxed)
            + bytes_scanned;
        let started = *self.started.get_or_init(Instant::now);
        let is_last = done_count == all_count;
        if started.elapsed() < SHOWN_AFTER && !is_last {
            return;
        }
        if is_last {
            if let Some(bar) = self.shown.get() {
                bar.finish_and_clear();
            }
            tracing::info!(
                partitions = all_count,
                scanned_bytes,
                elapsed_ms = started.elapsed().as_millis() as u64,
                "partitions are open"
            );
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
        bar.set_message(indicatif::DecimalBytes(scanned_bytes).to_string());
    }
}
