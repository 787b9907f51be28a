//! The report as one HTML file that needs nothing else: no script, no network, charts as SVG inside.
//!
//! Owns: what is shown in which order, and how. Must never know: how anything was measured. Everything on the page is in
//! `report.json` or in the raw histograms.

mod backlog;
mod resources;
mod search;
mod sections;
mod workers;

use maud::html;

use super::{RawHistogram, Report};
use crate::page;

pub fn html(report: &Report, histograms: &[RawHistogram]) -> String {
    let body = html! {
        (sections::summary(report))
        @if let Some(found) = &report.search { (search::tries(found)) }
        (sections::figures(report))
        (sections::throughput(report))
        (backlog::backlogs(report))
        (sections::latency(report, histograms))
        (resources::resources(report))
        (workers::workers(report))
        (sections::baselines(report))
        (sections::settings(report))
    };
    page::page(&report.workload.name, &body)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::live::Failures;
    use crate::outage::Outage;
    use crate::report::sample;

    #[test]
    fn a_page_is_whole_and_asks_the_network_for_nothing() {
        let (report, histograms) = sample::report();
        let page = html(&report, &histograms);
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        for loads in ["<script", "<link", "src=", "url(", "@import", "href=\"http"] {
            assert!(!page.contains(loads), "the page has {loads}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn a_run_that_is_not_valid_says_so_before_any_figure() {
        let (mut report, histograms) = sample::report();
        assert!(!html(&report, &histograms).contains("class=\"bad\""));
        report.steps[0].generator.valid = false;
        report.steps[0].generator.reason = Some("its lag <b> distorts".to_owned());
        let page = html(&report, &histograms);
        let warning = page.find("class=\"bad\"").expect("a warning");
        assert!(warning < page.find("<table").expect("a table"));
        assert!(page.contains("its lag &lt;b&gt; distorts"));
    }

    #[test]
    fn a_chart_does_not_fall_in_what_is_left_of_the_last_second() {
        let (mut report, histograms) = sample::report();
        let before = html(&report, &histograms);
        for step in &mut report.steps {
            let mut rest = step.timeline.last().expect("a second").clone();
            (rest.at_s, rest.seconds, rest.acked_mb_per_s) = (rest.at_s + 1.0, 0.1, 0.0);
            step.timeline.push(rest);
        }
        let after = html(&report, &histograms);
        let charts = |page: &str| {
            let begin = page.find("Second by second").expect("the charts");
            page[begin..page.find("<h2>Latency").expect("the next part")].to_owned()
        };
        assert!(charts(&before).contains("<polyline"));
        assert_eq!(charts(&after), charts(&before));
    }

    #[test]
    fn no_word_is_broken_where_a_column_is_narrow() {
        let page = html(&sample::report().0, &[]);
        let style = &page[..page.find("</style>").expect("a style")];
        let body = &style[style.find("body {").expect("a rule")..];
        let body = &body[..body.find('}').expect("its end")];
        assert!(!body.contains("anywhere"), "{body}");
    }

    #[test]
    fn every_worker_has_its_row_and_a_run_without_workers_no_table() {
        let (mut report, histograms) = sample::report();
        assert!(!html(&report, &histograms).contains("<h2>Workers</h2>"));
        report.provenance.workers = ["a:1", "b:2"].map(sample::worker).into();
        let page = html(&report, &histograms);
        assert!(page.contains("<td>a:1</td>") && page.contains("<td>b:2</td>"));
        assert!(page.contains("+1.500") && page.contains("0.250"));
    }

    #[test]
    fn every_open_rate_has_its_curve_and_a_closed_one_none() {
        let (report, histograms) = sample::report();
        let page = html(&report, &histograms);
        let percentiles = page.find("Latency by percentile").expect("the chart");
        assert!(page[percentiles..].contains("10.0 MB/s"));
        assert!(page.contains("Latency against load"));
    }

    #[test]
    fn an_outage_is_told_before_any_figure_and_its_seconds_are_shaded_and_listed() {
        let (mut report, histograms) = sample::report();
        let without = html(&report, &histograms);
        report.steps[1].outages = vec![Outage {
            start_s: 2.5,
            seconds: 3.2,
            acks_stopped: true,
            ended: true,
            failures: Failures {
                errors: BTreeMap::from([("CONNECTION_LOST".to_owned(), 9)]),
                ..Failures::default()
            },
        }];
        let page = html(&report, &histograms);
        let told = page.find("acks stopped for 3.2 s at 2.5 s").expect("told");
        assert!(told < page.find("<table").expect("a table"));
        assert!(page.contains("9 records failed (CONNECTION_LOST)"));
        assert!(page.contains("Shaded:") && !without.contains("Shaded:"));
        assert!(page.matches("<rect").count() > without.matches("<rect").count());
    }

    #[test]
    fn a_search_shows_its_tries_and_all_of_them_stand_against_the_load() {
        let (report, histograms) = sample::search_report();
        let page = html(&report, &histograms);
        assert!(page.contains("The highest rate with p99 &lt;= 5 ms is 10.0 MB/s"));
        assert!(page.contains("did not hold: p99 was 9.9 ms"));
        let chart = &page[page.find("Latency against load").expect("the chart")..];
        // A line of one point would be a circle; two points are a line, of the step and of the try that did not hold.
        assert!(chart.contains("<polyline") && !chart.contains("<circle"));
    }
}
