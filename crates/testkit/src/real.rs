//! A private server for the tests: made, started, killed and removed here.
//!
//! The server lives in a folder of its own below the system's folder for temporary files, listens
//! on a Unix socket there and on a free port of 127.0.0.1, and keeps nothing safe on disk, which
//! makes it fast. A [`Guard`] ends it and removes the folder even when the test process is killed.
//! Installing a data folder takes seconds, so it is done once per process and copied.
//!
//! Where MariaDB is not installed, [`Real::start`] says which program is missing; tests then skip
//! by name ([`skipped`]). [`Real::start_mysql`] does the same with a real MySQL (see `mysql`).

use crate::client::Client;
use crate::guard::Guard;
use crate::onramp::{await_stop, free_port, loopback, signal, wait_at_most};
use crate::output::Output;
use crate::talk::Account;
use reactor::Address;
use rustix::process::{Signal, geteuid};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The longest a server may take to start or to end.
const LIMIT: Duration = Duration::from_secs(180);
/// Most ports to try: another process may take a free one before the server starts.
const PORTS_TRIED: u32 = 3;

/// The file that collects the tests that were skipped, a line each; scripts/test.sh names it, and
/// lists them at the end of a run.
const SKIPPED_FILE: &str = "ONRAMP_SKIPPED_FILE";

/// Says that a test was skipped, and why: on stderr, which is only seen of tests that fail or with
/// `--nocapture`, and in the file that the environment names.
pub fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    if let Some(path) = std::env::var_os(SKIPPED_FILE) {
        let file = fs::OpenOptions::new().append(true).create(true).open(&path);
        // One write: tests of several processes append to it at once.
        let line = format!("{test}: {}\n", why.replace('\n', " "));
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            panic!("{SKIPPED_FILE} {}: {error}", path.display());
        }
    }
}

/// Kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL.
    MySql,
}

/// A running server.
#[derive(Debug)]
pub struct Real {
    flavour: Flavour,
    /// The program, and the arguments that must come first.
    program: (PathBuf, Vec<String>),
    folder: PathBuf,
    port: u16,
    extra: Vec<String>,
    child: Option<Child>,
    log: Output,
    guard: Guard,
}

/// An installed data folder, to be copied.
struct Template {
    folder: PathBuf,
    _guard: Guard,
}

impl Template {
    /// A folder of a server's own, with a copy.
    fn copy(&self) -> Result<(PathBuf, Guard), String> {
        let folder = new_folder()?;
        let guard = Guard::new(Some(&folder));
        copy_folder(&self.folder.join("data"), &folder.join("data"))
            .map_err(|error| format!("copying the data folder: {error}"))?;
        Ok((folder, guard))
    }
}

impl Real {
    /// A new server with these arguments besides the usual ones. Its administrator is `root`
    /// without a password, over the Unix socket.
    ///
    /// # Errors
    /// Which program is missing, or what the server said instead of starting.
    pub fn start(extra: &[&str]) -> Result<Real, String> {
        Real::start_behind(&[], extra)
    }

    /// A new server that is started by another program: the server's command line is appended to
    /// `prefix`, as in `["prlimit", "--nofile=300:300"]`. That program must become the server, or
    /// take it along when it is killed.
    ///
    /// # Errors
    /// As [`Real::start`].
    pub fn start_behind(prefix: &[&str], extra: &[&str]) -> Result<Real, String> {
        static TEMPLATE: OnceLock<Result<Template, String>> = OnceLock::new();
        let template = TEMPLATE
            .get_or_init(install)
            .as_ref()
            .map_err(Clone::clone)?;
        let (folder, guard) = template.copy()?;
        let program = behind(prefix, (program("mariadbd")?, Vec::new()));
        Real::in_folder(Flavour::MariaDb, program, folder, guard, extra)
    }

