//! Several servers: asking each of them, and sending statements to the one that is written to.
//!
//! The problem: a server that dies, is demoted or is cut off has to be left for the one that took
//! its place, without a client that notices more than its own statement's loss. The mechanism: a
//! thread for each server asks it ([`monitor`]), each answer leads to a decision
//! ([`::cluster::decide`]), and the writer of that view is what [`Upstream`] means from then on.
//! The groups close what stands elsewhere, and dial the new one once the watch knows its global
//! values.
//!
//! Invariants: one answer at a time leads to a decision, and its outcome is in force before the
//! next; a server that a client could tell from the one at the start ([`traits`]) by more than its
//! version or collation is never used.

pub(crate) mod discovery;
pub(crate) mod elsewhere;
pub(crate) mod leaving_readers;
pub(crate) mod monitor;
pub(crate) mod reads;
pub(crate) mod routing;
mod switch;
pub(crate) mod traits;

use crate::cluster::discovery::{Discovery, vacant};
use crate::cluster::reads::{Reads, list_of};
use crate::cluster::traits::Traits;
use crate::config::{ServerLimits, Settings};
use crate::observe::log::{Event, note};
use crate::scheduler::account_slots::AccountSlots;
use crate::server::upstream::{Place, Upstream, Writer};
use crate::server::watched::trigger::WatchTrigger;
use ::cluster::{Observation, Role, ServerId, State, Traffic, View, decide};
use reactor::{Address, Time};
use std::iter::repeat;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One of the servers.
#[derive(Debug)]
struct Member {
    /// Trigger that makes it be asked at once.
    trigger: WatchTrigger,
}

/// Facts of one server, for the console and the figures.
#[derive(Clone, Debug)]
pub(crate) struct MemberShown {
    pub(crate) name: String,
    pub(crate) address: String,
    /// Its role, or that the cluster has named it.
    pub(crate) role: &'static str,
    pub(crate) state: State,
    pub(crate) since: Duration,
    pub(crate) why: String,
    pub(crate) version: Option<String>,
    pub(crate) lag: Option<Duration>,
    /// Statements that it has answered as a reader.
    pub(crate) reads: u64,
    /// Connections to it, and how many there may be.
    pub(crate) backends: (usize, Option<usize>),
    /// Number of its connections that run something, and how many may, where it limits that.
    pub(crate) running: Option<(usize, Option<usize>)>,
}

/// Knowledge of the servers.
#[derive(Debug)]
struct Known {
    settings: ::cluster::Settings,
    /// Places of the servers, whose names are looked up.
    places: Vec<Option<Arc<Upstream>>>,
    /// Servers behind those of the settings.
    discovery: Discovery,
    /// Latest of each server that was asked.
    observations: Vec<Observation>,
    /// Address at which each was asked.
    addresses: Vec<Option<Arc<Address>>>,
    /// Traits that clients could tell each by.
    traits: Vec<Option<Traits>>,
    /// Traits of the server that was the writer at the start.
    reference: Option<Traits>,
    view: View,
}

impl Known {
    /// True if a server is at this place still.
    fn is_at(&self, id: ServerId, place: &Arc<Upstream>) -> bool {
        let at = &self.places[id.index()];
        at.as_ref().is_some_and(|at| Arc::ptr_eq(at, place))
    }
}

/// Several servers, of which one is written to.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: Vec<Member>,
    answer_max: Duration,
    known: Mutex<Known>,
    /// Settings in force, with the account that asks.
    current: Mutex<Arc<Settings>>,
    /// The writer, as the groups know it.
    upstream: Arc<Upstream>,
    /// Held during a switchover.
    switching: Mutex<()>,
    switch_max: Duration,
    promote_command: Vec<String>,
    /// Connections to each server.
    connections: Vec<Arc<AccountSlots>>,
    /// True if the log has it that no server names its replicas.
    is_unnamed: AtomicBool,
    /// Error of the last statement that failed on the writer for want of room; 0: none did.
    full: AtomicU16,
    reads: Reads,
}

/// Milliseconds of the clock that decisions go by.
fn now_ms() -> u64 {
    Time::now().0 / 1_000_000
}

