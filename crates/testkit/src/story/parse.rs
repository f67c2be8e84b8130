//! Reads stories.
//!
//! A text becomes the steps of one story after the other, for one schema and one server: names are
//! replaced, loops and `watch` are written out, and a client joins with its first line. A line that
//! cannot be understood is an error that names it; what steps mean is [`crate::oracle`]'s matter.

use super::{AND_THEN, Expected, Line, Story};
use crate::oracle::{Act, Claim, Kill, Login, Step};
use crate::real::Flavour;
use std::collections::HashMap;

/// Stories of a file, as told in this schema on this server.
///
/// # Errors
/// The line that cannot be understood, and why.
pub fn parse(text: &str, schema: &str, flavour: Flavour) -> Result<Vec<Story>, String> {
    let lines = joined(text);
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| lines[at].1.starts_with("story "))
        .collect();
    let head = &lines[..starts.first().copied().unwrap_or(lines.len())];
    let mut stories = Vec::new();
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(lines.len());
        let mut parser = Parser::new(&lines[start].1["story ".len()..], schema, flavour);
        parser.block(head, &mut HashMap::new())?;
        let words = std::mem::take(&mut parser.words);
        parser.block(&lines[start + 1..end], &mut words.clone())?;
        if !parser.is_elsewhere {
            stories.push(parser.story);
        }
    }
    Ok(stories)
}

/// Lines with their numbers, without comments; what goes on in the next line is joined.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let (part, more) = match line.strip_suffix(" \\") {
            Some(part) => (part, true),
            None => (line, false),
        };
        if goes_on {
            let last = &mut lines.last_mut().expect("there is a line before").1;
            last.push(' ');
            last.push_str(part);
        } else if !line.is_empty() && !line.starts_with('#') {
            lines.push((index + 1, part.to_owned()));
        }
        goes_on = more && (goes_on || !line.starts_with('#'));
    }
    lines
}

type Words = HashMap<String, String>;

struct Parser {
    story: Story,
    schema: String,
    flavour: Flavour,
    is_elsewhere: bool,
    /// Words that stand before the first story.
    words: Words,
    clients: Vec<String>,
    statements: Vec<String>,
    watched: Option<String>,
    /// The next step waits for the pool's own questions.
    late: bool,
}

impl Parser {
    fn new(name: &str, schema: &str, flavour: Flavour) -> Parser {
        let story = Story {
            name: name.trim().to_owned(),
            backends: 1,
            settings: String::new(),
            loose: false,
            lines: Vec::new(),
        };
        Parser {
            story,
            schema: schema.to_owned(),
            flavour,
            is_elsewhere: false,
            words: Words::new(),
            clients: Vec::new(),
            statements: Vec::new(),
            watched: None,
            late: false,
        }
    }

