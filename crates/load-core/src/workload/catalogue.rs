//! The catalogue: each workload's statements, in order.
//!
//! Texts, counts and the choice of tables are what sysbench 1.0.20 and 0.5 send for the script of
//! the same name, as a server's general log shows it,
//! but for line breaks. 1.0 draws a table for each group of equal
//! statements, 0.5 one for the whole event; 0.5 prepares nothing. The user's own statements are
//! what `--statement` says.

use super::script::{Script, Source, Statement, Table};
use super::{ScriptArgs, Workload};
use crate::random::Rows;
use Source::{C, Key, NewRow, Pad, Plus, Row, SameRow};

/// Transactions of TPC-C, as reports number them.
const TPCC: [&str; 6] = [
    "new order",
    "payment",
    "order status",
    "delivery",
    "stock level",
    "new order rolled back",
];

const POINT: &str = "SELECT c FROM sbtest# WHERE id=?";
const UPDATE_K: &str = "UPDATE sbtest# SET k=k+1 WHERE id=?";
const UPDATE_C: &str = "UPDATE sbtest# SET c=? WHERE id=?";
const DELETE: &str = "DELETE FROM sbtest# WHERE id=?";
const INSERT: &str = "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)";
const INSERT_AUTO: &str = "INSERT INTO sbtest# (id, k, c, pad) VALUES (0, ?, ?, ?)";

/// A statement that is prepared where statements are.
fn prepared(text: &str, sources: &[Source]) -> Statement {
    Statement {
        text: text.to_owned(),
        sources: sources.to_vec(),
        prepared: true,
    }
}

/// A statement that is always sent as text.
fn plain(text: &str, sources: &[Source]) -> Statement {
    Statement {
        prepared: false,
        ..prepared(text, sources)
    }
}

/// The script of `workload` over `tables` tables, for so many connections.
pub fn script(
    workload: Workload,
    args: &ScriptArgs,
    tables: u32,
    rows: Rows,
    connections: u32,
) -> Script {
    let mut script = Script::without_steps(workload, args, tables, rows, connections);
    fill(&mut script, workload, args);
    script
}

/// Appends the steps of `workload`.
fn fill(script: &mut Script, workload: Workload, args: &ScriptArgs) {
    use Workload::*;
    match workload {
        PointSelect => script.add(prepared(POINT, &[Row]), Table::Any, 1),
        ReadOnly => {
            put_reads(script, args);
            wrap(script, args);
        }
        ReadWrite => {
            put_reads(script, args);
            put_writes(script, args);
            wrap(script, args);
        }
        WriteOnly => {
            put_writes(script, args);
            wrap(script, args);
        }
        Insert => script.add(insert(args), Table::Any, 1),
        Delete => script.add(prepared(DELETE, &[Row]), Table::Any, 1),
        UpdateIndex => put_index_updates(script, args),
        UpdateNonIndex => put_non_index_updates(script, args),
        RandomPoints => {
            let places = vec!["?"; args.random_points.into()].join(", ");
            let text = format!("SELECT id, k, c, pad FROM sbtest# WHERE k IN ({places})");
            let sources = vec![Row; args.random_points.into()];
            script.add(prepared(&text, &sources), Table::First, 1);
        }
        RandomRanges => {
            let count = args.number_of_ranges.into();
            let ranges = vec!["k BETWEEN ? AND ?"; count].join(" OR ");
            let text = format!("SELECT count(k) FROM sbtest# WHERE {ranges}");
            let sources = [Row, Plus(args.delta)].repeat(count);
            script.add(prepared(&text, &sources), Table::First, 1);
        }
        BulkInsert => script.add(plain("INSERT INTO sbtest# VALUES", &[]), Table::Own, 1),
        Statements => {
            for own in &args.statements {
                let statement = prepared(&own.text, &vec![Row; own.rows]);
                script.add(statement, Table::Any, own.times);
            }
        }
        // What its connections say depends on answers: it is no script.
        Bank | Append | Register => {}
        // These are the names of its transactions.
        Tpcc => {
            for name in TPCC {
                script.add(plain(name, &[]), Table::First, 1);
            }
        }
        OldSelect => {
            let text = "SELECT pad FROM sbtest# WHERE id=?";
            script.add(plain(text, &[Row]), Table::Any, 1);
        }
        OldOltp => put_old_oltp(script, args),
        OldSimple => script.add(plain(POINT, &[Row]), Table::Any, 1),
        OldInsert => script.add(insert(args), Table::Any, 1),
        OldDelete => script.add(plain(DELETE, &[Row]), Table::Any, 1),
        OldUpdateIndex => script.add(plain(UPDATE_K, &[Row]), Table::Any, 1),
        OldUpdateNonIndex => script.add(plain(UPDATE_C, &[C, Row]), Table::Any, 1),
    }
}

