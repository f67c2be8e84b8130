//! User variables (`@a`) follow their client as values.
//!
//! The problem: a user variable lives in one server session, and no tracker tells its value. The
//! mechanism: the text names the variables that it may set ([`modified`]); when the backend would
//! be checked in, they are read back once, with type and collation, and each becomes the literal
//! that restores it ([`literal_of`]): a part of the session, restored by difference like any other.
//! Values that no literal gives back exactly, or that are too long or too many, pin, and are read
//! again whenever the client may have set it to something else. A value that is too long stays on
//! the server: the question is bounded, whatever the values are ([`value_max`]). Names that are too
//! long or too many pin for good.
//!
//! The client's next statement may stand behind the question already. The answer counts unless that
//! statement may set some itself, so a client that never pauses has its variables on one backend
//! alone for no longer than one that does.
//!
//! A variable cannot be taken away from a server session but with all else (`session_reset.rs` does
//! that where a text names one that its client has never set). Elsewhere it is put to a NULL as
//! like an unset one as can be (`put_user_differences`). A NULL that the client has set itself is
//! another, as its column tells, and is restored as such.
//!
//! Names that are not ASCII are compared by the servers, each in its own way (accents, spaces at
//! the end). So where one of a client's names is such, all of them are read back together, and
//! written together: whatever is one variable for the server has one value for the pool.
//!
//! Invariants: a backend whose variables were not read back serves nobody else; names are UTF-8,
//! and lower case as far as they are ASCII.
//!
//! What the servers make of each literal was compared on MariaDB 10.11 and MySQL 9.7.

use crate::backend::flight::{COLLECTED_MAX, Flight};
use crate::backend::{ForSession, Purpose};
use crate::client::ClientSession;
use crate::client::modified::Modified;
use crate::errors::reasons::PinReason;
use crate::observe::figures::counts::Counts;
use crate::pair::unset::Use;
use crate::pair::{Broken, Context, Pair};
use reactor::Time;
use session::prepared::Definition;
use session::read_back::{Answer, Properties};
use session::state::{UserVariables, is_tricky};
use session::text::Text;
use session::user_variables::{
    COUNT_MAX, READ_COLUMNS, Read, columns_len_max, literal_of, modified,
};
use sql::classify::{PinCause, Statement, Verb};
use sql::lex::LexMode;

/// Longest value that a client may carry, in bytes.
const VALUE_MAX: usize = 64 * 1024;

/// Bytes of the literals that a client may carry: they go to the server in one SET.
const CLIENT_BYTES_MAX: usize = 1024 * 1024;

/// Part of the longest command that the server takes which one client's variables may be in a SET.
/// It takes away another's too, and sets system variables.
const PACKET_SHARE: usize = 3;

/// Bytes of the names that are to be read back.
const NAMES_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the answer to a question about user variables that are values. The rest is for columns'
/// definitions and collations of twice [`COUNT_MAX`] variables: a client's own and those just set.
const ANSWER_VALUES_MAX: usize = COLLECTED_MAX - 2 * 1024 * 1024;

/// Bytes of a group's user variables above which those that nobody has are dropped at once.
const SWEPT_ABOVE: usize = 64 * 1024 * 1024;

/// Resource that a client holds while its variables cannot be carried.
const VALUES: &[u8] = b"values";

/// User variables that a server makes or sets for this text, of which its client has never set
/// `unset`; `None` where they cannot be told.
fn made_by(sql: &[u8], mode: LexMode, found: &Statement, unset: &[Text]) -> Option<Vec<Text>> {
    let mut names = modified(sql, mode, found)?;
    if names.is_empty() && found.verb != Verb::Select {
        // A server with a binary log makes what such a statement reads, as NULL.
        names.extend(unset.iter().filter(|name| !name.is_empty()).cloned());
    }
    Some(names)
}

/// Effects that are to be noted, if there are any.
fn boxed(modified: Modified) -> Option<Box<Modified>> {
    let nothing = modified.sets_nothing() && !modified.needs_none_left;
    (!nothing).then(|| Box::new(modified))
}

