//! A search's tries, in their order.

use maud::{Markup, html};

use crate::histogram::LatencySummary;
use crate::report::{SearchReport, number};

pub fn tries(search: &SearchReport) -> Markup {
    let quantiles: [fn(&LatencySummary) -> f64; 3] = [
        |latency| latency.p50_ms,
        |latency| latency.p99_ms,
        |latency| latency.p999_ms,
    ];
    html! {
        h2 { "Search for the " (search.title()) }
        div class="wide" { table {
            tr {
                th { "offered" } th class="number" { "confirmed MB/s" } th class="number" { "p50 ms" }
                th class="number" { "p99 ms" } th class="number" { "p99.9 ms" } th { "" }
            }
            @for tried in &search.tries {
                tr {
                    td { (tried.rate) }
                    td class="number" { (number(tried.acked_mb_per_s)) }
                    @for quantile in quantiles {
                        td class="number" {
                            @if let Some(latency) = &tried.publish_latency { (number(quantile(latency))) }
                        }
                    }
                    td class="long" { (tried.verdict()) }
                }
            }
        } }
        p class="soft" {
            "The search ends when the lowest rate that did not hold is at most " (search.within_percent)
            " % above the highest that did. That one is then measured at full length; the figures below are of that step."
        }
    }
}
