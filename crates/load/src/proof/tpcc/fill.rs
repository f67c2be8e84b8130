//! The tables of TPC-C and their rows at first: clauses 1.3 and 4.3.3.
//!
//! Warehouses are filled one by one, up to [`THREADS_MAX`] at once, each over a connection of its
//! own, by statements of up to half a mebibyte.

use super::super::connect;
use super::Size;
use super::random::{DISTRICTS, between, digits, letters, money, name_of, shuffled};
use crate::blocking::Client;
use load_core::errors::Fault;
use load_core::plan::Plan;
use load_core::random::Random;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// Connections that fill at once.
const THREADS_MAX: u32 = 4;
/// Bytes after which a statement gets no further row.
const STATEMENT_BYTES: usize = 512 * 1024;

/// Columns of an address, in `warehouse` and `district`.
macro_rules! address {
    ($short:literal) => {
        concat!(
            $short,
            "_name VARCHAR(10), ",
            $short,
            "_street_1 VARCHAR(20), ",
            $short,
            "_street_2 VARCHAR(20), ",
            $short,
            "_city VARCHAR(20), ",
            $short,
            "_state CHAR(2), ",
            $short,
            "_zip CHAR(9), ",
            $short,
            "_tax DECIMAL(4,4), ",
            $short,
            "_ytd DECIMAL(12,2)"
        )
    };
}

