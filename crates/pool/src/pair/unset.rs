//! State that a client's command must not find on a backend: user variables that the client has
//! never set, types of stored code that another client's settings have decided, and a session that
//! only a reset brings into the client's.
//!
//! Why an absent variable is not NULL, and what is done about a backend that has one, says
//! [`crate::backend::session_reset`]. Here is seen what a text needs, and whether a backend
//! has it. Invariant: a name that is not certain counts as any name.

use crate::backend::{Backend, BackendSession, Typed};
use crate::client::{Client, ClientSession};
use crate::group::tokens::ClientId;
use crate::server::facts::ServerFacts;
use session::global_defaults::GlobalDefaults;
use session::send_mode::SendMode;
use session::state::{Session, UserVariables, can_restore};
use session::text::Text;
use session::user_variables::name_of;
use sql::classify::{Statement, Verb, lists_user_variables};
use sql::lex::{Kind, LexMode, Lexer, Token};
use std::rc::Rc;

/// Stands for a name that is not certain.
const UNCERTAIN: &[u8] = b"";

/// Longest `@name` that counts as plain, in bytes: MySQL refuses names of more than 64 letters.
const PLAIN_LEN_MAX: usize = 65;

/// Use that is made of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Run.
    Run,
    /// Preparation: it is not certain that it gives a variable a value.
    Prepare,
}

/// User variables that a text names, or lists with all others, and that `is_set` does not know, so
/// that it depends on their absence what the text does. That only sets some, which cannot fail,
/// needs none of them absent.
fn unset_in(
    sql: &[u8],
    mode: LexMode,
    (found, used): (&Statement, Use),
    is_set: impl Fn(&[u8]) -> bool,
) -> Vec<Text> {
    let sets = found.verb == Verb::Set && !found.multi && used == Use::Run;
    let mut unset: Vec<Text> = Vec::new();
    if sets && only_assigns(sql, mode) {
        return unset;
    }
    for token in Lexer::new(sql, mode) {
        let text = &sql[token.start..token.end];
        let name = match token.kind {
            Kind::UserVariable => name_of(text, mode).unwrap_or_else(|| UNCERTAIN.into()),
            Kind::Word | Kind::Name if lists_user_variables(text) => UNCERTAIN.into(),
            _ => continue,
        };
        if !is_set(&name) && !unset.contains(&name) {
            unset.push(name);
        }
    }
    unset
}

/// True if a SET gives literals to user variables and does nothing else. No server refuses that,
/// and each variable is what its value makes of it, whatever it was before. Of a SET that fails it
/// depends on the server and on where it fails which variables are there then.
fn only_assigns(sql: &[u8], mode: LexMode) -> bool {
    let mut tokens = Lexer::new(sql, mode);
    let text = |token: Token| &sql[token.start..token.end];
    if !(tokens.next()).is_some_and(|token| text(token).eq_ignore_ascii_case(b"SET")) {
        return false;
    }
    loop {
        let name = (tokens.next()).filter(|token| token.kind == Kind::UserVariable);
        let assigns = tokens.next().map(|token| token.kind);
        let mut value = tokens.next();
        let negative = value.is_some_and(|token| token.kind == Kind::Punct(b'-'));
        if negative {
            value = tokens.next();
        }
        let literal = value.is_some_and(|token| match token.kind {
            // An exponent may be too great.
            Kind::Number => !text(token).iter().any(|byte| matches!(byte, b'e' | b'E')),
            Kind::String => !negative,
            // On MySQL a NULL has the type of what was there before it.
            Kind::Word if !mode.server.is_mysql() => text(token).eq_ignore_ascii_case(b"NULL"),
            _ => false,
        });
        let plain = name.is_some_and(|token| is_plain(text(token)));
        if !plain || !literal || !matches!(assigns, Some(Kind::Assign | Kind::Punct(b'='))) {
            return false;
        }
        match tokens.next().map(|token| token.kind) {
            Some(Kind::Punct(b',')) => {}
            Some(Kind::Semicolon) => return tokens.next().is_none() && !tokens.doubtful(),
            None => return !tokens.doubtful(),
            Some(_) => return false,
        }
    }
}

/// True if `@name` is one that every server takes.
fn is_plain(variable: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    (2..=PLAIN_LEN_MAX).contains(&variable.len()) && variable[1..].iter().all(letter)
}

