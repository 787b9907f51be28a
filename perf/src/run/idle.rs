//! What is used while nobody asks for anything.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::brokers::Brokers;
use super::meter::Meter;
use crate::cli::RunArgs;
use crate::client::cluster::Cluster;
use crate::client::error::ClientError;
use crate::interrupt::Interrupt;
use crate::report::CpuReport;

/// How soon Ctrl-C is followed.
const TICK: Duration = Duration::from_millis(100);

/// Watches the brokers that a run with these arguments would measure, and puts no load on them. With the seconds that it took.
pub fn idle(
    arguments: &RunArgs,
    bootstrap: &str,
    length: Duration,
    interrupt: &Interrupt,
) -> Result<(f64, CpuReport), ClientError> {
    let cluster = Cluster::connect(bootstrap)?;
    let brokers = Brokers::find(arguments, cluster.bootstrap(), &cluster.brokers()?);
    let (before, began) = (Meter::read(&brokers), Instant::now());
    while began.elapsed() < length && !interrupt.is_asked() {
        sleep(TICK.min(length.saturating_sub(began.elapsed())));
    }
    let (after, seconds) = (Meter::read(&brokers), began.elapsed().as_secs_f64());
    Ok((seconds, after.since(&before, 0)))
}
