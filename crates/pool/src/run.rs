//! The main thread: from options to serving groups, and to their end.
//!
//! Order matters: the descriptor limit is raised and everything that groups share (mailboxes, Unix
//! listeners) is opened before the first group leaves the common descriptor table. Signals are
//! handled here: the first SIGTERM or SIGINT drains, a second one ends at once; SIGUSR1 prints the
//! census, SIGQUIT every client and why it is pinned; SIGHUP has settings and certificates read
//! again; SIGUSR2 starts the process that takes the place of this one
//! (`operations/upgrade.rs`).

use crate::Settings;
use crate::auth::credential::Credential;
use crate::backend::backend_pools::PoolKey;
use crate::config::options::PoolArgs;
use crate::figures::counts::Census;
use crate::figures::{Published, Turns};
use crate::group::{Group, LISTENER, MAILBOX, listener_token};
use crate::listing::Questions;
use crate::log::{self, Event, ReportLine, note, note_all};
use crate::operations::certificates;
use crate::operations::console::{self, Console};
use crate::operations::live::{self, Live};
use crate::operations::metrics::Board;
use crate::operations::password_workers::start_workers;
use crate::operations::reload::reload;
use crate::operations::service;
use crate::operations::site;
use crate::operations::spool_threads::start_spool;
use crate::operations::text_readers::start_readers;
use crate::operations::upgrade::giving::Giving;
use crate::operations::upgrade::predecessor::{Predecessor, say_goodbye};
use crate::operations::upgrade::successor::{Before, Started};
use crate::operations::upgrade::taking::{ListenAt, Taking};
use crate::operations::upgrade::{Progress, STEP_MAX};
use crate::operations::watch::Watcher;
use crate::probe::{Fault, probe};
use crate::queue::budget::Budget;
use crate::server::server_facts::ServerFacts;
use crate::server::upstream::Upstream;
use crate::shared::{Order, Shared};
use reactor::handover::Peer;
use reactor::{
    Address, Key, Mailbox, RealNet, Sender, Time, Token, descriptors, mailbox, scheduling, socket,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::auth::caching_sha2::KeyPair;
use wire::capabilities::DEPRECATE_EOF;

/// Descriptors that a group needs besides its clients and backends: epoll, listeners, mailboxes of
/// all groups, the standard streams, and some for what libraries open.
const DESCRIPTORS_RESERVED: u64 = 64;
/// A group is not made for fewer backends than this, unless the clients need its descriptors.
const BACKENDS_PER_GROUP: u64 = 8;
/// A server that cannot be reached is asked again after this time.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
/// How often a group hands its census over.
const CENSUS_EVERY: Duration = Duration::from_millis(500);
/// How often a process looks whether the one before it has left an address.
const FREE_AGAIN: Duration = Duration::from_millis(100);
/// Exit status for settings that cannot be used.
const EXIT_USAGE: u8 = 2;

/// The settings, or the status of a pool that cannot use them, with the reason on standard error.
///
/// # Errors
/// 2: the command line or the file cannot be used.
pub fn settings(args: &PoolArgs) -> Result<Settings, ExitCode> {
    args.clone().settings().map_err(|error| {
        note(Event::Settings, format_args!("{error}"));
        ExitCode::from(EXIT_USAGE)
    })
}

/// Runs the pool until it is told to end; 0 after a drain, 1 when it could not serve. `args` is
/// where the settings came from: a reload reads them again.
#[must_use]
pub fn run(args: PoolArgs, settings: Settings, started: Started) -> ExitCode {
    log::set_style(settings.log_format, settings.log_level);
    for warning in &settings.warnings {
        note(Event::Warning, format_args!("{warning}"));
    }
    if let Err(error) = log::start() {
        note(
            Event::Failed,
            format_args!("cannot start a thread: {error}"),
        );
        return ExitCode::FAILURE;
    }
    let status = match serve(args, settings, &started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(Event::Failed, format_args!("{error}"));
            ExitCode::FAILURE
        }
    };
    log::flush();
    status
}

/// How many groups, how many clients each may hold, and the sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    groups: usize,
    clients_per_group: usize,
    reason: String,
}

