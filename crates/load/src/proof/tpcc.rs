//! TPC-C: the order entry of a wholesale supplier, after its specification (revision 5.11).
//!
//! Terminals, each a client, run five transactions in the mix of clause 5.2.3, which a deck of
//! cards deals to each (5.2.4.2), with the keying and think times of clause 5.2.5 or none. A
//! transaction that the server refused for a deadlock runs again with the same input. The numbers
//! of warehouses, customers and items are those of the tables. A result here is none by the
//! specification, which wants more than a program can give.

mod conditions;
mod fill;
mod random;
mod transactions;

use super::clients::{Stopped, Teller};
use super::{Subject, connect, numbers};
use crate::blocking::advice;
use clap::Args;
use load_core::durations::exponential;
use load_core::errors::Fault;
use load_core::plan::Plan;
use random::DISTRICTS;
use reactor::Time;
use std::time::Duration;

pub(super) use conditions::check;
pub(super) use fill::fill;

/// Warehouses, at most.
const WAREHOUSES_MAX: u32 = 100_000;
/// Divisor of the rows of a warehouse, at most: 30 customers of a district are left.
const SCALE_DOWN_MAX: u32 = 100;
/// One whole warehouse.
pub(super) const FULL: Size = Size {
    warehouses: 1,
    customers: 3_000,
    items: 100_000,
};
/// Cards of a terminal's deck.
const CARDS: usize = 23;
/// Longest think time, in means.
const THINK_MAX: f64 = 10.0;

/// Options of this workload alone.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct TpccArgs {
    /// tpcc: warehouses that prepare fills (default 1), and run and check then expect, 1 to 100,000
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WAREHOUSES_MAX)))]
    warehouses: Option<u32>,

    /// tpcc: fill only a part of each warehouse, for a trial: customers, orders and items divided
    /// by this, 1 to 100
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_DOWN_MAX)))]
    scale_down: Option<u32>,

    /// tpcc: with the keying and think times of the specification
    #[arg(long)]
    paced: bool,
}

impl TpccArgs {
    /// Size of tables by what is said, and else as these.
    pub(super) fn size_or(self, other: Size) -> Size {
        let part = |whole: u32, other| self.scale_down.map_or(other, |by| whole / by);
        Size {
            warehouses: self.warehouses.unwrap_or(other.warehouses),
            customers: part(FULL.customers, other.customers),
            items: part(FULL.items, other.items),
        }
    }
}

/// Numbers of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) warehouses: u32,
    /// Customers of a district; as many orders are there at first.
    pub(super) customers: u32,
    pub(super) items: u32,
}

/// Transaction of a terminal, as reports number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
    /// New order with an unused item, which ends with ROLLBACK.
    RolledBack,
}

impl Kind {
    /// Kind on a card of the deck: 10, 10 and three times 1.
    fn of(card: usize) -> Kind {
        match card {
            0..10 => Kind::NewOrder,
            10..20 => Kind::Payment,
            20 => Kind::OrderStatus,
            21 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }

    /// Keying time, and the mean of the think time, in seconds.
    fn times(self) -> (u64, f64) {
        match self {
            Kind::NewOrder | Kind::RolledBack => (18, 12.0),
            Kind::Payment => (3, 12.0),
            Kind::OrderStatus => (2, 10.0),
            Kind::Delivery | Kind::StockLevel => (2, 5.0),
        }
    }
}

/// The workload; its clients share nothing.
#[derive(Debug)]
pub(super) struct Tpcc {
    pub(super) size: Size,
    pub(super) is_paced: bool,
}

impl Tpcc {
    /// The workload on the tables that are there.
    ///
    /// # Errors
    /// A sentence in the server's words.
    pub(super) fn open(plan: &Plan, asked: TpccArgs) -> Result<Tpcc, String> {
        let mut counts = [0; 3];
        let text = "SELECT (SELECT COUNT(*) FROM tpcc_warehouse), (SELECT COUNT(*) FROM \
                    tpcc_customer WHERE c_w_id = 1 AND c_d_id = 1), (SELECT COUNT(*) FROM \
                    tpcc_item)";
        connect(plan)
            .and_then(|mut client| client.read(text.as_bytes(), |row| counts = numbers(row)))
            .map_err(|fault| fault.words() + advice(&fault))?;
        let [warehouses, customers, items] = counts.map(|count| u32::try_from(count).unwrap_or(0));
        if [warehouses, customers, items].contains(&0) {
            return Err("the tables are empty; run cleanup, then prepare".to_owned());
        }
        let size = Size {
            warehouses,
            customers,
            items,
        };
        let said = asked.size_or(size);
        if said != size {
            return Err(format!(
                "the tables have {warehouses} warehouses and {items} items, not {} and {}; run \
                 cleanup and prepare, or leave --warehouses and --scale-down out",
                said.warehouses, said.items
            ));
        }
        Ok(Tpcc {
            size,
            is_paced: asked.paced,
        })
    }

    fn run(&self, kind: Kind, teller: &mut Teller<'_>) -> Result<Kind, Fault> {
        let number = teller.number();
        let terminal = transactions::Terminal {
            size: self.size,
            warehouse: 1 + number % self.size.warehouses,
            district: 1 + number / self.size.warehouses % DISTRICTS,
        };
        match kind {
            Kind::NewOrder | Kind::RolledBack => {
                let is_done = terminal.new_order(teller)?;
                return Ok(if is_done { kind } else { Kind::RolledBack });
            }
            Kind::Payment => terminal.payment(teller)?,
            Kind::OrderStatus => terminal.order_status(teller)?,
            Kind::Delivery => terminal.delivery(teller)?,
            Kind::StockLevel => terminal.stock_level(teller)?,
        }
        Ok(kind)
    }
}

impl Subject for Tpcc {
    fn proves(&self) -> bool {
        false
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        fill::TABLES
    }

    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        let kind = Kind::of(teller.deal(CARDS));
        let (keying, think) = kind.times();
        if self.is_paced {
            let means = teller.draw(exponential).min(THINK_MAX);
            let think = Duration::from_secs_f64(think * means);
            if !teller.rest(think + Duration::from_secs(keying)) {
                return Err(Stopped::Ended);
            }
        }
        let (input, from) = (teller.input(), Time::now());
        let done = loop {
            match self.run(kind, teller) {
                Err(fault) if teller.may_repeat(&fault) => {
                    teller.run("ROLLBACK", |_| ())?;
                    teller.repeat(input);
                }
                ended => break ended?,
            }
        };
        teller.finished(done as u16, Time::now().since(from));
        Ok(())
    }
}
