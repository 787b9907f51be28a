//! What the run cost: processors, memory, disks and network, of broker, client and machine.

use maud::{Markup, html};

use crate::cpu::CpuUse;
use crate::report::{CpuReport, NetworkReport, Report, number};

/// So many threads say where the time went.
const THREADS_SHOWN: usize = 4;

/// A step or a read.
struct Stretch<'a> {
    name: String,
    seconds: f64,
    cpu: &'a CpuReport,
    network: &'a NetworkReport,
    write_amplification: Option<f64>,
}

fn stretches(report: &Report) -> Vec<Stretch<'_>> {
    let steps = report.steps.iter().map(|step| Stretch {
        name: format!("produce, {}", step.rate),
        seconds: step.seconds,
        cpu: &step.cpu,
        network: &step.network,
        write_amplification: step.write_amplification,
    });
    let reads = report.reads.iter().map(|read| Stretch {
        name: format!("fetch, {}", read.kind.name()),
        seconds: read.seconds,
        cpu: &read.cpu,
        network: &read.network,
        write_amplification: None,
    });
    steps.chain(reads).collect()
}

pub fn resources(report: &Report) -> Markup {
    let stretches = stretches(report);
    html! {
        h2 { "Processors, memory, disks, network" }
        div class="wide" { table {
            tr {
                th { "stretch" } th { "who" } th class="number" { "CPU-s/GB" } th class="number" { "user s" }
                th class="number" { "system s" } th class="number" { "RSS MB" } th class="number" { "peak RSS MB" }
                th class="number" { "disk written MB" } th class="number" { "disk read MB" }
                th class="number" { "switches, voluntary" } th class="number" { "involuntary" }
            }
            @for stretch in &stretches {
                @let cpu = stretch.cpu;
                (row(stretch, "broker", cpu.broker_cpu_s_per_gb, cpu.broker.as_ref()))
                @if cpu.brokers.len() > 1 || cpu.broker.is_none() {
                    @for broker in &cpu.brokers {
                        (row(stretch, &broker.source, None, broker.used.as_ref()))
                        @if let Some(reason) = &broker.not_measured {
                            tr { td { (stretch.name) } td { (broker.source) } td colspan="9" class="soft" { "not measured: " (reason) } }
                        }
                    }
                }
                (row(stretch, "client", cpu.client_cpu_s_per_gb, cpu.client.as_ref()))
            }
        } }
        (threads(&stretches))
        div class="wide" { table {
            tr {
                th { "stretch" } th class="number" { "disk bytes / acked byte" } th class="number" { "client sent MB" }
                th class="number" { "client received MB" } th { "interface" } th class="number" { "sent MB" }
                th class="number" { "received MB" } th class="number" { "cores busy" } th class="number" { "by others" }
                th class="number" { "stolen" }
            }
            @for stretch in &stretches {
                @let (network, machine) = (stretch.network, &stretch.cpu.machine);
                tr {
                    td { (stretch.name) }
                    td class="number" { @if let Some(factor) = stretch.write_amplification { (number(factor)) } }
                    td class="number" { (megabytes(network.client_sent_bytes)) }
                    td class="number" { (megabytes(network.client_received_bytes)) }
                    @match &network.interface {
                        Some(interface) => {
                            td { (interface.name) }
                            td class="number" { (megabytes(interface.sent_bytes)) }
                            td class="number" { (megabytes(interface.received_bytes)) }
                        },
                        None => { td {} td {} td {} },
                    }
                    @for share in [machine.busy, machine.others, machine.steal] {
                        td class="number" { (format!("{:.0} %", share * 100.0)) }
                    }
                }
            }
        } }
    }
}

fn row(stretch: &Stretch<'_>, who: &str, cost: Option<f64>, used: Option<&CpuUse>) -> Markup {
    let Some(used) = used else {
        return html! {};
    };
    html! {
        tr {
            td { (stretch.name) } td { (who) }
            @for value in [cost, used.user_s, used.system_s] {
                td class="number" { @if let Some(value) = value { (number(value)) } }
            }
            @for bytes in [used.rss_bytes, used.rss_peak_bytes, used.disk_written_bytes, used.disk_read_bytes] {
                td class="number" { @if let Some(bytes) = bytes { (megabytes(bytes)) } }
            }
            @for switches in [used.voluntary_switches, used.involuntary_switches] {
                td class="number" { @if let Some(switches) = switches { (switches) } }
            }
        }
    }
}

/// Where the time of each process went.
fn threads(stretches: &[Stretch<'_>]) -> Markup {
    let share = |used_s: f64, seconds: f64| format!("{:.0}", used_s / seconds * 100.0);
    html! {
        div class="wide" { table {
            tr {
                th { "stretch" } th { "busiest threads" } th { "of" } th class="number" { "% of a core" } th class="number" { "user %" }
                th class="number" { "system %" } th class="number" { "switches, voluntary" } th class="number" { "involuntary" }
            }
            @for stretch in stretches {
                @for (who, used) in [("broker", &stretch.cpu.broker), ("client", &stretch.cpu.client)] {
                    @for thread in used.iter().flat_map(|used| &used.threads).take(THREADS_SHOWN) {
                        tr {
                            td { (stretch.name) } td { (thread.name) } td { (who) }
                            td class="number" { (share(thread.total_s(), stretch.seconds)) }
                            td class="number" { (share(thread.user_s, stretch.seconds)) }
                            td class="number" { (share(thread.system_s, stretch.seconds)) }
                            td class="number" { (thread.voluntary_switches) }
                            td class="number" { (thread.involuntary_switches) }
                        }
                    }
                }
            }
        } }
    }
}

fn megabytes(bytes: u64) -> String {
    number(bytes as f64 / 1e6)
}
