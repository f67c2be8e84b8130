//! Reports of a session's changes by the servers, and their order: the trackers, told through the
//! pool.

use crate::world::*;
use std::collections::BTreeSet;

/// A client that reads its own writes waits for the number of its last one: it is to be told of
/// each, whatever has to be restored in front.
#[test]
fn each_write_tells_its_gtid() {
    let real = or_return!(pooled(mysql_with_gtids));
    real.admin().must("CREATE DATABASE s1");
    real.admin().must("CREATE DATABASE s2");
    let pool = fresh_pool(&real, "backends_max = 1\ngroups = 1");
    let account = |schema| app().schema(schema).with(cap::SESSION_TRACK);
    let mut writes = login(&pool.address, &account("s1"));
    let mut other = login(&pool.address, &account("s2"));
    writes.must("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    writes.must("SET session_track_gtids = OWN_GTID");
    let insert = writes.prepare("INSERT INTO t (v) VALUES (7)").id;
    let mut told = BTreeSet::new();
    let mut take = |outcomes: &[Outcome], sql: &str| {
        let [.., Outcome::Done(done)] = outcomes else {
            panic!("{sql}: {outcomes:?}");
        };
        let gtid = done
            .changes
            .iter()
            .find(|change| change.starts_with("gtids="));
        let gtid = gtid.unwrap_or_else(|| panic!("{sql}: {done:?}"));
        assert!(told.insert(gtid.clone()), "{sql}: {gtid} again");
    };
    for between in [
        "DO 1",
        "SELECT 1",
        "SET time_zone = '+03:00'",
        "SET @a = 1, group_concat_max_len = 77",
        "INSERT INTO s1.t (v) VALUES (1)",
        "USE s2",
        "SET SESSION session_track_gtids = ALL_GTIDS",
    ] {
        other.must(between);
        take(
            &writes.query("INSERT INTO t (v) VALUES (2)").unwrap(),
            between,
        );
        other.must(between);
        take(&writes.execute(insert, &[], false).unwrap(), between);
        other.must(between);
        writes.script("BEGIN; INSERT INTO t (v) VALUES (3)");
        take(&writes.query("COMMIT").unwrap(), between);
    }
}