fn plan(settings: &Settings, limit: u64, cores: u64) -> Result<Plan, String> {
    let backends = |groups: u64| {
        let groups = usize::try_from(groups).unwrap_or(1);
        Budget::most_of_group(settings.backends_max, groups) as u64
    };
    let room = |groups: u64| {
        limit
            .saturating_sub(DESCRIPTORS_RESERVED + groups)
            .saturating_sub(backends(groups))
    };
    let clients = settings.clients_max as u64;
    // Each group has backends of its own; with too few, one pinned client would be all it has.
    let served = (settings.backends_max as u64 / BACKENDS_PER_GROUP).max(1);
    let wished = settings
        .groups
        .map_or(cores.min(served), |groups| groups as u64);
    let mut groups = wished.max(1);
    while settings.groups.is_none()
        && groups < clients
        && descriptors::fullest_share(clients, groups) > room(groups)
    {
        groups += 1;
        if groups + DESCRIPTORS_RESERVED >= limit {
            return Err(format!(
                "clients_max: {clients} clients need more groups than a descriptor limit of \
                 {limit} allows; raise it (ulimit -n) or lower clients_max"
            ));
        }
    }
    if (settings.backends_max as u64) < groups {
        return Err(format!(
            "backends_max: expected at least one backend for each of {groups} groups, got {}; \
             raise it, or set groups",
            settings.backends_max
        ));
    }
    let share = descriptors::fullest_share(clients, groups);
    // The limit on all clients is kept by their sum; a group's own is what its table holds.
    let clients_per_group = room(groups).max(1);
    let reason = format!(
        "{groups} groups ({cores} cores; {clients} clients need {share} descriptors in the \
         fullest group, the limit is {limit} for each)"
    );
    Ok(Plan {
        groups: usize::try_from(groups).unwrap_or(1),
        clients_per_group: usize::try_from(clients_per_group).unwrap_or(usize::MAX),
        reason,
    })
}

fn serve(args: PoolArgs, mut settings: Settings, started: &Started) -> Result<(), String> {
    check_spool(&mut settings)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])
        .map_err(|error| format!("cannot handle signals: {error}"))?;
    let limit = descriptors::raise_limit();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut layout = plan(&settings, limit.soft, cores)?;
    let upstream = Arc::new(Upstream::new(settings.backend.clone()));
    upstream.keep_looking_up()?;
    let board = Arc::new(Board::default());
    let live = Arc::new(Live::default());
    // Until a predecessor has ended, it serves them.
    let is_first = started.predecessor().is_none();
    if let Some(http) = settings.http {
        let (board, live) = (board.clone(), live.clone());
        let serve = move || site::serve(http.0, board.clone(), live.clone());
        serve_when_free(is_first, "http", serve)?;
    }
    let Some(server) = ask_server(&upstream, &settings, &mut signals)? else {
        note(
            Event::Ended,
            format_args!("ended before the server could be reached"),
        );
        return Ok(());
    };
    let mut before = started.predecessor().map(Before::ask).transpose()?;
    if let Some(before) = &before
        && before.groups != layout.groups
    {
        settings.groups = Some(before.groups);
        layout = plan(&settings, limit.soft, cores)?;
        layout.reason += "; as many as in the process before, until the next restart";
    }
    note(
        Event::Start,
        format_args!(
            "server {} at {}; {}; at most {} backends",
            server.version, settings.backend, layout.reason, settings.backends_max
        ),
    );
    let keys = KeyPair::generate()?;
    let cores = usize::try_from(cores).unwrap_or(1);
    let room = layout.clients_per_group;
    let mut shared = Shared::new(settings, server, keys, layout.groups, cores, room);
    shared.upstream = upstream;
    shared.source = Mutex::new(Some(args));
    let shared = Arc::new(shared);
    let watcher = Watcher::first(&shared)?;
    let listeners = open_listeners(&shared.settings(), before.as_ref())?;
    let (listens, listening) = sync_channel(shared.groups);
    let from = before.as_ref().map(|before| (before.peer, listens));
    let group_threads = GroupThreads::start(&shared, &listeners, signals.handle(), from)?;
    board.serves(shared.clone(), group_threads.published.clone());
    let groups = group_threads.orders.clone().into();
    start_workers(&shared, &groups)?;
    start_readers(&shared, &groups)?;
    start_spool(&shared, &groups)?;
    let orders = group_threads.orders.clone();
    let tell = move || orders.iter().for_each(|order| order.send(Order::Look));
    shared.upstream.tell(Box::new(tell));
    watcher.keep_watching(shared.clone());
    let source = Arc::new(Console::new(
        shared.clone(),
        board.clone(),
        group_threads.orders.clone(),
        group_threads.questions.clone(),
    ));
    if shared.settings().http.is_some() {
        live::keep(live, source.clone())?;
    }
    if let Some(settings) = &shared.settings().console {
        let (settings, access) = (settings.clone(), shared.settings().socket_access());
        let serve = move || console::serve(&settings, access, source.clone());
        serve_when_free(is_first, "console", serve)?;
    }
    certificates::watch(&shared);
    let successor = Arc::new(Mutex::default());
    let predecessor = Predecessor {
        orders: group_threads.orders.clone(),
        tcp: listeners.iter().filter_map(Listener::tcp).collect(),
        unix: listeners.iter().filter_map(Listener::unix).collect(),
        shared: shared.clone(),
        progress: group_threads.progress.clone(),
        successor: successor.clone(),
    };
    if let Some(before) = &mut before {
        before.ready()?;
        await_listeners(&listening, shared.groups)?;
    }
    if let Err(why) = predecessor.keep_waiting() {
        note(
            Event::Warning,
            format_args!("no process can take the place of this one without a restart: {why}"),
        );
    }
    let addresses: Vec<String> = listeners.iter().map(Listener::to_string).collect();
    note(
        Event::Listening,
        format_args!("listening on {}", addresses.join(", ")),
    );
    service::feed_watchdog(board.clone());
    match before {
        None => service::ready(),
        Some(before) => {
            service::ready_in_place();
            before.hear_out()?;
        }
    }
    let result = group_threads.attend(signals, &shared, &board, started);
    if !say_goodbye(&group_threads.progress, &successor) {
        for listener in &listeners {
            listener.remove_file();
        }
    }
    result
}

