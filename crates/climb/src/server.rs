//! The private MariaDB: a server of our own for the length of a climb.
//!
//! All of it lives in the scratch directory: data, socket, temporary files. It listens on that
//! socket and on a free loopback port, reads no configuration file, and knows one account with a
//! random password; root and every other account that the installation made are deleted before it
//! takes its first connection, because other users of the machine can reach a loopback port.
//!
//! `thread_handling` cannot be changed while the server runs, so each cell restarts it on the
//! same data. That costs a second or two, and every cell meets a server in the same state.
//!
//! The settings favour no path: the table cache has room for every connection's tables, and the
//! queue of the listening socket for a whole second of connects. What is small (buffer pool, log)
//! is small because the data is.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::child::{Child, Interrupt};
use crate::machine::{Machine, is_root};
use crate::scratch::{Scratch, random_hex};
use crate::target::Dsn;

/// The account and the schema of the private server.
const NAME: &str = "sbtest";
/// The largest max_connections that MariaDB takes.
pub(crate) const CONNECTIONS_MAX: u64 = 100_000;

const INSTALL_PATIENCE: Duration = Duration::from_secs(120);
const START_PATIENCE: Duration = Duration::from_secs(120);
const STOP_GRACE: Duration = Duration::from_secs(30);
const START_ATTEMPTS: usize = 3;

/// Settings that differ from cell to cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Run the server's own pool of threads, and not a thread per connection.
    pub(crate) pool_of_threads: bool,
    pub(crate) clients_max: u32,
}

/// A private server, running or stopped. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateServer {
    running: Option<(Child, u16)>,
    programs: Programs,
    directory: PathBuf,
    socket: PathBuf,
    password: String,
    arguments_more: Vec<String>,
}

/// The programs of an installed MariaDB.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    mariadbd: PathBuf,
    install_db: PathBuf,
    /// The root of an installation that was moved from where it was built for.
    basedir: Option<PathBuf>,
    pub(crate) version: String,
}

impl PrivateServer {
    /// Makes the data directory. The server does not run yet.
    pub(crate) fn install(
        programs: Programs,
        scratch: &Scratch,
        arguments_more: &[String],
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let server = Self {
            running: None,
            programs,
            directory: scratch.path().to_path_buf(),
            socket: scratch.socket(),
            password: random_hex(16)?,
            arguments_more: arguments_more.to_vec(),
        };
        fs::write(server.init_file(), server.init_statements())
            .context("cannot write to the scratch directory")?;
        let mut command = server
            .programs
            .command(&server.programs.install_db, &server.directory);
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        let mut child = Child::start("mariadb-install-db", command)?;
        let status = child.finish(INSTALL_PATIENCE, interrupt)?;
        if !status.success() {
            bail!(
                "mariadb-install-db failed ({status}):\n  {}",
                child.tail(8).join("\n  ")
            );
        }
        Ok(server)
    }

    /// Starts the server and waits until it takes connections. It must not run already.
    pub(crate) fn start(
        &mut self,
        settings: Settings,
        machine: &Machine,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut attempt = 1;
        loop {
            let port = free_loopback_port()?;
            let mut command = self
                .programs
                .command(&self.programs.mariadbd, &self.directory);
            command
                .args(self.arguments(port, settings, machine))
                .args(&self.arguments_more);
            let mut child = Child::start("the private MariaDB", command)?;
            match child.await_line("ready for connections", START_PATIENCE, interrupt) {
                Ok(()) => {
                    self.running = Some((child, port));
                    return Ok(());
                }
                // The port was free a moment ago; somebody was faster.
                Err(_) if attempt < START_ATTEMPTS && port_was_taken(&child) => attempt += 1,
                Err(error) => {
                    return Err(match server_error(&child.tail(100)) {
                        Some(line) => error.context(line),
                        None => error,
                    });
                }
            }
        }
    }

