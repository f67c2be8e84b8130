//! The consistency conditions of TPC-C: clause 3.3.2.
//!
//! Each is a query for what breaks it, in words; all are asked of one snapshot. The eleventh holds
//! for tables that no delivery has changed yet, and is left out.

use super::super::{columns, connect};
use load_core::errors::Fault;
use load_core::plan::Plan;

/// Rows that are told of a condition that does not hold.
const SHOWN_MAX: usize = 3;

const ORDER_LINES: &str = "ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id";

/// Numbers of the conditions, with what breaks each.
fn conditions() -> [(u32, String); 11] {
    let district = |values: &str, wrong: &str| {
        format!(
            "SELECT CONCAT('district ', d_id, ' of warehouse ', d_w_id, ': ', a, ' and ', \
             COALESCE(b, 'nothing')) FROM (SELECT d_w_id, d_id, {values} FROM tpcc_district) x \
             WHERE {wrong}"
        )
    };
    let order = |tables: &str| {
        format!(
            "SELECT CONCAT('order ', o_id, ' of district ', o_d_id, ' of warehouse ', o_w_id) FROM \
             {tables}"
        )
    };
    // Sums of payments: kept, and of the rows behind them.
    let payments = |table: &str, short: &str, rows: &str, sum: &str, by: &str, on: &str| {
        format!(
            "SELECT CONCAT('{table} ', {short}_id, ': ', {short}_ytd, ' and ', COALESCE(b, \
             'nothing')) FROM tpcc_{table} LEFT JOIN (SELECT {by}, SUM({sum}) b FROM tpcc_{rows} \
             GROUP BY {by}) s ON {on} WHERE NOT {short}_ytd <=> b"
        )
    };
    // Balances: paid, and ordered and delivered, of each customer.
    let customer = |wrong: &str| {
        format!(
            "SELECT CONCAT('customer ', c_id, ' of district ', c_d_id, ' of warehouse ', c_w_id) \
             FROM tpcc_customer LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) paid \
             FROM tpcc_history GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND \
             h_c_d_id = c_d_id AND h_c_id = c_id LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, \
             SUM(ol_amount) due FROM tpcc_order JOIN tpcc_order_line ON {ORDER_LINES} WHERE \
             ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND \
             o_d_id = c_d_id AND o_c_id = c_id WHERE {wrong}"
        )
    };
    let of = |table: &str, short: &str, what: &str| {
        format!("(SELECT {what} FROM {table} WHERE {short}_w_id = d_w_id AND {short}_d_id = d_id)")
    };
    [
        (
            1,
            payments(
                "warehouse",
                "w",
                "district",
                "d_ytd",
                "d_w_id",
                "d_w_id = w_id",
            ),
        ),
        (
            2,
            district(
                &format!(
                    "d_next_o_id - 1 a, {} b, {} c",
                    of("tpcc_order", "o", "MAX(o_id)"),
                    of("tpcc_new_order", "no", "MAX(no_o_id)")
                ),
                "NOT a <=> b OR a <> c",
            ),
        ),
        (
            3,
            district(
                &format!(
                    "{} a, {} b",
                    of("tpcc_new_order", "no", "MAX(no_o_id) - MIN(no_o_id) + 1"),
                    of("tpcc_new_order", "no", "COUNT(*)")
                ),
                "a <> b",
            ),
        ),
        (
            4,
            district(
                &format!(
                    "{} a, {} b",
                    of("tpcc_order", "o", "SUM(o_ol_cnt)"),
                    of("tpcc_order_line", "ol", "COUNT(*)")
                ),
                "NOT a <=> b",
            ),
        ),
        (
            5,
            order(
                "tpcc_order LEFT JOIN tpcc_new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND \
                 no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
            ),
        ),
        (
            6,
            order(&format!(
                "tpcc_order WHERE o_ol_cnt <> (SELECT COUNT(*) FROM tpcc_order_line WHERE \
                 {ORDER_LINES})"
            )),
        ),
        (
            7,
            order(&format!(
                "tpcc_order JOIN tpcc_order_line ON {ORDER_LINES} WHERE (ol_delivery_d IS NULL) \
                 <> (o_carrier_id IS NULL)"
            )),
        ),
        (
            8,
            payments(
                "warehouse",
                "w",
                "history",
                "h_amount",
                "h_w_id",
                "h_w_id = w_id",
            ),
        ),
        (
            9,
            payments(
                "district",
                "d",
                "history",
                "h_amount",
                "h_w_id, h_d_id",
                "h_w_id = d_w_id AND h_d_id = d_id",
            ),
        ),
        (
            10,
            customer("c_balance <> COALESCE(due, 0) - COALESCE(paid, 0)"),
        ),
        (
            12,
            customer("c_balance + c_ytd_payment <> COALESCE(due, 0)"),
        ),
    ]
}

/// Asks for all conditions; a line for each that does not hold.
pub(in crate::proof) fn check(plan: &Plan) -> Result<Vec<String>, Fault> {
    let mut client = connect(plan)?;
    client.query(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    client.query(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let mut broken = Vec::new();
    for (number, query) in conditions() {
        let text = format!("{query} LIMIT {SHOWN_MAX}");
        let mut found = Vec::new();
        client.read(text.as_bytes(), |row| {
            let [words] = columns(row);
            found.push(String::from_utf8_lossy(words).into_owned());
        })?;
        if !found.is_empty() {
            broken.push(format!("condition {number}: {}", found.join("; ")));
        }
    }
    client.query(b"COMMIT")?;
    Ok(broken)
}
