//! Statements prepared by name: PREPARE, EXECUTE and DEALLOCATE as text.
//!
//! The problem: a name belongs to one server session, and a client's next EXECUTE may run on
//! another backend, where the name is unknown or means another client's text. The mechanism: a
//! client has a list of names with their definitions; a backend remembers which definition it has
//! under which name. A client's own PREPARE always runs on a backend, because its reply is what the
//! server says now. An EXECUTE is classified by the text that it executes; where the backend lacks
//! that, it is prepared there first. DEALLOCATE is a matter of the client's list. A name that the
//! client does not have is taken away from the backend in front of the command that uses it, so
//! that the server says itself that it does not know it.
//!
//! [`Naming`] borrows a client with its list, changes the list, and says what is to become of the
//! text ([`Spoken`]). It sends nothing.
//!
//! A text that is not at hand (`PREPARE ... FROM @x` whose value cannot be had) pins its client
//! until it is deallocated, and for good when it is executed; so does what is more than a client
//! may carry ([`Statements::has_room_for`]). A text of several statements with a name in it pins
//! for good, and so does MariaDB's SET STATEMENT in front of EXECUTE: what the client has under the
//! name is prepared in front of the text (`group/prepared/ahead.rs`), and from then on the server
//! alone knows what each name means.
//!
//! Invariants: a name on a backend means what [`OnBackend`] says, or belongs to the pinned client
//! that has the backend; names count in the backend's share of `prepared_max`.
//!
//! [`Statements::has_room_for`]: session::prepared::Statements::has_room_for
//! [`OnBackend`]: session::prepared::OnBackend

use crate::backend::{Backend, Purpose};
use crate::client::Client;
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::tokens::ClientId;
use crate::pair::names::hides;
use crate::pair::view::ClientView;
use crate::server::facts::ServerFacts;
use session::holds::void::Void;
use session::last_statement::LEFT_BY_STATEMENT;
use session::prepared::names::Named;
use session::prepared::{Definition, Definitions, UnderWay};
use session::state::{Interner, Session};
use session::user_variables::name_of;
use sql::classify::{self, PinCause, PinCauses, Reads, classify};
use sql::holdings::{Ended, Holdings};
use sql::lex::LexMode;
use sql::nested_kill::hides_kill;
use sql::text::Text;
use sql::text_prepared::{Name, TextPrepared, put_prepare, read};
use std::rc::Rc;
use wire::command::Command;

/// A text that is run by another.
#[derive(Debug)]
pub(crate) struct PreparedText {
    pub(crate) sql: Vec<u8>,
    /// Class of its text.
    pub(crate) class: classify::Statement,
    /// The session in which it was prepared.
    pub(crate) session: Rc<Session>,
    /// EXECUTE IMMEDIATE: the server prepares it now.
    pub(crate) immediate: bool,
}

/// Fate of a text about a statement by name.
#[derive(Debug)]
pub(crate) enum Spoken {
    /// It is a text like any other.
    Plain,
    /// It runs this text.
    Runs(PreparedText),
    /// A backend answers it, or this command in its place.
    Sent(Option<Vec<u8>>),
    /// The client does not have the name any more, and hears OK.
    Deallocated,
    /// It waits for what its client's backend is being asked.
    Waits,
    /// It waits until its client's user variables have been read back.
    ReadsVariables,
    /// Every statement that its client's backend may have is held by a cursor.
    Full,
    /// It is refused.
    Refused(Refusal),
}

/// True if a text may be about a statement by name, and about nothing else.
pub(crate) fn may_name(found: &classify::Statement) -> bool {
    found.causes == PinCauses::of(PinCause::TextPrepare) && !found.multi
}

/// A client with its names, and what definitions are made of.
pub(crate) struct Naming<'a, S> {
    /// The client's key.
    pub(crate) key: ClientId,
    pub(crate) client: &'a mut Client<S>,
    /// The backend that it has, if it has one.
    pub(crate) backend: Option<&'a Backend<S>>,
    pub(crate) server: &'a ServerFacts,
    pub(crate) definitions: &'a mut Definitions,
    pub(crate) sessions: &'a mut Interner,
    /// How many statements a backend may have.
    pub(crate) share: usize,
}

