//! A private MySQL, where there is one.
//!
//! Debian's stable suites have no MySQL, so it is looked for in this order: the folder that
//! `ONRAMP_MYSQL` names, `target/mysql` of this workspace, where `scripts/get-mysql.sh` puts it by
//! itself, both with a program `run` that starts the others; then a `mysqld` on the PATH that says
//! it is MySQL (MariaDB has a program of that name too).

use super::{Flavour, Real, new_folder, program};
use crate::guard::Guard;
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

impl Real {
    /// A new MySQL with these arguments besides the usual ones; as [`Real::start`] otherwise.
    ///
    /// # Errors
    /// That it is not installed, or what the server said instead of starting.
    pub fn start_mysql(extra: &[&str]) -> Result<Real, String> {
        let (file, first) = find()?;
        let folder = new_folder()?;
        let guard = Guard::new(Some(&folder));
        let mut command = Command::new(&file);
        command.args(&first).arg("--no-defaults");
        command.args([
            "--initialize-insecure",
            "--loose-innodb-redo-log-capacity=8M",
        ]);
        command.arg(format!("--datadir={}", folder.join("data").display()));
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
        Real::in_folder(Flavour::MySql, (file, first), folder, guard, extra)
    }
}

fn find() -> Result<(PathBuf, Vec<String>), String> {
    let named = std::env::var_os("ONRAMP_MYSQL").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mysql");
    for folder in named.iter().chain([&fetched]) {
        let run = folder.join("run");
        if run.is_file() {
            return Ok((run, vec!["mysqld".into()]));
        }
    }
    if let Some(folder) = named {
        return Err(format!(
            "ONRAMP_MYSQL={}: no program `run` there",
            folder.display()
        ));
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
