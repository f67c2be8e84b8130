//! The server as a place: where it is, and whether it can be reached.
//!
//! The problems: a name means other addresses after a failover, and looking it up may take seconds;
//! a server that is known to be gone should not cost each statement its whole `wait_ms_max`, and
//! one that is back should not be found only when the back-off of some dial ends.
//!
//! The mechanism. A name is looked up by a thread of its own, when somebody dials and the last
//! look-up is older than [`LOOKED_UP_FOR`]. A group that dials waits for it, [`PATIENCE`] at most,
//! and then uses what is known. All groups dial one address, the one that worked last; when a dial
//! there fails, the next one is tried. Backends at addresses that the name no longer means are
//! closed as soon as they are free.
//!
//! A dial that finds nobody begins an outage, a login that succeeds ends it, whoever made it, a
//! group or the watch: [`Upstream::failed`] and [`Upstream::reached`] are the only places that move
//! it, and log `server-lost` and `server-back`. After
//! `server_down_fail_ms` of it, what waits for a backend where there is none is refused at once
//! (`outages.rs`). The watch ([`crate::server::watch`]) finds the server's return within a
//! quarter of a second, by connections of its own; then every group dials again.
//!
//! A server may also stop without closing anything (SIGSTOP, a full disk). A statement that is not
//! answered is no sign of that, since it may run for long; a question of the watch on a connection
//! that stands is. From there on the server *is silent*, until it answers the watch or anything
//! comes from a backend: nothing new is sent to it, and after `server_down_fail_ms` nothing waits
//! for it (`outages.rs`).
//!
//! Of several servers ([`crate::cluster`]) it is the one that is written to. While that changes
//! ([`Upstream::follow_writer`]) there is no address to dial: the watch asks the new one for its
//! global values first, which sessions are restored against, and then opens the way
//! ([`Upstream::opened`]).
//!
//! Invariants: no group looks up a name; an address that is dialled is one that the last look-up
//! told, or the last that succeeded; an answer of the server, be it an error, is no outage.

use crate::observe::log::{self, note};
use cluster::ServerId;
use reactor::socket::Keepalive;
use reactor::{Address, Event, Key, Net, RealNet, Time, Token};
use std::collections::VecDeque;
use std::fmt;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Time for which a look-up is used; behind one that failed there is none for as long.
const LOOKED_UP_FOR: Duration = Duration::from_secs(1);
/// Time for which a dial waits for a look-up.
const PATIENCE: Duration = Duration::from_millis(250);
/// Time for which the first connection waits for a name, before it is said that there is none.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// Addresses of a name that are used; the rest are not.
const ADDRESSES_MAX: usize = 16;
/// Time after which another address is tried beside one that does not answer.
const NEXT_AFTER: Duration = Duration::from_millis(250);
/// Time after which an address that does not answer is tried once more beside: the kernel would
/// take up to ten times as long to repeat what got lost.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Connections that are being opened at once.
const OPENING_MAX: usize = 8;
/// Address of the server, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address that needs no looking up.
    Fixed(Address),
    /// A host's name and a port, as `HOST:PORT`.
    Named(String),
    /// The one of several servers that is written to.
    Writer,
}

impl Place {
    /// Reads `HOST:PORT` or a path, as [`Address::parse`], without looking the name up.
    ///
    /// # Errors
    /// A sentence that says what was expected and what came.
    pub fn parse(text: &str) -> Result<Place, String> {
        let is_path = text.starts_with("unix:") || text.starts_with('/');
        if is_path || text.parse::<SocketAddr>().is_ok() {
            return Address::parse(text).map(Place::Fixed);
        }
        let parts = text.rsplit_once(':');
        let named = parts.filter(|(host, port)| {
            let plain = |c: char| !c.is_whitespace() && !matches!(c, ':' | '[' | ']' | '/');
            !host.is_empty() && host.chars().all(plain) && port.parse::<u16>().is_ok_and(|p| p > 0)
        });
        match named {
            Some(_) => Ok(Place::Named(text.into())),
            None => Err(format!(
                "'{text}': expected HOST:PORT or the path of a Unix socket"
            )),
        }
    }

