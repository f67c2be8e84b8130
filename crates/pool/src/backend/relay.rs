//! Relay: a backend's bytes become its client's bytes. The hottest file.
//!
//! A reply is followed packet by packet ([`wire::checked::CheckedReply`]) and copied to the output
//! as it arrives. What differs between the two ends is put right on the way:
//! - sequence numbers, which shift once a packet is put in between;
//! - EOF packets: a client without CLIENT_DEPRECATE_EOF has a backend that sends them
//!   (`wire/capabilities.rs: BACKEND_KEY`). Only between such a backend and the pool itself, and
//!   between a reply that the pool has kept and such a client, they are left out or put in;
//! - session tracker blocks are reduced to those the client asked for; what an EOF packet has no
//!   room for comes with a later OK ([`PendingChanges`]).
//!
//! Invariants: a packet that carries a decision (OK, ERR, counts, definitions) is taken whole, so a
//! reply is never half told; every other byte is forwarded at once, so a row may be larger than any
//! buffer; a short row is checked before it is forwarded ([`wire::rows`]); nothing is allocated
//! here but what the output needs to grow.

use wire::capabilities::{DEPRECATE_EOF, SESSION_TRACK};
use wire::checked::{Breach, CheckedReply};
use wire::execution::set_statement_id;
use wire::packet::{HEADER_LEN, Header, Malformed, put_short};
use wire::reply::{END, EOF_LEN, OK, OkPacket, Step};
use wire::status;
use wire::track::{self, Bound, Transactions, Wanted};

/// Packets that must be whole are at most this long; the longest are OK packets with the new value
/// of a long variable.
pub(crate) const WHOLE_MAX: usize = 1 << 20;

/// Form that the receiver understands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// CLIENT_DEPRECATE_EOF was agreed.
    pub deprecate_eof: bool,
    /// Trackers that a client with CLIENT_SESSION_TRACK receives.
    pub track: Option<&'a Wanted>,
    /// True if the server is MySQL.
    pub(crate) mysql: bool,
    /// The client's default schema, where its reply is to name it ([`Adjustments::schema`]).
    pub(crate) schema: Option<&'a [u8]>,
    /// True if the client is not told of the numbers of transactions.
    pub(crate) hides_gtids: bool,
}

impl<'a> Shape<'a> {
    /// Form that a client with these capabilities understands, and wants.
    pub(crate) fn of(capabilities: u32, wanted: Option<&'a Wanted>, mysql: bool) -> Shape<'a> {
        Shape {
            deprecate_eof: capabilities & DEPRECATE_EOF != 0,
            track: wanted.filter(|_| capabilities & SESSION_TRACK != 0),
            mysql,
            schema: None,
            hides_gtids: false,
        }
    }

    /// Form that the pool itself understands.
    pub(crate) fn own() -> Self {
        Shape {
            deprecate_eof: true,
            track: None,
            mysql: false,
            schema: None,
            hides_gtids: false,
        }
    }
}

/// Blocks that a client is still to be told, because what they belong to has ended with an EOF
/// packet, which has no room for them, or on MySQL with an error, which has none either. MySQL
/// tells them with the next OK, MariaDB with the next one that has something to tell of its own
/// (seen on 9.7 and 10.11).
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "8 bytes of an idle client instead of 24"
)]
pub(crate) struct PendingChanges(Option<Box<Vec<u8>>>);

impl PendingChanges {
    /// Adds changes that no OK has reported to the client.
    ///
    /// # Errors
    /// [`Malformed`] when they cannot be read.
    pub(crate) fn add(&mut self, changes: &[u8]) -> Result<(), Malformed> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut all = changes.to_vec();
        if let Some(older) = self.0.take() {
            track::add_older(&older, &mut all)?;
        }
        self.0 = Some(Box::new(all));
        Ok(())
    }

    /// All of them.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |bytes| bytes)
    }

    /// Adds them to the changes that an OK reports to a client that wants `told` of transactions.
    /// `true` where a change of its own is none for the client, with what it has not been told.
    ///
    /// # Errors
    /// [`Malformed`] when they cannot be read.
    pub(crate) fn put(
        &mut self,
        changes: &mut Vec<u8>,
        told: Transactions,
        mysql: bool,
    ) -> Result<bool, Malformed> {
        if !mysql && changes.is_empty() {
            return Ok(false);
        }
        let Some(mut older) = self.0.take() else {
            return Ok(false);
        };
        let bounds = told == Transactions::Bounds;
        let joined = bounds && track::join_transactions(&mut older, changes)?;
        track::add_older(&older, changes)?;
        Ok(joined)
    }
}

