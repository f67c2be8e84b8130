//! KILL and CONNECTION_ID(): a client's own number, and whom it reaches.

use crate::audit::id as greeted;
use crate::world::*;

/// The number of the error that a client's oldest statement ended with; 0 for none.
fn error_of(client: &mut Client) -> u16 {
    match client.receive().unwrap().pop() {
        Some(Outcome::Failed(failure)) => failure.code,
        _ => 0,
    }
}

/// Waits until the server runs so many statements with this in their text.
fn await_running(real: &Real, part: &str, count: &str) {
    let mut admin = real.admin();
    let question = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep' \
         AND info LIKE '%{part}%'"
    );
    wait_while(|| admin.value(&question) != count);
}

/// Columns whose length follows from the value: a story cannot compare them.
#[test]
fn a_client_finds_its_own_number_on_any_backend() {
    let (_, way) = or_return!(shared(1));
    let mut clients: Vec<Client> = (0..3).map(|_| login(&way, &app())).collect();
    for sql in [
        "SELECT 1, CONNECTION_ID() DIV 1 AS d FROM DUAL",
        "SELECT IF(CONNECTION_ID() > 0, CONNECTION_ID(), 0) 'me'",
    ] {
        for client in &mut clients {
            let me = greeted(client).to_string();
            assert_eq!(client.rows(sql).texts()[0].last(), Some(&me), "{sql}");
        }
    }
    // The server's lists hold the server's numbers, of whichever connection runs the question.
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()";
    assert_eq!(clients[0].value(sql), "1");
}

#[test]
fn a_statement_that_runs_is_interrupted_and_nothing_else() {
    let (real, way) = or_return!(shared(2));
    let clients: Vec<Client> = (0..4).map(|_| login(&way, &app())).collect();
    let [mut victim, mut bystander, mut waits, mut killer] = clients.try_into().unwrap();
    let id = greeted(&victim);
    for round in 0..3 {
        send(&mut victim, "SELECT SLEEP(30), 'interrupted one'");
        await_running(real, "interrupted one", "1");
        send(&mut bystander, "SELECT SLEEP(3), 'left alone'");
        await_running(real, "left alone", "1");
        // Through a pool every backend is taken now.
        send(&mut waits, "SELECT 'waits'");
        killer.must(&format!("KILL QUERY {id}"));
        assert_eq!(error_of(&mut victim), 1317, "round {round}");
        assert_eq!(error_of(&mut waits), 0);
        assert_eq!(error_of(&mut bystander), 0, "round {round}");
        assert_eq!(victim.value("SELECT 'goes on'"), "goes on");
    }
    for number in [format!("{id:#x}"), format!("'{id}'"), format!("(({id}))")] {
        send(&mut victim, "SELECT SLEEP(30), 'written otherwise'");
        await_running(real, "written otherwise", "1");
        killer.must(&format!("KILL QUERY {number}"));
        assert_eq!(error_of(&mut victim), 1317, "{number}");
    }
}

/// A statement that waits for a backend was not executed, and its client hears so at once.
#[test]
fn a_statement_that_waits_is_interrupted_before_it_runs() {
    let (real, way) = or_return!(shared(1));
    let clients: Vec<Client> = (0..3).map(|_| login(&way, &app().schema("shop"))).collect();
    let [mut runs, mut waits, mut killer] = clients.try_into().unwrap();
    runs.must("CREATE OR REPLACE TABLE waited (v INT)");
    waits.must("DO 1");
    send(&mut runs, "SELECT SLEEP(30), 'holds the backend'");
    await_running(real, "holds the backend", "1");
    send(&mut waits, "INSERT INTO waited VALUES (1)");
    killer.must(&format!("KILL QUERY {}", greeted(&waits)));
    assert_eq!(error_of(&mut waits), 1317);
    killer.must(&format!("KILL QUERY {}", greeted(&runs)));
    assert_eq!(error_of(&mut runs), 1317);
    assert_eq!(waits.value("SELECT COUNT(*) FROM waited"), "0");
}

/// True when the connection has been ended.
fn is_gone(client: &mut Client) -> bool {
    client.wait().is_err()
}

#[test]
fn a_connection_is_ended_with_everything_that_it_held() {
    let (real, way) = or_return!(shared(3));
    let mut killer = login(&way, &app().schema("shop"));
    killer.must("CREATE OR REPLACE TABLE held (v INT) ENGINE=InnoDB");
    let hold = |sql: &[&str]| {
        let mut client = login(&way, &app().schema("shop"));
        sql.iter().for_each(|sql| drop(client.must(sql)));
        client
    };
    let mut idle = hold(&[]);
    killer.must(&format!("KILL {}", greeted(&idle)));
    assert!(is_gone(&mut idle));
    let mut locks = hold(&["SELECT GET_LOCK('held by the victim', 0)"]);
    killer.must(&format!("KILL CONNECTION {}", greeted(&locks)));
    assert!(is_gone(&mut locks));
    let asked = "SELECT GET_LOCK('held by the victim', 20)";
    assert_eq!(killer.value(asked), "1");
    killer.must("DO RELEASE_ALL_LOCKS()");
    let mut changes = hold(&["BEGIN", "INSERT INTO held VALUES (1)"]);
    killer.must(&format!("KILL {}", greeted(&changes)));
    assert!(is_gone(&mut changes));
    let mut runs = hold(&[]);
    send(
        &mut runs,
        "INSERT INTO held SELECT SLEEP(30) + 7 /* ended while it ran */",
    );
    await_running(real, "ended while it ran", "1");
    killer.must(&format!("KILL {}", greeted(&runs)));
    assert!(is_gone(&mut runs));
    await_running(real, "ended while it ran", "0");
    killer.must("SET innodb_lock_wait_timeout = 20");
    let counted = "SELECT COUNT(*) FROM held LOCK IN SHARE MODE";
    assert_eq!(killer.value(counted), "0");
}

