//! A file of settings, read: which key stands where, and what is wrong with it.
//!
//! The problem: who mistypes a key, or puts it into another table, has to find the place. The
//! mechanism: each value keeps its line and column ([`At`]), and a key that is no setting of its
//! table is compared with those that are, here and in the other tables. What a value means is a
//! matter of its row.
//!
//! Invariant: an error is one sentence, and shows nothing of what may be a password.

use crate::auth::secret::Secret;
use crate::config::mistakes::Mistakes;
use crate::config::row::{At, Keys, Row, Value};
use crate::config::rows::{
    cluster_rows, console_rows, fleet_rows, member_rows, otel_rows, server_rows, tls_rows,
    top_rows, user_rows,
};
use crate::config::{Kind, PAGE, Raw};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key of the whole pool. It was also what a user's `slow_backends_max` was called, so that below
/// [[user]] nobody can tell which is meant.
const BACKENDS_MAX: &str = "backends_max";
const TWO_MEANINGS: &str = "expected above the first line in brackets, where it bounds the pool's \
     connections to the server: move it there; a user's limit on backends that slow readers hold \
     is called slow_backends_max: if that is meant, write it";
/// Names that stand in brackets.
const HEADINGS: [&str; 8] = [
    "backend", "server", "cluster", "fleet", "tls", "console", "otel", "user",
];
/// Names that an error suggests in place of one that is unknown.
const SUGGESTED_MAX: usize = 3;

/// A file that is read.
pub(super) struct File<'a> {
    pub(super) text: &'a str,
    /// Name of its source, in errors.
    pub(super) name: Option<Arc<str>>,
}

impl Raw {
    /// The settings below the heading of this name, of which there is one.
    fn section(&mut self, name: &str) -> Option<(Table, &mut Keys)> {
        match name {
            "backend" => Some((Table::Server, &mut self.server)),
            "cluster" => Some((Table::Cluster, &mut self.cluster)),
            "fleet" => Some((Table::Fleet, &mut self.fleet)),
            "tls" => Some((Table::Tls, &mut self.tls)),
            "console" => Some((Table::Console, &mut self.console)),
            "otel" => Some((Table::Otel, &mut self.otel)),
            _ => None,
        }
    }
}

type Entry<'t, 'a> = (
    &'t Spanned<std::borrow::Cow<'a, str>>,
    &'t Spanned<DeValue<'a>>,
);

