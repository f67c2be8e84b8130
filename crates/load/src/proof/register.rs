//! Registers: is there one order of all reads and writes that explains what each client was told?
//!
//! That is linearizability (M. Herlihy and J. Wing, 1990), which may be asked of each register by
//! itself. Every write has a number of its own, so each read names its write, and the question is
//! decided in n log n steps: P. Gibbons and E. Korach, "Testing Shared Memories", SIAM Journal on
//! Computing 26(4), 1997. The operations on one number are a cluster; its zone lies between the
//! first end and the last start of them. If the end comes first, the register had the number for
//! all of the zone (forward), else at some moment of it (backward). There is an order if and only
//! if no two forward zones overlap, no backward zone lies within a forward one, and no read ends
//! before its write begins.
//!
//! A write without an answer counts if its number was read, and then may have happened at any time
//! after it was sent.

use super::clients::{Stopped, Teller};
use super::finding::{Findings, Kind};
use super::history::{Act, Answer, Operation};
use super::{NOTHING, Subject, insert_rows, key, numbers, told};
use crate::blocking::Client;
use load_core::errors::Fault;
use reactor::Time;
use std::collections::BTreeMap;

/// Registers, each a row.
const REGISTERS: u32 = 8;

/// The workload; its clients share nothing.
#[derive(Debug, Default)]
pub(super) struct Register;

impl Subject for Register {
    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[("proof_register", "id INT PRIMARY KEY, v BIGINT NOT NULL")]
    }

    fn fill(&self) -> Vec<String> {
        vec![insert_rows("proof_register", REGISTERS, 0)]
    }

    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped> {
        let key = teller.below(REGISTERS);
        if teller.below(2) == 0 {
            let value = teller.next_number();
            let place = teller.begin(Act::Write, key, value)?;
            let text = format!("UPDATE proof_register SET v = {value} WHERE id = {key}");
            return Ok(teller.write(place, &[&text])?);
        }
        let place = teller.begin(Act::Read, key, 0)?;
        let text = format!("SELECT v FROM proof_register WHERE id = {key}");
        let mut seen = NOTHING;
        teller.run(&text, |row| [seen] = numbers(row))?;
        teller.saw(place, seen.cast_unsigned());
        Ok(())
    }

    fn check(
        &self,
        client: &mut Client,
        operations: &[Operation],
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let mut all = operations.to_vec();
        let from = Time::now();
        let mut values: BTreeMap<u32, i64> = (0..REGISTERS).map(|id| (id, NOTHING)).collect();
        client.read(b"SELECT id, v FROM proof_register", |row| {
            let [id, value] = numbers(row);
            values.insert(key(id), value);
        })?;
        let to = Time::now();
        all.extend(values.iter().map(|(&key, value)| Operation {
            client: u32::MAX,
            act: Act::Read,
            key,
            value: value.cast_unsigned(),
            answer: Answer::Done,
            from,
            to,
        }));
        check_registers(&all, findings);
        Ok(())
    }
}

/// Operations on one number of a register.
#[derive(Default)]
struct Cluster<'a> {
    write: Option<&'a Operation>,
    reads: Vec<&'a Operation>,
    /// The zone: the first end, and the last start.
    end: Time,
    start: Time,
}

impl<'a> Cluster<'a> {
    fn operations(&self) -> impl Iterator<Item = &'a Operation> + '_ {
        self.write.into_iter().chain(self.reads.iter().copied())
    }

    fn is_forward(&self) -> bool {
        self.end < self.start
    }

    /// The operations on both ends of the zone.
    fn ends(&self) -> impl Iterator<Item = &'a Operation> + '_ {
        let first = self.operations().find(|one| one.to == self.end);
        let last = self.operations().find(|one| one.from == self.start);
        first.into_iter().chain(last)
    }
}

