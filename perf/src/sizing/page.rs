//! A sizing as a page that is one file: no script, nothing from the network, by day and by night, on a phone too.

use std::fmt::{self, Write};

use super::chart::{self, Curve};
use super::constraint::{BrokerCounts, Constraint};
use super::estimate::Estimate;
use super::notation::{bytes_per_s, count, share};
use super::print::{Row, broker_rows, consequence_rows, count_rows, demand_rows};
use super::walkthrough::{self, Line, Part, Walkthrough};
use crate::quantity::Percent;

/// Constraints beside the count that one would buy: the ones that ask for the most.
const CONSTRAINT_CURVES: usize = chart::LINES.len() - 1;

/// By day and by night, in the order of the chart's lines.
const LINE_COLOURS: [(&str, &str); chart::LINES.len()] = [
    ("#0b5fbf", "#7ab8ff"),
    ("#b3400a", "#ffa066"),
    ("#2d7d32", "#7fd087"),
    ("#7a3aa8", "#cf9cf5"),
    ("#6b6100", "#e0d04a"),
];

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--back:#ffffff;--card:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--grid:#30363d;--back:#0d1117;--card:#161b22}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:48rem;padding:1rem;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;line-height:1.25}h2{font-size:1.1rem;margin-top:2rem}
svg{display:block;width:100%;height:auto}
.row{display:grid;grid-template-columns:1fr auto;gap:0 1rem;padding:.4rem 0;border-bottom:1px solid var(--grid)}
.row b{font-weight:600;text-align:right}
.row small{grid-column:1/-1;color:var(--soft);overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.875rem}
th,td{padding:.35rem .5rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--back)}
tr.binds td{font-weight:700}
ul.legend{list-style:none;padding:0;margin:.5rem 0}
ul.legend i{display:inline-block;width:1.5rem;height:.25rem;margin-right:.5rem;vertical-align:middle;background:currentColor}
.remark{background:var(--card);padding:.6rem .8rem;border-left:.25rem solid var(--soft)}
";

pub fn estimate(estimate: &Estimate) -> String {
    let mut out = String::new();
    write_estimate(&mut out, estimate).expect("writing to a string does not fail");
    out
}

pub fn walkthrough(walkthrough: &Walkthrough) -> String {
    let mut out = String::new();
    write_walkthrough(&mut out, walkthrough).expect("writing to a string does not fail");
    out
}

fn write_estimate(out: &mut String, estimate: &Estimate) -> fmt::Result {
    let demand = &estimate.demand;
    let ingest = bytes_per_s(demand.ingest_bytes_per_s.value as f64);
    let chosen = count(estimate.chosen_brokers.value);
    write_head(out, &format!("{chosen} brokers for {ingest}"))?;
    writeln!(
        out,
        "<p>{} decides. With {chosen} brokers each one's share and what follows from it stand below; \
         every input says where it comes from.</p>",
        escaped(capitalised(estimate.binding.name()).as_str())
    )?;
    writeln!(out, "<h2>Brokers</h2>")?;
    for (what, brokers) in count_rows(estimate) {
        write_row(out, &what, &count(brokers), "")?;
    }
    writeln!(out, "<h2>Brokers against ingest</h2>")?;
    write_chart(
        out,
        demand.ingest_bytes_per_s.value,
        &estimate_curves(estimate),
    )?;
    write_constraints(out, estimate)?;
    for (title, rows) in [
        (format!("With {chosen} brokers"), consequence_rows(estimate)),
        ("Load".to_owned(), demand_rows(estimate)),
        ("One broker".to_owned(), broker_rows(estimate)),
    ] {
        write_rows(out, &title, &rows)?;
    }
    write_remarks(out, &estimate.remarks)?;
    writeln!(out, "</body></html>")
}

fn write_head(out: &mut String, title: &str) -> fmt::Result {
    let title = escaped(title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}"
    )?;
    // The colours in the SVG only name what they are for; a rule of the style sheet comes before an attribute.
    let (ink, grid) = (chart::hex(chart::INK), chart::hex(chart::GRID));
    writeln!(
        out,
        "svg [fill=\"{ink}\"]{{fill:var(--ink)}}svg [stroke=\"{ink}\"]{{stroke:var(--ink)}}\
         svg [stroke=\"{grid}\"]{{stroke:var(--grid)}}"
    )?;
    let colours = |out: &mut String, of: fn(&(&'static str, &'static str)) -> &'static str| {
        for (index, (line, pair)) in chart::LINES.into_iter().zip(&LINE_COLOURS).enumerate() {
            let (hex, colour) = (chart::hex(line), of(pair));
            write!(
                out,
                "svg [stroke=\"{hex}\"]{{stroke:{colour}}}.line{index}{{color:{colour}}}"
            )?;
        }
        fmt::Result::Ok(())
    };
    colours(out, |pair| pair.0)?;
    write!(out, "@media (prefers-color-scheme:dark){{")?;
    colours(out, |pair| pair.1)?;
    writeln!(out, "}}</style></head><body><h1>{title}</h1>")
}

