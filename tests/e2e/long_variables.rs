//! User variables of great length, with great names, and many of them: at the bounds of what
//! follows a client, and beyond.

use crate::compare::{Story, same_on, same_on_both};
use crate::world::*;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// A SET of so many variables, `@v0` and so on, to texts of this length.
fn many(count: usize, len: usize) -> String {
    let each = (0..count).map(|i| format!("@v{i} = REPEAT('{}', {len})", i % 10));
    format!("SET {}", each.collect::<Vec<_>>().join(", "))
}

/// Each of two clients sets its own; between them, and behind, all look.
fn in_turns(story: &mut Story, sets: &[&str], probe: &str) {
    let (a, b) = (story.join(), story.join());
    for set in sets {
        story.sql(a, set);
        story.all(b, &[probe, "SET @v0 = 'of b', @q = 1"]);
        story.all(a, &[probe, "SELECT 1"]);
        story.sql(b, probe);
    }
    story.command(a, Command::ResetConnection, b"");
    story.sql(b, probe);
    story.sql(a, probe);
}

#[test]
fn as_many_variables_as_follow_a_client_may_all_be_long() {
    same_on_both("many_long", 2, |story| {
        let probe = "SELECT LENGTH(@v0), LENGTH(@v9), LENGTH(@v111), LENGTH(@v255), LEFT(@v3, 9)";
        for (count, len) in [(1, 64 * KIB), (7, 64 * KIB), (9, 64 * KIB), (112, 64 * KIB)] {
            in_turns(story, &[&many(count, len), &many(count, 9)], probe);
        }
        for len in [2000, 2100, 28 * KIB, 64 * KIB, 64 * KIB + 1] {
            in_turns(story, &[&many(256, len), &many(256, 9)], probe);
        }
        in_turns(story, &[&many(257, 64 * KIB), &many(257, 9)], probe);
    });
}

/// MySQL takes no name of more than 64 letters.
#[test]
fn names_of_great_length_are_the_clients_own() {
    let real = or_return!(own(Real::start(&["--max-allowed-packet=1M"])));
    same_on(&real, "long_names", 2, |story| {
        for name in [
            "n".repeat(64),
            "n".repeat(65),
            "``".repeat(1000),
            "n".repeat(20_000),
            "n".repeat(300 * KIB),
            "n".repeat(MIB - 100),
        ] {
            let (a, b) = (story.join(), story.join());
            story.sql(a, &format!("SET @`{name}` = 5, @a = 1"));
            story.sql(b, "SET @a = 2");
            story.sql(a, &format!("SELECT @`{name}` AS n, @a"));
            story.sql(b, &format!("SELECT LEFT(@`{name}`, 9) AS n, @a"));
            story.sql(a, &format!("SELECT 'text' INTO @`{name}`"));
            story.sql(b, &format!("SET @a = 3, @`{name}` = @a + 1"));
            story.sql(a, &format!("SELECT @`{name}` AS n, @a"));
            story.sql(b, &format!("SELECT @`{name}` AS n, @a"));
            for who in [a, b] {
                story.command(who, Command::ResetConnection, b"");
            }
        }
        let (a, b) = (story.join(), story.join());
        let name = |i: usize| format!("@`{}{i}`", "m".repeat(30 * KIB));
        story.sql(a, "BEGIN");
        for i in 0..10 {
            story.sql(a, &format!("SET {} = {i}", name(i)));
        }
        story.sql(a, "COMMIT");
        story.sql(b, "SET @a = 2");
        for i in [0, 9] {
            story.sql(a, &format!("SELECT {} AS n", name(i)));
            story.sql(b, &format!("SELECT LEFT({}, 9) AS n", name(i)));
        }
        // Who is pinned for good keeps its backend until it starts over.
        for who in [a, b] {
            story.command(who, Command::ResetConnection, b"");
        }
        // One at a time, until they are too many to be carried.
        let (a, b) = (story.join(), story.join());
        for i in 0..10 {
            story.sql(a, &format!("SET {} = {i}", name(i)));
            story.sql(b, "SET @a = 2");
        }
        story.sql(a, &format!("SELECT {} AS n, {} AS m", name(0), name(9)));
        story.sql(b, &format!("SELECT LEFT({}, 9) AS n", name(9)));
    });
}

/// The command that restores a client's variables, and takes away those of another, is one command,
/// and so is the question that reads them back.
#[test]
fn variables_need_no_longer_command_than_the_server_takes() {
    for max in [16 * KIB, 64 * KIB, MIB] {
        let arguments = [format!("--max-allowed-packet={max}")];
        let arguments = arguments.each_ref().map(String::as_str);
        for real in own_servers(&arguments) {
            same_on(&real, "short_commands", 3, |story| {
                short_commands(story, max)
            });
        }
    }
}

fn short_commands(story: &mut Story, max: usize) {
    let probe = "SELECT LENGTH(@q), LENGTH(@v0), LENGTH(@v2), LENGTH(@v9), LEFT(@v1, 9)";
    let warned = format!("SET @q = REPEAT('q', {})", max + 1);
    let (a, b) = (story.join(), story.join());
    story.all(a, &[&warned, "SHOW WARNINGS", probe]);
    story.sql(b, probe);
    for len in [
        max - 100,
        max / 2 + 1,
        max / 2,
        max / 3,
        max / 4,
        max / 6,
        max / 8,
    ] {
        let len = len.min(64 * KIB);
        let one = format!("SET @q = REPEAT('q', {len})");
        in_turns(story, &[&one, &many(1, len), "SET @q = 1, @v0 = 2"], probe);
    }
    for (count, len) in [(3, max / 16), (3, max / 8), (10, max / 32), (10, max / 10)] {
        let len = len.min(64 * KIB);
        let (set, single) = (many(count, len), format!("SET @q = REPEAT('q', {len})"));
        in_turns(story, &[&set, &single, &many(count, 9)], probe);
    }
    // One client's are taken away in the command that sets another's.
    let (a, b) = (story.join(), story.join());
    let names =
        |letter: char| (0..256).map(move |i| format!("{}{i}", letter.to_string().repeat(60)));
    for (who, letter) in [(a, 'a'), (b, 'b')] {
        let mut each = names(letter);
        loop {
            let some: Vec<_> = each
                .by_ref()
                .take(max / 256)
                .map(|n| format!("@{n} = 1"))
                .collect();
            if some.is_empty() {
                break;
            }
            story.sql(who, &format!("SET {}", some.join(", ")));
        }
    }
    for (who, letter) in [(a, 'a'), (b, 'b'), (a, 'b'), (b, 'a')] {
        for name in [
            names(letter).next().unwrap(),
            names(letter).next_back().unwrap(),
        ] {
            story.sql(who, &format!("SELECT LEFT(@{name}, 9)"));
        }
        story.sql(who, "SELECT @@autocommit");
    }
}
