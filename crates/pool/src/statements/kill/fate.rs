//! Fate of a KILL's victim.
//!
//! What was not sent is answered by the pool. What runs alone on its backend is ended by a KILL of
//! the server; what shares its backend in flight is a plain SELECT, whose client is answered and
//! whose reply is dropped, so that the others' are not touched. Closing a client ends its
//! connection, and the backend with it that runs nothing else.
//!
//! Invariants: nothing is changed here: the group does what a [`Fate`] says; nobody's client is
//! killed by another account, nor one whose name is not proven.

use crate::backend::Backend;
use crate::backend::pools::BackendPools;
use crate::client::ClientState;
use crate::client::clients::Clients;
use crate::group::tokens::{BackendId, ClientId};
use crate::server::fleet::hash_of;
use crate::statements::kill::jobs::{Aim, Job, KillAsk, KillEnd};
use reactor::Slots;

/// Action on a victim.
#[derive(Debug)]
pub(crate) enum Fate {
    /// Nothing: this is told.
    Ended(KillEnd),
    /// Interruption of a client that waits for a backend.
    GiveUp(ClientId),
    /// Interruption in place of the statement of a client whose backend is being brought into its
    /// state.
    Instead(ClientId),
    /// Its statement leaves those in flight on this backend.
    LeavePipeline {
        victim: ClientId,
        backend: BackendId,
    },
    /// Question to the server to end its statement, which runs alone on this backend.
    Interrupt { backend: BackendId, job: Job },
    /// Close of the client.
    Close(ClientId),
    /// Close the victim and its backend with it, so that nobody else can be hit; the server is
    /// asked to end what runs there.
    CloseWith {
        victim: ClientId,
        backend: BackendId,
        job: Job,
    },
}

impl Fate {
    /// The client that it hits.
    pub(crate) fn victim(&self) -> Option<ClientId> {
        match self {
            Fate::Ended(_) => None,
            Fate::GiveUp(victim) | Fate::Instead(victim) | Fate::Close(victim) => Some(*victim),
            Fate::LeavePipeline { victim, .. } | Fate::CloseWith { victim, .. } => Some(*victim),
            Fate::Interrupt { job, .. } => job.aim.map(|aim| aim.victim),
        }
    }
}

impl<S> Backend<S> {
    /// A KILL for what runs here, if nothing is in flight but the victim's.
    fn kill_job(&self, ask: &KillAsk, victim: ClientId, aim: Option<Aim>) -> Option<Job> {
        let mut flight = self.flight.iter();
        let alone = flight.all(|c| c.owner == Some(victim));
        alone.then(|| Job {
            asker: ask.asker,
            at: self.at().clone(),
            pool: self.pool,
            thread: self.thread,
            aim,
        })
    }
}

