//! A target's main thread: from options to groups that serve, and to their end.

use super::group::{self, Counts, Message, Order, Plan};
use super::options::{Kind, SizeArgs, TargetArgs};
use super::peer::Texts;
use load_core::exit_status::BAD_OPTIONS;
use load_core::threads::{Heard, PANICKED, Threads};
use reactor::{Address, Time, descriptors, socket};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Descriptors of a table that are not for connections: standard streams, poll, listener.
const RESERVE: u64 = 64;
/// Longest time for groups to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Serves until `stop` is set. Status 0; 1 when it could not serve; 2 for options that make no
/// sense.
#[must_use]
pub fn run(args: &TargetArgs, stop: &Arc<AtomicBool>) -> ExitCode {
    let (listen, texts, every, size) = match &args.kind {
        Kind::Tcp(tcp) => (
            &tcp.listen,
            Texts::plain(&tcp.body.bytes()),
            Some(tcp.every),
            &tcp.size,
        ),
        Kind::Http(http) => (
            &http.listen,
            Texts::http(&http.body.bytes()),
            None,
            &http.size,
        ),
    };
    if texts.message.is_empty() {
        aside!("onramp target: --payload is empty; a message has at least one byte");
        return ExitCode::from(BAD_OPTIONS);
    }
    match serve(listen, texts, every, size, stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            aside!("onramp target: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    listen: &str,
    texts: Texts,
    every: Option<Duration>,
    size: &SizeArgs,
    stop: &AtomicBool,
) -> Result<(), String> {
    let address = match Address::parse(listen)? {
        Address::Tcp(address) => address,
        Address::Unix(path) => {
            let path = path.display();
            return Err(format!(
                "--listen {path}: expected HOST:PORT, not the path of a socket"
            ));
        }
    };
    // Held to the end, so that nobody else takes the port before the groups listen there.
    let (_held, address) =
        socket::reserve(&address).map_err(|e| format!("cannot listen on {address}: {e}"))?;
    let (groups, room) = plan_groups(size);
    let plan = Plan {
        address,
        backlog: size.backlog,
        texts,
        every,
        room,
    };
    let group_threads = GroupThreads::start(groups, plan)?;
    aside!("target: {groups} groups with room for {room} connections each; listening on {address}");
    group_threads.attend(size.report_interval, stop)
}

/// Number of groups, and of connections that each has room for.
fn plan_groups(size: &SizeArgs) -> (u32, usize) {
    let limit = descriptors::raise_limit().soft;
    let cores = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let own_tables = thread::spawn(|| descriptors::own_table().is_ok())
        .join()
        .unwrap_or(false);
    let wanted = u64::from(size.connections_max);
    let room = |groups: u64| limit.saturating_sub(RESERVE + groups).max(1);
    let mut groups = cores.min(wanted);
    if size.groups > 0 {
        groups = size.groups.into();
    } else if own_tables {
        // Each group costs the others a descriptor, for its mailbox.
        groups = descriptors::groups_for(wanted, room(0), groups);
        groups = descriptors::groups_for(wanted, room(groups), groups);
    }
    // One table has to do for all groups where they may not have their own.
    let room = if own_tables {
        room(groups)
    } else {
        room(groups) / groups
    };
    (
        u32::try_from(groups).unwrap_or(u32::MAX),
        usize::try_from(room).unwrap_or(usize::MAX),
    )
}

struct GroupThreads {
    threads: Threads<Order, Message>,
    every: Option<Duration>,
    address: SocketAddr,
}

impl GroupThreads {
    fn start(groups: u32, plan: Plan) -> Result<GroupThreads, String> {
        let plan = Arc::new(plan);
        let threads = Threads::start(groups, |_| {
            let plan = plan.clone();
            move |mailbox, letters| group::run(plan, mailbox, letters)
        })?;
        let group_threads = GroupThreads {
            threads,
            every: plan.every,
            address: plan.address,
        };
        let until = Time::now() + ANSWER_MAX;
        let mut ready = 0;
        while ready < group_threads.threads.count() {
            match group_threads.hear(until, 0)? {
                Some(Message::Ready) => ready += 1,
                None if Time::now() >= until => {
                    return Err("a group did not begin to listen in time".to_owned());
                }
                _ => {}
            }
        }
        Ok(group_threads)
    }

    /// The next message, if one comes in a short while.
    fn hear(&self, until: Time, ended: usize) -> Result<Option<Message>, String> {
        match self.threads.hear(until, ended) {
            Heard::Message(Message::Failed(reason)) => Err(reason),
            Heard::Message(message) => Ok(Some(message)),
            Heard::Nothing => Ok(None),
            Heard::Lost(_) => Err(PANICKED.to_owned()),
            Heard::Nobody => Err("all groups have ended".to_owned()),
        }
    }

    /// Waits for the end, and says on the way how it stands.
    fn attend(&self, report_interval: u64, stop: &AtomicBool) -> Result<(), String> {
        let began = Time::now();
        let interval = Duration::from_secs(report_interval);
        let mut due = if report_interval > 0 {
            began + interval
        } else {
            Time::NEVER
        };
        let mut total = Counts::default();
        while !stop.load(Ordering::Relaxed) {
            self.hear(due, 0)?;
            if Time::now() >= due {
                due = due + interval;
                self.ask(Order::Report, &mut total)?;
                aside!("target: {}", self.sentence(&total));
            }
        }
        self.ask(Order::Stop, &mut total)?;
        let seconds = Time::now().since(began).as_secs_f64();
        aside!(
            "target: ended on {} after {seconds:.1} s: {}",
            self.address,
            self.sentence(&total)
        );
        Ok(())
    }

    /// Adds what all groups have counted.
    fn ask(&self, order: Order, total: &mut Counts) -> Result<(), String> {
        self.threads.order(order);
        total.standing = 0;
        let until = Time::now() + ANSWER_MAX;
        let mut answers = 0;
        while answers < self.threads.count() {
            // Whoever ends says so in his answer.
            match self.hear(until, answers)? {
                Some(Message::Counted(counts) | Message::Ended(counts)) => {
                    answers += 1;
                    total.add(counts);
                }
                None if Time::now() >= until => {
                    return Err("a group did not answer in time".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn sentence(&self, counts: &Counts) -> String {
        let Counts {
            standing,
            accepted,
            refused,
            sent,
            behind,
            broken,
        } = *counts;
        let (what, behind) = match self.every {
            Some(_) => (
                "messages",
                format!(" ({behind} of them due before the last had left)"),
            ),
            None => ("answers", String::new()),
        };
        format!(
            "{standing} connections stand, {accepted} accepted, {refused} refused, {broken} broken; \
             {sent} {what} sent{behind}"
        )
    }
}
