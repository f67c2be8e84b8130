//! Texts: what a client's COM_QUERY does, what it needs to know first, and what is sent of it.
//!
//! The problem: a text may ask about the statement before, call code that nobody has read, set what
//! no tracker reports, or name a statement that another backend has prepared; and once it is on its
//! way to a shared backend it is too late to notice. The mechanism: everything that the text alone,
//! the client and what is known of stored code can tell is found here, in this order:
//!
//! 1. texts that no server has to see, KILL, statements by name;
//! 2. what the code that it runs comes to ([`crate::code_seen`]), and whether that may ask what
//!    only another backend knows;
//! 3. questions about the statement before, answered from what was kept
//!    ([`crate::pair::previous`]);
//! 4. what it takes, gives back and sets ([`crate::pinning`]), and whether it may ride.
//!
//! Then it is started (`statements.rs: start`), perhaps with another text in its place.
//!
//! Invariant: what a text may leave behind unreported pins its client, or is noted to be read back,
//! before it is sent.

use crate::backend::Backend;
use crate::client::{Client, Handled};
use crate::code_seen::{Inside, SchemaText};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::statements::is_uncounted;
use crate::naming::{PreparedText, Spoken, may_name};
use crate::own_ok::OwnOk;
use crate::pair::conditions::is_refused_whole;
use crate::pair::previous::Previous;
use crate::queue::priority::{Asked, asked};
use crate::server::server_facts::ServerFacts;
use reactor::{Key, Net};
use session::beforehand::{class_with, statement_of};
use session::found::hides_reads;
use session::read_back::Properties;
use session::shapes::{Ride, text_rides};
use session::standing::{Standing, standing_of, standing_of_execution};
use session::statement::Statement;
use sql::classify::{self, PinCause, Reads, Verb};
use sql::kill::Kill;
use sql::lex::LexMode;
use sql::text::Text;
use std::rc::Rc;
use wire::command::ReplyShape;

/// The text that a client's SET of its trackers comes to: what it names is carried out here, and
/// does not pin the client any more.
fn retracked<S>(
    client: &mut Client<S>,
    backend: Option<&Backend<S>>,
    server: &ServerFacts,
    (sql, mode): (&[u8], LexMode),
    class: &mut classify::Statement,
) -> Option<Vec<u8>> {
    if !class.causes.contains(PinCause::SessionTracking) {
        return None;
    }
    let transaction = backend.map_or_else(Default::default, |b| b.transaction);
    let instead = client.retrack((sql, mode), class, transaction, server)?;
    class.causes.remove(PinCause::SessionTracking);
    class.pin = class.causes.iter().next();
    Some(instead)
}

