//! A fresh backend, between its login and its first client.
//!
//! The problem: a session must be known before anything of a client's runs in it. The mechanism:
//! after the server's OK the trackers are switched on and the session is read, in one write: its
//! character sets, whether it commits by itself, its role, and with `init_connect` all of its
//! variables. [`Openings`] writes the questions and takes the answers; what becomes of the backend,
//! it says ([`Opened`]).
//!
//! Invariant: what began under other global values than those known now serves nobody.

use crate::auth::account::Counted;
use crate::backend::dial::{ROLE, put_preparation};
use crate::backend::pools::{BackendPools, DialEnd};
use crate::backend::{Backend, BackendState, ForBackend, InFlight};
use crate::group::shared::Shared;
use crate::group::tokens::BackendId;
use crate::server::fleet::witness_questions;
use crate::server::rows::row_of;
use reactor::{Slots, Time};
use session::global_defaults::GlobalDefaults;
use session::reply_summary::ReplySummary;
use session::roles::{NONE, argument_of, has_roles};
use session::state::{CHARSET_VARIABLES, Interner, Session};
use session::text::Text;
use session::user_variables::results_collation;
use wire::command::ReplyShape;

/// Errors that say nothing against the account: a shutdown, a KILL.
const PASSING: [u16; 3] = [1053, 1317, 1927];

/// Fate of a backend when it has answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// More is to come.
    Waits,
    /// Idle backend that can serve.
    Idle,
    /// Failure, for this reason.
    Failed(String, DialEnd),
    /// Backend that may have begun under other values than those of now, and is closed.
    Outdated,
    /// Impossible state.
    Astray,
}

/// The backends of a group, and what sessions are made of.
pub(crate) struct Openings<'a, S> {
    pub(crate) backends: &'a mut Slots<Backend<S>, BackendId>,
    pub(crate) pools: &'a mut BackendPools,
    pub(crate) sessions: &'a mut Interner,
    /// Global defaults that sessions begin with now.
    pub(crate) defaults: &'a GlobalDefaults,
    pub(crate) shared: &'a Shared,
    pub(crate) now: Time,
}