impl ClientSession {
    /// Completes the names of what its statements may have set: all that it has, where one may go
    /// by the name of another. `false` where they cannot be written in its session's character set,
    /// or not in a command of this length with other questions.
    pub(crate) fn names_to_read(&mut self, packet_max: usize) -> bool {
        let Some(modified) = &mut self.modified else {
            return true;
        };
        modified.fresh = false;
        let carried = self.state.user_variables();
        if carried.is_tricky() || modified.names.iter().any(|name| is_tricky(name)) {
            for (name, _) in carried.pairs() {
                if !modified.names.contains(name) {
                    modified.names.push(name.clone());
                }
            }
        }
        let can = self.state.speaks_utf8() || modified.names.iter().all(|name| name.is_ascii());
        if !can || columns_len_max(&modified.names) > packet_max / 2 {
            modified.names = Vec::new();
            return false;
        }
        true
    }

    /// Unreported effects of running this text; and `false` where the user variables among them
    /// cannot be told from it.
    pub(crate) fn sets_by(
        &self,
        sql: &[u8],
        mode: LexMode,
        found: &Statement,
    ) -> (Option<Box<Modified>>, bool) {
        let (mut modified, certain) = self.variables_in(sql, mode, (found, Use::Run));
        modified.set_by(sql, mode, found);
        (boxed(modified), certain)
    }

    /// Notes that its command prepares this text: a server looks at the user variables that it
    /// names, and makes those that it would set, whether it is executed or not.
    pub(crate) fn touch_to_prepare(&mut self, sql: &[u8], mode: LexMode, found: &Statement) {
        let (modified, certain) = self.variables_in(sql, mode, (found, Use::Prepare));
        if !certain {
            self.pin_by(PinReason::Text(PinCause::UserVariable), sql);
        }
        self.effects.plan_modifying(boxed(modified));
    }

    /// User variables that this text makes or sets, and those that are not to be there for it.
    /// `false` where they cannot be told.
    fn variables_in(
        &self,
        sql: &[u8],
        mode: LexMode,
        (found, used): (&Statement, Use),
    ) -> (Modified, bool) {
        let runs_strings = found.runs_strings();
        if !found.user_variables && !runs_strings {
            return (Modified::default(), true);
        }
        let unset = self.unset_by(sql, mode, (found, used));
        let names = made_by(sql, mode, found, &unset);
        let certain = names.is_some();
        let mut modified = Modified::of(names.unwrap_or_default());
        // What such a text names is not shown.
        modified.needs_none_left = runs_strings || !unset.is_empty();
        (modified, certain)
    }

    /// Notes that its statement, which may set these variables, is about to be sent to its backend.
    pub(crate) fn note_modified(&mut self, there: &mut Flight, counted: (Time, &mut Counts)) {
        if let Some(next) = (self.effects.take_modifying()).filter(|next| !next.sets_nothing()) {
            self.note_made(*next, there, counted);
        }
    }

    /// Notes the user variables that the next command to a backend may set.
    fn note_made(&mut self, next: Modified, there: &mut Flight, counted: (Time, &mut Counts)) {
        // What is asked of them is outdated: all of them are asked for once this has run. If it
        // sets none, the answer counts.
        for command in there.iter_mut().filter(|_| next.fresh) {
            if let Purpose::Session(ForSession::ReadBack(asked)) = &mut command.purpose {
                asked.properties = asked.properties.without(Properties::USER_VARIABLES);
            }
        }
        let modified = self.modified.get_or_insert_default();
        modified.add(next);
        let bytes: usize = modified.names.iter().map(|name| name.len()).sum();
        if modified.names.len() > COUNT_MAX || bytes > NAMES_BYTES_MAX {
            modified.names = Vec::new();
            self.pin(PinReason::Text(PinCause::UserVariable), None, counted);
        }
    }
}

