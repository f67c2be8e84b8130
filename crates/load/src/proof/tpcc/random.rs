//! Random numbers and texts of TPC-C: clauses 2.1.6 and 4.3.2.
//!
//! Some customers and items are asked for much more often than others, and where tables have fewer
//! rows than the specification wants, numbers stay within them.

use super::Size;
use load_core::random::Random;

/// Districts of a warehouse.
pub(super) const DISTRICTS: u32 = 10;

/// Names that customers have, of three syllables each.
const NAMES: u32 = 1_000;
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Sizes of the hot spots, `A` of clause 2.1.6, and the constants `C` of a run. That of last names
/// is another one where tables are filled; their difference is 101, of the 65 to 119 allowed.
struct Hot {
    a: u32,
    c: u32,
}

const NAME_FILLED: Hot = Hot { a: 255, c: 87 };
const NAME: Hot = Hot { a: 255, c: 188 };
const CUSTOMER: Hot = Hot { a: 1_023, c: 411 };
const ITEM: Hot = Hot { a: 8_191, c: 5_003 };

/// A number from `low` to `high`, each as likely as another.
pub(super) fn between(random: &mut Random, low: u32, high: u32) -> u32 {
    low + random.below(high - low + 1)
}

/// A number from `low` to `high` that is not uniform: NURand(A, low, high).
fn uneven(random: &mut Random, hot: &Hot, low: u32, high: u32) -> u32 {
    let mixed = between(random, 0, hot.a) | between(random, low, high);
    (mixed + hot.c) % (high - low + 1) + low
}

/// Number of a customer.
pub(super) fn customer(random: &mut Random, size: Size) -> u32 {
    uneven(random, &CUSTOMER, 1, size.customers)
}

/// Number of an item.
pub(super) fn item(random: &mut Random, size: Size) -> u32 {
    uneven(random, &ITEM, 1, size.items)
}

/// Last name that some customer of each district has.
pub(super) fn name(random: &mut Random, size: Size) -> String {
    let last = NAMES.min(size.customers) - 1;
    last_name(uneven(random, &NAME, 0, last))
}

/// Last name of customer `id` as tables are filled: the first have each name once.
pub(super) fn name_of(random: &mut Random, id: u32) -> String {
    last_name(match id {
        1..=NAMES => id - 1,
        _ => uneven(random, &NAME_FILLED, 0, NAMES - 1),
    })
}

/// Last name of a number of three digits, a syllable for each.
fn last_name(number: u32) -> String {
    let digits = [number / 100, number / 10, number];
    let syllables = digits.map(|digit| SYLLABLES[(digit % 10) as usize]);
    syllables.concat()
}

/// Letters and digits, so many.
pub(super) fn letters(random: &mut Random, low: u32, high: u32) -> String {
    const ALL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let count = between(random, low, high);
    let letter = |_| char::from(ALL[random.below(62) as usize]);
    (0..count).map(letter).collect()
}

/// Digits, so many.
pub(super) fn digits(random: &mut Random, count: u32) -> String {
    let digit = |_| char::from_digit(random.below(10), 10).unwrap_or('0');
    (0..count).map(digit).collect()
}

/// Amount of money from cents.
pub(super) fn money(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// The numbers 1 to `count` in a random order.
pub(super) fn shuffled(random: &mut Random, count: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=count).collect();
    for last in (1..count).rev() {
        all.swap(last as usize, random.below(last + 1) as usize);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::FULL;
    use super::*;

    #[test]
    fn last_names_are_of_three_syllables() {
        for (number, expected) in [
            (0, "BARBARBAR"),
            (371, "PRICALLYOUGHT"),
            (999, "EINGEINGEING"),
        ] {
            assert_eq!(last_name(number), expected);
        }
        let mut random = Random::new(1, 1);
        assert_eq!(name_of(&mut random, 1_000), "EINGEINGEING");
        assert_eq!(name_of(&mut random, 1), "BARBARBAR");
    }

    /// Two random numbers have all of their lowest ten bits set together in 5.6 of 100 draws.
    #[test]
    fn uneven_numbers_have_hot_spots() {
        let mut random = Random::new(1, 1);
        let mut counts = vec![0u32; 3_001];
        for _ in 0..300_000 {
            counts[customer(&mut random, FULL) as usize] += 1;
        }
        let hot = ((1_023 | 1_024) + CUSTOMER.c) % FULL.customers + 1;
        let count = counts[hot as usize];
        assert!(
            (5_400..6_200).contains(&count),
            "{count}, and 100 if they were even"
        );
        assert_eq!(counts[0], 0);
    }

    #[test]
    fn numbers_stay_within_small_tables() {
        let size = Size {
            warehouses: 1,
            customers: 30,
            items: 1_000,
        };
        let mut random = Random::new(1, 1);
        let all: Vec<String> = (0..size.customers).map(last_name).collect();
        for _ in 0..10_000 {
            assert!((1..=size.customers).contains(&customer(&mut random, size)));
            assert!((1..=size.items).contains(&item(&mut random, size)));
            assert!(all.contains(&name(&mut random, size)));
        }
    }

    #[test]
    fn an_order_of_numbers_has_each_once() {
        let mut random = Random::new(1, 1);
        let mut all = shuffled(&mut random, 3_000);
        assert_ne!(all[..3], [1, 2, 3]);
        all.sort_unstable();
        assert_eq!(all, (1..=3_000).collect::<Vec<u32>>());
        assert_eq!(
            (money(5), money(1_234_567)),
            ("0.05".into(), "12345.67".into())
        );
    }
}
