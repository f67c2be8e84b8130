//! The KILLs of a group: those that wait, and the connection that carries one to the server.
//!
//! The problem: a KILL must reach the server while every backend is busy, and must hit one
//! statement and not the next one on the same backend, which may be another client's. The
//! mechanism: one connection more than `backends_max`, opened for that with the account of
//! the victim's backend and closed after it; a group has one at most, and jobs that wait are done
//! in turn. Just before the KILL is sent, the aim is looked at again: if the statement has
//! ended meanwhile, nothing is sent. From then on the backend is *frozen*
//! ([`crate::backend::reuse`]): it gets no other
//! statement until the server has answered the KILL, so a KILL that comes late finds it idle, where
//! the servers ignore a KILL QUERY (tried on MariaDB 10.11 and MySQL 9.7). If no answer comes, the
//! backend serves the victim, and nobody after it.
//!
//! What a job has come to is handed out ([`Ended`]) before the next one is looked at: the group
//! lets the backend go on and tells who asked, which may end the statement that the next job means.
//!
//! Invariants: a KILL is sent only while the statement that it is meant for is the only one in
//! flight on its backend, or after that backend was closed; of the pool's own KILLs no more than
//! [`OWN_MAX`] wait.

use crate::backend::dial::{Dial, DialStep, put_quit};
use crate::backend::flight::Flight;
use crate::backend::pools::BackendPools;
use crate::backend::{Backend, Purpose};
use crate::client::buffers::transport::Transport;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, KillConnectionId};
use crate::server::tls::words_of;
use crate::statements::kill::jobs::{Aim, Job, KillEnd};
use reactor::{Address, Event, Net, Read, Slots, Time, Write};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::attributes::put_query;
use wire::packet::{Frame, HEADER_LEN, frame};
use wire::reply::{ERR, ErrPacket};

/// The server's answer to KILL when the connection is gone already.
const NO_SUCH_THREAD: u16 = 1094;
/// KILLs that wait for the connection when one of the pool's own is left out: the end of the
/// victim's connection tells a server the same at its next write.
const OWN_MAX: usize = 1024;

/// The connection.
#[derive(Debug)]
struct Connection<S> {
    transport: Transport<S>,
    key: KillConnectionId,
    /// Pool whose account it has, and the server's address.
    pool: usize,
    at: Arc<Address>,
    dial: Dial,
    stage: Stage,
    /// Job that it carries; `None` when that has ended, until the next one is taken.
    job: Option<Job>,
    /// Moment since which it carries that.
    since: Time,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Stage of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not connected.
    Dialling,
    /// Connected, not logged in.
    LoggingIn,
    /// Logged in.
    Ready,
    /// KILL on its way.
    Sent,
}

/// Result of one job.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) job: Job,
    pub(crate) end: KillEnd,
    /// True if the KILL may still hit what runs on its backend.
    pub(crate) spoils: bool,
}

/// The group's parts that a KILL needs.
pub(crate) struct Around<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) pools: &'a BackendPools,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
}

/// The KILLs of a group.
#[derive(Debug)]
pub(crate) struct KillConnection<S> {
    connection: Option<Connection<S>>,
    /// Connections that there have been.
    count: u32,
    /// KILLs that wait.
    jobs: VecDeque<Job>,
}

impl<S> Default for KillConnection<S> {
    fn default() -> KillConnection<S> {
        KillConnection {
            connection: None,
            count: 0,
            jobs: VecDeque::new(),
        }
    }
}

impl Flight {
    /// True if the statement that is meant still runs, alone.
    fn runs_aim(&self, aim: Aim) -> bool {
        let front = self.front();
        let is_it = front.is_some_and(|command| {
            command.owner == Some(aim.victim)
                && command.purpose == Purpose::Statement
                && command.sent == aim.sent
        });
        is_it && self.len() == 1
    }
}

/// True if there still is what a job means.
fn is_due<S>(backends: &Slots<Backend<S>, BackendId>, job: &Job) -> bool {
    job.aim.is_none_or(|aim| {
        let backend = backends.get(aim.backend);
        backend.is_some_and(|backend| backend.flight.runs_aim(aim))
    })
}

impl<S> KillConnection<S> {
    /// True if there is nothing to be done.
    pub(crate) fn is_idle(&self) -> bool {
        self.connection.is_none() && self.jobs.is_empty()
    }

