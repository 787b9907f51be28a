//! One short run of a known load.

use std::time::Duration;

use clap::Parser;
use serde::Serialize;

use super::cost::Load;
use super::error::UnitCostsError;
use super::flags::UnitCostsArgs;
use crate::cli::{Cli, Command, RunArgs};
use crate::interrupt::Interrupt;
use crate::report::{AuditOutcome, Report};
use crate::run::run_unwritten;

/// Batches wait until they are full, so that a request's size is what it is to be.
const LINGER_MS: u64 = 10_000;

/// A paced load below this share of its rate was more than the broker takes.
const RATE_MET: f64 = 0.97;

/// What is asked of a run.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    /// None: as fast as it goes.
    pub rate_bytes_per_s: Option<u64>,
    pub duration: Duration,
    pub batch_bytes: u64,
    pub has_consumer: bool,
    pub partitions: u32,
    /// None: a topic of its own.
    pub topic: Option<String>,
    pub reads_back: bool,
}

/// What one run told. The figures are the broker's, over the measured window.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    pub name: String,
    /// The `corelog-perf run` that does the same.
    pub argv: Vec<String>,
    pub seconds: f64,
    pub partitions: u32,
    pub produced_mb_per_s: f64,
    pub produce_requests_per_s: f64,
    pub consumed_mb_per_s: f64,
    pub fetches_per_s: f64,
    pub broker_cpu_s: f64,
    pub broker_cores: f64,
    /// At the end of the window.
    pub broker_rss_bytes: u64,
    /// Share of the machine's cores that other programs used.
    pub others: f64,
}

impl Stretch {
    pub fn load(&self) -> Load {
        Load {
            partitions: f64::from(self.partitions),
            produced_gb_per_s: self.produced_mb_per_s / 1e3,
            produce_requests_per_s: self.produce_requests_per_s,
            consumed_gb_per_s: self.consumed_mb_per_s / 1e3,
        }
    }
}

/// The arguments of a run that touches this cluster and writes nothing.
pub fn run_arguments(flags: &UnitCostsArgs, shape: &Shape) -> Result<RunArgs, UnitCostsError> {
    let mut argv: Vec<String> = ["corelog-perf", "run", "1-topic-1-partition-1kb"]
        .map(str::to_owned)
        .into();
    let rate = shape
        .rate_bytes_per_s
        .map_or_else(|| "max".to_owned(), |rate| format!("{rate}B/s"));
    let mut flag = |name: &str, value: String| argv.extend([format!("--{name}"), value]);
    flag("bootstrap", flags.bootstrap.clone());
    if let Some(pid) = flags.broker_pid {
        flag("broker-pid", pid.to_string());
    }
    flag("rate", rate);
    flag("duration", format!("{}ms", shape.duration.as_millis()));
    flag("warmup", format!("{}ms", flags.warmup.as_millis()));
    flag("batch-bytes", shape.batch_bytes.to_string());
    flag("request-bytes", shape.batch_bytes.to_string());
    flag("linger-ms", LINGER_MS.to_string());
    flag("partitions", shape.partitions.to_string());
    flag("consumers", u32::from(shape.has_consumer).to_string());
    flag("audit", "watermark".to_owned());
    flag("baseline-seconds", "0s".to_owned());
    if !shape.reads_back {
        flag("read-duration", "0s".to_owned());
    }
    if let Some(topic) = &shape.topic {
        flag("topic", topic.clone());
    }
    let refused = |reason: String| UnitCostsError::CommandLine {
        name: shape.name.clone(),
        reason,
    };
    match Cli::try_parse_from(&argv).map_err(|error| refused(error.to_string()))? {
        Cli {
            command: Command::Run(mut run),
        } => {
            run.argv = argv;
            run.plan().map_err(|error| refused(error.to_string()))?;
            Ok(*run)
        }
        _ => Err(refused("it is another command".to_owned())),
    }
}

/// Runs it and takes out what it tells of the broker. A rate that was missed may have met a busy moment of the machine: it has a
/// second try.
pub fn run(
    flags: &UnitCostsArgs,
    shape: &Shape,
    interrupt: &Interrupt,
) -> Result<(Stretch, Report), UnitCostsError> {
    match run_once(flags, shape, interrupt) {
        Err(UnitCostsError::RateMissed { .. }) => {
            eprintln!("{}: it missed its rate, once more", shape.name);
            run_once(flags, shape, interrupt)
        }
        done => done,
    }
}

