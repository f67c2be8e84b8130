//! One chart over time as inline SVG: a few lines, each with its name and last value at its end.
//!
//! Colours come from the page by class, so that light and dark are one file. Names stand at the
//! ends of their lines and are moved apart where they would touch; no colour has to be looked up in
//! a legend. Latencies that span decades get a logarithmic axis. A chart of one point shows the
//! point; one without points says so.

use ::chart::{Scale, linear_ticks, power_ticks, segment, spread};
use std::fmt::Write;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 132.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 34.0;
/// Names are this far apart at least.
const NAME_GAP: f64 = 16.0;
/// Above this ratio of the largest to the smallest value an axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 30.0;

/// One line of a chart.
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Number of the page's colour, from 1.
    pub(super) colour: u8,
    pub(super) values: Vec<f64>,
}

/// Chart before it is drawn.
pub(super) struct Chart<'a> {
    /// Name for those who hear the page instead of seeing it.
    pub(super) name: &'a str,
    /// Stands above the y axis.
    pub(super) unit: &'a str,
    /// Values may be on a logarithmic axis.
    pub(super) may_be_logarithmic: bool,
    /// Seconds.
    pub(super) times: &'a [f64],
    pub(super) lines: Vec<Line>,
}

/// An axis from bottom to top, with its ticks.
struct Axis {
    scale: Scale,
    ticks: Vec<f64>,
}

impl Axis {
    fn of(least: f64, most: f64, may_be_logarithmic: bool) -> Axis {
        let is_logarithmic = may_be_logarithmic && least > 0.0 && most / least > LOGARITHMIC_FROM;
        let ticks = match is_logarithmic {
            true => power_ticks(least, most, 10.0),
            false => linear_ticks(most),
        };
        let ends = (ticks.first().copied(), ticks.last().copied());
        let (low, high) = (ends.0.unwrap_or(0.0), ends.1.unwrap_or(1.0));
        let scale = match is_logarithmic {
            true => Scale::logarithmic(low, high, BOTTOM, TOP),
            false => Scale::linear(low, high, BOTTOM, TOP),
        };
        Axis { scale, ticks }
    }

    fn y(&self, value: f64) -> f64 {
        self.scale.px(value)
    }
}

