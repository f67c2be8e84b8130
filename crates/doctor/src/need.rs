//! Needs of connections, as arithmetic: the constants behind the checks, each with its source.
//!
//! Measured figures were taken on Linux 6.18, x86-64, with everything on one machine.

use crate::number::round_up;
use crate::question::{PerWay, Question, Way};

/// Process numbers below this are given out only once after boot (the kernel's RESERVED_PIDS).
pub const PIDS_RESERVED: u64 = 300;
/// Maps that a thread needs: its stack and the guard page below it.
pub const MAPS_PER_THREAD: u64 = 2;
/// Maps of a server without clients: its libraries, heaps and files, where it cannot be looked at.
pub const MAPS_OF_SERVER: u64 = 400;
/// Descriptors of a server without clients, where it cannot be looked at: its files, and the 400
/// that MariaDB keeps for its smallest table cache, lowering max_connections when it starts.
pub const FILES_OF_SERVER: u64 = 450;
/// Descriptors of a group of the pool that are not for clients or backends.
pub const POOL_RESERVE: u64 = 64;
/// Descriptors of a group that the load generator reckons with besides connections when it chooses
/// how many groups there are.
pub const LOAD_RESERVE: u64 = 48;
/// Descriptors that a group of it has open besides connections and mailboxes: standard streams, the
/// poll, signals. Four to seven were counted, by what the shell and other groups had open when it
/// left their table.
pub const LOAD_OPEN: u64 = 5;
/// Kernel memory of one end of an idle TCP connection, in bytes; measured over loopback with a
/// million of them: 8.2 GB for both ends of each.
pub const SOCKET_BYTES: u64 = 4096;
/// Memory of an idle client in the pool, in bytes: its struct and its place in the table.
pub const POOL_BYTES: u64 = 256;
/// Memory of a connection in the load generator, in bytes.
pub const LOAD_BYTES: u64 = 160;
/// Memory of the server's process for a connection, in bytes, on each way: with a thread of its
/// own, in the server's pool, and none where onramp stands between. Measured on MariaDB 10.11 with
/// 5,000 of them executing.
pub const SERVER_BYTES: PerWay<u64> = [106_500, 83_000, 0];
/// Memory of the kernel for a thread, in bytes: its stack (16 KiB), its struct, page tables.
/// Measured in the same run.
pub const THREAD_KERNEL_BYTES: u64 = 21_500;
/// Prepared statements of a connection of sysbench's `oltp_read_write` on ten tables: nine for each
/// table, and one.
pub const SYSBENCH_STATEMENTS: u64 = 91;
/// Most connections that MySQL and MariaDB let max_connections be.
pub const SERVER_CONNECTIONS_MAX: u64 = 100_000;
/// The largest kernel.pid_max of a 64-bit kernel (PID_MAX_LIMIT).
pub const PID_MAX_MAX: u64 = 4_194_304;

/// Connections besides the clients': administrators, replicas, monitors.
pub const CONNECTIONS_SPARE: u64 = 50;
/// Descriptors of a server besides those of connections and tables: logs, tablespaces.
const FILES_SPARE: u64 = 5_000;

/// max_connections of a server that sees so many.
#[must_use]
pub fn server_connections(seen: u64) -> u64 {
    round_up(seen + CONNECTIONS_SPARE).min(SERVER_CONNECTIONS_MAX)
}

/// table_open_cache of a server that sees so many connections: an instance of each table for each
/// statement that runs.
#[must_use]
pub fn server_tables(seen: u64) -> u64 {
    round_up(seen.min(SERVER_CONNECTIONS_MAX)).max(2_000)
}

/// Descriptors with which a server with these settings starts and cuts none of them: one for each
/// connection and two for each place in its table cache. One that gets fewer cuts the table cache
/// down to nearly nothing, and then max_connections: of 11,000 descriptors MariaDB 10.11 leaves
/// 7,770 (it keeps 30, and 400 for each of eight instances of the cache).
#[must_use]
pub fn server_files(seen: u64) -> u64 {
    round_up(server_connections(seen) + 2 * server_tables(seen) + FILES_SPARE)
}

/// Connections that `onramp load` can hold with `descriptors` for each table of a group: each group
/// has a table of its own, and a descriptor in it for each group's mailbox. It takes as many groups
/// as hold most with its reserve, and what is left of that serves too.
#[must_use]
pub fn load_holds(descriptors: u64) -> u64 {
    let groups = (descriptors.saturating_sub(LOAD_RESERVE) / 2).max(1);
    groups.saturating_mul(descriptors.saturating_sub(LOAD_OPEN + groups))
}

/// Clients that `onramp pool` can hold with `descriptors` for each table of a group and `backends`
/// in all: each group wants at least one backend, and the kernel deals connections to groups by
/// hash, so the fullest gets the mean and five standard deviations.
#[must_use]
pub fn pool_holds(descriptors: u64, backends: u64) -> u64 {
    let groups_max = backends
        .min(descriptors.saturating_sub(POOL_RESERVE + 1))
        .max(1);
    let clients = |groups: u64| {
        let taken = POOL_RESERVE + groups + backends.div_ceil(groups);
        let room = descriptors.saturating_sub(taken);
        if groups == 1 {
            return room;
        }
        // mean + 5 x sqrt(mean) = room, solved for the mean.
        let root = (25 + 4 * room).isqrt().saturating_sub(5) / 2;
        groups.saturating_mul(root * root)
    };
    // The product grows, then falls; its top is at most at half of the descriptors.
    [groups_max, groups_max.min(descriptors / 2).max(1), 1]
        .map(clients)
        .into_iter()
        .max()
        .unwrap_or_default()
}

/// Bytes that one connection takes of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The kernel's, which show in no process: sockets, stacks of threads.
    pub kernel: u64,
    /// Need of server, pool and clients.
    pub user: u64,
}

impl Bytes {
    /// Both.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.kernel + self.user
    }
}

/// Bytes that a server's control group is charged for one of its connections on a way: memory of
/// the process, of the kernel for its thread, and of the socket.
#[must_use]
pub fn server_bytes(way: Way) -> u64 {
    let thread = match way {
        Way::Direct => THREAD_KERNEL_BYTES,
        _ => 0,
    };
    SERVER_BYTES[way.index()] + thread + SOCKET_BYTES
}

/// Least memory of this host for one connection on each way.
#[must_use]
pub fn bytes_per_connection(question: &Question) -> PerWay<Bytes> {
    let role = question.role;
    Way::ALL.map(|way| {
        let mut bytes = Bytes {
            kernel: role.ends(way) * SOCKET_BYTES,
            user: 0,
        };
        if role.has_clients() {
            bytes.user += LOAD_BYTES;
        }
        if role.has_pool() && way == Way::Onramp {
            bytes.user += POOL_BYTES;
        }
        if role.has_server() {
            bytes.user += SERVER_BYTES[way.index()];
        }
        if role.has_server() && way == Way::Direct {
            bytes.kernel += THREAD_KERNEL_BYTES;
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plan of the pool: with a hard limit of 20,000 descriptors 53 groups hold a million.
    #[test]
    fn groups_hold_what_the_pool_plans() {
        assert!(pool_holds(20_000, 64) > 1_000_000);
        assert!(pool_holds(20_000, 53) > 1_000_000);
        assert!(pool_holds(20_000, 52) < 1_010_000);
        assert_eq!(pool_holds(1_024, 1), 1_024 - 64 - 1 - 1);
        assert!(load_holds(20_000) > 50_000_000);
        assert_eq!(load_holds(120), 36 * (120 - 36 - 5));
        assert_eq!(load_holds(6), 0);
    }
}
