//! A fake MySQL server: bytes in, bytes out, and a memory of every statement that it ran.
//!
//! The problem: to prove that no client can notice the pool, each reply must say under which
//! session it was made, and the server must know who ran what, where and how often. The mechanism:
//! statements carry a number of their own (a tag, the client's number times [`TAGS_PER_CLIENT`] and
//! a count), rows carry the session's schema and variables, and [`Db`] keeps the executions.
//!
//! What holds, or the simulation ends with a panic that says so:
//! - no statement is executed twice, but for reads that the pool runs again;
//! - a prepared statement is executed by an id that it has, and a connection has no more of them
//!   than its share of the budget;
//! - within a transaction a connection serves one client only.

mod prepared;
mod several;

use super::answers::{Answer, Form, put_state, put_text, put_variable};
use super::random::Random;
use super::script::{SCHEMAS, TAGS_PER_CLIENT, is_poisoned, uses_tables};
use super::standing::{DEFAULTS, Standing};
use prepared::PreparedText;
use std::collections::{BTreeMap, HashMap};
use wire::auth::{Nonce, native};
use wire::capabilities::{
    BACKEND_ALWAYS, BACKEND_KEY, CONNECT_ATTRS, DEPRECATE_EOF, SESSION_TRACK,
};
use wire::command::Command;
use wire::errors::{
    ACCESS_DENIED, BAD_DB, ErrorCode, NOT_SUPPORTED, QUERY_INTERRUPTED, UNKNOWN_COM,
    WRONG_VALUE_FOR_VAR,
};
use wire::handshake::{Greeting, Login};
use wire::packet::{Frame, HEADER_LEN, frame, put_short};
use wire::reply::{OK, OkPacket};
use wire::status;

/// Short answers among which one is long: others are pipelined behind a statement whose shape had
/// short ones.
const LONG_POINT_EVERY: u64 = 29;
/// Questions whether it has a write among which a server that is read lacks it in one.
const BEHIND_EVERY: u64 = 11;
/// The password of the pool's account.
pub(crate) const PASSWORD: &str = "secret";
/// The password of the pool's account once it has been changed.
pub(crate) const NEW_PASSWORD: &str = "rotated";
const NONCE: Nonce = *b"abcdefghij0123456789";
const USER_LIMIT: ErrorCode = ErrorCode {
    code: 1226,
    state: "42000",
};
const NO_TABLE: ErrorCode = ErrorCode {
    code: 1146,
    state: "42S02",
};

fn id_of(payload: &[u8]) -> u32 {
    wire::execution::statement_id(payload).expect("the id of a statement")
}

/// The tag in a text: its first number of six or more digits. The pool's own texts have none, even
/// where they restore an insert id, which is the tag of an old statement.
pub(crate) fn tag_of(sql: &[u8]) -> Option<u64> {
    let sql = std::str::from_utf8(sql).ok()?;
    let mut runs = sql.split(|c: char| !c.is_ascii_digit());
    let tag = runs.find(|run| run.len() >= 6)?;
    tag.parse()
        .ok()
        .filter(|_| !sql.contains("last_insert_id=") && !sql.contains("@`"))
}

/// Connection on which a statement ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) seat: usize,
    /// The transaction that it ran in, by its number.
    pub(crate) transaction: Option<u64>,
}

