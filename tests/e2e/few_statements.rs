//! Prepared statements where a server takes few of them.

use crate::world::*;

/// The server takes few statements: what backends keep for others gives way, and clients may have
/// prepared more than that all the same.
#[test]
fn a_server_that_takes_few_statements_refuses_none() {
    for real in own_servers(&["--max-prepared-stmt-count=8"]) {
        let pool = fresh_pool(&real, "backends_max = 4\ngroups = 1");
        let mut clients = Vec::new();
        for number in 0..4 {
            let mut client = login(&pool.address, &app());
            client.must(HOLD);
            let texts = (0..6).map(|other| format!("SELECT {number}{other}, ?"));
            let prepared: Vec<_> = texts.map(|sql| client.prepare(&sql)).collect();
            clients.push((client, prepared));
        }
        for (client, prepared) in &mut clients {
            for statement in prepared {
                let reply = client.execute(statement.id, &[Some(b"1")], false).unwrap();
                assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
            }
        }
        let count = real
            .admin()
            .rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
        let count: u32 = count.texts()[0][1].parse().unwrap();
        assert!(count <= 4, "{count} statements for 4 backends");
    }
}

/// The server takes fewer statements than before: the pool closes those that it keeps for later,
/// and clients prepare on.
#[test]
fn kept_statements_give_way_where_the_server_takes_fewer() {
    const STATEMENTS: usize = 40;
    const FEWER: usize = 20;
    for real in own_servers(&[]) {
        let pool = fresh_pool(&real, "groups = 1\nbackends_max = 2");
        let mut clients = [(); 2].map(|()| login(&pool.address, &app()));
        for client in &mut clients {
            client.must(HOLD);
        }
        for (who, client) in clients.iter_mut().enumerate() {
            for number in 0..STATEMENTS {
                client.prepare(&format!("SELECT {who}, {number}"));
            }
            client.must("COMMIT");
        }
        let mut admin = real.admin();
        let mut count = || {
            let rows = admin.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
            rows.texts()[0][1].parse::<usize>().unwrap()
        };
        assert!(count() >= 2 * STATEMENTS);
        real.admin()
            .must(&format!("SET GLOBAL max_prepared_stmt_count = {FEWER}"));
        // The pool looks at it once a second.
        until(|| match count() {
            kept if kept <= FEWER => Ok(()),
            kept => Err(format!("{kept} statements are kept")),
        });
        for client in &mut clients {
            let id = client.prepare("SELECT 'one more'").id;
            assert!(client.execute(id, &[], false).is_ok());
        }
    }
}
