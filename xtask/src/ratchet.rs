//! Bounds on the measures, which only go down: part of `tidy`.
//!
//! A number that has grown is an offence with the places that make most of it. One that has fallen
//! is written down at once, so that it cannot grow back; numbers of lines and words change with
//! every commit, and are written down when they have fallen by more than [`SLACK_PERCENT`].

use crate::measures::Measure;
use crate::offence::Offence;

/// The file that an offence names.
const HERE: &str = "xtask/src/ratchet.rs";
/// Percent of a bound by which a number of lines or words may fall below it.
const SLACK_PERCENT: usize = 2;
/// Places that a message names.
const PLACES_MAX: usize = 3;

/// Closeness of a bound to its measure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// The bound is the number itself.
    Exactly,
    /// The number may be smaller by [`SLACK_PERCENT`].
    Loosely,
}
use Follows::{Exactly, Loosely};

/// A measure's name, the most that it may be, and how closely the bound follows.
type Bound = (&'static str, usize, Follows);

const BOUNDS: &[Bound] = &[
    ("largest component of calls of a type", 3, Exactly),
    ("methods of a type", 67, Exactly),
    ("open fields of a type", 48, Exactly),
    ("files with `impl` of a type outside of its own", 6, Exactly),
    ("functions with tuples of parameters", 116, Exactly),
    ("subjects in more than two folders", 0, Exactly),
    ("rooms at the top of the pool", 16, Exactly),
    ("look-ups of clients and backends", 250, Exactly),
    ("signatures of the pool with a bare Key", 0, Exactly),
    ("doc comments that open with a question word", 0, Exactly),
    (
        "doc comments that open with \"The same\" or \"That of\"",
        1,
        Exactly,
    ),
    (
        "doc comments that open with neither noun nor verb",
        9,
        Exactly,
    ),
    ("doc comments of functions that state an event", 0, Exactly),
    (
        "doc comments of functions without a value that open with no verb",
        0,
        Exactly,
    ),
    ("words of docs", 45_000, Loosely),
    ("rows of limits.md", 58, Exactly),
    ("product lines", 141_389, Loosely),
    ("product lines of pool, session and sql", 76_567, Loosely),
    ("lines of end-to-end tests", 27_997, Loosely),
];

/// Measures over their bounds, bounds that can go down, and bounds of nothing. A measure without a
/// bound is only reported.
pub(crate) fn check(measures: &[Measure], offences: &mut Vec<Offence>) {
    compare(measures, BOUNDS, offences);
}

fn compare(measures: &[Measure], bounds: &[Bound], offences: &mut Vec<Offence>) {
    let mut offend = |what: String, remedy: String| {
        offences.push(Offence::new(HERE, 1, what, remedy));
    };
    for &(name, bound, follows) in bounds {
        let Some(measure) = measures.iter().find(|measure| measure.name == name) else {
            offend(
                format!("there is no measure `{name}`"),
                "remove its bound".into(),
            );
            continue;
        };
        let value = measure.value;
        let slack = match follows {
            Exactly => 0,
            Loosely => bound * SLACK_PERCENT / 100,
        };
        if value > bound {
            let places = measure.places.iter().take(PLACES_MAX);
            let places: Vec<String> = places.map(|(n, of)| format!("{n} {of}")).collect();
            offend(
                format!("{name}: {value}, at most {bound} allowed"),
                format!("bring it down again; most of it: {}", places.join(", ")),
            );
        } else if value + slack < bound {
            offend(
                format!("{name}: only {value} now"),
                format!("write {value} for {bound} in BOUNDS, so that it stays"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: usize, bounds: &[Bound]) -> Vec<String> {
        let measure = Measure {
            name: "knots",
            value,
            places: vec![(2, "a".into()), (1, "b".into())],
        };
        let mut offences = Vec::new();
        compare(&[measure], bounds, &mut offences);
        offences
            .iter()
            .map(|o| format!("{}; {}", o.what, o.remedy))
            .collect()
    }

    #[test]
    fn a_bound_only_goes_down() {
        assert_eq!(said(3, &[("knots", 3, Exactly)]), [""; 0]);
        assert_eq!(
            said(4, &[("knots", 3, Exactly)]),
            ["knots: 4, at most 3 allowed; bring it down again; most of it: 2 a, 1 b"]
        );
        assert_eq!(
            said(2, &[("knots", 3, Exactly)]),
            ["knots: only 2 now; write 2 for 3 in BOUNDS, so that it stays"]
        );
    }

    #[test]
    fn lines_may_fall_a_little() {
        assert_eq!(said(98, &[("knots", 100, Loosely)]), [""; 0]);
        assert_eq!(said(97, &[("knots", 100, Loosely)]).len(), 1);
        assert_eq!(said(101, &[("knots", 100, Loosely)]).len(), 1);
    }

    #[test]
    fn each_bound_has_a_measure() {
        assert_eq!(
            said(3, &[("nots", 3, Exactly)]),
            ["there is no measure `nots`; remove its bound"]
        );
    }
}
