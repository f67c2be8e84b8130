//! Renewal: a backend forgets user variables that a client must not find there.
//!
//! The problem: a user variable that was never set is not the same as one that is NULL. MySQL types
//! it by its place, and MariaDB takes it for a constant: `SELECT @n := IFNULL(@n, 0) + 1 FROM t`
//! gives 1 in each row. No statement takes a variable away; what one client has set stays on its
//! backend, NULL at best. The mechanism: a backend notes the names that it has ever had ([`Had`]).
//! A statement that names one which its client has never set ([`unset_in`]) goes to a backend that
//! never had it, if one is idle. Else the backend is reset before it: COM_RESET_CONNECTION, that
//! takes all of them away, the trackers, and what the session is like, in one write. That is waited
//! for, since a session begins with the global values of that moment; then the client's own session
//! is restored as on any other backend. Where `init_connect` says what a session begins with, a
//! reset does not run it: such a backend is replaced.
//!
//! The same is done on MySQL for a client that has reset its connection. A reset leaves the
//! server's character set in place of the schema's, and MySQL (seen on 9.7) lets none but
//! administrators set that (error 1227). A reset of the backend in the client's schema sets it for
//! everybody.
//!
//! A client that holds its backend (a transaction, a pin) cannot leave it, nor can that be reset:
//! there an unset variable is the NULL that is most like one (`session/state/written.rs`).
//!
//! Invariants: whatever a backend has had since its session began is in its [`Had`]; what was
//! prepared on it is forgotten with the rest.

use crate::backend::dial::{ROLE, put_preparation};
use crate::backend::{Backend, InFlight, Purpose};
use crate::client::touched::Touched;
use crate::client::{Client, ClientState, Handled};
use crate::group::Group;
use crate::server::rows::row_of;
use reactor::{Key, Net};
use session::begun::Begun;
use session::last_statement::LEFT_BY_STATEMENT;
use session::prepared::OnBackend;
use session::reply_summary::ReplySummary;
use session::roles::has_roles;
use session::standing::Standing;
use session::state::{CHARSET_VARIABLES, Session, can_restore};
use session::text::Text;
use session::user_variables::{name_of, results_collation};
use session::variables_had::{Had, UNCERTAIN};
use sql::classify::{Statement, Verb, lists_user_variables};
use sql::lex::{Kind, LexMode, Lexer, Token};
use std::rc::Rc;
use wire::command::{Command, ReplyShape, put_command};

/// User variables that a text names, or lists with all others, and that `is_set` does not know, so
/// that it depends on their absence what the text does. One that is only given a value by a SET is
/// none of them, if that value does not take its type from what was there before, as NULL does on
/// MySQL.
pub(crate) fn unset_in(
    sql: &[u8],
    mode: LexMode,
    found: &Statement,
    is_set: impl Fn(&[u8]) -> bool,
) -> Vec<Text> {
    let sets = found.verb == Verb::Set && !found.multi;
    let mysql = mode.server.is_mysql();
    let mut unset: Vec<Text> = Vec::new();
    let (mut before, mut depth) = (None::<Token>, 0_u32);
    let mut tokens = Lexer::new(sql, mode);
    while let Some(token) = tokens.next() {
        let last = before.replace(token);
        match token.kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let text = |token: &Token| &sql[token.start..token.end];
        if token.kind != Kind::UserVariable {
            let named = matches!(token.kind, Kind::Word | Kind::Name);
            if named && lists_user_variables(text(&token)) {
                unset.push(UNCERTAIN.into());
            }
            continue;
        }
        let first = last.is_some_and(|last| {
            last.kind == Kind::Punct(b',') || text(&last).eq_ignore_ascii_case(b"SET")
        });
        if sets && first && depth == 0 && is_assigned(sql, tokens.clone(), mysql) {
            continue;
        }
        let name = name_of(text(&token), mode).unwrap_or_else(|| UNCERTAIN.into());
        if !is_set(&name) && !unset.contains(&name) {
            unset.push(name);
        }
    }
    unset
}

/// Whether a value follows that gives a variable its type, whatever it was before.
fn is_assigned(sql: &[u8], mut tokens: Lexer<'_>, mysql: bool) -> bool {
    let assigns = |token: &Token| matches!(token.kind, Kind::Assign | Kind::Punct(b'='));
    if !tokens.next().is_some_and(|token| assigns(&token)) {
        return false;
    }
    if !mysql {
        return true;
    }
    let mut value = tokens.next();
    if value.is_some_and(|token| token.kind == Kind::Punct(b'-')) {
        value = tokens.next();
    }
    // Of system variables some may be NULL.
    let typed = value.is_some_and(|token| {
        let text = &sql[token.start..token.end];
        let null = [&b"results"[..], b"tmpdir", b"stopword"];
        let may_be_null = |text: &[u8]| null.iter().any(|name| contains(text, name));
        match token.kind {
            Kind::String | Kind::Number => true,
            Kind::SystemVariable => !may_be_null(text),
            _ => false,
        }
    });
    let ends = |token: Token| matches!(token.kind, Kind::Punct(b',' | b';'));
    typed && tokens.next().is_none_or(ends)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    (text.windows(part.len())).any(|window| window.eq_ignore_ascii_case(part))
}

