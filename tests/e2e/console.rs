//! The console: what it shows of a running pool, what its commands do, and that it answers when
//! nothing else does.

use crate::on_call::first_row;
use crate::world::*;

pub(crate) const CONSOLE: &str = "[console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
                       admin_password = \"secret\"\nreader_user = \"reader\"\n\
                       reader_password = \"other\"\n";

/// A pool with a console, and where that is.
pub(crate) fn start(real: &Real, name: &str, extra: &str) -> (Pool, Address) {
    let pool = start_pool(real, name, &format!("{extra}\n{CONSOLE}"));
    let place = console_of(&pool);
    (pool, place)
}

pub(crate) fn admin(place: &Address) -> Client {
    login(place, &Account::new("admin", "secret"))
}

/// The rows of an answer, as texts.
pub(crate) fn rows(client: &mut Client, text: &str) -> Vec<Vec<String>> {
    let reply = client.rows(text);
    let shown = |value: &Option<Vec<u8>>| match value {
        Some(value) => String::from_utf8(value.clone()).unwrap(),
        None => "NULL".to_owned(),
    };
    let rows = reply.rows.iter();
    rows.map(|row| row.iter().map(shown).collect()).collect()
}

/// Waits until a question has these rows: figures are half a second old at most.
pub(crate) fn await_rows<T: std::fmt::Debug>(console: &mut Client, question: &str, expected: T)
where
    Vec<Vec<String>>: PartialEq<T>,
{
    until(|| match rows(console, question) {
        shown if shown == expected => Ok(()),
        shown => Err(format!("{question}: {shown:?}, not {expected:?}")),
    });
}

#[test]
fn the_console_shows_clients_and_commands_reach_them() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "console.toml", "groups = 2");
    let mut console = admin(&place);
    let mut holder = login(&pool.address, &app());
    holder.must("SELECT GET_LOCK('console', 0)");
    holder.must(HOLD);
    let mut other = login(&pool.address, &app());
    other.must("SELECT 1");
    let id = rows(&mut holder, "SELECT CONNECTION_ID()")
        .remove(0)
        .remove(0);
    let pinned =
        "SELECT id, user, state, substr(pins, 1, 10), pinned_by FROM clients WHERE pins > ''";
    let shown = rows(&mut console, pinned);
    let lock = "SELECT GET_LOCK(...";
    assert_eq!(shown, [[&*id, "app", "holding", "user_lock ", lock]]);
    let joined = "SELECT count(*) FROM clients JOIN groups USING (group_id)";
    assert_eq!(rows(&mut console, joined), [["2"]]);
    // mysqladmin status.
    let said = console.run(Command::Statistics, b"").unwrap();
    let [Outcome::Text(said)] = &said[..] else {
        panic!("{said:?}");
    };
    let names = ["Uptime: ", "  Threads: ", "  Questions: "];
    assert!(names.iter().all(|name| said.contains(name)), "{said}");
    // The same client by the backend's side.
    let held = rows(&mut console, &format!("SHOW BACKENDS WHERE client = {id}"));
    assert_eq!(held.len(), 1);
    // Nobody waits for more than a free backend while the pool is paused; who has one goes on.
    console.must("PAUSE");
    assert!(console.failure("PAUSE").message.contains("already paused"));
    send(&mut other, "SELECT 2");
    first_row(&mut console, "SHOW CLIENTS WHERE state = 'waiting'");
    holder.must("SELECT 3");
    console.must("RESUME");
    assert_eq!(other.receive().unwrap().len(), 1);
    // Each backend is another one from now on, but for that of the transaction.
    let thread = "SELECT thread FROM backends WHERE client IS NULL";
    let before = rows(&mut console, thread);
    console.must("RECONNECT");
    other.must("SELECT 4");
    let after = rows(&mut console, thread);
    let are_new = after.iter().all(|row| !before.contains(row));
    assert!(are_new, "{before:?} {after:?}");
    let held = rows(&mut console, &format!("SHOW BACKENDS WHERE client = {id}"));
    assert_eq!(held.len(), 1);
    holder.must("SELECT 5");
    console.must(&format!("KILL {id}"));
    assert!(holder.query("SELECT 6").is_err());
    let unknown = console.failure("KILL 77");
    assert_eq!(unknown.code, 1094, "{unknown:?}");
    says(&unknown.message, "Unknown thread id: 77");
    let too_large = console.failure("KILL QUERY 77777777777");
    assert_eq!(too_large.code, 1094, "{too_large:?}");
    logs(&pool, "'admin' has said KILL ", &id);
    let refused = "'admin' has said KILL 77, which was refused: Unknown thread id: 77";
    pool.wait_for(refused).unwrap();
    assert_eq!(console.failure("SELECT * FROM nosuch").code, 1146);
    console.must("SET GLOBAL backends_max = 4");
    pool.wait_for("backends_max is 4 now").unwrap();
    let said = pool.said();
    assert!(!said.contains("(max_connections)"), "{said}");
}

