//! Commands in flight on a backend, and the reply to the oldest of them while it arrives.
//!
//! Commands form a FIFO, because the server answers in order. A reply is summed up as it passes;
//! one to a command of the pool's own is collected besides. A backend whose client does not take
//! the reply is held up.
//!
//! Invariants: what stands in the FIFO has been written, or lies in the backend's output; behind a
//! complete reply nothing of it is left here.

use crate::backend::followers::Followers;
use crate::backend::relay::Middle;
use crate::backend::{Aborted, ForSession, InFlight, Left, Purpose};
use crate::group::tokens::ClientId;
use reactor::Time;
use session::reply_summary::ReplySummary;
use session::send_mode::Joined;
use std::collections::VecDeque;
use std::collections::vec_deque::{Iter, IterMut};
use wire::command::ReplyShape;
use wire::packet::Malformed;
use wire::track::Bound;

/// Longest answer to a question of the pool's own. SHOW WARNINGS is the longest: 65,535 conditions
/// of 256 bytes.
pub(crate) const COLLECTED_MAX: usize = 16 << 20;
/// Bytes of session changes in one reply, which may consist of many results.
const CHANGES_MAX: usize = 16 << 20;

/// Permission to pipeline behind the commands in flight on a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pipeline {
    /// Closed to all: nothing is in flight, or what is has not been seen to leave nothing.
    #[default]
    Closed,
    /// Open to statements that have been seen to leave nothing, as the one in front has.
    Open,
}

/// Parts of a backend that change while a reply passes.
pub(crate) struct ReplyParts<'a> {
    pub(crate) middle: &'a mut Middle,
    pub(crate) bound: &'a mut Bound,
    pub(crate) summary: &'a mut ReplySummary,
}

/// Commands in flight on a backend, and the oldest reply as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// True if it was dialled without CLIENT_DEPRECATE_EOF: result sets end in EOF packets, which
    /// have no room for what the trackers report ([`crate::pair::reports`]).
    eofs: bool,
    /// Outstanding replies, oldest first.
    commands: VecDeque<InFlight>,
    /// The commands of those that are pipelined.
    followers: Followers,
    /// True if others may be pipelined behind what is in flight.
    pipeline: Pipeline,
    /// Position of the oldest reply between two reads.
    middle: Middle,
    /// Summary of the oldest reply so far.
    summary: ReplySummary,
    /// The reply of a command of the pool's own, being collected.
    collected: Vec<u8>,
    /// Moment since which it is not read because its client has not taken the last bytes of the
    /// reply in front.
    held_up_since: Option<Time>,
    /// Moment since which something has been in flight, or at which the last reply was complete.
    busy_since: Time,
}

impl Flight {
    /// Nothing in flight on a backend that is being dialled.
    pub(crate) fn new(now: Time) -> Flight {
        Flight {
            busy_since: now,
            ..Flight::default()
        }
    }

    /// True if nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Number of outstanding replies.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// The oldest, whose reply is next.
    pub(crate) fn front(&self) -> Option<&InFlight> {
        self.commands.front()
    }

    /// The last that was sent.
    pub(crate) fn back(&self) -> Option<&InFlight> {
        self.commands.back()
    }

