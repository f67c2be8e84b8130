//! Fragments of files for N connections: complete, commented, to be put where their head says.
//!
//! A fragment holds what this host, or the server that answered, does not have yet. What is right
//! already, and what this kernel does not have, is left out, and named in a comment. A unit's
//! limits are whole: nobody can see here which unit it will be for. Values are those of the checks,
//! for the ways that were asked for; what is larger already stays as large.
//!
//! Invariants: a fragment is valid as a file of its kind without editing, but for names and
//! passwords, which are written in capitals; nothing in it is a secret.

mod kernel;
mod programs;

use crate::facts::Facts;
use crate::finding::Finding;
use crate::number::thousands;
use crate::question::Question;
use crate::setting::Setting;
use crate::text::wrapped;

/// The kind of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Kernel settings, for /etc/sysctl.d
    Sysctl,
    /// Limits of logins, for /etc/security/limits.d
    Limits,
    /// Limits of a service, a drop-in for its unit
    Systemd,
    /// The three above as tasks for Ansible
    Ansible,
    /// The server's settings
    #[value(name = "my.cnf")]
    MyCnf,
    /// HAProxy in front of the server, in TCP mode
    Haproxy,
    /// Settings of onramp pool
    Onramp,
}

/// The fragment.
#[must_use]
pub fn fragment(form: Form, findings: &[Finding], facts: &Facts, question: &Question) -> String {
    match form {
        Form::Sysctl => kernel::sysctl(findings, facts, question),
        Form::Limits => kernel::limits(findings, facts, question),
        Form::Systemd => kernel::systemd(findings, facts, question),
        Form::Ansible => kernel::ansible(findings, facts, question),
        Form::MyCnf => programs::my_cnf(facts, question),
        Form::Haproxy => programs::haproxy(facts, question),
        Form::Onramp => programs::onramp(facts, question),
    }
}

/// The head of a fragment: what it is for and what to do with it, as comments.
fn head(what: &str, then: &str, facts: &Facts, question: &Question) -> String {
    let ways: Vec<String> = question.ways.iter().map(ToString::to_string).collect();
    let words = format!(
        "{what}: what {} connections need, {}, with {} on this host. {then} Written by onramp \
         doctor {} for a host with Linux {}.",
        thousands(question.wanted()),
        ways.join(" and "),
        question.role.words(),
        env!("CARGO_PKG_VERSION"),
        facts.host.kernel,
    );
    comment(&words)
}

/// Words as lines of comment.
fn comment(words: &str) -> String {
    let mut lines = String::new();
    wrapped(&mut lines, 2, words);
    lines
        .lines()
        .map(|line| format!("#{}\n", &line[1..]))
        .collect()
}

/// The settings that some finding wants, each with the finding.
fn settings(findings: &[Finding]) -> impl Iterator<Item = (&Finding, &Setting)> {
    findings
        .iter()
        .filter(|finding| finding.is_asked)
        .flat_map(|finding| {
            finding
                .settings
                .iter()
                .map(move |setting| (finding, setting))
        })
}

/// The largest number that some setting of this kind wants.
fn most(findings: &[Finding], of: impl Fn(&Setting) -> Option<u64>) -> Option<u64> {
    settings(findings)
        .filter_map(|(_, setting)| of(setting))
        .max()
}

#[cfg(test)]
mod tests;