/// State of the server.
#[derive(Debug, Default)]
pub(crate) struct Db {
    pub(crate) executed: HashMap<u64, Execution>,
    /// Reads that ran once more.
    pub(crate) read_again: u64,
    /// Questions to a server that is read so far.
    pub(crate) read_questions: u64,
    /// Rows of the log, by tag.
    pub(crate) log: HashMap<u64, u32>,
    pub(crate) transactions: u64,
    /// Requests of KILL: a connection's number, and true for its statement alone.
    pub(crate) kills: Vec<(usize, bool)>,
    /// Statements that a connection may have prepared.
    pub(crate) prepared_max: usize,
    /// Statements that restore a session among which one fails; 0 for none.
    pub(crate) refuses_every: u64,
    /// Such statements so far.
    pub(crate) sets: u64,
    /// Rows that a transaction adds among which one deadlocks, and as many wait in vain; 0 for
    /// none.
    pub(crate) deadlocks_every: u64,
    /// Such rows so far.
    pub(crate) rows: u64,
    /// Connections that the account may have (MAX_USER_CONNECTIONS); 0 for any number.
    pub(crate) account_max: usize,
    /// Number of connections that it has.
    pub(crate) connected: usize,
    /// Its password has been changed.
    pub(crate) is_rotated: bool,
    /// Logins with the new password.
    pub(crate) new_logins: u64,
}

impl Db {
    /// Database in which nothing has happened; a connection may have so many statements prepared.
    pub(crate) fn new(prepared_max: usize, random: &mut Random) -> Db {
        Db {
            prepared_max,
            // What a server has taken before may fail only against all expectation.
            refuses_every: *random.pick(&[0, 0, 0, 0, 7, 40]),
            deadlocks_every: *random.pick(&[0, 0, 3, 9]),
            // It follows another draw, so that the worlds of the seeds stay what they were.
            account_max: [1 + prepared_max % 3, 0, 0, 0][prepared_max / 2 % 4],
            ..Db::default()
        }
    }

    /// True if a statement that restores a session is to fail this time.
    fn fails_now(&mut self) -> bool {
        self.sets += 1;
        self.refuses_every > 0 && self.sets.is_multiple_of(self.refuses_every)
    }
}

#[derive(Debug)]
struct Transaction {
    number: u64,
    /// Client that it serves, once a tag has told.
    client: Option<u64>,
    rows: Vec<u64>,
}

/// One connection's session.
#[derive(Debug)]
pub(crate) struct Seat {
    id: usize,
    logged_in: bool,
    pub(crate) input: Vec<u8>,
    standing: Standing,
    /// User variables, by name.
    user: BTreeMap<String, Option<u64>>,
    transaction: Option<Transaction>,
    insert_id: u64,
    diagnostics: Option<u64>,
    prepared: HashMap<u32, PreparedText>,
    /// Number of preparations.
    preparations: u32,
    /// The command that runs is to end with an error.
    pub(crate) killed: bool,
    /// Changes that an error has left for the next OK to report.
    untold: Vec<u8>,
    /// CLIENT_DEPRECATE_EOF was not agreed.
    eofs: bool,
    /// Changes for which an EOF packet had no room, until an OK has some of its own to report.
    delayed: Vec<u8>,
}

impl Seat {
    /// A connection that stands, and its greeting.
    pub(crate) fn new(id: usize, out: &mut Vec<u8>) -> Seat {
        Greeting {
            version: b"5.5.5-10.11.14-MariaDB".to_vec(),
            connection_id: u32::try_from(id).unwrap(),
            nonce: NONCE,
            capabilities: BACKEND_ALWAYS | BACKEND_KEY | CONNECT_ATTRS,
            extended: 0,
            collation: 45,
            status: status::AUTOCOMMIT,
            plugin: b"mysql_native_password".to_vec(),
        }
        .put(out);
        Seat {
            id,
            logged_in: false,
            input: Vec::new(),
            standing: Standing::default(),
            user: BTreeMap::new(),
            transaction: None,
            insert_id: 0,
            diagnostics: None,
            prepared: HashMap::new(),
            preparations: 0,
            killed: false,
            untold: Vec::new(),
            eofs: false,
            delayed: Vec::new(),
        }
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        self.logged_in
    }

    /// True if somebody is logged in and has sent nothing more.
    pub(crate) fn is_resting(&self) -> bool {
        self.logged_in && self.input.is_empty()
    }

