//! Answers of the pool's own: OKs, errors, and rows that were kept.
//!
//! A client takes them for its server's, so they have the form that it negotiated, count as the
//! last statement's where a server's would, and stand in the logs of statements. What they are
//! made into is sent by [`crate::client::output`].
//!
//! Invariant: an error of the pool's own leaves no count of rows, and is counted by its reason if
//! it is a refusal.

use crate::backend::Backend;
use crate::backend::pools::BackendPools;
use crate::backend::relay::{Adjustments, Middle, Relay, Shape};
use crate::client::output::ToClient;
use crate::client::{Client, Handled};
use crate::config::Settings;
use crate::errors::reasons::{Refusal, Unprepared};
use crate::group::tokens::{BackendId, ClientId};
use crate::observe::audit::{Happened, end};
use crate::observe::figures::counts::Counts;
use crate::observe::figures::digests::Digests;
use crate::observe::identity::ClientIdentity;
use crate::observe::limited_log::LimitedLog;
use crate::observe::statement_logs::{Logging, StatementLogs};
use crate::pair::trackers::wanted_by;
use crate::pair::view::ClientView;
use crate::server::facts::ServerFacts;
use crate::statements::kill::jobs::KillEnd;
use crate::statements::own_ok::{OwnOk, Unreadable};
use reactor::{Net, Slots};
use session::last_statement::{COUNTS, RowCount};
use sql::lex::Server;
use wire::auth::Plugin;
use wire::checked::CheckedReply;
use wire::command::{Command, ReplyShape};
use wire::errors::{self, ErrorCode};
use wire::handshake::{Greeting, nonce_of_connection};
use wire::reply::put_err;
use wire::track::Bound;
use wire::{capabilities as cap, status};

/// Both servers' words for an empty text, in English.
pub(crate) const EMPTY_QUERY: &str = "Query was empty";

/// The first MySQL that says why it closes an idle connection (8.0.24).
const WORDS_SINCE: u32 = 80_024;

/// Parts that answers are made of, and the clients that they go to.
pub(crate) struct Answers<'a, N: Net> {
    pub(crate) to: ToClient<'a, N>,
    pub(crate) settings: &'a Settings,
    pub(crate) backends: &'a Slots<Backend<N::Sock>, BackendId>,
    pub(crate) pools: &'a BackendPools,
    pub(crate) digests: &'a Digests,
    pub(crate) logs: &'a mut StatementLogs,
    pub(crate) counts: &'a mut Counts,
    pub(crate) log: &'a mut LimitedLog,
    /// Long data that waits for its execution.
    /// Lent for the answer.
    pub(crate) lent: &'a mut Vec<u8>,
}