    /// The host's name or address, unless it is a Unix socket.
    pub(crate) fn host(&self) -> Option<String> {
        match self {
            Place::Fixed(Address::Tcp(address)) => Some(address.ip().to_string()),
            Place::Fixed(Address::Unix(_)) | Place::Writer => None,
            Place::Named(name) => name.rsplit_once(':').map(|(host, _)| host.to_owned()),
        }
    }

    /// True if it is this address.
    pub(crate) fn is(&self, address: &Address) -> bool {
        matches!(self, Place::Fixed(fixed) if fixed == address)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Fixed(address) => address.fmt(f),
            Place::Named(name) => f.write_str(name),
            Place::Writer => f.write_str("the writer"),
        }
    }
}

/// The server that is written to, of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) id: ServerId,
    /// Its name in the settings.
    pub(crate) name: String,
    /// Address at which it was asked.
    pub(crate) at: Arc<Address>,
}

/// Addresses that a name is known to mean.
#[derive(Debug, Default)]
struct Known {
    /// Addresses in the order of the look-up.
    addresses: Vec<Arc<Address>>,
    /// The one to be dialled, an index.
    current: usize,
    /// Moment since which a look-up is wanted.
    wanted: Option<Time>,
    /// Moment at which the last one ended.
    looked_up: Option<Time>,
    /// Reason why it failed.
    failure: Option<String>,
    /// The writer of several servers.
    writer: Option<Writer>,
}