impl Pair<'_> {
    /// Notes the user variables that a text would set, for this client, when the backend prepares
    /// what the client has prepared elsewhere.
    pub(super) fn note_prepared_ahead(&mut self, definition: &Definition) {
        let Definition { sql, class, .. } = definition;
        if !class.user_variables {
            return;
        }
        let mode = (self.context.server).lex_mode(&definition.session, self.ends.capabilities);
        let unset = self.client.unset_by(sql, mode, (class, Use::Prepare));
        // One that cannot be told has pinned its client when it was prepared first.
        let made = Modified::of(made_by(sql, mode, class, &unset).unwrap_or_default());
        if !made.sets_nothing() {
            let Context { now, counts, .. } = &mut self.context;
            self.client.note_made(made, self.flight, (*now, counts));
        }
    }

    /// Takes the values read back.
    pub(super) fn note_variables(&mut self, answer: &Answer) -> Result<(), Broken> {
        let names = self.client.modified.as_mut();
        let names = names.map_or_else(Vec::new, |modified| std::mem::take(&mut modified.names));
        let columns: Vec<_> = answer.of(Properties::USER_VARIABLES).collect();
        if columns.len() != READ_COLUMNS * names.len() {
            return Err("the server gave other variables back than it was asked for");
        }
        let digits = columns.chunks(READ_COLUMNS).filter_map(|read| read[1].1);
        // Together they are too much to be carried: no literal is made of any.
        if digits.map(|hex| hex.len()).sum::<usize>() > CLIENT_BYTES_MAX {
            self.keep_variables(names);
            return Ok(());
        }
        let mut changes = Vec::with_capacity(names.len());
        for (name, read) in names.iter().zip(columns.chunks(READ_COLUMNS)) {
            let (column, number) = read[0];
            let read = Read {
                name,
                kind: column.kind,
                flags: column.flags,
                len: column.len,
                number: number.map_or(b"", |number| number),
                hex: read[1].1.map(|hex| &**hex),
                collation: read[2].1.map_or(b"", |collation| collation),
            };
            changes.extend(literal_of(&read).map(|literal| (name.clone(), literal)));
        }
        // One that reads as if it had never been set may be there all the same.
        if changes.iter().any(|(_, literal)| literal.is_empty()) {
            self.backend.note_leftover();
        }
        let exact = changes.len() == names.len();
        match self.with_changes(&changes).filter(|_| exact) {
            Some(user) => self.carry_variables(&user),
            None => self.keep_variables(names),
        }
        Ok(())
    }

    /// The client's user variables with these changes; `None` when they are too much to carry.
    fn with_changes(&mut self, changes: &[(Text, Vec<u8>)]) -> Option<UserVariables> {
        let Context {
            retained,
            sessions,
            server,
            ..
        } = &mut self.context;
        let variables = &retained.variables;
        let carried = self.client.state.user_variables().clone();
        let user = carried.with(changes, variables);
        if variables.bytes() > SWEPT_ABOVE {
            sessions.sweep();
        }
        let room = server.max_allowed_packet / PACKET_SHARE;
        let fits = user.sql_len_max() <= room && fits(user.pairs().len(), user.bytes());
        fits.then_some(user)
    }

    /// Sets these for client and backend, and ends their pin: they follow the client.
    fn carry_variables(&mut self, user: &UserVariables) {
        self.backend.note_leftovers(user);
        self.change_both(|session| session.set_user_variables(user.clone()));
        self.client.pins.end(PinCause::UserVariable, VALUES);
    }

    /// Leaves them on the backend, pinned, until the client's statements have made something else
    /// of them.
    fn keep_variables(&mut self, names: Vec<Text>) {
        self.pin_while(PinReason::Text(PinCause::UserVariable), VALUES);
        self.client.modified.get_or_insert_default().names = names;
    }
}

/// True if so many user variables with so many bytes follow their client.
fn fits(count: usize, bytes: usize) -> bool {
    count <= COUNT_MAX && bytes <= CLIENT_BYTES_MAX
}

