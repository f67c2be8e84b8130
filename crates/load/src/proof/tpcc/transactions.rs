//! The five transactions of TPC-C: clauses 2.4 to 2.8.
//!
//! The output that a terminal would show is read and dropped. A transaction draws its input before
//! its first statement, so that the same can be tried again.

use super::super::clients::Teller;
use super::Size;
use super::random::{DISTRICTS, between, customer, item, money, name};
use load_core::errors::Fault;

/// Bytes of a customer's data that a payment keeps.
const DATA_MAX: usize = 500;

/// A client at its warehouse.
pub(super) struct Terminal {
    pub(super) size: Size,
    pub(super) warehouse: u32,
    /// District whose stock it looks at.
    pub(super) district: u32,
}

/// A line of an order.
struct Line {
    item: u32,
    supplier: u32,
    quantity: u32,
}

impl Terminal {
    /// Orders items; false if one is unused, so that the order is rolled back.
    pub(super) fn new_order(&self, teller: &mut Teller<'_>) -> Result<bool, Fault> {
        let w = self.warehouse;
        let (d, c) = (1 + teller.below(DISTRICTS), self.customer(teller));
        let count = 5 + teller.below(11);
        let has_unused = teller.below(100) == 0;
        let mut lines: Vec<Line> = (0..count).map(|_| self.line(teller)).collect();
        if let Some(last) = lines.last_mut().filter(|_| has_unused) {
            last.item = self.size.items + 1;
        }
        let all_local = u32::from(lines.iter().all(|line| line.supplier == w));
        run(teller, "BEGIN")?;
        let _: [String; 4] = row(
            teller,
            &format!(
                "SELECT w_tax, c_discount, c_last, c_credit FROM tpcc_warehouse JOIN \
                 tpcc_customer ON c_w_id = w_id WHERE w_id = {w} AND c_d_id = {d} AND c_id = {c}"
            ),
        )?;
        let district = format!("WHERE d_w_id = {w} AND d_id = {d}");
        let [order, _] = row(
            teller,
            &format!("SELECT d_next_o_id, d_tax FROM tpcc_district {district} FOR UPDATE"),
        )?;
        for text in [
            format!("UPDATE tpcc_district SET d_next_o_id = d_next_o_id + 1 {district}"),
            format!(
                "INSERT INTO tpcc_order VALUES ({w},{d},{order},{c},NOW(),NULL,{count},{all_local})"
            ),
            format!("INSERT INTO tpcc_new_order VALUES ({w},{d},{order})"),
        ] {
            run(teller, &text)?;
        }
        let mut values = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let Line {
                item,
                supplier,
                quantity,
            } = *line;
            let text = format!("SELECT i_price, i_name, i_data FROM tpcc_item WHERE i_id = {item}");
            let Some([price, ..]) = teller.row::<3>(&text)? else {
                run(teller, "ROLLBACK")?;
                return Ok(false);
            };
            let stock = format!("WHERE s_w_id = {supplier} AND s_i_id = {item}");
            let [there, info, _] = row(
                teller,
                &format!(
                    "SELECT s_quantity, s_dist_{d:02}, s_data FROM tpcc_stock {stock} FOR UPDATE"
                ),
            )?;
            let there: i64 = there.parse().unwrap_or(0);
            let left = match there - i64::from(quantity) {
                left if left >= 10 => left,
                left => left + 91,
            };
            let is_remote = u32::from(supplier != w);
            run(
                teller,
                &format!(
                    "UPDATE tpcc_stock SET s_quantity = {left}, s_ytd = s_ytd + {quantity}, \
                     s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + {is_remote} \
                     {stock}"
                ),
            )?;
            values.push(format!(
                "({w},{d},{order},{},{item},{supplier},NULL,{quantity},\
                 {quantity}*{price},'{info}')",
                at + 1
            ));
        }
        let values = values.join(",");
        run(
            teller,
            &format!("INSERT INTO tpcc_order_line VALUES {values}"),
        )?;
        run(teller, "COMMIT")?;
        Ok(true)
    }

    /// Takes a payment of a customer of its own warehouse, or in 15 of 100 of another one.
    pub(super) fn payment(&self, teller: &mut Teller<'_>) -> Result<(), Fault> {
        let (w, d) = (self.warehouse, 1 + teller.below(DISTRICTS));
        let (c_w, c_d) = match teller.below(100) {
            0..85 => (w, d),
            _ => (self.other(teller), 1 + teller.below(DISTRICTS)),
        };
        let amount = money(teller.draw(|random| between(random, 100, 500_000)));
        let by_name = self.by_name(teller);
        let c = self.customer(teller);
        run(teller, "BEGIN")?;
        run(
            teller,
            &format!("UPDATE tpcc_warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w}"),
        )?;
        let [w_name, ..]: [String; 6] = row(
            teller,
            &format!(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM \
                 tpcc_warehouse WHERE w_id = {w}"
            ),
        )?;
        let district = format!("WHERE d_w_id = {w} AND d_id = {d}");
        run(
            teller,
            &format!("UPDATE tpcc_district SET d_ytd = d_ytd + {amount} {district}"),
        )?;
        let [d_name, ..]: [String; 6] = row(
            teller,
            &format!(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM \
                 tpcc_district {district}"
            ),
        )?;
        let c = find(
            teller,
            &format!("c_w_id = {c_w} AND c_d_id = {c_d}"),
            c,
            by_name,
        )?;
        let key = format!("WHERE c_w_id = {c_w} AND c_d_id = {c_d} AND c_id = {c}");
        let [credit, ..]: [String; 5] = row(
            teller,
            &format!(
                "SELECT c_credit, c_first, c_last, c_discount, c_balance FROM tpcc_customer {key} \
                 FOR UPDATE"
            ),
        )?;
        let data = match &*credit {
            "BC" => format!(
                ", c_data = LEFT(CONCAT('{c} {c_d} {c_w} {d} {w} {amount} ', c_data), {DATA_MAX})"
            ),
            _ => String::new(),
        };
        run(
            teller,
            &format!(
                "UPDATE tpcc_customer SET c_balance = c_balance - {amount}, c_ytd_payment = \
                 c_ytd_payment + {amount}, c_payment_cnt = c_payment_cnt + 1{data} {key}"
            ),
        )?;
        run(
            teller,
            &format!(
                "INSERT INTO tpcc_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, \
                 h_amount, h_data) VALUES ({c},{c_d},{c_w},{d},{w},NOW(),{amount},\
                 '{w_name}    {d_name}')"
            ),
        )?;
        run(teller, "COMMIT")
    }

    /// Looks at a customer's last order.
    pub(super) fn order_status(&self, teller: &mut Teller<'_>) -> Result<(), Fault> {
        let (w, d) = (self.warehouse, 1 + teller.below(DISTRICTS));
        let by_name = self.by_name(teller);
        let c = self.customer(teller);
        run(teller, "BEGIN")?;
        let c = find(
            teller,
            &format!("c_w_id = {w} AND c_d_id = {d}"),
            c,
            by_name,
        )?;
        let _: [String; 4] = row(
            teller,
            &format!(
                "SELECT c_balance, c_first, c_middle, c_last FROM tpcc_customer WHERE \
                 c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
            ),
        )?;
        let [order, ..]: [String; 3] = row(
            teller,
            &format!(
                "SELECT o_id, o_entry_d, o_carrier_id FROM tpcc_order WHERE o_w_id = {w} AND \
                 o_d_id = {d} AND o_c_id = {c} ORDER BY o_id DESC LIMIT 1"
            ),
        )?;
        run(
            teller,
            &format!(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM \
                 tpcc_order_line WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order}"
            ),
        )?;
        run(teller, "COMMIT")
    }

    /// Delivers the oldest new order of each district, in one transaction. All its reads lock: an
    /// order may be newer than the transaction's snapshot.
    pub(super) fn delivery(&self, teller: &mut Teller<'_>) -> Result<(), Fault> {
        let (w, carrier) = (self.warehouse, 1 + teller.below(10));
        run(teller, "BEGIN")?;
        for d in 1..=DISTRICTS {
            let oldest = teller.row::<1>(&format!(
                "SELECT no_o_id FROM tpcc_new_order WHERE no_w_id = {w} AND no_d_id = {d} \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            ))?;
            let Some([order]) = oldest else {
                continue;
            };
            run(
                teller,
                &format!(
                    "DELETE FROM tpcc_new_order WHERE no_w_id = {w} AND no_d_id = {d} AND \
                     no_o_id = {order}"
                ),
            )?;
            let key = format!("WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = {order}");
            let [c] = row(
                teller,
                &format!("SELECT o_c_id FROM tpcc_order {key} FOR UPDATE"),
            )?;
            run(
                teller,
                &format!("UPDATE tpcc_order SET o_carrier_id = {carrier} {key}"),
            )?;
            let key = format!("WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order}");
            run(
                teller,
                &format!("UPDATE tpcc_order_line SET ol_delivery_d = NOW() {key}"),
            )?;
            let [sum] = row(
                teller,
                &format!("SELECT SUM(ol_amount) FROM tpcc_order_line {key} FOR UPDATE"),
            )?;
            run(
                teller,
                &format!(
                    "UPDATE tpcc_customer SET c_balance = c_balance + {sum}, c_delivery_cnt = \
                     c_delivery_cnt + 1 WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
                ),
            )?;
        }
        run(teller, "COMMIT")
    }

    /// Counts items of the last 20 orders of its district of which few are left.
    pub(super) fn stock_level(&self, teller: &mut Teller<'_>) -> Result<(), Fault> {
        let (w, d) = (self.warehouse, self.district);
        let few = 10 + teller.below(11);
        run(teller, "BEGIN")?;
        let [next] = row(
            teller,
            &format!("SELECT d_next_o_id FROM tpcc_district WHERE d_w_id = {w} AND d_id = {d}"),
        )?;
        run(
            teller,
            &format!(
                "SELECT COUNT(DISTINCT s_i_id) FROM tpcc_order_line JOIN tpcc_stock ON s_w_id = \
                 ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id \
                 < {next} AND ol_o_id >= {next} - 20 AND s_quantity < {few}"
            ),
        )?;
        run(teller, "COMMIT")
    }

    fn customer(&self, teller: &mut Teller<'_>) -> u32 {
        teller.draw(|random| customer(random, self.size))
    }

    /// Last name by which a customer is looked for, in 60 of 100.
    fn by_name(&self, teller: &mut Teller<'_>) -> Option<String> {
        let is_named = teller.below(100) < 60;
        is_named.then(|| teller.draw(|random| name(random, self.size)))
    }

    /// A line whose items come from the own warehouse, but for 1 of 100.
    fn line(&self, teller: &mut Teller<'_>) -> Line {
        Line {
            item: teller.draw(|random| item(random, self.size)),
            supplier: match teller.below(100) {
                0 => self.other(teller),
                _ => self.warehouse,
            },
            quantity: 1 + teller.below(10),
        }
    }

    /// Another warehouse, if there is one.
    fn other(&self, teller: &mut Teller<'_>) -> u32 {
        match self.size.warehouses {
            1 => self.warehouse,
            all => (self.warehouse + teller.below(all - 1)) % all + 1,
        }
    }
}

/// The customer with this number; with this name, the one in the middle by first names.
fn find(
    teller: &mut Teller<'_>,
    district: &str,
    c: u32,
    name: Option<String>,
) -> Result<String, Fault> {
    let Some(name) = name else {
        return Ok(c.to_string());
    };
    let text = format!(
        "SELECT c_id FROM tpcc_customer WHERE {district} AND c_last = '{name}' ORDER BY c_first"
    );
    let mut ids = teller.rows::<1>(&text)?;
    let middle = ids.len().div_ceil(2).saturating_sub(1);
    match ids.get_mut(middle) {
        Some([id]) => Ok(std::mem::take(id)),
        None => Err(teller.lacks_row(&text)),
    }
}

fn run(teller: &mut Teller<'_>, text: &str) -> Result<(), Fault> {
    teller.run(text, |_| ()).map(drop)
}

/// A row that is there in all tables that are as they were filled.
fn row<const N: usize>(teller: &mut Teller<'_>, text: &str) -> Result<[String; N], Fault> {
    let found = teller.row(text)?;
    found.ok_or_else(|| teller.lacks_row(text))
}
