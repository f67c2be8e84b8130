//! The run of long connections: open them, let them talk, stop, say what came.
//!
//! The main thread gives orders and collects messages; what a group counts it keeps until it is
//! asked. All connections are opened first, at the rate that was asked for and without a limit of
//! time for the whole; the time of the run counts from then on.

use super::counts::{Census, Counts};
use super::group::{self, Counted, Message, Order, Plan, Share, Talk};
use super::hold::{Agreed, Hold};
use super::http::{Asker, Question, USER_AGENT};
use super::http2::{self, Multiplexed};
use super::live::{Gauges, LivePage, Scene};
use super::options::{HttpArgs, HttpVersion, LongArgs, SwarmArgs};
use super::summary::{Summary, Words};
use load_core::control::Part;
use load_core::exit_status::FAILED;
use load_core::layout::Layout;
use load_core::ports::{self, Sources};
use load_core::threads::{Heard, PANICKED, Threads};
use load_core::transport::Security;
use measure::process;
use reactor::{Address, Time};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval at which the page of the run is made.
const SHOWN_EVERY: Duration = Duration::from_secs(1);
/// Longest time for groups to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Runs what `args` say, until `stop` is set or the time is over. Status 0 when it ran, whatever
/// came; 1 when it could not, with the reason on stderr.
#[must_use]
pub fn run(args: &LongArgs, stop: &AtomicBool) -> ExitCode {
    match run_args(args, stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            aside!("onramp load: {reason}");
            ExitCode::from(FAILED)
        }
    }
}

fn run_args(args: &LongArgs, stop: &AtomicBool) -> Result<(), String> {
    let swarm = args.swarm();
    let layout = layout(swarm);
    let words = words(args);
    let job = prepare(args)?;
    let rss_before = process::own().map_or(0, |sample| sample.rss_bytes);
    let page = match swarm.http.as_deref() {
        None => None,
        Some(address) => {
            let scene = Scene {
                kind: words.kind,
                message: words.message,
                target: args.target().to_string(),
                tls: job.security.name(),
                connections: swarm.connections,
                time_s: job.time.as_secs(),
            };
            let place = (address, &*swarm.http_names);
            Some(LivePage::open(place, scene, layout.cores)?)
        }
    };
    let (time, patience) = (job.time, job.patience);
    aside!(
        "load: {} connections to {} in {}; {}",
        swarm.connections,
        args.target(),
        layout.reason(),
        job.sources.arithmetic()
    );
    let mut summary = Summary::new(&words, swarm, args.target(), &layout, &job.security);
    let mut group_threads = job.start(swarm, &layout)?;
    group_threads.page = page;
    group_threads.ramp(swarm, stop);
    summary.ramped(&group_threads.total, group_threads.elapsed());
    if group_threads.failure.is_none() && summary.connected > 0 {
        let rss = process::own().map_or(0, |sample| sample.rss_bytes);
        summary.rss_bytes_per_connection = process::bytes_each(rss_before, rss, summary.connected);
        group_threads.order(Order::Start);
        group_threads.hold(swarm, &words, time, stop);
    }
    let standing = group_threads.ask(Order::Report);
    let seconds = group_threads.elapsed() - summary.connect_s;
    let census = group_threads.end(patience);
    summary.finish(&group_threads.total, standing, census, seconds);
    summary.write(swarm.json.as_deref())?;
    // Whoever reads it may have gone; the run is what counts.
    let _ = io::stdout()
        .lock()
        .write_all(summary.text(&words).as_bytes());
    match group_threads.failure {
        Some(reason) => Err(reason),
        None if summary.connected == 0 => Err("no connection came to stand".to_owned()),
        None => Ok(()),
    }
}

/// Starts the groups of such a run, for whoever gives them orders.
///
/// # Errors
/// A sentence that says why they cannot begin.
pub(super) fn start(args: &LongArgs) -> Result<GroupThreads, String> {
    prepare(args)?.start(args.swarm(), &layout(args.swarm()))
}

fn layout(swarm: &SwarmArgs) -> Layout {
    Layout::choose(swarm.connections, swarm.groups, swarm.descriptors_per_group)
}

fn words(args: &LongArgs) -> Words {
    match args {
        LongArgs::Hold(_) => Words {
            kind: "tcp-hold",
            message: "message",
            latency: "behind its time",
        },
        LongArgs::Http(_) => Words {
            kind: "http",
            message: "answer",
            latency: "from request to last byte",
        },
    }
}

/// A run that may begin.
struct Job {
    address: Address,
    sources: Sources,
    security: Security,
    talk: TalkPlan,
    /// Length of the run, and of the end's wait for what is under way.
    time: Duration,
    patience: Duration,
}

