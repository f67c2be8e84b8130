//! One chart as inline SVG: lines over the number of connections.
//!
//! The x axis is logarithmic and has a tick at each rung. Every line ends in a label of its own, in
//! its colour, with its last value; labels that would overlap are moved apart and tied to their
//! line by a thin leader. Where points have a foot (p50 below p99), a bar joins the two, and the
//! paths stand side by side so that no bar hides another. Colour is never alone: each path has a
//! marker of its own form. A cell that did not hold is a cross on the x axis, with its limit as a
//! tooltip.
//!
//! Colours come from the page by class (`direct`, `server-pool` and so on), so that light and dark
//! are one file. A chart without a single point says so in words.

use std::fmt::Write;

use crate::format::{thousands, whole};
use crate::ladder::Path;
use ::chart::{Scale, linear_ticks, power_ticks, segment, spread};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 158.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 48.0;
/// Between the frame and the outermost rungs.
const INSET: f64 = 22.0;
const LABEL_GAP: f64 = 17.0;
const LABEL_X: f64 = RIGHT + 16.0;
/// Between the bars of two paths on one rung.
const BAR_GAP: f64 = 9.0;
/// Tick labels of rungs nearer than this would touch.
const RUNG_GAP: f64 = 52.0;

/// Scale from values to heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Linear scale from zero up.
    Linear,
    /// Decades.
    Decades,
    /// Powers of four: 256 B, 1 KiB, 4 KiB ...
    PowersOfFour,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) path: Path,
    /// Connections rising.
    pub(crate) points: Vec<Point>,
}

/// One figure of one cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Point {
    pub(crate) connections: f64,
    pub(crate) value: f64,
    /// A lower value of the same cell, down to which a bar reaches.
    pub(crate) foot: Option<f64>,
}

/// A cell without figures.
#[derive(Clone, Debug)]
pub(crate) struct Cross {
    pub(crate) path: Path,
    pub(crate) connections: f64,
    pub(crate) limit: String,
}

/// Chart before it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Chart<'a> {
    /// Name for those who hear the page instead of seeing it.
    pub(crate) name: &'a str,
    /// Stands above the y axis.
    pub(crate) unit: &'a str,
    pub(crate) axis: Axis,
    pub(crate) rungs: &'a [u32],
    pub(crate) lines: Vec<Line>,
    pub(crate) crosses: Vec<Cross>,
    /// A value to compare with, and its name.
    pub(crate) reference: Option<(f64, &'a str)>,
    pub(crate) write_tick: fn(f64) -> String,
    pub(crate) write_value: fn(f64) -> String,
}

