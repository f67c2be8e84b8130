//! MariaDB's extended capabilities: offered as far as both sides know them.

use crate::world::*;
use wire::capabilities::EXTENDED_OFFERED;

#[test]
fn extended_capabilities_are_offered_as_far_as_the_pool_and_the_server_know_them() {
    let Some(real) = pooled(server) else { return };
    let all = app().extended(u32::MAX);
    let pool = through(real, 1);
    let client = login(&pool, &all);
    assert_eq!(client.talk().extended & EXTENDED_OFFERED, EXTENDED_OFFERED);
    // Progress reports among them, which come out of turn.
    assert_eq!(client.talk().extended & !EXTENDED_OFFERED, 0);
    let Some(real) = pooled(mysql) else { return };
    let pool = through(real, 1);
    assert_eq!(login(&pool, &all).talk().extended, 0);
}
