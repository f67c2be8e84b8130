//! The explanation as text for people, and as JSON for programs.
//!
//! The text answers in the order in which one asks at night: what is it, whose is it, why, how do I
//! see it here, what do I do. Commands stand on lines of their own, to be copied; text is wrapped.

use super::arithmetic::reckon;
use super::catalogue::{Entry, Look};
use super::errno;
use super::live::{Live, Shown};
use super::log::Log;
use super::matching::Explained;
use crate::facts::Facts;
use crate::number::thousands;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Columns of text.
const COLUMNS: usize = 92;
/// Characters of the line that is quoted.
const LINE_CHARS: usize = 300;

/// Text in place of the server's process where none is found.
const NO_SERVER: &str = "no server, or several, on this host; --server-pid PID names it";

/// All explanations as text.
pub(crate) fn text(explained: &[Explained], facts: &Facts) -> String {
    let blocks: Vec<String> = explained.iter().map(|one| block(one, facts)).collect();
    blocks.join(&format!("\n{}\n\n", "-".repeat(COLUMNS)))
}

fn block(explained: &Explained, facts: &Facts) -> String {
    let Some(entry) = explained.entry else {
        return bare_errno(explained);
    };
    let mut out = cases_of_pool(explained, entry);
    let _ = writeln!(out, "{}{}\n", label(explained), entry.title);
    if !explained.line.is_empty() {
        let times = match explained.count {
            1 => String::new(),
            count => format!("{} times, the first: ", thousands(count)),
        };
        let line: String = explained.line.chars().take(LINE_CHARS).collect();
        paragraph(&mut out, 2, &format!("{times}{line}"));
        out.push('\n');
    }
    let _ = writeln!(out, "  at fault: {}\n", entry.fault);
    heading(&mut out, "Why");
    paragraph(&mut out, 4, &entry.cause);
    if let Some(words) = entry
        .arithmetic
        .and_then(|kind| reckon(kind, &explained.clues, facts))
    {
        out.push('\n');
        paragraph(&mut out, 4, &format!("Arithmetic: {words}."));
    }
    if !entry.verify.is_empty() {
        out.push('\n');
        heading(&mut out, "On this host, now");
        looks(&mut out, &entry.verify, facts);
    }
    out.push('\n');
    heading(&mut out, "What to do");
    for remedy in &entry.remedy {
        let _ = writeln!(out, "    {remedy}");
    }
    more(&mut out, explained, entry);
    out
}

/// "1135 (errno 11, EAGAIN): " in front of the title.
fn label(explained: &Explained) -> String {
    let clues = &explained.clues;
    // "Timed out" is no errno where an application waits for itself.
    let is_of_words = |errno: &i32| {
        let covers = explained
            .entry
            .is_some_and(|entry| entry.covers.contains(errno));
        covers && !clues.text.contains(&errno.to_string())
    };
    let system = clues
        .errno
        .filter(|errno| !is_of_words(errno))
        .and_then(|errno| {
            let name = errno::name(errno)?;
            Some(format!("errno {errno}, {name}"))
        });
    match (clues.number, system) {
        (Some(number), Some(system)) => format!("{number} ({system}): "),
        (Some(number), None) => format!("{number}: "),
        (None, Some(system)) => format!("{system}: "),
        (None, None) => String::new(),
    }
}

fn bare_errno(explained: &Explained) -> String {
    let number = explained.clues.errno.unwrap_or_default();
    format!(
        "errno {number}, {}: {}\n\n  An error of the system without a story of its own here. The \
         words around it say\n  which call failed: explain the whole line, in quotes.\n",
        errno::name(number).unwrap_or("?"),
        errno::words(number)
    )
}

fn looks(out: &mut String, looks: &[Look], facts: &Facts) {
    let values: Vec<Option<Shown>> = looks
        .iter()
        .map(|look| look.live.as_ref().and_then(|live| live.shown(facts)))
        .collect();
    let rooms = values.iter().flatten().filter_map(|shown| shown.room);
    let nearest = rooms.clone().min().filter(|_| rooms.count() > 1);
    for (look, value) in looks.iter().zip(values) {
        if let Some(run) = &look.run {
            let _ = writeln!(out, "    $ {run}");
        }
        if let Some(sql) = &look.sql {
            let _ = writeln!(out, "    sql> {sql}");
        }
        let is_nearest = value
            .as_ref()
            .is_some_and(|shown| shown.room.is_some() && shown.room == nearest);
        let mark = if is_nearest { "   <-- the nearest" } else { "" };
        let is_missing = look.live.as_ref().is_some_and(Live::is_of_server);
        let value = match value {
            Some(shown) => Some(shown.text + mark),
            None if is_missing && facts.server_process.is_none() => Some(NO_SERVER.to_owned()),
            None => None,
        };
        let words: Vec<String> = value
            .into_iter()
            .chain(look.means.as_ref().map(|means| format!("({means})")))
            .collect();
        if !words.is_empty() {
            paragraph(out, 8, &words.join(" "));
        }
    }
}

