//! The groups of a simulated pool, their turns, and the messages between them.
//!
//! Groups take their turns in any order, and a message arrives with any later turn of its group.
//! The kernel's dealing of clients is chance, with a bias to the first group, so that the others
//! often have slots that it could use.
//!
//! What holds, or the run ends with a panic:
//! - connections to the server of all groups together stay within the budget (`net.rs` counts);
//! - whoever has something to do stands in a line, or waits for an event that is sure to come
//!   (`Group::forgotten`), so nobody is passed over while others are served;
//! - what is kept for clients is counted rightly, and within its bound (`memory_bytes_max`);
//! - where nothing else holds statements back (no faults, an open gate), nobody waits for longer
//!   than [`HELP_MAX`] in a group that has nothing under way, while a slot is free or a backend
//!   idle in another.

use crate::sim::net::{SimNet, Wires};
use pool::{Census, Group, Order, Oversubscribe, REPLY_MAX, Settings, Shared};
use reactor::{Event, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that one turn of a group may add before it looks at the sum.
const STEP_MAX: usize = 1 << 20;
/// Bytes that are kept of a reply that its client does not take, while the rest is on its backend:
/// the bound behind which others' statements stand, one read, and the growth of both.
const UNTAKEN_MAX: usize = REPLY_MAX + (64 + 4) * 1024;
/// Turns without anything happening around them.
const IDLE_TURNS_MAX: u32 = 40;
/// Longest time until a group is helped: backends are lent after a twentieth of a second.
const HELP_MAX: Duration = Duration::from_millis(400);
/// The gate of a group that may run so many more statements at once is open.
const OPEN_GATE: usize = 100;

struct Member {
    group: Group<SimNet>,
    messages: VecDeque<Order>,
    idle_turns: u32,
    /// Moment since which it waits while it could be helped.
    helpless: Option<Time>,
}

/// All groups of a world.
pub(super) struct Crew {
    members: Vec<Member>,
    events: Vec<Event>,
}

impl Crew {
    pub(super) fn new(net: &SimNet, shared: &Arc<Shared>) -> Crew {
        let member = |index| Member {
            group: Group::new(net.of(index), shared.clone(), index),
            messages: VecDeque::new(),
            idle_turns: 0,
            helpless: None,
        };
        Crew {
            members: (0..shared.groups()).map(member).collect(),
            events: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// True if a group's turn has come.
    pub(super) fn is_due(&mut self, index: usize, wires: &Wires) -> bool {
        let member = &mut self.members[index];
        let woken = !member.messages.is_empty() || wires.has_events(index);
        woken || member.group.deadline() <= wires.now
    }

    pub(super) fn has_events(&self, wires: &Wires) -> bool {
        (0..self.len()).any(|index| wires.has_events(index))
    }

    /// Runs a turn of a group; without `all`, the messages that came stay for a later one.
    pub(super) fn turn(&mut self, index: usize, net: &SimNet, all: bool) {
        let member = &mut self.members[index];
        net.0.borrow_mut().take_events(index, &mut self.events);
        let messages = if all || self.events.is_empty() {
            std::mem::take(&mut member.messages)
        } else {
            VecDeque::new()
        };
        let idle = self.events.is_empty() && messages.is_empty();
        member.idle_turns = if idle { member.idle_turns + 1 } else { 0 };
        assert!(
            member.idle_turns < IDLE_TURNS_MAX,
            "group {index} turns without end: {:?}",
            member.group.parts.survey().census()
        );
        let events = &self.events;
        net.0
            .borrow()
            .note(|| format!("turn of {index} {events:?} {messages:?}"));
        for message in messages {
            member.group.order(message);
        }
        member.group.turn(&self.events);
        let wrong = member.group.parts.survey().miscounted();
        assert_eq!(wrong, None, "group {index}");
        assert_eq!(
            member.group.parts.survey().misbound(),
            None,
            "group {index}"
        );
        assert_eq!(
            member.group.parts.survey().forgotten(),
            None,
            "group {index}"
        );
        for (to, message) in member.group.parts.work.turn_output.take_messages() {
            self.members[to].messages.push_back(message);
        }
    }

    /// Checks that bytes kept for clients stay within their bound, but for those that each may hold
    /// whatever others do.
    pub(super) fn check_memory(&self) {
        let held = (self.members)
            .iter()
            .map(|m| m.group.parts.survey().held_for_clients());
        let held: usize = held.sum();
        let clients = self.census().clients;
        let (max, share) = self.members[0].group.parts.survey().memory_bound();
        assert!(
            held <= max.max(clients * share) + STEP_MAX,
            "{held} bytes are kept for {clients} clients, of {max} with shares of {share}"
        );
    }

    /// Checks the bound of a reply that its client does not take. Gives the most that was kept
    /// while others' statements stood behind it.
    pub(super) fn check_untaken(&self) -> usize {
        let untaken = (self.members)
            .iter()
            .map(|m| m.group.parts.survey().longest_untaken());
        let (len, may_pipeline) = untaken.max().unwrap_or_default();
        assert!(
            len <= UNTAKEN_MAX,
            "{len} bytes of a reply are kept for who takes none, and the rest is on its backend"
        );
        len * usize::from(may_pipeline)
    }

    /// Puts a message of a thread that is no group's in a group's mailbox.
    pub(super) fn send(&mut self, group: usize, message: Order) {
        self.members[group].messages.push_back(message);
    }

    /// Notes an event around the groups that may give them something to do.
    pub(super) fn something_happens(&mut self) {
        for member in &mut self.members {
            member.idle_turns = 0;
        }
    }

    pub(super) fn deadline(&mut self) -> Time {
        let deadlines = self.members.iter_mut().map(|m| m.group.deadline());
        deadlines.min().unwrap_or(Time::NEVER)
    }

    pub(super) fn order(&mut self, order: &Order) {
        for member in &mut self.members {
            member.group.order(order.clone());
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.members.iter().all(|member| member.group.is_drained())
    }

    pub(super) fn census(&self) -> Census {
        let mut all = Census::default();
        for member in &self.members {
            all += &member.group.parts.survey().census();
        }
        all
    }

    /// Checks, where all has been done that could be done now, that nobody is left without help for
    /// long. `most`: connections that the server takes. `peaceful`: it loses none.
    pub(super) fn check_help(
        &mut self,
        now: Time,
        settings: &Settings,
        most: usize,
        peaceful: bool,
    ) {
        let is_open = match settings.oversubscribe {
            Oversubscribe::By(more) => more >= OPEN_GATE,
            Oversubscribe::Auto => false,
        };
        if !(peaceful && is_open) {
            return;
        }
        let all: Vec<Census> = (self.members)
            .iter()
            .map(|m| m.group.parts.survey().census())
            .collect();
        let open: usize = all.iter().map(Census::backends).sum();
        let idle: usize = all.iter().map(|census| census.backends_idle).sum();
        let help = idle > 0 || open < most;
        for (member, census) in self.members.iter_mut().zip(&all) {
            // Texts that are known to be long wait for their share, whatever is idle.
            let waits = census.waiting > member.group.set_aside();
            let waits = waits && census.backends_dialling == 0;
            if !(waits && help) {
                member.helpless = None;
                continue;
            }
            let since = *member.helpless.get_or_insert(now);
            assert!(now.since(since) <= HELP_MAX, "nobody helps: {all:?}");
        }
    }
}