/// Tables with their columns.
pub(super) const TABLES: &[(&str, &str)] = &[
    (
        "tpcc_warehouse",
        concat!("w_id INT PRIMARY KEY, ", address!("w")),
    ),
    (
        "tpcc_district",
        concat!(
            "d_w_id INT, d_id INT, ",
            address!("d"),
            ", d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)"
        ),
    ),
    (
        "tpcc_customer",
        "c_w_id INT, c_d_id INT, c_id INT, c_first VARCHAR(16), c_middle CHAR(2), \
         c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), \
         c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), \
         c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), \
         c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), \
         PRIMARY KEY (c_w_id, c_d_id, c_id), KEY (c_w_id, c_d_id, c_last, c_first)",
    ),
    (
        "tpcc_history",
        "h_id BIGINT AUTO_INCREMENT PRIMARY KEY, h_c_id INT, h_c_d_id INT, h_c_w_id INT, \
         h_d_id INT, h_w_id INT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24)",
    ),
    (
        "tpcc_new_order",
        "no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    ),
    (
        "tpcc_order",
        "o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d DATETIME, o_carrier_id INT, \
         o_ol_cnt INT, o_all_local INT, PRIMARY KEY (o_w_id, o_d_id, o_id), \
         KEY (o_w_id, o_d_id, o_c_id, o_id)",
    ),
    (
        "tpcc_order_line",
        "ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT, \
         ol_delivery_d DATETIME, ol_quantity INT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
    (
        "tpcc_item",
        "i_id INT PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), \
         i_data VARCHAR(50)",
    ),
    (
        "tpcc_stock",
        "s_w_id INT, s_i_id INT, s_quantity INT, s_dist_01 CHAR(24), s_dist_02 CHAR(24), \
         s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), \
         s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24), \
         s_ytd DECIMAL(8,0), s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), \
         PRIMARY KEY (s_w_id, s_i_id)",
    ),
];

/// Fills the empty tables.
///
/// # Errors
/// A sentence in the server's words, or that it was stopped.
pub(in crate::proof) fn fill(size: Size, plan: &Plan, stop: &AtomicBool) -> Result<(), String> {
    let next = AtomicU32::new(0);
    let has_failed = AtomicBool::new(false);
    let is_ended = || has_failed.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
    let work = || -> Result<(), Fault> {
        let mut client = connect(plan)?;
        loop {
            // The items come first.
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > size.warehouses || is_ended() {
                return Ok(());
            }
            let mut filler = Filler {
                client: &mut client,
                random: Random::new(plan.seed, number.into()),
                size,
                is_ended: &is_ended,
            };
            match number {
                0 => filler.items()?,
                number => filler.warehouse(number)?,
            }
            aside!("load: filled {number} of {} warehouses", size.warehouses);
        }
    };
    let failure = thread::scope(|scope| {
        let threads = THREADS_MAX.min(size.warehouses + 1);
        let run = || work().inspect_err(|_| has_failed.store(true, Ordering::Relaxed));
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let mut ended = threads.into_iter().filter_map(|thread| thread.join().ok());
        ended.find_map(Result::err)
    });
    match failure {
        Some(fault) => Err(fault.words()),
        None if stop.load(Ordering::Relaxed) => {
            Err("stopped before all was filled; run cleanup before prepare".to_owned())
        }
        None => Ok(()),
    }
}

/// A connection that fills a part of the tables.
struct Filler<'a> {
    client: &'a mut Client,
    random: Random,
    size: Size,
    is_ended: &'a dyn Fn() -> bool,
}

/// Rows of a table that are yet to be inserted.
struct Rows {
    table: &'static str,
    text: String,
}

impl Rows {
    fn of(table: &'static str) -> Rows {
        let text = String::new();
        Rows { table, text }
    }

    /// Adds a row, and inserts all if they are many.
    fn add(&mut self, client: &mut Client, row: std::fmt::Arguments<'_>) -> Result<(), Fault> {
        let is_first = self.text.is_empty();
        let columns = if self.table == "tpcc_history" {
            " (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
        } else {
            ""
        };
        // Writing to a string does not fail.
        let _ = match is_first {
            true => write!(
                self.text,
                "INSERT INTO {}{columns} VALUES ({row})",
                self.table
            ),
            false => write!(self.text, ",({row})"),
        };
        match self.text.len() {
            0..STATEMENT_BYTES => Ok(()),
            _ => self.insert(client),
        }
    }

    fn insert(&mut self, client: &mut Client) -> Result<(), Fault> {
        let text = std::mem::take(&mut self.text);
        match text.is_empty() {
            true => Ok(()),
            false => client.query(text.as_bytes()).map(drop),
        }
    }
}

impl Filler<'_> {
    fn items(&mut self) -> Result<(), Fault> {
        let mut items = Rows::of("tpcc_item");
        for id in 1..=self.size.items {
            let (image, data) = (between(&mut self.random, 1, 10_000), self.data());
            let (name, price) = (self.letters(14, 24), self.cents(100, 10_000));
            items.add(
                self.client,
                format_args!("{id},{image},'{name}',{price},'{data}'"),
            )?;
        }
        items.insert(self.client)
    }

    /// A warehouse with its stock, and its districts with all that is theirs.
    fn warehouse(&mut self, w: u32) -> Result<(), Fault> {
        let (address, ytd) = (self.address(), 10 * self.size.customers * DISTRICTS);
        let mut warehouses = Rows::of("tpcc_warehouse");
        warehouses.add(self.client, format_args!("{w},{address},{ytd}"))?;
        warehouses.insert(self.client)?;
        let mut stock = Rows::of("tpcc_stock");
        for id in 1..=self.size.items {
            let (quantity, data) = (between(&mut self.random, 10, 100), self.data());
            let districts = (0..DISTRICTS).map(|_| format!("'{}'", self.letters(24, 24)));
            let districts: Vec<String> = districts.collect();
            let districts = districts.join(",");
            stock.add(
                self.client,
                format_args!("{w},{id},{quantity},{districts},0,0,0,'{data}'"),
            )?;
        }
        stock.insert(self.client)?;
        for d in 1..=DISTRICTS {
            if (self.is_ended)() {
                return Ok(());
            }
            self.district(w, d)?;
        }
        Ok(())
    }

    fn district(&mut self, w: u32, d: u32) -> Result<(), Fault> {
        let all = self.size.customers;
        let (address, ytd) = (self.address(), 10 * all);
        let mut districts = Rows::of("tpcc_district");
        districts.add(
            self.client,
            format_args!("{w},{d},{address},{ytd},{}", all + 1),
        )?;
        districts.insert(self.client)?;
        self.customers(w, d)?;
        self.orders(w, d)
    }

    fn customers(&mut self, w: u32, d: u32) -> Result<(), Fault> {
        let (mut customers, mut history) = (Rows::of("tpcc_customer"), Rows::of("tpcc_history"));
        for id in 1..=self.size.customers {
            let last = name_of(&mut self.random, id);
            let (first, place) = (self.letters(8, 16), self.place());
            let phone = digits(&mut self.random, 16);
            let credit = if self.random.below(10) == 0 {
                "BC"
            } else {
                "GC"
            };
            let discount = between(&mut self.random, 0, 5_000);
            let data = self.letters(300, 500);
            customers.add(
                self.client,
                format_args!(
                    "{w},{d},{id},'{first}','OE','{last}',{place},'{phone}',NOW(),'{credit}',\
                     50000,0.{discount:04},-10,10,1,0,'{data}'"
                ),
            )?;
            let data = self.letters(12, 24);
            history.add(
                self.client,
                format_args!("{id},{d},{w},{d},{w},NOW(),10,'{data}'"),
            )?;
        }
        customers.insert(self.client)?;
        history.insert(self.client)
    }

    /// Orders of all customers, of which the last three tenths are not delivered.
    fn orders(&mut self, w: u32, d: u32) -> Result<(), Fault> {
        let (mut orders, mut new) = (Rows::of("tpcc_order"), Rows::of("tpcc_new_order"));
        let mut lines = Rows::of("tpcc_order_line");
        let all = self.size.customers;
        let customers = shuffled(&mut self.random, all);
        for (id, c) in (1..=all).zip(customers) {
            let is_new = id > all / 10 * 7;
            let count = between(&mut self.random, 5, 15);
            let (carrier, delivered) = match is_new {
                true => ("NULL".to_owned(), "NULL"),
                false => (between(&mut self.random, 1, 10).to_string(), "NOW()"),
            };
            orders.add(
                self.client,
                format_args!("{w},{d},{id},{c},NOW(),{carrier},{count},1"),
            )?;
            if is_new {
                new.add(self.client, format_args!("{w},{d},{id}"))?;
            }
            for number in 1..=count {
                let i = between(&mut self.random, 1, self.size.items);
                let info = self.letters(24, 24);
                let amount = match is_new {
                    true => self.cents(1, 999_999),
                    false => money(0),
                };
                lines.add(
                    self.client,
                    format_args!("{w},{d},{id},{number},{i},{w},{delivered},5,{amount},'{info}'"),
                )?;
            }
        }
        orders.insert(self.client)?;
        new.insert(self.client)?;
        lines.insert(self.client)
    }

    fn letters(&mut self, low: u32, high: u32) -> String {
        letters(&mut self.random, low, high)
    }

    fn cents(&mut self, low: u32, high: u32) -> String {
        money(between(&mut self.random, low, high))
    }

    /// Data of an item, in one of ten with the word that the specification puts there.
    fn data(&mut self) -> String {
        let mut data = self.letters(26, 50);
        if self.random.below(10) == 0 {
            let last = data.len() - 8;
            let at = self.random.below(u32::try_from(last).unwrap_or(0)) as usize;
            data.replace_range(at..at + 8, "ORIGINAL");
        }
        data
    }

    /// Streets, city, state and zip code.
    fn place(&mut self) -> String {
        let [one, two, city] = [(); 3].map(|()| self.letters(10, 20));
        let state = self.letters(2, 2);
        let zip = digits(&mut self.random, 4);
        format!("'{one}','{two}','{city}','{state}','{zip}11111'")
    }

    /// Name, place and tax of a warehouse or district.
    fn address(&mut self) -> String {
        let (name, place) = (self.letters(6, 10), self.place());
        let tax = between(&mut self.random, 0, 2_000);
        format!("'{name}',{place},0.{tax:04}")
    }
}
