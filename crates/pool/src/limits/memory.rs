//! Memory: what the machine has, and what the pool may take of it.
//!
//! What cannot be read limits nothing.

use crate::errors::reasons::Refusal;
use measure::cgroup::{self, Limit, MEMORY};
use reactor::Time;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Tenths of the memory of the machine or of its smallest control group that the pool takes unless
/// `memory_bytes_max` says otherwise.
const MEMORY_TENTHS: u64 = 9;
/// Eighths of the memory that the pool may take, for bytes kept for clients; the rest is for the
/// program, its allocator and its threads.
const CLIENTS_EIGHTHS: u64 = 7;
/// A client that holds no more than this is within its share, however many there are.
const SHARE_MIN: usize = 256 * 1024;
/// Part of the memory that the pool may take which unfinished commands take at most, unless
/// `input_bytes_max` says otherwise.
const INPUT_PART: usize = 8;
/// Most bytes that they take, or those of [`INPUT_COMMANDS`] of the longest commands that the
/// server takes.
const INPUT_BYTES: usize = 128 << 20;
const INPUT_COMMANDS: usize = 3;
/// Bytes left on the machine below which nobody is let in.
const LEFT_MIN: u64 = 64 << 20;
/// A control group that is smaller keeps this part of its own memory free.
const LEFT_PART: u64 = 16;

/// Interval of looks for the client that holds most while all memory is in use.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Interval of looks while the process lacks memory though clients hold less than theirs: what it
/// has is read twice within that, so a closed client is seen before the next one goes.
const SHORT_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes that are kept for all clients, and their bound.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    max: usize,
    /// Each group's sum as of its last turn.
    used: AtomicUsize,
    /// Bytes that the client of each group holds that holds most, while all is used.
    largest: Box<[AtomicUsize]>,
    /// Reason to let no more clients in for lack of memory; the words say how much is used of what.
    shortage: Mutex<Option<String>>,
    /// True if there is one; read at each login.
    is_short: AtomicBool,
}

/// The groups' knowledge of the bytes that one of them keeps, and the time of the next look for the
/// client that holds most.
#[derive(Debug, Default)]
pub(crate) struct ReportedMemory {
    reported: usize,
    look_at: Time,
    /// True if the last look has told the others of the group's client that holds most.
    has_told: bool,
}

/// A look for the client that holds most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLook {
    /// Clients hold all that they may: the one that holds most goes.
    Full,
    /// The process lacks memory: the groups tell each other what their clients hold.
    ShortTells,
    /// Shortage that goes on: the one that holds most of all goes.
    ShortCloses,
}

impl ReportedMemory {
    /// Tells the others that a group keeps so much now; says if the client that holds most is to be
    /// looked for.
    pub(crate) fn report(
        &mut self,
        memory: &ClientMemory,
        held: usize,
        now: Time,
    ) -> Option<MemoryLook> {
        let before = std::mem::replace(&mut self.reported, held);
        if before != held {
            memory.change(before, held);
        }
        let (is_full, is_short) = (memory.is_full(), memory.is_short());
        self.has_told &= is_short && !is_full;
        if now < self.look_at || !is_full && !is_short {
            return None;
        }
        if is_full {
            self.look_at = now + LOOK_EVERY;
            return Some(MemoryLook::Full);
        }
        self.look_at = now + SHORT_LOOK_EVERY;
        self.has_told = !self.has_told;
        Some(match self.has_told {
            true => MemoryLook::ShortTells,
            false => MemoryLook::ShortCloses,
        })
    }

    /// Moment at which that is to be looked for again.
    pub(crate) fn next_look(&self, memory: &ClientMemory) -> Time {
        match memory.is_short() || memory.is_full() {
            true => self.look_at,
            false => Time::NEVER,
        }
    }
}

impl ClientMemory {
    /// Budget of which nothing is used yet, shared by these groups, of what the settings let the
    /// pool take.
    pub(crate) fn new(setting: Option<usize>, groups: usize) -> ClientMemory {
        let max = memory_of(setting) / 8 * CLIENTS_EIGHTHS;
        ClientMemory {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            used: AtomicUsize::new(0),
            largest: (0..groups).map(|_| AtomicUsize::new(0)).collect(),
            shortage: Mutex::new(None),
            is_short: AtomicBool::new(false),
        }
    }

