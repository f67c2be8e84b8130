//! The log of slow statements, and the log of all statements: what a client ran, how long it waited
//! for a backend, how long it took and how it ended.
//!
//! What is noted of a statement when it is sent (its wait, its trace, its text where it is wanted)
//! is kept until its end, and only while the settings want one of the logs: otherwise the statement
//! path pays one test for each. Where lists show texts with their values, the beginning of each
//! command is copied, and made a text when somebody asks. Texts are without their values, unless
//! the settings ask for these; and then too where they may hold a password ([`may_hold_secret`]). A
//! group logs so many lines in a second ([`LineLimit`]); whether a statement is one of them is
//! decided when it is sent, so that a storm costs no texts.
//!
//! Invariants: one note for each client at most, dropped with its statement or its client; a
//! statement that was noted for the log of all ends in a line of it, however it ends.

use crate::backend::pools::BackendPools;
use crate::backend::{Backend, InFlight};
use crate::client::buffers::message::payload_of;
use crate::client::clients::Clients;
use crate::client::{Client, ClientState, attributes};
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::observe::audit::Happened;
use crate::observe::figures::digests::Digests;
use crate::observe::log::line_limit::LineLimit;
use crate::observe::log::statement::{StatementFacts, StatementLog, may_hold_secret};
use crate::observe::log::{Event, Facts, Peer, note_of};
use foldhash::fast::FixedState;
use reactor::{Address, Net, Slots, Time};
use session::reply_summary::ReplySummary;
use sql::lex::LexMode;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use wire::command::Command;
use wire::packet::HEADER_LEN;

/// Bytes of a text in the log.
const TEXT_MAX: usize = 4096;
/// Bytes that are kept of a command that runs: its packet's header, and a text.
const HEAD_MAX: usize = HEADER_LEN + 1 + TEXT_MAX;
/// Buffers that are kept for the next commands.
const SPARE_MAX: usize = 64;
/// The log shows this where there is no text.
const NO_TEXT: &str = "(a command without a text)";

/// Notes on a statement that runs.
#[derive(Debug)]
struct Note {
    /// Address of the client: a socket that its client has closed no longer tells.
    from: Peer,
    waited: Duration,
    sent: Time,
    /// The server's address, and its number of the connection.
    server: Option<(Arc<Address>, u32)>,
    command: Option<Command>,
    digest: u64,
    trace: Option<Box<str>>,
    /// The text as it is to be shown; `None`: that of its digest is.
    slow_text: Option<Box<str>>,
    /// Statements left out before it, and its text, for the log of all.
    logged: Option<(u64, Box<str>)>,
}

/// End of a statement that was noted.
struct End<'a> {
    service: Duration,
    rows: u64,
    error: Option<u16>,
    reason: Option<&'a str>,
}

/// Commands that run, as they were sent, for whoever asks for their texts with the values.
#[derive(Debug, Default)]
struct Running {
    by_client: HashMap<ClientId, Vec<u8>, FixedState>,
    /// Buffers of commands that have ended, so that a statement allocates nothing.
    spare: Vec<Vec<u8>>,
}

impl Running {
    fn begin(&mut self, key: ClientId, message: &[u8]) {
        let head = &message[..message.len().min(HEAD_MAX)];
        let spare = &mut self.spare;
        let kept = (self.by_client.entry(key)).or_insert_with(|| spare.pop().unwrap_or_default());
        kept.clear();
        kept.extend_from_slice(head);
    }

    fn end(&mut self, key: ClientId) {
        if let Some(buffer) = self.by_client.remove(&key)
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(buffer);
        }
    }
}

/// Statements of a group that may be logged.
#[derive(Debug, Default)]
pub(crate) struct StatementLogs {
    notes: HashMap<ClientId, Note>,
    running: Running,
    /// The last error of the pool's own while all statements are logged.
    own_error: Option<(ClientId, u16)>,
    pub(crate) slow_lines: LineLimit,
    pub(crate) lines: LineLimit,
}

