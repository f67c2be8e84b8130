//! docs/pool/settings.md, made from the table of settings and compared with what is committed.
//!
//! `ONRAMP_WRITE=1 cargo test -p pool settings_page` rewrites it.

use super::PAGE;
use crate::config::generated_page::check;
use crate::config::row::{Absent, Kind, Row, grouped};
use crate::config::rows::{
    LIMIT_ROWS, USER_ROWS, cluster_rows, console_rows, fleet_rows, member_rows, otel_rows,
    server_rows, tls_rows, top_rows,
};
use std::collections::BTreeSet;

/// The longest line of a paragraph.
const COLUMNS: usize = 100;
/// The headings in their order.
const SECTIONS: [&str; 13] = [
    "Listening",
    "Accounts",
    "TLS",
    "Watching",
    "The server",
    "Several servers",
    "Several pools",
    "Scheduling",
    "Limits on clients",
    "Limits by address",
    "Memory and slow clients",
    "Stored code",
    "Changes of these settings",
];
const HEAD: &str = "\
# Settings

<!-- Made from crates/pool/src/config/rows.rs; do not edit.
     ONRAMP_WRITE=1 cargo test -p pool settings_page -->

Write settings into a file and start the pool with `onramp pool --config FILE`:

```toml
listen = [\"127.0.0.1:6033\"]
backends_max = 64

[backend]                     # backend.address and so on
address = \"127.0.0.1:3306\"

[[user]]                      # as many as you need
name = \"app\"
password_file = \"/etc/onramp/app.password\"
```

A setting with an option can also be given on the command line, which overrides the file. \
Settings marked
*start* are read at start only; the others change with a [reload](signals-and-log.md#reload). \
Files of
certificates and keys are PEM. A setting that is wrong is reported with its line, and the pool \
does not start.
";

/// A row with the heading under which it stands and its key as the page shows it.
struct Entry {
    section: &'static str,
    key: String,
    row: &'static Row,
}

/// Entries that are not a user's alone, section by section.
fn entries() -> Vec<Entry> {
    let of = |prefix: &str, row: &'static Row| Entry {
        section: row.for_all.unwrap_or(row.section),
        key: format!("{prefix}{}", row.key),
        row,
    };
    let server = server_rows().map(|row| of("backend.", row));
    let members = member_rows().filter(|row| row.for_all.is_none());
    let members = members.map(|row| of("server.", row));
    let cluster = cluster_rows().map(|row| of("cluster.", row));
    let fleet = fleet_rows().map(|row| of("fleet.", row));
    let tls = tls_rows().map(|row| of("tls.", row));
    let console = console_rows().map(|row| of("console.", row));
    let otel = otel_rows().map(|row| of("otel.", row));
    let top = top_rows().map(|row| of("", row));
    let mut all: Vec<Entry> = top
        .chain(server)
        .chain(members)
        .chain(cluster)
        .chain(fleet)
        .chain(tls)
        .chain(console)
        .chain(otel)
        .collect();
    for Entry { section, key, .. } in &all {
        assert!(SECTIONS.contains(section), "no heading for {key}");
    }
    // What is needed comes first.
    all.sort_by_key(|Entry { section, row, .. }| {
        let is_needed = matches!(row.default, Absent::Needed(_));
        (SECTIONS.iter().position(|name| name == section), !is_needed)
    });
    all
}

fn min_shown(row: &Row) -> String {
    let Kind::Number { min, .. } = row.kind else {
        return String::new();
    };
    match (row.min_words, row.zero) {
        (Some(words), _) => words.into(),
        (None, None) => grouped(min),
        (None, Some(means)) if min <= 1 => format!("0: {means}"),
        (None, Some(means)) => format!("{}; 0: {means}", grouped(min)),
    }
}

/// Form of the value: its unit, its names or its form.
fn form_shown(row: &Row) -> String {
    match row.kind {
        Kind::Number { unit, .. } => match row.word {
            Some((word, means)) => format!("{}, or `\"{word}\"`: {means}", unit.name()),
            None => unit.name().into(),
        },
        Kind::Switch => "true or false".into(),
        Kind::OneOf(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        }
        Kind::Text(form) => form.into(),
        Kind::List(form) => format!("list of {form}"),
        Kind::Password => "a password".into(),
        Kind::Passwords => "a password, or two".into(),
    }
}

fn default_shown(row: &Row) -> String {
    match row.default {
        Absent::Text(text) => format!("`{text}`"),
        _ => row.default_shown(),
    }
}

/// Form, bounds, default and option, as the description shows them behind the key.
fn facts(entry: &Entry) -> String {
    let row = entry.row;
    let bounds = match (row.kind, min_shown(row).as_str()) {
        (Kind::Number { max, .. }, min) => match min.split_once("; ") {
            Some((min, zero)) => format!(", {min} to {}; {zero}", grouped(max)),
            None if min.contains(':') => format!(", up to {}; {min}", grouped(max)),
            None => format!(", {min} to {}", grouped(max)),
        },
        _ => String::new(),
    };
    let default = match (row.default, default_shown(row)) {
        (Absent::Needed(_), _) => "; required".into(),
        (_, default) => format!("; default {default}"),
    };
    let option = match (row.option, entry.key.as_str()) {
        (Some(_), _) => format!("; `--{}`", row.option_name()),
        (None, "backend.address") => "; `--backend`".into(),
        _ => String::new(),
    };
    let start = if row.is_fixed { "; *start*" } else { "" };
    let form = form_shown(row).replace("the path of a ", "");
    format!("{form}{bounds}{default}{option}{start}")
}

