//! A script: who says what, in which order, as data.
//!
//! The problem: a failure that was found in a thousand steps must become ten lines that a person
//! reads and keeps as a test. The mechanism: a script is a list of [`Step`]s which may be cut
//! anywhere (a step of a client that is not there is skipped), and [`story`] writes it down as a
//! test of `tests/e2e`. Invariant: a script says the same to a server and to a pool; nothing in it
//! depends on an answer but the ids of prepared statements, which have names here.

use super::ground;
use std::borrow::Cow;
use std::fmt::Write;

/// Login of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// Into the first schema, or into none.
    pub schema: bool,
    /// Capabilities besides the usual ones.
    pub with: u32,
    /// MariaDB's extended ones.
    pub extended: u32,
    /// Usual capabilities that it does not have.
    pub without: u32,
    /// The other account.
    pub other: bool,
    /// The collation, if it is not the usual one.
    pub collation: Option<u16>,
}

impl Login {
    /// Into the first schema, with the usual capabilities.
    pub(crate) fn usual() -> Login {
        Login {
            schema: true,
            ..Login::default()
        }
    }
}

/// Content that clients send when the server asks for a local file, whichever it is.
pub(crate) const LOCAL_FILE: &str =
    "11\tred\n12\tgreen\n12\tagain\n\\N\ta name too long to be kept\n";

/// Way by which one client ends another's statement or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// `KILL QUERY`: its statement.
    Query,
    /// `KILL`: its connection.
    Connection,
    /// COM_PROCESS_KILL, the same.
    Command,
}

/// Act of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Connects.
    Join(Login),
    /// Leaves, with COM_QUIT.
    Leave,
    /// Its connection ends without a word.
    Vanish,
    /// COM_QUERY
    Sql(String),
    /// COM_QUERY with a text that is no UTF-8.
    Bytes(Vec<u8>),
    /// The query attribute `n` of its next statement.
    Attribute(String),
    /// COM_INIT_DB
    InitDb(String),
    /// COM_PING
    Ping,
    /// COM_STATISTICS, whose text is not compared: it is of the server's whole life.
    Statistics,
    /// COM_RESET_CONNECTION
    Reset,
    /// COM_SET_OPTION: multi-statements on or off.
    MultiStatements(bool),
    /// COM_CHANGE_USER
    ChangeUser(Login),
    /// COM_STMT_PREPARE, under a name of ours.
    Prepare(usize, String),
    /// COM_STMT_EXECUTE with texts as parameters; `true` opens a cursor.
    Execute(usize, Vec<Option<String>>, bool),
    /// COM_STMT_EXECUTE with the types of the execution before.
    Again(usize, Vec<Option<String>>),
    /// COM_STMT_EXECUTE that ends before its value, of a statement of one parameter.
    Cut(usize),
    /// COM_STMT_BULK_EXECUTE with the texts of several rows.
    Bulk(usize, Vec<Vec<Option<String>>>),
    /// COM_STMT_FETCH: so many rows.
    Fetch(usize, u32),
    /// COM_STMT_SEND_LONG_DATA for a parameter.
    LongData(usize, u16, String),
    /// COM_STMT_RESET
    ResetStatement(usize),
    /// COM_STMT_CLOSE
    Close(usize),
    /// Several clients send SQL at once, before any of them has its reply.
    Together(Vec<(usize, String)>),
    /// SQL that waits for another client; the steps are taken while it waits, and then its reply
    /// comes.
    Blocked(String, Vec<Step>),
    /// This client ends that one.
    Kill(usize, Kill),
}

/// Change of a client's claim on a backend by a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Nothing.
    #[default]
    None,
    /// The client may keep its backend from here on until it leaves or resets.
    Pins,
    /// The client keeps its backend until it gives back what it takes here.
    Takes,
    /// Gives back what it took.
    GivesBack,
    /// A transaction may be open from here on.
    Opens,
    /// The transaction ends, if `autocommit` is on.
    Closes,
    /// `autocommit` is off from here on.
    Manual,
    /// `autocommit` is on again.
    Automatic,
    /// Everything is given up.
    Frees,
    /// This client alone may speak from here on: its lock would stop the others.
    Excludes,
    /// The others may speak again.
    Includes,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The client; nobody in particular for [`Act::Together`].
    pub who: usize,
    /// Act of the step.
    pub act: Act,
    /// Change of its client's claim on a backend.
    pub claim: Claim,
    /// True if it comes only after the pool's own questions about the step before.
    pub late: bool,
}

