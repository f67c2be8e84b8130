//! The run: ramp, hold, measure, stop, report.
//!
//! The main thread tells the groups when a phase begins and asks for their numbers once an
//! interval. Everything on stdout is sysbench's text; progress and reasons go to stderr.
//!
//! What counts: a rate is what succeeded between the start and the order to stop, divided by that
//! time. Statements that were on their way then may still finish; their latencies count, for
//! leaving them out would leave out the slow ones, but they are in no rate.

use crate::Outcome;
use crate::group_threads::GroupThreads;
use crate::hooks::{Hook, Hooks};
use crate::options::LoadArgs;
use crate::output::{self, Watchers};
use crate::report::{self, Whole};
use crate::summary::{Measured, Rest, Summary};
use load_core::control::Order;
use load_core::layout::Layout;
use load_core::login::Credentials;
use load_core::plan::{Plan, Side};
use load_core::ports::{self, Sources};
use load_core::series::Point;
use load_core::stats::Stats;
use measure::process;
use reactor::{Address, Time};
use std::collections::VecDeque;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wire::dsn::Dsn;

const SECOND: Duration = Duration::from_secs(1);
/// Longest time that groups may take to end beyond the time they were given.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// Interval at which a run that waits for its last events says how many there are.
const ENDING_LINE: Duration = Duration::from_secs(5);

