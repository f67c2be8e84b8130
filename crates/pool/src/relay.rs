//! Relay: a backend's bytes become its client's bytes. The hottest file.
//!
//! A reply is followed packet by packet ([`wire::reply::Reply`]) and copied to the output as it
//! arrives. What differs between the two ends is put right on the way:
//! - sequence numbers, which shift once a packet is put in between;
//! - a client without CLIENT_DEPRECATE_EOF gets an EOF packet after the definitions and in place
//!   of the final OK;
//! - session tracker blocks are reduced to those the client asked for; what an EOF packet has no
//!   room for comes with a later OK ([`Unreported`]).
//!
//! Invariants: a packet that carries a decision (OK, ERR, counts) is taken whole, so a reply is
//! never half told; every other byte is forwarded at once, so a row may be larger than any buffer;
//! nothing is allocated here but what the output needs to grow.

use wire::execution::set_statement_id;
use wire::packet::{HEADER_LEN, Header, Malformed, Reader, put_short};
use wire::reply::{END, ErrPacket, OK, OkPacket, Prepared, Reply, Role, Step};
use wire::status;
use wire::track::{self, Bound, Wanted};

/// Packets that must be whole are at most this long; the longest are OK packets with the new value
/// of a long variable.
pub(crate) const WHOLE_MAX: usize = 1 << 20;

/// What the receiver understands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// CLIENT_DEPRECATE_EOF was agreed.
    pub deprecate_eof: bool,
    /// With CLIENT_SESSION_TRACK: the trackers that the client receives.
    pub track: Option<&'a Wanted>,
    /// The server is MySQL.
    pub(crate) mysql: bool,
}

impl Shape<'_> {
    /// What the pool itself understands.
    pub(crate) fn own() -> Self {
        Shape {
            deprecate_eof: true,
            track: None,
            mysql: false,
        }
    }
}

/// Blocks that a client is still to be told, because the result that they belong to has ended with
/// an EOF packet, which has no room for them. MySQL tells them with the next OK, MariaDB with the
/// next one that has something to tell of its own (seen on 9.7 and 10.11).
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "8 bytes of an idle client instead of 24"
)]
pub(crate) struct Unreported(Option<Box<Vec<u8>>>);

impl Unreported {
    /// Adds changes that were reported, and not to the client.
    ///
    /// # Errors
    /// [`Malformed`] when they cannot be read.
    pub(crate) fn add(&mut self, changes: &[u8]) -> Result<(), Malformed> {
        let mut all = changes.to_vec();
        if let Some(older) = self.0.take() {
            track::add_older(&older, &mut all)?;
        }
        self.0 = Some(Box::new(all));
        Ok(())
    }

    /// Adds them to the changes that an OK reports.
    pub(crate) fn put(&mut self, changes: &mut Vec<u8>, mysql: bool) -> Result<(), Malformed> {
        if !mysql && changes.is_empty() {
            return Ok(());
        }
        match self.0.take() {
            Some(older) => track::add_older(&older, changes),
            None => Ok(()),
        }
    }
}

/// Where a reply is between two reads: bytes of a payload still to be passed on, and whether an
/// EOF packet is due behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Middle {
    remaining: usize,
    eof_due: bool,
    /// The result has other columns than the client knows.
    changed: bool,
}

impl Middle {
    /// True when the next byte begins a packet.
    #[must_use]
    pub(crate) fn at_packet_start(self) -> bool {
        self.remaining == 0
    }
}

/// What the owner of a reply wants to know of it, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice<'a> {
    /// A command succeeded, or a result set ended (then `true`).
    Ok(OkPacket<'a>, bool),
    /// The command failed.
    Err(ErrPacket<'a>),
    /// A statement is prepared.
    Prepared(Prepared),
    /// A result has so many columns.
    Columns(u64),
}

/// Why [`Relay::feed`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Every byte that can be used has been; more must arrive.
    Hungry,
    /// The reply is complete.
    Done,
    /// The server waits for a local file; the client sends it.
    File,
}

/// One reply on its way.
pub(crate) struct Relay<'a> {
    /// Follows the reply.
    pub reply: &'a mut Reply,
    /// Where it is between two reads.
    pub middle: &'a mut Middle,
    /// Number of the next packet to the client.
    pub seq: &'a mut u8,
    /// What the client understands.
    pub shape: Shape<'a>,
    /// The backend's status flags, for an EOF packet in the middle.
    pub status: u16,
    /// Of a prepared statement: what the client knows it by.
    pub(crate) told: Told,
    /// What the client is still to be told.
    pub(crate) unreported: &'a mut Unreported,
    /// What it was told last of the transaction on this backend.
    pub(crate) bound: &'a mut Bound,
}

