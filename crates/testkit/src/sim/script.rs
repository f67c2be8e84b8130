//! Statements of simulated clients, and their beliefs about their sessions.
//!
//! The problem: whether a reply is right depends on everything that its client did before. The
//! mechanism: [`Kind`] is a statement of the small language that the fake server understands;
//! [`Belief`] is the session as the client has made it, moved on with each reply, in order.
//! Invariant: an error leaves the belief as it was, because the pool promises that a session whose
//! statement failed with its connection is the one from before, or ends.

use super::random::Random;
use super::standing::Standing;
use std::collections::BTreeMap;
use wire::command::Command;

/// Schemas that exist.
pub(crate) const SCHEMAS: [&str; 3] = ["a", "b", "c"];

/// Tags of one client.
pub(crate) const TAGS_PER_CLIENT: u64 = 100_000;
/// Statements that read poison among which one sets a variable, by stored code that no text shows;
/// the others leave nothing, so that statements like it may be pipelined.
const POISON_EVERY: u64 = 11;
/// Statements of a client that read poison and have one shape.
const TAGS_PER_SHAPE: u64 = 6;

/// True if the statement with this tag is one of them, if it reads poison.
pub(crate) fn is_poisoned(tag: u64) -> bool {
    tag.is_multiple_of(POISON_EVERY)
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Point,
    /// Reads poison: see [`is_poisoned`].
    Poison,
    Big,
    Warn,
    Fail,
    Slow(u64),
    Use(&'static str),
    InitDb(&'static str),
    Set(&'static str, &'static str),
    Begin,
    /// BEGIN without a tag, so that the pool may answer it itself.
    PlainBegin,
    Commit,
    PlainCommit,
    Rollback,
    PlainRollback,
    Insert,
    /// User variables, by their place in [`USER`].
    SetUser(usize),
    ReadUser(usize),
    LastInsertId,
    ShowWarnings,
    Ping,
    Reset,
    /// Multi-statements, on or off.
    Option(bool),
    /// Prepares one of a few texts.
    Prepare(usize),
    /// Runs the statement with this id of the client's, and says its parameter's type, or not.
    Execute(u32, Option<u8>),
    Close(u32),
    /// A piece of a parameter of the next execution.
    LongData(u32),
    /// KILL of the client with this id; only its statement, or all of it.
    Kill(u32, bool),
}

/// Texts that clients prepare, and what they are with the tag of an execution as their parameter.
pub(crate) const PREPARED: [(&str, Kind); 4] = [
    ("SELECT c FROM t WHERE id=?", Kind::Point),
    ("SELECT e FROM fails WHERE id=?", Kind::Fail),
    ("INSERT INTO log VALUES (?)", Kind::Insert),
    ("SELECT LAST_INSERT_ID() /* ? */", Kind::LastInsertId),
];
/// Text that cannot be prepared.
pub(crate) const UNPREPARABLE: &str = "SELECT n FROM nothing";
/// User variables. Servers may take the last for one of another name.
pub(crate) const USER: [&str; 2] = ["x", "\u{e4}"];
/// Types of parameters: a number of 8 bytes, a text.
pub(crate) const TYPES: [u8; 2] = [8, 253];

/// True if a text of ours names tables.
pub(crate) fn uses_tables(sql: &str) -> bool {
    sql.contains(" FROM ") || sql.starts_with("INSERT ")
}

impl Kind {
    /// True for a plain SELECT, which changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        matches!(
            self,
            Kind::Point | Kind::Poison | Kind::Big | Kind::Warn | Kind::Fail | Kind::Slow(_)
        )
    }

    /// The command and its arguments, with this tag.
    pub(crate) fn command(&self, tag: u64, belief: &Belief) -> (Command, Vec<u8>) {
        let text = match self {
            Kind::Point => format!("SELECT c FROM t WHERE id={tag}"),
            // A shape that has changed a session once is not pipelined again, so there are
            // several. Clients that have come equally far use the same.
            Kind::Poison => {
                let shape = tag % TAGS_PER_CLIENT / TAGS_PER_SHAPE;
                format!("SELECT p FROM poison WHERE id={tag} AND s{shape}=0")
            }
            Kind::Big => format!("SELECT b FROM big WHERE id={tag}"),
            Kind::Warn => format!("SELECT w FROM warns WHERE id={tag}"),
            Kind::Fail => format!("SELECT e FROM fails WHERE id={tag}"),
            Kind::Slow(ms) => format!("SELECT s FROM slow WHERE id={tag} AND d={ms}"),
            Kind::Use(schema) => format!("USE {schema} /* {tag} */"),
            Kind::InitDb(schema) => return (Command::InitDb, (*schema).into()),
            Kind::Set(name, value) => format!("SET {name}={value} /* {tag} */"),
            Kind::PlainBegin => "BEGIN".to_string(),
            Kind::PlainCommit => "COMMIT".to_string(),
            Kind::PlainRollback => "ROLLBACK".to_string(),
            Kind::Begin => format!("BEGIN /* {tag} */"),
            Kind::Commit => format!("COMMIT /* {tag} */"),
            Kind::Rollback => format!("ROLLBACK /* {tag} */"),
            Kind::Insert => format!("INSERT INTO log VALUES ({tag})"),
            Kind::SetUser(name) => format!("SET @{}={tag} /* {tag} */", USER[*name]),
            Kind::ReadUser(name) => format!("SELECT @{} /* {tag} */", USER[*name]),
            Kind::LastInsertId => format!("SELECT LAST_INSERT_ID() /* {tag} */"),
            Kind::ShowWarnings => "SHOW WARNINGS".to_string(),
            Kind::Kill(id, true) => format!("KILL QUERY {id}"),
            Kind::Kill(id, false) => format!("KILL {id}"),
            Kind::Ping => return (Command::Ping, Vec::new()),
            Kind::Reset => return (Command::ResetConnection, Vec::new()),
            Kind::Prepare(text) => {
                return (Command::StmtPrepare, text_to_prepare(*text).into());
            }
            Kind::Execute(id, kind) => {
                let arguments = execution(*id, *kind, tag, &belief.prepared[id]);
                return (Command::StmtExecute, arguments);
            }
            Kind::Close(id) => return (Command::StmtClose, id.to_le_bytes().into()),
            Kind::LongData(id) => {
                let mut arguments = [&id.to_le_bytes()[..], &[0, 0]].concat();
                arguments.extend_from_slice(tag.to_string().as_bytes());
                return (Command::StmtSendLongData, arguments);
            }
            Kind::Option(true) => return (Command::SetOption, vec![0, 0]),
            Kind::Option(false) => return (Command::SetOption, vec![1, 0]),
        };
        (Command::Query, text.into_bytes())
    }

    /// True if the server runs it and can tell by its tag.
    pub(crate) fn is_tagged(&self) -> bool {
        !matches!(
            self,
            Kind::InitDb(_)
                | Kind::PlainBegin
                | Kind::PlainCommit
                | Kind::PlainRollback
                | Kind::ShowWarnings
                | Kind::Ping
                | Kind::Reset
                | Kind::Option(_)
                | Kind::Prepare(_)
                | Kind::Close(_)
                | Kind::LongData(_)
                | Kind::Execute(..)
                | Kind::Kill(..)
        )
    }

    /// True if the server does not answer it.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Kind::Close(_) | Kind::LongData(_))
    }

    /// True if it may be pipelined with others' statements.
    pub(crate) fn may_pipeline(&self) -> bool {
        use Kind::{Big, Fail, Point, Poison, Slow, Warn};
        matches!(self, Point | Poison | Big | Warn | Fail | Slow(_))
    }

    /// True if the pool reads something back behind it, while the client is idle already.
    pub(crate) fn is_read_back(&self) -> bool {
        matches!(self, Kind::Insert | Kind::Warn | Kind::Fail | Kind::Use(_))
            || matches!(self, Kind::InitDb(_) | Kind::Set(..) | Kind::SetUser(_))
            || matches!(self, Kind::Execute(..) | Kind::Prepare(_))
            // What was put off while the transaction was open.
            || ENDS.contains(self)
    }
}