impl StatementLogs {
    /// True if any statement that runs is noted.
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.is_empty() || !self.running.by_client.is_empty()
    }

    /// Beginning of a client's command that runs, where that is kept.
    pub(crate) fn running(&self, key: ClientId) -> Option<&[u8]> {
        self.running.by_client.get(&key).map(Vec::as_slice)
    }

    /// Clears the pool's own error, which is no answer to the client's next command.
    pub(crate) fn forget_error(&mut self) {
        self.own_error = None;
    }
}

/// The group's parts from which a line is made, and its notes.
pub(crate) struct Logging<'a, N: Net> {
    pub(crate) net: &'a N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) clients: &'a Clients<N::Sock>,
    pub(crate) backends: &'a Slots<Backend<N::Sock>, BackendId>,
    pub(crate) pools: &'a BackendPools,
    pub(crate) digests: &'a Digests,
    pub(crate) logs: &'a mut StatementLogs,
}

/// Contents of a line.
struct Said<'a> {
    /// Lines that were left out before it.
    omitted: u64,
    note: &'a Note,
    end: &'a End<'a>,
    text: &'a str,
}

/// A client's text without its values, or with them where that is wanted and none is a secret.
fn shown(sql: &[u8], mode: LexMode, with_values: bool) -> Box<str> {
    let head = &sql[..sql.len().min(TEXT_MAX)];
    match with_values && !may_hold_secret(head) {
        true => String::from_utf8_lossy(head).into(),
        false => sql::digest::normalized(sql, mode, TEXT_MAX).into(),
    }
}

/// The text that a client's command runs.
pub(crate) fn text_of<S>(
    shared: &Shared,
    client: &Client<S>,
    message: &[u8],
    with_values: bool,
) -> Option<Box<str>> {
    let payload = payload_of(message);
    let (byte, arguments) = payload.split_first()?;
    let mut session = &client.session.state;
    let under_way = client.session.prepared.under_way();
    let sql = match Command::from_byte(*byte)? {
        Command::Query => attributes::text_in(client.capabilities, arguments).ok()?,
        Command::StmtPrepare | Command::InitDb => arguments,
        Command::StmtExecute | Command::StmtBulkExecute => {
            let definition = &under_way?.definition;
            session = &definition.session;
            &definition.sql
        }
        _ => return None,
    };
    let mode = shared.server.lex_mode(session, client.capabilities);
    Some(shown(sql, mode, with_values))
}

