//! The texts and the mix of each workload, from a fixed seed.
use crate::options::LoadArgs;
use clap::Parser;
use load_core::random::Random;
use load_core::workload::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    load: LoadArgs,
}

/// The script that these options make, with 3 tables for 7 connections.
fn script(line: &str) -> Script {
    let fixed = "--target mysql://a@h/t --tables 3 --table-size 1000 --connections 7 run";
    let words = ["load"].into_iter().chain(line.split_whitespace());
    let words = words.chain(fixed.split(' '));
    Line::try_parse_from(words).unwrap().load.make_script()
}

/// A connection on its own.
struct Alone {
    script: Script,
    random: Random,
    made: u32,
}

impl Alone {
    fn new(line: &str, seed: u64) -> Alone {
        Alone {
            script: script(line),
            random: Random::new(seed, seed),
            made: 0,
        }
    }

    /// One event's statements.
    fn texts(&mut self) -> Vec<String> {
        let mut event = Event::default();
        if let Some(rows) = self.script.rows_of_next(self.made) {
            Script::begin_bulk(&mut event, rows);
        }
        let mut draw = Draw {
            random: &mut self.random,
            index: 4,
            made: &mut self.made,
        };
        let mut statements = Vec::new();
        while self.script.advance(&mut event, &mut draw) {
            let mut out = Vec::new();
            self.script.put_text(&mut event, &mut draw, &mut out);
            statements.push(String::from_utf8(out).unwrap());
        }
        assert_eq!(usize::from(event.step), statements.len());
        statements
    }
}

/// The statement with every number replaced by `#`, and every random string by `C` or `P`.
fn skeleton(statement: &str) -> String {
    let mut out = String::new();
    for c in statement.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !out.ends_with('#') {
            out.push(c);
        }
    }
    let groups = |n: usize| format!("'{}'", vec!["#"; n].join("-"));
    out.replace(&groups(10), "C").replace(&groups(5), "P")
}

fn skeletons(line: &str) -> Vec<String> {
    let texts = Alone::new(line, 3).texts();
    texts.iter().map(|text| skeleton(text)).collect()
}

const POINT: &str = "SELECT c FROM sbtest# WHERE id=#";
const RANGES: [&str; 4] = [
    "SELECT c FROM sbtest# WHERE id BETWEEN # AND #",
    "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #",
    "SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
    "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
];
const UPDATE_K: &str = "UPDATE sbtest# SET k=k+# WHERE id=#";
const UPDATE_C: &str = "UPDATE sbtest# SET c=C WHERE id=#";
const DELETE: &str = "DELETE FROM sbtest# WHERE id=#";
const INSERT: &str = "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, C, P)";
const WRITES: [&str; 4] = [UPDATE_K, UPDATE_C, DELETE, INSERT];

