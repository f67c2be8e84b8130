//! Accounts and privileges that change while the pool serves: who logs in behind a change has what
//! a login on the server has, who logged in before keeps what a session of the server keeps.
//!
//! Both servers read global privileges and default roles at a login, those on the default schema at
//! USE, and all others at each statement.

use crate::world::*;

pub(crate) const TOLD: &str = "the server's accounts may have changed";

/// Questions to a session, one for each place where a server keeps privileges.
const ASKED: [&str; 5] = [
    // PROCESS, which is read at the login.
    "SHOW ENGINE INNODB STATUS",
    "SELECT * FROM mine.t",
    "SELECT * FROM theirs.t",
    "SELECT * FROM t",
    "SELECT 1",
];

/// Changes: name, rights of the account at first, and the statement.
const CHANGES: &str = "
    GRANT, global => MINE => GRANT PROCESS ON *.* TO small@'%'
    REVOKE, global => MINE; GRANT PROCESS ON *.* TO small@'%'
        => REVOKE PROCESS ON *.* FROM small@'%'
    REVOKE, all schemas => GRANT SELECT ON *.* TO small@'%' => REVOKE SELECT ON *.* FROM small@'%'
    GRANT, schema => MINE => GRANT SELECT ON theirs.* TO small@'%'
    REVOKE, default schema => MINE; GRANT SELECT ON theirs.* TO small@'%'
        => REVOKE SELECT ON mine.* FROM small@'%'
    GRANT, table => MINE => GRANT SELECT ON theirs.t TO small@'%'
    REVOKE, table => GRANT SELECT ON mine.t TO small@'%' => REVOKE SELECT ON mine.t FROM small@'%'
    REVOKE ALL => MINE; GRANT PROCESS ON *.* TO small@'%'
        => REVOKE ALL PRIVILEGES, GRANT OPTION FROM small@'%'
    DROP USER => MINE => DROP USER small@'%'
    ALTER USER, password => MINE => ALTER USER small@'%' IDENTIFIED BY 'another'
    ALTER USER, lock => MINE => ALTER USER small@'%' ACCOUNT LOCK
    RENAME USER => MINE => RENAME USER small@'%' TO smaller@'%'
    a role's privileges => MINE; GRANT duty TO small@'%'; DEFAULT ROLE
        => GRANT SELECT ON theirs.* TO duty";
const MINE: &str = "GRANT SELECT ON mine.* TO small@'%'";

/// Runs statements in the words of this server.
fn run(real: &Real, script: &str) {
    let role = match real.flavour() {
        Flavour::MariaDb => "SET DEFAULT ROLE duty FOR small@'%'",
        Flavour::MySql => "ALTER USER small@'%' DEFAULT ROLE duty",
    };
    real.script(&script.replace("MINE", MINE).replace("DEFAULT ROLE", role));
}

fn small() -> Account {
    Account::new("small", "small").schema("mine")
}

/// The number of each answer's error, or 0.
fn may(client: &mut Client) -> Vec<u16> {
    let code = |sql: &&str| match &client.query(sql).unwrap()[..] {
        [Outcome::Failed(failure)] => failure.code,
        _ => 0,
    };
    ASKED.iter().map(code).collect()
}

/// Rights of a new login; `None` where it is refused, at once or at its first statement.
fn may_login(address: &reactor::Address) -> Option<Vec<u16>> {
    let mut client = Client::connect(address, &small()).ok()?;
    Some(may(&mut client)).filter(|codes| codes[4] == 0)
}

/// Tries until a login has what is expected: a statement may take effect after the pool has noticed
/// that it began.
fn await_rights(pool: &Pool, what: &str, expected: &Option<Vec<u16>>) {
    until(|| match may_login(&pool.address) {
        rights if rights == *expected => Ok(()),
        rights => Err(format!("{what}: {rights:?}")),
    });
}

const SMALL: &str = "DROP USER IF EXISTS small@'%', smaller@'%'; \
    CREATE USER small@'%' IDENTIFIED BY 'small'";

fn changes_of_accounts_are_seen(real: &Real) {
    for schema in ["mine", "theirs"] {
        fresh_schema(real, schema);
        real.execute(&[&format!("CREATE TABLE {schema}.t (a INT)")]);
    }
    real.execute(&["CREATE ROLE duty"]);
    for [name, first, then] in table(&CHANGES.replace("\n        =>", " =>")) {
        let what = format!("{:?}: {name}", real.flavour());
        real.script(SMALL);
        run(real, first);
        let mut own = login(&real.address(), &small());
        let before = may(&mut own);
        // It knows what was before it began.
        let pool = fresh_pool(real, "backends_max = 8\ngroups = 1");
        let mut through = login(&pool.address, &small());
        assert_eq!(may(&mut through), before, "{what}: before");
        run(real, then);
        let expected = may_login(&real.address());
        pool.wait_for(&format!("{TOLD} (Com_")).unwrap();
        await_rights(&pool, &what, &expected);
        assert_eq!(may(&mut through), may(&mut own), "{what}: a session before");
        // Both start over with what a login has now; a reset reads nothing.
        if expected.is_some() {
            for client in [&mut own, &mut through] {
                client.change_user(&small()).unwrap();
                assert_eq!(Some(may(client)), expected, "{what}: a change of user");
            }
        }
        login(&pool.address, &app()).must("SELECT 1");
    }
}

/// Sessions of three versions share one backend: each statement is served, and who has lost the
/// backend of its time goes on with the privileges of now.
fn few_backends_serve_sessions_of_before_and_after(real: &Real) {
    real.script(SMALL);
    run(real, "MINE");
    let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
    let mut clients = Vec::new();
    for (then, counter) in [
        ("GRANT PROCESS ON *.* TO", "grant"),
        ("REVOKE PROCESS ON *.* FROM", "revoke"),
    ] {
        clients.push(login(&pool.address, &small()));
        for client in &mut clients {
            client.must("SELECT 1");
        }
        run(real, &format!("{then} small@'%'"));
        pool.wait_for(&format!("{TOLD} (Com_{counter})")).unwrap();
    }
    let expected = may_login(&real.address());
    await_rights(&pool, "few", &expected);
    for client in &mut clients {
        assert_eq!(Some(may(client)), expected);
    }
}

#[test]
fn changes_of_accounts_are_seen_on_pooled_servers() {
    for real in own_servers(&[]) {
        changes_of_accounts_are_seen(&real);
        few_backends_serve_sessions_of_before_and_after(&real);
    }
}
