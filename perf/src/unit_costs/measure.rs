//! The order of the runs, and what comes of them.

use std::time::Duration;

use super::cost::{Check, Costs, Load, Segment};
use super::error::UnitCostsError;
use super::fit::{Fit, Point, fit};
use super::flags::UnitCostsArgs;
use super::partitions::Partitions;
use super::report::{
    Absent, AtLargeBatches, Fits, PartitionCosts, ReadCost, ReadFrom, SCHEMA, SCHEMA_VERSION,
    UnitCostsReport,
};
use super::stretch::{self, Shape, Stretch};
use crate::interrupt::Interrupt;
use crate::quantity::Bytes;
use crate::report::{ReadKind, ReadReport, Report};

/// Batches of the fitted runs, large to small: what a request costs shows between them.
const BATCH_BYTES: [u64; 3] = [1_000_000, 131_072, 32_768];
/// Of the check: in no fit.
const CHECK_BATCH_BYTES: u64 = 65_536;

/// Bytes a second, where the broker takes enough.
const RATE_DEFAULT: u64 = 50_000_000;

/// Of what the broker takes as fast as it goes: more is taken only in its best moments.
const ASKED_SHARE_MAX: f64 = 0.9;
const DEFAULT_SHARE_MAX: f64 = 0.5;

/// A broker that takes less is not measured but starved.
const TAKES_MB_PER_S_MIN: f64 = 2.0;

/// Long enough to see what a broker takes.
const PROBE_DURATION: Duration = Duration::from_secs(2);

/// A log written for so many times the duration is larger than what a broker holds by itself, as far as seen.
const FILL_DURATIONS: u32 = 2;

/// A read of which less came from the disk tells little of reading cold.
const COLD_FROM: f64 = 0.9;

/// Others that used more of the machine may have changed the costs.
const OTHERS_NOTED: f64 = 0.1;

/// Runs everything: about sixteen times the duration, and a second or two more for each of nine runs.
pub fn measure(
    flags: &UnitCostsArgs,
    interrupt: &Interrupt,
) -> Result<UnitCostsReport, UnitCostsError> {
    flags.check()?;
    let rate = paced_rate(flags, interrupt)?;
    let paced = |batch_bytes: u64, has_consumer: bool| Shape {
        name: format!(
            "batches of {}{}",
            Bytes(batch_bytes),
            if has_consumer {
                ", read by a consumer"
            } else {
                ""
            }
        ),
        rate_bytes_per_s: Some(rate),
        duration: flags.duration,
        batch_bytes,
        has_consumer,
        partitions: flags.partitions,
        topic: None,
        reads_back: false,
    };
    let run = |shape: &Shape| stretch::run(flags, shape, interrupt);
    let (partitions, written) = Partitions { flags, interrupt }.measure()?;
    let (filled, fill) = run(&Shape {
        name: "as fast as it goes, then read back".to_owned(),
        rate_bytes_per_s: None,
        duration: flags
            .fill_duration
            .unwrap_or(flags.duration * FILL_DURATIONS),
        reads_back: true,
        ..paced(BATCH_BYTES[0], false)
    })?;
    let produced = BATCH_BYTES
        .iter()
        .map(|&batch_bytes| Ok(run(&paced(batch_bytes, false))?.0))
        .collect::<Result<Vec<_>, UnitCostsError>>()?;
    let consumed = BATCH_BYTES
        .iter()
        .map(|&batch_bytes| Ok(run(&paced(batch_bytes, true))?.0))
        .collect::<Result<Vec<_>, UnitCostsError>>()?;
    let (mixed, last) = run(&Shape {
        name: format!(
            "check: batches of {}, read by a consumer",
            Bytes(CHECK_BATCH_BYTES)
        ),
        ..paced(CHECK_BATCH_BYTES, true)
    })?;
    let (costs, fits) = fitted(&partitions, &produced, &consumed)?;
    let check = Check::of(&costs, &mixed.load(), mixed.broker_cores);
    let at_large_batches = at_large_batches(&costs, &produced[0], &consumed[0]);
    let reads: Vec<ReadCost> = fill.reads.iter().filter_map(read_cost).collect();
    let mut stretches = vec![written, filled];
    stretches.extend(produced);
    stretches.extend(consumed);
    stretches.push(mixed);
    Ok(whole(
        flags,
        Parts {
            costs,
            fits,
            check,
            at_large_batches,
            reads,
            partitions,
            stretches,
        },
        last,
    ))
}

