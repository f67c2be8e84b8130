//! Input: what the bytes of unfinished commands may take, of memory and of a turn.
//!
//! The problem: a command is kept until it has come whole, and it may be as long as the server
//! takes. A thousand clients that begin long commands and do not end them would take all the
//! memory, and a compressed client needs to send hardly anything for that. And a command of
//! 100 MiB is a hundred milliseconds of reading, in which nobody else of its group is served.
//!
//! The mechanism, in space: what a client holds ([`Client::held`]) is counted by client, by user
//! and over all groups ([`InputBudget`]). The first [`INPUT_FREE`] bytes of a command are always
//! read. More is read while the sum is below `input_bytes_max` less a reserve; above that the
//! client's bytes stay in the kernel until there is room. One client at a time, the *first*, may
//! use the reserve, which is as long as the longest command, until its command has been sent to a
//! backend; so there is always one that gets on. While somebody waits for room, a client that is
//! in the middle of a command and does not go on with it is closed, the one that holds most first.
//!
//! In time: a client takes at most [`INPUT_FREE`] bytes of an unfinished command by an event of its
//! socket. For more it waits in a queue: once in a turn that is served, each client for
//! at most [`CLIENT_TURN_BYTES`], all of them for at most [`TURN_BYTES`]. A frame that unpacks to
//! more waits there from its first byte on: what unpacks zstd makes a window of megabytes and a
//! block of 128 KiB for it, and a thousand such frames may come in one turn.
//!
//! Invariants: counts change in [`InputRoom::count`] and [`InputRoom::uncount`] only; no client
//! is closed as late while it waits for room or in the queue.

use crate::client::buffers::room::{HOLDER_MIN, INPUT_FREE, Inputs, Standing};
use crate::client::clients::Clients;
use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::errors::reasons::{InputLimit, Refusal};
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::observe::figures::counts::Counts;
use reactor::Time;
use std::sync::atomic::Ordering::Relaxed;
use wire::packet::{Frame, HEADER_LEN, PAYLOAD_MAX, frame};

/// Bytes that are read or unpacked for one client in a turn, beyond those.
const CLIENT_TURN_BYTES: usize = 128 * 1024;
/// Bytes read in a turn for all clients of a group.
pub(crate) const TURN_BYTES: usize = 256 * 1024;
/// A client that is amid a command must send so much between two sweeps (a second) while others
/// wait for room.
const PROGRESS_MIN: usize = 64 * 1024;

/// Answer to a client that sends more of an unfinished command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Now.
    Now,
    /// Not now: its client is served again when it may, or has gone.
    Later,
    /// Refusal.
    Never(Refusal),
}

/// The unfinished commands of a group's clients, and the bounds on them.
pub(crate) struct InputRoom<'a, S> {
    pub(crate) inputs: &'a mut Inputs,
    pub(crate) clients: &'a mut Clients<S>,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) counts: &'a mut Counts,
    pub(crate) now: Time,
}