    /// Queues a KILL.
    pub(crate) fn push(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    /// Queues a job of the pool's own, if there is room.
    pub(crate) fn push_own(&mut self, job: Job) {
        if self.jobs.len() < OWN_MAX {
            self.jobs.push_back(job);
        }
    }

    /// Goes on with what is to be done next; says what has come to its end without that. To be
    /// asked until it says nothing.
    pub(crate) fn go_on<N: Net<Sock = S>>(&mut self, around: &mut Around<'_, N>) -> Option<Ended> {
        if let Some(connection) = &mut self.connection
            && connection.job.is_none()
        {
            let same = |next: &&Job| next.pool == connection.pool && next.at == connection.at;
            match self.jobs.front().filter(same).cloned() {
                Some(next) => {
                    self.jobs.pop_front();
                    connection.job = Some(next);
                    connection.since = around.net.now();
                    return self.say_kill(around);
                }
                None => self.hang_up(around.net),
            }
        }
        if self.connection.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            let end = match is_due(around.backends, &job) {
                false => KillEnd::Done,
                true => match self.set_out(&job, around) {
                    Ok(()) => return None,
                    Err(why) => KillEnd::Failed(why),
                },
            };
            return Some(Ended {
                job,
                end,
                spoils: false,
            });
        }
        None
    }

    fn set_out<N: Net<Sock = S>>(
        &mut self,
        job: &Job,
        around: &mut Around<'_, N>,
    ) -> Result<(), String> {
        let place = around.shared.upstream.words(&job.at);
        let reader = around.pools.pools[job.pool].key.reader;
        let tls = (around.shared.tls_at(reader, &job.at, around.settings))
            .ok_or_else(|| format!("{place} is not the writer any more"))?;
        let cannot = |error| format!("cannot connect to {place}: {error}");
        let sock = around.net.connect(&job.at).map_err(cannot)?;
        self.count = self.count.wrapping_add(1) & 0xFFFF;
        let key = KillConnectionId::from_parts(0, self.count);
        let token = key.token();
        around.net.watch(&sock, token).map_err(cannot)?;
        let is_local = matches!(*job.at, Address::Unix(_));
        let client = around.pools.pools[job.pool].key.client_address;
        let header = around.settings.backend_proxy.header(client);
        self.connection = Some(Connection {
            transport: Transport::plain(sock, is_local),
            key,
            pool: job.pool,
            at: job.at.clone(),
            dial: Dial::at(&job.at, Some(tls)).behind(header),
            stage: Stage::Dialling,
            job: Some(job.clone()),
            since: around.net.now(),
            input: Vec::new(),
            output: Vec::new(),
        });
        Ok(())
    }

    /// Handles an event of the connection's socket.
    pub(crate) fn on_event<N: Net<Sock = S>>(
        &mut self,
        around: &mut Around<'_, N>,
        key: KillConnectionId,
        event: Event,
    ) -> Option<Ended> {
        let connection = self.connection.as_mut().filter(|c| c.key == key)?;
        if connection.stage == Stage::Dialling {
            if let Err(error) = around.net.connected(connection.transport.sock()) {
                let address = around.shared.upstream.words(&connection.at);
                return self.failed(&format!("cannot connect to {address}: {error}"));
            }
            connection.stage = Stage::LoggingIn;
            connection.output.extend(connection.dial.take_header());
        }
        connection.transport.note(event);
        if event.writable
            && let Some(ended) = self.write(around.net)
        {
            return Some(ended);
        }
        self.read(around, key)
    }

