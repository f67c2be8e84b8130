//! A bank: transfers between accounts, each with a line in a ledger, in one transaction.
//!
//! At the end the ledger must have each acknowledged transfer once, no refused one, and each
//! without an answer at most once; and each account must have what its lines say. While clients run
//! they ask for the sum of all accounts, which never changes, and for a transfer that was
//! acknowledged, to whomever it was.

use super::clients::{Stopped, Teller};
use super::finding::{Findings, Kind};
use super::history::{Act, Answer, Operation};
use super::{NOTHING, Subject, insert_rows, key, numbers, told};
use crate::blocking::Client;
use load_core::errors::Fault;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Accounts, and what each has at first.
const ACCOUNTS: u32 = 100;
const START: i64 = 1_000;
/// Reads that saw something odd and are kept.
const ODD_MAX: usize = 1_000;

/// State that its clients share.
#[derive(Debug, Default)]
pub(super) struct Bank {
    /// The transfer that was acknowledged last; 0 is none.
    last: AtomicU64,
    odd: Mutex<Vec<Odd>>,
}

/// A read that saw something odd: its place in the history, the sum of all accounts, and how many
/// lines the transfer had.
#[derive(Clone, Copy, Debug)]
struct Odd {
    place: usize,
    sum: i64,
    lines: u64,
}

/// State of the tables when all clients had ended.
#[derive(Debug, Default)]
struct Books {
    /// Number, from, to, and how much.
    ledger: Vec<(u64, u32, u32, i64)>,
    accounts: BTreeMap<u32, i64>,
}

const TOTAL: i64 = START * ACCOUNTS as i64;

