//! `onramp load tpcc`: tables are filled and run on, directly and through the pool, and its check
//! finds what has been changed by hand.

use crate::world::*;
use serde_json::Value;

fn tpcc(target: &str, command: &str, more: &str) -> Ran {
    let line = format!("load tpcc {command} --target {target} {more}");
    run(binary(), &words(&line), LIMIT)
}

/// Changes, and the conditions that each breaks.
const CHANGES: &[(&str, &[u32])] = &[
    (
        "UPDATE tpcc_district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3",
        &[2],
    ),
    (
        "UPDATE tpcc_district SET d_ytd = d_ytd + 1 WHERE d_id = 4",
        &[1, 9],
    ),
    (
        "UPDATE tpcc_warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
        &[8],
    ),
    (
        "DELETE FROM tpcc_order_line WHERE ol_o_id = 1 AND ol_number = 1 AND ol_d_id = 5",
        &[4, 6],
    ),
    (
        "UPDATE tpcc_order_line SET ol_delivery_d = NULL WHERE ol_o_id = 1 AND ol_d_id = 6",
        &[7],
    ),
    (
        "INSERT INTO tpcc_new_order VALUES (1, 7, -5), (1, 7, -3)",
        &[3],
    ),
    (
        "UPDATE tpcc_order SET o_carrier_id = NULL WHERE o_id = 2 AND o_d_id = 7",
        &[5],
    ),
    (
        "UPDATE tpcc_customer SET c_balance = c_balance + 1 WHERE c_id = 8",
        &[10, 12],
    ),
];

#[test]
fn tables_are_filled_run_on_and_checked() {
    for real in pooled_servers() {
        fresh_schema(real, "tpcc");
        let target = |port: u16| format!("mysql://app:app@127.0.0.1:{port}/tpcc");
        let own = target(real.port());
        let missing = tpcc(&own, "run", "");
        assert_eq!(missing.status.code(), Some(1), "{missing:?}");
        says(&missing.stderr, "run the prepare command first");
        let small = "--warehouses 2 --scale-down 100";
        let filled = tpcc(&own, "prepare", small);
        assert_eq!(filled.status.code(), Some(0), "{filled:?}");
        let again = tpcc(&own, "prepare", small);
        assert_eq!(again.status.code(), Some(1), "{again:?}");
        says(&again.stderr, "run the cleanup command first");
        let holds = || {
            let checked = tpcc(&own, "check", small);
            assert_eq!(checked.status.code(), Some(0), "{checked:?}");
            says(&checked.stderr, "tpcc: all consistency conditions hold");
        };
        holds();
        for (command, option) in [("run", "--warehouses 7"), ("check", "--scale-down 10")] {
            let other = tpcc(&own, command, option);
            assert_eq!(other.status.code(), Some(1), "{other:?}");
            says(&other.stderr, "have 2 warehouses and 1000 items, not");
        }
        let pool = fresh_pool(real, "backends_max = 4");
        let Address::Tcp(address) = &pool.address else {
            panic!("{}", pool.address);
        };
        let json = real.folder().join("tpcc.json");
        let json = json.to_str().unwrap();
        let read =
            || -> Value { serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap() };
        for port in [real.port(), address.port()] {
            let more = format!("--connections 8 --events 600 --time 0 --json {json}");
            let ran = tpcc(&target(port), "run", &more);
            assert_eq!(ran.status.code(), Some(0), "{ran:?}");
            says(&ran.stderr, "new orders committed each minute (tpmC)");
            let json = read();
            assert_eq!(json["failed_statements"], 0, "{json:#}");
            let kinds = json["by_statement"].as_array().unwrap();
            let counts = kinds.iter().map(|kind| kind["count"].as_u64().unwrap());
            let counts: Vec<u64> = counts.collect();
            assert_eq!(counts.iter().sum::<u64>(), 600, "{counts:?}");
            assert!(counts[..5].iter().all(|count| *count > 0), "{counts:?}");
            assert!(json["tpmc"].as_f64().unwrap() > 0.0, "{json:#}");
            holds();
        }
        // One client alone draws the same each time: some of its orders have an unused item. It is
        // dealt 26 decks of 23 cards.
        let alone = format!("--rand-seed 5 --events 598 --time 0 --json {json}");
        let ran = tpcc(&own, "run", &alone);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        let kinds = read()["by_statement"].take();
        assert_eq!(kinds[5]["statement"], "new order rolled back");
        let counts: [u64; 6] = std::array::from_fn(|at| kinds[at]["count"].as_u64().unwrap());
        assert!((1..20).contains(&counts[5]), "{counts:?}");
        assert_eq!(counts[0] + counts[5], 260, "{counts:?}");
        assert_eq!(counts[1..5], [260, 26, 26, 26], "{counts:?}");
        holds();
        // Nobody types an order in a second.
        let paced = format!("--paced --time 1 --connections 5 --json {json}");
        let ran = tpcc(&own, "run", &paced);
        assert_eq!(
            (ran.status.code(), &read()["tpmc"]),
            (Some(0), &0.0.into()),
            "{ran:?}"
        );

        let mut admin = real.admin();
        admin.must("USE tpcc");
        for (change, numbers) in CHANGES {
            admin.must(change);
            let checked = tpcc(&own, "check", "");
            assert_eq!(checked.status.code(), Some(3), "{change}: {checked:?}");
            for number in *numbers {
                says(
                    &checked.stderr,
                    &format!("load: tpcc: condition {number}: "),
                );
            }
        }
        let dropped = tpcc(&own, "cleanup", "");
        assert_eq!(dropped.status.code(), Some(0), "{dropped:?}");
    }
}
