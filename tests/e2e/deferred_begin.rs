//! Transactions that have begun for their clients, and on no backend yet: what clients see is what
//! a server says, and who only begins holds nothing.

use crate::world::*;

/// Ends of transactions that are none.
const ENDS: [&str; 3] = ["COMMIT", "rollback", " Commit Work"];

#[test]
fn the_end_of_no_transaction_takes_no_backend() {
    for real in pooled_servers() {
        let settings = "backends_max = 1\ngroups = 1";
        let pool = fresh_pool(real, settings);
        let (mut a, mut b) = (login(&pool.address, &app()), login(&pool.address, &app()));
        // The one backend is taken.
        a.must("BEGIN");
        assert_eq!(a.value("SELECT 1"), "1");
        for end in ENDS {
            b.must(end);
        }
        a.must("COMMIT");
        let counted = "transactions_deferred: 1, transactions_unsent: 0, ends_spared: 3,";
        pool.wait_for_census(counted).unwrap();
    }
}

/// Clients that think in transactions at once, unless `ONRAMP_THINKERS` says how many.
const THINKERS: usize = 1_000;
const BACKENDS: usize = 16;
/// Those of them that go on at once: each keeps its backend until it commits.
const AT_ONCE: usize = BACKENDS / 2;

#[test]
fn thousands_think_in_transactions_on_sixteen_backends() {
    for real in pooled_servers() {
        let told = std::env::var("ONRAMP_THINKERS");
        let count = told.map_or(THINKERS, |number| number.parse().unwrap());
        fresh_schema(real, "deferred_thousands");
        let settings = format!("backends_max = {BACKENDS}\ngroups = 1");
        let pool = fresh_pool(real, &settings);
        let account = app().schema("deferred_thousands");
        let mut others: Vec<_> = (0..2 * BACKENDS)
            .map(|_| login(&pool.address, &account))
            .collect();
        others[0].must("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        let mut thinkers: Vec<_> = (0..count).map(|_| login(&pool.address, &account)).collect();
        for thinker in &mut thinkers {
            thinker.must("BEGIN");
        }
        // All of them are in a transaction, and all backends are free.
        let begun = format!("transactions_deferred: {count}, transactions_unsent: 0,");
        let census = pool.wait_for_census(&begun).unwrap();
        assert!(census.contains("backends_checked_out: 0,"), "{census}");
        // Others are served meanwhile, with transactions of their own.
        for (number, other) in others.iter_mut().enumerate() {
            assert_eq!(other.value("SELECT COUNT(*) FROM t"), number.to_string());
            other.must("BEGIN");
            other.must(&format!("INSERT INTO t VALUES ({number}, -1)"));
            other.must("COMMIT");
        }
        // Then every thinker goes on, and one of each few changes its mind.
        for few in thinkers.chunks_mut(AT_ONCE) {
            for (id, thinker) in few.iter_mut().enumerate() {
                thinker.must(&format!("UPDATE t SET v = v + 1 WHERE id = {id}"));
            }
            let (changed, sure) = few.split_first_mut().unwrap();
            changed.must("ROLLBACK");
            for thinker in sure {
                thinker.must("COMMIT");
            }
        }
        let committed = count - count.div_ceil(AT_ONCE);
        let sum = "SELECT SUM(v) + COUNT(*) FROM t";
        assert_eq!(others[0].value(sum), committed.to_string());
        // Who ends a transaction that has done nothing needs no backend either.
        thinkers[0].script("BEGIN; COMMIT");
        let counted = count + others.len() + 1;
        let counted = format!("transactions_deferred: {counted}, transactions_unsent: 1,");
        pool.wait_for_census(&counted).unwrap();
        pool.wait_for_census("backends_checked_out: 0,").unwrap();
    }
}

#[test]
fn it_can_be_switched_off() {
    let Some(real) = pooled(server) else { return };
    // The one who begins may have to wait for the backend to be dialled.
    let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 3000\ndefer_begin = false";
    let pool = fresh_pool(real, settings);
    let (mut a, mut b) = (login(&pool.address, &app()), login(&pool.address, &app()));
    a.must("BEGIN");
    let refused = b.query("SELECT 1");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    let refused = b.query("ROLLBACK");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    a.must("COMMIT");
    assert_eq!(b.value("SELECT 1"), "1");
}