#[test]
fn statements_are_counted_without_their_values() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "statements.toml", "digests_max = 16\ngroups = 1");
    let mut client = login(&pool.address, &app());
    let ours = |sql: &str| format!("{sql} /* counted */");
    for secret in ["'a'", "'bb'", "17", "0xff"] {
        client.must(&ours(&format!(
            "SELECT {secret} AS secret, 1 UNION SELECT 2, 3"
        )));
    }
    client.failure("SELECT * FROM missing WHERE id = 5");
    // Prepared and as text it is the same statement.
    let prepared = client.prepare("SELECT ? AS secret, 1 UNION SELECT ?, 3");
    let params: [Option<&[u8]>; 2] = [Some(b"x"), Some(b"y")];
    client.execute(prepared.id, &params, false).unwrap();
    let mut console = admin(&place);
    let question = "SELECT statement, count, errors, rows, digest IS NOT NULL, \
                    service_seconds >= service_max_seconds FROM statements WHERE count > 0 \
                    AND statement NOT LIKE 'SET %' ORDER BY count DESC";
    let union = "SELECT ? AS secret, ? UNION SELECT ?, ...";
    let missing = "SELECT * FROM missing WHERE id = ?";
    let expected = [
        [union, "5", "0", "10", "1", "1"],
        [missing, "1", "1", "0", "1", "1"],
    ];
    await_rows(&mut console, question, expected);
    // More than there may be: the bound holds, and nothing is lost of the sums.
    for name in 0..40 {
        client.must(&format!("SELECT 1 AS column_{name}"));
    }
    let sums = "SELECT sum(count) >= 46, count(*) <= 17, sum(digest IS NULL) FROM statements";
    await_rows(&mut console, sums, [["1", "1", "1"]]);
}

#[test]
fn slow_statements_are_logged() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "slow-statements.toml", "slow_statement_ms = 20");
    let mut client = login(&pool.address, &app());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sql = format!("SELECT SLEEP(0.03), 'secret' /*traceparent='{trace}'*/");
    client.must(&sql);
    let line = pool.wait_for("SELECT SLEEP(?), ?").unwrap();
    let parts = "level=warning event=slow-statement account=\"app\" rows=1 traceparent=";
    for part in words(parts)
        .into_iter()
        .chain([trace, "message=SELECT SLEEP(?), ?"])
    {
        says(&line, part);
    }
    assert!(!line.contains("secret"), "{line}");
    // The digest is the one of the console.
    let (_, digest) = line.split_once("digest=").unwrap();
    let digest = digest.split(' ').next().unwrap();
    let mut console = admin(&place);
    let question = format!("SELECT statement FROM statements WHERE digest = '{digest}'");
    await_rows(&mut console, &question, [["SELECT SLEEP(?), ?"]]);
    // A prepared one, and one that fails.
    let prepared = client.prepare("SELECT SLEEP(?) AS prepared");
    client
        .execute(prepared.id, &[Some(b"0.04")], false)
        .unwrap();
    pool.wait_for("message=SELECT SLEEP(?) AS prepared")
        .unwrap();
    client.failure("SELECT SLEEP(0.05) FROM (SELECT 1) AS a WHERE (SELECT 1 UNION SELECT 2)");
    drop(client);

    let extra = "slow_statement_ms = 20\nslow_statement_values = true\nlog_format = \"json\"";
    let pool = fresh_pool(real, extra);
    let mut client = login(&pool.address, &app());
    client.must("SELECT SLEEP(0.03), 'shown'");
    logs(
        &pool,
        "SELECT SLEEP(0.03), 'shown'",
        "\"event\":\"slow-statement\"",
    );
    drop(client);

    // What takes less is not logged.
    let pool = fresh_pool(real, "slow_statement_ms = 86400000");
    login(&pool.address, &app()).must("SELECT 'quick'");
    pool.wait_for_census("statements: 1,").unwrap();
    assert!(!pool.said().contains("slow-statement"), "{}", pool.said());
}