    /// Takes what has come on the connection.
    pub(crate) fn read<N: Net<Sock = S>>(
        &mut self,
        around: &mut Around<'_, N>,
        key: KillConnectionId,
    ) -> Option<Ended> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(ended) = self.take_packets(around) {
                return Some(ended);
            }
            let connection = self.connection.as_mut().filter(|c| c.key == key)?;
            match connection.transport.read(around.net, &mut buffer) {
                Read::Bytes(n) => connection.input.extend_from_slice(&buffer[..n]),
                Read::Blocked => return self.secured(around),
                Read::End => return self.failed("the server closed the connection"),
                Read::Failed(error) => {
                    let words = words_of(&error, connection.dial.tls());
                    return self.failed(&words.unwrap_or_else(|| error.to_string()));
                }
            }
        }
    }

    fn take_packets<N: Net<Sock = S>>(&mut self, around: &mut Around<'_, N>) -> Option<Ended> {
        while let Some(connection) = &mut self.connection
            && let Frame::Whole { total, last_seq } = frame(&connection.input)
        {
            let message: Vec<u8> = connection.input.drain(..total).collect();
            let payload = &message[HEADER_LEN..];
            let ended = match connection.stage {
                Stage::Ready | Stage::Sent => self.done(end_of(payload)),
                Stage::Dialling | Stage::LoggingIn => {
                    let pool = &around.pools.pools[connection.pool].key;
                    let step = connection.dial.packet(pool, payload, last_seq);
                    self.login_step(step, around)
                }
            };
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    /// Answers the greeting of a server with which TLS stands now.
    fn secured<N: Net<Sock = S>>(&mut self, around: &mut Around<'_, N>) -> Option<Ended> {
        let connection = self.connection.as_mut()?;
        if connection.transport.is_handshaking() {
            return None;
        }
        let pool = &around.pools.pools[connection.pool].key;
        let step = connection.dial.secured(pool)?;
        self.login_step(step, around)
    }

    fn login_step<N: Net<Sock = S>>(
        &mut self,
        step: DialStep,
        around: &mut Around<'_, N>,
    ) -> Option<Ended> {
        let connection = self.connection.as_mut()?;
        match step {
            DialStep::Send(out) => {
                connection.output.extend_from_slice(&out);
                self.write(around.net)
            }
            DialStep::BeginTls(request) => {
                let received = std::mem::take(&mut connection.input);
                let transport = &mut connection.transport;
                let begun = (connection.dial.begin_tls())
                    .and_then(|tls| transport.ask_for_tls(around.net, &request, tls, &received));
                let error = begun.err()?;
                {
                    let words = words_of(&error, connection.dial.tls());
                    self.failed(&words.unwrap_or_else(|| error.to_string()))
                }
            }
            DialStep::Wait => None,
            DialStep::In => {
                connection.stage = Stage::Ready;
                self.say_kill(around)
            }
            DialStep::Failed(why, _)
            | DialStep::AccountFull(why)
            | DialStep::PasswordUnknown(why) => self.failed(&why),
        }
    }

    /// Sends the KILL, if it is still due.
    fn say_kill<N: Net<Sock = S>>(&mut self, around: &mut Around<'_, N>) -> Option<Ended> {
        let connection = self.connection.as_mut()?;
        let job = connection.job.as_ref()?;
        if !is_due(around.backends, job) {
            return self.done(KillEnd::Done);
        }
        let what = match job.aim {
            Some(aim) => {
                if let Some(backend) = around.backends.get_mut(aim.backend) {
                    backend.reuse.freeze();
                }
                "QUERY"
            }
            None => "CONNECTION",
        };
        let text = format!("KILL {what} {}", job.thread);
        let form = around.pools.pools[connection.pool].key.form();
        put_query(&mut connection.output, form, text.as_bytes());
        connection.stage = Stage::Sent;
        self.write(around.net)
    }

    /// Ends the job that the connection carries; it is free for the next.
    fn done(&mut self, end: KillEnd) -> Option<Ended> {
        let connection = self.connection.as_mut()?;
        connection.stage = Stage::Ready;
        Some(Ended {
            job: connection.job.take()?,
            end,
            spoils: false,
        })
    }

    /// Drops the lost connection; returns the end of the job that it carried.
    fn failed(&mut self, why: &str) -> Option<Ended> {
        let connection = self.connection.take()?;
        let spoils = connection.stage == Stage::Sent;
        let was = match spoils {
            true => "whether it was done is unknown",
            false => "it was not done",
        };
        Some(Ended {
            job: connection.job?,
            end: KillEnd::Failed(format!("{why}; {was}")),
            spoils,
        })
    }

    /// Gives up a connection on which the server has not answered for so long.
    pub(crate) fn drop_late(&mut self, now: Time, longest: Duration) -> Option<Ended> {
        let connection = self.connection.as_ref()?;
        if now.since(connection.since) <= longest {
            return None;
        }
        let ms = longest.as_millis();
        self.failed(&format!("the server did not answer within {ms} ms"))
    }

    fn hang_up<N: Net<Sock = S>>(&mut self, net: &mut N) {
        if let Some(mut connection) = self.connection.take() {
            let mut quit = Vec::new();
            put_quit(&mut quit);
            let _ = connection.transport.write(net, &quit);
            connection.transport.end(net);
        }
    }

    fn write<N: Net<Sock = S>>(&mut self, net: &mut N) -> Option<Ended> {
        let connection = self.connection.as_mut()?;
        match connection.transport.flush(net) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return self.failed(&error.to_string()),
        }
        while !connection.output.is_empty() {
            match connection.transport.write(net, &connection.output) {
                Write::Bytes(n) => drop(connection.output.drain(..n)),
                Write::Blocked => return None,
                Write::Failed(error) => return self.failed(&error.to_string()),
            }
        }
        None
    }
}

