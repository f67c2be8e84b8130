//! The console with a small source: what it makes of texts, and what a client gets.

use crate::answer::{Answer, Form, Wrong};
use crate::dialect::{Asked, Names, read};
use crate::engine::{Engine, OWN, Who};
use crate::shares::{Answers, Held};
use crate::{
    Access, Account, Action, Column, DEFAULT_SCHEMA, Listener, ROWS_MAX, Row, Source, Table, Type,
    Value, Victims,
};
use rusqlite::types::ValueRef;
use std::io::Cursor;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::blocking::{self, Connection, Failure};
use wire::packet::{HEADER_LEN, Header};

static TABLES: &[Table] = &[
    Table {
        schema: DEFAULT_SCHEMA,
        name: "clients",
        help: "a client",
        columns: &[
            Column {
                name: "id",
                of: Type::Integer,
                width: None,
                help: "its number",
            },
            Column {
                name: "user",
                of: Type::Text,
                width: None,
                help: "its user",
            },
            Column {
                name: "waited",
                of: Type::Real,
                width: None,
                help: "seconds",
            },
        ],
    },
    Table {
        schema: "information_schema",
        name: "THREAD_POOL_GROUPS",
        help: "a group",
        columns: &[Column {
            name: "GROUP_ID",
            of: Type::Integer,
            width: None,
            help: "its number",
        }],
    },
    Table {
        schema: DEFAULT_SCHEMA,
        name: "many",
        help: "more than fit",
        columns: &[Column {
            name: "id",
            of: Type::Integer,
            width: None,
            help: "its number",
        }],
    },
    Table {
        schema: DEFAULT_SCHEMA,
        name: "recent_clients",
        help: "clients of the last minutes",
        columns: &[
            Column {
                name: "minutes",
                of: Type::Integer,
                width: None,
                help: "of these",
            },
            Column {
                name: "id",
                of: Type::Integer,
                width: Some(10),
                help: "its number",
            },
        ],
    },
];

#[derive(Default)]
struct Small {
    actions: Mutex<Vec<Action>>,
    asked: Mutex<Vec<&'static str>>,
    /// Whoever has rows and clients does not answer.
    is_late: AtomicBool,
    /// Gate that a command waits for behind its answer.
    gate: Mutex<Option<Receiver<()>>>,
}

impl Source for Small {
    fn tables(&self) -> &'static [Table] {
        TABLES
    }

    fn rows(&self, table: &Table) -> Result<Vec<Row>, String> {
        if self.is_late.load(Relaxed) {
            return Err("nobody has answered".into());
        }
        self.asked.lock().unwrap().push(table.name);
        let client = |id, user: &str, waited| {
            let waited = Option::map_or(waited, Value::Null, Value::Real);
            let user = user.to_owned().into();
            vec![Value::Integer(id), Value::Text(user), waited]
        };
        match table.name {
            "clients" => Ok(vec![
                client(1, "app", Some(0.5)),
                client(2, "Report's", None),
                client(3, "app", Some(1.25)),
            ]),
            "many" => Ok(vec![vec![Value::Integer(1)]; ROWS_MAX + 1]),
            _ => Ok(vec![vec![Value::Integer(0)]]),
        }
    }

    fn variables(&self) -> Vec<(String, String)> {
        let pairs = [
            ("version_comment", "it's small"),
            ("autocommit", "1"),
            ("sql_mode", ""),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pairs.to_vec()
    }

    fn summary(&self) -> String {
        "Uptime: 1".into()
    }

    fn is_setting(&self, name: &str) -> bool {
        ["log_level", "tls.mode"].contains(&name)
    }

    fn act(&self, _: &str, action: &Action) -> Result<String, crate::Refused> {
        if *action == Action::Reload {
            return Err("nothing to reload".to_owned().into());
        }
        if self.is_late.load(Relaxed) {
            return Err(crate::Refused::Late("nobody has answered".into()));
        }
        self.actions.lock().unwrap().push(action.clone());
        Ok("done".into())
    }

    fn has_answered(&self, _: &Action) {
        if let Some(gate) = &*self.gate.lock().unwrap() {
            gate.recv().unwrap();
        }
    }

    fn logged_in(&self, _: &str, _: &str, _: bool) {}
}

