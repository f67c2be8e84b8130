//! The console with a small source: what it makes of texts, and what a client gets.

use crate::dialect::{Asked, Names, read};
use crate::engine::{Engine, OWN, Rows, Who};
use crate::{
    Access, Account, Action, Column, Listener, MAIN, ROWS_MAX, Row, Source, Table, Type, Value,
};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::blocking::{self, Connection, Failure};

static TABLES: &[Table] = &[
    Table {
        schema: MAIN,
        name: "clients",
        help: "a client",
        columns: &[
            Column {
                name: "id",
                of: Type::Integer,
                help: "its number",
            },
            Column {
                name: "user",
                of: Type::Text,
                help: "its user",
            },
            Column {
                name: "waited",
                of: Type::Real,
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
            help: "its number",
        }],
    },
    Table {
        schema: MAIN,
        name: "many",
        help: "more than fit",
        columns: &[Column {
            name: "id",
            of: Type::Integer,
            help: "its number",
        }],
    },
];

#[derive(Default)]
struct Small {
    actions: Mutex<Vec<Action>>,
    asked: Mutex<Vec<&'static str>>,
}

impl Source for Small {
    fn tables(&self) -> &'static [Table] {
        TABLES
    }

    fn rows(&self, table: &Table) -> Result<Vec<Row>, String> {
        self.asked.lock().unwrap().push(table.name);
        let client = |id, user: &str, waited| {
            let waited = Option::map_or(waited, Value::Null, Value::Real);
            vec![Value::Integer(id), Value::Text(user.into()), waited]
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
        self.actions.lock().unwrap().push(action.clone());
        Ok("done".into())
    }

    fn logged_in(&self, _: &str, _: &str, _: bool) {}
}

