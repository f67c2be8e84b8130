//! `oltp_read_write`: a transaction of 20 statements.
//!
//! BEGIN; ten rows by key, all of one table; four ranges (plain, sum, ordered, distinct); an update
//! of an indexed column and one of a plain column; a row deleted and inserted again; COMMIT. That
//! is 14 reads, 4 writes and 2 others, as sysbench's script of the same name has it. Each statement
//! but the points and the insert draws a table of its own.

use super::text::{put_by_row, put_c, put_number, put_row_values};
use super::{Event, Shape};
use crate::random::Random;

pub(super) fn put(
    shape: &Shape,
    event: &mut Event,
    random: &mut Random,
    out: &mut Vec<u8>,
) -> bool {
    const BY_ID: &str = " WHERE id=";
    match event.step {
        0 => out.extend_from_slice(b"BEGIN"),
        step @ 1..=10 => {
            if step == 1 {
                event.table = shape.table(random);
            }
            put_by_row(
                out,
                "SELECT c FROM sbtest",
                event.table,
                BY_ID,
                shape.row(random),
            );
        }
        11 => put_range(out, "SELECT c FROM sbtest", "", shape, random),
        12 => put_range(out, "SELECT SUM(k) FROM sbtest", "", shape, random),
        13 => put_range(out, "SELECT c FROM sbtest", " ORDER BY c", shape, random),
        14 => put_range(
            out,
            "SELECT DISTINCT c FROM sbtest",
            " ORDER BY c",
            shape,
            random,
        ),
        15 => {
            let (table, row) = (shape.table(random), shape.row(random));
            put_by_row(out, "UPDATE sbtest", table, " SET k=k+1 WHERE id=", row);
        }
        16 => {
            out.extend_from_slice(b"UPDATE sbtest");
            put_number(out, shape.table(random));
            out.extend_from_slice(b" SET c='");
            put_c(out, random);
            out.extend_from_slice(b"' WHERE id=");
            put_number(out, shape.row(random));
        }
        17 => {
            (event.table, event.row) = (shape.table(random), shape.row(random));
            put_by_row(out, "DELETE FROM sbtest", event.table, BY_ID, event.row);
        }
        18 => {
            out.extend_from_slice(b"INSERT INTO sbtest");
            put_number(out, event.table);
            out.extend_from_slice(b" (id,k,c,pad) VALUES ");
            put_row_values(out, event.row, shape.row(random), random);
        }
        19 => out.extend_from_slice(b"COMMIT"),
        _ => return false,
    }
    true
}

/// A statement over `range_size` ids from a random row on; as in sysbench, it may reach past the
/// table's end.
fn put_range(out: &mut Vec<u8>, head: &str, tail: &str, shape: &Shape, random: &mut Random) {
    let table = shape.table(random);
    let first = shape.row(random);
    put_by_row(out, head, table, " WHERE id BETWEEN ", first);
    out.extend_from_slice(b" AND ");
    put_number(out, first.saturating_add(shape.range_size - 1));
    out.extend_from_slice(tail.as_bytes());
}