/// The rate of all paced runs. Known before anything is measured, and with it that the broker's CPU can be seen at all.
fn paced_rate(flags: &UnitCostsArgs, interrupt: &Interrupt) -> Result<u64, UnitCostsError> {
    let [.., smallest] = BATCH_BYTES;
    let shape = Shape {
        name: format!("what the broker takes in batches of {}", Bytes(smallest)),
        rate_bytes_per_s: None,
        duration: flags.duration.min(PROBE_DURATION),
        batch_bytes: smallest,
        has_consumer: true,
        partitions: flags.partitions,
        topic: None,
        reads_back: false,
    };
    let (probe, _) = stretch::run(flags, &shape, interrupt)?;
    let rate = rate_of(flags.rate, probe.produced_mb_per_s)?;
    eprintln!(
        "paced runs at {:.1} MB/s, of {:.1} MB/s that it takes",
        rate as f64 / 1e6,
        probe.produced_mb_per_s
    );
    Ok(rate)
}

/// What was asked for, if it leaves the broker room, or else what does.
fn rate_of(asked: Option<u64>, takes_mb_per_s: f64) -> Result<u64, UnitCostsError> {
    if takes_mb_per_s < TAKES_MB_PER_S_MIN {
        return Err(UnitCostsError::TakesTooLittle { takes_mb_per_s });
    }
    let takes = takes_mb_per_s * 1e6;
    let most = takes * ASKED_SHARE_MAX;
    match asked {
        Some(asked) if asked as f64 > most => Err(UnitCostsError::RateTooHigh {
            asked_mb_per_s: asked as f64 / 1e6,
            takes_mb_per_s,
            most_mb_per_s: (most / 1e6).floor(),
            batch: Bytes(BATCH_BYTES[BATCH_BYTES.len() - 1]),
        }),
        Some(asked) => Ok(asked),
        None => Ok(RATE_DEFAULT.min((takes * DEFAULT_SHARE_MAX) as u64)),
    }
}

/// What the report is put together from.
struct Parts {
    costs: Costs,
    fits: Fits,
    check: Check,
    at_large_batches: AtLargeBatches,
    reads: Vec<ReadCost>,
    partitions: PartitionCosts,
    stretches: Vec<Stretch>,
}

/// Costs of producing from the runs without a consumer, then those of reading from what a consumer adds.
fn fitted(
    partitions: &PartitionCosts,
    produced: &[Stretch],
    consumed: &[Stretch],
) -> Result<(Costs, Fits), UnitCostsError> {
    let mut costs = Costs {
        idle_cores: partitions.before.broker_cores,
        partition_cores: partitions.cores_each(),
        produce: Vec::new(),
        fetch: Vec::new(),
    };
    let of_produce = |load: &Load| [load.produced_gb_per_s, load.produce_requests_per_s];
    let of_fetch = |load: &Load| [load.consumed_gb_per_s, load.requests_read_per_s()];
    let produce = fit_over(&costs, "producing", produced, of_produce)?;
    costs.produce = segments(&costs, "producing", produced, of_produce)?;
    let fetch = fit_over(&costs, "reading", consumed, of_fetch)?;
    costs.fetch = segments(&costs, "reading", consumed, of_fetch)?;
    Ok((costs, Fits { produce, fetch }))
}

/// A line from each run to the one with the next smaller batches.
fn segments(
    known: &Costs,
    what: &str,
    stretches: &[Stretch],
    amounts: impl Fn(&Load) -> [f64; 2],
) -> Result<Vec<Segment>, UnitCostsError> {
    let smaller = &BATCH_BYTES[1..];
    let pairs = stretches.windows(2).zip(smaller);
    pairs
        .map(|(pair, &request_bytes_min)| {
            let [cpu_s_per_gb, request_cpu_s] = fit_over(known, what, pair, &amounts)?.unit_costs;
            Ok(Segment {
                request_bytes_min,
                cpu_s_per_gb,
                request_cpu_s,
            })
        })
        .collect()
}

/// Fits what the runs cost beyond what `known` explains.
fn fit_over(
    known: &Costs,
    what: &str,
    stretches: &[Stretch],
    amounts: impl Fn(&Load) -> [f64; 2],
) -> Result<Fit, UnitCostsError> {
    let points: Vec<Point> = stretches
        .iter()
        .map(|stretch| Point {
            amounts: amounts(&stretch.load()),
            cost: stretch.broker_cores - known.cores(&stretch.load()),
        })
        .collect();
    fit(&points).ok_or_else(|| UnitCostsError::NotValid {
        name: what.to_owned(),
        reason: "its runs do not tell the cost of bytes from that of requests; --duration makes them longer".to_owned(),
    })
}

