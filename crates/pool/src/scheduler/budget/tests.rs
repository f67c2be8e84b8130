//! The budget alone: who gets a slot, who owes one, and that the whole is never exceeded.

use super::*;
use std::sync::atomic::AtomicBool;

fn take_all(budget: &Budget, index: usize) -> usize {
    std::iter::from_fn(|| budget.take(index).then_some(())).count()
}

fn told(groups: impl Iterator<Item = usize>) -> Vec<usize> {
    groups.collect()
}

#[test]
fn shares_are_even_and_sum_to_the_whole() {
    let budget = Budget::new(7, 3, 1);
    let shares: Vec<usize> = budget.shares.iter().map(Share::share).collect();
    assert_eq!(shares, [3, 2, 2]);
    assert_eq!(budget.by_right(0), 3);
    assert_eq!(budget.by_right(1), 2);
}

#[test]
fn one_group_takes_all_that_nobody_wants() {
    let budget = Budget::new(8, 8, 1);
    assert_eq!(take_all(&budget, 3), 8);
    assert!(!budget.has_room(0) && !budget.take(0));
    budget.give(3, 8);
    assert_eq!(take_all(&budget, 0), 8);
}

#[test]
fn who_is_below_its_share_is_owed_one_at_once() {
    let budget = Budget::new(4, 2, 0);
    assert_eq!(take_all(&budget, 0), 4);
    assert_eq!(budget.owed(0), Owed::Nothing);
    assert!(budget.want(1) && !budget.want(1), "it is news only once");
    assert_eq!(budget.owed(0), Owed::AtOnce);
    budget.give(0, 1);
    assert_eq!(told(budget.served(0)), [1]);
    assert_eq!(budget.owed(0), Owed::Nothing, "one is enough for one want");
    assert!(!budget.take(0), "the borrower does not take it back");
    assert!(budget.take(1));
    // It still wants, and has less than its share.
    assert_eq!(budget.owed(0), Owed::AtOnce);
    budget.give(0, 1);
    assert!(budget.take(1));
    assert_eq!(budget.owed(0), Owed::Idle, "both have their shares");
    budget.unwant(1);
    assert_eq!(budget.owed(0), Owed::Nothing);
}

#[test]
fn borrowers_come_in_the_order_of_their_wants() {
    let budget = Budget::new(6, 3, 0);
    assert_eq!(take_all(&budget, 0), 6);
    budget.give(0, 4);
    assert!(budget.take(1) && budget.take(1) && budget.take(2) && budget.take(2));
    for late in [2, 1] {
        assert!(budget.want(late));
    }
    assert_eq!(budget.owed(0), Owed::Idle);
    budget.give(0, 1);
    assert_eq!(told(budget.served(0)), [2], "its want is the older one");
    assert!(!budget.take(1));
    assert!(budget.take(2));
    budget.unwant(2);
    budget.give(0, 1);
    assert!(budget.take(1));
}

#[test]
fn lenders_are_those_with_idle_backends() {
    let budget = Budget::new(6, 3, 0);
    budget.note_idle(2, 2);
    assert_eq!(told(budget.lenders(0)), [2]);
    assert_eq!(told(budget.lenders(2)), [0; 0]);
    budget.note_idle(2, 0);
    assert_eq!(told(budget.lenders(0)), [0; 0]);
}

#[test]
fn reserves_are_not_borrowed() {
    // Each group reserves one of its eight, and has one besides.
    let budget = Budget::new(16, 2, 1);
    assert_eq!((budget.reserved(0), budget.by_right(0)), (1, 8));
    assert_eq!(take_all(&budget, 0), 14);
    assert_eq!(budget.by_right(1), 2);
    assert!(budget.take(1) && budget.take(1));
    // They are in use now: another takes their place as soon as one is free.
    budget.give(0, 1);
    assert!(!budget.take(0));
    budget.note_idle(1, 1);
    assert!(budget.take(0), "the reserve is idle with its group");
}

#[test]
fn a_borrower_keeps_its_reserve_and_has_it_back_before_others_have_more() {
    let budget = Budget::new(16, 2, 1);
    assert_eq!(take_all(&budget, 0), 14);
    assert_eq!(take_all(&budget, 1), 2);
    budget.note_idle(0, 1);
    budget.note_idle(1, 1);
    assert!(budget.want(1));
    assert!(!budget.owes_next(0, 14, || 0), "it is the reserve");
    assert!(budget.owes_next(0, 14, || 1));
    // It is closed for another account, or for its age.
    budget.give(0, 1);
    assert!(!budget.has_room(0), "one is idle there still");
    budget.note_idle(0, 0);
    assert!(budget.take(0));
}

#[test]
fn a_reserve_that_another_account_gets_stays_with_its_group() {
    let budget = Budget::new(16, 2, 1);
    assert!((0..5).all(|_| budget.take(1)));
    budget.note_idle(1, 1);
    assert_eq!(take_all(&budget, 0), 11);
    // Now the other's reserve is in use.
    for group in [0, 1] {
        budget.note_idle(group, 0);
    }
    assert!(budget.keeps_slot(0, 0) && !budget.keeps_slot(0, 1));
    budget.give(0, 1);
    assert!(
        !budget.has_room(0) && budget.has_room(1),
        "not if it is given"
    );
    assert!(
        budget.set_total(8) && !budget.keeps_slot(0, 0),
        "it is owed"
    );
}

