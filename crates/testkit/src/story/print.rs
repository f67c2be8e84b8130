//! Writes stories.
//!
//! The oracle's findings become texts that [`super::parse`] reads as the same steps. Names of
//! clients are letters in the order in which they speak first; bytes that a line cannot hold are
//! escaped, and long lines are broken where there is a single space.

use super::AND_THEN;
use crate::oracle::{Act, Kill, Login, Step};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wire::capabilities as cap;

/// Columns of a line at most, where it can be broken.
const COLUMNS_MAX: usize = 100;

/// Capabilities by their names.
const FLAGS: [(&str, u32); 15] = [
    ("LONG_PASSWORD", cap::LONG_PASSWORD),
    ("FOUND_ROWS", cap::FOUND_ROWS),
    ("NO_SCHEMA", cap::NO_SCHEMA),
    ("COMPRESS", cap::COMPRESS),
    ("LOCAL_FILES", cap::LOCAL_FILES),
    ("IGNORE_SPACE", cap::IGNORE_SPACE),
    ("INTERACTIVE", cap::INTERACTIVE),
    ("MULTI_STATEMENTS", cap::MULTI_STATEMENTS),
    ("MULTI_RESULTS", cap::MULTI_RESULTS),
    ("PS_MULTI_RESULTS", cap::PS_MULTI_RESULTS),
    ("PLUGIN_AUTH_LENENC_DATA", cap::PLUGIN_AUTH_LENENC_DATA),
    ("SESSION_TRACK", cap::SESSION_TRACK),
    ("DEPRECATE_EOF", cap::DEPRECATE_EOF),
    ("ZSTD", cap::ZSTD),
    ("QUERY_ATTRIBUTES", cap::QUERY_ATTRIBUTES),
];

/// Names of flags, or their number.
fn names_of(flags: u32) -> String {
    let mut left = flags;
    let mut names: Vec<String> = Vec::new();
    for (name, flag) in FLAGS {
        if flags & flag != 0 {
            left &= !flag;
            names.push(name.to_owned());
        }
    }
    if left != 0 {
        names.push(format!("{left:#x}"));
    }
    names.join("+")
}

/// The flags of a text that [`names_of`] has made.
pub(super) fn flags_of(text: &str) -> Result<u32, String> {
    let mut flags = 0;
    for name in text.split('+') {
        let known = FLAGS.iter().find(|(known, _)| *known == name);
        let number = || u32::from_str_radix(name.strip_prefix("0x")?, 16).ok();
        let flag = known.map(|(_, flag)| *flag).or_else(number);
        flags |= flag.ok_or_else(|| format!("no flag {name}"))?;
    }
    Ok(flags)
}

/// A story as text; `setup` is the SQL of a client that makes what the others need.
#[must_use]
pub fn print(name: &str, head: &str, setup: &[String], steps: &[Step]) -> String {
    let mut out = format!("story {name}\n{head}");
    let mut printer = Printer {
        clients: BTreeMap::new(),
        out: String::new(),
    };
    for sql in setup {
        printer.line("setup", &sql_text(sql));
    }
    if !setup.is_empty() {
        printer.line("setup", " leaves");
    }
    for step in steps {
        printer.step(step);
    }
    out.push_str(&printer.out);
    out
}

struct Printer {
    /// Names of the clients, in the order in which they speak first.
    clients: BTreeMap<usize, String>,
    out: String,
}

impl Printer {
    fn line(&mut self, who: &str, text: &str) {
        let mut rest = &format!("{who}{text}")[..];
        let is_break = |rest: &str, at: usize| {
            let around = rest.get(at - 1..at + 2);
            around.is_some_and(|around| around.starts_with(|c: char| !" \\".contains(c)))
                && !rest[at + 1..].starts_with([' ', '\\'])
        };
        while rest.chars().count() > COLUMNS_MAX {
            let most = rest.floor_char_boundary(COLUMNS_MAX - 2);
            let places = rest[..most].rmatch_indices(' ').map(|(at, _)| at);
            let Some(at) = places.filter(|at| *at > 20).find(|at| is_break(rest, *at)) else {
                break;
            };
            let _ = writeln!(self.out, "{} \\", &rest[..at]);
            let _ = write!(self.out, "    ");
            rest = &rest[at + 1..];
        }
        let _ = writeln!(self.out, "{rest}");
    }

    fn name(&mut self, who: usize) -> String {
        let count = u8::try_from(self.clients.len()).unwrap_or(u8::MAX);
        let name = match count {
            0..26 => char::from(b'a' + count).to_string(),
            _ => format!("c{count}"),
        };
        self.clients.entry(who).or_insert(name).clone()
    }

