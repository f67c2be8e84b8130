//! Roles follow their client: two accounts' clients on one backend, compared with connections of
//! their own. A client that was pinned for its role would keep the other waiting.

use crate::compare::{Story, same_on};
use crate::metrics::until;
use crate::world::{HOLD, direct, fresh_schema, login, mysql, server, start_pool};
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::client::Client;
use testkit::real::{Flavour, Real, skipped};
use testkit::talk::Account;
use wire::command::Command;

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
    let mut admin = real.admin();
    for sql in [
        "CREATE DATABASE IF NOT EXISTS shop",
        "CREATE USER IF NOT EXISTS small@'%' IDENTIFIED BY 'small'",
        "GRANT ALL ON shop.* TO small@'%'",
    ] {
        admin.must(sql);
    }
    let names = [format!("{test}_a"), format!("{test}_b")];
    for role in &names {
        for sql in [
            format!("DROP ROLE IF EXISTS {role}"),
            format!("DROP DATABASE IF EXISTS {role}"),
            format!("CREATE ROLE {role}"),
            format!("CREATE DATABASE {role}"),
            format!("CREATE TABLE {role}.t (v INT)"),
            format!("GRANT SELECT, INSERT ON {role}.* TO {role}"),
            format!("GRANT {role} TO small@'%'"),
        ] {
            admin.must(&sql);
        }
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

/// A client's questions about its role, and about what it may do.
fn looks(story: &mut Story, who: usize, test: &str) {
    story.sql(who, CURRENT);
    for role in ["a", "b"] {
        story.sql(who, &format!("SELECT v FROM {test}_{role}.t"));
    }
    story.sql(who, "SELECT DATABASE()");
}

fn roles_follow(real: &Real, test: &str) {
    same_on(real, test, 1, |story| {
        let _roles = make_roles(real, test);
        let (a, b) = (format!("{test}_a"), format!("{test}_b"));
        let [one, two] = [0; 2].map(|_| story.join_as(&small()));
        looks(story, one, test);
        let mysql = real.flavour() == Flavour::MySql;
        let mut turns = vec![
            (one, format!("SET ROLE {a}")),
            (two, format!("SET ROLE `{b}`")),
            (one, format!("SET ROLE {b}_not")),
            (one, "SELECT 1".into()),
            (two, "SET ROLE NONE".into()),
            (one, format!("SET ROLE {b}")),
            (
                one,
                format!("SET ROLE {a}; SELECT CURRENT_ROLE(); SET ROLE {b}; SELECT 2"),
            ),
            (
                two,
                format!("SELECT 1; SET ROLE {a}; SELECT v FROM nowhere.t; SET ROLE {b}"),
            ),
            (one, format!("BEGIN; SET ROLE {a}; ROLLBACK")),
            (two, "SET sql_mode = 'ANSI_QUOTES'".into()),
            (two, format!("SET ROLE \"{a}\"")),
        ];
        if mysql {
            turns.extend([
                (one, format!("SET ROLE {b}, {a}@'%'")),
                (two, format!("SET ROLE ALL EXCEPT {b}")),
                (one, "SET ROLE DEFAULT".into()),
                (two, "SET ROLE ALL".into()),
            ]);
        } else {
            turns.extend([
                (one, format!("SET @x = 5, ROLE {a}, time_zone = '+01:00'")),
                (two, format!("SET ROLE {b}, time_zone = 'No/Such'")),
                (two, format!("SET ROLE {b}, @y = 1")),
            ]);
        }
        for (who, sql) in turns {
            story.sql(who, &sql);
            looks(story, who, test);
            looks(story, one + two - who, test);
        }
        story.all(one, &["SELECT @x, @@time_zone", "SELECT @y"]);
    });
}

#[test]
fn a_role_follows_its_client() {
    let test = "roles_follow";
    if let Some(real) = server(test) {
        roles_follow(real, test);
    }
}

#[test]
fn a_role_follows_its_client_on_mysql() {
    let test = "roles_follow_mysql";
    if let Some(real) = mysql(test) {
        roles_follow(real, test);
    }
}

/// A statement that is prepared by whoever may is executed by nobody who may not.
fn prepared(real: &Real, test: &str) {
    same_on(real, test, 1, |story| {
        let _roles = make_roles(real, test);
        let (a, b) = (format!("{test}_a"), format!("{test}_b"));
        let [one, two] = [0; 2].map(|_| story.join_as(&small()));
        story.sql(one, &format!("SET ROLE {a}"));
        story.sql(two, &format!("SET ROLE {a}"));
        let select = format!("SELECT v FROM {a}.t");
        let mine = story.prepare(one, &select).id;
        let others = story.prepare(two, &select).id;
        let sets = story.prepare(one, &format!("SET ROLE {b}")).id;
        story.execute(one, mine, &[]);
        story.sql(one, "SET ROLE NONE");
        for _ in 0..2 {
            story.execute(one, mine, &[]);
            story.execute(two, others, &[]);
            story.sql(one, CURRENT);
        }
        story.execute(one, sets, &[]);
        story.execute(two, others, &[]);
        story.execute(one, mine, &[]);
        story.sql(one, CURRENT);
        story.sql(one, &format!("SET ROLE {a}"));
        story.execute(one, mine, &[]);
        story.sql(two, "SET ROLE NONE");
        story.execute(two, others, &[]);
    });
}

#[test]
fn prepared_statements_run_in_the_role_of_their_execution() {
    for (found, test) in [
        (server("roles_prepared"), "roles_prepared"),
        (mysql("roles_prepared_mysql"), "roles_prepared_mysql"),
    ] {
        if let Some(real) = found {
            prepared(real, test);
        }
    }
}

/// A role outlives a reset; what a change of user makes of it is the server's.
fn fresh(real: &Real, test: &str) {
    same_on(real, test, 1, |story| {
        let _roles = make_roles(real, test);
        let (a, b) = (format!("{test}_a"), format!("{test}_b"));
        let [one, two] = [0; 2].map(|_| story.join_as(&small()));
        story.sql(one, &format!("SET ROLE {a}"));
        looks(story, two, test);
        story.command(one, Command::ResetConnection, b"");
        looks(story, one, test);
        // Not read back when the reset comes.
        for held in [HOLD, "CREATE TEMPORARY TABLE shop.roles_held (v INT)"] {
            story.all(one, &[held, &format!("SET ROLE {b}")]);
            story.command(one, Command::ResetConnection, b"");
            looks(story, one, test);
            looks(story, two, test);
            story.all(one, &[held, "SET ROLE NONE"]);
            story.change_user(one, &small());
            looks(story, one, test);
        }
        story.sql(one, &format!("SET ROLE {a}"));
        story.change_user(one, &small());
        looks(story, one, test);
        looks(story, two, test);
        if real.flavour() == Flavour::MariaDb {
            story.sql(one, &format!("SET ROLE {b}"));
            story.change_user(one, &Account::new("small", "wrong"));
            looks(story, one, test);
        }
    });
}

#[test]
fn a_role_outlives_a_reset() {
    for (found, test) in [
        (server("roles_anew"), "roles_anew"),
        (mysql("roles_anew_mysql"), "roles_anew_mysql"),
    ] {
        if let Some(real) = found {
            fresh(real, test);
        }
    }
}

/// Clients of a pool with one backend, whose login has a role by default.
#[test]
fn the_role_of_a_login_is_that_of_its_account() {
    for (found, test) in [
        (server("roles_default"), "roles_default"),
        (mysql("roles_default_mysql"), "roles_default_mysql"),
    ] {
        let Some(real) = found else { continue };
        same_on(real, test, 1, |story| {
            let _roles = make_roles(real, test);
            let (a, b) = (format!("{test}_a"), format!("{test}_b"));
            let mut admin = real.admin();
            let bare = "'bare'@'%'";
            for sql in [
                format!("CREATE USER IF NOT EXISTS {bare} IDENTIFIED BY ''"),
                format!("GRANT ALL ON shop.* TO {bare}"),
                format!("GRANT {a} TO {bare}"),
                format!("GRANT {b} TO {bare}"),
                match real.flavour() {
                    Flavour::MySql => format!("SET DEFAULT ROLE {b} TO {bare}"),
                    Flavour::MariaDb => format!("SET DEFAULT ROLE {b} FOR {bare}"),
                },
            ] {
                admin.must(&sql);
            }
            let account = Account::new("bare", "").schema("shop");
            let [one, two, three] = [0; 3].map(|_| story.join_as(&account));
            looks(story, one, test);
            story.sql(one, &format!("SET ROLE {a}"));
            story.sql(three, "SET ROLE NONE");
            for who in [two, one, three, one, two, three, two] {
                looks(story, who, test);
            }
            story.command(one, Command::ResetConnection, b"");
            story.command(two, Command::ResetConnection, b"");
            looks(story, one, test);
            looks(story, two, test);
            story.change_user(one, &account);
            looks(story, one, test);
            // A schema that one may use is not open to who logs in without the role.
            story.all(one, &[&format!("SET ROLE {a}"), &format!("USE {a}")]);
            let denied = Client::connect(&story.address, &Account::new("bare", "").schema(&a));
            story.say(&format!("denied: {:?}", denied.err()));
            admin.must(&match real.flavour() {
                Flavour::MySql => format!("SET DEFAULT ROLE NONE TO {bare}"),
                Flavour::MariaDb => format!("SET DEFAULT ROLE NONE FOR {bare}"),
            });
        });
    }
}

/// A change of user gives the role of the account, though nobody has logged in yet since its
/// privileges have changed.
#[test]
fn a_change_of_user_gives_the_role_of_the_account() {
    let test = "roles_changed";
    let Some(real) = server(test) else { return };
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let _roles = make_roles(real, test);
    let (a, b) = (format!("{test}_a"), format!("{test}_b"));
    let mut admin = real.admin();
    admin.must(&format!("SET DEFAULT ROLE {b} FOR small@'%'"));
    let settings = "groups = 1\nbackends_max = 1";
    let pool = start_pool(real, &format!("{test}.toml"), settings);
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
    if direct() {
        return;
    }
    for (found, test) in [
        (server("roles_revoked"), "roles_revoked"),
        (mysql("roles_revoked_mysql"), "roles_revoked_mysql"),
    ] {
        let Some(real) = found else { continue };
        fresh_schema(real, test);
        let _roles = make_roles(real, test);
        let pool = start_pool(
            real,
            &format!("{test}.toml"),
            "groups = 1\nbackends_max = 1",
        );
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
    }
}

/// A client that leaves while its SET ROLE runs leaves its role to nobody.
#[test]
fn a_role_is_not_left_to_others() {
    if direct() {
        return;
    }
    for (found, test) in [
        (server("roles_left"), "roles_left"),
        (mysql("roles_left_mysql"), "roles_left_mysql"),
    ] {
        let Some(real) = found else { continue };
        fresh_schema(real, test);
        let _roles = make_roles(real, test);
        let pool = start_pool(
            real,
            &format!("{test}.toml"),
            "groups = 1\nbackends_max = 1",
        );
        for _ in 0..10 {
            let mut leaves = login(&pool.address, &small());
            leaves.must("SELECT 1");
            let sql = format!("SET ROLE {test}_a");
            leaves.send(&[(Command::Query, sql.as_bytes())]).unwrap();
            drop(leaves);
            let mut other = login(&pool.address, &small());
            let denied = format!("{:?}", other.query(&format!("SELECT v FROM {test}_a.t")));
            assert!(denied.contains("1142"), "{denied}");
        }
    }
}