/// What a client knows of the prepared statement that a reply is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Its id, while it is being prepared.
    pub(crate) id: Option<u32>,
    /// Columns of its result; others than these are announced by a status flag, as a server does
    /// that had to prepare it anew.
    pub(crate) columns: Option<u16>,
    /// A cursor may be opened: then nothing follows the EOF packet behind the definitions, and its
    /// flags say so; it is sent once the next packet is known.
    pub(crate) delays_eof: bool,
    /// Warnings of the statement before, which its OK counts; the backend's were another's.
    pub(crate) warnings: Option<u16>,
    /// Its OK is to say that something has changed, even if it does not say what.
    pub(crate) changed: bool,
}

impl Relay<'_> {
    /// Takes what it can from `input`, appends to `out` what the client is to get, and tells
    /// `notice` what the reply says. Returns the bytes used up and why it stopped.
    ///
    /// # Errors
    /// [`Malformed`] when the server's bytes are no reply; the backend is of no use then.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        mut notice: impl FnMut(Notice<'_>),
    ) -> Result<(usize, Stop), Malformed> {
        let mut at = 0;
        loop {
            at += self.pass_on(&input[at..], out);
            if self.middle.remaining > 0 {
                return Ok((at, Stop::Hungry));
            }
            if self.reply.is_done() {
                return Ok((at, Stop::Done));
            }
            let rest = &input[at..];
            let Some(header) = Header::read(rest) else {
                return Ok((at, Stop::Hungry));
            };
            let first = rest.get(HEADER_LEN).copied();
            if header.len > 0 && first.is_none() {
                return Ok((at, Stop::Hungry));
            }
            let role = self
                .reply
                .role(first.filter(|_| header.len > 0), header.len);
            if !role.whole() {
                self.begin(role, header.len, out)?;
                at += HEADER_LEN;
                continue;
            }
            let total = HEADER_LEN + header.len;
            if header.len > WHOLE_MAX {
                let what = "an OK, ERR or count packet of at most 1 MiB";
                return Err(Malformed {
                    what,
                    at: 0,
                    len: header.len,
                });
            }
            let Some(payload) = rest.get(HEADER_LEN..total) else {
                return Ok((at, Stop::Hungry));
            };
            at += total;
            if self.decide(role, payload, out, &mut notice)? == Stop::File {
                return Ok((at, Stop::File));
            }
        }
    }

    /// Passes on the rest of a payload whose header has been sent, and the EOF packet behind it.
    fn pass_on(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let now = self.middle.remaining.min(input.len());
        out.extend_from_slice(&input[..now]);
        self.middle.remaining -= now;
        if self.middle.remaining == 0 && !self.told.delays_eof {
            self.put_eof_due(out);
        }
        now
    }

    fn put_eof_due(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.middle.eof_due) {
            let [low, high] = self
                .flags(self.status & !status::OF_ONE_REPLY)
                .to_le_bytes();
            let eof = [END, 0, 0, low, high];
            put_short(out, self.take_seq(), |out| out.extend_from_slice(&eof));
        }
    }

    /// Status flags as the client is to see them: whether its statement's columns have changed is
    /// seen from what it knows, not from what the backend had prepared.
    fn flags(&self, status: u16) -> u16 {
        match self.told.columns {
            None => status,
            Some(_) if self.middle.changed => status | status::METADATA_CHANGED,
            Some(_) => status & !status::METADATA_CHANGED,
        }
    }

    /// Begins a payload that may pass by in pieces.
    fn begin(&mut self, role: Role, len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let step = self.reply.advance(role, b"", len)?;
        self.put_eof_due(out);
        out.extend_from_slice(
            &Header {
                len,
                seq: self.take_seq(),
            }
            .bytes(),
        );
        self.middle.remaining = len;
        self.middle.eof_due = step == Step::DefinitionsDone && !self.shape.deprecate_eof;
        Ok(())
    }

    /// Handles a packet that says something.
    fn decide(
        &mut self,
        role: Role,
        payload: &[u8],
        out: &mut Vec<u8>,
        notice: &mut impl FnMut(Notice<'_>),
    ) -> Result<Stop, Malformed> {
        let step = self.reply.advance(role, payload, payload.len())?;
        if let Step::End(ok) = &step
            && ok.status & status::CURSOR_EXISTS != 0
        {
            self.middle.eof_due = false;
        }
        self.put_eof_due(out);
        if role == Role::ColumnCount {
            let count = Reader::new(payload).lenenc("a column count")?;
            let known = self.told.columns;
            self.middle.changed = known.is_some_and(|known| u64::from(known) != count);
            notice(Notice::Columns(count));
        }
        let seq = self.take_seq();
        match step {
            Step::Ok(ok) => {
                let counted = |warnings| OkPacket { warnings, ..ok };
                let warnings = self.told.warnings;
                let told = counted(warnings.unwrap_or(ok.warnings));
                self.put_ok(&told, payload[0], seq, out)?;
                self.status = ok.status;
                // Warnings that it only counts are none of its own.
                let own = counted(warnings.map_or(ok.warnings, |_| 0));
                notice(Notice::Ok(own, false));
            }
            Step::End(ok) => {
                self.put_ok(&ok, END, seq, out)?;
                self.status = ok.status;
                notice(Notice::Ok(ok, true));
            }
            other => {
                let start = out.len();
                put_short(out, seq, |out| out.extend_from_slice(payload));
                if let (Step::Prepared(_), Some(id)) = (&other, self.told.id) {
                    set_statement_id(&mut out[start..], id);
                }
                match other {
                    Step::Err(err) => notice(Notice::Err(err)),
                    Step::Prepared(prepared) => notice(Notice::Prepared(prepared)),
                    Step::File => return Ok(Stop::File),
                    _ => {}
                }
            }
        }
        Ok(Stop::Hungry)
    }

    fn put_ok(
        &mut self,
        ok: &OkPacket<'_>,
        first: u8,
        seq: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut changes = Vec::new();
        let mut changed = false;
        if let Some(wanted) = self.shape.track
            && !ok.changes.is_empty()
        {
            changed = track::keep(ok.changes, wanted, self.bound, &mut changes)?;
        }
        let eof = first == END && !self.shape.deprecate_eof;
        if !eof && self.shape.track.is_some() {
            self.unreported.put(&mut changes, self.shape.mysql)?;
            changed |= !changes.is_empty();
        } else if eof && !changes.is_empty() {
            self.unreported.add(&changes)?;
        }
        let mut status = self.flags(ok.status) & !status::SESSION_STATE_CHANGED;
        changed |= self.told.changed && self.shape.track.is_some();
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
mod tests {
    use super::*;
    use wire::command::ReplyShape;
    use wire::packet::put_packet;

    const MODERN: Shape<'_> = Shape {
        deprecate_eof: true,
        track: None,
        mysql: false,
    };
    const OLD: Shape<'_> = Shape {
        deprecate_eof: false,
        track: None,
        mysql: false,
    };
    const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut seq = 1;
        payloads
            .iter()
            .for_each(|payload| seq = put_packet(&mut out, seq, payload));
        out
    }

    /// Relays `input` in pieces of `piece` bytes; what is not used up is offered again.
    fn relay(input: &[u8], piece: usize, shape: Shape<'_>) -> (Vec<u8>, Vec<String>, Stop) {
        relay_told(input, piece, shape, (ReplyShape::Results, Told::default()))
    }

    fn relay_told(
        input: &[u8],
        piece: usize,
        shape: Shape<'_>,
        (reply, told): (ReplyShape, Told),
    ) -> (Vec<u8>, Vec<String>, Stop) {
        let mut reply = Reply::new(reply);
        let (mut middle, mut seq) = (Middle::default(), 1);
        let (mut out, mut said, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut stop = Stop::Hungry;
        let (mut unreported, mut bound) = (Unreported::default(), Bound::default());
        for chunk in input.chunks(piece) {
            kept.extend_from_slice(chunk);
            let mut relay = Relay {
                reply: &mut reply,
                middle: &mut middle,
                seq: &mut seq,
                shape,
                status: 2,
                told,
                unreported: &mut unreported,
                bound: &mut bound,
            };
            let (used, why) = relay
                .feed(&kept, &mut out, |notice| {
                    said.extend(match notice {
                        Notice::Ok(ok, end) => Some(format!("ok {:x} {end}", ok.status)),
                        Notice::Err(err) => Some(format!("err {}", err.code)),
                        Notice::Prepared(prepared) => Some(format!("prepared {}", prepared.id)),
                        Notice::Columns(_) => None,
                    });
                })
                .unwrap();
            kept.drain(..used);
            stop = why;
        }
        assert!(kept.is_empty());
        (out, said, stop)
    }

    #[test]
    fn a_modern_client_gets_the_same_bytes_in_any_pieces() {
        let input = packets(&[
            b"\x01",
            COLUMN,
            b"\x03abc",
            b"",
            b"\xfb",
            b"\xfe\0\0\x02\0\0\0",
        ]);
        for piece in 1..=input.len() {
            let (out, said, stop) = relay(&input, piece, MODERN);
            assert_eq!(out, input, "pieces of {piece}");
            assert_eq!((said, stop), (vec!["ok 2 true".to_string()], Stop::Done));
        }
    }

    #[test]
    fn an_old_client_gets_eof_packets_and_shifted_numbers() {
        let input = packets(&[b"\x01", COLUMN, b"\x03abc", b"\xfe\0\0\x22\0\x01\0"]);
        let mut expected = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x03abc"]);
        put_packet(&mut expected, 5, b"\xfe\x01\0\x22\0");
        for piece in 1..=input.len() {
            assert_eq!(relay(&input, piece, OLD).0, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn trackers_that_nobody_asked_for_are_stripped() {
        let changed = b"\0\0\0\x02\x40\0\0\0\x05\x01\x03\x02db";
        let plain = b"\0\0\0\x02\0\0\0";
        assert_eq!(relay(&packets(&[changed]), 99, MODERN).0, packets(&[plain]));
        let wanted = Wanted::from_setting("", true);
        let shape = Shape {
            deprecate_eof: true,
            track: Some(&wanted),
            mysql: false,
        };
        assert_eq!(
            relay(&packets(&[changed]), 99, shape).0,
            packets(&[changed])
        );
        let other = Wanted::from_setting("autocommit", false);
        let shape = Shape {
            deprecate_eof: true,
            track: Some(&other),
            mysql: false,
        };
        assert_eq!(relay(&packets(&[changed]), 99, shape).0, packets(&[plain]));
    }

    #[test]
    fn what_an_eof_packet_has_no_room_for_comes_later() {
        let rows: [&[u8]; 4] = [
            b"\x01",
            COLUMN,
            b"\x03abc",
            b"\xfe\0\0\x0a\x40\0\0\0\x05\x01\x03\x02db",
        ];
        let plain = b"\0\0\0\x0a\0\0\0";
        let news = b"\0\0\0\x02\x40\0\0\0\x05\x01\x03\x02ab";
        let zone = b"\0\0\0\x02\x40\0\0\0\x0a\0\x08\x04zone\x02+2";
        let both = b"\0\0\0\x02\x40\0\0\0\x0f\0\x08\x04zone\x02+2\x01\x03\x02db";
        let older = b"\0\0\0\x0a\x40\0\0\0\x05\x01\x03\x02db";
        let wanted = Wanted::from_setting("zone", true);
        // Answers behind rows: what the client is told, by MariaDB and by MySQL.
        let news_as_they_are = [&plain[..], news];
        let cases: [(&[&[u8]], [&[&[u8]]; 2]); 3] = [
            (&[zone], [&[both], &[both]]),
            (&[plain, zone], [&[plain, both], &[older, zone]]),
            (&[plain, news], [&news_as_they_are, &[older, news]]),
        ];
        for (answers, told) in cases {
            for (mysql, told) in [false, true].into_iter().zip(told) {
                let shape = Shape {
                    deprecate_eof: false,
                    track: Some(&wanted),
                    mysql,
                };
                let (out, ..) = relay(&packets(&[&rows[..], answers].concat()), 99, shape);
                let flags = if mysql { 0 } else { 0x40 };
                let eof: [&[u8]; 5] = [
                    rows[0],
                    COLUMN,
                    b"\xfe\0\0\x02\0",
                    rows[2],
                    &[0xFE, 0, 0, 0x0A, flags],
                ];
                assert_eq!(out, packets(&[&eof[..], told].concat()), "{mysql}");
            }
        }
    }

    #[test]
    fn an_error_and_a_second_result_are_noticed() {
        let input = packets(&[b"\0\0\0\x0a\0\0\0", b"\xff\x28\x04#42000bad"]);
        let (out, said, stop) = relay(&input, 3, MODERN);
        assert_eq!(out, input);
        assert_eq!(said, ["ok a false", "err 1064"]);
        assert_eq!(stop, Stop::Done);
    }

    #[test]
    fn a_request_for_a_file_stops_the_relay() {
        let (out, _, stop) = relay(&packets(&[b"\xfb/tmp/x"]), 99, MODERN);
        assert_eq!((out, stop), (packets(&[b"\xfb/tmp/x"]), Stop::File));
    }

    #[test]
    fn a_prepared_statement_gets_its_clients_id() {
        let header = |id: u8| [0, id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let input = packets(&[&header(99), COLUMN]);
        let told = Told {
            id: Some(7),
            ..Told::default()
        };
        for piece in 1..=input.len() {
            let prepared = (ReplyShape::Prepared, told);
            let (out, said, stop) = relay_told(&input, piece, MODERN, prepared);
            assert_eq!(out, packets(&[&header(7), COLUMN]));
            assert_eq!(
                (&said[..], stop),
                (&["prepared 99".to_string()][..], Stop::Done)
            );
            let (out, ..) = relay_told(&input, piece, OLD, prepared);
            assert_eq!(out, packets(&[&header(7), COLUMN, b"\xfe\0\0\x02\0"]));
        }
    }

    #[test]
    fn an_old_client_gets_one_eof_packet_for_an_open_cursor() {
        let told = Told {
            delays_eof: true,
            ..Told::default()
        };
        let results = (ReplyShape::Results, told);
        let open = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x42\0\0\0"]);
        let none = packets(&[b"\x01", COLUMN, b"\0\0\x01", b"\xfe\0\0\x02\0\0\0"]);
        let fails = packets(&[b"\x01", COLUMN, b"\xff\x28\x04#42000bad"]);
        for piece in 1..=open.len() {
            let (out, ..) = relay_told(&open, piece, OLD, results);
            assert_eq!(out, packets(&[b"\x01", COLUMN, b"\xfe\0\0\x42\0"]));
            assert_eq!(relay_told(&open, piece, MODERN, results).0, open);
            let eof = b"\xfe\0\0\x02\0";
            let (out, ..) = relay_told(&none, piece, OLD, results);
            assert_eq!(out, packets(&[b"\x01", COLUMN, eof, b"\0\0\x01", eof]));
            let (out, ..) = relay_told(&fails, piece, OLD, results);
            let err = b"\xff\x28\x04#42000bad";
            assert_eq!(out, packets(&[b"\x01", COLUMN, eof, err]));
        }
    }

    #[test]
    fn warnings_of_the_statement_before_are_the_clients_own() {
        let ok = |warnings: u8| packets(&[&[0, 0, 0, 2, 0, warnings, 0]]);
        let told = |warnings| {
            let told = Told {
                warnings,
                ..Told::default()
            };
            relay_told(&ok(3), 99, MODERN, (ReplyShape::Status, told)).0
        };
        assert_eq!(told(None), ok(3));
        assert_eq!(told(Some(1)), ok(1));
    }

    #[test]
    fn changed_columns_are_told_by_what_the_client_knows() {
        // Flags: the server's word on what its own statement was, 0x400, and autocommit.
        let says = |high: u8| {
            let end = [0xFE, 0, 0, 2, high, 0, 0];
            packets(&[b"\x01", COLUMN, &end])
        };
        let results = |columns| {
            let told = Told {
                columns,
                ..Told::default()
            };
            (ReplyShape::Results, told)
        };
        for (said, knows, told) in [(0, 1, 0), (4, 1, 0), (0, 2, 4), (4, 2, 4)] {
            let (out, ..) = relay_told(&says(said), 3, MODERN, results(Some(knows)));
            assert_eq!(out, says(told), "{said} {knows}");
        }
        assert_eq!(relay_told(&says(4), 3, MODERN, results(None)).0, says(4));
    }

    #[test]
    fn a_row_of_two_packets_passes_by() {
        let mut row = vec![0xFD, 0xFF, 0xFF, 0xFF];
        row.resize(4 + 0xFF_FFFF, b'x');
        let input = packets(&[b"\x01", COLUMN, &row, b"\xfe\0\0\x02\0\0\0"]);
        let (out, _, stop) = relay(&input, 60_000, MODERN);
        assert!(out == input);
        assert_eq!(stop, Stop::Done);
    }
}