    fn block(&mut self, lines: &[(usize, String)], words: &mut Words) -> Result<(), String> {
        let mut at = 0;
        while let Some((number, line)) = lines.get(at) {
            let line = self.expanded(line, words);
            let fail = |why: &str| format!("line {number}: {why}: {line}");
            let (first, rest) = line.split_once(' ').unwrap_or((&line, ""));
            at += 1;
            match first {
                "for" | "if" | "together" => {
                    let len = ended(&lines[at..]).ok_or_else(|| fail("no `end`"))?;
                    let inner = &lines[at..at + len];
                    at += len + 1;
                    match first {
                        "for" => self.repeat(rest, inner, words)?,
                        "if" if self.is_for(rest) => self.block(inner, words)?,
                        "if" => {}
                        _ => self.together(*number, inner, words)?,
                    }
                }
                "only" => self.is_elsewhere |= !self.is_for(rest),
                "backends" => {
                    self.story.backends = rest.parse().map_err(|_| fail("no number"))?;
                }
                "pool" => self.story.settings += &format!("{rest}\n"),
                "loose" => self.story.loose = true,
                "finish" => self.late = true,
                "let" => {
                    let (name, value) = rest.split_once(" =").ok_or_else(|| fail("no `=`"))?;
                    words.insert(name.to_owned(), value.trim_start().to_owned());
                    self.words = words.clone();
                }
                "watch" => self.watched = (rest != "nothing").then(|| rest.to_owned()),
                _ if rest == "writes" && is_name(first) => {
                    let len = ended(&lines[at..]).ok_or_else(|| fail("no `end`"))?;
                    self.at_once((*number, first), &lines[at..at + len], words)?;
                    at += len + 1;
                }
                _ => {
                    let (mut line, mut inner) = (line.clone(), &lines[at..at]);
                    if let Some(ends) = waiting(&line) {
                        let is_end = |(_, line): &(usize, String)| line.starts_with(&ends);
                        let len = lines[at..].iter().position(is_end);
                        let len = len.ok_or_else(|| fail("never `goes on`"))?;
                        inner = &lines[at..at + len];
                        line.push_str(&lines[at + len].1[ends.len()..]);
                        at += len + 1;
                    }
                    self.steps((*number, &line), inner, words)?;
                    if let Some(watched) = self.watched.clone() {
                        let watched = self.expanded(&watched, words);
                        self.steps((*number, &watched), &[], words)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_for(&self, server: &str) -> bool {
        match self.flavour {
            Flavour::MariaDb => server == "mariadb",
            Flavour::MySql => server == "mysql",
        }
    }

    fn expanded(&self, line: &str, words: &Words) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let braced = rest.starts_with('{');
            let name = rest.trim_start_matches('{');
            let len = name
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(name.len());
            // The longest name: `$schema_b` is the schema with two more letters.
            let known = (1..=len).rev().find_map(|len| {
                let name = &name[..len];
                let value = words.get(name).map(String::as_str);
                let value = value.or((name == "schema").then_some(&self.schema[..]))?;
                Some((value.to_owned(), len))
            });
            match known {
                Some((value, len)) => {
                    out.push_str(&self.expanded(&value, words));
                    rest = &rest[len + 2 * usize::from(braced)..];
                }
                None => out.push('$'),
            }
        }
        out + rest
    }

    fn repeat(
        &mut self,
        head: &str,
        lines: &[(usize, String)],
        words: &Words,
    ) -> Result<(), String> {
        let names: Vec<&str> = head.trim_end_matches(':').split(", ").collect();
        let is_item = |line: &(usize, String)| line.1 == "-" || line.1.starts_with("- ");
        let items = lines.iter().take_while(|line| is_item(line)).count();
        for (number, item) in &lines[..items] {
            let mut inner = words.clone();
            let item = self.expanded(item, words);
            let values: Vec<&str> = match names.len() {
                1 => vec![item[1..].trim_start()],
                _ => item[1..].split(" | ").map(str::trim).collect(),
            };
            if values.len() != names.len() {
                return Err(format!("line {number}: {} values: {item}", names.len()));
            }
            let values = values.into_iter().map(str::to_owned);
            inner.extend(names.iter().map(|name| (*name).to_owned()).zip(values));
            self.block(&lines[items..], &mut inner)?;
        }
        Ok(())
    }

    fn together(
        &mut self,
        number: usize,
        lines: &[(usize, String)],
        words: &Words,
    ) -> Result<(), String> {
        let mut all = Vec::new();
        for (number, line) in lines {
            let line = self.expanded(line, words);
            let parts = line.split_once(": ").filter(|(who, _)| is_name(who));
            let (who, sql) = parts.ok_or_else(|| format!("line {number}: no SQL: {line}"))?;
            all.push((self.client(who, *number), sql.to_owned()));
        }
        self.push(number, 0, Act::Together(all), Expected::Same);
        Ok(())
    }

    /// Commands that a client sends in one write.
    fn at_once(
        &mut self,
        (number, name): (usize, &str),
        lines: &[(usize, String)],
        words: &Words,
    ) -> Result<(), String> {
        let who = self.client(name, number);
        let mut all = Vec::new();
        for (number, line) in lines {
            let line = self.expanded(line, words);
            let act = self.act(name, &line);
            all.push(
                match act.map_err(|why| format!("line {number}: {why}: {line}"))? {
                    Act::Sql(sql) => (0x03, sql.into_bytes()),
                    Act::Prepare(_, sql) => (0x16, sql.into_bytes()),
                    Act::InitDb(schema) => (0x02, schema.into_bytes()),
                    Act::Ping => (0x0e, Vec::new()),
                    Act::Reset => (0x1f, Vec::new()),
                    Act::Command(command, text) => (command, text),
                    _ => return Err(format!("line {number}: not in one write: {line}")),
                },
            );
        }
        self.push(number, who, Act::AtOnce(all), Expected::Same);
        Ok(())
    }

    fn push(&mut self, number: usize, who: usize, act: Act, expected: Expected) {
        let mut step = Step::new(who, act, Claim::None);
        step.late = std::mem::take(&mut self.late);
        self.story.lines.push(Line {
            number,
            step,
            expected,
        });
    }

    /// The number of a client, who joins when it is named first.
    fn client(&mut self, name: &str, number: usize) -> usize {
        if let Some(known) = self.clients.iter().position(|known| known == name) {
            return known;
        }
        let who = self.clients.len();
        self.clients.push(name.to_owned());
        let late = std::mem::take(&mut self.late);
        self.push(number, who, Act::Join(Login::usual()), Expected::Same);
        self.late = late;
        who
    }

    /// The steps of one line; `inner` are those while it waits.
    fn steps(
        &mut self,
        (number, line): (usize, &str),
        inner: &[(usize, String)],
        words: &mut Words,
    ) -> Result<(), String> {
        let fail = |why: &str| format!("line {number}: {why}: {line}");
        let (line, expected) = match line.rsplit_once(" => ") {
            Some((line, text)) => (line, expectation(text)),
            None => (line, Expected::Same),
        };
        let names =
            line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ',' || c == ' '));
        // `a, b` is a list, `a ping` is not.
        let mut end = 0;
        for part in line[..names.unwrap_or(line.len())].split(", ") {
            let len = part.find(' ').unwrap_or(part.len());
            end += len;
            if len < part.len() || !line[end..].starts_with(", ") {
                break;
            }
            end += 2;
        }
        let (names, rest) = line.split_at(end);
        for name in names.split(", ") {
            if !is_name(name) {
                return Err(fail("no client"));
            }
            if name == "server" {
                let sql = rest.strip_prefix(": ").ok_or_else(|| fail("no SQL"))?;
                self.push(number, 0, Act::Server(sql.to_owned()), expected.clone());
                continue;
            }
            if let Some(login) = rest.strip_prefix(" joins") {
                let login = login_of(login).map_err(|why| fail(&why))?;
                let who = match self.clients.iter().position(|known| known == name) {
                    Some(who) => who,
                    None => {
                        self.clients.push(name.to_owned());
                        self.clients.len() - 1
                    }
                };
                self.push(number, who, Act::Join(login), expected.clone());
                continue;
            }
            let who = self.client(name, number);
            // Several statements in one line: what is expected is the last one's answer.
            let (before, rest) = match rest
                .strip_prefix(": ")
                .and_then(|_| rest.rsplit_once(AND_THEN))
            {
                Some((before, last)) => (&before[2..], format!(": {last}")),
                None => ("", rest.to_owned()),
            };
            for sql in before.split(AND_THEN).filter(|sql| !sql.is_empty()) {
                self.push(number, who, Act::Sql(sql.trim().to_owned()), Expected::Same);
            }
            let rest = &rest[..];
            let act = if let Some(sql) = rest.strip_prefix(" waits:") {
                let before = self.story.lines.len();
                let late = std::mem::take(&mut self.late);
                self.block(inner, words)?;
                self.late = late;
                let steps = self.story.lines.drain(before..).map(|line| line.step);
                Act::Blocked(sql.trim().to_owned(), steps.collect())
            } else {
                self.act(name, rest).map_err(|why| fail(&why))?
            };
            self.push(number, who, act, expected.clone());
        }
        Ok(())
    }

    fn statement(&mut self, client: &str, name: &str) -> usize {
        let name = format!("{client} {name}");
        let known = self.statements.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.statements.push(name);
            self.statements.len() - 1
        })
    }

    fn act(&mut self, client: &str, rest: &str) -> Result<Act, String> {
        if let Some(sql) = rest.strip_prefix(':') {
            return Ok(Act::Sql(sql.trim().to_owned()));
        }
        let rest = rest.trim_start();
        let (head, text) = match rest.split_once(": ") {
            Some((head, text)) => (head, text),
            None => (rest.trim_end_matches(':'), ""),
        };
        let mut parts = head.splitn(3, ' ');
        let verb = parts.next().unwrap_or_default();
        let name = parts.next().unwrap_or_default();
        let more = parts.next().unwrap_or_default();
        let slot = self.statement(client, name);
        Ok(match verb {
            "bytes" => match String::from_utf8(unescaped(text)?) {
                Ok(sql) => Act::Sql(sql),
                Err(bytes) => Act::Bytes(bytes.into_bytes()),
            },
            "attribute" => Act::Attribute(text.to_owned()),
            "init_db" => Act::InitDb(text.to_owned()),
            "ping" => Act::Ping,
            "statistics" => Act::Statistics,
            "reset" if name.is_empty() => Act::Reset,
            "multi" => Act::MultiStatements(name == "on"),
            "leaves" => Act::Leave,
            "vanishes" => Act::Vanish,
            "ends" => Act::HearOut,
            "becomes" => Act::ChangeUser(login_of(&rest["becomes".len()..])?),
            "prepare" => Act::Prepare(slot, text.to_owned()),
            "execute" => Act::Execute(slot, values(more)?, false),
            "open" => Act::Execute(slot, values(more)?, true),
            "again" => Act::Again(slot, values(more)?),
            "cut" => Act::Cut(slot),
            "bulk" => {
                let rows = more.split(") (");
                Act::Bulk(slot, rows.map(values).collect::<Result<_, _>>()?)
            }
            "fetch" => Act::Fetch(slot, more.parse().map_err(|_| "no number of rows")?),
            "long" => {
                let param = more.parse().map_err(|_| "no number of a parameter")?;
                let text = String::from_utf8(unescaped(text)?).map_err(|_| "no text")?;
                Act::LongData(slot, param, text)
            }
            "reset" => Act::ResetStatement(slot),
            "close" => Act::Close(slot),
            "sends" => Act::About(slot, byte(more)?, unescaped(text)?),
            "command" => Act::Command(byte(name)?, unescaped(text)?),
            "kills" => {
                let whom = self.clients.iter().position(|known| known == name);
                let whom = whom.ok_or("nobody to kill")?;
                Act::Kill(
                    whom,
                    match more {
                        "query" => Kill::Query,
                        "connection" => Kill::Connection,
                        "command" => Kill::Command,
                        _ => return Err("no kind of kill".into()),
                    },
                )
            }
            "is" => match (name, more) {
                ("not", "pinned") => Act::Pinned("not pinned".into()),
                ("pinned", "") => Act::Pinned("pinned (".into()),
                ("pinned", reason) => Act::Pinned(format!("({reason})")),
                _ => return Err("neither pinned nor not".into()),
            },
            _ => return Err("no act".into()),
        })
    }
}

