//! A MariaDB that writes a binary log reports each write's number: nobody is pinned for that, and
//! each client is told its own.

use crate::world::*;

#[test]
fn writes_that_are_logged_pin_nobody_and_each_client_has_its_own_number() {
    let real = or_return!(own(Real::start(&["--log-bin=logged", "--server-id=7"])));
    real.script("CREATE DATABASE logged; CREATE TABLE logged.t (a INT PRIMARY KEY)");
    let account = app().schema("logged");
    // One backend: a pin would leave the others without any.
    let way = through(&real, 1);
    let [mut one, mut two, mut reads] = std::array::from_fn(|_| login(&way, &account));
    let question = "SELECT @@last_gtid";
    assert_eq!(one.value(question), "");
    one.must("INSERT INTO t VALUES (1)");
    let first = one.value(question);
    assert_eq!(first, one.value("SELECT @@gtid_binlog_pos"));
    two.must("INSERT INTO t VALUES (2)");
    let second = two.value(question);
    assert_eq!(second, two.value("SELECT @@gtid_binlog_pos"));
    assert_ne!(first, second);
    assert_eq!(reads.value(question), "");
    for _ in 0..2 {
        let asked = "SELECT CONCAT(@@session.last_gtid) AS gtid";
        assert_eq!(one.value(asked), first);
        assert_eq!(two.value(question), second);
        let failed = one.query("INSERT INTO t VALUES (1)").unwrap();
        assert!(format!("{failed:?}").contains("1062"), "{failed:?}");
    }
    one.must(HOLD);
    assert_eq!(one.value(question), first);
    one.must("INSERT INTO t VALUES (3)");
    assert_eq!(one.value(question), first);
    one.must("COMMIT");
    assert_ne!(one.value(question), first);
    one.run(Command::ResetConnection, b"").unwrap();
    assert_eq!(one.value(question), "");
    assert_eq!(reads.value(question), "");
}
