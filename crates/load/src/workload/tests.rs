//! The texts and the mix of each workload, from a fixed seed.
use super::*;

const SHAPE: Shape = Shape {
    tables: 4,
    table_size: 1_000,
    range_size: 100,
    distribution: Distribution::Uniform,
};

/// One event's statements.
fn event(workload: Workload, random: &mut Random) -> Vec<String> {
    let (mut event, mut statements) = (Event::default(), Vec::new());
    loop {
        let mut out = Vec::new();
        if !workload.put_next(&SHAPE, &mut event, random, &mut out) {
            assert!(out.is_empty());
            assert_eq!(usize::from(event.step), statements.len());
            return statements;
        }
        statements.push(String::from_utf8(out).unwrap());
    }
}

/// The statement with every number replaced by `#`.
fn skeleton(statement: &str) -> String {
    let mut out = String::new();
    for c in statement.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !out.ends_with('#') {
            out.push(c);
        }
    }
    out
}

#[test]
fn a_point_select_is_one_statement() {
    let mut random = Random::new(1, 1);
    let one = event(Workload::PointSelect, &mut random);
    assert_eq!(one.len(), 1);
    assert_eq!(skeleton(&one[0]), "SELECT c FROM sbtest# WHERE id=#");
    let old = event(Workload::Select, &mut random);
    assert_eq!(skeleton(&old[0]), "SELECT pad FROM sbtest# WHERE id=#");
}

#[test]
fn tables_and_rows_are_all_used_and_no_others() {
    let mut random = Random::new(2, 2);
    let (mut tables, mut rows) = ([0u32; 4], vec![0u32; 1_000]);
    for _ in 0..40_000 {
        let statement = event(Workload::PointSelect, &mut random).remove(0);
        let rest = statement.strip_prefix("SELECT c FROM sbtest").unwrap();
        let (table, row) = rest.split_once(" WHERE id=").unwrap();
        tables[table.parse::<usize>().unwrap() - 1] += 1;
        rows[row.parse::<usize>().unwrap() - 1] += 1;
    }
    assert!(
        tables.iter().all(|n| (9_500..10_500).contains(n)),
        "{tables:?}"
    );
    assert!(rows.iter().all(|n| (5..100).contains(n)));
}

#[test]
fn a_transaction_has_twenty_statements() {
    let mut random = Random::new(3, 3);
    let all = event(Workload::ReadWrite, &mut random);
    let skeletons: Vec<String> = all.iter().map(|s| skeleton(s)).collect();
    let groups = |n: usize| vec!["#"; n].join("-");
    let point = "SELECT c FROM sbtest# WHERE id=#";
    let mut expected = vec!["BEGIN".to_owned()];
    expected.extend(vec![point.to_owned(); 10]);
    let range = "FROM sbtest# WHERE id BETWEEN # AND #";
    expected.extend([
        format!("SELECT c {range}"),
        format!("SELECT SUM(k) {range}"),
        format!("SELECT c {range} ORDER BY c"),
        format!("SELECT DISTINCT c {range} ORDER BY c"),
        "UPDATE sbtest# SET k=k+# WHERE id=#".to_owned(),
        format!("UPDATE sbtest# SET c='{}' WHERE id=#", groups(10)),
        "DELETE FROM sbtest# WHERE id=#".to_owned(),
        format!(
            "INSERT INTO sbtest# (id,k,c,pad) VALUES (#,#,'{}','{}')",
            groups(10),
            groups(5)
        ),
        "COMMIT".to_owned(),
    ]);
    assert_eq!(skeletons, expected);
    assert_eq!(all.len(), 20);
    let delete = all[17].strip_prefix("DELETE FROM sbtest").unwrap();
    let (table, row) = delete.split_once(" WHERE id=").unwrap();
    assert!(all[18].starts_with(&format!("INSERT INTO sbtest{table} (")));
    assert!(
        all[18].contains(&format!("VALUES ({row},")),
        "the same row again"
    );
    let tables = |s: &String| s.split(' ').nth(3).map(str::to_owned);
    assert!(all[1..11].iter().all(|s| tables(s) == tables(&all[1])));
}

#[test]
fn a_range_has_its_size() {
    let mut random = Random::new(4, 4);
    for _ in 0..100 {
        let range = event(Workload::ReadWrite, &mut random).remove(11);
        let (_, ids) = range.split_once("BETWEEN ").unwrap();
        let (first, last) = ids.split_once(" AND ").unwrap();
        let (first, last): (u32, u32) = (first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(last - first, 99);
    }
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
    let mut random = Random::new(6, 6);
    let (mut event, mut out) = (Event::default(), Vec::new());
    assert!(!Workload::ReadWrite.in_transaction(&event));
    Workload::ReadWrite.put_next(&SHAPE, &mut event, &mut random, &mut out);
    assert!(Workload::ReadWrite.in_transaction(&event));
    assert!(!Workload::PointSelect.in_transaction(&event));
}