impl Step {
    pub(crate) fn new(who: usize, act: Act, claim: Claim) -> Step {
        Step {
            who,
            act,
            claim,
            late: false,
        }
    }

    /// A client's connection ends.
    #[must_use]
    pub fn vanish(who: usize) -> Step {
        Step::new(who, Act::Vanish, Claim::Frees)
    }

    pub(crate) fn sql(who: usize, sql: impl Into<String>) -> Step {
        Step::new(who, Act::Sql(sql.into()), Claim::None)
    }

    /// The texts of SQL in this step, as far as they are any.
    pub(crate) fn texts(&self) -> Vec<Cow<'_, str>> {
        match &self.act {
            Act::Sql(sql) | Act::Prepare(_, sql) | Act::InitDb(sql) => vec![sql.into()],
            Act::Bytes(text) => vec![String::from_utf8_lossy(text)],
            Act::Together(all) => all.iter().map(|(_, sql)| sql.into()).collect(),
            Act::Blocked(sql, steps) => {
                let inner = steps.iter().flat_map(Step::texts);
                std::iter::once(sql.into()).chain(inner).collect()
            }
            _ => Vec::new(),
        }
    }

    /// True if a reply to it may hold the number of a connection.
    pub(crate) fn asks_for_number(&self) -> bool {
        let named =
            |text: &Cow<'_, str>| text.contains("CONNECTION_ID") || text.contains("thread_id");
        self.texts().iter().any(named)
    }
}

/// The script as a test of `tests/e2e`, ready to be pasted into one of its files.
#[must_use]
pub fn story(name: &str, backends: usize, steps: &[Step]) -> String {
    let mut out = format!("#[test]\nfn {name}() {{\n    same(\"{name}\", {backends}, |story| {{\n");
    let texts: Vec<_> = steps.iter().flat_map(Step::texts).collect();
    let ground = ground::wanted(&texts);
    if !ground.is_empty() {
        let _ = writeln!(out, "        let ground = story.join();");
    }
    for sql in ground {
        let _ = writeln!(out, "        story.sql(ground, {sql:?});");
    }
    if out.contains("(ground, ") {
        let _ = writeln!(out, "        story.command(ground, Command::Quit, b\"\");");
    }
    for step in steps {
        if step.late {
            out.push_str("        story.let_pool_finish();\n");
        }
        for line in lines(step) {
            let _ = writeln!(out, "        {line}");
        }
    }
    out.push_str("    });\n}\n");
    // The schema of a story has its name.
    let [first, second] = ground::SCHEMAS;
    out.replace(first, name)
        .replace(second, &format!("{name}_b"))
}

fn account(login: &Login) -> String {
    let mut text = String::from(if login.other {
        "&Account::new(\"other\", \"other's\")"
    } else {
        "&app()"
    });
    if login.schema {
        text.push_str(".schema(&schema)");
    }
    if let Some(collation) = login.collation {
        let _ = write!(text, ".speaking({collation})");
    }
    if login.with != 0 {
        let _ = write!(text, ".with({:#x})", login.with);
    }
    if login.extended != 0 {
        let _ = write!(text, ".extended({:#x})", login.extended);
    }
    if login.without != 0 {
        let _ = write!(text, ".without({:#x})", login.without);
    }
    text
}

fn params(params: &[Option<String>]) -> String {
    let one = |param: &Option<String>| match param {
        Some(text) => format!("Some(b{text:?})"),
        None => "None".into(),
    };
    let all: Vec<String> = params.iter().map(one).collect();
    format!("&[{}]", all.join(", "))
}