    /// True if a whole command lies in its input, and how long it is to take, in milliseconds.
    pub(crate) fn next_command(&self) -> Option<u64> {
        let Frame::Whole { total, .. } = frame(&self.input) else {
            return None;
        };
        let text = String::from_utf8_lossy(&self.input[HEADER_LEN..total]).into_owned();
        let delay = text.split_once(" d=").map_or("0", |(_, ms)| ms);
        Some(delay.parse().unwrap_or(0))
    }

    /// Runs the command at the front of the input; `false` when the client said good-bye.
    pub(crate) fn run(&mut self, db: &mut Db, out: &mut Vec<u8>) -> bool {
        let Frame::Whole { total, .. } = frame(&self.input) else {
            return true;
        };
        let message: Vec<u8> = self.input.drain(..total).collect();
        let payload = &message[HEADER_LEN..];
        if !self.logged_in {
            if payload == [Command::Quit.byte()] {
                return false;
            }
            self.log_in(db, payload, out);
            return true;
        }
        let arguments = String::from_utf8_lossy(&payload[1..]).into_owned();
        let killed = std::mem::take(&mut self.killed);
        let query = payload[0] == Command::Query.byte() && !killed;
        let front = query.then(|| self.run_front(db, &arguments, out));
        let (text, first) = match front {
            Some(None) => return true,
            Some(Some(behind)) => behind,
            None => (&*arguments, 1),
        };
        let mut answer = match Command::from_byte(payload[0]) {
            Some(Command::Quit) => return false,
            // Too short to be interrupted.
            Some(Command::ResetConnection) => self.renew(),
            _ if killed => {
                self.diagnostics = None;
                Answer::Err(QUERY_INTERRUPTED, "Query execution was interrupted".into())
            }
            Some(Command::Query) => self.query(db, text),
            Some(Command::StmtPrepare) => self.prepare(db, &arguments),
            Some(Command::StmtExecute) => self.execute_prepared(db, payload),
            Some(Command::StmtClose) => {
                let closed = self.prepared.remove(&id_of(payload));
                assert!(closed.is_some(), "a statement that is not there was closed");
                return true;
            }
            Some(Command::StmtSendLongData) => {
                let statement = self.statement(payload);
                let data = statement.long.get_or_insert_default();
                data.extend_from_slice(&payload[7..]);
                return true;
            }
            Some(Command::InitDb) => self.change_schema(&arguments),
            Some(Command::SetOption) => {
                self.standing.multi = payload[1] == 0;
                Answer::Ok {
                    affected: 0,
                    insert_id: 0,
                    changes: Vec::new(),
                    as_end: true,
                }
            }
            _ => Answer::Err(UNKNOWN_COM, "unknown command".into()),
        };
        let latin1 = self
            .standing
            .variables
            .get("character_set_results")
            .map(String::as_str)
            == Some("latin1");
        let collation = if latin1 { 8 } else { 45 };
        let binary = payload[0] == Command::StmtExecute.byte();
        if let Answer::Ok { changes, .. } | Answer::Rows { changes, .. } = &mut answer {
            changes.splice(..0, self.untold.drain(..));
        }
        let form = Form {
            binary,
            collation,
            eofs: self.eofs,
        };
        self.delay_report(&mut answer);
        answer.put(out, first, self.flags(), form);
        true
    }

    /// Delays the reports of result sets without CLIENT_DEPRECATE_EOF.
    fn delay_report(&mut self, answer: &mut Answer) {
        match answer {
            Answer::Rows { changes, .. } if self.eofs => self.delayed.extend_from_slice(changes),
            Answer::Ok {
                changes,
                as_end: false,
                ..
            } if !changes.is_empty() => {
                changes.splice(..0, self.delayed.drain(..));
            }
            _ => {}
        }
    }

    fn flags(&self) -> u16 {
        match self.transaction {
            Some(_) => status::AUTOCOMMIT | status::IN_TRANS,
            None => status::AUTOCOMMIT,
        }
    }

