//! Questions, and answers in bytes.

use super::*;
use sql::classify::{InsertId, classify};
use sql::lex::LexMode;
use wire::command::ReplyShape;

/// A packet with this payload.
fn packet(seq: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[len, 0, 0, seq], payload].concat()
}

/// A result of one row, whose columns are described with collation 45; `None` is NULL.
fn result(values: &[Option<&str>]) -> Vec<u8> {
    let mut out = packet(1, &[u8::try_from(values.len()).unwrap()]);
    for _ in values {
        let mut column = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
        column.extend_from_slice(&[45, 0, 0, 1, 0, 0, 253, 0, 0, 31, 0, 0]);
        out.extend(packet(2, &column));
    }
    let mut row = Vec::new();
    for value in values {
        match value {
            None => row.push(0xfb),
            Some(text) => {
                row.push(u8::try_from(text.len()).unwrap());
                row.extend_from_slice(text.as_bytes());
            }
        }
    }
    out.extend(packet(3, &row));
    // An OK packet in the place of EOF.
    out.extend(packet(4, &[0xfe, 0, 0, 2, 0, 0, 0]));
    out
}

fn all<'a>(acquired: &'a [String], names: &'a [Text]) -> Question<'a> {
    Question {
        properties: (TABLE.iter()).fold(Properties::NONE, |all, row| all.union(row.property)),
        acquired,
        user_variables: names,
        value_max: 65536,
    }
}

#[test]
fn the_table_has_each_property_once_and_user_variables_last() {
    let mut seen = Properties::NONE;
    for Row { property, .. } in TABLE {
        assert!(!seen.intersects(property) && property.count() == 1);
        seen = seen.union(property);
    }
    let last = TABLE.last().unwrap().property;
    assert_eq!(last, Properties::USER_VARIABLES);
}

#[test]
fn one_question_asks_for_all() {
    let acquired = ["IS_USED_LOCK('a')<=>CONNECTION_ID()".to_string()];
    let names = [Text::from(&b"n"[..])];
    assert_eq!(
        String::from_utf8(question(&all(&acquired, &names))).unwrap(),
        "SELECT FOUND_ROWS(),LAST_INSERT_ID(),\
         @@collation_connection,CURRENT_ROLE(),@@timestamp,\
         @@original_commit_timestamp,@@original_server_version,@@immediate_server_version,\
         IS_USED_LOCK('a')<=>CONNECTION_ID(),\
         IF(LENGTH(@`n`)>128,NULL,@`n`),IF(LENGTH(@`n`)>65536,'-',HEX(CONCAT(@`n`))),\
         COLLATION(@`n`) LIMIT 1"
    );
    let role = Question {
        properties: Properties::ROLE,
        ..Question::default()
    };
    assert_eq!(question(&role), b"SELECT CURRENT_ROLE() LIMIT 1");
}

#[test]
fn each_property_finds_its_columns() {
    let acquired = ["0".to_string(), "@@SESSION.insert_id<>0".to_string()];
    let names = [Text::from(&b"n"[..])];
    let asked = all(&acquired, &names).asked();
    let values = [
        Some("3"),
        Some("7"),
        Some("utf8mb4_bin"),
        None,
        Some("12.5"),
        Some("5"),
        Some("80000"),
        Some("80001"),
        Some("0"),
        Some("1"),
        Some("v"),
        Some("76"),
        Some("binary"),
    ];
    let answer = Answer::read(asked, &result(&values), 0).unwrap();
    assert_eq!(answer.number(Properties::FOUND_ROWS), Some(3));
    assert_eq!(answer.number(Properties::INSERT_ID), Some(7));
    assert_eq!(answer.text(Properties::COLLATION), b"utf8mb4_bin");
    let (column, _) = answer.of(Properties::COLLATION).next().unwrap();
    assert_eq!(column.collation, 45);
    assert_eq!(answer.text(Properties::ROLE), b"", "NULL");
    assert_eq!(answer.text(Properties::CLOCK), b"12.5");
    assert_eq!(answer.text(Properties::COMMIT_TIMESTAMP), b"5");
    let held = answer.of(Properties::HOLDINGS);
    let held: Vec<_> = held.map(|(_, value)| value.unwrap().to_vec()).collect();
    assert_eq!(held, [b"0", b"1"]);
    let variables = answer.of(Properties::USER_VARIABLES);
    assert_eq!(variables.count(), 3);
}

#[test]
fn what_was_not_asked_has_no_columns() {
    let question = Question {
        properties: Properties::INSERT_ID.union(Properties::ROLE),
        ..Question::default()
    };
    let answer = Answer::read(question.asked(), &result(&[Some("7"), Some("r")]), 0).unwrap();
    assert_eq!(answer.number(Properties::INSERT_ID), Some(7));
    assert_eq!(answer.text(Properties::ROLE), b"r");
    for other in [
        Properties::FOUND_ROWS,
        Properties::COLLATION,
        Properties::USER_VARIABLES,
    ] {
        assert_eq!(answer.of(other).count(), 0);
    }
    assert_eq!(answer.number(Properties::FOUND_ROWS), None);
}