fn dialect(text: &str) -> Result<Asked, (u16, String)> {
    let source = Small::default();
    let tables: Vec<Table> = TABLES.iter().chain(OWN).copied().collect();
    let names = Names {
        tables: &tables,
        schema: DEFAULT_SCHEMA,
        variables: &source.variables(),
        settings: &|name| source.is_setting(name),
    };
    read(text.as_bytes(), &names).map_err(|wrong| (wrong.code.code, wrong.words))
}

#[test]
fn texts_become_statements_of_the_engine() {
    let rows = |text: &str| match dialect(text) {
        Ok(Asked::Rows(text)) => text,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        rows("select @@version_comment limit 1;"),
        "select 'it''s small' limit 1"
    );
    assert_eq!(rows("SELECT \"it's\" -- why\n"), "SELECT 'it''s'");
    assert_eq!(rows(r"SELECT 'a\'b''c\n'"), "SELECT 'a''b''c\n'");
    assert_eq!(
        rows("SELECT `id` /* x */ FROM clients"),
        "SELECT `id` FROM clients"
    );
    assert_eq!(
        rows("SHOW CLIENTS ORDER BY id"),
        "SELECT * FROM onramp.\"clients\" ORDER BY id"
    );
    assert_eq!(dialect("SHOW CLIENTS;"), Ok(Asked::All(TABLES[0])));
    assert_eq!(
        rows("show clients where user = \"app\" order by id desc limit 2"),
        "SELECT * FROM onramp.\"clients\" where user = 'app' order by id desc limit 2"
    );
    assert_eq!(
        rows(r"SHOW GLOBAL VARIABLES LIKE 'a\_%'"),
        "SELECT * FROM (SELECT name AS \"Variable_name\", value AS \"Value\" \
         FROM onramp.variables) \
         WHERE \"Variable_name\" LIKE 'a\\_%' ESCAPE '\\' "
    );
    assert_eq!(
        rows("SHOW CLIENTS LAST 5 MINUTES WHERE id = 2"),
        "SELECT \"id\" FROM (SELECT * FROM onramp.\"recent_clients\" WHERE minutes = 5) \
         WHERE id = 2"
    );
    assert_eq!(
        rows("show full clients last 1 minute"),
        "SELECT * FROM (SELECT * FROM onramp.\"recent_clients\" WHERE minutes = 1) "
    );
}

#[test]
fn commands_are_known_by_their_words() {
    for (text, action) in [
        ("PAUSE", Action::Pause),
        ("resume;", Action::Resume),
        ("DRAIN", Action::Drain),
        (
            "KILL 7",
            Action::Kill {
                id: 7,
                query: false,
            },
        ),
        (
            "KILL CONNECTION 7",
            Action::Kill {
                id: 7,
                query: false,
            },
        ),
        ("KILL QUERY 7", Action::Kill { id: 7, query: true }),
        (
            "SET GLOBAL log_level = 'error'",
            Action::Set {
                name: "log_level".into(),
                value: Some("error".into()),
            },
        ),
        (
            "SET log_level := error",
            Action::Set {
                name: "log_level".into(),
                value: Some("error".into()),
            },
        ),
        (
            "SET tls.mode = 'off'",
            Action::Set {
                name: "tls.mode".into(),
                value: Some("off".into()),
            },
        ),
    ] {
        assert_eq!(dialect(text), Ok(Asked::Act(action)), "{text}");
    }
    for (text, value) in [
        ("SET @@GLOBAL.log_level = 'error'", Some("error")),
        ("SET log_level := 'error'", Some("error")),
        ("SET log_level=-1", Some("-1")),
        ("SET log_level = - 1", Some("- 1")),
        ("SET log_level = no limit;", Some("no limit")),
        ("SET log_level = DEFAULT", None),
        ("SET GLOBAL log_level := default", None),
        ("SET log_level = 'DEFAULT'", Some("DEFAULT")),
    ] {
        let action = Action::Set {
            name: "log_level".into(),
            value: value.map(str::to_owned),
        };
        assert_eq!(dialect(text), Ok(Asked::Act(action)), "{text}");
    }
    let back = Action::Set {
        name: "log_level".into(),
        value: None,
    };
    assert_eq!(back.to_string(), "SET log_level = DEFAULT");
    let secret = Action::Set {
        name: "console.admin_password".into(),
        value: Some("secret".into()),
    };
    assert_eq!(secret.to_string(), "SET console.admin_password = ***");
    for text in [
        "SET NAMES utf8mb4",
        "SET autocommit=1",
        "COMMIT",
        "SET SESSION TRANSACTION READ ONLY",
        "SET foreign_key_checks = 0",
        "SET @@session.sql_mode = ''",
        "SET LOCAL sql_safe_updates = 1",
        "SET CHARACTER SET utf8mb4",
        "SET @mine = 1",
    ] {
        assert_eq!(dialect(text), Ok(Asked::Nothing), "{text}");
    }
}