    /// Stops the server in order; the data stays.
    pub(crate) fn stop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            child.stop(STOP_GRACE);
        }
    }

    pub(crate) fn version(&self) -> &str {
        &self.programs.version
    }

    /// Address for clients while it runs.
    pub(crate) fn dsn(&self) -> Result<Dsn> {
        let port = self.running.as_ref().map(|(_, port)| *port);
        let port = port.context("the private MariaDB does not run")?;
        Ok(Dsn::loopback(NAME, &self.password, port, NAME))
    }

    /// Address for the pool: it stands beside the server, so it takes the socket.
    pub(crate) fn backend(&self) -> Result<Dsn> {
        Ok(self.dsn()?.by_socket(&self.socket.to_string_lossy()))
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.running.as_ref().map(|(child, _)| child.pid())
    }

    /// The last lines of its log.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        self.running
            .as_ref()
            .map(|(child, _)| child.tail(100))
            .unwrap_or_default()
    }

    fn init_file(&self) -> PathBuf {
        self.directory.join("init.sql")
    }

    /// Runs at each start, before the server takes connections; one statement per line.
    fn init_statements(&self) -> String {
        let password = &self.password;
        let mut text = format!("CREATE DATABASE IF NOT EXISTS {NAME};\n");
        for host in ["%", "localhost"] {
            let account = format!("'{NAME}'@'{host}'");
            text += &format!("CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{password}';\n");
            text += &format!("GRANT ALL ON {NAME}.* TO {account};\n");
        }
        text += &format!(
            "DELETE FROM mysql.global_priv WHERE User NOT IN ('{NAME}', 'mariadb.sys');\n\
             FLUSH PRIVILEGES;\n"
        );
        // At start the server cuts its table cache down to what descriptors would allow if each
        // open table took two. InnoDB's take none, so the cache can have a table per client.
        text + "SET GLOBAL table_open_cache = 200000;\n"
    }

    fn arguments(&self, port: u16, settings: Settings, machine: &Machine) -> Vec<String> {
        let Settings {
            pool_of_threads,
            clients_max,
        } = settings;
        let descriptors = (u64::from(clients_max) * 2 + 10_000).min(machine.nofile_hard);
        let connections_max = (u64::from(clients_max) + 50).min(CONNECTIONS_MAX);
        let handling = if pool_of_threads {
            "pool-of-threads"
        } else {
            "one-thread-per-connection"
        };
        let mut arguments = vec![
            format!("--socket={}", self.socket.display()),
            format!("--port={port}"),
            format!("--pid-file={}", self.directory.join("server.pid").display()),
            format!("--init-file={}", self.init_file().display()),
            format!("--open-files-limit={descriptors}"),
            format!("--max-connections={connections_max}"),
            format!("--thread-handling={handling}"),
            format!("--thread-pool-size={}", machine.cpus.clamp(1, 128)),
        ];
        arguments.extend(SETTINGS.iter().map(|setting| format!("--{setting}")));
        arguments
    }
}

/// Settings of every cell.
const SETTINGS: [&str; 20] = [
    "bind-address=127.0.0.1",
    "skip-name-resolve",
    "skip-log-bin",
    "skip-ssl",
    "performance-schema=OFF",
    "log-warnings=1",
    // A whole second of connects waits here, and no client is told to come again later.
    "back-log=4096",
    "connect-timeout=60",
    "max-connect-errors=1000000000",
    // Each client prepares its statements on every table.
    "max-prepared-stmt-count=1048576",
    "max-allowed-packet=64M",
    // Address space, not memory; small, so that thousands of threads fit.
    "thread-stack=256K",
    "thread-pool-max-threads=1000",
    "key-buffer-size=8M",
    "aria-pagecache-buffer-size=16M",
    "innodb-buffer-pool-size=512M",
    // After a restart the data is in memory again before the warm-up begins.
    "innodb-buffer-pool-dump-pct=100",
    "innodb-log-file-size=64M",
    "innodb-flush-log-at-trx-commit=0",
    "innodb-flush-method=fsync",
];

impl Programs {
    /// Looks in `directory`, or else where programs are installed.
    pub(crate) fn find(directory: Option<&Path>) -> Result<Self> {
        let places = places(directory);
        let find = |names: &[&str]| {
            let mut files = places
                .iter()
                .flat_map(|dir| names.iter().map(|name| dir.join(name)));
            files.find(|file| file.is_file())
        };
        let remedy = "install MariaDB's server (the package mariadb-server), name its directory \
                      with --mariadb-dir, or use a server of yours with --target";
        let mariadbd = find(&["mariadbd", "mysqld"])
            .with_context(|| format!("no mariadbd found for the private server: {remedy}"))?;
        let install_db = find(&["mariadb-install-db", "mysql_install_db"]).with_context(|| {
            format!(
                "{} is there, but no mariadb-install-db: {remedy}",
                mariadbd.display()
            )
        })?;
        let version = version_of(&mariadbd)?;
        let shown = mariadbd.display();
        if !version.contains("MariaDB") {
            bail!("{shown} is {version}, and the private server must be a MariaDB: {remedy}");
        }
        let basedir = directory
            .filter(|dir| dir.join("share").is_dir())
            .map(Path::to_path_buf);
        Ok(Self {
            mariadbd,
            install_db,
            basedir,
            version,
        })
    }

