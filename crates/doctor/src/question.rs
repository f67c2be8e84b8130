//! Questions to the doctor: number of connections, way, and role of this host.
//!
//! The three ways have different walls: a thread for each connection, a descriptor for each, or
//! neither. A host is asked only about what runs on it.

use serde::Serialize;
use std::fmt;

/// Way of connections to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Straight, a thread of the server for each
    Direct,
    /// Straight, to the server's own pool of threads
    ServerPool,
    /// Through onramp pool
    Onramp,
}

impl Way {
    /// All, in the order in which they are shown.
    pub const ALL: [Way; 3] = [Way::Direct, Way::ServerPool, Way::Onramp];

    /// Its place in a [`PerWay`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Direct => "direct",
            Way::ServerPool => "server's pool",
            Way::Onramp => "through onramp",
        })
    }
}

/// One value for each way, in the order of [`Way::ALL`].
pub type PerWay<T> = [T; 3];

/// Programs that run on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// The database server
    Server,
    /// onramp pool
    Pool,
    /// The clients, or the load generator
    Client,
    /// All of them
    AllInOne,
}

impl Role {
    /// True if the server runs here.
    #[must_use]
    pub fn has_server(self) -> bool {
        matches!(self, Role::Server | Role::AllInOne)
    }

    /// True if the pool runs here.
    #[must_use]
    pub fn has_pool(self) -> bool {
        matches!(self, Role::Pool | Role::AllInOne)
    }

    /// The clients run here.
    #[must_use]
    pub fn has_clients(self) -> bool {
        matches!(self, Role::Client | Role::AllInOne)
    }

    /// Ends of clients' connections that are on this host, for one connection.
    #[must_use]
    pub fn ends(self, way: Way) -> u64 {
        let far = match way {
            Way::Onramp => self.has_pool(),
            _ => self.has_server(),
        };
        u64::from(self.has_clients()) + u64::from(far)
    }

    /// Role in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Role::Server => "the server",
            Role::Pool => "the pool",
            Role::Client => "the clients",
            Role::AllInOne => "server, pool and clients",
        }
    }
}

/// Question to the doctor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Connections wanted; None asks for the ladder only.
    pub connections: Option<u64>,
    /// Ways that are looked at, at least one.
    pub ways: Vec<Way>,
    /// Programs that run on this host.
    pub role: Role,
    /// Prepared statements that each connection holds; None if the user did not say.
    pub statements: Option<u64>,
    /// Connections of the pool to the server.
    pub backends: u64,
    /// Source addresses of the clients; None is as many as are wanted (127.0.0.0/8 is all ours).
    pub sources: Option<u64>,
    /// Pairs of address and port that clients connect to.
    pub targets: u64,
    /// Connections that clients open in a second.
    pub connect_rate: u64,
}

impl Default for Question {
    fn default() -> Question {
        Question {
            connections: None,
            ways: Way::ALL.to_vec(),
            role: Role::AllInOne,
            statements: None,
            backends: 64,
            sources: None,
            targets: 1,
            connect_rate: 5_000,
        }
    }
}

impl Question {
    /// Connections that the server sees: the backends where all go through onramp.
    #[must_use]
    pub fn server_sees(&self) -> u64 {
        if self.ways == [Way::Onramp] {
            self.backends
        } else {
            self.wanted()
        }
    }

    /// Connections wanted, 0 for none.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.connections.unwrap_or_default()
    }
}