impl Cluster {
    /// The servers of the settings, where there are several. `upstream` follows their writer.
    pub(crate) fn of(settings: &Settings, upstream: &Arc<Upstream>) -> Option<Arc<Cluster>> {
        let several = settings.cluster.as_ref()?;
        let place = |(id, place): (_, &Place)| {
            Some(Arc::new(Upstream::of_server(place.clone(), ServerId(id))))
        };
        let mut places: Vec<_> = (0..).zip(&several.places).map(place).collect();
        let discovery = Discovery::behind(places.len(), several.discovery.is_some());
        let mut decision = several.decision.clone();
        let free = std::iter::repeat_with(vacant).take(discovery.len());
        decision.servers.extend(free);
        let count = decision.servers.len();
        places.resize(count, None);
        let member = || Member {
            trigger: WatchTrigger::default(),
        };
        Some(Arc::new(Cluster {
            members: std::iter::repeat_with(member).take(count).collect(),
            answer_max: several.answer_max,
            known: Mutex::new(Known {
                view: View::new(&decision, now_ms()),
                settings: decision,
                places,
                discovery,
                observations: Vec::with_capacity(count),
                addresses: vec![None; count],
                traits: vec![None; count],
                reference: None,
            }),
            current: Mutex::new(Arc::new(settings.clone())),
            upstream: upstream.clone(),
            switching: Mutex::default(),
            switch_max: several.switch_max,
            promote_command: several.promote_command.clone(),
            connections: (several.limits.iter().copied())
                .chain(repeat(ServerLimits::default()))
                .map(AccountSlots::of_server)
                .take(count)
                .collect(),
            is_unnamed: AtomicBool::new(false),
            full: AtomicU16::new(0),
            reads: Reads::new(
                count,
                several.decision.kind,
                (
                    u64::try_from(several.read_wait_max.as_millis()).unwrap_or(u64::MAX),
                    several.read_dry_run,
                ),
            ),
        }))
    }

    /// Connections to a server.
    pub(crate) fn connections(&self, id: ServerId) -> &Arc<AccountSlots> {
        &self.connections[id.index()]
    }

