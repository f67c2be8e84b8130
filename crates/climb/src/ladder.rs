//! The ladder as data: which rungs, by which paths, in which order.
//!
//! A rung is a number of executing connections; a path is the way from them to the server; a cell
//! is one rung by one path, measured once. The paths of one rung run right after each other,
//! because machines are noisy and what is read off the table are ratios between paths. Rungs rise,
//! so that the cheap cells are done when an expensive one meets a wall.
//!
//! Nothing here touches the machine: the lists come from the options, are checked, sorted and
//! freed of repetitions, and give the cells.

use std::fmt;

/// The most connections that a rung may ask for.
pub(crate) const CONNECTIONS_MAX: u32 = 10_000_000;
/// Seconds in which a large rung of the pool is to be connected.
const CONNECT_S: u32 = 50;
/// Connections a second that a machine of two cores opens without a refused or repeated one.
const CONNECT_RATE_MAX: u32 = 20_000;

/// A way from the clients to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Path {
    /// Straight to the server, which runs one thread per connection.
    Direct,
    /// Straight to the server, which runs its own pool of threads.
    ServerPool,
    /// Through HAProxy.
    HaProxy,
    /// Through MySQL Router, which shares connections.
    Router,
    /// Through `onramp pool`, on the same machine as the server.
    Onramp,
}

impl Path {
    pub(crate) const ALL: [Self; 5] = [
        Self::Direct,
        Self::ServerPool,
        Self::HaProxy,
        Self::Router,
        Self::Onramp,
    ];

    /// Paths when the user names none.
    pub(crate) const DEFAULT: [Self; 3] = [Self::Direct, Self::ServerPool, Self::Onramp];

    /// The name in options, in the table and in the evidence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::ServerPool => "server-pool",
            Self::HaProxy => "haproxy",
            Self::Router => "router",
            Self::Onramp => "onramp",
        }
    }

    /// Connections that are opened in a second when the user names no rate. A server that starts a
    /// thread for each is asked for fewer than the pool is. A rung of the pool takes [`CONNECT_S`],
    /// if the machine can and [`CONNECT_RATE_MAX`] allows it: the largest would take minutes
    /// otherwise.
    pub(crate) fn connect_rate_default(self, connections: u32) -> u32 {
        match self {
            Self::Direct | Self::ServerPool | Self::HaProxy | Self::Router => 4_000,
            Self::Onramp => (connections / CONNECT_S).clamp(8_000, CONNECT_RATE_MAX),
        }
    }

    /// The path of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// One rung by one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) connections: u32,
    pub(crate) path: Path,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = crate::format::thousands(u64::from(self.connections));
        write!(out, "{} at {connections}", self.path)
    }
}

/// All cells, rung by rung.
pub(crate) fn cells(rungs: &[u32], paths: &[Path]) -> Vec<Cell> {
    let of_rung = |&connections| paths.iter().map(move |&path| Cell { connections, path });
    rungs.iter().flat_map(of_rung).collect()
}

/// Reads one rung. `_` may separate digits.
pub(crate) fn parse_rung(text: &str) -> Result<u32, String> {
    let expected = || {
        let most = crate::format::thousands(u64::from(CONNECTIONS_MAX));
        format!("a rung is a number of connections from 1 to {most}, without separators but _")
    };
    let connections: u32 = text
        .trim()
        .replace('_', "")
        .parse()
        .map_err(|_| expected())?;
    if (1..=CONNECTIONS_MAX).contains(&connections) {
        Ok(connections)
    } else {
        Err(expected())
    }
}

/// Reads one path.
pub(crate) fn parse_path(text: &str) -> Result<Path, String> {
    let names = Path::ALL.map(Path::name).join(", ");
    Path::named(text.trim()).ok_or_else(|| format!("a path is one of {names}"))
}

/// Sorts rungs upwards and drops repetitions.
pub(crate) fn ascending(rungs: &[u32]) -> Vec<u32> {
    let mut rungs = rungs.to_vec();
    rungs.sort_unstable();
    rungs.dedup();
    rungs
}

/// Keeps the user's order of paths and drops repetitions.
pub(crate) fn distinct(paths: &[Path]) -> Vec<Path> {
    let mut kept: Vec<Path> = Vec::new();
    for &path in paths {
        if !kept.contains(&path) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_rung_stand_together() {
        let cells = cells(&[100, 1_000], &[Path::Direct, Path::Onramp]);
        let texts: Vec<_> = cells.iter().map(ToString::to_string).collect();
        let expected = [
            "direct at 100",
            "onramp at 100",
            "direct at 1,000",
            "onramp at 1,000",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn lists_lose_their_repetitions() {
        assert_eq!(ascending(&[10_000, 100, 10_000, 1]), [1, 100, 10_000]);
        let paths = [Path::Onramp, Path::Direct, Path::Onramp];
        assert_eq!(distinct(&paths), [Path::Onramp, Path::Direct]);
    }

    #[test]
    fn rungs_are_bounded() {
        assert_eq!(parse_rung(" 1_000_000 "), Ok(1_000_000));
        for bad in ["0", "-1", "10k", "", "10000001", "99999999999"] {
            assert!(
                parse_rung(bad).is_err_and(|text| text.contains("1 to 10,000,000")),
                "{bad}"
            );
        }
    }

    #[test]
    fn every_path_is_found_by_its_name() {
        for path in Path::ALL {
            assert_eq!(parse_path(path.name()), Ok(path));
        }
        let text = parse_path("pool").unwrap_err();
        assert_eq!(
            text,
            "a path is one of direct, server-pool, haproxy, router, onramp"
        );
    }
}