/// Position in a reply between two reads: bytes of a payload still to be passed on, and an EOF
/// packet that may be due behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Middle {
    remaining: usize,
    eof_due: bool,
    /// True if the result has other columns than the client knows.
    changed: bool,
}

impl Middle {
    /// True when the next byte begins a packet.
    #[must_use]
    pub(crate) fn at_packet_start(self) -> bool {
        self.remaining == 0
    }
}

/// Reason why [`Relay::feed`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Every byte that can be used has been; more must arrive.
    Hungry,
    /// Complete reply.
    Done,
    /// Request of the server for a local file, which the client sends.
    File,
}

/// One reply on its way.
pub(crate) struct Relay<'a> {
    /// Follows the reply.
    pub reply: &'a mut CheckedReply,
    /// Position between two reads.
    pub middle: &'a mut Middle,
    /// Number of the next packet to the client.
    pub seq: &'a mut u8,
    /// Form that the client understands.
    pub shape: Shape<'a>,
    /// The backend's status flags, for an EOF packet in the middle.
    pub status: u16,
    /// Changes to the reply on its way to the client.
    pub(crate) adjustments: Adjustments,
    /// Changes that the client is still to be told.
    pub(crate) pending_changes: &'a mut PendingChanges,
    /// Transaction state that it was told last on this backend.
    pub(crate) bound: &'a mut Bound,
}

/// Changes to a reply on its way to the client, where the server's words do not fit its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Adjustments {
    /// The id of the statement that it prepares.
    pub(crate) id: Option<u32>,
    /// Columns of the prepared statement that it executes; others than these are announced by a
    /// status flag, as a server does that had to prepare it again.
    pub(crate) columns: Option<u16>,
    /// Warnings of the statement before, which its OK counts; the backend's were another's.
    pub(crate) warnings: Option<u16>,
    /// True if its OK is to say that something has changed, even if it does not say what.
    pub(crate) changed: bool,
    /// True if its last OK is to name the default schema, whether or not the backend's does.
    pub(crate) schema: bool,
    /// A schema that its OK names is of a statement before it, whose EOF packet had no room.
    pub(crate) schema_before: bool,
}

