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
}

/// A server's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// What it is used for.
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
    /// It has not answered yet.
    Unknown,
    /// It takes the writes.
    Writer,
    /// It may be read.
    Reader,
    /// It answers, and is given nothing; the reason says why.
    Unused,
    /// It does not answer.
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
        }
    }

    /// Time from an observation of a server to the next question.
    pub fn ask_after_ms(&self, server: ServerId, settings: &Settings) -> u64 {
        let _ = server;
        settings.ask_ms
    }

    /// View after a switchover that the operator asked for: `to` takes the writes. The caller has
    /// held all writes, and knows that `to` has everything and that no other server takes writes.
    #[must_use]
    pub fn switched(&self, to: ServerId, why: &str, settings: &Settings, now: u64) -> Self {
        let _ = (to, why, settings, now);
        self.clone()
    }

    /// View after an operator or an orchestrator has vouched that a server takes no writes, however
    /// it looks. That ends when the server says that it takes none, or becomes the writer.
    #[must_use]
    pub fn fenced(&self, server: ServerId, why: &str) -> Self {
        let _ = (server, why);
        self.clone()
    }
}