/// Reason for which a command cannot run in a backend's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Session that has something which the command must not find, or lacks something that it must
    /// find, or from which (on MySQL) nothing but a reset leads to the client's.
    NeedsReset,
    /// Session with a default schema for a command that is to have none: nothing takes a schema
    /// away. The client had one when it got the backend, and has lost it since.
    HasSchema,
}

impl BackendSession {
    /// Notes that it is brought into another session: variables that this one lacks are put to
    /// NULL, and stay.
    pub(crate) fn note_leftovers(&mut self, after: &UserVariables) {
        let mut before = self.state.user_variables().pairs().iter();
        if before.any(|(name, _)| after.get(name).is_none()) {
            self.note_leftover();
        }
    }

    /// Notes that it is brought into this state.
    pub(crate) fn enter(&mut self, state: Rc<Session>) {
        self.note_leftovers(state.user_variables());
        self.state = state;
    }
}

impl<S> Client<S> {
    /// True if a backend can be brought into the state that its command needs, of sessions that
    /// began like this. `key`: the client's own.
    pub(crate) fn can_run_on(
        &self,
        backend: &Backend<S>,
        key: ClientId,
        (defaults, server): (&GlobalDefaults, &ServerFacts),
    ) -> bool {
        let (own, there) = (&self.session, &backend.session);
        let fits = self.may_choose_schema() || can_restore(&there.state, &own.state);
        fits && match own.may_be_reset_for(defaults, server) {
            true => true,
            // A reset would not give back what its login has set.
            false if !defaults.init_connect().is_empty() => own.is_clean_on(there),
            false => (own.unfit_session(there, key, (defaults, server))).is_none(),
        }
    }

    /// True if its command sets its default schema on a backend with any: where that fails, it may
    /// go on elsewhere.
    pub(crate) fn may_choose_schema(&self) -> bool {
        self.session.statement.send_mode == SendMode::NewSchema
            && !self.command.is_begin_deferred()
            && !self.session.is_held()
    }
}

impl ClientSession {
    /// True if its command finds its session on a backend, and nothing else, at first sight.
    pub(crate) fn fits_at_once(&self, there: &BackendSession) -> bool {
        Rc::ptr_eq(&there.state, &self.state)
            && self.effects.modifying().is_none()
            && !there.was_reset()
            && there.types_there().is_none()
    }

    /// True if a user variable may be set in its session.
    fn may_have(&self, name: &[u8]) -> bool {
        let modified = self.modified.as_ref();
        self.state.user_variable(name).is_some()
            || modified.is_some_and(|modified| modified.names.iter().any(|other| **other == *name))
    }

    /// User variables that its text names and that it has never set.
    pub(crate) fn unset_by(
        &self,
        sql: &[u8],
        mode: LexMode,
        (found, used): (&Statement, Use),
    ) -> Vec<Text> {
        match found.user_variables {
            true => unset_in(sql, mode, (found, used), |name| self.may_have(name)),
            false => Vec::new(),
        }
    }

    /// True if its command finds nothing in a backend's session that it must not find there.
    pub(crate) fn is_clean_on(&self, there: &BackendSession) -> bool {
        let modifying = self.effects.modifying();
        let needs_none_left = modifying.is_some_and(|modifying| modifying.needs_none_left);
        let mut set = there.state.user_variables().pairs().iter();
        !needs_none_left || !there.has_leftovers() && set.all(|(name, _)| self.may_have(name))
    }

    /// True if resetting a backend gives this client what a connection of its own would have.
    pub(crate) fn may_be_reset_for(&self, defaults: &GlobalDefaults, server: &ServerFacts) -> bool {
        defaults.init_connect().is_empty() && !self.is_harmed_by_reset(defaults, server)
    }

    /// True if a reset session lacks something that this client's has: it has not been reset.
    fn is_harmed_by_reset(&self, defaults: &GlobalDefaults, server: &ServerFacts) -> bool {
        server.reset_loses_foreign_keys && !self.state.is_as_reset(defaults)
    }

