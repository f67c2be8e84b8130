//! Commands and forms of replies: each as the server itself has it.

use crate::compare::{same, same_on_both};
use crate::world::*;
use wire::packet::PAYLOAD_MAX;

#[test]
fn a_command_that_is_not_for_clients_is_refused_and_the_session_goes_on() {
    let (_, way) = or_return!(shared(2));
    let mut client = login(&way, &app().schema("shop"));
    for byte in [0x00, 0x05, 0x08, 0x0B, 0x0C, 0x12, 0x1D, 0x77, 0xFF] {
        let failure = client.refused_command(byte);
        assert_eq!(failure.code, 1047, "{byte:02x}: {failure}");
    }
    assert_eq!(client.value("SELECT DATABASE()"), "shop");
}

#[test]
fn a_thousand_pipelined_statements_are_answered_in_order() {
    let (_, way) = or_return!(shared(1));
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
fn long_data_of_many_pieces_go_with_their_execution() {
    same_on_both("long_data", 1, |story| {
        let all = [story.join(), story.join()];
        let ids = all.map(|who| story.prepare(who, "SELECT LENGTH(?), ?").id.to_le_bytes());
        for len in [70_000, 300_000] {
            for (who, id) in all.into_iter().zip(ids) {
                for piece in [&b"abc"[..], &vec![b'x'; len], b"end"] {
                    let arguments = [&id[..], &[0, 0], piece].concat();
                    story.command(who, Command::StmtSendLongData, &arguments);
                }
            }
            for (who, id) in all.into_iter().zip(ids) {
                // The first parameter's value has been sent; its place here stays empty.
                let values = b"\0\x01\0\0\0\0\x01\xfd\0\xfd\0\x01z";
                story.command(who, Command::StmtExecute, &[&id[..], values].concat());
            }
        }
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
