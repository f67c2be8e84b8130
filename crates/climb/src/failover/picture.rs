//! The page of a failover.
//!
//! Updates in each tenth of a second, one band for each way, over one axis of time and one scale,
//! so that the bands can be compared. Below stands the table that the terminal has.

use std::fmt::Write;

use ::chart::{Scale, linear_ticks, segment};

use crate::evidence::Host;
use crate::failover::clients::COLUMN_MS;
use crate::failover::{CALM, Outcome, table};
use crate::options::Scenario;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 70.0;
const BAND: f64 = 130.0;
const GAP: f64 = 40.0;

/// All of `climb.html`.
pub(super) fn page(host: &Host, scenario: Scenario, clients: u32, outcomes: &[Outcome]) -> String {
    let style = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:40px auto;\
                 padding:0 20px;color-scheme:light dark}svg{width:100%;height:auto}\
                 text{font-size:13px;fill:currentColor}.axis{stroke:currentColor;opacity:.3}\
                 .change{stroke:#c0392b;stroke-dasharray:4 3}\
                 path{fill:none;stroke-width:2;stroke-linejoin:round}.direct{stroke:#c2500a}\
                 .haproxy{stroke:#0f8164}.router{stroke:#8a4fbf}.onramp{stroke:#0b62a8}\
                 pre{overflow-x:auto}";
    let place = format!(
        "{}, {} processors, {}",
        host.server, host.cpus, host.cpu_model
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Onramp climb</title><style>{style}</style></head><body>\n\
         <h1>{} under {clients} clients</h1>\n\
         <p>Updates in each tenth of a second. The line is where the writer changes.</p>\n\
         {}\n<pre>{}</pre>\n<p>{}, {}</p>\n</body></html>\n",
        match scenario {
            Scenario::Switchover => "A planned switchover",
            _ => "A writer dies",
        },
        drawing(outcomes),
        table(outcomes),
        escaped(&place),
        escaped(&host.date),
    )
}

fn drawing(outcomes: &[Outcome]) -> String {
    let columns = outcomes.iter().map(|it| it.told.series.len()).max();
    let most = outcomes.iter().flat_map(|it| &it.told.series).max();
    let (columns, most) = (columns.unwrap_or(0) as f64, *most.unwrap_or(&0) as f64);
    let height = (BAND + GAP) * outcomes.len() as f64 + GAP;
    let seconds = columns * COLUMN_MS as f64 / 1000.0;
    let x = Scale::linear(0.0, seconds, LEFT, WIDTH - 10.0);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">");
    for (band, outcome) in outcomes.iter().enumerate() {
        let bottom = (BAND + GAP) * (band + 1) as f64;
        let y = Scale::linear(0.0, most, bottom, bottom - BAND);
        let name = outcome.way.name();
        text(
            &mut svg,
            LEFT,
            bottom - BAND - 8.0,
            "start",
            &format!(
                "{name}: longest gap {} ms, {} disconnected, {} statements failed",
                outcome.told.longest_gap_ms,
                outcome.told.disconnected,
                outcome.told.failed()
            ),
        );
        for tick in linear_ticks(most) {
            let at = y.px(tick);
            segment(&mut svg, "axis", (LEFT, at), (WIDTH - 10.0, at));
            text(&mut svg, LEFT - 6.0, at + 4.0, "end", &format!("{tick}"));
        }
        let change = x.px(CALM.as_secs_f64());
        segment(
            &mut svg,
            "change",
            (change, bottom - BAND),
            (change, bottom),
        );
        let mut line = String::new();
        for (column, count) in outcome.told.series.iter().enumerate() {
            let at = (column as f64 + 0.5) * COLUMN_MS as f64 / 1000.0;
            let command = if column == 0 { 'M' } else { 'L' };
            // Writing to a string does not fail.
            let _ = write!(line, "{command}{:.1} {:.1}", x.px(at), y.px(*count as f64));
        }
        let _ = write!(svg, "<path class=\"{name}\" d=\"{line}\"/>");
    }
    for second in linear_ticks(seconds) {
        let words = format!("{second} s");
        text(
            &mut svg,
            x.px(second),
            height - GAP + 20.0,
            "middle",
            &words,
        );
    }
    svg + "</svg>"
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::Way;
    use crate::failover::clients::Told;

    #[test]
    fn a_page_has_a_line_for_each_way_and_escapes_names() {
        let outcome = |way| Outcome {
            way,
            told: Told {
                series: vec![1, 5, 0, 3],
                ..Told::default()
            },
            lost: 0,
            promoted_ms: 1,
        };
        let host = Host {
            cpu_model: "<A & B>".into(),
            ..Host::default()
        };
        let page = page(
            &host,
            Scenario::Failover,
            8,
            &[outcome(Way::Direct), outcome(Way::Onramp)],
        );
        assert_eq!(page.matches("<path class=").count(), 2);
        assert!(page.contains("&lt;A &amp; B&gt;") && !page.contains("<A"));
        // Nothing measured is a page, too.
        assert!(drawing(&[]).ends_with("</svg>"));
    }
}
