//! The run on the terminal while it goes: redrawn each second below what has been printed.
//!
//! There is no second screen and no raw mode: the picture is some lines of text that are written
//! over by the next one, so Ctrl-C is what it always is, a process that is killed leaves the
//! terminal as it was, and lines of the report go above the picture. Layout and widgets are
//! ratatui's; its buffer is written out by [`write_rows`].

use super::Frame;
use crate::options::LoadArgs;
use load_core::errors::Phase;
use load_core::series::Point;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, LineGauge, Paragraph, Sparkline, Widget};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Lines of the picture.
const ROWS: u16 = 17;
/// Narrower or lower than this, nothing can be read.
const COLUMNS_MIN: u16 = 60;
/// Wider than this, eyes get lost.
const COLUMNS_MAX: u16 = 140;
/// Above this share of its cores the generator may be what limits.
const BUSY_SHARE: f64 = 0.85;
/// Errors that are shown, the most frequent.
const ERRORS: usize = 3;
/// Seconds that are remembered: no terminal is wider.
const PAST_MAX: usize = 512;

/// Subject of the run.
pub(super) struct Scene {
    pub(super) workload: String,
    pub(super) target: String,
    pub(super) connections: u32,
    /// Seconds; 0 is without end.
    pub(super) time_s: u64,
    pub(super) has_arrivals: bool,
    /// Goodput differs from what succeeded.
    pub(super) has_deadline: bool,
}

impl Scene {
    pub(super) fn of(args: &LoadArgs) -> Scene {
        Scene {
            workload: args.workload_name().to_owned(),
            target: args.target.to_string(),
            connections: args.connections,
            time_s: args.duration().map_or(0, |time| time.as_secs()),
            has_arrivals: args.model.rate.is_some(),
            has_deadline: args.model.give_up.or(args.model.in_time).is_some(),
        }
    }
}

/// The picture, and what it remembers.
pub(super) struct Live {
    scene: Scene,
    /// Points of the last seconds, one each.
    past: Vec<Point>,
    /// Lines that stand on the terminal now.
    drawn: u16,
}

impl Live {
    /// `None` where standard output is no terminal, or one that is too small.
    pub(super) fn open(scene: Scene) -> Option<Live> {
        let is_terminal = io::stdout().is_terminal();
        (is_terminal && columns().is_some()).then_some(Live {
            scene,
            past: Vec::new(),
            drawn: 0,
        })
    }

    /// Draws how things stand.
    pub(super) fn show(&mut self, frame: &Frame<'_>) {
        if let Some(point) = frame.point {
            self.past.push(*point);
            let over = self.past.len().saturating_sub(PAST_MAX);
            self.past.drain(..over);
        }
        let Some(width) = columns() else {
            return;
        };
        let buffer = draw(&self.scene, &self.past, frame, width);
        let mut out = self.erasure();
        write_rows(&buffer, &mut out);
        self.drawn = ROWS;
        put(&out);
    }

    /// Takes the picture away; the cursor is where it began.
    pub(super) fn clear(&mut self) {
        put(&self.erasure());
        self.drawn = 0;
    }

    fn erasure(&self) -> String {
        match self.drawn {
            0 => String::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }
}

/// Writes at once. A terminal that has gone needs no picture.
fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Columns to draw on; `None` where there is too little room. The last column is left alone, for
/// writing there makes some terminals begin a line.
fn columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let fits = size.ws_col > COLUMNS_MIN && size.ws_row > ROWS;
    fits.then(|| (size.ws_col - 1).min(COLUMNS_MAX))
}

fn draw(scene: &Scene, past: &[Point], frame: &Frame<'_>, width: u16) -> Buffer {
    let area = Rect::new(0, 0, width, ROWS);
    let mut buffer = Buffer::empty(area);
    let [head, gauge, charts, figures, errors] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Length(3),
    ])
    .areas(area);
    let title = format!("onramp load {} on {}", scene.workload, scene.target);
    Line::from(title)
        .style(Modifier::BOLD)
        .render(head, &mut buffer);
    put_gauge(scene, frame, gauge, &mut buffer);
    let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
    let [left, right] = Layout::horizontal(halves).areas(charts);
    let now = past.last().copied().unwrap_or_default();
    let rate = format!(" {:.0} statements/s ", now.statements_per_s);
    put_chart(
        past,
        |p| p.statements_per_s,
        &rate,
        Color::Cyan,
        left,
        &mut buffer,
    );
    let p99 = format!(" p99 {:.2} ms ", now.p99_ms);
    put_chart(past, |p| p.p99_ms, &p99, Color::Yellow, right, &mut buffer);
    Paragraph::new(figures_of(scene, &now, frame)).render(figures, &mut buffer);
    Paragraph::new(errors_of(frame)).render(errors, &mut buffer);
    buffer
}