fn check_registers(operations: &[Operation], findings: &mut Findings) {
    let mut registers: BTreeMap<u32, BTreeMap<u64, Cluster<'_>>> = BTreeMap::new();
    for one in operations {
        let cluster = registers
            .entry(one.key)
            .or_default()
            .entry(one.value)
            .or_default();
        match one.is_write() {
            true => cluster.write = Some(one),
            false if one.is_done() => cluster.reads.push(one),
            false => {}
        }
    }
    for (key, mut clusters) in registers {
        // Nothing is known of a write that nobody read and nobody acknowledged.
        clusters.retain(|_, cluster| {
            let is_done = cluster.write.is_some_and(Operation::is_done);
            is_done || !cluster.reads.is_empty()
        });
        for (&value, cluster) in &mut clusters {
            settle(value, cluster, findings);
        }
        find_overlaps(key, &clusters, findings);
    }
}

/// Computes the zone of a cluster, and checks that its reads have a write.
fn settle(value: u64, cluster: &mut Cluster<'_>, findings: &mut Findings) {
    cluster.end = cluster
        .operations()
        .map(|one| one.to)
        .min()
        .unwrap_or(Time(0));
    cluster.start = cluster
        .operations()
        .map(|one| one.from)
        .max()
        .unwrap_or(Time(0));
    let Some(read) = cluster.reads.iter().min_by_key(|read| read.to) else {
        return;
    };
    let (kind, text) = match cluster.write {
        None if value == 0 => {
            // It was written before all others.
            cluster.end = Time(0);
            return;
        }
        None => (
            Kind::Unasked,
            format!(
                "{} was read, and nobody wrote it",
                told(value.cast_signed())
            ),
        ),
        Some(write) if write.answer == Answer::Refused => (
            Kind::Refused,
            format!("the write of {value} was refused, and {value} was read"),
        ),
        Some(write) if read.to < write.from => (
            Kind::Unasked,
            format!("{value} was read before it was written"),
        ),
        Some(_) => return,
    };
    let shown: Vec<&Operation> = cluster.write.into_iter().chain([*read]).collect();
    findings.add(kind, text, &shown);
}