    /// COM_RESET_CONNECTION: all that the session holds is gone.
    fn renew(&mut self) -> Answer {
        self.transaction = None;
        self.user.clear();
        self.insert_id = 0;
        self.diagnostics = None;
        self.prepared.clear();
        // What outlives a reset, on both servers.
        self.standing = Standing {
            schema: self.standing.schema.take(),
            multi: self.standing.multi,
            ..Standing::default()
        };
        Answer::Ok {
            affected: 0,
            insert_id: 0,
            changes: Vec::new(),
            as_end: false,
        }
    }

    /// Clears the warnings; MariaDB keeps them across a statement that has no tables.
    fn clear_diagnostics(&mut self, sql: &str) {
        if uses_tables(sql) {
            self.diagnostics = None;
        }
    }

    fn log_in(&mut self, db: &mut Db, payload: &[u8], out: &mut Vec<u8>) {
        let login = Login::read(payload).expect("the pool's login");
        let password = match db.is_rotated {
            true => NEW_PASSWORD,
            false => PASSWORD,
        };
        let stored = native::stored(password.as_bytes());
        if !native::verify(login.answer, &NONCE, &stored) {
            return wire::reply::put_err(out, 2, ACCESS_DENIED, "Access denied");
        }
        if db.account_max > 0 && db.connected >= db.account_max {
            let words = format!(
                "User 'app' has exceeded the 'max_user_connections' resource (current value: {})",
                db.account_max
            );
            return wire::reply::put_err(out, 2, USER_LIMIT, &words);
        }
        assert!(login.capabilities & SESSION_TRACK != 0);
        db.new_logins += u64::from(db.is_rotated);
        self.eofs = login.capabilities & DEPRECATE_EOF == 0;
        self.logged_in = true;
        self.standing.multi = true;
        let ok = OkPacket {
            affected_rows: 0,
            insert_id: 0,
            status: status::AUTOCOMMIT,
            warnings: 0,
            info: b"",
            changes: b"",
        };
        put_short(out, 2, |out| ok.put(out, OK, true));
    }

    fn change_schema(&mut self, schema: &str) -> Answer {
        if !SCHEMAS.contains(&schema) {
            self.diagnostics = None;
            return Answer::Err(BAD_DB, format!("Unknown database '{schema}'"));
        }
        self.standing.schema = Some(schema.into());
        let mut changes = Vec::new();
        put_text(&mut changes, 1, schema);
        put_state(&mut changes);
        Answer::changed(changes)
    }

    /// Notes that a client's statement runs here, and checks that it may.
    fn execute(&mut self, db: &mut Db, sql: &str, tag: u64) {
        let client = tag / TAGS_PER_CLIENT;
        let transaction = self.transaction.as_mut().map(|transaction| {
            let owner = *transaction.client.get_or_insert(client);
            assert!(
                owner == client,
                "statement {tag} ran within a transaction of client {owner}: {sql}"
            );
            transaction.number
        });
        let execution = Execution {
            seat: self.id,
            transaction,
        };
        if db.executed.insert(tag, execution).is_some() {
            assert!(
                sql.starts_with("SELECT "),
                "statement {tag} was executed twice: {sql}"
            );
            db.read_again += 1;
        }
    }

