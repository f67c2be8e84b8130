//! Rows of the answers to the pool's own questions.
//!
//! NULL is an empty text here: no question of the pool's needs the difference.

use session::text::Text;
use wire::blocking;
use wire::command::ReplyShape;
use wire::packet::{Frame, HEADER_LEN, frame};
use wire::reply::{Reply, Step};

/// The only row of a collected result set; NULL is an empty text.
pub(crate) fn row_of(collected: &[u8]) -> Option<Vec<Text>> {
    let mut reply = Reply::new(ReplyShape::Results);
    let mut rest = collected;
    let mut found = None;
    while let Frame::Whole { total, .. } = frame(rest) {
        let payload = &rest[HEADER_LEN..total];
        if reply.advance(payload.len(), payload).ok()? == Step::Row {
            found = Some(read_row(payload));
        }
        rest = &rest[total..];
        if reply.is_done() {
            break;
        }
    }
    found
}

/// The values of a text row; NULL is an empty text.
pub(crate) fn read_row(payload: &[u8]) -> Vec<Text> {
    blocking::values(payload).map(Text::from).collect()
}