impl<N: Net> Logging<'_, N> {
    /// Logs and notes a client's statement that is sent, having waited for so long. Only where the
    /// settings want one of the logs.
    pub(crate) fn note(&mut self, key: ClientId, message: &[u8], waited: Duration) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let again = self.logs.notes.remove(&key);
        // One that is sent once more is the same statement.
        let omitted = match again.and_then(|note| note.logged) {
            Some((omitted, _)) => Some(omitted),
            None => self.admit(client),
        };
        if self.settings.statement_text == StatementLog::Literal {
            self.logs.running.begin(key, message);
        }
        let is_slow_log = self.settings.slow_statement.is_some();
        if omitted.is_none() && !is_slow_log {
            return;
        }
        let slow_values = is_slow_log && self.settings.slow_statement_values;
        let note = Note {
            from: client.transport.peer(self.net).into(),
            waited,
            sent: self.net.now(),
            server: (client.backend_in(self.backends))
                .map(|backend| (backend.at().clone(), backend.thread)),
            command: command_of(message),
            digest: client.session.statement.digest,
            trace: sql::traceparent::find(message).map(Into::into),
            slow_text: match slow_values {
                true => text_of(self.shared, client, message, true),
                false => None,
            },
            logged: omitted.map(|omitted| (omitted, self.text_for_log(client, message))),
        };
        self.logs.notes.insert(key, note);
    }

    /// True if a client's statement stands in the log of all, and then how many were left out
    /// before it.
    fn admit(&mut self, client: &Client<N::Sock>) -> Option<u64> {
        if self.settings.statement_log == StatementLog::Off {
            return None;
        }
        let users = &self.settings.statement_log_users;
        let name = client.user_name(self.settings, self.pools);
        if !users.is_empty() && !users.iter().any(|user| Some(&**user) == name) {
            return None;
        }
        let groups = u32::try_from(self.shared.groups()).unwrap_or(u32::MAX);
        let share = (self.settings.statement_log_per_s_max / groups.max(1)).max(1);
        let now = self.net.now();
        self.logs.lines.admit_of(now, share)
    }

    /// The text of a client's command, as the log of all shows it.
    fn text_for_log(&self, client: &Client<N::Sock>, message: &[u8]) -> Box<str> {
        let with_values = self.settings.statement_log == StatementLog::Literal;
        // Without values, the digest's text has been made already.
        let known = match with_values {
            true => None,
            false => self.digests.text(client.session.statement.digest),
        };
        match known {
            Some(text) => (*text).into(),
            None => {
                text_of(self.shared, client, message, with_values).unwrap_or_else(|| NO_TEXT.into())
            }
        }
    }

    /// Logs the complete reply to a client's statement, which may have been noted, or not.
    pub(crate) fn ended(
        &mut self,
        key: ClientId,
        command: &InFlight,
        service: Duration,
        summary: &ReplySummary,
    ) {
        let end = End {
            service,
            rows: command.reply.reply().rows(),
            error: summary.error.as_ref().map(|(number, _)| *number),
            reason: None,
        };
        self.end(key, &end);
    }

    /// Notes an error by which the pool answers a client: that ends its statement, if one runs.
    pub(crate) fn own_error(&mut self, key: ClientId, number: u16) {
        if !self.settings.logs_statements() {
            return;
        }
        if !self.logs.notes.contains_key(&key) {
            self.logs.own_error = Some((key, number));
        }
        self.cut(key, Some(number), "pool");
    }

    /// Audits the end of a client, and logs its cut statement.
    pub(crate) fn closed(&mut self, key: ClientId, end: &'static str) {
        if let Some(client) = self.clients.get(key).filter(|c| c.identity.is_let_in())
            && client.state() != ClientState::Moving
        {
            let name = client.user_name(self.settings, self.pools).unwrap_or("");
            (self.shared.records).note_for_audit(|| Happened::at_end(client, self.net, name, end));
        }
        if self.logs.has_notes() {
            self.cut(key, None, "client-closed");
        }
    }

    /// Logs the end of a statement that has no reply of the server's, or nobody to take it.
    fn cut(&mut self, key: ClientId, error: Option<u16>, reason: &str) {
        self.logs.running.end(key);
        let Some(note) = self.logs.notes.get(&key) else {
            return;
        };
        let end = End {
            service: self.net.now().since(note.sent),
            rows: 0,
            error,
            reason: Some(reason),
        };
        self.end(key, &end);
    }

    fn end(&mut self, key: ClientId, end: &End<'_>) {
        self.logs.running.end(key);
        let Some(note) = self.logs.notes.remove(&key) else {
            return;
        };
        if let Some((omitted, text)) = &note.logged {
            let said = Said {
                omitted: *omitted,
                note: &note,
                end,
                text,
            };
            self.line(Event::Statement, key, &said);
        }
        let is_slow = |min: Duration| note.waited + end.service >= min;
        if end.reason.is_some() || !self.settings.slow_statement.is_some_and(is_slow) {
            return;
        }
        let now = self.net.now();
        let Some(omitted) = self.logs.slow_lines.admit(now) else {
            return;
        };
        let masked: Option<Arc<str>> = self.digests.text(note.digest);
        let text = note.slow_text.as_deref().or(masked.as_deref());
        let text = text.unwrap_or(NO_TEXT);
        let said = Said {
            omitted,
            note: &note,
            end,
            text,
        };
        self.line(Event::SlowStatement, key, &said);
    }

    fn line(&self, event: Event, key: ClientId, said: &Said<'_>) {
        let Said {
            omitted,
            note,
            end,
            text,
        } = *said;
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let facts = Facts {
            client: Some(note.from),
            id: Some(client.identity.id()),
            account: (client.user_name(self.settings, self.pools)).map(str::as_bytes),
            reason: end.reason,
            omitted,
            digest: None,
            cuts_transaction: false,
            statement: Some(StatementFacts {
                command: note.command.map(Command::name),
                server: note.server.as_ref().map(|(at, thread)| (&**at, *thread)),
                wait: note.waited,
                service: end.service,
                rows: end.rows,
                error: end.error,
                digest: (note.digest != 0).then_some(note.digest),
                trace: note.trace.as_deref(),
            }),
        };
        note_of(event, &facts, format_args!("{text}"));
        let is_again = event == Event::SlowStatement && note.logged.is_some();
        if let Some(telemetry) = self.shared.records.telemetry.as_ref().filter(|_| !is_again) {
            telemetry.note_statement(&facts, text);
        }
    }

    /// Logs a client's command that was answered without the server; does nothing for any other.
    pub(crate) fn answered_here(&mut self, key: ClientId, message: &[u8]) {
        let error = self.logs.own_error.take();
        let command = command_of(message);
        let is_text = matches!(
            command,
            Some(Command::Query | Command::StmtPrepare | Command::StmtExecute)
        );
        let states = [ClientState::Idle, ClientState::Asking, ClientState::Leaving];
        let is_over = |client: &&Client<N::Sock>| states.contains(&client.state());
        let client = self.clients.get(key).filter(is_over);
        let Some(client) = client.filter(|_| is_text && !self.logs.notes.contains_key(&key)) else {
            return;
        };
        let Some(omitted) = self.admit(client) else {
            return;
        };
        let with_values = self.settings.statement_log == StatementLog::Literal;
        let text = text_of(self.shared, client, message, with_values);
        let note = Note {
            from: client.transport.peer(self.net).into(),
            waited: Duration::ZERO,
            sent: self.net.now(),
            server: None,
            command,
            digest: 0,
            trace: sql::traceparent::find(message).map(Into::into),
            slow_text: None,
            logged: None,
        };
        let end = End {
            service: Duration::ZERO,
            rows: 0,
            error: error.filter(|(of, _)| *of == key).map(|(_, number)| number),
            reason: Some("pool"),
        };
        let text = text.as_deref().unwrap_or(NO_TEXT);
        let said = Said {
            omitted,
            note: &note,
            end: &end,
            text,
        };
        self.line(Event::Statement, key, &said);
    }
}