/// Waits until all groups have the listeners of their predecessors.
fn await_listeners(
    listening: &mpsc::Receiver<Result<(), String>>,
    groups: usize,
) -> Result<(), String> {
    for _ in 0..groups {
        let told = listening.recv_timeout(STEP_MAX);
        told.map_err(|_| "upgrade: the process before has not handed over its listeners")??;
    }
    Ok(())
}

/// Serves what is not for clients: at once, or as soon as the process before leaves its address.
fn serve_when_free(
    is_first: bool,
    name: &str,
    serve: impl Fn() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    if is_first {
        return serve();
    }
    let work = move || {
        while serve().is_err() {
            reactor::pause(FREE_AGAIN);
        }
    };
    let builder = std::thread::Builder::new().name(format!("{name}-waits"));
    let spawned = builder.spawn(work).map(|_| ());
    spawned.map_err(|error| format!("cannot start a thread: {error}"))
}

/// Whether replies can be stored where the settings say. A folder that nobody has asked for may be
/// missing: then clients that do not read are closed earlier.
fn check_spool(settings: &mut Settings) -> Result<(), String> {
    if settings.spool_bytes_max == 0 {
        return Ok(());
    }
    let folder = &settings.spool_folder;
    let tried = reactor::scratch::open(folder)
        .and_then(|file| reactor::Scratch::write_at(&file, &[0; 4096], 0));
    let Err(error) = tried else { return Ok(()) };
    let why = format!(
        "spool_folder: no file can be written in {}: {error}",
        folder.display()
    );
    if settings.spool_folder_given {
        return Err(why);
    }
    note(
        Event::Warning,
        format_args!(
            "{why}; replies that clients do not read stay on their backends (set spool_folder, or \
         spool_bytes_max = 0)"
        ),
    );
    settings.spool_bytes_max = 0;
    Ok(())
}

