//! The programs of an installed server, MariaDB or MySQL: where they are, and how they are started.
//!
//! A MySQL that `scripts/get-mysql.sh` fetched has a program `run` that starts the others with the
//! libraries of its folder; so it is asked for first, and a `mysqld` of the system may be either.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::machine::is_root;

/// Kind of a private server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The private server is a MariaDB
    #[default]
    Mariadb,
    /// The private server is a MySQL
    Mysql,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Mariadb => "MariaDB",
            Kind::Mysql => "MySQL",
        }
    }

    /// Name of a server's process in messages.
    pub(crate) fn process(self) -> &'static str {
        match self {
            Kind::Mariadb => "the private MariaDB",
            Kind::Mysql => "the private MySQL",
        }
    }
}

/// Folder of a MySQL that the script fetched, from that of the project.
const FETCHED: &str = "target/mysql";
/// Names a folder with a MySQL, for the tests of the project too.
const FETCHED_ENV: &str = "ONRAMP_MYSQL";
/// The starter of a fetched MySQL's programs.
const RUNNER: &str = "run";
/// MySQL's pool of threads.
pub(crate) const THREAD_POOL: &str = "thread_pool.so";

/// The programs of an installed server.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) kind: Kind,
    /// The server, or the program `run` that starts it.
    pub(crate) server: PathBuf,
    /// Makes the data of a MariaDB; a MySQL makes its own.
    pub(crate) install_db: Option<PathBuf>,
    /// The root of an installation that was moved from where it was built for.
    pub(crate) basedir: Option<PathBuf>,
    pub(crate) version: String,
    /// Reason why the server cannot run its own pool of threads.
    pub(crate) no_pool: Option<String>,
}

impl Programs {
    /// Looks in `directory`, or else where programs are installed.
    pub(crate) fn find(kind: Kind, directory: Option<&Path>) -> Result<Self> {
        match kind {
            Kind::Mariadb => Self::find_mariadb(directory),
            Kind::Mysql => Self::find_mysql(directory),
        }
    }

    fn find_mariadb(directory: Option<&Path>) -> Result<Self> {
        let places = places(directory);
        let find = |names: &[&str]| files(&places, names).next();
        let remedy = "install MariaDB's server (the package mariadb-server), name its directory \
                      with --mariadb-dir, or use a server of yours with --target";
        let server = find(&["mariadbd", "mysqld"])
            .with_context(|| format!("no mariadbd found for the private server: {remedy}"))?;
        let install_db = find(&["mariadb-install-db", "mysql_install_db"]).with_context(|| {
            format!(
                "{} is there, but no mariadb-install-db: {remedy}",
                server.display()
            )
        })?;
        let version = version_of(&server)?;
        let shown = server.display();
        if !version.contains("MariaDB") {
            bail!("{shown} is {version}, and no MariaDB: {remedy}, or say --server mysql");
        }
        Ok(Self {
            kind: Kind::Mariadb,
            server,
            install_db: Some(install_db),
            basedir: moved(directory),
            version,
            no_pool: None,
        })
    }

    fn find_mysql(directory: Option<&Path>) -> Result<Self> {
        let fetched = std::env::var_os(FETCHED_ENV).map(PathBuf::from);
        let runners: Vec<PathBuf> = match directory {
            Some(directory) => vec![directory.to_path_buf()],
            None => fetched.into_iter().chain([FETCHED.into()]).collect(),
        };
        let runners: Vec<PathBuf> = runners.iter().map(|folder| absolute(folder)).collect();
        let places = places(directory);
        let found = files(&runners, &[RUNNER]).chain(files(&places, &["mysqld"]));
        let mut found = found.filter_map(|server| Some((version_of(&server).ok()?, server)));
        let (version, server) = found
            .find(|(version, _)| !version.contains("MariaDB"))
            .context(
                "no MySQL found for the private server: scripts/get-mysql.sh fetches one into \
                 target/mysql; or name the directory of one with --mysql-dir, or use a server of \
                 yours with --target",
            )?;
        let mut programs = Self {
            kind: Kind::Mysql,
            basedir: moved(directory).filter(|_| !is_runner(&server)),
            server,
            install_db: None,
            version,
            no_pool: None,
        };
        programs.no_pool = programs.lacks_pool();
        Ok(programs)
    }

    /// Reason why there is no pool of threads, by the folder that the server names.
    fn lacks_pool(&self) -> Option<String> {
        let mut command = launch(&self.server);
        command.arg("--no-defaults");
        if let Some(basedir) = &self.basedir {
            command.arg(format!("--basedir={}", basedir.display()));
        }
        let output = command
            .args(["--user=root", "--verbose", "--help"])
            .output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let folder = text
            .lines()
            .filter_map(|line| line.strip_prefix("plugin-dir "));
        let folder = folder.map(str::trim).next_back().unwrap_or_default();
        let is_there = Path::new(folder).join(THREAD_POOL).is_file();
        (!is_there).then(|| {
            format!(
                "not tried: MySQL {} has no {THREAD_POOL} in '{folder}'",
                self.version
            )
        })
    }

    /// A command that makes the data of a server below a folder.
    pub(crate) fn install(&self, folder: &Path) -> Command {
        let program = self.install_db.as_ref().unwrap_or(&self.server);
        let mut command = self.command(program, folder);
        match self.kind {
            Kind::Mariadb => {
                command.args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            }
            Kind::Mysql => command.arg("--initialize-insecure"),
        };
        command
    }

    /// A command that starts a server with its data below a folder.
    pub(crate) fn serve(&self, folder: &Path) -> Command {
        self.command(&self.server, folder)
    }

    /// A command with what the installation and the server have in common.
    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = launch(program);
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

/// A command that starts a server's program.
fn launch(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_runner(program) {
        command.arg("mysqld");
    }
    command
}

fn is_runner(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == RUNNER)
}

/// Path of a program, if it is installed.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    files(&places(None), &[name]).next()
}

/// Files of these names, in order of the places.
fn files<'a>(places: &'a [PathBuf], names: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
    let files = move |place: &'a PathBuf| names.iter().map(move |name| place.join(name));
    places.iter().flat_map(files).filter(|file| file.is_file())
}

/// The root of an installation that stands in a folder of its own.
fn moved(directory: Option<&Path>) -> Option<PathBuf> {
    directory
        .filter(|folder| folder.join("share").is_dir())
        .map(absolute)
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.into())
}

fn places(directory: Option<&Path>) -> Vec<PathBuf> {
    if let Some(directory) = directory {
        let directory = absolute(directory);
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
fn version_of(server: &Path) -> Result<String> {
    let shown = server.display();
    let output = launch(server)
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