/// Runs the workload and reports.
///
/// # Errors
/// A sentence that says why it could not run; the JSON has been written all the same.
pub(crate) fn run(
    args: &LoadArgs,
    hooks: &mut dyn Hooks,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, String> {
    let layout = args.layout();
    let plan = Arc::new(make_plan(args)?);
    let args = &args.proving(&plan)?;
    aside!("load: {}", opening_line(args, &plan, &layout));
    args.manner.say(&report::header(args));
    let rss_before = process::own().map_or(0, |sample| sample.rss_bytes);
    let watchers = Watchers::open(args)?;
    let group_threads = GroupThreads::start(args, &plan, &layout)?;
    let mut crowd = Crowd {
        args,
        hooks,
        stop,
        group_threads,
        watchers,
        measured: Measured::default(),
        began: None,
        end: None,
    };
    crowd.ramp();
    crowd.measured.rss_idle_bytes = process::own().map_or(0, |sample| sample.rss_bytes);
    crowd.measured.rss_before_bytes = rss_before;
    crowd.measured.cores = layout.usable_cores();
    let can_run = crowd.measured.connected > 0 && crowd.group_threads.reason_to_stop().is_none();
    if can_run {
        crowd.hold();
        crowd.say(report::THREADS_STARTED);
        crowd.measure();
    }
    crowd.end();
    crowd.watchers.step_aside();
    let fatal = crowd.group_threads.fatal.take();
    if can_run && !(fatal.is_some() && args.manner.finishes_events()) {
        let last = Whole::last(args, &crowd.measured);
        if !crowd.hooks.report(Hook::Cumulative, last.numbers(args)) {
            args.manner.say(&last.text(args));
        }
    }
    if can_run {
        crowd.measured.proof = (args.proof.as_ref()).and_then(|proof| proof.check(&plan));
    }
    let failure = crowd.group_threads.failure.take();
    let summary = Summary::new(args, &plan, &layout, &crowd.measured, failure);
    load_core::aside::write(format_args!("{}", summary.text(&crowd.measured, &layout)));
    output::write_files(&args.output, &summary)?;
    match (fatal, &summary.limit) {
        (Some(reason), _) => Err(reason),
        (_, Some(_)) if !can_run => Err("it could not run; the limit above says why".to_owned()),
        _ if args.manner.forced && crowd.measured.unfinished > 0 => Ok(Outcome::Forced),
        _ if summary.is_crossed() => Ok(Outcome::Crossed),
        _ => summary
            .check_success(args, &crowd.measured)
            .map(|()| Outcome::Ran),
    }
}

/// Position in the measured time: a point each second, a line each interval of the report.
struct Clock {
    began: Time,
    /// CPU time of this process, and of each group's thread, when it began.
    cpu_began: Duration,
    groups_cpu_began: Vec<Duration>,
    /// CPU time of this process at the last point.
    cpu: Duration,
    point_from: Time,
    point_due: Time,
    interval: Duration,
    line_from: Time,
    line_due: Time,
    /// Counts that the first line has besides.
    starting: Stats,
    /// Counted since the last line.
    pending: Stats,
    /// Checkpoints of the report that are still to come, in order.
    checkpoints: VecDeque<Time>,
}

impl Clock {
    fn new(args: &LoadArgs, group_threads: &GroupThreads) -> Clock {
        let began = Time::now();
        let cpu = process::own().unwrap_or_default().cpu;
        let interval = Duration::from_secs(args.report_interval.max(1));
        Clock {
            began,
            cpu_began: cpu,
            groups_cpu_began: group_threads.cpu(),
            cpu,
            point_from: began,
            point_due: began + SECOND,
            interval,
            line_from: began,
            line_due: began + interval,
            starting: Stats::default(),
            pending: Stats::default(),
            checkpoints: args
                .checkpoints()
                .map(|after| began + Duration::from_secs(after))
                .collect(),
        }
    }

    /// Takes the checkpoints up to `due` off the list; true if there was one.
    fn take_checkpoint(&mut self, due: Time) -> bool {
        let before = self.checkpoints.len();
        self.checkpoints.retain(|checkpoint| *checkpoint > due);
        self.checkpoints.len() < before
    }
}

pub(crate) fn make_plan(args: &LoadArgs) -> Result<Plan, String> {
    let Some((reading, writing)) = args.sides() else {
        return plan_of(args);
    };
    let side = plan_of(&reading)?;
    let mut plan = plan_of(&writing)?;
    plan.sources = Sources::choose(
        farthest(&plan.address, std::slice::from_ref(&side.address)),
        args.connections,
        &args.source_addresses,
        ports::local_range(),
    );
    plan.read = Some(Side {
        script: side.script,
        credentials: side.credentials,
        address: side.address,
        share: (reading.connections, args.connections),
    });
    Ok(plan)
}

fn plan_of(args: &LoadArgs) -> Result<Plan, String> {
    let address = resolve(&args.target)?;
    let given = &args.source_addresses;
    let more_addresses = resolve_all(&args.more_targets())?;
    let server = farthest(&address, &more_addresses);
    // The same local port serves once for each address of the server.
    let places = u32::try_from(1 + more_addresses.len()).unwrap_or(u32::MAX);
    let each = args.connections.div_ceil(places);
    let seed = match args.rand_seed {
        0 => Time::now().0,
        seed => seed,
    };
    Ok(Plan {
        script: args.make_script(),
        tolerance: args.tolerance.clone(),
        finishes_events: args.manner.finishes_events(),
        counts_by_text: args.manner.counts_by_text(),
        model: args.model.model(args.connections),
        credentials: Credentials::of(&args.target, [&address].into_iter().chain(&more_addresses))
            .compressing(args.compression)
            .securing(args.security()?),
        init_sql: args.init_sql.clone(),
        sources: Sources::choose(server, each, given, ports::local_range()),
        more_addresses,
        read: None,
        address,
        connect_timeout: Duration::from_secs(args.connect_timeout),
        connects_in_flight: args.connects_in_flight(),
        ordered_users: args.locust.master.as_ref().map(|_| 0),
        seed,
    })
}

/// The server that sources have to reach: one beyond this machine if there is one, for an address
/// of 127.0.0.0/8 reaches only its like.
fn farthest(first: &Address, more: &[Address]) -> Option<IpAddr> {
    let ip = |address: &Address| match address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    };
    let beyond = |ip: &IpAddr| !ip.is_loopback();
    let found = more.iter().filter_map(ip).find(beyond);
    ip(first).filter(beyond).or(found).or(ip(first))
}

fn resolve_all(targets: &[Dsn]) -> Result<Vec<Address>, String> {
    targets.iter().map(resolve).collect()
}

