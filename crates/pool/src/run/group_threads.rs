//! The threads of groups: what each is given, its turns, and its end.
//!
//! A thread leaves the common descriptor table, opens what it needs in its own, and turns until its
//! group has drained or has handed all of its clients to another process. Between two turns it
//! reports, hands its figures over, and does its part of an upgrade.

use crate::client::closing;
use crate::group::Group;
use crate::group::shared::{Order, Shared};
use crate::group::tokens::MAILBOX;
use crate::observe::figures::counts::Census;
use crate::observe::figures::{Published, Turns};
use crate::observe::listing::Questions;
use crate::observe::log::{Event, ReportLine, note, note_all};
use crate::run::listeners::Listener;
use crate::upgrade::process::Progress;
use crate::upgrade::process::part::Part;
use crate::upgrade::process::taking::{ListenAt, Listening, Taking};
use handover::Peer;
use reactor::{Key, Mailbox, Net, RealNet, Sender, Time, Token, descriptors, mailbox, scheduling};
use signal_hook::iterator::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Interval at which a group hands its census over.
const CENSUS_EVERY: Duration = Duration::from_millis(500);
/// Interval at which a census that groups were asked for is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The ways to reach the groups' threads.
pub(crate) struct GroupThreads {
    pub(crate) orders: Vec<Sender<Order>>,
    pub(crate) published: Vec<Arc<Published>>,
    pub(crate) questions: Arc<Questions>,
    /// Progress of a hand-over to a successor.
    pub(crate) progress: Arc<Progress>,
    /// While these are held, no group takes its first turn.
    gates: Vec<SyncSender<()>>,
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

/// Everything that a group's thread is given.
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
    /// Closed when the first turn may begin.
    gate: Receiver<()>,
    progress: Arc<Progress>,
    /// The process whose place this one takes, and whom to tell that this group listens.
    before: Option<HandsOver>,
}

/// A process that hands over its listeners, and whom a group tells that it has them.
pub(crate) type HandsOver = (Peer, SyncSender<Result<(), String>>);

impl GroupThreads {
    /// Starts them; they stand when this returns, and serve nobody before [`GroupThreads::go`].
    ///
    /// # Errors
    /// Why one of them cannot serve.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        listeners: &[Listener],
        signals: Handle,
        before: Option<HandsOver>,
    ) -> Result<GroupThreads, String> {
        let pairs = (0..shared.groups()).map(|_| mailbox());
        let pairs: Result<Vec<_>, _> = pairs.collect();
        let pairs = pairs.map_err(|error| format!("cannot make a mailbox: {error}"))?;
        let (orders, mailboxes): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let groups: Arc<[Sender<Order>]> = orders.clone().into();
        let mut group_threads = GroupThreads {
            orders,
            published: Vec::new(),
            questions: Arc::default(),
            progress: Arc::default(),
            gates: Vec::new(),
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
                Listener::Given(_, listener) => ListenAt::Given(listener.clone()),
                Listener::Unix(_, listener) => ListenAt::Unix(listener.clone()),
            });
            let listeners = listeners.collect();
            let (shared, presence) = (shared.clone(), presence.another());
            let (closed, gate) = sync_channel(0);
            group_threads.gates.push(closed);
            posts.push(Post {
                index,
                shared,
                listeners,
                mailbox,
                groups: groups.clone(),
                published,
                questions: group_threads.questions.clone(),
                presence,
                gate,
                progress: group_threads.progress.clone(),
                before: before.clone(),
            });
        }
        let (ready, started) = sync_channel(shared.groups());
        for post in posts {
            let ready = ready.clone();
            std::thread::Builder::new()
                .name(format!("group-{}", post.index))
                .spawn(move || attend_post(post, &ready))
                .map_err(|error| {
                    format!(
                        "cannot start a group's thread: {error} (raise pids.max of the control \
                         group or the limit of processes, ulimit -u, or set fewer groups)"
                    )
                })?;
        }
        drop(ready);
        for _ in 0..shared.groups() {
            (started.recv()).map_err(|_| "a group ended before it began")??;
        }
        Ok(group_threads)
    }

    /// Lets the threads serve from now on.
    pub(crate) fn go(&mut self) {
        self.gates.clear();
    }

    /// The census of this moment, of a group that does not give it in time its last one.
    pub(crate) fn census(&self) -> Census {
        let asked = Time::now();
        Order::Census.tell_all(&self.orders);
        let is_old = |published: &Arc<Published>| published.get().at < asked;
        while self.published.iter().any(is_old) && Time::now() < asked + CENSUS_EVERY {
            reactor::pause(LOOK_EVERY);
        }
        self.sum()
    }

    /// The last census of all groups.
    pub(crate) fn sum(&self) -> Census {
        let mut total = Census::default();
        for published in &self.published {
            total += &published.get().census;
        }
        total
    }
}