/// The line of the log about the statement of which it says this.
fn logged(pool: &Pool, text: &str) -> String {
    let line = pool.wait_for(text).unwrap();
    assert!(line.contains("event=statement "), "{line}");
    line
}

#[test]
fn all_statements_are_logged_on_request() {
    for real in pooled_servers() {
        let extra = "statement_log = \"masked\"\nstatement_log_per_s_max = 1000000\ngroups = 1";
        let (pool, place) = start(real, "statement-log.toml", extra);
        // What is asked for is logged whatever the level.
        let mut console = admin(&place);
        console.must("SET log_level = 'error'");
        let mut client = login(&pool.address, &app());
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        client.must(&format!("SELECT 'hidden' AS one /*traceparent='{trace}'*/"));
        let line = logged(&pool, " message=SELECT ? AS one");
        let server = format!("server={} ", real.address());
        let parts = "account=\"app\" command=query thread= rows=1 wait_ms= service_ms= digest=";
        for part in words(parts)
            .into_iter()
            .chain([&*server, &format!("traceparent={trace}")])
        {
            says(&line, part);
        }
        client.failure("SELECT * FROM shop.missing WHERE id = 5");
        let line = logged(&pool, "message=SELECT * FROM shop.missing WHERE id = ?");
        assert!(line.contains("rows=0 error=1146 "), "{line}");
        let prepared = client.prepare("SELECT ? AS bound, 'hidden' AS also");
        let shown = "message=SELECT ? AS bound, ? AS also";
        let line = logged(&pool, shown);
        assert!(line.contains("command=prepare"), "{line}");
        client
            .execute(prepared.id, &[Some(b"hidden")], false)
            .unwrap();
        let line = logged(&pool, &format!("command=execute {server}"));
        assert!(line.contains(shown) && line.contains("rows=1"), "{line}");
        // What the pool answers itself, with an error or without.
        client.must("BEGIN");
        let line = logged(&pool, "message=BEGIN");
        says(&line, "reason=pool");
        assert!(!line.contains("error="), "{line}");
        client.failure("SET onramp_priority = 'none'");
        let line = logged(&pool, "message=SET onramp_priority = ?");
        says(&line, "reason=pool");
        says(&line, "error=");
        assert!(!pool.said().contains("hidden"), "{}", pool.said());
        // A client that is closed while its statement runs.
        let mut closed = login(&pool.address, &app());
        send(&mut closed, "SELECT SLEEP(600) AS cut");
        let running = "SELECT id FROM clients WHERE state = 'running'";
        let id = until(|| {
            let running = rows(&mut console, running).pop();
            running.ok_or_else(|| "no statement runs".to_owned())
        });
        console.must(&format!("KILL {}", id[0]));
        let line = logged(&pool, "message=SELECT SLEEP(?) AS cut");
        says(&line, "reason=client-closed");
        says(&line, &server);
        // One that leaves in the middle of its reply: its socket no longer says where it came from.
        let mut left = login(&pool.address, &app());
        let long = "SELECT REPEAT('a', 1000000) AS unread FROM information_schema.columns LIMIT 40";
        send(&mut left, long);
        // One that is gone before its statement begins has none.
        left.await_answer().unwrap();
        drop(left);
        let line = logged(&pool, "AS unread FROM");
        assert!(line.contains("client=127.0.0.1:"), "{line}");
        // The console changes it, until the settings are read again.
        let shown = "SELECT value, place FROM config WHERE name = 'statement_log'";
        console.must("SET statement_log = 'off'");
        client.must("SELECT 1 AS unseen");
        console.must("SET statement_log = 'literal'");
        assert_eq!(rows(&mut console, shown), [["literal", "console"]]);
        // Whatever a reload can change; what cannot says so.
        console.script("SET backends_max = 3; SET wait_ms_max = 12345");
        for (name, value) in [("backends_max", "3"), ("wait_ms_max", "12345")] {
            let shown = format!("SELECT value, place FROM config WHERE name = '{name}'");
            assert_eq!(rows(&mut console, &shown), [[value, "console"]]);
        }
        // What the pool works out where nothing is written.
        for name in "groups prepared_max memory_bytes_max input_bytes_max".split(' ') {
            let value = console.value(&format!("SELECT value FROM config WHERE name = '{name}'"));
            let is_counted = value.parse::<u64>().is_ok_and(|value| value > 0);
            assert!(is_counted, "{name}: {value}");
        }
        let tls = match real.flavour() {
            Flavour::MariaDb => "off",
            Flavour::MySql => "optional",
        };
        for (name, value) in [("tls.mode", tls), ("backend.monitor_user", "app")] {
            let shown = format!("SELECT value FROM config WHERE name = '{name}'");
            assert_eq!(console.value(&shown), value);
        }
        for [refused, why] in table(
            "SET backends_max = 1000 => without a restart
             SET groups = 3 => read at start only
             SET backend.tls = 'off' => read at start only
             SET console.admin_password = 'secret' => read at start only
             SET GLOBAL nothing = 1 => see SHOW CONFIG
             SET idle_s_max = 0 => SET idle_s_max: expected a number from 1
             SET backends_max = -1 => SET backends_max: expected a number from 1
             SET SESSION backends_max = 2 => the whole pool's
             SET @@backends_max = 2 => the whole pool's",
        ) {
            says(&console.failure(refused).message, why);
        }
        // What was set is taken back.
        let shown = "SELECT value FROM config WHERE name = 'idle_s_max'";
        for back in ["DEFAULT", "'no limit'"] {
            console.must("SET @@GLOBAL.idle_s_max := 500");
            assert_eq!(console.value(shown), "500");
            console.must(&format!("SET idle_s_max = {back}"));
            assert_eq!(console.value(shown), "no limit", "{back}");
        }
        console.must("SET statement_log_users = 'other, small'");
        client.must("SELECT 1 AS unseen");
        console.must("SET statement_log_users = 'other, app'");
        client.must("SELECT 'value' AS seen");
        logged(&pool, "message=SELECT 'value' AS seen");
        says(
            &console.failure("SET statement_log = 'all'").message,
            "literal",
        );
        // Texts that may hold a password are masked nevertheless.
        client.failure("ALTER USER nobody@nowhere IDENTIFIED BY 'secret'");
        logged(&pool, "IDENTIFIED BY ?");
        client.must("SELECT 'secret' AS password");
        logged(&pool, "message=SELECT ? AS password");
        console.must("RELOAD");
        let sql = "SELECT COUNT(*) FROM config WHERE place = 'console'";
        assert_eq!(console.value(sql), "0");
        client.must("SELECT 'value' AS again");
        logged(&pool, "message=SELECT ? AS again");
        let said = pool.said();
        assert!(!said.contains("unseen"), "{said}");
        assert!(!said.contains("secret"), "{said}");
        // So many in a second, and the count of the others.
        console.must("SET statement_log_per_s_max = 1");
        until(|| {
            (0..50).for_each(|_| drop(client.must("SELECT 1")));
            match pool.said().contains(" omitted=") {
                true => Ok(()),
                false => Err("nothing was left out".to_owned()),
            }
        });
    }
}