impl File<'_> {
    /// Everything that is written in it and can be used by itself; what cannot is noted. `None`: it
    /// is no TOML.
    pub(super) fn read(&self, mistakes: &mut Mistakes) -> Option<Raw> {
        let table = DeTable::parse(self.text).map_err(|error| self.syntax_error(&error));
        let table = mistakes.note(table)?;
        let mut raw = Raw::default();
        for (key, value) in in_order(table.get_ref()) {
            let at = self.at(key.span().start);
            let name = key.get_ref().as_ref();
            if let Some((table, keys)) = raw.section(name) {
                // The mode alone.
                if let (Table::Tls, DeValue::String(mode)) = (table, value.get_ref())
                    && let Some(row) = table.rows().find(|row| row.key == "mode")
                {
                    let at = self.at(value.span().start);
                    keys.set(row.key, Value::Text(mode.to_string()), at);
                    continue;
                }
                let DeValue::Table(entries) = value.get_ref() else {
                    let why = format!("expected [{name}] and below it its settings");
                    mistakes.add(at.error(name, &why));
                    continue;
                };
                *keys = self.keys(&format!("{name}."), table, entries, mistakes);
                keys.at = Some(at);
                continue;
            }
            let (of, list) = match name {
                "user" => (Table::User, &mut raw.users),
                "server" => (Table::Member, &mut raw.members),
                _ => {
                    mistakes.note(self.entry(&mut raw.top, Table::Pool, (key, value)));
                    continue;
                }
            };
            let tables = value.get_ref().as_array().map(|all| all.iter());
            let mut tables = tables.into_iter().flatten().peekable();
            if tables.peek().is_none() {
                mistakes.add(at.error(name, &expected_tables(name)));
            }
            for one in tables {
                let DeValue::Table(table) = one.get_ref() else {
                    mistakes.add(at.error(name, &expected_tables(name)));
                    break;
                };
                let mut keys = self.keys(&prefix_of(name, table), of, table, mistakes);
                keys.at = Some(self.at(one.span().start));
                list.push(keys);
            }
        }
        Some(raw)
    }

    fn keys(
        &self,
        prefix: &str,
        table: Table,
        entries: &DeTable<'_>,
        mistakes: &mut Mistakes,
    ) -> Keys {
        let mut keys = Keys::of(prefix);
        for entry in in_order(entries) {
            mistakes.note(self.entry(&mut keys, table, entry));
        }
        keys
    }

    /// Takes one key and its value.
    fn entry(&self, keys: &mut Keys, table: Table, entry: Entry<'_, '_>) -> Result<(), String> {
        let (key, value) = entry;
        let at = self.at(value.span().start);
        let name = key.get_ref().as_ref();
        if (table, name) == (Table::User, BACKENDS_MAX) {
            let at = self.at(key.span().start);
            return Err(at.error(&keys.name_of(name), TWO_MEANINGS));
        }
        let Some(row) = table.rows().find(|row| row.key == name) else {
            let at = self.at(key.span().start);
            return Err(format!("{at}: {}", unknown(table, name)));
        };
        let value =
            written(row, value.get_ref()).map_err(|why| at.error(&keys.name_of(row.key), &why))?;
        keys.set(row.key, value, at);
        Ok(())
    }

    /// The place of this byte.
    fn at(&self, byte: usize) -> At {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        At::Line {
            file: self.name.clone(),
            number: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }

    /// Message of the parser on one line: without the line of the file that it would show, which
    /// may hold a password, and without the value of a key for one.
    fn syntax_error(&self, error: &toml::de::Error) -> String {
        let message = error.message().replace('\n', " ");
        let Some(span) = error.span() else {
            return match &self.name {
                Some(name) => format!("{name}: {message}"),
                None => message,
            };
        };
        let at = self.at(span.start);
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = self.text.lines().nth(before.matches('\n').count());
        let key = line.and_then(|line| Some(line.split_once('=')?.0.trim()));
        match key {
            Some(key) if key.contains("password") => at.error(key, EXPECTED_PASSWORD),
            Some(key) if !key.is_empty() => at.error(key, &message),
            _ => format!("{at}: {message}"),
        }
    }
}

fn expected_tables(name: &str) -> String {
    format!("expected [[{name}]], one for each, and below it its settings")
}

const EXPECTED_PASSWORD: &str =
    "expected a text in quotes, each key once (what stands there is not shown)";

/// The entries of a table as they stand in the file, so that the first mistake is reported.
fn in_order<'t, 'a>(table: &'t DeTable<'a>) -> Vec<Entry<'t, 'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Prefix of a key in errors about a user or a server.
fn prefix_of(kind: &str, table: &DeTable<'_>) -> String {
    let name = table.get("name").and_then(|name| name.get_ref().as_str());
    match name {
        Some(name) => format!("{kind} '{}': ", name.escape_debug()),
        None => format!("{kind}: "),
    }
}

/// A value of the file, of the row's type.
fn written(row: &Row, value: &DeValue<'_>) -> Result<Value, String> {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let found = match (row.kind, value) {
        (Kind::Number { .. }, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(Value::Number)
        }
        (Kind::Number { .. }, DeValue::String(text)) if row.is_word(text) => {
            Some(Value::Text(text.to_string()))
        }
        (Kind::Switch, DeValue::Boolean(on)) => Some(Value::Switch(*on)),
        (Kind::OneOf(_) | Kind::Text(_), value) => text(value).map(Value::Text),
        (Kind::List(_), DeValue::String(text)) => Some(Value::List(vec![text.to_string()])),
        (Kind::List(_), DeValue::Array(items)) => {
            let items: Option<Vec<String>> = items.iter().map(|i| text(i.get_ref())).collect();
            items.map(Value::List)
        }
        (Kind::Password | Kind::Passwords, DeValue::String(text)) => {
            Some(Value::Secret(Secret::from(text.as_ref())))
        }
        (Kind::Passwords, DeValue::Array(items)) => {
            let secret = |text: &str| Secret::from(text);
            let secrets: Option<Vec<Secret>> = (items.iter())
                .map(|item| item.get_ref().as_str().map(secret))
                .collect();
            secrets.map(Value::Secrets)
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let form = match row.kind {
            Kind::Password | Kind::Passwords => return EXPECTED_PASSWORD.to_owned(),
            Kind::Text(_) | Kind::OneOf(_) => ", as a text in quotes",
            Kind::List(_) => " in quotes, as [\"...\", \"...\"]",
            Kind::Number { .. } | Kind::Switch => "",
        };
        format!("expected {}{form}, got {}", row.expected(), shown(value))
    })
}

