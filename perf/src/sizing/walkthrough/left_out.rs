//! What follows from the text's numbers and is not in it.

use std::cmp::Ordering;

use super::super::broker_capacity::{CPU_UNITS_PER_CORE, UnitCosts};
use super::super::constraint::{BrokerCounts, Constraint, Resource};
use super::super::demand::Demand;
use super::super::estimate::Refill;
use super::super::notation::{bytes, bytes_per_s, count, number, seconds};
use super::super::source::Sourced;
use super::line::Line;
use super::{COPIES, DAY_S, RETENTION_DAYS, demand, limit};
use crate::quantity::Percent;

pub fn lines(
    rounded: &Demand,
    exact: &Demand,
    writes: &Constraint,
    brokers: &BrokerCounts,
    headroom: Percent,
) -> Vec<Line> {
    let n = brokers.at_full;
    let (limit, has) = (limit(writes), writes.broker_has as f64);
    let of_days = |demand: &Demand| {
        Refill::of(
            demand.kept_bytes() as f64 / n as f64,
            writes.broker_has as u64,
            writes.per_broker(n),
            exact.retention_s.value,
        )
    };
    let (refill, refill_exact) = (of_days(rounded), of_days(exact));
    let left = n - 1;
    let after_loss = writes.per_broker(left);
    let enough = if after_loss > has {
        "more than"
    } else {
        "within"
    };
    let out = rounded.peak_bytes_per_s() * (COPIES - 1 + rounded.reader_groups.value);
    let against_kept = |refill: &Refill| {
        let kept_s = exact.retention_s.value as f64;
        match refill.seconds.total_cmp(&kept_s) {
            Ordering::Less => format!("shorter than the {RETENTION_DAYS} days kept"),
            Ordering::Equal => format!("as long as the {RETENTION_DAYS} days kept"),
            Ordering::Greater => format!("longer than the {RETENTION_DAYS} days kept"),
        }
    };
    let writes = bytes_per_s(writes.cluster_needs as f64);
    vec![
        Line::new(
            "with one broker lost",
            format!("{writes} / {left} brokers left"),
            after_loss,
            "bytes_per_s",
        )
        .remark(format!("each, {enough} the {limit} that a broker takes")),
        Line::new(
            "brokers to survive that",
            format!("{writes} / {limit}, rounded up, + 1"),
            brokers.one_lost as f64,
            "brokers",
        ),
        Line::new(
            "brokers at the headroom",
            format!("{writes} / ({limit} x {headroom}), rounded up"),
            brokers.at_headroom as f64,
            "brokers",
        ),
        Line::new(
            "brokers for both",
            format!("{writes} / ({limit} x {headroom}), rounded up, + 1"),
            brokers.at_headroom_one_lost as f64,
            "brokers",
        ),
        Line::new(
            "refilling a lost broker",
            format!("{} / {limit}", bytes(refill.broker_bytes)),
            refill.seconds,
            "s",
        )
        .exactly(refill_exact.seconds)
        .remark(format!(
            "{}; exactly, {} take {}, {}",
            against_kept(&refill),
            bytes(refill_exact.broker_bytes),
            seconds(refill_exact.seconds),
            against_kept(&refill_exact)
        )),
        Line::new(
            "network out, each broker",
            format!(
                "{} x ({COPIES} - 1 followers + {} reader group) / {n} brokers",
                bytes_per_s(rounded.peak_bytes_per_s() as f64),
                rounded.reader_groups.value
            ),
            out as f64 / n as f64,
            "bytes_per_s",
        )
        .remark(format!(
            "each further group that reads everything adds {}",
            bytes_per_s(rounded.peak_bytes_per_s() as f64 / n as f64)
        )),
    ]
}

/// The load's CPU at what a GB costs; the text does not count it.
pub fn cpu(costs: &UnitCosts, brokers: u64, machine_cores: Option<&Sourced<u64>>) -> Vec<Line> {
    let load = demand(DAY_S);
    let gb_per_s = load.peak_bytes_per_s() as f64 / 1e9;
    let cores = costs.cluster_cpu(&load) as f64 / CPU_UNITS_PER_CORE as f64;
    let parts = [
        ("c_lead", &costs.lead_ns_per_gb),
        ("c_fetch", &costs.fetch_ns_per_gb),
        ("c_send", &costs.send_ns_per_gb),
        ("c_follow", &costs.follow_ns_per_gb),
    ];
    let of_each = Line::new(
        "cores of each broker",
        format!("{} cores / {brokers} brokers", number(cores)),
        cores / brokers as f64,
        "cores",
    );
    let mut lines: Vec<Line> = parts
        .into_iter()
        .map(|(name, value)| {
            let cpu_s_per_gb = value.value as f64 / 1e9;
            Line::new(name, value.source.to_string(), cpu_s_per_gb, "CPU-s/GB")
        })
        .collect();
    let of_requests = [
        ("c_request", &costs.request_ns),
        ("c_fetch_request", &costs.fetch_request_ns),
        ("c_partition, each second", &costs.partition_ns_per_s),
    ];
    let known = of_requests.iter().filter(|(_, cost)| cost.value > 0);
    lines.extend(known.map(|(name, cost)| {
        Line::new(name, cost.source.to_string(), cost.value as f64 / 1e3, "us")
    }));
    lines.push(Line::new(
        "cores of all brokers",
        format!("{}, for {} GB/s", Resource::Cpu.formula(), number(gb_per_s)),
        cores,
        "cores",
    ));
    lines.push(match machine_cores {
        Some(machine) => {
            of_each.remark(format!("the measured machine has {}", count(machine.value)))
        }
        None => of_each,
    });
    lines
}