fn find_overlaps(key: u32, clusters: &BTreeMap<u64, Cluster<'_>>, findings: &mut Findings) {
    let mut zones: Vec<(u64, &Cluster<'_>)> = clusters.iter().map(|(v, c)| (*v, c)).collect();
    zones.sort_by_key(|(_, zone)| zone.end.min(zone.start));
    // The forward zone that reaches furthest, of those that began before.
    let mut furthest: Option<(u64, &Cluster<'_>)> = None;
    for (value, zone) in zones {
        if let Some((other, before)) = furthest
            && zone.end < before.start
            && (zone.is_forward() || zone.start > before.end)
        {
            let is_last = zone.start > before.start;
            let (again, between) = if is_last {
                (value, other)
            } else {
                (other, value)
            };
            let text = format!(
                "register {key} was {again}, then {between}, then {again} again, which was written \
                 once"
            );
            let shown: Vec<&Operation> = before.ends().chain(zone.ends()).collect();
            findings.add(Kind::NotLinearizable, text, &shown);
        }
        if zone.is_forward() && furthest.is_none_or(|(_, one)| one.start < zone.start) {
            furthest = Some((value, zone));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::history::tests::{asked, read, refused, wrote};
    use load_core::random::Random;

    /// Kinds of the findings, with the most operations that show one.
    fn kinds(history: &[Operation]) -> (Vec<Kind>, usize) {
        let mut findings = Findings::new(history);
        check_registers(history, &mut findings);
        let found = findings.into_vec();
        let most = found.iter().map(|one| one.history.len()).max();
        (
            found.iter().map(|one| one.kind).collect(),
            most.unwrap_or(0),
        )
    }

    #[test]
    fn histories_that_one_order_explains_are_right() {
        let history = [
            wrote(1, 5, (10, 40)),
            wrote(2, 6, (20, 50)),
            read(3, 0, (5, 15)),
            read(3, 6, (22, 30)),
            read(4, 5, (32, 60)),
            read(3, 5, (60, 70)),
        ];
        assert_eq!(kinds(&history).0, []);
        assert_eq!(
            kinds(&[asked(1, 5, 10), read(2, 0, (90, 95)), read(2, 5, (96, 99))]).0,
            []
        );
        assert_eq!(kinds(&[asked(1, 5, 10), read(2, 0, (90, 95))]).0, []);
        assert_eq!(
            kinds(&[refused(1, 5, (10, 20)), read(2, 0, (90, 95))]).0,
            []
        );
        assert_eq!(kinds(&[]).0, []);
    }

    #[test]
    fn each_fault_has_its_name_and_few_operations() {
        let cases: [(&[Operation], Kind, usize); 8] = [
            (
                &[wrote(1, 5, (10, 20)), read(2, 0, (30, 40))],
                Kind::NotLinearizable,
                2,
            ),
            (
                &[
                    wrote(1, 5, (10, 20)),
                    read(2, 5, (25, 28)),
                    read(2, 0, (30, 40)),
                ],
                Kind::NotLinearizable,
                3,
            ),
            (
                &[
                    wrote(1, 5, (10, 20)),
                    read(2, 0, (25, 28)),
                    read(2, 5, (30, 40)),
                ],
                Kind::NotLinearizable,
                3,
            ),
            (
                &[
                    wrote(1, 5, (10, 20)),
                    wrote(1, 6, (21, 30)),
                    read(2, 6, (31, 33)),
                    read(2, 5, (40, 50)),
                ],
                Kind::NotLinearizable,
                4,
            ),
            (
                &[refused(1, 5, (10, 20)), read(2, 5, (30, 40))],
                Kind::Refused,
                2,
            ),
            (&[read(2, 9, (30, 40))], Kind::Unasked, 1),
            (
                &[read(2, NOTHING.cast_unsigned(), (30, 40))],
                Kind::Unasked,
                1,
            ),
            (
                &[wrote(1, 9, (50, 60)), read(2, 9, (30, 40))],
                Kind::Unasked,
                2,
            ),
        ];
        for (history, kind, most) in cases {
            let (found, shown) = kinds(history);
            assert_eq!(found, [kind], "{history:?}");
            assert!(shown <= most, "{shown}: {history:?}");
        }
    }

    /// Verdict by trying every order, for short histories.
    fn is_linearizable(rest: &[Operation], value: u64) -> bool {
        let first_end = rest.iter().map(|one| one.to).min().unwrap_or(Time(0));
        // Writes without an answer need not have happened.
        rest.iter().all(|one| one.to == Time::NEVER)
            || rest.iter().enumerate().any(|(at, one)| {
                let next = match one.is_write() {
                    _ if one.from > first_end => return false,
                    false if one.value != value => return false,
                    _ => one.value,
                };
                let mut left = rest.to_vec();
                left.remove(at);
                is_linearizable(&left, next)
            })
    }

    #[test]
    fn random_histories_get_the_verdict_of_every_order_tried() {
        let mut random = Random::new(7, 1);
        let mut counts = [0, 0];
        for _ in 0..3_000 {
            let mut history = Vec::new();
            let mut below = |bound| u64::from(random.below(bound));
            let writes = 1 + below(3);
            for value in 1..=writes {
                let from = below(40);
                history.push(match below(4) {
                    0 => asked(1, value, from),
                    _ => wrote(1, value, (from, from + 1 + below(20))),
                });
            }
            for _ in 0..below(4) {
                let from = below(60);
                let value = below(4).min(writes);
                history.push(read(2, value, (from, from + 1 + below(20))));
            }
            // No two moments are the same.
            for (at, one) in history.iter_mut().enumerate() {
                one.from = Time(1 + one.from.0 * 64 + 2 * at as u64);
                if one.to < Time::NEVER {
                    one.to = Time(one.to.0 * 64 + 2 * at as u64 + 1);
                }
            }
            let expected = is_linearizable(&history, 0);
            counts[usize::from(expected)] += 1;
            assert_eq!(kinds(&history).0.is_empty(), expected, "{history:?}");
        }
        assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
    }
}