fn write_row(out: &mut String, name: &str, value: &str, note: &str) -> fmt::Result {
    write!(
        out,
        "<div class=\"row\"><span>{}</span><b>{}</b>",
        escaped(name),
        escaped(value)
    )?;
    if !note.is_empty() {
        write!(out, "<small>{}</small>", escaped(note))?;
    }
    writeln!(out, "</div>")
}

fn write_rows(out: &mut String, title: &str, rows: &[Row]) -> fmt::Result {
    writeln!(out, "<h2>{}</h2>", escaped(title))?;
    rows.iter()
        .try_for_each(|(name, value, note)| write_row(out, name, value, note))
}

fn write_remarks(out: &mut String, remarks: &[String]) -> fmt::Result {
    remarks
        .iter()
        .try_for_each(|remark| writeln!(out, "<p class=\"remark\">{}</p>", escaped(remark)))
}

fn write_constraints(out: &mut String, estimate: &Estimate) -> fmt::Result {
    let chosen = count(estimate.chosen_brokers.value);
    writeln!(
        out,
        "<h2>Constraints</h2><p>I is the ingest at its peak after compression, R the copies, F the reader groups, T the retention, \
         P the partitions.</p><div class=\"wide\"><table><tr><th></th><th>cluster needs</th><th>broker has</th>\
         <th>at 100 %</th><th>at {}</th><th>used at {chosen}</th><th>one lost</th><th>formula</th></tr>",
        estimate.headroom_percent
    )?;
    for constraint in &estimate.constraints {
        let class = if constraint.resource == estimate.binding {
            " class=\"binds\""
        } else {
            ""
        };
        let one_lost = constraint
            .utilisation_one_lost
            .map_or_else(|| "-".to_owned(), share);
        writeln!(
            out,
            "<tr{class}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{one_lost}</td><td>{}</td></tr>",
            constraint.resource.name(),
            constraint.shown.cluster_needs,
            constraint.shown.broker_has,
            count(constraint.brokers_at_full),
            count(constraint.brokers_at_headroom),
            share(constraint.utilisation),
            escaped(constraint.formula),
        )?;
    }
    writeln!(out, "</table></div>")
}

fn write_chart(out: &mut String, ingest_bytes_per_s: u64, curves: &[Curve<'_>]) -> fmt::Result {
    writeln!(
        out,
        "{}<ul class=\"legend\">",
        responsive(&chart::brokers_against_ingest(ingest_bytes_per_s, curves))
    )?;
    for (index, curve) in curves.iter().enumerate() {
        writeln!(
            out,
            "<li><i class=\"line{index}\"></i>{}</li>",
            escaped(&curve.name)
        )?;
    }
    writeln!(
        out,
        "</ul><p>The vertical line is the load asked for, {}.</p>",
        bytes_per_s(ingest_bytes_per_s as f64)
    )
}

/// The size that the SVG was drawn at stays only as its shape: the page gives it its width.
fn responsive(svg: &str) -> String {
    svg.split_once("viewBox=").map_or_else(
        || svg.to_owned(),
        |(_, rest)| {
            format!("<svg role=\"img\" aria-label=\"brokers against ingest\" viewBox={rest}")
        },
    )
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

fn write_walkthrough(out: &mut String, walkthrough: &Walkthrough) -> fmt::Result {
    let part = &walkthrough.text;
    write_head(out, "The walkthrough's estimate")?;
    write_lines(out, "In the text", &part.in_the_text)?;
    write_lines(out, "What it leaves out", &part.left_out)?;
    writeln!(out, "<h2>Brokers against ingest</h2>")?;
    let headroom = walkthrough.headroom_percent;
    let mut curves = part_curves(part, headroom, "a broker writes");
    if let Some(measured) = &walkthrough.measured {
        curves.extend(part_curves(measured, headroom, "measured,"));
    }
    let ingest = walkthrough::demand(1).ingest_bytes_per_s.value;
    write_chart(out, ingest, &curves)?;
    if let Some(measured) = &walkthrough.measured {
        writeln!(out, "<h2>Measured</h2>")?;
        write_row(
            out,
            "a broker writes",
            &bytes_per_s(measured.disk_bytes_per_s.value as f64),
            &measured.disk_bytes_per_s.source.to_string(),
        )?;
        write_remarks(out, &measured.remarks)?;
        write_lines(out, "The same with measured figures", &measured.in_the_text)?;
        write_lines(
            out,
            "What the text leaves out, measured",
            &measured.left_out,
        )?;
        write_lines(out, "CPU", &measured.cpu)?;
    }
    writeln!(out, "</body></html>")
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

fn write_lines(out: &mut String, title: &str, lines: &[Line]) -> fmt::Result {
    writeln!(out, "<h2>{}</h2>", escaped(title))?;
    for line in lines {
        let note = match &line.remark {
            Some(remark) => format!("{} ({remark})", line.formula),
            None => line.formula.clone(),
        };
        write_row(out, line.what, &line.shown, &note)?;
    }
    Ok(())
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