#[test]
fn commands_about_many_are_known_and_shown_as_they_are_written() {
    let all = |victims, query| Action::KillAll { victims, query };
    let reject = |message: &str, seconds| Action::Reject {
        digest: "ab".into(),
        message: message.into(),
        seconds,
    };
    let limit = |name: &str, value: Option<&str>| Action::UserLimit {
        user: "app".into(),
        name: name.into(),
        value: value.map(str::to_owned),
    };
    for (text, action) in [
        ("KILL USER 'app'", all(Victims::User("app".into()), false)),
        (
            "KILL QUERY ADDRESS '10.0.0.0/8'",
            all(Victims::Address("10.0.0.0/8".into()), true),
        ),
        (
            "KILL IDLE TRANSACTIONS OLDER THAN 60",
            all(Victims::IdleTransactions(60), false),
        ),
        ("REJECT DIGEST 'ab'", reject("", None)),
        ("REJECT DIGEST 'ab' WITH 'no' FOR 9", reject("no", Some(9))),
        (
            "LIMIT DIGEST 'ab' TO 2 FOR 9",
            Action::Limit {
                digest: "ab".into(),
                max: 2,
                seconds: Some(9),
            },
        ),
        (
            "ALLOW DIGEST 'ab'",
            Action::Allow {
                digest: "ab".into(),
            },
        ),
        (
            "SET USER 'app' LIMIT clients_max = 3",
            limit("clients_max", Some("3")),
        ),
        (
            "SET USER 'app' LIMIT clients_max = DEFAULT",
            limit("clients_max", None),
        ),
    ] {
        assert_eq!(action.to_string(), text);
        assert_eq!(dialect(text), Ok(Asked::Act(action)), "{text}");
    }
    assert_eq!(
        dialect("kill user app"),
        Ok(Asked::Act(all(Victims::User("app".into()), false)))
    );
    for (text, words) in [
        ("KILL USER", "expected the name of a user in quotes"),
        (
            "KILL ADDRESS 10.0.0.1",
            "expected an address or a network in quotes",
        ),
        (
            "KILL QUERY IDLE TRANSACTIONS OLDER THAN 1",
            "expected the end",
        ),
        ("KILL IDLE TRANSACTIONS", "expected OLDER THAN"),
        (
            "KILL IDLE TRANSACTIONS OLDER THAN x",
            "expected a number of seconds, got 'x'",
        ),
        (
            "REJECT DIGEST ab",
            "expected a digest (SHOW STATEMENTS, SHOW RUNNING) in quotes",
        ),
        ("REJECT DIGEST 'ab' FOR", "expected a number of seconds"),
        ("REJECT DIGEST 'ab' TO 2", "expected the end"),
        ("LIMIT DIGEST 'ab'", "expected TO, got ''"),
        ("ALLOW DIGEST 'ab' FOR 2", "expected the end"),
        (
            "SET USER 'app' clients_max = 3",
            "expected LIMIT, got 'clients_max'",
        ),
    ] {
        let wrong = dialect(text).unwrap_err();
        assert!(wrong.1.contains(words), "{text}: {wrong:?}");
    }
}

#[test]
fn a_table_is_described_with_its_schema_and_without() {
    let described = dialect("DESCRIBE clients").unwrap();
    for text in [
        "DESC onramp.clients",
        "EXPLAIN `onramp`.`clients`",
        "SHOW COLUMNS FROM clients",
        "SHOW FULL FIELDS FROM clients IN onramp",
    ] {
        assert_eq!(dialect(text), Ok(described.clone()), "{text}");
    }
    let Ok(Asked::Rows(some)) = dialect("SHOW COLUMNS FROM clients LIKE 'i\\_%'") else {
        panic!("no rows");
    };
    assert!(some.contains("AND name LIKE 'i\\_%' ESCAPE"), "{some}");
}

