//! Options of the scripts: how many statements of each kind an event has, and over what tables.
//!
//! Names and defaults are sysbench's; each may be written with `_` for `-`.

use super::Workload;
use clap::{ArgAction, Args, ValueEnum};
use sql::classify::{Marks, Verb, classify};
use sql::elsewhere::{Tie, tie};
use sql::lex::LexMode;

/// Statements in an event's script, at most: what fits an event's step.
const STEPS_MAX: u64 = 60_000;

/// Use of prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PsMode {
    /// Prepare what sysbench prepares: once a connection, when first needed
    Auto,
    /// None: all are sent as text
    Disable,
}

/// A statement of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnStatement {
    pub(super) text: String,
    /// Times that an event has it.
    pub(super) times: u16,
    /// Number of its values that are random rows.
    pub(super) rows: usize,
}

impl OwnStatement {
    /// True if it only reads, so that any server with the data may run it; `None` if its text does
    /// not say it for certain, or it is about its session.
    pub fn reads(&self) -> Option<bool> {
        let put = |text: &str, sign: char| {
            let text = text.replace(&format!("{sign}{sign}"), "\0");
            text.replace(sign, "1").replace('\0', &sign.to_string())
        };
        let text = put(&put(&self.text, '#'), '?');
        let statement = classify(text.as_bytes(), LexMode::default());
        let locks = tie(text.as_bytes(), LexMode::default()) == Some(Tie::Locks);
        match statement.verb {
            _ if statement.multi => None,
            Verb::Select if statement.writes || locks => Some(false),
            Verb::Select if statement.marks.contains(Marks::INTO) => Some(false),
            Verb::Select => (statement.asks_nothing() && !statement.user_variables).then_some(true),
            Verb::Show => Some(true),
            Verb::Insert | Verb::Update | Verb::Delete | Verb::Replace => Some(false),
            Verb::Load | Verb::Ddl | Verb::Call | Verb::Do => Some(false),
            _ => None,
        }
    }

    /// Text as it is written down.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads `SQL` or `N*SQL`.
    fn read(words: &str) -> Result<OwnStatement, String> {
        let (times, text) = match words.split_once('*') {
            Some((times, text)) if times.bytes().all(|b| b.is_ascii_digit()) => {
                let read = times.parse().ok().filter(|times| *times > 0);
                (read.ok_or("expected 1 to 65,535 in front of the *")?, text)
            }
            _ => (1, words),
        };
        if text.trim().is_empty() {
            return Err("expected a statement, as SELECT 1 or 10*SELECT 1".to_owned());
        }
        let signs = text.replace("??", "");
        Ok(OwnStatement {
            text: text.trim().to_owned(),
            times,
            rows: signs.matches('?').count(),
        })
    }
}