/// Plan of connections, by protocol.
enum TalkPlan {
    Hold(Agreed),
    One(Question),
    Two(Question),
}

fn prepare(args: &LongArgs) -> Result<Job, String> {
    let (talk, protocols, time, patience) = match args {
        LongArgs::Hold(args) => {
            let agreed = Agreed {
                message: args.body.bytes(),
                every: args.every,
                tolerance: args.late_after,
            };
            let time = args.time.unwrap_or(args.every * 2);
            (
                TalkPlan::Hold(agreed),
                Hold::PROTOCOLS,
                time,
                Duration::ZERO,
            )
        }
        LongArgs::Http(args) => {
            let (talk, protocols) = match args.http_version {
                HttpVersion::One => {
                    let question = question(args, request(args));
                    (TalkPlan::One(question), Asker::PROTOCOLS)
                }
                HttpVersion::Two => {
                    let question = question(args, http2::request(&args.url)?);
                    (TalkPlan::Two(question), Multiplexed::PROTOCOLS)
                }
            };
            (talk, protocols, args.time, args.timeout)
        }
    };
    let (place, swarm) = (args.target(), args.swarm());
    let security = match place.is_secure() {
        true => Security::tls(&swarm.tls, swarm.tls.check(), &place.host, protocols)?,
        false => Security::Plain,
    };
    let address = place.resolve()?;
    let sources = Sources::choose(
        Some(address.ip()),
        swarm.connections,
        &swarm.source_addresses,
        ports::local_range(),
    );
    Ok(Job {
        address: Address::Tcp(address),
        sources,
        security,
        talk,
        time,
        patience,
    })
}

impl Job {
    fn start(self, args: &SwarmArgs, layout: &Layout) -> Result<GroupThreads, String> {
        match self.talk {
            TalkPlan::Hold(own) => {
                let plan = plan(args, self.address, self.sources, self.security, own);
                GroupThreads::start::<Hold>(args, layout, plan)
            }
            TalkPlan::One(own) => {
                let plan = plan(args, self.address, self.sources, self.security, own);
                GroupThreads::start::<Asker>(args, layout, plan)
            }
            TalkPlan::Two(own) => {
                let plan = plan(args, self.address, self.sources, self.security, own);
                GroupThreads::start::<Multiplexed>(args, layout, plan)
            }
        }
    }
}

fn plan<P>(
    args: &SwarmArgs,
    address: Address,
    sources: Sources,
    security: Security,
    own: P,
) -> Plan<P> {
    Plan {
        address,
        sources,
        security,
        connect_timeout: args.connect_timeout,
        connects_in_flight: args.connects_in_flight,
        seed: match args.rand_seed {
            0 => Time::now().0,
            seed => seed,
        },
        ordered_users: args.locust.master.as_ref().map(|_| 0),
        own,
    }
}

/// A whole request of HTTP/1.1.
fn request(args: &HttpArgs) -> Vec<u8> {
    let close = if args.no_keep_alive {
        "Connection: close\r\n"
    } else {
        ""
    };
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\n{close}\r\n",
        args.url.path,
        args.url.authority(),
    )
    .into_bytes()
}

fn question(args: &HttpArgs, request: Vec<u8>) -> Question {
    Question {
        request,
        expected: args.expected(),
        think: args.think_time,
        late_after: args.late_after,
        timeout: args.timeout,
        keep_alive: !args.no_keep_alive,
        streams: args.streams,
        is_secure: args.url.is_secure(),
    }
}

/// All groups, as the main thread sees them.
pub(super) struct GroupThreads {
    threads: Threads<Order, Message>,
    began: Time,
    /// Connections of each group by state.
    gauges: Vec<Gauges>,
    page: Option<LivePage>,
    settled: usize,
    answers: usize,
    ended: usize,
    pub(super) total: Counts,
    census: Census,
    /// Reason for a group that could not begin or go on.
    pub(super) failure: Option<String>,
}

impl GroupThreads {
    fn start<T: Talk>(
        args: &SwarmArgs,
        layout: &Layout,
        plan: Plan<T::Plan>,
    ) -> Result<GroupThreads, String> {
        let plan = Arc::new(plan);
        let began = Time::now();
        let threads = Threads::start(layout.groups, |number| {
            let (first, connections) = layout.deal(number, args.connections);
            let part = f64::from(connections) / f64::from(args.connections);
            let share = Share {
                group: number as usize,
                first,
                connections,
                connects_per_second: f64::from(args.connect_rate) * part,
                part: Part {
                    group: number,
                    groups: layout.groups,
                    connections: args.connections,
                },
            };
            let plan = plan.clone();
            move |mailbox, letters| group::run::<T>(plan, share, mailbox, letters)
        })?;
        Ok(GroupThreads {
            threads,
            began,
            gauges: vec![Gauges::default(); layout.groups as usize],
            page: None,
            settled: 0,
            answers: 0,
            ended: 0,
            total: Counts::default(),
            census: Census::default(),
            failure: None,
        })
    }

