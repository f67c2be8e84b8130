//! Known digests: which statements may share a backend in flight with other clients' statements.
//!
//! The problem: a server thread that gets one command at a time sleeps and is woken for each; with
//! several commands in its buffer it answers them in one go, and so does the pool. But what stands
//! behind a statement on the wire runs even when that statement fails or changes the session, and
//! waits when it is slow. The mechanism: a statement is pipelined with others only if it is a plain
//! SELECT outside any transaction ([`may_pipeline`]), and its digest
//! ([`sql::digest`]) under its session has run alone before and left nothing: no reported change,
//! no warning, no error, a small result. Whatever breaks that promise once is not trusted again. It
//! has to take little time as well, but for a few times of its last hundreds: a host that stood
//! still for a moment made all that ran then late, and says nothing of their digests.
//!
//! Invariant: the table is bounded (`KNOWN_DIGESTS_MAX`); when it is full it is learnt again.

use crate::found::Found;
use sql::classify::{InsertId, Reads, Statement, Verb};
use sql::digest::AsItIs;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::time::Duration;

/// KnownDigests remembered per group.
const KNOWN_DIGESTS_MAX: usize = 4096;
/// A statement that takes longer is pipelined with nobody: those behind it would wait.
const SERVICE_MAX: Duration = Duration::from_millis(50);
/// Runs that count among which one may take longer.
const LATE_ONE_IN: u8 = 32;
/// Runs among which one may, with the digest still known to be short.
const SHORT_ONE_IN: u8 = 4;
/// A reply that is longer is pipelined with nobody: a client that is slow to take it would hold
/// back those behind it.
pub const REPLY_MAX: usize = 16 * 1024;

/// True if a text may share a backend in flight, should its digest turn out to be trusted. A longer
/// one than its digest is made of may not.
#[must_use]
pub fn may_pipeline_text(sql: &[u8], class: &Statement, found: Found) -> bool {
    sql.len() <= sql::digest::LEN_MAX && may_pipeline(class, found)
}

/// True if a statement is of the kind that may be pipelined: a plain SELECT that reads nothing and
/// leaves nothing for which its backend would have to be asked.
pub fn may_pipeline(found: &Statement, left: Found) -> bool {
    left == Found::Rows
        && found.verb == Verb::Select
        && found.pin.is_none()
        && found.reads == Reads::NONE
        && !found.multi
        && !found.sets_charset
        && found.insert_id == InsertId::Keeps
        && !found.writes
        && !found.user_variables
}

/// Permission of a statement to be pipelined with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipelinable {
    /// Never, whatever its digest has done.
    Never,
    /// A text, if its digest is trusted.
    Text,
    /// An execution of a prepared text: it need not do what the text itself does.
    Execution,
}

impl Pipelinable {
    /// The digest of a statement with this digest under one session; 0 of one that never is
    /// pipelined.
    #[must_use]
    pub fn session_digest(self, digest: u64, session: usize) -> u64 {
        let hash = match self {
            Pipelinable::Never => return 0,
            Pipelinable::Text => digest,
            Pipelinable::Execution => !digest,
        };
        // 2^64 divided by the golden ratio: an odd number whose bits are even.
        let spread = (session as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash ^ spread.rotate_left(32)).max(1)
    }
}

/// End of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// True if it reported a change, warned, failed, or is in a transaction.
    pub left_something: bool,
    /// Time from its sending to its reply's last byte; `None` when others were in front of it.
    pub service: Option<Duration>,
    /// Bytes of its reply.
    pub reply_len: usize,
}

/// Facts of a digest.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Runs that kept the promise in little time, and in more; both are halved when one of them is
    /// as many as there may be, so that the last runs count most.
    quick: u8,
    late: u8,
    /// True if one run has left something, or a long reply.
    is_broken: bool,
}

impl Known {
    fn learn(&mut self, kept: bool, is_late: bool) {
        self.is_broken |= !kept;
        if self.quick.max(self.late) == u8::MAX {
            (self.quick, self.late) = (self.quick / 2, self.late / 2);
        }
        match is_late {
            true => self.late += 1,
            false => self.quick += 1,
        }
    }

    /// True if it keeps its promise, and at most one run in so many was late.
    fn is_quick(&self, one_in: u8) -> bool {
        let all = u16::from(self.quick) + u16::from(self.late);
        !self.is_broken && all > 0 && u16::from(self.late) * u16::from(one_in) <= all
    }
}

/// Facts of all digests.
#[derive(Debug, Default)]
pub struct KnownDigests {
    known: HashMap<u64, Known, BuildHasherDefault<AsItIs>>,
}

impl KnownDigests {
    /// True if statements of this digest may be pipelined.
    pub fn trusts(&self, digest: u64) -> bool {
        self.is_quick(digest, LATE_ONE_IN)
    }

