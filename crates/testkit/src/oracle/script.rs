//! A script: who says what, in which order, as data.
//!
//! The problem: a failure that was found in a thousand steps must become ten lines that a person
//! reads and keeps as a test. The mechanism: a script is a list of [`Step`]s which may be cut
//! anywhere (a step of a client that is not there is skipped), and [`story`] writes it down as one
//! of `tests/stories`. Invariant: a script says the same to a server and to a pool; nothing in it
//! depends on an answer but the ids of prepared statements, which have names here.

use super::ground;
use std::borrow::Cow;

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
    /// Into this schema instead.
    pub into: Option<String>,
    /// The other account.
    pub other: bool,
    /// Another account yet, by its name.
    pub user: Option<String>,
    /// Another password than the account's.
    pub password: Option<String>,
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
    /// Nothing is sent; it hears what comes until the other side closes the connection.
    HearOut,
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
    /// Commands in one write, by their numbers and with their bytes; then all replies.
    AtOnce(Vec<(u8, Vec<u8>)>),
    /// SQL that waits for another client; the steps are taken while it waits, and then its reply
    /// comes.
    Blocked(String, Vec<Step>),
    /// End of that client by this one.
    Kill(usize, Kill),
    /// A command about a prepared statement: its number, and the bytes behind the statement's id.
    About(usize, u8, Vec<u8>),
    /// A command by its number, with these bytes.
    Command(u8, Vec<u8>),
    /// SQL of the administrator, directly, which must succeed.
    Server(String),
    /// Nothing is sent; the pool's report of the client has these words.
    Pinned(String),
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
    /// Right of this client alone to speak from here on: its lock would stop the others.
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

    /// Step in which a client's connection ends.
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

/// The script as a story, ready to be saved below `tests/stories`.
#[must_use]
pub fn story(name: &str, backends: usize, steps: &[Step]) -> String {
    let texts: Vec<_> = steps.iter().flat_map(Step::texts).collect();
    let head = format!("backends {backends}\nloose\n");
    let text = crate::story::print(name, &head, &ground::wanted(&texts), steps);
    // The second schema's name begins with that of the first.
    let [first, second] = ground::SCHEMAS;
    text.replace(second, "${schema}_b")
        .replace(first, "$schema")
}