#[test]
fn an_answer_about_variables_can_be_left_out_on_its_way() {
    let names = [Text::from(&b"n"[..])];
    let question = Question {
        properties: Properties::INSERT_ID.union(Properties::USER_VARIABLES),
        user_variables: &names,
        ..Question::default()
    };
    let mut asked = question.asked();
    asked.properties = asked.properties.without(Properties::USER_VARIABLES);
    let row = result(&[Some("7"), Some("v"), Some("76"), Some("binary")]);
    let answer = Answer::read(asked, &row, 0).unwrap();
    assert_eq!(answer.number(Properties::INSERT_ID), Some(7));
    assert_eq!(answer.of(Properties::USER_VARIABLES).count(), 0);
}

#[test]
fn an_answer_with_too_few_columns_is_none() {
    let question = Question {
        properties: Properties::CLOCK.union(Properties::ROLE),
        ..Question::default()
    };
    assert!(Answer::read(question.asked(), &result(&[Some("1")]), 0).is_none());
    assert!(Answer::read(question.asked(), b"", 0).is_none(), "no row");
}

#[test]
fn properties_are_a_set() {
    let two = Properties::ROLE.union(Properties::CLOCK);
    assert!(two.intersects(Properties::ROLE) && !two.intersects(Properties::COLLATION));
    assert_eq!(two.without(Properties::ROLE), Properties::CLOCK);
    assert_eq!(Properties::ROLE.when(false), Properties::NONE);
    assert_eq!((two.count(), Properties::NONE.is_empty()), (2, true));
}

/// The answer to a question about this property alone.
fn answer_to(properties: Properties, value: Option<&str>) -> Answer {
    let question = Question {
        properties,
        ..Question::default()
    };
    Answer::read(question.asked(), &result(&[value]), 0).unwrap()
}

#[test]
fn a_session_takes_the_role_that_it_is_told_or_says_why_not() {
    let mariadb = Server::MariaDb(101_100);
    let mut session = Session::default();
    for (told, causes, role) in [
        (Some("app"), PinCauses::NONE, "`app`"),
        (Some("a`b"), PinCauses::of(PinCause::Role), "`app`"),
        (None, PinCauses::NONE, "NONE"),
    ] {
        let answer = answer_to(Properties::ROLE, told);
        let found = take(Properties::ROLE, &mut session, &answer, mariadb);
        assert_eq!(found, causes, "{told:?}");
        assert_eq!(session.role.as_deref(), Some(role.as_bytes()), "{told:?}");
    }
    assert!(has_values(Properties::ROLE.union(Properties::CLOCK)));
    assert!(!has_values(Properties::CLOCK.union(Properties::HOLDINGS)));
}

#[test]
fn a_statement_says_what_it_may_have_changed_unreported() {
    let session = Session::default();
    let summary = ReplySummary::default();
    let changed = |statement: &Statement| {
        changed_by(&Ended {
            statement,
            summary: &summary,
            rows: 0,
            session: &session,
            alone: true,
            mysql: false,
        })
    };
    let mut statement = Statement::plain(ReplyShape::Results);
    assert_eq!(changed(&statement), Properties::NONE);
    statement.insert_id = InsertId::MaySet;
    assert_eq!(changed(&statement), Properties::INSERT_ID);
    let found = classify(b"SET ROLE app, NAMES latin1", LexMode::default());
    statement.untracked = Untracked::by(&found);
    let all = Properties::INSERT_ID.union(Properties::COLLATION);
    assert_eq!(changed(&statement), all.union(Properties::ROLE));
}

#[test]
fn what_a_transaction_uses_up_is_read_behind_all_that_may_be_one_while_it_is_set() {
    let summary = ReplySummary::default();
    let mut statement = Statement::plain(ReplyShape::Results);
    let mut session = Session::default();
    let changed = |statement: &Statement, session: &Session| {
        changed_by(&Ended {
            statement,
            summary: &summary,
            rows: 0,
            session,
            alone: true,
            mysql: false,
        })
    };
    assert_eq!(changed(&statement, &session), Properties::NONE, "not set");
    session.set(COMMIT_TIMESTAMP.0, b"5").unwrap();
    let asked = Properties::COMMIT_TIMESTAMP;
    assert_eq!(changed(&statement, &session), asked);
    statement.pipelinable = Pipelinable::Text;
    assert_eq!(changed(&statement, &session), Properties::NONE, "a read");

    let server = Server::MySql(90_700);
    let mut told = |now: &str| {
        let answer = answer_to(asked, Some(now));
        let causes = take(asked, &mut session, &answer, server);
        assert_eq!(causes, PinCauses::NONE);
        session.variable(COMMIT_TIMESTAMP.0).map(<[u8]>::to_vec)
    };
    assert_eq!(told("6"), Some(b"6".to_vec()), "set by code");
    assert_eq!(told("36028797018963968"), None, "used up");
}