/// Looks the server's name up; of several addresses an IPv4 one is preferred, for more servers
/// listen there.
pub(crate) fn resolve(target: &Dsn) -> Result<Address, String> {
    if let Some(path) = &target.socket {
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    let found = (target.host.as_str(), target.port).to_socket_addrs();
    let found: Vec<_> = found
        .map_err(|e| format!("the target's host '{}' was not found: {e}", target.host))?
        .collect();
    let preferred = found.iter().find(|address| address.is_ipv4());
    preferred
        .or(found.first())
        .copied()
        .map(Address::Tcp)
        .ok_or_else(|| format!("the target's host '{}' has no address", target.host))
}

fn opening_line(args: &LoadArgs, plan: &Plan, layout: &Layout) -> String {
    let sources = match plan.sources.addresses.as_slice() {
        [] => String::new(),
        [only] => format!("; from {only}"),
        [first, .., last] => format!("; from {first} to {last}: {}", plan.sources.arithmetic()),
    };
    let mut more = match plan.more_addresses.len() {
        0 => String::new(),
        more => format!(" and, in turn, {more} more"),
    };
    if let (Some(side), Some(target)) = (&plan.read, &args.read_target) {
        more = format!(
            "{more}, {} of them to {} for reads",
            side.share.0,
            target.place()
        );
    }
    format!(
        "{} connections to {}{more} in {}{sources}",
        args.connections,
        args.target.place(),
        layout.reason()
    )
}

struct Crowd<'a> {
    args: &'a LoadArgs,
    /// Hooks that may write a report in place of the text.
    hooks: &'a mut dyn Hooks,
    stop: &'a AtomicBool,
    group_threads: GroupThreads,
    watchers: Watchers,
    measured: Measured,
    /// Start of measuring.
    began: Option<Time>,
    /// Moment by which groups have to end, once they have been told to.
    end: Option<Time>,
}