/// One of the texts; the one behind the last cannot be prepared.
fn text_to_prepare(text: usize) -> &'static str {
    PREPARED.get(text).map_or(UNPREPARABLE, |known| known.0)
}

/// The arguments of an execution: its one parameter is the tag, unless that has gone as long data.
fn execution(id: u32, kind: Option<u8>, tag: u64, held: &Held) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0]);
    match kind {
        Some(kind) => out.extend_from_slice(&[1, kind, 0]),
        None => out.push(0),
    }
    if held.long.is_some() {
        return out;
    }
    match kind.or(held.kind) {
        Some(8) => out.extend_from_slice(&tag.to_le_bytes()),
        _ => wire::packet::put_lenenc_bytes(&mut out, tag.to_string().as_bytes()),
    }
    out
}

/// A prepared statement as its client believes it to be.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// Index of [`PREPARED`].
    pub(crate) text: usize,
    /// The session in which it was prepared.
    pub(crate) standing: Standing,
    /// The type that was sent last.
    pub(crate) kind: Option<u8>,
    /// The tag that has gone as long data.
    pub(crate) long: Option<u64>,
}

impl Held {
    /// Statement that has been prepared now.
    pub(crate) fn new(text: usize, standing: &Standing) -> Held {
        Held {
            text,
            standing: standing.clone(),
            kind: None,
            long: None,
        }
    }
}

