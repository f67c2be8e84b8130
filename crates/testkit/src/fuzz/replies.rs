//! Replies: OK, ERR, session trackers, and where a reply ends.
//!
//! Where `wire` says that a reply is over the backend goes to somebody else, so its end must be
//! the same in whatever pieces the reply arrives, and the same that [`crate::reply`]'s assembler
//! finds, which shares no code with it.

use super::hash;
use crate::reply::{Assembler, Progress};
use crate::sim::random::Random;
use wire::capabilities as cap;
use wire::checked::{Breach, CheckedReply};
use wire::command::{Command, ReplyShape};
use wire::errors;
use wire::packet::{Frame, HEADER_LEN, Header, Malformed, PAYLOAD_MAX, frame};
use wire::reply::{END, ErrPacket, OK, OkPacket, Prepared, Reply, Step, put_err};
use wire::track::{self, Bound, Change, Wanted};

/// Reads the payload of an OK, EOF or ERR packet, or of a prepared statement's header.
pub(super) fn status(data: &[u8]) {
    for session_track in [false, true] {
        let Ok(ok) = OkPacket::read(data, session_track) else {
            continue;
        };
        for first in [OK, END] {
            let mut out = Vec::new();
            ok.put(&mut out, first, session_track);
            assert_eq!(out[0], first);
            assert_eq!(OkPacket::read(&out, session_track), Ok(ok));
        }
        let mut eof = Vec::new();
        ok.put_eof(&mut eof);
        let short = OkPacket::read(&eof, session_track).expect("an EOF packet is read");
        assert_eq!(eof.len(), 5);
        assert_eq!((short.status, short.warnings), (ok.status, ok.warnings));
        assert!(session_track || ok.changes.is_empty());
    }
    if let Ok(err) = ErrPacket::read(data) {
        assert_eq!(err.state.len(), 5);
        assert!(data.ends_with(err.message));
        let text = String::from_utf8_lossy(err.message);
        let mut out = Vec::new();
        put_err(&mut out, 1, errors::UNKNOWN_ERROR, &text);
        let ours = ErrPacket::read(&out[HEADER_LEN..]).expect("what we write we read");
        assert_eq!((ours.code, ours.state), (1105, &b"HY000"[..]));
        assert!(text.as_bytes().starts_with(ours.message));
        assert!(ours.message.len() == text.len() || ours.message.len() > 496);
    }
    if let Ok(prepared) = Prepared::read(data) {
        assert_eq!(data[1..5], prepared.id.to_le_bytes());
    }
}

fn listed(blocks: &[u8]) -> (Vec<Change<'_>>, Result<(), Malformed>) {
    let mut seen = Vec::new();
    let end = track::changes(blocks, |change| seen.push(change));
    (seen, end)
}

/// Reads tracker blocks; the first byte says what the client wants of them.
pub(super) fn trackers(data: &[u8]) {
    let Some((&wants, blocks)) = data.split_first() else {
        return;
    };
    let (all, end) = listed(blocks);
    let variables = ["*", "autocommit,time_zone", ""][usize::from(wants) % 3];
    let wanted = Wanted::from_setting(variables, wants & 0x80 != 0);
    let mut out = b"before".to_vec();
    let kept = track::keep(blocks, &wanted, false, &mut Bound::default(), &mut out);
    assert_eq!(kept.is_err(), end.is_err());
    let (again, end) = listed(&out[6..]);
    assert_eq!(end, Ok(()), "what is kept can be read");
    let expected = all.into_iter().filter(|change| match change {
        Change::Variable { name, .. } => {
            let mut wanted = variables.split(',').filter(|name| !name.is_empty());
            variables == "*" || wanted.any(|wanted| wanted.as_bytes() == *name)
        }
        Change::Schema(_) => wanted.schema,
        // Whoever has them reported is told of all.
        Change::Gtids(_) => true,
        _ => false,
    });
    let expected: Vec<Change<'_>> = expected.collect();
    assert_eq!(again, expected);
    assert_eq!(kept.unwrap_or(!expected.is_empty()), !expected.is_empty());
    if expected.is_empty() {
        assert_eq!(out, b"before");
    }
}

const SHAPES: [ReplyShape; 7] = [
    ReplyShape::Results,
    ReplyShape::Status,
    ReplyShape::Prepared,
    ReplyShape::Rows,
    ReplyShape::Text,
    ReplyShape::None,
    ReplyShape::Cursor,
];

/// Result of following a reply.
#[derive(Debug, PartialEq, Eq)]
struct Followed {
    steps: Vec<String>,
    rows: u64,
    /// The packet that ended it, counted from 0.
    over_at: Option<usize>,
    failed: Option<Malformed>,
}

