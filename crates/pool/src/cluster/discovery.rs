//! Servers that are in use because the cluster names them.
//!
//! The problem: whoever is taken for a server is sent the accounts of the pool, and may become the
//! writer, and its name comes from another server. The mechanism: a thread looks up what the
//! servers in use name ([`::cluster::named`]), and gives those whose addresses are all within the
//! settings' networks one of a fixed number of places behind the settings' servers. A server there
//! is asked, and used once it has answered as no other server does.
//!
//! Invariants: at most [`DISCOVERED_MAX`] at once; the address that was checked is the one that is
//! dialled; one that is the writer, was it last, or says that it takes writes keeps its place.

use crate::auth::network::Network;
use crate::cluster::{Cluster, Known, now_ms};
use crate::config::{DiscoverySettings, Settings};
use crate::observe::log::{Event, note};
use crate::server::upstream::{Place, Upstream};
use ::cluster::{DISCOVERED_MAX, Report, Role, SERVERS_MAX, ServerId, ServerSettings};
use reactor::{Address, address::look_up};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Most names that are remembered as refused, so that each is logged once.
const REFUSED_MAX: usize = 64;
/// Characters of a name that the log has.
const NAME_SHOWN_MAX: usize = 80;

/// A server that was found.
#[derive(Debug)]
struct Found {
    address: SocketAddr,
    /// Time at which it was named last.
    named_at: u64,
}

/// Places of servers that were found, and names that were refused.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    /// Index of the first place.
    first: usize,
    places: Vec<Option<Found>>,
    /// Names that the log has.
    refused: BTreeSet<String>,
    /// Names of servers that answered, and cannot be used.
    unfit: BTreeSet<String>,
}