impl<S> Openings<'_, S> {
    /// Bytes that switch on the trackers of a backend just logged in and ask for its fresh session.
    /// `None`: its state does not allow that.
    pub(crate) fn logged_in(&mut self, key: BackendId) -> Option<Vec<u8>> {
        let backend = self.backends.get_mut(key)?;
        let is_of_server = self.pools.counted_in(backend.pool).is_some();
        let dial = backend.dial.take();
        backend.thread = dial.and_then(|dial| dial.thread).unwrap_or(0);
        if !backend.is_reader() {
            self.shared.note_thread(backend.thread);
        }
        if !backend.change_state(BackendState::Preparing, self.now) {
            return None;
        }
        for fresh in [false, true] {
            let command = InFlight::own(None, ForBackend::Prepare(fresh), ReplyShape::Results);
            backend.flight.expect(command);
        }
        let mut out = Vec::new();
        let mut more = witness_questions(&backend.units);
        if has_roles(self.shared.server.flavour) {
            more.push_str(ROLE);
        }
        if is_of_server {
            more.push_str(",CURRENT_USER()");
        }
        if !self.defaults.init_connect().is_empty() || backend.is_reader() {
            more.push(',');
            more.push_str(&self.defaults.question());
        }
        put_preparation(&mut out, backend.form, &more);
        Some(out)
    }

    /// Takes the answer to one of the two commands; `fresh`: to the one that reads its session.
    pub(crate) fn answered(
        &mut self,
        key: BackendId,
        fresh: bool,
        summary: &ReplySummary,
        collected: &[u8],
    ) -> Opened {
        if let Some((code, text)) = &summary.error {
            let why = format!("the server refused to switch on its trackers: {code} {text}");
            let end = match PASSING.contains(code) {
                true => DialEnd::Answered,
                false => DialEnd::Account,
            };
            return Opened::Failed(why, end);
        }
        if !fresh {
            return Opened::Waits;
        }
        let server = &self.shared.server;
        let Some((fresh, more)) = FreshSession::read(collected) else {
            let why = "the server did not say what its session is like";
            return Opened::Failed(why.into(), DialEnd::Answered);
        };
        let Some(backend) = self.backends.get_mut(key) else {
            return Opened::Waits;
        };
        let witnesses = backend.units().len();
        if lacks_witness(&more, witnesses) {
            return Opened::Failed(NO_WITNESS.into(), DialEnd::Answered);
        }
        let mut more = more.into_iter().skip(witnesses).peekable();
        let role = more.next_if(|_| has_roles(server.flavour));
        let role = role.and_then(|role| argument_of(&role, server.flavour));
        let account = self.pools.counted_in(backend.pool);
        let current = more.next_if(|_| account.is_some());
        if let (Some(account), Some(current)) = (account, current)
            && *current != *format!("{}@{}", account.user, account.host).as_bytes()
        {
            return Opened::Failed(other_account(&account, &current), DialEnd::Account);
        }
        let values = more.next();
        if backend.session.state.defaults != *self.defaults {
            return Opened::Outdated;
        }
        let pool = &mut self.pools.pools[backend.pool];
        let mut session = Session::at_login(b"", true, &fresh.charsets, self.defaults);
        session.begin_interactive(pool.key.capabilities);
        let results = results_collation(collected, pool.key.extended, &session);
        session.results_collation = server.results_in(results);
        if self.defaults.init_connect().is_empty() {
            let values = (values.as_ref()).and_then(|values| self.defaults.read(values));
            if let Some(name) = values.and_then(|values| unlike(&session, &values)) {
                let why = format!(
                    "{name} of the server that is read is not as the writer's; reads go to the \
                     writer"
                );
                return Opened::Failed(why, DialEnd::Answered);
            }
        } else {
            pool.note_begins(&mut session, values.as_ref(), server);
        }
        fresh.note_autocommit(&mut session);
        backend.session.state = self.sessions.intern(session);
        backend.session.note_accepted(None);
        backend.session.login_role.clone_from(&role);
        pool.login_has_role = Some(role.as_deref() != Some(NONE));
        if !backend.change_state(BackendState::Idle, self.now) {
            return Opened::Astray;
        }
        pool.dial_succeeded(self.now);
        self.pools.dial_ends(backend.pool);
        self.pools.pools[backend.pool].slots.opened(self.now);
        self.shared.upstream.reached(&backend.at, self.now);
        Opened::Idle
    }
}

/// Beginnings of variables that differ between servers, or were set for the pool, and on which no
/// plain read depends.
const SERVERS_OWN: [&str; 7] = [
    "gtid_domain_id",
    "gtid_seq_no",
    "pseudo_thread_id",
    "server_id",
    "session_track_",
    "skip_replication",
    // Each node of Galera has another one, for what it inserts.
    "auto_increment_",
];

