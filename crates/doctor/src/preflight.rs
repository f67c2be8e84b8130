//! What a command says before it starts: the doctor's checks of what it is about to do.
//!
//! The pooler and the load generator begin with what they need of this host; the climb also with
//! what a server beside them needs. They are told by the same checks, in the same words, so that a
//! warning here can be looked up there. Only what depends on the number of connections is said: a
//! slow clock is no news at every start.

use crate::catalog;
use crate::facts::{Facts, Files};
use crate::finding::{Finding, Status};
use crate::question::Question;

/// What is short for `question` on this host, walls first.
#[must_use]
pub fn short(question: &Question) -> Vec<Finding> {
    short_of(&Facts::read(&Files::of_kernel(), None), question)
}

/// What is short for `question` by these facts, walls first.
#[must_use]
pub fn short_of(facts: &Facts, question: &Question) -> Vec<Finding> {
    let mut short = catalog::check(facts, question);
    short.retain(|finding| {
        let gap = matches!(finding.status, Status::Fail | Status::Warn);
        gap && finding.is_asked && finding.severity.is_some()
    });
    short.sort_by_key(|finding| finding.status);
    short
}

/// Whether one of them stops connections.
#[must_use]
pub fn stops(short: &[Finding]) -> bool {
    short.iter().any(|finding| finding.status == Status::Fail)
}

/// A finding in one sentence, the same wherever it is said.
#[must_use]
pub fn sentence(finding: &Finding) -> String {
    let remedy = match finding.remedy.as_str() {
        "" => String::new(),
        remedy => format!(". To do: {remedy}"),
    };
    format!(
        "{}: have {}, need {}: {}{remedy}",
        finding.name,
        finding.shown(&finding.have),
        finding.shown(&finding.need),
        finding.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Role, Way};

    #[test]
    fn only_what_depends_on_the_number_is_said() {
        let mut facts = Facts::default();
        facts.host.sysctls.insert("fs.file-max".into(), vec![5_000]);
        facts.host.clock_source = "hpet".into();
        facts.host.counts.insert("listen_overflows".into(), 7);
        facts.host.counts.insert("listen_drops".into(), 7);
        let mut question = Question {
            connections: Some(4_000),
            role: Role::Pooler,
            ways: vec![Way::Onramp],
            ..Question::default()
        };
        assert_eq!(short_of(&facts, &question), []);
        question.connections = Some(6_000);
        let short = short_of(&facts, &question);
        assert_eq!(short.len(), 1);
        assert!(stops(&short));
        let sentence = sentence(&short[0]);
        assert!(
            sentence.starts_with("file_max: have 5,000, need 6,128: "),
            "{sentence}"
        );
        assert!(
            sentence.ends_with("To do: sysctl -w fs.file-max=6200"),
            "{sentence}"
        );
    }
}
