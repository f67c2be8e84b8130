//! Pins that the settings decide about; stories tell of those that end by themselves.

use crate::world::*;

/// A client calls code that takes a lock and a temporary table, under each policy.
#[test]
fn stored_code_is_believed_as_far_as_the_settings_say() {
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "pins_policy");
    let mut admin = real.admin();
    admin.script("USE pins_policy; CREATE PROCEDURE takes() DO GET_LOCK('policy', 0)");
    admin.must("CREATE FUNCTION plain() RETURNS INT DETERMINISTIC RETURN 5");
    let one = |policy: &str| {
        let one = "groups = 1\nbackends_max = 1\nwait_ms_max = 3000";
        let extra = format!("{one}\nstored_code = \"{policy}\"");
        let pool = fresh_pool(real, &extra);
        let account = app().schema("pins_policy");
        let clients = [(); 2].map(|()| login(&pool.address, &account));
        (pool, clients)
    };

    let (_pool, [mut calls, mut other]) = one("pin");
    calls.must("CALL takes()");
    assert_eq!(other.failure("SELECT 1").code, 9501);
    drop(calls);
    let (pool, [mut calls, mut other]) = one("trust");
    assert_eq!(calls.value("SELECT plain()"), "5");
    assert_eq!(other.value("SELECT 1"), "1");
    // Blocks are no calls.
    calls.must("BEGIN NOT ATOMIC DO 1; END");
    assert_eq!(other.failure("SELECT 1").code, 9501);
    pool.ask_for_report();
    pool.wait_for("pinned now: {stored_code: 1").unwrap();
}