impl<S> Client<S> {
    /// Whether a user variable may be set in its session.
    fn may_have(&self, name: &[u8]) -> bool {
        let touched = self.touched.as_ref();
        self.session.user_variable(name).is_some()
            || touched.is_some_and(|touched| touched.names.iter().any(|other| **other == *name))
    }

    /// User variables that its command needs not to be there.
    fn unset(&self) -> &[Text] {
        let touching = self.touching.as_ref();
        touching.map_or(&[], |touching| &touching.unset)
    }

    /// User variables that its text names and that it has never set.
    pub(crate) fn unset_by(&self, sql: &[u8], mode: LexMode, found: &Statement) -> Vec<Text> {
        match found.user_variables {
            true => unset_in(sql, mode, found, |name| self.may_have(name)),
            false => Vec::new(),
        }
    }

    /// Its command prepares this text: a server looks at the variables that it names.
    pub(crate) fn touch_to_prepare(&mut self, sql: &[u8], mode: LexMode, found: &Statement) {
        let unset = self.unset_by(sql, mode, found);
        if !unset.is_empty() {
            self.touching = Some(Box::new(Touched::needing(unset)));
        }
    }

    /// Whether its command finds nothing on a backend that it must not find there.
    pub(crate) fn is_clean_on(&self, backend: &Backend<S>) -> bool {
        let own = |name: &[u8]| self.may_have(name);
        !backend.had.has_any_of(self.unset(), own)
    }

    /// Whether a backend can be brought into the state that its command needs, of sessions that
    /// began like this.
    pub(crate) fn can_run_on(&self, backend: &Backend<S>, begun: &Begun) -> bool {
        let renews = begun.init_connect().is_empty();
        (self.may_choose_schema() || can_restore(&backend.session, &self.session))
            && (renews || self.is_clean_on(backend))
    }

    /// Whether it has a session that a backend of MySQL is brought into by a reset only.
    fn needs_reset(&self, backend: &Backend<S>, begun: &Begun) -> bool {
        let (from, to) = (&backend.session, &self.session);
        !Rc::ptr_eq(from, to) && from.needs_reset_for(to, begun)
    }

    /// Whether its command sets its default schema on a backend with any: where that fails,
    /// it may go on elsewhere.
    pub(crate) fn may_choose_schema(&self) -> bool {
        self.statement.standing == Standing::NewSchema
            && !self.is_begin_deferred()
            && !self.is_held()
    }
}

impl<N: Net> Group<N> {
    /// Resets the session of a client's backend, where its command needs that; `None`
    /// where it does not, or where the client holds its backend.
    pub(crate) fn renew(&mut self, key: Key, lease: Key) -> Option<Handled> {
        let (client, backend) = (self.clients.get(key)?, self.backends.get(lease)?);
        let mysql = self.shared.server.flavour.is_mysql();
        if client.is_clean_on(backend) && !(mysql && client.needs_reset(backend, &self.begun)) {
            return None;
        }
        if client.is_held() || backend.in_transaction() {
            return None;
        }
        if !self.begun.init_connect().is_empty() {
            return None;
        }
        if backend.served && !backend.flight().is_empty() {
            // What is being read back is the session's that is there.
            return Some(self.wait_for_read_back(key));
        }
        if self.ask_for(lease, key) {
            return Some(self.wait_for_read_back(key));
        }
        let now = self.net.now();
        let flavour = self.shared.server.flavour;
        let begun = self.sessions.intern(Session::not_known(&self.begun));
        let (client, backend) = (self.clients.get_mut(key)?, self.backends.get_mut(lease)?);
        if !client.change_state(ClientState::Restoring, now) {
            self.close_later(key);
            return Some(Handled::Used);
        }
        let before = std::mem::replace(&mut backend.session, begun);
        let mut kept = (*backend.session).clone();
        // Schema and role outlive a reset. The client's are set in front of it: a schema that is
        // set behind it brings its own character set.
        let mut moved = (*before).clone();
        moved.role.clone_from(&client.session.role);
        if client.session.schema.is_some() {
            moved.use_schema(client.session.schema.clone());
        }
        let mut out = Vec::new();
        for _ in 0..backend.put_session(&mut out, flavour, (&before, &moved), None) {
            let purpose = Purpose::Restore(false);
            backend.expect(InFlight::own(Some(key), purpose, ReplyShape::Status));
        }
        kept.schema = moved.schema;
        kept.role = moved.role;
        kept.multi_statements = before.multi_statements;
        backend.session = self.sessions.intern(kept);
        backend.note_role();
        client.last.disown(LEFT_BY_STATEMENT);
        backend.rideable = false;
        backend.had = Had::default();
        backend.conditions_of = None;
        backend.prepared = OnBackend::default();
        (backend.insert_id, backend.found, backend.unsettled) = (Some(0), None, None);
        let shapes = [ReplyShape::Status, ReplyShape::Results, ReplyShape::Results];
        for (i, shape) in shapes.into_iter().enumerate() {
            let purpose = Purpose::Renew(i + 1 == shapes.len());
            let command = InFlight::own(Some(key), purpose, shape);
            backend.expect(command);
        }
        put_command(&mut out, Command::ResetConnection, b"");
        let more = if has_roles(flavour) { ROLE } else { "" };
        put_preparation(&mut out, backend.form, more);
        self.counts.renewed += 1;
        self.send_backend(lease, &out);
        if let Some(backend) = self.backends.get_mut(lease) {
            self.running.begins(backend, self.net.now());
        }
        Some(Handled::Kept)
    }

