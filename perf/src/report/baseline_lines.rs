//! What the machine did without the broker, in lines of text.

use std::fmt::{self, Display, Formatter};

use super::number;
use super::summary::plural;
use crate::baseline::appends::PacedAppends;
use crate::baseline::disk::DiskBaseline;
use crate::baseline::{Baseline, DiskOutcome, NullLoadOutcome};
use crate::histogram::LatencySummary;

/// One set of baselines, for a terminal or a page.
pub struct BaselineLines<'a> {
    of: &'a Baseline,
}

impl<'a> BaselineLines<'a> {
    pub fn of(baseline: &'a Baseline) -> Self {
        Self { of: baseline }
    }
}

impl Display for BaselineLines<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.of.disk {
            DiskOutcome::NotMeasured { reason } => writeln!(out, "disk: not measured: {reason}")?,
            DiskOutcome::Measured(disk) => write_disk(out, disk)?,
        }
        if let Some(network) = &self.of.network {
            for rate in &network.streams {
                writeln!(
                    out,
                    "loopback ({}), {} stream{}: {} MB/s, {} CPU-s/GB for both ends",
                    network.congestion_control,
                    rate.streams,
                    plural(rate.streams as u32),
                    number(rate.mb_per_s),
                    number(rate.cpu_s_per_gb)
                )?;
            }
        }
        match &self.of.null_broker {
            Some(NullLoadOutcome::Measured(null)) => writeln!(
                out,
                "null broker, same requests from {} producer{}: {} MB/s, {} CPU-s/GB for the client, {} CPU-s/GB for the null broker",
                null.producers,
                plural(null.producers),
                number(null.mb_per_s),
                number(null.client_cpu_s_per_gb),
                number(null.null_broker_cpu_s_per_gb)
            )?,
            Some(NullLoadOutcome::NotMeasured { reason }) => {
                writeln!(out, "null broker: not measured: {reason}")?
            }
            None => {}
        }
        writeln!(
            out,
            "memcpy {} GB/s, crc32c {} GB/s on one core",
            number(self.of.memory.memcpy_gb_per_s),
            number(self.of.memory.crc32c_gb_per_s)
        )
    }
}

fn write_disk(out: &mut Formatter<'_>, disk: &DiskBaseline) -> fmt::Result {
    writeln!(
        out,
        "disk at {}: O_DIRECT {}; a prepared file of {} MB, overwritten and read in sequence",
        disk.directory.display(),
        if disk.o_direct {
            "on"
        } else {
            "REFUSED, so this is the page cache"
        },
        disk.file_bytes / 1_000_000
    )?;
    writeln!(
        out,
        "  {:>8}  {:>5}  {:>12}  {:>12}  {:>10}  {:>10}",
        "block", "depth", "write MB/s", "read MB/s", "write p50", "write p99"
    )?;
    for (write, read) in disk.writes.iter().zip(&disk.reads) {
        let quantile = |of: fn(&LatencySummary) -> f64| match &write.latency {
            Some(latency) => format!("{} ms", number(of(latency))),
            None => String::new(),
        };
        writeln!(
            out,
            "  {:>4} KiB  {:>5}  {:>12}  {:>12}  {:>10}  {:>10}",
            write.block_bytes / 1024,
            write.depth,
            number(write.mb_per_s),
            number(read.mb_per_s),
            quantile(|latency| latency.p50_ms),
            quantile(|latency| latency.p99_ms)
        )?;
    }
    if let Some(sync) = &disk.fdatasync {
        writeln!(out, "  fdatasync after 64 KiB: {}", quantiles(sync))?;
    }
    write_appends(out, &disk.appends)
}

fn write_appends(out: &mut Formatter<'_>, appends: &PacedAppends) -> fmt::Result {
    writeln!(
        out,
        "  appends of {} KiB, {} a second, synced every {} KiB: {}",
        appends.append_bytes / 1024,
        appends.appends_per_s,
        appends.synced_every_bytes / 1024,
        quantiles(&appends.latency)
    )?;
    match &appends.wake_up {
        Some(wake_up) => writeln!(
            out,
            "  a thread that sleeps until then is woken late by: {}",
            quantiles(wake_up)
        ),
        None => Ok(()),
    }
}

fn quantiles(of: &LatencySummary) -> String {
    format!(
        "p50 {} ms, p99 {} ms, p99.9 {} ms, max {} ms",
        number(of.p50_ms),
        number(of.p99_ms),
        number(of.p999_ms),
        number(of.max_ms)
    )
}