    fn elapsed(&self) -> f64 {
        Time::now().since(self.began).as_secs_f64()
    }

    fn gauges(&self) -> Gauges {
        let mut all = Gauges::default();
        self.gauges.iter().for_each(|group| all.add(*group));
        all
    }

    pub(super) fn order(&self, order: Order) {
        self.threads.order(order);
    }

    fn is_stopped(&self, stop: &AtomicBool) -> bool {
        stop.load(Ordering::Relaxed) || self.failure.is_some()
    }

    /// Reads one message, if one comes in a short while.
    pub(super) fn listen(&mut self, until: Time) {
        match self.threads.hear(until, self.ended) {
            Heard::Message(message) => self.take(message),
            Heard::Nothing => {}
            Heard::Lost(gone) => {
                self.ended = gone;
                self.failure.get_or_insert_with(|| PANICKED.to_owned());
            }
            Heard::Nobody => {
                if self.ended < self.threads.count() {
                    self.failure.get_or_insert_with(|| PANICKED.to_owned());
                }
                self.ended = self.threads.count();
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Settled => self.settled += 1,
            Message::Counted(counted) => {
                self.answers += 1;
                self.count(*counted);
            }
            Message::Ended(counted, census) => {
                self.ended += 1;
                self.census.add(census);
                self.count(*counted);
            }
            Message::Failed(reason) => {
                self.ended += 1;
                self.failure = Some(reason);
            }
        }
    }

    fn count(&mut self, counted: Counted) {
        if let Some(page) = &mut self.page {
            page.count(&counted.counts);
        }
        self.total.merge(counted.counts);
        if let Some(gauges) = self.gauges.get_mut(counted.group) {
            *gauges = counted.gauges;
        }
    }

    /// Makes all groups hand over what they counted; returns how many connections stand.
    pub(super) fn ask(&mut self, order: Order) -> u64 {
        self.answers = 0;
        self.order(order);
        let until = Time::now() + ANSWER_MAX;
        while self.answers + self.ended < self.threads.count() && Time::now() < until {
            self.listen(until);
        }
        let gauges = self.gauges();
        if let Some(page) = &mut self.page {
            page.show(&self.total, gauges);
        }
        gauges.connected
    }

    /// Opens all connections, and says how it goes each second.
    fn ramp(&mut self, args: &SwarmArgs, stop: &AtomicBool) {
        let mut due = Time::now() + Duration::from_secs(1);
        while self.settled < self.threads.count() && !self.is_stopped(stop) {
            self.listen(due);
            if Time::now() >= due {
                due = due + Duration::from_secs(1);
                self.say_ramp(args);
            }
        }
        self.say_ramp(args);
    }

    fn say_ramp(&mut self, args: &SwarmArgs) {
        let standing = self.ask(Order::Report);
        aside!(
            "load: connected {standing} of {}, {} failed, {:.1} s",
            args.connections,
            self.total.failed_connects,
            self.elapsed()
        );
    }

    /// Lets the connections talk for a time, and says now and then how it goes.
    fn hold(&mut self, args: &SwarmArgs, words: &Words, time: Duration, stop: &AtomicBool) {
        let end = Time::now() + time;
        let interval = Duration::from_secs(args.report_interval);
        let next = |now: Time| {
            if interval.is_zero() {
                Time::NEVER
            } else {
                now + interval
            }
        };
        let mut due = next(Time::now());
        let is_watched = self.page.is_some();
        let shown = |now: Time| match is_watched {
            true => now + SHOWN_EVERY,
            false => Time::NEVER,
        };
        let mut show = shown(Time::now());
        if let Some(page) = &mut self.page {
            page.begin();
        }
        while Time::now() < end && !self.is_stopped(stop) {
            self.listen(end.min(due).min(show));
            if Time::now() >= show {
                show = shown(show);
                self.ask(Order::Report);
            }
            if Time::now() >= due {
                due = next(due);
                let standing = self.ask(Order::Report);
                aside!(
                    "load: {standing} connections; {}",
                    words.verdicts(&self.total)
                );
            }
        }
    }

    /// Ends all groups and takes their last numbers.
    pub(super) fn end(&mut self, patience: Duration) -> Census {
        let end = Time::now() + patience;
        self.order(Order::Stop(end));
        let until = end + ANSWER_MAX;
        while self.ended < self.threads.count() && Time::now() < until {
            self.listen(until);
        }
        self.census
    }
}