    /// A server on a data folder that is there.
    fn in_folder(
        flavour: Flavour,
        program: (PathBuf, Vec<String>),
        folder: PathBuf,
        guard: Guard,
        extra: &[&str],
    ) -> Result<Real, String> {
        let mut real = Real {
            flavour,
            program,
            folder,
            port: 0,
            extra: extra.iter().map(ToString::to_string).collect(),
            child: None,
            log: Output::default(),
            guard,
        };
        let mut tried = 0;
        loop {
            real.port = free_port();
            match real.run() {
                Ok(()) => return Ok(real),
                Err(why) if why.contains("Address already in use") && tried < PORTS_TRIED => {
                    tried += 1;
                }
                Err(why) => return Err(why),
            }
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let (program, first) = &self.program;
        let mut command = Command::new(program);
        command.args(first).arg("--no-defaults");
        command.arg(format!("--datadir={}", self.folder.join("data").display()));
        command.arg(format!("--port={}", self.port));
        command.arg(format!("--socket={}", self.socket_path().display()));
        command.args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
            "--innodb-fast-shutdown=2",
            "--max-allowed-packet=64M",
            "--max-connections=500",
            "--local-infile=1",
            "--performance-schema=OFF",
        ]);
        command.args(match self.flavour {
            Flavour::MariaDb => &["--innodb-log-file-size=8M"][..],
            // Before MySQL 8.0.30 the log's size has another name; then the default does.
            //
            // With one cache of open tables, no session opens a table anew. When MySQL does that,
            // it may skip a number of AUTO_INCREMENT. It has 16 caches by itself, and the number of
            // the connection says which one serves it: the same rows would be numbered otherwise
            // where two connections write them.
            Flavour::MySql => &[
                "--table-open-cache-instances=1",
                "--loose-innodb-redo-log-capacity=8M",
                "--mysqlx=OFF",
                "--secure-file-priv=",
            ],
        });
        if geteuid().is_root() {
            command.arg("--user=root");
        }
        command.args(&self.extra);
        command
            .env("TMPDIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        self.guard.watch(child.id());
        self.log = Output::of(child.stderr.take().expect("stderr is a pipe"));
        self.child = Some(child);
        self.log
            .wait_for("ready for connections", 0, LIMIT)
            .map_err(|why| {
                self.kill9();
                format!("{:?} did not start: {why}", self.flavour)
            })?;
        Ok(())
    }

    /// Kind of server.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The program that it is, and the arguments that must come first.
    #[must_use]
    pub fn program(&self) -> (&Path, Vec<&str>) {
        let (program, first) = &self.program;
        (program, first.iter().map(String::as_str).collect())
    }

    /// TCP address at which it listens.
    #[must_use]
    pub fn address(&self) -> Address {
        loopback(self.port)
    }

