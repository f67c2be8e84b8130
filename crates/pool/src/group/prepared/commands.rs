//! What clients say about their prepared statements.
//!
//! COM_STMT_PREPARE and COM_STMT_EXECUTE become statements like any other, classified by their text
//! as COM_QUERY is; COM_STMT_FETCH and COM_STMT_RESET go to the client's backend where a cursor is
//! open and are answered here otherwise, in the server's words; errors come from the server (see
//! `raised`); COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA get no answer. Long data is kept with the
//! client until its statement runs, resets or closes.
//!
//! Source of what is answered here: MariaDB 10.11 and MySQL 9.7, asked over the wire.

use crate::backend::BackendState;
use crate::buffers::message::payload_of;
use crate::client::{Client, Handled};
use crate::code_seen::{Inside, SchemaText};
use crate::errors::reasons::{Refusal, Unprepared};
use crate::group::Group;
use crate::own_ok::OwnOk;
use crate::pair::prepared::{head_of, put_closes};
use crate::server::server_facts::ServerFacts;
use reactor::{Key, Net};
use session::beforehand::{class_with, statement_of};
use session::diagnostics::area_of;
use session::found::{Found, hides_reads};
use session::known_code::Known;
use session::prepared::{Definition, UnderWay};
use session::shapes::{Ride, text_rides};
use session::standing::{Standing, standing_of_execution};
use session::state::Session;
use session::statement::{Conditions, Statement};
use sql::classify::{self, Reads, Verb};
use sql::kill::Kill;
use sql::lex::Server;
use sql::own_id::with_values;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use wire::attributes::Form;
use wire::capabilities::EXTENDED_BULK;
use wire::command::{Command, ReplyShape, put_command};
use wire::errors;
use wire::execution::{
    EXECUTE_FIXED, LAST_PREPARED, Types, is_cut_short, only_number, statement_id, types,
    wants_cursor,
};

/// What a client executes: by which command, under which id of its own.
struct Execution {
    command: Command,
    id: u32,
    definition: Rc<Definition>,
    /// What code that it runs asks of the statement before.
    inside: Inside,
}

impl<S> Client<S> {
    /// Its prepared text, which is known to do this. A server looks names up where they were
    /// prepared, or where it is now.
    fn schema_text<'t>(
        &self,
        definition: &'t Definition,
        found: &'t classify::Statement,
        server: &ServerFacts,
    ) -> SchemaText<'t> {
        let session = &definition.session;
        let now = self.session.schema.as_deref();
        SchemaText {
            sql: &definition.sql,
            mode: server.lex_mode(session, self.capabilities),
            found,
            schema: session
                .schema
                .as_deref()
                .filter(|schema| now == Some(*schema)),
        }
    }
}

impl<N: Net> Group<N> {
    /// A command about a prepared statement.
    pub(crate) fn on_prepared(&mut self, key: Key, command: Command, message: &[u8]) -> Handled {
        let joined = self.in_hand.joined(message);
        let payload = match &joined {
            Some(joined) => Cow::Borrowed(&joined[..]),
            None => payload_of(message),
        };
        match command {
            Command::StmtPrepare => return self.on_prepare(key, message, &payload[1..]),
            Command::StmtExecute | Command::StmtBulkExecute => {
                return self.on_execute(key, command, message, &payload);
            }
            Command::StmtFetch => return self.on_fetch(key, message, &payload),
            Command::StmtReset => return self.on_statement_reset(key, message, &payload),
            _ if is_cut_short(command, &payload) => {
                if self.shared.server.flavour.is_mysql() {
                    self.answers().malformed(key);
                }
            }
            Command::StmtSendLongData => {
                if let Some(client) = self.clients.get_mut(key) {
                    let server = &self.shared.server;
                    self.kept.take_long_data(client, message, &payload, server);
                }
            }
            _ => self.on_statement_close(key, &payload),
        }
        Handled::Used
    }

