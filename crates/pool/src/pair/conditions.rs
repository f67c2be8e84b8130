//! Whose conditions (warnings, errors) stand on a backend, and what clears them.
//!
//! The problem: a server session keeps the conditions of its last statement, and SHOW WARNINGS, GET
//! DIAGNOSTICS, or code that a text runs, would show those of the client before. The mechanism: a
//! backend notes whose conditions it may hold; before another client's command goes out on it, a
//! statement that clears them does, in the same write ([`Pair::put_clearing`]).
//!
//! Invariant: no client's statement runs where another client's conditions stand.

use crate::backend::{Backend, InFlight, Purpose};
use crate::client::Client;
use crate::pair::Pair;
use crate::server::server_facts::ServerFacts;
use reactor::Key;
use session::diagnostics::Area;
use session::last_statement::COUNTS;
use session::meter::Meter;
use session::reply_summary::ReplySummary;
use session::state::Session;
use sql::classify::{self, Reads, Verb};
use sql::lex::Server;
use wire::attributes::put_query;
use wire::command::ReplyShape;

/// Clears MariaDB's conditions, for it looks at a table, and leaves FOUND_ROWS().
const CLEARS_MARIADB: &str = "SHOW CREATE TABLE information_schema.TABLES";
/// From this version on a SHOW WARNINGS that MySQL refuses clears them as others do; earlier ones
/// were not tried.
const MYSQL_SHOWS_ALONE: u32 = 90_700;
/// Clears MySQL's, as any statement does that does not ask for them.
const CLEARS_MYSQL: &str = "DO 0";

/// Whether a server refuses a text of several statements before it runs any of them, so that
/// nothing in it asks: its client may send one statement only.
pub(crate) fn is_refused_whole(found: &classify::Statement, session: &Session) -> bool {
    let one = matches!(found.verb, Verb::Select | Verb::Show | Verb::Diagnostics);
    found.multi && one && !session.multi_statements
}

impl<S> Client<S> {
    /// Whether a text that begins with a question about conditions cannot have it answered from
    /// what was kept, because of code that it runs behind, and there are some, elsewhere.
    pub(crate) fn lacks_conditions(&self, found: &classify::Statement) -> bool {
        let asks = matches!(found.verb, Verb::Show | Verb::Diagnostics);
        asks && !is_refused_whole(found, &self.session)
            && self.last.has_conditions()
            && found
                .reads
                .of(self.reads_lost())
                .intersects(Reads::DIAGNOSTICS)
    }

    /// Whether the syntax error of a text that its server refuses whole comes behind the conditions
    /// of before: to MySQL a text is a question about them as soon as GET DIAGNOSTICS stands there.
    pub(crate) fn stacks_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        found.verb == Verb::Diagnostics && self.is_refused_behind_conditions(found, server)
    }

    /// The same of SHOW WARNINGS and the like, of which it is known of some versions only.
    pub(crate) fn may_stack_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        let shows = found.verb == Verb::Show && found.reads.intersects(Reads::DIAGNOSTICS);
        let seen = matches!(server, Server::MySql(MYSQL_SHOWS_ALONE..));
        shows && !seen && self.is_refused_behind_conditions(found, server)
    }

    fn is_refused_behind_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        server.is_mysql() && is_refused_whole(found, &self.session) && self.last.has_conditions()
    }

    /// SHOW WARNINGS on its behalf has been answered.
    pub(crate) fn keep_warnings(
        &mut self,
        summary: &ReplySummary,
        collected: Vec<u8>,
        server: &ServerFacts,
        meter: &Meter,
    ) {
        let answer = match summary.error {
            Some(_) => Err(()),
            None => Ok(collected),
        };
        let session = &self.session;
        let stored_max = session.value(b"max_error_count");
        let stored_max = stored_max.and_then(|max| std::str::from_utf8(max).ok()?.parse().ok());
        let stored_max = stored_max.unwrap_or(server.conditions_max);
        let charset = session.variable(b"character_set_results");
        (self.last).keep_conditions(answer, charset, stored_max, meter);
    }
}

impl<S> Backend<S> {
    /// It has answered a command: notes whose conditions it may hold from now on. `area`: what the
    /// statement of the command's owner does with those of before.
    pub(crate) fn note_conditions_left(
        &mut self,
        command: &InFlight,
        summary: &ReplySummary,
        area: Option<Area>,
    ) {
        if !matches!(
            command.purpose,
            Purpose::Statement
                | Purpose::Ahead
                | Purpose::Joined(_)
                | Purpose::Restore(_)
                | Purpose::Schema
        ) {
            return;
        }
        if summary.error.is_some() || summary.warned {
            self.conditions_of = command.owner.or(self.conditions_of);
        } else if area == Some(Area::Clears) && command.purpose == Purpose::Statement {
            self.conditions_of = None;
        }
    }

    /// The pool asks it for FOUND_ROWS() on behalf of a client: on MySQL that leaves a warning,
    /// which is no client's.
    pub(crate) fn note_deprecation(&mut self, client: Key, server: Server) {
        if server.is_mysql() {
            self.conditions_of = Some(client);
        }
    }
}

impl<S> Pair<'_, S> {
    /// Whether the backend may hold conditions that are not those of its client's statement before:
    /// no client is to read another's, whatever its text, or code that it calls, asks for.
    pub(super) fn has_conditions_of_others(&self) -> bool {
        let Some(of) = self.backend.conditions_of else {
            return false;
        };
        // What the last statement has left here, if with fewer conditions than are kept of it.
        let here = [Reads::DIAGNOSTICS, Reads::ROW_COUNT];
        let here = here.iter().any(|&what| self.client.last.is_native(what));
        let own = of == self.owner && here;
        // Within a transaction nobody else has been here.
        !own && !self.backend.in_transaction()
    }

    /// Writes what clears them.
    pub(super) fn put_clearing(&mut self, out: &mut Vec<u8>) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let sql = match self.context.server.flavour {
            Server::MariaDb(_) => CLEARS_MARIADB,
            _ => {
                backend.found = None;
                client.last.disown(Reads::FOUND_ROWS);
                CLEARS_MYSQL
            }
        };
        backend.conditions_of = None;
        client.last.disown(COUNTS.union(Reads::DIAGNOSTICS));
        let command = InFlight::own(Some(self.owner), Purpose::Clearing, ReplyShape::Results);
        backend.expect(command);
        put_query(out, backend.form, sql.as_bytes());
    }
}
