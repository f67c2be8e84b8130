//! Several statements in one text, as a pool joins restoring statements with its client's own.
//!
//! Invariants, held by a panic of the simulation: several statements come only where they are
//! allowed; and, as on the servers, what stands behind one that failed does not run.

use super::{Answer, Db, Form, Seat};
use wire::errors::ErrorCode;
use wire::status;

const NO_RIGHT: ErrorCode = ErrorCode {
    code: 1044,
    state: "42000",
};

/// The statement in front of others in a text, and those; clients' own texts have no semicolon.
fn split(text: &str) -> Option<(&str, &str)> {
    let (front, rest) = text.split_once(';')?;
    (front.starts_with("SET ") || front.starts_with("USE `")).then_some((front, rest))
}

impl Seat {
    /// Runs what stands in front of a text's last statement, and gives that and the number of its
    /// reply's first packet; `None` when one in front has failed, and was answered.
    pub(super) fn run_front<'a>(
        &mut self,
        db: &mut Db,
        mut text: &'a str,
        out: &mut Vec<u8>,
    ) -> Option<(&'a str, u8)> {
        let mut number = 1;
        while let Some((front, rest)) = split(text) {
            assert!(self.standing.multi, "one statement at a time: {text}");
            let mut answer = match front.strip_prefix("USE `") {
                Some(_) if db.fails_now() => Answer::Err(NO_RIGHT, "on purpose".into()),
                Some(schema) => self.change_schema(schema.trim_end_matches('`')),
                None => self.query(db, front),
            };
            let flags = self.flags() | status::MORE_RESULTS;
            let form = Form {
                binary: false,
                collation: 45,
                eofs: self.eofs,
            };
            self.delay_report(&mut answer);
            answer.put(out, number, flags, form);
            if matches!(answer, Answer::Err(..)) {
                return None;
            }
            number += 1;
            text = rest;
        }
        Some((text, number))
    }
}
