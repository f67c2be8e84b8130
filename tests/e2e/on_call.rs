//! Drills of whoever is on call: the console alone leads to the culprit, in two commands at most.

use crate::console::{admin, rows, start};
use crate::world::*;
use wire::capabilities::CONNECT_ATTRS;

/// A client of the schema of the drills, which says its program's name.
fn client(pool: &Pool) -> Client {
    let account = app().schema("on_call").with(CONNECT_ATTRS);
    login(&pool.address, &account)
}

/// The first row of an answer that has rows in the end.
pub(crate) fn first_row(console: &mut Client, text: &str) -> Vec<String> {
    let mut first = || rows(console, text).into_iter().next();
    until(|| first().ok_or_else(|| format!("{text} has no row")))
}

#[test]
fn who_holds_a_row_is_found_and_ended() {
    // MySQL tells of locks there only.
    for real in own_servers(&["--performance-schema=ON"]) {
        let (pool, place) = start(&real, "on-call.toml", "backends_max = 4\ngroups = 2");
        fresh_schema(&real, "on_call");
        let (mut holder, mut waits) = (client(&pool), client(&pool));
        holder.must("CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
        holder.must("INSERT INTO held VALUES (1, 0)");
        let holds = holder.value("SELECT CONNECTION_ID()");
        let id = waits.value("SELECT CONNECTION_ID()");
        holder.must(HOLD);
        holder.must("UPDATE held SET v = 17 WHERE id = 1");
        let update: &[u8] = b"UPDATE held SET v = 18 WHERE id = 1";
        waits.send(&[(Command::Query, update)]).unwrap();
        let mut console = admin(&place);
        // The first command: who waits, for which table, and who has it.
        let shown = first_row(&mut console, "SHOW LOCKS");
        let expected = [&id, "app", "row", "on_call.held", &holds, "app", "holding"];
        let found = [0, 1, 3, 4, 5, 6, 7].map(|at: usize| shown[at].as_str());
        assert_eq!(found, expected, "{shown:?}");
        // What it is, in full.
        let question = "SELECT blocker_program, blocker_statement, statement FROM locks";
        let update = "UPDATE held SET v = ? WHERE id = ?";
        assert_eq!(
            first_row(&mut console, question),
            ["onramp", update, update]
        );
        let oldest = first_row(&mut console, "SHOW TRANSACTIONS");
        assert_eq!(oldest[0], holds, "the oldest stands first: {oldest:?}");
        let question =
            format!("SELECT statements, program, state FROM transactions WHERE id = {holds}");
        assert_eq!(
            first_row(&mut console, &question),
            ["2", "onramp", "holding"]
        );
        let longest = first_row(&mut console, "SHOW RUNNING");
        assert_eq!(longest[0], id, "the longest stands first: {longest:?}");
        assert_eq!(longest[5], update);
        let question = format!(
            "SELECT program, state, digest IS NULL, statement, statements, bytes_in > 100, \
             bytes_out > 100, connected_seconds < 600 FROM clients WHERE id = {id}"
        );
        let expected = ["onramp", "running", "0", update, "2", "1", "1", "1"];
        assert_eq!(first_row(&mut console, &question), expected);
        // The second one.
        console.must(&format!("KILL {holds}"));
        assert_eq!(waits.receive().unwrap().len(), 1, "it has the row");
        wait_while(|| !rows(&mut console, "SHOW LOCKS").is_empty());
    }
}

#[test]
fn what_happened_in_the_last_minutes_is_shown_with_what_runs() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "on-call-recent.toml", "backends_max = 4\ngroups = 2");
        let account = app().with(CONNECT_ATTRS);
        let log_in = || login(&pool.address, &account);
        let (mut works, mut hangs) = (log_in(), log_in());
        let mut console = admin(&place);
        for number in 0..3 {
            works.must(&format!("SELECT {number} AS late"));
        }
        works.failure("SELECT * FROM never_made");
        let sleeps: &[u8] = b"SELECT SLEEP(200) AS late";
        hangs.send(&[(Command::Query, sleeps)]).unwrap();
        let of = |text: &str, minutes: u32| {
            format!(
                "SELECT count, errors, running, mean_seconds > 0, hour_seconds > 0, \
                 covered_seconds < 60 AND p99_seconds > 0 FROM recent_statements \
                 WHERE minutes = {minutes} AND statement = '{text}'"
            )
        };
        for minutes in [1, 5, 60] {
            for (text, expected) in [
                ("SELECT SLEEP(?) AS late", ["0", "0", "1", "1", "1", "1"]),
                ("SELECT ? AS late", ["3", "0", "0", "1", "1", "1"]),
                ("SELECT * FROM never_made", ["1", "1", "0", "1", "1", "1"]),
            ] {
                until(|| match rows(&mut console, &of(text, minutes)) {
                    shown if shown == [expected] => Ok(()),
                    shown => Err(format!("{minutes} {text}: {shown:?}")),
                });
            }
        }
        // What runs has taken most time; SHOW cuts the text, not the digest.
        let shown = first_row(&mut console, "SHOW STATEMENTS LAST 1 MINUTE");
        assert_eq!(shown[1..5], ["SELECT SLEEP(?) AS..", "0", "0", "1"]);
        assert_eq!(shown[0].len(), 16);
        let users = "SHOW FULL USERS LAST 5 MINUTES WHERE user = 'app'";
        let shown = first_row(&mut console, users);
        assert!(shown[3].parse::<u64>().unwrap() >= 4, "{shown:?}");
        assert_eq!(
            shown[4..7],
            ["1", "1", "0"],
            "errors, running, waiting: {shown:?}"
        );
        let holders = first_row(&mut console, "SHOW HOLDERS");
        assert_eq!(holders[..5], ["app", "127.0.0.1", "onramp", "1", "1"]);
        let id = first_row(&mut console, "SHOW RUNNING").remove(0);
        console.must(&format!("KILL QUERY {id}"));
        hangs.receive().unwrap();
    }
}

