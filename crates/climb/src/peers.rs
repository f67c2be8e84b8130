//! Other proxies as paths: HAProxy and MySQL Router, each with the settings that its own manual
//! recommends for this work.
//!
//! Programs are those that `scripts/get-peers.sh` fetched, or installed ones. A peer that is not
//! there, or cannot serve, is a row with a limit.
//!
//! - HAProxy relays bytes: a connection of the server for each client, by its Unix socket where the
//!   server is local, as the pool has it.
//! - MySQL Router shares connections between statements (`connection_sharing`, without delay). It
//!   does so only for clients of TLS, whose password it can hand on; so `load` speaks TLS to it,
//!   with the certificate that the private server made for itself. It keeps [`SHARED_MAX`]
//!   connections, as many as the pool has backends at most.

use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::child::{Child, Interrupt, SLICE};
use crate::ladder::{Cell, Path};
use crate::server::programs::installed;
use crate::target::Dsn;

/// Folder that `scripts/get-peers.sh` makes, from that of the project.
const FETCHED: &str = "target/peers";
/// Names another folder of that kind.
const FETCHED_ENV: &str = "ONRAMP_PEERS";
/// Connections to the server that Router keeps for sharing.
const SHARED_MAX: u32 = 256;
/// Longest wait until a peer lets a client in.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Needs of a peer for one cell.
pub(crate) struct Scene<'a> {
    pub(crate) cell: Cell,
    /// Folder for its files.
    pub(crate) folder: &'a FilePath,
    /// Port to listen on.
    pub(crate) port: u16,
    /// The server, by its Unix socket where it has one, and by TCP.
    pub(crate) backend: &'a Dsn,
    pub(crate) direct: &'a Dsn,
    /// Processors to run on; none are all.
    pub(crate) processors: &'a [usize],
}

/// Arguments of `load` that a peer needs.
pub(crate) fn load_arguments(path: Path) -> &'static [&'static str] {
    match path {
        Path::Router => &["--tls", "--insecure"],
        _ => &[],
    }
}

/// Folder of fetched peers.
fn fetched() -> PathBuf {
    let named = std::env::var_os(FETCHED_ENV).map(PathBuf::from);
    let folder = named.unwrap_or_else(|| FETCHED.into());
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Command that starts a program, fetched or installed; `None` if it is neither.
pub(crate) fn command(program: &str) -> Option<Command> {
    let folder = fetched();
    let places = ["usr/sbin", "usr/bin"].map(|place| folder.join(place).join(program));
    if places.iter().any(|file| file.is_file()) {
        let mut command = Command::new(folder.join("run"));
        command.arg(program);
        return Some(command);
    }
    installed(program).map(Command::new)
}

/// Beginning of the settings of a Router that runs in this folder. A fetched one has its plugins
/// beside it; an installed one knows its own.
pub(crate) fn router_head(folder: &FilePath) -> String {
    let plugins = fetched().join("usr/lib/mysqlrouter/plugin");
    let line = || format!("plugin_folder={}\n", plugins.display());
    let plugins = plugins.is_dir().then(line).unwrap_or_default();
    let here = folder.display();
    format!("[DEFAULT]\n{plugins}logging_folder=\nruntime_folder={here}\ndata_folder={here}\n")
}

/// Program of a path's peer.
pub(crate) fn program(path: Path) -> Option<&'static str> {
    match path {
        Path::HaProxy => Some("haproxy"),
        Path::Router => Some("mysqlrouter"),
        Path::Direct | Path::ServerPool | Path::Onramp => None,
    }
}

/// First line of what a program says of its version.
pub(crate) fn version(program: &str) -> Option<String> {
    let flag = if program == "haproxy" {
        "-v"
    } else {
        "--version"
    };
    let output = command(program)?.arg(flag).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(|line| line.trim().to_owned())
}

