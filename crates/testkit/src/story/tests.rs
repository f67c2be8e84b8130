//! Tests of the format: what is read, what is refused, and that what is written is read again.

use super::*;
use crate::oracle::{Backends, draw, story};
use crate::real::Flavour;

fn parsed(text: &str) -> Vec<Story> {
    parse(text, "own", Flavour::MariaDb).unwrap()
}

/// A text without the numbers in the names of statements.
fn unnumbered(text: &str) -> Vec<String> {
    let is_statement = |word: &str| {
        let number = word
            .strip_prefix('p')
            .map(|rest| rest.trim_end_matches(':'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let words = |line: &str| {
        let words = line.split(' ').filter(|word| !is_statement(word));
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(words).collect()
}

#[test]
fn what_the_oracle_prints_is_read_as_it_was_meant() {
    for of in [Flavour::MariaDb, Flavour::MySql] {
        for seed in 1..=60 {
            let steps = draw(seed, Backends { count: 3, of });
            let setup = story("seed", 3, &steps);
            let read = parse(&setup, "own", of);
            assert_eq!(read.unwrap_or_else(|why| panic!("{why}: {setup}")).len(), 1);
            // Without what makes tables, it is the same again, but for the numbers of statements.
            let text = print("seed", "", &[], &steps);
            let read = parse(&text, "own", of).unwrap_or_else(|why| panic!("{why}: {text}"));
            let steps: Vec<Step> = read[0].lines.iter().map(|line| line.step.clone()).collect();
            assert_eq!(
                unnumbered(&print("seed", "", &[], &steps)),
                unnumbered(&text)
            );
        }
    }
}

#[test]
fn lines_become_steps_with_what_is_expected() {
    let stories = parsed(
        "let probe = SELECT @@x\n\
         only mariadb\n\
         story one\n\
         backends 2\n\
         pool wait_ms_max = 5\n\
         watch b: $probe\n\
         for set, value:\n\
         - SET x = 1 | 1\n\
         - SET x = 2 | 2\n\
         a: $set \\\n\
             /* $schema_b */ => ok\n\
         end\n\
         watch nothing\n\
         if mysql\n\
         a: SELECT 'elsewhere'\n\
         end\n\
         a, b prepare p: SELECT ?\n\
         a execute p ('it\\'s', NULL) => pool: error 1 or\n\
         b waits: UPDATE t\n\
         a: COMMIT\n\
         b goes on => or error 2\n",
    );
    let [story] = &stories[..] else {
        panic!("{stories:?}");
    };
    assert_eq!(
        (story.backends, &story.settings[..]),
        (2, "wait_ms_max = 5\n")
    );
    let lines: Vec<String> = story
        .lines
        .iter()
        .map(|line| {
            format!(
                "{} {} {:?} {:?}",
                line.number, line.step.who, line.step.act, line.expected
            )
        })
        .filter(|line| !line.contains("Join"))
        .collect();
    assert_eq!(
        lines,
        [
            "10 0 Sql(\"SET x = 1 /* own_b */\") Both(\"ok\")",
            "10 1 Sql(\"SELECT @@x\") Same",
            "10 0 Sql(\"SET x = 2 /* own_b */\") Both(\"ok\")",
            "10 1 Sql(\"SELECT @@x\") Same",
            "17 0 Prepare(0, \"SELECT ?\") Same",
            "17 1 Prepare(1, \"SELECT ?\") Same",
            "18 0 Execute(0, [Some(\"it's\"), None], false) Pool(\"error 1 or\")",
            "19 1 Blocked(\"UPDATE t\", [Step { who: 0, act: Sql(\"COMMIT\"), claim: None, late: \
             false }]) Or(\"error 2\")",
        ]
    );
    assert!(parsed("only mysql\nstory one\na: SELECT 1").is_empty());
}

#[test]
fn a_line_that_cannot_be_understood_is_named() {
    for (text, why) in [
        ("story one\na SELECT 1", "line 2: no act"),
        ("story one\n\nfor x:\n- 1", "line 3: no `end`"),
        ("story one\na waits: SELECT 1", "line 2: never `goes on`"),
        ("story one\na joins with NO_SUCH", "line 2: no flag"),
        ("story one\na kills b query", "line 2: nobody"),
        ("story one\na bytes: \\q", "line 2: no escape"),
    ] {
        let said = parse(text, "own", Flavour::MariaDb).unwrap_err();
        assert!(said.starts_with(why), "{said}");
    }
}

#[test]
fn answers_are_judged_by_what_is_expected() {
    let reply = |whole: &str, brief: &str| Reply {
        whole: whole.into(),
        brief: brief.into(),
    };
    let (one, refused) = (reply("One", "1"), reply("Refused", "error 1235: is gone"));
    for (expected, direct, pooled, is_right) in [
        ("", &one, &one, true),
        ("", &one, &refused, false),
        (" => 1", &one, &one, true),
        (" => 2", &one, &one, false),
        (" => 1", &one, &refused, false),
        (" => or error 1235", &one, &refused, true),
        (" => or error 1235 other", &one, &refused, false),
        (" => pool: error 1235 gone", &one, &refused, true),
        (" => pool: error 1235", &one, &one, false),
    ] {
        let story = &parsed(&format!("story s\na joins\na: SELECT 1{expected}"))[0];
        let joined = reply("in", "in");
        let direct = [joined.clone(), direct.clone()];
        let said = judge("f", story, &direct, Some(&[joined, pooled.clone()]));
        assert_eq!(said.is_empty(), is_right, "{expected}: {said}");
    }
}
