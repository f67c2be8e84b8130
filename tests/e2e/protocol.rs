//! Commands and forms of replies: each as the server itself has it.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::world::{app, direct, login, mysql, server, through};
use testkit::real::skipped;
use testkit::reply::Outcome;
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::Command;
use wire::packet::PAYLOAD_MAX;
use wire::status;

/// Clients that agreed on different things at login.
fn old_and_new(schema: &str) -> [Account; 4] {
    let account = app().schema(schema);
    [
        account.clone(),
        account.clone().without(cap::DEPRECATE_EOF),
        account.clone().without(cap::SESSION_TRACK),
        account.without(cap::DEPRECATE_EOF | cap::SESSION_TRACK | cap::PLUGIN_AUTH_LENENC_DATA),
    ]
}

fn join_all(story: &mut Story) -> Vec<usize> {
    let accounts = old_and_new(&story.schema.clone());
    accounts
        .iter()
        .map(|account| story.join_as(account))
        .collect()
}

#[test]
fn a_client_that_tracks_less_or_more_harms_nobody() {
    same("tracks", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "SET session_track_system_variables = '', session_track_schema = OFF",
        );
        for (who, other) in [(a, b), (b, a)] {
            let set = story
                .client(who)
                .query("SET sql_mode = 'ANSI', time_zone = '+01:00'");
            assert!(set.is_ok());
            assert!(story.client(who).query("USE shop").is_ok());
            story.sql(who, "SELECT @@sql_mode, @@time_zone, DATABASE()");
            story.sql(other, "SELECT @@sql_mode, @@time_zone, DATABASE()");
        }
    });
}

#[test]
fn statistics_is_a_line_of_text() {
    let Some(real) = server("statistics_is_a_line_of_text") else {
        return;
    };
    let way = through(real, 2);
    let mut client = login(&way, &app());
    match &client.run(Command::Statistics, b"").unwrap()[..] {
        [Outcome::Text(text)] => assert!(text.contains("Uptime"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.value("SELECT 1"), "1");
}

#[test]
fn a_command_that_is_not_for_clients_is_refused_and_the_session_goes_on() {
    let test = "a_command_that_is_not_for_clients_is_refused_and_the_session_goes_on";
    let Some(real) = server(test) else { return };
    if direct() {
        return skipped(test, "one of them shuts the server down");
    }
    let way = through(real, 2);
    let mut client = login(&way, &app().schema("shop"));
    for byte in [0x00, 0x05, 0x08, 0x0B, 0x0C, 0x12, 0x1D, 0x77, 0xFF] {
        let failure = client.refused_command(byte);
        assert_eq!(failure.code, 1047, "{byte:02x}: {failure}");
    }
    assert_eq!(client.value("SELECT DATABASE()"), "shop");
}

/// A command that no server has leaves its error among the conditions: alone on MariaDB, behind
/// those of the statement before on MySQL. So does COM_SET_OPTION with an unknown option.
#[test]
fn an_unknown_command_is_an_error_that_can_be_asked_for() {
    same_on_both("unknown_command", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["CREATE TABLE t (id INT)", "SELECT 1"]);
        let other = "SELECT CAST('other' AS SIGNED) FROM t";
        for before in [
            "DO 1",
            "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)",
            "SELECT * FROM missing",
            "INSERT INTO t VALUES (1), (2)",
        ] {
            for asks in [
                "SHOW WARNINGS",
                "SELECT @@warning_count, @@error_count",
                "SELECT ROW_COUNT()",
            ] {
                for (others, option) in [(0, 0), (1, 0), (2, 0), (0, 2), (1, 2)] {
                    story.sql(a, before);
                    if others > 0 {
                        story.sql(b, other);
                    }
                    match option {
                        0 => {
                            let failure = story.client(a).refused_command(0x50);
                            story.say(&failure.to_string());
                        }
                        option => story.command(a, Command::SetOption, &[option, 0]),
                    }
                    if others > 1 {
                        story.sql(b, other);
                    }
                    story.command(a, Command::Ping, b"");
                    story.sql(a, asks);
                }
            }
        }
        for before in ["DO 1", "SELECT CAST('x' AS SIGNED)"] {
            // Too short for MySQL.
            story.sql(a, before);
            story.command(a, Command::SetOption, &[0]);
            story.command(a, Command::Ping, b"");
            story.sql(a, "SHOW WARNINGS");
        }
    });
}