/// Function that tells the groups to look.
struct Tell(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// Knowledge of the server's address that all threads share.
#[derive(Debug)]
pub(crate) struct Upstream {
    place: Place,
    /// Number among several servers.
    server: Option<ServerId>,
    known: Mutex<Known>,
    changed: Condvar,
    /// Counts the changes of what the name means.
    moves: AtomicU64,
    /// Moment at which the outage began; 0: there is none.
    failing_since: AtomicU64,
    /// True if, in this outage, a connection that stood was not answered.
    stands_still: AtomicBool,
    /// True if nothing has come from the server since.
    is_silent: AtomicBool,
    /// Counts the outages that have ended.
    returns: AtomicU64,
    /// Tells the groups of changes.
    tells: OnceLock<Tell>,
    /// Tells the watch that the writer is another one.
    tells_watch: OnceLock<Tell>,
    /// Connections of the pool's own questions, which end with the writer.
    asking: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Upstream {
    /// A place about which nothing is known yet.
    #[must_use]
    pub(crate) fn new(place: Place) -> Upstream {
        let mut known = Known::default();
        if let Place::Fixed(address) = &place {
            known.addresses.push(Arc::new(address.clone()));
        }
        Upstream {
            place,
            server: None,
            known: Mutex::new(known),
            changed: Condvar::new(),
            moves: AtomicU64::new(0),
            failing_since: AtomicU64::new(0),
            stands_still: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            returns: AtomicU64::new(0),
            tells: OnceLock::new(),
            tells_watch: OnceLock::new(),
            asking: Mutex::default(),
        }
    }

    /// The place of one of several servers.
    #[must_use]
    pub(crate) fn of_server(place: Place, id: ServerId) -> Upstream {
        Upstream {
            server: Some(id),
            ..Upstream::new(place)
        }
    }

    /// Server at this address, of several; `None` if it is there no more.
    pub(crate) fn server_at(&self, at: &Address) -> Option<ServerId> {
        let writer = || Some(self.lock().writer.as_ref().filter(|one| *one.at == *at)?.id);
        self.server.or_else(writer)
    }

    /// Number of the writer.
    pub(crate) fn writer_id(&self) -> Option<ServerId> {
        self.lock().writer.as_ref().map(|writer| writer.id)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the call that tells the groups of changes.
    pub(crate) fn tell(&self, tell: Box<dyn Fn() + Send + Sync>) {
        let _ = self.tells.set(Tell(tell));
    }

    /// Tells all groups to look at what has changed.
    pub(crate) fn tell_groups(&self) {
        if let Some(tell) = self.tells.get() {
            tell.0();
        }
    }

    /// The address to be dialled; or when to ask again, while the name is being looked up.
    pub(crate) fn address(&self, now: Time) -> Result<Arc<Address>, Time> {
        let mut known = self.lock();
        let current = known.addresses.get(known.current).cloned();
        let fresh = (known.looked_up).is_some_and(|at| now.since(at) < LOOKED_UP_FOR);
        if fresh || !matches!(self.place, Place::Named(_)) {
            return current.ok_or(now + LOOKED_UP_FOR);
        }
        if known.wanted.is_none() {
            known.wanted = Some(now);
            self.changed.notify_all();
        }
        let wait_until = known.wanted.unwrap_or(now) + PATIENCE;
        match current {
            Some(current) if now >= wait_until => Ok(current),
            _ => Err(wait_until.max(now + Duration::from_millis(1))),
        }
    }

    /// All addresses, the one to be dialled first; waits for a look-up.
    fn addresses(&self, longest: Duration) -> Result<Vec<Arc<Address>>, String> {
        let begun = Time::now();
        loop {
            let now = Time::now();
            let until = match self.address(now) {
                Ok(_) => break,
                Err(until) => until,
            };
            let known = self.lock();
            if let Some(writer) = &known.writer {
                return Ok(vec![writer.at.clone()]);
            }
            if known.addresses.is_empty() && now.since(begun) >= longest.min(FIRST_PATIENCE) {
                break;
            }
            let wait = until.since(Time::now()).max(Duration::from_millis(1));
            drop(self.changed.wait_timeout(known, wait));
        }
        let known = self.lock();
        if known.addresses.is_empty() {
            let why = known.failure.as_deref().unwrap_or("no answer yet");
            return Err(match self.place {
                Place::Writer => format!("no server is known to be the writer: {why}"),
                _ => format!("cannot look up {}: {why}", self.place),
            });
        }
        let (before, from) = known.addresses.split_at(known.current);
        Ok([from, before].concat())
    }

    /// Looks the name up whenever that is wanted, on a thread of its own that ends with the
    /// process. An address needs no such thread.
    ///
    /// # Errors
    /// Why the thread cannot be started.
    pub(crate) fn keep_looking_up(self: &Arc<Upstream>) -> Result<(), String> {
        let Place::Named(name) = self.place.clone() else {
            return Ok(());
        };
        let upstream = self.clone();
        let look_up = move || {
            loop {
                let known = upstream.lock();
                let idle = (upstream.changed).wait_while(known, |known| known.wanted.is_none());
                drop(idle.unwrap_or_else(PoisonError::into_inner));
                let found = reactor::address::look_up(&name);
                upstream.looked_up(Time::now(), found);
            }
        };
        let thread = std::thread::Builder::new().name("names".into());
        let started = thread.spawn(look_up);
        started.map_err(|error| format!("cannot start the thread that looks up names: {error}"))?;
        Ok(())
    }

    /// Takes the result of a look-up.
    fn looked_up(&self, now: Time, found: Result<Vec<Address>, String>) {
        let mut known = self.lock();
        known.wanted = None;
        known.looked_up = Some(now);
        match found {
            Ok(found) => {
                if known.failure.take().is_some() && !known.addresses.is_empty() {
                    note(
                        log::Event::NameBack,
                        format_args!("{} can be looked up again", self.place),
                    );
                }
                self.replace(&mut known, found);
            }
            Err(why) => {
                if known.failure.is_none() && !known.addresses.is_empty() {
                    note(
                        log::Event::NameLost,
                        format_args!(
                            "{} cannot be looked up, its last addresses are used: {why}",
                            self.place
                        ),
                    );
                }
                known.failure = Some(why);
            }
        }
        drop(known);
        self.changed.notify_all();
        self.tell_groups();
    }

    fn replace(&self, known: &mut Known, mut found: Vec<Address>) {
        found.truncate(ADDRESSES_MAX);
        let old = known.addresses.get(known.current).cloned();
        let gone = known.addresses.iter().any(|one| !found.contains(one));
        let current = found.iter().position(|one| Some(one) == old.as_deref());
        known.addresses = found.into_iter().map(Arc::new).collect();
        known.current = current.unwrap_or(0);
        if let (Some(old), None, Some(new)) = (old, current, known.addresses.first()) {
            note(
                log::Event::ServerMoved,
                format_args!("{} is now at {new}, was at {old}", self.place),
            );
        }
        if gone {
            self.moves.fetch_add(1, SeqCst);
        }
    }

    /// Follows the decision which server is written to, made for this reason. `true` if it is
    /// another one than before: no address is dialled then until the watch has asked it.
    pub(crate) fn follow_writer(&self, writer: Option<Writer>, why: &str) -> bool {
        let mut known = self.lock();
        known.failure = Some(why.into());
        if known.writer == writer {
            return false;
        }
        known.addresses.clear();
        known.writer = writer;
        drop(known);
        self.moves.fetch_add(1, SeqCst);
        for asking in self.asking().drain(..).filter_map(|one| one.upgrade()) {
            // It may wait for an answer of the one before, which may never come.
            let _ = reactor::socket::shut_down(&asking);
        }
        self.changed.notify_all();
        self.tell_groups();
        if let Some(tell) = self.tells_watch.get() {
            tell.0();
        }
        true
    }

    fn asking(&self) -> MutexGuard<'_, Vec<Weak<OwnedFd>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the way to the writer at this address, which the watch has asked.
    pub(crate) fn opened(&self, at: &Arc<Address>) {
        let mut known = self.lock();
        if known.addresses.is_empty() && known.writer.as_ref().is_some_and(|one| one.at == *at) {
            known.addresses.push(at.clone());
            known.current = 0;
            drop(known);
            self.changed.notify_all();
            self.tell_groups();
        }
    }

    /// Sets the call that tells the watch of another writer.
    pub(crate) fn tell_watch(&self, tell: Box<dyn Fn() + Send + Sync>) {
        let _ = self.tells_watch.set(Tell(tell));
    }

    /// Reason that none of several servers is written to; `None` where one is, or there is but one.
    pub(crate) fn no_writer(&self) -> Option<String> {
        let known = self.lock();
        let is_missing = self.is_writer() && known.writer.is_none();
        is_missing.then(|| known.failure.clone().unwrap_or_default())
    }

    /// True of several servers: nothing is to stay on one that was left.
    pub(crate) fn is_writer(&self) -> bool {
        matches!(self.place, Place::Writer)
    }

    /// Registers a connection of the pool's own questions, to be ended when the writer is another
    /// one.
    pub(crate) fn end_with_writer(&self, asking: &Arc<OwnedFd>) {
        let mut all = self.asking();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(asking));
    }

    /// True if it is this address by the settings, without a name to look up.
    pub(crate) fn is_at(&self, address: &Address) -> bool {
        self.place.is(address)
    }

    /// True for the writer, and for every address where there is one server.
    fn concerns(&self, at: &Address) -> bool {
        let known = self.lock();
        !self.is_writer() || known.writer.as_ref().is_some_and(|one| *one.at == *at)
    }

    /// True if the server's name still means this address.
    pub(crate) fn means(&self, address: &Address) -> bool {
        let known = self.lock();
        let writer = known.writer.iter().map(|one| &one.at);
        (known.addresses.iter().chain(writer)).any(|one| **one == *address)
    }

    /// Nobody answered at this address, for this reason. `true` when that begins an outage, which
    /// is logged.
    pub(crate) fn failed(&self, at: &Address, now: Time, why: &str) -> bool {
        if !self.concerns(at) {
            return false;
        }
        let since = now.0.max(1);
        let began = (self
            .failing_since
            .compare_exchange(0, since, SeqCst, SeqCst))
        .is_ok();
        if began {
            note(
                log::Event::ServerLost,
                format_args!(
                    "the server at {} cannot be reached: {why}; statements that need it wait, and \
                     are refused at once when this has lasted for server_down_fail_ms",
                    self.words(at)
                ),
            );
        }
        let mut known = self.lock();
        let count = known.addresses.len();
        if (known.addresses.get(known.current)).is_some_and(|one| **one == *at) {
            known.current = (known.current + 1) % count;
        }
        began
    }

    /// Notes that the server has let us in at this address. `true` when that ends an outage, which
    /// is logged.
    pub(crate) fn reached(&self, at: &Address, now: Time) -> bool {
        if self.failing_since.load(SeqCst) == 0 || !self.concerns(at) {
            return false;
        }
        let since = self.failing_since.swap(0, SeqCst);
        if since == 0 {
            return false;
        }
        self.stands_still.store(false, SeqCst);
        self.is_silent.store(false, SeqCst);
        let mut known = self.lock();
        if let Some(place) = known.addresses.iter().position(|one| **one == *at) {
            known.current = place;
        }
        drop(known);
        note(
            log::Event::ServerBack,
            format_args!(
                "the server at {} can be reached again, after {} ms",
                self.words(at),
                now.since(Time(since)).as_millis()
            ),
        );
        self.returns.fetch_add(1, SeqCst);
        self.tell_groups();
        true
    }

    /// Marks the server as silent after a watch without an answer: on a connection that stood
    /// (`stood`), or, once that has been so in this outage, by any other.
    pub(crate) fn answers_nobody(&self, stood: bool) {
        if stood {
            self.stands_still.store(true, SeqCst);
        }
        if self.stands_still.load(SeqCst) && !self.is_silent.swap(true, SeqCst) {
            self.tell_groups();
        }
    }

    /// Ends the silence of the server after something has come over a backend.
    pub(crate) fn heard(&self) {
        if self.is_silent() && self.is_silent.swap(false, SeqCst) {
            self.tell_groups();
        }
    }

    /// True while the server answers nobody, on connections that stand.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Relaxed)
    }

    /// The length of the outage, once that is so much and the server is silent.
    pub(crate) fn silent_for(&self, now: Time, least: Duration) -> Option<Duration> {
        self.is_silent().then(|| self.down_for(now, least))?
    }

    /// Outages that have ended.
    pub(crate) fn returns(&self) -> u64 {
        self.returns.load(SeqCst)
    }

    /// Changes of what the name means.
    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(SeqCst)
    }

    /// Moment since which nobody answers.
    pub(crate) fn failing_since(&self) -> Option<Time> {
        let since = self.failing_since.load(SeqCst);
        (since != 0).then_some(Time(since))
    }

    /// Length of the outage, once it is at least `least`.
    pub(crate) fn down_for(&self, now: Time, least: Duration) -> Option<Duration> {
        let lasted = now.since(self.failing_since()?);
        (lasted >= least).then_some(lasted)
    }

    /// Moment at which the outage will have lasted for `least`; `NEVER` if it has, or there is
    /// none.
    pub(crate) fn down_at(&self, now: Time, least: Duration) -> Time {
        let at = self.failing_since().map(|since| since + least);
        at.filter(|at| *at > now).unwrap_or(Time::NEVER)
    }

    /// The configured place, with the address where that is another text.
    pub(crate) fn words(&self, at: &Address) -> String {
        match &self.place {
            Place::Fixed(_) => at.to_string(),
            Place::Named(name) => format!("{name} ({at})"),
            Place::Writer => match &self.lock().writer {
                Some(Writer { name, at: its, .. }) if **its == *at => format!("'{name}' ({at})"),
                _ => at.to_string(),
            },
        }
    }

    /// Opens a connection to the first address that answers. It waits, so no group may call it.
    ///
    /// # Errors
    /// A sentence: whom nobody answered for, or that the name is not known.
    pub(crate) fn connect(
        &self,
        keepalive: Option<Keepalive>,
        longest: Duration,
    ) -> Result<(Arc<Address>, OwnedFd), String> {
        let opened = self.try_connect(keepalive, longest);
        opened.map_err(|NotConnected { at, why, .. }| {
            if let Some(at) = at {
                self.failed(&at, Time::now(), &why);
            }
            why
        })
    }

    /// Opens a connection as [`Upstream::connect`]; that it fails begins no outage.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn try_connect(
        &self,
        keepalive: Option<Keepalive>,
        longest: Duration,
    ) -> Result<(Arc<Address>, OwnedFd), NotConnected> {
        let unknown = |why| NotConnected {
            at: None,
            timed_out: false,
            why,
        };
        let addresses = self.addresses(longest).map_err(unknown)?;
        let opened = connect_first(&addresses, keepalive, longest);
        opened.map_err(|(at, error)| {
            let timed_out = error.kind() == ErrorKind::TimedOut;
            let why = match timed_out {
                true => format!("no answer in {} ms", longest.as_millis()),
                false => error.to_string(),
            };
            NotConnected {
                why: format!("cannot connect to {}: {why}", self.words(&at)),
                at: Some(at),
                timed_out,
            }
        })
    }
}