/// Asks until the server answers; an account that it refuses ends the pool, and so does a signal
/// (`None`).
fn ask_server(
    upstream: &Upstream,
    settings: &Settings,
    signals: &mut Signals,
) -> Result<Option<ServerFacts>, String> {
    let (user, password) = settings.first_account();
    let key = PoolKey {
        capabilities: DEPRECATE_EOF,
        extended: 0,
        user,
        credential: Credential::Password(password),
        account: None,
        privileges: 0,
    };
    let mut said = None;
    loop {
        match probe(upstream, &key, settings) {
            Ok(facts) => return Ok(Some(facts)),
            Err(error) if error.fault == Fault::Lasting => {
                return Err(format!(
                    "the server at {} refuses the pool's account '{}': {}",
                    settings.backend, key.user, error.why
                ));
            }
            Err(error) if error.fault == Fault::Untrusted => {
                return Err(format!("the server at {}: {}", settings.backend, error.why));
            }
            Err(error) => {
                if said.as_ref() != Some(&error.why) {
                    note(
                        Event::Waiting,
                        format_args!("waiting for the server: {}", error.why),
                    );
                }
                said = Some(error.why);
            }
        }
        reactor::pause(PROBE_AGAIN);
        for signal in signals.pending() {
            match signal {
                SIGHUP => note_hangup(),
                SIGUSR1 | SIGUSR2 | SIGQUIT => {}
                _ => return Ok(None),
            }
        }
    }
}

/// Says that SIGHUP changes nothing yet.
fn note_hangup() {
    note(
        Event::Signal,
        format_args!(
            "SIGHUP: nothing changes before the server has answered; to change the configuration \
             now, restart the pool"
        ),
    );
}

/// Where clients come in.
enum Listener {
    /// Groups listen by themselves; the socket holds the port until they do.
    Tcp(
        SocketAddr,
        #[expect(dead_code, reason = "held, not used")] Option<OwnedFd>,
    ),
    /// All groups share the listener.
    Unix(std::path::PathBuf, Arc<OwnedFd>),
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listener::Tcp(address, _) => address.fmt(f),
            Listener::Unix(path, _) => path.display().fmt(f),
        }
    }
}

