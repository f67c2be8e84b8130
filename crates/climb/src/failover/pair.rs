//! Two private servers, the second a semi-synchronous replica of the first.
//!
//! Each has its data in a folder of the scratch directory, and listens on loopback. The second has
//! the accounts of the first by replication; all others are deleted before either takes a
//! connection.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, kill_process};
use wire::blocking::values;

use crate::child::{Child, Interrupt};
use crate::failover::clients::{NAME, log_in};
use crate::scratch::random_hex;
use crate::server::{Programs, free_loopback_port};

/// Account with all rights.
pub(crate) const ADMIN: &str = "operator";
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const APPLIED: &[u8] = b"has read all relay log";

/// The two servers.
pub(crate) struct Pair {
    ports: [u16; 2],
    /// The one that is killed, and the other.
    servers: [Child; 2],
    password: String,
}

impl Pair {
    /// Starts both below this folder, with a row for each client.
    pub(crate) fn start(
        programs: &Programs,
        folder: &Path,
        clients: u32,
        interrupt: &Interrupt,
    ) -> Result<Pair> {
        let password = random_hex(16)?;
        let ports = [free_loopback_port()?, free_loopback_port()?];
        let texts = [
            first_statements(&password, clients),
            second_statements(&password, ports[0]),
        ];
        let start = |at: usize| {
            let options = [
                format!("--server-id={}", at + 1),
                format!("--read-only={at}"),
                format!("--max-connections={}", clients + 100),
            ];
            start(
                programs,
                &folder.join(["one", "two"][at]),
                ports[at],
                &texts[at],
                &options,
                interrupt,
            )
        };
        let pair = Pair {
            ports,
            servers: [start(0)?, start(1)?],
            password,
        };
        pair.await_replica(interrupt)?;
        Ok(pair)
    }

    pub(crate) fn ports(&self) -> [u16; 2] {
        self.ports
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// Waits until the second has the clients' rows, and so their account.
    fn await_replica(&self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.updates() {
            interrupt.check()?;
            if Instant::now() > deadline {
                return Err(error.context("the second server does not replicate"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Updates that the second server has.
    pub(crate) fn updates(&self) -> Result<u64> {
        let sum = self.ask(1, "SELECT SUM(n) FROM sbtest.t")?;
        let sum = String::from_utf8_lossy(&sum).parse();
        sum.context("the second server has no rows")
    }

    /// First value of an answer of a server.
    fn ask(&self, at: usize, text: &str) -> Result<Vec<u8>> {
        let mut connection = log_in(self.ports[at], ADMIN, &self.password)?;
        let mut first = None;
        connection.query(text.as_bytes(), |row| {
            first = first
                .take()
                .or_else(|| values(row).next().map(<[u8]>::to_vec));
        })?;
        Ok(first.unwrap_or_default())
    }

    pub(crate) fn kill_writer(&mut self) {
        // It may be gone already.
        let _ = kill_process(self.servers[0].pid(), Signal::KILL);
    }

    /// Lets the second take writes, once it has applied what it has received.
    pub(crate) fn promote(&self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        self.ask(1, "STOP SLAVE IO_THREAD")?;
        let mut connection = log_in(self.ports[1], ADMIN, &self.password)?;
        loop {
            let mut is_applied = false;
            connection.query(b"SHOW SLAVE STATUS", |row| {
                let mut all = values(row);
                is_applied |=
                    all.any(|value| value.windows(APPLIED.len()).any(|part| part == APPLIED));
            })?;
            if is_applied {
                break;
            }
            interrupt.check()?;
            if Instant::now() > deadline {
                bail!("the second server does not apply what it has");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.release()
    }

    fn release(&self) -> Result<()> {
        for text in ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0"] {
            self.ask(1, text)?;
        }
        Ok(())
    }

    /// Sets the first server read-only, and lets the second take writes once it has everything.
    pub(crate) fn hand_over(&self) -> Result<()> {
        self.ask(0, "SET GLOBAL read_only=1")?;
        let position = self.ask(0, "SELECT @@gtid_binlog_pos")?;
        let position = String::from_utf8_lossy(&position);
        let seconds = PATIENCE.as_secs();
        let waited = self.ask(
            1,
            &format!("SELECT MASTER_GTID_WAIT('{position}',{seconds})"),
        )?;
        anyhow::ensure!(waited == b"0", "the second server has not caught up");
        self.release()
    }
}

/// Statements of the first server's first start, one a line.
fn first_statements(password: &str, clients: u32) -> String {
    let rows: Vec<String> = (1..=clients).map(|id| format!("({id},0)")).collect();
    format!(
        "CREATE DATABASE {NAME};\n\
         CREATE USER '{ADMIN}'@'%' IDENTIFIED BY '{password}';\n\
         GRANT ALL ON *.* TO '{ADMIN}'@'%';\n\
         CREATE USER '{NAME}'@'%' IDENTIFIED BY '{password}';\n\
         GRANT ALL ON {NAME}.* TO '{NAME}'@'%';\n\
         DELETE FROM mysql.global_priv WHERE User NOT IN ('{ADMIN}', '{NAME}', 'mariadb.sys');\n\
         FLUSH PRIVILEGES;\n\
         CREATE TABLE {NAME}.t (id INT PRIMARY KEY, n BIGINT) ENGINE=InnoDB;\n\
         INSERT INTO {NAME}.t VALUES {};\n",
        rows.join(",")
    )
}

fn second_statements(password: &str, source: u16) -> String {
    format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source}, MASTER_USER='{ADMIN}', \
         MASTER_PASSWORD='{password}', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos;\n\
         START SLAVE;\n"
    )
}

fn start(
    programs: &Programs,
    folder: &Path,
    port: u16,
    statements: &str,
    options: &[String],
    interrupt: &Interrupt,
) -> Result<Child> {
    std::fs::create_dir(folder).context("cannot make a folder in the scratch directory")?;
    let install = programs.install(folder);
    let mut install = Child::start("mariadb-install-db", install)?;
    let status = install.finish(PATIENCE, interrupt)?;
    anyhow::ensure!(
        status.success(),
        "mariadb-install-db: {}",
        install.last_words()
    );
    let init = folder.join("init.sql");
    std::fs::write(&init, statements).context("cannot write to the scratch directory")?;
    let mut command = programs.serve(folder);
    command
        .arg(format!("--socket={}", folder.join("s").display()))
        .arg(format!("--port={port}"))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--init-file={}", init.display()))
        .args(options)
        .args(SETTINGS);
    let mut server = Child::start("a private MariaDB", command)?;
    server.await_line("ready for connections", PATIENCE, interrupt)?;
    Ok(server)
}

const SETTINGS: [&str; 15] = [
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-ssl",
    "--log-bin=log",
    "--binlog-format=ROW",
    "--log-slave-updates",
    "--slave-net-timeout=4",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",
    "--rpl-semi-sync-master-enabled=1",
    "--rpl-semi-sync-master-timeout=60000",
    "--rpl-semi-sync-master-wait-no-slave=0",
    "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
    "--rpl-semi-sync-slave-enabled=1",
    "--log-warnings=1",
];
