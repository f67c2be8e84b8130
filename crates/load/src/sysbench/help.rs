//! Texts of `--help`, `--version` and the command `help`.
//!
//! All of it comes from the table of options, so what is listed is what is taken. The words are
//! ours; only the version's line is sysbench's, because scripts read it.

use super::known::{GENERAL, Kind, Known, OLD_SCRIPTS, SCRIPTS};
use super::line::{FORM, Line};
use crate::manner::Dialect;
use clap::ValueEnum;
use load_core::workload::Workload;
use std::fmt::Write;

/// The version whose lines and report are spoken.
pub(super) const VERSION: &str = "1.0.20";

/// The text that the line asks for; `None` for a line that asks for work.
pub(super) fn answer(line: &Line) -> Option<String> {
    if line.value("version") == "on" {
        return Some(format!("sysbench {VERSION}\n"));
    }
    if line.value("help") == "on" {
        return Some(general());
    }
    if line.command.as_deref() == Some("help") && line.file.is_none() {
        return line.workload().map(|workload| of_script(line, workload));
    }
    None
}

fn general() -> String {
    let mut out =
        format!("Usage:\n  sysbench {FORM}\n\nCommands: prepare prewarm run cleanup help\n");
    for (title, table) in GENERAL {
        put(&mut out, &format!("\n{title}:\n"));
        put_table(&mut out, table, "");
    }
    out.push_str("\nScripts:\n");
    let workloads = Workload::value_variants().iter();
    for workload in workloads.filter(|workload| !workload.is_interactive()) {
        put(&mut out, &format!("  {}\n", workload.name()));
    }
    out.push_str("\n'SCRIPT help' lists the options of a script.\n");
    out
}

fn of_script(line: &Line, workload: Workload) -> String {
    let mut out = format!("{} options:\n", workload.name());
    if line.dialect == Dialect::Old {
        put_table(&mut out, OLD_SCRIPTS, "");
        put_table(&mut out, SCRIPTS, "oltp-");
    } else {
        put_table(&mut out, SCRIPTS, "");
    }
    out
}

fn put_table(out: &mut String, table: &[Known], prefix: &str) {
    for known in table {
        let form = match known.kind {
            Kind::Bool => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::Text => "=TEXT",
            Kind::List => "=LIST",
        };
        let option = format!("--{prefix}{}{form}", known.name);
        put(
            out,
            &format!("  {option:<32} {} [{}]\n", known.help, known.default),
        );
    }
}

fn put(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = out.write_str(text);
}