/// Runs a group's thread.
fn attend_post(post: Post, ready: &SyncSender<Result<(), String>>) {
    let (published, groups) = (post.published.clone(), post.groups.clone());
    let questions = post.questions.clone();
    let (shared, first) = (post.shared.clone(), post.index == 0);
    let look_at_memory = || {
        if first {
            let max = shared.settings().memory_bytes_max;
            shared.retained.memory.look(max);
        }
    };
    look_at_memory();
    let (index, progress) = (post.index, post.progress.clone());
    let (mut group, part, mailbox, (_presence, gate)) = match set_up(post) {
        Ok(made) => {
            let _ = ready.send(Ok(()));
            made
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    // Nothing is sent: it is closed.
    let _ = gate.recv();
    let mut events = Vec::new();
    let mut census_at = Time::now();
    let mut turns = Turns::default();
    let mut upgrade = Part::new(index, progress, part);
    // What sessions begin with is known then.
    group.turn(&[]);
    while !group.is_drained() && !upgrade.is_over(&group) {
        let deadline = group.deadline().min(census_at + CENSUS_EVERY);
        let deadline = deadline.min(upgrade.deadline());
        if let Err(error) = group.parts.net.wait(deadline, &mut events) {
            note(
                Event::Failed,
                format_args!("a group must end: waiting for events failed: {error}"),
            );
            break;
        }
        if events.iter().any(|event| event.token.kind() == MAILBOX) {
            for order in mailbox.take() {
                if matches!(order, Order::Drain | Order::CloseInTurns(_)) {
                    group.parts.net.stop_listening();
                }
                if order == Order::Census {
                    census_at = Time(0);
                }
                upgrade.order(&mut group, &order);
                group.order(order);
            }
        }
        upgrade.step(&mut group);
        group.turn(&events);
        upgrade.hurry(&mut group);
        print_report(group.parts.work.turn_output.take_report());
        for answer in group.parts.work.turn_output.take_answers() {
            questions.answer(answer);
        }
        for (index, order) in group.parts.work.turn_output.take_messages() {
            groups[index].send(order);
        }
        let now = Time::now();
        turns.lengths.record(now.since(group.parts.net.now()));
        if now >= census_at + CENSUS_EVERY {
            look_at_memory();
            // Who reads the last one holds it for a moment only: the next turn tries again.
            if published.put(group.parts.survey().view(turns.clone())) {
                census_at = now;
            }
            turns.publishing += Time::now().since(now);
        }
    }
    closing::note_cut_off(&mut group.parts);
    if upgrade.leaves() {
        group.order(Order::Reconnect);
    }
    while !published.put(group.parts.survey().view(turns.clone())) {
        std::thread::yield_now();
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
type Stands = (
    Group<RealNet>,
    (Option<Taking>, Listening),
    Mailbox<Order>,
    (Presence, Receiver<()>),
);

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
    let listens_at = Listening {
        listeners: post.listeners,
        backlog: post.shared.settings().backlog,
    };
    let taking = match post.before {
        Some((before, listens)) => {
            let listens_at = listens_at.clone();
            let taking = Taking::begin(&mut net, post.index, before, listens_at, listens)?;
            Some(taking)
        }
        None => {
            listens_at.open(&mut net, Vec::new())?;
            None
        }
    };
    let token = Token::new(MAILBOX, Key::from_parts(0, 0));
    net.watch_mailbox(&post.mailbox, token)
        .map_err(|error| format!("a group cannot watch its mailbox: {error}"))?;
    let group = Group::new(net, post.shared, post.index);
    Ok((
        group,
        (taking, listens_at),
        post.mailbox,
        (post.presence, post.gate),
    ))
}
