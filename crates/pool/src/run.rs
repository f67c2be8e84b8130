//! The main thread: from options to serving groups, and to their end.
//!
//! Order matters: the descriptor limit is raised and everything that groups share (mailboxes, Unix
//! listeners) is opened before the first group leaves the common descriptor table; privileges are
//! given up when everything is open and before a client is served. Signals are
//! handled here: the first SIGTERM or SIGINT drains, a second one ends at once; SIGUSR1 prints the
//! census, SIGQUIT every client and why it is pinned; SIGHUP has settings and certificates read
//! again; SIGUSR2 starts the process that takes the place of this one
//! (`upgrade/process.rs`).

pub(crate) mod check;
mod group_threads;
mod layout;
mod listeners;
mod privileges;
pub(crate) mod service;

use crate::Settings;
use crate::admin::console::{self, Console};
use crate::admin::live::{self, Live};
use crate::admin::site;
use crate::auth::own_certificate::{MakePem, own_tls};
use crate::auth::password_workers::start_workers;
use crate::backend::pools::PoolKey;
use crate::client::buffers::text_workers::start_readers;
use crate::cluster::{Cluster, monitor};
use crate::config::options::PoolArgs;
use crate::config::reload;
use crate::config::source::Source;
use crate::group::shared::{Order, Shared, Sizes};
use crate::limits::spool_threads::start_spool;
use crate::observe::log::{self, Event, note};
use crate::observe::metrics::Board;
use crate::observe::otel::{self, Exporter};
use crate::run::group_threads::GroupThreads;
use crate::run::layout::{Machine, plan};
use crate::run::listeners::{Listener, open_listeners};
use crate::server::facts::ServerFacts;
use crate::server::probe::{Fault, probe};
use crate::server::rounds;
use crate::server::upstream::Upstream;
use crate::server::watch::Watcher;
use crate::upgrade::process::predecessor::{Predecessor, say_goodbye};
use crate::upgrade::process::successor::{Before, Started};
use reactor::Right;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use wire::auth::caching_sha2::KeyPair;
use wire::capabilities::SSL;

/// A server that cannot be reached is asked again after this time.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
/// Interval at which a process looks if the one before it has left an address.
const FREE_AGAIN: Duration = Duration::from_millis(100);
/// Exit status for settings that cannot be used.
const EXIT_USAGE: u8 = 2;

/// The settings and where they came from, or the status of a pool that cannot use them, with the
/// reason on standard error.
///
/// # Errors
/// 2: the command line or the file cannot be used.
pub fn settings(args: PoolArgs) -> Result<(Source, Settings), ExitCode> {
    Source::first(args).map_err(|error| {
        note(Event::Settings, format_args!("{error}"));
        ExitCode::from(EXIT_USAGE)
    })
}

/// Runs the pool until it is told to end; 0 after a drain, 1 when it could not serve. `source` is
/// where the settings came from: a reload reads them again. `make` makes the pool's own
/// certificate.
#[must_use]
pub fn run(source: Source, settings: Settings, started: Started, make: MakePem) -> ExitCode {
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
    let status = match serve(source, settings, &started, make) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(Event::Failed, format_args!("{error}"));
            ExitCode::FAILURE
        }
    };
    log::flush();
    status
}

/// Makes all that the groups share, once the server has answered; then serves.
fn serve(
    source: Source,
    mut settings: Settings,
    started: &Started,
    make: MakePem,
) -> Result<(), String> {
    let args = source.args().clone();
    privileges::keep_memory(&settings)?;
    check_spool(&mut settings)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])
        .map_err(|error| format!("cannot handle signals: {error}"))?;
    let machine = Machine::look();
    let mut layout = plan(&settings, machine)?;
    let upstream = Arc::new(Upstream::new(settings.backend.clone()));
    upstream.keep_looking_up()?;
    let cluster = Cluster::of(&settings, &upstream);
    if let Some(cluster) = &cluster {
        monitor::start(cluster)?;
    }
    let windows = Windows::new(started.predecessor().is_none());
    windows.open_http(&settings)?;
    let Some(server) = ask_server(&upstream, &settings, &mut signals)? else {
        note(
            Event::Ended,
            format_args!("ended before the server could be reached"),
        );
        return Ok(());
    };
    if let Some(cluster) = &cluster {
        cluster.compare()?;
    }
    if !windows.is_first {
        privileges::give_up(&settings, &args)?;
    }
    let before = started.predecessor().map(Before::ask).transpose()?;
    if let Some(before) = &before
        && before.groups != layout.groups
    {
        settings.groups = Some(before.groups);
        layout = plan(&settings, machine)?;
        layout.reason += "; as many as in the process before, until the next restart";
    }
    note(
        Event::Start,
        format_args!(
            "server {} at {}; {}; at most {} backends",
            server.version_shown(),
            settings.backend,
            layout.reason,
            settings.backends_max
        ),
    );
    if settings.tls.is_none() && settings.tls_auto && server.capabilities & SSL != 0 {
        let folder = settings.state_folder.clone();
        let owner = settings.run_as_user.as_ref().map(|user| user.0);
        settings.tls = Some(Arc::new(own_tls(folder, owner, make)?));
    }
    let sizes = Sizes {
        groups: layout.groups,
        cores: usize::try_from(machine.cores).unwrap_or(1),
        clients_per_group: layout.clients_per_group,
    };
    let mut shared = Shared::new(settings, server, KeyPair::generate()?, sizes);
    shared.upstream = upstream;
    shared.cluster = cluster;
    *shared.source() = Some(source);
    let exporter = (shared.settings().otel.as_ref())
        .map(otel::prepare)
        .transpose()?;
    let exporter = exporter.map(|(telemetry, exporter)| {
        shared.records.telemetry = Some(telemetry);
        exporter
    });
    let opening = Opening {
        shared: Arc::new(shared),
        exporter,
        windows,
        before,
        args,
    };
    opening.serve(signals, started)
}