fn dialect(text: &str) -> Result<Asked, (u16, String)> {
    let source = Small::default();
    let tables: Vec<Table> = TABLES.iter().chain(OWN).copied().collect();
    let names = Names {
        tables: &tables,
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
        rows("SHOW CLIENTS"),
        "SELECT * FROM (SELECT * FROM main.clients) "
    );
    assert_eq!(
        rows("show clients where user = \"app\" order by id desc limit 2"),
        "SELECT * FROM (SELECT * FROM main.clients) where user = 'app' order by id desc limit 2"
    );
    assert_eq!(
        rows(r"SHOW GLOBAL VARIABLES LIKE 'a\_%'"),
        "SELECT * FROM (SELECT name AS \"Variable_name\", value AS \"Value\" FROM main.variables) \
         WHERE \"Variable_name\" LIKE 'a\\_%' ESCAPE '\\' "
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
        "USE main",
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
fn a_table_is_described_with_its_schema_and_without() {
    let described = dialect("DESCRIBE clients").unwrap();
    for text in [
        "DESC main.clients",
        "EXPLAIN `main`.`clients`",
        "SHOW COLUMNS FROM clients",
        "SHOW FULL FIELDS FROM clients IN main",
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

fn engine(source: &Arc<Small>) -> Engine {
    let who = Who {
        user: "a@localhost".into(),
        id: 4,
        version: "8".into(),
    };
    Engine::new(source.clone(), Arc::default(), &who).unwrap()
}

#[test]
fn only_the_tables_that_a_statement_reads_are_filled() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let rows = |text: &str| engine.run(text).unwrap().0;
    assert_eq!(
        rows("SELECT USER(), DATABASE(), CONNECTION_ID(), VERSION()").rows,
        [[
            Value::Text("a@localhost".into()),
            Value::Text("main".into()),
            Value::Integer(4),
            Value::Text("8".into())
        ]]
    );
    assert!(source.asked.lock().unwrap().is_empty());
    let count = rows("SELECT count(*) FROM Clients WHERE user = 'APP'");
    assert_eq!(count.rows, [[Value::Integer(2)]]);
    // Each statement sees the source as it is then, and once.
    let joined =
        rows("SELECT a.id, b.group_id FROM clients a, information_schema.thread_pool_groups b");
    assert_eq!(joined.rows.len(), 3);
    assert_eq!(
        *source.asked.lock().unwrap(),
        ["clients", "clients", "THREAD_POOL_GROUPS"]
    );
    for text in [
        "SELECT count(*) FROM clients a JOIN clients b USING (id)",
        "SELECT count(*) FROM clients a JOIN main.clients AS b USING (id)",
        "SELECT count(*) FROM (SELECT 1) CROSS JOIN `clients`",
        "SELECT count(*) FROM (SELECT 1), clients a JOIN clients b USING (id) WHERE 1 = 1",
    ] {
        assert_eq!(rows(text).rows, [[Value::Integer(3)]], "{text}");
    }
    let columns = rows("SELECT count(*) FROM columns WHERE \"table\" = 'clients'");
    assert_eq!(columns.rows, [[Value::Integer(3)]]);
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
        let why = engine.run(text).unwrap_err();
        assert!(why.contains("can only be read"), "{text}: {why}");
    }
    assert!(engine.run("SELECT load_extension('x')").is_err());
    assert!(engine.run("SELECT ?").is_err());
}

#[test]
fn rows_bytes_and_values_are_bounded() {
    let source = Arc::new(Small::default());
    let engine = engine(&source);
    let why = engine.run("SELECT * FROM many").unwrap_err();
    assert!(why.contains("more than 200000 rows"), "{why}");
    let long = "WITH RECURSIVE n(i, t) AS (SELECT 1, hex(zeroblob(1000000)) UNION ALL \
                SELECT i + 1, t FROM n WHERE i < 100) SELECT * FROM n";
    let why = engine.run(long).unwrap_err();
    assert!(why.contains("32 MiB"), "{why}");
    // By recursion: the thread's stack must not be what ends it.
    for like in ["LIKE '%0", "GLOB '*0"] {
        let (operator, part) = like.split_at(6);
        let pattern = part.repeat(20_000);
        let text = format!("SELECT hex(zeroblob(20000)) {operator}{pattern}b'");
        let why = engine.run(&text).unwrap_err();
        assert!(why.contains("pattern too complex"), "{why}");
    }
    let why = engine.run("SELECT zeroblob(17000000)").unwrap_err();
    assert!(why.contains("too big"), "{why}");
    // The engine goes on.
    assert_eq!(
        engine.run("SELECT 1").unwrap().0.rows,
        [[Value::Integer(1)]]
    );
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
    let stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut connection = Connection::new(stream);
    let account = wire::client_login::Account {
        user: user.as_bytes(),
        credential: wire::auth::Credential::Password(password),
        schema: b"",
        private: false,
        wanted: wire::capabilities::BACKEND_ALWAYS | wire::capabilities::DEPRECATE_EOF,
        extended: 0,
        required: 0,
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
fn answers_together_are_bounded() {
    let source = Arc::new(Small::default());
    let answers = Arc::default();
    let who = Who {
        user: "a@localhost".into(),
        id: 4,
        version: "8".into(),
    };
    let engine = Engine::new(source, Arc::clone(&answers), &who).unwrap();
    // 10 MB of rows, as many of packets: the seventh is one too many.
    let text = "SELECT hex(zeroblob(5000000))";
    let held: Vec<_> = (0..6).map(|_| engine.run(text).unwrap()).collect();
    let why = engine.run(text).unwrap_err();
    assert!(why.contains("128 MiB"), "{why}");
    drop(held);
    assert!(engine.run(text).is_ok());
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
    let answer = Rows {
        columns: vec!["a".into()],
        rows: vec![vec![Value::Integer(-1)], vec![Value::Null]],
    };
    let mut out = Vec::new();
    let form = crate::answer::Form {
        deprecate_eof: true,
    };
    crate::answer::put_rows(&mut out, 1, form, &answer);
    let column = b"\x18\0\0\x02\x03def\0\0\0\x01a\x01a\x0c\x3f\0\x16\0\0\0\x08\x80\x80\0\0\0";
    let mut expected = b"\x01\0\0\x01\x01".to_vec();
    expected.extend_from_slice(column);
    expected.extend_from_slice(b"\x03\0\0\x03\x02-1\x01\0\0\x04\xfb\x07\0\0\x05\xfe\0\0\x02\0\0\0");
    expected.truncate(out.len());
    assert_eq!(out.len(), expected.len());
    assert_eq!(out, expected);
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
    let why = engine.run(endless).unwrap_err();
    assert!(why.contains("ended after 10 s"), "{why}");
}
