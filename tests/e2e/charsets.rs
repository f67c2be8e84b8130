//! Clients that speak in character sets of several bytes: their texts are read like any others.

use crate::compare::{Story, same};
use wire::command::Command;

/// A character set, a letter, and a letter whose last byte is a backslash by itself.
type Set = (&'static str, &'static [u8], Option<&'static [u8]>);

const SETS: [Set; 5] = [
    ("gbk", b"\xd6\xd0", Some(b"\x81\\")),
    ("sjis", b"\x93\xfa", Some(b"\x83\\")),
    ("big5", b"\xa4\xa4", Some(b"\xa5\\")),
    ("euckr", b"\xc7\xd1", None),
    ("ujis", b"\xc6\xfc", None),
];

fn say(story: &mut Story, who: usize, text: &str, letter: &[u8]) {
    let mut sql = Vec::new();
    for (i, part) in text.split('%').enumerate() {
        if i > 0 {
            sql.extend_from_slice(letter);
        }
        sql.extend_from_slice(part.as_bytes());
    }
    story.command(who, Command::Query, &sql);
}

/// One backend for two clients: whoever is pinned makes the other wait in vain.
#[test]
fn letters_of_several_bytes_pin_nobody() {
    same("letters", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for (set, letter, _) in SETS {
            story.sql(a, &format!("SET NAMES {set}"));
            for text in [
                "CREATE TABLE `t%` (`%` VARCHAR(20) CHARACTER SET utf8mb4)",
                "INSERT INTO `t%` VALUES ('%'), ('a%b\\'c')",
                "SELECT `%`, HEX(`%`), '%' AS `x%` FROM `t%` -- %",
                "SELECT /* % */ \"%\", CONNECTION_ID() > 0",
                "SET @v = '%'",
                "SELECT @v, HEX(@v), CHARSET(@v)",
                "DROP TABLE `t%`",
            ] {
                say(story, a, text, letter);
                story.sql(b, "SELECT @@character_set_client, @v");
            }
        }
    });
}

/// What a server takes for the end of such a letter is no backslash.
#[test]
fn a_letter_that_ends_with_a_backslash_is_read_as_the_server_reads_it() {
    same("backslashes", 2, |story| {
        let (a, b) = (story.join(), story.join());
        for (set, _, letter) in SETS {
            let Some(letter) = letter else { continue };
            story.sql(a, &format!("SET NAMES {set}"));
            for text in [
                "SELECT HEX('%'), 'behind'",
                "SELECT HEX('%'), GET_LOCK('backslashes', 1) -- '",
                "SELECT IS_USED_LOCK('backslashes') IS NULL",
                "SELECT RELEASE_ALL_LOCKS()",
            ] {
                say(story, a, text, letter);
                story.sql(b, "SELECT @@character_set_client");
            }
        }
    });
}

/// The set of a client's texts has a collation that no variable shows; parameters have it too.
#[test]
fn parameters_have_the_collation_of_their_client() {
    same("collation_of_parameters", 2, |story| {
        story.columns = true;
        let [other, one] = [0; 2].map(|_| story.join());
        for names in ["utf8mb4 COLLATE utf8mb4_bin", "utf8mb4", "latin1"] {
            story.sql(one, &format!("SET NAMES {names}"));
            // The next backend is another one.
            story.sql(other, "BEGIN");
            let id = story.prepare(one, "SELECT ?, ? = 'RED'").id;
            story.execute(one, id, &[Some(b"red"), Some(b"red")]);
            story.sql(other, "COMMIT");
        }
    });
}