    /// Counts of the connections that run something, of each server that limits them.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Arc<AccountSlots>> {
        (self.connections.iter()).filter_map(|connections| connections.running())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> Arc<Settings> {
        let current = self.current.lock();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks with the account of these settings from now on.
    pub(crate) fn follow(&self, settings: &Arc<Settings>) {
        let current = self.current.lock();
        *current.unwrap_or_else(PoisonError::into_inner) = settings.clone();
    }

    /// Asks all servers at once, after a sign of another writer.
    pub(crate) fn ask_now(&self) {
        self.members.iter().for_each(|member| member.trigger.fire());
    }

    /// Takes notice of an error of a statement on the writer.
    pub(crate) fn failed_on_writer(&self, code: u16, words: &str) {
        if lacks_room(code, words) {
            self.full.store(code, Relaxed);
        }
    }

    /// Statements on a server since this was asked last.
    fn traffic(&self, id: ServerId) -> Traffic {
        let is_writer = self.known().view.writer == Some(id);
        let full = if is_writer {
            self.full.swap(0, Relaxed)
        } else {
            0
        };
        Traffic {
            full,
            ..self.reads.on[id.index()].take()
        }
    }

    /// Takes notice of what came of asking a server at this place, and decides. Gives the time
    /// until that server is asked again.
    fn noted(
        &self,
        observation: Observation,
        place: &Arc<Upstream>,
        at: Option<Arc<Address>>,
    ) -> Duration {
        let id = observation.server;
        let known = &mut *self.known();
        if !known.is_at(id, place) {
            return Duration::ZERO;
        }
        if at.is_some() {
            known.addresses[id.index()] = at;
        }
        known.observations.retain(|one| one.server != id);
        let report = observation.answer.clone().ok();
        known.observations.push(observation);
        if let Some(report) = report.filter(|_| known.discovery.len() > 0) {
            known.judge_found(id, &report);
        }
        self.decide_anew(known);
        Duration::from_millis(known.view.ask_after_ms(id, &known.settings))
    }

    fn decide_anew(&self, known: &mut Known) {
        let view = decide(&known.observations, &known.view, &known.settings, now_ms());
        self.put_in_force(known, view);
    }

    /// Says what is new in a view, and has statements go to its writer.
    fn put_in_force(&self, known: &mut Known, view: View) {
        let servers = &known.settings.servers;
        for (server, (old, new)) in servers
            .iter()
            .zip(known.view.servers.iter().zip(&view.servers))
        {
            if old.state != new.state && !server.name.is_empty() {
                let (name, state) = (&server.name, new.state.word());
                note(
                    Event::ServerState,
                    format_args!("'{name}' is {state}, was {}: {}", old.state.word(), new.why),
                );
            }
        }
        let writer = view.writer.and_then(|id| {
            Some(Writer {
                id,
                name: servers[id.index()].name.clone(),
                at: known.addresses[id.index()].clone()?,
            })
        });
        let name = |id: Option<ServerId>| id.map_or("none", |id| &servers[id.index()].name);
        if view.writer != known.view.writer {
            note(
                Event::WriterMoved,
                format_args!(
                    "the writer is {}, was {}: {}",
                    name(view.writer),
                    name(known.view.writer),
                    view.why
                ),
            );
        }
        let numbers = |id: ServerId| {
            known.traits[id.index()]
                .as_ref()
                .is_some_and(Traits::numbers)
        };
        let list = list_of(&view, &known.addresses, view.writer.is_some_and(numbers));
        self.upstream.follow_writer(writer, &view.why);
        // Pools of a fleet read from the writer only, which has their locks.
        if self.settings().fleet.is_none() && self.reads.replace(list) {
            self.upstream.tell_groups();
        }
        known.view = view;
    }

    /// Takes the traits of a server that has let us in. One that cannot take the place of the
    /// others is used no more.
    fn meet(&self, id: ServerId, place: &Arc<Upstream>, traits: Traits) {
        let known = &mut *self.known();
        if !known.is_at(id, place) {
            return;
        }
        if let Some(reference) = &known.reference {
            let server = &mut known.settings.servers[id.index()];
            say_differences(&server.name, reference, &traits);
            if let Some(why) = reference.unlike(&traits) {
                if known.discovery.has(id) {
                    return known.leave_unfit(id, &why);
                }
                if server.role != Role::Off {
                    note(
                        Event::ServerUnfit,
                        format_args!("'{}' is not used until a restart: {why}", server.name),
                    );
                }
                server.role = Role::Off;
            }
        }
        known.traits[id.index()] = Some(traits);
    }

    /// Compares the servers that have answered with the writer, before anybody is served.
    ///
    /// # Errors
    /// A sentence: a server that could not take the writer's place.
    pub(crate) fn compare(&self) -> Result<(), String> {
        let known = &mut *self.known();
        let writer = (known.view.writer).and_then(|id| known.traits[id.index()].clone());
        known.reference = writer;
        let Some(reference) = &known.reference else {
            return Ok(());
        };
        let mut unfit = Vec::new();
        for (id, (server, traits)) in (0..)
            .map(ServerId)
            .zip(known.settings.servers.iter().zip(&known.traits))
        {
            let Some(traits) = traits.as_ref().filter(|_| server.role != Role::Off) else {
                continue;
            };
            say_differences(&server.name, reference, traits);
            if let Some(why) = reference.unlike(traits) {
                if known.discovery.has(id) {
                    unfit.push((id, why));
                    continue;
                }
                return Err(format!(
                    "server '{}': {why}; give it role = \"off\", or take it out",
                    server.name
                ));
            }
        }
        for (id, why) in unfit {
            known.leave_unfit(id, &why);
        }
        self.decide_anew(known);
        Ok(())
    }

    /// All servers, in the order of the settings.
    pub(crate) fn shown(&self) -> Vec<MemberShown> {
        let known = self.known();
        let now = now_ms();
        let servers = known.settings.servers.iter().zip(&known.view.servers);
        let servers = (0..).map(ServerId).zip(servers).zip(&self.reads.on);
        let named = servers.filter(|((_, (server, _)), _)| !server.name.is_empty());
        let shown = named.map(|((id, (server, state)), on)| {
            let is_found = known.discovery.has(id);
            let report = state.report.as_ref();
            let lag = report.and_then(|it| it.sources.iter().filter_map(|one| one.lag_ms).max());
            MemberShown {
                name: server.name.clone(),
                address: server.address.clone(),
                role: if is_found {
                    "discovered"
                } else {
                    word_of(server.role)
                },
                state: state.state,
                since: Duration::from_millis(now.saturating_sub(state.since)),
                why: match is_found && server.role == Role::Off {
                    true => "it has not answered yet".into(),
                    false => state.why.clone(),
                },
                version: report.map(|report| report.version.clone()),
                lag: lag.map(Duration::from_millis),
                reads: on.total.load(Relaxed),
                backends: self.connections(id).used(),
                running: self.connections(id).running().map(|running| running.used()),
            }
        });
        shown.collect()
    }

    /// The server of this name.
    fn named(&self, name: &str) -> Result<ServerId, String> {
        let known = self.known();
        let found = (0..)
            .zip(&known.settings.servers)
            .find(|(_, server)| server.name == name && !name.is_empty());
        found
            .map(|(at, _)| ServerId(at))
            .ok_or_else(|| format!("there is no server '{name}'; SHOW SERVERS has their names"))
    }

    /// Takes the word of an operator that a server takes no writes, with a reason; `None` takes it
    /// back.
    ///
    /// # Errors
    /// That there is no such server.
    pub(crate) fn fence(&self, name: &str, why: Option<&str>) -> Result<(), String> {
        let id = self.named(name)?;
        let known = &mut *self.known();
        known.view = known.view.fenced(id, why);
        self.decide_anew(known);
        self.ask_now();
        Ok(())
    }

    /// True if servers are found that the cluster names.
    fn discovers(&self) -> bool {
        self.known().discovery.len() > 0
    }

    fn kind(&self) -> ::cluster::Kind {
        self.known().settings.kind
    }

    /// Changes of the writer.
    pub(crate) fn epoch(&self) -> u64 {
        self.known().view.epoch
    }
}

/// `ER_DISK_FULL`, `ER_RECORD_FILE_FULL`.
const FULL: [u16; 2] = [1021, 1114];

/// True of an error for want of room, on a disk as a rule.
fn lacks_room(code: u16, words: &str) -> bool {
    FULL.contains(&code)
        || ["errno: 28", "No space left"]
            .iter()
            .any(|it| words.contains(it))
}

/// The word for a role in the settings.
pub(crate) fn word_of(role: Role) -> &'static str {
    match role {
        Role::Auto => "auto",
        Role::Writer => "writer",
        Role::Reader => "reader",
        Role::Off => "off",
    }
}

