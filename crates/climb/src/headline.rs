//! The sentence that a climb comes down to.
//!
//! It speaks of the highest rung that onramp held, because that is the question that the climb
//! asks: how do the paths compare where there are most connections? Where nobody else held that
//! rung there is nothing to compare, so a second sentence goes down to the highest rung that onramp
//! shares with another path. A ratio is onramp's statements/s over the other path's in the same
//! rung. Without onramp in the ladder the sentence is about the highest rung that any path held;
//! with no figures at all it says so.
//!
//! The rate is that by the server's CPU time if the server has processors of its own: the work that
//! a path lets it do, whatever the path itself uses. Else the sentence says that all share one
//! machine.

use crate::format::{figure, thousands, times, whole};
use crate::ladder::Path;
use crate::row::Row;
use serde::{Deserialize, Serialize};

/// Place of the server, which decides what paths are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// On processors that load and proxy use too: what they use is taken from it.
    #[default]
    Shared,
    /// On processors of its own.
    Apart,
    /// A server of the user's.
    Elsewhere,
}

impl Place {
    /// The rate that paths are compared by.
    pub(crate) fn rate(self, row: &Row) -> Option<f64> {
        match self {
            Place::Apart => row.statements_per_server_cpu_s,
            Place::Shared | Place::Elsewhere => row.statements_per_s,
        }
    }

    /// Unit of that rate.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Place::Apart => "statements by CPU-second of the server",
            Place::Shared | Place::Elsewhere => "statements/s",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Place::Shared => " on one shared machine",
            Place::Apart => ", the server on processors of its own",
            Place::Elsewhere => "",
        }
    }
}