    fn step(&mut self, step: &Step) {
        // Who is named first joins by that.
        let is_new = !self.clients.contains_key(&step.who);
        if is_new && step.act == Act::Join(Login::usual()) {
            return;
        }
        if step.late {
            self.out.push_str("finish\n");
        }
        if let Act::Server(sql) = &step.act {
            return self.line("server", &format!(": {sql}"));
        }
        if let Act::AtOnce(all) = &step.act {
            let who = self.name(step.who);
            self.line(&who, " writes");
            for (command, text) in all {
                self.line("command", &format!(" {command:#04x}: {}", bytes(text)));
            }
            self.out.push_str("end\n");
            return;
        }
        if let Act::Together(all) = &step.act {
            self.out.push_str("together\n");
            for (who, sql) in all {
                let who = self.name(*who);
                self.line(&who, &format!(": {sql}"));
            }
            self.out.push_str("end\n");
            return;
        }
        let who = self.name(step.who);
        match &step.act {
            Act::Blocked(sql, steps) => {
                self.line(&who, &format!(" waits: {sql}"));
                for step in steps {
                    self.step(step);
                }
                self.line(&who, " goes on");
            }
            Act::Kill(whom, kill) => {
                let whom = self.name(*whom);
                let kill = match kill {
                    Kill::Query => "query",
                    Kill::Connection => "connection",
                    Kill::Command => "command",
                };
                self.line(&who, &format!(" kills {whom} {kill}"));
            }
            act => self.line(&who, &text_of(act)),
        }
    }
}

/// SQL behind a client's name.
fn sql_text(sql: &str) -> String {
    let is_plain = sql.trim() == sql
        && !sql.chars().any(char::is_control)
        && ![" => ", AND_THEN].iter().any(|mark| sql.contains(mark))
        && !sql.ends_with('\\')
        && !sql.contains('$');
    match is_plain {
        true => format!(": {sql}").trim_end().to_owned(),
        false => format!(" bytes: {}", bytes(sql.as_bytes())),
    }
}

fn login(login: &Login) -> String {
    let mut text = String::new();
    match &login.into {
        Some(schema) => drop(write!(text, " schema '{schema}'")),
        None if !login.schema => text.push_str(" no_schema"),
        None => {}
    }
    if login.other {
        text.push_str(" user other");
    }
    if let Some(user) = &login.user {
        let _ = write!(text, " user {user}");
    }
    if let Some(password) = &login.password {
        let _ = write!(text, " password {password}");
    }
    if let Some(collation) = login.collation {
        let _ = write!(text, " collation {collation}");
    }
    for (word, flags) in [
        ("with", login.with),
        ("without", login.without),
        ("extended", login.extended),
    ] {
        if flags != 0 {
            let _ = write!(text, " {word} {}", names_of(flags));
        }
    }
    text
}

fn values(values: &[Option<String>]) -> String {
    let one = |value: &Option<String>| match value {
        Some(text) => format!("'{}'", bytes(text.as_bytes())),
        None => "NULL".into(),
    };
    let all: Vec<String> = values.iter().map(one).collect();
    format!("({})", all.join(", "))
}

/// Bytes with escapes, such that nothing in them means anything to a reader of stories.
fn bytes(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    let text = text.replace('$', "\\x24").replace(" => ", "\\x20=> ");
    match (text.strip_prefix(' '), text.strip_suffix(' ')) {
        (Some(rest), _) => format!("\\x20{rest}"),
        (None, Some(rest)) => format!("{rest}\\x20"),
        (None, None) => text,
    }
}

fn text_of(act: &Act) -> String {
    match act {
        Act::Join(account) => format!(" joins{}", login(account)),
        Act::ChangeUser(account) => format!(" becomes{}", login(account)),
        Act::Leave => " leaves".into(),
        Act::Vanish => " vanishes".into(),
        Act::HearOut => " ends".into(),
        Act::Sql(sql) => sql_text(sql),
        Act::Bytes(text) => format!(" bytes: {}", bytes(text)),
        Act::Attribute(value) => format!(" attribute: {value}"),
        Act::InitDb(name) => format!(" init_db: {name}"),
        Act::Ping => " ping".into(),
        Act::Statistics => " statistics".into(),
        Act::Reset => " reset".into(),
        Act::MultiStatements(on) => format!(" multi {}", if *on { "on" } else { "off" }),
        Act::Prepare(slot, sql) => format!(" prepare p{slot}: {sql}"),
        Act::Execute(slot, params, false) => format!(" execute p{slot} {}", values(params)),
        Act::Execute(slot, params, true) => format!(" open p{slot} {}", values(params)),
        Act::Again(slot, params) => format!(" again p{slot} {}", values(params)),
        Act::Cut(slot) => format!(" cut p{slot}"),
        Act::Bulk(slot, rows) => {
            let rows: Vec<String> = rows.iter().map(|row| values(row)).collect();
            format!(" bulk p{slot} {}", rows.join(" "))
        }
        Act::Fetch(slot, rows) => format!(" fetch p{slot} {rows}"),
        Act::LongData(slot, param, data) => {
            format!(" long p{slot} {param}: {}", bytes(data.as_bytes()))
        }
        Act::ResetStatement(slot) => format!(" reset p{slot}"),
        Act::Close(slot) => format!(" close p{slot}"),
        Act::About(slot, command, more) => {
            format!(" sends p{slot} {command:#04x}: {}", bytes(more))
        }
        Act::Command(command, more) => format!(" command {command:#04x}: {}", bytes(more)),
        Act::Pinned(words) => format!(" is {words}"),
        Act::Together(_) | Act::AtOnce(_) | Act::Blocked(..) | Act::Kill(..) | Act::Server(_) => {
            unreachable!("written by its own")
        }
    }
}
