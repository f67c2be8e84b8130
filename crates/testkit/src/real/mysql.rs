//! A private MySQL, where there is one.
//!
//! Debian's stable suites have no MySQL, so it is looked for in this order: the folder that
//! `ONRAMP_MYSQL` names, `target/mysql` of this workspace, where `scripts/get-mysql.sh` puts it by
//! itself, both with a program `run` that starts the others; then a `mysqld` on the PATH that says
//! it is MySQL (MariaDB has a program of that name too). The older line, MySQL 8.0, is the folder
//! that `ONRAMP_MYSQL8` names, or `target/mysql8`.

use super::{Flavour, Real, Template, behind, new_folder, program};
use crate::guard::Guard;
use rustix::process::geteuid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

impl Real {
    /// A new MySQL with these arguments besides the usual ones; as [`Real::start`] otherwise.
    ///
    /// # Errors
    /// That it is not installed, or what the server said instead of starting.
    pub fn start_mysql(extra: &[&str]) -> Result<Real, String> {
        Real::start_mysql_behind(&[], extra)
    }

    /// A new MySQL that is started by another program, as [`Real::start_behind`].
    ///
    /// # Errors
    /// As [`Real::start_mysql`].
    pub fn start_mysql_behind(prefix: &[&str], extra: &[&str]) -> Result<Real, String> {
        static INSTALLED: OnceLock<Result<Installed, String>> = OnceLock::new();
        let small_log = "--loose-innodb-redo-log-capacity=8M";
        Real::start_installed(&INSTALLED, find, small_log, (prefix, extra))
    }

    /// A new MySQL 8.0, of the line before; as [`Real::start_mysql`] otherwise.
    ///
    /// # Errors
    /// As [`Real::start_mysql`].
    pub fn start_mysql8(extra: &[&str]) -> Result<Real, String> {
        static INSTALLED: OnceLock<Result<Installed, String>> = OnceLock::new();
        let small_log = "--innodb-log-file-size=8M";
        Real::start_installed(&INSTALLED, find_eight, small_log, (&[], extra))
    }

    fn start_installed(
        installed: &OnceLock<Result<Installed, String>>,
        find: fn() -> Result<Program, String>,
        small_log: &str,
        (prefix, extra): (&[&str], &[&str]),
    ) -> Result<Real, String> {
        let installed = installed.get_or_init(|| {
            let program = find()?;
            let template = install(&program, small_log)?;
            Ok(Installed { program, template })
        });
        let Installed { program, template } = installed.as_ref().map_err(Clone::clone)?;
        let (folder, guard) = template.copy()?;
        let extra = [&[small_log], extra].concat();
        let program = behind(prefix, program.clone());
        Real::in_folder(Flavour::MySql, program, folder, guard, &extra)
    }
}

/// The program, and the arguments that must come first.
type Program = (PathBuf, Vec<String>);

struct Installed {
    program: Program,
    template: Template,
}

fn install((file, first): &Program, small_log: &str) -> Result<Template, String> {
    let folder = new_folder()?;
    let guard = Guard::new(Some(&folder));
    let data = folder.join("data");
    let mut command = Command::new(file);
    command.args(first).arg("--no-defaults");
    command.args(["--initialize-insecure", small_log]);
    command.arg(format!("--datadir={}", data.display()));
    if geteuid().is_root() {
        command.arg("--user=root");
    }
    command.env("TMPDIR", &folder).stdin(Stdio::null());
    let output = command.output();
    let output = output.map_err(|error| format!("{}: {error}", file.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("mysqld --initialize: {}: {said}", output.status));
    }
    // Its UUID: each server makes one of its own.
    fs::remove_file(data.join("auto.cnf")).map_err(|error| format!("auto.cnf: {error}"))?;
    Ok(Template {
        folder,
        _guard: guard,
    })
}

/// MySQL's own command line, to be given its arguments.
///
/// # Errors
/// That it is not installed.
pub fn mysql_command_line() -> Result<Command, String> {
    let missing = "MySQL's command line is not installed (scripts/get-mysql.sh fetches it)";
    let (run, _) = in_folder("ONRAMP_MYSQL", "mysql")?.ok_or(missing)?;
    if !run.with_file_name("usr/bin/mysql").is_file() {
        return Err(missing.into());
    }
    let mut command = Command::new(run);
    command.arg("mysql");
    Ok(command)
}

/// The program in the folder that this variable names, or in this folder of `target`.
fn in_folder(variable: &str, fetched: &str) -> Result<Option<Program>, String> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    for folder in named.iter().chain([&target.join(fetched)]) {
        let run = folder.join("run");
        if run.is_file() {
            return Ok(Some((run, vec!["mysqld".into()])));
        }
    }
    match named {
        Some(folder) => Err(format!(
            "{variable}={}: no program `run` there",
            folder.display()
        )),
        None => Ok(None),
    }
}

fn find_eight() -> Result<Program, String> {
    let missing = "MySQL 8 is not installed (scripts/get-mysql.sh --eight fetches it, \
                   ONRAMP_MYSQL8 names it)";
    in_folder("ONRAMP_MYSQL8", "mysql8")?.ok_or_else(|| missing.to_string())
}

fn find() -> Result<Program, String> {
    if let Some(found) = in_folder("ONRAMP_MYSQL", "mysql")? {
        return Ok(found);
    }
    let missing = "MySQL is not installed (scripts/get-mysql.sh fetches it, ONRAMP_MYSQL names it)";
    let file = program("mysqld").map_err(|_| missing.to_string())?;
    let said = Command::new(&file).arg("--version").output();
    let said = said.map_err(|error| format!("{}: {error}", file.display()))?;
    if String::from_utf8_lossy(&said.stdout).contains("MariaDB") {
        return Err(missing.into());
    }
    Ok((file, Vec::new()))
}
