//! Triggers, views and columns: stored code that a statement runs without naming it.
//!
//! The problem: what such code does to its session may be reported by no tracker (a named lock, a
//! user variable set by INTO, on MariaDB whatever it did before it failed;
//! tests/pages/trackers.md), and would stay on a backend that others share. The mechanism: a
//! catalogue of all that has code, read from the server at start, every `stored_code_refresh_s` and
//! after each statement through the pool that defines code ([`look_once`]), scanned by `sql`
//! ([`sql::classify::stored`]) and brought down to the names of tables and views
//! ([`session::stored_code`]). A statement whose text names one of them counts as one that calls
//! stored code: the policy `stored_code` decides.
//!
//! A definition counts from the moment that its statement is sent, by its own text, and until a
//! look that began after its reply has told what has become of it. A statement that has waited for
//! a backend is judged by the names that there are then.
//!
//! Where no such code exists, which is the rule, a statement costs the load of one number. Not
//! covered: code that is defined past the pool, or inside of other code, until the next look, which
//! follows within about a second ([`crate::server::watch`]). What judges
//! a text is in [`crate::statements::stored_code`].
//!
//! A look is one plain blocking connection, on a thread of its own and never on a statement's path.
//!
//! Code that the account may not see comes as NULL, and then counts as code that may do anything,
//! or does not come at all, which one line of the log says. The server's own schemata are left out:
//! what their functions set (`@sys...`) is reported.
//!
//! Sources: the servers' manuals on `information_schema`; what accounts are shown was tried on
//! MariaDB 10.11 and MySQL 9.7: MariaDB shows triggers without their text, MySQL shows none without
//! TRIGGER; on both a view's text needs SHOW VIEW and SELECT, a column SELECT or the like.

use crate::config::Settings;
use crate::group::shared::Shared;
use crate::server::facts::ServerFacts;
use crate::server::probe::{Connection, Fault, ProbeError};
use session::stored_code::{Besides, Object};
use session::text::Text;
use sql::classify::stored::{Defined, Folded, Scanned, Verdict, body, expression, fold_bare};
use sql::lex::{Charset, LexMode, Server};
use std::collections::{BTreeMap, BTreeSet};

/// Schemata that are named when their triggers are not shown.
const NAMED_MAX: usize = 5;

const SETTINGS: &str = "SET NAMES utf8mb4, SESSION lock_wait_timeout=5";

const OWN: &str = "('information_schema','performance_schema','mysql','sys')";

const TRIGGERS: &str = "SELECT EVENT_OBJECT_SCHEMA,EVENT_OBJECT_TABLE,TRIGGER_NAME,\
     ACTION_STATEMENT,SQL_MODE FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA NOT IN ";

const VIEWS: &str = "SELECT TABLE_SCHEMA,TABLE_NAME,VIEW_DEFINITION \
     FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN ";

const ROUTINES: &str = "SELECT ROUTINE_SCHEMA,ROUTINE_NAME,SPECIFIC_NAME,ROUTINE_TYPE,\
     ROUTINE_BODY,ROUTINE_DEFINITION,SQL_MODE FROM information_schema.ROUTINES";

const PARAMETERS: &str = "SELECT SPECIFIC_SCHEMA,SPECIFIC_NAME,ROUTINE_TYPE,PARAMETER_NAME \
     FROM information_schema.PARAMETERS WHERE PARAMETER_NAME IS NOT NULL";

/// Functions that are no stored ones.
const LOADED: &str = "SELECT name FROM mysql.func";

const LOADED_ON_MYSQL: &str = "SELECT name FROM mysql.func UNION \
     SELECT UDF_NAME FROM performance_schema.user_defined_functions";

/// Only MariaDB takes more than plain functions in a column: sequences, and user variables.
const COLUMNS: &str = "SELECT TABLE_SCHEMA,TABLE_NAME,COLUMN_NAME,\
     CONCAT_WS(',',COLUMN_DEFAULT,GENERATION_EXPRESSION) FROM information_schema.COLUMNS \
     WHERE (COLUMN_DEFAULT LIKE '%val(%' OR COLUMN_DEFAULT LIKE '%:=%' \
     OR GENERATION_EXPRESSION LIKE '%:=%') AND TABLE_SCHEMA NOT IN ";