fn run_once(
    flags: &UnitCostsArgs,
    shape: &Shape,
    interrupt: &Interrupt,
) -> Result<(Stretch, Report), UnitCostsError> {
    let name = shape.name.clone();
    eprintln!("{name}");
    let arguments = run_arguments(flags, shape)?;
    let finished = run_unwritten(&arguments, interrupt).map_err(|source| UnitCostsError::Run {
        name: name.clone(),
        source,
    })?;
    let stretch = stretch(shape, &finished.report)?;
    Ok((stretch, finished.report))
}

fn stretch(shape: &Shape, report: &Report) -> Result<Stretch, UnitCostsError> {
    let not_valid = |reason: String| UnitCostsError::NotValid {
        name: shape.name.clone(),
        reason,
    };
    if !report.complete {
        return Err(match &report.failure {
            Some(failure) => not_valid(failure.clone()),
            None => UnitCostsError::Interrupted,
        });
    }
    if report.audit.outcome != AuditOutcome::Passed {
        return Err(not_valid("its audit did not pass".to_owned()));
    }
    let step = report
        .steps
        .first()
        .ok_or_else(|| not_valid("it has no step".to_owned()))?;
    if let Some(offered) = step.offered_mb_per_s
        && step.acked_mb_per_s < RATE_MET * offered
    {
        return Err(UnitCostsError::RateMissed {
            name: shape.name.clone(),
            took_mb_per_s: step.acked_mb_per_s,
            offered_mb_per_s: offered,
        });
    }
    let used = step.cpu.broker.as_ref().ok_or(UnitCostsError::NoCpu)?;
    Ok(Stretch {
        name: shape.name.clone(),
        argv: report.provenance.argv.clone(),
        seconds: step.seconds,
        partitions: shape.partitions,
        produced_mb_per_s: step.acked_mb_per_s,
        produce_requests_per_s: step.produce_requests_per_s,
        consumed_mb_per_s: step.consumed_mb_per_s,
        fetches_per_s: step.fetches_per_s,
        broker_cpu_s: used.cpu_s,
        broker_cores: used.cpu_s / step.seconds,
        broker_rss_bytes: used.rss_bytes.ok_or(UnitCostsError::NoCpu)?,
        others: step.cpu.machine.others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn flags(more: &[&str]) -> UnitCostsArgs {
        let argv = ["corelog-perf", "unit-costs"].iter().chain(more);
        match Cli::try_parse_from(argv).unwrap().command {
            Command::UnitCosts(flags) => flags,
            _ => panic!("another command"),
        }
    }

    fn shape() -> Shape {
        Shape {
            name: "load".to_owned(),
            rate_bytes_per_s: Some(10_000_000),
            duration: Duration::from_secs(1),
            batch_bytes: 32_768,
            has_consumer: true,
            partitions: 4,
            topic: None,
            reads_back: false,
        }
    }

    #[test]
    fn a_shape_is_a_run_whose_requests_have_its_size() {
        let flags = flags(&["--bootstrap", "a:1", "--broker-pid", "7"]);
        let plan = run_arguments(&flags, &shape()).unwrap().plan().unwrap();
        assert_eq!((plan.bootstrap.as_str(), plan.partitions), ("a:1", 4));
        assert_eq!(
            (plan.batch_bytes_max, plan.request_bytes_max, plan.consumers),
            (32_768, 32_768, 1)
        );
        assert!(plan.linger.as_millis() > 1_000);
    }

    #[test]
    fn an_address_that_is_none_is_a_usage_error_before_anything_runs() {
        let refused = run_arguments(&flags(&["--bootstrap", "nowhere:"]), &shape());
        assert!(refused.err().unwrap().is_usage());
    }

    #[test]
    fn a_run_that_misses_its_rate_is_of_no_use() {
        let (mut report, _) = sample::report();
        report.steps.remove(0);
        let reason = |report: &Report| stretch(&shape(), report).unwrap_err().to_string();
        assert!(reason(&report).contains("CPU time and memory are not known"));
        report.steps[0].acked_mb_per_s = 5.0;
        assert!(reason(&report).contains("5.0 of 10.0 MB/s"));
        report.audit.outcome = AuditOutcome::Failed;
        assert!(reason(&report).contains("audit"));
        report.complete = false;
        assert_eq!(reason(&report), "ended early");
    }
}
