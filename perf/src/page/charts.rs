//! Charts as SVG. Colours are readable on light and dark paper; the text takes the page's own colour.

use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

/// Narrow enough that its text can still be read on a phone.
const SIZE: (u32, u32) = (480, 300);
const FONT: (&str, u32) = ("sans-serif", 14);
pub const GRID: RGBColor = RGBColor(128, 128, 128);
const SHADE: RGBColor = RGBColor(220, 40, 60);

/// Of the lines, in order.
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 214),
    RGBColor(230, 120, 20),
    RGBColor(40, 160, 80),
    RGBColor(200, 60, 120),
    RGBColor(130, 100, 220),
    RGBColor(120, 130, 140),
];

pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

pub struct Axes<'a> {
    pub x: &'a str,
    pub y: &'a str,
    /// Stretches of x behind which the paper is shaded.
    pub shaded: &'a [Range<f64>],
}

/// Lines over linear axes that begin at zero. Nothing where there are no points.
pub fn lines(caption: &str, axes: Axes<'_>, lines: &[Line]) -> Markup {
    let (x_max, y_max) = maxima(lines);
    let svg = |svg: &mut String| {
        let x_label = |x: &f64| format!("{x}");
        draw(svg, &axes, 0.0..x_max, 0.0..y_max * 1.05, lines, &x_label)
    };
    drawn(caption, lines, svg)
}

/// The same with decades on the upright axis, for what grows a hundredfold.
pub fn lines_log_y(caption: &str, axes: Axes<'_>, lines: &[Line]) -> Markup {
    let (x_max, _) = maxima(lines);
    let svg = |svg: &mut String| {
        let x_label = |x: &f64| format!("{x}");
        let y = by_decades(lines).log_scale();
        draw(svg, &axes, 0.0..x_max, y, lines, &x_label)
    };
    drawn(caption, lines, svg)
}

/// Latency by percentile, HdrHistogram's way: the axis goes by how many nines the percentile has. Points are (quantile, ms).
pub fn percentiles(caption: &str, lines: &[Line]) -> Markup {
    let by_nines: Vec<Line> = lines
        .iter()
        .map(|line| Line {
            name: line.name.clone(),
            points: line
                .points
                .iter()
                .map(|&(quantile, ms)| (nines(quantile), ms))
                .collect(),
        })
        .collect();
    let (x_max, _) = maxima(&by_nines);
    let svg = |svg: &mut String| {
        let x_label = |nines: &f64| format!("{}", 100.0 - 100.0 / 10f64.powf(*nines));
        let axes = Axes {
            x: "percentile",
            y: "ms",
            shaded: &[],
        };
        let y = by_decades(&by_nines).log_scale();
        draw(svg, &axes, 0.0..x_max.ceil(), y, &by_nines, &x_label)
    };
    drawn(caption, lines, svg)
}

/// 0.9 has one, 0.999 three.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

/// What a logarithmic axis must show; it has no zero.
fn by_decades(lines: &[Line]) -> Range<f64> {
    let (_, y_max) = maxima(lines);
    let points = lines.iter().flat_map(|line| &line.points);
    let y_min = points.map(|(_, y)| *y).fold(y_max, f64::min).max(0.001);
    y_min * 0.8..y_max * 1.2
}

fn maxima(lines: &[Line]) -> (f64, f64) {
    lines
        .iter()
        .flat_map(|line| &line.points)
        .fold((1e-3, 1e-3), |(x_max, y_max): (f64, f64), (x, y)| {
            (x_max.max(*x), y_max.max(*y))
        })
}

fn drawn(caption: &str, lines: &[Line], draw: impl Fn(&mut String)) -> Markup {
    if lines.iter().all(|line| line.points.is_empty()) {
        return html! {};
    }
    let mut svg = String::new();
    draw(&mut svg);
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    figure(caption, &svg, &names)
}

/// A chart with its key: the names of the lines, whose colours are `COLOURS` in order.
pub fn figure(caption: &str, svg: &str, names: &[&str]) -> Markup {
    html! {
        figure {
            h3 { (caption) }
            (PreEscaped(svg))
            figcaption {
                @for (name, colour) in names.iter().zip(COLOURS.iter().cycle()) {
                    span class="key" {
                        i style=(format!("background: rgb({}, {}, {})", colour.0, colour.1, colour.2)) {}
                        (name)
                    }
                }
            }
        }
    }
}

fn draw<Y>(
    svg: &mut String,
    axes: &Axes<'_>,
    x: Range<f64>,
    y: Y,
    lines: &[Line],
    x_label: &dyn Fn(&f64) -> String,
) where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let x_end = x.end;
    let draw = || {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(62)
            .build_cartesian_2d(x, y)?;
        let y_range = chart.y_range();
        let shades = axes.shaded.iter().map(|shade| {
            let corners = [
                (shade.start.min(x_end), y_range.start),
                (shade.end.min(x_end), y_range.end),
            ];
            Rectangle::new(corners, SHADE.mix(0.18).filled())
        });
        chart.draw_series(shades)?;
        chart
            .configure_mesh()
            .x_desc(axes.x)
            .y_desc(axes.y)
            .x_labels(7)
            .y_labels(6)
            .x_label_formatter(x_label)
            .y_label_formatter(&|y| number(*y))
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.35))
            .light_line_style(GRID.mix(0.12))
            .label_style(FONT)
            .axis_desc_style(FONT)
            .draw()?;
        for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            let series = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(series)?;
            // A line of one point would not be seen.
            if let [only] = line.points.as_slice() {
                chart.draw_series([Circle::new(*only, 4, colour.filled())])?;
            }
        }
        root.present()
    };
    draw().expect("drawing into a string does not fail");
}

/// As short as a label can be.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 10.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_axis_goes_by_nines() {
        let rounded = |quantile| (nines(quantile) * 1000.0).round() / 1000.0;
        assert_eq!([0.0, 0.9, 0.99, 0.999].map(rounded), [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_chart_without_points_is_left_out() {
        let axes = Axes {
            x: "s",
            y: "MB/s",
            shaded: &[],
        };
        let empty = Line {
            name: "acked".to_owned(),
            points: Vec::new(),
        };
        assert_eq!(lines("throughput", axes, &[empty]).into_string(), "");
    }
}