    fn query(&mut self, db: &mut Db, sql: &str) -> Answer {
        if let Some(rest) = sql.strip_prefix("KILL ") {
            let (what, id) = rest.split_once(' ').expect("a kind and a number");
            db.kills
                .push((id.parse().expect("a number"), what == "QUERY"));
            return Answer::changed(Vec::new());
        }
        // Without a tag: the pool makes the server report.
        let within = match sql {
            "START TRANSACTION" => Some(true),
            "COMMIT AND NO CHAIN NO RELEASE" => Some(false),
            _ => None,
        };
        if let Some(within) = within {
            assert!(self.transaction.is_none(), "a client's transaction is open");
            let mut changes = Vec::new();
            put_text(
                &mut changes,
                5,
                if within { "T_______" } else { "________" },
            );
            return Answer::changed(changes);
        }
        // A server that is read is behind now and then.
        if sql.starts_with("SELECT MASTER_GTID_WAIT(") {
            db.read_questions += 1;
            let is_behind = db.read_questions.is_multiple_of(BEHIND_EVERY);
            return Answer::row(vec![Some(if is_behind { "-1" } else { "0" }.into())]);
        }
        let tag = tag_of(sql.as_bytes());
        if sql.starts_with("SHOW WARNINGS") {
            return self.show_warnings(sql);
        }
        if sql == "SHOW CREATE TABLE information_schema.TABLES" {
            self.diagnostics = None;
            return Answer::changed(Vec::new());
        }
        if let Some(answer) = about_conditions(sql) {
            return answer;
        }
        if matches!(
            sql,
            "BEGIN" | "COMMIT" | "ROLLBACK" | "ROLLBACK AND NO CHAIN NO RELEASE"
        ) {
            return self.transaction_statement(db, sql, None);
        }
        self.clear_diagnostics(sql);
        if let Some(tag) = tag {
            self.execute(db, sql, tag);
            let words = self.standing.words();
            return self.tagged(db, sql, tag, words);
        }
        if let Some(assignments) = sql.strip_prefix("SET ") {
            if Seat::refuses(db, assignments) {
                return Answer::Err(WRONG_VALUE_FOR_VAR, "on purpose".into());
            }
            return self.set(assignments);
        }
        let value = |name: &str| Some(self.variable(name));
        if sql.starts_with("SELECT @@character_set_client") {
            let charsets = DEFAULTS[..4].iter().map(|(name, _)| value(name));
            let role = sql.contains(",CURRENT_ROLE()").then_some(None);
            let commits = [Some("1".into())];
            return Answer::row(charsets.chain(commits).chain(role).collect());
        }
        // A client's FOUND_ROWS(), put there in front of its statement.
        if sql == "SELECT 1 LIMIT 0" || sql.starts_with("SELECT 1 FROM (SELECT 1") {
            return Answer::row(vec![Some("1".into())]);
        }
        if let Some(row) = self.read_back(sql) {
            return Answer::row(row);
        }
        // An error that the pool has the server give.
        if sql.starts_with("SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO=1235,") {
            let words = sql.split("MESSAGE_TEXT=").nth(1).unwrap_or_default();
            return Answer::Err(NOT_SUPPORTED, words.trim_matches('\'').into());
        }
        panic!("the fake server does not understand: {sql}");
    }