    /// Outstanding replies, oldest first.
    pub(crate) fn iter(&self) -> Iter<'_, InFlight> {
        self.commands.iter()
    }

    /// Outstanding replies, to be changed one by one: only [`Flight::expect`] adds to them.
    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, InFlight> {
        self.commands.iter_mut()
    }

    /// True if nothing is in flight, and nothing of a reply has come.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.commands.is_empty() && self.middle == Middle::default()
    }

    /// Bytes that it keeps of commands and replies.
    pub(crate) fn capacity(&self) -> usize {
        let reply = self.collected.capacity() + self.summary.changes.capacity();
        reply + self.followers.capacity()
    }

    /// Notes the form in which result sets end.
    pub(crate) fn set_eofs(&mut self, eofs: bool) {
        self.eofs = eofs;
    }

    /// Notes that something is in flight from this moment on.
    pub(crate) fn begin(&mut self, now: Time) {
        self.busy_since = now;
    }

    /// True if others may be pipelined behind what is in flight.
    pub(crate) fn takes_followers(&self) -> bool {
        self.pipeline == Pipeline::Open
    }

    /// Adds a command to those in flight.
    pub(crate) fn expect(&mut self, command: InFlight) {
        self.commands.push_back(InFlight {
            reply: command.reply.with_eofs(self.eofs),
            ..command
        });
    }

    /// Takes the oldest, whose reply is complete.
    pub(crate) fn take_answered(&mut self) -> Option<InFlight> {
        let command = self.commands.pop_front()?;
        self.followers.drop_oldest(command.kept);
        if let Some(next) = self.commands.front_mut() {
            next.reply.note_before(&command.reply);
        }
        Some(command)
    }

    /// True if a part of the oldest reply has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.summary.len > 0 || !self.middle.at_packet_start()
    }

    /// Takes those who are pipelined, each with what becomes of its statement, in the order in
    /// which they were sent; nobody waits for the replies any more. `but` is none of them.
    pub(crate) fn abort_followers(&mut self, but: Option<ClientId>) -> Vec<(ClientId, Aborted)> {
        let begun = self.has_begun();
        let mut followers: Vec<(ClientId, Aborted)> = Vec::new();
        for (place, command) in self.commands.iter_mut().enumerate() {
            let sent = (self.followers).take_oldest(std::mem::take(&mut command.kept));
            let Some(follower) = command.owner.take_if(|follower| Some(*follower) != but) else {
                continue;
            };
            let aborted = match place == 0 && begun {
                true => Aborted::HasBegun,
                false if sent.is_empty() => Aborted::OwnsSession,
                false => Aborted::RunsAgain(sent),
            };
            // What the pool has sent for a client goes with the client's statement.
            match followers.iter_mut().find(|(known, _)| *known == follower) {
                Some(known) if command.purpose == Purpose::Statement => known.1 = aborted,
                Some(_) => {}
                None => followers.push((follower, aborted)),
            }
        }
        followers
    }

    /// Detaches a client's statement from its owner and leaves it to those pipelined with it.
    /// `false` where it is not in flight, or its reply has begun, and ends soon.
    pub(crate) fn leave_to_followers(&mut self, victim: ClientId, now: Time) -> bool {
        let owns = |c: &InFlight| c.owner == Some(victim) && c.purpose == Purpose::Statement;
        let Some(place) = self.commands.iter().position(owns) else {
            return false;
        };
        if place == 0 && self.has_begun() {
            return false;
        }
        self.commands[place].owner = None;
        self.note_left(now);
        true
    }

    /// Notes which replies in flight nobody waits for any more.
    pub(crate) fn note_left(&mut self, now: Time) {
        let mut len = self.summary.len;
        for command in &mut self.commands {
            if command.owner.is_none() {
                command.left.get_or_insert(Left { at: now, len });
            }
            // Only the first in flight has been answered in part.
            len = 0;
        }
    }

    /// A reply to a command of the pool's own, and what is kept of any, have their bounds, whatever
    /// the server sends. `relayed`: the reply goes to a client.
    pub(crate) fn check_lengths(&self, relayed: bool) -> Result<(), Malformed> {
        let (answer, changes) = (self.summary.len, self.summary.changes.len());
        let too_long = |what, len| Err(Malformed { what, at: 0, len });
        if !relayed && answer > COLLECTED_MAX {
            let what = "an answer of at most 16 MiB to the pool's own question";
            return too_long(what, answer);
        }
        if changes > CHANGES_MAX {
            return too_long("at most 16 MiB of session changes in one reply", changes);
        }
        Ok(())
    }

    /// Parts that change while a reply passes; `bound` is what its client has been told last.
    pub(crate) fn reply_parts<'a>(&'a mut self, bound: &'a mut Bound) -> ReplyParts<'a> {
        ReplyParts {
            middle: &mut self.middle,
            bound,
            summary: &mut self.summary,
        }
    }

    /// Summary of the oldest reply so far.
    pub(crate) fn reply_so_far(&self) -> &ReplySummary {
        &self.summary
    }

    /// True if the next byte of the oldest reply begins a packet.
    pub(crate) fn is_at_packet_start(&self) -> bool {
        self.middle.at_packet_start()
    }

    /// Keeps a part of a reply to a command of the pool's own.
    pub(crate) fn collect(&mut self, part: &[u8]) {
        self.collected.extend_from_slice(part);
    }

    /// Takes a complete reply: its summary, and what was collected of it.
    pub(crate) fn take_reply(&mut self, now: Time) -> (ReplySummary, Vec<u8>) {
        self.busy_since = now;
        self.held_up_since = None;
        let summary = std::mem::take(&mut self.summary);
        (summary, std::mem::take(&mut self.collected))
    }

    /// Gives the memory of a summary back for the next.
    pub(crate) fn give_room_back(&mut self, summary: ReplySummary) {
        self.summary.take_room(summary.changes);
    }

    /// Notes that the reply in front is not read, because its client has not taken its last bytes.
    pub(crate) fn hold_up(&mut self, now: Time) {
        self.held_up_since.get_or_insert(now);
    }

    /// Moment since which it is not read for that.
    pub(crate) fn held_up_since(&self) -> Option<Time> {
        self.held_up_since
    }

    /// Moment since which something has been in flight, or at which the last reply was complete.
    pub(crate) fn busy_since(&self) -> Time {
        self.busy_since
    }

    /// Closes the pipeline: nobody joins behind what is in flight.
    pub(crate) fn close_pipeline(&mut self) {
        self.pipeline = Pipeline::Closed;
    }

    /// Opens the pipeline behind a statement with nothing in front, if it is `trusted`.
    pub(crate) fn begin_pipeline(&mut self, trusted: bool) {
        self.pipeline = match trusted {
            true => Pipeline::Open,
            false => Pipeline::Closed,
        };
    }

    /// Keeps a command that is pipelined; returns how many bytes that takes.
    pub(crate) fn keep_for_followers(&mut self, message: &[u8]) -> usize {
        self.followers.keep(message)
    }

    /// True if result sets end in EOF packets, which have no room for what the trackers report: the
    /// backend was dialled without CLIENT_DEPRECATE_EOF ([`crate::pair::reports`]).
    pub(crate) fn sends_eofs(&self) -> bool {
        self.eofs
    }

    /// True if statements of others stand behind the one whose reply arrives.
    pub(crate) fn has_followers(&self) -> bool {
        let mut owners = self.commands.iter().filter_map(|command| command.owner);
        let first = owners.next();
        owners.any(|owner| Some(owner) != first)
    }

    /// Notes the answers that come for statements of the pool's own, in front of a client's.
    pub(crate) fn expect_joined(&mut self, owner: ClientId, joined: &Joined) {
        for i in 1..=joined.statements {
            let purpose = ForSession::Joined(i == joined.statements);
            let mut command = InFlight::own(Some(owner), purpose, ReplyShape::Status);
            if i > 1 {
                command.reply = command.reply.behind();
            }
            self.expect(command);
        }
    }
}