impl Subject for Bank {
    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("proof_account", "id INT PRIMARY KEY, v BIGINT NOT NULL"),
            (
                "proof_transfer",
                "line BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL, a INT NOT NULL, \
                 b INT NOT NULL, v BIGINT NOT NULL, KEY (id)",
            ),
        ]
    }

    fn fill(&self) -> Vec<String> {
        vec![insert_rows("proof_account", ACCOUNTS, START)]
    }

    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        match teller.below(4) {
            0 => self.look(teller),
            _ => self.transfer(teller),
        }
    }

    fn check(
        &self,
        client: &mut Client,
        operations: &[Operation],
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let mut books = Books::default();
        client.query(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        client.query(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        client.read(b"SELECT id, a, b, v FROM proof_transfer", |row| {
            let [id, from, to, amount] = numbers(row);
            (books.ledger).push((id.cast_unsigned(), key(from), key(to), amount));
        })?;
        client.read(b"SELECT id, v FROM proof_account", |row| {
            let [id, balance] = numbers(row);
            books.accounts.insert(key(id), balance);
        })?;
        client.query(b"COMMIT")?;
        let odd = self.odd().clone();
        check_books(operations, &books, findings);
        check_reads(operations, &odd, findings);
        Ok(())
    }
}

impl Bank {
    fn odd(&self) -> MutexGuard<'_, Vec<Odd>> {
        self.odd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, read: Odd) {
        let mut odd = self.odd();
        if odd.len() < ODD_MAX {
            odd.push(read);
        }
    }

    fn transfer(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        let from = teller.below(ACCOUNTS);
        let to = (from + 1 + teller.below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = 1 + teller.below(9);
        let id = teller.next_number();
        let place = teller.begin(Act::Write, from, id)?;
        teller.write(
            place,
            &[
                "BEGIN",
                &format!("UPDATE proof_account SET v = v - {amount} WHERE id = {from}"),
                &format!("UPDATE proof_account SET v = v + {amount} WHERE id = {to}"),
                &format!(
                    "INSERT INTO proof_transfer (id, a, b, v) VALUES ({id},{from},{to},{amount})"
                ),
                "COMMIT",
            ],
        )?;
        self.last.store(id, Ordering::SeqCst);
        Ok(())
    }

    fn look(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        let wanted = self.last.load(Ordering::SeqCst);
        let place = teller.begin(Act::Read, 0, wanted)?;
        let mut seen = [NOTHING; 2];
        let text = format!(
            "SELECT (SELECT SUM(v) FROM proof_account), \
             (SELECT COUNT(*) FROM proof_transfer WHERE id = {wanted})"
        );
        teller.run(&text, |row| seen = numbers(row))?;
        let [sum, lines] = seen;
        let lines = lines.unsigned_abs();
        teller.saw(place, wanted);
        if sum != TOTAL || lines != u64::from(wanted > 0) {
            self.note(Odd { place, sum, lines });
        }
        Ok(())
    }
}

fn transfers(operations: &[Operation]) -> BTreeMap<u64, &Operation> {
    let writes = operations.iter().filter(|one| one.is_write());
    writes.map(|one| (one.value, one)).collect()
}

/// Holds the ledger against what clients were told, and the accounts against the ledger.
fn check_books(operations: &[Operation], books: &Books, findings: &mut Findings) {
    let transfers = transfers(operations);
    let mut lines: BTreeMap<u64, u64> = BTreeMap::new();
    let mut balances: BTreeMap<u32, i64> = (0..ACCOUNTS).map(|id| (id, START)).collect();
    for &(id, from, to, amount) in &books.ledger {
        *lines.entry(id).or_default() += 1;
        for (account, change) in [(from, amount.wrapping_neg()), (to, amount)] {
            let balance = balances.entry(account).or_default();
            *balance = balance.wrapping_add(change);
        }
    }
    for (&id, transfer) in &transfers {
        let count = lines.get(&id).copied().unwrap_or_default();
        let (kind, text) = match (transfer.answer, count) {
            (Answer::Done, 0) => (Kind::Lost, "was acknowledged, and is not in the ledger"),
            (Answer::Refused, 1..) => (Kind::Refused, "was refused, and is in the ledger"),
            (_, 2..) => (Kind::Doubled, "is in the ledger more than once"),
            _ => continue,
        };
        findings.add(kind, format!("transfer {id} {text}"), &[transfer]);
    }
    for id in lines.keys().filter(|id| !transfers.contains_key(id)) {
        let id = told(id.cast_signed());
        findings.add(Kind::Unasked, format!("nobody made transfer {id}"), &[]);
    }
    for (id, wanted) in balances {
        let balance = books.accounts.get(&id).copied().unwrap_or(NOTHING);
        if balance != wanted {
            let text = format!(
                "account {id} has {}, and {} by its lines in the ledger",
                told(balance),
                told(wanted)
            );
            findings.add(Kind::Torn, text, &[]);
        }
    }
}

/// Judges the reads that saw something odd.
fn check_reads(operations: &[Operation], odd: &[Odd], findings: &mut Findings) {
    let transfers = transfers(operations);
    for &Odd { place, sum, lines } in odd {
        let Some(read) = operations.get(place) else {
            continue;
        };
        let id = read.value;
        let mut shown = vec![read];
        shown.extend(transfers.get(&id));
        if sum != TOTAL {
            let sum = told(sum);
            let text = format!("a read saw {sum} in all accounts together, where {TOTAL} are");
            findings.add(Kind::Torn, text, &[read]);
        }
        if lines == 0 && id > 0 {
            let text = format!("a read did not see transfer {id}, acknowledged before it was sent");
            findings.add(Kind::Stale, text, &shown);
        }
        if lines > 1 {
            let text = format!("a read saw transfer {id} more than once");
            findings.add(Kind::Doubled, text, &shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::history::tests::{asked, read, refused, wrote};

    fn kinds(operations: &[Operation], ledger: &[(u64, u32, u32, i64)], moved: i64) -> Vec<Kind> {
        let mut accounts: BTreeMap<u32, i64> = (0..ACCOUNTS).map(|id| (id, START)).collect();
        accounts.insert(1, START - moved);
        accounts.insert(2, START + moved);
        let books = Books {
            ledger: ledger.to_vec(),
            accounts,
        };
        let mut findings = Findings::new(operations);
        check_books(operations, &books, &mut findings);
        findings
            .into_vec()
            .iter()
            .map(|finding| finding.kind)
            .collect()
    }

    #[test]
    fn a_bank_in_order_has_no_finding() {
        let all = [
            wrote(1, 7, (1, 2)),
            asked(2, 8, 3),
            asked(2, 9, 4),
            refused(3, 10, (5, 6)),
        ];
        assert_eq!(kinds(&all, &[(7, 1, 2, 10), (9, 2, 1, 3)], 7), []);
    }

    #[test]
    fn each_fault_of_the_books_has_its_name() {
        let one = [wrote(1, 7, (1, 2))];
        let line = (7, 1, 2, 10);
        assert_eq!(kinds(&one, &[], 0), [Kind::Lost]);
        assert_eq!(kinds(&one, &[line, line], 20), [Kind::Doubled]);
        assert_eq!(kinds(&[asked(1, 7, 1)], &[line, line], 20), [Kind::Doubled]);
        assert_eq!(kinds(&[], &[line], 10), [Kind::Unasked]);
        assert_eq!(
            kinds(&[refused(1, 7, (1, 2))], &[line], 10),
            [Kind::Refused]
        );
        assert_eq!(kinds(&one, &[line], 20), [Kind::Torn]);
        assert_eq!(kinds(&one, &[line], 0), [Kind::Torn]);
        let strange = (7, u32::MAX, 2, NOTHING);
        assert_eq!(kinds(&one, &[strange], 0), [Kind::Torn]);
    }

    #[test]
    fn so_many_odd_reads_are_kept_at_most() {
        let bank = Bank::default();
        for place in 0..=ODD_MAX {
            bank.note(Odd {
                place,
                sum: 0,
                lines: 0,
            });
        }
        let odd = bank.odd();
        assert_eq!((odd.len(), odd[ODD_MAX - 1].place), (ODD_MAX, ODD_MAX - 1));
    }

    #[test]
    fn each_fault_of_a_read_has_its_name() {
        let all = [wrote(1, 7, (1, 2)), read(2, 7, (3, 4))];
        for (sum, lines, kind) in [
            (TOTAL - 1, 1, Kind::Torn),
            (TOTAL, 0, Kind::Stale),
            (TOTAL, 2, Kind::Doubled),
        ] {
            let mut findings = Findings::new(&all);
            check_reads(
                &all,
                &[Odd {
                    place: 1,
                    sum,
                    lines,
                }],
                &mut findings,
            );
            let found = findings.into_vec();
            assert_eq!((found.len(), found[0].kind), (1, kind));
            let shown = if kind == Kind::Torn { 1 } else { 2 };
            assert_eq!(found[0].history.len(), shown);
        }
    }
}
