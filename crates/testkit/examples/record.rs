//! Writes the corpus of `fuzz/` from what real servers and clients say to each other.
//!
//! `cargo run -p testkit --example record -- fuzz/corpus`: starts a private MariaDB, and MySQL
//! where there is one, tells each some sessions through a listener that keeps both directions, and
//! writes each message into the folders of the targets that read its kind. The names say what was
//! said, so a second run replaces the files of the first; found inputs beside them are left alone.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers, which fails by panicking"
)]

use reactor::Address;
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use testkit::client::{Client, execution, execution_again};
use testkit::onramp::loopback;
use testkit::real::{Flavour, Real};
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::{Command, ReplyShape};
use wire::packet::{Frame, HEADER_LEN, frame};
use wire::reply::OkPacket;

/// Both directions of one connection since somebody looked last.
#[derive(Clone, Default)]
struct Tape {
    said: Arc<Mutex<Vec<u8>>>,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Tape {
    fn take(&self) -> (Vec<u8>, Vec<u8>) {
        let take = |side: &Mutex<Vec<u8>>| std::mem::take(&mut *side.lock().unwrap());
        (take(&self.said), take(&self.heard))
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, tape: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        // Kept first: whoever has the answer finds it on the tape.
        tape.lock().unwrap().extend_from_slice(&buffer[..len]);
        if to.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}

/// A listener in front of a server, for one connection.
fn listen(server: &Address) -> (Address, Tape) {
    let Address::Tcp(server) = server.clone() else {
        panic!("{server} is no TCP address");
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = loopback(listener.local_addr().unwrap().port());
    let tape = Tape::default();
    let kept = tape.clone();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(server).unwrap();
        let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let heard = Arc::clone(&kept.heard);
        std::thread::spawn(move || copy(back.0, back.1, &heard));
        copy(client, server, &kept.said);
    });
    (address, tape)
}

struct Corpus {
    folder: PathBuf,
    server: &'static str,
    /// Inputs that are written already, by target: one of a kind is enough.
    written: Mutex<HashSet<(String, Vec<u8>)>>,
}

impl Corpus {
    fn write(&self, target: &str, name: &str, bytes: &[u8]) {
        const LEN_MAX: usize = 4096;
        let one_of_a_kind = (target.to_owned(), bytes.to_vec());
        let mut written = self.written.lock().unwrap();
        if bytes.is_empty() || bytes.len() > LEN_MAX || !written.insert(one_of_a_kind) {
            return;
        }
        let folder = self.folder.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}-{name}", self.server)), bytes).unwrap();
    }

    /// Records a text, with the byte of the usual mode in front.
    fn text(&self, target: &str, name: &str, sql: &str) {
        let how = if self.server == "mysql" { 0x10 } else { 0x20 };
        self.write(target, name, &[&[how], sql.as_bytes()].concat());
    }

    /// Records a login's packets: greeting, answer, and what the server says until its OK.
    fn login(&self, name: &str, said: &[u8], heard: &[u8]) {
        self.write("packets", &format!("{name}-said"), said);
        self.write("packets", &format!("{name}-heard"), heard);
        self.write("client_login", name, &[&[0], heard].concat());
        if let Frame::Whole { total, .. } = frame(heard) {
            self.write("greeting", name, &heard[HEADER_LEN..total]);
            if let Frame::Whole { total: next, .. } = frame(&heard[total..]) {
                let second = &heard[total + HEADER_LEN..total + next];
                self.write("greeting", &format!("{name}-second"), second);
            }
        }
        if let Frame::Whole { total, .. } = frame(said) {
            self.write("login", name, &said[HEADER_LEN..total]);
        }
    }