/// State of the start once the server has answered, and before anybody is served.
struct Opening {
    shared: Arc<Shared>,
    exporter: Option<Exporter>,
    windows: Windows,
    /// The process whose place this one takes, if it takes one's.
    before: Option<Before>,
    args: PoolArgs,
}

impl Opening {
    /// Opens the doors, starts the threads, and attends to signals until the groups have ended.
    fn serve(self, signals: Signals, started: &Started) -> Result<(), String> {
        let (shared, board) = (&self.shared, &self.windows.board);
        let watcher = Watcher::first(shared, self.before.is_some())?;
        let listeners = open_listeners(&shared.settings(), self.before.as_ref())?;
        let (listens, listening) = sync_channel(shared.groups());
        let from = self.before.as_ref().map(|before| (before.peer, listens));
        let mut groups = GroupThreads::start(shared, &listeners, signals.handle(), from)?;
        board.serves(shared.clone(), groups.published.clone());
        start_helpers(shared, &groups)?;
        rounds::start(shared, &groups.published, &groups.orders)?;
        watcher.keep_watching(shared.clone());
        if let Some(exporter) = self.exporter {
            otel::start(exporter, shared.clone(), board.clone())?;
        }
        self.windows.open_console(shared, &groups)?;
        if self.windows.is_first {
            privileges::give_up(&shared.settings(), &self.args)?;
        }
        let settings = shared.settings();
        let audit = settings.audit_log.as_ref();
        shared.records.audit.begin(audit, self.before.is_none())?;
        groups.go();
        reload::watch(shared);
        let successor = Arc::new(Mutex::default());
        let right = match &self.before {
            Some(before) => before.right.clone(),
            None => {
                first_right().map_err(|error| format!("cannot make a file in memory: {error}"))?
            }
        };
        let is_first = Arc::new(AtomicBool::new(self.before.is_none()));
        let predecessor = Predecessor {
            orders: groups.orders.clone(),
            tcp: listeners.iter().filter_map(Listener::tcp).collect(),
            unix: listeners.iter().filter_map(Listener::unix).collect(),
            shared: shared.clone(),
            progress: groups.progress.clone(),
            successor: successor.clone(),
            right: right.clone(),
            is_first: is_first.clone(),
        };
        let mut before = self.before;
        if let Some(before) = &mut before {
            before.await_listeners(&listening, &groups.orders, shared)?;
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
                before.hear_out(is_first, groups.orders.clone(), shared.clone())?;
            }
        }
        let _no_switch = attend(&groups, signals, shared, board, started);
        otel::finish(shared);
        let goes_on = say_goodbye(&groups.progress, &successor);
        shared.records.audit.end(goes_on);
        // Unless another process accepts there.
        if !goes_on && right.try_take() {
            for listener in &listeners {
                listener.remove_file();
            }
        }
        Ok(())
    }
}

/// The right to accept, which this process has as long as it has no successor.
fn first_right() -> io::Result<Arc<Right>> {
    let right = Right::new()?;
    let _ = right.try_take();
    Ok(Arc::new(right))
}

/// Starts the threads that work for the groups.
fn start_helpers(shared: &Arc<Shared>, groups: &GroupThreads) -> Result<(), String> {
    let orders = groups.orders.clone().into();
    start_workers(shared, &orders)?;
    start_readers(shared, &orders)?;
    start_spool(shared, &orders)?;
    let orders = groups.orders.clone();
    let tell = move || Order::Look.tell_all(&orders);
    shared.upstream.tell(Box::new(tell));
    Ok(())
}

/// Through which others look at the pool: HTTP and the console.
struct Windows {
    board: Arc<Board>,
    live: Arc<Live>,
    /// No process before this one serves them until it has ended.
    is_first: bool,
}

impl Windows {
    fn new(is_first: bool) -> Windows {
        Windows {
            board: Arc::default(),
            live: Arc::default(),
            is_first,
        }
    }

