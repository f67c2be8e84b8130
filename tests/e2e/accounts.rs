//! `auth = "server"`: the accounts of the server log in through the pool as they do on the server.

use crate::world::{binary, config_file, direct, found};
use reactor::Address;
use testkit::client::{Client, ClientError};
use testkit::onramp::Pool;
use testkit::real::{Flavour, Real, skipped};
use testkit::reply::Outcome;
use testkit::talk::Account;

/// The account that reads the others has no more than this.
const SERVICE: &str = "CREATE USER watcher@'%' IDENTIFIED BY 'watching'";

fn least(real: &Real) -> &'static str {
    match real.flavour() {
        Flavour::MariaDb => "GRANT SELECT ON mysql.global_priv TO watcher@'%'",
        Flavour::MySql => "GRANT SELECT ON mysql.user TO watcher@'%'",
    }
}

/// Lets the server's accounts in; `more` are users of the pool's own.
fn text(real: &Real, more: &str) -> String {
    format!(
        "auth = \"server\"\ngroups = 2\nbackends_max = 8\n[backend]\naddress = \"{}\"\n\
         monitor_user = \"watcher\"\nmonitor_password = \"watching\"\n{more}",
        real.address()
    )
}

fn start(real: &Real, name: &str, more: &str) -> Pool {
    let file = config_file(real, name, &text(real, more));
    Pool::start(binary(), &["--config", file.to_str().unwrap()])
        .unwrap_or_else(|why| panic!("{why}"))
}

/// What comes of a login and a first statement: the account that it is, or the error.
fn outcome(address: &Address, account: &Account) -> Result<String, (u16, String)> {
    match Client::connect(address, account) {
        Ok(mut client) => match &client.query("SELECT CURRENT_USER()").unwrap()[..] {
            [Outcome::Failed(failure)] => Err((failure.code, failure.message.clone())),
            [Outcome::Rows(rows)] => Ok(format!("{:?}", rows.rows)),
            other => panic!("{other:?}"),
        },
        Err(ClientError::Refused(failure)) => Err((failure.code, failure.message)),
        Err(other) => panic!("{}: {other}", account.user),
    }
}

/// Tries until a login through the pool ends as one on the server does: what has been changed there
/// is followed within a second or two.
fn follows(
    real: &Real,
    pool: &Pool,
    what: &str,
    account: &Account,
) -> Result<String, (u16, String)> {
    let own = outcome(&real.address(), account);
    let mut through = outcome(&pool.address, account);
    let mut admin = real.admin();
    for _ in 0..200 {
        if through == own {
            return own;
        }
        admin.must("DO SLEEP(0.05)");
        through = outcome(&pool.address, account);
    }
    panic!("{what}: on the server {own:?}, through the pool {through:?}");
}

/// What is done to the account, one after another, and whether it may log in with `pw` then.
fn changes(flavour: Flavour) -> Vec<(&'static str, bool)> {
    let mut changes = vec![
        ("CREATE USER u@'%' IDENTIFIED {NATIVE} 'pw'", true),
        ("ALTER USER u@'%' IDENTIFIED {NATIVE} 'other'", false),
        ("SET PASSWORD FOR u@'%' = {PASSWORD}", true),
        ("ALTER USER u@'%' ACCOUNT LOCK", false),
        ("ALTER USER u@'%' ACCOUNT UNLOCK", true),
        ("GRANT SELECT ON mysql.proc TO u@'%'", true),
        ("ALTER USER u@'%' REQUIRE SSL", false),
        ("ALTER USER u@'%' REQUIRE NONE", true),
        ("RENAME USER u@'%' TO v@'%'", false),
        ("RENAME USER v@'%' TO u@'%'", true),
        ("DROP USER u@'%'", false),
        ("CREATE USER u@'127.0.0.1' IDENTIFIED {NATIVE} 'pw'", true),
        (
            "CREATE USER u@'127.%' IDENTIFIED {NATIVE} 'less specific'",
            true,
        ),
        ("DROP USER u@'127.0.0.1'", false),
        (
            "CREATE USER ''@'127.0.0.1' IDENTIFIED {NATIVE} 'anonymous'",
            false,
        ),
        ("DROP USER ''@'127.0.0.1'", false),
        ("ALTER USER u@'127.%' IDENTIFIED {NATIVE} 'pw'", true),
        ("DROP USER u@'127.%'", false),
        (
            "CREATE USER u@'127.0.0.0/255.0.0.0' IDENTIFIED {NATIVE} 'pw'",
            true,
        ),
        ("DROP USER u@'127.0.0.0/255.0.0.0'", false),
        ("CREATE USER u@'10.%' IDENTIFIED {NATIVE} 'pw'", false),
        ("DROP USER u@'10.%'", false),
        ("CREATE USER u@'%' IDENTIFIED {NATIVE} ''", false),
    ];
    if flavour == Flavour::MySql {
        changes.retain(|(sql, _)| !sql.contains("mysql.proc"));
    }
    changes
}

fn in_words(flavour: Flavour, sql: &str) -> String {
    let (native, password) = match flavour {
        Flavour::MariaDb => ("BY", "PASSWORD('pw')"),
        Flavour::MySql => ("WITH caching_sha2_password BY", "'pw'"),
    };
    sql.replace("{NATIVE}", native)
        .replace("{PASSWORD}", password)
}

fn accounts_are_those_of_the_server(real: &Real) {
    real.execute(&[SERVICE, least(real)]);
    let pool = start(real, "accounts.toml", "");
    let who = Account::new("u", "pw");
    assert!(follows(real, &pool, "nobody", &who).is_err());
    for (sql, may) in changes(real.flavour()) {
        let sql = in_words(real.flavour(), sql);
        // Errors come with the wrong password before anything else.
        let wrong = Account::new("u", "wrong");
        real.execute(&[&sql]);
        let own = follows(real, &pool, &sql, &who);
        assert_eq!(own.is_ok(), may, "{sql}: {own:?}");
        let _ = follows(real, &pool, &format!("{sql}, wrong password"), &wrong);
        let _ = follows(
            real,
            &pool,
            &format!("{sql}, no password"),
            &Account::new("u", ""),
        );
    }
}

#[test]
fn accounts_are_those_of_the_server_on_mariadb() {
    let test = "accounts_are_those_of_the_server_on_mariadb";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    if let Some(real) = found(Real::start(&[]), test) {
        accounts_are_those_of_the_server(&real);
    }
}