/// Options of the scripts, as typed.
#[derive(Args, Clone, Debug)]
pub struct ScriptArgs {
    /// Prepare statements, each in each connection when it is first needed
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PsMode::Disable)]
    pub db_ps_mode: PsMode,

    /// Rows in a range, at least 1
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub range_size: u32,

    /// Rows by key in a transaction
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub point_selects: u16,

    /// Ranges in a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub simple_ranges: u16,

    /// Ranges that are summed, in a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub sum_ranges: u16,

    /// Ranges that are ordered, in a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub order_ranges: u16,

    /// Ranges of distinct values, in a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub distinct_ranges: u16,

    /// All four kinds of ranges, or none
    #[arg(long, value_name = "on|off", value_parser = on_off, action = ArgAction::Set,
          default_value = "on", default_missing_value = "on", num_args = 0..=1,
          require_equals = true)]
    pub range_selects: bool,

    /// Updates of the indexed column, in an event
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub index_updates: u16,

    /// Updates of the column without index, in an event
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub non_index_updates: u16,

    /// Rows deleted and inserted again, in a transaction
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub delete_inserts: u16,

    /// Leave BEGIN and COMMIT out
    #[arg(long, alias = "skip_trx", value_name = "on|off", value_parser = on_off,
          action = ArgAction::Set, default_value = "off", default_missing_value = "on",
          num_args = 0..=1, require_equals = true)]
    pub skip_trx: bool,

    /// Close a connection in good order after so many events and reopen it; 0: never
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub reconnect: u32,

    /// Rows of select_random_points, at least 1
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub random_points: u16,

    /// Ranges of select_random_ranges, at least 1
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=5_000))]
    pub number_of_ranges: u16,

    /// Width of a range of select_random_ranges
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=2_147_483_647))]
    pub delta: u32,

    /// New rows get their key from the server, or from here
    #[arg(long, value_name = "on|off", value_parser = on_off, action = ArgAction::Set,
          default_value = "on", default_missing_value = "on", num_args = 0..=1,
          require_equals = true)]
    pub auto_inc: bool,

    /// prepare makes the key a plain index instead of the primary key
    #[arg(long, value_name = "on|off", value_parser = on_off, action = ArgAction::Set,
          default_value = "off", default_missing_value = "on", num_args = 0..=1,
          require_equals = true)]
    pub secondary: bool,

    /// prepare makes an index on column k
    #[arg(long, value_name = "on|off", value_parser = on_off, action = ArgAction::Set,
          default_value = "on", default_missing_value = "on", num_args = 0..=1,
          require_equals = true)]
    pub create_secondary: bool,

    /// The engine of the tables that prepare makes
    #[arg(long, value_name = "NAME", default_value = "innodb", value_parser = engine)]
    pub mysql_storage_engine: String,

    /// A statement of the workload statements, in front of it how often an event has it: SQL or
    /// N*SQL. ? is the number of a random row and # that of a random table; ?? and ## are
    /// the signs themselves. Several are run in the order given
    #[arg(long = "statement", value_name = "N*SQL", value_parser = OwnStatement::read)]
    pub statements: Vec<OwnStatement>,

    /// oltp only: no writes
    #[arg(long, value_parser = on_off, action = ArgAction::Set, default_value = "off",
          default_missing_value = "on", num_args = 0..=1, require_equals = true, hide = true)]
    pub oltp_read_only: bool,

    /// oltp only: no reads
    #[arg(long, value_parser = on_off, action = ArgAction::Set, default_value = "off",
          default_missing_value = "on", num_args = 0..=1, require_equals = true, hide = true)]
    pub oltp_write_only: bool,
}

/// A switch as sysbench takes it.
pub(crate) fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

/// Checks an engine's name, which goes into a statement's text.
fn engine(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text {
        "" => Err("expected an engine's name".to_owned()),
        name if name.chars().all(is_name) => Ok(name.to_owned()),
        _ => Err("expected an engine's name of letters, digits and _".to_owned()),
    }
}

impl ScriptArgs {
    /// Refuses options that contradict each other, or the size of the tables where that matters.
    ///
    /// # Errors
    /// A sentence that says which and what to do.
    pub fn check(&self, workload: Workload, table_size: Option<u32>) -> Result<(), String> {
        use Workload::*;
        let has_ranges = matches!(workload, ReadOnly | ReadWrite | OldOltp) && self.range_selects;
        if let Some(rows) = table_size.filter(|rows| has_ranges && *rows < self.range_size) {
            return Err(format!(
                "--range-size {} is more than --table-size {rows}",
                self.range_size
            ));
        }
        if (workload == Statements) == self.statements.is_empty() {
            return Err(match workload {
                Statements => "the workload `statements` needs a --statement".to_owned(),
                _ => "--statement is for the workload `statements` alone".to_owned(),
            });
        }
        let own = self.statements.iter().map(|own| u64::from(own.times));
        let steps: u64 = [
            self.point_selects,
            self.simple_ranges,
            self.sum_ranges,
            self.order_ranges,
            self.distinct_ranges,
            self.index_updates,
            self.non_index_updates,
            self.delete_inserts,
            self.delete_inserts,
        ]
        .map(u64::from)
        .into_iter()
        .chain(own)
        .sum();
        if steps > STEPS_MAX {
            return Err(format!(
                "{steps} statements in an event are more than {STEPS_MAX}; make the transaction \
                 shorter"
            ));
        }
        Ok(())
    }
}