fn lines(step: &Step) -> Vec<String> {
    let who = step.who;
    let line = match &step.act {
        Act::Join(login) if *login == Login::usual() => format!("let c{who} = story.join();"),
        Act::Join(login) => {
            let account = account(login);
            return vec![
                "let schema = story.schema.clone();".into(),
                format!("let c{who} = story.join_as({account});"),
            ];
        }
        Act::ChangeUser(login) => {
            let account = account(login);
            return vec![
                "let schema = story.schema.clone();".into(),
                format!("story.change_user(c{who}, {account});"),
            ];
        }
        Act::Leave => format!("story.command(c{who}, Command::Quit, b\"\");"),
        Act::Vanish => format!("story.client(c{who}).end_sending().unwrap();"),
        Act::Sql(sql) if sql.contains("LOCAL INFILE") => {
            let file = format!("story.client(c{who}).local_file = Some({LOCAL_FILE:?}.into());");
            return vec![file, format!("story.sql(c{who}, {sql:?});")];
        }
        Act::Sql(sql) => format!("story.sql(c{who}, {sql:?});"),
        Act::Bytes(text) => {
            let text = text.escape_ascii();
            format!("story.command(c{who}, Command::Query, b\"{text}\");")
        }
        Act::Attribute(value) => {
            format!("story.client(c{who}).attributes(&[(\"n\", {value:?})]);")
        }
        Act::InitDb(name) => format!("story.command(c{who}, Command::InitDb, b{name:?});"),
        Act::Ping => format!("story.command(c{who}, Command::Ping, b\"\");"),
        Act::Statistics => format!("story.unheard(c{who}, Command::Statistics);"),
        Act::Reset => format!("story.command(c{who}, Command::ResetConnection, b\"\");"),
        Act::MultiStatements(on) => {
            let byte = u8::from(!on);
            format!("story.command(c{who}, Command::SetOption, &[{byte}, 0]);")
        }
        Act::Together(all) => return all.iter().map(sent_together).collect(),
        Act::Blocked(sql, steps) => {
            let begins = format!("story.begin(c{who}, {sql:?}); // and waits");
            let ends = format!("story.end(c{who});");
            let inner = steps.iter().flat_map(lines);
            return std::iter::once(begins).chain(inner).chain([ends]).collect();
        }
        Act::Kill(whom, kill) => format!("story.kill(c{who}, c{whom}, Kill::{kill:?});"),
        act => statement_line(who, act),
    };
    vec![line]
}

/// Line about a prepared statement.
fn statement_line(who: usize, act: &Act) -> String {
    match act {
        Act::Prepare(slot, sql) => {
            format!("let p{who}_{slot} = story.prepare(c{who}, {sql:?}).id;")
        }
        Act::Execute(slot, values, false) => {
            let values = params(values);
            format!("story.execute(c{who}, p{who}_{slot}, {values});")
        }
        Act::Execute(slot, values, true) => {
            let values = params(values);
            format!(
                "let execution = testkit::client::execution(p{who}_{slot}, {values}, true); \
                 story.command(c{who}, Command::StmtExecute, &execution);"
            )
        }
        Act::Again(slot, values) => {
            let values = params(values);
            format!(
                "let execution = testkit::client::execution_again(p{who}_{slot}, {values}); \
                 story.command(c{who}, Command::StmtExecute, &execution);"
            )
        }
        Act::Cut(slot) => format!(
            "let execution = testkit::client::cut_execution(p{who}_{slot}, Form::Plain); \
             story.command(c{who}, Command::StmtExecute, &execution);"
        ),
        Act::Bulk(slot, rows) => {
            let rows: Vec<String> = rows.iter().map(|row| params(row)).collect();
            let rows = rows.join(", ");
            format!(
                "let execution = testkit::client::bulk_execution(p{who}_{slot}, true, &[{rows}]); \
                 story.command(c{who}, Command::StmtBulkExecute, &execution);"
            )
        }
        Act::Fetch(slot, rows) => format!(
            "story.command(c{who}, Command::StmtFetch, \
             &[p{who}_{slot}.to_le_bytes(), {rows}u32.to_le_bytes()].concat());"
        ),
        Act::LongData(slot, param, data) => format!(
            "story.command(c{who}, Command::StmtSendLongData, &[&p{who}_{slot}.to_le_bytes()[..], \
             &{param}u16.to_le_bytes(), b{data:?}].concat());"
        ),
        Act::ResetStatement(slot) => {
            format!("story.command(c{who}, Command::StmtReset, &p{who}_{slot}.to_le_bytes());")
        }
        Act::Close(slot) => {
            format!("story.command(c{who}, Command::StmtClose, &p{who}_{slot}.to_le_bytes());")
        }
        other => unreachable!("{other:?} is not about a prepared statement"),
    }
}

fn sent_together((who, sql): &(usize, String)) -> String {
    format!("story.sql(c{who}, {sql:?}); // sent together with its neighbours")
}
