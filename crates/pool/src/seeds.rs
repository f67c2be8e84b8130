//! Seeds: where RAND() goes on, once a client has said so by `rand_seed1` and `rand_seed2`.
//!
//! The problem: MySQL shows 0 for both, so nobody can read back where RAND() is. The mechanism: a
//! SET to plain numbers is remembered from its text ([`seeds_in`]) when the server has reported it,
//! and restored like any other variable, until the client's first statement that may use RAND()
//! ([`may_use`]): from then on only its backend knows, and it keeps that, until it has set both
//! anew. A session without them gets some that are others each time: those of another client would
//! give it the same numbers again and again.
//!
//! Invariant: a session with seeds stands where its client has put them.

use session::state::is_seed;
use session::text::Text;
use sql::classify::{Marks, PinCause, Statement, Verb};
use sql::lex::{Kind, LexMode, Lexer};

/// The name under which a client holds a RAND() that goes on.
pub(crate) const HELD: &[u8] = b"random";

/// What a client's text sets of them, as it is written there.
pub(crate) fn seeds_in(sql: &[u8], mode: LexMode) -> Vec<(Text, Text)> {
    let mut seeds: Vec<(Text, Text)> = Vec::new();
    let mut last = [None, None];
    for token in Lexer::new(sql, mode) {
        let text = &sql[token.start..token.end];
        if token.kind == Kind::Number
            && let [Some(name), Some((Kind::Assign | Kind::Punct(b'='), _))] = last
        {
            let (_, name): (Kind, &[u8]) = name;
            let name = name.rsplit(|&byte| b"@.".contains(&byte)).next();
            let name = name.unwrap_or_default().trim_ascii().to_ascii_lowercase();
            let name = name.strip_prefix(b"`").unwrap_or(&name);
            let name = name.strip_suffix(b"`").unwrap_or(name);
            if is_seed(name) {
                seeds.retain(|(other, _)| **other != *name);
                seeds.push((name.into(), text.into()));
            }
        }
        last = [last[1], Some((token.kind, text))];
    }
    seeds
}

/// Whether a text may run RAND(): by its name, or in code that it does not show.
pub(crate) fn may_use(sql: &[u8], found: &Statement) -> bool {
    use Verb::{Begin, Commit, Empty, Kill, Rollback, Savepoint, Select, Set, Show, Use};
    let quiet = matches!(
        found.verb,
        Begin | Commit | Empty | Kill | Rollback | Savepoint | Select | Set | Show | Use
    );
    let tables = Marks::FROM
        .union(Marks::FROM_INSIDE)
        .union(Marks::SELECT_INSIDE);
    let calls = found.causes.contains(PinCause::StoredCode);
    !quiet || found.multi || calls || found.marks.intersects(tables) || names_random(sql)
}

/// Whether RAND stands anywhere but in the names of the seeds.
fn names_random(sql: &[u8]) -> bool {
    const NAME: &[u8] = b"rand";
    let is =
        |text: Option<&[u8]>, word: &[u8]| text.is_some_and(|text| text.eq_ignore_ascii_case(word));
    (0..sql.len()).any(|at| {
        let seed = is(sql.get(at + NAME.len()..at + NAME.len() + 5), b"_seed");
        is(sql.get(at..at + NAME.len()), NAME) && !seed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;

    #[test]
    fn a_text_tells_the_seeds_that_it_sets() {
        let mode = LexMode::default();
        let seeds = |sql: &str| -> Vec<String> {
            let text = |text: &Text| String::from_utf8(text.to_vec()).unwrap();
            let pairs = seeds_in(sql.as_bytes(), mode);
            pairs
                .iter()
                .map(|(n, v)| text(n) + "=" + &text(v))
                .collect()
        };
        assert_eq!(
            seeds("SET rand_seed1 = 5, @@SESSION.`Rand_Seed2` := 77, @a = 3"),
            ["rand_seed1=5", "rand_seed2=77"]
        );
        assert_eq!(seeds("SET RAND_SEED1=1, rand_seed1=2"), ["rand_seed1=2"]);
        assert!(seeds("SET rand_seed1 = @x, wait_timeout = 5").is_empty());
    }

    #[test]
    fn what_may_use_random_numbers_is_known() {
        let uses = |sql: &str| {
            let found = classify(sql.as_bytes(), LexMode::default());
            may_use(sql.as_bytes(), &found)
        };
        for sql in [
            "SELECT RAND()",
            "SELECT * FROM t",
            "INSERT INTO t VALUES (1)",
            "SET @a = rand()",
            "SET rand_seed1 = 5 + rand ()",
            "SELECT (SELECT 1)",
            "SELECT f(1)",
            "SELECT 1; SELECT 2",
            "CALL p()",
        ] {
            assert!(uses(sql), "{sql}");
        }
        for sql in [
            "SELECT 1",
            "SET @a = 5",
            "SET rand_seed1 = 5, RAND_SEED2 = 7",
            "BEGIN",
            "COMMIT",
            "SHOW TABLES",
            "USE d",
        ] {
            assert!(!uses(sql), "{sql}");
        }
    }
}
