//! The connection that carries a KILL to the server.
//!
//! The problem: a KILL must reach the server while every backend is busy, and must hit one
//! statement and not the next one on the same backend, which may be another client's. The
//! mechanism: one connection more than `backends_max`, opened for that with the account of
//! the victim's backend and closed after it; a group has one at most, and jobs that wait are done
//! in turn. Just before the KILL is sent, the aim is looked at again: if the statement has
//! ended meanwhile, nothing is sent. From then on the backend is *frozen*: it gets no other
//! statement until the server has answered the KILL, so a KILL that comes late finds it idle, where
//! the servers ignore a KILL QUERY (tried on MariaDB 10.11 and MySQL 9.7). If no answer comes, the
//! backend is *spoiled*: it serves the victim, and nobody after it.
//!
//! Invariant: a KILL is sent only while the statement that it is meant for is the only one in
//! flight on its backend, or after that backend was closed.

use crate::backend::dial::{Dial, DialStep};
use crate::backend::kill_jobs::{Job, KillConnection, KillEnd};
use crate::backend::{Backend, Purpose};
use crate::buffers::transport::Transport;
use crate::group::{Group, KILL_CONNECTION};
use crate::server::backend_tls::{Asking, words_of};
use reactor::{Address, Event, Key, Net, Read, Time, Token, Write};
use std::time::Duration;
use wire::attributes::put_query;
use wire::packet::{Frame, HEADER_LEN, frame};
use wire::reply::{ERR, ErrPacket};

/// The server's answer to KILL when the connection is gone already.
const NO_SUCH_THREAD: u16 = 1094;