/// Follows the packets; of each only `shown` of the bytes are shown, unless it must be whole.
fn follow(shape: ReplyShape, packets: &[&[u8]], mut shown: impl FnMut(usize) -> usize) -> Followed {
    let mut reply = Reply::new(shape);
    let mut followed = Followed {
        steps: Vec::new(),
        rows: 0,
        over_at: None,
        failed: None,
    };
    for (number, packet) in packets.iter().enumerate() {
        let was_over = reply.is_done();
        let mut advanced = reply.advance(packet.len(), &packet[..shown(packet.len())]);
        if advanced == Ok(Step::Cut) {
            advanced = reply.advance(packet.len(), packet);
            assert!(advanced != Ok(Step::Cut), "it is there whole");
        }
        assert!(!was_over || advanced.is_err(), "a packet after the end");
        match advanced {
            Ok(step) => {
                let starts = matches!(step, Step::Ok(_) | Step::End(_)) && reply.is_at_start();
                assert!(!starts || matches!(shape, ReplyShape::Results | ReplyShape::Cursor));
                followed.steps.push(format!("{step:?}"));
                followed.rows += u64::from(step == Step::Row);
            }
            Err(malformed) => {
                followed.failed = Some(malformed);
                return followed;
            }
        }
        if reply.is_done() {
            followed.over_at.get_or_insert(number);
        }
    }
    followed
}

/// Reads a server's packets in answer to one command; the first byte says to which kind.
pub(super) fn reply(data: &[u8]) {
    let Some((&how, mut stream)) = data.split_first() else {
        return;
    };
    let shape = SHAPES[usize::from(how) % SHAPES.len()];
    let mut packets = Vec::new();
    while let Frame::Whole { total, .. } = frame(stream) {
        packets.push(&stream[HEADER_LEN..total]);
        stream = &stream[total..];
    }
    let whole = follow(shape, &packets, |len| len);
    let mut random = Random::new(hash(data));
    let part = follow(shape, &packets, |len| {
        usize::try_from(random.below(len as u64 + 1)).unwrap_or(len)
    });
    assert_eq!(
        part, whole,
        "the pieces that rows arrive in change the reply"
    );
    let binary = how & 0x80 != 0;
    agrees(shape, binary, &packets, &whole);
    if packets.iter().all(|packet| packet.len() < PAYLOAD_MAX) {
        let broken = broken_at(shape, binary, &packets, |len| len);
        let in_pieces = broken_at(shape, binary, &packets, |len| {
            usize::try_from(random.below(len as u64 + 1)).unwrap_or(len)
        });
        assert_eq!(in_pieces, broken, "the pieces that rows arrive in matter");
        if let Some(number) = broken {
            is_no_row(shape, binary, &packets[..=number]);
        }
    }
    if let Some(header) = Header::read(stream) {
        // Its first bytes are here, what it does must be told from them without a panic.
        let _ = Reply::new(shape).advance(header.len, &stream[HEADER_LEN..]);
    }
}

/// The number of the packet in which a reply that is checked breaks the protocol. Rows come in two
/// pieces, the first as long as `shown` says.
fn broken_at(
    shape: ReplyShape,
    binary: bool,
    packets: &[&[u8]],
    mut shown: impl FnMut(usize) -> usize,
) -> Option<usize> {
    let mut reply = CheckedReply::new(shape);
    if binary {
        reply = reply.to_command(Command::StmtExecute);
    }
    let mut take = |number: usize, packet: &[u8]| -> Result<(), Breach> {
        let (len, first) = (packet.len(), shown(packet.len()));
        let seq = u8::try_from(number % 256).unwrap_or(0);
        let header = Header { len, seq };
        let mut first = &packet[..first];
        let mut step = reply.advance(header, first)?;
        if step.is_none() || step == Some(Step::Cut) {
            first = packet;
            step = reply.advance(header, packet)?;
        }
        if step.is_some_and(|step| step.passes_by()) {
            reply.pass(first, first.len() == len)?;
            if first.len() < len {
                reply.pass(&packet[first.len()..], true)?;
            }
        }
        Ok(())
    };
    let mut numbered = packets.iter().enumerate();
    numbered.find_map(|(number, packet)| take(number, packet).err().map(|_| number))
}

/// Checks that the assembler does not take the last of these packets for a row either.
fn is_no_row(shape: ReplyShape, binary: bool, packets: &[&[u8]]) {
    let mut reply = Reply::new(shape);
    let mut assembler = Assembler::new(shape, binary, cap::DEPRECATE_EOF | cap::SESSION_TRACK);
    for (number, packet) in packets.iter().enumerate() {
        let is_last = number + 1 == packets.len();
        if is_last && !reply.next_is_row(packet.len(), packet) {
            return;
        }
        let fed = assembler.feed(packet);
        assert!(
            !is_last || fed.is_err(),
            "a row is refused that can be read"
        );
        if fed.is_err() || reply.advance(packet.len(), packet).is_err() {
            return;
        }
    }
}

/// Checks `wire` against the assembler, which takes every value apart, so it refuses more; where it
/// sees the end of a reply `wire` must see it too, and nowhere before.
fn agrees(shape: ReplyShape, binary: bool, packets: &[&[u8]], whole: &Followed) {
    let capabilities = cap::DEPRECATE_EOF | cap::SESSION_TRACK;
    let mut assembler = Assembler::new(shape, binary, capabilities);
    for (number, packet) in packets.iter().enumerate() {
        if assembler.is_over() || whole.failed.is_some() {
            return;
        }
        match assembler.feed(packet) {
            Ok(Progress::Over) => {
                assert_eq!(whole.over_at, Some(number), "{:?}", whole.steps);
            }
            Ok(Progress::More) => {
                let over = whole.over_at.is_some_and(|at| at <= number);
                assert!(!over, "over too early: {:?}", whole.steps);
            }
            Ok(Progress::File(_)) | Err(_) => return,
        }
    }
}
