//! Shapes: which statements may share a backend in flight with other clients' statements.
//!
//! The problem: a server thread that gets one command at a time sleeps and is woken for each; with
//! several commands in its buffer it answers them in one go, and so does the pool. But what stands
//! behind a statement on the wire runs even when that statement fails or changes the session, and
//! waits when it is slow. The mechanism: a statement rides with others only if it is a plain
//! SELECT outside any transaction ([`rides`]), and its shape, the text without its literals under
//! its session, has run alone before and left nothing: no reported change, no warning, no error, a
//! small result, in little time. Whatever breaks the promise once is not trusted again.
//!
//! Invariant: the table is bounded (`SHAPES_MAX`); when it is full it is learnt again.

use crate::found::Found;
use sql::classify::{InsertId, Reads, Statement, Verb};
use sql::lex::{Kind, LexMode, Lexer};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Shapes remembered per group.
const SHAPES_MAX: usize = 4096;
/// A statement that takes longer rides with nobody: those behind it would wait.
const SERVICE_MAX: Duration = Duration::from_millis(50);
/// A reply that is longer rides with nobody: a client that is slow to take it would hold back
/// those behind it.
pub const REPLY_MAX: usize = 16 * 1024;

/// Whether a statement is of the kind that may ride: a plain SELECT that reads nothing and leaves
/// nothing for which its backend would have to be asked.
pub fn rides(found: &Statement, left: Found) -> bool {
    matches!(left, Found::Rows | Found::Nested)
        && found.verb == Verb::Select
        && found.pin.is_none()
        && found.reads == Reads::NONE
        && !found.multi
        && !found.sets_charset
        && found.insert_id == InsertId::Keeps
        && !found.writes
        && !found.user_variables
}

/// A number that is the same for texts that differ in their literals only, under one session.
pub fn shape_of(sql: &[u8], mode: LexMode, session: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    for token in Lexer::new(sql, mode) {
        match token.kind {
            Kind::String | Kind::Number => 0u8.hash(&mut hasher),
            _ => sql[token.start..token.end].hash(&mut hasher),
        }
    }
    // 0 stands for "rides with nobody".
    hasher.finish().max(1)
}

/// The same of an execution of a prepared text: its values are no part of it.
pub fn shape_of_execution(sql: &[u8], session: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (session, "prepared", sql).hash(&mut hasher);
    hasher.finish().max(1)
}

/// How a statement ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// It reported a change, warned, failed, or is in a transaction.
    pub left_something: bool,
    /// From its sending to its reply's last byte; `None` when others were in front of it.
    pub service: Option<Duration>,
    /// Bytes of its reply.
    pub reply_len: usize,
}

/// What is known of shapes.
#[derive(Debug, Default)]
pub struct Shapes {
    trusted: HashMap<u64, bool, BuildHasherDefault<AsItIs>>,
}

/// A shape is a hash already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, shape: u64) {
        self.0 = shape;
    }
}

impl Shapes {
    /// Whether statements of this shape may ride.
    pub fn trusts(&self, shape: u64) -> bool {
        shape != 0 && self.trusted.get(&shape) == Some(&true)
    }

    /// Learns from a statement's end; true when trust was broken just now.
    pub fn learn(&mut self, shape: u64, ending: Ending) -> bool {
        if shape == 0 {
            return false;
        }
        let good = !ending.left_something
            && ending.reply_len <= REPLY_MAX
            && ending.service.is_none_or(|service| service <= SERVICE_MAX);
        if self.trusted.len() >= SHAPES_MAX && !self.trusted.contains_key(&shape) {
            self.trusted.clear();
        }
        let known = self.trusted.entry(shape).or_insert(good);
        let broken = *known && !good;
        *known &= good;
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;

    const GOOD: Ending = Ending {
        left_something: false,
        service: Some(Duration::from_micros(80)),
        reply_len: 200,
    };

    fn shape(sql: &str) -> u64 {
        shape_of(sql.as_bytes(), LexMode::default(), 1)
    }

    #[test]
    fn literals_do_not_make_a_shape() {
        assert_eq!(
            shape("SELECT c FROM t WHERE id=1"),
            shape("SELECT c  FROM t WHERE id=22")
        );
        assert_eq!(shape("SELECT 'a'"), shape("SELECT 'bb'"));
        assert_ne!(shape("SELECT c FROM t"), shape("SELECT c FROM u"));
        let other = shape_of(b"SELECT c FROM t", LexMode::default(), 2);
        assert_ne!(
            shape("SELECT c FROM t"),
            other,
            "another session, another schema maybe"
        );
    }

    #[test]
    fn only_plain_selects_ride() {
        let cases = [
            ("SELECT c FROM t WHERE id=1", true),
            ("SELECT LAST_INSERT_ID()", false),
            ("SELECT @x", false),
            ("SELECT f(1)", false),
            ("SELECT 1; SELECT 2", false),
            ("UPDATE t SET a=1", false),
            ("BEGIN", false),
        ];
        let mode = LexMode {
            server: sql::lex::Server::MariaDb(101_114),
            ..LexMode::default()
        };
        for (sql, expected) in cases {
            assert_eq!(
                rides(&classify(sql.as_bytes(), mode), Found::Rows),
                expected,
                "{sql}"
            );
        }
    }

    #[test]
    fn trust_is_earned_alone_and_lost_for_good() {
        let mut shapes = Shapes::default();
        assert!(!shapes.trusts(7));
        assert!(!shapes.learn(7, GOOD));
        assert!(shapes.trusts(7));
        assert!(shapes.learn(
            7,
            Ending {
                left_something: true,
                ..GOOD
            }
        ));
        assert!(!shapes.trusts(7));
        assert!(!shapes.learn(7, GOOD));
        assert!(!shapes.trusts(7));
        shapes.learn(
            8,
            Ending {
                reply_len: REPLY_MAX + 1,
                ..GOOD
            },
        );
        shapes.learn(
            9,
            Ending {
                service: Some(SERVICE_MAX * 2),
                ..GOOD
            },
        );
        assert!(!shapes.trusts(8) && !shapes.trusts(9) && !shapes.trusts(0));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut shapes = Shapes::default();
        for shape in 1..=SHAPES_MAX as u64 + 10 {
            shapes.learn(shape, GOOD);
        }
        assert!(shapes.trusted.len() <= SHAPES_MAX);
    }
}