impl<S> Naming<'_, S> {
    /// A text of the client's, which came in `message`, that [`may_name`] a statement.
    pub(crate) fn speak(&mut self, message: &[u8], text: &Text<'_>) -> Spoken {
        let (sql, mode) = (text.sql, text.mode);
        if self.client.pins.is_for_good(PinCause::TextPrepare) {
            return Spoken::Plain;
        }
        match read(sql, mode) {
            Some(TextPrepared::Prepare(name, text)) => self.prepare(sql, name, &text),
            Some(TextPrepared::PrepareFrom(name, variable)) => {
                self.prepare_from(message, sql, name, &variable)
            }
            Some(TextPrepared::PrepareUnread(name)) => self.prepare_unread(sql, name),
            Some(TextPrepared::Execute(name)) => self.execute(name),
            Some(TextPrepared::ExecuteUnread(name)) => {
                let mut spoken = self.execute(name);
                if let Spoken::Runs(text) = &mut spoken {
                    // What stands behind USING may be a call of anything.
                    text.class.causes.insert(PinCause::TextPrepare);
                    text.class.pin = Some(PinCause::TextPrepare);
                }
                spoken
            }
            Some(TextPrepared::Immediate(text)) => {
                // MySQL has no such statement, and runs nothing.
                let text = match mode.server.is_mysql() {
                    true => Vec::new(),
                    false => text,
                };
                Spoken::Runs(PreparedText {
                    class: classify(&text, mode),
                    sql: text,
                    session: self.client.session.clone(),
                    immediate: true,
                })
            }
            Some(TextPrepared::Deallocate(name)) => self.deallocate(sql, name),
            None => Spoken::Plain,
        }
    }

    /// The client as it is looked at.
    fn view(&self) -> ClientView<'_, S> {
        ClientView {
            key: self.key,
            client: &*self.client,
            backend: self.backend,
        }
    }

    /// The definition of a statement that has none.
    fn nothing(&mut self) -> Rc<Definition> {
        let class = classify(b"", LexMode::default());
        self.definitions
            .define(self.sessions, b"", &Session::default(), class)
    }

    /// A backend is to answer the client's command, or `instead` of it this one.
    fn send(&mut self, under_way: UnderWay, instead: Option<Vec<u8>>) -> Spoken {
        self.client.prepared.get_or_insert_default().under_way = Some(under_way);
        Spoken::Sent(instead)
    }

    /// What the pool did not know under this name is given back by the client's text.
    fn plan_end(&mut self, sql: &[u8], name: &Name) {
        let mut holdings = Holdings::default();
        let end = Ended::One(PinCause::TextPrepare, name.clone());
        holdings.ended.push(end);
        self.client.plan_more(sql, holdings, Void::Never);
    }

    /// PREPARE of a text that is at hand: always asks the server.
    fn prepare(&mut self, sql: &[u8], name: Name, text: &[u8]) -> Spoken {
        let mode = self.client.lex_mode(self.server);
        let class = classify(text, mode);
        if hides_kill(text, mode, &class) {
            return Spoken::Refused(Refusal::Kill);
        }
        self.client.touch_to_prepare(text, mode, &class);
        let prepared = self.client.prepared.as_ref();
        if prepared.is_some_and(|prepared| !prepared.has_room_for(&name, text)) {
            return self.prepare_unread(sql, name);
        }
        if self.view().is_full(self.share) {
            return Spoken::Full;
        }
        let session = self.client.session.clone();
        self.client.pin_without_schema(&session, (text, &class));
        if self.client.pins.has(PinCause::TextPrepare, &name) {
            self.plan_end(sql, &name);
        }
        let definition = self
            .definitions
            .define(self.sessions, text, &session, class);
        let under_way = UnderWay::named(Command::StmtPrepare, definition, Named::Prepare(name));
        self.send(under_way, None)
    }

    /// PREPARE of a user variable's value.
    fn prepare_from(&mut self, message: &[u8], sql: &[u8], name: Name, variable: &[u8]) -> Spoken {
        let mode = self.client.lex_mode(self.server);
        let client = &*self.client;
        let pinned = client.is_pinned_for(PinReason::Text(PinCause::UserVariable));
        let Some(variable) = name_of(variable, mode).filter(|_| !pinned) else {
            return self.prepare_unread(sql, name);
        };
        let touched = client.touched.as_ref();
        let unread = touched.is_some_and(|touched| touched.names.contains(&variable));
        if unread && client.backend().is_some() {
            let named = Named::PrepareUnread(Name::default());
            let mut under_way = UnderWay::named(Command::StmtPrepare, self.nothing(), named);
            under_way.reads_back = true;
            self.client.prepared.get_or_insert_default().under_way = Some(under_way);
            return Spoken::ReadsVariables;
        }
        let Some(text) = client.session.user_text(&variable) else {
            return self.prepare_unread(sql, name);
        };
        let mut literal = Vec::new();
        put_prepare(&mut literal, &name, &text, mode);
        let instead = client.reworded(message, &literal);
        match self.prepare(sql, name, &text) {
            Spoken::Sent(_) => Spoken::Sent(Some(instead)),
            spoken => spoken,
        }
    }

    /// PREPARE of a text that nobody has read: its client stays where it is.
    fn prepare_unread(&mut self, sql: &[u8], name: Name) -> Spoken {
        if self.view().is_full(self.share) {
            return Spoken::Full;
        }
        let mut holdings = Holdings::default();
        holdings.taken.push((PinCause::TextPrepare, name.clone()));
        self.client.plan_more(sql, holdings, Void::Failed);
        let named = Named::PrepareUnread(name);
        let under_way = UnderWay::named(Command::Query, self.nothing(), named);
        self.send(under_way, None)
    }

    /// EXECUTE: runs what the client has under the name.
    fn execute(&mut self, name: Name) -> Spoken {
        let prepared = self.client.prepared.as_ref();
        let Some(definition) = prepared.and_then(|p| p.named(&name)).cloned() else {
            return self.use_absent(name);
        };
        let text = PreparedText {
            sql: definition.sql.to_vec(),
            class: definition.class,
            session: definition.session.clone(),
            immediate: false,
        };
        let named = Named::Execute(name);
        let under_way = UnderWay::named(Command::StmtExecute, definition, named);
        self.client.prepared.get_or_insert_default().under_way = Some(under_way);
        Spoken::Runs(text)
    }

    /// The EXECUTE under way runs another text in place of its client's: what that asks about the
    /// statement before stands in it as values. Its backend prepares it under the client's name,
    /// and the client's own text again when that is executed next.
    pub(crate) fn execute_instead(&mut self, sql: &[u8], text: &PreparedText) {
        let mut class = text.class;
        class.reads = Reads::NONE;
        let definition = (self.definitions).define_made(self.sessions, sql, &text.session, class);
        let prepared = self.client.prepared.as_mut();
        if let Some(under_way) = prepared.and_then(|prepared| prepared.under_way.as_mut()) {
            under_way.definition = definition;
        }
    }

    /// DEALLOCATE PREPARE: what a backend has stays there for others.
    fn deallocate(&mut self, sql: &[u8], name: Name) -> Spoken {
        if self.view().is_being_asked(Purpose::Warnings) {
            // What comes back is of the statement before.
            return Spoken::Waits;
        }
        let client = &mut *self.client;
        let prepared = client.prepared.as_mut();
        if let Some(prepared) = prepared.filter(|prepared| prepared.named(&name).is_some()) {
            prepared.forget_name(&name);
            client.forget_command();
            if self.server.flavour.is_mysql() {
                client.last.answered_clean(0);
            } else {
                // The statement before has left what a question shows still.
                client.last.answered(0);
                client.last.conditions = 0;
            }
            return Spoken::Deallocated;
        }
        if client.pins.has(PinCause::TextPrepare, &name) {
            self.plan_end(sql, &name);
            let named = Named::Deallocate(name);
            let under_way = UnderWay::named(Command::Query, self.nothing(), named);
            return self.send(under_way, None);
        }
        self.use_absent(name)
    }

    /// A name that the client does not have: the server says so. Where code that nobody has read
    /// may have made it, it is the server's to know.
    fn use_absent(&mut self, name: Name) -> Spoken {
        let pins = &self.client.pins;
        if pins.has(PinCause::TextPrepare, &name) || pins.is_unread() {
            return Spoken::Plain;
        }
        let under_way = UnderWay::named(Command::Query, self.nothing(), Named::Absent(name));
        self.send(under_way, None)
    }

    /// The client's text is code that nobody has read. If names have to be taken from its backend
    /// in front of it, what its last statement has left there is gone before the text could ask for
    /// it. Says whether that is being read back just now, and to be waited for.
    pub(crate) fn loses_to_hidden(&mut self) -> bool {
        let Some(backend) = self.backend else {
            return false;
        };
        let names = &backend.prepared.named;
        if !names.iter().any(|name| hides(self.client, name)) {
            return false;
        }
        self.client.last.disown(LEFT_BY_STATEMENT);
        self.view().is_read_back_now(LEFT_BY_STATEMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::InFlight;
    use reactor::Time;
    use session::begun::Begun;
    use sql::lex::Server;
    use sql::text::Seen;
    use wire::command::ReplyShape;

    const NOW: Time = Time(1_000_000_000);

    struct Bench {
        client: Client<()>,
        backend: Backend<()>,
        has_backend: bool,
        server: ServerFacts,
        definitions: Definitions,
        sessions: Interner,
        share: usize,
    }

    fn owner() -> ClientId {
        ClientId::from_parts(1, 0)
    }

    impl Bench {
        fn new() -> Bench {
            let server = ServerFacts::of_tests();
            let (charsets, begun) = (&server.default_charsets, Begun::default());
            let session = Rc::new(Session::at_login(b"", true, charsets, &begun));
            Bench {
                client: Client::of_tests(NOW, session),
                backend: Backend::of_tests(NOW, Rc::default()),
                has_backend: false,
                server,
                definitions: Definitions::default(),
                sessions: Interner::default(),
                share: 100,
            }
        }

        fn naming(&mut self) -> Naming<'_, ()> {
            Naming {
                key: owner(),
                client: &mut self.client,
                backend: self.has_backend.then_some(&self.backend),
                server: &self.server,
                definitions: &mut self.definitions,
                sessions: &mut self.sessions,
                share: self.share,
            }
        }

        fn says(&mut self, sql: &str) -> Spoken {
            let mode = self.client.lex_mode(&self.server);
            let text = Text {
                sql: sql.as_bytes(),
                mode,
                seen: Seen::read(sql.as_bytes(), mode, false, None),
            };
            assert!(may_name(&text.seen.class), "{sql}");
            let message = [&b"\x01\0\0\0\x03"[..], sql.as_bytes()].concat();
            self.naming().speak(&message, &text)
        }

        /// The command under way, by its name, and the text that it is about.
        fn under_way(&self) -> (Option<Named>, String) {
            let under_way = self.client.under_way().unwrap();
            let sql = String::from_utf8_lossy(&under_way.definition.sql);
            (under_way.named.clone(), sql.into_owned())
        }

        /// The client's PREPARE has gone well.
        fn prepared(&mut self, name: &str, sql: &str) {
            let spoken = self.says(&format!("PREPARE {name} FROM '{sql}'"));
            assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
            let prepared = self.client.prepared.as_mut().unwrap();
            let under_way = prepared.under_way.take().unwrap();
            let named = (name.as_bytes().into(), under_way.definition);
            prepared.named.push(named);
        }
    }

    fn name(name: &str) -> Name {
        name.as_bytes().into()
    }

    #[test]
    fn a_prepare_asks_the_server_and_an_execute_runs_what_the_client_has() {
        let mut bench = Bench::new();
        let spoken = bench.says("PREPARE p FROM 'SELECT 1'");
        assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
        let named = Some(Named::Prepare(name("p")));
        assert_eq!(bench.under_way(), (named, "SELECT 1".into()));
        bench.prepared("p", "SELECT 1");
        let Spoken::Runs(text) = bench.says("EXECUTE p") else {
            panic!("the client has it");
        };
        assert_eq!((&text.sql[..], text.immediate), (&b"SELECT 1"[..], false));
        let named = Some(Named::Execute(name("p")));
        assert_eq!(bench.under_way().0, named);
        bench.naming().execute_instead(b"SELECT 2", &text);
        assert_eq!(bench.under_way(), (named, "SELECT 2".into()));
    }

    #[test]
    fn a_name_that_the_client_does_not_have_is_for_the_server_to_refuse() {
        for sql in ["EXECUTE p", "DEALLOCATE PREPARE p"] {
            let mut bench = Bench::new();
            let spoken = bench.says(sql);
            assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
            assert_eq!(bench.under_way().0, Some(Named::Absent(name("p"))));
            // Code that nobody has read may have prepared it on the backend.
            let mut bench = Bench::new();
            let unread = PinReason::Text(PinCause::StoredCode);
            bench.client.pins.add(unread, None, NOW.0);
            let spoken = bench.says(sql);
            assert!(matches!(spoken, Spoken::Plain), "{spoken:?}");
        }
    }

    #[test]
    fn deallocating_forgets_the_name_and_waits_for_what_is_being_asked() {
        let mut bench = Bench::new();
        bench.prepared("p", "SELECT 1");
        bench.has_backend = true;
        let asked = InFlight::own(Some(owner()), Purpose::Warnings, ReplyShape::Results);
        bench.backend.expect(asked);
        let spoken = bench.says("DEALLOCATE PREPARE p");
        assert!(matches!(spoken, Spoken::Waits), "{spoken:?}");
        bench.has_backend = false;
        let spoken = bench.says("DEALLOCATE PREPARE p");
        assert!(matches!(spoken, Spoken::Deallocated), "{spoken:?}");
        assert!(
            bench.client.prepared.is_none(),
            "nothing is left in the box"
        );
    }

    #[test]
    fn a_text_that_is_not_at_hand_pins_until_it_is_deallocated() {
        let mut bench = Bench::new();
        let spoken = bench.says("PREPARE p FROM @x");
        assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
        let named = Some(Named::PrepareUnread(name("p")));
        assert_eq!(bench.under_way().0, named);
        bench.client.pins.sent(NOW.0);
        assert!(bench.client.pins.has(PinCause::TextPrepare, b"p"));
        let spoken = bench.says("EXECUTE p");
        assert!(
            matches!(spoken, Spoken::Plain),
            "the server has it: {spoken:?}"
        );
        let spoken = bench.says("DEALLOCATE PREPARE p");
        assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
        assert_eq!(bench.under_way().0, Some(Named::Deallocate(name("p"))));
    }

    #[test]
    fn the_server_knows_the_names_of_who_is_pinned_for_them_for_good() {
        let mut bench = Bench::new();
        bench.prepared("p", "SELECT 1");
        let for_good = PinReason::Text(PinCause::TextPrepare);
        bench.client.pins.add(for_good, None, NOW.0);
        for sql in [
            "EXECUTE p",
            "DEALLOCATE PREPARE p",
            "PREPARE p FROM 'SELECT 2'",
        ] {
            let spoken = bench.says(sql);
            assert!(matches!(spoken, Spoken::Plain), "{sql}: {spoken:?}");
        }
    }

    #[test]
    fn a_kill_is_not_prepared_by_name() {
        let spoken = Bench::new().says("PREPARE p FROM 'KILL 5'");
        assert!(
            matches!(spoken, Spoken::Refused(Refusal::Kill)),
            "{spoken:?}"
        );
    }

    #[test]
    fn who_may_have_no_more_on_its_backend_is_told_so() {
        let mut bench = Bench::new();
        (bench.has_backend, bench.share) = (true, 0);
        for sql in ["PREPARE p FROM 'SELECT 1'", "PREPARE p FROM @x"] {
            let spoken = bench.says(sql);
            assert!(matches!(spoken, Spoken::Full), "{spoken:?}");
        }
        assert!(bench.client.under_way().is_none());
    }

    #[test]
    fn what_is_more_than_a_client_may_carry_is_not_read() {
        let mut bench = Bench::new();
        for number in 0..session::prepared::names::NAMED_MAX {
            bench.prepared(&format!("p{number}"), "SELECT 1");
        }
        let spoken = bench.says("PREPARE q FROM 'SELECT 1'");
        assert!(matches!(spoken, Spoken::Sent(None)), "{spoken:?}");
        let named = Some(Named::PrepareUnread(name("q")));
        assert_eq!(bench.under_way().0, named);
        // One that it has is replaced.
        bench.says("PREPARE p0 FROM 'SELECT 2'");
        assert_eq!(bench.under_way().0, Some(Named::Prepare(name("p0"))));
    }

    #[test]
    fn what_is_executed_at_once_runs_on_mariadb_alone() {
        let mut bench = Bench::new();
        let Spoken::Runs(text) = bench.says("EXECUTE IMMEDIATE 'SELECT 1'") else {
            panic!("it runs a text");
        };
        assert_eq!((&text.sql[..], text.immediate), (&b"SELECT 1"[..], true));
        let mut bench = Bench::new();
        bench.server.flavour = Server::MySql(90_700);
        let spoken = bench.says("EXECUTE IMMEDIATE 'SELECT 1'");
        let nothing = matches!(&spoken, Spoken::Runs(text) if text.sql.is_empty());
        assert!(nothing, "there is no such statement: {spoken:?}");
    }
}
