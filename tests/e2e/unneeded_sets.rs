//! SET of variables to the values that they have: the pool answers, and clients see what a server
//! says.

use crate::world::*;

#[test]
fn a_set_of_the_value_that_is_there_takes_no_backend() {
    for real in pooled_servers() {
        let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 3000";
        let pool = fresh_pool(real, settings);
        let account = app().without(cap::SESSION_TRACK);
        let [mut a, mut b] = [(); 2].map(|()| login(&pool.address, &account));
        b.must("SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = ''");
        // The one backend is taken.
        a.must("BEGIN");
        assert_eq!(a.value("SELECT 1"), "1");
        for set in [
            "SET autocommit = 1",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET sql_mode = '', foreign_key_checks = 1",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ] {
            b.must(set);
        }
        let refused = b.query("SET autocommit = 0");
        assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
        a.must("COMMIT");
        pool.wait_for_census("sets_spared: 4,").unwrap();
    }
}

#[test]
fn it_can_be_switched_off() {
    let Some(real) = pooled(server) else { return };
    let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 3000\ndefer_begin = false";
    let pool = fresh_pool(real, settings);
    let account = app().without(cap::SESSION_TRACK);
    let [mut a, mut b] = [(); 2].map(|()| login(&pool.address, &account));
    a.must("BEGIN");
    let refused = b.query("SET autocommit = 1");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    a.must("COMMIT");
    b.must("SET autocommit = 1");
}