/// End of a KILL by the server's answer.
fn end_of(payload: &[u8]) -> KillEnd {
    match ErrPacket::read(payload) {
        Ok(err) if payload.first() == Some(&ERR) && err.code != NO_SUCH_THREAD => {
            let text = String::from_utf8_lossy(err.message);
            KillEnd::Failed(format!("error {}: {text}", err.code))
        }
        _ => KillEnd::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::InFlight;
    use crate::group::tokens::ClientId;
    use crate::statements::kill::jobs::Aim;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    fn job(thread: u32, aim: Option<Aim>) -> Job {
        Job {
            asker: None,
            at: Arc::new(Address::Unix("/s".into())),
            pool: 0,
            thread,
            aim,
        }
    }

    #[test]
    fn kills_of_the_pools_own_are_bounded() {
        let mut kills: KillConnection<()> = KillConnection::default();
        for thread in 0..=u32::try_from(OWN_MAX).unwrap() {
            kills.push_own(job(thread, None));
        }
        assert_eq!(kills.jobs.len(), OWN_MAX);
        assert_eq!(kills.jobs.back().unwrap().thread as usize, OWN_MAX - 1);
    }

    #[test]
    fn a_kill_is_due_while_its_statement_is_alone_in_flight() {
        let mut backends: Slots<Backend<()>, BackendId> = Slots::default();
        let backend_id = backends.insert(Backend::of_tests(Time(0), Rc::default()));
        let victim = ClientId::from_parts(7, 1);
        let aim = |sent| {
            Some(Aim {
                backend: backend_id,
                victim,
                sent,
            })
        };
        assert!(
            is_due(&backends, &job(1, None)),
            "a connection that is closed here"
        );
        assert!(
            !is_due(&backends, &job(1, aim(Time(5)))),
            "nothing is in flight"
        );
        let statement = |owner| {
            let mut command = InFlight::own(Some(owner), Purpose::Statement, ReplyShape::Results);
            command.sent = Time(5);
            command
        };
        let backend = backends.get_mut(backend_id).unwrap();
        backend.flight.expect(statement(victim));
        assert!(is_due(&backends, &job(1, aim(Time(5)))));
        assert!(
            !is_due(&backends, &job(1, aim(Time(4)))),
            "the statement before"
        );
        let backend = backends.get_mut(backend_id).unwrap();
        backend.flight.expect(statement(ClientId::from_parts(8, 1)));
        assert!(
            !is_due(&backends, &job(1, aim(Time(5)))),
            "somebody rides with it"
        );
    }

    #[test]
    fn the_servers_answer_tells_whether_it_was_done() {
        assert_eq!(end_of(&[0, 0, 0, 2, 0, 0, 0]), KillEnd::Done);
        let error = |code: u16| {
            let mut packet = vec![ERR];
            packet.extend(code.to_le_bytes());
            packet.extend(b"#HY000why");
            packet
        };
        assert_eq!(
            end_of(&error(NO_SUCH_THREAD)),
            KillEnd::Done,
            "it is gone already"
        );
        assert_eq!(
            end_of(&error(1095)),
            KillEnd::Failed("error 1095: why".into())
        );
    }

    use crate::backend::pools::PoolKey;
    use crate::group::scripted::{Scripted, shared};
    use wire::auth::Plugin;
    use wire::handshake::Greeting;
    use wire::packet::put_short;
    use wire::reply::{OK, OkPacket};

    fn put_ok(out: &mut Vec<u8>, seq: u8) {
        let ok = OkPacket {
            affected_rows: 0,
            insert_id: 0,
            status: 2,
            warnings: 0,
            info: b"",
            changes: b"",
        };
        put_short(out, seq, |out| ok.put(out, OK, false));
    }

    /// A group's parts, with one pool of a plain account.
    struct Bench {
        net: Scripted,
        shared: Shared,
        pools: BackendPools,
        backends: Slots<Backend<()>, BackendId>,
    }

    impl Bench {
        fn new() -> Bench {
            let mut pools = BackendPools::default();
            pools.add(PoolKey::of_user("app"), |_| true);
            Bench {
                net: Scripted::default(),
                shared: shared(""),
                pools,
                backends: Slots::default(),
            }
        }

        fn with<T>(&mut self, run: impl FnOnce(&mut Around<'_, Scripted>) -> T) -> T {
            let settings = self.shared.settings();
            run(&mut Around {
                net: &mut self.net,
                shared: &self.shared,
                settings: &settings,
                pools: &self.pools,
                backends: &mut self.backends,
            })
        }
    }

    #[test]
    fn a_kill_whose_server_is_away_fails_and_the_next_is_tried() {
        let (mut bench, mut kills) = (Bench::new(), KillConnection::default());
        bench.net.is_broken = true;
        kills.push(job(1, None));
        kills.push(job(2, None));
        let ended = bench.with(|around| kills.go_on(around)).unwrap();
        assert!(matches!(ended.end, KillEnd::Failed(why) if why.contains("cannot connect")));
        assert_eq!((ended.job.thread, ended.spoils), (1, false));
        assert_eq!(
            bench.with(|around| kills.go_on(around)).unwrap().job.thread,
            2
        );
        assert!(bench.with(|around| kills.go_on(around)).is_none());
    }

    #[test]
    fn one_connection_carries_the_kills_of_an_account_one_after_the_other() {
        let (mut bench, mut kills) = (Bench::new(), KillConnection::default());
        kills.push(job(71, None));
        kills.push(job(72, None));
        assert!(
            bench.with(|around| kills.go_on(around)).is_none(),
            "it is dialled"
        );
        let key = KillConnectionId::from_parts(0, 1);
        let mut greeting = Vec::new();
        Greeting {
            version: b"10.11.6-MariaDB".to_vec(),
            connection_id: 9,
            nonce: [5; 20],
            capabilities: wire::capabilities::OFFERED,
            extended: 0,
            collation: 45,
            status: 2,
            plugin: Plugin::Native.name().as_bytes().to_vec(),
        }
        .put(&mut greeting);
        bench.net.incoming = greeting;
        let event = |readable| Event {
            token: key.token(),
            readable,
            writable: true,
            closed: false,
        };
        let ended = bench.with(|around| kills.on_event(around, key, event(true)));
        assert!(ended.is_none());
        assert!(
            !bench.net.written.is_empty(),
            "it has answered the greeting"
        );
        put_ok(&mut bench.net.incoming, 2);
        assert!(
            bench
                .with(|around| kills.on_event(around, key, event(true)))
                .is_none()
        );
        let said =
            |bench: &Bench, text: &str| String::from_utf8_lossy(&bench.net.written).contains(text);
        assert!(said(&bench, "KILL CONNECTION 71"));
        put_ok(&mut bench.net.incoming, 1);
        let ended = bench
            .with(|around| kills.on_event(around, key, event(true)))
            .unwrap();
        assert_eq!((ended.job.thread, ended.end), (71, KillEnd::Done));
        assert!(
            !said(&bench, "KILL CONNECTION 72"),
            "what has ended is told of first"
        );
        assert!(bench.with(|around| kills.go_on(around)).is_none());
        assert!(said(&bench, "KILL CONNECTION 72"));
        // Nothing comes any more.
        bench.net.now = bench.net.now + Duration::from_secs(2);
        let (now, longest) = (bench.net.now, Duration::from_secs(1));
        let ended = kills.drop_late(now, longest).unwrap();
        assert!(ended.spoils, "the KILL may still come");
        assert!(bench.with(|around| kills.go_on(around)).is_none());
    }
}
