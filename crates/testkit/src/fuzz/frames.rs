//! The compressed protocol's frames.
//!
//! A frame says how long it unpacks to before anybody knows who sent it: memory must stay bounded,
//! and a packer that has met a broken frame of one connection must serve the next one's rightly.

use super::pieces;
use wire::compressed::{Algorithm, Body, Broken, FrameHeader, HEADER_LEN, Inflater, Packer};

/// The longest that a header can announce.
const BODY_MAX: usize = (1 << 24) - 1;

/// Unpacks the frames at the front; returns what they used.
fn unpack(packer: &mut Packer, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Broken> {
    let mut used = 0;
    while let Some(more) = packer.unpack(&bytes[used..], out)? {
        assert!(more >= HEADER_LEN && used + more <= bytes.len());
        used += more;
    }
    Ok(used)
}

/// Unpacks the frame at the front piece by piece, if it has come whole.
fn unpack_pieces(bytes: &[u8]) -> Option<Result<Vec<u8>, Broken>> {
    let header = FrameHeader::read(bytes)?;
    let sent = bytes.get(HEADER_LEN..HEADER_LEN + header.sent)?;
    let inflater = header
        .is_packed()
        .then(|| Inflater::new(Algorithm::Zlib).expect("there is memory"));
    let mut body = Body::new(header, inflater);
    let (mut at, mut plain, mut piece) = (0, Vec::new(), [0; 100]);
    while !body.is_over() {
        // What has come is given in pieces as well, but for the last.
        let end = (at + 1 + at % 13).min(sent.len());
        let (used, written) = match body.unpack(&sent[at..end], &mut piece) {
            Ok(done) => done,
            Err(broken) => return Some(Err(broken)),
        };
        assert!(
            used + written > 0,
            "a body that has come whole does not end"
        );
        at += used;
        plain.extend_from_slice(&piece[..written]);
        assert!(plain.len() <= header.unpacked.max(header.sent));
    }
    Some(Ok(plain))
}

/// Takes the bytes as packets to be packed, and as frames from a peer.
pub(super) fn compressed(data: &[u8]) {
    let mut packer = Packer::default();
    let mut peer = Packer::default();
    let mut first = Vec::new();
    let at_once = packer.unpack(data, &mut first);
    match unpack_pieces(data) {
        None => assert_eq!(at_once, Ok(None)),
        Some(Err(Broken)) => assert_eq!(at_once, Err(Broken)),
        Some(Ok(plain)) => assert!(at_once.is_ok() && plain == first, "pieces differ"),
    }
    let mut at_once = Vec::new();
    let whole = unpack(&mut packer, data, &mut at_once);
    if data.len() >= HEADER_LEN {
        assert!(at_once.len() <= data.len() / HEADER_LEN * BODY_MAX);
    }

    let (mut input, mut plain, mut used) = (Vec::new(), Vec::new(), Ok(0));
    for piece in pieces(data) {
        input.extend_from_slice(piece);
        match (used, unpack(&mut peer, &input, &mut plain)) {
            (Ok(before), Ok(more)) => {
                input.drain(..more);
                used = Ok(before + more);
            }
            (_, Err(broken)) => used = Err(broken),
            (Err(_), _) => unreachable!("nothing is read behind a broken frame"),
        }
        if used.is_err() {
            break;
        }
    }
    assert_eq!(used, whole, "the pieces change what is unpacked");
    assert!(whole.is_err() || plain == at_once);

    // Both have met whatever `data` is, broken or not.
    let mut frames = Vec::new();
    packer.pack(data, &mut frames);
    let mut again = Vec::new();
    assert_eq!(unpack(&mut peer, &frames, &mut again), Ok(frames.len()));
    assert!(again == data, "packed and unpacked is not the same");
    assert!(frames.len() <= data.len() + HEADER_LEN * (1 + data.len() / BODY_MAX));
}
