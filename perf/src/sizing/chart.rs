//! Brokers against ingest, drawn as SVG.

use plotters::prelude::*;

use super::notation;
use crate::page::charts::{COLOURS, GRID};

/// Small on purpose: scaled down to a phone its text stays readable.
const SIZE: (u32, u32) = (480, 360);
const FONT: (&str, u32) = ("sans-serif", 15);
const POINTS: u64 = 240;
/// The axis goes to this many times the load that was asked for.
const INGEST_FACTOR: u64 = 2;

/// Brokers by ingest in bytes a second.
pub struct Curve<'a> {
    pub name: String,
    pub brokers: Box<dyn Fn(u64) -> u64 + 'a>,
    /// A number of brokers that one would buy, not a limit by itself.
    pub bold: bool,
}

/// At most as many curves as there are `COLOURS`; a vertical line marks the load that was asked for.
pub fn brokers_against_ingest(ingest_bytes_per_s: u64, curves: &[Curve<'_>]) -> String {
    let mut svg = String::new();
    draw(&mut svg, ingest_bytes_per_s, curves).expect("drawing on a string does not fail");
    svg
}

type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(
    svg: &'a mut String,
    ingest_bytes_per_s: u64,
    curves: &[Curve<'_>],
) -> Result<(), DrawError<'a>> {
    let ingest_max = ingest_bytes_per_s.saturating_mul(INGEST_FACTOR);
    let sampled: Vec<Vec<(f64, f64)>> = curves
        .iter()
        .map(|curve| sample(curve, ingest_max))
        .collect();
    let brokers_max = sampled
        .iter()
        .flatten()
        .map(|&(_, brokers)| brokers)
        .fold(1.0, f64::max);
    let (x_max, y_max) = (ingest_max as f64, brokers_max * 1.08);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(10)
        .margin_right(28)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
    chart
        .configure_mesh()
        .axis_style(GRID)
        .bold_line_style(GRID.mix(0.35))
        .light_line_style(TRANSPARENT)
        .label_style(FONT)
        .axis_desc_style(FONT)
        .x_labels(4)
        .y_labels(6)
        .x_desc("ingest, on average")
        .y_desc("brokers")
        .x_label_formatter(&|ingest| notation::bytes_per_s(*ingest))
        .y_label_formatter(&|brokers| notation::number(*brokers))
        .draw()?;
    let asked = ingest_bytes_per_s as f64;
    chart.draw_series([PathElement::new([(asked, 0.0), (asked, y_max)], GRID)])?;
    for ((curve, points), colour) in curves.iter().zip(sampled).zip(COLOURS) {
        let width = if curve.bold { 4 } else { 2 };
        chart.draw_series(LineSeries::new(points, colour.stroke_width(width)))?;
    }
    area.present()
}

fn sample(curve: &Curve<'_>, ingest_max: u64) -> Vec<(f64, f64)> {
    (1..=POINTS)
        .map(|point| {
            let ingest = u128::from(ingest_max) * u128::from(point) / u128::from(POINTS);
            let ingest = (ingest as u64).max(1);
            (ingest as f64, (curve.brokers)(ingest) as f64)
        })
        .collect()
}