/// Draws the progress of the ramp, or of the measured time.
fn put_gauge(scene: &Scene, frame: &Frame<'_>, area: Rect, buffer: &mut Buffer) {
    let connected = frame.gauges.connected as f64;
    let (done, label) = match (frame.point, scene.time_s) {
        (None, _) => {
            let wanted = scene.connections;
            let label = format!("connected {} of {wanted}", frame.gauges.connected);
            (connected / f64::from(wanted), label)
        }
        (Some(point), 0) => (0.0, format!("{:.0} s, without end", point.t_s)),
        (Some(point), time_s) => {
            let label = format!("{:.0} s of {time_s} s", point.t_s);
            (point.t_s / Duration::from_secs(time_s).as_secs_f64(), label)
        }
    };
    LineGauge::default()
        .ratio(done.clamp(0.0, 1.0))
        .label(label)
        .filled_style(Color::Cyan)
        .render(area, buffer);
}

fn put_chart(
    past: &[Point],
    value: fn(&Point) -> f64,
    title: &str,
    colour: Color,
    area: Rect,
    buffer: &mut Buffer,
) {
    let room = usize::from(area.width.saturating_sub(2));
    let shown = &past[past.len().saturating_sub(room)..];
    let most = shown.iter().map(value).fold(1e-9, f64::max);
    // A sparkline takes whole numbers: a thousand steps are more than it has.
    let heights = shown.iter().map(|point| step(value(point) / most));
    Sparkline::default()
        .data(heights)
        .max(1_000)
        .style(colour)
        .block(Block::bordered().title(title.to_owned()))
        .render(area, buffer);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 1000"
)]
fn step(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * 1e3).round() as u64
}