#[test]
fn a_slow_statement_with_a_password_is_masked() {
    for real in pooled_servers() {
        let extra = "slow_statement_ms = 1\nslow_statement_values = true\ndigests_max = 0";
        let pool = fresh_pool(real, extra);
        let mut client = login(&pool.address, &app());
        client.must("SELECT SLEEP(0.01), 'secret' AS Password");
        pool.wait_for("message=SELECT SLEEP(?), ? AS Password")
            .unwrap();
        let prepared = client.prepare("SELECT SLEEP(0.01 + ?), 'shown' AS prepared");
        client.execute(prepared.id, &[Some(b"0")], false).unwrap();
        pool.wait_for("message=SELECT SLEEP(0.01 + ?), 'shown' AS prepared")
            .unwrap();
        assert!(!pool.said().contains("secret"), "{}", pool.said());
    }
}

#[test]
fn a_reader_may_read_and_a_stranger_nothing() {
    let Some(real) = pooled(server) else { return };
    let (_pool, place) = start(real, "console-reader.toml", "");
    let mut reader = login(&place, &Account::new("reader", "other"));
    assert_eq!(rows(&mut reader, "SHOW VERSION").len(), 1);
    let config = rows(&mut reader, "SHOW CONFIG WHERE name LIKE '%password'");
    assert!(config.len() >= 4, "{config:?}");
    let is_hidden = config.iter().all(|row| !row[1].contains("secret"));
    assert!(is_hidden, "{config:?}");
    for text in ["PAUSE", "SHUTDOWN", "KILL 1", "SET log_level = 'error'"] {
        assert_eq!(reader.failure(text).code, 1227, "{text}");
    }
    for (user, password) in [("reader", "secret"), ("app", "app"), ("admin", "")] {
        let refused = Client::connect(&place, &Account::new(user, password));
        assert!(refused.is_err(), "{user}");
    }
}