/// A number as short as it can be told from its neighbours on the axis.
pub(super) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match scaled.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{scaled:.0}"),
        v if v >= 10.0 => format!("{scaled:.1}"),
        v if v >= 0.1 => format!("{scaled:.2}"),
        _ => format!("{scaled:.3}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

impl Chart<'_> {
    /// Draws it.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        let _ = write!(
            svg,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}" "#,
            self.name
        );
        let _ = write!(svg, r#"data-left="{LEFT}" data-right="{RIGHT}">"#);
        let values = || self.lines.iter().flat_map(|line| &line.values).copied();
        let most = values().fold(0.0, f64::max);
        let least = values().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if self.times.is_empty() {
            let (x, y) = (WIDTH / 2.0, HEIGHT / 2.0);
            text(&mut svg, x, y, "middle", "tick", "nothing was measured");
        } else {
            let axis = Axis::of(least, most, self.may_be_logarithmic);
            self.put_frame(&mut svg, &axis);
            self.put_lines(&mut svg, &axis);
            self.put_names(&mut svg, &axis);
        }
        svg.push_str("</svg>");
        svg
    }

    fn x(&self, time: f64) -> f64 {
        let end = self.times.last().copied().unwrap_or(1.0).max(1e-9);
        LEFT + (time / end).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn put_frame(&self, svg: &mut String, axis: &Axis) {
        text(svg, LEFT, TOP - 14.0, "start", "unit", self.unit);
        for tick in &axis.ticks {
            let y = axis.y(*tick);
            segment(svg, "grid", (LEFT, y), (RIGHT, y));
            text(svg, LEFT - 8.0, y + 4.0, "end", "tick", &short(*tick));
        }
        let end = self.times.last().copied().unwrap_or(1.0);
        for tick in linear_ticks(end).iter().filter(|tick| **tick <= end) {
            let x = self.x(*tick);
            segment(svg, "axis", (x, BOTTOM), (x, BOTTOM + 4.0));
            let words = format!("{} s", short(*tick));
            text(svg, x, BOTTOM + 20.0, "middle", "tick", &words);
        }
        segment(svg, "axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    }

    fn put_lines(&self, svg: &mut String, axis: &Axis) {
        for line in &self.lines {
            let colour = line.colour;
            let points = self.times.iter().zip(&line.values);
            let points: Vec<String> = points
                .map(|(time, value)| format!("{:.1},{:.1}", self.x(*time), axis.y(*value)))
                .collect();
            if let [only] = points.as_slice() {
                let (x, y) = only.split_once(',').unwrap_or(("0", "0"));
                let _ = write!(
                    svg,
                    r#"<circle class="dot c{colour}" cx="{x}" cy="{y}" r="4"/>"#
                );
            }
            let points = points.join(" ");
            let _ = write!(
                svg,
                r#"<polyline class="line c{colour}" points="{points}"/>"#
            );
        }
    }

    fn put_names(&self, svg: &mut String, axis: &Axis) {
        let last = |line: &Line| line.values.last().copied().unwrap_or(0.0);
        let mut names: Vec<(f64, &Line)> = self
            .lines
            .iter()
            .map(|line| (axis.y(last(line)), line))
            .collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = names.iter().map(|(y, _)| *y).collect();
        let places = spread(&wanted, NAME_GAP, TOP, BOTTOM);
        for ((_, line), at) in names.iter().zip(places).rev() {
            let (name, colour) = (line.name, line.colour);
            let value = short(last(line));
            let words = format!(r#"{name} <tspan class="value">{value}</tspan>"#);
            let class = format!("label c{colour}");
            text(svg, RIGHT + 9.0, at + 4.0, "start", &class, &words);
        }
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
    let _ = write!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{words}</text>"#
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(times: &[f64], values: &[&[f64]]) -> String {
        let lines = values.iter().zip(["a", "b", "c"]).zip(1..);
        Chart {
            name: "test",
            unit: "ms",
            may_be_logarithmic: true,
            times,
            lines: lines
                .map(|((values, name), colour)| Line {
                    name,
                    colour,
                    values: values.to_vec(),
                })
                .collect(),
        }
        .svg()
    }

    #[test]
    fn lines_go_from_left_to_right_and_up_with_their_values() {
        let svg = chart(&[1.0, 2.0], &[&[0.0, 10.0]]);
        let points = format!(
            "{:.1},{BOTTOM:.1} {RIGHT:.1},{TOP:.1}",
            (LEFT + RIGHT) / 2.0
        );
        assert!(svg.contains(&format!(r#"points="{points}""#)), "{svg}");
        assert!(svg.contains(r#"a <tspan class="value">10</tspan>"#));
    }

    #[test]
    fn values_of_many_sizes_get_decades() {
        let svg = chart(&[1.0, 2.0], &[&[0.5, 0.6], &[90.0, 800.0]]);
        for tick in ["0.1", "1", "10", "100", "1000"] {
            assert!(
                svg.contains(&format!(r#"class="tick">{tick}<"#)),
                "{tick}: {svg}"
            );
        }
    }

    #[test]
    fn names_do_not_touch() {
        let svg = chart(&[1.0], &[&[5.0], &[5.0], &[5.1]]);
        let mut heights: Vec<f64> = svg
            .split("<text ")
            .filter(|text| text.contains("label"))
            .filter_map(|text| text.split_once("y=\"")?.1.split('"').next()?.parse().ok())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 3);
        assert!(
            heights
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_GAP - 0.2)
        );
        assert!(svg.contains("<circle"), "a single point is seen");
    }

    #[test]
    fn nothing_is_said_in_words_and_zeroes_are_drawn() {
        assert!(chart(&[], &[&[]]).contains("nothing was measured"));
        let zeroes = chart(&[1.0, 2.0], &[&[0.0, 0.0]]);
        assert!(
            !zeroes.contains("NaN") && zeroes.contains("polyline"),
            "{zeroes}"
        );
    }

    #[test]
    fn numbers_are_short() {
        for (value, words) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1_234.0, "1234"),
            (25_000.0, "25k"),
            (1.25e6, "1.25M"),
        ] {
            assert_eq!(short(value), words);
        }
    }
}
