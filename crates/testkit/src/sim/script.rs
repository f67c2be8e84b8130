//! What simulated clients say, and what they believe their session to be.
//!
//! The problem: whether a reply is right depends on everything that its client did before. The
//! mechanism: [`Kind`] is a statement of the small language that the fake server understands;
//! [`Belief`] is the session as the client has made it, moved on with each reply, in order.
//! Invariant: an error leaves the belief as it was, because the pool promises that a session whose
//! statement failed with its connection is the one from before, or ends.

use super::fake_mysql::{SCHEMAS, Standing};
use super::random::Random;
use wire::command::Command;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Point,
    Poison,
    Big,
    Warn,
    Fail,
    Slow(u64),
    Use(&'static str),
    InitDb(&'static str),
    Set(&'static str, &'static str),
    Begin,
    Commit,
    Rollback,
    Insert,
    SetX,
    ReadX,
    LastInsertId,
    ShowWarnings,
    Ping,
    Reset,
    /// Multi-statements, on or off.
    Option(bool),
}

impl Kind {
    /// The command and its arguments, with this tag.
    pub(crate) fn command(&self, tag: u64) -> (Command, String) {
        let text = match self {
            Kind::Point => format!("SELECT c FROM t WHERE id={tag}"),
            Kind::Poison => format!("SELECT p FROM poison WHERE id={tag}"),
            Kind::Big => format!("SELECT b FROM big WHERE id={tag}"),
            Kind::Warn => format!("SELECT w FROM warns WHERE id={tag}"),
            Kind::Fail => format!("SELECT e FROM fails WHERE id={tag}"),
            Kind::Slow(ms) => format!("SELECT s FROM slow WHERE id={tag} AND d={ms}"),
            Kind::Use(schema) => format!("USE {schema} /* {tag} */"),
            Kind::InitDb(schema) => return (Command::InitDb, (*schema).to_string()),
            Kind::Set(name, value) => format!("SET {name}={value} /* {tag} */"),
            Kind::Begin => format!("BEGIN /* {tag} */"),
            Kind::Commit => format!("COMMIT /* {tag} */"),
            Kind::Rollback => format!("ROLLBACK /* {tag} */"),
            Kind::Insert => format!("INSERT INTO log VALUES ({tag})"),
            Kind::SetX => format!("SET @x={tag} /* {tag} */"),
            Kind::ReadX => format!("SELECT @x /* {tag} */"),
            Kind::LastInsertId => format!("SELECT LAST_INSERT_ID() /* {tag} */"),
            Kind::ShowWarnings => "SHOW WARNINGS".to_string(),
            Kind::Ping => return (Command::Ping, String::new()),
            Kind::Reset => return (Command::ResetConnection, String::new()),
            Kind::Option(true) => return (Command::SetOption, "\0\0".into()),
            Kind::Option(false) => return (Command::SetOption, "\u{1}\0".into()),
        };
        (Command::Query, text)
    }

    /// Whether the server runs it and can tell by its tag.
    pub(crate) fn is_tagged(&self) -> bool {
        !matches!(
            self,
            Kind::InitDb(_) | Kind::ShowWarnings | Kind::Ping | Kind::Reset | Kind::Option(_)
        )
    }

    /// Whether it may ride with others' statements.
    pub(crate) fn may_ride(&self) -> bool {
        use Kind::{Big, Fail, Point, Poison, Slow, Warn};
        matches!(self, Point | Poison | Big | Warn | Fail | Slow(_))
    }

    /// Whether the pool reads something back behind it, while the client is idle already.
    pub(crate) fn is_read_back(&self) -> bool {
        matches!(self, Kind::Insert | Kind::Warn | Kind::Fail | Kind::Use(_))
            || matches!(self, Kind::InitDb(_) | Kind::Set(..))
    }
}

/// A session as its client believes it to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Belief {
    pub(crate) standing: Standing,
    pub(crate) x: Option<u64>,
    pub(crate) insert_id: u64,
    /// The tag of the BEGIN.
    pub(crate) transaction: Option<u64>,
    /// Rows that the open transaction has added.
    pub(crate) rows: Vec<u64>,
    /// It keeps a backend for good.
    pub(crate) pinned: bool,
    /// It may have been pinned by a statement that failed.
    pub(crate) maybe_pinned: bool,
    /// The statement before has left a warning about this tag.
    pub(crate) warned: Option<u64>,
    /// The pool itself refused the statement before, so it is open what SHOW WARNINGS tells.
    pub(crate) unsure: bool,
}

impl Belief {
    /// Whether the session has something that only one connection knows.
    pub(crate) fn is_bound(&self) -> bool {
        self.transaction.is_some() || self.pinned
    }

    /// Whether that may be so.
    pub(crate) fn may_be_bound(&self) -> bool {
        self.is_bound() || self.maybe_pinned
    }
}

/// What a client does next. `behind`: others of its statements are still unanswered, so nothing
/// that depends on their success is chosen.
pub(crate) fn choose(random: &mut Random, belief: &Belief, behind: bool, tame: bool) -> Kind {
    let open = belief.transaction.is_some();
    match random.below(100) {
        0..40 => Kind::Point,
        40..45 => Kind::Slow(*random.pick(&[1, 5, 30, 200])),
        45..49 => Kind::Big,
        49..52 => Kind::Warn,
        52..55 => Kind::Fail,
        55..59 => Kind::Use(schema(random)),
        59..61 => Kind::InitDb(schema(random)),
        61..67 => variable(random),
        67..75 => Kind::Insert,
        75..82 if open && !behind => random.pick(&[Kind::Commit, Kind::Rollback]).clone(),
        75..82 if !behind && !tame => Kind::Begin,
        82..84 if !tame => Kind::SetX,
        84..86 if !tame => Kind::ReadX,
        86..89 => Kind::LastInsertId,
        89..92 if !tame => Kind::ShowWarnings,
        92..95 => Kind::Ping,
        95..96 if !open => Kind::Reset,
        96..97 => Kind::Poison,
        97..99 => Kind::Option(random.chance(500)),
        _ => Kind::Point,
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
        ("max_join_size", "77"),
        ("character_set_results", "latin1"),
        ("character_set_connection", "latin1"),
    ];
    let (name, value) = *random.pick(&all);
    Kind::Set(name, value)
}