    /// Reason for which its command cannot run in a backend's session; `None` if it can. `key`: the
    /// client's own.
    pub(crate) fn unfit_session(
        &self,
        there: &BackendSession,
        key: ClientId,
        (defaults, facts): (&GlobalDefaults, &ServerFacts),
    ) -> Option<Unfit> {
        let (from, to) = (&there.state, &self.state);
        let sets_schema = self.statement.send_mode == SendMode::NewSchema;
        if !sets_schema && !can_restore(from, to) {
            return Some(Unfit::HasSchema);
        }
        let lacks = there.was_reset() && self.is_harmed_by_reset(defaults, facts);
        if lacks || !self.is_clean_on(there) || self.finds_types_of_others(there, key) {
            return Some(Unfit::NeedsReset);
        }
        // Whatever a reset has left of another schema, the one that is set now has its own.
        let differs = !sets_schema && facts.flavour.is_mysql() && !Rc::ptr_eq(from, to);
        (differs && from.needs_reset_for(to, defaults)).then_some(Unfit::NeedsReset)
    }

    /// True if stored code may have types there that it would not have in its session, and that it
    /// has not itself given it. `key`: the client's own.
    pub(crate) fn finds_types_of_others(&self, there: &BackendSession, key: ClientId) -> bool {
        let others = |typed: &&Typed| typed.by != Some(key);
        let typed = there.types_there().filter(others);
        typed.is_some_and(|typed| Some(&*typed.typing) != self.state.typing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;
    use sql::lex::Server;

    fn unset(sql: &str, server: Server, used: Use) -> Vec<String> {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let found = classify(sql.as_bytes(), mode);
        let names = unset_in(sql.as_bytes(), mode, (&found, used), |name| name == b"set");
        let text = |name: &Text| String::from_utf8(name.to_vec()).unwrap();
        names.iter().map(text).collect()
    }

    const MARIADB: Server = Server::MariaDb(101_119);
    const MYSQL: Server = Server::MySql(90_704);

    #[test]
    fn a_text_needs_those_that_it_names_not_to_be_there() {
        let cases: [(&str, &[&str]); 10] = [
            ("SELECT @a, @Set, @`B b`, @a", &["a", "b b"]),
            ("SELECT @n := IFNULL(@n, 0) + 1 FROM t", &["n"]),
            ("SELECT 1 INTO @a", &["a"]),
            ("CALL p(@a)", &["a"]),
            ("SET @a = 1, @c = @a", &["a", "c"]),
            ("SET @a = 1; SELECT @a", &["a"]),
            ("INSERT INTO t VALUES (@a)", &["a"]),
            ("SELECT @'a\\'b'", &[""]),
            ("SELECT * FROM information_schema.user_variables", &[""]),
            ("SET @set = 1, nosuch = 1", &[]),
        ];
        for (sql, names) in cases {
            for used in [Use::Run, Use::Prepare] {
                assert_eq!(unset(sql, MYSQL, used), names, "{sql}");
                assert_eq!(unset(sql, MARIADB, used), names, "{sql}");
            }
        }
    }

    #[test]
    fn a_set_that_cannot_fail_needs_none_not_to_be_there() {
        let longest = format!("SET @{} = 1", "x".repeat(PLAIN_LEN_MAX - 1));
        let longer = format!("SET @{} = 1", "x".repeat(PLAIN_LEN_MAX));
        for sql in [
            "SET @a = 1, @b := 'x', @c = -1.5;",
            "set @a_$1=0x1F /* why */",
            &longest,
        ] {
            assert_eq!(unset(sql, MYSQL, Use::Run), [""; 0], "{sql}");
            assert_eq!(unset(sql, MARIADB, Use::Run), [""; 0], "{sql}");
            assert_ne!(unset(sql, MARIADB, Use::Prepare), [""; 0], "{sql}");
        }
        for sql in [
            "SET @a = 1, nosuch = 1",
            "SET time_zone = 'bad', @a = 1",
            "SET @a = (SELECT nosuch)",
            "SET @a = @@nosuch",
            "SET @a = 1 + 1",
            "SET @a = 1e400",
            "SET @a = -'x'",
            "SET @a = = 1",
            "SET @a = 'open",
            "SET @a = 'x\\'",
            "SET @a = 1,",
            "SET @a = 1 /*!, nosuch = 1 */",
            "SET STATEMENT sql_mode = '' FOR SET @a = 1",
            &longer,
        ] {
            assert_ne!(unset(sql, MYSQL, Use::Run), [""; 0], "{sql}");
            assert_ne!(unset(sql, MARIADB, Use::Run), [""; 0], "{sql}");
        }
        // On MySQL a NULL keeps the type that was there.
        assert_eq!(unset("SET @a = NULL", MYSQL, Use::Run), ["a"]);
        assert_eq!(unset("SET @a = NULL", MARIADB, Use::Run), [""; 0]);
    }
}