/// Names what clients could tell a server by, and what does not keep it from being used.
fn say_differences(name: &str, reference: &Traits, traits: &Traits) {
    let differences = reference.differences(traits);
    if !differences.is_empty() {
        note(
            Event::Warning,
            format_args!(
                "server '{name}' differs from the writer at the start: {}",
                differences.join(", ")
            ),
        );
    }
}

#[cfg(test)]
impl Cluster {
    /// Two servers, and these tables of the settings.
    pub(crate) fn of_tests(tables: &str) -> Arc<Cluster> {
        let text = format!(
            "listen = [\"127.0.0.1:6033\"]\n[[server]]\nname = \"one\"\naddress = \"127.0.0.1:1\"\n\
             [[server]]\nname = \"two\"\naddress = \"127.0.0.1:2\"\n\
             {tables}[[user]]\nname = \"a\"\npassword = \"b\"\n"
        );
        let settings = crate::config::Raw::parse(&text).and_then(crate::config::Raw::check);
        let settings = settings.unwrap();
        let upstream = Arc::new(Upstream::new(settings.backend.clone()));
        Cluster::of(&settings, &upstream).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_room_is_known_by_number_or_words() {
        assert!(lacks_room(1021, "") && lacks_room(1114, "The table 't' is full"));
        let words = "Error writing file 'log' (errno: 28 \"No space left on device\")";
        assert!(lacks_room(1026, words));
        assert!(!lacks_room(1026, "Error writing file 'log' (errno: 5)"));
        assert!(!lacks_room(1290, "read-only"));
    }

    #[test]
    fn pools_of_a_fleet_read_from_the_writer_only() {
        for (fleet, is_read) in [("", true), ("[fleet]\nname = \"shop\"\n", false)] {
            let cluster = Cluster::of_tests(fleet);
            let known = &mut *cluster.known();
            let mut view = known.view.clone();
            (view.readers, view.servers[0].weight) = (vec![ServerId(0)], 1);
            cluster.put_in_force(known, view);
            assert_eq!(cluster.reads().list().takes_reads(), is_read);
        }
    }
}