    /// A command that makes the data of a server below a folder.
    pub(crate) fn install(&self, folder: &Path) -> Command {
        self.command(&self.install_db, folder)
    }

    /// A command that starts a server with its data below a folder.
    pub(crate) fn serve(&self, folder: &Path) -> Command {
        self.command(&self.mariadbd, folder)
    }

    /// A command with what the installation and the server have in common.
    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .arg("--no-defaults")
            .env("TMPDIR", directory)
            .current_dir(directory);
        command.arg(format!("--datadir={}", directory.join("data").display()));
        if let Some(basedir) = &self.basedir {
            command.arg(format!("--basedir={}", basedir.display()));
        }
        if is_root() {
            command.arg("--user=root");
        }
        command
    }
}

fn places(directory: Option<&Path>) -> Vec<PathBuf> {
    if let Some(directory) = directory {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
        let inner = ["bin", "sbin", "scripts"].map(|name| directory.join(name));
        return std::iter::once(directory).chain(inner).collect();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    std::env::split_paths(&path)
        .chain(usual.map(PathBuf::from))
        .collect()
}

/// The version in `mariadbd  Ver 10.11.19-MariaDB for linux ...`.
fn version_of(mariadbd: &Path) -> Result<String> {
    let shown = mariadbd.display();
    let output = Command::new(mariadbd)
        .args(["--no-defaults", "--version"])
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .split_once("Ver ")
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let version = version.with_context(|| format!("{shown} --version names no version"))?;
    Ok(version.to_owned())
}

/// A port that nobody listens on at this moment.
pub(crate) fn free_loopback_port() -> Result<u16> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|one| one.local_addr());
    Ok(address.context("no free port on 127.0.0.1")?.port())
}

fn port_was_taken(child: &Child) -> bool {
    child
        .tail(100)
        .iter()
        .any(|line| line.contains("already in use"))
}

/// The first line of a log that is an error.
pub(crate) fn server_error(log: &[String]) -> Option<String> {
    let line = log.iter().find(|line| line.contains("[ERROR]"))?;
    let (_, text) = line.split_once("[ERROR]")?;
    Some(format!("the server's log says: {}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped() -> PrivateServer {
        let programs = Programs {
            mariadbd: "/m/mariadbd".into(),
            install_db: "/m/install".into(),
            basedir: None,
            version: "10.11.19-MariaDB".to_owned(),
        };
        PrivateServer {
            running: None,
            programs,
            directory: "/s".into(),
            socket: "/s/server.sock".into(),
            password: "hush".to_owned(),
            arguments_more: Vec::new(),
        }
    }

    fn machine(nofile_hard: u64) -> Machine {
        Machine {
            nofile_hard,
            cpus: 2,
            ..Machine::read()
        }
    }

    #[test]
    fn the_path_decides_how_threads_are_handled() {
        let settings = Settings {
            pool_of_threads: true,
            clients_max: 10_000,
        };
        let arguments = stopped().arguments(7000, settings, &machine(20_000));
        for expected in [
            "--thread-handling=pool-of-threads",
            "--thread-pool-size=2",
            "--max-connections=10050",
            "--open-files-limit=20000",
            "--socket=/s/server.sock",
            "--bind-address=127.0.0.1",
        ] {
            assert!(
                arguments.iter().any(|argument| argument == expected),
                "{expected}"
            );
        }
        let settings = Settings {
            pool_of_threads: false,
            clients_max: 1_000_000,
        };
        let arguments = stopped().arguments(7000, settings, &machine(u64::MAX));
        assert!(arguments.contains(&"--thread-handling=one-thread-per-connection".to_owned()));
        assert!(arguments.contains(&"--max-connections=100000".to_owned()));
    }

    #[test]
    fn one_account_is_left() {
        let text = stopped().init_statements();
        assert!(text.contains("CREATE USER IF NOT EXISTS 'sbtest'@'%' IDENTIFIED BY 'hush';\n"));
        assert!(text.contains("User NOT IN ('sbtest', 'mariadb.sys');\nFLUSH PRIVILEGES;\n"));
        assert!(text.lines().all(|line| line.ends_with(';')));
    }

    #[test]
    fn an_error_is_found_in_the_log() {
        let log = [
            "10 0 [Note] x",
            "10 0 [ERROR] Can't start server: Bind on TCP/IP port",
        ];
        let log = log.map(ToOwned::to_owned);
        let text = server_error(&log).unwrap();
        assert_eq!(
            text,
            "the server's log says: Can't start server: Bind on TCP/IP port"
        );
        assert_eq!(server_error(&log[..1]), None);
    }
}