fn at_large_batches(costs: &Costs, produced: &Stretch, consumed: &Stretch) -> AtLargeBatches {
    let lead = produced.broker_cores - costs.idle_cores;
    let both = consumed.broker_cores - costs.idle_cores;
    let lead_cpu_s_per_gb = lead / produced.load().produced_gb_per_s;
    let of_lead = lead_cpu_s_per_gb * consumed.load().produced_gb_per_s;
    AtLargeBatches {
        batch_bytes: BATCH_BYTES[0],
        lead_cpu_s_per_gb,
        fetch_cpu_s_per_gb: (both - of_lead) / consumed.load().consumed_gb_per_s,
    }
}

fn read_cost(read: &ReadReport) -> Option<ReadCost> {
    if read.failure.is_some() {
        return None;
    }
    // Where they are not told, `whole` says that nobody knows where the bytes came from.
    let disk_read_bytes = read.cpu.broker.as_ref()?.disk_read_bytes.unwrap_or(0);
    Some(ReadCost {
        what: match read.kind {
            ReadKind::Recent => ReadFrom::Memory,
            ReadKind::Backlog => ReadFrom::Start,
            // Only of a topic that was there before.
            ReadKind::Replay => return None,
        },
        mb_per_s: read.mb_per_s,
        seconds: read.seconds,
        broker_cpu_s_per_gb: read.cpu.broker_cpu_s_per_gb?,
        disk_read_bytes,
        from_disk: disk_read_bytes as f64 / 1e9 / read.cpu.payload_gb,
    })
}