impl<N: Net> Answers<'_, N> {
    /// Status flags that this client is shown.
    fn status(&self, key: ClientId) -> u16 {
        let view = ClientView::of(key, self.to.clients, self.backends);
        view.map_or(0, |view| view.status(self.to.shared.server.flavour))
    }

    /// Sends what `put` makes of a client; one for which it can make nothing is closed.
    fn send(
        &mut self,
        key: ClientId,
        put: impl FnOnce(&mut Client<N::Sock>, &mut Vec<u8>) -> Result<(), Unreadable>,
    ) {
        let Some(client) = self.to.clients.get_mut(key) else {
            return;
        };
        let mut out = std::mem::take(self.lent);
        out.clear();
        match put(client, &mut out) {
            Ok(()) => self.to.send(key, &out),
            Err(Unreadable) => self.to.clients.close_later(key),
        }
        *self.lent = out;
    }

    /// Sends an OK.
    pub(crate) fn ok(&mut self, key: ClientId, ok: &OwnOk<'_>) {
        let (status, shared) = (self.status(key), self.to.shared);
        self.send(key, |client, out| {
            client.put_ok(out, ok, status, &shared.server)
        });
    }

    /// Sends an error of a command that the server does not know, or cannot read. MySQL counts it
    /// behind the conditions of the statement before.
    pub(crate) fn error_unread(&mut self, key: ClientId, code: ErrorCode, text: &str) {
        let mysql = self.to.shared.server.flavour.is_mysql();
        self.put_error(key, code, text, |client| {
            let before = client.session.last.conditions;
            client.session.last.failed_by_pool();
            if mysql {
                client.session.last.conditions = before.saturating_add(1);
            }
        });
    }

    /// Sends an error of the pool's own, as the answer to the client's command.
    pub(crate) fn error(&mut self, key: ClientId, code: ErrorCode, text: &str) {
        self.put_error(key, code, text, |client| {
            client.session.last.failed_by_pool()
        });
    }

    /// Sends the server's error for an empty text, which it has given for the one before.
    pub(crate) fn empty_again(&mut self, key: ClientId) {
        let failed_again = |client: &mut Client<_>| client.session.last.failed_again();
        self.put_error(key, errors::EMPTY_QUERY, EMPTY_QUERY, failed_again);
    }

    /// Sends an error, once `note` has noted it with its client.
    fn put_error(
        &mut self,
        key: ClientId,
        code: ErrorCode,
        text: &str,
        note: impl FnOnce(&mut Client<N::Sock>),
    ) {
        let mut logging = Logging {
            net: &*self.to.net,
            shared: self.to.shared,
            settings: self.settings,
            clients: &*self.to.clients,
            backends: self.backends,
            pools: self.pools,
            digests: self.digests,
            logs: &mut *self.logs,
        };
        logging.own_error(key, code.code);
        self.send(key, |client, out| {
            note(client);
            put_err(out, client.identity.seq, code, text);
            Ok(())
        });
    }

    /// Sends the error for a refusal, as the answer to the client's command.
    pub(crate) fn refuse(&mut self, key: ClientId, refusal: &Refusal) {
        self.count(key, refusal);
        let text = refusal.to_string();
        self.put_error(key, refusal.code(), &text, |client| {
            // An execution was refused, and is over for its client: so is the long data for it.
            if let Some(id) = (client.session.prepared.under_way()).map(|under_way| under_way.id) {
                client.session.prepared.drop_long_data(id);
            }
            client.session.last.failed_by_pool();
        });
    }

    /// Tells a client by an error that its transaction is lost, before a statement that could take
    /// it to be open. ROLLBACK has nothing to be told.
    pub(crate) fn hears_of_lost_transaction(
        &mut self,
        key: ClientId,
        command: Command,
        arguments: &[u8],
    ) -> bool {
        let waits = matches!(
            command,
            Command::Quit
                | Command::Ping
                | Command::SetOption
                | Command::ResetConnection
                | Command::ChangeUser
                | Command::StmtSendLongData
                | Command::StmtClose
        );
        let Some(client) = self.to.clients.get_mut(key).filter(|_| !waits) else {
            return false;
        };
        let refusal = client.ended.take_lost_transaction();
        if command == Command::Query && arguments.trim_ascii().eq_ignore_ascii_case(b"ROLLBACK") {
            return false;
        }
        client.session.last.lose_conditions();
        if let Some(refusal) = &refusal {
            self.refuse_counted(key, refusal);
        }
        refusal.is_some()
    }

    /// Counts a refusal by its reason and its client's account, and logs that of a limit.
    pub(crate) fn count(&mut self, key: ClientId, refusal: &Refusal) {
        *self.counts.refusals.entry(refusal.name()).or_default() += 1;
        let now = self.to.net.now();
        let Some(view) = ClientView::of(key, self.to.clients, self.backends) else {
            return;
        };
        if let Some(login) = &view.client.login {
            let why = Some((refusal.code().code, refusal.name()));
            let (client, net) = (view.client, &*self.to.net);
            self.to
                .shared
                .records
                .note_for_audit(|| Happened::at_login(client, net, &login.name, why));
        }
        let names = (self.settings, self.pools);
        let identity = ClientIdentity::of(view.client, view.backend, &*self.to.net, names);
        let refusals = &self.to.shared.records.refusals;
        refusals.note(&identity, refusal.name(), &refusal.to_string(), now);
        if refusal.is_of_limit() && view.client.identity.is_known() {
            self.log.refused(now, &identity, refusal);
        }
    }

    /// Refuses, and counts the refusal among those that a limit or a rule has met.
    pub(crate) fn refuse_counted(&mut self, key: ClientId, refusal: &Refusal) -> Handled {
        self.counts.refused += 1;
        self.refuse(key, refusal);
        Handled::Used
    }

    /// Every statement that the client's backend may have is held by a cursor.
    pub(crate) fn refuse_to_prepare(&mut self, key: ClientId) -> Handled {
        let max = self.to.shared.prepared_of_backend(self.settings);
        self.refuse_counted(key, &Refusal::Prepared(Unprepared::Full { max }))
    }

    /// Sends the server's words for a command that cannot be read.
    pub(crate) fn malformed(&mut self, key: ClientId) {
        let end = match self.to.shared.server.flavour {
            Server::MySql(_) => ".",
            _ => "",
        };
        let text = format!("Malformed communication packet{end}");
        self.error(key, errors::MALFORMED_PACKET, &text);
    }

    /// Answers COM_PING.
    pub(crate) fn pong(&mut self, key: ClientId) {
        let (status, shared) = (self.status(key), self.to.shared);
        self.send(key, |client, out| {
            client.session.last.answered(0);
            client.put_ok(out, &OwnOk::WARNED, status, &shared.server)
        });
    }

    /// Tells a client the end of its KILL.
    pub(crate) fn killed(&mut self, key: ClientId, end: &KillEnd) {
        let mysql = self.to.shared.server.flavour.is_mysql();
        let Some(client) = self.to.clients.get_mut(key) else {
            return;
        };
        (client.session.last).answered_kill(*end == KillEnd::Done, mysql);
        match end {
            KillEnd::Done => self.ok(key, &OwnOk::PLAIN),
            KillEnd::Unknown(id) => {
                let text = format!("Unknown thread id: {id}");
                self.error(key, errors::NO_SUCH_THREAD, &text);
            }
            KillEnd::NotOwner(id) => {
                let text = format!("You are not owner of thread {id}");
                self.error(key, errors::KILL_DENIED, &text);
            }
            KillEnd::Failed(why) => self.refuse(key, &Refusal::KillFailed(why.clone())),
        }
    }

    /// Closes an idle client in the words of the server.
    pub(crate) fn end_idle(&mut self, key: ClientId) {
        self.counts.idle_closed += 1;
        self.to.clients.note_end(key, end::IDLE);
        match self.to.shared.server.flavour {
            Server::MariaDb(_) => return self.to.clients.reset_later(key, self.to.net),
            Server::MySql(WORDS_SINCE..) => {}
            Server::MySql(_) | Server::Unknown => return self.to.clients.close_later(key),
        }
        let (code, words) = (errors::CLIENT_INACTIVE, errors::CLIENT_INACTIVE_WORDS);
        self.put_error(key, code, words, |client| {
            // It answers nothing.
            client.identity.seq = 0;
            client.session.last.failed_by_pool();
        });
        self.to.clients.leave(key, self.to.net.now());
    }

    /// Sends the first packet of a connection.
    pub(crate) fn greeting(&mut self, key: ClientId, nonce_key: &[u8; 32]) {
        let shared = self.to.shared;
        self.send(key, |client, out| {
            client.identity.seq = 1;
            Greeting {
                version: shared.server.version.clone().into_bytes(),
                connection_id: client.identity.id(),
                nonce: nonce_of_connection(nonce_key, client.identity.id()),
                capabilities: shared.logins.offered,
                extended: shared.logins.extended,
                collation: shared.server.collation,
                status: status::AUTOCOMMIT,
                plugin: Plugin::Native.name().as_bytes().to_vec(),
            }
            .put(out);
            Ok(())
        });
    }

    /// Sends the OK of a login: what it proves to clients of MariaDB is its info, and it reports
    /// the default schema.
    pub(crate) fn end_login(&mut self, key: ClientId, front: &[u8]) {
        let server = &self.to.shared.server;
        self.counts.logins += 1;
        let (mut proof, mut reports) = (None, Vec::new());
        if let Some(client) = self.to.clients.get_mut(key) {
            if let Some(login) = client.login.take() {
                proof = login.certificate_proof();
                let net = &*self.to.net;
                let account = client.user_name(self.settings, self.pools).unwrap_or("");
                self.to.shared.records.note_for_audit(|| {
                    Happened::at_login(client, net, &login.name, None).of_account(account)
                });
            }
            client.identity.let_in();
            reports = client.session.schema_report(server);
        }
        let proof = proof.filter(|_| !server.flavour.is_mysql());
        let ok = OwnOk {
            front,
            info: proof.as_ref().map_or(&[], |proof| proof),
            reports: &reports,
            ..OwnOk::PLAIN
        };
        self.ok(key, &ok);
        if let Some(client) = self.to.clients.get_mut(key) {
            client.begin_compression();
        }
    }

    /// Sends conditions, by rows that were retained: who has been shown them has read its counts.
    pub(crate) fn show(&mut self, key: ClientId, rows: &[u8]) {
        self.put_retained(key, rows, |client| client.session.last.invalidate(COUNTS));
    }

    /// Sends a reply that was retained, in the form that this client understands.
    pub(crate) fn replay(&mut self, key: ClientId, kept: &[u8]) {
        self.put_retained(key, kept, |_| ());
    }

    /// Sends a reply that was retained, once `note` has noted it with its client.
    fn put_retained(
        &mut self,
        key: ClientId,
        kept: &[u8],
        note: impl FnOnce(&mut Client<N::Sock>),
    ) {
        let (status, server) = (self.status(key), &self.to.shared.server);
        self.send(key, |client, out| {
            note(client);
            put_reply(client, kept, status, server, out);
            Ok(())
        });
    }
}