#[test]
fn the_console_answers_when_nothing_else_does() {
    let mut real = or_return!(pooled(own_server));
    let extra = "backends_max = 1\ngroups = 1\nclients_max = 2\nserver_down_fail_ms = 1";
    let (pool, place) = start(&real, "console-full.toml", extra);
    let mut console = admin(&place);
    let mut holder = login(&pool.address, &app());
    holder.must("SELECT GET_LOCK('console', 0)");
    let mut waiting = login(&pool.address, &app());
    send(&mut waiting, "SELECT 1");
    first_row(&mut console, "SHOW CLIENTS WHERE state = 'waiting'");
    // No client more fits, and the console takes one.
    assert!(Client::connect(&pool.address, &app()).is_err());
    assert_eq!(rows(&mut admin(&place), "SHOW GROUPS").len(), 1);
    real.stop();
    first_row(&mut console, "SHOW SERVERS WHERE up = 0 AND state = 'down'");
    assert_eq!(rows(&mut admin(&place), "SHOW GROUPS").len(), 1);
}

#[test]
fn a_shutdown_waits_for_nobody() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "console-shutdown.toml", "drain_ms_max = 600000");
    let mut holder = login(&pool.address, &app());
    holder.must("SELECT GET_LOCK('shutdown', 0)");
    let mut console = admin(&place);
    console.must("PAUSE");
    assert_eq!(rows(&mut console, "SHOW SERVERS WHERE paused").len(), 1);
    // The answer may come or not: the process ends.
    let _ = console.query("SHUTDOWN");
    let (status, said) = pool.wait();
    assert!(status.success(), "{said}");
    assert!(said.contains("ending at once"), "{said}");
}

#[test]
fn a_drain_ends_a_pause() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "console-drain.toml", "drain_ms_max = 600000");
    let mut client = login(&pool.address, &app());
    client.must("SELECT 1");
    let mut console = admin(&place);
    console.must("PAUSE");
    send(&mut client, "SELECT 2");
    first_row(&mut console, "SHOW CLIENTS WHERE state = 'waiting'");
    console.must("DRAIN");
    assert_eq!(client.receive().unwrap()[0].rows().rows.len(), 1);
    assert!(pool.wait().0.success());
}

/// Names of a table's columns, in their order.
fn columns(client: &mut Client, table: &str) -> Vec<String> {
    let reply = client.rows(&format!("SELECT * FROM {table} LIMIT 1"));
    let names = reply.columns.into_iter().map(|column| column.name);
    names.collect()
}

/// Tools that were written for a server's thread pool find its tables.
#[test]
fn tables_of_the_servers_have_the_servers_columns() {
    let Some(real) = pooled(server) else { return };
    let (_pool, place) = start(real, "columns.toml", "groups = 1");
    let mut console = admin(&place);
    let mut compare = |theirs: &mut Client, schema: &str, tables: &[&str]| {
        for table in tables {
            let name = format!("{schema}.{table}");
            let expected = columns(theirs, &name);
            assert_eq!(columns(&mut console, &name), expected, "{name}");
        }
    };
    let mariadb = ["GROUPS", "QUEUES", "STATS", "WAITS"].map(|name| format!("THREAD_POOL_{name}"));
    let mariadb = mariadb.each_ref().map(String::as_str);
    compare(&mut real.admin(), "information_schema", &mariadb);
    let plugin = ["--plugin-load-add=thread_pool.so"];
    let mysql = or_return!(own(Real::start_mysql(&plugin)));
    let mut admin = mysql.admin();
    let has = "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'thread_pool'";
    if admin.value(has) == "0" {
        return skip("this MySQL has no thread pool");
    }
    let oracle = "tp_connections tp_thread_group_state tp_thread_group_stats tp_thread_state";
    compare(&mut admin, "performance_schema", &words(oracle));
}

