//! Clients that do not read: what the spool's threads report of them, who is relieved of its
//! backend, and who has to go.
//!
//! The rules are those of [`crate::limits::slow_readers`]; here they meet the clients, the log and
//! the backends. Invariant: who is closed for not reading is named in the log, with the reason.

use crate::backend::Backend;
use crate::backend::pools::BackendPools;
use crate::client::clients::Clients;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::slow_readers::{Crowd, Demand, NO_ROOM, Relief, SlowReaders};
use crate::limits::spool_jobs::SpoolDone;
use crate::limits::timeouts::DISK_MAX;
use crate::observe::audit::end;
use crate::observe::figures::counts::Counts;
use crate::observe::identity::ClientIdentity;
use crate::observe::log::{Event, note_of};
use crate::scheduler::bulk::{Bulk, Piece};
use reactor::{Net, Slots};
use session::meter::Meter;

/// The clients of a group, and those of them that do not read.
pub(crate) struct Unread<'a, N: Net> {
    pub(crate) net: &'a N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    /// The group's number.
    pub(crate) index: usize,
    pub(crate) clients: &'a mut Clients<N::Sock>,
    pub(crate) backends: &'a Slots<Backend<N::Sock>, BackendId>,
    pub(crate) pools: &'a BackendPools,
    pub(crate) slow: &'a mut SlowReaders,
    /// Bytes that clients have not taken.
    pub(crate) outputs: &'a Meter,
    /// Work of later turns.
    pub(crate) bulk: &'a mut Bulk,
    pub(crate) counts: &'a mut Counts,
}