/// The beginning of the line that ends the wait which a line begins.
fn waiting(line: &str) -> Option<String> {
    let (who, _) = line.split_once(" waits: ")?;
    is_name(who).then(|| format!("{who} goes on"))
}

/// Number of lines up to the `end` of a block.
fn ended(lines: &[(usize, String)]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|(_, line)| {
        match line.split(' ').next() {
            Some("for" | "if" | "together") => depth += 1,
            Some(who) if line.len() == who.len() + 7 && line.ends_with(" writes") => depth += 1,
            Some("end") if depth == 0 => return true,
            Some("end") => depth -= 1,
            _ => {}
        }
        false
    })
}

fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(letter)
}

fn expectation(text: &str) -> Expected {
    let text = text.trim();
    if let Some(text) = text.strip_prefix("or ") {
        return Expected::Or(text.to_owned());
    }
    match text.strip_prefix("pool: ") {
        Some(text) => Expected::Pool(text.to_owned()),
        None if text == "well" => Expected::Well,
        None => Expected::Both(text.to_owned()),
    }
}

fn byte(text: &str) -> Result<u8, String> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    u8::from_str_radix(digits, 16).map_err(|_| format!("no command: {text}"))
}

fn login_of(text: &str) -> Result<Login, String> {
    let mut login = Login::usual();
    let mut text = text.to_owned();
    if let Some((before, rest)) = text.split_once("schema '") {
        let (schema, rest) = rest
            .split_once('\'')
            .ok_or("the schema's name does not end")?;
        login.into = Some(schema.to_owned());
        text = format!("{before}{rest}");
    }
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("no value of {word}"));
        match word {
            "no_schema" => login.schema = false,
            "schema" => login.into = Some(value()?.to_owned()),
            "user" => match value()? {
                "other" => login.other = true,
                name => login.user = Some(name.to_owned()),
            },
            "password" => login.password = Some(value()?.to_owned()),
            "collation" => login.collation = Some(value()?.parse().map_err(|_| "no collation")?),
            "with" => login.with = super::print::flags_of(value()?)?,
            "without" => login.without = super::print::flags_of(value()?)?,
            "extended" => login.extended = super::print::flags_of(value()?)?,
            _ => return Err(format!("no word of a login: {word}")),
        }
    }
    Ok(login)
}