/// A session as its client believes it to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Belief {
    pub(crate) standing: Standing,
    pub(crate) user: [Option<u64>; USER.len()],
    pub(crate) insert_id: u64,
    pub(crate) prepared: BTreeMap<u32, Held>,
    /// The tag of the BEGIN, or of the first statement behind it that the server has run.
    pub(crate) transaction: Option<u64>,
    /// The server may not know yet of the transaction that is open.
    pub(crate) deferred: bool,
    /// Rows that the open transaction has added.
    pub(crate) rows: Vec<u64>,
    /// True if it keeps a backend for good.
    pub(crate) pinned: bool,
    /// True if it may have been pinned by a statement that failed.
    pub(crate) maybe_pinned: bool,
    /// The statement before has left a warning about this tag.
    pub(crate) warned: Option<u64>,
    /// The pool itself refused the statement before, so it is open what SHOW WARNINGS tells.
    pub(crate) unsure: bool,
}

impl Belief {
    /// True if the session has something that only one connection knows.
    pub(crate) fn is_bound(&self) -> bool {
        self.has_transaction_there() || self.pinned
    }

    /// True if the server knows for certain of an open transaction.
    pub(crate) fn has_transaction_there(&self) -> bool {
        self.transaction.is_some() && !self.deferred
    }

    /// Kind of a statement once its text is known.
    pub(crate) fn ran(&self, kind: &Kind) -> Kind {
        match kind {
            Kind::Execute(id, _) => PREPARED[self.prepared[id].text].1.clone(),
            other => other.clone(),
        }
    }

    /// True if a statement that goes well leaves the warnings before it.
    pub(crate) fn keeps_warnings(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Prepare(text) => PREPARED
                .get(*text)
                .is_some_and(|(sql, _)| !uses_tables(sql)),
            kind => matches!(
                self.ran(kind),
                Kind::Use(_)
                    | Kind::InitDb(_)
                    | Kind::Set(..)
                    | Kind::Begin
                    | Kind::Commit
                    | Kind::Rollback
                    | Kind::PlainBegin
                    | Kind::PlainCommit
                    | Kind::PlainRollback
                    | Kind::SetUser(_)
                    | Kind::ReadUser(_)
                    | Kind::LastInsertId
                    | Kind::ShowWarnings
                    | Kind::Ping
                    | Kind::Option(_)
                    | Kind::Kill(..)
            ),
        }
    }

    /// The session under which a statement runs, in words: one that is prepared keeps the schema
    /// in which it was, and says where that was done.
    pub(crate) fn words(&self, kind: &Kind) -> String {
        let held = match kind {
            Kind::Execute(id, _) => self.prepared.get(id),
            _ => None,
        };
        let Some(held) = held else {
            return self.standing.words();
        };
        super::standing::words_of(&self.standing, &held.standing)
    }

    /// Takes the refusal of its state with these words: without a right to its schema it has none.
    pub(crate) fn lose_schema(&mut self, words: &str) {
        if words.contains("error 1044") {
            self.standing.schema = None;
        }
    }

    /// Report of the session, but for several statements: where restoring statements were joined
    /// with the client's own they are allowed, which it cannot use.
    pub(crate) fn heard(&self, words: &str) -> String {
        if self.standing.multi || words.contains(" prepared in ") {
            return words.into();
        }
        words.replace("multi=true", "multi=false")
    }

    /// True if that may be so.
    pub(crate) fn may_be_bound(&self) -> bool {
        self.is_bound() || self.maybe_pinned || self.transaction.is_some()
    }
}

