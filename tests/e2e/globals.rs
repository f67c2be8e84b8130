//! SET GLOBAL on the server: who logged in before it keeps the old values, who logs in after it has
//! the new ones, though both share backends of before and after.

use crate::world::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::capabilities::INTERACTIVE;

const ONE: &str = "groups = 1\nbackends_max = 1\nwait_ms_max = 20000";
const TOLD: &str = "the server's global values have changed";

/// Servers of these tests' own, for one test at a time; the next finds them as they began.
fn servers() -> Servers {
    static SERVERS: Mutex<Option<Vec<Real>>> = Mutex::new(None);
    let mut guard = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let both = guard.get_or_insert_with(|| own_servers(&["--interactive-timeout=2345"]).collect());
    for real in both {
        fresh_schema(real, "shop");
        let sql = "CREATE USER IF NOT EXISTS small@'%' IDENTIFIED BY 'small'";
        real.execute(&[sql, "GRANT ALL ON shop.* TO small@'%'"]);
    }
    Servers(guard)
}

struct Servers(MutexGuard<'static, Option<Vec<Real>>>);

impl Servers {
    fn run(&self, story: impl Fn(&Real)) {
        for real in self.0.iter().flatten() {
            let mut admin = real.admin();
            let names = list(real.flavour()).into_iter().map(|(name, _)| name);
            let names: Vec<String> = names.collect();
            let before: Vec<String> = names
                .iter()
                .map(|name| admin.value(&format!("SELECT QUOTE(@@{name})")))
                .collect();
            story(real);
            for (name, value) in names.iter().zip(before) {
                let number = value.trim_matches('\'').parse::<f64>().is_ok();
                let value = if number {
                    value.trim_matches('\'')
                } else {
                    &value
                };
                admin.must(&format!("SET @@{name} = {value}"));
            }
        }
    }
}

fn join(pool: &Pool) -> Client {
    login(&pool.address, &app())
}

/// A session's variables, but for those that each statement or connection has of its own, and for
/// what the pool needs of the trackers.
fn shown(client: &mut Client) -> BTreeMap<String, String> {
    const OWN: [&str; 11] = [
        "timestamp",
        "pseudo_thread_id",
        "rand_seed1",
        "rand_seed2",
        "statement_id",
        "gtid_",
        "innodb_",
        "error_count",
        "warning_count",
        "session_track_",
        "last_insert_id",
    ];
    let rows = client.rows("SHOW SESSION VARIABLES").texts();
    // Without autocommit that was a transaction's first statement.
    client.must("COMMIT");
    let mut all = BTreeMap::new();
    for row in rows {
        let name = row[0].clone();
        if !OWN.iter().any(|own| name.starts_with(own)) {
            all.insert(name, row[1].clone());
        }
    }
    all
}

/// One of each kind: numbers, switches, sets, names, times, and what servers write otherwise than
/// they show it.
const CHANGES: [&str; 18] = [
    "sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'",
    "time_zone = '+03:00'",
    "autocommit = 0",
    "group_concat_max_len = 4321",
    "lock_wait_timeout = 77",
    "long_query_time = 3.5",
    "foreign_key_checks = 0",
    "unique_checks = 0",
    "sql_safe_updates = 1",
    "default_storage_engine = MyISAM",
    "optimizer_switch = 'index_merge=off'",
    "lc_time_names = 'de_DE'",
    "default_week_format = 3",
    "max_error_count = 7",
    "sql_select_limit = 50000",
    "wait_timeout = 1234",
    "transaction_isolation = 'READ-COMMITTED'",
    "div_precision_increment = 9",
];

/// Names with their scope, and new values.
fn list(flavour: Flavour) -> Vec<(String, String)> {
    let own = |change: &str| match flavour {
        Flavour::MariaDb => change.replace("transaction_isolation", "tx_isolation"),
        Flavour::MySql => change.to_string(),
    };
    let parts = |change: &&str| {
        let change = own(change);
        let (name, value) = change.split_once(" = ").unwrap();
        (format!("GLOBAL.{name}"), value.to_string())
    };
    CHANGES.iter().map(parts).collect()
}

fn change(real: &Real, pool: &Pool) {
    let all: Vec<String> = list(real.flavour())
        .iter()
        .map(|(name, value)| format!("@@{name} = {value}"))
        .collect();
    real.execute(&[&format!("SET {}", all.join(", "))]);
    pool.wait_for(TOLD).unwrap();
}

/// MariaDB lets no session switch its query cache on while it is off for all; who has it on keeps
/// it.
#[test]
fn a_query_cache_that_is_on_stays_on_when_it_is_off_for_others() {
    servers().run(|real| {
        if real.flavour() == Flavour::MySql {
            return;
        }
        real.execute(&["SET GLOBAL query_cache_type = ON"]);
        let two = "groups = 1\nbackends_max = 2\nwait_ms_max = 20000";
        let pool = fresh_pool(real, two);
        let (mut sets, mut begun) = (join(&pool), join(&pool));
        sets.must("SET query_cache_type = DEMAND");
        real.execute(&["SET GLOBAL query_cache_type = OFF"]);
        pool.wait_for(TOLD).unwrap();
        let asks = "SELECT @@query_cache_type";
        let mut new = join(&pool);
        assert_eq!(new.value(asks), "OFF");
        assert_eq!(sets.value(asks), "DEMAND");
        // The only other backend has it off, and there is no way back.
        assert_eq!(begun.failure(asks).code, 1105);
        for client in [&mut begun, &mut new] {
            assert_eq!(client.value(asks), "OFF");
        }
        assert_eq!(sets.value(asks), "DEMAND");
    });
}

#[test]
fn a_session_keeps_the_values_of_its_beginning() {
    servers().run(|real| {
        let (mut old, new);
        let pool = fresh_pool(real, ONE);
        let mut straight = login(&real.address(), &app());
        let before = shown(&mut straight);
        old = join(&pool);
        assert_eq!(shown(&mut old), before, "{:?}", real.flavour());
        change(real, &pool);
        let after = shown(&mut login(&real.address(), &app()));
        assert_ne!(before, after);
        let mut joined = join(&pool);
        for _ in 0..2 {
            assert_eq!(shown(&mut joined), after, "{:?}", real.flavour());
            assert_eq!(shown(&mut old), before, "{:?}", real.flavour());
        }
        new = &mut joined;
        // Texts are cut as the session's own `sql_mode` has it, by the pool as by the server.
        assert_eq!(old.value(r#"SELECT "it's text""#), "it's text");
        assert_eq!(new.failure(r#"SELECT "it's a name""#).code, 1054);
        // What goes back to its default takes the value of now, as does a session started over.
        old.must("SET group_concat_max_len = DEFAULT");
        assert_eq!(old.value("SELECT @@group_concat_max_len"), "4321");
        let asked = "SELECT @@lock_wait_timeout";
        assert_eq!(old.value(asked), before["lock_wait_timeout"]);
        old.run(Command::ResetConnection, &[]).unwrap();
        assert_eq!(shown(&mut old)["lock_wait_timeout"], "77");
    });
}

/// A backend of before and one of after serve both.
#[test]
fn backends_of_before_and_after_serve_both() {
    servers().run(|real| {
        let pool = fresh_pool(real, &ONE.replace("= 1\nwait", "= 2\nwait"));
        let (mut old, mut holder) = (join(&pool), join(&pool));
        let before = old.value("SELECT @@lock_wait_timeout");
        change(real, &pool);
        let mut new = join(&pool);
        for pins in ["old", "new"] {
            // Who holds a backend leaves the other one to the two.
            holder.must(HOLD);
            for _ in 0..2 {
                assert_eq!(new.value("SELECT @@lock_wait_timeout"), "77", "{pins}");
                assert_eq!(old.value("SELECT @@lock_wait_timeout"), before, "{pins}");
                assert_eq!(old.value("SELECT @@autocommit"), "1", "{pins}");
                new.must("COMMIT");
            }
            holder.must("ROLLBACK");
            new.script("SELECT 1; COMMIT");
        }
    });
}

/// A backend that is dialled before the change is known begins with it. Who logged in before that
/// commits as ever: nothing would end the transaction, and the write would be lost.
#[test]
fn a_write_is_committed_on_a_backend_that_began_without_autocommit() {
    servers().run(|real| {
        let two = "groups = 1\nbackends_max = 2\nbackends_min = 0\nwait_ms_max = 20000";
        let pool = fresh_pool(real, two);
        let (mut old, mut holder) = (join(&pool), join(&pool));
        real.execute(&["CREATE TABLE shop.committed (v INT)"]);
        // Only the other backend is left, and that is not there yet.
        holder.must(HOLD);
        real.execute(&["SET GLOBAL autocommit = 0"]);
        old.must("INSERT INTO shop.committed VALUES (1)");
        let mut other = real.admin();
        let count = other.value("SELECT COUNT(*) FROM shop.committed");
        real.execute(&["SET GLOBAL autocommit = 1"]);
        assert_eq!(count, "1");
        holder.must("ROLLBACK");
        drop((old, holder, other));
        real.execute(&["DROP TABLE shop.committed"]);
    });
}

/// Statements prepared before are prepared again under the values of its session.
#[test]
fn what_was_prepared_before_means_the_same_after() {
    servers().run(|real| {
        let pool = fresh_pool(real, ONE);
        let mut old = join(&pool);
        let id = old.prepare(r#"SELECT "it's text""#).id;
        old.execute(id, &[], false).unwrap();
        change(real, &pool);
        let mut new = join(&pool);
        assert_eq!(new.failure(r#"SELECT "it's a name""#).code, 1054);
        new.must("COMMIT");
        let said = format!("{:?}", old.execute(id, &[], false).unwrap());
        assert!(said.contains("it's text"), "{said}");
    });
}

/// A SET GLOBAL through the pool is looked at at once.
#[test]
fn a_change_through_the_pool_is_told() {
    servers().run(|real| {
        let pool = fresh_pool(real, ONE);
        let mut one = join(&pool);
        one.must("SET GLOBAL lock_wait_timeout = 109");
        pool.wait_for(&format!("{TOLD} (lock_wait_timeout)"))
            .unwrap();
        assert_eq!(join(&pool).value("SELECT @@lock_wait_timeout"), "109");
        assert_ne!(one.value("SELECT @@lock_wait_timeout"), "109");
    });
}

/// An interactive login waits as long as `interactive_timeout` says, a session started over does
/// not.
#[test]
fn an_interactive_login_has_its_own_wait_timeout() {
    servers().run(|real| {
        let interactive = app().with(INTERACTIVE);
        let tell = |address: &Address| {
            let mut one = login(address, &interactive);
            let mut other = login(address, &interactive);
            one.must("SET wait_timeout = 500");
            let mut told = vec![other.value("SELECT @@wait_timeout")];
            one.run(Command::ResetConnection, &[]).unwrap();
            told.push(one.value("SELECT @@wait_timeout"));
            told.push(other.value("SELECT @@wait_timeout"));
            told
        };
        let pool = fresh_pool(real, ONE);
        let straight = tell(&real.address());
        assert_eq!(straight[0], "2345");
        assert_eq!(tell(&pool.address), straight, "{:?}", real.flavour());
    });
}

/// Effects of `init_connect` on the sessions of plain accounts: each of their clients begins with
/// them, and administrators do not; so it is for who logs in before any backend is there.
#[test]
fn a_login_begins_with_init_connect() {
    const SETS: &str = "SET @@global.init_connect = \"SET NAMES latin1 COLLATE latin1_german1_ci, \
         time_zone = '+05:00', sql_mode = 'ANSI_QUOTES', div_precision_increment = 7, \
         autocommit = 0\"";
    servers().run(|real| {
        let admin_pool = fresh_pool(real, ONE);
        let mut before = login(&admin_pool.address, &Account::new("small", "small"));
        assert_ne!(shown(&mut before)["time_zone"], "+05:00");
        let wide = ONE.replace("= 1\nwait", "= 4\nwait");
        let pool = fresh_pool(real, &wide);
        real.execute(&[SETS]);
        for pool in [&admin_pool, &pool] {
            pool.wait_for(&format!("{TOLD} (init_connect)")).unwrap();
        }
        let tell = |address: &Address| {
            let mut told = Vec::new();
            let mut small = login(address, &Account::new("small", "small").schema("shop"));
            let mut other = login(address, &Account::new("small", "small"));
            let mut app = login(address, &app());
            for _ in 0..2 {
                told.push(shown(&mut small));
                told.push(shown(&mut app));
                told.push(shown(&mut other));
            }
            small.must("SET time_zone = '+01:00', sql_mode = ''");
            told.push(shown(&mut other));
            told.push(shown(&mut small));
            other.run(Command::ResetConnection, &[]).unwrap();
            told.push(shown(&mut other));
            told.push(shown(&mut small));
            told
        };
        let straight = tell(&real.address());
        assert_eq!(straight[0]["time_zone"], "+05:00");
        assert_eq!(tell(&pool.address), straight, "{:?}", real.flavour());
        assert_ne!(shown(&mut before)["time_zone"], "+05:00");
        real.execute(&["SET @@global.init_connect = ''"]);
    });
}
