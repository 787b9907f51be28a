//! Where the load came from, if workers put it on.

use maud::{Markup, html};

use crate::report::{Report, number};

/// Nothing without workers.
pub fn workers(report: &Report) -> Markup {
    let workers = &report.provenance.workers;
    if workers.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Workers" }
        div class="wide" { table {
            tr {
                th { "worker" } th { "machine" } th class="number" { "wall clock ms" } th class="number" { "known to ms" }
                th class="number" { "CPU-s/GB" } th class="number" { "generator lag p99 ms" }
            }
            @for worker in workers {
                tr {
                    td { (worker.address) }
                    td { (worker.hostname) ", " (worker.machine.cores) " cores, kernel " (worker.machine.kernel) }
                    td class="number" { @if let Some(clock) = &worker.clock { (format!("{:+.3}", clock.wall_clock_ahead_ms)) } }
                    td class="number" { @if let Some(clock) = &worker.clock { (number(clock.uncertainty_ms)) } }
                    td class="number" { @if let Some(cost) = worker.cpu_s_per_gb { (number(cost)) } }
                    td class="number" { @if let Some(lag) = &worker.lag { (number(lag.p99_ms)) } }
                }
            }
        } }
        div class="wide" { table {
            tr {
                th { "rate" } th { "worker" } th class="number" { "confirmed MB/s" } th class="number" { "consumed MB/s" }
                th class="number" { "CPU-s/GB" } th class="number" { "machine busy %" } th { "busiest threads (share of a core)" }
            }
            @for step in &report.steps {
                @for worker in &step.workers {
                    tr {
                        td { (step.rate) } td { (worker.address) }
                        td class="number" { (number(worker.acked_mb_per_s)) }
                        td class="number" { (number(worker.consumed_mb_per_s)) }
                        td class="number" { @if let Some(cost) = worker.cpu_s_per_gb { (number(cost)) } }
                        td class="number" { (format!("{:.0}", worker.machine.busy * 100.0)) }
                        td {
                            @for thread in worker.cpu.iter().flat_map(|cpu| &cpu.threads).take(4) {
                                (thread.name) " " (format!("{:.0} %  ", thread.total_s() / step.seconds * 100.0))
                            }
                        }
                    }
                }
            }
        } }
    }
}
