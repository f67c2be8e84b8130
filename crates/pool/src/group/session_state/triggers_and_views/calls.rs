//! Calls: what is known of the stored code that a client's own text runs.
//!
//! The problem: a CALL, or a function that is not the server's own, may leave anything in its
//! session, so its client would keep its backend for good; an application that lives by stored
//! procedures would share none. The mechanism: the text names the routines, and the catalogue has
//! judged each of them with all that it calls, fires and reads. Where every routine that a text may
//! mean leaves nothing but what is followed anyway, the statement is as any other: what the
//! trackers report becomes the session's, the user variables that the code may set are read back
//! as those that a text sets, LAST_INSERT_ID() and FOUND_ROWS() as after any statement that may
//! change them.
//!
//! Not known, and so as ever: a routine that the catalogue does not have, or whose text it was not
//! shown; names that are not ASCII; what stands in Oracle's mode, where `a.b` may be a routine of a
//! package; a name that is a loaded function's too; code that reads what the statement before its
//! call left, since that may be on another backend; on MySQL a procedure that may count no rows,
//! whose OK then tells the count of before.

use super::reads;
use crate::group::Group;
use reactor::{Key, Net};
use session::found::hides_reads;
use session::known_code::Known;
use session::state::Session;
use sql::classify::stored::run_by;
use sql::classify::{self, PinCause, Reads, Verb};
use sql::lex::{Kind, LexMode, Lexer};

impl<N: Net> Group<N> {
    /// What is known of the stored code that a text calls, if it calls any and all is known.
    /// `schema` is its default schema, empty where there is none, if that is certain.
    pub(crate) fn known_code(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
        session: &Session,
    ) -> Option<Known> {
        if !found.causes.contains(PinCause::StoredCode) || !self.shared.code_catalogue.on {
            return None;
        }
        self.see_code_catalogue();
        let sql_mode = session.value(b"sql_mode");
        let sql_mode = sql_mode.unwrap_or(self.shared.server.sql_mode.as_bytes());
        if sql_mode
            .split(|&byte| byte == b',')
            .any(|mode| mode == b"ORACLE")
        {
            return None;
        }
        // A function may count before its own statement has asked, or behind.
        let counts = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::DIAGNOSTICS)
            .union(Reads::LAST_GTID);
        if found.own_reads.intersects(counts) {
            return None;
        }
        let run = run_by(sql, mode, found)?;
        let (leaves, sets) = self.code_seen.names.known(&run, schema, mode.server)?;
        Some(Known {
            leaves,
            sets: sets.into_iter().collect(),
        })
    }

    /// Whether a text asks first and goes on with what nobody can tell, or calls stored code and
    /// asks beside the call, or is known to ask in that code, in a view
    /// or in a trigger, what the statement before left, and its client's backend does not know. If
    /// that is free, the client goes there. `schema` is as for [`Group::known_code`].
    pub(crate) fn asks_inside(
        &mut self,
        key: Key,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> bool {
        let calls = found.causes.contains(PinCause::StoredCode);
        let named = self.asked_by_named((sql, mode), found, schema);
        let hides = found.pin.is_some_and(hides_reads);
        if !calls && !hides && named.is_empty() {
            return false;
        }
        let first = first_of_several((sql, mode), found);
        // What stands behind the first of several may be no statement at all; the first runs.
        let shown = match &first {
            Some((_, first)) if hides && !first.pin.is_some_and(hides_reads) => first.own_reads,
            _ => Reads::NONE,
        };
        // What is not read to its end may ask for anything.
        let read = found.multi && hides && !found.causes.contains(PinCause::Unknown);
        let shown = match read {
            true => shown.union(found.own_reads),
            false => shown,
        };
        if !calls && shown.is_empty() && named.is_empty() {
            return false;
        }
        self.return_to_ask(key);
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let lost = client.lost_to_code();
        if lost.is_empty() {
            return false;
        }
        let mut asked = match found.causes.contains(PinCause::Unknown) {
            _ if !calls => Reads::NONE,
            true => Reads::NONE,
            false => found.own_reads,
        };
        asked = asked.union(shown);
        let left = first
            .as_ref()
            .map_or(Reads::NONE, |first| left_by(&first.1));
        // What the first of several statements leaves comes too late for what it reaches itself.
        let at_once = first.map_or(Reads::NONE, |(text, first)| {
            self.asked_by_named((text, mode), &first, schema)
        });
        asked = asked.union(at_once).union(named.without(left));
        if calls
            && self.shared.code_catalogue.on
            && let Some(run) = run_by(sql, mode, found)
        {
            self.see_code_catalogue();
            let inside = self.code_seen.names.asked_by(&run, schema);
            // What the first of several statements leaves is its text's own.
            asked = asked.union(inside.without(left));
        }
        asked.intersects(lost)
    }

    /// What the triggers that a text may fire, and the views that it may read, read of what the
    /// statement before left.
    fn asked_by_named(
        &mut self,
        text: (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> Reads {
        let runs_none = matches!(found.verb, Verb::Ddl | Verb::Show | Verb::Explain);
        if runs_none && !found.multi {
            return Reads::NONE;
        }
        self.see_code_catalogue();
        let (names, reads) = (&self.code_seen.names, reads(found));
        match names.any_asks(reads) {
            true => names.asked_by_named(text, schema, reads),
            false => Reads::NONE,
        }
    }

    /// A client's command runs code that may set these user variables.
    pub(crate) fn touch_by_code(&mut self, key: Key, known: Option<&Known>) {
        let Some(sets) = known
            .map(|known| &known.sets)
            .filter(|sets| !sets.is_empty())
        else {
            return;
        };
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let touching = client.touching.get_or_insert_default();
        touching.fresh = true;
        let names = &mut touching.names;
        for name in sets {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
}

/// The first statement of a text of several.
fn first_of_several<'a>(
    (sql, mode): (&'a [u8], LexMode),
    found: &classify::Statement,
) -> Option<(&'a [u8], classify::Statement)> {
    if !found.multi {
        return None;
    }
    let semicolon = Lexer::new(sql, mode).find(|token| token.kind == Kind::Semicolon);
    let first = &sql[..semicolon?.start];
    Some((first, classify::classify(first, mode)))
}

/// What the first statement of a text of several replaces of that which was left before.
fn left_by(first: &classify::Statement) -> Reads {
    match first.verb {
        Verb::Other | Verb::Begin => Reads::NONE,
        _ if first.causes.contains(PinCause::StoredCode) => Reads::NONE,
        _ => first.replaces,
    }
}
