//! The options that sysbench has, with what becomes of each.
//!
//! Names, kinds and defaults are those of 1.0.20 (and of its successor, where it has more) and of
//! 0.5 with its scripts. Names are written with `-` here; `_` is the same.

use crate::manner::Dialect;

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `on` or `off`; bare is on.
    Bool,
    /// A whole number of 32 bits.
    Int,
    /// A number with K, M, G or T behind.
    Size,
    /// Any number.
    Double,
    Text,
    /// Texts with commas between.
    List,
}

/// Fate of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// `onramp load` has it under this name.
    Load(&'static str),
    /// Read by name when the line is translated.
    Own,
    /// Accepted without effect.
    Ignored,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: &'static str,
    pub(super) fate: Fate,
    pub(super) help: &'static str,
}

/// Rows: name, kind and default of an option, what becomes of it, and its help.
macro_rules! options {
    ($($name:literal $kind:ident $default:literal $fate:expr => $help:literal),* $(,)?) => {
        &[$(Known {
            name: $name,
            kind: Kind::$kind,
            default: $default,
            fate: $fate,
            help: $help,
        }),*]
    };
}

use Fate::{Ignored, Load, Own};

/// A section of the table, with the words above it in the help.
pub(super) type Section = (&'static str, &'static [Known]);

/// Options that every version and script takes.
pub(super) const GENERAL: &[Section] = &[
    (
        "The run",
        options! {
            "threads" Int "1" Load("connections") => "connections to hold",
            "events" Int "0" Load("events") => "end after so many events; 0: without end",
            "time" Int "10" Load("time") => "end after so many seconds; 0: without end",
            "warmup-time" Int "0" Load("warmup-time") => "seconds to run before measuring",
            "forced-shutdown" Text "off" Own => "seconds after --time to end by force",
            "thread-stack-size" Size "64K" Ignored => "no effect: no such threads",
            "thread-init-timeout" Int "30" Ignored => "no effect: connecting may take",
            "rate" Double "0" Own => "events each second, arriving at random; 0: closed loop",
            "report-interval" Int "0" Load("report-interval") => "seconds between lines",
            "report-checkpoints" List "" Own =>
                "seconds after the start at which to print a whole report",
            "debug" Bool "off" Ignored => "no effect",
            "validate" Bool "off" Ignored => "no effect",
            "help" Bool "off" Own => "print this and end",
            "version" Bool "off" Own => "print the version and end",
            "config-file" Text "" Own => "read options from here, NAME=VALUE each",
            "luajit-cmd" Text "" Ignored => "no effect: scripts run in LuaJIT as it is by default",
        },
    ),
    (
        "Random numbers",
        options! {
            "rand-type" Text "special" Own => "how rows are drawn: see docs/load.md",
            "rand-spec-iter" Int "12" Load("rand-spec-iter") => "numbers in a mean",
            "rand-spec-pct" Int "1" Load("rand-spec-pct") => "percent of special rows",
            "rand-spec-res" Int "75" Load("rand-spec-res") => "percent of special draws",
            "rand-seed" Int "0" Load("rand-seed") => "seed; 0: from the clock",
            "rand-pareto-h" Double "0.2" Load("rand-pareto-h") => "h of pareto",
            "rand-zipfian-exp" Double "0.8" Load("rand-zipfian-exp") => "of zipfian",
        },
    ),
    (
        "Output",
        options! {
            "verbosity" Int "3" Own => "below 3 only what the script prints is on stdout",
            "percentile" Int "95" Load("percentile") => "in the report, 1 to 100; 0: none",
            "histogram" Bool "off" Own => "print a histogram of latencies",
        },
    ),
    (
        "The server",
        options! {
            "db-driver" Text "mysql" Own => "mysql is the only one here",
            "db-ps-mode" Text "auto" Load("db-ps-mode") => "auto or disable",
            "db-debug" Bool "off" Ignored => "no effect",
            "mysql-host" List "localhost" Own => "hosts",
            "mysql-port" List "3306" Own => "ports, used in turn before the next host",
            "mysql-socket" List "" Own => "Unix sockets, used in turn",
            "mysql-user" Text "sbtest" Own => "who logs in",
            "mysql-password" Text "" Own => "with which password",
            "mysql-db" Text "sbtest" Own => "the schema",
            "mysql-ssl" Text "off" Own =>
                "TLS: DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
            "mysql-ssl-ca" Text "" Own =>
                "a file with the authorities that VERIFY_CA and VERIFY_IDENTITY trust",
            "mysql-ssl-cert" Text "" Own => "a file with the certificate to show the server",
            "mysql-ssl-key" Text "" Own => "a file with its key",
            "mysql-ssl-cipher" Text "" Ignored => "no effect",
            "mysql-compression" Bool "off" Own => "compress the protocol",
            "mysql-debug" Bool "off" Ignored => "no effect",
            "mysql-ignore-errors" List "1213,1020,1205" Own => "errors to go on after, or all",
            "mysql-dry-run" Bool "off" Own => "not to be had here",
        },
    ),
];