/// Ends of transactions.
const ENDS: [Kind; 4] = [
    Kind::Commit,
    Kind::Rollback,
    Kind::PlainCommit,
    Kind::PlainRollback,
];

/// Statements about transactions outside of one; the end of none is one of them.
const OUTSIDE: [Kind; 6] = [
    Kind::Begin,
    Kind::Begin,
    Kind::PlainBegin,
    Kind::PlainBegin,
    Kind::PlainCommit,
    Kind::PlainRollback,
];

/// Next statement of a client. `behind`: others of its statements are still unanswered, so nothing
/// that depends on their success is chosen.
pub(crate) fn choose(random: &mut Random, belief: &Belief, behind: bool, tame: bool) -> Kind {
    let open = belief.transaction.is_some();
    match random.below(100) {
        0..17 => Kind::Point,
        17..26 if !tame => {
            let kinds = [Kind::SetUser, Kind::ReadUser];
            random.pick(&kinds)(random.index(USER.len()))
        }
        26..40 => prepared(random, belief, behind),
        40..45 => Kind::Slow(*random.pick(&[1, 5, 30, 200])),
        45..49 => Kind::Big,
        49..52 => Kind::Warn,
        52..55 => Kind::Fail,
        55..59 => Kind::Use(schema(random)),
        59..61 => Kind::InitDb(schema(random)),
        61..67 => variable(random),
        67..75 => Kind::Insert,
        75..82 if open && !behind => random.pick(&ENDS).clone(),
        75..82 if !behind && !tame => random.pick(&OUTSIDE).clone(),
        82..84 if !tame => Kind::SetUser(random.index(USER.len())),
        84..86 if !tame => Kind::ReadUser(random.index(USER.len())),
        86..89 => Kind::LastInsertId,
        89..92 if !tame => Kind::ShowWarnings,
        92..95 => Kind::Ping,
        95..96 => Kind::Reset,
        96..97 => Kind::Poison,
        97..99 => Kind::Option(random.chance(500)),
        _ => Kind::Point,
    }
}

/// Draws a statement about a prepared one: none that depends on what is still unanswered, and none
/// prepared without a schema, for which this language has no words.
fn prepared(random: &mut Random, belief: &Belief, behind: bool) -> Kind {
    if behind || belief.standing.schema.is_none() {
        return Kind::Point;
    }
    let ids: Vec<u32> = belief.prepared.keys().copied().collect();
    if ids.is_empty() || (ids.len() < 6 && random.chance(350)) {
        return Kind::Prepare(random.index(PREPARED.len() + 1));
    }
    let id = *random.pick(&ids);
    let held = &belief.prepared[&id];
    match random.below(12) {
        0 => Kind::Close(id),
        1 if held.long.is_none() => Kind::LongData(id),
        _ => {
            let says = held.kind.is_none() || random.chance(400);
            Kind::Execute(id, says.then(|| *random.pick(&TYPES)))
        }
    }
}

fn schema(random: &mut Random) -> &'static str {
    if random.chance(60) {
        "nowhere"
    } else {
        SCHEMAS[random.index(SCHEMAS.len())]
    }
}

fn variable(random: &mut Random) -> Kind {
    let all = [
        ("time_zone", "'+01:00'"),
        ("time_zone", "'+02:00'"),
        ("time_zone", "'SYSTEM'"),
        ("sql_safe_updates", "1"),
        ("sql_safe_updates", "0"),
        // Of those that the pool never answers by itself (`plain_set.rs`).
        ("sort_buffer_size", "77"),
        // Not known to succeed again (`known_good.rs`), so that it is waited for.
        ("optimizer_prune_level", "0"),
        ("optimizer_prune_level", "0"),
        ("optimizer_prune_level", "1"),
        ("character_set_results", "latin1"),
        ("character_set_connection", "latin1"),
    ];
    let (name, value) = *random.pick(&all);
    Kind::Set(name, value)
}
