//! Servers that may be read besides the writer, as the groups see them.
//!
//! The problem: each statement of some clients needs a server to be read, and must not wait for
//! the monitor. The mechanism: each decision leaves a list that is never changed, and a number that
//! counts the lists; a group looks at the number once in a turn. What has gone where, and why, is
//! counted here for all groups.

use crate::backend::pools::PoolKey;
use crate::cluster::Cluster;
use crate::group::shared::Shared;
use crate::server::upstream::Writer;
use ::cluster::{Kind, ServerId, State, Traffic, View};
use reactor::Address;
use session::elsewhere::Why;
use session::own_writes::OwnWrites;
use sql::lex::Server;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// One server, as far as reads are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// Address at which it was asked; `None`: it was never reached.
    pub(crate) at: Option<Arc<Address>>,
    /// Its share of the reads; 0: it takes none now.
    pub(crate) weight: u32,
    /// True if it answers nobody.
    pub(crate) is_down: bool,
}

/// All servers, in the order of the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderList {
    pub(crate) all: Vec<Reader>,
    /// The writer numbers its transactions.
    pub(crate) is_numbered: bool,
}

impl ReaderList {
    /// True if some server takes reads now.
    pub(crate) fn takes_reads(&self) -> bool {
        self.all.iter().any(|one| one.weight > 0)
    }
}

/// Statements that ended on a server, and those that were lost with it.
#[derive(Debug, Default)]
pub(crate) struct ReadsOn {
    pub(crate) total: AtomicU64,
    statements: AtomicU32,
    failed: AtomicU32,
}

impl ReadsOn {
    pub(crate) fn ended(&self, failed: bool) {
        self.total.fetch_add(u64::from(!failed), Relaxed);
        self.statements.fetch_add(1, Relaxed);
        self.failed.fetch_add(u32::from(failed), Relaxed);
    }

    /// Takes what has ended since this was asked last.
    pub(crate) fn take(&self) -> Traffic {
        Traffic {
            statements: self.statements.swap(0, Relaxed),
            failed: self.failed.swap(0, Relaxed),
            full: 0,
        }
    }
}

/// Knowledge of the groups about reads on several servers, and their counts.
#[derive(Debug)]
pub(crate) struct Reads {
    version: AtomicU64,
    list: Mutex<Arc<ReaderList>>,
    /// One for each server.
    pub(crate) on: Vec<ReadsOn>,
    /// Statements by the reason for their server, in the order of [`Why::ALL`].
    by_why: [AtomicU64; Why::ALL.len()],
    /// Reads that waited in vain for their client's writes.
    pub(crate) behind: AtomicU64,
    /// Reads that ran once more on the writer.
    pub(crate) again: AtomicU64,
    pub(crate) wait_ms: u64,
    pub(crate) is_dry_run: bool,
    pub(crate) kind: Kind,
}

impl Reads {
    pub(super) fn new(servers: usize, kind: Kind, (wait_ms, is_dry_run): (u64, bool)) -> Reads {
        Reads {
            version: AtomicU64::new(0),
            list: Mutex::default(),
            on: (0..servers).map(|_| ReadsOn::default()).collect(),
            by_why: [const { AtomicU64::new(0) }; Why::ALL.len()],
            behind: AtomicU64::new(0),
            again: AtomicU64::new(0),
            wait_ms,
            is_dry_run,
            kind,
        }
    }

    /// A number that is another one when the list is.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    pub(crate) fn list(&self) -> Arc<ReaderList> {
        let list = self.list.lock();
        list.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a list in force; `false` where it is the one before.
    pub(super) fn replace(&self, list: ReaderList) -> bool {
        let mut now = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if **now == list {
            return false;
        }
        *now = Arc::new(list);
        self.version.fetch_add(1, Release);
        true
    }

    /// Question to a server that is read whether it has these writes.
    pub(crate) fn question(&self, flavour: Server, writes: &OwnWrites) -> String {
        let ms = self.wait_ms;
        match self.kind {
            Kind::Galera => format!(
                "SET STATEMENT wsrep_sync_wait=1,max_statement_time={}.{:03} FOR SELECT 0",
                ms / 1000,
                ms % 1000
            ),
            _ => writes.question(flavour, ms),
        }
    }