    /// The answer to what the pool reads back of a session, column by column.
    fn read_back(&self, sql: &str) -> Option<Vec<Option<String>>> {
        let columns = sql.strip_prefix("SELECT ")?.strip_suffix(" LIMIT 1")?;
        let mut row = Vec::new();
        let mut rest = columns;
        while !rest.is_empty() {
            // A user variable: its value, the same as digits, and its collation.
            if let Some(name) = rest.strip_prefix("IF(LENGTH(@`") {
                let (name, _) = name.split_once('`')?;
                let last = format!("COLLATION(@`{name}`)");
                let value = self.user_value(name);
                let hex = |value: &String| value.bytes().map(|b| format!("{b:02X}")).collect();
                let hex = value.as_ref().map(hex);
                row.extend([value, hex, Some("binary".into())]);
                rest = rest.split_once(&last)?.1;
            } else {
                let (column, others) = rest.split_once(',').unwrap_or((rest, ""));
                row.push(match column {
                    "FOUND_ROWS()" => Some("0".into()),
                    "LAST_INSERT_ID()" => Some(self.insert_id.to_string()),
                    "@@sql_notes" => Some("1".into()),
                    "@@max_error_count" => Some("64".into()),
                    "@@collation_connection" => Some(self.variable("collation_connection")),
                    "CURRENT_ROLE()" => None,
                    _ => return None,
                });
                rest = others;
            }
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        Some(row)
    }

    fn user_value(&self, name: &str) -> Option<String> {
        let value = self.user.get(name).copied().flatten();
        value.map(|value| value.to_string())
    }

    fn variable(&self, name: &str) -> String {
        let default = DEFAULTS.iter().find(|(other, _)| *other == name);
        let default = default.map_or("", |(_, value)| value);
        let set = self.standing.variables.get(name);
        set.map_or_else(|| default.to_string(), Clone::clone)
    }

    /// A client's statement, by its first words.
    fn tagged(&mut self, db: &mut Db, sql: &str, tag: u64, words: String) -> Answer {
        let row = vec![Some(tag.to_string()), Some(words.clone())];
        let begins = |start: &str| sql.starts_with(start);
        let is_point = begins("SELECT c FROM t");
        let is_poison = begins("SELECT p FROM poison");
        let is_short = is_point && !tag.is_multiple_of(LONG_POINT_EVERY)
            || is_poison && !is_poisoned(tag)
            || begins("SELECT s FROM slow");
        if is_short {
            Answer::row(row)
        } else if is_poison {
            let Answer::Ok { changes, .. } = self.set("time_zone='+09:00'") else {
                panic!("a time zone can be set");
            };
            Answer::Rows {
                rows: vec![row],
                warnings: 0,
                changes,
            }
        } else if begins("SELECT w FROM warns") {
            self.diagnostics = Some(tag);
            Answer::Rows {
                rows: vec![row],
                warnings: 1,
                changes: Vec::new(),
            }
        } else if begins("SELECT e FROM fails") {
            self.diagnostics = Some(tag);
            Answer::Err(NO_TABLE, format!("{tag} {words}"))
        } else if is_point || begins("SELECT b FROM big") {
            let filler = "x".repeat(usize::try_from(300 + tag % 1000).unwrap());
            let mut rows = vec![vec![Some(filler), Some(words)]; 180];
            rows.push(row);
            Answer::rows(rows)
        } else if begins("SELECT LAST_INSERT_ID()") {
            Answer::row(vec![Some(self.insert_id.to_string()), Some(words)])
        } else if let Some(rest) = sql.strip_prefix("SELECT @") {
            let name = rest.split(' ').next().unwrap_or(rest);
            Answer::row(vec![self.user_value(name), Some(words)])
        } else if let Some((name, rest)) = sql
            .strip_prefix("SET @")
            .and_then(|assignment| assignment.split_once('='))
        {
            let value = rest.split(' ').next().and_then(|value| value.parse().ok());
            let value = Some(value.expect("a number"));
            self.user.insert(name.into(), value);
            let mut changes = Vec::new();
            put_state(&mut changes);
            Answer::changed(changes)
        } else if let Some(rest) = sql.strip_prefix("SET ") {
            self.set(rest.split(' ').next().unwrap_or(rest))
        } else if let Some(rest) = sql.strip_prefix("USE ") {
            self.change_schema(rest.split(' ').next().unwrap_or(rest))
        } else if begins("INSERT INTO log") {
            self.insert(db, tag)
        } else {
            self.transaction_statement(db, sql, Some(tag))
        }
    }

    fn insert(&mut self, db: &mut Db, tag: u64) -> Answer {
        if self.transaction.is_some()
            && let Some(failed) = self.conflict(db)
        {
            return failed;
        }
        self.insert_id = tag;
        let mut changes = Vec::new();
        if self.transaction.is_none() {
            // The binary log is on: the number of this write.
            put_variable(&mut changes, "last_gtid", &format!("0-1-{tag}"));
        }
        match &mut self.transaction {
            Some(transaction) => {
                transaction.rows.push(tag);
                put_text(&mut changes, 5, "T___W___");
            }
            None => *db.log.entry(tag).or_default() += 1,
        }
        Answer::Ok {
            affected: 1,
            insert_id: tag,
            changes,
            as_end: false,
        }
    }

    fn transaction_statement(&mut self, db: &mut Db, sql: &str, tag: Option<u64>) -> Answer {
        let mut changes = Vec::new();
        if sql.starts_with("BEGIN") {
            assert!(self.transaction.is_none(), "a transaction is open: {sql}");
            db.transactions += 1;
            self.transaction = Some(Transaction {
                number: db.transactions,
                client: tag.map(|tag| tag / TAGS_PER_CLIENT),
                rows: Vec::new(),
            });
            if let Some(execution) = tag.and_then(|tag| db.executed.get_mut(&tag)) {
                execution.transaction = Some(db.transactions);
            }
            put_text(&mut changes, 4, "START TRANSACTION;");
            put_text(&mut changes, 5, "T_______");
            return Answer::changed(changes);
        }
        let rows = self.transaction.take().map_or(Vec::new(), |t| t.rows);
        if sql.starts_with("COMMIT") {
            for row in rows {
                *db.log.entry(row).or_default() += 1;
            }
        } else {
            assert!(sql.starts_with("ROLLBACK"), "not understood: {sql}");
        }
        put_text(&mut changes, 4, "");
        put_text(&mut changes, 5, "________");
        Answer::changed(changes)
    }

    /// True if a SET that restores a session fails this time, whatever it was before.
    fn refuses(db: &mut Db, assignments: &str) -> bool {
        let restores = assignments.contains("time_zone") || assignments.contains("collation");
        restores && db.fails_now()
    }

    fn set(&mut self, assignments: &str) -> Answer {
        let mut changes = Vec::new();
        for assignment in assignments.split(',') {
            if let Some(rest) = assignment.strip_prefix("NAMES '") {
                // The others of the four are set behind it.
                let charset = rest.split('\'').next().expect("a character set");
                self.standing.set("character_set_results", charset);
                self.standing.set("character_set_client", charset);
                continue;
            }
            let (name, value) = assignment.split_once('=').expect("an assignment");
            let value = value.trim_matches('\'');
            if let Some(name) = name.strip_prefix("@`") {
                let name = name.trim_end_matches('`');
                self.user.insert(name.into(), value.parse().ok());
                continue;
            }
            if name == "last_insert_id" {
                self.insert_id = value.parse().expect("a number");
                continue;
            }
            if name.starts_with("session_track_") {
                continue;
            }
            let default = DEFAULTS.iter().find(|(other, _)| *other == name);
            let default = default
                .unwrap_or_else(|| panic!("no such variable: {name}"))
                .1;
            let value = match value {
                "DEFAULT" => default,
                "1" if name == "sql_safe_updates" => "ON",
                "0" if name == "sql_safe_updates" => "OFF",
                // Collations by number.
                "8" if name == "character_set_results" => "latin1",
                "45" if name == "character_set_results" => "utf8mb4",
                value => value,
            };
            self.standing.set(name, value);
            put_variable(&mut changes, name, value);
            if name == "character_set_connection" {
                let collation = match value {
                    "latin1" => "latin1_swedish_ci",
                    _ => "utf8mb4_general_ci",
                };
                self.standing.set("collation_connection", collation);
            }
        }
        put_state(&mut changes);
        Answer::changed(changes)
    }

    fn show_warnings(&self, sql: &str) -> Answer {
        let none = sql.contains("LIMIT 0");
        let rows = self.diagnostics.filter(|_| !none).map(|tag| {
            let words = format!("about {tag}");
            vec![Some("Warning".into()), Some("1".into()), Some(words)]
        });
        Answer::rows(rows.into_iter().collect())
    }
}

/// Answer to the pool's question to a client's last backend: items of conditions, which clears
/// none.
fn about_conditions(sql: &str) -> Option<Answer> {
    if sql.starts_with("GET DIAGNOSTICS CONDITION ") {
        return Some(Answer::changed(Vec::new()));
    }
    let columns = sql.strip_prefix("SELECT FOUND_ROWS()")?;
    let columns = columns.strip_suffix(" LIMIT 1")?;
    if !columns.is_empty() && !columns.starts_with(",@onramp_") {
        return None;
    }
    let items = columns.matches(',').count();
    Some(Answer::row(vec![Some("0".into()); 1 + items]))
}
