//! Errors that a server would give itself, had it its client's prepared statements, or its command.
//!
//! The problem: an unknown id, a cursor that is not open and a command that there is not are the
//! pool's to find, and a client may ask about the error: SHOW WARNINGS, `@@error_count`, GET
//! DIAGNOSTICS, the count of warnings in the next OK. The mechanism: a SIGNAL of the same number,
//! state and words runs in place of the command. What it leaves is what the error leaves; but for
//! MySQL, where that stands behind the warnings of the statement before, as after RESIGNAL. A
//! question that the pool refuses because nobody knows its answer any more fails in the same way,
//! as a SIGNAL does on both.

use crate::client::{Client, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;

use crate::group::tokens::ClientId;
use crate::pair::changes::is_wide;
use reactor::Net;
use session::beforehand::statement_of;
use session::standing::standing_of;
use session::statement::Conditions;
use sql::classify::{Reads, classify};
use sql::lex::Server;
use wire::attributes::{Form, put_query};
use wire::errors::ErrorCode;

impl<S> Client<S> {
    /// True if the server would read a SIGNAL of its in a character set in which ASCII is no single
    /// byte: an SQLSTATE in it is none to the servers.
    fn cannot_read_signals(&self) -> bool {
        const NAME: &[u8] = b"character_set_connection";
        let set = self.session.variable(NAME);
        set.is_some_and(|set| is_wide(NAME, set))
    }
}

impl<N: Net> Group<N> {
    /// Has the server answer the client's command with this error, whose words have no quotes.
    pub(crate) fn raise(&mut self, key: ClientId, error: ErrorCode, words: &str) -> Handled {
        if self
            .clients
            .get(key)
            .is_some_and(Client::cannot_read_signals)
        {
            self.answers().error(key, error, words);
            return Handled::Used;
        }
        let ErrorCode { code, state } = error;
        let sql =
            format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO={code},MESSAGE_TEXT='{words}'");
        let conditions = match self.shared.server.flavour {
            Server::MySql(_) => Conditions::Asks,
            _ => Conditions::Leaves,
        };
        // It would take conditions away that a client's backend alone has, as in a transaction.
        if conditions == Conditions::Asks && self.awaits_conditions(key, |_| true) {
            return self.waiters().wait_outside(key);
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.last.disown(Reads::DIAGNOSTICS);
        }
        self.signal(key, &sql, Some(conditions))
    }

    /// Says that what the statement before left is gone: the statement's error, in every respect.
    pub(crate) fn previous_gone(&mut self, key: ClientId) -> Handled {
        let refusal = Refusal::PreviousGone;
        self.counts.refused += 1;
        *self.counts.refusals.entry(refusal.name()).or_default() += 1;
        if let Some(client) = self.clients.get_mut(key)
            && let Some(id) = client.under_way().map(|under_way| under_way.id)
        {
            self.kept.drop_long_data(Some(client), id);
        }
        let error = refusal.code();
        if self
            .clients
            .get(key)
            .is_some_and(Client::cannot_read_signals)
        {
            self.answers().error(key, error, &refusal.to_string());
            return Handled::Used;
        }
        let ErrorCode { code, state } = error;
        let sql =
            format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO={code},MESSAGE_TEXT='{refusal}'");
        self.signal(key, &sql, None)
    }

    /// Runs a SIGNAL in place of the client's command; `conditions`: what it leaves, where that is
    /// not what a SIGNAL does.
    fn signal(&mut self, key: ClientId, sql: &str, conditions: Option<Conditions>) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = client.lex_mode(&self.shared.server);
        let form = Form::of(client.capabilities);
        let class = classify(sql.as_bytes(), mode);
        let mut statement = statement_of(&class, mode);
        statement.standing = standing_of(&class);
        statement.conditions = conditions.unwrap_or(statement.conditions);
        let mut message = Vec::new();
        put_query(&mut message, form, sql.as_bytes());
        self.start(key, &message, statement)
    }
}
