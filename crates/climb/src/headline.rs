//! The sentence that a climb comes down to.
//!
//! It speaks of the highest rung that onramp held, because that is the question that the climb
//! asks: how do the paths compare where there are most connections? Where nobody else held that
//! rung there is nothing to compare, so a second sentence goes down to the highest rung that onramp
//! shares with another path. A ratio is onramp's statements/s over the other path's in the same
//! rung. Without onramp in the ladder the sentence is about the highest rung that any path held;
//! with no figures at all it says so.

use crate::format::{thousands, times, whole};
use crate::ladder::Path;
use crate::row::Row;

/// The sentences of all steps, each behind its step's name where there is one.
pub(crate) fn of_steps(rows: &[Row]) -> String {
    let sentences = by_step(rows).into_iter().map(|(name, rows)| match name {
        "" => of(rows),
        name if rows.iter().any(Row::is_storm) => format!("{name}: {}", of_storm(rows)),
        name => format!("{name}: {}", of(rows)),
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        of(&[])
    } else {
        sentences.join(". ")
    }
}

/// The rows of each step, in order.
pub(crate) fn by_step(rows: &[Row]) -> Vec<(&str, &[Row])> {
    let chunks = rows.chunk_by(|one, next| one.step == next.step);
    chunks.map(|rows| (&rows[0].step[..], rows)).collect()
}

/// Part of each path's best goodput that is left where most is asked for.
fn of_storm(rows: &[Row]) -> String {
    let mut parts = Vec::new();
    for path in Path::ALL {
        let of_path = || rows.iter().filter(|row| row.path() == Some(path));
        let best = of_path()
            .filter_map(|row| row.goodput_per_s)
            .fold(0.0, f64::max);
        let Some(last) = of_path().rfind(|row| row.has_figures()) else {
            continue;
        };
        let (goodput, offered) = (
            last.goodput_per_s.unwrap_or_default(),
            last.offered_per_s.unwrap_or_default(),
        );
        if best > 0.0 {
            parts.push(format!(
                "{path} answers {} statements/s in time when {} clients ask for {} ({:.0} % of \
                 its best)",
                whole(goodput),
                thousands(u64::from(last.connections)),
                whole(offered),
                100.0 * goodput / best
            ));
        }
    }
    parts.join("; ")
}

/// The sentence of one ladder.
pub(crate) fn of(rows: &[Row]) -> String {
    let Some(rung) = top_rung(rows) else {
        return "No path held a rung.".to_owned();
    };
    let connections = thousands(u64::from(rung));
    let mut text = format!(
        "{connections} executing connections: {}",
        of_rung(rung, rows)
    );
    let compared = rows.iter().filter(|row| is_compared(row, rows));
    let shared = compared.map(|row| row.connections).max();
    if let Some(shared) = shared.filter(|shared| *shared < rung) {
        let connections = thousands(u64::from(shared));
        text += &format!(". At {connections}: {}", of_rung(shared, rows));
    }
    text
}

fn of_rung(rung: u32, rows: &[Row]) -> String {
    let of_rung = rows.iter().filter(|row| row.connections == rung);
    let (onramp, others): (Vec<_>, Vec<_>) =
        of_rung.partition(|row| row.path() == Some(Path::Onramp));
    let mut parts = Vec::new();
    for (row, rate) in onramp
        .iter()
        .filter_map(|row| Some((row, row.statements_per_s?)))
    {
        let failed = thousands(row.failed().unwrap_or_default());
        parts.push(format!(
            "onramp {} statements/s with {failed} failed",
            whole(rate)
        ));
    }
    let mut lost = Vec::new();
    for row in &others {
        match (row.statements_per_s, ratio_to_onramp(row, rows)) {
            (Some(rate), Some(ratio)) => {
                parts.push(format!("{} {} ({})", row.path, whole(rate), times(ratio)));
            }
            (Some(rate), None) => parts.push(format!("{} {} statements/s", row.path, whole(rate))),
            (None, _) => lost.push(row.path.as_str()),
        }
    }
    if !lost.is_empty() {
        parts.push(format!("{} could not hold them", lost.join(" and ")));
    }
    parts.join(", ")
}

/// True if this is another path on a rung that onramp held too.
fn is_compared(row: &Row, rows: &[Row]) -> bool {
    row.path() != Some(Path::Onramp) && ratio_to_onramp(row, rows).is_some()
}

/// The rung that the sentence is about.
pub(crate) fn top_rung(rows: &[Row]) -> Option<u32> {
    let highest = |wanted: &dyn Fn(&Row) -> bool| {
        let rungs = rows.iter().filter(|row| row.has_figures() && wanted(row));
        rungs.map(|row| row.connections).max()
    };
    highest(&|row| row.path() == Some(Path::Onramp)).or_else(|| highest(&|_| true))
}

/// Onramp's statements/s over this row's, in the same rung.
pub(crate) fn ratio_to_onramp(row: &Row, rows: &[Row]) -> Option<f64> {
    let mut same = rows
        .iter()
        .filter(|other| other.connections == row.connections);
    let onramp = same
        .find(|other| other.path() == Some(Path::Onramp))?
        .statements_per_s?;
    row.statements_per_s
        .filter(|rate| *rate > 0.0)
        .map(|rate| onramp / rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_storm_is_told_by_what_is_left_of_the_best() {
        let row = |path: Path, connections, goodput| Row {
            step: "patience 1 s".to_owned(),
            path: path.name().to_owned(),
            connections,
            statements_per_s: Some(goodput),
            goodput_per_s: Some(goodput),
            offered_per_s: Some(9_000.0),
            gave_up: Some(5),
            ..Row::default()
        };
        let rows = [
            row(Path::Direct, 500, 2_000.0),
            row(Path::Onramp, 500, 2_000.0),
            row(Path::Direct, 9_000, 100.0),
            row(Path::Onramp, 9_000, 1_900.0),
        ];
        let text = of_steps(&rows);
        let expected = "patience 1 s: direct answers 100 statements/s in time when 9,000 clients \
                        ask for 9,000 (5 % of its best); onramp answers 1,900 statements/s in \
                        time when 9,000 clients ask for 9,000 (95 % of its best)";
        assert_eq!(text, expected);
    }

    #[test]
    fn it_speaks_of_onramps_highest_rung() {
        let mut rows = samples::rows();
        assert_eq!(
            of(&rows),
            "100,000 executing connections: onramp 13,455 statements/s with 0 failed, \
             direct and server-pool could not hold them. At 10,000: onramp 13,921 statements/s \
             with 0 failed, direct 9,804 (1.42 x), server-pool 12,480 (1.12 x)"
        );
        rows.retain(|row| row.connections <= 10_000);
        assert_eq!(
            of(&rows),
            "10,000 executing connections: onramp 13,921 statements/s with 0 failed, \
             direct 9,804 (1.42 x), server-pool 12,480 (1.12 x)"
        );
    }

    #[test]
    fn it_does_without_onramp_and_without_figures() {
        let mut rows = samples::rows();
        rows.retain(|row| row.path() == Some(Path::Direct));
        assert_eq!(
            of(&rows),
            "10,000 executing connections: direct 9,804 statements/s"
        );
        assert_eq!(of(&[]), "No path held a rung.");
    }
}