impl Relay<'_> {
    /// Takes what it can from `input`, appends to `out` what the client is to get, and tells
    /// `notice` what each packet that says something does, and whether it is an EOF packet. Returns
    /// the bytes used up and why it stopped.
    ///
    /// # Errors
    /// [`Breach`] when the server's bytes are no reply to the command; the backend is of no use
    /// then.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        mut notice: impl FnMut(&Step<'_>, bool),
    ) -> Result<(usize, Stop), Breach> {
        let mut at = 0;
        loop {
            at += self.pass_on(&input[at..], out)?;
            if self.middle.remaining > 0 {
                return Ok((at, Stop::Hungry));
            }
            if self.reply.reply().is_done() {
                return Ok((at, Stop::Done));
            }
            let rest = &input[at..];
            let Some(header) = Header::read(rest) else {
                return Ok((at, Stop::Hungry));
            };
            let there = &rest[HEADER_LEN..];
            if header.len > 0 && there.is_empty() {
                return Ok((at, Stop::Hungry));
            }
            let Some(step) = self.reply.advance(header, there)? else {
                return Ok((at, Stop::Hungry));
            };
            if step.passes_by() {
                self.begin(step, header.len, out);
                at += HEADER_LEN;
                continue;
            }
            if header.len > WHOLE_MAX {
                let what = "an OK, ERR or count packet of at most 1 MiB";
                return Err(Malformed {
                    what,
                    at: 0,
                    len: header.len,
                }
                .into());
            }
            let Some(payload) = there.get(..header.len) else {
                return Ok((at, Stop::Hungry));
            };
            at += HEADER_LEN + header.len;
            self.decide(step, payload, out, &mut notice)?;
            if step == Step::File {
                return Ok((at, Stop::File));
            }
        }
    }

    /// Passes on the rest of a payload whose header has been sent, and the EOF packet behind it.
    fn pass_on(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let now = self.middle.remaining.min(input.len());
        let ends = self.middle.remaining == now;
        self.reply.pass(&input[..now], ends)?;
        out.extend_from_slice(&input[..now]);
        self.middle.remaining -= now;
        if ends {
            self.put_eof_due(out);
        }
        Ok(now)
    }

    fn put_eof_due(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.middle.eof_due) {
            let [low, high] = (self.flags(self.status & !status::OF_ONE_REPLY)).to_le_bytes();
            let eof = [END, 0, 0, low, high];
            put_short(out, self.take_seq(), |out| out.extend_from_slice(&eof));
        }
    }

    /// Status flags as the client is to see them: whether its statement's columns have changed is
    /// seen from what it knows, not from what the backend had prepared.
    fn flags(&self, status: u16) -> u16 {
        match self.adjustments.columns {
            None => status,
            Some(_) if self.middle.changed => status | status::METADATA_CHANGED,
            Some(_) => status & !status::METADATA_CHANGED,
        }
    }

    /// Begins a payload that may pass by in pieces.
    fn begin(&mut self, step: Step<'_>, len: usize, out: &mut Vec<u8>) {
        self.put_eof_due(out);
        let seq = self.take_seq();
        out.extend_from_slice(&Header { len, seq }.bytes());
        self.middle.remaining = len;
        let ends = step == Step::Definition { ends: true };
        self.middle.eof_due = ends && !self.shape.deprecate_eof;
    }

    /// Handles a packet that says something.
    fn decide(
        &mut self,
        mut step: Step<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
        notice: &mut impl FnMut(&Step<'_>, bool),
    ) -> Result<(), Malformed> {
        self.put_eof_due(out);
        match &mut step {
            Step::Ok(ok) => {
                self.status = ok.status;
                let warnings = self.adjustments.warnings;
                let told = OkPacket {
                    warnings: warnings.unwrap_or(ok.warnings),
                    ..*ok
                };
                self.put_ok(&told, payload[0], out)?;
                // Warnings that it only counts are none of its own.
                ok.warnings = warnings.map_or(ok.warnings, |_| 0);
            }
            Step::End(ok) | Step::CursorOpen(ok) => {
                self.status = ok.status;
                self.put_ok(ok, END, out)?;
            }
            Step::DefinitionsEnd(_) if self.shape.deprecate_eof => {}
            Step::DefinitionsEnd(eof) => self.put_ok(eof, END, out)?,
            other => {
                let start = out.len();
                put_short(out, self.take_seq(), |out| out.extend_from_slice(payload));
                if let (Step::Prepared(_), Some(id)) = (&other, self.adjustments.id) {
                    set_statement_id(&mut out[start..], id);
                }
                if let Step::Columns(count) = other {
                    let known = self.adjustments.columns;
                    self.middle.changed = known.is_some_and(|known| u64::from(known) != *count);
                }
            }
        }
        let eof = payload.first() == Some(&END) && payload.len() == EOF_LEN;
        notice(&step, eof);
        Ok(())
    }

    fn put_ok(&mut self, ok: &OkPacket<'_>, first: u8, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let seq = self.take_seq();
        let mut changes = Vec::new();
        let mut changed = false;
        if let Some(wanted) = self.shape.track
            && !ok.changes.is_empty()
        {
            let hides = self.shape.hides_gtids;
            changed = track::keep(ok.changes, wanted, hides, self.bound, &mut changes)?;
            if self.adjustments.schema_before {
                self.pending_changes
                    .add(&track::take_schema(&mut changes)?)?;
                changed = !changes.is_empty();
            }
        }
        if let Some(schema) = self.shape.schema
            && self.shape.track.is_some_and(|wanted| wanted.schema)
            && ok.status & status::MORE_RESULTS == 0
            && !track::names_schema(ok.changes)?
        {
            track::put_schema(&mut changes, schema);
            changed = true;
        }
        let eof = first == END && !self.shape.deprecate_eof;
        if let Some(wanted) = self.shape.track.filter(|_| !eof) {
            let pending = &mut self.pending_changes;
            let joined = !pending.bytes().is_empty()
                && pending.put(&mut changes, wanted.transactions, self.shape.mysql)?;
            changed = !changes.is_empty() || changed && !joined;
        } else if eof {
            self.pending_changes.add(&changes)?;
        }
        let mut status = self.flags(ok.status) & !status::SESSION_STATE_CHANGED;
        changed |= self.adjustments.changed && self.shape.track.is_some();
        if changed && !(eof && self.shape.mysql) {
            status |= status::SESSION_STATE_CHANGED;
        }
        // The answer to COM_SET_OPTION and COM_DEBUG is an EOF where that is not deprecated.
        if eof {
            put_short(out, seq, |out| OkPacket { status, ..*ok }.put_eof(out));
            return Ok(());
        }
        let first = if first == END { END } else { OK };
        let ok = OkPacket {
            status,
            changes: &changes,
            ..*ok
        };
        put_short(out, seq, |out| {
            ok.put(out, first, self.shape.track.is_some())
        });
        Ok(())
    }

    fn take_seq(&mut self) -> u8 {
        let seq = *self.seq;
        *self.seq = seq.wrapping_add(1);
        seq
    }
}

#[cfg(test)]
mod tests;
