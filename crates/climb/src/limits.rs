//! Walls that a cell would hit, and those that it did hit, each in one sentence.
//!
//! Before: some rungs are impossible by arithmetic. The doctor's checks say which, from the facts
//! of this machine and what the private server may be given; trying would take minutes to learn
//! what is known, so the cell becomes a row at once.
//!
//! After: a cell that did not hold has left traces: what `load` says, its errors by number, the
//! server's log, the last words of a process. The first that says something is put into words, and
//! an error with the wall behind it in the words of the doctor. Everything here works on plain
//! structs, so every sentence has a test.

use crate::format::thousands;
use crate::ladder::{Cell, Path};
use crate::row::{LoadError, LoadReport};
use crate::server::{self, CONNECTIONS_MAX};
use doctor::facts::{Facts, Files, Server};
use doctor::preflight::{behind, brief, walls_of};
use doctor::question::{Question, Role, Way};

/// Facts of this machine now, with a private server that may have `connections`.
pub(crate) fn facts_with_server(connections: u32) -> Facts {
    let mut facts = Facts::read(&Files::of_kernel(), None);
    facts.server = Some(private_server(connections));
    facts
}

/// Facts of a private server before it runs.
fn private_server(connections: u32) -> Server {
    let most = u64::from(connections).min(CONNECTIONS_MAX);
    let mut server = Server {
        is_local: true,
        ..Server::default()
    };
    let name = "max_connections".to_owned();
    server.variables.insert(name, most.to_string());
    server
}

/// Question about a cell. `backends` are the pool's connections to the server.
pub(crate) fn question(cell: Cell, role: Role, backends: u32) -> Question {
    Question {
        connections: Some(u64::from(cell.connections)),
        ways: vec![way(cell.path)],
        role,
        backends: u64::from(backends),
        // On one machine all of 127.0.0.0/8 is there to connect from.
        sources: (role == Role::Client).then_some(1),
        ..Question::default()
    }
}

fn way(path: Path) -> Way {
    match path {
        // A connection of the server for each client, or nearly.
        Path::Direct | Path::HaProxy | Path::Router => Way::Direct,
        Path::ServerPool => Way::ServerPool,
        Path::Onramp => Way::Onramp,
    }
}

/// Reason by arithmetic against a question, or `None` if it can be held.
pub(crate) fn forbidden(question: &Question, facts: &Facts) -> Option<String> {
    let nearest = walls_of(facts, question).into_iter().next()?;
    Some(format!("not tried: {}", brief(&nearest)))
}

/// True if enough connected that the figures are about this rung: 99 of 100.
pub(crate) fn is_held(cell: Cell, report: &LoadReport) -> bool {
    let connected = report.connected.unwrap_or_default();
    // Clients who hang up are never all connected, and that is what is measured.
    let storm = report.gave_up.unwrap_or_default() > 0;
    let enough = connected * 100 >= u64::from(cell.connections) * 99;
    report.statements_per_s.is_some() && (enough || storm)
}

/// Facts about a cell after it ran.
pub(crate) struct Outcome<'a> {
    pub(crate) cell: Cell,
    pub(crate) report: Option<&'a LoadReport>,
    /// Last words of `load`, and its end.
    pub(crate) load_words: &'a str,
    /// The pool's last words, if it ended before it was told to.
    pub(crate) pool_death: Option<&'a str>,
    pub(crate) server_log: &'a [String],
    /// Question to the doctor about this machine, and its facts.
    pub(crate) question: &'a Question,
    pub(crate) facts: &'a Facts,
}

impl Outcome<'_> {
    /// Reason for a cell that did not hold each of its connections; `None` if it did.
    pub(crate) fn limit(&self) -> Option<String> {
        let wanted = u64::from(self.cell.connections);
        let Some(report) = self.report else {
            let cause = self.pool_death_text().or_else(|| self.server_text());
            return Some(
                cause.unwrap_or_else(|| format!("load gave no figures: {}", self.load_words)),
            );
        };
        let connected = report.connected.unwrap_or_default();
        if connected >= wanted && report.statements_per_s.is_some() {
            return self.pool_death_text().or_else(|| report.limit.clone());
        }
        let cause = self
            .pool_death_text()
            .or_else(|| report.limit.clone())
            .or_else(|| self.error_text(&report.errors))
            .or_else(|| self.server_text())
            .unwrap_or_else(|| self.load_words.to_owned());
        Some(format!(
            "{} of {} connected: {cause}",
            thousands(connected),
            thousands(wanted)
        ))
    }

    fn pool_death_text(&self) -> Option<String> {
        let name = match self.cell.path {
            Path::Onramp => "the pool",
            peer => peer.name(),
        };
        let words = self.pool_death?;
        Some(format!("{name} ended during the run: {words}"))
    }

    fn server_text(&self) -> Option<String> {
        server::server_error(self.server_log)
    }

    /// The error that came most often, in words.
    fn error_text(&self, errors: &[LoadError]) -> Option<String> {
        let error = errors.iter().max_by_key(|error| error.count)?;
        let message = error.message.as_deref().unwrap_or("no message");
        let number = error
            .code
            .map(|code| format!("{code} "))
            .unwrap_or_default();
        let cause = self.cause(error.code.unwrap_or_default(), message);
        let cause = cause.map(|cause| format!("; {cause}")).unwrap_or_default();
        Some(format!(
            "{} times error {number}{message}{cause}",
            thousands(error.count)
        ))
    }

    /// The wall behind an error, or what else it tells.
    fn cause(&self, code: i64, message: &str) -> Option<String> {
        let findings = doctor::catalog::check(self.facts, self.question);
        if let Some(wall) = behind(&findings, way(self.cell.path), code, message) {
            return Some(format!("the nearest wall is {}", brief(wall)));
        }
        let by_errno = |errno: &str| message.contains(errno);
        match code {
            _ if by_errno("(111)") && self.cell.path == Path::Onramp => {
                Some("nobody listens on the pool's port".to_owned())
            }
            _ if by_errno("timed out") => {
                Some("connects come faster than they are taken; try --connect-rate".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
