//! The ratios of a comparison as bars, drawn as SVG: to the right of the line is more than on the first side, to the left less, on a
//! logarithmic axis, so that twice and half are equally far.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::comparison::{Comparison, Difference, Verdict};
use crate::page::charts::GRID;

const WIDTH: u32 = 640;
const ROW_HEIGHT: u32 = 20;
const AXIS_HEIGHT: u32 = 24;
/// Left of the bars.
const NAME_WIDTH: i32 = 300;
/// Right of the bars.
const VALUE_WIDTH: i32 = 60;
const FONT: (&str, u32) = ("sans-serif", 13);
/// Bars end here; the number beside them is the true one.
const RATIO_MAX: f64 = 16.0;

const BETTER: RGBColor = RGBColor(40, 160, 80);
const WORSE: RGBColor = RGBColor(210, 60, 60);

type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

struct Bar {
    name: String,
    difference: Difference,
}

/// The bars of one side against the first; None where nothing compares.
pub fn ratios(comparison: &Comparison, side: usize) -> Option<String> {
    let bars: Vec<Bar> = comparison
        .rows
        .iter()
        .filter_map(|row| {
            Some(Bar {
                name: format!("{} {}", row.stretch, row.metric),
                difference: row.cells[side].as_ref()?.against_first?,
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let mut svg = String::new();
    draw(&mut svg, &bars).expect("drawing on a string does not fail");
    Some(svg)
}

fn draw<'a>(svg: &'a mut String, bars: &[Bar]) -> Result<(), DrawError<'a>> {
    let height = bars.len() as u32 * ROW_HEIGHT + AXIS_HEIGHT;
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    let farthest = bars
        .iter()
        .map(|bar| bar.difference.ratio.max(1.0 / bar.difference.ratio))
        .fold(2.0, f64::max)
        .min(RATIO_MAX);
    let half = f64::from(WIDTH as i32 - NAME_WIDTH - VALUE_WIDTH) / 2.0;
    let x_of = |ratio: f64| {
        let clipped = ratio.clamp(1.0 / farthest, farthest);
        NAME_WIDTH + (half + half * clipped.ln() / farthest.ln()) as i32
    };
    let anchored = |h| {
        FONT.into_font()
            .into_text_style(&root)
            .pos(Pos::new(h, VPos::Center))
    };
    let (to_the_left, to_the_right, centred) = (
        anchored(HPos::Right),
        anchored(HPos::Left),
        anchored(HPos::Center),
    );
    for (number, bar) in bars.iter().enumerate() {
        let top = number as i32 * ROW_HEIGHT as i32;
        let middle = top + ROW_HEIGHT as i32 / 2;
        let (one, other) = (x_of(1.0), x_of(bar.difference.ratio));
        let corners = [
            (one.min(other), top + 3),
            (one.max(other), top + ROW_HEIGHT as i32 - 3),
        ];
        root.draw(&Rectangle::new(
            corners,
            colour(bar.difference.verdict).filled(),
        ))?;
        root.draw_text(&bar.name, &to_the_left, (NAME_WIDTH - 8, middle))?;
        let value = format!("{:.2}", bar.difference.ratio);
        root.draw_text(
            &value,
            &to_the_right,
            (WIDTH as i32 - VALUE_WIDTH + 8, middle),
        )?;
    }
    let bottom = height as i32 - AXIS_HEIGHT as i32;
    let ticks = [
        1.0 / farthest,
        1.0 / farthest.sqrt(),
        1.0,
        farthest.sqrt(),
        farthest,
    ];
    for tick in ticks {
        let x = x_of(tick);
        root.draw(&PathElement::new(vec![(x, 0), (x, bottom)], GRID))?;
        let label = format!("{}x", crate::report::number(tick));
        root.draw_text(&label, &centred, (x, bottom + AXIS_HEIGHT as i32 / 2))?;
    }
    root.present()
}

fn colour(verdict: Verdict) -> RGBColor {
    match verdict {
        Verdict::Better => BETTER,
        Verdict::Worse => WORSE,
        Verdict::WithinSpread | Verdict::SpreadUnknown => GRID,
    }
}
