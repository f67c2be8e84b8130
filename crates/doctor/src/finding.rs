//! A finding: one fact held against what N connections need of it.
//!
//! A [`Finding`] knows how many connections its fact allows on each way, so the same findings make
//! the verdict (the least of them), the ladder (all of them in order) and the table of checks.
//!
//! Invariants: a finding of an unknown fact is skipped, never ok; a *wall* stops connections and
//! fails, a *strain* makes them slow or unsure and warns.

use crate::facts::{Fact, NO_LIMIT};
use crate::number::{bytes, thousands};
use crate::question::{PerWay, Question, Way};
use crate::setting::Setting;
use serde::{Serialize, Serializer};
use std::fmt;

/// Status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Stops a way that was asked for.
    Fail,
    /// Makes connections slow or unsure.
    Warn,
    /// Suffices.
    Ok,
    /// Could not be checked.
    Skipped,
}

/// Amount that is there, or is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Not known, or nothing.
    Unknown,
    /// A number of the check's unit.
    Number(u64),
    /// Words, where a number says nothing.
    Words(String),
}

impl From<Fact> for Amount {
    fn from(fact: Fact) -> Amount {
        match fact {
            None => Amount::Unknown,
            Some(NO_LIMIT) => Amount::Words("unlimited".into()),
            Some(number) => Amount::Number(number),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Unknown => f.pad("-"),
            Amount::Number(number) => f.pad(&thousands(*number)),
            Amount::Words(words) => f.pad(words),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Amount::Unknown => serializer.serialize_none(),
            Amount::Number(number) => serializer.serialize_u64(*number),
            Amount::Words(words) => serializer.serialize_str(words),
        }
    }
}

/// Need of N connections: `base + each x N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Amount that others use, or that is used whatever the number of connections.
    pub base: u64,
    /// Need of each connection.
    pub each: u64,
}

impl Demand {
    /// `base + each x N`.
    #[must_use]
    pub fn new(base: u64, each: u64) -> Demand {
        Demand { base, each }
    }

    /// Need of `connections`.
    #[must_use]
    pub fn of(self, connections: u64) -> u64 {
        self.base
            .saturating_add(self.each.saturating_mul(connections))
    }

    /// Number of connections that `have` is enough for.
    #[must_use]
    pub fn holds(self, have: u64) -> u64 {
        match self.each {
            _ if have == NO_LIMIT => NO_LIMIT,
            0 if have >= self.base => NO_LIMIT,
            each => have.saturating_sub(self.base) / each.max(1),
        }
    }
}

/// Consequence where a finding is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// No more connections.
    Wall,
    /// Connections that are slow, or lost in a storm.
    Strain,
}

/// One named fact against its need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name, in lower case with underscores; stays the same between versions.
    pub name: &'static str,
    /// True if it matters on a way that was asked for.
    pub is_asked: bool,
    /// Consequence where it is short; None where the number of connections is no matter.
    pub severity: Option<Severity>,
    /// Status of the check, for the ways and the number that were asked for.
    pub status: Status,
    /// True if its numbers are bytes, which the text shows in larger units.
    pub in_bytes: bool,
    /// Amount that is there.
    pub have: Amount,
    /// Amount that is needed.
    pub need: Amount,
    /// Connections it allows on each way; None where it does not matter on that way, or is unknown.
    pub holds: PerWay<Fact>,
    /// Reason with the arithmetic.
    pub why: String,
    /// Remedy that closes the gap; empty where nothing has to be done.
    pub remedy: String,
    /// Remedy as values, for fragments and `--apply`; also where there is no gap.
    pub settings: Vec<Setting>,
}

impl Finding {
    /// A finding that allows what the demands of the ways say.
    #[must_use]
    pub fn of(
        question: &Question,
        name: &'static str,
        severity: Severity,
        have: Fact,
        demands: PerWay<Option<Demand>>,
    ) -> Finding {
        let asked = || question.ways.iter().filter_map(|way| demands[way.index()]);
        let need = asked().map(|demand| demand.of(question.wanted())).max();
        let holds = demands.map(|demand| Some(demand?.holds(have?)));
        let status = match (have, need) {
            (None, _) | (_, None) => Status::Skipped,
            (Some(have), Some(need)) if have >= need => Status::Ok,
            _ if severity == Severity::Wall => Status::Fail,
            _ => Status::Warn,
        };
        Finding {
            name,
            is_asked: need.is_some(),
            severity: Some(severity),
            in_bytes: false,
            status,
            have: have.into(),
            need: question.connections.and(need).into(),
            // A strain does not bound the number.
            holds: match severity {
                Severity::Wall => holds,
                Severity::Strain => [None; 3],
            },
            why: String::new(),
            remedy: String::new(),
            settings: Vec::new(),
        }
    }

    /// A finding that is no matter of numbers.
    #[must_use]
    pub fn observed(name: &'static str, status: Status, have: Amount, need: Amount) -> Finding {
        Finding {
            name,
            is_asked: true,
            severity: None,
            in_bytes: false,
            status,
            have,
            need,
            holds: [None; 3],
            why: String::new(),
            remedy: String::new(),
            settings: Vec::new(),
        }
    }

    /// Finding whose numbers are bytes.
    #[must_use]
    pub fn in_bytes(mut self) -> Finding {
        self.in_bytes = true;
        self
    }

    /// An amount of it for people; a dash where it is not known.
    #[must_use]
    pub fn shown(&self, amount: &Amount) -> String {
        match amount {
            Amount::Number(number) if self.in_bytes => bytes(*number),
            amount => amount.to_string(),
        }
    }

    /// Finding with the reason why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    /// Finding with what is to be done, said only where something is.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        if matches!(self.status, Status::Fail | Status::Warn) {
            self.remedy = remedy.into();
        }
        self
    }

    /// Finding with the settings that close the gap; their commands are the remedy.
    #[must_use]
    pub fn settings(mut self, settings: Vec<Setting>) -> Finding {
        let commands: Vec<String> = settings.iter().map(Setting::command).collect();
        self.settings = settings;
        self.remedy(commands.join("; "))
    }

    /// Amount that is needed, as a number; 0 where it is none.
    #[must_use]
    pub fn needed(&self) -> u64 {
        match self.need {
            Amount::Number(number) => number,
            _ => 0,
        }
    }

    /// The ways that were asked for and that it stops.
    #[must_use]
    pub fn stops(&self, question: &Question) -> Vec<Way> {
        let short = |way: &&Way| {
            let holds = self.holds_on(**way);
            holds.is_some_and(|holds| holds < question.wanted())
        };
        question.ways.iter().filter(short).copied().collect()
    }

    /// Connections it allows on a way.
    #[must_use]
    pub fn holds_on(&self, way: Way) -> Fact {
        self.holds[way.index()]
    }
}