impl Discovery {
    /// Discovery with as many places as there may be servers behind those of the settings.
    pub(super) fn behind(configured: usize, is_on: bool) -> Discovery {
        let free = SERVERS_MAX.saturating_sub(configured).min(DISCOVERED_MAX);
        Discovery {
            first: configured,
            places: (0..if is_on { free } else { 0 }).map(|_| None).collect(),
            ..Discovery::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// True if a place is one of these.
    pub(super) fn has(&self, id: ServerId) -> bool {
        id.index() >= self.first
    }
}

/// A place that nobody has.
pub(super) fn vacant() -> ServerSettings {
    ServerSettings {
        name: String::new(),
        address: String::new(),
        role: Role::Off,
        weight: 0,
    }
}

/// The address to dial of those that a name means.
///
/// # Errors
/// Why it is not dialled.
fn admit(
    found: &[Address],
    networks: &[Network],
    listen: &[Address],
) -> Result<SocketAddr, String> {
    let mut first = None;
    for address in found {
        let Address::Tcp(address) = address else {
            return Err("it is no address of the network".into());
        };
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if !networks.iter().any(|network| admits(network, address.ip())) {
            return Err(format!("{} is not in discover_networks", address.ip()));
        }
        if listen.iter().any(|at| is_own(at, address)) {
            return Err("it is this pool".into());
        }
        first.get_or_insert(address);
    }
    first.ok_or_else(|| "it has no address".into())
}

/// True if a network is meant to have servers at this address: one of this host only where the
/// network has nothing else.
fn admits(network: &Network, ip: IpAddr) -> bool {
    let is_none = ip.is_unspecified()
        || ip.is_multicast()
        || matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !is_none && network.contains(ip) && (!ip.is_loopback() || network.is_loopback())
}

/// True if this listener of the pool is at an address.
fn is_own(listener: &Address, address: SocketAddr) -> bool {
    let Address::Tcp(own) = listener else {
        return false;
    };
    let is_here = || UdpSocket::bind((address.ip(), 0)).is_ok();
    own.port() == address.port()
        && (own.ip() == address.ip() || (own.ip().is_unspecified() && is_here()))
}

impl Known {
    /// Takes the names of a round, each with what it means.
    fn take_names(&mut self, named: &[(String, Result<SocketAddr, String>)], keep: u64) -> bool {
        let now = now_ms();
        for (name, meant) in named {
            match meant {
                Ok(address) => self.take_name(name, *address, now),
                Err(why) => self.refuse(name, why),
            }
        }
        let mut has_left = false;
        for place in 0..self.discovery.len() {
            let is_old = |found: &Found| now.saturating_sub(found.named_at) >= keep;
            let id = self.id_of(place);
            if self.discovery.places[place].as_ref().is_some_and(is_old) && self.view.may_leave(id)
            {
                self.vacate(id, "the cluster names it no more");
                has_left = true;
            }
        }
        has_left
    }

    fn id_of(&self, place: usize) -> ServerId {
        ServerId(u16::try_from(self.discovery.first + place).unwrap_or(u16::MAX))
    }

    /// Notes that a server is named, or has it asked from now on.
    fn take_name(&mut self, name: &str, address: SocketAddr, now: u64) {
        let is_it = |it: &ServerSettings| it.name == name;
        if let Some(index) = self.settings.servers.iter().position(is_it) {
            let place = index.checked_sub(self.discovery.first);
            match place.and_then(|place| self.discovery.places[place].as_mut()) {
                // Its name has another address: it is another server, as far as is known.
                Some(found) if found.address != address => found.named_at = 0,
                Some(found) => found.named_at = now,
                None => {}
            }
            return;
        }
        let at = Address::Tcp(address);
        let known = self.addresses.iter().flatten().any(|it| **it == at);
        let listed = (self.places.iter().flatten()).any(|it| it.is_at(&at));
        if known || listed || self.discovery.unfit.contains(name) {
            return;
        }
        let Some(place) = self.discovery.places.iter().position(Option::is_none) else {
            return self.refuse(name, "there are as many as there may be");
        };
        let id = self.id_of(place);
        self.discovery.places[place] = Some(Found {
            address,
            named_at: now,
        });
        self.places[id.index()] = Some(Arc::new(Upstream::of_server(Place::Fixed(at), id)));
        let server = &mut self.settings.servers[id.index()];
        (server.name, server.address) = (name.into(), name.into());
        note(
            Event::ServerFound,
            format_args!("'{name}' at {address} is named by the cluster, and is asked"),
        );
    }

    fn refuse(&mut self, name: &str, why: &str) {
        let refused = &mut self.discovery.refused;
        if refused.len() >= REFUSED_MAX || !refused.insert(name.into()) {
            return;
        }
        let shown: String = name.escape_debug().take(NAME_SHOWN_MAX).collect();
        note(
            Event::ServerRefused,
            format_args!("'{shown}' is named by the cluster, and not used: {why}"),
        );
        if refused.len() == REFUSED_MAX {
            note(
                Event::ServerRefused,
                format_args!("names that are refused from now on are not logged"),
            );
        }
    }

    /// Uses a server that was found, once it has answered as no other does.
    pub(super) fn judge_found(&mut self, id: ServerId, report: &Report) {
        let Some(identity) = report.identity() else {
            return;
        };
        let same = |&(index, server): &(usize, &ServerSettings)| {
            let report = self.view.servers[index].report.as_ref();
            index != id.index()
                && server.role != Role::Off
                && report.and_then(Report::identity).as_ref() == Some(&identity)
        };
        let twin = self.settings.servers.iter().enumerate().find(same);
        let twin = twin.map(|(index, server)| (index, server.name.clone()));
        match (self.discovery.has(id), twin) {
            (true, None) => {
                let server = &mut self.settings.servers[id.index()];
                (server.role, server.weight) = (Role::Auto, 1);
            }
            (true, Some((_, other))) if self.settings.servers[id.index()].role == Role::Off => {
                self.leave_unfit(id, &format!("it is '{other}'"));
            }
            (false, Some((index, _))) => {
                let twin = ServerId(u16::try_from(index).unwrap_or(u16::MAX));
                if self.discovery.has(twin) && self.view.may_leave(twin) {
                    let name = self.settings.name(id).to_owned();
                    self.leave_unfit(twin, &format!("it is '{name}'"));
                }
            }
            _ => {}
        }
    }

    /// Gives up a server that was found, for good.
    pub(super) fn leave_unfit(&mut self, id: ServerId, why: &str) {
        let name = self.settings.name(id).to_owned();
        if self.discovery.unfit.len() < REFUSED_MAX {
            self.discovery.unfit.insert(name.clone());
        }
        self.refuse(&name, why);
        self.vacate(id, why);
    }

    fn vacate(&mut self, id: ServerId, why: &str) {
        let index = id.index();
        note(
            Event::ServerGone,
            format_args!("'{}' is not asked any more: {why}", self.settings.name(id)),
        );
        self.view = self.view.vacated(id, now_ms());
        self.observations.retain(|one| one.server != id);
        self.settings.servers[index] = vacant();
        (
            self.places[index],
            self.addresses[index],
            self.traits[index],
        ) = (None, None, None);
        self.discovery.places[index - self.discovery.first] = None;
    }
}

impl Cluster {
    /// Starts the thread that looks for servers, where the settings want one.
    pub(super) fn start_discovery(self: &Arc<Self>) -> Result<(), String> {
        let settings = self.settings();
        let cluster = settings.cluster.as_ref();
        let Some(discovery) = cluster.and_then(|it| it.discovery.clone()) else {
            return Ok(());
        };
        let pool = self.clone();
        let thread = std::thread::Builder::new().name("discovery".into());
        let started = thread.spawn(move || {
            loop {
                let pause = pool.discover(&discovery, &settings);
                reactor::pause(pause);
            }
        });
        started.map_err(|error| format!("cannot start the thread that finds servers: {error}"))?;
        Ok(())
    }

    /// Looks once what the servers name; gives the time until the next look.
    fn discover(&self, discovery: &DiscoverySettings, settings: &Settings) -> Duration {
        let (names, ask_ms) = {
            let known = &mut *self.known();
            let own = &known.settings;
            let mut names = ::cluster::named(&known.view, own, now_ms());
            let listed = &own.servers[..known.discovery.first];
            names.iter_mut().for_each(|names| {
                names.retain(|name| !listed.iter().any(|it| it.address == *name));
            });
            if names.is_none() {
                // Nobody can tell who is named no more.
                let now = now_ms();
                let all = known.discovery.places.iter_mut().flatten();
                all.for_each(|found| found.named_at = now);
            }
            (names, own.ask_ms)
        };
        let meaning = |name: String| {
            let meant = ::cluster::plain_name(&name)
                .and_then(|()| look_up(&name))
                .and_then(|found| admit(&found, &discovery.networks, &settings.listen));
            (name, meant)
        };
        // Looking up names may take long.
        let named: Vec<_> = names.into_iter().flatten().map(meaning).collect();
        let keep = u64::try_from(discovery.keep.as_millis()).unwrap_or(u64::MAX);
        let known = &mut *self.known();
        if known.take_names(&named, keep) {
            self.decide_anew(known);
        }
        for (index, place) in known.places.iter().enumerate() {
            if place.is_some() && known.addresses[index].is_none() {
                self.reads.on[index].total.store(0, Relaxed);
                self.members[index].trigger.fire();
            }
        }
        Duration::from_millis(ask_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::cluster::{Observation, State, Traffic};

    const TABLES: &str =
        "[cluster]\ndiscover = true\ndiscover_networks = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n";
    const ONE: ServerId = ServerId(0);
    const FIRST: ServerId = ServerId(2);

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|it| Network::parse(it).unwrap()).collect()
    }

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    fn named(name: &str) -> (String, Result<SocketAddr, String>) {
        (name.into(), Ok(name.parse().unwrap()))
    }

    /// Takes an answer of a server, with its replicas.
    fn answered(cluster: &Cluster, id: ServerId, server_id: u64, replicas: &[&str]) {
        let place = cluster.place(id).unwrap();
        let report = Report {
            server_id,
            read_only: server_id != 1,
            replicas: replicas.iter().map(|it| (*it).to_owned()).collect(),
            ..Report::default()
        };
        let observation = Observation {
            server: id,
            at: now_ms(),
            took_ms: 1,
            answer: Ok(report),
            traffic: Traffic::default(),
        };
        let at = Arc::new(tcp(&format!("10.0.0.{}:3306", id.0 + 1)));
        cluster.noted(observation, &place, Some(at));
    }

    fn names(cluster: &Cluster) -> Vec<String> {
        cluster.shown().into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn only_addresses_within_the_networks_are_dialled() {
        let within = networks(&["10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"]);
        let listen = [tcp("0.0.0.0:6033"), tcp("10.0.0.9:6034")];
        let admit = |found: &[&str], networks: &[Network]| {
            let found: Vec<Address> = found.iter().map(|it| tcp(it)).collect();
            admit(&found, networks, &listen)
        };
        let good = admit(&["10.0.0.1:3306", "10.0.0.2:3306"], &within[..1]);
        assert_eq!(good.unwrap().to_string(), "10.0.0.1:3306");
        let mapped = admit(&["[::ffff:10.0.0.1]:3306"], &within[..1]);
        assert_eq!(mapped.unwrap().to_string(), "10.0.0.1:3306");
        for (found, networks, why) in [
            (&["192.0.2.1:3306"][..], &within[..1], "is not in"),
            // One of several addresses is enough to refuse a name.
            (
                &["10.0.0.1:3306", "192.0.2.1:3306"],
                &within[..1],
                "is not in",
            ),
            (&["[2001:db9::1]:3306"], &within[..2], "is not in"),
            (&["127.0.0.1:3306"], &within[..], "is not in"),
            (&["[::ffff:127.0.0.1]:3306"], &within[..], "is not in"),
            (&["0.0.0.0:3306"], &within[..], "is not in"),
            (&["224.0.0.1:3306"], &within[..], "is not in"),
            (&["255.255.255.255:3306"], &within[..], "is not in"),
            (&["10.0.0.9:6034"], &within[..], "it is this pool"),
            (&["10.0.0.1:3306"], &[], "is not in"),
            (&[], &within[..], "no address"),
        ] {
            let refused = admit(found, networks).unwrap_err();
            assert!(refused.contains(why), "{found:?}: {refused}");
        }
        let here = networks(&["127.0.0.0/8"]);
        assert!(admit(&["127.0.0.3:3306"], &here).is_ok());
        let own = admit(&["127.0.0.3:6033"], &here).unwrap_err();
        assert_eq!(own, "it is this pool");
    }

    #[test]
    fn a_server_that_is_named_is_used_once_it_has_answered_and_leaves_when_it_is_named_no_more() {
        let cluster = Cluster::of_tests(TABLES);
        answered(&cluster, ONE, 1, &["10.0.0.3:3306"]);
        cluster.known().take_names(&[named("10.0.0.3:3306")], 1);
        assert_eq!(names(&cluster), ["one", "two", "10.0.0.3:3306"]);
        let shown = &cluster.shown()[2];
        assert_eq!((shown.role, shown.state), ("discovered", State::Off));
        answered(&cluster, FIRST, 3, &[]);
        assert_ne!(cluster.shown()[2].state, State::Off);
        cluster
            .known()
            .take_names(&[named("10.0.0.3:3306")], 60_000);
        assert!(!cluster.known().take_names(&[], 60_000));
        let place = cluster.place(FIRST).unwrap();
        assert!(cluster.known().take_names(&[], 0));
        assert_eq!(names(&cluster), ["one", "two"]);
        assert!(cluster.named("").is_err());
        // An answer that comes late is no other server's.
        cluster
            .known()
            .take_names(&[named("10.0.0.4:3306")], 60_000);
        assert!(!cluster.known().is_at(FIRST, &place));
    }

    #[test]
    fn a_server_under_another_name_is_not_used_twice() {
        let cluster = Cluster::of_tests(TABLES);
        answered(&cluster, ONE, 1, &[]);
        // By the address at which it was asked; by its number.
        cluster.known().take_names(&[named("10.0.0.1:3306")], 1);
        assert_eq!(names(&cluster), ["one", "two"]);
        cluster.known().take_names(&[named("10.0.0.77:3306")], 1);
        answered(&cluster, FIRST, 1, &[]);
        assert_eq!(names(&cluster), ["one", "two"]);
        cluster.known().take_names(&[named("10.0.0.77:3306")], 1);
        assert_eq!(names(&cluster), ["one", "two"], "it stays refused");
    }

    #[test]
    fn the_writer_and_one_that_takes_writes_keep_their_places() {
        let cluster = Cluster::of_tests(TABLES);
        cluster
            .known()
            .take_names(&[named("10.0.0.3:3306")], 60_000);
        answered(&cluster, FIRST, 1, &[]);
        cluster.known().take_names(&[], 0);
        assert_eq!(names(&cluster), ["one", "two", "10.0.0.3:3306"]);
    }

    #[test]
    fn of_a_thousand_names_few_are_used_and_few_are_logged() {
        let cluster = Cluster::of_tests(TABLES);
        let named: Vec<_> = (0..1000u32)
            .map(|at| named(&format!("10.1.{}.{}:3306", at / 250, at % 250)))
            .collect();
        let known = &mut *cluster.known();
        known.take_names(&named, 1_000_000);
        let used = known.places.iter().flatten().count();
        assert_eq!(used, 2 + DISCOVERED_MAX);
        assert_eq!(known.discovery.refused.len(), REFUSED_MAX);
        for odd in ["\u{202e}\n<b>", "x:0"] {
            known.refuse(odd, "it is odd");
        }
        assert_eq!(known.discovery.refused.len(), REFUSED_MAX);
    }

    #[test]
    fn discovery_has_no_place_where_it_is_off() {
        let cluster = Cluster::of_tests("");
        cluster
            .known()
            .take_names(&[named("10.0.0.3:3306")], 60_000);
        assert_eq!(names(&cluster), ["one", "two"]);
        assert!(!cluster.discovers());
    }
}
