//! Roles follow their client: two accounts' clients on one backend, compared with connections of
//! their own. A client that was pinned for its role would keep the other waiting.

use crate::restored_sessions::both;
use crate::world::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

const CURRENT: &str = "SELECT CURRENT_ROLE()";

/// All tests here use one account, whose roles must be those of one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Two roles of the small account, until this ends.
struct Roles {
    admin: Client,
    names: [String; 2],
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Roles {
    fn drop(&mut self) {
        for role in &self.names {
            let _ = self.admin.query(&format!("DROP ROLE IF EXISTS {role}"));
        }
    }
}

/// An account of the test's pool that may do little, with two roles that each open a schema.
#[must_use]
fn make_roles(real: &Real, test: &str) -> Roles {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let admin = real.admin();
    let names = [format!("{test}_a"), format!("{test}_b")];
    for role in &names {
        fresh_schema(real, role);
        real.script(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role}; CREATE TABLE {role}.t (v INT); \
             GRANT SELECT, INSERT ON {role}.* TO {role}; GRANT {role} TO small@'%'"
        ));
    }
    Roles {
        admin,
        names,
        _alone: alone,
    }
}

fn small() -> Account {
    Account::new("small", "small").schema("shop")
}

/// A change of user gives the role of the account, though nobody has logged in yet since its
/// privileges have changed.
#[test]
fn a_change_of_user_gives_the_role_of_the_account() {
    let test = "roles_changed";
    let Some(real) = pooled(server) else { return };
    let _roles = make_roles(real, test);
    let (a, b) = (format!("{test}_a"), format!("{test}_b"));
    let mut admin = real.admin();
    admin.must(&format!("SET DEFAULT ROLE {b} FOR small@'%'"));
    let settings = "groups = 1\nbackends_max = 1";
    let pool = fresh_pool(real, settings);
    let mut client = login(&pool.address, &small());
    client.must(&format!("SET ROLE {a}"));
    assert_eq!(client.value(CURRENT), a);
    let noticed = || pool.said().matches("event=accounts ").count();
    let before = noticed();
    admin.must("GRANT SELECT ON shop.* TO small@'%'");
    until(|| match noticed() > before {
        true => Ok(()),
        false => Err("no event=accounts".into()),
    });
    client.change_user(&small()).unwrap();
    assert_eq!(client.value(CURRENT), b);
    admin.must("SET DEFAULT ROLE NONE FOR small@'%'");
}

/// A role that was revoked is given by no backend again; its client is told so, and has none.
#[test]
fn a_role_that_was_revoked_ends() {
    both("roles_revoked", |real, test| {
        fresh_schema(real, test);
        let _roles = make_roles(real, test);
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 1");
        let [mut one, mut two] = [0; 2].map(|_| login(&pool.address, &small()));
        one.must(&format!("SET ROLE {test}_a"));
        one.must(&format!("SELECT v FROM {test}_a.t"));
        two.must("SELECT 1");
        let mut admin = real.admin();
        admin.must(&format!("REVOKE {test}_a FROM small@'%'"));
        let refused = format!("{:?}", one.query(&format!("SELECT v FROM {test}_a.t")));
        assert!(refused.contains("1105"), "{refused}");
        assert!(refused.contains(&format!("{test}_a")), "{refused}");
        let denied = format!("{:?}", one.query(&format!("SELECT v FROM {test}_a.t")));
        assert!(denied.contains("1142"), "{denied}");
        let none = match real.flavour() {
            Flavour::MySql => "NONE",
            Flavour::MariaDb => "NULL",
        };
        assert_eq!(one.value("SELECT IFNULL(CURRENT_ROLE(), 'NULL')"), none);
        assert_eq!(two.value("SELECT IFNULL(CURRENT_ROLE(), 'NULL')"), none);
    });
}

/// A client that leaves while its SET ROLE runs leaves its role to nobody.
#[test]
fn a_role_is_not_left_to_others() {
    both("roles_left", |real, test| {
        fresh_schema(real, test);
        let _roles = make_roles(real, test);
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 1");
        for _ in 0..10 {
            let mut leaves = login(&pool.address, &small());
            leaves.must("SELECT 1");
            let sql = format!("SET ROLE {test}_a");
            send(&mut leaves, &sql);
            drop(leaves);
            let mut other = login(&pool.address, &small());
            let denied = format!("{:?}", other.query(&format!("SELECT v FROM {test}_a.t")));
            assert!(denied.contains("1142"), "{denied}");
        }
    });
}