/// The longest value that is read back, in bytes, where so many variables are asked for of a server
/// that takes commands of this length. A value is read and written as two digits for each byte.
pub(crate) fn value_max(count: usize, packet_max: usize) -> usize {
    let in_answer = ANSWER_VALUES_MAX / count.max(1) / 2;
    let in_command = packet_max / PACKET_SHARE / 2;
    VALUE_MAX.min(in_answer).min(in_command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::InFlight;
    use crate::pair::tests::{NOW, Parts, owner};
    use session::read_back::Question;
    use wire::command::ReplyShape;

    /// True if a question about user variables still counts when a statement that sets these, and
    /// the clock if it does, has been sent behind it; and whether they are to be asked for again.
    fn asked_behind(names: &[&str], clock: u8) -> (bool, bool) {
        let mut parts = Parts::bound();
        let asked = Modified {
            names: vec![b"a"[..].into()],
            ..Modified::default()
        };
        parts.client.session.modified = Some(Box::new(asked));
        let asked = ["a".as_bytes().into()];
        let question = Question {
            properties: Properties::USER_VARIABLES,
            acquired: &[],
            user_variables: &asked,
            value_max: VALUE_MAX,
        };
        let question = ForSession::ReadBack(question.asked());
        let question = InFlight::own(Some(owner()), question, ReplyShape::Results);
        parts.backend.flight.expect(question);
        let next = Modified {
            names: names.iter().map(|name| name.as_bytes().into()).collect(),
            fresh: !names.is_empty(),
            clock,
            ..Modified::default()
        };
        (parts.client.session.effects).plan_modifying(Some(Box::new(next)));
        let counted = (NOW, &mut parts.counts);
        (parts.client.session).note_modified(&mut parts.backend.flight, counted);
        let mut flight = parts.backend.flight.iter();
        let counts = flight.any(|command| command.reads(Properties::USER_VARIABLES));
        let modified = parts.client.session.modified.as_ref();
        (counts, modified.is_some_and(|modified| modified.fresh))
    }

    #[test]
    fn an_answer_counts_unless_the_statement_behind_it_sets_user_variables() {
        assert_eq!(asked_behind(&["b"], 0), (false, true));
        assert_eq!(asked_behind(&["b"], 1), (false, true));
        assert_eq!(asked_behind(&[], 1), (true, false));
    }

    #[test]
    fn what_follows_a_client_is_bounded() {
        assert!(fits(COUNT_MAX, CLIENT_BYTES_MAX));
        assert!(!fits(COUNT_MAX + 1, 1));
        assert!(!fits(1, CLIENT_BYTES_MAX + 1));
    }

    #[test]
    fn values_are_read_back_as_far_as_they_have_room_in_the_answer_and_in_a_command() {
        let packet = 16 << 20;
        let shared = ANSWER_VALUES_MAX / (2 * VALUE_MAX);
        assert_eq!(value_max(0, packet), VALUE_MAX);
        assert_eq!(value_max(shared, packet), VALUE_MAX);
        assert!(value_max(shared + 1, packet) < VALUE_MAX);
        assert_eq!(value_max(1, 2 * PACKET_SHARE * VALUE_MAX), VALUE_MAX);
        assert_eq!(value_max(1, 2 * PACKET_SHARE * 1000), 1000);
        for count in [1, shared, COUNT_MAX, 2 * COUNT_MAX] {
            // Three definitions with names of at most 256 letters, a collation and a number.
            let answer = count * (2 * value_max(count, packet) + 3 * 1200 + 256);
            assert!(answer <= COLLECTED_MAX, "{count}: {answer}");
        }
    }

    /// Number of variables left to be read back behind statements that set these.
    fn left_to_read(names: &[&str]) -> usize {
        let mut parts = Parts::bound();
        for name in names {
            (parts.client.session.effects).plan_modifying(Some(Box::new(Modified {
                names: vec![name.as_bytes().into()],
                ..Modified::default()
            })));
            let counted = (NOW, &mut parts.counts);
            (parts.client.session).note_modified(&mut parts.backend.flight, counted);
        }
        let pinned = PinReason::Text(PinCause::UserVariable);
        let left = (parts.client.session.modified.as_ref()).map_or(0, |t| t.names.len());
        assert_eq!(parts.client.session.pins.is_pinned_for(pinned), left == 0);
        left
    }

    #[test]
    fn names_that_are_too_long_or_too_many_pin() {
        let long = "n".repeat(NAMES_BYTES_MAX - 1);
        assert_eq!(left_to_read(&[&long, "m"]), 2);
        assert_eq!(left_to_read(&[&long, "mm"]), 0);
        let many: Vec<String> = (0..=COUNT_MAX).map(|i| format!("n{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(left_to_read(&many[1..]), COUNT_MAX);
        assert_eq!(left_to_read(&many), 0);
    }

    #[test]
    fn a_question_that_is_longer_than_a_command_is_not_asked() {
        let asks = |packet_max: usize| {
            let mut parts = Parts::bound();
            parts.client.session.modified = Some(Box::new(Modified {
                names: vec![[b'n'; 100].as_slice().into()],
                ..Modified::default()
            }));
            parts.client.session.names_to_read(packet_max)
        };
        let enough = 2 * columns_len_max(&[[b'n'; 100].as_slice().into()]);
        assert!(asks(enough));
        assert!(!asks(enough - 1));
    }
}
