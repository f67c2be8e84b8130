//! Reports that MySQL makes to its clients and MariaDB does not, told through the pool as by the
//! server.

use crate::world::*;

/// MySQL 9.7 does not say behind these results that the OK of the CALL follows: a client without a
/// pool is out of step then.
#[test]
fn a_call_ends_in_its_ok_whatever_its_results_say() {
    let Some(real) = pooled(mysql) else { return };
    // One for each: where nobody may read the code, it pins.
    let way = through(real, 2);
    let (mut a, mut b) = (login(&way, &app()), login(&way, &app()));
    a.script("CREATE DATABASE ends_calls; USE ends_calls");
    for body in [
        "XA RECOVER",
        "SHOW TRIGGERS",
        "SHOW PLUGINS",
        "SHOW PROFILES",
    ] {
        a.must(&format!("CREATE PROCEDURE p() {body}"));
        for _ in 0..2 {
            let told = a.query("CALL p()").unwrap();
            assert_eq!(told.len(), 2, "{body}: {told:?}");
        }
        assert_eq!(b.value("SELECT 'other'"), "other", "{body}");
        assert_eq!(a.value("SELECT 'own'"), "own", "{body}");
        a.must("DROP PROCEDURE p");
    }
    a.must("DROP DATABASE ends_calls");
}