impl<N: Net> Group<N> {
    /// A text that a client sends, without what stands in front of it in `message`.
    pub(crate) fn on_query(&mut self, key: Key, message: &[u8], sql: &[u8]) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = client.lex_mode(&self.shared.server);
        if let Some(handled) = self.on_text_alone(key, sql, mode) {
            return handled;
        }
        let asked = asked(sql, mode);
        if asked != Asked::Nothing {
            return match self.waiters().ask_priority(key, asked) {
                Ok(()) => {
                    self.answers().ok(key, &OwnOk::PLAIN);
                    Handled::Used
                }
                Err(refusal) => self.answers().refuse_counted(key, &refusal),
            };
        }
        let digested = self.figures.digests.are_counted();
        let seen = self.in_hand.seen(message, sql, mode, digested);
        if seen.class.verb == Verb::Kill && !seen.class.multi {
            return self.on_kill(key, message, Kill::read(sql, mode));
        }
        if seen.hides_kill {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        }
        let text = Text { sql, mode, seen };
        let naming = may_name(&seen.class).then(|| self.naming(key)).flatten();
        let spoken = naming.map_or(Spoken::Plain, |mut naming| naming.speak(message, &text));
        let handled = match spoken {
            Spoken::Plain => self.run_text(key, message, &text),
            Spoken::Runs(prepared) => self.run_prepared_text(key, message, &prepared),
            spoken => return self.go_on_spoken(key, message, spoken),
        };
        self.leave_last_backend(key);
        handled
    }

    /// Does what is to become of a text about a statement by name that runs no other.
    fn go_on_spoken(&mut self, key: Key, message: &[u8], spoken: Spoken) -> Handled {
        match spoken {
            Spoken::Plain | Spoken::Runs(_) => {}
            Spoken::Sent(instead) => {
                let mut statement = Statement::plain(ReplyShape::Results);
                statement.explain();
                statement.standing = Standing::Anywhere;
                return self.start(key, instead.as_deref().unwrap_or(message), statement);
            }
            Spoken::Deallocated => self.answers().ok(key, &OwnOk::PLAIN),
            Spoken::Waits => return self.waiters().wait_outside(key),
            Spoken::ReadsVariables => {
                if let Some(lease) = self.clients.get(key).and_then(Client::lease) {
                    let property = Properties::USER_VARIABLES;
                    return self.wait_for_property(key, lease, property);
                }
            }
            Spoken::Full => return self.answers().refuse_to_prepare(key),
            Spoken::Refused(refusal) => return self.answers().refuse_counted(key, &refusal),
        }
        Handled::Used
    }

    /// Runs a text of a client's.
    fn run_text(&mut self, key: Key, message: &[u8], text: &Text<'_>) -> Handled {
        let Text { sql, mode, seen } = text;
        let (sql, mode, found) = (*sql, *mode, &seen.class);
        if let Some(lease) = self.matching().last_backend_for_text(key, found) {
            self.bind(key, lease);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let (session, elsewhere) = (client.session.clone(), client.reads_elsewhere());
        // Without a schema a name that names none is nothing's: the server refuses it.
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let judged = SchemaText {
            sql,
            mode,
            found,
            schema,
        };
        let known = self.code().known(judged, &session);
        let mut class = class_with(found, known.as_ref());
        let mut statement = statement_of(&class, mode.server);
        // Stored code may read anything; that it reads what a statement before its call left is
        // not assumed, or no CALL could ever be made.
        let told = !hides_reads(&class);
        if !told && self.naming(key).is_some_and(|mut n| n.loses_to_hidden()) {
            return self.waiters().wait_outside(key);
        }
        let client = self.clients.get(key);
        let lacks = client.is_some_and(|client| {
            !told && client.lacks_conditions(found)
                || client.may_stack_conditions(found, mode.server)
        });
        if client.is_some_and(|client| client.stacks_conditions(found, mode.server)) {
            if self.awaits_conditions(key, is_uncounted) {
                return self.waiters().wait_outside(key);
            }
            statement.counts_before = true;
        }
        let inside = match is_refused_whole(found, &session) {
            true => Inside::Known,
            false => {
                let found = &class;
                self.asks_inside(key, SchemaText { found, ..judged })
            }
        };
        if lacks || inside == Inside::Gone {
            return self.previous_gone(key);
        }
        inside.mark(&mut statement);
        let mut instead = self.clients.get_mut(key).and_then(|client| {
            let backend = client.lease().and_then(|lease| self.backends.get(lease));
            retracked(
                client,
                backend,
                &self.shared.server,
                (sql, mode),
                &mut class,
            )
        });
        let found = &class;
        if instead.is_none() && told && found.reads.intersects(elsewhere) {
            if self.reads_back_first(key, found.reads) {
                return self.waiters().wait_outside(key);
            }
            let before = self.survey().before(key);
            match before.map_or(Previous::Gone, |b| b.previous(sql, mode, found)) {
                Previous::Rows(rows) => {
                    self.answers().show(key, &rows);
                    return Handled::Used;
                }
                Previous::Gone => return self.previous_gone(key),
                Previous::Text(text) => instead = Some(text),
                Previous::Same => {}
            }
        }
        let rides = self.settings.ride_max > 1 && text_rides(sql, found, statement.found);
        if rides || self.figures.digests.are_counted() {
            statement.digest = text.digest();
            let now = self.net.now();
            (self.figures.digests).note(statement.digest, (sql, mode), now);
        }
        if rides {
            statement.ride = Ride::Text;
        }
        if let Some(mut planning) = self.planning(key) {
            let judged = SchemaText { found, ..judged };
            planning.plan(judged, known.as_ref(), &mut statement);
        }
        statement.standing = standing_of(found);
        if instead.is_none() && found.reads.intersects(Reads::CONNECTION_ID) {
            instead = self.clients.get(key).and_then(|c| c.with_own_id(sql, mode));
        }
        if let Some(text) = instead {
            let Some(client) = self.clients.get(key) else {
                return Handled::Used;
            };
            let rewritten = client.reworded(message, &text);
            return self.start(key, &rewritten, statement);
        }
        self.start(key, message, statement)
    }

    /// Runs a text that was prepared by name, or is executed at once: what it does is what its
    /// client's command does.
    fn run_prepared_text(&mut self, key: Key, message: &[u8], text: &PreparedText) -> Handled {
        if let Some(lease) = self.matching().last_backend_for_text(key, &text.class) {
            self.bind(key, lease);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let sql = &text.sql;
        let (session, capabilities) = (client.session.clone(), client.capabilities);
        let mode = self.shared.server.lex_mode(&text.session, capabilities);
        // A server looks names up where they were prepared, or where it is now.
        let schema = text.session.schema.as_deref();
        let schema = schema.filter(|schema| session.schema.as_deref() == Some(*schema));
        let judged = SchemaText {
            sql,
            mode,
            found: &text.class,
            schema,
        };
        let known = self.code().known(judged, &text.session);
        let found = &class_with(&text.class, known.as_ref());
        let mut statement = statement_of(found, self.shared.server.flavour);
        statement.digest = (self.figures.digests).of((sql, mode), self.net.now());
        let told = !hides_reads(found);
        if !told && self.naming(key).is_some_and(|mut n| n.loses_to_hidden()) {
            return self.waiters().wait_outside(key);
        }
        let client = self.clients.get(key).filter(|_| !told);
        let lacks = client.is_some_and(|client| client.lacks_conditions(found));
        let inside = self.asks_inside(key, SchemaText { found, ..judged });
        if lacks || inside == Inside::Gone {
            return self.previous_gone(key);
        }
        inside.mark(&mut statement);
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        // It can be said as it is, unless there are values in it, or it is of another session.
        let as_it_is = Rc::ptr_eq(&text.session, &session) && !sql.contains(&b'?');
        let mut instead = None;
        if told && found.reads.intersects(client.reads_elsewhere()) {
            if self.reads_back_first(key, found.reads) {
                return self.waiters().wait_outside(key);
            }
            let before = self.survey().before(key);
            match before.map_or(Previous::Gone, |b| b.previous(sql, mode, found)) {
                Previous::Rows(rows) => {
                    self.answers().show(key, &rows);
                    if let Some(client) = self.clients.get_mut(key) {
                        client.forget_command();
                    }
                    return Handled::Used;
                }
                Previous::Text(text_instead) if as_it_is || !text.immediate => {
                    instead = Some(text_instead);
                }
                Previous::Text(_) | Previous::Gone => {
                    if let Some(client) = self.clients.get_mut(key) {
                        client.forget_command();
                    }
                    return self.previous_gone(key);
                }
                Previous::Same => {}
            }
        }
        if text.immediate {
            statement.explain();
        }
        statement.standing = match text.immediate {
            true => standing_of(found),
            false => standing_of_execution(sql, found),
        };
        if let Some(mut planning) = self.planning(key) {
            let judged = SchemaText { found, ..judged };
            planning.plan(judged, known.as_ref(), &mut statement);
        }
        let Some(instead) = instead else {
            return self.start(key, message, statement);
        };
        if as_it_is {
            if let Some(client) = self.clients.get_mut(key) {
                client.forget_command();
            }
            statement.standing = standing_of(found);
            let Some(client) = self.clients.get(key) else {
                return Handled::Used;
            };
            let message = client.reworded(message, &instead);
            return self.start(key, &message, statement);
        }
        if let Some(mut naming) = self.naming(key) {
            naming.execute_instead(&instead, text);
        }
        self.start(key, message, statement)
    }
}
