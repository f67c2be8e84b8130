//! A group's part in slow readers ([`crate::slow_readers`]): it reads their backends on, sends what
//! comes out of the spool, and closes those who have to go.
//!
//! Invariant: who is closed for not reading is named in the log, with the reason.

use crate::buffers::spool_jobs::SpoolDone;
use crate::group::Group;
use crate::log::{Event, Facts, Peer, note_of};
use crate::queue::bulk::Piece;
use crate::slow_readers::{Crowd, NO_ROOM, Relief};
use reactor::{Key, Net};
use std::time::Duration;

impl<N: Net> Group<N> {
    /// The spool's threads have dealt with blocks of clients.
    pub(crate) fn on_spool(&mut self, done: Vec<(Key, SpoolDone)>) {
        for (key, done) in done {
            let now = self.net.now();
            let client = self.clients.get_mut(key);
            let output = client.and_then(|client| client.output.as_deref_mut());
            let (slow, keeps) = (&mut self.slow_readers, (&*self.shared, &self.outputs));
            let failed = match done {
                SpoolDone::Stored => {
                    slow.stored(key, output, &self.shared);
                    continue;
                }
                SpoolDone::Fetched(bytes) => {
                    if slow.fetched(output, bytes, keeps)
                        && let Some(client) = self.clients.get_mut(key)
                    {
                        // Until now it could take nothing.
                        client.since = now;
                        self.bulk.push(Piece::Client(key));
                    }
                    continue;
                }
                SpoolDone::Failed(error) => {
                    slow.spool.has_dealt();
                    let folder = self.settings.spool_folder.display();
                    format!("its reply cannot be written to the spool in {folder}: {error}")
                }
                SpoolDone::Lost(error) => {
                    slow.spool.has_read();
                    format!("its reply cannot be read from the spool: {error}")
                }
            };
            slow.spool.failed(now);
            self.end_reader(key, &failed);
        }
    }

    /// Closes a client whose reply has not come out of the spool in so much time, in which it could
    /// take nothing. Nobody else's goes there for a while.
    pub(crate) fn end_unread(&mut self, key: Key, max: Duration) {
        let folder = self.settings.spool_folder.display();
        let ms = max.as_millis();
        let why = format!("the disk of the spool in {folder} has not answered for {ms} ms");
        self.slow_readers.spool.failed(self.net.now());
        self.end_reader(key, &why);
    }

    /// Takes replies off their backends while others wait for those.
    pub(crate) fn relieve_backends(&mut self) {
        let others_wait = !self.line.is_empty()
            || self
                .shared
                .budget
                .owes_next(self.index, self.backend_pools.count);
        let was_squeezed = self.matching().is_squeezed();
        let relief = (self.slow_readers).relieve(
            &mut Crowd {
                clients: &mut self.clients,
                backends: &self.backends,
                settings: &self.settings,
                shared: &self.shared,
                group: self.index,
                now: self.net.now(),
            },
            others_wait,
        );
        let mut matching = self.matching();
        if matching.is_squeezed() && !was_squeezed {
            for key in matching.put_short_first() {
                if let Some(client) = self.clients.get_mut(key) {
                    client.place.raise();
                }
            }
        }
        for relief in relief {
            match relief {
                Relief::ReadOn(lease) => self.read_in_next_turn(lease),
                Relief::TakeOff(lease) => {
                    self.counts.spooled += 1;
                    self.read_in_next_turn(lease);
                }
                Relief::End(client, why) => self.end_reader(client, why),
            }
        }
    }

    /// Where the spool has no room: ends the reader that has taken nothing for longest.
    pub(crate) fn end_longest_reader(&mut self) {
        let longest = self.slow_readers.longest_to_end(&Crowd {
            clients: &mut self.clients,
            backends: &self.backends,
            settings: &self.settings,
            shared: &self.shared,
            group: self.index,
            now: self.net.now(),
        });
        if let Some(key) = longest {
            self.end_reader(key, NO_ROOM);
        }
    }

    /// Closes a client that does not read.
    fn end_reader(&mut self, key: Key, why: &str) {
        let client = self.clients.get(key).filter(|client| !client.closing);
        let Some(client) = client else {
            return;
        };
        let account = self.backend_pools.pools.get(client.pool as usize);
        let account = account.map_or("", |pool| pool.key.user.as_str());
        let facts = Facts {
            client: Some(Peer::from(client.transport.peer(&self.net))),
            account: client
                .user_name(&self.settings, &self.backend_pools)
                .map(str::as_bytes),
            ..Facts::default()
        };
        let ms = self.net.now().since(client.since).as_millis();
        let id = client.id;
        note_of(
            Event::ReaderClosed,
            &facts,
            format_args!(
                "client {id} account '{account}' closed: it has taken nothing of its reply for \
                 {ms} ms, and {why}"
            ),
        );
        self.counts.slow_closed += 1;
        self.close_later(key);
    }
}
