//! `oltp_point_select`: one row by its primary key.
//!
//! The cheapest statement a server has to look a row up for: what it measures is mostly the path
//! to the statement and back.

use super::text::put_by_row;
use super::{Event, Shape};
use crate::random::Random;

pub(super) fn put(shape: &Shape, event: &Event, random: &mut Random, out: &mut Vec<u8>) -> bool {
    if event.step > 0 {
        return false;
    }
    let (table, row) = (shape.table(random), shape.row(random));
    put_by_row(out, "SELECT c FROM sbtest", table, " WHERE id=", row);
    true
}