#[test]
fn texts_are_shown_as_the_setting_says() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "on-call-texts.toml", "backends_max = 4\ngroups = 1");
        let (mut client, mut console) = (login(&pool.address, &app()), admin(&place));
        client.must(HOLD);
        let question = "SELECT statement FROM transactions";
        for (setting, shown) in [
            ("masked", "SELECT ?"),
            ("off", "NULL"),
            // It ends with its statement.
            ("literal", "SELECT ?"),
        ] {
            console.must(&format!("SET statement_text = '{setting}'"));
            client.must("SELECT 'secret'");
            assert_eq!(first_row(&mut console, question), [shown], "{setting}");
        }
        let sleeps: &[u8] = b"SELECT SLEEP(20), 'secret'";
        client.send(&[(Command::Query, sleeps)]).unwrap();
        let running = "SELECT id, statement FROM running";
        let shown = first_row(&mut console, running);
        assert_eq!(shown[1], "SELECT SLEEP(20), 'secret'");
        console.must(&format!("KILL QUERY {}", shown[0]));
        client.receive().unwrap();
    }
}

#[test]
fn the_console_says_what_it_knows() {
    for real in pooled_servers() {
        let (_pool, place) = start(real, "on-call-help.toml", "");
        let mut console = admin(&place);
        let help = rows(&mut console, "HELP");
        assert_eq!(help, rows(&mut console, "SHOW HELP"));
        for command in ["KILL QUERY ID", "SHOW RUNNING", "SHOW LOCKS"] {
            assert!(help.iter().any(|row| row[0] == command), "{command}");
        }
        // What does not fit a terminal is left to SHOW FULL.
        let columns = |console: &mut Client, text: &str| console.rows(text).columns.len();
        let brief = columns(&mut console, "SHOW CLIENTS");
        let full = columns(&mut console, "SHOW FULL CLIENTS");
        assert!(brief < full, "{brief} {full}");
        assert_eq!(columns(&mut console, "SELECT * FROM clients"), full);
    }
}