#[test]
fn what_is_wrong_is_said_with_a_servers_number() {
    for (text, code, words) in [
        ("", 1065, "empty"),
        ("SELECT 1; SELECT 2", 1064, "several"),
        ("SELECT 'x", 1064, "no end"),
        ("SHOW NOTHING", 1146, "CLIENTS"),
        ("SHOW CLIENTS FROM x", 1064, "LIKE, WHERE"),
        ("SHOW CLIENTS LAST 7 MINUTES", 1064, "expected 1 MINUTE"),
        ("SHOW CLIENTS LAST 5 HOURS", 1064, "got '5 HOURS'"),
        ("SHOW MANY LAST 5 MINUTES", 1064, "SHOW USERS have"),
        ("SHOW CLIENTS LIKE x", 1064, "in quotes"),
        ("KILL x", 1064, "SHOW CLIENTS"),
        ("KILL 1 2", 1064, "expected the end"),
        ("PAUSE now", 1064, "expected the end"),
        ("SELECT @@nothing", 1193, "nothing"),
        ("SET GLOBAL nothing = 1", 1193, "SHOW CONFIG"),
        ("SET log_levle = 'error'", 1193, "log_levle"),
        ("SET SESSION log_levle = 'error'", 1193, "log_levle"),
        ("SET @@log_levle = 'error'", 1193, "SHOW CONFIG"),
        ("SET @@log_level = 'error'", 1229, "SET log_level = VALUE"),
        ("SET SESSION log_level = 1", 1229, "the whole pool's"),
        ("SET @@session.log_level = 1", 1229, "the whole pool's"),
        ("SET LOCAL log_level = 1", 1229, "the whole pool's"),
        ("SET log_level 1", 1064, "SET log_level: expected ="),
        ("SET log_level =", 1064, "SET log_level: expected a value"),
        ("SET log_level = 1, groups = 2", 1064, "expected the end"),
        ("SET log_level = 'a' 'b'", 1064, "expected the end"),
        ("SELECT @x", 1235, "user variables"),
        (
            "USE nothing",
            1049,
            "'nothing'; there are information_schema, onramp",
        ),
        ("USE main", 1049, "'main'"),
        ("USE onramp x", 1064, "expected the end"),
        ("SHOW TABLES FROM nothing", 1049, "'nothing'"),
        ("DESCRIBE nothing", 1146, "CLIENTS"),
        ("DESCRIBE information_schema.clients", 1146, "CLIENTS"),
        (
            "SHOW COLUMNS FROM clients WHERE 1",
            1064,
            "expected the end",
        ),
    ] {
        let (got, why) = dialect(text).unwrap_err();
        assert_eq!(got, code, "{text}: {why}");
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn schemas_are_those_of_the_source_and_no_other() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    let mut reader = log_in(at, "reader", b"secret").unwrap();
    let mut ask = |text: &str| values(&mut reader, text);
    let names = |answer: Vec<String>| -> Vec<String> { answer.into_iter().step_by(2).collect() };
    let own = [
        "clients",
        "many",
        "recent_clients",
        "tables",
        "columns",
        "variables",
        "help",
    ];
    let group = ["THREAD_POOL_GROUPS"];
    let schemas = ask("SHOW DATABASES").unwrap();
    assert_eq!(schemas, ["onramp", "information_schema"]);
    for (before, schema, tables) in [
        ("SELECT 1", "onramp", &own[..]),
        ("USE information_schema", "information_schema", &group[..]),
        ("USE nothing", "information_schema", &group[..]),
        ("USE `OnRamp`", "onramp", &own[..]),
    ] {
        let _ = ask(before);
        assert_eq!(ask("SELECT DATABASE()").unwrap(), [schema], "{before}");
        assert_eq!(names(ask("SHOW TABLES").unwrap()), tables, "{before}");
        let like = ask("SHOW FULL TABLES LIKE 'THREAD%'").unwrap();
        assert_eq!(names(like).is_empty(), schema == "onramp", "{before}");
        assert_eq!(ask("SHOW CLIENTS").unwrap().len(), 9);
        let count = ask("SELECT count(*) FROM clients, THREAD_POOL_GROUPS").unwrap();
        assert_eq!(count, ["3"]);
    }
    let other = ask("SHOW TABLES IN INFORMATION_SCHEMA").unwrap();
    assert_eq!(names(other), group);
}

#[test]
fn a_login_may_name_a_schema_and_one_that_is_not_here_is_passed_over() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    for (named, schema) in [
        ("information_schema", "information_schema"),
        ("test", "onramp"),
        ("", "onramp"),
    ] {
        let mut reader = log_in_to(at, "reader", b"secret", named).unwrap();
        assert_eq!(values(&mut reader, "SELECT SCHEMA()").unwrap(), [schema]);
    }
}

