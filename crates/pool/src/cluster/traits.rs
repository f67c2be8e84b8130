//! Traits of a server that a client could tell it by.
//!
//! A client has the greeting of one server and may be served by another. Servers of two products,
//! or with other rules for the names of tables, cannot stand in for each other; versions and
//! collations may differ for a while, during an upgrade, and are named.

use crate::server::probe::{Connection, ProbeError};
use session::text::Text;
use wire::handshake::{Greeting, is_of_mariadb, own_version};

const QUESTION: &str = "SELECT @@lower_case_table_names,@@global.collation_server,\
                        @@global.sql_mode,@@global.max_allowed_packet";

/// Names of what [`QUESTION`] asks for; the first must be alike.
const ASKED: [&str; 4] = [
    "lower_case_table_names",
    "collation_server",
    "sql_mode",
    "max_allowed_packet",
];

/// Traits of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    is_mariadb: bool,
    version: String,
    /// Collation and capabilities in its greeting.
    greeting: (u8, u32),
    asked: Vec<Text>,
    /// True if it numbers its transactions, for those that replicate from it.
    numbers: bool,
}

impl Traits {
    /// Asks a server that has let us in.
    pub(super) fn ask(
        connection: &mut Connection,
        greeting: &Greeting,
    ) -> Result<Traits, ProbeError> {
        let version = String::from_utf8_lossy(&greeting.version).into_owned();
        let asked = connection.query(QUESTION)?.into_iter().next();
        let is_mariadb = is_of_mariadb(&version);
        let numbers = match is_mariadb {
            true => "SELECT @@global.log_bin",
            false => "SELECT @@global.gtid_mode",
        };
        let numbers = connection.query(numbers)?.into_iter().flatten().next();
        Ok(Traits {
            is_mariadb,
            numbers: numbers.is_some_and(|value| matches!(&*value, b"1" | b"ON")),
            version: own_version(&version).to_owned(),
            greeting: (greeting.collation, greeting.capabilities),
            asked: asked.unwrap_or_default(),
        })
    }

    /// Reason why a server with the `other` traits cannot stand in for this one.
    pub(super) fn unlike(&self, other: &Traits) -> Option<String> {
        if self.is_mariadb != other.is_mariadb {
            return Some(format!(
                "MariaDB and MySQL cannot be mixed: it is {}, the writer {}",
                other.version, self.version
            ));
        }
        let [ours, theirs] = [self, other].map(|of| of.asked.first());
        (ours != theirs).then(|| format!("another {}", difference(0, ours, theirs)))
    }

    /// True if it numbers its transactions.
    pub(super) fn numbers(&self) -> bool {
        self.numbers
    }

    /// Traits that differ and may.
    pub(super) fn differences(&self, other: &Traits) -> Vec<String> {
        let mut all = Vec::new();
        if line(&self.version) != line(&other.version) {
            all.push(format!("version {} (not {})", other.version, self.version));
        }
        if self.greeting != other.greeting {
            all.push("collation or capabilities in its greeting".into());
        }
        for (place, (ours, theirs)) in self.asked.iter().zip(&other.asked).enumerate().skip(1) {
            if ours != theirs {
                all.push(difference(place, Some(ours), Some(theirs)));
            }
        }
        all
    }
}

/// The version without its last part.
fn line(version: &str) -> Vec<&str> {
    version.split(['.', '-']).take(2).collect()
}

fn difference(place: usize, ours: Option<&Text>, theirs: Option<&Text>) -> String {
    let [ours, theirs] = [ours, theirs]
        .map(|text| String::from_utf8_lossy(text.map_or(b"", |text| text)).into_owned());
    format!("{} '{theirs}' (not '{ours}')", ASKED[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(version: &str, asked: [&str; 4]) -> Traits {
        Traits {
            is_mariadb: is_of_mariadb(version),
            version: version.into(),
            greeting: (45, 7),
            numbers: true,
            asked: asked.map(|text| Text::from(text.as_bytes())).to_vec(),
        }
    }

    #[test]
    fn products_and_rules_for_names_cannot_be_mixed_and_the_rest_is_named() {
        let usual = ["0", "utf8mb4_general_ci", "", "16777216"];
        let one = traits("10.11.4-MariaDB", usual);
        assert_eq!(one.unlike(&one), None);
        let newer = traits("10.11.9-MariaDB", usual);
        assert_eq!(one.differences(&newer), [""; 0]);
        let next = traits(
            "11.4.2-MariaDB",
            ["0", "utf8mb4_uca1400_ai_ci", "", "16777216"],
        );
        assert_eq!(one.unlike(&next), None);
        assert_eq!(
            one.differences(&next),
            [
                "version 11.4.2-MariaDB (not 10.11.4-MariaDB)",
                "collation_server 'utf8mb4_uca1400_ai_ci' (not 'utf8mb4_general_ci')"
            ]
        );
        let other = one.unlike(&traits("9.7.4", usual)).unwrap();
        assert!(other.contains("cannot be mixed"), "{other}");
        let other = traits(
            "10.11.4-MariaDB",
            ["1", "utf8mb4_general_ci", "", "16777216"],
        );
        let why = one.unlike(&other).unwrap();
        assert_eq!(why, "another lower_case_table_names '1' (not '0')");
    }
}