    /// Serves HTTP, if the settings want it, also while the server is waited for.
    fn open_http(&self, settings: &Settings) -> Result<(), String> {
        let Some(http) = settings.http else {
            return Ok(());
        };
        let (board, live) = (self.board.clone(), self.live.clone());
        let place = (http.0, settings.http_names.clone());
        let token = settings.http_token.clone();
        let serve = move || site::serve(place.clone(), board.clone(), live.clone(), token.clone());
        serve_when_free(self.is_first, "http", serve)
    }

    /// Serves the console, if the settings want it, and shows the groups on the page.
    fn open_console(&self, shared: &Arc<Shared>, groups: &GroupThreads) -> Result<(), String> {
        let settings = shared.settings();
        let source = Arc::new(Console::new(
            shared.clone(),
            self.board.clone(),
            groups.orders.clone(),
            groups.questions.clone(),
        ));
        if settings.http.is_some() || settings.console.is_some() {
            live::keep(self.live.clone(), source.clone())?;
        }
        let Some(console) = settings.console.clone() else {
            return Ok(());
        };
        let access = settings.socket_access();
        let serve = move || console::serve(&console, access, source.clone());
        serve_when_free(self.is_first, "console", serve)
    }
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

/// Writes a file there, as replies would be.
pub(crate) fn try_spool(folder: &Path) -> io::Result<()> {
    let file = reactor::scratch::open(folder)?;
    reactor::Scratch::write_at(&file, &[0; 4096], 0)
}

/// True if replies can be stored where the settings say. A folder that nobody has asked for may be
/// missing: then clients that do not read are closed earlier.
fn check_spool(settings: &mut Settings) -> Result<(), String> {
    if settings.spool_bytes_max == 0 {
        return Ok(());
    }
    let folder = &settings.spool_folder;
    let Err(error) = try_spool(folder) else {
        return Ok(());
    };
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

/// Asks until the server answers; an account that it refuses ends the pool, and so do an error in
/// place of an answer, and a signal (`None`).
fn ask_server(
    upstream: &Upstream,
    settings: &Settings,
    signals: &mut Signals,
) -> Result<Option<ServerFacts>, String> {
    let (user, password) = settings.first_account();
    let key = PoolKey::to_ask(user, password);
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
            Err(error) if matches!(error.fault, Fault::Failed(_)) => {
                return Err(format!(
                    "the server at {} does not tell the pool's account '{}' what it is like: {}; \
                     correct on the server what the error names",
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
                        format_args!(
                            "waiting for the server: {}; it is tried again (if the address is \
                             wrong, correct --backend, or address below [backend], and restart)",
                            error.why
                        ),
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

/// Takes the groups through the stages of a drain, on a thread where that takes time.
fn drain(settings: &Settings, orders: &[reactor::Sender<Order>]) {
    let (wait, spread) = (settings.drain_wait, settings.drain_spread);
    note(
        Event::Draining,
        format_args!(
            "draining: clients are taken for {} s more, those that hold nothing closed over {} s, \
             and the rest after {} ms",
            wait.as_secs(),
            spread.as_secs(),
            settings.drain_max.as_millis()
        ),
    );
    let told = orders.to_vec();
    let stages = move || {
        reactor::pause(wait);
        if !spread.is_zero() {
            Order::CloseInTurns(spread).tell_all(&told);
            reactor::pause(spread);
        }
        Order::Drain.tell_all(&told);
    };
    let is_short = wait.is_zero() && spread.is_zero();
    let builder = std::thread::Builder::new().name("drain".into());
    if is_short || builder.spawn(stages).is_err() {
        Order::Drain.tell_all(orders);
    }
}

/// Waits for signals and for the groups' end. Gives what keeps switchovers from beginning.
fn attend<'a>(
    groups: &GroupThreads,
    mut signals: Signals,
    shared: &'a Shared,
    board: &Board,
    started: &Started,
) -> Option<MutexGuard<'a, ()>> {
    let mut draining = false;
    let end_switches = || (shared.cluster.as_ref()).map(|cluster| cluster.end_switches());
    let mut no_switch = None;
    for signal in &mut signals {
        match signal {
            SIGUSR1 => note(Event::Census, format_args!("{}", groups.census())),
            SIGUSR2 if groups.progress.steps().is_on => note(
                Event::Upgrade,
                format_args!("SIGUSR2: another process takes over already"),
            ),
            SIGUSR2 => started.start_successor(),
            SIGQUIT => Order::Report.tell_all(&groups.orders),
            SIGHUP => {
                note(
                    Event::Signal,
                    format_args!("SIGHUP: settings and certificates are read again"),
                );
                service::reloading();
                // What came of it is logged.
                let _ = reload::reload(shared);
                service::ready();
            }
            _ if draining => {
                note(
                    Event::Draining,
                    format_args!("second signal: ending at once"),
                );
                return no_switch;
            }
            _ => {
                draining = true;
                board.drains();
                service::stopping();
                no_switch = end_switches();
                drain(&shared.settings(), &groups.orders);
            }
        }
    }
    // One that has begun while another process took over.
    let no_switch = no_switch.or_else(end_switches);
    // The last group to end has closed the signals.
    let total = groups.sum();
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
    no_switch
}