fn transaction(middle: &[&[&'static str]]) -> Vec<&'static str> {
    [&["BEGIN"][..], &middle.concat(), &["COMMIT"]].concat()
}

#[test]
fn events_are_made_of_their_statements() {
    let points = [POINT; 10];
    for (line, expected) in [
        ("oltp_point_select", vec![POINT]),
        ("oltp_simple", vec![POINT]),
        ("select", vec!["SELECT pad FROM sbtest# WHERE id=#"]),
        ("oltp_read_only", transaction(&[&points, &RANGES])),
        ("oltp_read_write", transaction(&[&points, &RANGES, &WRITES])),
        ("oltp_write_only", transaction(&[&WRITES])),
        ("oltp_insert", vec![INSERT]),
        ("insert", vec![INSERT]),
        ("oltp_delete", vec![DELETE]),
        ("delete", vec![DELETE]),
        ("oltp_update_index", vec![UPDATE_K]),
        ("update_index", vec![UPDATE_K]),
        ("oltp_update_non_index", vec![UPDATE_C]),
        ("update_non_index", vec![UPDATE_C]),
        (
            "select_random_points --random-points 3",
            vec!["SELECT id, k, c, pad FROM sbtest# WHERE k IN (#, #, #)"],
        ),
        (
            "select_random_ranges --number-of-ranges 2",
            vec!["SELECT count(k) FROM sbtest# WHERE k BETWEEN # AND # OR k BETWEEN # AND #"],
        ),
    ] {
        assert_eq!(skeletons(line), expected, "{line}");
    }
    let old = skeletons("oltp");
    let upper = old.iter().map(|text| text.replace("SUM(K)", "SUM(k)"));
    assert_eq!(
        upper.collect::<Vec<_>>(),
        transaction(&[&points, &RANGES, &WRITES])
    );
    assert!(old.contains(&"SELECT SUM(K) FROM sbtest# WHERE id BETWEEN # AND #".to_owned()));
}

#[test]
fn options_change_the_mix() {
    for (options, expected) in [
        (
            "--skip_trx=on --range-selects=off --point-selects 1 --delete-inserts 2",
            vec![POINT, UPDATE_K, UPDATE_C, DELETE, INSERT, DELETE, INSERT],
        ),
        (
            "--point-selects 0 --sum-ranges 0 --order-ranges 2 --distinct-ranges 0 \
             --index-updates 2 --non-index-updates 0 --delete-inserts 0",
            transaction(&[&[RANGES[0], RANGES[2], RANGES[2], UPDATE_K, UPDATE_K]]),
        ),
    ] {
        for workload in ["oltp_read_write", "oltp"] {
            assert_eq!(
                skeletons(&format!("{workload} {options}")),
                expected,
                "{workload} {options}"
            );
        }
    }
    let ends = ["BEGIN".to_owned(), "COMMIT".to_owned()];
    assert_eq!(
        skeletons("oltp --oltp-read-only=on --oltp-write-only=on"),
        ends
    );
    assert_eq!(
        skeletons("oltp --oltp-read-only=on --point-selects 1 --range-selects=off"),
        transaction(&[&[POINT]])
    );
    assert_eq!(skeletons("oltp_update_index --index-updates 2").len(), 2);
}

/// The table's number in a statement.
fn table(text: &str) -> u32 {
    let (_, rest) = text.split_once("sbtest").unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

/// The number behind `word`.
fn number(text: &str, word: &str) -> i64 {
    let (_, rest) = text.split_once(word).unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '-');
    digits.into_iter().next().unwrap().parse().unwrap()
}

#[test]
fn equal_statements_share_a_table_and_0_5_has_one_for_all() {
    let mut new = Alone::new("oltp_read_write --delete-inserts 2", 5);
    let mut old = Alone::new("oltp", 5);
    let (mut differ, mut tables) = (false, [false; 4]);
    for _ in 0..50 {
        let all = new.texts();
        let of: Vec<u32> = all[1..all.len() - 1]
            .iter()
            .map(|text| table(text))
            .collect();
        assert!(of[..10].iter().all(|&one| one == of[0]), "{of:?}");
        assert!(of[16..20].iter().all(|&one| one == of[16]), "{of:?}");
        differ |= of[0] != of[10];
        for (delete, insert) in [(&all[17], &all[18]), (&all[19], &all[20])] {
            assert_eq!(number(delete, "id="), number(insert, "VALUES ("));
        }
        let all = old.texts();
        let of: Vec<u32> = all[1..all.len() - 1]
            .iter()
            .map(|text| table(text))
            .collect();
        assert!(of.iter().all(|&one| one == of[0]), "{of:?}");
        tables[of[0] as usize] = true;
    }
    assert!(differ);
    assert_eq!(tables, [false, true, true, true]);
    let mut first = Alone::new("select_random_points", 1);
    assert!((0..20).all(|_| table(&first.texts()[0]) == 1));
}

#[test]
fn a_range_has_its_size() {
    let mut alone = Alone::new("oltp_read_only --range-size 30", 4);
    for _ in 0..100 {
        let range = alone.texts().remove(11);
        assert_eq!(number(&range, "AND ") - number(&range, "BETWEEN "), 29);
    }
    let text = Alone::new("select_random_ranges --delta 8", 4)
        .texts()
        .remove(0);
    assert_eq!(number(&text, "AND ") - number(&text, "BETWEEN "), 8);
}

#[test]
fn a_new_row_has_a_key_that_no_other_has() {
    let mut alone = Alone::new("oltp_insert", 1);
    assert_eq!(number(&alone.texts()[0], "VALUES ("), 0, "the server's");
    let mut seen = Vec::new();
    for index in 0..7 {
        let mut alone = Alone::new("oltp_insert --auto-inc=off", index.into());
        for _ in 0..100 {
            let mut event = Event::default();
            let mut draw = Draw {
                random: &mut alone.random,
                index,
                made: &mut alone.made,
            };
            alone.script.advance(&mut event, &mut draw);
            let mut out = Vec::new();
            alone.script.put_text(&mut event, &mut draw, &mut out);
            let text = String::from_utf8(out).unwrap();
            seen.push(number(&text, "VALUES ("));
        }
    }
    assert!(seen.iter().all(|&key| i32::try_from(key).is_ok()));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 700);
}

#[test]
fn rows_in_bulk_fill_a_statement_and_go_on_in_the_next() {
    let mut alone = Alone::new("bulk_insert", 1);
    let mut next = 1;
    for _ in 0..3 {
        let text = alone.texts().remove(0);
        let values = text.strip_prefix("INSERT INTO sbtest5 VALUES").unwrap();
        assert!(
            (520_000..=524_288 + 30).contains(&text.len()),
            "{}",
            text.len()
        );
        for value in values.trim_matches(['(', ')']).split("),(") {
            assert_eq!(value, format!("{next},{next}"));
            next += 1;
        }
    }
    let mut event = Event::default();
    Script::begin_bulk(&mut event, 17);
    assert_eq!(alone.script.weight(&event), 17, "each row is an event");
}

#[test]
fn strings_fill_their_columns_but_for_one_character() {
    let mut out = Vec::new();
    put_row_values(&mut out, u32::MAX, 0, &mut Random::new(5, 5));
    let text = String::from_utf8(out).unwrap();
    let values: Vec<&str> = text.trim_matches(['(', ')']).split(',').collect();
    assert_eq!((values[0], values[1]), ("4294967295", "0"));
    assert_eq!((values[2].len(), values[3].len()), (119 + 2, 59 + 2));
}

#[test]
fn only_a_transaction_needs_a_rollback() {
    for (line, expected) in [
        ("oltp_write_only", [true; 6].to_vec()),
        ("oltp_write_only --skip-trx=on", [false; 4].to_vec()),
        ("oltp_point_select", vec![false]),
    ] {
        let mut alone = Alone::new(line, 6);
        let (mut event, mut found) = (Event::default(), Vec::new());
        let mut draw = Draw {
            random: &mut alone.random,
            index: 0,
            made: &mut alone.made,
        };
        assert!(!alone.script.in_transaction(&event));
        while alone.script.advance(&mut event, &mut draw) {
            found.push(alone.script.in_transaction(&event));
        }
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn a_script_without_statements_is_seen() {
    assert!(!script("oltp_update_index").is_empty());
    assert!(script("oltp_update_index --index-updates 0").is_empty());
}

/// A statement as it is prepared, its number in the script and in a connection, and its values.
type Prepared = (String, u16, Option<u32>, Vec<u8>);

fn prepared_event(alone: &mut Alone) -> Vec<Prepared> {
    let mut event = Event::default();
    let mut draw = Draw {
        random: &mut alone.random,
        index: 0,
        made: &mut alone.made,
    };
    let mut all = Vec::new();
    while alone.script.advance(&mut event, &mut draw) {
        let (mut text, mut values) = (Vec::new(), Vec::new());
        alone.script.put_prepared_text(&event, &mut text);
        let (number, key) = (alone.script.number_of(&event), alone.script.key(&event));
        alone
            .script
            .put_values(0x0403_0201, &mut event, &mut draw, &mut values);
        all.push((String::from_utf8(text).unwrap(), number, key, values));
    }
    all
}

/// The values of a COM_STMT_EXECUTE: numbers as they are, strings quoted.
fn values_of(arguments: &[u8], count: usize) -> Vec<String> {
    assert_eq!(arguments[..9], [1, 2, 3, 4, 0, 1, 0, 0, 0]);
    let rest = &arguments[9..];
    if count == 0 {
        assert!(rest.is_empty());
        return Vec::new();
    }
    let (nulls, rest) = rest.split_at(count.div_ceil(8));
    assert!(nulls.iter().all(|&byte| byte == 0));
    assert_eq!(rest[0], 1, "the types are given");
    let (types, mut rest) = rest[1..].split_at(2 * count);
    let mut values = Vec::new();
    for kind in types.chunks(2) {
        let value = match kind {
            [8, 0] => {
                let (number, tail) = rest.split_first_chunk::<8>().unwrap();
                rest = tail;
                i64::from_le_bytes(*number).to_string()
            }
            [0xFD, 0] => {
                let (text, tail) = rest[1..].split_at(rest[0].into());
                rest = tail;
                format!("'{}'", String::from_utf8_lossy(text))
            }
            other => panic!("type {other:?}"),
        };
        values.push(value);
    }
    assert!(rest.is_empty());
    values
}

#[test]
fn prepared_statements_with_their_values_are_the_texts() {
    for workload in [
        "oltp_read_write",
        "oltp_update_non_index",
        "select_random_points",
        "select_random_ranges",
    ] {
        let line = format!("{workload} --db-ps-mode auto");
        let texts = Alone::new(&line, 8).texts();
        let prepared = prepared_event(&mut Alone::new(&line, 8));
        assert_eq!(texts.len(), prepared.len());
        for (expected, (text, _, key, arguments)) in texts.iter().zip(&prepared) {
            assert!(key.is_some(), "{text}");
            let mut parts = text.split('?');
            let mut filled = parts.next().unwrap().to_owned();
            let values = values_of(arguments, text.matches('?').count());
            for (value, part) in values.iter().zip(parts) {
                filled.push_str(value);
                filled.push_str(part);
            }
            assert_eq!(&filled, expected);
        }
    }
}

#[test]
fn a_statement_is_prepared_once_for_each_table() {
    let mut alone = Alone::new("oltp_read_write --db-ps-mode auto --delete-inserts 2", 9);
    let (mut by_key, mut by_text) = (std::collections::HashMap::new(), Vec::new());
    for _ in 0..100 {
        for (text, number, key, _) in prepared_event(&mut alone) {
            let entry = by_key.entry(key.unwrap()).or_insert((text.clone(), number));
            assert_eq!(*entry, (text.clone(), number), "a key stands for one text");
            by_text.push(text);
        }
    }
    by_text.sort();
    by_text.dedup();
    assert_eq!((by_key.len(), by_text.len()), (9 * 3 + 2, 9 * 3 + 2));
}

#[test]
fn what_sysbench_sends_as_text_is_not_prepared() {
    for line in [
        "oltp_insert --db-ps-mode auto",
        "bulk_insert --db-ps-mode auto",
        "oltp --db-ps-mode auto",
        "oltp_read_write",
    ] {
        let all = prepared_event(&mut Alone::new(line, 1));
        assert!(all.iter().all(|(_, _, key, _)| key.is_none()), "{line}");
    }
}

#[test]
fn verbs_are_those_of_0_5() {
    use Verb::*;
    let verbs = |line| -> Vec<Verb> {
        let mut alone = Alone::new(line, 3);
        let (mut event, mut found) = (Event::default(), Vec::new());
        let mut draw = Draw {
            random: &mut alone.random,
            index: 0,
            made: &mut alone.made,
        };
        while alone.script.advance(&mut event, &mut draw) {
            found.push(alone.script.verb(&event));
        }
        found
    };
    let expected = [&[Other][..], &[Select; 14], &[Change; 4], &[Commit]].concat();
    assert_eq!(verbs("oltp"), expected);
    assert_eq!(verbs("select_random_ranges"), [Select]);
    assert_eq!(verbs("bulk_insert"), [Change]);
}

#[test]
fn own_statements_run_in_order_with_random_rows_and_doubled_signs() {
    let line = Line::try_parse_from([
        "load",
        "statements",
        "--statement=2*SELECT c FROM sbtest# WHERE id IN (?, ?)",
        "--statement=SELECT '??', '##'",
        "--target=mysql://a@h/t",
        "run",
    ]);
    let load = line.unwrap().load;
    load.check().unwrap();
    let mut alone = Alone {
        script: load.make_script(),
        random: Random::new(1, 1),
        made: 0,
    };
    let twice = "SELECT c FROM sbtest# WHERE id IN (#, #)";
    let texts = alone.texts();
    let got: Vec<_> = texts[..2].iter().map(|text| skeleton(text)).collect();
    assert_eq!(got, [twice, twice]);
    assert_eq!(texts[2..], ["SELECT '?', '#'"]);
    let titles: Vec<_> = alone.script.titles().collect();
    assert_eq!(
        titles,
        [
            "SELECT c FROM sbtest# WHERE id IN (?, ?)",
            "SELECT '??', '##'"
        ]
    );
}

#[test]
fn own_statements_and_their_workload_belong_together() {
    let check = |words: &[&str]| {
        let fixed = ["--target=mysql://a@h/t", "run"];
        let words = ["load"].iter().chain(words).chain(&fixed);
        Line::try_parse_from(words)
            .map_err(|e| e.to_string())?
            .load
            .check()
    };
    let error = |words: &[&str]| check(words).unwrap_err();
    assert!(error(&["statements"]).contains("needs a --statement"));
    let elsewhere = ["oltp_insert", "--statement=SELECT 1"];
    assert!(error(&elsewhere).contains("for the workload `statements` alone"));
    assert!(error(&["statements", "--statement=0*SELECT 1"]).contains("1 to 65,535"));
    assert!(error(&["statements", "--statement=3* "]).contains("expected a statement"));
    check(&["statements", "--statement=SELECT 2*3"]).unwrap();
}
