//! Many clients, few backends: everybody gets the right answers.

use crate::world::*;
use std::collections::HashSet;

#[test]
fn two_hundred_clients_on_four_backends_get_their_own_answers() {
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "crowd");
    real.execute(&["CREATE TABLE crowd.t (tag VARCHAR(40)) ENGINE=InnoDB"]);
    let way = through(real, 4);
    let account = app().schema("crowd");
    let mut clients: Vec<_> = (0..200).map(|_| login(&way, &account)).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.must(&format!("SET group_concat_max_len = {}", 1000 + i));
    }
    for round in 0..5 {
        // All of them have a statement at once, most of them waiting.
        for (i, client) in clients.iter_mut().enumerate() {
            let sql = format!("SELECT {i}, {round}, @@group_concat_max_len, REPEAT('x', {i})");
            send(client, &sql);
        }
        for (i, client) in clients.iter_mut().enumerate() {
            let row = client.receive().unwrap()[0].rows().texts().remove(0);
            let expected = [i, round, 1000 + i].map(|n| n.to_string());
            assert_eq!(row[..3], expected);
            assert_eq!(row[3].len(), i);
        }
        for (i, client) in clients.iter_mut().enumerate() {
            let sql = format!("INSERT INTO t VALUES ('{i}.{round}')");
            send(client, &sql);
        }
        for client in &mut clients {
            assert_eq!(client.receive().unwrap()[0].done().affected_rows, 1);
        }
    }
    let tags = clients[0].rows("SELECT tag FROM t").texts();
    let different: HashSet<_> = tags.iter().collect();
    assert_eq!((tags.len(), different.len()), (1000, 1000));
    let threads = clients[0].value(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND db = 'crowd'",
    );
    let are_few = threads.parse::<usize>().unwrap() <= 4;
    assert!(are_few, "{threads} connections at the server");
}

#[test]
fn a_client_that_leaves_while_its_statement_runs_harms_nobody() {
    let (_, way) = or_return!(shared(1));
    let mut stays = login(&way, &app());
    for round in 0..10 {
        let mut leaves = login(&way, &app().schema("shop"));
        let sql: &[u8] = match round % 3 {
            0 => b"SELECT SLEEP(0.02)",
            1 => b"SELECT REPEAT('x', 1000000) FROM seq_1_to_20",
            _ => b"SET time_zone = '+07:00'",
        };
        leaves.send(&[(Command::Query, sql)]).unwrap();
        drop(leaves);
        let row = stays.rows("SELECT 'mine', @@time_zone").texts().remove(0);
        assert_eq!(row, ["mine", "SYSTEM"]);
    }
}

#[test]
fn statements_may_come_byte_by_byte() {
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &app());
    let mut other = login(&way, &app());
    let mut bytes = Vec::new();
    wire::command::put_command(&mut bytes, Command::Query, b"DO 1");
    let (first, last) = bytes.split_at(bytes.len() - 1);
    for byte in first {
        client.send_raw(&[*byte]).unwrap();
    }
    assert_eq!(other.value("SELECT 'not held up'"), "not held up");
    client.send_raw(last).unwrap();
    let reply = client.wait();
    // The conversation did not see the command; an OK that nobody asked for is its right answer.
    let is_said = format!("{reply:?}").contains("nobody asked for: [00, 00, 00");
    assert!(is_said, "{reply:?}");
}
