//! The backlogs, stage by stage.

use maud::{Markup, html};

use crate::report::backlog::{QUANTILES, sentence};
use crate::report::{Loop, Report, number};

pub fn backlogs(report: &Report) -> Markup {
    let steps = report.steps.iter();
    let with_backlog: Vec<_> = steps
        .filter_map(|step| Some((step, step.backlog.as_ref()?)))
        .collect();
    if with_backlog.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Backlog" }
        @for (step, backlog) in &with_backlog {
            p { (sentence(step, backlog)) }
            div class="wide" { table {
                tr {
                    th { "stage" } th class="number" { "s" } th class="number" { "produced MB/s" } th class="number" { "consumed MB/s" }
                    @for (name, _) in QUANTILES { th class="number" { (name) " ms" } }
                }
                @for stretch in &backlog.stretches {
                    tr {
                        td { (stretch.stage.name()) }
                        td class="number" { (number(stretch.seconds)) }
                        td class="number" { (number(stretch.acked_mb_per_s)) }
                        td class="number" { (number(stretch.consumed_mb_per_s)) }
                        @for (_, quantile) in QUANTILES {
                            td class="number" {
                                @if let (Loop::Open, Some(latency)) = (step.load, &stretch.publish_latency) { (number(quantile(latency))) }
                            }
                        }
                    }
                }
            } }
        }
    }
}