/// Values in parentheses, as `('it\'s', NULL, 5)`.
fn values(text: &str) -> Result<Vec<Option<String>>, String> {
    let text = text.trim().trim_start_matches('(');
    let mut rest = text.strip_suffix(')').unwrap_or(text).trim();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (value, left) = match rest.strip_prefix('\'') {
            Some(inside) => {
                let mut escaped = false;
                let end = inside.find(|c| {
                    let ends = c == '\'' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                let end = end.ok_or("a value does not end")?;
                let bytes = unescaped(&inside[..end])?;
                let value = String::from_utf8(bytes).map_err(|_| "a value is no text")?;
                (Some(value), &inside[end + 1..])
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let word = rest[..end].trim();
                ((word != "NULL").then(|| word.to_owned()), &rest[end..])
            }
        };
        all.push(value);
        rest = left.trim_start().trim_start_matches(',').trim_start();
    }
    Ok(all)
}

/// Bytes of a text with escapes: `\xff`, `\n`, `\r`, `\t`, `\\`, `\'`, `\"`.
fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        out.push(match chars.next() {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).map_err(|_| format!("no byte: \\x{digits}"))?
            }
            Some(c @ ('\\' | '\'' | '"')) => c as u8,
            other => return Err(format!("no escape: {other:?}")),
        });
    }
    Ok(out)
}