    /// Records one command and its reply.
    fn exchange(&self, name: &str, said: &[u8], heard: &[u8]) {
        self.write("packets", name, said);
        self.write("compressed", name, &framed(heard));
        let payload = said.get(HEADER_LEN..).unwrap_or_default();
        let Some(command) = payload.first().and_then(|byte| Command::from_byte(*byte)) else {
            return;
        };
        let binary = matches!(command, Command::StmtExecute | Command::StmtFetch);
        let shape = match command.reply() {
            ReplyShape::Results | ReplyShape::LocalFile | ReplyShape::Call => 0,
            ReplyShape::Status => 1,
            ReplyShape::Prepared => 2,
            ReplyShape::Rows => 3,
            ReplyShape::Text => 4,
            ReplyShape::None => 5,
            ReplyShape::Cursor => 6,
        };
        // A multiple of six beyond 0x7f says that rows are binary.
        let how = if binary { 0x84 + shape } else { shape };
        self.write("reply", name, &[&[how], heard].concat());
        self.write(
            "values",
            name,
            &[&[5, 6, 0, 1, 2, 4].repeat(4), payload].concat(),
        );
        match command {
            Command::StmtExecute => self.write("execution", name, &[&[0, 2], payload].concat()),
            Command::ChangeUser => self.write("login", name, &payload[1..]),
            _ => {}
        }
        self.ends(name, heard);
    }

    /// Records OK, ERR and the like, with what the trackers said in them.
    fn ends(&self, name: &str, heard: &[u8]) {
        let mut rest = heard;
        while let Frame::Whole { total, .. } = frame(rest) {
            let payload = &rest[HEADER_LEN..total];
            rest = &rest[total..];
            if !matches!(payload.first(), Some(0 | 0xFE | 0xFF)) {
                continue;
            }
            self.write("status", name, payload);
            if let Ok(ok) = OkPacket::read(payload, true)
                && !ok.changes.is_empty()
            {
                self.write("trackers", name, &[&[0x80], ok.changes].concat());
            }
        }
    }
}

fn framed(packets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::compressed::Packer::default().pack(packets, &mut out);
    out
}

/// Texts that are said, each with the name of its files.
const TEXTS: [(&str, &str); 24] = [
    ("select", "SELECT 1, NULL, 'a', 2.5, NOW()"),
    ("rows", "SELECT * FROM fuzz.t ORDER BY id"),
    ("wide", "SELECT REPEAT('x', 300), REPEAT('y', 2000)"),
    (
        "insert",
        "INSERT INTO fuzz.t (name) VALUES ('one'), ('two'), (NULL)",
    ),
    (
        "update",
        "UPDATE fuzz.t SET name = CONCAT(name, '!') WHERE id < 3",
    ),
    ("error", "SELECT * FROM fuzz.missing"),
    ("syntax", "SELEKT 1"),
    ("warning", "SELECT 1/0, CAST('x' AS SIGNED)"),
    ("warnings", "SHOW WARNINGS"),
    (
        "set",
        "SET time_zone = '+02:00', sql_mode = 'ANSI_QUOTES', @a := 1",
    ),
    ("names", "SET NAMES latin1"),
    ("use", "USE fuzz"),
    ("begin", "BEGIN"),
    ("rollback", "ROLLBACK"),
    (
        "multi",
        "SELECT 1; DO 2; SELECT 3 FROM fuzz.t; SELECT * FROM fuzz.missing",
    ),
    ("call", "CALL fuzz.p()"),
    ("lock", "SELECT GET_LOCK('a', 1), RELEASE_LOCK('a')"),
    (
        "id",
        "SELECT CONNECTION_ID(), @@pseudo_thread_id AS me FROM DUAL",
    ),
    (
        "id-deep",
        "SELECT a, (SELECT CONNECTION_ID() + 1), `b` FROM (SELECT 1 a, 2 b) t",
    ),
    (
        "versioned",
        "SELECT /*!50000 1 + */ 2 /* three */ -- four\n, 5 # six",
    ),
    (
        "quotes",
        r#"SELECT 'it''s', "a\"b", `c``d`, N'e', _utf8mb4'f', x'41', 0x42, 1e5, .5"#,
    ),
    (
        "variables",
        "SELECT @a, @'b c', @@global.max_connections, @@`sql_mode`, @c := 3",
    ),
    ("kill", "KILL QUERY 4000000000"),
    (
        "routine",
        "CREATE PROCEDURE fuzz.q() BEGIN IF 1 THEN SELECT 2; END IF; END",
    ),
];