    /// COM_STMT_PREPARE: always asks the server, whatever is known of the text.
    fn on_prepare(&mut self, key: Key, message: &[u8], sql: &[u8]) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        let seen = self.in_hand.seen(message, sql, mode, false);
        let (class, hides_kill) = (seen.class, seen.hides_kill);
        // Prepared, it kills nobody yet.
        let reads = class.kills && Kill::read_with(sql, mode, Some(0)).is_some();
        if !reads && hides_kill {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        }
        let session = client.session.clone();
        let own = (class.reads.intersects(Reads::CONNECTION_ID))
            .then(|| client.with_own_id(sql, mode))
            .flatten();
        if let Some(own) = own {
            let mut rewritten = Vec::new();
            put_command(&mut rewritten, Command::StmtPrepare, &own);
            return self.prepare_text(key, &rewritten, &own, class, session);
        }
        self.prepare_text(key, message, sql, class, session)
    }

    fn prepare_text(
        &mut self,
        key: Key,
        message: &[u8],
        sql: &[u8],
        class: classify::Statement,
        session: Rc<Session>,
    ) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let share = self.shared.prepared_of_backend(&self.settings);
        if (self.client_view(key)).is_some_and(|view| view.is_full(share)) {
            return self.answers().refuse_to_prepare(key);
        }
        if let Some(full) = client.prepared.as_ref().and_then(|all| all.is_full()) {
            return self
                .answers()
                .refuse_counted(key, &Refusal::Prepared(full.into()));
        }
        let mode = self.shared.server.lex_mode(&session, client.capabilities);
        if let Some(client) = self.clients.get_mut(key) {
            client.pin_without_schema(&session, (sql, &class));
            client.touch_to_prepare(sql, mode, &class);
        }
        let definition = self
            .definitions
            .define(&mut self.sessions, sql, &session, class);
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        let id = client.statements_made.wrapping_add(1);
        let under_way = UnderWay::new(Command::StmtPrepare, id, definition);
        client.prepared.get_or_insert_default().under_way = Some(under_way);
        let mut statement = Statement::plain(Command::StmtPrepare.reply());
        statement.standing = Standing::Anywhere;
        statement.conditions = Conditions::Counts;
        statement.found = Found::Keeps;
        if !class.reads.intersects(Reads::DIAGNOSTICS) {
            statement.area = area_of(&class, self.shared.server.flavour);
        }
        self.start(key, message, statement)
    }

    /// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE.
    fn on_execute(
        &mut self,
        key: Key,
        command: Command,
        message: &[u8],
        payload: &[u8],
    ) -> Handled {
        let execution = command == Command::StmtExecute;
        if execution && payload.len() < EXECUTE_FIXED {
            // Servers look at that before they look for the statement.
            self.answers().malformed(key);
            return Handled::Used;
        }
        let id = match self.id_of(key, payload, command) {
            Ok(id) => id,
            Err(handled) => return handled,
        };
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        let form = Form::of(client.capabilities);
        let Some(prepared) = &mut client.prepared else {
            return Handled::Used;
        };
        let Some(params) = prepared.get(id).map(|held| usize::from(held.params)) else {
            return Handled::Used;
        };
        // What becomes of the execution is another matter: a driver does not send them again.
        let given = types(command, head_of(message), params, form);
        let by_last = statement_id(payload) == Some(LAST_PREPARED);
        let without_types = given == Types::Earlier || execution && given == Types::Unreadable;
        if by_last && without_types {
            // The server's own refusal: with that id the types have to stand there. With an id that
            // it knows, some of these are taken, as executions with types of before.
            self.answers().malformed(key);
            return Handled::Used;
        }
        prepared.remember(id, given);
        prepared.count(&self.kept.statements);
        let Some(held) = prepared.get_mut(id) else {
            return Handled::Used;
        };
        let (definition, overlong) = (held.definition.clone(), held.overlong);
        if overlong {
            self.kept.drop_long_data(self.clients.get_mut(key), id);
            let refusal = Refusal::Prepared(Unprepared::LongData);
            return self.answers().refuse_counted(key, &refusal);
        }
        if definition.class.kills {
            let earlier = held.types.as_deref();
            let plain = command == Command::StmtExecute && held.long.is_none();
            let parameter = plain.then(|| only_number(payload, earlier, form)).flatten();
            return self.on_kill_execution(key, &definition, parameter);
        }
        self.return_to_last_backend(key, &definition.class);
        let handled = self.execute_read(key, (command, id), definition, message);
        self.leave_last_backend(key);
        handled
    }

    /// Executes a statement, or a text of its own where it reads what its backend does not know.
    fn execute_read(
        &mut self,
        key: Key,
        (command, id): (Command, u32),
        definition: Rc<Definition>,
        message: &[u8],
    ) -> Handled {
        let text = (self.clients.get(key))
            .map(|c| c.schema_text(&definition, &definition.class, &self.shared.server));
        let known = text.and_then(|text| self.code().known(text, &definition.session));
        let class = class_with(&definition.class, known.as_ref());
        let told = !class.pin.is_some_and(hides_reads);
        if !told && self.naming(key).is_some_and(|mut n| n.loses_to_hidden()) {
            return self.waiters().wait_outside(key);
        }
        let elsewhere = self.clients.get(key).map(Client::reads_elsewhere);
        let server = self.shared.server.flavour;
        let client = self.clients.get(key);
        let none = client.is_some_and(|client| client.shows_none(&class, server));
        let asks = elsewhere.is_some_and(|elsewhere| class.reads.intersects(elsewhere));
        if told && asks && !none {
            if self.reads_back_first(key, class.reads) {
                return self.waiters().wait_outside(key);
            }
            return self.execute_reading(key, id, &definition, message);
        }
        let text = (self.clients.get(key))
            .map(|c| c.schema_text(&definition, &class, &self.shared.server));
        let inside = text.map_or(Inside::Known, |text| self.asks_inside(key, text));
        if inside == Inside::Gone {
            self.kept.drop_long_data(self.clients.get_mut(key), id);
            return self.previous_gone(key);
        }
        let execution = Execution {
            command,
            id,
            definition,
            inside,
        };
        self.execute(key, execution, known, message)
    }

    fn execute(
        &mut self,
        key: Key,
        execution: Execution,
        known: Option<Known>,
        message: &[u8],
    ) -> Handled {
        let Execution {
            command,
            id,
            definition,
            inside,
        } = execution;
        let class = class_with(&definition.class, known.as_ref());
        // The servers send the results of a CALL at once, whatever it asks for.
        let cursor = command == Command::StmtExecute
            && class.verb != Verb::Call
            && wants_cursor(&payload_of(message));
        let mut statement = statement_of(&class, self.shared.server.flavour);
        statement.standing = standing_of_execution(&definition.sql, &class);
        inside.mark(&mut statement);
        if cursor {
            statement.found = Found::Unsure;
            statement.shape = ReplyShape::Cursor;
        }
        let rides = !cursor
            && (self.settings.ride_max > 1 && text_rides(&definition.sql, &class, statement.found));
        if rides || self.figures.digests.are_counted() {
            let capabilities = self.clients.get(key).map_or(0, |c| c.capabilities);
            let mode = (self.shared.server).lex_mode(&definition.session, capabilities);
            statement.digest = definition.digest(mode);
            let text = (&definition.sql[..], mode);
            (self.figures.digests).note(statement.digest, text, self.net.now());
        }
        let whole = |client: &Client<N::Sock>| client.executes_whole(command, id);
        if rides && self.clients.get(key).is_some_and(whole) {
            statement.ride = Ride::Execution;
        }
        if let Some(known) = &known {
            known.mark(&mut statement);
        }
        if let Some(text) =
            (self.clients.get(key)).map(|c| c.schema_text(&definition, &class, &self.shared.server))
        {
            self.plan_pins(key, text, &mut statement);
            if let Some(client) = self.clients.get_mut(key) {
                client.touch(text.sql, text.mode, &class);
                client.touch_by_code(known.as_ref());
            }
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.prepared.get_or_insert_default().under_way = Some(UnderWay {
            cursor,
            ..UnderWay::new(command, id, definition)
        });
        self.start(key, message, statement)
    }

    /// An execution that reads what the statement before left, on a backend that does not know. A
    /// count that the pool has kept is executed as a text of its own.
    fn execute_reading(
        &mut self,
        key: Key,
        id: u32,
        definition: &Rc<Definition>,
        message: &[u8],
    ) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        let session = client.session.clone();
        let mut class = definition.class;
        let values = self
            .survey()
            .before(key)
            .map(|before| before.values(&class));
        let text = with_values(&definition.sql, mode, values.unwrap_or_default());
        let Some(text) = text.filter(|_| !class.multi) else {
            self.kept.drop_long_data(self.clients.get_mut(key), id);
            let cursor = wants_cursor(&payload_of(message));
            let before = self.survey().before(key).filter(|_| !cursor);
            let rows = before.and_then(|before| before.shown_in_binary(&definition.sql, mode));
            if let Some(rows) = rows {
                self.answers().show(key, &rows);
                return Handled::Used;
            }
            return self.previous_gone(key);
        };
        class.reads = Reads::NONE;
        let instead = self.definitions.intern(Definition {
            sql: text.into(),
            session,
            class,
            digest: OnceCell::new(),
        });
        let text = (self.clients.get(key))
            .map(|c| c.schema_text(definition, &definition.class, &self.shared.server));
        let known = text.and_then(|text| self.code().known(text, &definition.session));
        let execution = Execution {
            command: Command::StmtExecute,
            id,
            definition: instead,
            inside: Inside::Known,
        };
        self.execute(key, execution, known, message)
    }

    /// COM_STMT_FETCH: rows of a cursor on the client's backend.
    fn on_fetch(&mut self, key: Key, message: &[u8], payload: &[u8]) -> Handled {
        // The command, the statement's id and a number of rows, which MariaDB does not insist on.
        let mysql = self.shared.server.flavour.is_mysql();
        if mysql && payload.len() < 9 {
            self.answers().malformed(key);
            return Handled::Used;
        }
        let id = match self.id_of(key, payload, Command::StmtFetch) {
            Ok(id) => id,
            Err(handled) => return handled,
        };
        if self
            .clients
            .get_mut(key)
            .is_some_and(|c| c.goes_to_cursor(Command::StmtFetch, id))
        {
            let statement = Statement::plain(Command::StmtFetch.reply());
            return self.start(key, message, statement);
        }
        let end = match self.shared.server.flavour {
            Server::MySql(_) => ".",
            _ => "",
        };
        let text = format!("The statement ({id}) has no open cursor{end}");
        self.raise(key, errors::NO_OPEN_CURSOR, &text)
    }

    /// COM_STMT_RESET: drops long data, closes the cursor.
    fn on_statement_reset(&mut self, key: Key, message: &[u8], payload: &[u8]) -> Handled {
        let id = match self.id_of(key, payload, Command::StmtReset) {
            Ok(id) => id,
            Err(handled) => return handled,
        };
        self.kept.drop_long_data(self.clients.get_mut(key), id);
        if self
            .clients
            .get_mut(key)
            .is_some_and(|c| c.goes_to_cursor(Command::StmtReset, id))
        {
            let statement = Statement::plain(Command::StmtReset.reply());
            return self.start(key, message, statement);
        }
        self.answers().ok(key, &OwnOk::PLAIN);
        if let Some(client) = self.clients.get_mut(key) {
            match self.shared.server.flavour.is_mysql() {
                true => client.last.answered_uncounted(0),
                false => client.last.answered(0),
            }
        }
        Handled::Used
    }

    /// COM_STMT_CLOSE: an unknown id is nothing to a server either.
    fn on_statement_close(&mut self, key: Key, payload: &[u8]) {
        let mysql = self.shared.server.flavour.is_mysql();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(id) = statement_id(payload).and_then(|id| client.statement_meant(id, mysql))
        else {
            return;
        };
        self.kept.drop_long_data(Some(&mut *client), id);
        let Some(prepared) = &mut client.prepared else {
            return;
        };
        let open = prepared.cursor_of(id).cloned();
        prepared.set_cursor(id, None);
        if prepared.remove(id).is_none() {
            return;
        }
        prepared.count(&self.kept.statements);
        if prepared.is_empty() {
            client.prepared = None;
        }
        let (Some(lease), Some(definition)) = (client.lease(), open) else {
            return;
        };
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        if let Some(sent_to) = backend.prepared.with_cursor((&definition, id)) {
            backend.prepared.take(&definition, sent_to);
            let mut out = Vec::new();
            put_closes(&mut out, &[sent_to]);
            self.backend_writer().send(lease, &out);
        }
        self.settle(lease);
    }

    /// The id in a command that must name a statement of the client's; without one the client gets
    /// the server's error.
    fn id_of(&mut self, key: Key, payload: &[u8], command: Command) -> Result<u32, Handled> {
        let Some(id) = statement_id(payload) else {
            self.answers().malformed(key);
            return Err(Handled::Used);
        };
        let mysql = self.shared.server.flavour.is_mysql();
        let client = self.clients.get(key);
        if let Some(meant) = client.and_then(|client| client.statement_meant(id, mysql)) {
            return Ok(meant);
        }
        // A server looks at what the client has negotiated before it looks for the statement.
        let bulk = |client: &Client<N::Sock>| u32::from(client.extended) & EXTENDED_BULK != 0;
        if command == Command::StmtBulkExecute && !self.clients.get(key).is_some_and(bulk) {
            let words = "This command is not supported in the prepared statement protocol yet";
            return Err(self.raise(key, errors::UNSUPPORTED_PREPARED, words));
        }
        // Each server names the function that looked for it.
        let what = match (command, self.shared.server.flavour) {
            (_, Server::MySql(_)) => "mysql_stmt_precheck",
            (Command::StmtFetch, _) => "mysqld_stmt_fetch",
            (Command::StmtReset, _) => "mysqld_stmt_reset",
            _ => "mysqld_stmt_execute",
        };
        let text = format!("Unknown prepared statement handler ({id}) given to {what}");
        Err(self.raise(key, errors::UNKNOWN_STATEMENT, &text))
    }

    /// Closes what idle backends have prepared beyond their share: that of each is smaller since
    /// the server takes fewer (`max_prepared_stmt_count`), and clients' own would be refused.
    pub(crate) fn give_statements_back(&mut self) {
        let share = self.shared.prepared_of_backend(&self.settings);
        for lease in self.backends.keys() {
            let Some(backend) = self.backends.get_mut(lease) else {
                continue;
            };
            let idle = backend.state() == BackendState::Idle;
            if !idle || backend.prepared.count() <= share {
                continue;
            }
            let mut out = Vec::new();
            while backend.prepared.count() > share
                && let Some(id) = backend.prepared.take_oldest()
            {
                put_closes(&mut out, &[id]);
            }
            // The rest are names, whose end has a reply.
            if backend.prepared.count() > share {
                self.let_go(lease);
            } else {
                self.backend_writer().send(lease, &out);
            }
        }
    }
}
