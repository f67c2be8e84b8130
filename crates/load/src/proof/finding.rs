//! Findings: what is wrong with a history, each with the operations that show it.
//!
//! Of each kind of fault the one with the fewest operations is kept, and the number of all; an
//! operation is shown as a line for people and as fields for programs.

use super::history::{Answer, Operation};
use reactor::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Operations of a finding.
const SHOWN_MAX: usize = 16;

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An acknowledged write has no effect.
    Lost,
    /// A write was done twice.
    Doubled,
    /// A write was done of which the server said that it has no effect.
    Refused,
    /// One part of a transaction was done, or seen, and another was not.
    Torn,
    /// A read shows an older state than one that was there before.
    Stale,
    /// Writes took effect in another order than they were acknowledged in.
    Reordered,
    /// No order of the operations explains their answers.
    NotLinearizable,
    /// A state that nobody wrote.
    Unasked,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lost => "lost",
            Kind::Doubled => "doubled",
            Kind::Refused => "done though refused",
            Kind::Torn => "torn",
            Kind::Stale => "stale",
            Kind::Reordered => "reordered",
            Kind::NotLinearizable => "not linearizable",
            Kind::Unasked => "unasked",
        })
    }
}

/// An operation that shows a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Number of the client, from 0; null for the check at the end.
    pub client: Option<u32>,
    /// Time of its sending, in milliseconds since the first operation.
    pub from_ms: f64,
    /// Time of its answer; null if there was none.
    pub to_ms: Option<f64>,
    /// Description, with the answer.
    pub what: String,
}

/// Faults of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of the faults.
    pub kind: Kind,
    /// Number of faults of this kind.
    pub count: u64,
    /// The one with the shortest history, in words.
    pub text: String,
    /// Operations that show it, in order of time.
    pub history: Vec<Shown>,
}

/// Findings of a check: of each kind one, the one with the fewest operations.
pub(super) struct Findings {
    began: Time,
    found: Vec<Finding>,
}

impl Findings {
    /// No findings yet; operations are shown by the time since the first one.
    pub(super) fn new(operations: &[Operation]) -> Findings {
        Findings {
            began: operations.first().map_or(Time(0), |first| first.from),
            found: Vec::new(),
        }
    }

    /// Adds a fault that these operations show.
    pub(super) fn add(&mut self, kind: Kind, text: String, shown: &[&Operation]) {
        let mut shown = shown.to_vec();
        shown.sort_by_key(|operation| (operation.from, operation.to));
        shown.dedup();
        let shown = shown.into_iter().take(SHOWN_MAX);
        let history: Vec<Shown> = shown.map(|operation| self.show(operation)).collect();
        let Some(known) = self.found.iter_mut().find(|known| known.kind == kind) else {
            let count = 1;
            self.found.push(Finding {
                kind,
                count,
                text,
                history,
            });
            return;
        };
        known.count += 1;
        // A history of nothing shows nothing.
        let length = |history: &[Shown]| history.len().checked_sub(1).unwrap_or(SHOWN_MAX);
        if length(&history) < length(&known.history) {
            (known.text, known.history) = (text, history);
        }
    }

    fn show(&self, operation: &Operation) -> Shown {
        let ms = |time: Time| time.since(self.began).as_secs_f64() * 1e3;
        let Operation { key, value, .. } = operation;
        let answer = match operation.answer {
            Answer::Done => "acknowledged",
            Answer::Refused => "refused",
            Answer::Missing => "no answer",
        };
        Shown {
            client: (operation.client < u32::MAX).then_some(operation.client),
            from_ms: ms(operation.from),
            to_ms: (operation.to < Time::NEVER).then(|| ms(operation.to)),
            what: match operation.is_write() {
                true => format!("write {value} at {key}: {answer}"),
                false => format!("read {key}: {value}"),
            },
        }
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}

impl Finding {
    /// Lines for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} x {}: {}", self.kind, self.count, self.text)];
        lines.extend(self.history.iter().map(Shown::line));
        lines
    }
}

impl Shown {
    /// Line for people.
    pub(crate) fn line(&self) -> String {
        let who = match self.client {
            Some(client) => format!("client {client}"),
            None => "the check".to_owned(),
        };
        let to = self.to_ms.map_or("-".to_owned(), |to| format!("{to:.3}"));
        format!("  {:.3} to {to} ms: {who}: {}", self.from_ms, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::history::tests::{asked, read, wrote};

    #[test]
    fn of_a_kind_the_shortest_history_is_kept() {
        let first = wrote(1, 7, (1_000_000, 2_000_000));
        let last = read(u32::MAX, 7, (4_000_000, 5_000_000));
        let all = [first, asked(2, 8, 3_000_000), last];
        let mut findings = Findings::new(&all);
        findings.add(Kind::Lost, "three".to_owned(), &[&all[2], &all[1], &all[0]]);
        findings.add(Kind::Lost, "two".to_owned(), &[&all[2], &all[1], &all[1]]);
        findings.add(Kind::Lost, "none".to_owned(), &[]);
        findings.add(Kind::Stale, "other".to_owned(), &[&all[0]]);
        let found = findings.into_vec();
        assert_eq!((found.len(), found[0].count), (2, 3));
        assert_eq!(
            found[0].lines(),
            [
                "lost x 3: two",
                "  2.000 to - ms: client 2: write 8 at 1: no answer",
                "  3.000 to 4.000 ms: the check: read 1: 7",
            ]
        );
    }

    #[test]
    fn a_history_has_so_many_operations_at_most() {
        let all: Vec<Operation> = (0..20).map(|at| wrote(1, at, (at, at + 1))).collect();
        let mut findings = Findings::new(&all);
        findings.add(Kind::Lost, String::new(), &all.iter().collect::<Vec<_>>());
        assert_eq!(findings.into_vec()[0].history.len(), SHOWN_MAX);
    }
}
