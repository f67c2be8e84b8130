//! The private server, a MariaDB or a MySQL: one of our own for the length of a climb.
//!
//! All of it lives in the scratch directory: data, socket, temporary files. It listens on that
//! socket and on a free loopback port, reads no configuration file, and knows one account with a
//! random password; root and every other account that the installation made are deleted before it
//! takes its first connection, because other users of the machine can reach a loopback port.
//!
//! The handling of threads cannot be changed while the server runs, so each cell restarts it on
//! the same data. That costs a second or two, and every cell meets a server in the same state.
//!
//! The settings favour no path: the table cache has room for every connection's tables, and the
//! queue of the listening socket for a whole second of connects. What is small (buffer pool, log)
//! is small because the data is.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use programs::THREAD_POOL;
pub(crate) use programs::{Kind, Programs};
use rustix::process::Pid;

use crate::child::{Child, Interrupt};
use crate::machine::Machine;
use crate::scratch::{Scratch, random_hex};
use crate::target::Dsn;

pub(crate) mod programs;

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
    /// Processors to run on; none are all.
    processors: Vec<usize>,
}

impl PrivateServer {
    /// Makes the data directory. The server does not run yet.
    pub(crate) fn install(
        programs: Programs,
        scratch: &Scratch,
        arguments_more: &[String],
        processors: &[usize],
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let server = Self {
            running: None,
            programs,
            directory: scratch.path().to_path_buf(),
            socket: scratch.socket(),
            password: random_hex(16)?,
            arguments_more: arguments_more.to_vec(),
            processors: processors.to_vec(),
        };
        fs::write(server.init_file(), server.init_statements())
            .context("cannot write to the scratch directory")?;
        let command = server.programs.install(&server.directory);
        let mut child = Child::start("the installation of the private server", command)?;
        let status = child.finish(INSTALL_PATIENCE, interrupt)?;
        if !status.success() {
            bail!(
                "the private server's data could not be made ({status}):\n  {}",
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
            let mut command = self.programs.serve(&self.directory);
            command
                .args(self.arguments(port, settings, machine))
                .args(&self.arguments_more);
            let mut child =
                Child::start_on(&self.processors, self.programs.kind.process(), command)?;
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

    pub(crate) fn is_mysql(&self) -> bool {
        self.programs.kind == Kind::Mysql
    }

    /// Reason why it cannot run its own pool of threads.
    pub(crate) fn no_pool(&self) -> Option<String> {
        self.programs.no_pool.clone()
    }

    pub(crate) fn version(&self) -> String {
        let version = &self.programs.version;
        match self.programs.kind {
            Kind::Mariadb => version.clone(),
            Kind::Mysql => format!("MySQL {version}"),
        }
    }

    /// Address for clients while it runs.
    pub(crate) fn dsn(&self) -> Result<Dsn> {
        let port = self.running.as_ref().map(|(_, port)| *port);
        let port = port.context("the private server does not run")?;
        Ok(Dsn::loopback(NAME, &self.password, port, NAME))
    }

    /// Address for a proxy beside it: its Unix socket.
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
        text += &match self.programs.kind {
            Kind::Mariadb => format!(
                "DELETE FROM mysql.global_priv WHERE User NOT IN ('{NAME}', 'mariadb.sys');\n\
                 FLUSH PRIVILEGES;\n"
            ),
            // The others are locked.
            Kind::Mysql => "DROP USER IF EXISTS root@localhost;\n".to_owned(),
        };
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
        let threads = match self.processors.len() {
            0 => machine.cpus,
            some => some as u64,
        };
        let mut arguments = vec![
            format!("--socket={}", self.socket.display()),
            format!("--port={port}"),
            format!("--pid-file={}", self.directory.join("server.pid").display()),
            format!("--init-file={}", self.init_file().display()),
            format!("--open-files-limit={descriptors}"),
            format!("--max-connections={connections_max}"),
        ];
        let of_kind = match self.programs.kind {
            Kind::Mariadb => &SETTINGS_OF_MARIADB[..],
            Kind::Mysql => &SETTINGS_OF_MYSQL,
        };
        let settings = SETTINGS.iter().chain(of_kind);
        arguments.extend(settings.map(|setting| format!("--{setting}")));
        let size = format!("--thread-pool-size={}", threads.clamp(1, 128));
        match (self.programs.kind, pool_of_threads) {
            (Kind::Mariadb, true) => {
                arguments.extend(["--thread-handling=pool-of-threads".to_owned(), size]);
            }
            (Kind::Mysql, true) => {
                arguments.extend([format!("--plugin-load-add={THREAD_POOL}"), size]);
            }
            (_, false) => {
                arguments.push("--thread-handling=one-thread-per-connection".to_owned());
            }
        }
        arguments
    }
}

/// Settings of every cell.
const SETTINGS: [&str; 14] = [
    "bind-address=127.0.0.1",
    "skip-name-resolve",
    "skip-log-bin",
    "performance-schema=OFF",
    // A whole second of connects waits here, and no client is told to come again later.
    "back-log=4096",
    "connect-timeout=60",
    "max-connect-errors=1000000000",
    // Each client prepares its statements on every table.
    "max-prepared-stmt-count=1048576",
    "max-allowed-packet=64M",
    "key-buffer-size=8M",
    "innodb-buffer-pool-size=512M",
    // After a restart the data is in memory again before the warm-up begins.
    "innodb-buffer-pool-dump-pct=100",
    "innodb-flush-log-at-trx-commit=0",
    "innodb-flush-method=fsync",
];

const SETTINGS_OF_MARIADB: [&str; 6] = [
    "skip-ssl",
    "log-warnings=1",
    // Address space, not memory; small, so that thousands of threads fit.
    "thread-stack=256K",
    "thread-pool-max-threads=1000",
    "aria-pagecache-buffer-size=16M",
    "innodb-log-file-size=64M",
];

const SETTINGS_OF_MYSQL: [&str; 4] = [
    // The folder that a package would have made.
    "secure-file-priv=",
    "mysqlx=OFF",
    "log-error-verbosity=1",
    "innodb-redo-log-capacity=64M",
];

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
            kind: Kind::Mariadb,
            server: "/m/mariadbd".into(),
            install_db: Some("/m/install".into()),
            basedir: None,
            version: "10.11.19-MariaDB".to_owned(),
            no_pool: None,
        };
        PrivateServer {
            running: None,
            programs,
            directory: "/s".into(),
            socket: "/s/server.sock".into(),
            password: "hush".to_owned(),
            arguments_more: Vec::new(),
            processors: Vec::new(),
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
        let mut apart = stopped();
        apart.processors = vec![0];
        let pooled = Settings {
            pool_of_threads: true,
            ..settings
        };
        let arguments = apart.arguments(7000, pooled, &machine(u64::MAX));
        assert!(arguments.contains(&"--thread-pool-size=1".to_owned()));
        apart.programs.kind = Kind::Mysql;
        let arguments = apart.arguments(7000, pooled, &machine(u64::MAX));
        let has = |word: &str| arguments.iter().any(|argument| argument == word);
        assert!(has("--plugin-load-add=thread_pool.so") && has("--thread-pool-size=1"));
        assert!(!has("--skip-ssl") && !arguments.iter().any(|word| word.contains("handling")));
    }

    #[test]
    fn one_account_is_left() {
        let text = stopped().init_statements();
        assert!(text.contains("CREATE USER IF NOT EXISTS 'sbtest'@'%' IDENTIFIED BY 'hush';\n"));
        assert!(text.contains("User NOT IN ('sbtest', 'mariadb.sys');\nFLUSH PRIVILEGES;\n"));
        assert!(text.lines().all(|line| line.ends_with(';')));
        let mut mysql = stopped();
        mysql.programs.kind = Kind::Mysql;
        let text = mysql.init_statements();
        assert!(text.contains("DROP USER IF EXISTS root@localhost;\n") && !text.contains("DELETE"));
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
