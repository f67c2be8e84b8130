//! The decision's result, and what it remembers from one decision to the next.
//!
//! A view is a value: the monitor makes it, and whoever routes a statement reads it. What a person
//! orders (a switchover, a fence) is a function from view to view as well.

use crate::report::Report;
use crate::settings::{ServerId, Settings};

/// Result of a decision: the writer, the readers, and the state of each server with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Grows with each change of the writer, also from and to none.
    pub epoch: u64,
    /// The server that takes the writes; none while no server is known to. Writes wait then.
    pub writer: Option<ServerId>,
    /// Servers that may be read besides the writer, in the order of the settings.
    pub readers: Vec<ServerId>,
    /// One for each of the settings' servers.
    pub servers: Vec<ServerState>,
    /// Reason for the writer, or for none.
    pub why: String,
    /// The last writer, which has the first right to be it again.
    pub(crate) holder: Option<ServerId>,
    /// Time at which it became the writer, and the reason.
    pub(crate) holder_since: u64,
    pub(crate) holder_why: String,
}

/// A server's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Use of it.
    pub state: State,
    /// Reason for the state.
    pub why: String,
    /// Time of the last change of the state, in milliseconds.
    pub since: u64,
    /// Share of the reads now: less than the settings' weight while it starts slowly.
    pub weight: u32,
    /// Its last report, of whatever age; for the console, and for a switchover's GTIDs.
    pub report: Option<Report>,
    pub(crate) memory: Memory,
}

/// Use of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Server that has not answered yet.
    Unknown,
    /// Server that takes the writes.
    Writer,
    /// Server that takes the writes, and on which statements fail for want of room.
    Full,
    /// Server that may be read.
    Reader,
    /// Server that answers, and is given nothing; the reason says why.
    Unused,
    /// Server that does not answer.
    Down,
    /// The settings turn it off.
    Off,
}

impl State {
    /// Word for log, console and figures.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Writer => "writer",
            Self::Full => "full",
            Self::Reader => "reader",
            Self::Unused => "unused",
            Self::Down => "down",
            Self::Off => "off",
        }
    }
}

/// Counts and times of one server, held from one decision to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Time of the observation that was counted last.
    pub(crate) counted_at: Option<u64>,
    /// Time of the last report.
    pub(crate) reported_at: u64,
    /// True from the first answers on until the last of too many failures.
    pub(crate) is_up: bool,
    /// Time at which it came back; `None` if it was never down.
    pub(crate) up_at: Option<u64>,
    /// Reports in a row.
    pub(crate) good: u32,
    /// Failures to hear anything of it, in a row; those of them that refused, and the first's time.
    pub(crate) failures: u32,
    pub(crate) refusals: u32,
    pub(crate) failing_at: u64,
    /// Times that it went down of late, and the last of them.
    pub(crate) relapses: u32,
    pub(crate) fell_at: u64,
    /// Errors in place of reports, in a row.
    pub(crate) silent: u32,
    /// Words of the last failure.
    pub(crate) failure: String,
    /// Reason for which somebody vouches that it takes no writes.
    pub(crate) fenced: Option<String>,
    /// Last lag that was known, in milliseconds, with its time.
    pub(crate) lag: Option<(u64, u64)>,
    /// True from a lag over the limit to one below half of it.
    pub(crate) lags: bool,
    /// Clients' statements of late, and those that failed.
    pub(crate) statements: u32,
    pub(crate) failed: u32,
    /// Error of the last statement that failed for want of room, and its time.
    pub(crate) full: Option<(u16, u64)>,
    /// Time at which the circuit breaker opened last.
    pub(crate) opened_at: Option<u64>,
}

impl Memory {
    /// Notes that it lives.
    pub(crate) fn heard_from(&mut self) {
        (self.failures, self.refusals) = (0, 0);
    }
}

impl View {
    /// View of a process that has asked nobody yet.
    pub fn new(settings: &Settings, now: u64) -> Self {
        let unknown = |weight| ServerState {
            state: State::Unknown,
            why: "it has not answered yet".into(),
            since: now,
            weight,
            report: None,
            memory: Memory::default(),
        };
        Self {
            epoch: 0,
            writer: None,
            readers: Vec::new(),
            servers: settings
                .servers
                .iter()
                .map(|it| unknown(it.weight))
                .collect(),
            why: "no server has answered yet".into(),
            holder: None,
            holder_since: 0,
            holder_why: String::new(),
        }
    }

    /// Time from an observation of a server to the next question: shorter for one that fails, and
    /// for all while the writer fails or there is none.
    pub fn ask_after_ms(&self, server: ServerId, settings: &Settings) -> u64 {
        let fails = |id: ServerId| {
            let memory = self.servers.get(id.index()).map(|it| &it.memory);
            memory.is_some_and(|it| it.is_up && it.failures > 0)
        };
        match self.writer {
            Some(writer) if !fails(writer) && !fails(server) => settings.ask_ms,
            _ => settings.ask_again_ms,
        }
    }

    /// View after a switchover that the operator asked for: `to` takes the writes. The caller has
    /// held all writes, and knows that `to` has everything and that no other server takes writes.
    #[must_use]
    pub fn switched(&self, to: ServerId, why: &str, now: u64) -> Self {
        let mut next = self.clone();
        next.set_writer(Some(to), why.into(), now);
        next
    }

    /// View in which a server has left its place to another, of which nothing is known yet. The
    /// caller knows that it is neither the writer nor the one before.
    #[must_use]
    pub fn vacated(&self, server: ServerId, now: u64) -> Self {
        let mut next = self.clone();
        if let Some(place) = next.servers.get_mut(server.index()) {
            *place = ServerState {
                state: State::Off,
                why: "it has not answered yet".into(),
                since: now,
                weight: 0,
                report: None,
                memory: Memory::default(),
            };
        }
        next
    }

    /// True if a server may leave its place: it has not been the last to take the writes, and does
    /// not say that it takes them.
    pub fn may_leave(&self, server: ServerId) -> bool {
        let says_no = |state: &ServerState| {
            let report = state.report.as_ref();
            report.is_none_or(|it| it.read_only || it.innodb_read_only || it.galera.is_some())
        };
        self.holder != Some(server)
            && self.writer != Some(server)
            && self.servers.get(server.index()).is_none_or(says_no)
    }

    /// View after an operator or an orchestrator has vouched that a server takes no writes, however
    /// it looks; `None` takes that back. It ends when the server says so itself, or becomes the
    /// writer by a switchover.
    #[must_use]
    pub fn fenced(&self, server: ServerId, why: Option<&str>) -> Self {
        let mut next = self.clone();
        if let Some(server) = next.servers.get_mut(server.index()) {
            server.memory.fenced = why.map(str::to_owned);
        }
        next
    }
}