impl<N: Net> Group<N> {
    /// Begins the next KILL, if none is under way. At the end of a turn, when no client's
    /// commands are being handled: it may answer one.
    pub(crate) fn next_kill(&mut self) {
        while self.kill_connection.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            let asker = job.asker;
            if !self.is_due(&job) {
                self.answer_asker(asker, KillEnd::Done);
            } else if let Err(why) = self.set_out(job) {
                self.answer_asker(asker, KillEnd::Failed(why));
            }
        }
    }

    fn set_out(&mut self, job: Job) -> Result<(), String> {
        let shared = self.shared.clone();
        let place = shared.upstream.words(&job.at);
        let cannot = |error| format!("cannot connect to {place}: {error}");
        let sock = self.net.connect(&job.at).map_err(cannot)?;
        self.kill_connections_count = self.kill_connections_count.wrapping_add(1) & 0xFFFF;
        let key = Key::from_parts(0, self.kill_connections_count);
        self.net
            .watch(&sock, Token::new(KILL_CONNECTION, key))
            .map_err(cannot)?;
        let is_local = matches!(*job.at, Address::Unix(_));
        let tls = self.settings.backend_tls.as_ref();
        let asking = tls.map_or(Asking::Off, |tls| tls.asking(&job.at));
        let client = self.backend_pools.pools[job.pool].key.client_address;
        let header = self.settings.backend_proxy.header(client);
        self.kill_connection = Some(KillConnection {
            transport: Transport::plain(sock, is_local),
            key,
            pool: job.pool,
            dial: Dial::new(is_local, asking).behind(header),
            job,
            since: self.net.now(),
            stands: false,
            logged_in: false,
            sent: false,
            input: Vec::new(),
            output: Vec::new(),
        });
        Ok(())
    }

    /// Whether the statement still runs, alone on its backend.
    fn is_due(&self, job: &Job) -> bool {
        let Some(aim) = job.aim else { return true };
        let Some(backend) = self.backends.get(aim.lease) else {
            return false;
        };
        let front = backend.flight().front();
        let is_it = front.is_some_and(|command| {
            command.owner == Some(aim.victim)
                && command.purpose == Purpose::Statement
                && command.sent == aim.sent
        });
        is_it && backend.flight().len() == 1
    }

    /// Handles an event of the connection's socket.
    pub(crate) fn on_kill_connection(&mut self, key: Key, event: Event) {
        let Some(connection) = self
            .kill_connection
            .as_mut()
            .filter(|connection| connection.key == key)
        else {
            return;
        };
        if !connection.stands {
            if let Err(error) = self.net.connected(connection.transport.sock()) {
                let address = self.shared.upstream.words(&connection.job.at);
                let why = format!("cannot connect to {address}: {error}");
                return self.kill_failed(why);
            }
            connection.stands = true;
            connection.output.extend(connection.dial.take_header());
        }
        connection.transport.note(event);
        if event.writable {
            self.write_kill_connection();
        }
        let mut buffer = [0; 4096];
        while let Some(connection) = self
            .kill_connection
            .as_mut()
            .filter(|connection| connection.key == key)
        {
            match connection.transport.read(&mut self.net, &mut buffer) {
                Read::Bytes(n) => {
                    connection.input.extend_from_slice(&buffer[..n]);
                    self.read_kill_connection();
                }
                Read::Blocked => {
                    self.go_on_with_kill_login();
                    return;
                }
                Read::End => return self.kill_failed("the server closed the connection".into()),
                Read::Failed(error) => {
                    let why = words_of(&error).unwrap_or_else(|| error.to_string());
                    return self.kill_failed(why);
                }
            }
        }
    }

    fn read_kill_connection(&mut self) {
        while let Some(connection) = &mut self.kill_connection
            && let Frame::Whole { total, last_seq } = frame(&connection.input)
        {
            let message: Vec<u8> = connection.input.drain(..total).collect();
            let payload = &message[HEADER_LEN..];
            if connection.logged_in {
                self.kill_answered(payload);
                continue;
            }
            let pool = &self.backend_pools.pools[connection.pool].key;
            let step = connection.dial.packet(pool, payload, last_seq);
            self.kill_login_step(step);
        }
    }

    /// Answers the greeting of a server with which TLS stands now.
    fn go_on_with_kill_login(&mut self) {
        let Some(connection) = &mut self.kill_connection else {
            return;
        };
        let pool = &self.backend_pools.pools[connection.pool].key;
        if !connection.transport.is_handshaking()
            && let Some(step) = connection.dial.secured(pool)
        {
            self.kill_login_step(step);
        }
    }

    fn kill_login_step(&mut self, step: DialStep) {
        let shared = self.shared.clone();
        let Some(connection) = &mut self.kill_connection else {
            return;
        };
        match step {
            DialStep::Send(out) => {
                connection.output.extend_from_slice(&out);
                self.write_kill_connection();
            }
            DialStep::BeginTls(request) => {
                let Some(tls) = &shared.settings().backend_tls else {
                    return;
                };
                let received = std::mem::take(&mut connection.input);
                let transport = &mut connection.transport;
                let begun = (tls.begin())
                    .and_then(|tls| transport.ask_for_tls(&mut self.net, &request, tls, &received));
                if let Err(error) = begun {
                    let why = words_of(&error).unwrap_or_else(|| error.to_string());
                    self.kill_failed(why);
                }
            }
            DialStep::Wait => {}
            DialStep::In => {
                connection.logged_in = true;
                self.say_kill();
            }
            DialStep::Failed(why, _) | DialStep::PasswordUnknown(why) => self.kill_failed(why),
        }
    }

    /// Sends the KILL, if it is still due.
    fn say_kill(&mut self) {
        let Some(connection) = &self.kill_connection else {
            return;
        };
        let job = connection.job.clone();
        if !self.is_due(&job) {
            return self.job_done(KillEnd::Done);
        }
        let what = match job.aim {
            Some(aim) => {
                if let Some(backend) = self.backends.get_mut(aim.lease) {
                    backend.frozen = true;
                }
                "QUERY"
            }
            None => "CONNECTION",
        };
        let Some(connection) = &mut self.kill_connection else {
            return;
        };
        let text = format!("KILL {what} {}", job.thread);
        let form = self.backend_pools.pools[connection.pool].key.form();
        put_query(&mut connection.output, form, text.as_bytes());
        connection.sent = true;
        self.write_kill_connection();
    }

    fn kill_answered(&mut self, payload: &[u8]) {
        let end = match ErrPacket::read(payload) {
            Ok(err) if payload.first() == Some(&ERR) && err.code != NO_SUCH_THREAD => {
                let text = String::from_utf8_lossy(err.message);
                KillEnd::Failed(format!("error {}: {text}", err.code))
            }
            _ => KillEnd::Done,
        };
        self.job_done(end);
    }

    /// The job is done; the connection takes the next one of its account.
    fn job_done(&mut self, end: KillEnd) {
        let Some(connection) = &mut self.kill_connection else {
            return;
        };
        let job = connection.job.clone();
        connection.sent = false;
        let same = |next: &&Job| next.pool == connection.pool && next.at == job.at;
        let again = self.jobs.front().filter(same).cloned();
        let goes_on = again.is_some();
        match again {
            Some(next) => {
                self.jobs.pop_front();
                connection.job = next;
                connection.since = self.net.now();
            }
            None => {
                let mut quit = Vec::new();
                crate::backend::dial::put_quit(&mut quit);
                let _ = connection.transport.write(&mut self.net, &quit);
                connection.transport.end(&mut self.net);
                self.kill_connection = None;
            }
        }
        self.thaw(&job, false);
        self.answer_asker(job.asker, end);
        if goes_on {
            self.say_kill();
        } else {
            self.next_kill();
        }
    }

    fn kill_failed(&mut self, why: String) {
        let Some(connection) = self.kill_connection.take() else {
            return;
        };
        let was = if connection.sent {
            "whether it was done is unknown"
        } else {
            "it was not done"
        };
        self.thaw(&connection.job, connection.sent);
        let end = KillEnd::Failed(format!("{why}; {was}"));
        self.answer_asker(connection.job.asker, end);
        self.next_kill();
    }

    /// The KILL has been answered, or never will be: the backend goes on.
    fn thaw(&mut self, job: &Job, spoiled: bool) {
        let Some(lease) = job.aim.map(|aim| aim.lease) else {
            return;
        };
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        backend.frozen = false;
        backend.spoiled |= spoiled;
        self.settle(lease);
        self.resume(lease);
    }

    /// A client that has waited for its own backend, and keeps it, goes on.
    pub(crate) fn resume(&mut self, lease: Key) {
        let backend = self.backends.get(lease);
        let backend = backend.filter(|backend| backend.flight().is_empty());
        if let Some(owner) = backend.and_then(Backend::lease) {
            self.wake(owner);
        }
    }

    pub(crate) fn drop_late_kill(&mut self, now: Time, longest: Duration) {
        if let Some(connection) = &self.kill_connection
            && now.since(connection.since) > longest
        {
            let ms = longest.as_millis();
            self.kill_failed(format!("the server did not answer within {ms} ms"));
        }
    }

    fn write_kill_connection(&mut self) {
        let Some(connection) = &mut self.kill_connection else {
            return;
        };
        match connection.transport.flush(&mut self.net) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.kill_failed(error.to_string()),
        }
        while !connection.output.is_empty() {
            match (connection.transport).write(&mut self.net, &connection.output) {
                Write::Bytes(n) => drop(connection.output.drain(..n)),
                Write::Blocked => return,
                Write::Failed(error) => return self.kill_failed(error.to_string()),
            }
        }
    }
}