fn engine(source: &Arc<Small>) -> Engine {
    let who = Who {
        user: "a@localhost".into(),
        id: 4,
        version: "8".into(),
    };
    Engine::new(source.clone(), &who).unwrap()
}

const FORM: Form = Form {
    deprecate_eof: true,
};

/// Runs a text, with the memory that its answer holds until it is dropped.
fn run(engine: &Engine, text: &str, answers: &Arc<Answers>) -> Result<(Vec<u8>, Held), Wrong> {
    let (mut out, mut held) = (Vec::new(), Held::none(answers.clone()));
    engine.run(text, Answer::new(&mut out, 1, FORM, &mut held))?;
    Ok((out, held))
}

/// The rows of an answer, as a client reads them; NULL is an empty text.
fn read_rows(answer: Vec<u8>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut client = Connection::new(Cursor::new(answer));
    let value = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let row = |row: &[u8]| rows.push(blocking::values(row).map(value).collect());
    client.answer(row).unwrap();
    rows
}

fn rows_of(engine: &Engine, text: &str) -> Result<Vec<Vec<String>>, Wrong> {
    run(engine, text, &Arc::default()).map(|(answer, _)| read_rows(answer))
}

/// Error of a text without rows: its number and sentence.
fn refused(engine: &Engine, text: &str) -> (u16, String) {
    let Wrong { code, words } = rows_of(engine, text).unwrap_err();
    (code.code, words)
}

/// Checks that packets are numbered one after the other, and counts them.
fn count_packets(mut answer: &[u8]) -> usize {
    let mut count = 0;
    while let Some(header) = Header::read(answer) {
        count += 1;
        assert_eq!(usize::from(header.seq), count % 256);
        answer = &answer[HEADER_LEN + header.len..];
    }
    count
}

#[test]
fn only_the_tables_that_a_statement_reads_are_filled() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let rows = |text: &str| rows_of(&engine, text).unwrap();
    assert_eq!(
        rows("SELECT USER(), DATABASE(), CONNECTION_ID(), VERSION()"),
        [["a@localhost", "onramp", "4", "8"]]
    );
    assert!(source.asked.lock().unwrap().is_empty());
    let count = rows("SELECT count(*) FROM Clients WHERE user = 'APP'");
    assert_eq!(count, [["2"]]);
    // Each statement sees the source as it is then, and once.
    let joined =
        rows("SELECT a.id, b.group_id FROM clients a, information_schema.thread_pool_groups b");
    assert_eq!(joined.len(), 3);
    assert_eq!(
        *source.asked.lock().unwrap(),
        ["clients", "clients", "THREAD_POOL_GROUPS"]
    );
    for text in [
        "SELECT count(*) FROM clients a JOIN clients b USING (id)",
        "SELECT count(*) FROM clients a JOIN onramp.clients AS b USING (id)",
        "SELECT count(*) FROM (SELECT 1) CROSS JOIN `clients`",
        "SELECT count(*) FROM (SELECT 1), clients a JOIN clients b USING (id) WHERE 1 = 1",
    ] {
        assert_eq!(rows(text), [["3"]], "{text}");
    }
    let named_alone = rows(
        "SELECT count(*) FROM THREAD_POOL_GROUPS a JOIN THREAD_POOL_GROUPS b USING (GROUP_ID)",
    );
    assert_eq!(named_alone, [["1"]]);
    let columns = rows("SELECT count(*) FROM columns WHERE \"table\" = 'clients'");
    assert_eq!(columns, [["3"]]);
}

