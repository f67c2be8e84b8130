//! Transactions: their own backend, their isolation, their end.

use crate::world::*;

/// Clients that leave in a transaction, one behind the other, in front of one backend: what they
/// have not committed is gone, and the backend serves the next client.
#[test]
fn a_client_that_leaves_in_a_transaction_leaves_its_backend_to_others() {
    let test = "leaves_in_transaction";
    for real in pooled_servers() {
        fresh_schema(real, test);
        let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
        let new = || login(&pool.address, &app().schema(test));
        let mut stays = new();
        stays.must("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
        stays.script("INSERT INTO t VALUES (1, 1); SET @mine = 7");
        let write = "UPDATE t SET v = v + 100 WHERE id = 1";
        let left: [&[&str]; 7] = [
            &["SET autocommit = 0", "SELECT v FROM t"],
            &["SET autocommit = 0", write],
            &["BEGIN", write, "SAVEPOINT a", write, "ROLLBACK TO a"],
            &["BEGIN", "SELECT v FROM t FOR UPDATE"],
            &["SET completion_type = 1", HOLD, write],
            &["SET completion_type = 2", HOLD, write],
            &["START TRANSACTION READ ONLY", "SELECT v FROM t"],
        ];
        for (number, texts) in left.iter().enumerate() {
            let mut leaves = new();
            for text in *texts {
                let _ = leaves.query(text).unwrap();
            }
            drop(leaves);
            pool.wait_for_census(&format!("rolled_back: {},", number + 1))
                .unwrap();
            stays.must("UPDATE t SET v = v + 1 WHERE id = 1");
            let sees = "SELECT v, @mine, @@autocommit, LAST_INSERT_ID(), @@completion_type FROM t";
            let seen = stays.rows(sees).texts();
            let v = (number + 2).to_string();
            assert_eq!(seen, [[&v[..], "7", "1", "0", "NO_CHAIN"]], "{texts:?}");
        }
        pool.wait_for_census("dialled: 1,").unwrap();
        // What more is held ends with the connection.
        for texts in [
            &[
                "CREATE TEMPORARY TABLE t (w INT)",
                HOLD,
                "INSERT INTO t VALUES (1)",
            ],
            &["SELECT GET_LOCK('left', 0)", HOLD, write],
            &["XA START 'left'", write, "DO 1"],
        ] {
            let mut leaves = new();
            for text in texts {
                let _ = leaves.query(text).unwrap();
            }
            drop(leaves);
            stays.must("UPDATE t SET v = v + 1 WHERE id = 1");
        }
        let count = left.len();
        pool.wait_for_census(&format!("rolled_back: {count},"))
            .unwrap();
        assert_eq!(stays.value("SELECT v FROM t"), (count + 4).to_string());
        assert_eq!(stays.value("SELECT IS_FREE_LOCK('left')"), "1");
    }
}
