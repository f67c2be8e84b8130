//! Stories: lists of SQL of several clients in files that anybody can read.
//!
//! A story is told to the server itself, each client on a connection of its own, and through a pool
//! with fewer backends than clients. Each reply is compared whole (as the oracle does, which prints
//! its findings in this format). A story of one client is told with a stranger, who uses the pool
//! after each of its steps. One line is one step:
//!
//! ```text
//! # A comment; in front of a story it says what the story is about.
//! story a_limit_follows_its_client     begins a story; what stands before is the file's
//! only mariadb                         told on this server only
//! backends 2                           of the pool; 1 where the story does not say
//! pool wait_ms_max = 1000              a line of the pool's configuration
//! loose                                does not compare the flag of a change that is not named,
//!                                      nor the work in a transaction's reported state
//! let probe = SELECT @@sql_mode        $probe in later lines; $schema is the story's schema
//! server: SET GLOBAL x = 1             the administrator, directly; must succeed
//! a: SELECT 1                          a client, who joins with its first line, sends SQL
//! a, b: $probe                         one after the other
//! a: BEGIN ;; DO 1 ;; COMMIT           three statements, each with its reply
//! a: SELECT 1 => 1                     what both are answered: values by `, `, rows by `; `, `ok`,
//! a: SELEKT => error 1064 syntax       the number of an error, words of its message; ` | ` between
//!                                      several results
//! a: SHOW WARNINGS => or error 1235    as the server answers, or this error from the pool
//! a: SELECT 1 => pool: error 9501      from the pool alone; not compared
//! a: SHOW ENGINES => well              neither is answered an error; not compared
//! a joins no_schema user other collation 8 with FOUND_ROWS+IGNORE_SPACE without DEPRECATE_EOF
//! a becomes user other password x      COM_CHANGE_USER; the words of `joins`
//! a bytes: SET @a = '\xff\n'           SQL with escapes
//! a prepare p: SELECT ?                execute p ('x', NULL) · open p () (a cursor) · fetch p 1 ·
//!                                      again p ('y') without types · bulk p ('x') ('y') · cut p ·
//!                                      long p 0: text · reset p · close p · sends p 0x17: bytes
//! a ping                               reset · init_db: shop · multi on · statistics ·
//!                                      attribute: v · command 0x04: bytes · leaves · vanishes
//! a ends                               hears what comes until the other side closes
//! a waits: UPDATE t SET v = 1          for another client's lock; up to `a goes on` others speak
//! b kills a query                      or `connection`, or `command`
//! a is pinned named_lock               what the pool's report says; `a is not pinned`
//! finish                               waits for the pool's own questions
//! together ... end                     all send, then all receive
//! a writes ... end                     in one write: `: SQL`, prepare p: SQL, ping, reset,
//!                                      init_db, command; then all replies
//! if mysql ... end                     for this server only
//! watch b, a: $probe                   repeated behind each following line, up to `watch nothing`
//! for set, value:                      the lines up to `end`, with $set and $value of each item
//! - SET x = 1 | 1
//! ```
//!
//! A line that ends with `\` goes on in the next one.

mod parse;
mod print;

pub use parse::parse;
pub use print::print;

use crate::client::Client;
use crate::onramp::Pool;
use crate::oracle::{Reply, Step, Teller};
use crate::talk::Account;
use reactor::Address;
use std::fmt::Write as _;

/// Stands between the statements of one line.
const AND_THEN: &str = " ;; ";

/// One story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Its name.
    pub name: String,
    /// The most backends of its pool.
    pub backends: usize,
    /// Lines of the pool's configuration.
    pub settings: String,
    /// True if it is compared as the oracle compares: see [`crate::oracle`].
    pub loose: bool,
    /// Its steps.
    pub lines: Vec<Line>,
}

/// One step of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its line in the file.
    pub number: usize,
    /// The step.
    pub step: Step,
    /// The answer that is expected besides that both are the same.
    pub expected: Expected,
}

/// An expectation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// The pool answers as the server does.
    #[default]
    Same,
    /// Both answer this.
    Both(String),
    /// The pool answers as the server does, or so.
    Or(String),
    /// The pool answers so, whatever the server does.
    Pool(String),
    /// Neither answers an error.
    Well,
}

impl Story {
    /// Number of its clients.
    fn clients(&self) -> usize {
        let most = self.lines.iter().map(|line| line.step.who + 1).max();
        most.unwrap_or_default()
    }
}

/// Tells a story to a server, or to a pool where there is one; `admin` is the administrator's
/// connection to the server. `late`: each step waits for the pool's own questions.
#[must_use]
pub fn tell(
    admin: &mut Client,
    address: &Address,
    pool: Option<&Pool>,
    (story, schema, late): (&Story, &str, bool),
) -> Vec<Reply> {
    let mut teller = Teller::new(admin, address, pool, schema);
    teller.strict = !story.loose;
    let mut stranger = match pool {
        Some(_) if story.clients() == 1 => {
            Client::connect(address, &Account::new("app", "app")).ok()
        }
        _ => None,
    };
    let mut replies = Vec::new();
    for line in &story.lines {
        let mut step = line.step.clone();
        step.late |= late;
        replies.push(teller.timed(&step));
        if let Some(stranger) = stranger.as_mut().filter(|_| !teller.in_transaction()) {
            let said = stranger.query("SET @stranger = 1, sql_mode = ''");
            assert!(
                matches!(said.as_deref(), Ok([crate::reply::Outcome::Done(_)])),
                "line {}: the stranger behind it is answered {said:?}; a story whose client keeps \
                 its backend says `backends 2`",
                line.number
            );
        }
    }
    replies
}

/// Differences between a story's answers and what was expected, in words; `pooled` is `None` where
/// there is no pool.
#[must_use]
pub fn judge(file: &str, story: &Story, direct: &[Reply], pooled: Option<&[Reply]>) -> String {
    let mut words = String::new();
    for (index, line) in story.lines.iter().enumerate() {
        let direct = &direct[index];
        let pooled = pooled.map(|pooled| &pooled[index]);
        let (is_right, wanted) = match &line.expected {
            Expected::Same => (pooled.is_none_or(|pooled| pooled.whole == direct.whole), ""),
            Expected::Both(text) => {
                let same = pooled.is_none_or(|pooled| pooled.whole == direct.whole);
                (same && direct.is(text), &text[..])
            }
            Expected::Or(text) => {
                let fits = |pooled: &Reply| pooled.whole == direct.whole || pooled.is(text);
                (pooled.is_none_or(fits), &text[..])
            }
            Expected::Well => {
                let well = |reply: &Reply| !reply.brief.starts_with("error ");
                (well(direct) && pooled.is_none_or(well), "well")
            }
            Expected::Pool(text) => (pooled.is_none_or(|pooled| pooled.is(text)), &text[..]),
        };
        if is_right {
            continue;
        }
        let pooled = pooled.map_or("not asked", |pooled| &pooled.whole);
        let _ = writeln!(
            words,
            "{file}:{}: story {}: {:?}\n  server itself: {}\n  through pool:  {pooled}",
            line.number, story.name, line.step.act, direct.whole
        );
        if !wanted.is_empty() {
            let _ = writeln!(
                words,
                "  expected:      {wanted} (server: {})",
                direct.brief
            );
        }
    }
    words
}

#[cfg(test)]
mod tests;