impl Listener {
    fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(address, _) => Some(*address),
            Listener::Unix(..) => None,
        }
    }

    fn unix(&self) -> Option<(std::path::PathBuf, Arc<OwnedFd>)> {
        match self {
            Listener::Tcp(..) => None,
            Listener::Unix(path, listener) => Some((path.clone(), listener.clone())),
        }
    }

    fn remove_file(&self) {
        if let Listener::Unix(path, _) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens them, but for those that the process before hands over.
fn open_listeners(settings: &Settings, before: Option<&Before>) -> Result<Vec<Listener>, String> {
    let tcp = |address: &SocketAddr| {
        let is_it = |there: &&SocketAddr| {
            let port = address.port() == 0 || address.port() == there.port();
            port && address.ip() == there.ip()
        };
        before?.tcp.iter().find(is_it).copied()
    };
    let unix = |path: &std::path::Path| {
        let all = &before?.unix;
        all.iter()
            .find(|(there, _)| there == path)
            .map(|(_, listener)| listener.clone())
    };
    let open = |address: &Address| match address {
        Address::Tcp(address) => match tcp(address) {
            Some(bound) => Ok(Listener::Tcp(bound, None)),
            None => socket::reserve(address).map(|(held, bound)| Listener::Tcp(bound, Some(held))),
        },
        Address::Unix(path) => match unix(path) {
            Some(listener) => Ok(Listener::Unix(path.clone(), listener)),
            None => socket::listen_unix(path, settings.socket_access(), settings.backlog)
                .map(|listener| Listener::Unix(path.clone(), Arc::new(listener))),
        },
    };
    settings
        .listen
        .iter()
        .map(|address| {
            open(address).map_err(|error| format!("cannot listen on {address}: {error}"))
        })
        .collect()
}

/// The ways to reach the groups' threads.
struct GroupThreads {
    orders: Vec<Sender<Order>>,
    published: Vec<Arc<Published>>,
    questions: Arc<Questions>,
    progress: Arc<Progress>,
}

/// Held by every group's thread; the last one to drop it ends the main thread's wait for signals.
struct Presence {
    present: Arc<AtomicUsize>,
    signals: Handle,
}

impl Presence {
    fn another(&self) -> Presence {
        self.present.fetch_add(1, Ordering::Relaxed);
        Presence {
            present: self.present.clone(),
            signals: self.signals.clone(),
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.present.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.signals.close();
        }
    }
}

/// What a group's thread is given.
struct Post {
    index: usize,
    shared: Arc<Shared>,
    listeners: Vec<ListenAt>,
    mailbox: Mailbox<Order>,
    /// The ways to all groups, by their number.
    groups: Arc<[Sender<Order>]>,
    published: Arc<Published>,
    questions: Arc<Questions>,
    presence: Presence,
    progress: Arc<Progress>,
    /// The process whose place this one takes, and whom to tell that this group listens.
    before: Option<HandsOver>,
}

/// A process that hands over its listeners, and whom a group tells that it has them.
type HandsOver = (Peer, SyncSender<Result<(), String>>);

impl GroupThreads {
    fn start(
        shared: &Arc<Shared>,
        listeners: &[Listener],
        signals: Handle,
        before: Option<HandsOver>,
    ) -> Result<GroupThreads, String> {
        let pairs = (0..shared.groups).map(|_| mailbox());
        let pairs: Result<Vec<_>, _> = pairs.collect();
        let pairs = pairs.map_err(|error| format!("cannot make a mailbox: {error}"))?;
        let (orders, mailboxes): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let groups: Arc<[Sender<Order>]> = orders.clone().into();
        let mut group_threads = GroupThreads {
            orders,
            published: Vec::new(),
            questions: Arc::default(),
            progress: Arc::default(),
        };
        let presence = Presence {
            present: Arc::new(AtomicUsize::new(1)),
            signals,
        };
        let mut posts = Vec::new();
        for (index, mailbox) in mailboxes.into_iter().enumerate() {
            let published = Arc::new(Published::new(shared.settings().users.len()));
            group_threads.published.push(published.clone());
            let listeners = listeners.iter().map(|listener| match listener {
                Listener::Tcp(address, _) => ListenAt::Tcp(*address),
                Listener::Unix(_, listener) => ListenAt::Unix(listener.clone()),
            });
            let listeners = listeners.collect();
            let (shared, presence) = (shared.clone(), presence.another());
            posts.push(Post {
                index,
                shared,
                listeners,
                mailbox,
                groups: groups.clone(),
                published,
                questions: group_threads.questions.clone(),
                presence,
                progress: group_threads.progress.clone(),
                before: before.clone(),
            });
        }
        let (ready, started) = sync_channel(shared.groups);
        for post in posts {
            let ready = ready.clone();
            std::thread::Builder::new()
                .name(format!("group-{}", post.index))
                .spawn(move || attend_post(post, &ready))
                .map_err(|error| format!("cannot start a group's thread: {error}"))?;
        }
        drop(ready);
        for _ in 0..shared.groups {
            started
                .recv()
                .map_err(|_| "a group ended before it began")??;
        }
        Ok(group_threads)
    }

    /// Waits for signals and for the groups' end.
    fn attend(
        &self,
        mut signals: Signals,
        shared: &Shared,
        board: &Board,
        started: &Started,
    ) -> Result<(), String> {
        let mut draining = false;
        for signal in &mut signals {
            if signal == SIGUSR1 {
                note(Event::Census, format_args!("{:?}", self.sum()));
                continue;
            }
            if signal == SIGUSR2 {
                started.start_successor();
                continue;
            }
            if signal == SIGQUIT {
                let orders = self.orders.iter();
                orders.for_each(|order| order.send(Order::Report));
                continue;
            }
            if signal == SIGHUP {
                note(
                    Event::Signal,
                    format_args!("SIGHUP: settings and certificates are read again"),
                );
                // What came of it is logged.
                let _ = reload(shared);
                continue;
            }
            if draining {
                note(
                    Event::Draining,
                    format_args!("second signal: ending at once"),
                );
                return Ok(());
            }
            draining = true;
            board.drains();
            service::stopping();
            note(
                Event::Draining,
                format_args!(
                    "draining, for at most {} ms",
                    shared.settings().drain_max.as_millis()
                ),
            );
            self.orders
                .iter()
                .for_each(|order| order.send(Order::Drain));
        }
        // The last group to end has closed the signals.
        let total = self.sum();
        note(
            Event::Ended,
            format_args!(
                "ended: {} statements, {} logins, {} refused, {} backends lost, {} clients cut off",
                total.counts.statements,
                total.counts.logins,
                total.counts.refused,
                total.counts.backends_lost,
                total.clients
            ),
        );
        Ok(())
    }

    fn sum(&self) -> Census {
        let mut total = Census::default();
        for published in &self.published {
            total += &published.get().census;
        }
        total
    }
}

/// A group's thread.
fn attend_post(post: Post, ready: &SyncSender<Result<(), String>>) {
    let (published, groups) = (post.published.clone(), post.groups.clone());
    let questions = post.questions.clone();
    let (shared, first) = (post.shared.clone(), post.index == 0);
    if first {
        shared.look_at_memory();
    }
    let (index, progress) = (post.index, post.progress.clone());
    let (mut group, taking, mailbox, _presence) = match set_up(post) {
        Ok(made) => {
            let _ = ready.send(Ok(()));
            made
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let mut events = Vec::new();
    let mut census_at = Time::now();
    let mut turns = Turns::default();
    let mut upgrade = Upgrade {
        index,
        progress,
        taking,
        giving: None,
        leaves: false,
        at: Time::NEVER,
    };
    // What sessions begin with is known then.
    group.turn(&[]);
    while !group.is_drained() && !upgrade.is_over(&group) {
        let deadline = group.deadline().min(census_at + CENSUS_EVERY);
        let deadline = deadline.min(upgrade.at);
        if let Err(error) = group.net_mut().wait(deadline, &mut events) {
            note(
                Event::Failed,
                format_args!("a group must end: waiting for events failed: {error}"),
            );
            break;
        }
        if events.iter().any(|event| event.token.kind() == MAILBOX) {
            for order in mailbox.take() {
                if order == Order::Drain {
                    group.net_mut().stop_listening();
                }
                upgrade.order(&mut group, &order);
                group.order(order);
            }
        }
        upgrade.step(&mut group);
        group.turn(&events);
        upgrade.hurry(&mut group);
        print_report(group.take_report());
        for answer in group.take_said() {
            questions.answer(answer);
        }
        for (index, order) in group.take_messages() {
            groups[index].send(order);
        }
        let now = Time::now();
        turns.lengths.record(now.since(group.now()));
        if now >= census_at + CENSUS_EVERY {
            if first {
                shared.look_at_memory();
            }
            // Who reads the last one holds it for a moment only: the next turn tries again.
            if published.put(group.view(turns.clone())) {
                census_at = now;
            }
            turns.publishing += Time::now().since(now);
        }
    }
    if upgrade.leaves {
        group.order(Order::Reconnect);
    }
    while !published.put(group.view(turns.clone())) {
        std::thread::yield_now();
    }
}

/// A group's part in an upgrade: on either side of it, or on none.
struct Upgrade {
    index: usize,
    progress: Arc<Progress>,
    taking: Option<Taking>,
    giving: Option<Giving>,
    /// It ends with its last client.
    leaves: bool,
    /// When there is something to do at the latest.
    at: Time,
}

impl Upgrade {
    fn is_over(&self, group: &Group<RealNet>) -> bool {
        self.leaves && group.clients_count() == 0
    }

    fn order(&mut self, group: &mut Group<RealNet>, order: &Order) {
        match order {
            Order::Give(peer) => {
                let progress = self.progress.clone();
                match Giving::begin(group, self.index, *peer, progress) {
                    Ok(giving) => self.giving = Some(giving),
                    Err(why) => self.progress.steps().failed = Some(why),
                }
            }
            Order::Keep => {
                self.leaves = false;
                self.give_up(group);
            }
            Order::Leave => self.leaves = true,
            _ => {}
        }
    }

    fn give_up(&mut self, group: &mut Group<RealNet>) {
        self.at = Time::NEVER;
        if let Some(giving) = self.giving.take() {
            giving.give_up(group);
        }
    }

    /// Clients whose statements have ended in this turn go at once.
    fn hurry(&mut self, group: &mut Group<RealNet>) {
        if let Some(giving) = &self.giving
            && giving.has_work(group)
        {
            self.at = Time(0);
        }
    }

    /// What can be done between two turns.
    fn step(&mut self, group: &mut Group<RealNet>) {
        if let Some(taking) = &mut self.taking
            && !taking.step(group)
        {
            self.taking = None;
        }
        if let Some(giving) = &mut self.giving {
            match giving.step(group) {
                Ok(at) => self.at = at,
                Err(why) => {
                    self.give_up(group);
                    self.progress.steps().failed = Some(why);
                }
            }
        }
    }
}

/// Prints a group's report, if there is one, without keeping the group waiting.
fn print_report(lines: Vec<ReportLine>) {
    if lines.is_empty() {
        return;
    }
    let printer = std::thread::Builder::new().name("report".into());
    if let Err(error) = printer.spawn(move || note_all(lines)) {
        note(
            Event::Failed,
            format_args!("cannot print the report: {error}"),
        );
    }
}

/// A group that stands, with what its thread needs beside it.
type Stands = (Group<RealNet>, Option<Taking>, Mailbox<Order>, Presence);

fn set_up(post: Post) -> Result<Stands, String> {
    descriptors::own_table().map_err(|error| {
        format!("a group cannot have a descriptor table of its own (unshare): {error}")
    })?;
    // Where it is forbidden, the group is only slower.
    let _ = scheduling::wake_gently();
    let mut net = RealNet::new().map_err(|error| format!("cannot make an epoll: {error}"))?;
    net.keep_alive(
        post.shared.settings().client_keepalive(),
        post.shared.settings().backend_keepalive(),
    );
    let backlog = post.shared.settings().backlog;
    let taking = match post.before {
        Some((before, listens)) => {
            let listen_at = (post.listeners, backlog);
            Some(Taking::begin(
                &mut net, post.index, before, listen_at, listens,
            )?)
        }
        None => {
            listen(&mut net, &post.listeners, backlog)?;
            None
        }
    };
    let token = Token::new(MAILBOX, Key::from_parts(0, 0));
    net.watch_mailbox(&post.mailbox, token)
        .map_err(|error| format!("a group cannot watch its mailbox: {error}"))?;
    let group = Group::new(net, post.shared, post.index);
    Ok((group, taking, post.mailbox, post.presence))
}

fn listen(net: &mut RealNet, listeners: &[ListenAt], backlog: i32) -> Result<(), String> {
    for (index, listener) in (0..).zip(listeners) {
        let token = listener_token(index);
        debug_assert_eq!(token.kind(), LISTENER);
        let opened = match listener {
            ListenAt::Tcp(address) => net.listen(address, backlog, token),
            ListenAt::Unix(listener) => net.share(listener.clone(), token),
        };
        opened.map_err(|error| format!("a group cannot listen: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Raw;

    fn settings(extra: &str) -> Settings {
        let text = format!(
            "{extra}\nlisten = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n\
             [[user]]\nname = \"a\"\npassword = \"b\"\n"
        );
        Raw::parse(&text).unwrap().check().unwrap()
    }

    #[test]
    fn groups_follow_from_clients_limit_and_cores() {
        let plan_for = |clients: &str, limit| plan(&settings(clients), limit, 2);
        assert_eq!(plan_for("clients_max = 1000", 20_000).unwrap().groups, 2);
        let hundred = plan_for("clients_max = 100000", 20_000).unwrap();
        assert_eq!(hundred.groups, 6);
        assert!(hundred.clients_per_group > 17_000);
        assert!(
            hundred
                .reason
                .starts_with("6 groups (2 cores; 100000 clients need")
        );
        assert_eq!(plan_for("backends_max = 4", 20_000).unwrap().groups, 1);
        let million = plan_for("clients_max = 1000000", 20_000).unwrap();
        assert_eq!(million.groups, 53);
    }

    #[test]
    fn what_cannot_be_is_said_with_the_remedy() {
        let error = plan(&settings("clients_max = 1000000"), 256, 2).unwrap_err();
        assert!(error.contains("raise it (ulimit -n)"), "{error}");
        let error = plan(&settings("groups = 4\nbackends_max = 2"), 20_000, 2).unwrap_err();
        assert!(error.contains("each of 4 groups"), "{error}");
    }
}