    pub(crate) fn count(&self, why: Why) {
        self.by_why[why as usize].fetch_add(1, Relaxed);
    }

    /// Statements by the reason for their server.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (Why, u64)> {
        let all = Why::ALL.iter().zip(&self.by_why);
        all.map(|(why, count)| (*why, count.load(Relaxed)))
    }
}

/// The servers of a view, as far as reads are concerned. A server without its state of now may
/// have any address.
pub(super) fn list_of(
    view: &View,
    addresses: &[Option<Arc<Address>>],
    is_numbered: bool,
) -> ReaderList {
    let all = (0..).map(ServerId).zip(&view.servers).zip(addresses);
    let reader = |((id, server), at): ((ServerId, &::cluster::ServerState), &Option<_>)| Reader {
        at: at.clone(),
        weight: match view.readers.contains(&id) {
            true => server.weight,
            false => 0,
        },
        is_down: matches!(server.state, State::Down | State::Off),
    };
    ReaderList {
        all: all.map(reader).collect(),
        is_numbered,
    }
}

impl Cluster {
    /// Reads on other servers than the writer.
    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }
}

impl Shared {
    /// Reads of all groups, where there are several servers.
    pub(crate) fn reads(&self) -> Option<&Reads> {
        self.cluster.as_deref().map(Cluster::reads)
    }

    /// Counts a statement that has ended on a backend of this pool, or was lost there, if it is on
    /// a server that is read.
    pub(crate) fn count_read(&self, pool: &PoolKey, is_lost: bool) {
        if let Some((reads, reader)) = self.reads().zip(pool.reader) {
            reads.on[reader.index()].ended(is_lost);
        }
    }

    /// Makes the first of several servers the writer, at this address, without asking any: for a
    /// simulation, in place of the monitor.
    pub fn begin_cluster(&mut self, at: &Arc<Address>) {
        self.cluster = Cluster::of(&self.settings(), &self.upstream);
        let name = "simulated".into();
        let writer = Writer {
            id: ServerId(0),
            name,
            at: at.clone(),
        };
        self.upstream.follow_writer(Some(writer), "");
        self.upstream.opened(at);
    }

    /// Puts the servers that are read in force, each with its weight, and `None` for one that is
    /// down: for a simulation, in place of the monitor.
    pub fn put_readers(&self, at: &Arc<Address>, weights: &[Option<u32>]) {
        let reader = |weight: &Option<u32>| Reader {
            at: Some(at.clone()),
            weight: weight.unwrap_or(0),
            is_down: weight.is_none(),
        };
        if let Some(cluster) = &self.cluster {
            cluster.reads.replace(ReaderList {
                all: weights.iter().map(reader).collect(),
                is_numbered: true,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_another_one_once_it_differs() {
        let reads = Reads::new(1, Kind::Replication, (1, false));
        let list = |weight| ReaderList {
            all: vec![Reader {
                at: None,
                weight,
                is_down: false,
            }],
            is_numbered: true,
        };
        assert!(reads.replace(list(1)) && !reads.replace(list(1)));
        assert_eq!(reads.version(), 1);
        assert!(reads.replace(list(2)));
        assert_eq!((reads.version(), reads.list().all[0].weight), (2, 2));
    }

    #[test]
    fn what_ended_is_taken_once_and_each_reason_has_a_place() {
        let reads = Reads::new(1, Kind::Replication, (1, false));
        reads.on[0].ended(false);
        reads.on[0].ended(true);
        let traffic = reads.on[0].take();
        assert_eq!((traffic.statements, traffic.failed), (2, 1));
        assert_eq!(reads.on[0].take(), Traffic::default());
        for (place, why) in Why::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, place);
        }
        reads.count(Why::NoReader);
        assert_eq!(reads.counted().last(), Some((Why::NoReader, 1)));
    }
}