fn insert(args: &ScriptArgs) -> Statement {
    if args.auto_inc {
        plain(INSERT_AUTO, &[Row, C, Pad])
    } else {
        plain(INSERT, &[Key, Row, C, Pad])
    }
}

fn wrap(script: &mut Script, args: &ScriptArgs) {
    if !args.skip_trx {
        script.wrap(prepared("BEGIN", &[]), prepared("COMMIT", &[]));
    }
}

/// The four kinds of ranges, with how many there are of each.
fn ranges(args: &ScriptArgs) -> [(&'static str, u16); 4] {
    let count = |count: u16| if args.range_selects { count } else { 0 };
    [
        (
            "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?",
            count(args.simple_ranges),
        ),
        (
            "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?",
            count(args.sum_ranges),
        ),
        (
            "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
            count(args.order_ranges),
        ),
        (
            "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
            count(args.distinct_ranges),
        ),
    ]
}

fn put_reads(script: &mut Script, args: &ScriptArgs) {
    script.add(prepared(POINT, &[Row]), Table::Any, args.point_selects);
    for (text, count) in ranges(args) {
        // As in sysbench, a range may reach past the table's end.
        let sources = [Row, Plus(args.range_size - 1)];
        script.add(prepared(text, &sources), Table::Any, count);
    }
}

fn put_index_updates(script: &mut Script, args: &ScriptArgs) {
    script.add(prepared(UPDATE_K, &[Row]), Table::Any, args.index_updates);
}

fn put_non_index_updates(script: &mut Script, args: &ScriptArgs) {
    let statement = prepared(UPDATE_C, &[C, Row]);
    script.add(statement, Table::Any, args.non_index_updates);
}

fn put_writes(script: &mut Script, args: &ScriptArgs) {
    put_index_updates(script, args);
    put_non_index_updates(script, args);
    let both = vec![
        prepared(DELETE, &[NewRow]),
        prepared(INSERT, &[SameRow, Row, C, Pad]),
    ];
    script.add_all(both, Table::Any, args.delete_inserts);
}

fn put_old_oltp(script: &mut Script, args: &ScriptArgs) {
    let mut table = Table::Any;
    let mut add = |text: &str, sources: &[Source], count: u16| {
        script.add(plain(text, sources), table, count);
        if count > 0 {
            table = Table::Same;
        }
    };
    if !args.oltp_write_only {
        add(POINT, &[Row], args.point_selects);
        for (text, count) in ranges(args) {
            let text = text.replace("SUM(k)", "SUM(K)");
            add(&text, &[Row, Plus(args.range_size - 1)], count);
        }
    }
    if !args.oltp_read_only {
        add(UPDATE_K, &[Row], args.index_updates);
        add(UPDATE_C, &[C, Row], args.non_index_updates);
        for _ in 0..args.delete_inserts {
            add(DELETE, &[NewRow], 1);
            add(INSERT, &[SameRow, Row, C, Pad], 1);
        }
    }
    if !args.skip_trx {
        script.wrap(plain("BEGIN", &[]), plain("COMMIT", &[]));
    }
}