/// A connection that could not be opened.
pub(crate) struct NotConnected {
    /// The last address that was tried, if the name is known.
    at: Option<Arc<Address>>,
    /// Nothing came from there.
    pub(crate) timed_out: bool,
    /// A sentence.
    pub(crate) why: String,
}

/// A connection that is being opened.
struct Opening {
    number: u32,
    at: Arc<Address>,
    sock: OwnedFd,
}

/// Opens a connection to the first of the addresses that answers: one after another, and then
/// again, without giving up those that have not answered yet.
fn connect_first(
    addresses: &[Arc<Address>],
    keepalive: Option<Keepalive>,
    longest: Duration,
) -> Result<(Arc<Address>, OwnedFd), (Arc<Address>, Error)> {
    let (begun, first) = (Time::now(), &addresses[0]);
    let ours = |error| (first.clone(), error);
    let mut net = RealNet::new().map_err(ours)?;
    net.keep_alive(None, keepalive);
    let mut opening: VecDeque<Opening> = VecDeque::new();
    let (mut begun_count, mut failed_count, mut next_at) = (0, 0, begun);
    let mut events: Vec<Event> = Vec::new();
    let mut last = (first.clone(), Error::from(ErrorKind::TimedOut));
    loop {
        let now = Time::now();
        let all_failed = failed_count >= addresses.len() && opening.is_empty();
        if all_failed || now.since(begun) >= longest {
            return Err(last);
        }
        if now >= next_at {
            let at = addresses[begun_count % addresses.len()].clone();
            let number = u32::try_from(begun_count).unwrap_or(u32::MAX);
            begun_count += 1;
            let more = begun_count < addresses.len();
            next_at = now + if more { NEXT_AFTER } else { AGAIN_AFTER };
            let token = Token::new(0, Key::from_parts(number, 0));
            let sock = net.connect(&at);
            match sock.and_then(|sock| net.watch(&sock, token).map(|()| sock)) {
                Ok(sock) => opening.push_back(Opening { number, at, sock }),
                Err(error) => {
                    (failed_count, next_at) = (failed_count + 1, now);
                    last = (at, error);
                }
            }
            if opening.len() > OPENING_MAX {
                opening.pop_front();
            }
            continue;
        }
        net.wait(next_at.min(begun + longest), &mut events)
            .map_err(ours)?;
        for event in &events {
            let number = event.token.key().parts().0;
            let Some(place) = opening.iter().position(|one| one.number == number) else {
                continue;
            };
            match net.connected(&opening[place].sock) {
                Ok(()) if event.writable => {
                    if let Some(one) = opening.remove(place) {
                        return Ok((one.at, one.sock));
                    }
                }
                Ok(()) => {}
                Err(error) => {
                    (failed_count, next_at) = (failed_count + 1, now);
                    last = (opening[place].at.clone(), error);
                    opening.remove(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