/// Variables of a fresh session on a reader that are not as on the writer: no session is restored
/// against them.
fn unlike(session: &Session, values: &[Option<Text>]) -> Option<String> {
    let all = session.defaults.names().iter().zip(values);
    let differs = |(name, value): &(&Text, &Option<Text>)| {
        let value = value.as_ref().map_or(&b""[..], |value| value);
        let is_own = (SERVERS_OWN.iter()).any(|own| name.starts_with(own.as_bytes()));
        if is_own || session.value(name).unwrap_or_default() == value {
            return false;
        }
        // What is no state of a session, such as a tracker, is noted by none.
        let mut with = session.clone();
        with.set(name, value).is_ok() && with.variables_differ(session)
    };
    let names = all.filter(differs);
    let names: Vec<_> = (names.map(|(name, _)| String::from_utf8_lossy(name))).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Fault of a backend that has not got the witness of a unit of its fleet.
pub(crate) const NO_WITNESS: &str =
    "another connection has not ended yet that stands for it in the fleet";

/// Report of a session that has just begun ([`crate::backend::dial::FRESH`]).
pub(crate) struct FreshSession {
    /// Values in the order of [`session::state::CHARSET_VARIABLES`].
    pub(crate) charsets: [Text; 4],
    commits: bool,
}

impl FreshSession {
    /// Reads it, and gives what was asked besides.
    pub(crate) fn read(collected: &[u8]) -> Option<(FreshSession, Vec<Text>)> {
        let mut row = row_of(collected)?;
        let more = row.split_off((CHARSET_VARIABLES.len() + 1).min(row.len()));
        let [client, connection, results, collation, autocommit] = row.try_into().ok()?;
        let fresh = FreshSession {
            charsets: [client, connection, results, collation],
            commits: *autocommit != *b"0",
        };
        Some((fresh, more))
    }

    /// Notes whether it commits by itself: the global value may have changed since the last look.
    /// Where it does not, nothing would end the transaction of a client that commits by itself.
    pub(crate) fn note_autocommit(&self, session: &mut Session) {
        if self.commits != session.commits() {
            session.put(b"autocommit", if self.commits { b"ON" } else { b"OFF" });
        }
    }
}

/// True if the answers in front, which GET_LOCK has given, are not as many locks as are wanted.
pub(crate) fn lacks_witness(answers: &[Text], wanted: usize) -> bool {
    let got = answers.iter().take(wanted).filter(|got| ***got == *b"1");
    got.count() < wanted
}

/// Reason for which a login as another account than the one that the client has proven, with other
/// privileges, perhaps, is not used.
fn other_account(account: &Counted, current: &[u8]) -> String {
    let Counted { user, host, .. } = account;
    format!(
        "the client has proven to be '{user}'@'{host}', and from the pool's host the server takes \
         that name for '{}'; have one account for both hosts, such as '{user}'@'%', or list the \
         user in the pool's file",
        String::from_utf8_lossy(current)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Endpoint;
    use crate::backend::pools::PoolKey;
    use crate::group::scripted::shared;
    use reactor::Address;
    use std::sync::Arc;

    const NOW: Time = Time(1_000_000_000);

    struct Bench {
        backends: Slots<Backend<()>, BackendId>,
        pools: BackendPools,
        sessions: Interner,
        defaults: GlobalDefaults,
        shared: Shared,
        key: BackendId,
    }

    impl Bench {
        /// A backend that is being dialled for a pool of a user of the settings.
        fn new() -> Bench {
            let (mut backends, mut pools) = (Slots::default(), BackendPools::default());
            let pool = pools.add(PoolKey::of_user("app"), |_| true);
            pools.dial_begins(pool);
            let mut sessions = Interner::default();
            let session = sessions.intern(Session::not_known(&GlobalDefaults::default()));
            let to = Endpoint::new((), Arc::new(Address::Unix("/s".into())), pool);
            let key = backends.insert(Backend::dialling(to, NOW, session, None));
            Bench {
                backends,
                pools,
                sessions,
                defaults: GlobalDefaults::default(),
                shared: shared(""),
                key,
            }
        }

        fn openings(&mut self) -> Openings<'_, ()> {
            Openings {
                backends: &mut self.backends,
                pools: &mut self.pools,
                sessions: &mut self.sessions,
                defaults: &self.defaults,
                shared: &self.shared,
                now: NOW,
            }
        }

        /// Answers the question what the session looks like with a row of these values.
        fn answers(&mut self, row: &[&str]) -> Opened {
            let (key, summary) = (self.key, ReplySummary::default());
            let row = row_in_packets(row);
            self.openings().answered(key, true, &summary, &row)
        }
    }

    /// The packets of a result of one row, whose columns have no descriptions worth a look.
    fn row_in_packets(row: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut seq = 0;
        let mut put = |payload: &[u8]| {
            seq += 1;
            out.extend_from_slice(&[u8::try_from(payload.len()).unwrap(), 0, 0, seq]);
            out.extend_from_slice(payload);
        };
        put(&[u8::try_from(row.len()).unwrap()]);
        for _ in row {
            let mut column = b"\x03def\0\0\0\0\0\x0c".to_vec();
            column.extend_from_slice(&[33, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0]);
            put(&column);
        }
        let texts = row.iter().flat_map(|text| {
            let len = u8::try_from(text.len()).unwrap();
            std::iter::once(len).chain(text.bytes())
        });
        put(&texts.collect::<Vec<u8>>());
        put(b"\xfe\0\0\x02\0\0\0");
        out
    }

    #[test]
    fn a_backend_is_read_before_it_serves() {
        let mut bench = Bench::new();
        let key = bench.key;
        let out = bench.openings().logged_in(key).unwrap();
        assert!(String::from_utf8_lossy(&out).contains("@@character_set_client"));
        let backend = bench.backends.get(key).unwrap();
        assert_eq!(backend.state(), BackendState::Preparing);
        assert_eq!(backend.flight.len(), 2);
        let summary = ReplySummary::default();
        let first = bench.openings().answered(key, false, &summary, b"");
        assert_eq!(first, Opened::Waits);
        let row = [
            "latin1",
            "latin1",
            "latin1",
            "latin1_swedish_ci",
            "1",
            "NONE",
        ];
        assert_eq!(bench.answers(&row), Opened::Idle);
        let backend = bench.backends.get(key).unwrap();
        assert_eq!(backend.state(), BackendState::Idle);
        let charset = backend.session.state.variable(b"character_set_client");
        assert_eq!(charset, Some(&b"latin1"[..]));
        assert_eq!(bench.pools.pools[0].dialling, 0);
    }

    #[test]
    fn one_that_began_without_autocommit_is_known_to_have() {
        for (value, commits) in [("1", true), ("0", false)] {
            let mut bench = Bench::new();
            let key = bench.key;
            let out = bench.openings().logged_in(key).unwrap();
            assert!(String::from_utf8_lossy(&out).contains("@@autocommit"));
            let charsets = ["latin1", "latin1", "latin1", "latin1_swedish_ci"];
            let row = [&charsets[..], &[value, "NONE"]].concat();
            assert_eq!(bench.answers(&row), Opened::Idle);
            let backend = bench.backends.get(key).unwrap();
            assert_eq!(backend.session.state.commits(), commits);
        }
    }

    #[test]
    fn one_that_began_under_other_values_serves_nobody() {
        let mut bench = Bench::new();
        let key = bench.key;
        bench.openings().logged_in(key).unwrap();
        bench.defaults = GlobalDefaults::default()
            .with(Vec::new(), b"SET @a=1"[..].into())
            .unwrap();
        let row = [
            "latin1",
            "latin1",
            "latin1",
            "latin1_swedish_ci",
            "1",
            "NONE",
        ];
        assert_eq!(bench.answers(&row), Opened::Outdated);
        let backend = bench.backends.get(key).unwrap();
        assert_eq!(backend.state(), BackendState::Preparing);
    }

    #[test]
    fn a_witness_is_one_that_was_got() {
        let answers = ["1", "0", "NONE"].map(|text| Text::from(text.as_bytes()));
        assert!(!lacks_witness(&answers, 0) && !lacks_witness(&answers, 1));
        assert!(lacks_witness(&answers, 2) && lacks_witness(&answers[..1], 2));
    }

    #[test]
    fn what_cannot_be_read_is_no_session() {
        let mut bench = Bench::new();
        let key = bench.key;
        bench.openings().logged_in(key).unwrap();
        let end = bench.answers(&["latin1"]);
        assert!(
            matches!(end, Opened::Failed(_, DialEnd::Answered)),
            "{end:?}"
        );
        let refused = ReplySummary {
            error: Some((1227, "no".into())),
            ..ReplySummary::default()
        };
        let end = bench.openings().answered(key, false, &refused, b"");
        assert!(
            matches!(end, Opened::Failed(_, DialEnd::Account)),
            "{end:?}"
        );
    }
}