    /// The process that was started: the server's, unless a prefix made another one of it.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Its port of 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> Address {
        Address::Unix(self.socket_path())
    }

    fn socket_path(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// A folder that goes away with the server.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Content of its error log.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// A connection of the administrator.
    ///
    /// # Panics
    /// When the server does not let it in.
    #[must_use]
    pub fn admin(&self) -> Client {
        Client::connect(&self.socket(), &Account::new("root", ""))
            .unwrap_or_else(|error| panic!("root on {:?}: {error}", self.socket()))
    }

    /// Runs SQL as the administrator; every statement must succeed.
    ///
    /// # Panics
    /// When one does not.
    pub fn execute(&self, statements: &[&str]) {
        let mut admin = self.admin();
        for sql in statements {
            admin.must(sql);
        }
    }

    /// Runs SQL as the administrator, statements that stand apart by `; `.
    ///
    /// # Panics
    /// When one does not succeed.
    pub fn script(&self, text: &str) {
        self.execute(&text.split("; ").collect::<Vec<_>>());
    }

    /// Makes an account with every right and this password, for the server's usual plugin.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn create_user(&self, name: &str, password: &str) {
        let password = password.replace('\'', "''");
        self.execute(&[
            &format!("DROP USER IF EXISTS '{name}'@'%'"),
            &format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'"),
            &format!("GRANT ALL ON *.* TO '{name}'@'%'"),
        ]);
    }

    /// Kills it as a crash would; [`Real::restart`] brings it back.
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            self.guard.watch(0);
        }
    }

    /// Suspends it (SIGSTOP) and returns once none of its threads runs any more: the signal alone
    /// reaches a busy machine's threads later than the answer to the next statement.
    ///
    /// # Panics
    /// When it does not run, or ends instead.
    pub fn suspend(&self) {
        let child = self.child.as_ref().expect("the server runs");
        signal(child, Signal::STOP);
        await_stop(child);
    }

    /// Lets it go on after [`Real::suspend`].
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        let child = self.child.as_ref().expect("the server runs");
        signal(child, Signal::CONT);
    }

    /// Ends it in good order.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal(&child, Signal::TERM);
            wait_at_most(&mut child, LIMIT);
            self.guard.watch(0);
        }
    }

    /// Starts it again on the same port, with the same data; ends it first if it still runs.
    ///
    /// # Errors
    /// What it said instead of starting.
    pub fn restart(&mut self) -> Result<(), String> {
        self.stop();
        self.run()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// Waits until the server has let this client's statement wait for another one (a row, a table, a
/// named lock) or sleep, or until its answer is there.
///
/// # Panics
/// When the server gives the administrator no answer, or nothing happens for [`LIMIT`].
pub fn await_blocked(admin: &mut Client, client: &Client, sql: &str) {
    let began = Instant::now();
    while !client.has_answer().unwrap_or(true) {
        // `innodb_trx` is no help: it is refreshed only when nobody has read it for 100 ms.
        let report = admin.rows("SHOW ENGINE INNODB STATUS").texts();
        let mut transactions = report[0][2].split("---TRANSACTION ").skip(1);
        let waits = |text: &str| text.contains("LOCK WAIT") && text.contains(sql);
        if transactions.any(waits) || is_listed_as_waiting(admin, sql) {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{sql}: neither waits nor is done");
    }
}

/// True if the list of connections shows one that waits for a lock in this text. The list is looked
/// through here: what others run at that moment need not be text of the server's character set, and
/// a server may refuse to compare it (error 3854).
fn is_listed_as_waiting(admin: &mut Client, sql: &str) -> bool {
    let listed = admin.rows("SHOW FULL PROCESSLIST").texts();
    listed.iter().any(|row| {
        let (state, info) = (&row[6], &row[7]);
        let is_lock = state.starts_with("Waiting for") && state.contains("lock");
        info.contains(sql) && (is_lock || ["User lock", "User sleep"].contains(&&state[..]))
    })
}

/// The program, and the arguments that must come first, where another one starts it.
fn behind(prefix: &[&str], (server, arguments): (PathBuf, Vec<String>)) -> (PathBuf, Vec<String>) {
    let Some((first, rest)) = prefix.split_first() else {
        return (server, arguments);
    };
    let rest = rest.iter().map(ToString::to_string);
    let rest = rest.chain([server.display().to_string()]).chain(arguments);
    (PathBuf::from(first), rest.collect())
}

/// The whole path of a program; servers live in sbin, which the PATH often leaves out.
fn program(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not installed (Debian: mariadb-server)"))
}

fn new_folder() -> Result<PathBuf, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("onramp-test-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    // A process of long ago may have had our number.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn install() -> Result<Template, String> {
    program("mariadbd")?;
    let mut command = Command::new(program("mariadb-install-db")?);
    let folder = new_folder()?;
    let guard = Guard::new(Some(&folder));
    command.arg("--no-defaults");
    command.arg(format!("--datadir={}", folder.join("data").display()));
    command.args([
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
        "--innodb-log-file-size=8M",
    ]);
    if geteuid().is_root() {
        command.arg("--user=root");
    }
    // A server that starts removes the temporary tables in its folder for them, whoever's they are.
    command.env("TMPDIR", &folder);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("mariadb-install-db: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let said_more = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "mariadb-install-db: {}: {said}{said_more}",
            output.status
        ));
    }
    Ok(Template {
        folder,
        _guard: guard,
    })
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

mod mysql;

pub use mysql::mysql_command_line;
#[cfg(test)]
mod tests;