#[test]
fn what_show_shows_fits_a_terminal_and_variables_are_settings() {
    let account = format!("account_{}", "x".repeat(24));
    for real in pooled_servers() {
        let extra = "backends_max = 4\ngroups = 2\nunlimited_networks = [\"10.0.0.0/8\", \
                     \"192.168.0.0/16\", \"172.16.0.0/12\"]";
        let (pool, place) = start(real, "on-call-widths.toml", extra);
        fresh_schema(real, "on_call_of_a_schema_with_a_long_name");
        let account_of = app().schema("on_call_of_a_schema_with_a_long_name");
        let mut holder = login(&pool.address, &account_of.with(CONNECT_ATTRS));
        holder.must(HOLD);
        let columns = (0..40).map(|at| format!("{at} AS column_{at}"));
        let joined = columns.collect::<Vec<String>>().join(", ");
        holder.must(&format!("SELECT {joined}"));
        assert!(Client::connect(&pool.address, &Account::new(&account, "wrong")).is_err());
        let mut console = admin(&place);
        let named = "SELECT upper(name) FROM tables WHERE \"schema\" = 'onramp'";
        let mut shows: Vec<String> = rows(&mut console, named).concat();
        shows.extend(["TABLES".into(), "PROCESSLIST".into()]);
        for name in shows {
            let reply = console.rows(&format!("SHOW {name}"));
            let longest = |at: usize| {
                let values = reply
                    .rows
                    .iter()
                    .map(|row| row[at].as_ref().map_or(4, Vec::len));
                values.max().unwrap_or(0).max(reply.columns[at].name.len()) + 3
            };
            let width = (0..reply.columns.len()).map(longest).sum::<usize>() + 1;
            // A value of a variable is whole.
            assert!(width <= 120 || name == "VARIABLES", "SHOW {name}: {width}");
        }
        let differ = "SELECT c.name FROM config c LEFT JOIN variables v ON v.name = c.name \
                      WHERE v.value IS NOT c.value";
        assert!(rows(&mut console, differ).is_empty());
        let twice = "SELECT name FROM variables GROUP BY name HAVING count(*) > 1";
        assert!(rows(&mut console, twice).is_empty());
        let shown = rows(&mut console, "SHOW VARIABLES LIKE 'backends_max'");
        assert_eq!(shown, [["backends_max", "4"]]);
        assert_eq!(rows(&mut console, "SELECT @@backends_max"), [["4"]]);
        // A monitor that polls leaves a line, and not one for each login.
        for _ in 0..3 {
            admin(&place);
        }
        assert_eq!(pool.said().matches("event=console-login").count(), 1);
    }
}

#[test]
fn who_is_refused_and_whose_statement_was_cut_is_named() {
    for real in pooled_servers() {
        let extra = "backends_max = 1\ngroups = 1\nwait_ms_max = 2000";
        let (pool, place) = start(real, "on-call-refused.toml", extra);
        let mut console = admin(&place);
        let mut holder = login(&pool.address, &app());
        let id = holder.value("SELECT CONNECTION_ID()");
        holder.must(HOLD);
        let mut waits = login(&pool.address, &app());
        let refused = waits.failure("SELECT 1");
        assert_eq!(refused.code, 9501);
        let wrong = Account::new("app", "wrong");
        assert!(Client::connect(&pool.address, &wrong).is_err());
        let guess = Account::new("nobody", "wrong");
        assert!(Client::connect(&pool.address, &guess).is_err());
        let refusals = "SELECT account, reason, count FROM refusals ORDER BY reason";
        let expected = [
            ["", "unknown-user", "1"],
            ["app", "waited-too-long", "1"],
            ["app", "wrong-password", "1"],
        ];
        assert_eq!(rows(&mut console, refusals), expected);
        let counted = "SELECT labels, value FROM stats WHERE name = 'onramp_pool_refusals_total' \
                       AND labels LIKE '%waited%'";
        let counted = first_row(&mut console, counted);
        assert!(counted[0].contains("app"), "{counted:?}");
        assert!(counted[1].starts_with('1'), "{counted:?}");
        let waiter = waits.talk().greeting.as_ref().unwrap().connection_id;
        let line = pool.wait_for("event=refused").unwrap();
        let words = format!("id={waiter} account=\"app\" reason=waited-too-long digest=");
        says(&line, &words);
        // The server ends the connection that the holder's transaction is on.
        let thread = first_row(&mut console, "SELECT thread FROM transactions").remove(0);
        login(&real.address(), &app()).must(&format!("KILL {thread}"));
        let line = pool.wait_for("event=backend-lost").unwrap();
        says(&line, &format!("id={id} account=\"app\" digest="));
        says(&line, "transaction=cut");
        let mut victim = login(&pool.address, &app());
        let id = victim.value("SELECT CONNECTION_ID()");
        victim.must(HOLD);
        console.must(&format!("KILL {id}"));
        let line = pool.wait_for("event=killed").unwrap();
        says(&line, &format!("id={id} account=\"app\""));
        let part = "transaction=cut message=it is ended by KILL, said at the console";
        says(&line, part);
    }
}

