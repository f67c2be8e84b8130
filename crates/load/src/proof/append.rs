//! Lists to which clients append numbers of their own, and which they read.
//!
//! A read shows every append that came before it, and in which order: so most faults can be read
//! off a list (K. Kingsbury and P. Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
//! Observations", VLDB 2020; here of transactions with one operation, so that no cycle has to be
//! looked for). The list at the end is the order of its appends. Every other list must be a
//! beginning of it, with all that was acknowledged or read before it was asked for.
//!
//! Bounds: a list grows to [`ELEMENTS_MAX`] elements, then another takes its place; of a read only
//! the length is noted, but for lists that do not go with what others have seen, of which
//! [`STRANGE_MAX`] are kept.

use super::clients::{Stopped, Teller};
use super::finding::{Findings, Kind};
use super::history::{Act, Answer, Operation};
use super::{Subject, columns, key, number, told};
use crate::blocking::Client;
use load_core::errors::Fault;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lists that are written at a time.
const LISTS: u32 = 8;
/// Elements of a list; appends under way may add a few more.
const ELEMENTS_MAX: usize = 200;
/// Lists that do not go with the others and are kept.
const STRANGE_MAX: usize = 100;

/// State that its clients share.
#[derive(Debug)]
pub(super) struct Append {
    lists: Mutex<Lists>,
}

/// Lists as far as clients have seen them.
#[derive(Clone, Debug)]
struct Lists {
    /// Keys of the lists that are written.
    current: Vec<u32>,
    /// The longest list that was read, by key, and the place of that read in the history.
    longest: Vec<(Vec<u64>, usize)>,
    /// Lists of which neither this nor the longest one is a beginning of the other, by place.
    strange: Vec<(Vec<u64>, usize)>,
}

impl Default for Append {
    fn default() -> Append {
        let lists = LISTS as usize;
        Append {
            lists: Mutex::new(Lists {
                current: (0..LISTS).collect(),
                longest: vec![(Vec::new(), usize::MAX); lists],
                strange: Vec::new(),
            }),
        }
    }
}

impl Lists {
    /// Notes a list that was read; false if it does not go with what was read before.
    fn saw(&mut self, key: u32, list: Vec<u64>, place: usize) -> bool {
        let key = key as usize;
        let longest = &self.longest[key].0;
        if longest.starts_with(&list) {
            return true;
        }
        if !list.starts_with(longest) {
            if self.strange.len() < STRANGE_MAX {
                self.strange.push((list, place));
            }
            return false;
        }
        if list.len() >= ELEMENTS_MAX && self.longest[key].0.len() < ELEMENTS_MAX {
            let next = u32::try_from(self.longest.len()).unwrap_or(u32::MAX);
            let slot = self.current.iter_mut().find(|now| **now as usize == key);
            slot.into_iter().for_each(|slot| *slot = next);
            self.longest.push((Vec::new(), usize::MAX));
        }
        self.longest[key] = (list, place);
        true
    }
}

impl Append {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subject for Append {
    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[("proof_list", "id INT PRIMARY KEY, v LONGTEXT NOT NULL")]
    }

    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        let slot = teller.below(LISTS) as usize;
        let key = self.lists().current[slot];
        if teller.below(2) == 0 {
            let element = teller.next_number();
            let place = teller.begin(Act::Write, key, element)?;
            let text = format!(
                "INSERT INTO proof_list VALUES ({key},'{element},') \
                 ON DUPLICATE KEY UPDATE v = CONCAT(v, '{element},')"
            );
            return Ok(teller.write(place, &[&text])?);
        }
        let place = teller.begin(Act::Read, key, 0)?;
        let text = format!("SELECT v FROM proof_list WHERE id = {key}");
        let mut list = Vec::new();
        teller.run(&text, |row| list = elements(columns::<1>(row)[0]))?;
        let length = list.len() as u64;
        if self.lists().saw(key, list, place) {
            teller.saw(place, length);
        }
        Ok(())
    }

    fn check(
        &self,
        client: &mut Client,
        operations: &[Operation],
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let mut last: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        client.read(b"SELECT id, v FROM proof_list", |row| {
            let [id, list] = columns(row);
            last.insert(key(number(id)), elements(list));
        })?;
        let lists = self.lists().clone();
        check_lists(operations, &lists, &last, findings);
        Ok(())
    }
}

/// Elements of a list, which has a comma behind each.
fn elements(list: &[u8]) -> Vec<u64> {
    let elements = list.split(|byte| *byte == b',');
    let elements = elements.filter(|element| !element.is_empty());
    elements.map(|text| number(text).cast_unsigned()).collect()
}

