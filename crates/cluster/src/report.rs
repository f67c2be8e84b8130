//! Answers of servers to the monitor's questions, and failures to get one.
//!
//! The facts are as the server gave them, without a judgement: what they amount to is the
//! decision's. [`crate::questions`] reads them out of rows.

use crate::settings::ServerId;

/// Latest answer of one server, or the failure to get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The server that was asked.
    pub server: ServerId,
    /// Time at which the question was sent, in milliseconds of a monotonic clock.
    pub at: u64,
    /// Time until the answer or the failure, in milliseconds.
    pub took_ms: u64,
    /// The server's facts, or why there are none.
    pub answer: Result<Report, Failure>,
    /// Clients' statements on the server since the observation before.
    pub traffic: Traffic,
}

/// Clients' statements on a server in a span of time, for the circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Statements that ended, in whichever way.
    pub statements: u32,
    /// Statements that ended because the server or its connection failed, not by an error of SQL.
    pub failed: u32,
    /// Error of the last that failed for want of room; 0: none did.
    pub full: u16,
}

/// Failure to get a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection, or it was lost: nobody listens, reset, no route, name unknown.
    Refused(String),
    /// No whole answer within the limit.
    TimedOut,
    /// The server answered the login with an error; it lives.
    LoginRefused(String),
    /// The server answered with an error, or with what cannot be read; it lives.
    Broken(String),
}

/// Facts that one server gave of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `@@version`.
    pub version: String,
    /// `@@server_id`.
    pub server_id: u64,
    /// `@@server_uuid`; empty on MariaDB.
    pub server_uuid: String,
    /// `read_only`, in whichever grade the product has.
    pub read_only: bool,
    /// `super_read_only` of MySQL.
    pub super_read_only: bool,
    /// `innodb_read_only`; true on a reader of Aurora.
    pub innodb_read_only: bool,
    /// `offline_mode` of MySQL: only administrators may log in.
    pub offline: bool,
    /// Position in GTIDs of what it has: `gtid_executed`, `gtid_current_pos`.
    pub gtid: String,
    /// Addresses of servers that replicate from it, where it was asked for them.
    pub replicas: Vec<String>,
    /// Servers that it replicates from.
    pub sources: Vec<Source>,
    /// Facts of Galera.
    pub galera: Option<Galera>,
    /// Facts of Group Replication.
    pub group: Option<GroupReplication>,
    /// `@@aurora_server_id`; empty elsewhere.
    pub aurora_id: String,
    /// Rows of `replica_host_status`, Aurora's.
    pub aurora: Vec<AuroraRow>,
    /// Rows of `mysql.rds_topology`.
    pub topology: Vec<TopologyRow>,
}

/// One source that a server replicates from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the connection or channel; mostly empty.
    pub channel: String,
    /// The source's host, as it was set.
    pub host: String,
    /// The source's port.
    pub port: u16,
    /// The source's `server_id`; 0 before the first contact.
    pub server_id: u64,
    /// The source's `server_uuid`; empty on MariaDB and before the first contact.
    pub server_uuid: String,
    /// State of the thread that reads from the source.
    pub receiver: Receiver,
    /// True if the thread that applies runs.
    pub applier: bool,
    /// Lag in milliseconds; `None` where the server does not know it.
    pub lag_ms: Option<u64>,
    /// Last error of the two threads; empty without one.
    pub error: String,
}

/// State of the thread that reads from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Connected: it hears the source.
    Connected,
    /// Attempt to connect.
    Connecting,
    /// Stopped.
    Stopped,
}

/// A Galera node's facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Galera {
    /// `wsrep_local_state`: 4 is synced, 2 a donor.
    pub state: u32,
    /// `wsrep_local_state_comment`.
    pub state_text: String,
    /// `wsrep_cluster_status` is `Primary`: the node is in the component with the majority.
    pub primary: bool,
    /// `wsrep_cluster_size`.
    pub size: u32,
    /// `wsrep_cluster_state_uuid`.
    pub cluster: String,
    /// `wsrep_local_index`.
    pub local_index: u64,
    /// `wsrep_ready`.
    pub ready: bool,
    /// `wsrep_desync`.
    pub desync: bool,
    /// `wsrep_local_recv_queue`.
    pub queue: u64,
    /// `wsrep_reject_queries` is not `NONE`.
    pub rejects: bool,
    /// `wsrep_sst_donor_rejects_queries`.
    pub donor_rejects: bool,
    /// `wsrep_gcomm_uuid`: the node's own, until it leaves.
    pub node: String,
    /// `wsrep_incoming_addresses`, with those that are not empty.
    pub members: Vec<String>,
}

/// A member's facts of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupReplication {
    /// `VIEW_ID`, as `start:number`; empty outside of a group.
    pub view: String,
    /// Members in the list of the server that was asked.
    pub members: Vec<GroupMember>,
}

/// One member of a group, as another or itself lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// Its `server_uuid`.
    pub id: String,
    /// `host:port`.
    pub address: String,
    /// ONLINE, RECOVERING, UNREACHABLE, ERROR or OFFLINE.
    pub state: String,
    /// True for PRIMARY.
    pub primary: bool,
    /// Transactions of others that wait to be applied.
    pub queue: u64,
}

/// One row of Aurora's `replica_host_status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuroraRow {
    /// `SERVER_ID`.
    pub id: String,
    /// `SESSION_ID` is `MASTER_SESSION_ID`.
    pub writer: bool,
    /// `REPLICA_LAG_IN_MILLISECONDS`.
    pub lag_ms: u64,
    /// Age of `LAST_UPDATE_TIMESTAMP` by the server's own clock.
    pub age_ms: u64,
}

/// One row of `mysql.rds_topology`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyRow {
    /// `endpoint:port`.
    pub address: String,
    /// True for BLUE_GREEN_DEPLOYMENT_TARGET.
    pub target: bool,
    /// AVAILABLE, SWITCHOVER_IN_PROGRESS, ...; empty without a deployment.
    pub status: String,
}

impl GroupReplication {
    /// Order of its view among those of all members.
    pub(crate) fn view_order(&self) -> Option<(u64, u64)> {
        let (start, number) = self.view.split_once(':')?;
        Some((start.parse().ok()?, number.parse().ok()?))
    }
}