#[test]
fn nothing_but_reading_is_possible() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    for text in [
        "DELETE FROM clients",
        "INSERT INTO clients VALUES (1, 2, 3)",
        "CREATE TABLE x (a)",
        "ATTACH '/tmp/x' AS x",
        "PRAGMA hard_heap_limit = 0",
        "VACUUM INTO '/tmp/x'",
        "DROP TABLE clients",
    ] {
        let (code, why) = refused(&engine, text);
        assert!(why.contains("can only be read"), "{text}: {why}");
        assert_eq!(code, 1227, "{text}");
    }
    assert!(rows_of(&engine, "SELECT load_extension('x')").is_err());
    assert!(rows_of(&engine, "SELECT ?").is_err());
}

#[test]
fn rows_bytes_and_values_are_bounded() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let (code, why) = refused(&engine, "SELECT * FROM many");
    assert!(why.contains("more than 200000 rows"), "{why}");
    assert_eq!(code, 1041);
    let long = "WITH RECURSIVE n(i, t) AS (SELECT 1, hex(zeroblob(1000000)) UNION ALL \
                SELECT i + 1, t FROM n WHERE i < 100) SELECT * FROM n";
    let (code, why) = refused(&engine, long);
    assert!(why.contains("32 MiB"), "{why}");
    assert_eq!(code, 1041);
    // By recursion: the thread's stack must not be what ends it.
    for like in ["LIKE '%0", "GLOB '*0"] {
        let (operator, part) = like.split_at(6);
        let pattern = part.repeat(20_000);
        let text = format!("SELECT hex(zeroblob(20000)) {operator}{pattern}b'");
        let (_, why) = refused(&engine, &text);
        assert!(why.contains("pattern too complex"), "{why}");
    }
    let (code, why) = refused(&engine, "SELECT zeroblob(17000000)");
    assert!(why.contains("too big"), "{why}");
    assert_eq!(code, 1041);
    // The engine goes on.
    assert_eq!(rows_of(&engine, "SELECT 1").unwrap(), [["1"]]);
}

fn served(source: &Arc<Small>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let account = |name: &str, access| Account {
        name: name.into(),
        password: b"secret".to_vec(),
        access,
    };
    let accounts = vec![
        account("admin", Access::Admin),
        account("reader", Access::Read),
    ];
    crate::serve(Listener::Tcp(listener), accounts, source.clone()).unwrap();
    place
}

fn log_in(at: SocketAddr, user: &str, password: &[u8]) -> Result<Connection<TcpStream>, Failure> {
    log_in_to(at, user, password, "")
}

fn log_in_to(
    at: SocketAddr,
    user: &str,
    password: &[u8],
    schema: &str,
) -> Result<Connection<TcpStream>, Failure> {
    let stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut connection = Connection::new(stream);
    let account = wire::client_login::Account {
        user: user.as_bytes(),
        credential: wire::auth::Credential::Password(password),
        schema: schema.as_bytes(),
        private: false,
        wanted: wire::capabilities::BACKEND_ALWAYS
            | wire::capabilities::DEPRECATE_EOF
            | wire::capabilities::CONNECT_WITH_DB,
        extended: 0,
        required: 0,
        collation: wire::client_login::COLLATION,
        server_key: wire::client_login::ServerKey::Sent,
    };
    connection.log_in(&account).map(|_| connection)
}

fn values(connection: &mut Connection<TcpStream>, text: &str) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    connection.query(text.as_bytes(), |row| {
        for value in blocking::values(row) {
            found.push(String::from_utf8(value.to_vec()).unwrap());
        }
    })?;
    Ok(found)
}