#[test]
fn each_limit_that_turns_a_client_away_is_named_by_account_and_reason() {
    let Some(real) = pooled(server) else { return };
    for (limit, reason, parts) in [
        ("clients_max = 1", "clients", ["", "127.0.0.1:"]),
        (
            "clients_per_address_max = 1",
            "address-clients",
            ["", "127.0.0.1:"],
        ),
    ] {
        let (pool, place) = start(real, "on-call-limits.toml", limit);
        let mut console = admin(&place);
        let _first = login(&pool.address, &app());
        assert!(Client::connect(&pool.address, &app()).is_err());
        let question = "SELECT reason, account, address, message FROM refusals";
        let shown = first_row(&mut console, question);
        assert_eq!((&*shown[0], &*shown[1]), (reason, parts[0]), "{limit}");
        says(&shown[2], parts[1]);
        says(&shown[3], "1");
        let line = pool
            .wait_for("event=login-refused client=127.0.0.1:")
            .unwrap();
        says(&line, &format!("reason={reason}"));
        says(&line, limit.split(' ').next().unwrap());
    }
    let (pool, place) = start(real, "on-call-limits.toml", "groups = 1");
    let mut console = admin(&place);
    let _first = login(&pool.address, &app());
    console.must("SET USER 'app' LIMIT clients_max = 1");
    assert!(Client::connect(&pool.address, &app()).is_err());
    let question = "SELECT reason, account FROM refusals";
    assert_eq!(first_row(&mut console, question), ["user-clients", "app"]);
    let line = pool.wait_for("reason=user-clients").unwrap();
    says(&line, "account=\"app\"");
    says(&line, "clients_max of this user is 1");
}

#[test]
fn whose_statement_met_its_time_limit_is_found_by_its_line() {
    for real in pooled_servers() {
        let extra = "backends_max = 4\ngroups = 1\nstatement_ms_max = 2000";
        let (pool, place) = start(real, "on-call-time.toml", extra);
        let (mut slow, mut console) = (login(&pool.address, &app()), admin(&place));
        slow.must(HOLD);
        assert_eq!(slow.failure("SELECT SLEEP(60)").code, 3024);
        // The log names the client, and that its transaction is gone.
        let line = pool.wait_for("event=time-limit").unwrap();
        let words = format!("{} reason=statement-time digest=", named(&slow));
        says(&line, &words);
        says(&line, "transaction=cut");
        // The first command: what it was.
        let (_, rest) = line.split_once("digest=").unwrap();
        let digest = rest.split(' ').next().unwrap();
        let question = format!("SELECT statement FROM statements WHERE digest = '{digest}'");
        assert_eq!(first_row(&mut console, &question), ["SELECT SLEEP(?)"]);
        // The second one.
        console.must(&format!("REJECT DIGEST '{digest}'"));
        let mut again = login(&pool.address, &app());
        assert_eq!(again.failure("SELECT SLEEP(60)").code, 9512);
    }
}