impl KillAsk {
    /// Decides its fate in the group that has its victim.
    pub(crate) fn fate<S>(
        &self,
        clients: &Clients<S>,
        backends: &Slots<Backend<S>, BackendId>,
        pools: &BackendPools,
    ) -> Fate {
        let Some((victim, client)) = clients.with_id(self.id) else {
            return Fate::Ended(KillEnd::Unknown(self.id));
        };
        let state = client.state();
        let pool = pools.pools.get(client.pool as usize);
        // Nobody can tell whose it will be while its name is not proven.
        use ClientState::{Accepted, Greeted, Proving, Verifying};
        let proven = !matches!(state, Accepted | Greeted | Proving | Verifying)
            && client.identity.is_known();
        let user = pool.map(|pool| &pool.key.user);
        let theirs = match self.account {
            Some(hash) => proven && user.is_some_and(|user| hash_of(user) == hash),
            None => (self.user.as_ref()).is_none_or(|asker| proven && user == Some(asker)),
        };
        if !theirs {
            return Fate::Ended(KillEnd::NotOwner(self.id));
        }
        let runs = matches!(state, ClientState::Running | ClientState::Feeding);
        let Some(backend_id) = client.backend().filter(|_| runs) else {
            return match state {
                _ if !self.query => Fate::Close(victim),
                ClientState::Waiting => Fate::GiveUp(victim),
                ClientState::Restoring if !client.is_logging_in() => Fate::Instead(victim),
                // There is nothing to interrupt.
                _ => Fate::Ended(KillEnd::Done),
            };
        };
        let backend = client.backend_in(backends);
        if !self.query {
            let job = backend.and_then(|backend| backend.kill_job(self, victim, None));
            return match job {
                Some(job) => Fate::CloseWith {
                    victim,
                    backend: backend_id,
                    job,
                },
                None => Fate::Close(victim),
            };
        }
        let Some(backend) = backend else {
            return Fate::Ended(KillEnd::Done);
        };
        let Some(sent) = backend.flight.back().map(|command| command.sent) else {
            return Fate::Ended(KillEnd::Done);
        };
        let aim = Aim {
            backend: backend_id,
            victim,
            sent,
        };
        match backend.kill_job(self, victim, Some(aim)) {
            Some(job) => Fate::Interrupt {
                backend: backend_id,
                job,
            },
            // It stands behind a reply of nobody; its session is on this backend alone.
            None if client.session.is_held()
                || client.session.is_left_there()
                || backend.session.in_transaction() =>
            {
                Fate::Close(victim)
            }
            None => Fate::LeavePipeline {
                victim,
                backend: backend_id,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::pools::PoolKey;
    use crate::backend::{InFlight, Purpose};
    use crate::client::Client;
    use crate::client::identity::Proof;
    use crate::errors::reasons::PinReason;
    use reactor::Time;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    const ID: u32 = 7;
    const NOW: Time = Time(1_000);

    struct Bench {
        clients: Clients<()>,
        backends: Slots<Backend<()>, BackendId>,
        pools: BackendPools,
    }

    impl Bench {
        /// A client of `app` with the id [`ID`], between its statements.
        fn new() -> (Bench, ClientId) {
            let mut client = Client::of_tests(NOW, Rc::default());
            assert!(client.change_state(ClientState::Idle, NOW));
            client.login = None;
            client.identity.set_id(ID);
            client.identity.let_in_as(0);
            let mut bench = Bench {
                clients: Clients::default(),
                backends: Slots::default(),
                pools: BackendPools::default(),
            };
            bench.pools.add(PoolKey::of_user("app"), |_| true);
            let key = bench.clients.insert(client);
            (bench, key)
        }

        /// Puts its statement in flight, and those of `others` behind it.
        fn runs(&mut self, key: ClientId, others: &[ClientId]) -> BackendId {
            let backend_id = (self.backends).insert(Backend::of_tests(NOW, Rc::default()));
            let client = self.clients.get_mut(key).unwrap();
            assert!(client.change_state(ClientState::Running, NOW));
            let backend = self.backends.get_mut(backend_id).unwrap();
            backend.thread = 42;
            client.bind(backend, (key, backend_id));
            for owner in [key].iter().chain(others) {
                let sent = InFlight::own(Some(*owner), Purpose::Statement, ReplyShape::Results);
                backend.flight.expect(sent);
            }
            backend_id
        }

        fn fate(&self, query: bool, user: Option<&str>) -> Fate {
            let ask = KillAsk {
                asker: None,
                id: ID,
                query,
                user: user.map(str::to_owned),
                account: None,
            };
            ask.fate(&self.clients, &self.backends, &self.pools)
        }
    }

    #[test]
    fn only_ones_own_clients_may_be_killed_and_only_proven_ones() {
        let (mut bench, key) = Bench::new();
        let denied = Fate::Ended(KillEnd::NotOwner(ID));
        assert_eq!(
            format!("{:?}", bench.fate(false, Some("other"))),
            format!("{denied:?}")
        );
        assert!(matches!(bench.fate(false, Some("app")), Fate::Close(victim) if victim == key));
        bench
            .clients
            .get_mut(key)
            .unwrap()
            .identity
            .set_proof(Proof::Missing);
        assert!(matches!(
            bench.fate(false, Some("app")),
            Fate::Ended(KillEnd::NotOwner(ID))
        ));
        assert!(
            matches!(bench.fate(false, None), Fate::Close(_)),
            "an administrator"
        );
        bench.clients.remove(key);
        assert!(matches!(
            bench.fate(false, None),
            Fate::Ended(KillEnd::Unknown(ID))
        ));
    }

    #[test]
    fn what_was_not_sent_is_answered_here() {
        let (mut bench, key) = Bench::new();
        assert!(matches!(bench.fate(true, None), Fate::Ended(KillEnd::Done)));
        let client = bench.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Waiting, NOW));
        assert!(matches!(bench.fate(true, None), Fate::GiveUp(victim) if victim == key));
        let client = bench.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Restoring, NOW));
        assert!(matches!(bench.fate(true, None), Fate::Instead(victim) if victim == key));
        assert!(matches!(bench.fate(false, None), Fate::Close(_)));
    }

    #[test]
    fn what_runs_alone_is_ended_by_the_server() {
        let (mut bench, key) = Bench::new();
        let backend = bench.runs(key, &[]);
        let Fate::Interrupt {
            backend: there,
            job,
        } = bench.fate(true, None)
        else {
            panic!("it runs alone");
        };
        assert_eq!((there, job.thread), (backend, 42));
        assert!(
            job.aim
                .is_some_and(|aim| aim.victim == key && aim.backend == backend)
        );
        let Fate::CloseWith { victim, job, .. } = bench.fate(false, None) else {
            panic!("it runs alone");
        };
        assert!(victim == key && job.aim.is_none());
    }

    #[test]
    fn what_others_ride_with_is_left_to_them() {
        let (mut bench, key) = Bench::new();
        let backend = bench.runs(key, &[ClientId::from_parts(9, 0)]);
        let fate = bench.fate(true, None);
        assert!(
            matches!(fate, Fate::LeavePipeline { victim, backend: there }
            if victim == key && there == backend)
        );
        assert!(matches!(bench.fate(false, None), Fate::Close(_)));
    }

    #[test]
    fn who_keeps_its_session_behind_a_reply_of_nobody_is_closed() {
        let (mut bench, key) = Bench::new();
        bench.runs(key, &[ClientId::from_parts(9, 0)]);
        let client = bench.clients.get_mut(key).unwrap();
        (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        assert!(matches!(bench.fate(true, None), Fate::Close(victim) if victim == key));
    }
}