fn check_lists(
    operations: &[Operation],
    lists: &Lists,
    last: &BTreeMap<u32, Vec<u64>>,
    findings: &mut Findings,
) {
    let mut by_key: BTreeMap<u32, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        by_key.entry(operation.key).or_default().push(operation);
    }
    for (key, operations) in &by_key {
        let order = last.get(key).map_or(&[][..], Vec::as_slice);
        List::of(operations, order).check(findings);
    }
    for key in last.keys().filter(|key| !by_key.contains_key(key)) {
        findings.add(Kind::Unasked, format!("nobody appended to list {key}"), &[]);
    }
    let longest = lists.longest.iter().filter(|(list, _)| !list.is_empty());
    for (list, place) in longest.chain(&lists.strange) {
        let Some(read) = operations.get(*place) else {
            continue;
        };
        let order = last.get(&read.key).map_or(&[][..], Vec::as_slice);
        let of_key = by_key.get(&read.key).map_or(&[][..], Vec::as_slice);
        List::of(of_key, order).check_read(read, list, findings);
    }
}

/// A list at the end, with the operations on it.
struct List<'a> {
    operations: &'a [&'a Operation],
    order: &'a [u64],
    appends: BTreeMap<u64, &'a Operation>,
    /// Elements with how many of the list stand up to the first of it.
    places: BTreeMap<u64, usize>,
}

impl<'a> List<'a> {
    fn of(operations: &'a [&'a Operation], order: &'a [u64]) -> List<'a> {
        let appends = operations.iter().filter(|one| one.is_write());
        let mut places = BTreeMap::new();
        for (at, element) in order.iter().enumerate() {
            places.entry(*element).or_insert(at + 1);
        }
        List {
            operations,
            order,
            appends: appends.map(|one| (one.value, *one)).collect(),
            places,
        }
    }

    fn check(&self, findings: &mut Findings) {
        for (at, element) in self.order.iter().enumerate() {
            let Some(&append) = self.appends.get(element) else {
                let element = told(element.cast_signed());
                findings.add(Kind::Unasked, format!("nobody appended {element}"), &[]);
                continue;
            };
            if self.places[element] != at + 1 {
                let text = format!("{element} is in its list twice");
                findings.add(Kind::Doubled, text, &[append]);
            } else if append.answer == Answer::Refused {
                let text = format!("the append of {element} was refused, and is in its list");
                findings.add(Kind::Refused, text, &[append]);
            }
        }
        for (element, append) in &self.appends {
            if append.is_done() && !self.places.contains_key(element) {
                let text =
                    format!("the append of {element} was acknowledged, and is not in its list");
                findings.add(Kind::Lost, text, &[append]);
            }
        }
        self.check_order(findings);
        self.check_lengths(findings);
    }

    /// Checks that elements stand in the order of appends that did not overlap.
    fn check_order(&self, findings: &mut Findings) {
        // The append that was sent last, of those that stand in front.
        let mut latest: Option<&Operation> = None;
        for (at, element) in self.order.iter().enumerate() {
            let Some(append) = self.appends.get(element).copied() else {
                continue;
            };
            if self.places[element] != at + 1 {
                continue;
            }
            match latest {
                Some(before) if append.to < before.from => {
                    let text = format!(
                        "{} stands before {}, which was acknowledged before it was sent",
                        before.value, append.value
                    );
                    findings.add(Kind::Reordered, text, &[append, before]);
                }
                Some(before) if append.from < before.from => {}
                _ => latest = Some(append),
            }
        }
    }

    /// Checks that reads show all that was acknowledged or read before they were sent.
    fn check_lengths(&self, findings: &mut Findings) {
        let length = |one: &Operation| match one.is_write() {
            true => self.places.get(&one.value).copied().unwrap_or(0),
            false => usize::try_from(one.value).unwrap_or(usize::MAX),
        };
        let done = self.operations.iter().filter(|one| one.is_done()).copied();
        let mut known: Vec<&Operation> = done.clone().collect();
        known.sort_by_key(|one| one.to);
        let mut known = known.into_iter().peekable();
        let mut reads: Vec<&Operation> = done.filter(|one| !one.is_write()).collect();
        reads.sort_by_key(|one| one.from);
        // The operation that shows the longest list to have been there.
        let mut longest: Option<&Operation> = None;
        for read in reads {
            while let Some(earlier) = known.next_if(|earlier| earlier.to < read.from) {
                if longest.is_none_or(|longest| length(longest) < length(earlier)) {
                    longest = Some(earlier);
                }
            }
            if let Some(earlier) = longest.filter(|earlier| length(earlier) > length(read)) {
                let (seen, there) = (length(read), length(earlier));
                let text = format!("a read saw {seen} elements of a list that had {there} before");
                findings.add(Kind::Stale, text, &[earlier, read]);
            }
        }
    }