    /// True if statements of this digest are known to be short: it may be late more often than one
    /// that is pipelined, as nobody stands behind it.
    pub fn are_short(&self, digest: u64) -> bool {
        self.is_quick(digest, SHORT_ONE_IN)
    }

    fn is_quick(&self, digest: u64, one_in: u8) -> bool {
        let known = self.known.get(&digest).filter(|_| digest != 0);
        known.is_some_and(|known| known.is_quick(one_in))
    }

    /// Learns from a statement's end.
    pub fn learn(&mut self, digest: u64, ending: Ending) {
        if digest == 0 {
            return;
        }
        let kept = !ending.left_something && ending.reply_len <= REPLY_MAX;
        let is_late = ending.service.is_some_and(|service| service > SERVICE_MAX);
        if self.known.len() >= KNOWN_DIGESTS_MAX && !self.known.contains_key(&digest) {
            self.known.clear();
        }
        self.known.entry(digest).or_default().learn(kept, is_late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;
    use sql::digest::digest;
    use sql::lex::LexMode;

    const GOOD: Ending = Ending {
        left_something: false,
        service: Some(Duration::from_micros(80)),
        reply_len: 200,
    };

    fn of(sql: &str) -> u64 {
        Pipelinable::Text.session_digest(digest(sql.as_bytes(), LexMode::default()), 1)
    }

    #[test]
    fn literals_do_not_make_a_shape() {
        assert_eq!(
            of("SELECT c FROM t WHERE id=1"),
            of("SELECT c  FROM t WHERE id=22")
        );
        assert_eq!(of("SELECT 'a'"), of("SELECT 'bb'"));
        assert_ne!(of("SELECT c FROM t"), of("SELECT c FROM u"));
        let text = digest(b"SELECT c FROM t", LexMode::default());
        assert_ne!(
            Pipelinable::Text.session_digest(text, 1),
            Pipelinable::Text.session_digest(text, 2),
            "another session, another schema maybe"
        );
        assert_ne!(
            Pipelinable::Text.session_digest(text, 1),
            Pipelinable::Execution.session_digest(text, 1)
        );
        assert_eq!(Pipelinable::Never.session_digest(text, 1), 0);
        assert_ne!(Pipelinable::Text.session_digest(0, 0), 0);
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
                may_pipeline(&classify(sql.as_bytes(), mode), Found::Rows),
                expected,
                "{sql}"
            );
        }
    }

    #[test]
    fn a_select_that_writes_does_not_ride() {
        let mut found = classify(b"SELECT c FROM t", LexMode::default());
        assert!(may_pipeline(&found, Found::Rows));
        found.writes = true;
        assert!(!may_pipeline(&found, Found::Rows));
    }

    #[test]
    fn trust_is_earned_alone_and_lost_for_good() {
        let mut digests = KnownDigests::default();
        assert!(!digests.trusts(7));
        digests.learn(7, GOOD);
        assert!(digests.trusts(7));
        digests.learn(
            7,
            Ending {
                left_something: true,
                ..GOOD
            },
        );
        assert!(!digests.trusts(7));
        digests.learn(7, GOOD);
        assert!(!digests.trusts(7));
        digests.learn(
            8,
            Ending {
                reply_len: REPLY_MAX + 1,
                ..GOOD
            },
        );
        digests.learn(
            9,
            Ending {
                service: Some(SERVICE_MAX * 2),
                ..GOOD
            },
        );
        assert!(!digests.trusts(8) && !digests.trusts(9) && !digests.trusts(0));
        assert!(!digests.are_short(8) && !digests.are_short(9) && !digests.are_short(0));
    }

    /// All that runs while a host stands still is late.
    #[test]
    fn who_was_late_for_once_is_trusted_again() {
        const LATE: Ending = Ending {
            service: Some(SERVICE_MAX.saturating_mul(2)),
            ..GOOD
        };
        let mut digests = KnownDigests::default();
        for _ in 0..1000 {
            digests.learn(7, GOOD);
        }
        for _ in 0..16 {
            digests.learn(7, LATE);
        }
        assert!(!digests.trusts(7), "nobody is to stand behind it now");
        assert!(digests.are_short(7), "and yet it is short");
        let mut again = 0;
        while !digests.trusts(7) {
            digests.learn(7, GOOD);
            again += 1;
        }
        assert!(again < 1000, "{again}");
        // What is late as often as not is neither.
        for _ in 0..600 {
            digests.learn(7, LATE);
            digests.learn(7, GOOD);
        }
        assert!(!digests.trusts(7) && !digests.are_short(7));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut digests = KnownDigests::default();
        for digest in 1..=KNOWN_DIGESTS_MAX as u64 + 10 {
            digests.learn(digest, GOOD);
        }
        assert!(digests.known.len() <= KNOWN_DIGESTS_MAX);
    }
}