#[test]
fn a_client_asks_and_commands_by_the_mysql_protocol() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    let mut admin = log_in(at, "admin", b"secret").unwrap();
    let shown = values(&mut admin, "SHOW CLIENTS WHERE waited > 1").unwrap();
    assert_eq!(shown, ["3", "app", "1.25"]);
    assert_eq!(values(&mut admin, "SHOW CLIENTS").unwrap().len(), 9);
    // A table that cannot be shown, and then one that can.
    let failed = values(&mut admin, "SHOW MANY").unwrap_err();
    assert!(format!("{failed}").contains("more than"), "{failed}");
    assert!(values(&mut admin, "PAUSE").unwrap().is_empty());
    assert_eq!(*source.actions.lock().unwrap(), [Action::Pause]);
    let failed = values(&mut admin, "RELOAD").unwrap_err();
    assert!(
        format!("{failed}").contains("nothing to reload"),
        "{failed}"
    );
    let mut reader = log_in(at, "reader", b"secret").unwrap();
    assert_eq!(values(&mut reader, "SELECT 1 + 1").unwrap(), ["2"]);
    let failed = values(&mut reader, "RESUME").unwrap_err();
    assert!(format!("{failed}").contains("may only read"), "{failed}");
    for (user, password) in [
        ("admin", &b"wrong"[..]),
        ("nobody", b"secret"),
        ("admin", b""),
    ] {
        let failed = log_in(at, user, password).err().unwrap();
        assert!(format!("{failed}").contains("Access denied"), "{failed}");
    }
}

#[test]
fn what_has_not_answered_in_time_is_no_fault_of_the_text() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    let mut admin = log_in(at, "admin", b"secret").unwrap();
    source.is_late.store(true, Relaxed);
    for text in ["SHOW CLIENTS", "SELECT count(*) FROM clients", "KILL 7"] {
        match values(&mut admin, text) {
            Err(Failure::Server { code, message, .. }) => {
                assert_eq!((code, &message[..]), (3024, &b"nobody has answered"[..]));
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    source.is_late.store(false, Relaxed);
    assert_eq!(values(&mut admin, "SHOW CLIENTS").unwrap().len(), 9);
    assert!(values(&mut admin, "KILL 7").unwrap().is_empty());
}

#[test]
fn a_whole_table_is_shown_as_a_select_shows_it() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let (mut out, mut held) = (Vec::new(), Held::none(Arc::default()));
    let answer = Answer::new(&mut out, 1, FORM, &mut held);
    engine.list(&TABLES[0], answer).unwrap();
    let selected = run(&engine, "SELECT * FROM clients", &Arc::default());
    assert_eq!(out, selected.unwrap().0);
    let many = Answer::new(&mut out, 1, FORM, &mut held);
    let why = engine.list(&TABLES[2], many).unwrap_err().words;
    assert!(why.contains("more than 200000 rows"), "{why}");
}

#[test]
fn a_command_is_answered_before_it_ends_the_program() {
    let source = Arc::new(Small::default());
    let (open, gate) = sync_channel(1);
    *source.gate.lock().unwrap() = Some(gate);
    let at = served(&source);
    let mut admin = log_in(at, "admin", b"secret").unwrap();
    assert!(values(&mut admin, "DRAIN").unwrap().is_empty());
    open.send(()).unwrap();
}

#[test]
fn answers_together_are_bounded() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let answers = Arc::default();
    // 10 MB each: the fourteenth is one too many.
    let text = "SELECT hex(zeroblob(5000000))";
    let held: Vec<_> = (0..13)
        .map(|_| run(&engine, text, &answers).unwrap())
        .collect();
    let why = run(&engine, text, &answers).unwrap_err().words;
    assert!(why.contains("128 MiB"), "{why}");
    drop(held);
    assert!(run(&engine, text, &answers).is_ok());
}

#[test]
fn a_row_of_several_packets_is_numbered_through() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let text = "SELECT hex(zeroblob(5000000)), hex(zeroblob(5000000)) UNION ALL SELECT 1, 2";
    let (answer, _) = run(&engine, text, &Arc::default()).unwrap();
    // The count of columns, two columns, the row in two packets, the other row, the end.
    assert_eq!(count_packets(&answer), 7);
    let rows = read_rows(answer);
    assert_eq!((rows[0][1].len(), rows[1][1].as_str()), (10_000_000, "2"));
}

#[test]
fn readers_leave_a_place_to_administrators() {
    let statements = crate::shares::Statements::default();
    let readers: Vec<_> = (0..crate::READERS_MAX)
        .map(|_| statements.place(Access::Read).unwrap())
        .collect();
    let admin = statements.place(Access::Admin);
    assert!(admin.is_some());
    drop(readers);
    assert!(statements.place(Access::Read).is_some());
}