impl<S> InputRoom<'_, S> {
    /// Brings the counts of what a client holds up to date; returns the bytes.
    pub(crate) fn count(&mut self, key: ClientId) -> usize {
        let held = self.clients.get(key).map_or(0, Client::held);
        if !self.inputs.counts(held) {
            return held;
        }
        let holder = self.inputs.holders.get(&key);
        match holder.map(|holder| holder.standing == Standing::Reading) {
            Some(true) if held <= HOLDER_MIN => self.uncount(key),
            None if held <= HOLDER_MIN => {}
            _ => self.set_counted(key, held),
        }
        held
    }

    fn set_counted(&mut self, key: ClientId, held: usize) {
        let holder = self.inputs.holders.entry(key).or_default();
        let before = std::mem::replace(&mut holder.counted, held);
        if before != held {
            self.inputs.held = self.inputs.held - before + held;
            self.count_for_user(key, before, held);
        }
    }

    /// Counts nothing of a client any more: it holds hardly anything, goes, or becomes another
    /// user's.
    pub(crate) fn uncount(&mut self, key: ClientId) {
        let Some(holder) = self.inputs.holders.remove(&key) else {
            return;
        };
        self.inputs.held -= holder.counted;
        self.count_for_user(key, holder.counted, 0);
        if let Standing::NoRoom(_) = holder.standing {
            self.shared.retained.input.waiting.fetch_sub(1, Relaxed);
        }
        if let Some(client) = self.clients.get(key) {
            self.shared.retained.input.give_back(client.identity.id());
        }
    }

    fn count_for_user(&self, key: ClientId, before: usize, held: usize) {
        let Some(client) = self
            .clients
            .get(key)
            .filter(|client| client.identity.is_known())
        else {
            return;
        };
        let user = &self.settings.users[client.identity.user()];
        if user.limits.input_bytes_max.is_some() {
            let bytes = &user.usage.input_bytes;
            bytes.fetch_add(held, Relaxed);
            bytes.fetch_sub(before, Relaxed);
        }
    }

    /// Counts what clients hold for their users, or takes it back.
    pub(crate) fn count_all(&self, on: bool) {
        for (key, holder) in &self.inputs.holders {
            match on {
                true => self.count_for_user(*key, 0, holder.counted),
                false => self.count_for_user(*key, holder.counted, 0),
            }
        }
    }

    /// Bytes counted of a client.
    fn counted(&self, key: ClientId) -> usize {
        let holder = self.inputs.holders.get(&key);
        holder.map_or(0, |holder| holder.counted)
    }

    /// Tells the other groups what the clients of this one hold.
    pub(crate) fn publish(&mut self) {
        let (held, published) = (self.inputs.held, self.inputs.published);
        if held != published {
            let all = &self.shared.retained.input.held;
            if held > published {
                all.fetch_add(held - published, Relaxed);
            } else {
                all.fetch_sub(published - held, Relaxed);
            }
            self.inputs.published = held;
        }
    }

    /// True if `more` bytes of a client's unfinished command may be taken now. If not, it will be
    /// pumped again when they may.
    pub(crate) fn takes_more(&mut self, key: ClientId, more: usize) -> Takes {
        self.count(key);
        let Some(client) = self.clients.get(key) else {
            return Takes::Later;
        };
        let held = client.input.bytes().map_or(0, |input| input.len());
        let logs_in = matches!(
            client.state(),
            ClientState::Accepted | ClientState::Greeted | ClientState::Proving
        );
        let is_free = held + more <= INPUT_FREE && !client.transport.unpacks_much();
        if is_free || logs_in {
            return Takes::Now;
        }
        if let Some(refusal) = self.over_limit(key, client, held + more) {
            return Takes::Never(refusal);
        }
        let standing = self.inputs.holders.get(&key).map(|holder| holder.standing);
        match standing {
            Some(Standing::InLine | Standing::NoRoom(_) | Standing::BehindLong(_)) => {
                return Takes::Later;
            }
            Some(Standing::Served(left)) if left > 0 => {
                let left = left.saturating_sub(more);
                self.inputs.stand(key, Standing::Served(left));
            }
            _ => {
                self.inputs.stand_in_line(key);
                return Takes::Later;
            }
        }
        if self.has_room_for(key, more) {
            return Takes::Now;
        }
        let now = self.now;
        self.inputs.stand(key, Standing::NoRoom(now));
        self.inputs.no_room.push_back(key);
        self.shared.retained.input.waiting.fetch_add(1, Relaxed);
        self.counts.input_waited += 1;
        Takes::Later
    }

    /// Queues a client until fewer long commands are at the server.
    pub(crate) fn wait_behind_long(&mut self, key: ClientId) {
        if !self.inputs.is_behind_long(key) {
            self.inputs.stand(key, Standing::BehindLong(self.now));
            self.inputs.behind_long.push_back(key);
            self.counts.input_waited += 1;
        }
    }

    /// Moves the first that waits so to the front of the queue.
    pub(crate) fn admit_behind_long(&mut self) {
        if let Some(key) = self.inputs.behind_long.pop_front()
            && self.inputs.is_behind_long(key)
        {
            self.inputs.queue.push_front(key);
            self.admit(key);
        }
    }

    /// Marks a client that has waited as queued.
    fn admit(&mut self, key: ClientId) {
        self.inputs.stand(key, Standing::InLine);
        // Its silence was not its own.
        let now = self.now;
        if let Some(client) = self.clients.get_mut(key) {
            client.heard_from(now);
        }
    }

    /// True if there is room for more of a client's command.
    fn has_room_for(&mut self, key: ClientId, more: usize) -> bool {
        self.publish();
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let more = (client.input.bytes().as_ref()).map_or(more, |input| input.room_for(more));
        let full = self.shared.retained.memory.is_short() || self.shared.retained.memory.is_full();
        !full && (self.shared.retained.input).admits(client.identity.id(), more)
    }

    /// The limit that a command of which the client would hold `len` bytes is over by itself.
    fn over_limit(&self, key: ClientId, client: &Client<S>, len: usize) -> Option<Refusal> {
        let announced = match client.input.bytes().map(|input| frame(input)) {
            Some(Frame::Partial { total } | Frame::Whole { total, .. }) => total,
            _ => 0,
        };
        let max = self.shared.retained.input.command_max();
        if announced > max.max(HEADER_LEN) {
            return Some(self.shared.retained.input.refusal(announced));
        }
        let user = self.settings.users.get(client.identity.user())?;
        let max = (user.limits.input_bytes_max).filter(|_| client.identity.is_known())?;
        let bytes = user.usage.input_bytes.load(Relaxed);
        let more = len.saturating_sub(self.counted(key));
        (bytes + more > max).then(|| Refusal::Input {
            len,
            limit: InputLimit::User {
                user: user.name.clone(),
                max,
            },
        })
    }

    /// Puts clients for whose command there is room now into the queue again.
    pub(crate) fn admit_waiting(&mut self) {
        while let Some(key) = self.inputs.no_room.front().copied() {
            let holder = self.inputs.holders.get(&key);
            if holder.is_some_and(|holder| matches!(holder.standing, Standing::NoRoom(_))) {
                if !self.has_room_for(key, INPUT_FREE) {
                    return;
                }
                self.shared.retained.input.waiting.fetch_sub(1, Relaxed);
                self.inputs.queue.push_back(key);
                self.admit(key);
            }
            self.inputs.no_room.pop_front();
        }
    }

    /// Clients to be closed: those who have waited for room for too long; and while somebody waits,
    /// in whatever group, those who hold room and do not use it. Called once a second.
    pub(crate) fn sweep(&mut self) -> Vec<(ClientId, Refusal)> {
        let mut refused = Vec::new();
        let (now, longest) = (self.now, self.settings.wait_max);
        let wanted = self.shared.retained.input.waiting.load(Relaxed) > 0;
        let mut late = Vec::new();
        let mut idle = Vec::new();
        for (key, holder) in &mut self.inputs.holders {
            let Some(client) = self.clients.get(*key) else {
                continue;
            };
            let held = holder.counted;
            match holder.standing {
                Standing::NoRoom(since) | Standing::BehindLong(since) => {
                    if now.since(since) >= longest {
                        late.push((*key, client.held()));
                    }
                    holder.at_sweep = None;
                    continue;
                }
                Standing::Reading if client.takes_input() => {}
                _ => {
                    holder.at_sweep = None;
                    continue;
                }
            }
            let before = holder.at_sweep.replace(held);
            if wanted && before.is_some_and(|before| held < before + PROGRESS_MIN) {
                idle.push((held, *key));
            }
        }
        for (key, held) in late {
            let refusal = Refusal::Input {
                len: held,
                limit: InputLimit::NoRoom { waited: longest },
            };
            refused.push((key, refusal));
        }
        // Half of the room is enough for those who wait until the next sweep.
        idle.sort_unstable_by_key(|(held, key)| (std::cmp::Reverse(*held), *key));
        let target = (self.shared.retained.input.max - self.shared.retained.input.reserve) / 2;
        let mut all = self.shared.retained.input.held.load(Relaxed);
        for (held, key) in idle {
            if all <= target {
                break;
            }
            all -= held.min(all);
            self.counts.input_stalled += 1;
            let refusal = Refusal::Input {
                len: held,
                limit: InputLimit::Stalled,
            };
            refused.push((key, refusal));
        }
        refused
    }

    /// Takes the first of the queue, if it still waits there: it may take so much of what is `left`
    /// for this turn.
    pub(crate) fn next_in_queue(&mut self, left: usize) -> Option<(ClientId, usize)> {
        let key = self.inputs.queue.pop_front()?;
        let holder = self.inputs.holders.get(&key)?;
        if holder.standing != Standing::InLine {
            return None;
        }
        let share = CLIENT_TURN_BYTES.min(left);
        self.inputs.stand(key, Standing::Served(share));
        Some((key, share))
    }

    /// Ends a client's service in this turn; returns how much of its share it has taken.
    pub(crate) fn served(&mut self, key: ClientId, share: usize) -> usize {
        let Some(holder) = self.inputs.holders.get_mut(&key) else {
            return share;
        };
        let used = match holder.standing {
            Standing::Served(rest) => {
                holder.standing = Standing::Reading;
                share - rest.min(share)
            }
            _ => share,
        };
        let held = self.count(key);
        if held <= HOLDER_MIN && !self.inputs.holds_up(key) {
            self.uncount(key);
        }
        used
    }

    /// Drops what a client has sent of a command, which is answered with an error.
    pub(crate) fn drop_command(&mut self, key: ClientId) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        // The number behind that of the packet that it is sending.
        let held = client.input.bytes().map_or(0, |input| input.len());
        let packets = held / (HEADER_LEN + PAYLOAD_MAX) + 1;
        client.identity.seq = u8::try_from(packets & 0xFF).unwrap_or(1);
        client.input.put(None);
        if let Some(compression) = client.transport.compression_mut() {
            compression.forget_input();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::group::scripted::shared;
    use std::rc::Rc;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    struct Bench {
        inputs: Inputs,
        clients: Clients<()>,
        shared: Shared,
        settings: std::sync::Arc<Settings>,
        counts: Counts,
        now: Time,
    }

    impl Bench {
        fn new() -> Bench {
            let shared = shared("");
            Bench {
                inputs: Inputs::default(),
                clients: Clients::default(),
                settings: shared.settings(),
                shared,
                counts: Counts::default(),
                now: Time(1_000_000_000),
            }
        }

        fn room(&mut self) -> InputRoom<'_, ()> {
            InputRoom {
                inputs: &mut self.inputs,
                clients: &mut self.clients,
                shared: &self.shared,
                settings: &self.settings,
                counts: &mut self.counts,
                now: self.now,
            }
        }

        /// A client between its statements that has sent the front of a command of so many bytes.
        fn amid(&mut self, total: usize, sent: usize) -> ClientId {
            let mut client = Client::of_tests(self.now, Rc::default());
            client.login = None;
            assert!(client.change_state(ClientState::Idle, self.now));
            client
                .identity
                .set_id(u32::try_from(self.clients.len()).unwrap() + 1);
            let [a, b, c, _] = u32::try_from(total - HEADER_LEN).unwrap().to_le_bytes();
            let mut bytes = vec![a, b, c, 0];
            bytes.resize(sent, b'x');
            client.keep_input(&bytes);
            self.clients.insert(client)
        }
    }

    #[test]
    fn the_first_bytes_are_always_taken_and_for_more_a_client_stands_in_line() {
        let mut bench = Bench::new();
        let key = bench.amid(200_000, 100);
        assert_eq!(bench.room().takes_more(key, 1000), Takes::Now);
        assert_eq!(bench.room().takes_more(key, INPUT_FREE), Takes::Later);
        assert!(bench.inputs.has_line());
        let (served, share) = bench.room().next_in_queue(TURN_BYTES).unwrap();
        assert_eq!((served, share), (key, CLIENT_TURN_BYTES));
        assert_eq!(bench.room().takes_more(key, INPUT_FREE), Takes::Now);
        assert_eq!(bench.room().served(key, share), INPUT_FREE);
        assert!(!bench.inputs.has_line());
        assert_eq!(bench.inputs.bytes(), 0, "it holds hardly anything");
    }

    #[test]
    fn what_a_client_holds_is_counted_until_it_goes() {
        let mut bench = Bench::new();
        let key = bench.amid(200_000, 50_000);
        bench.room().count(key);
        assert!(bench.inputs.bytes() >= 50_000);
        bench.room().drop_command(key);
        bench.room().count(key);
        assert_eq!(bench.inputs.bytes(), 0);
        assert!(bench.clients.get(key).unwrap().input.bytes().is_none());
    }

    #[test]
    fn who_waits_for_room_for_too_long_is_refused() {
        let mut bench = Bench::new();
        let key = bench.amid(200_000, 50_000);
        // All is taken, and the reserve is another's.
        bench
            .shared
            .retained
            .input
            .held
            .store(usize::MAX / 2, Relaxed);
        assert!(bench.shared.retained.input.admits(9, 1));
        assert_eq!(bench.room().takes_more(key, INPUT_FREE), Takes::Later);
        let (_, share) = bench.room().next_in_queue(TURN_BYTES).unwrap();
        assert_eq!(bench.room().takes_more(key, INPUT_FREE), Takes::Later);
        assert_eq!(bench.counts.input_waited, 1);
        bench.room().served(key, share);
        assert!(bench.inputs.has_waiting());
        bench.room().admit_waiting();
        assert!(bench.inputs.has_waiting(), "there is no room yet");
        assert!(bench.room().sweep().is_empty());
        bench.now = bench.now + bench.settings.wait_max;
        let refused = bench.room().sweep();
        assert!(matches!(
            &refused[..],
            [(late, Refusal::Input { limit: InputLimit::NoRoom { .. }, .. })] if *late == key
        ));
        // Another goes, and there is room.
        bench.shared.retained.input.give_back(9);
        bench.room().admit_waiting();
        assert!(!bench.inputs.has_waiting() && bench.inputs.has_line());
    }

    #[test]
    fn who_holds_room_and_does_not_go_on_is_refused_while_others_wait() {
        let mut bench = Bench::new();
        let key = bench.amid(200_000, 50_000);
        bench.room().count(key);
        bench
            .shared
            .retained
            .input
            .held
            .store(usize::MAX / 2, Relaxed);
        assert!(bench.room().sweep().is_empty());
        bench.now = bench.now + SECOND;
        assert!(bench.room().sweep().is_empty(), "nobody waits");
        bench.shared.retained.input.waiting.store(1, Relaxed);
        let refused = bench.room().sweep();
        assert_eq!(refused.len(), 1);
        assert_eq!((refused[0].0, bench.counts.input_stalled), (key, 1));
    }
}