impl<N: Net> Unread<'_, N> {
    /// Takes the results of the spool's threads for blocks of clients.
    pub(crate) fn spooled(&mut self, done: Vec<(ClientId, SpoolDone)>) {
        for (key, done) in done {
            let now = self.net.now();
            let mut client = self.clients.get_mut(key);
            let output = (client.as_mut()).and_then(|client| client.output.as_deref_mut());
            let failed = match done {
                SpoolDone::Stored => {
                    self.slow.stored(key, output, self.shared);
                    continue;
                }
                SpoolDone::Fetched(bytes) => {
                    let keeps = (self.shared, self.outputs);
                    if self.slow.fetched(output, bytes, keeps)
                        && let Some(client) = client
                    {
                        // Until now it could take nothing.
                        client.count_from(now);
                        self.bulk.push(Piece::Client(key));
                    }
                    continue;
                }
                SpoolDone::Failed(error) => {
                    self.slow.spool.has_dealt();
                    let folder = self.settings.spool_folder.display();
                    format!("its reply cannot be written to the spool in {folder}: {error}")
                }
                SpoolDone::Lost(error) => {
                    self.slow.spool.has_read();
                    format!("its reply cannot be read from the spool: {error}")
                }
            };
            self.slow.spool.failed(now);
            self.end(key, &failed);
        }
    }

    /// Closes a client whose reply has not come out of the spool in so much time, in which it could
    /// take nothing. Nobody else's goes there for a while.
    pub(crate) fn end_spooled(&mut self, key: ClientId) {
        let folder = self.settings.spool_folder.display();
        let ms = DISK_MAX.as_millis();
        let why = format!("the disk of the spool in {folder} has not answered for {ms} ms");
        self.slow.spool.failed(self.net.now());
        self.end(key, &why);
    }

    /// Ends the reader that has taken nothing for longest where the spool has no room.
    pub(crate) fn end_longest(&mut self) {
        let (slow, crowd) = self.crowd();
        if let Some(key) = slow.longest_to_end(&crowd) {
            self.end(key, NO_ROOM);
        }
    }

    /// Takes replies off their backends while others wait for those; the backends that are to be
    /// read on are returned.
    pub(crate) fn relieve(&mut self, demand: Demand) -> Vec<BackendId> {
        let (slow, mut crowd) = self.crowd();
        let mut read_on = Vec::new();
        for relief in slow.relieve(&mut crowd, demand) {
            match relief {
                Relief::ReadOn(backend) => read_on.push(backend),
                Relief::TakeOff(backend) => {
                    self.counts.spooled += 1;
                    read_on.push(backend);
                }
                Relief::End(client, why) => self.end(client, why),
            }
        }
        read_on
    }

    fn crowd(&mut self) -> (&mut SlowReaders, Crowd<'_, N::Sock>) {
        let crowd = Crowd {
            clients: self.clients,
            backends: self.backends,
            settings: self.settings,
            shared: self.shared,
            group: self.index,
            now: self.net.now(),
        };
        (self.slow, crowd)
    }

    /// Closes a client that does not read.
    fn end(&mut self, key: ClientId, why: &str) {
        let client = (self.clients.get(key)).filter(|client| !client.ended.is_closing());
        let Some(client) = client else {
            return;
        };
        let account = self.pools.pools.get(client.pool as usize);
        let account = account.map_or("", |pool| pool.key.user.as_str());
        let backend = client.backend_in(self.backends);
        let identity = ClientIdentity::of(client, backend, self.net, (self.settings, self.pools));
        let ms = self.net.now().since(client.since()).as_millis();
        let id = client.identity.id();
        note_of(
            Event::ReaderClosed,
            &identity.facts_of_end(),
            format_args!(
                "client {id} account '{account}' closed: it has taken nothing of its reply for \
                 {ms} ms, and {why}"
            ),
        );
        self.counts.slow_closed += 1;
        self.clients.close_for(key, end::READER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::group::scripted::{Scripted, shared};
    use crate::limits::spool::Spool;
    use reactor::Time;
    use std::rc::Rc;
    use std::sync::Arc;

    struct Bench {
        net: Scripted,
        shared: Shared,
        settings: Arc<Settings>,
        clients: Clients<()>,
        backends: Slots<Backend<()>, BackendId>,
        pools: BackendPools,
        slow: SlowReaders,
        outputs: Meter,
        bulk: Bulk,
        counts: Counts,
    }

    impl Bench {
        fn new() -> (Bench, ClientId) {
            let mut clients = Clients::default();
            let client = Client::of_tests(Time(1), Rc::default());
            let key = clients.insert(client);
            let shared = shared("");
            let bench = Bench {
                net: Scripted::default(),
                settings: shared.settings(),
                clients,
                backends: Slots::default(),
                pools: BackendPools::default(),
                slow: SlowReaders::new(Spool::new(0, shared.lengths.spool_block)),
                shared,
                outputs: Meter::default(),
                bulk: Bulk::default(),
                counts: Counts::default(),
            };
            (bench, key)
        }

        fn unread(&mut self) -> Unread<'_, Scripted> {
            Unread {
                net: &self.net,
                shared: &self.shared,
                settings: &self.settings,
                index: 0,
                clients: &mut self.clients,
                backends: &self.backends,
                pools: &self.pools,
                slow: &mut self.slow,
                outputs: &self.outputs,
                bulk: &mut self.bulk,
                counts: &mut self.counts,
            }
        }
    }

    #[test]
    fn who_is_closed_for_its_spool_is_closed_and_counted_once() {
        let (mut bench, key) = Bench::new();
        bench.unread().end_spooled(key);
        bench.unread().end_spooled(key);
        assert_eq!(bench.counts.slow_closed, 1);
        assert_eq!(bench.clients.next_to_close(), Some(key));
        assert_eq!(bench.clients.next_to_close(), None);
    }

    #[test]
    fn where_everybody_reads_nobody_is_relieved_or_closed() {
        let (mut bench, _) = Bench::new();
        let demand = Demand {
            any: true,
            long: true,
        };
        assert!(bench.unread().relieve(demand).is_empty());
        bench.unread().end_longest();
        assert_eq!((bench.counts.slow_closed, bench.counts.spooled), (0, 0));
    }
}
