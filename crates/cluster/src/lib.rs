//! Several servers: which of them takes the writes, and which may be read.
//!
//! The problem: a writer that is named too early loses writes, one that is named too late is an
//! outage, and a monitor that believes one slow answer makes both. The mechanism: a monitor asks
//! each server ([`questions`]), and one pure function ([`decide`]) makes the next [`View`] out of
//! the latest answer of each and the view before. It reads no clock and opens no socket, so that a
//! simulation runs it from a seed with everything that goes wrong.
//!
//! Invariants:
//!
//! - It never elects: a writer is a server that says that it takes writes, or that the cluster
//!   itself names. Promotion is an operator's, an orchestrator's or the cluster's work.
//! - It is sticky: a writer stays until it says that it takes no writes, or until it is down. Late
//!   answers between good ones do not make a server down. Of two servers that take writes the one
//!   before stays, and [`View::why`] says so.
//! - No server becomes the writer while another may still take writes. What must be known of the
//!   others before one does, by answers no older than [`Settings::stale_ms`]:
//!   - *Replication*: each other server says that it is read-only or that it replicates; or, with
//!     [`WriterLost::Replace`], it is down and no server hears it; or it was [`View::fenced`].
//!   - *Galera*: the new one is in the primary component, in the cluster of the writer before,
//!     which says that it is out, or is down.
//!   - *Group Replication*: the new one is ONLINE and PRIMARY with a majority, in whose list the
//!     one before is no PRIMARY that is ONLINE, and no other has told of a newer view.
//!   - *Aurora*: the new one is writable and the cluster's table names it; the one before says that
//!     it is read-only, or is down and not named by a newer row.
//!   - *RDS*: as replication; a target of a blue/green deployment besides, once the topology says
//!     that the switchover is through.
//!
//! A server with [`Role::Reader`] or [`Role::Off`] is never the writer, and stands in no other's
//! way: who sets the role vouches for it. Before the first writer of a process, a server that has
//! not answered yet may be one, unless another hears the new one or its role is [`Role::Writer`].
#![forbid(unsafe_code)]

mod decide;
mod evidence;
pub mod fleet;
mod naming;
mod report;
mod settings;
mod view;

pub mod questions;

pub use decide::decide;
pub use naming::{named, plain_name};
pub use report::{
    AuroraRow, Failure, Galera, GroupMember, GroupReplication, Observation, Receiver, Report,
    Source, TopologyRow, Traffic,
};
pub use settings::{
    DISCOVERED_MAX, Kind, Role, SERVERS_MAX, ServerId, ServerSettings, Settings, WriterLost,
};
pub use view::{ServerState, State, View};