const SCHEMATA: &str =
    "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ";

/// Objects that a look finds, and those that its account may not see.
type Found = (Vec<Object>, Besides, String);

type Parameters = BTreeMap<(Folded, Folded, Folded), BTreeSet<Folded>>;

/// Reading of rows into objects.
struct Reading {
    server: Server,
    objects: Vec<Object>,
    besides: Besides,
    /// Number of objects of a kind that came without their text.
    textless: BTreeMap<&'static str, usize>,
}

/// Looks once.
///
/// # Errors
/// That the connection was lost, or what the server said.
pub(crate) fn look_once(shared: &Shared, connection: &mut Connection) -> Result<(), ProbeError> {
    connection.query(SETTINGS)?;
    let number = shared.watched.code_catalogue.looks();
    match look(&shared.settings(), &shared.server, connection) {
        Ok((found, besides, unseen)) => {
            (shared.watched.code_catalogue).looked(number, (found, besides), unseen)
        }
        Err(error) if error.fault == Fault::TooLong => {
            (shared.watched.code_catalogue).found_too_much(number, &error.why);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn look(
    settings: &Settings,
    server: &ServerFacts,
    connection: &mut Connection,
) -> Result<Found, ProbeError> {
    let mut reading = Reading {
        server: server.flavour,
        objects: Vec::new(),
        besides: Besides::default(),
        textless: BTreeMap::new(),
    };
    for row in rows(connection, &format!("{TRIGGERS}{OWN}"), 5)? {
        reading.trigger(&row);
    }
    for row in rows(connection, &format!("{VIEWS}{OWN}"), 3)? {
        reading.view(&row);
    }
    // In this order: of a routine that is defined meanwhile, parameters that were not there yet
    // would be taken for variables of the session, and the routine would pin until the next look.
    let routines = rows(connection, ROUTINES, 7)?;
    let parameters = rows(connection, PARAMETERS, 4)?;
    let parameters = by_routine(&parameters);
    for row in &routines {
        reading.routine(row, &parameters);
    }
    let loaded = match server.flavour {
        Server::MySql(_) => LOADED_ON_MYSQL,
        _ => LOADED,
    };
    // The account may not be allowed to look there.
    if let Ok(rows) = rows(connection, loaded, 1) {
        reading.besides.loaded = Some(rows.iter().map(|row| fold_bare(&row[0])).collect());
    }
    let mut dark = Vec::new();
    if server.flavour.is_mysql() {
        let grants = rows(connection, "SHOW GRANTS", 1)?;
        let schemata = rows(connection, &format!("{SCHEMATA}{OWN}"), 1)?;
        let schemata = schemata.iter().map(|row| row[0].to_vec());
        dark = (schemata.filter(|schema| !shows_triggers(&grants, schema))).collect();
        reading.darken(&dark);
    } else {
        for row in rows(connection, &format!("{COLUMNS}{OWN}"), 4)? {
            reading.column(&row);
        }
    }
    let unseen = reading.unseen(&settings.monitor_account().0, &dark);
    Ok((reading.objects, reading.besides, unseen))
}

fn rows(
    connection: &mut Connection,
    sql: &str,
    columns: usize,
) -> Result<Vec<Vec<Text>>, ProbeError> {
    let mut rows = connection.query(sql)?;
    rows.retain(|row| row.len() == columns);
    Ok(rows)
}

fn by_routine(rows: &[Vec<Text>]) -> Parameters {
    let mut all = Parameters::new();
    for row in rows {
        let key = (fold_bare(&row[0]), fold_bare(&row[1]), fold_bare(&row[2]));
        all.entry(key).or_default().insert(fold_bare(&row[3]));
    }
    all
}

impl Reading {
    fn mode(&self, sql_mode: &[u8]) -> LexMode {
        let has = |mode: &[u8]| sql_mode.split(|&b| b == b',').any(|m| m == mode);
        LexMode {
            ansi_quotes: has(b"ANSI_QUOTES"),
            no_backslash_escapes: has(b"NO_BACKSLASH_ESCAPES"),
            ignore_space: has(b"IGNORE_SPACE"),
            no_schema: false,
            charset: Charset::Utf8,
            server: self.server,
        }
    }

    fn put(&mut self, kind: Defined, [schema, name]: [&[u8]; 2], title: String, scanned: Scanned) {
        self.objects.push(Object {
            kind,
            schema: fold_bare(schema),
            name: fold_bare(name),
            title,
            scanned,
        });
    }

    /// The scan of a text, if there is one.
    fn scan(
        &mut self,
        kind: &'static str,
        text: &[u8],
        scan: impl FnOnce(&[u8]) -> Scanned,
    ) -> Scanned {
        if text.is_empty() {
            *self.textless.entry(kind).or_default() += 1;
            return Scanned::unreadable();
        }
        scan(text)
    }

    fn trigger(&mut self, row: &[Text]) {
        let mode = self.mode(&row[4]);
        let scanned = self.scan("triggers", &row[3], |text| {
            body(text, mode, &BTreeSet::new())
        });
        let title = format!(
            "trigger {} on {}.{}",
            shown(&row[2]),
            shown(&row[0]),
            shown(&row[1])
        );
        self.put(Defined::Trigger, [&row[0], &row[1]], title, scanned);
    }

    fn view(&mut self, row: &[Text]) {
        let mode = self.mode(b"");
        let scanned = self.scan("views", &row[2], |text| expression(text, mode));
        let title = format!("view {}.{}", shown(&row[0]), shown(&row[1]));
        self.put(Defined::View, [&row[0], &row[1]], title, scanned);
    }

    fn routine(&mut self, row: &[Text], parameters: &Parameters) {
        let mode = self.mode(&row[6]);
        let kind = match &*row[3] {
            b"FUNCTION" => Defined::Function,
            b"PROCEDURE" => Defined::Procedure,
            _ => {
                self.besides.packages.insert(fold_bare(&row[1]));
                return;
            }
        };
        let key = (fold_bare(&row[0]), fold_bare(&row[2]), fold_bare(&row[3]));
        let none = BTreeSet::new();
        let locals = parameters.get(&key).unwrap_or(&none);
        let oracle = row[6].split(|&b| b == b',').any(|mode| mode == b"ORACLE");
        let mut scanned = self.scan("routines", &row[5], |text| body(text, mode, locals));
        if &*row[4] != b"SQL" || oracle {
            scanned.pin("its language is not read".into());
        }
        let title = format!("routine {}.{}", shown(&row[0]), shown(&row[1]));
        self.put(kind, [&row[0], &row[1]], title, scanned);
    }

    /// Routines that change rows where triggers are not shown may do what those do.
    fn darken(&mut self, dark: &[Vec<u8>]) {
        let dark: BTreeSet<Folded> = dark.iter().map(|schema| fold_bare(schema)).collect();
        for object in &mut self.objects {
            let scanned = &mut object.scanned;
            let near = dark.contains(&object.schema) || !scanned.names.is_disjoint(&dark);
            let routine = matches!(object.kind, Defined::Function | Defined::Procedure);
            if routine && near && scanned.verdict >= Verdict::Writes {
                scanned.pin("may fire triggers that are not shown".into());
            }
        }
    }

    fn column(&mut self, row: &[Text]) {
        let scanned = expression(&row[3], self.mode(b""));
        let title = format!(
            "column {} of {}.{}",
            shown(&row[2]),
            shown(&row[0]),
            shown(&row[1])
        );
        self.put(Defined::Column, [&row[0], &row[1]], title, scanned);
    }

    /// One line about what the account is not shown; empty when it is shown all.
    fn unseen(&self, user: &str, dark: &[Vec<u8>]) -> String {
        let mut parts = Vec::new();
        if !dark.is_empty() {
            let named: Vec<String> = dark.iter().take(NAMED_MAX).map(|s| shown(s)).collect();
            let more = match dark.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            parts.push(format!(
                "the triggers of {}{more} (needs TRIGGER; what they do unseen is not noticed)",
                named.join(", ")
            ));
        }
        for (kind, count) in &self.textless {
            let needs = match *kind {
                "triggers" => "TRIGGER",
                "routines" => "SELECT",
                _ => "SELECT and SHOW VIEW",
            };
            parts.push(format!(
                "the text of {count} {kind} (needs {needs}; they count as code that may do \
                 anything)"
            ));
        }
        if parts.is_empty() {
            return String::new();
        }
        format!(
            "triggers and views: the account '{user}' is not shown {}; GRANT SELECT, SHOW VIEW, \
             TRIGGER, EXECUTE ON *.* to it, or name an account that has them as monitor_user of \
             [backend]",
            parts.join(", ")
        )
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// True if one of these grants lets the account see the triggers of a schema.
fn shows_triggers(grants: &[Vec<Text>], schema: &[u8]) -> bool {
    grants.iter().any(|row| {
        let line = String::from_utf8_lossy(&row[0]).into_owned();
        let Some((privileges, rest)) = line
            .strip_prefix("GRANT ")
            .and_then(|l| l.split_once(" ON "))
        else {
            return false;
        };
        let mut privileges = privileges.split(", ");
        let shows = privileges.any(|one| matches!(one, "TRIGGER" | "ALL" | "ALL PRIVILEGES"));
        let Some((place, _)) = rest.split_once(" TO ") else {
            return false;
        };
        let pattern = place.strip_suffix(".*").unwrap_or("");
        let pattern = pattern
            .strip_prefix('`')
            .and_then(|p| p.strip_suffix('`'))
            .unwrap_or(pattern);
        shows && (pattern == "*" || like(schema, pattern.as_bytes()))
    })
}

/// SQL's LIKE, as grants on schemata use it.
fn like(text: &[u8], pattern: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'\\', one, rest @ ..] => text.first() == Some(one) && like(&text[1..], rest),
        [b'%', rest @ ..] => (0..=text.len()).any(|at| like(&text[at..], rest)),
        [b'_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        [one, rest @ ..] => text.first() == Some(one) && like(&text[1..], rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(lines: &[&str]) -> Vec<Vec<Text>> {
        let row = |line: &&str| vec![Text::from(line.as_bytes())];
        lines.iter().map(row).collect()
    }

    #[test]
    fn grants_tell_whose_triggers_are_shown() {
        let some = grants(&[
            "GRANT USAGE ON *.* TO `w`@`%`",
            "GRANT SELECT, TRIGGER ON `shop\\_1`.* TO `w`@`%`",
            "GRANT ALL PRIVILEGES ON `a%`.* TO `w`@`%`",
            "GRANT TRIGGER ON `b`.`t` TO `w`@`%`",
            "GRANT SELECT ON `c`.* TO `w`@`%`",
        ]);
        for (schema, expected) in [
            ("shop_1", true),
            ("shopX1", false),
            ("abc", true),
            ("b", false),
            ("c", false),
        ] {
            assert_eq!(
                shows_triggers(&some, schema.as_bytes()),
                expected,
                "{schema}"
            );
        }
        let all = grants(&["GRANT SELECT, TRIGGER ON *.* TO `w`@`%` WITH GRANT OPTION"]);
        assert!(shows_triggers(&all, b"anything"));
    }

    #[test]
    fn what_is_not_shown_is_said_with_what_it_needs() {
        let mut reading = Reading {
            server: Server::MySql(90_704),
            objects: Vec::new(),
            besides: Besides::default(),
            textless: BTreeMap::new(),
        };
        assert_eq!(reading.unseen("app", &[]), "");
        reading.view(&[&b"d"[..], b"v", b""].map(Text::from));
        let said = reading.unseen("app", &[b"shop".to_vec()]);
        assert!(said.contains("account 'app'"), "{said}");
        assert!(
            said.contains("the triggers of shop (needs TRIGGER"),
            "{said}"
        );
        assert!(
            said.contains("the text of 1 views (needs SELECT and SHOW VIEW"),
            "{said}"
        );
    }
}
