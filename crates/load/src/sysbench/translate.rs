//! A line of sysbench, said to `onramp load`.
//!
//! Where sysbench and `onramp load` differ by habit, the line gets sysbench's: statements are
//! prepared, rows are *special*, connections open as fast as they can and for as long as it takes,
//! events run to their end when the time is over, and the first error that is not to be ignored
//! ends the run.

use super::line::{FORM, Line};
use crate::manner::{Dialect, Manner};
use crate::options::LoadArgs;
use clap::Parser;
use load_core::workload::Workload;
use std::path::Path;
use wire::dsn::password::Source;
use wire::dsn::{Dsn, SslMode};

use super::known::{self, Fate};

/// Paths on which client libraries look for the socket of `localhost`.
const SOCKETS: [&str; 3] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];
/// Without end, as far as anybody will know: a day, in seconds.
const ENDLESS: &str = "86400";

#[derive(Parser)]
#[command(name = "sysbench")]
struct Load {
    #[command(flatten)]
    args: LoadArgs,
}

/// Options of `onramp load` for a line of sysbench.
///
/// # Errors
/// A sentence that says what is wrong with the line.
pub(super) fn load_args(line: &Line) -> Result<LoadArgs, String> {
    let Some(script) = &line.script else {
        return Err(format!("no script is named; expected {FORM}"));
    };
    let (workload, command) = match line.file {
        // What runs is the script; nothing of a workload is looked at.
        Some(_) => (Workload::PointSelect, Some("run")),
        None => (
            line.workload().ok_or_else(|| unknown_script(script))?,
            line.command.as_deref(),
        ),
    };
    let command = command
        .ok_or("a command is required: prepare, prewarm, run, cleanup or help".to_owned())?;
    if !["prepare", "prewarm", "run", "cleanup"].contains(&command) {
        return Err(format!(
            "unknown command '{command}'; expected prepare, prewarm, run, cleanup or help"
        ));
    }
    refuse_what_is_missing(line)?;
    let mut words = vec![
        "sysbench".to_owned(),
        workload.name().to_owned(),
        command.to_owned(),
        "--target=mysql://u@localhost/s".to_owned(),
        format!("--rand-type={}", line.value("rand-type")),
        format!("--ignore-errors={}", line.value("mysql-ignore-errors")),
        "--stop-on-error".to_owned(),
        "--live=never".to_owned(),
        "--connect-rate=0".to_owned(),
        format!("--connect-timeout={ENDLESS}"),
        format!(
            "--end-timeout={}",
            forced(line)?.as_deref().unwrap_or(ENDLESS)
        ),
        format!("--db-ps-mode={}", line.value("db-ps-mode")),
    ];
    let checkpoints = checkpoints(line)?;
    if !checkpoints.is_empty() {
        words.push(format!("--report-checkpoints={checkpoints}"));
    }
    if line.value("mysql-compression") == "on" {
        words.push("--compression".to_owned());
    }
    words.extend(tls(line)?);
    if line.dialect == Dialect::Old {
        words.extend(["--events=10000".to_owned(), "--time=0".to_owned()]);
    }
    if line.value("rate").parse().is_ok_and(|rate: f64| rate > 0.0) {
        words.push(format!("--rate={}", line.value("rate")));
    }
    for (name, value) in &line.values {
        if let Some(Fate::Load(name)) = known::find(line.dialect, name).map(|known| known.fate) {
            words.push(format!("--{name}={value}"));
        }
    }
    let parsed = Load::try_parse_from(words).map_err(|error| said(&error))?;
    let mut args = parsed.args;
    let mut targets = targets(line)?.into_iter();
    args.target = targets.next().ok_or("no server is named")?;
    args.manner = Manner {
        dialect: line.dialect,
        more_targets: targets.collect(),
        forced: forced(line)?.is_some(),
        histogram: line.value("histogram") == "on",
        from_timer: line.value("rand-init") == "on",
        // 3 is where sysbench has its reports.
        quiet: line.value("verbosity").parse().unwrap_or(3) < 3,
    };
    args.check()?;
    Ok(args)
}

/// Objection of the parser of `onramp load` to a value, in one line.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

fn unknown_script(script: &str) -> String {
    format!(
        "'{script}' is no script that is known here, and no file; --help lists those that are \
         built in, others are named with their file"
    )
}

/// Mode of `--mysql-ssl`: 1.0 has a switch, later versions have the modes of MySQL's clients.
fn ssl_mode(line: &Line) -> Result<SslMode, String> {
    match line.value("mysql-ssl").to_ascii_lowercase().as_str() {
        "off" | "false" | "0" => Ok(SslMode::Disabled),
        "on" | "true" | "1" => Ok(SslMode::Required),
        mode => SslMode::read(mode).map_err(|error| format!("--mysql-ssl: {error}, on or off")),
    }
}