#[test]
fn several_commands_in_one_write_are_answered_in_order() {
    same("pipelines", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for _ in 0..2 {
            for who in [a, b] {
                let client = story.client(who);
                client
                    .send(&[
                        (Command::Query, b"SELECT 1, DATABASE()"),
                        (Command::Query, b"SET time_zone = '+03:00'"),
                        (Command::Query, b"SELECT * FROM missing"),
                        (Command::Ping, b""),
                        (Command::InitDb, b"shop"),
                        (Command::Query, b"SELECT @@time_zone, DATABASE()"),
                        (Command::Query, b"BEGIN"),
                        (Command::Query, b"SELECT 2 UNION SELECT 3"),
                        (Command::Query, b"COMMIT"),
                    ])
                    .unwrap();
                for step in 0..9 {
                    let reply = story.client(who).receive();
                    story.note(&format!("pipelined {step}"), reply);
                }
            }
        }
    });
}

#[test]
fn a_thousand_pipelined_statements_are_answered_in_order() {
    let Some(real) = server("a_thousand_pipelined_statements_are_answered_in_order") else {
        return;
    };
    let way = through(real, 1);
    let mut client = login(&way, &app());
    let texts: Vec<String> = (0..1000)
        .map(|i| format!("SELECT {i}, REPEAT('x', {i})"))
        .collect();
    let commands: Vec<_> = texts
        .iter()
        .map(|sql| (Command::Query, sql.as_bytes()))
        .collect();
    client.send(&commands).unwrap();
    for i in 0..1000 {
        let rows = client.receive().unwrap()[0].rows().texts();
        assert_eq!(rows[0][0], i.to_string());
        assert_eq!(rows[0][1].len(), i);
    }
}

#[test]
fn prepared_statements_work_in_the_binary_protocol() {
    same("prepared", 4, |story| {
        for who in join_all(story) {
            story.sql(
                who,
                "CREATE OR REPLACE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)",
            );
            let insert = story.prepare(who, "INSERT INTO t (v) VALUES (?), (?)");
            let select = story.prepare(who, "SELECT id, v, 1.5e0, NULL FROM t WHERE id > ?");
            story.execute(who, insert.id, &[Some(b"one"), None]);
            story.execute(who, insert.id, &[Some(b"three"), Some(b"four")]);
            story.execute(who, select.id, &[Some(b"1")]);
            story.sql(who, "SELECT COUNT(*), LAST_INSERT_ID() FROM t");
            story.command(who, Command::StmtReset, &select.id.to_le_bytes());
            story.command(who, Command::StmtClose, &insert.id.to_le_bytes());
            story.execute(who, select.id, &[Some(b"3")]);
            let missing = story
                .client(who)
                .run(Command::StmtPrepare, b"SELECT * FROM missing");
            story.note("prepare of a missing table", missing);
            let none = story.prepare(who, "DO 1");
            story.execute(who, none.id, &[]);
        }
    });
}

#[test]
fn long_data_and_cursors_work() {
    same("long_data", 2, |story| {
        let who = story.join();
        let long = story.prepare(who, "SELECT LENGTH(?), ?");
        for piece in [&b"abc"[..], &[b'x'; 70_000], b"end"] {
            let arguments = [&long.id.to_le_bytes()[..], &[0, 0], piece].concat();
            story.command(who, Command::StmtSendLongData, &arguments);
        }
        // The first parameter's value has been sent; its place in the execution stays empty.
        let mut arguments = long.id.to_le_bytes().to_vec();
        arguments.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 253, 0, 253, 0, 1, b'z']);
        story.command(who, Command::StmtExecute, &arguments);

        let cursor = story.prepare(who, "SELECT seq FROM seq_1_to_7");
        let opened = story.client(who).execute(cursor.id, &[], true);
        let outcomes = story.note("a cursor opens", opened);
        let columns = outcomes[0].rows().columns.clone();
        for rows in [3, 3, 3] {
            let fetched = story.client(who).fetch(cursor.id, rows, &columns);
            story.note("fetch", fetched);
        }
        story.sql(who, "SELECT 'still here'");
    });
}

#[test]
fn local_files_are_loaded() {
    same("local_files", 2, |story| {
        let schema = story.schema.clone();
        for without in [0, cap::DEPRECATE_EOF] {
            let account = app()
                .schema(&schema)
                .with(cap::LOCAL_FILES)
                .without(without);
            let who = story.join_as(&account);
            story.sql(who, "CREATE OR REPLACE TABLE t (id INT, v VARCHAR(50))");
            let file: String = (0..50_000).map(|i| format!("{i}\tvalue {i}\n")).collect();
            story.client(who).local_file = Some(file.into_bytes());
            let load = "LOAD DATA LOCAL INFILE 'anything' INTO TABLE t";
            story.sql(who, load);
            story.sql(who, "SELECT COUNT(*), SUM(id), MAX(v) FROM t");
            story.client(who).local_file = None;
            story.sql(who, load);
            story.sql(who, "LOAD DATA LOCAL INFILE 'anything' INTO TABLE missing");
            story.sql(who, "SELECT COUNT(*) FROM t");
            assert_eq!(story.client(who).files_wanted[0], "anything");
        }
        let who = story.join();
        story.sql(who, "LOAD DATA LOCAL INFILE 'anything' INTO TABLE t");
    });
}