/// Appends a reply that was retained, in the form that a client understands. What is still to be
/// told of its session stands in this reply as in any other.
fn put_reply<S>(
    client: &mut Client<S>,
    kept: &[u8],
    status: u16,
    server: &ServerFacts,
    out: &mut Vec<u8>,
) {
    let wanted = wanted_by(&client.session, server);
    let tracks = client.capabilities & cap::SESSION_TRACK != 0;
    let shape = Shape {
        hides_gtids: false,
        deprecate_eof: client.capabilities & cap::DEPRECATE_EOF != 0,
        track: tracks.then_some(&*wanted),
        mysql: server.flavour.is_mysql(),
        schema: None,
    };
    let mut relay = Relay {
        reply: &mut CheckedReply::new(ReplyShape::Results).unchecked(),
        middle: &mut Middle::default(),
        seq: &mut client.identity.seq,
        shape,
        status,
        adjustments: Adjustments::default(),
        pending_changes: &mut client.session.pending_changes,
        bound: &mut Bound::default(),
    };
    client.session.last.row_count = RowCount::NONE;
    client.session.last.conditions = 0;
    // These bytes have been through a relay once, so they are a reply.
    let fed = relay.feed(kept, out, |_, _| {});
    debug_assert!(fed.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::buffers::packing::Packing;
    use crate::client::clients::Clients;
    use crate::group::scripted::{Scripted, shared};
    use crate::group::shared::Shared;
    use crate::limits::slow_readers::SlowReaders;
    use crate::limits::spool::Spool;
    use crate::scheduler::bulk::Bulk;
    use reactor::Time;
    use session::meter::Meter;
    use std::rc::Rc;
    use std::sync::Arc;
    use wire::errors::ACCESS_DENIED;
    use wire::reply::{ERR, OK};

    struct Bench {
        net: Scripted,
        shared: Shared,
        settings: Arc<Settings>,
        clients: Clients<()>,
        backends: Slots<Backend<()>, BackendId>,
        pools: BackendPools,
        digests: Digests,
        logs: StatementLogs,
        counts: Counts,
        log: LimitedLog,
        outputs: Meter,
        slow_readers: SlowReaders,
        packing: Packing,
        bulk: Bulk,
        lent: Vec<u8>,
    }

    impl Bench {
        fn new() -> (Bench, ClientId) {
            let mut client = Client::of_tests(Time(1), Rc::default());
            client.identity.seq = 5;
            let mut clients = Clients::default();
            let key = clients.insert(client);
            let shared = shared("");
            let settings = shared.settings();
            let bench = Bench {
                net: Scripted::default(),
                digests: Digests::of_group(settings.digests_max, 1),
                slow_readers: SlowReaders::new(Spool::new(0, shared.lengths.spool_block)),
                shared,
                settings,
                clients,
                backends: Slots::default(),
                pools: BackendPools::default(),
                logs: StatementLogs::default(),
                counts: Counts::default(),
                log: LimitedLog::default(),
                outputs: Meter::default(),
                packing: Packing::default(),
                bulk: Bulk::default(),
                lent: Vec::new(),
            };
            (bench, key)
        }

        fn answers(&mut self) -> Answers<'_, Scripted> {
            Answers {
                to: ToClient {
                    net: &mut self.net,
                    shared: &self.shared,
                    clients: &mut self.clients,
                    outputs: &self.outputs,
                    slow_readers: &mut self.slow_readers,
                    packing: &mut self.packing,
                    bulk: &mut self.bulk,
                },
                settings: &self.settings,
                backends: &self.backends,
                pools: &self.pools,
                digests: &self.digests,
                logs: &mut self.logs,
                counts: &mut self.counts,
                log: &mut self.log,
                lent: &mut self.lent,
            }
        }
    }

    #[test]
    fn an_error_has_the_number_of_the_next_packet_and_leaves_no_count() {
        let (mut bench, key) = Bench::new();
        bench.answers().error(key, ACCESS_DENIED, "no");
        assert_eq!(bench.net.written[3..5], [5, ERR]);
        assert!(bench.net.written.ends_with(b"no"));
        let client = bench.clients.get(key).unwrap();
        assert_eq!(client.session.last.row_count, RowCount::NONE);
        // Those of the statement before are not its client's last ones any more.
        assert!(
            client.session.last.has_unknown_conditions() && client.session.last.kept().is_none()
        );
        assert_eq!(client.session.last.conditions, 1);
        assert!(bench.counts.refusals.is_empty(), "it is no refusal");
    }

    #[test]
    fn a_refusal_is_counted_by_its_reason_and_sent_in_its_words() {
        let (mut bench, key) = Bench::new();
        bench.answers().refuse(key, &Refusal::Draining);
        assert_eq!(bench.counts.refusals[Refusal::Draining.name()], 1);
        let words = Refusal::Draining.to_string();
        assert!(bench.net.written.ends_with(words.as_bytes()));
    }

    #[test]
    fn an_ok_stands_behind_what_belongs_in_front_of_it() {
        let (mut bench, key) = Bench::new();
        let front = b"\x00\x00\x00\x04";
        let ok = OwnOk {
            front,
            ..OwnOk::PLAIN
        };
        bench.answers().ok(key, &ok);
        assert!(bench.net.written.starts_with(front));
        assert_eq!(bench.net.written[front.len() + 3..][..2], [5, OK]);
    }

    #[test]
    fn what_became_of_a_kill_is_said_in_the_servers_words() {
        let (mut bench, key) = Bench::new();
        bench.answers().killed(key, &KillEnd::Unknown(7));
        assert!(bench.net.written.ends_with(b"Unknown thread id: 7"));
        bench.answers().killed(key, &KillEnd::NotOwner(8));
        assert!(
            bench
                .net
                .written
                .ends_with(b"You are not owner of thread 8")
        );
        bench.net.written.clear();
        bench.answers().killed(key, &KillEnd::Done);
        assert_eq!(bench.net.written[4], OK);
        let failed = KillEnd::Failed("it is away".into());
        bench.answers().killed(key, &failed);
        assert_eq!(bench.counts.refusals.len(), 1);
    }

    #[test]
    fn a_login_that_ends_is_counted_and_is_one_no_more() {
        let (mut bench, key) = Bench::new();
        bench.answers().end_login(key, b"");
        let client = bench.clients.get(key).unwrap();
        assert!(!client.is_logging_in() && client.identity.is_known());
        assert_eq!((bench.counts.logins, bench.net.written[4]), (1, OK));
    }

    #[test]
    fn a_greeting_has_the_first_number_and_the_clients_id() {
        let (mut bench, key) = Bench::new();
        bench
            .clients
            .get_mut(key)
            .unwrap()
            .identity
            .set_id(0x0403_0201);
        bench.answers().greeting(key, &[0; 32]);
        let version = bench.shared.server.version.len();
        assert_eq!(bench.net.written[3], 0);
        assert_eq!(bench.net.written[5 + version + 1..][..4], [1, 2, 3, 4]);
        assert_eq!(bench.clients.get(key).unwrap().identity.seq, 1);
    }

    #[test]
    fn who_is_gone_gets_nothing() {
        let (mut bench, key) = Bench::new();
        bench.clients.remove(key);
        bench.answers().refuse(key, &Refusal::Draining);
        bench.answers().ok(key, &OwnOk::PLAIN);
        bench.answers().show(key, b"");
        assert!(bench.net.written.is_empty());
    }
}
