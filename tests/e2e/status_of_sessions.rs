//! Counts and facts that a session gathers about itself, and settings of several statements in one
//! text.

use crate::world::*;

#[test]
fn flush_status_pins_by_its_name() {
    let (_, pool) = or_return!(shared_pool("backends_max = 2\ngroups = 1"));
    let mut client = login(&pool.address, &app());
    client.script("FLUSH TABLES; FLUSH STATUS");
    let said = pool.wait_for_census("statements: 2,").unwrap();
    assert!(said.contains("{session_status: 1}"), "{said}");
}

/// A server that numbers its changes: MySQL shows the numbers that are in use as a global value,
/// and as one of each session, which none can set.
#[test]
fn a_change_under_way_is_no_global_value_that_sessions_begin_with() {
    let real = or_return!(pooled(mysql_with_gtids));
    let pool = fresh_pool(&real, "backends_max = 1\ngroups = 1");
    let mut before = login(&pool.address, &app());
    before.must("SELECT 1");
    let mut owner = real.admin();
    owner.must("SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1'");
    before.must("SET GLOBAL default_week_format = 3");
    pool.wait_for("the server's global values have changed (default_week_format)")
        .unwrap();
    let mut after = login(&pool.address, &app());
    for _ in 0..2 {
        assert_eq!(after.value("SELECT @@default_week_format"), "3");
        assert_eq!(before.value("SELECT @@default_week_format"), "0");
    }
}