#[test]
fn strangers_end_nobody_who_has_logged_in() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    let mut admin = log_in(at, "admin", b"secret").unwrap();
    let silent: Vec<TcpStream> = (0..2 * crate::CONNECTIONS_MAX)
        .map(|_| TcpStream::connect(at).unwrap())
        .collect();
    // Whoever comes behind them is served too, so all of them have been accepted.
    let mut reader = log_in(at, "reader", b"secret").unwrap();
    assert_eq!(values(&mut reader, "SELECT 1").unwrap(), ["1"]);
    assert_eq!(values(&mut admin, "SELECT 1").unwrap(), ["1"]);
    assert_eq!(silent.len(), 2 * crate::CONNECTIONS_MAX);
}

#[test]
fn one_connection_too_many_ends_the_oldest() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    let mut first = log_in(at, "reader", b"secret").unwrap();
    let others: Vec<_> = (0..crate::CONNECTIONS_MAX)
        .map(|_| log_in(at, "reader", b"secret").unwrap())
        .collect();
    assert!(values(&mut first, "SELECT 1").is_err());
    assert_eq!(others.len(), crate::CONNECTIONS_MAX);
}

#[test]
fn columns_are_numbers_where_all_values_are() {
    let (mut out, mut held) = (Vec::new(), Held::none(Arc::default()));
    let mut answer = Answer::new(&mut out, 1, FORM, &mut held);
    answer.columns(["a"].into_iter());
    answer.row([ValueRef::Integer(-1)].into_iter()).unwrap();
    answer.row([ValueRef::Null].into_iter()).unwrap();
    answer.end();
    let column = b"\x18\0\0\x02\x03def\0\0\0\x01a\x01a\x0c\x3f\0\x16\0\0\0\x08\x80\x80\0\0\0";
    let mut expected = b"\x01\0\0\x01\x01".to_vec();
    expected.extend_from_slice(column);
    expected.extend_from_slice(b"\x03\0\0\x03\x02-1\x01\0\0\x04\xfb\x07\0\0\x05\xfe\0\0\x02\0\0\0");
    assert_eq!(out, expected);
}

#[test]
fn the_type_of_a_column_is_that_of_its_widest_value() {
    const TEXT: u8 = 253;
    const DOUBLE: u8 = 5;
    const INTEGER: u8 = 8;
    let (number, text) = (ValueRef::Integer(1), ValueRef::Text(b"x"));
    let (real, none) = (ValueRef::Real(0.5), ValueRef::Real(f64::NAN));
    for (values, of) in [
        (vec![], TEXT),
        (vec![ValueRef::Null, none], TEXT),
        (vec![number, none], INTEGER),
        (vec![real, number], DOUBLE),
        (vec![number, real], DOUBLE),
        (vec![number, text, real], TEXT),
        (vec![text, number, ValueRef::Null], TEXT),
    ] {
        let (mut out, mut held) = (Vec::new(), Held::none(Arc::default()));
        let mut answer = Answer::new(&mut out, 1, FORM, &mut held);
        answer.columns(["a"].into_iter());
        for value in &values {
            answer.row([*value].into_iter()).unwrap();
        }
        answer.end();
        // Behind the count and its header: the definition; its type is the sixth byte from behind.
        let definition = 5 + HEADER_LEN + usize::from(out[5]);
        assert_eq!(out[definition - 6], of, "{values:?}");
    }
}

#[test]
fn a_command_that_is_too_long_is_refused_and_a_statement_that_runs_too_long_is_ended() {
    let source = Arc::new(Small::default());
    let at = served(&source);
    for len in [crate::COMMAND_MAX, 8 << 20] {
        let mut reader = log_in(at, "reader", b"secret").unwrap();
        let long = format!("SELECT '{}'", "x".repeat(len));
        let failed = values(&mut reader, &long).unwrap_err();
        assert!(format!("{failed}").contains("bigger than"), "{failed}");
    }
    let engine = engine(&source);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    let (code, why) = refused(&engine, endless);
    assert!(why.contains("ended after 10 s"), "{why}");
    assert_eq!(code, 3024);
}