/// A file's packet as long as a packet can be goes on in the next, which may be empty and is not
/// the end of the file then.
#[test]
fn the_longest_packet_of_a_local_file_goes_on_in_the_next() {
    const LINE_LEN: usize = 60_000;
    same_on_both("long_file_packets", 2, |story| {
        let schema = story.schema.clone();
        let who = story.join_as(&app().schema(&schema).with(cap::LOCAL_FILES));
        story.client(who).file_piece = PAYLOAD_MAX;
        for len in [PAYLOAD_MAX, PAYLOAD_MAX + LINE_LEN] {
            story.sql(who, "DROP TABLE IF EXISTS t");
            story.sql(who, "CREATE TABLE t (v TEXT)");
            let mut file = vec![b'x'; len];
            (file.iter_mut().skip(LINE_LEN).step_by(LINE_LEN)).for_each(|byte| *byte = b'\n');
            story.client(who).local_file = Some(file);
            story.sql(who, "LOAD DATA LOCAL INFILE 'anything' INTO TABLE t");
            story.sql(who, "SELECT COUNT(*), SUM(LENGTH(v)) FROM t");
        }
    });
}

/// A CALL in the binary protocol: its result sets, then one of its OUT parameters.
fn calls_with_out_parameters(story: &mut Story, less: u32) {
    let schema = story.schema.clone();
    let plain = story.join_as(&app().schema(&schema).without(cap::SESSION_TRACK));
    story.all(
        plain,
        &[
            "CREATE TABLE t (v VARCHAR(20))",
            "CREATE PROCEDURE p(IN a INT, OUT b VARCHAR(20), INOUT c INT) BEGIN \
             SELECT a, 'in'; SET b = CONCAT('b', a); SET c = c + a; INSERT INTO t VALUES (b); END",
            "CREATE PROCEDURE bad(OUT b INT) BEGIN SET b = 1; SELECT b; \
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END",
        ],
    );
    let old = app().schema(&schema).without(cap::SESSION_TRACK);
    let old = story.join_as(&old.without(less));
    for who in [plain, old, plain] {
        let call = story.prepare(who, "CALL p(?, ?, ?)");
        for (a, c) in [(&b"1"[..], &b"10"[..]), (b"2", b"20")] {
            story.execute(who, call.id, &[Some(a), None, Some(c)]);
        }
        let bad = story.prepare(who, "CALL bad(?)");
        story.execute(who, bad.id, &[None]);
        story.execute(who, call.id, &[Some(b"3"), None, None]);
        story.sql(who, "SELECT COUNT(*) FROM t");
    }
    let last = story.client(plain).prepare("CALL p(?, ?, ?)");
    let outcomes = story
        .client(plain)
        .execute(last.id, &[Some(b"4"), None, Some(b"5")], false);
    let outcomes = outcomes.unwrap();
    let flags = outcomes.iter().map(|outcome| match outcome {
        Outcome::Rows(rows) => rows.end.status & status::PS_OUT_PARAMS,
        _ => 0,
    });
    let told: Vec<u16> = flags.collect();
    assert_eq!(told, [0, status::PS_OUT_PARAMS, 0], "{outcomes:?}");
    assert_eq!(outcomes[1].rows().texts(), [["b4", "9"]]);
}

#[test]
fn out_parameters_come_back_in_the_binary_protocol() {
    same("out_parameters", 4, |story| {
        calls_with_out_parameters(story, cap::DEPRECATE_EOF);
    });
}

#[test]
fn out_parameters_come_back_from_mysql() {
    let Some(real) = mysql("out_parameters_come_back_from_mysql") else {
        return;
    };
    // Without DEPRECATE_EOF, MySQL itself leaves out at the end of the rows that more follows.
    same_on(real, "out_parameters", 4, |story| {
        calls_with_out_parameters(story, 0);
    });
}

#[test]
fn old_commands_that_the_server_still_has_are_its_own() {
    same("old_commands", 1, |story| {
        let (a, b) = (story.join(), story.join());
        // The logs, as mysqldump --flush-logs does.
        story.command(a, Command::Refresh, &[2]);
        story.sql(b, "SELECT 1");
        let listed = story.client(a).run(Command::ProcessInfo, b"").unwrap();
        assert!(!listed[0].rows().texts().is_empty(), "{listed:?}");
    });
}