/// True if the row is another way to give the password above it.
fn is_variant(row: &Row) -> bool {
    row.key.ends_with("password_file") || row.key.ends_with("password_env")
}

/// The key, in front of the keys of other ways to give it if it is a password.
fn keys_shown(key: &str) -> String {
    match key.ends_with("password") {
        true => format!("`{key}`, `{key}_file`, `{key}_env`"),
        false => format!("`{key}`"),
    }
}

/// The blocks of a description: paragraphs and items of lists.
fn blocks(text: &str) -> Vec<(bool, String)> {
    let mut blocks: Vec<(bool, String)> = Vec::new();
    let mut goes_on = false;
    for line in text.lines().map(str::trim) {
        let item = line.strip_prefix("- ");
        if line.is_empty() {
            goes_on = false;
        } else if goes_on && item.is_none() {
            let (_, block) = blocks.last_mut().expect("a block that goes on");
            block.push(' ');
            block.push_str(line);
        } else {
            blocks.push((item.is_some(), item.unwrap_or(line).into()));
            goes_on = true;
        }
    }
    blocks
}

/// A block with `first` in front of it and its other lines indented.
fn filled(first: &str, indent: usize, text: &str) -> String {
    let mut page = String::from(first);
    let mut column = first.chars().count();
    for (at, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > COLUMNS {
            page.push('\n');
            page.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            page.push(' ');
            column += 1;
        }
        page.push_str(word);
        column += length;
    }
    page + "\n"
}

fn description(entry: &Entry) -> String {
    let mut page = String::new();
    let mut was_item = false;
    let mut blocks = blocks(entry.row.text);
    if let [(false, first), (false, second), ..] = &mut blocks[..] {
        // The first paragraph is one of its own for the help only.
        *second = format!("{first} {second}");
        blocks.remove(0);
    }
    for (at, (is_item, text)) in blocks.iter().enumerate() {
        if at == 0 {
            let head = format!("- **{}** ({}): ", keys_shown(&entry.key), facts(entry));
            page += &filled("", 2, &format!("{head}{text}"));
        } else if *is_item {
            let gap = if was_item { "" } else { "\n" };
            page += gap;
            page += &filled("  - ", 4, text);
        } else {
            page += "\n";
            page += &filled("  ", 2, text);
        }
        was_item = *is_item;
    }
    page
}

fn page() -> String {
    let entries = entries();
    let mut page = String::from(HEAD);
    for section in SECTIONS {
        page += &format!("\n## {section}\n\n");
        page.extend(
            entries
                .iter()
                .filter(|entry| entry.section == section && !is_variant(entry.row))
                .map(description),
        );
    }
    page += "\n## Users\n\nThe keys of each `[[user]]`:\n\n\
             | key | meaning | default |\n|---|---|---|\n";
    let (as_above, own): (Vec<&Row>, Vec<&Row>) = USER_ROWS
        .iter()
        .chain(LIMIT_ROWS)
        .partition(|row| row.for_all.is_some());
    for row in own.into_iter().filter(|row| !is_variant(row)) {
        let text = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let default = match row.default {
            Absent::Needed(_) => "needed".into(),
            _ => default_shown(row),
        };
        let space = if default.is_empty() { "" } else { " " };
        page += &format!("| {} | {text} |{space}{default} |\n", keys_shown(row.key));
    }
    let names: Vec<String> = (as_above.iter().map(|row| format!("`{}`", row.key))).collect();
    page += &format!(
        "| {} | as above, for this user | as above |\n",
        names.join(", ")
    );
    page
}

#[test]
fn the_settings_page_is_what_the_table_says() {
    check(PAGE, "settings_page", &page());
}

#[test]
fn each_row_has_its_own_key_and_a_default_within_its_bounds() {
    for rows in [
        top_rows().collect::<Vec<_>>(),
        server_rows().collect(),
        USER_ROWS.iter().chain(LIMIT_ROWS).collect(),
    ] {
        let keys: BTreeSet<&str> = rows.iter().map(|row| row.key).collect();
        assert_eq!(keys.len(), rows.len(), "a key stands twice");
        for row in rows {
            if let (Kind::Number { min, max, .. }, Absent::Number(default)) =
                (row.kind, row.default)
            {
                let is_zero = default == 0 && row.zero.is_some();
                assert!(is_zero || (min..=max).contains(&default), "{}", row.key);
            }
            if let (Kind::OneOf(names), Absent::Text(default)) = (row.kind, row.default) {
                assert!(names.contains(&default), "{}", row.key);
            }
        }
    }
}