/// Options for the files of `--mysql-ssl-ca`, `--mysql-ssl-cert` and `--mysql-ssl-key`. As in
/// MySQL's clients, an authority has no use where no certificate is checked.
fn tls(line: &Line) -> Result<Vec<String>, String> {
    let mode = ssl_mode(line)?;
    if line.value("mysql-ssl-cert").is_empty() != line.value("mysql-ssl-key").is_empty() {
        return Err("--mysql-ssl-cert and --mysql-ssl-key belong together: name both".to_owned());
    }
    let mut words = Vec::new();
    for (name, option) in [
        ("mysql-ssl-ca", "ca"),
        ("mysql-ssl-cert", "tls-cert"),
        ("mysql-ssl-key", "tls-key"),
    ] {
        let file = line.value(name);
        let is_used = match mode {
            SslMode::Disabled => false,
            SslMode::Preferred | SslMode::Required => option != "ca",
            SslMode::VerifyCa | SslMode::VerifyIdentity => true,
        };
        if is_used && !file.is_empty() {
            words.push(format!("--{option}={file}"));
        }
    }
    Ok(words)
}

fn refuse_what_is_missing(line: &Line) -> Result<(), String> {
    if line.value("mysql-dry-run") == "on" {
        return Err("--mysql-dry-run is not to be had here; leave it out".to_owned());
    }
    if line.file.is_some() && line.value("mysql-compression") == "on" {
        return Err(
            "--mysql-compression: scripts speak the plain protocol here; leave it out".to_owned(),
        );
    }
    if line.value("histogram") == "on" && line.value("percentile") == "0" {
        return Err("--histogram does not go with --percentile=0".to_owned());
    }
    match line.value("db-driver") {
        "mysql" => Ok(()),
        other => Err(format!(
            "--db-driver={other}: mysql is the only driver here"
        )),
    }
}

/// The parts of a list that are not empty.
fn list<'a>(line: &'a Line, name: &str) -> impl Iterator<Item = &'a str> {
    let parts = line.value(name).split(',').map(str::trim);
    parts.filter(|part| !part.is_empty())
}

/// The list of checkpoints, in seconds.
fn checkpoints(line: &Line) -> Result<String, String> {
    let mut checkpoints = Vec::new();
    for part in list(line, "report-checkpoints") {
        if part.parse::<u32>().is_err() {
            return Err(format!(
                "Invalid value for --report-checkpoints: '{part}'; expected whole seconds after \
                 the start, with commas between"
            ));
        }
        checkpoints.push(part);
    }
    Ok(checkpoints.join(","))
}

/// Seconds behind `--time` after which the end comes by force.
fn forced(line: &Line) -> Result<Option<String>, String> {
    let time: u64 = line.value("time").parse().unwrap_or(0);
    let value = line.value("forced-shutdown");
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("--forced-shutdown: '{value}' is neither seconds nor N% nor off"))
    };
    let seconds = match value {
        "off" => return Ok(None),
        // Bare: a twentieth of the time.
        "auto" => time / 20,
        _ => match value.strip_suffix('%') {
            Some(percent) => time * number(percent)? / 100,
            None => number(value)?,
        },
    };
    Ok(Some(seconds.min(86_400).to_string()))
}

/// All servers, in the order in which connections go to them: every port of a host, then the next
/// host; sockets win over hosts.
fn targets(line: &Line) -> Result<Vec<Dsn>, String> {
    let mode = ssl_mode(line)?;
    let dsn = |host: &str, port: u16, socket: Option<String>| Dsn {
        user: line.value("mysql-user").to_owned(),
        password: line.value("mysql-password").to_owned(),
        password_source: Source::Text,
        host: host.to_owned(),
        port,
        schema: line.value("mysql-db").to_owned(),
        socket,
        ssl_mode: (mode != SslMode::Disabled).then_some(mode),
        ..Dsn::default()
    };
    let sockets = list(line, "mysql-socket");
    let mut all: Vec<Dsn> = sockets
        .map(|path| dsn("localhost", 3306, Some(path.to_owned())))
        .collect();
    if !all.is_empty() {
        return Ok(all);
    }
    for host in list(line, "mysql-host") {
        for port in list(line, "mysql-port") {
            let port = port
                .parse()
                .map_err(|_| format!("--mysql-port: '{port}' is no port, 1 to 65535"))?;
            // As client libraries have it, localhost is a socket where there is one.
            let socket = SOCKETS.iter().find(|path| Path::new(path).exists());
            let socket = socket.filter(|_| host == "localhost");
            all.push(dsn(host, port, socket.map(|path| (*path).to_owned())));
        }
    }
    Ok(all)
}
