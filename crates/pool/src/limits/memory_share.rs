//! Memory that is kept for clients: one sum, and who pays when it is too much.
//!
//! The problem: each buffer has its bound, and a hundred thousand clients at their bounds are more
//! than any machine has. The mechanism: whatever is kept for clients is counted
//! ([`crate::limits::retained`]), and published once in a turn ([`ClientMemory`]). While the sum of
//! all groups is above its part of `memory_bytes_max`, unfinished commands are not read any
//! further, and the client that holds most is closed, if that is more than its share: all of it by
//! the number of clients. Some client is over that as long as the sum is, but for what all have in
//! common.
//!
//! A client between statements, or whose statement waits, gets error 1153. One in the middle of a
//! reply cannot be told; the log says why it was closed.
//!
//! Not counted: the first 4 KiB of each command, sockets, and what belongs to no client, as known
//! digests and stored code. So the process may lack memory while clients hold less than their part:
//! its resident memory is looked at off the statement path ([`ClientMemory`]). While it
//! is short nobody is let in, and no command is read beyond what is always read. So what is free is
//! given back to the kernel, and the client that holds most of all groups is closed every other
//! second, if that is above its share: those who hold much would shut out the others for as long
//! as they like.
//!
//! [`ClientMemory`]: crate::limits::memory::ClientMemory

use crate::client::ClientState;
use crate::client::leaving;
use crate::errors::reasons::{InputLimit, Refusal};
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::limits::memory::MemoryLook;
use crate::observe::audit::end;
use crate::observe::log::{Event, note_of};
use reactor::{Net, give_back_memory};

/// Closes who holds most of all, if that is more than a share, where all groups keep too much,
/// or the process lacks memory.
pub(crate) fn close_who_holds_most<N: Net>(parts: &mut Parts<N>, look: MemoryLook) {
    // What nobody has any more goes first.
    parts.known.definitions.sweep();
    parts.known.sessions.sweep();
    if look == MemoryLook::ShortTells && parts.index == 0 {
        give_back_memory();
    }
    let all = parts.clients.iter();
    let most = all.map(|(key, client)| (client.kept_bytes(), key)).max();
    let held = most.map_or(0, |(held, _)| held);
    let share = (parts.shared.retained.memory).share(parts.shared.clients());
    let is_largest = parts.shared.retained.memory.is_largest(parts.index, held);
    let closes = is_largest && held > share && look != MemoryLook::ShortTells;
    if let Some((_, key)) = most.filter(|_| closes) {
        end_for_memory(parts, key, held, share);
        // Others of a full memory go on at once; what is short is read before the next goes.
        if look == MemoryLook::Full {
            parts.shared.retained.memory.is_largest(parts.index, 0);
        }
    }
}

/// Closes a client for what it holds.
fn end_for_memory<N: Net>(parts: &mut Parts<N>, key: ClientId, held: usize, share: usize) {
    let Some(client) = parts.clients.get(key) else {
        return;
    };
    let identity = parts.survey().identity(key).unwrap_or_default();
    note_of(
        Event::MemoryShare,
        &identity.facts_of_end(),
        format_args!(
            "client {} closed: all memory for clients is in use (memory_bytes_max), or the \
             machine's, and it holds {held} bytes of it, above its share of {share}",
            client.identity.id()
        ),
    );
    let between = matches!(client.state(), ClientState::Idle | ClientState::Waiting);
    let hears = between && client.output.is_none();
    parts.clients.note_end(key, end::MEMORY);
    if hears {
        let limit = InputLimit::Share { max: share };
        leaving::refuse_input(parts, key, &Refusal::Input { len: held, limit });
    }
    parts.observed.counts.memory_closed += 1;
    // A checkout or a reply of its ends as when a client has left.
    parts.clients.close_later(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{client, group_with};
    use reactor::Time;
    use std::time::Duration;

    /// A client that has sent so much of a longer command.
    fn holds(group: &mut Group<Scripted>, bytes: usize) -> ClientId {
        let key = client(group);
        let mut sent = vec![b'x'; bytes];
        sent[..4].copy_from_slice(&[0, 0, 0x7F, 0]);
        let client = group.parts.clients.get_mut(key).unwrap();
        client.keep_input(&sent);
        key
    }

    #[test]
    fn while_the_process_lacks_memory_who_holds_most_goes_one_after_the_other() {
        let mut group = group_with("memory_bytes_max = 4194304");
        let keys = [1_000_000, 1_100_000, 200_000].map(|bytes| holds(&mut group, bytes));
        (0..12).for_each(|_| group.parts.shared.add_client());
        let second = Duration::from_secs(1);
        let mut left = |seconds: u32, is_short: bool| {
            let why = is_short.then(String::new);
            group.parts.shared.retained.memory.set_shortage(why);
            for _ in 0..2 {
                group.parts.net.now = Time(1_000_000_000) + second * seconds;
                group.turn(&[]);
            }
            keys.map(|key| group.parts.clients.get(key).is_some())
        };
        assert_eq!(left(0, false), [true; 3]);
        assert_eq!(left(1, true), [true; 3], "groups tell each other first");
        assert_eq!(left(2, true), [true, false, true]);
        assert_eq!(left(3, true), [true, false, true], "one at a time");
        assert_eq!(left(4, false), [true, false, true], "there is enough");
        assert_eq!(left(5, true), [true, false, true]);
        assert_eq!(left(6, true), [false, false, true]);
        assert_eq!(left(8, true), [false, false, true]);
        assert_eq!(
            left(10, true),
            [false, false, true],
            "it is within its share"
        );
    }

    #[test]
    fn a_group_without_clients_holds_up_no_other() {
        let mut group = group_with("memory_bytes_max = 4194304");
        group.parts.shared.retained.memory.is_largest(0, 1 << 30);
        close_who_holds_most(&mut group.parts, MemoryLook::Full);
        let told = format!("{:?}", group.parts.shared.retained.memory);
        assert!(told.contains("largest: [0]"), "{told}");
    }
}