#[test]
fn of_groups_without_their_reserves_the_one_with_the_fewest_backends_is_first() {
    let budget = Budget::new(24, 3, 1);
    assert_eq!(take_all(&budget, 2), 20);
    assert!(budget.take(0) && budget.take(0) && budget.take(1));
    assert!(!budget.take(0), "the last one is the other's");
    assert!(budget.take(1) && !budget.take(1));
    budget.give(2, 1);
    // All that have theirs use them.
    assert!(budget.has_room(0) && !budget.has_room(1));
    assert!(budget.take(0));
    budget.give(2, 1);
    assert!(budget.has_room(1) && !budget.has_room(0));
}

#[test]
fn few_slots_are_not_reserved() {
    let budget = Budget::new(14, 2, 4);
    assert_eq!((budget.reserved(0), budget.reserved(1)), (0, 0));
    assert_eq!(take_all(&budget, 1), 14);
}

#[test]
fn a_group_holds_no_more_than_its_table_is_made_for() {
    assert_eq!(Budget::most_of_group(64, 6), 64);
    assert_eq!(Budget::most_of_group(10_000, 6), 1667);
    let budget = Budget::new(4096, 64, 0);
    assert_eq!(take_all(&budget, 0), BORROWED_MAX);
    assert!(budget.take(1));
}

#[test]
fn whoever_is_short_is_served_or_owed_whatever_came_before() {
    // Every state of two groups with a reserve that the rules can lead to.
    for seed in 0..2000usize {
        let (total, groups) = (3 + seed % 30, 1 + seed % 3);
        let budget = Budget::new(total, groups, seed % 3);
        let mut random = seed.wrapping_mul(0x9e37_79b9) | 1;
        let mut draw = |n: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 33) % n
        };
        for _ in 0..200 {
            let index = draw(groups);
            let held = budget.shares[index].held();
            match draw(5) {
                0 | 1 => drop(budget.take(index)),
                2 if held > 0 => budget.give(index, 1 + draw(held)),
                3 => drop(budget.want(index)),
                _ => budget.unwant(index),
            }
            budget.note_idle(index, draw(budget.shares[index].held() + 1));
            let all: usize = budget.shares.iter().map(Share::held).sum();
            assert_eq!(all + budget.free(), total);
            let short = |(_, share): &(usize, &Share)| {
                share.is_short() && share.wants.load(SeqCst) != NOTHING
            };
            if let Some((short, _)) = budget.shares.iter().enumerate().find(short) {
                let owes = |index| budget.owed(index) == Owed::AtOnce;
                assert!(
                    budget.has_room(short) || (0..groups).any(owes),
                    "seed {seed}: {budget:?}"
                );
            }
            // What is free somebody can have.
            assert!(
                budget.free() == 0 || (0..groups).any(|index| budget.has_room(index)),
                "seed {seed}: {budget:?}"
            );
        }
    }
}

#[test]
fn the_whole_is_not_exceeded_at_any_instant() {
    let (budget, total) = (Budget::new(5, 3, 1), 5);
    let (open, exceeded) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for index in 0..3 {
            let (budget, open, exceeded) = (&budget, &open, &exceeded);
            scope.spawn(move || {
                for _ in 0..20_000 {
                    if budget.take(index) {
                        let now = open.fetch_add(1, SeqCst) + 1;
                        exceeded.fetch_or(now > total, SeqCst);
                        open.fetch_sub(1, SeqCst);
                        budget.give(index, 1);
                        budget.unwant(index);
                    } else {
                        budget.want(index);
                    }
                }
                budget.unwant(index);
            });
        }
    });
    assert!(!exceeded.load(SeqCst));
    assert_eq!(budget.free(), total);
    assert_eq!(budget.wanting.load(SeqCst), 0);
}

#[test]
fn a_lowered_whole_is_owed_by_those_above_their_shares() {
    let budget = Budget::new(16, 2, 0);
    assert_eq!(take_all(&budget, 0), 16);
    budget.give(0, 2);
    assert!(budget.take(1));
    assert!(budget.set_total(6) && !budget.set_total(6));
    assert_eq!((budget.share(0), budget.share(1)), (3, 3));
    assert!(!budget.has_room(1) && !budget.take(1), "there are 15 of 6");
    assert_eq!(budget.owed(0), Owed::AtOnce, "though nobody wants one");
    assert_eq!(budget.owed(1), Owed::Nothing);
    for held in (5..14).rev() {
        budget.give(0, 1);
        let owes = budget.owed(0) == Owed::AtOnce;
        assert_eq!(owes, held > 5, "{held} and 1 of 6");
    }
    assert!(!budget.take(0) && !budget.take(1));
    budget.give(0, 1);
    assert!(budget.take(1));
    assert!(budget.set_total(16));
    assert_eq!(take_all(&budget, 0) + take_all(&budget, 1), 10);
    assert!(budget.set_total(0));
    assert_eq!((budget.total(), budget.has_room(0)), (0, false));
}

#[test]
fn a_lack_is_told_once_and_ends() {
    let budget = Budget::new(4, 2, 0);
    assert_eq!(take_all(&budget, 0), 4);
    budget.note_idle(0, 2);
    assert_eq!(told(budget.note_lack(1, true)), [0]);
    assert!(told(budget.note_lack(1, true)).is_empty(), "it is known");
    assert!(budget.owes_next(0, 4, || 0));
    assert!(told(budget.note_lack(1, false)).is_empty());
    assert!(!budget.owes_next(0, 4, || 0));
}