#[cfg(test)]
impl Flight {
    /// The oldest reply so far, to be changed.
    pub(crate) fn summary_mut(&mut self) -> &mut ReplySummary {
        &mut self.summary
    }

    pub(crate) fn keeps_no_command(&self) -> bool {
        self.followers.is_empty()
    }

    pub(crate) fn send_eofs(&mut self) {
        self.eofs = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight() -> Flight {
        Flight::new(Time(1))
    }

    #[test]
    fn a_statement_is_left_to_followers_until_its_reply_has_begun() {
        let mut flight = flight();
        let keys = [1, 2].map(|number| ClientId::from_parts(number, 0));
        for key in keys {
            let shape = ReplyShape::Results;
            flight.expect(InFlight::own(Some(key), Purpose::Statement, shape));
        }
        flight.summary.len = 1;
        assert!(!flight.leave_to_followers(keys[0], Time(2)), "it has begun");
        assert!(flight.leave_to_followers(keys[1], Time(2)));
        assert!(!flight.leave_to_followers(keys[1], Time(2)), "it has gone");
        let owners: Vec<_> = flight.iter().map(|c| c.owner).collect();
        assert_eq!(owners, [Some(keys[0]), None]);
        assert!(flight.back().unwrap().left.is_some());
    }

    #[test]
    fn what_is_kept_of_a_reply_has_its_bounds() {
        let mut flight = flight();
        flight.summary.len = COLLECTED_MAX;
        assert!(flight.check_lengths(false).is_ok());
        flight.summary.len += 1;
        assert!(flight.check_lengths(false).is_err());
        assert!(flight.check_lengths(true).is_ok(), "it is not kept");
        flight.summary.changes = vec![0; CHANGES_MAX];
        assert!(flight.check_lengths(true).is_ok());
        flight.summary.changes.push(0);
        assert!(flight.check_lengths(true).is_err());
    }

    #[test]
    fn behind_a_reply_nothing_of_it_is_left() {
        let mut flight = flight();
        flight.collect(b"abc");
        flight.summary.len = 3;
        flight.hold_up(Time(2));
        flight.hold_up(Time(3));
        assert_eq!(flight.held_up_since(), Some(Time(2)));
        let (summary, collected) = flight.take_reply(Time(9));
        assert_eq!((summary.len, &collected[..]), (3, &b"abc"[..]));
        assert_eq!(
            (flight.held_up_since(), flight.busy_since()),
            (None, Time(9))
        );
        assert_eq!(flight.take_reply(Time(9)).1, b"");
    }
}
