//! Unit costs as a page.

use maud::{Markup, html};

use super::print::{cost_rows, text, verdict};
use super::report::UnitCostsReport;
use crate::columns::Columns;
use crate::page::{page as framed, remarks, row};
use crate::report::number;

pub fn page(report: &UnitCostsReport) -> String {
    let machine = &report.provenance.machine;
    let body = html! {
        @if let Some(reason) = &report.reason { p class="bad" { "Not valid: " (reason) ". Repeat it when nothing else runs on the machine, with a longer --duration, on a broker that was just started." } }
        p {
            "CPU and memory of one broker by what it does, from short runs of known loads at "
            (report.workload.producer_rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")) "."
        }
        p class="soft" {
            (machine.cpu_model) ", " (machine.cores) " cores, kernel " (machine.kernel) "."
        }
        (remarks(&report.remarks))
        h2 { "Costs" }
        @for (name, value, source) in cost_rows(report) { (row(name, &value, &source)) }
        h2 { "Check" }
        p class=[(!report.check.holds).then_some("bad")] { "A mixed load that is in no fit: " (verdict(report)) "." }
        @for part in &report.check.parts { (row(part.what, &format!("{} cores", number(part.cores)), "")) }
        (runs(report))
        details { summary { "The report as text" } pre { (text(report, Columns::OF_A_FILE)) } }
        h2 { "Settings" }
        pre { (report.provenance.argv.join(" ")) }
    };
    framed(
        &format!("Unit costs of {}", report.provenance.broker.bootstrap),
        &body,
    )
}

fn runs(report: &UnitCostsReport) -> Markup {
    html! {
        h2 { "Runs" }
        div class="wide" { table {
            tr {
                th { "run" } th class="number" { "MB/s" } th class="number" { "requests/s" }
                th class="number" { "read MB/s" } th class="number" { "fetches/s" } th class="number" { "broker cores" }
                th class="number" { "RSS MB" } th class="number" { "others" }
            }
            @for stretch in &report.stretches {
                tr {
                    td { (stretch.name) }
                    td class="number" { (number(stretch.produced_mb_per_s)) }
                    td class="number" { (number(stretch.produce_requests_per_s)) }
                    td class="number" { (number(stretch.consumed_mb_per_s)) }
                    td class="number" { (number(stretch.fetches_per_s)) }
                    td class="number" { (number(stretch.broker_cores)) }
                    td class="number" { (number(stretch.broker_rss_bytes as f64 / 1e6)) }
                    td class="number" { (format!("{:.0} %", stretch.others * 100.0)) }
                }
            }
        } }
        h3 { "Each as a command" }
        @for stretch in &report.stretches { pre { (stretch.argv.join(" ")) } }
    }
}
