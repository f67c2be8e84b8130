//! A network of the climb's own, whose tables have room for its sockets.
//!
//! The problem: the kernel finds the socket of each packet in a table of established connections,
//! and makes that table when it starts, by the machine's memory: 262,144 places on 24 GiB. Both
//! ends of two million connections over loopback are 16 sockets in each place, which every packet
//! and every connect() walks through. The mechanism: a network namespace can have a table of
//! another size (`net.ipv4.tcp_child_ehash_entries`, Linux 6.1), and a climb with a private server
//! needs nothing of the network but loopback. So a climb that would crowd the table starts itself
//! again, by `unshare` and `ip`, in a namespace with a larger one.
//!
//! Invariant: where that cannot be had (no privilege, an older kernel, a program missing), the
//! climb goes on where it is.

use doctor::facts::connection_table_places;
use std::convert::Infallible;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Set for the program that was started again.
const MARK: &str = "ONRAMP_CLIMB_NETWORK";
/// Size of the table here; negative where it is that of the machine's first network.
const SIZE: &str = "/proc/sys/net/ipv4/tcp_ehash_entries";
/// Size of the tables of namespaces that are made from here.
const SIZE_BELOW: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
/// The largest table that the kernel makes for a namespace.
const SIZE_MAX: u64 = 16 << 20;
/// Sockets for each place from which on the table counts as crowded.
const CROWDED: u64 = 4;
/// Sockets of a connection: both of its ends.
const ENDS: u64 = 2;

/// Command in a namespace of its own: the size can be said for those below, and the next one has
/// it.
const INNER: &str = "ip link set lo up && exec \"$@\"";
const OUTER: &str = "echo \"$0\" >/proc/sys/net/ipv4/tcp_child_ehash_entries && \
     exec unshare --net -- sh -c 'ip link set lo up && exec \"$@\"' sh \"$@\"";

/// Places that a table needs for so many connections; `None` where this one has enough.
fn places_for(connections: u64, places: u64) -> Option<u64> {
    let sockets = connections * ENDS;
    (sockets > places.saturating_mul(CROWDED)).then(|| sockets.next_power_of_two().min(SIZE_MAX))
}

/// Starts this program again where the table has room for so many connections. Comes back where it
/// has room here, or it could not be done; then with what to say of it.
pub(crate) fn enter(connections: u32) -> Option<String> {
    if std::env::var_os(MARK).is_some() {
        return None;
    }
    let here = fs::read_to_string(SIZE).ok()?;
    let places = connection_table_places(&here)?;
    let wanted = places_for(u64::from(connections), places)?;
    let so = format!(
        "climb: the kernel's table of connections has {places} places for {} sockets",
        u64::from(connections) * ENDS
    );
    if !can_enter() {
        return Some(format!(
            "{so}, which slows each packet; root gets a network of its own for the climb"
        ));
    }
    match start_again(wanted) {
        Ok(never) => match never {},
        Err(error) => Some(format!("{so}; no network of its own: {error}")),
    }
}

/// Tries it with a program that does nothing.
fn can_enter() -> bool {
    let mut command = Command::new("unshare");
    command.args([
        "--net", "--", "sh", "-c", INNER, "sh", "test", "-w", SIZE_BELOW,
    ]);
    let silent = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Command that runs a program in a namespace whose table has so many places.
fn with_places(places: u64) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", OUTER, &places.to_string()]);
    command
}

fn start_again(places: u64) -> std::io::Result<Infallible> {
    let mut command = with_places(places);
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1));
    Err(command.env(MARK, places.to_string()).exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_table_is_made_larger() {
        assert_eq!(places_for(500_000, 262_144), None);
        assert_eq!(places_for(524_288, 262_144), None);
        assert_eq!(places_for(524_289, 262_144), Some(2_097_152));
        assert_eq!(places_for(2_000_000, 262_144), Some(4_194_304));
        assert_eq!(places_for(2_000_000, 4_194_304), None);
        assert_eq!(places_for(50_000_000, 262_144), Some(SIZE_MAX));
    }

    #[test]
    fn a_program_is_started_where_the_table_is_larger() {
        if !can_enter() {
            eprintln!("skipped a_program_is_started_where_the_table_is_larger: no namespace");
            return;
        }
        let script = format!("cat {SIZE}; ip -o link show up dev lo | wc -l; echo \"$1\"");
        let mut command = with_places(4096);
        let output = command
            .args(["sh", "-c", &script, "sh", "a  b"])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "4096\n1\na  b\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[test]
    fn the_size_of_a_table_is_read_whoever_has_it() {
        assert_eq!(connection_table_places("262144\n"), Some(262_144));
        // It is shared with the first network.
        assert_eq!(connection_table_places("-262144\n"), Some(262_144));
        assert_eq!(connection_table_places(""), None);
    }
}