#[test]
fn the_tables_of_mysqls_thread_pool_show_who_runs_and_who_waits() {
    let Some(real) = pooled(server) else { return };
    let settings = "groups = 1\nbackends_max = 2\nstall_ms_max = 10";
    let (pool, place) = start(real, "tp_tables.toml", settings);
    let mut console = admin(&place);
    let [mut runs, mut holds, mut waits, mut idle] = [(); 4].map(|()| login(&pool.address, &app()));
    let id = |client: &mut Client| client.value("SELECT CONNECTION_ID()");
    let ids = [&mut runs, &mut holds, &mut waits, &mut idle].map(id);
    let mut admin = real.admin();
    admin.must("SELECT GET_LOCK('tp_tables', 0)");
    let asks = "SELECT GET_LOCK('tp_tables', 100)";
    send(&mut runs, asks);
    holds.must(HOLD);
    send(&mut waits, "SELECT 1");
    let state = "SELECT QUEUED_QUERIES, QUEUED_TRANSACTIONS, THREAD_COUNT, ACTIVE_THREAD_COUNT, \
                 STALLED_THREAD_COUNT, THREADS_BOUND_TO_TRANSACTION, CONNECTION_COUNT, \
                 OLDEST_QUEUED IS NOT NULL FROM performance_schema.tp_thread_group_state";
    let expected = ["0", "1", "2", "2", "1", "1", "4", "1"];
    await_rows(&mut console, state, [expected]);
    let sql = "SELECT c.CONNECTION_ID, t.PROCESS_COUNT > 1, t.WAIT_TYPE, t.TP_THREAD_TYPE, \
         t.THREAD_ID = b.thread, t.MARKED_STALLED, t.STATE \
         FROM performance_schema.tp_thread_state t \
         JOIN performance_schema.tp_connections c ON c.TP_GROUP_ID = t.TP_GROUP_ID \
         AND c.TP_PROCESSING_THREAD_NUMBER = t.TP_THREAD_NUMBER \
         JOIN backends b ON b.client = c.CONNECTION_ID ORDER BY t.STATE DESC";
    let threads = rows(&mut console, sql);
    let worker = "QUERY_WORKER_THREAD";
    let expected = [
        [ids[0].as_str(), "1", "NULL", worker, "1", "1", "running"],
        [ids[1].as_str(), "0", "NULL", worker, "1", "0", "held"],
    ];
    assert_eq!(threads, expected);
    let sql = "SELECT CONNECTION_ID, STATE, ACTIVE_FLAG FROM performance_schema.tp_connections \
         ORDER BY CONNECTION_ID";
    let connections = rows(&mut console, sql);
    let mut expected = [
        [ids[0].as_str(), "Attached", "1"],
        [ids[1].as_str(), "Attached", "1"],
        [ids[2].as_str(), "Queued", "0"],
        [ids[3].as_str(), "Armed", "0"],
    ];
    expected.sort_by_key(|row| row[0].parse::<u32>().unwrap());
    assert_eq!(connections, expected);
    admin.must("DO RELEASE_LOCK('tp_tables')");
    holds.must("COMMIT");
    assert!(waits.receive().is_ok() && runs.receive().is_ok());
}

/// A limit of the server below that of the settings is shown as it is in force.
#[test]
fn show_config_shows_what_the_server_takes() {
    let real = or_return!(pooled(own_server));
    let mut server = real.admin();
    let extra = "groups = 1\nbackends_reserved = 0\nbackends_max = 20";
    let (pool, place) = start(&real, "config_lowered.toml", extra);
    let mut console = admin(&place);
    let shown = |console: &mut Client, name: &str| {
        let shown = format!("SELECT value, place FROM config WHERE name = '{name}'");
        rows(console, &shown).remove(0)
    };
    let [value, written] = <[String; 2]>::try_from(shown(&mut console, "backends_max")).unwrap();
    assert_eq!(value, "20");
    server.must("SET GLOBAL max_connections = 15");
    pool.wait_for("at most 10 backends").unwrap();
    let lowered = format!("{written}, lowered from 20 by the server's max_connections");
    assert_eq!(shown(&mut console, "backends_max"), ["10", &*lowered]);
    let of_servers = "SELECT backends_max FROM servers";
    assert_eq!(rows(&mut console, of_servers), [["10"]]);
    console.must("SET backends_max = 18");
    let lowered = "console, lowered from 18 by the server's max_connections";
    assert_eq!(shown(&mut console, "backends_max"), ["10", lowered]);
    console.must("SET backends_max = 4");
    assert_eq!(shown(&mut console, "backends_max"), ["4", "console"]);
    let prepared = shown(&mut console, "prepared_max").remove(0);
    server.must("SET GLOBAL max_prepared_stmt_count = 16");
    let lowered =
        format!("default, lowered from {prepared} by the server's max_prepared_stmt_count");
    let asked = "SELECT value, place FROM config WHERE name = 'prepared_max'";
    await_rows(&mut console, asked, [["12", &*lowered]]);
}
