//! `select`: the single statement of sysbench 0.5's script of that name.
//!
//! As `oltp_point_select`, but it reads column `pad`; published runs with many connections used it,
//! so it is here to be compared with them.

use super::text::put_by_row;
use super::{Event, Shape};
use crate::random::Random;

pub(super) fn put(shape: &Shape, event: &Event, random: &mut Random, out: &mut Vec<u8>) -> bool {
    if event.step > 0 {
        return false;
    }
    let (table, row) = (shape.table(random), shape.row(random));
    put_by_row(out, "SELECT pad FROM sbtest", table, " WHERE id=", row);
    true
}