    /// A backend whose session is reset has answered; `last`: with what that is like.
    pub(crate) fn renewed(
        &mut self,
        key: Key,
        (owner, last): (Option<Key>, bool),
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        let now = self.net.now();
        if let Some((code, text)) = &summary.error {
            let why = format!("the server did not let a session start over: {code} {text}");
            return self.lose(key, &why);
        }
        if !last {
            return;
        }
        let mut row = row_of(collected).unwrap_or_default();
        row.truncate(CHARSET_VARIABLES.len());
        let charsets = <[Text; 4]>::try_from(row).ok();
        let (Some(charsets), Some(backend)) = (charsets, self.backends.get_mut(key)) else {
            return self.lose(key, "the server did not say what its session is like");
        };
        let account = &self.backend_pools.pools[backend.pool].key;
        let stands = backend.session.begun == self.begun;
        let kept = backend.session.clone();
        let mut session = Session::at_login(b"", kept.multi_statements, &charsets, &self.begun);
        session.schema.clone_from(&kept.schema);
        session.forget_schema_charset();
        session.role.clone_from(&kept.role);
        // A reset keeps a session interactive on MySQL (seen on 9.7), not on MariaDB (10.11).
        if self.shared.server.flavour.is_mysql() {
            session.begin_interactive(account.capabilities);
        }
        let results = results_collation(collected, account.extended, &session);
        session.results_collation = self.shared.server.results_in(results);
        backend.session = self.sessions.intern(session);
        backend.session.accepted.note(backend.epoch);
        let Some((owner, client)) =
            owner.and_then(|owner| Some((owner, self.clients.get_mut(owner)?)))
        else {
            return self.retire(key);
        };
        if !client.change_state(ClientState::Idle, now) {
            return self.close_later(owner);
        }
        if !stands {
            // It may have begun under either.
            self.unbind(owner);
            self.retire(key);
        }
        self.pump(owner);
        self.settle(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;
    use sql::lex::Server;

    fn unset(sql: &str, server: Server) -> Vec<String> {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let found = classify(sql.as_bytes(), mode);
        let names = unset_in(sql.as_bytes(), mode, &found, |name| name == b"set");
        let text = |name: &Text| String::from_utf8(name.to_vec()).unwrap();
        names.iter().map(text).collect()
    }

    #[test]
    fn a_text_needs_those_that_it_reads_not_to_be_there() {
        let (mariadb, mysql) = (Server::MariaDb(101_119), Server::MySql(90_704));
        let both: [(&str, &[&str]); 9] = [
            ("SELECT @a, @Set, @`B b`, @a", &["a", "b b"]),
            ("SELECT @n := IFNULL(@n, 0) + 1 FROM t", &["n"]),
            ("SET @a = 1, @b := 'x', @c = -1.5;", &[]),
            ("SET @a = @@sql_mode, time_zone = '+00:00'", &[]),
            ("SET @a = 1, @c = @a", &["a"]),
            ("SET @a = 1; SELECT @a", &["a"]),
            (
                "SET @c = (SELECT MAX(@d, @e = 1) FROM t), @f = 1",
                &["d", "e"],
            ),
            ("INSERT INTO t VALUES (@a)", &["a"]),
            ("SELECT @'a\\'b'", &[""]),
        ];
        for (sql, names) in both {
            let found: Vec<String> = (unset(sql, mysql).into_iter())
                .filter(|name| name != "c")
                .collect();
            assert_eq!(found, names, "{sql}");
            assert_eq!(unset(sql, mariadb), names, "{sql}");
        }
        // On MySQL a NULL keeps the type that was there.
        for sql in [
            "SET @a = NULL",
            "SET @a = (SELECT 5)",
            "SET @a = 1 + 1",
            "SET @a = @@character_set_results",
        ] {
            assert_eq!(unset(sql, mysql), ["a"], "{sql}");
            assert_eq!(unset(sql, mariadb), [""; 0], "{sql}");
        }
    }
}