/// Starts the peer of a path, and waits until the server's greeting comes through it.
pub(crate) fn start(scene: &Scene<'_>, interrupt: &Interrupt) -> Result<Child> {
    let name = scene.cell.path.name();
    let program = program(scene.cell.path).context("the path has no peer")?;
    let mut command = command(program).with_context(|| {
        format!("not tried: {program} is not here; scripts/get-peers.sh fetches it")
    })?;
    let file = scene.folder.join(format!("{name}.conf"));
    let (settings, flags): (String, &[&str]) = match scene.cell.path {
        Path::Router => (router_settings(scene), &["-c"]),
        _ => (haproxy_settings(scene), &["-db", "-f"]),
    };
    std::fs::write(&file, settings).context("cannot write to the scratch directory")?;
    command.args(flags).arg(&file).current_dir(scene.folder);
    let child = Child::start_on(scene.processors, name, command)?;
    let through = scene.direct.behind_pool(scene.port);
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = through.greeted_version() {
        interrupt.check()?;
        let has_ended = child.has_ended(LOOK_EVERY.min(SLICE));
        ensure!(
            !has_ended,
            "{name} ended before it was ready: {}",
            child.last_words()
        );
        ensure!(
            Instant::now() < deadline,
            "{name} lets nobody in: {error:#}; it said last: {}",
            child.last_words()
        );
    }
    Ok(child)
}

/// Timeouts longer than any statement, room for all, and a thread for each processor, which
/// `HAProxy` chooses by itself.
fn haproxy_settings(scene: &Scene<'_>) -> String {
    let Scene {
        cell,
        port,
        backend,
        ..
    } = scene;
    let most = cell.connections + 100;
    format!(
        "global\n  maxconn {most}\ndefaults\n  mode tcp\n  maxconn {most}\n  backlog 4096\n  \
         timeout connect 60s\n  timeout client 1d\n  timeout server 1d\n\
         listen climb\n  bind 127.0.0.1:{port}\n  server one {}\n",
        match backend.socket() {
            Some(socket) => format!("unix@{socket}"),
            None => backend.place(),
        }
    )
}

fn router_settings(scene: &Scene<'_>) -> String {
    let Scene {
        cell,
        port,
        folder,
        direct,
        ..
    } = scene;
    let (most, here) = (cell.connections + 100, folder.display());
    let threads = match scene.processors.len() {
        0 => String::new(),
        some => format!("[io]\nthreads={some}\n"),
    };
    let head = router_head(folder);
    format!(
        "{head}max_total_connections={most}\n[logger]\nlevel=warning\n{threads}\
         [connection_pool]\nmax_idle_server_connections={SHARED_MAX}\n\
         [routing:climb]\nbind_address=127.0.0.1\nbind_port={port}\ndestinations={}\n\
         routing_strategy=first-available\nprotocol=classic\nmax_connections={most}\n\
         max_connect_errors=4294967295\nclient_ssl_mode=PREFERRED\n\
         client_ssl_cert={here}/data/server-cert.pem\nclient_ssl_key={here}/data/server-key.pem\n\
         server_ssl_mode=PREFERRED\nconnection_sharing=1\nconnection_sharing_delay=0\n",
        direct.place()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene<'a>(path: Path, backend: &'a Dsn, direct: &'a Dsn) -> Scene<'a> {
        let connections = 1_000;
        Scene {
            cell: Cell { connections, path },
            folder: FilePath::new("/scratch"),
            port: 7000,
            backend,
            direct,
            processors: &[1],
        }
    }

    #[test]
    fn a_local_server_is_reached_by_its_socket() {
        let direct = Dsn::loopback("u", "p", 3307, "sbtest");
        let backend = direct.by_socket("/scratch/server.sock");
        let text = haproxy_settings(&scene(Path::HaProxy, &backend, &direct));
        assert!(
            text.contains("\n  server one unix@/scratch/server.sock\n"),
            "{text}"
        );
        assert!(text.contains("\n  maxconn 1100\n"), "{text}");
        let text = haproxy_settings(&scene(Path::HaProxy, &direct, &direct));
        assert!(text.contains("\n  server one 127.0.0.1:3307\n"), "{text}");
    }

    #[test]
    fn router_shares_connections_and_has_room_for_all() {
        let direct = Dsn::loopback("u", "p", 3307, "sbtest");
        let text = router_settings(&scene(Path::Router, &direct, &direct));
        for line in [
            "destinations=127.0.0.1:3307",
            "connection_sharing=1",
            "connection_sharing_delay=0",
            "max_connections=1100",
            "max_total_connections=1100",
            "max_idle_server_connections=256",
            "client_ssl_key=/scratch/data/server-key.pem",
            "threads=1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}: {text}");
        }
        assert_eq!(load_arguments(Path::Router), ["--tls", "--insecure"]);
        assert!(load_arguments(Path::HaProxy).is_empty());
    }

    #[test]
    fn a_peer_that_is_not_here_is_a_limit() {
        assert!(command("no-such-program").is_none());
        assert_eq!(Path::ALL.map(program).iter().flatten().count(), 2);
    }
}
