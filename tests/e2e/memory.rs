//! All memory for clients in use: who pays, and that nobody else does.

use crate::audit::{TRAIL, end, id};
use crate::walls::is_root;
use crate::walls::threads::ControlGroup;
use crate::world::*;

const MIB: usize = 1 << 20;
/// Bytes that clients may hold of the 256 MiB of the setting.
const HELD_MAX: usize = 224 * MIB;

fn memory_bytes(census: &str) -> usize {
    let rest = census.split_once("memory_bytes: ").unwrap().1;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

/// Sends so many MiB of long data for a statement; gives the error that ends it.
pub(crate) fn hoard(client: &mut Client, mib: usize) -> Option<ClientError> {
    let id = client.prepare("SELECT LENGTH(?)").id;
    let data = [&id.to_le_bytes()[..], &[0, 0], &vec![b'x'; MIB]].concat();
    for _ in 0..mib {
        client.send(&[(Command::StmtSendLongData, &data)]).ok()?;
        if let Err(error) = client.run(Command::Ping, b"") {
            return Some(error);
        }
    }
    None
}

#[test]
fn who_holds_most_is_closed_when_all_memory_is_in_use_and_nobody_else() {
    for real in pooled_servers() {
        let lines = "groups = 2\nbackends_max = 4\nprepared_max = 8\nmemory_bytes_max = 268435456";
        let pool = fresh_pool(real, &format!("{lines}\n{TRAIL}"));
        let mut good: Vec<Client> = (0..8).map(|_| login(&pool.address, &app())).collect();
        for client in &mut good {
            client.must("SET @mine = 7");
            client.prepare("SELECT @mine");
        }
        let mut bad: Vec<Client> = (0..9).map(|_| login(&pool.address, &app())).collect();
        let hoards = bad.iter_mut().enumerate();
        let refused = hoards.filter_map(|(who, client)| hoard(client, 22 + who));
        let refused: Vec<ClientError> = refused.collect();
        assert!(
            refused.is_empty(),
            "who sends last holds least: {refused:?}"
        );
        let line = pool.wait_for("event=memory-share ").unwrap();
        // The culprit's number stands there, for KILL and SHOW CLIENTS.
        let is_named = |client: &Client| line.contains(&named(client));
        let culprit = bad.iter().find(|client| is_named(client));
        let culprit = culprit.unwrap_or_else(|| panic!("{line}"));
        assert_eq!(end(&pool, id(culprit)), "memory-share");
        for client in &mut good {
            assert_eq!(client.value("SELECT @mine"), "7");
            let id = client.prepare("SELECT 'still'").id;
            assert!(client.execute(id, &[], false).is_ok());
        }
        let said = bad.iter_mut().map(|client| client.query("SELECT 1"));
        let failed: Vec<_> = said
            .map(Result::unwrap)
            .filter(|outcomes| matches!(outcomes[..], [Outcome::Failed(_)]))
            .collect();
        // One is enough; two groups that look at the same moment close one each.
        assert!((1..=2).contains(&failed.len()), "{failed:?}");
        let left = format!("clients: {},", good.len() + bad.len() - failed.len());
        let census = pool.wait_for_census(&left).unwrap();
        assert!(memory_bytes(&census) <= HELD_MAX, "{census}");
        for failure in failed.iter().map(|outcomes| outcomes[0].failure()) {
            assert_eq!(failure.code, 1153, "{failure}");
            assert!(failure.message.contains("memory_bytes_max"), "{failure}");
        }
    }
}

/// Long data has no room of its own for all clients, which some could fill.
#[test]
fn what_some_hoard_takes_no_room_from_others() {
    for real in pooled_servers() {
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 4");
        let mut bad: Vec<Client> = (0..9).map(|_| login(&pool.address, &app())).collect();
        let refused: Vec<ClientError> = bad.iter_mut().filter_map(|bad| hoard(bad, 30)).collect();
        assert!(refused.is_empty(), "{refused:?}");
        let mut good = login(&pool.address, &app());
        let id = good.prepare("SELECT LENGTH(?)").id.to_le_bytes();
        let data = [&id[..], &[0, 0, b'x']].concat();
        good.send(&[(Command::StmtSendLongData, &data)]).unwrap();
        let execution = [&id[..], &[0, 1, 0, 0, 0, 0, 1, 0xFD, 0]].concat();
        let outcomes = good.run(Command::StmtExecute, &execution).unwrap();
        assert_eq!(outcomes[0].rows().rows.len(), 1);
    }
}

/// The process may have all memory of the setting beside what it counts for clients: then too who
/// holds most pays, and not who sends or comes last.
#[test]
fn who_holds_most_is_closed_when_the_process_has_all_memory_beside_that_of_clients() {
    for real in pooled_servers() {
        let lines = "groups = 2\nbackends_max = 4";
        let logins = |pool: &Pool, count| -> Vec<Client> {
            let clients = (0..count).map(|_| login(&pool.address, &app()));
            clients.collect()
        };
        let usual = fresh_pool(real, lines);
        let clients = logins(&usual, 8);
        let max = memory_of(&usual, "VmRSS") + (8 << 20);
        drop((clients, usual));
        let pool = fresh_pool(real, &format!("{lines}\nmemory_bytes_max = {max}"));
        let mut good = logins(&pool, 6);
        let [mut most, mut less] = [(); 2].map(|()| login(&pool.address, &app()));
        assert!(hoard(&mut most, 9).is_none() && hoard(&mut less, 4).is_none());
        logs(&pool, "event=memory-share ", &named(&most));
        // A long command waits until there is memory again; then newcomers are let in, too.
        let long = format!("SELECT LENGTH('{}')", "x".repeat(MIB));
        assert_eq!(good[0].value(&long), MIB.to_string());
        assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
        assert!(less.run(Command::Ping, b"").is_ok());
        let go_on = good
            .iter_mut()
            .all(|client| client.value("SELECT 2") == "2");
        assert!(go_on);
        let census = pool.wait_for_census("memory_closed: ").unwrap();
        assert!(census.contains("memory_closed: 1,"), "{census}");
    }
}

/// Starts a pool in a control group.
fn pool_in(group: &ControlGroup, lines: &str) -> Option<Pool> {
    let real = pooled(server)?;
    let file = config_file(real, "in_group.toml", &config(&real.address(), lines));
    let script = group.script();
    let prefix = ["sh", "-c", &script, "sh"];
    let pool = Pool::start_behind(&prefix, binary(), &["--config", file.to_str().unwrap()]);
    Some(pool.unwrap_or_else(|why| panic!("{why}")))
}

#[test]
fn a_full_control_group_refuses_and_is_not_killed() {
    if !is_root() {
        return;
    }
    let files = ["memory.limit_in_bytes", "memory.max"];
    let group = or_return!(ControlGroup::new("memory", files, "536870912"));
    let mut pool = or_return!(pool_in(&group, "groups = 2\nbackends_max = 16"));
    let mut good = login(&pool.address, &app());
    good.must("SET @mine = 7");
    let data = vec![b'x'; MIB];
    let mut refused = 0;
    // Replies of 20 MiB each, and then twice what the group has; nobody reads what it is answered.
    let mut full: Vec<Client> = (0..8).map(|_| login(&pool.address, &app())).collect();
    for client in &mut full {
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) \
            SELECT REPEAT('x', 1048576) FROM n";
        send(client, rows);
    }
    for _ in 0..40 {
        let Ok(mut client) = Client::connect(&pool.address, &app()) else {
            refused += 1;
            continue;
        };
        let id = client.prepare("SELECT LENGTH(?)").id;
        let data = [&id.to_le_bytes()[..], &[0, 0], &data].concat();
        let sent = (0..25).try_for_each(|_| client.send(&[(Command::StmtSendLongData, &data)]));
        refused += usize::from(sent.is_err());
        full.push(client);
    }
    assert!(pool.is_running(), "{}", pool.said());
    let census = pool.wait_for_census("memory_closed: ").unwrap();
    let is_bounded = refused > 0 || !census.contains("memory_closed: 0,");
    assert!(is_bounded, "{census}");
    assert_eq!(good.value("SELECT @mine"), "7");
    drop(full);
    drop(pool);
}

#[test]
fn groups_are_as_many_as_a_control_group_has_cpu_and_threads_for() {
    if !is_root() {
        return;
    }
    let quota = ["cpu.cfs_quota_us", "cpu.max"];
    let cases = [("cpu", quota, "100000"), ("pids", ["pids.max"; 2], "33")];
    for (controller, files, limit) in cases {
        let Some(group) = ControlGroup::new(controller, files, limit) else {
            continue;
        };
        let pool = or_return!(pool_in(&group, "backends_max = 64"));
        assert!(pool.said().contains("; 1 groups ("), "{}", pool.said());
        drop(pool);
    }
}
