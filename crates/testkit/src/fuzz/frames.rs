//! The compressed protocol's frames.
//!
//! A frame says how long it unpacks to before anybody knows who sent it: memory must stay bounded,
//! and a packer that has met a broken frame of one connection must serve the next one's rightly.

use super::pieces;
use wire::compressed::{Broken, HEADER_LEN, Packer};

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

/// The bytes as packets to be packed, and as frames from a peer.
pub(super) fn compressed(data: &[u8]) {
    let mut packer = Packer::default();
    let mut peer = Packer::default();
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
