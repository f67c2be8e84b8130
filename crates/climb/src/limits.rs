//! Which wall a cell would hit, and which it did hit, each in one sentence.
//!
//! Before: some rungs are impossible by arithmetic. A server on one machine holds a descriptor per
//! client; with a thread per connection also a thread and two memory maps (the stack and its guard
//! page). Where a hard bound is below that, trying would take minutes to learn what is known, so
//! the cell becomes a row at once. The pooler is never refused by arithmetic: it spreads its
//! clients over descriptor tables.
//!
//! After: a cell that did not hold has left traces: what `load` says, its errors by number, the
//! server's log, the last words of a process. The first that says something is put into words.
//! Everything here works on plain structs, so every sentence has a test.

use crate::evidence::{LoadError, LoadReport};
use crate::format::thousands;
use crate::ladder::{Cell, Path};
use crate::machine::Machine;
use crate::server::{self, CONNECTIONS_MAX, DESCRIPTORS_RESERVE};

/// Threads that the server and everybody else on the machine need besides the clients'.
const THREADS_RESERVE: u64 = 200;
/// Memory maps of a server without clients: its libraries, heap and files.
const MAPS_RESERVE: u64 = 400;
/// A thread's stack and the guard page below it.
const MAPS_PER_THREAD: u64 = 2;

/// A bound of this machine, as the number of clients that a server reaches under it.
struct Wall {
    clients_max: u64,
    /// What this many clients need.
    need: String,
    /// What the bound is.
    bound: String,
}

/// Why this cell cannot be held by a private server, by arithmetic; None if it may be.
pub(crate) fn forbidden(cell: Cell, machine: &Machine) -> Option<String> {
    let wall = walls(cell, machine)
        .into_iter()
        .min_by_key(|wall| wall.clients_max)?;
    let wanted = u64::from(cell.connections);
    (wall.clients_max < wanted).then(|| format!("not tried: {}, and {}", wall.need, wall.bound))
}

/// Whether enough connected that the figures are about this rung: 99 of 100.
pub(crate) fn is_held(cell: Cell, report: &LoadReport) -> bool {
    let connected = report.connected.unwrap_or_default();
    report.statements_per_s.is_some() && connected * 100 >= u64::from(cell.connections) * 99
}

/// What is known about a cell after it ran.
pub(crate) struct Outcome<'a> {
    pub(crate) cell: Cell,
    pub(crate) report: Option<&'a LoadReport>,
    /// What `load` said last, and how it ended.
    pub(crate) load_words: &'a str,
    /// The pooler's last words, if it ended before it was told to.
    pub(crate) pool_death: Option<&'a str>,
    pub(crate) server_log: &'a [String],
    pub(crate) machine: &'a Machine,
}

impl Outcome<'_> {
    /// Why the cell did not hold each of its connections; None if it did.
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
        self.pool_death
            .map(|words| format!("the pooler ended during the run: {words}"))
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

    fn cause(&self, code: i64, message: &str) -> Option<String> {
        let (path, machine) = (self.cell.path, self.machine);
        let by_errno = |errno: &str| message.contains(errno);
        match code {
            1040 => Some("the server's max_connections is reached".to_owned()),
            1135 => {
                let walls = thread_walls(u64::from(self.cell.connections), machine);
                let nearest = walls.into_iter().min_by_key(|wall| wall.clients_max)?;
                Some(format!(
                    "of the bounds on threads the nearest: {}",
                    nearest.bound
                ))
            }
            1461 => Some("the server's max_prepared_stmt_count is reached".to_owned()),
            1203 | 1226 => Some("the account may not have more connections".to_owned()),
            _ if by_errno("(24)") || by_errno("Too many open files") => Some(format!(
                "a process may have {} descriptors (ulimit -Hn)",
                thousands(machine.nofile_hard)
            )),
            _ if by_errno("(99)") => {
                Some("no local port is left (net.ipv4.ip_local_port_range)".to_owned())
            }
            _ if by_errno("(111)") && path == Path::Onramp => {
                Some("nobody listens on the pooler's port".to_owned())
            }
            _ if by_errno("(110)") || by_errno("timed out") => {
                Some("connects come faster than they are taken; try --connect-rate".to_owned())
            }
            _ => None,
        }
    }
}

/// The bounds that stand before this cell.
fn walls(cell: Cell, machine: &Machine) -> Vec<Wall> {
    let clients = u64::from(cell.connections);
    let mut walls = Vec::new();
    if cell.path != Path::Onramp {
        walls.push(most_connections(clients));
        walls.push(descriptors(clients, machine));
    }
    if cell.path == Path::Direct {
        walls.extend(thread_walls(clients, machine));
    }
    walls
}

fn most_connections(clients: u64) -> Wall {
    Wall {
        clients_max: CONNECTIONS_MAX,
        need: format!("the server would need {} connections", thousands(clients)),
        bound: format!(
            "MariaDB's max_connections ends at {}",
            thousands(CONNECTIONS_MAX)
        ),
    }
}

fn descriptors(clients: u64, machine: &Machine) -> Wall {
    let (wanted, bound) = (
        clients.saturating_add(DESCRIPTORS_RESERVE),
        machine.nofile_hard,
    );
    Wall {
        clients_max: bound.saturating_sub(DESCRIPTORS_RESERVE),
        need: format!(
            "the server would need {} file descriptors",
            thousands(wanted)
        ),
        bound: format!(
            "the hard limit is {} per process (ulimit -Hn)",
            thousands(bound)
        ),
    }
}

/// The bounds on a thread per client.
fn thread_walls(clients: u64, machine: &Machine) -> Vec<Wall> {
    let others = machine.threads_now.saturating_add(THREADS_RESERVE);
    let numbers = [
        ("kernel.pid_max", machine.pid_max),
        ("kernel.threads-max", machine.threads_max),
        ("the control group's pids.max", machine.group_threads),
        (
            "the user's limit of threads (ulimit -Hu)",
            machine.user_threads,
        ),
    ];
    let numbers = numbers.map(|(name, bound)| Wall {
        clients_max: bound.saturating_sub(others),
        need: format!("the server would need {} threads", thousands(clients)),
        bound: format!("{name} is {}", thousands(bound)),
    });
    let (maps, bound) = (
        clients.saturating_mul(MAPS_PER_THREAD),
        machine.max_map_count,
    );
    let maps = Wall {
        clients_max: bound.saturating_sub(MAPS_RESERVE) / MAPS_PER_THREAD,
        need: format!(
            "{} threads of the server would need {} memory maps",
            thousands(clients),
            thousands(maps.saturating_add(MAPS_RESERVE))
        ),
        bound: format!("vm.max_map_count is {}", thousands(bound)),
    };
    numbers.into_iter().chain([maps]).collect()
}

#[cfg(test)]
mod tests;