    /// Most bytes that may be kept.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// True if the process lacks memory, whatever clients hold.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// The error for one that is not let in for want of memory.
    pub(crate) fn refusal(&self) -> Refusal {
        let words = self.shortage.lock().unwrap_or_else(PoisonError::into_inner);
        Refusal::Memory {
            detail: words.clone().unwrap_or_default(),
        }
    }

    /// Looks whether there is memory for more clients, within what is set. Reads some files, so it
    /// is called now and then by one group. What cannot be read limits nothing.
    pub(crate) fn look(&self, setting: Option<usize>) {
        let used = measure::process::own().map_or(0, |sample| sample.rss_bytes);
        let limit = memory_of(setting);
        self.set_shortage(match used > limit {
            true => Some(format!("{used} bytes are resident, the limit is {limit}")),
            false => shortage(),
        });
    }

    /// Notes for which reason no more clients are let in; `None`: they are.
    pub(crate) fn set_shortage(&self, why: Option<String>) {
        self.is_short.store(why.is_some(), Relaxed);
        *self.shortage.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Counts the bytes that a group keeps now in place of those before.
    pub(crate) fn change(&self, before: usize, now: usize) {
        if now > before {
            self.used.fetch_add(now - before, Relaxed);
        } else {
            self.used.fetch_sub(before - now, Relaxed);
        }
    }

    /// True if more is kept than may be.
    pub(crate) fn is_full(&self) -> bool {
        self.used.load(Relaxed) > self.max
    }

    /// Share of each of so many clients when all is used.
    pub(crate) fn share(&self, clients: usize) -> usize {
        (self.max / clients.max(1)).max(SHARE_MIN)
    }

    /// Notes what the client of a group holds that holds most; whether none of another group holds
    /// more.
    pub(crate) fn is_largest(&self, group: usize, held: usize) -> bool {
        self.largest[group].store(held, Relaxed);
        let mut all = self.largest.iter();
        all.all(|other| other.load(Relaxed) <= held)
    }
}

/// Memory that the pool may take.
pub(crate) fn memory_of(setting: Option<usize>) -> u64 {
    match setting {
        Some(max) => max as u64,
        None => machine_memory() / 10 * MEMORY_TENTHS,
    }
}

/// Bytes that unfinished commands may take: what is set, or a part of the pool's memory, and not
/// more than a few of the longest commands need.
pub(crate) fn input_bytes(
    setting: Option<usize>,
    memory_bytes_max: Option<usize>,
    command_max: usize,
) -> usize {
    setting.unwrap_or_else(|| {
        let memory = usize::try_from(memory_of(memory_bytes_max)).unwrap_or(usize::MAX);
        let enough = command_max.saturating_mul(INPUT_COMMANDS).max(INPUT_BYTES);
        enough.min(memory / INPUT_PART)
    })
}

fn machine_memory() -> u64 {
    let total = meminfo("MemTotal").unwrap_or(u64::MAX);
    let groups = cgroup::own(&MEMORY);
    groups.iter().map(|group| group.max).fold(total, u64::min)
}

/// Reason for which there is no memory for newcomers, if the machine or a control group has too
/// little left.
fn shortage() -> Option<String> {
    let machine = meminfo("MemAvailable").unwrap_or(u64::MAX);
    let machine = (machine < LEFT_MIN)
        .then(|| format!("the machine has {machine} bytes left, fewer than {LEFT_MIN}"));
    machine.or_else(|| cgroup::own(&MEMORY).iter().find_map(group_shortage))
}

fn group_shortage(group: &Limit) -> Option<String> {
    let min = LEFT_MIN.min(group.max / LEFT_PART);
    (group.room() < min).then(|| {
        format!(
            "the control group has {} bytes left, fewer than {min} ({}: {})",
            group.room(),
            group.file,
            group.max
        )
    })
}

fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_commands_have_a_part_of_the_memory_and_no_more_than_they_need() {
        let gib = 1 << 30;
        assert_eq!(input_bytes(None, Some(8 * gib), 16 << 20), 128 << 20);
        assert_eq!(input_bytes(None, Some(8 * gib), 64 << 20), 192 << 20);
        assert_eq!(input_bytes(None, Some(8 * gib), gib), gib);
        assert_eq!(input_bytes(None, Some(gib / 4), 16 << 20), 32 << 20);
        assert_eq!(input_bytes(Some(77), Some(gib), 16 << 20), 77);
    }

