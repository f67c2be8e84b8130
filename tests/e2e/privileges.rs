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

/// Rights of the account at first, and what is changed then.
struct Change {
    name: &'static str,
    first: &'static [&'static str],
    then: &'static [&'static str],
}

const fn change(
    name: &'static str,
    first: &'static [&'static str],
    then: &'static [&'static str],
) -> Change {
    Change { name, first, then }
}

const MINE: &str = "GRANT SELECT ON mine.* TO small@'%'";
const CHANGES: &[Change] = &[
    change(
        "GRANT, global",
        &[MINE],
        &["GRANT PROCESS ON *.* TO small@'%'"],
    ),
    change(
        "REVOKE, global",
        &[MINE, "GRANT PROCESS ON *.* TO small@'%'"],
        &["REVOKE PROCESS ON *.* FROM small@'%'"],
    ),
    change(
        "REVOKE, all schemas",
        &["GRANT SELECT ON *.* TO small@'%'"],
        &["REVOKE SELECT ON *.* FROM small@'%'"],
    ),
    change(
        "GRANT, schema",
        &[MINE],
        &["GRANT SELECT ON theirs.* TO small@'%'"],
    ),
    change(
        "REVOKE, default schema",
        &[MINE, "GRANT SELECT ON theirs.* TO small@'%'"],
        &["REVOKE SELECT ON mine.* FROM small@'%'"],
    ),
    change(
        "GRANT, table",
        &[MINE],
        &["GRANT SELECT ON theirs.t TO small@'%'"],
    ),
    change(
        "REVOKE, table",
        &["GRANT SELECT ON mine.t TO small@'%'"],
        &["REVOKE SELECT ON mine.t FROM small@'%'"],
    ),
    change(
        "REVOKE ALL",
        &[MINE, "GRANT PROCESS ON *.* TO small@'%'"],
        &["REVOKE ALL PRIVILEGES, GRANT OPTION FROM small@'%'"],
    ),
    change("DROP USER", &[MINE], &["DROP USER small@'%'"]),
    change(
        "ALTER USER, password",
        &[MINE],
        &["ALTER USER small@'%' IDENTIFIED BY 'another'"],
    ),
    change(
        "ALTER USER, lock",
        &[MINE],
        &["ALTER USER small@'%' ACCOUNT LOCK"],
    ),
    change(
        "RENAME USER",
        &[MINE],
        &["RENAME USER small@'%' TO smaller@'%'"],
    ),
    change(
        "a role's privileges",
        &[MINE, "GRANT duty TO small@'%'", "DEFAULT ROLE"],
        &["GRANT SELECT ON theirs.* TO duty"],
    ),
];

/// The default role of `small`, in the words of this server.
fn in_words(real: &Real, sql: &str) -> String {
    match (sql, real.flavour()) {
        ("DEFAULT ROLE", testkit::real::Flavour::MariaDb) => {
            "SET DEFAULT ROLE duty FOR small@'%'".into()
        }
        ("DEFAULT ROLE", _) => "ALTER USER small@'%' DEFAULT ROLE duty".into(),
        _ => sql.into(),
    }
}

fn run(real: &Real, statements: &[&str]) {
    let texts: Vec<String> = statements.iter().map(|sql| in_words(real, sql)).collect();
    real.execute(&texts.iter().map(String::as_str).collect::<Vec<_>>());
}

fn small() -> Account {
    Account::new("small", "small").schema("mine")
}

/// The number of each answer's error, or 0.
fn may(client: &mut Client) -> Vec<u16> {
    let code = |sql: &&str| {
        let outcomes = client.query(sql).unwrap();
        match &outcomes[..] {
            [Outcome::Failed(failure)] => failure.code,
            _ => 0,
        }
    };
    ASKED.iter().map(code).collect()
}

/// Rights of a new login; `None` where it is refused, at once or at its first statement.
fn may_login(address: &reactor::Address) -> Option<Vec<u16>> {
    let mut client = Client::connect(address, &small()).ok()?;
    Some(may(&mut client)).filter(|codes| codes[4] == 0)
}

/// Tries until a login has what is expected, ten seconds at most: a statement may take effect after
/// the pool has noticed that it began.
fn until(real: &Real, what: &str, noticed: impl Fn() -> bool) {
    let mut admin = real.admin();
    for _ in 0..200 {
        if noticed() {
            return;
        }
        admin.must("DO SLEEP(0.05)");
    }
    panic!("{what}: the pool does not see it");
}

fn changes_of_accounts_are_seen(real: &Real) {
    run(
        real,
        &[
            "CREATE DATABASE mine",
            "CREATE DATABASE theirs",
            "CREATE TABLE mine.t (a INT)",
            "CREATE TABLE theirs.t (a INT)",
            "CREATE ROLE duty",
        ],
    );
    for change in CHANGES {
        let what = format!("{:?}: {}", real.flavour(), change.name);
        run(
            real,
            &[
                "DROP USER IF EXISTS small@'%', smaller@'%'",
                "CREATE USER small@'%' IDENTIFIED BY 'small'",
            ],
        );
        run(real, change.first);
        let mut own = login(&real.address(), &small());
        let first = may(&mut own);
        // It knows what was before it began.
        let pool = fresh_pool(real, "backends_max = 8\ngroups = 1");
        let mut through = login(&pool.address, &small());
        assert_eq!(may(&mut through), first, "{what}: before");
        run(real, change.then);
        let expected = may_login(&real.address());
        pool.wait_for(&format!("{TOLD} (Com_")).unwrap();
        until(real, &what, || may_login(&pool.address) == expected);
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
    run(
        real,
        &[
            "DROP USER IF EXISTS small@'%'",
            "CREATE USER small@'%' IDENTIFIED BY 'small'",
            MINE,
        ],
    );
    let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
    let mut clients = Vec::new();
    for then in [
        "GRANT PROCESS ON *.* TO small@'%'",
        "REVOKE PROCESS ON *.* FROM small@'%'",
    ] {
        clients.push(login(&pool.address, &small()));
        for client in &mut clients {
            client.must("SELECT 1");
        }
        run(real, &[then]);
        pool.wait_for(&format!(
            "{TOLD} (Com_{})",
            &then[..then.find(' ').unwrap()].to_lowercase()
        ))
        .unwrap();
    }
    let expected = may_login(&real.address());
    until(real, "few", || may_login(&pool.address) == expected);
    for client in &mut clients {
        assert_eq!(Some(may(client)), expected);
    }
}

#[test]
fn changes_of_accounts_are_seen_on_pooled_servers() {
    for real in own_servers(&[]) {
        real.create_user("app", "app");
        changes_of_accounts_are_seen(&real);
        few_backends_serve_sessions_of_before_and_after(&real);
    }
}