/// Texts that are only read: said to a server, these end the session.
const UNSAID: [(&str, &str); 2] = [
    ("kill-own", "KILL /* me */ CONNECTION CONNECTION_ID()"),
    ("kill-hard", "KILL HARD QUERY 5;"),
];

/// The targets that read SQL.
const READERS: [&str; 4] = ["lexer", "classify", "kill", "own_id"];

fn tell(corpus: &Corpus, server: &Address, account: &Account, name: &str) {
    let (address, tape) = listen(server);
    let mut client = Client::connect(&address, account).unwrap();
    let (said, heard) = tape.take();
    corpus.login(&format!("login-{name}"), &said, &heard);
    let mut run = |name: &str, command: Command, arguments: &[u8]| {
        let outcomes = client.run(command, arguments).unwrap();
        let (said, heard) = tape.take();
        corpus.exchange(name, &said, &heard);
        outcomes
    };
    for (name, sql) in TEXTS {
        run(name, Command::Query, sql.as_bytes());
    }
    for (name, sql) in TEXTS.iter().chain(&UNSAID) {
        for target in READERS {
            corpus.text(target, name, sql);
        }
    }
    run("ping", Command::Ping, b"");
    run("statistics", Command::Statistics, b"");
    run("init-db", Command::InitDb, b"fuzz");
    run("init-db-failed", Command::InitDb, b"missing");
    let select = b"SELECT id, name, ? FROM fuzz.t WHERE id < ?";
    run("prepare", Command::StmtPrepare, select);
    run(
        "prepare-failed",
        Command::StmtPrepare,
        b"SELECT * FROM fuzz.missing",
    );
    let params: [Option<&[u8]>; 2] = [Some(b"x"), Some(b"9")];
    run(
        "execute",
        Command::StmtExecute,
        &execution(1, &params, false),
    );
    run(
        "execute-again",
        Command::StmtExecute,
        &execution_again(1, &params),
    );
    run(
        "execute-null",
        Command::StmtExecute,
        &execution(1, &[None, None], false),
    );
    run("cursor", Command::StmtExecute, &execution(1, &params, true));
    run("fetch", Command::StmtFetch, &[1, 0, 0, 0, 2, 0, 0, 0]);
    run("reset-statement", Command::StmtReset, &[1, 0, 0, 0]);
    run("reset", Command::ResetConnection, b"");
    client.change_user(account).unwrap();
    let (said, heard) = tape.take();
    corpus.exchange("change-user", &said, &heard);
}

fn record(corpus: &mut Corpus, real: &Real) {
    corpus.server = match real.flavour() {
        Flavour::MariaDb => "mariadb",
        Flavour::MySql => "mysql",
    };
    real.create_user("app", "app");
    real.execute(&[
        "CREATE DATABASE fuzz",
        "CREATE TABLE fuzz.t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20))",
        "CREATE PROCEDURE fuzz.p() BEGIN SELECT 1; SELECT 2; END",
    ]);
    let account = Account::new("app", "app")
        .schema("fuzz")
        .with(cap::CONNECT_WITH_DB | cap::MULTI_STATEMENTS);
    tell(corpus, &real.address(), &account, "usual");
    let (address, tape) = listen(&real.address());
    let _ = Client::connect(&address, &Account::new("app", "wrong"));
    let (said, heard) = tape.take();
    corpus.login("login-wrong", &said, &heard);
}

fn main() {
    let folder = std::env::args().nth(1);
    let folder = folder.expect("the folder to write into, such as fuzz/corpus");
    let mut corpus = Corpus {
        folder: folder.into(),
        server: "",
        written: Mutex::default(),
    };
    for real in [Real::start(&[]), Real::start_mysql(&[])] {
        match real {
            Ok(real) => record(&mut corpus, &real),
            Err(why) => println!("left out: {why}"),
        }
    }
}