/// A value of the wrong type, as an error shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", text.escape_debug()),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Pool,
    Server,
    Member,
    Cluster,
    Fleet,
    Tls,
    Console,
    Otel,
    User,
}

impl Table {
    pub(super) fn rows(self) -> Box<dyn Iterator<Item = &'static Row>> {
        match self {
            Table::Pool => Box::new(top_rows()),
            Table::Server => Box::new(server_rows()),
            Table::Member => Box::new(member_rows()),
            Table::Cluster => Box::new(cluster_rows()),
            Table::Fleet => Box::new(fleet_rows()),
            Table::Tls => Box::new(tls_rows()),
            Table::Console => Box::new(console_rows()),
            Table::Otel => Box::new(otel_rows()),
            Table::User => Box::new(user_rows()),
        }
    }

    fn place(self) -> &'static str {
        match self {
            Table::Pool => "above the first line in brackets",
            Table::Server => "below [backend]",
            Table::Member => "below [[server]]",
            Table::Cluster => "below [cluster]",
            Table::Fleet => "below [fleet]",
            Table::Tls => "below [tls]",
            Table::Console => "below [console]",
            Table::Otel => "below [otel]",
            Table::User => "below [[user]]",
        }
    }
}

/// An error about a key that is no setting of this table: where it belongs, or what is meant.
fn unknown(table: Table, name: &str) -> String {
    let others = [
        Table::Pool,
        Table::Server,
        Table::Cluster,
        Table::Tls,
        Table::Console,
        Table::Otel,
        Table::User,
        Table::Member,
    ]
    .into_iter();
    let elsewhere = others.filter(|other| *other != table).find(|other| {
        let has = other.rows().any(|row| row.key == name);
        has || *other == Table::Pool && HEADINGS.contains(&name)
    });
    let name_shown = name.escape_debug();
    if let Some(other) = elsewhere {
        return format!(
            "'{name_shown}' is no setting here; it stands {}; {PAGE} describes every setting",
            other.place()
        );
    }
    let mut known: Vec<&str> = table.rows().map(|row| row.key).collect();
    if table == Table::Pool {
        known.extend(HEADINGS);
    }
    match nearest(name, &known).split_last() {
        None => format!("unknown setting '{name_shown}'; {PAGE} describes every setting"),
        Some((last, [])) => format!(
            "unknown setting '{name_shown}'; is {last} meant? {PAGE} describes every setting"
        ),
        Some((last, others)) => format!(
            "unknown setting '{name_shown}'; is {} or {last} meant? {PAGE} describes every setting",
            others.join(", ")
        ),
    }
}

/// The known names that are most like this one, the order of their words apart.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let sorted = |name: &str| {
        let mut words: Vec<&str> = name.split(['_', '-', '.']).collect();
        words.sort_unstable();
        words.join("_")
    };
    let name = name.to_ascii_lowercase();
    let like = |other: &&'a str| {
        let likeness = strsim::jaro_winkler(&name, other);
        let likeness = likeness.max(strsim::normalized_damerau_levenshtein(
            &sorted(&name),
            &sorted(other),
        ));
        (likeness, *other)
    };
    let mut all: Vec<(f64, &str)> = known.iter().map(like).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let best = all.first().map_or(0.0, |(likeness, _)| *likeness);
    let near = |&(likeness, name)| (likeness >= 0.75 && likeness + 0.05 >= best).then_some(name);
    all.iter().filter_map(near).take(SUGGESTED_MAX).collect()
}