/// Meaning for the pool of a number that it shares with the server. Who asks for the number alone
/// has a pool, so it comes first.
fn cases_of_pool(explained: &Explained, entry: &Entry) -> String {
    let mut out = String::new();
    if !explained.line.is_empty() || is_of_onramp(entry) {
        return out;
    }
    let variants = explained.variants();
    for case in variants.into_iter().filter(|case| is_of_onramp(case)) {
        if out.is_empty() {
            let _ = writeln!(out, "{}if onramp pool sent it\n", label(explained));
        }
        let words = case.says.first().map_or("", String::as_str);
        paragraph(&mut out, 2, &format!("\"{words}\": {}", case.title));
        for remedy in &case.remedy {
            let _ = writeln!(out, "    {remedy}");
        }
        out.push('\n');
    }
    if !out.is_empty() {
        out.push_str("If the server sent it:\n\n");
    }
    out
}

/// True for an error of this program's own.
fn is_of_onramp(entry: &Entry) -> bool {
    entry.name.starts_with("onramp-")
}

/// Appends further meanings of the number, besides those of [`cases_of_pool`].
fn more(out: &mut String, explained: &Explained, entry: &Entry) {
    let variants = explained.variants();
    if variants.is_empty() || !explained.line.is_empty() {
        return;
    }
    out.push('\n');
    let said = |variant: &&Entry| is_of_onramp(variant) && !is_of_onramp(entry);
    let rest: Vec<&Entry> = variants
        .into_iter()
        .filter(|variant| !said(variant))
        .collect();
    if !rest.is_empty() {
        heading(out, "With more in its line");
    }
    for variant in rest {
        let mark = match (variant.errno.as_slice(), variant.says.first()) {
            ([], Some(words)) => format!("\"{words}\""),
            (numbers, _) => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                format!("({})", numbers.join("), ("))
            }
        };
        paragraph(out, 4, &format!("{mark}: {}", variant.title));
    }
    let _ = writeln!(
        out,
        "    onramp explain \"THE WHOLE LINE\" tells which of them; now shown: {}",
        entry.name
    );
}

fn heading(out: &mut String, words: &str) {
    let _ = writeln!(out, "  {words}");
}

/// Appends text in lines of [`COLUMNS`], indented.
fn paragraph(out: &mut String, indent: usize, text: &str) {
    let mut column = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(&" ".repeat(indent));
            column = indent + len;
        } else {
            out.push(' ');
            column += 1 + len;
        }
        out.push_str(word);
    }
    out.push('\n');
}

/// Summary of a log, before the explanations.
pub(crate) fn log_heading(log: &Log) -> String {
    let lines = thousands(log.lines);
    if log.explained.is_empty() {
        return format!(
            "{lines} lines read; none of them is an error that onramp knows about connections, \
             threads, files,\nstatements, packets or logins.\n"
        );
    }
    let mut out = format!(
        "{lines} lines read, {} of them recognised; {} kinds of error, causes first:\n\n",
        thousands(log.recognised),
        log.explained.len()
    );
    for found in &log.explained {
        let Some(entry) = found.entry else { continue };
        let echo = if entry.symptom { " (an echo)" } else { "" };
        let _ = writeln!(
            out,
            "  {:>9} x  {}{}{echo}",
            thousands(found.count),
            label(found),
            entry.title
        );
    }
    out.push('\n');
    out
}

/// Page for a question about which nothing is known.
pub(crate) fn unknown(asked: &str) -> String {
    let mut out = format!("onramp explain: `{asked}` is not known here.\n\n");
    let known = "What is known: errors of MySQL and MariaDB (numbers from 1000 on) about \
        connections, threads, files, statements, packets and logins; the system's errors by number \
        or name (24, EMFILE); lines of sysbench, HAProxy, ProxySQL, the kernel and onramp. Give \
        the whole line in quotes: its words may say more than its number. `perror N` has the words \
        of every other number.";
    paragraph(&mut out, 0, known);
    out
}

/// Text where neither an error nor a log was given.
pub(crate) const USAGE: &str = "\
onramp explain: give an error, or a log on standard input:
  onramp explain 1135
  onramp explain \"ERROR 2003 (HY000): Can't connect to MySQL server on 'db' (99)\"
  onramp explain < mysqld.err; dmesg | onramp explain
";

/// All explanations as JSON: a list.
pub(crate) fn json(explained: &[Explained], facts: &Facts) -> String {
    let list: Vec<Value> = explained.iter().map(|one| value(one, facts)).collect();
    serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
}

fn value(explained: &Explained, facts: &Facts) -> Value {
    let clues = &explained.clues;
    let errno_name = clues.errno.and_then(errno::name);
    let Some(entry) = explained.entry else {
        return json!({ "name": null, "errno": clues.errno, "errno_name": errno_name,
            "title": errno::words(clues.errno.unwrap_or_default()), "line": explained.line });
    };
    let verify: Vec<Value> = entry
        .verify
        .iter()
        .map(|look| {
            let now = look.live.as_ref().and_then(|live| live.shown(facts));
            json!({ "run": look.run, "sql": look.sql, "now": now.map(|shown| shown.text),
                "means": look.means })
        })
        .collect();
    let arithmetic = entry
        .arithmetic
        .and_then(|kind| reckon(kind, &explained.clues, facts));
    json!({
        "name": entry.name,
        "title": entry.title,
        "number": clues.number,
        "errno": clues.errno,
        "errno_name": errno_name,
        "line": explained.line,
        "count": explained.count,
        "symptom": entry.symptom,
        "fault": entry.fault,
        "cause": one_line(&entry.cause),
        "arithmetic": arithmetic,
        "verify": verify,
        "remedy": entry.remedy,
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
