//! A configuration of the pool that is being made, and its text.
//!
//! Settings stand in the order in which they were put, below their sections; what somebody has to
//! look at stands in front, as comments. Values are written by the library that reads them.

use std::fmt::Write as _;
use toml::Value;

/// Section of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Top,
    Backend,
    Console,
    Cluster,
    /// The user that was begun last.
    User,
    /// The server that was begun last, of several.
    Server,
}

/// A host and its port, as the pool reads them.
pub(crate) fn with_port(host: &str, port: impl std::fmt::Display) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// A value that is a number. One that TOML cannot write is none that the pool takes either.
pub(crate) fn number(number: u64) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// Settings by their keys.
type Table = Vec<(String, Value)>;

/// A configuration.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    top: Table,
    backend: Table,
    console: Table,
    cluster: Table,
    users: Vec<Table>,
    servers: Vec<Table>,
    notes: Vec<String>,
}

impl Settings {
    /// Begins a user: what is put into [`Section::User`] is its.
    pub(crate) fn begin_user(&mut self) {
        self.users.push(Table::new());
    }

    /// Begins a server of several.
    pub(crate) fn begin_server(&mut self) {
        self.servers.push(Table::new());
    }

    /// Sets a key.
    pub(crate) fn put(&mut self, section: Section, key: &str, value: impl Into<Value>) {
        let table = match section {
            Section::Top => Some(&mut self.top),
            Section::Backend => Some(&mut self.backend),
            Section::Console => Some(&mut self.console),
            Section::Cluster => Some(&mut self.cluster),
            Section::User => self.users.last_mut(),
            Section::Server => self.servers.last_mut(),
        };
        let Some(table) = table else { return };
        table.retain(|(other, _)| other != key);
        table.push((key.to_owned(), value.into()));
    }

    /// True if a key is set, of those that are there once.
    pub(crate) fn has(&self, section: Section, key: &str) -> bool {
        let table = match section {
            Section::Top => &self.top,
            Section::Backend => &self.backend,
            Section::Console => &self.console,
            Section::Cluster => &self.cluster,
            Section::User | Section::Server => return false,
        };
        table.iter().any(|(other, _)| other == key)
    }

    /// Notes what somebody has to look at.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Notes for the reader of the result.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The text of the file.
    pub(crate) fn text(&self, from: &str) -> String {
        let mut text = format!("# Settings of onramp pool, made from {from}.\n");
        if !self.notes.is_empty() {
            text.push_str("# To be looked at:\n");
        }
        for note in &self.notes {
            // What came from the file stays within its line.
            let note = note.replace(char::is_control, " ");
            let _ = writeln!(text, "# - {note}");
        }
        let sections = [
            ("", &self.top),
            ("[backend]\n", &self.backend),
            ("[console]\n", &self.console),
            ("[cluster]\n", &self.cluster),
        ];
        let servers = self.servers.iter().map(|server| ("[[server]]\n", server));
        let users = self.users.iter().map(|user| ("[[user]]\n", user));
        let sections = sections.into_iter().chain(servers).chain(users);
        for (head, table) in sections.filter(|(_, table)| !table.is_empty()) {
            let _ = write!(text, "\n{head}");
            for (key, value) in table {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_toml_reads() {
        let mut settings = Settings::default();
        settings.begin_user();
        settings.put(Section::User, "name", "a\"b\\\n".to_owned());
        settings.put(Section::Top, "groups", number(3));
        settings.put(Section::Top, "groups", number(4));
        settings.put(Section::Top, "listen", vec!["x".to_owned()]);
        settings.put(Section::Backend, "on", true);
        settings.note("one\nevil = 1".into());
        let text = settings.text("here");
        let expected = "# Settings of onramp pool, made from here.\n# To be looked at:\n\
                        # - one evil = 1\n\ngroups = 4\nlisten = [\"x\"]\n\n[backend]\non = true\n\
                        \n[[user]]\n";
        assert!(text.starts_with(expected), "{text}");
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["user"][0]["name"].as_str(), Some("a\"b\\\n"));
        assert!(settings.has(Section::Top, "groups") && !settings.has(Section::Top, "on"));
    }
}