#[test]
fn a_kill_of_ones_own_ends_as_on_a_server() {
    let (_, way) = or_return!(shared(2));
    let mut client = login(&way, &app());
    let id = greeted(&client);
    for sql in [&format!("KILL QUERY {id}"), "KILL QUERY CONNECTION_ID()"] {
        assert_eq!(client.failure(sql).code, 1317, "{sql}");
        assert_eq!(client.value("SELECT 1"), "1");
    }
    assert_eq!(client.failure(&format!("KILL HARD {id}")).code, 1927);
    assert!(is_gone(&mut client));
}

#[test]
fn a_kill_reaches_the_accounts_own_clients_only() {
    let (real, way) = or_return!(shared(3));
    let mut client = login(&way, &app());
    let small = Account::new("small", "small");
    let (mut mine, mut mine_too) = (login(&way, &small), login(&way, &small));
    let denied = mine.failure(&format!("KILL {}", greeted(&client)));
    assert_eq!(denied.code, 1095, "{denied}");
    assert_eq!(client.value("SELECT 1"), "1");
    let unknown = mine.failure("KILL QUERY 1999999999");
    assert_eq!(unknown.code, 1094, "{unknown}");
    assert_eq!(unknown.message, "Unknown thread id: 1999999999");
    assert_eq!(mine.failure("KILL 987654321").code, 1094);
    send(&mut mine_too, "SELECT SLEEP(30), 'by its number'");
    await_running(real, "by its number", "1");
    let id = greeted(&mine_too).to_le_bytes();
    let ended = mine.run(Command::ProcessKill, &id).unwrap();
    assert!(matches!(ended[..], [Outcome::Done(_)]), "{ended:?}");
    assert!(is_gone(&mut mine_too));
    // A backend's number means whoever it serves: nobody can name it.
    // Other tests' pools log in with the same account.
    let mut list = client
        .rows("SELECT id FROM information_schema.processlist WHERE info LIKE '%of this pool%'");
    let backend = list.texts().remove(0).remove(0);
    let refused = client.failure(&format!("KILL {backend}"));
    says(&refused.message, "which many clients share");
    list = client.rows("SELECT 1");
    assert_eq!(list.texts().len(), 1);
    let refused = client.failure("KILL USER nobody");
    says(&refused.message, "the number of a client");
}

/// Clients of different groups, each way.
#[test]
fn a_kill_crosses_the_groups() {
    let (real, pool) = or_return!(shared_pool("groups = 4\nbackends_max = 8"));
    let mut clients: Vec<Client> = (0..24).map(|_| login(&pool.address, &app())).collect();
    let groups: std::collections::HashSet<u32> = clients.iter().map(|c| greeted(c) % 4).collect();
    assert!(groups.len() > 1, "the kernel deals clients over the groups");
    let mut killer = clients.remove(0);
    for (number, client) in clients.iter_mut().enumerate() {
        let id = greeted(client);
        if number % 2 == 0 {
            killer.must(&format!("KILL {id}"));
            assert!(is_gone(client));
        } else {
            send(client, &format!("SELECT SLEEP(30), 'group of {id}'"));
            await_running(real, &format!("group of {id}"), "1");
            killer.must(&format!("KILL QUERY {id}"));
            assert_eq!(error_of(client), 1317);
        }
    }
    let id = 1_073_741_824 + 4 * 999_999 + 1;
    assert_eq!(killer.failure(&format!("KILL {id}")).code, 1094);
}

/// A driver that prepares what it executes kills by a parameter.
#[test]
fn a_prepared_kill_reaches_its_victim() {
    for real in pooled_servers() {
        let way = through(real, 2);
        let (mut killer, mut victim) = (login(&way, &app()), login(&way, &app()));
        let id = victim.value("SELECT CONNECTION_ID()");
        let nobody = "999999999".to_string();
        let mut texts = vec![(format!("KILL QUERY {id}"), None)];
        if real.flavour() == Flavour::MariaDb {
            texts.push(("KILL QUERY ?".into(), Some(id.clone())));
        }
        for (sql, parameter) in texts {
            let prepared = killer.prepare(&sql);
            let sleep: &[u8] = b"SELECT SLEEP(1000), 'killed by a statement'";
            victim.send(&[(Command::Query, sleep)]).unwrap();
            await_running(real, "killed by a statement", "1");
            let parameters: Vec<_> = parameter.iter().map(|id| Some(id.as_bytes())).collect();
            let done = killer.execute(prepared.id, &parameters, false).unwrap();
            assert_eq!(done[0].done().affected_rows, 0, "{sql}");
            // A sleep that is interrupted is a row or an error, by the server.
            let slept = victim.receive().unwrap().remove(0);
            let woken = match &slept {
                Outcome::Failed(failure) => failure.code == 1317,
                rows => rows.rows().texts()[0][0] == "1",
            };
            assert!(woken, "{sql}: {slept:?}");
            if parameter.is_some() {
                let missed = killer.execute(prepared.id, &[Some(nobody.as_bytes())], false);
                assert!(format!("{missed:?}").contains("1094"), "{missed:?}");
            }
        }
        assert_eq!(victim.value("SELECT 'it lives'"), "it lives");
    }
}
