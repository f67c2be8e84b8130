//! What a client's command must not find on a backend: user variables that the client has never
//! set, types of stored code that another client's settings have decided, and a session that only a
//! reset brings into the client's.
//!
//! Why an absent variable is not NULL, and what is done about a backend that has one, says
//! [`crate::group::backends::renewal`]. Here is seen what a text needs, and whether a backend has
//! it. Invariant: a name that is not certain counts as any name.

use crate::backend::{Backend, Typed};
use crate::client::Client;
use reactor::Key;
use session::begun::Begun;
use session::standing::Standing;
use session::state::can_restore;
use session::text::Text;
use session::user_variables::name_of;
use session::variables_had::UNCERTAIN;
use sql::classify::{Statement, Verb, lists_user_variables};
use sql::lex::{Kind, LexMode, Lexer, Server, Token};
use std::rc::Rc;

/// User variables that a text names, or lists with all others, and that `is_set` does not know, so
/// that it depends on their absence what the text does. One that is only given a value by a SET is
/// none of them, if that value does not take its type from what was there before, as NULL does on
/// MySQL.
fn unset_in(
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

    /// Whether a backend has to begin its session anew for its command: it has what that must not
    /// find, or it is one of MySQL that a reset alone brings into the client's session. `key`: the
    /// client's own.
    pub(crate) fn needs_renewal(
        &self,
        backend: &Backend<S>,
        key: Key,
        begun: &Begun,
        server: Server,
    ) -> bool {
        if !self.is_clean_on(backend) || self.finds_types_of_others(backend, key) {
            return true;
        }
        let (from, to) = (&backend.session, &self.session);
        let differs = server.is_mysql() && !Rc::ptr_eq(from, to);
        differs && from.needs_reset_for(to, begun)
    }

    /// Whether stored code may have types there that it would not have in its session, and that it
    /// has not itself given it. `key`: the client's own.
    pub(crate) fn finds_types_of_others(&self, backend: &Backend<S>, key: Key) -> bool {
        let others = |typed: &&Typed| typed.by != Some(key);
        let typed = backend.typed.as_ref().filter(others);
        typed.is_some_and(|typed| Some(&*typed.typing) != self.session.typing())
    }

    /// Whether its command sets its default schema on a backend with any: where that fails,
    /// it may go on elsewhere.
    pub(crate) fn may_choose_schema(&self) -> bool {
        self.statement.standing == Standing::NewSchema
            && !self.is_begin_deferred()
            && !self.is_held()
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