    #[test]
    fn the_sum_of_all_groups_is_bounded_and_the_largest_share_is_known() {
        let mib = 1 << 20;
        let memory = ClientMemory::new(Some(8 * mib), 2);
        memory.change(0, 4 * mib);
        memory.change(0, 3 * mib);
        assert!(!memory.is_full());
        memory.change(3 * mib, 3 * mib + 1);
        assert!(memory.is_full());
        assert!(memory.is_largest(0, 2 * mib));
        assert!(memory.is_largest(1, 3 * mib));
        assert!(!memory.is_largest(0, 2 * mib));
        assert!(memory.is_largest(1, 0) || memory.is_largest(0, 2 * mib));
        memory.change(3 * mib + 1, 0);
        assert!(!memory.is_full());
        assert_eq!(memory.share(7), mib);
        assert_eq!(memory.share(1000), SHARE_MIN);
    }

    #[test]
    fn the_machine_says_how_much_memory_it_has() {
        assert!(meminfo("MemTotal").unwrap() > 1 << 20);
        assert!(machine_memory() <= meminfo("MemTotal").unwrap());
        assert_eq!(meminfo("NoSuchThing"), None);
    }

    #[test]
    fn a_control_group_keeps_a_part_of_its_memory_free() {
        let group = |max, used| Limit {
            path: "/a".into(),
            file: "/a/memory.max".into(),
            max,
            used,
        };
        let mib = 1 << 20;
        assert_eq!(group_shortage(&group(512 * mib, 480 * mib)), None);
        let words = group_shortage(&group(512 * mib, 480 * mib + 1)).unwrap();
        assert!(words.contains("/a/memory.max: 536870912"), "{words}");
        assert_eq!(group_shortage(&group(4096 * mib, 4032 * mib)), None);
        assert!(group_shortage(&group(4096 * mib, 4033 * mib)).is_some());
        assert_eq!(group_shortage(&group(u64::MAX, 1 << 50)), None);
    }

    #[test]
    fn others_are_told_of_changes_and_who_holds_most_is_looked_for_now_and_then() {
        let memory = ClientMemory::new(Some(8 << 20), 1);
        let mut reported = ReportedMemory::default();
        let full = Some(MemoryLook::Full);
        assert_eq!(reported.report(&memory, 5, Time(1)), None);
        let next = |reported: &ReportedMemory| reported.next_look(&memory);
        assert_eq!(memory.used.load(Relaxed), 5);
        assert_eq!(next(&reported), Time::NEVER);
        let much = memory.max() + 1;
        assert_eq!(reported.report(&memory, much, Time(2)), full);
        let again = reported.report(&memory, much, Time(3));
        assert_eq!(again, None, "it has just been looked for");
        let now = Time(2) + LOOK_EVERY;
        assert_eq!(next(&reported), now);
        assert_eq!(reported.report(&memory, much, now), full);
        let now = now + LOOK_EVERY;
        assert_eq!(reported.report(&memory, 0, now), None);
        assert_eq!(memory.used.load(Relaxed), 0);
        // The process lacks memory: groups tell each other first, and a client goes by turns.
        memory.set_shortage(Some(String::new()));
        assert_eq!(next(&reported), now);
        let looks = (0..4).map(|nth| {
            let at = now + SHORT_LOOK_EVERY * nth;
            let look = reported.report(&memory, 5, at);
            assert_eq!(reported.report(&memory, 5, at), None);
            look.unwrap()
        });
        let (tells, closes) = (MemoryLook::ShortTells, MemoryLook::ShortCloses);
        let looks: Vec<MemoryLook> = looks.collect();
        assert_eq!(looks, [tells, closes, tells, closes]);
        let now = now + SHORT_LOOK_EVERY * 4;
        assert_eq!(reported.report(&memory, 5, now), Some(tells));
        memory.set_shortage(None);
        assert_eq!(reported.report(&memory, 5, now), None);
        memory.set_shortage(Some(String::new()));
        let now = now + SHORT_LOOK_EVERY;
        let anew = reported.report(&memory, 5, now);
        assert_eq!(anew, Some(tells), "it lacked none meanwhile");
    }
}
