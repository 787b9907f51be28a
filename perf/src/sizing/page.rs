//! A sizing as a page.

use maud::{Markup, html};

use super::chart::{self, Curve};
use super::constraint::{BrokerCounts, Constraint};
use super::estimate::Estimate;
use super::notation::{bytes_per_s, count, share};
use super::print::{Row, broker_rows, consequence_rows, count_rows, demand_rows};
use super::walkthrough::{self, Line, Part, Walkthrough};
use crate::page::{charts, page, remarks, row};
use crate::quantity::Percent;

/// Constraints beside the count that one would buy: the ones that ask for the most.
const CONSTRAINT_CURVES: usize = 4;

pub fn estimate(estimate: &Estimate) -> String {
    let demand = &estimate.demand;
    let ingest = bytes_per_s(demand.ingest_bytes_per_s.value as f64);
    let chosen = count(estimate.chosen_brokers.value);
    let body = html! {
        p {
            (capitalised(estimate.binding.name())) " decides. With " (chosen) " brokers each one's share and what follows from it "
            "stand below; every input says where it comes from."
        }
        h2 { "Brokers" }
        @for (what, brokers) in count_rows(estimate) { (row(&what, &count(brokers), "")) }
        (figure(demand.ingest_bytes_per_s.value, &estimate_curves(estimate)))
        (constraints(estimate))
        (rows(&format!("With {chosen} brokers"), &consequence_rows(estimate)))
        (rows("Load", &demand_rows(estimate)))
        (rows("One broker", &broker_rows(estimate)))
        (remarks(&estimate.remarks))
    };
    page(&format!("{chosen} brokers for {ingest}"), &body)
}

pub fn walkthrough(walkthrough: &Walkthrough) -> String {
    let part = &walkthrough.text;
    let headroom = walkthrough.headroom_percent;
    let mut curves = part_curves(part, headroom, "a broker writes");
    if let Some(measured) = &walkthrough.measured {
        curves.extend(part_curves(measured, headroom, "measured,"));
    }
    let ingest = walkthrough::demand(1).ingest_bytes_per_s.value;
    let body = html! {
        (lines("In the text", &part.in_the_text))
        (lines("What it leaves out", &part.left_out))
        (figure(ingest, &curves))
        @if let Some(measured) = &walkthrough.measured {
            h2 { "Measured" }
            (row(
                "a broker writes",
                &bytes_per_s(measured.disk_bytes_per_s.value as f64),
                &measured.disk_bytes_per_s.source.to_string(),
            ))
            (remarks(&measured.remarks))
            (lines("The same with measured figures", &measured.in_the_text))
            (lines("What the text leaves out, measured", &measured.left_out))
            (lines("CPU", &measured.cpu))
        }
    };
    page("The walkthrough's estimate", &body)
}

fn rows(title: &str, rows: &[Row]) -> Markup {
    html! {
        h2 { (title) }
        @for (name, value, note) in rows { (row(name, value, note)) }
    }
}

fn lines(title: &str, lines: &[Line]) -> Markup {
    html! {
        h2 { (title) }
        @for line in lines {
            @let note = match &line.remark {
                Some(remark) => format!("{} ({remark})", line.formula),
                None => line.formula.clone(),
            };
            (row(line.what, &line.shown, &note))
        }
    }
}

fn constraints(estimate: &Estimate) -> Markup {
    let chosen = count(estimate.chosen_brokers.value);
    html! {
        h2 { "Constraints" }
        p {
            "I is the ingest at its peak after compression, R the copies, F the reader groups, Q the Produce requests, T the retention, P the partitions."
        }
        div class="wide" { table {
            tr {
                th {}
                th class="number" { "cluster needs" } th class="number" { "broker has" }
                th class="number" { "at 100 %" } th class="number" { "at " (estimate.headroom_percent) }
                th class="number" { "used at " (chosen) } th class="number" { "one lost" } th { "formula" }
            }
            @for constraint in &estimate.constraints {
                tr class=[(constraint.resource == estimate.binding).then_some("binds")] {
                    td { (constraint.resource.name()) }
                    td class="number" { (constraint.shown.cluster_needs) }
                    td class="number" { (constraint.shown.broker_has) }
                    td class="number" { (count(constraint.brokers_at_full)) }
                    td class="number" { (count(constraint.brokers_at_headroom)) }
                    td class="number" { (share(constraint.utilisation)) }
                    td class="number" { (constraint.utilisation_one_lost.map_or_else(|| "-".to_owned(), share)) }
                    td class="long" { (constraint.formula) }
                }
            }
        } }
    }
}

fn figure(ingest_bytes_per_s: u64, curves: &[Curve<'_>]) -> Markup {
    let svg = chart::brokers_against_ingest(ingest_bytes_per_s, curves);
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    html! {
        (charts::figure("Brokers against ingest", &svg, &names))
        p class="soft" { "The vertical line is the load asked for, " (bytes_per_s(ingest_bytes_per_s as f64)) "." }
    }
}

/// What one would buy, then the constraints that ask for the most; those that ask for the same share a line.
fn estimate_curves(estimate: &Estimate) -> Vec<Curve<'_>> {
    let headroom = estimate.headroom_percent;
    let at = |ingest| Constraint::all(&estimate.demand.at_ingest(ingest), &estimate.broker);
    let copies = estimate.demand.copies.value;
    let mut curves = vec![Curve {
        name: format!("brokers at {headroom} with one lost"),
        brokers: Box::new(move |ingest| {
            BrokerCounts::of(&at(ingest), copies, headroom).at_headroom_one_lost
        }),
        bold: true,
    }];
    let mut order: Vec<(usize, Constraint)> = at(estimate.demand.ingest_bytes_per_s.value)
        .into_iter()
        .enumerate()
        .collect();
    order.sort_by(|(_, a), (_, b)| b.brokers_exact().total_cmp(&a.brokers_exact()));
    let same = |a: &(usize, Constraint), b: &(usize, Constraint)| {
        a.1.brokers_exact() == b.1.brokers_exact()
    };
    for alike in order.chunk_by(same).take(CONSTRAINT_CURVES) {
        let names: Vec<&str> = alike
            .iter()
            .map(|(_, constraint)| constraint.resource.name())
            .collect();
        let index = alike[0].0;
        curves.push(Curve {
            name: format!("for {} at 100 %", names.join(" or ")),
            brokers: Box::new(move |ingest| at(ingest)[index].brokers(Percent::ALL)),
            bold: false,
        });
    }
    curves
}

fn part_curves<'a>(part: &Part, headroom: Percent, who: &str) -> Vec<Curve<'a>> {
    let disk_bytes_per_s = part.disk_bytes_per_s.value;
    let rate = bytes_per_s(disk_bytes_per_s as f64);
    let counts = move |ingest| {
        let demand = walkthrough::demand(1).at_ingest(ingest);
        let writes = walkthrough::writes(&demand, disk_bytes_per_s);
        BrokerCounts::of(&[writes], demand.copies.value, headroom)
    };
    vec![
        Curve {
            name: format!("{who} {rate}: at {headroom} with one lost"),
            brokers: Box::new(move |ingest| counts(ingest).at_headroom_one_lost),
            bold: true,
        },
        Curve {
            name: format!("{who} {rate}: at 100 %"),
            brokers: Box::new(move |ingest| counts(ingest).at_full),
            bold: false,
        },
    ]
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