/// Older names of options of 1.0.
pub(super) const ALIASES: [(&str, &str); 4] = [
    ("num-threads", "threads"),
    ("max-requests", "events"),
    ("max-time", "time"),
    ("tx-rate", "rate"),
];

/// Further options of 0.5.
pub(super) const OLD_GENERAL: &[Known] = options! {
    "rand-init" Bool "off" Own => "no effect: the clock is the default seed",
    "mysql-table-engine" Text "innodb" Load("mysql-storage-engine") => "engine",
    "mysql-engine-trx" Text "auto" Ignored => "no effect",
    "myisam-max-rows" Int "1000000" Ignored => "no effect",
    "mysql-table-options" Text "" Ignored => "no effect",
};

/// Options of the scripts of 1.0.
pub(super) const SCRIPTS: &[Known] = options! {
    "tables" Int "1" Load("tables") => "tables",
    "table-size" Int "10000" Load("table-size") => "rows in each table",
    "range-size" Int "100" Load("range-size") => "rows in a range",
    "point-selects" Int "10" Load("point-selects") => "rows by key in a transaction",
    "simple-ranges" Int "1" Load("simple-ranges") => "plain ranges",
    "sum-ranges" Int "1" Load("sum-ranges") => "summed ranges",
    "order-ranges" Int "1" Load("order-ranges") => "ordered ranges",
    "distinct-ranges" Int "1" Load("distinct-ranges") => "distinct ranges",
    "range-selects" Bool "on" Load("range-selects") => "all ranges, or none",
    "index-updates" Int "1" Load("index-updates") => "updates of the indexed column",
    "non-index-updates" Int "1" Load("non-index-updates") => "updates of the other",
    "delete-inserts" Int "1" Load("delete-inserts") => "rows deleted and inserted again",
    "skip-trx" Bool "off" Load("skip-trx") => "leave BEGIN and COMMIT out",
    "auto-inc" Bool "on" Load("auto-inc") => "keys come from the server",
    "secondary" Bool "off" Load("secondary") => "the key is a plain index",
    "create-secondary" Bool "on" Load("create-secondary") => "index column k",
    "mysql-storage-engine" Text "innodb" Load("mysql-storage-engine") => "engine",
    "create-table-options" Text "" Ignored => "no effect",
    "pgsql-variant" Text "" Ignored => "no effect",
    "reconnect" Int "0" Load("reconnect") => "reconnect after so many events; 0: never",
    "random-points" Int "10" Load("random-points") => "of select_random_points",
    "number-of-ranges" Int "10" Load("number-of-ranges") => "of select_random_ranges",
    "delta" Int "5" Load("delta") => "width of a range of select_random_ranges",
};

/// Options of the scripts of 0.5 that are more than `oltp-` in front of the name of 1.0.
pub(super) const OLD_SCRIPTS: &[Known] = options! {
    "oltp-tables-count" Int "1" Load("tables") => "tables",
    "oltp-read-only" Bool "off" Load("oltp-read-only") => "no writes",
    "oltp-write-only" Bool "off" Load("oltp-write-only") => "no reads",
    "random-points" Int "10" Load("random-points") => "of select_random_points",
    "number-of-ranges" Int "10" Load("number-of-ranges") => "of select_random_ranges",
    "delta" Int "5" Load("delta") => "width of a range of select_random_ranges",
};

fn in_table(table: &[Known], name: &str) -> Option<Known> {
    table.iter().find(|known| known.name == name).copied()
}

/// All options that do not belong to a script.
pub(super) fn all_general(dialect: Dialect) -> impl Iterator<Item = &'static Known> {
    let old: &[Known] = match dialect {
        Dialect::Old => OLD_GENERAL,
        _ => &[],
    };
    GENERAL.iter().flat_map(|(_, table)| *table).chain(old)
}

/// The option of this name, written with `-`, if it does not belong to a script.
pub(super) fn find_general(dialect: Dialect, name: &str) -> Option<Known> {
    all_general(dialect)
        .find(|known| known.name == name)
        .copied()
}

/// The option of this name, written with `-`.
pub(super) fn find(dialect: Dialect, name: &str) -> Option<Known> {
    let general = || find_general(dialect, name);
    match dialect {
        Dialect::Old => general()
            .or_else(|| in_table(OLD_SCRIPTS, name))
            .or_else(|| in_table(SCRIPTS, name.strip_prefix("oltp-")?)),
        _ => general().or_else(|| in_table(SCRIPTS, name)),
    }
}