    /// Checks that a list that was read is a beginning of the last one.
    fn check_read(&self, read: &Operation, list: &[u64], findings: &mut Findings) {
        let differs = |(at, element): (usize, &u64)| self.order.get(at) != Some(element);
        let Some(at) = list.iter().enumerate().position(differs) else {
            return;
        };
        let element = list[at];
        let mut shown = vec![read];
        shown.extend(self.appends.get(&element));
        let there = self.order.get(at).and_then(|there| self.appends.get(there));
        let (kind, text) = match self.places.get(&element) {
            _ if list[..at].contains(&element) => (Kind::Doubled, "twice".to_owned()),
            None if !self.appends.contains_key(&element) => (
                Kind::Unasked,
                "which nobody appended to its list".to_owned(),
            ),
            None => (Kind::Lost, "which is not in its list now".to_owned()),
            Some(_) => {
                shown.extend(there);
                let text = format!("at place {}, and it is not there now", at + 1);
                (Kind::Reordered, text)
            }
        };
        findings.add(kind, format!("a read saw {element}, {text}"), &shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::history::tests::{asked, read, refused, wrote};

    /// Kinds of the findings, where these lists were read at their places, and the last one at the
    /// end.
    fn kinds(operations: &[Operation], seen: &[(usize, &[u64])], last: &[u64]) -> Vec<Kind> {
        let Append { lists } = Append::default();
        let mut lists = lists.into_inner().unwrap();
        let mut operations = operations.to_vec();
        for (place, list) in seen {
            operations[*place].value = list.len() as u64;
            if !lists.saw(1, list.to_vec(), *place) {
                operations[*place].answer = Answer::Missing;
            }
        }
        let mut findings = Findings::new(&operations);
        let last = [(1, last.to_vec())].into();
        check_lists(&operations, &lists, &last, &mut findings);
        let found = findings.into_vec();
        assert!(found.iter().all(|one| one.history.len() <= 3), "{found:?}");
        found.iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_list_has_a_comma_behind_each_element() {
        assert_eq!(elements(b""), [0; 0]);
        assert_eq!(elements(b"5,17,"), [5, 17]);
    }

    #[test]
    fn lists_that_grow_in_order_are_right() {
        let history = [
            wrote(1, 5, (10, 30)),
            wrote(2, 6, (20, 40)),
            asked(3, 7, 25),
            refused(3, 8, (50, 60)),
            read(4, 0, (15, 35)),
            read(4, 0, (45, 48)),
        ];
        let seen: [(usize, &[u64]); 2] = [(4, &[6]), (5, &[6, 5])];
        assert_eq!(kinds(&history, &seen, &[6, 5]), []);
        assert_eq!(kinds(&history, &seen, &[6, 5, 7]), []);
        assert_eq!(kinds(&[], &[], &[]), [Kind::Unasked]);
    }

    #[test]
    fn each_fault_has_its_name() {
        use Kind::{Doubled, Lost, Refused, Reordered, Stale, Unasked};
        let two = [wrote(1, 5, (10, 20)), wrote(2, 6, (30, 40))];
        assert_eq!(kinds(&two, &[], &[5]), [Lost]);
        assert_eq!(kinds(&two, &[], &[5, 6, 5]), [Doubled]);
        assert_eq!(kinds(&two, &[], &[6, 5]), [Reordered]);
        assert_eq!(kinds(&two, &[], &[5, 6, 9]), [Unasked]);
        assert_eq!(kinds(&[refused(1, 5, (10, 20))], &[], &[5]), [Refused]);
        assert_eq!(kinds(&[asked(1, 5, 10)], &[], &[5, 5]), [Doubled]);
        let with = |span| [two[0], two[1], read(3, 0, span)];
        let stale = with((50, 60));
        assert_eq!(kinds(&stale, &[(2, &[5])], &[5, 6]), [Stale]);
        assert_eq!(kinds(&with((31, 60)), &[(2, &[5])], &[5, 6]), []);
        assert_eq!(kinds(&stale, &[(2, &[6])], &[5, 6]), [Stale, Reordered]);
        assert_eq!(kinds(&stale, &[(2, &[5, 6, 5])], &[5, 6]), [Doubled]);
        let four = [two[0], two[1], read(3, 0, (35, 36)), read(4, 0, (37, 38))];
        let back: [(usize, &[u64]); 2] = [(2, &[5, 6]), (3, &[5])];
        assert_eq!(kinds(&four, &back, &[5, 6]), [Stale]);
        let gone = [asked(1, 5, 10), two[1], read(3, 0, (50, 60))];
        assert_eq!(kinds(&gone, &[(2, &[5, 6])], &[6]), [Lost]);
        assert_eq!(kinds(&stale, &[(2, &[5, 6, 9])], &[5, 6]), [Unasked]);
        let apart: [(usize, &[u64]); 2] = [(2, &[5, 6]), (3, &[6])];
        assert_eq!(kinds(&four, &apart, &[5, 6]), [Reordered]);
    }

    #[test]
    fn a_full_list_is_followed_by_another_and_strange_ones_are_bounded() {
        let Append { lists } = Append::default();
        let mut lists = lists.into_inner().unwrap();
        let full: Vec<u64> = (1..=ELEMENTS_MAX as u64).collect();
        assert!(lists.saw(3, full[1..].to_vec(), 0));
        assert_eq!(lists.current[3], 3);
        for _ in 0..=STRANGE_MAX {
            assert!(!lists.saw(3, full.clone(), 1));
        }
        assert_eq!(lists.strange.len(), STRANGE_MAX);
        assert!(lists.saw(4, full.clone(), 2) && lists.saw(4, full.clone(), 3));
        assert_eq!((lists.current[4], lists.longest.len()), (LISTS, 9));
    }
}