/// Command of a message.
fn command_of(message: &[u8]) -> Option<Command> {
    payload_of(message)
        .first()
        .copied()
        .and_then(Command::from_byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Purpose;
    use crate::group::scripted::{Scripted, shared};
    use crate::observe::audit::end;
    use session::state::Session;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    struct Bench {
        net: Scripted,
        shared: Shared,
        settings: Arc<Settings>,
        clients: Clients<()>,
        backends: Slots<Backend<()>, BackendId>,
        pools: BackendPools,
        digests: Digests,
        logs: StatementLogs,
    }

    impl Bench {
        fn new(settings: &str) -> (Bench, ClientId) {
            let mut clients = Clients::default();
            let mut session = Session::default();
            session.put(b"character_set_client", b"utf8mb4");
            let client = Client::of_tests(Time(1), Rc::new(session));
            let key = clients.insert(client);
            let shared = shared(settings);
            let digests_max = shared.settings().digests_max;
            let bench = Bench {
                net: Scripted::default(),
                settings: shared.settings(),
                shared,
                clients,
                backends: Slots::default(),
                pools: BackendPools::default(),
                digests: Digests::of_group(digests_max, 1),
                logs: StatementLogs::default(),
            };
            (bench, key)
        }

        fn logging(&mut self) -> Logging<'_, Scripted> {
            Logging {
                net: &self.net,
                shared: &self.shared,
                settings: &self.settings,
                clients: &self.clients,
                backends: &self.backends,
                pools: &self.pools,
                digests: &self.digests,
                logs: &mut self.logs,
            }
        }

        fn sends(&mut self, key: ClientId, sql: &str) {
            let len = u8::try_from(sql.len() + 1).unwrap();
            let message = [&[len, 0, 0, 0, 3], sql.as_bytes()].concat();
            (self.logging()).note(key, &message, Duration::ZERO);
        }

        fn text(&self, key: ClientId) -> Option<&str> {
            let note = self.logs.notes.get(&key)?;
            note.logged.as_ref().map(|(_, text)| &**text)
        }
    }

    #[test]
    fn a_text_is_noted_without_its_values_unless_they_are_asked_for() {
        let (mut bench, key) = Bench::new("statement_log = \"masked\"");
        bench.sends(key, "SELECT 'one'");
        assert_eq!(bench.text(key), Some("SELECT ?"));
        let (mut bench, key) = Bench::new("statement_log = \"literal\"");
        bench.sends(key, "SELECT 'one'");
        assert_eq!(bench.text(key), Some("SELECT 'one'"));
        bench.sends(key, "SET PASSWORD = 'one'");
        assert!(!bench.text(key).unwrap().contains("one"), "it is a secret");
    }

    #[test]
    fn a_note_ends_with_its_statement_however_that_ends() {
        let (mut bench, key) = Bench::new("statement_log = \"masked\"");
        let ends: [fn(&mut Logging<'_, Scripted>, ClientId); 3] = [
            |logging, key| {
                let command = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results);
                logging.ended(key, &command, Duration::ZERO, &ReplySummary::default());
            },
            |logging, key| logging.own_error(key, 1158),
            |logging, key| logging.closed(key, end::QUIT),
        ];
        for end in ends {
            bench.sends(key, "SELECT 1");
            assert!(bench.text(key).is_some());
            end(&mut bench.logging(), key);
            assert!(bench.logs.notes.is_empty());
        }
        assert!(
            bench.logs.own_error.is_none(),
            "it was an answer to a statement"
        );
        bench.logging().own_error(key, 1158);
        assert_eq!(bench.logs.own_error, Some((key, 1158)));
        bench.logs.forget_error();
        assert_eq!(bench.logs.own_error, None);
    }

    #[test]
    fn a_statement_that_is_sent_once_more_is_one_line() {
        let settings = "statement_log = \"masked\"\nstatement_log_per_s_max = 1";
        let (mut bench, key) = Bench::new(settings);
        bench.sends(key, "SELECT 1");
        bench.sends(key, "SELECT 1");
        assert_eq!(bench.text(key), Some("SELECT ?"));
        bench.logging().closed(key, end::QUIT);
        bench.sends(key, "SELECT 2");
        assert_eq!(bench.text(key), None, "one line a second");
    }

    #[test]
    fn a_command_that_runs_is_kept_for_lists_up_to_its_bound_and_its_end() {
        let (mut bench, key) = Bench::new("statement_text = \"literal\"");
        let text = |bench: &Bench| {
            let client = bench.clients.get(key)?;
            text_of(&bench.shared, client, bench.logs.running(key)?, true)
        };
        bench.sends(key, "SELECT 'one'");
        assert_eq!(text(&bench).as_deref(), Some("SELECT 'one'"));
        assert!(bench.logs.notes.is_empty() && bench.logs.has_notes());
        bench.logging().own_error(key, 1158);
        assert!(!bench.logs.has_notes() && bench.logs.running.spare.len() == 1);
        bench.sends(key, "SET PASSWORD = 'one'");
        assert_eq!(text(&bench).as_deref(), Some("SET PASSWORD = ?"));
        assert!(bench.logs.running.spare.is_empty(), "its buffer is used");
        bench.logs.running.begin(key, &[b'x'; HEAD_MAX + 1]);
        assert_eq!(bench.logs.running(key).map(<[u8]>::len), Some(HEAD_MAX));
        let others = || {
            (0..)
                .take(SPARE_MAX + 1)
                .map(|index| ClientId::from_parts(index, 1))
        };
        others().for_each(|other| bench.logs.running.begin(other, b""));
        others().for_each(|other| bench.logs.running.end(other));
        assert_eq!(bench.logs.running.spare.len(), SPARE_MAX);
    }

    #[test]
    fn without_a_log_nothing_is_noted() {
        let (mut bench, key) = Bench::new("");
        bench.sends(key, "SELECT 1");
        bench.logging().own_error(key, 1158);
        assert!(bench.logs.notes.is_empty() && bench.logs.own_error.is_none());
    }

    #[test]
    fn the_log_of_slow_statements_needs_no_line_of_the_other() {
        let (mut bench, key) = Bench::new("slow_statement_ms = 100");
        bench.sends(key, "SELECT 1");
        assert!(bench.logs.notes.contains_key(&key));
        assert_eq!(bench.text(key), None);
    }
}