fn figures_of(scene: &Scene, now: &Point, frame: &Frame<'_>) -> Vec<Line<'static>> {
    let total = frame.total;
    let warn = |is_bad: bool| match is_bad {
        true => Style::from(Color::Red).add_modifier(Modifier::BOLD),
        false => Style::default(),
    };
    let mut rates = format!("events/s {:.0}", now.events_per_s);
    if scene.has_deadline {
        let _ = write!(rates, "   goodput/s {:.0}", now.goodput_per_s);
    }
    if scene.has_arrivals {
        let _ = write!(rates, "   arrived/s {:.0}", now.arrived_per_s);
    }
    let failures = total.failed + total.gave_up;
    let busy = now.cpu_share > BUSY_SHARE;
    vec![
        Line::from(format!(
            "latency ms   mean {:.2}   p50 {:.2}   p95 {:.2}   p99 {:.2}   max {:.2}",
            now.mean_ms, now.p50_ms, now.p95_ms, now.p99_ms, now.max_ms
        )),
        Line::from(rates),
        Line::from(format!(
            "connections  open {}   executing {}   in line {}   reopened {}   lost {}",
            frame.gauges.connected,
            frame.gauges.executing,
            frame.gauges.waiting,
            total.reconnects,
            total.lost
        )),
        Line::from(vec![
            Span::from("statements   "),
            Span::from(format!("succeeded {}   ", total.successes())),
            Span::styled(
                format!("failed {}   gave up {}", total.failed, total.gave_up),
                warn(failures > 0),
            ),
            Span::from(format!("   shed {}", total.shed + total.expired)),
        ]),
        Line::from(vec![
            Span::from("generator    "),
            Span::styled(
                format!("CPU {:.0} % of its cores", now.cpu_share * 100.0),
                warn(busy),
            ),
            Span::from(if busy { ": it may be the limit" } else { "" }),
        ]),
    ]
}

/// The most frequent kinds, in the words of whoever said them.
fn errors_of(frame: &Frame<'_>) -> Vec<Line<'static>> {
    let errors = &frame.total.errors;
    let rows = [Phase::Statement, Phase::Init, Phase::Connect].map(|phase| errors.of(phase));
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows.into_iter()
        .take(ERRORS)
        .map(|row| {
            let words: String = row.message.chars().filter(|c| !c.is_control()).collect();
            Line::styled(
                format!("error {} x {}: {words}", row.code, row.count),
                Color::Red,
            )
        })
        .collect()
}

/// Appends the buffer as lines of text with the terminal's codes for colours.
fn write_rows(buffer: &Buffer, out: &mut String) {
    let width = usize::from(buffer.area.width.max(1));
    for row in buffer.content.chunks(width) {
        let mut current = Style::default();
        for cell in row {
            let style = Style::from(cell.fg).add_modifier(cell.modifier);
            if style != current {
                out.push_str("\x1b[0m");
                out.push_str(code_of(cell.fg));
                if cell.modifier.contains(Modifier::BOLD) {
                    out.push_str("\x1b[1m");
                }
                current = style;
            }
            out.push_str(cell.symbol());
        }
        out.push_str("\x1b[0m\x1b[K\r\n");
    }
}

/// The colours that are used here.
fn code_of(colour: Color) -> &'static str {
    match colour {
        Color::Red => "\x1b[31m",
        Color::Yellow => "\x1b[33m",
        Color::Cyan => "\x1b[36m",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::control::Gauges;
    use load_core::errors::Fault;
    use load_core::stats::Stats;

    const SCENE: Scene = Scene {
        workload: String::new(),
        target: String::new(),
        connections: 40,
        time_s: 10,
        has_arrivals: true,
        has_deadline: true,
    };

    fn lines(point: Option<Point>, width: u16) -> Vec<String> {
        let mut total = Stats::default();
        total.failed(Fault::protocol("bad \x1b[2J words".to_owned()), false, None);
        let frame = Frame {
            total: &total,
            gauges: Gauges {
                connected: 10,
                ..Gauges::default()
            },
            point: point.as_ref(),
        };
        let past: Vec<Point> = point.into_iter().collect();
        let buffer = draw(&SCENE, &past, &frame, width);
        let cells = buffer.content.chunks(usize::from(width));
        cells
            .map(|row| row.iter().map(|cell| cell.symbol()).collect())
            .collect()
    }

    #[test]
    fn the_picture_has_the_figures_of_the_last_second() {
        let point = Point {
            t_s: 5.0,
            statements_per_s: 1_234.0,
            goodput_per_s: 1_200.0,
            arrived_per_s: 1_300.0,
            p99_ms: 7.5,
            cpu_share: 0.9,
            ..Point::default()
        };
        let text = lines(Some(point), 100).join("\n");
        for part in [
            "onramp load  on ",
            "5 s of 10 s",
            " 1234 statements/s ",
            " p99 7.50 ms ",
            "goodput/s 1200   arrived/s 1300",
            "open 10 ",
            "failed 1   gave up 0",
            "CPU 90 % of its cores: it may be the limit",
            "error 2027 x 1: bad [2J words",
            "█",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\x1b'), "a server's words move no cursor");
    }

    #[test]
    fn the_ramp_is_shown_and_every_width_is_drawn() {
        assert!(lines(None, 80)[1].contains("connected 10 of 40"));
        for width in [COLUMNS_MIN, 61, COLUMNS_MAX] {
            let rows = lines(None, width);
            assert_eq!(rows.len(), usize::from(ROWS));
            assert!(
                rows.iter()
                    .all(|row| row.chars().count() == usize::from(width))
            );
        }
    }

    #[test]
    fn a_picture_takes_the_last_ones_place() {
        let live = |drawn| Live {
            scene: SCENE,
            past: Vec::new(),
            drawn,
        };
        assert_eq!(live(0).erasure(), "");
        assert_eq!(live(17).erasure(), "\x1b[17A\r\x1b[J");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        Line::styled("ab", Color::Red).render(buffer.area, &mut buffer);
        let mut out = String::new();
        write_rows(&buffer, &mut out);
        assert_eq!(out, "\x1b[0m\x1b[31mab \x1b[0m\x1b[K\r\n");
    }
}