/// The sentences of all steps, each behind its step's name where there is one.
pub(crate) fn of_steps(rows: &[Row], place: Place) -> String {
    let sentences = by_step(rows).into_iter().map(|(name, rows)| match name {
        "" => of(rows, place),
        name if rows.iter().any(Row::is_storm) => format!("{name}: {}", of_storm(rows)),
        name => format!("{name}: {}", of(rows, place)),
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        of(&[], place)
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
pub(crate) fn of(rows: &[Row], place: Place) -> String {
    let Some(rung) = top_rung(rows) else {
        return "No path held a rung.".to_owned();
    };
    let connections = thousands(u64::from(rung));
    let mut text = format!(
        "{connections} executing connections{}: {}",
        place.words(),
        of_rung(rung, rows, place)
    );
    let compared = rows.iter().filter(|row| is_compared(row, rows, place));
    let shared = compared.map(|row| row.connections).max();
    if let Some(shared) = shared.filter(|shared| *shared < rung) {
        let connections = thousands(u64::from(shared));
        text += &format!(". At {connections}: {}", of_rung(shared, rows, place));
    }
    text
}

fn of_rung(rung: u32, rows: &[Row], place: Place) -> String {
    let of_rung = rows.iter().filter(|row| row.connections == rung);
    let (onramp, others): (Vec<_>, Vec<_>) =
        of_rung.partition(|row| row.path() == Some(Path::Onramp));
    let mut parts = Vec::new();
    for (row, rate) in onramp
        .iter()
        .filter_map(|row| Some((row, place.rate(row)?)))
    {
        let failed = thousands(row.failed().unwrap_or_default());
        parts.push(format!(
            "onramp {} {} with {failed} failed",
            whole(rate),
            place.unit()
        ));
    }
    let mut lost = Vec::new();
    for row in &others {
        match (place.rate(row), ratio_to_onramp(row, rows, place)) {
            (Some(rate), Some(ratio)) => {
                parts.push(format!("{} {} ({})", row.path, whole(rate), times(ratio)));
            }
            (Some(rate), None) => {
                parts.push(format!("{} {} {}", row.path, whole(rate), place.unit()));
            }
            (None, _) if row.has_figures() => {}
            (None, _) => lost.push(row.path.as_str()),
        }
    }
    if !lost.is_empty() {
        parts.push(format!("no figures of {}", lost.join(" and ")));
    }
    let proxies = rows.iter().filter(|row| row.connections == rung);
    let proxies = proxies.filter_map(|row| {
        let cost = row
            .pool_us_per_statement
            .filter(|_| place == Place::Apart)?;
        Some(format!("{} {} us", row.path, figure(cost)))
    });
    let proxies: Vec<String> = proxies.collect();
    match &proxies[..] {
        [] => parts.join(", "),
        some => {
            let cost = some.join(", ");
            format!(
                "{}; CPU of the proxy for a statement: {cost}",
                parts.join(", ")
            )
        }
    }
}

/// True if this is another path on a rung that onramp held too.
fn is_compared(row: &Row, rows: &[Row], place: Place) -> bool {
    row.path() != Some(Path::Onramp) && ratio_to_onramp(row, rows, place).is_some()
}

/// The rung that the sentence is about.
pub(crate) fn top_rung(rows: &[Row]) -> Option<u32> {
    let highest = |wanted: &dyn Fn(&Row) -> bool| {
        let rungs = rows.iter().filter(|row| row.has_figures() && wanted(row));
        rungs.map(|row| row.connections).max()
    };
    highest(&|row| row.path() == Some(Path::Onramp)).or_else(|| highest(&|_| true))
}

/// Onramp's rate over this row's, in the same rung.
pub(crate) fn ratio_to_onramp(row: &Row, rows: &[Row], place: Place) -> Option<f64> {
    let mut same = rows
        .iter()
        .filter(|other| other.connections == row.connections);
    let onramp = same.find(|other| other.path() == Some(Path::Onramp))?;
    let onramp = place.rate(onramp)?;
    place
        .rate(row)
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
        let text = of_steps(&rows, Place::Shared);
        let expected = "patience 1 s: direct answers 100 statements/s in time when 9,000 clients \
                        ask for 9,000 (5 % of its best); onramp answers 1,900 statements/s in \
                        time when 9,000 clients ask for 9,000 (95 % of its best)";
        assert_eq!(text, expected);
    }

    #[test]
    fn it_speaks_of_onramps_highest_rung() {
        let mut rows = samples::rows();
        assert_eq!(
            of(&rows, Place::Shared),
            "100,000 executing connections on one shared machine: onramp 13,455 statements/s with \
             0 failed, no figures of direct and server-pool. At 10,000: onramp 13,921 \
             statements/s with 0 failed, direct 9,804 (1.42 x), server-pool 12,480 (1.12 x)"
        );
        rows.retain(|row| row.connections <= 10_000);
        assert_eq!(
            of(&rows, Place::Elsewhere),
            "10,000 executing connections: onramp 13,921 statements/s with 0 failed, \
             direct 9,804 (1.42 x), server-pool 12,480 (1.12 x)"
        );
    }

    #[test]
    fn it_does_without_onramp_and_without_figures() {
        let mut rows = samples::rows();
        rows.retain(|row| row.path() == Some(Path::Direct));
        assert_eq!(
            of(&rows, Place::Elsewhere),
            "10,000 executing connections: direct 9,804 statements/s"
        );
        assert_eq!(of(&[], Place::Shared), "No path held a rung.");
    }

    #[test]
    fn a_server_on_its_own_processors_is_told_by_its_cpu_time() {
        let mut rows = samples::rows();
        rows.retain(|row| row.connections == 1_000);
        for (row, seconds) in rows.iter_mut().zip([
            [Some(50e-6), None],
            [Some(40e-6), None],
            [Some(25e-6), Some(12.5e-6)],
        ]) {
            row.take_cpu([seconds[0], seconds[1], Some(9e-6)]);
        }
        assert_eq!(
            of(&rows, Place::Apart),
            "1,000 executing connections, the server on processors of its own: onramp 40,000 \
             statements by CPU-second of the server with 0 failed, direct 20,000 (2.00 x), \
             server-pool 25,000 (1.60 x); CPU of the proxy for a statement: onramp 12.5 us"
        );
        rows[0].take_cpu([None; 3]);
        let text = of(&rows, Place::Apart);
        assert!(
            !text.contains("direct") && !text.contains("no figures"),
            "{text}"
        );
    }
}
