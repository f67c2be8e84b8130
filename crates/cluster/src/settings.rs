//! Settings of the decision: the servers in the order of the file, and the limits.
//!
//! All times are milliseconds. The pool reads them from its own file; the defaults are here, where
//! the simulation holds them to what they promise.

/// Most servers of one pool, those that a cluster names included.
pub const SERVERS_MAX: usize = 64;

/// Most servers that are known because the cluster names them.
pub const DISCOVERED_MAX: usize = 16;

/// Kind of cluster that the servers make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asynchronous or semi-synchronous replication of MariaDB or MySQL.
    Replication,
    /// Galera of MariaDB, or Percona XtraDB Cluster.
    Galera,
    /// MySQL's Group Replication, InnoDB Cluster.
    GroupReplication,
    /// Amazon Aurora MySQL.
    Aurora,
    /// Amazon RDS for MySQL or MariaDB, with blue/green deployments.
    Rds,
}

/// Use that the operator allows of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Writer or reader, as the server says itself.
    #[default]
    Auto,
    /// Writer, never a reader; taken at start if several could be.
    Writer,
    /// Reader, never the writer.
    Reader,
    /// Asked, but not used.
    Off,
}

/// Consequence of a writer that is down and has said nothing, with [`Kind::Replication`] and
/// [`Kind::Rds`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterLost {
    /// Writes wait until it answers, or until the operator says that it is fenced.
    #[default]
    Wait,
    /// A server that was promoted takes its place once no server hears it any longer.
    Replace,
}

/// Index of a server in [`Settings::servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

impl ServerId {
    /// The index, for tables that are kept beside [`Settings::servers`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One server of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Name by which log, console and figures know it.
    pub name: String,
    /// `host:port`, as the other servers name it where they replicate from it.
    pub address: String,
    /// Use that the operator allows of it.
    pub role: Role,
    /// Share of the reads, beside the weights of the others; 0 takes none.
    pub weight: u32,
}

/// Settings of the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Kind of the cluster.
    pub kind: Kind,
    /// Servers, at most [`SERVERS_MAX`].
    pub servers: Vec<ServerSettings>,
    /// Good answers in a row after which a server that was down is up.
    pub rise: u32,
    /// Failures in a row after which a server is down, if they also took [`Self::fall_ms`].
    pub fall: u32,
    /// Shortest time without a good answer after which a server that does not answer in time is
    /// down. One that refuses connections is down after [`Self::fall`] alone.
    pub fall_ms: u64,
    /// Consequence of a writer that is down and has said nothing.
    pub writer_lost: WriterLost,
    /// Time from one question to the next.
    pub ask_ms: u64,
    /// Time from one question to the next while a server fails or no writer is known.
    pub ask_again_ms: u64,
    /// Greatest age of an answer that moves the writer.
    pub stale_ms: u64,
    /// Greatest lag of a reader; it returns at half of it.
    pub lag_ms_max: u64,
    /// Most transactions in the queue of a reader of Galera or Group Replication.
    pub queue_max: u64,
    /// Time in which the weight of a server that is up again grows to its whole.
    pub slow_start_ms: u64,
    /// Percent of statements that may fail on a reader before it is left out.
    pub errors_percent_max: u32,
    /// Time for which it is left out then.
    pub breaker_ms: u64,
}

impl Settings {
    /// Defaults for these servers.
    pub fn new(kind: Kind, servers: Vec<ServerSettings>) -> Self {
        Self {
            kind,
            servers,
            rise: 2,
            fall: 3,
            fall_ms: 3_000,
            writer_lost: WriterLost::default(),
            ask_ms: 1_000,
            ask_again_ms: 250,
            stale_ms: 3_000,
            lag_ms_max: 10_000,
            queue_max: 1_000,
            slow_start_ms: 10_000,
            errors_percent_max: 50,
            breaker_ms: 10_000,
        }
    }

    /// Name of a server, `?` for one that is not in the settings.
    pub fn name(&self, id: ServerId) -> &str {
        self.servers.get(id.index()).map_or("?", |it| &it.name)
    }
}