impl Crowd<'_> {
    /// Writes to stdout, above the picture on the terminal if there is one.
    fn say(&mut self, text: &str) {
        self.watchers.step_aside();
        self.args.manner.say(text);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.group_threads.reason_to_stop().is_some()
    }

    /// Opens all connections.
    fn ramp(&mut self) {
        let began = Time::now();
        let mut line_due = began + SECOND;
        let mut counts = Stats::default();
        while self.group_threads.settled < self.group_threads.len() && !self.is_stopped() {
            self.group_threads.listen(line_due);
            if Time::now() >= line_due {
                line_due = line_due + SECOND;
                let new = self.group_threads.report(Order::Report);
                self.watchers.show(&new, self.group_threads.gauges(), None);
                counts.merge(new);
                if !self.watchers.is_live() {
                    self.say_ramp(&counts, began);
                }
            }
        }
        self.measured.connect_s = Time::now().since(began).as_secs_f64();
        let new = self.group_threads.report(Order::Report);
        self.watchers.show(&new, self.group_threads.gauges(), None);
        counts.merge(new);
        self.say_ramp(&counts, began);
        self.measured.connected = self.group_threads.connected();
        if self.args.lua.is_some() && self.args.manner.finishes_events() {
            self.measured.starting = counts.statements();
        }
        self.measured.outside = counts;
    }

    fn say_ramp(&mut self, counts: &Stats, began: Time) {
        self.watchers.step_aside();
        aside!(
            "load: connected {} of {}, {} failed, {:.1} s",
            self.group_threads.connected(),
            self.args.connections,
            counts.failed_connects,
            Time::now().since(began).as_secs_f64()
        );
    }

    /// Keeps all connections open without a statement.
    fn hold(&mut self) {
        let time = self.args.idle_time;
        if time.is_zero() {
            return;
        }
        self.watchers.step_aside();
        aside!(
            "load: holding {} idle connections for {} s",
            self.measured.connected,
            time.as_secs_f64()
        );
        self.wait(Time::now() + time);
        let counts = self.group_threads.report(Order::Report);
        if counts.lost > 0 {
            self.watchers.step_aside();
            aside!(
                "load: {} idle connections were lost and opened again",
                counts.lost
            );
        }
        self.measured.outside.merge(counts);
        self.measured.rss_idle_bytes = process::own().map_or(0, |sample| sample.rss_bytes);
    }

    fn wait(&mut self, until: Time) {
        while Time::now() < until && !self.is_stopped() {
            self.group_threads.listen(until);
        }
    }

    /// Executes for the time or the events that are wanted.
    fn measure(&mut self) {
        self.group_threads.order(Order::Start);
        let warmup = self.args.warmup_time;
        if !warmup.is_zero() {
            self.watchers.step_aside();
            aside!("load: warming up for {} s", warmup.as_secs_f64());
            self.wait(Time::now() + warmup);
            self.group_threads.report(Order::Report);
            self.group_threads.order(Order::Reset);
        }
        let mut clock = Clock::new(self.args, &self.group_threads);
        self.began = Some(clock.began);
        clock.starting = self.measured.starting.clone();
        self.note_rest(&clock.starting);
        let end = self
            .args
            .duration()
            .map_or(Time::NEVER, |time| clock.began + time);
        loop {
            self.group_threads.listen(clock.point_due.min(end));
            let now = Time::now();
            let is_finished = self.group_threads.finished == self.group_threads.len();
            if now >= end || is_finished || self.is_stopped() {
                break;
            }
            if now >= clock.point_due {
                let due = clock.point_due;
                let counts = self.counts_at(&mut clock, due);
                self.point(&mut clock, counts, due);
                clock.point_due = clock.point_due + SECOND;
            }
        }
        let now = Time::now();
        let span = (clock.began, now);
        let mut counts = Stats::default();
        if clock.checkpoints.front().is_some_and(|due| *due <= now) {
            counts = self.counts_at(&mut clock, now);
        }
        let rest = self.stop();
        self.note_rest(&rest);
        counts.merge(rest);
        self.note_end(&clock, now);
        if now.since(clock.point_from) * 2 >= SECOND {
            self.point(&mut clock, counts, now);
        } else {
            clock.pending.merge(counts);
        }
        self.line(&mut clock, now);
        self.measured.window.merge(clock.pending);
        self.measured.steps = self.measured.window.steps.between(span.0, span.1);
    }

    /// Counts of all groups up to a point that was due then, with the report of a checkpoint if
    /// there is one.
    fn counts_at(&mut self, clock: &mut Clock, due: Time) -> Stats {
        if !clock.take_checkpoint(due) {
            let counts = self.group_threads.report(Order::Report);
            self.note_rest(&counts);
            return counts;
        }
        let counts = self.group_threads.report(Order::Checkpoint);
        self.note_rest(&counts);
        let tally = std::mem::take(&mut self.group_threads.tally);
        let seconds = Time::now().since(clock.began).as_secs_f64();
        let at = due.since(clock.began).as_secs_f64();
        let rest = self.measured.rest.take().unwrap_or_default();
        let threads = self.group_threads.connected();
        let whole = Whole::checkpoint(self.args, (at, seconds), threads, &rest, &tally);
        self.watchers.step_aside();
        match self
            .hooks
            .report(Hook::Cumulative, whole.numbers(self.args))
        {
            true => self.args.manner.say(whole.front()),
            false => self.args.manner.say(&whole.text(self.args)),
        }
        self.measured.rest = Some(Rest {
            window: Stats::default(),
            from_s: seconds,
        });
        counts
    }

    /// Counts the time since the last checkpoint, where checkpoints are wanted.
    fn note_rest(&mut self, counts: &Stats) {
        if self.args.checkpoints().next().is_some() {
            let rest = self.measured.rest.get_or_insert_default();
            rest.window.merge(counts.clone());
        }
    }

    /// Notes the figures that have to be read at the end of the measured time.
    fn note_end(&mut self, clock: &Clock, now: Time) {
        let sample = process::own().unwrap_or_default();
        let measured = &mut self.measured;
        measured.rss_bytes = sample.rss_bytes;
        measured.cpu_s = sample.cpu.saturating_sub(clock.cpu_began).as_secs_f64();
        measured.seconds = now.since(clock.began).as_secs_f64();
        measured.waiting = self.group_threads.gauges().waiting;
        let used = self
            .group_threads
            .cpu()
            .into_iter()
            .zip(&clock.groups_cpu_began);
        measured.busiest_group_s = used
            .map(|(now, began)| now.saturating_sub(*began).as_secs_f64())
            .fold(0.0, f64::max);
    }

    /// Tells the groups to stop; returns what they counted until then.
    fn stop(&mut self) -> Stats {
        // Whoever ends it early does not want to wait for long.
        let seconds = match self.is_stopped() {
            true => self.args.end_timeout.min(ENDING_MAX.as_secs()),
            false => self.args.end_timeout,
        };
        let end = Time::now() + Duration::from_secs(seconds);
        self.end = Some(end);
        self.group_threads.report(Order::Stop(end))
    }

    /// Adds one point of the series, which was to end at `due`, and prints a line of the report
    /// where one is due.
    fn point(&mut self, clock: &mut Clock, counts: Stats, due: Time) {
        let now = Time::now();
        let cpu = process::own().unwrap_or_default().cpu;
        let point = Point::new(
            due.since(clock.began),
            now.since(clock.point_from),
            &counts,
            &self.group_threads.gauges(),
            cpu.saturating_sub(clock.cpu),
            self.measured.cores,
        );
        self.watchers
            .show(&counts, self.group_threads.gauges(), Some(&point));
        self.measured.series.push(point);
        (clock.point_from, clock.cpu) = (now, cpu);
        clock.pending.merge(counts);
        if due >= clock.line_due {
            self.line(clock, due);
            clock.line_due = clock.line_due + clock.interval;
        }
    }

    /// Prints a line of the report, for what has been counted since the last one, if that is a good
    /// part of an interval.
    fn line(&mut self, clock: &mut Clock, due: Time) {
        let now = Time::now();
        let length = now.since(clock.line_from);
        if length * 2 < clock.interval {
            return;
        }
        let counts = std::mem::take(&mut clock.pending);
        if self.args.report_interval > 0 {
            let at = due.since(clock.began).as_secs_f64();
            let seconds = length.as_secs_f64();
            let gauges = self.group_threads.gauges();
            self.watchers.step_aside();
            let mut shown = counts.clone();
            shown.merge(std::mem::take(&mut clock.starting));
            let numbers = report::interval_numbers(self.args, at, seconds, &gauges, &shown);
            if !self.hooks.report(Hook::Intermediate, numbers) {
                let line = report::interval(self.args, at, seconds, &gauges, &shown);
                self.args.manner.say(&line);
            }
        }
        self.measured.window.merge(counts);
        clock.line_from = now;
    }

    /// Waits until all groups have ended, or their time is over. Events may take long to end: at
    /// many connections to few rows each is run again after every deadlock. How many there are is
    /// said, and a signal leaves them where they are.
    fn let_events_end(&mut self) {
        let mut was_stopped = self.is_stopped();
        let mut line_due = Time::now() + ENDING_LINE;
        while self.group_threads.ended < self.group_threads.len() {
            let until = self.end.unwrap_or_else(Time::now) + ENDING_MAX;
            let now = Time::now();
            if now >= until || !self.group_threads.listen(until.min(line_due)) {
                return;
            }
            if !was_stopped && self.is_stopped() {
                was_stopped = true;
                let end = (Time::now() + ENDING_MAX).min(until);
                self.end = Some(end);
                self.group_threads.order(Order::Stop(end));
            }
            if Time::now() >= line_due {
                line_due = line_due + ENDING_LINE;
                self.group_threads.order(Order::Report);
                self.say_ending();
            }
        }
    }

    fn say_ending(&mut self) {
        let executing = self.group_threads.gauges().executing;
        if executing > 0 && self.args.manner.finishes_events() {
            self.watchers.step_aside();
            aside!(
                "load: the time is over; {executing} events that have begun run to their end \
                 (--forced-shutdown or a signal ends them)"
            );
        }
    }

    /// Ends all groups and takes their last numbers.
    fn end(&mut self) {
        if self.end.is_none() {
            self.measured.drain = self.stop();
        }
        self.let_events_end();
        let until = self.end.unwrap_or_else(Time::now) + ENDING_MAX;
        self.measured.drain.merge(self.group_threads.end(until));
        self.measured.whole_seconds = self
            .began
            .map_or(0.0, |began| Time::now().since(began).as_secs_f64());
        self.measured.tally = self.group_threads.tally;
        self.measured.unfinished = self.group_threads.unfinished;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_to_reach_the_farthest_server() {
        let tcp = |ip: &str| Address::Tcp(format!("{ip}:1").parse().unwrap());
        let (here, there) = (tcp("127.0.0.1"), tcp("10.0.0.2"));
        let ip = |text: &str| Some(text.parse().unwrap());
        assert_eq!(
            farthest(&here, std::slice::from_ref(&there)),
            ip("10.0.0.2")
        );
        assert_eq!(
            farthest(&there, std::slice::from_ref(&here)),
            ip("10.0.0.2")
        );
        assert_eq!(farthest(&here, &[tcp("127.0.0.2")]), ip("127.0.0.1"));
        assert_eq!(farthest(&Address::Unix("/s".into()), &[]), None);
    }
}