fn whole(flags: &UnitCostsArgs, parts: Parts, last: Report) -> UnitCostsReport {
    let mut absent: Vec<Absent> = ["c_send", "c_follow"]
        .map(|cost| Absent {
            cost,
            reason: "it takes a cluster with copies; this ran on one broker without".to_owned(),
        })
        .into();
    let mut remarks = Vec::new();
    match parts.reads.iter().find(|read| read.what == ReadFrom::Start) {
        None => absent.push(Absent {
            cost: "c_cold",
            reason: "the log could not be read from its start".to_owned(),
        }),
        Some(read) if read.from_disk < COLD_FROM => remarks.push(format!(
            "c_cold may not be of a disk: for {:.0} % of what was read from the start the broker read its disk, the rest came from memory \
             (its own or the page cache), or its disk reads are not told; a longer --fill-duration makes it colder.",
            read.from_disk * 100.0
        )),
        Some(_) => {}
    }
    let others = parts
        .stretches
        .iter()
        .map(|stretch| stretch.others)
        .fold(0.0, f64::max);
    if others > OTHERS_NOTED {
        remarks.push(format!(
            "Other programs used up to {:.0} % of this machine's cores: the costs are those of a busy machine.",
            others * 100.0
        ));
    }
    if !last.provenance.tool.is_optimised() {
        remarks.push(
            "corelog-perf was built without optimisation; it may have paced badly.".to_owned(),
        );
    }
    let check = &parts.check;
    let reason = (!check.holds).then(|| {
        format!(
            "the mixed load cost {:+.0} % against what its parts add up to, {:.0} % are allowed",
            check.difference * 100.0,
            check.difference_allowed * 100.0
        )
    });
    let mut provenance = last.provenance;
    provenance.argv.clone_from(&flags.argv);
    UnitCostsReport {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        complete: true,
        valid: reason.is_none(),
        reason,
        provenance,
        workload: last.workload,
        costs: parts.costs,
        at_large_batches: parts.at_large_batches,
        reads: parts.reads,
        partitions: parts.partitions,
        absent,
        fits: parts.fits,
        check: parts.check,
        stretches: parts.stretches,
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::IdleWindow;
    use super::*;

    fn known() -> Costs {
        let segments = |of: [(u64, f64, f64); 2]| {
            of.map(|(request_bytes_min, cpu_s_per_gb, request_cpu_s)| Segment {
                request_bytes_min,
                cpu_s_per_gb,
                request_cpu_s,
            })
            .into()
        };
        Costs {
            idle_cores: 0.02,
            partition_cores: 1e-5,
            // Where they meet, at 128 KiB, both lines cost the same.
            produce: segments([
                (131_072, 1.0, 4e-4),
                (32_768, 1.0 + 2e-4 * 1e9 / 131_072.0, 2e-4),
            ]),
            fetch: segments([
                (131_072, 0.5, 1e-4),
                (32_768, 0.5 + 5e-5 * 1e9 / 131_072.0, 5e-5),
            ]),
        }
    }

    /// A run on a broker that costs exactly what `known` says.
    fn stretch(batch_bytes: u64, has_consumer: bool) -> Stretch {
        let mb_per_s = 50.0;
        let requests_per_s = mb_per_s * 1e6 / batch_bytes as f64;
        let mut stretch = Stretch {
            name: String::new(),
            argv: Vec::new(),
            seconds: 5.0,
            partitions: 16,
            produced_mb_per_s: mb_per_s,
            produce_requests_per_s: requests_per_s,
            consumed_mb_per_s: if has_consumer { mb_per_s } else { 0.0 },
            fetches_per_s: if has_consumer {
                requests_per_s * 0.8
            } else {
                0.0
            },
            broker_cpu_s: 0.0,
            broker_cores: 0.0,
            broker_rss_bytes: 0,
            others: 0.0,
        };
        stretch.broker_cores = known().cores(&stretch.load());
        stretch
    }

    fn partitions() -> PartitionCosts {
        let window = |broker_cores| IdleWindow {
            seconds: 5.0,
            broker_cpu_s: broker_cores * 5.0,
            broker_cores,
            broker_rss_bytes: 0,
        };
        PartitionCosts {
            count: 1_000,
            before: window(0.02),
            idle: window(0.03),
            written_rss_bytes: 0,
            idle_memory_bytes: 0,
            written_memory_bytes: 0,
        }
    }

    #[test]
    fn runs_on_a_broker_of_known_costs_give_them_back() {
        let produced = BATCH_BYTES.map(|bytes| stretch(bytes, false));
        let consumed = BATCH_BYTES.map(|bytes| stretch(bytes, true));
        let (costs, fits) = fitted(&partitions(), &produced, &consumed).unwrap();
        let close = |found: f64, known: f64| (found / known - 1.0).abs() < 1e-6;
        assert!(close(costs.idle_cores, 0.02) && close(costs.partition_cores, 1e-5));
        let pairs = costs.produce.iter().zip(known().produce);
        for (found, known) in pairs.chain(costs.fetch.iter().zip(known().fetch)) {
            assert_eq!(found.request_bytes_min, known.request_bytes_min);
            assert!(
                close(found.cpu_s_per_gb, known.cpu_s_per_gb),
                "{found:?} {known:?}"
            );
            assert!(
                close(found.request_cpu_s, known.request_cpu_s),
                "{found:?} {known:?}"
            );
        }
        assert!(fits.produce.residual_max > 0.05, "one line holds for all");
        let mixed = stretch(CHECK_BATCH_BYTES, true);
        assert!(Check::of(&costs, &mixed.load(), mixed.broker_cores).holds);
    }

    #[test]
    fn a_rate_that_leaves_the_broker_no_room_is_refused_and_the_default_is_a_lower_one() {
        assert_eq!(rate_of(None, 1_000.0).unwrap(), 50_000_000);
        assert_eq!(rate_of(None, 22.0).unwrap(), 11_000_000);
        assert_eq!(rate_of(Some(15_000_000), 22.0).unwrap(), 15_000_000);
        let refused = rate_of(Some(50_000_000), 22.0).unwrap_err();
        assert!(refused.is_usage());
        assert!(!rate_of(None, 0.5).unwrap_err().is_usage());
        let text = refused.to_string();
        assert!(
            text.contains("takes 22.0 MB/s") && text.contains("--rate 19MB/s"),
            "{text}"
        );
    }

    #[test]
    fn at_large_batches_the_requests_are_in_the_cost_of_a_gb() {
        let large = at_large_batches(
            &known(),
            &stretch(1_000_000, false),
            &stretch(1_000_000, true),
        );
        // 1.0 and 0.5 with 1,000 requests a GB, and 16 partitions, which are in both.
        assert!(
            (large.lead_cpu_s_per_gb - 1.4 - 16e-5 / 0.05).abs() < 1e-9,
            "{large:?}"
        );
        assert!((large.fetch_cpu_s_per_gb - 0.6).abs() < 1e-9, "{large:?}");
    }

    #[test]
    fn partitions_that_seem_to_save_cost_nothing() {
        let mut saving = partitions();
        saving.idle.broker_cores = 0.01;
        assert_eq!(saving.cores_each(), 0.0);
    }
}