impl Chart<'_> {
    /// Draws it.
    pub(crate) fn svg(mut self) -> String {
        let axis = self.axis;
        let drawable = |y: f64| y.is_finite() && (axis == Axis::Linear || y > 0.0);
        for line in &mut self.lines {
            line.points.retain(|point| drawable(point.value));
            for point in &mut line.points {
                point.foot = point
                    .foot
                    .filter(|foot| drawable(*foot) && *foot < point.value);
            }
        }
        self.lines.retain(|line| !line.points.is_empty());
        let mut svg = String::new();
        let _ = write!(
            svg,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#,
            escaped(self.name)
        );
        match self.bounds() {
            Some((least, most)) => self.draw(&mut svg, least, most),
            None => {
                let (x, y) = (WIDTH / 2.0, HEIGHT / 2.0);
                text(
                    &mut svg,
                    x,
                    y,
                    "middle",
                    "tick",
                    "no figures for this chart",
                );
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn bounds(&self) -> Option<(f64, f64)> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let values = points.flat_map(|point| [point.value, point.foot.unwrap_or(point.value)]);
        let bounds = values.fold(None, |bounds: Option<(f64, f64)>, y| {
            Some(bounds.map_or((y, y), |(least, most)| (least.min(y), most.max(y))))
        })?;
        let with = self.reference.map_or(bounds.0, |(value, _)| value);
        Some((bounds.0.min(with), bounds.1.max(with)))
    }

    fn draw(&self, svg: &mut String, least: f64, most: f64) {
        let ticks = match self.axis {
            Axis::Linear => linear_ticks(most),
            Axis::Decades => power_ticks(least, most, 10.0),
            Axis::PowersOfFour => power_ticks(least, most, 4.0),
        };
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        let y = match self.axis {
            Axis::Linear => Scale::linear(low, high, BOTTOM, TOP),
            _ => Scale::logarithmic(low, high, BOTTOM, TOP),
        };
        let ends = (self.rungs.first(), self.rungs.last());
        let ends = (ends.0.copied().unwrap_or(1), ends.1.copied().unwrap_or(1));
        let x = Scale::logarithmic(
            f64::from(ends.0.max(1)),
            f64::from(ends.1.max(1)),
            LEFT + INSET,
            RIGHT - INSET,
        );
        self.draw_axes(svg, &ticks, &x, &y);
        self.draw_reference(svg, &y);
        self.draw_crosses(svg, &x);
        let paths = self.lines.len() as f64;
        let bars = self
            .lines
            .iter()
            .flat_map(|line| &line.points)
            .any(|p| p.foot.is_some());
        let mut ends = Vec::new();
        for (nth, line) in self.lines.iter().enumerate() {
            let aside = if bars {
                (nth as f64 - (paths - 1.0) / 2.0) * BAR_GAP
            } else {
                0.0
            };
            let place = |point: &Point| (x.px(point.connections) + aside, y.px(point.value));
            ends.push(self.draw_line(svg, line, &place, &y));
        }
        self.draw_labels(svg, &ends);
    }

    fn draw_axes(&self, svg: &mut String, ticks: &[f64], x: &Scale, y: &Scale) {
        for &tick in ticks {
            let at = y.px(tick);
            segment(svg, "grid", (LEFT, at), (RIGHT, at));
            text(
                svg,
                LEFT - 9.0,
                at + 4.0,
                "end",
                "tick",
                &(self.write_tick)(tick),
            );
        }
        text(svg, LEFT, TOP - 16.0, "start", "unit", self.unit);
        let mut free_to = f64::INFINITY;
        for &rung in self.rungs.iter().rev() {
            let at = x.px(f64::from(rung));
            segment(svg, "axis", (at, BOTTOM), (at, BOTTOM + 5.0));
            if at <= free_to {
                text(
                    svg,
                    at,
                    BOTTOM + 19.0,
                    "middle",
                    "tick",
                    &thousands(u64::from(rung)),
                );
                free_to = at - RUNG_GAP;
            }
        }
        segment(svg, "axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        let middle = f64::midpoint(LEFT, RIGHT);
        text(
            svg,
            middle,
            BOTTOM + 39.0,
            "middle",
            "unit",
            "executing connections",
        );
    }

    fn draw_reference(&self, svg: &mut String, y: &Scale) {
        if let Some((value, name)) = self.reference {
            let at = y.px(value);
            segment(svg, "reference", (LEFT, at), (RIGHT, at));
            text(svg, LEFT + 6.0, at + 14.0, "start", "tick", name);
        }
    }

    /// Crosses of one rung stand side by side.
    fn draw_crosses(&self, svg: &mut String, x: &Scale) {
        for cross in &self.crosses {
            let of_rung = self
                .crosses
                .iter()
                .filter(|one| one.connections == cross.connections);
            let of_rung: Vec<_> = of_rung.map(|one| one.path).collect();
            let place = of_rung
                .iter()
                .position(|path| *path == cross.path)
                .unwrap_or(0);
            let shift = (place as f64 - (of_rung.len() as f64 - 1.0) / 2.0) * 16.0;
            let (at, down, r) = (x.px(cross.connections) + shift, BOTTOM - 10.0, 4.5);
            let (left, right, top, low) = (at - r, at + r, down - r, down + r);
            let down = format!("M{left:.1} {top:.1}L{right:.1} {low:.1}");
            let strokes = format!("{down}M{left:.1} {low:.1}L{right:.1} {top:.1}");
            outline(
                svg,
                "cross",
                cross.path,
                &strokes,
                &format!("{}: {}", cross.path, cross.limit),
            );
        }
    }

    /// Draws a line with its bars and markers, and gives the place where it ends.
    fn draw_line(
        &self,
        svg: &mut String,
        line: &Line,
        place: &dyn Fn(&Point) -> (f64, f64),
        y: &Scale,
    ) -> (f64, f64) {
        let places: Vec<_> = line.points.iter().map(place).collect();
        let coordinates: Vec<_> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(
            svg,
            r#"<polyline class="line {}" points="{}"/>"#,
            line.path,
            coordinates.join(" ")
        );
        for (point, &(at, top)) in line.points.iter().zip(&places) {
            if let Some(foot) = point.foot {
                segment(
                    svg,
                    &format!("bar {}", line.path),
                    (at, top),
                    (at, y.px(foot)),
                );
            }
            marker(svg, line.path, (at, top), &self.tip(line.path, point));
        }
        places.last().copied().unwrap_or_default()
    }

    fn tip(&self, path: Path, point: &Point) -> String {
        let value = (self.write_value)(point.value);
        let foot = point
            .foot
            .map(|foot| format!("{} to ", (self.write_value)(foot)));
        let connections = whole(point.connections);
        format!(
            "{path} at {connections}: {}{value}",
            foot.unwrap_or_default()
        )
    }

    /// Appends the end of each line: its name and its last value, tied to it where they had to
    /// move.
    fn draw_labels(&self, svg: &mut String, ends: &[(f64, f64)]) {
        let wanted: Vec<_> = ends.iter().map(|(_, y)| *y).collect();
        let places = spread(&wanted, LABEL_GAP, TOP, BOTTOM);
        for ((line, end), at) in self.lines.iter().zip(ends).zip(places) {
            let value = line
                .points
                .last()
                .map(|point| (self.write_value)(point.value));
            let class = format!("leader {}", line.path);
            segment(svg, &class, (end.0 + 8.0, end.1), (LABEL_X - 4.0, at));
            let (name, at) = (line.path, at + 4.0);
            let _ = write!(
                svg,
                r#"<text class="label {name}" x="{LABEL_X}" y="{at:.1}">{name} "#
            );
            let value = escaped(&value.unwrap_or_default());
            let _ = write!(svg, r#"<tspan class="value">{value}</tspan></text>"#);
        }
    }
}

/// Appends the form of a path: a disc, a square, a diamond, triangles.
fn marker(svg: &mut String, path: Path, (x, y): (f64, f64), tip: &str) {
    let r = match path {
        Path::Onramp => 4.6,
        Path::Direct => 4.2,
        Path::HaProxy | Path::Router => 5.0,
        Path::ServerPool => 5.6,
    };
    let (left, right, top, low) = (x - r, x + r, y - r, y + r);
    let form = match path {
        Path::Onramp => {
            let across = 2.0 * r;
            format!("M{left:.1} {y:.1}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0Z")
        }
        Path::Direct => format!("M{left:.1} {top:.1}H{right:.1}V{low:.1}H{left:.1}Z"),
        Path::HaProxy => format!("M{x:.1} {top:.1}L{right:.1} {low:.1}H{left:.1}Z"),
        Path::Router => format!("M{x:.1} {low:.1}L{right:.1} {top:.1}H{left:.1}Z"),
        Path::ServerPool => {
            format!("M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {low:.1}L{left:.1} {y:.1}Z")
        }
    };
    outline(svg, "marker", path, &form, tip);
}

/// Appends a path of SVG with a tooltip.
fn outline(svg: &mut String, class: &str, path: Path, form: &str, tip: &str) {
    let tip = escaped(tip);
    let _ = write!(
        svg,
        r#"<path class="{class} {path}" d="{form}"><title>{tip}</title></path>"#
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
    let _ = write!(
        svg,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
        escaped(words)
    );
}

fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::figure;

    fn chart(rungs: &[u32], points: &[(f64, f64)]) -> String {
        let point = |&(connections, value): &(f64, f64)| {
            let foot = Some(value / 2.0);
            Point {
                connections,
                value,
                foot,
            }
        };
        let line = Line {
            path: Path::Onramp,
            points: points.iter().map(point).collect(),
        };
        let chart = Chart {
            name: "a <test>",
            unit: "ms",
            axis: Axis::Decades,
            rungs,
            lines: vec![line],
            crosses: vec![Cross {
                path: Path::Direct,
                connections: f64::from(rungs.first().copied().unwrap_or(1)),
                limit: "8 < 9".to_owned(),
            }],
            reference: None,
            write_tick: figure,
            write_value: figure,
        };
        chart.svg()
    }

    #[test]
    fn a_line_has_its_points_its_bars_its_label_and_its_crosses() {
        let svg = chart(&[100, 1_000], &[(100.0, 2.0), (1_000.0, 30.0)]);
        assert_eq!(svg.matches(r#"class="marker onramp""#).count(), 2);
        assert_eq!(svg.matches(r#"class="bar onramp""#).count(), 2);
        assert!(svg.contains(r#"onramp <tspan class="value">30.0</tspan>"#));
        assert!(svg.contains("<title>onramp at 1,000: 15.0 to 30.0</title>"));
        assert!(svg.contains("<title>direct: 8 &lt; 9</title>"));
        assert!(svg.contains(r#"aria-label="a &lt;test&gt;""#));
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let odd = [(100.0, f64::NAN), (1_000.0, 0.0), (1_000.0, f64::INFINITY)];
        for (rungs, points) in [(&[100, 1_000][..], &odd[..]), (&[], &[])] {
            let svg = chart(rungs, points);
            assert!(svg.contains("no figures") && !svg.contains("NaN") && !svg.contains("inf"));
        }
        let svg = chart(&[1_000], &[(1_000.0, 5.0)]);
        assert!(svg.contains("marker") && !svg.contains("NaN"), "{svg}");
    }
}
