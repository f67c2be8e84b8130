//! Telling a script: to an address, step by step, with every reply written down.
//!
//! What is not compared, and why, stands here and nowhere else:
//!
//! - the number of a prepared statement, also in the words of an error: each server's own, and the
//!   pool's are virtual;
//! - the number of a connection, but for being the one of the client's greeting;
//! - what a change of user reports of the new session: the pool answers before any backend has it;
//! - the order of the trackers' reports in one reply: servers have none;
//! - what a transaction has done so far, in reports of its state: the pool's own questions within
//!   it show there as a read or a result (docs/pool/limits.md); that one has begun and that it has
//!   ended are compared;
//! - the text of COM_STATISTICS, which is of the server's whole life;
//! - the flag SESSION_STATE_CHANGED without a report: MariaDB sets it for clients that cannot read
//!   reports, and for a schema that a prepared statement enters and leaves again.

use super::script::{Act, Kill, LOCAL_FILE, Login, Step};
use crate::client::{Client, ClientError, bulk_execution};
use crate::onramp::Pool;
use crate::real::await_blocked;
use crate::reply::{Column, Outcome, Rows};
use crate::talk::Account;
use reactor::Address;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use wire::command::Command;

/// Longer than any statement of a script takes, and than the pool lets one wait.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Deadlocks after which the administrator's SQL, or a definition, is not tried again.
const DEADLOCKS_MAX: usize = 100;

/// A step that takes longer is named: it waits for a lock or a backend.
const SLOW: Duration = Duration::from_millis(1500);

/// Ways in which a connection that the other side has closed fails.
const ENDS: [ErrorKind; 3] = [
    ErrorKind::UnexpectedEof,
    ErrorKind::ConnectionReset,
    ErrorKind::BrokenPipe,
];

/// The pool's refusal of a question about the statement before.
const REFUSAL: &str = "onramp: what the previous statement left is gone";

/// Statement that fails with the error of such a refusal.
pub(super) const REFUSES: &str = "SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1235, MESSAGE_TEXT = \
     'onramp: what the previous statement left is gone; run both statements again, in one \
     transaction'";

/// True if a reply, or that of a statement that has waited, is such a refusal.
pub(super) fn is_refused(reply: &str) -> bool {
    let reply = last_line(reply);
    !is_answered(reply) && reply.contains("code: 1235") && reply.contains(REFUSAL)
}

/// True if a reply is that of a statement that went well.
pub(super) fn is_answered(reply: &str) -> bool {
    let reply = last_line(reply);
    ["[Done", "[Rows"]
        .iter()
        .any(|start| reply.starts_with(start))
}

fn last_line(reply: &str) -> &str {
    reply.rsplit('\n').next().unwrap_or_default()
}

#[derive(Debug)]
struct Handle {
    id: u32,
    columns: Vec<Column>,
    asks_for_number: bool,
}

/// Answer to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Everything that is compared.
    pub whole: String,
    /// The values, the number of an error, or that it went well.
    pub brief: String,
}

impl Reply {
    /// True if this is the answer that a story expects.
    #[must_use]
    pub fn is(&self, expected: &str) -> bool {
        let Some(error) = expected.strip_prefix("error ") else {
            return self.brief == expected;
        };
        let (number, words) = error.split_once(' ').unwrap_or((error, ""));
        let said = self.brief.strip_prefix(&format!("error {number}: "));
        said.is_some_and(|said| said.contains(words))
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Reply {
        Reply {
            whole: text.to_owned(),
            brief: text.to_owned(),
        }
    }
}

/// Tells steps to an address, one after the other.
#[derive(Debug)]
pub struct Teller<'a> {
    admin: &'a mut Client,
    address: &'a Address,
    pool: Option<&'a Pool>,
    /// Schema of the usual login.
    schema: String,
    /// Nothing is left out of replies but the ids of statements and the order of reports.
    pub strict: bool,
    clients: Vec<Option<Client>>,
    handles: HashMap<(usize, usize), Handle>,
    /// Clients in a transaction, as their last reply says.
    in_transaction: HashSet<usize>,
}

/// Tells a script, to a pool where there is one; what each step was answered. The administrator
/// sees who waits for whom.
#[must_use]
pub fn tell(
    admin: &mut Client,
    address: &Address,
    pool: Option<&Pool>,
    steps: &[Step],
) -> Vec<String> {
    let mut teller = Teller::new(admin, address, pool, super::ground::SCHEMAS[0]);
    steps.iter().map(|step| teller.timed(step).whole).collect()
}

fn account(login: &Login, schema: &str) -> Account {
    let account = match login.user.as_deref() {
        None if login.other => Account::new("other", "other's"),
        None => Account::new("app", "app"),
        Some("bare") => Account::new("bare", ""),
        Some(name) => Account::new(name, name),
    };
    let account = match &login.password {
        Some(password) => Account::new(&account.user, password),
        None => account,
    };
    let account = match &login.into {
        Some(schema) => account.schema(schema),
        None if login.schema => account.schema(schema),
        None => account,
    };
    let account = match login.collation {
        Some(collation) => account.speaking(collation),
        None => account,
    };
    let account = account.with(login.with).extended(login.extended);
    account.without(login.without)
}

fn columns_of(outcome: &Outcome) -> &[Column] {
    match outcome {
        Outcome::Rows(rows) => &rows.columns,
        _ => &[],
    }
}

/// A result in few words.
fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(_) => "ok".into(),
        Outcome::Failed(failure) => format!("error {}: {}", failure.code, failure.message),
        Outcome::Rows(rows) => {
            let rows = rows.texts().into_iter().map(|row| row.join(", "));
            rows.collect::<Vec<_>>().join("; ")
        }
        Outcome::Prepared(_) => "prepared".into(),
        Outcome::Text(text) => text.clone(),
    }
}

fn number_of(client: &Client) -> u32 {
    let greeting = client.talk().greeting.as_ref();
    greeting.expect("logged in").connection_id
}

impl<'a> Teller<'a> {
    /// Tells to this address, which is a pool's where there is one.
    pub fn new(
        admin: &'a mut Client,
        address: &'a Address,
        pool: Option<&'a Pool>,
        schema: &str,
    ) -> Teller<'a> {
        Teller {
            admin,
            address,
            pool,
            schema: schema.to_owned(),
            strict: false,
            clients: Vec::new(),
            handles: HashMap::new(),
            in_transaction: HashSet::new(),
        }
    }

    /// True if a client's last reply says that it is in a transaction.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        !self.in_transaction.is_empty()
    }

    /// Takes a step; one that takes long is named.
    pub fn timed(&mut self, step: &Step) -> Reply {
        if let Some(pool) = self.pool.filter(|_| step.late) {
            pool.let_finish();
        }
        let began = Instant::now();
        let reply = self.step(step);
        if began.elapsed() > SLOW {
            let (time, who) = (began.elapsed(), step.who);
            eprintln!("{time:.1?} for a step of client {who}: {:?}", step.act);
        }
        reply
    }

    fn client(&mut self, who: usize) -> Option<&mut Client> {
        self.clients.get_mut(who)?.as_mut()
    }

    fn set_client(&mut self, who: usize, client: Option<Client>) {
        if self.clients.len() <= who {
            self.clients.resize_with(who + 1, || None);
        }
        if client.is_none() {
            self.in_transaction.remove(&who);
        }
        self.clients[who] = client;
    }

    /// Writes down what is compared of a client's reply.
    fn reply(&mut self, who: usize, reply: Result<Vec<Outcome>, ClientError>) -> Reply {
        let mut outcomes = match reply {
            Ok(outcomes) => outcomes,
            // An end that the other side's system has noticed is the same end.
            Err(ClientError::Io(error)) if ENDS.contains(&error.kind()) => {
                return "no reply: the connection has ended".into();
            }
            Err(error) => return (&format!("no reply: {error}")[..]).into(),
        };
        for outcome in &mut outcomes {
            if let Outcome::Done(done) | Outcome::Rows(Rows { end: done, .. }) = outcome {
                match done.status & wire::status::IN_TRANS {
                    0 => self.in_transaction.remove(&who),
                    _ => self.in_transaction.insert(who),
                };
            }
            outcome.sort_changes();
            if !self.strict {
                outcome.forget_work_in_transaction();
                outcome.forget_empty_change();
            }
            outcome.forget_statement_id();
            if let Outcome::Prepared(prepared) = outcome {
                prepared.id = 0;
            }
        }
        let columns: Vec<_> = outcomes.iter().map(columns_of).collect();
        let briefs: Vec<_> = outcomes.iter().map(brief).collect();
        Reply {
            whole: format!("{outcomes:?} columns: {columns:?}"),
            brief: briefs.join(" | "),
        }
    }

    /// A reply that may hold the number of its client's connection.
    fn numbered(&mut self, who: usize, reply: Result<Vec<Outcome>, ClientError>) -> Reply {
        let mut reply = reply;
        if let Some(id) = self.client(who).map(|client| number_of(client)) {
            let outcomes = reply.iter_mut().flatten();
            outcomes.for_each(|outcome| outcome.forget_number(id));
        }
        self.reply(who, reply)
    }

    /// Asks the pool what it says of a client.
    fn pinned(&mut self, who: usize, words: &str) -> Reply {
        let (Some(pool), Some(client)) = (self.pool, self.client(who)) else {
            return Reply::default();
        };
        let report = pool.report_of(number_of(client));
        match report.unwrap_or_else(|why| why) {
            report if report.contains(words) => Reply::default(),
            report => (&report[..]).into(),
        }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let who = step.who;
        match &step.act {
            Act::Together(all) => return self.together(all),
            Act::Join(login) => return self.join(who, login),
            Act::Blocked(sql, steps) => return self.blocked(who, sql, steps),
            Act::Kill(whom, kill) => return self.kill(who, *whom, *kill),
            Act::Server(sql) => {
                // Locks of other tests on the whole server, which it waits for, may wait for it.
                let reply = send_until(self.admin, sql, |reply| !is_deadlock(reply.last()));
                if let Some(Outcome::Failed(why)) = reply.unwrap().last() {
                    panic!("{sql}: {why}");
                }
                return Reply::default();
            }
            Act::Pinned(words) => return self.pinned(who, words),
            Act::HearOut => return self.heard_out(who),
            Act::AtOnce(all) => return self.at_once(who, all),
            _ => {}
        }
        let schema = self.schema.clone();
        let Some(client) = self.client(who) else {
            return "not there".into();
        };
        let reply = match &step.act {
            Act::Leave => {
                let left = client.run(Command::Quit, b"");
                self.set_client(who, None);
                left
            }
            Act::Vanish => {
                self.set_client(who, None);
                Ok(Vec::new())
            }
            Act::Sql(sql) if step.asks_for_number() => {
                let reply = client.query(sql);
                return self.numbered(who, reply);
            }
            Act::Sql(sql) => send_until(client, sql, |reply| !is_disturbed(sql, reply)),
            Act::Bytes(text) => client.run(Command::Query, text),
            Act::Attribute(value) => {
                client.attributes(&[("n", value)]);
                Ok(Vec::new())
            }
            Act::InitDb(name) => client.run(Command::InitDb, name.as_bytes()),
            Act::Ping => client.run(Command::Ping, b""),
            Act::Statistics => client.run(Command::Statistics, b"").map(|outcomes| {
                assert!(matches!(outcomes[..], [Outcome::Text(_)]), "{outcomes:?}");
                Vec::new()
            }),
            Act::Reset => client.run(Command::ResetConnection, b""),
            Act::MultiStatements(on) => client.run(Command::SetOption, &[u8::from(!on), 0]),
            Act::ChangeUser(login) => {
                let mut reply = client.change_user(&account(login, &schema));
                reply.iter_mut().flatten().for_each(Outcome::forget_changes);
                reply
            }
            Act::Command(command, arguments) => match Command::from_byte(*command) {
                Some(command) => client.run(command, arguments),
                None => {
                    // A ping is answered in the same form: by one packet.
                    let len = u8::try_from(1 + arguments.len()).expect("a short command");
                    let packet = [&[len, 0, 0, 0, *command], &arguments[..]].concat();
                    client.exchange(&packet, Command::Ping)
                }
            },
            act => return self.statement(who, act),
        };
        self.reply(who, reply)
    }

    /// Packets that a client gets until its connection ends, and the kind of end: orderly or reset.
    fn heard_out(&mut self, who: usize) -> Reply {
        let mut heard = String::new();
        while let Some(client) = self.client(who) {
            match client.wait() {
                Ok(happened) => heard.push_str(&format!("{happened:?}, ")),
                Err(error) => {
                    match error {
                        ClientError::Io(error) => heard.push_str(&format!("{:?}", error.kind())),
                        error => heard.push_str(&error.to_string()),
                    }
                    self.set_client(who, None);
                }
            }
        }
        (&heard[..]).into()
    }

    fn join(&mut self, who: usize, login: &Login) -> Reply {
        self.handles.retain(|(owner, _), _| *owner != who);
        match Client::connect(self.address, &account(login, &self.schema)) {
            Ok(mut client) => {
                client.local_file = Some(LOCAL_FILE.into());
                client
                    .wait_at_most(ANSWER_MAX)
                    .expect("a socket takes a limit");
                self.set_client(who, Some(client));
                "in".into()
            }
            Err(error) => {
                let code = match &error {
                    ClientError::Refused(failure) => failure.code,
                    _ => 0,
                };
                Reply {
                    whole: format!("not let in: {error}"),
                    brief: format!("error {code}: {error}"),
                }
            }
        }
    }

    /// Commands in one write, and the replies to those that have one.
    fn at_once(&mut self, who: usize, all: &[(u8, Vec<u8>)]) -> Reply {
        let command = |(byte, text): &(u8, Vec<u8>)| {
            let command = Command::from_byte(*byte).expect("a command that servers know");
            (command, text.clone())
        };
        let all: Vec<_> = all.iter().map(command).collect();
        let commands: Vec<_> = all
            .iter()
            .map(|(command, text)| (*command, &text[..]))
            .collect();
        let sent = self.client(who).map(|client| client.send(&commands));
        let mut record = format!("sent: {}\n", matches!(sent, Some(Ok(()))));
        for (command, _) in &commands {
            if matches!(command, Command::StmtClose | Command::StmtSendLongData) {
                continue;
            }
            if let Some(reply) = self.client(who).map(Client::receive) {
                let Reply { whole, .. } = self.reply(who, reply);
                record.push_str(&format!("{command:?}: {whole}\n"));
            }
        }
        (&record[..]).into()
    }

    /// Prepared statements; one that could not be prepared is not executed either.
    fn statement(&mut self, who: usize, act: &Act) -> Reply {
        let Some(client) = self.clients.get_mut(who).and_then(Option::as_mut) else {
            return "not there".into();
        };
        if let Act::Prepare(slot, sql) = act {
            let reply = client.run(Command::StmtPrepare, sql.as_bytes());
            self.handles.remove(&(who, *slot));
            if let Ok([Outcome::Prepared(prepared)]) = reply.as_deref() {
                let handle = Handle {
                    id: prepared.id,
                    columns: prepared.columns.clone(),
                    asks_for_number: asks_for_number(sql),
                };
                self.handles.insert((who, *slot), handle);
            }
            return self.reply(who, reply);
        }
        let slot = match act {
            Act::Execute(slot, ..) | Act::Again(slot, _) | Act::Fetch(slot, _) => *slot,
            Act::Bulk(slot, _) | Act::Cut(slot) => *slot,
            Act::LongData(slot, ..) | Act::ResetStatement(slot) | Act::Close(slot) => *slot,
            Act::About(slot, ..) => *slot,
            _ => return "no statement".into(),
        };
        let Some(handle) = self.handles.get(&(who, slot)) else {
            return "not prepared".into();
        };
        let (id, name) = (handle.id, handle.id.to_le_bytes());
        let reply = match act {
            Act::Execute(_, values, cursor) => client.execute(id, &bytes(values), *cursor),
            Act::Again(_, values) => client.execute_again(id, &bytes(values)),
            Act::Cut(_) => client.execute_cut(id),
            Act::Bulk(_, rows) => {
                let rows: Vec<_> = rows.iter().map(|row| bytes(row)).collect();
                let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
                client.run(Command::StmtBulkExecute, &bulk_execution(id, true, &rows))
            }
            Act::Fetch(_, rows) => client.fetch(id, *rows, &handle.columns),
            Act::LongData(_, param, data) => {
                let data = [&name[..], &param.to_le_bytes(), data.as_bytes()].concat();
                client.run(Command::StmtSendLongData, &data)
            }
            Act::ResetStatement(_) => client.run(Command::StmtReset, &name),
            Act::About(_, command, more) => {
                let command = Command::from_byte(*command).expect("a command of statements");
                client.run(command, &[&name[..], more].concat())
            }
            _ => client.run(Command::StmtClose, &name),
        };
        match handle.asks_for_number {
            true => self.numbered(who, reply),
            false => self.reply(who, reply),
        }
    }

    /// Sends a client's statement that waits, runs the steps of others, and takes its reply.
    fn blocked(&mut self, who: usize, sql: &str, steps: &[Step]) -> Reply {
        let Some(client) = self.clients.get_mut(who).and_then(Option::as_mut) else {
            return "not there".into();
        };
        let sent = client.send(&[(Command::Query, sql.as_bytes())]);
        await_blocked(self.admin, client, sql);
        let mut record = format!("sent: {}\n", sent.is_ok());
        for step in steps {
            let text = self.step(step).whole;
            record.push_str(&format!("client {}: {text}\n", step.who));
        }
        match self.client(who).map(Client::receive) {
            Some(reply) => {
                let Reply { whole, brief } = self.reply(who, reply);
                record.push_str(&whole);
                Reply {
                    whole: record,
                    brief,
                }
            }
            None => (&record[..]).into(),
        }
    }

    /// Ends a client by another; its connection is not looked at again if it is ended.
    fn kill(&mut self, who: usize, whom: usize, kill: Kill) -> Reply {
        let Some(id) = self.client(whom).map(|client| number_of(client)) else {
            return "nobody there".into();
        };
        let Some(client) = self.client(who) else {
            return "not there".into();
        };
        let mut reply = match kill {
            Kill::Query => client.query(&format!("KILL QUERY {id}")),
            Kill::Connection => client.query(&format!("KILL {id}")),
            Kill::Command => client.run(Command::ProcessKill, &id.to_le_bytes()),
        };
        let outcomes = reply.iter_mut().flatten();
        outcomes.for_each(|outcome| outcome.forget_number(id));
        if kill != Kill::Query && matches!(reply.as_deref(), Ok([Outcome::Done(_)])) {
            self.set_client(whom, None);
        }
        self.reply(who, reply)
    }

    /// All send, then all receive; in the record they stand in the order of the script.
    fn together(&mut self, all: &[(usize, String)]) -> Reply {
        let mut sent = Vec::new();
        for (who, sql) in all {
            if let Some(client) = self.client(*who) {
                sent.push((*who, client.send(&[(Command::Query, sql.as_bytes())])));
            }
        }
        let mut record = String::new();
        for (who, sent) in sent {
            let Some(client) = self.client(who) else {
                continue;
            };
            let reply = sent.and_then(|()| client.receive());
            let text = self.reply(who, reply).whole;
            record.push_str(&format!("client {who}: {text}\n"));
        }
        (&record[..]).into()
    }
}

/// Sends a statement, and again as long as its reply is not `enough`, [`DEADLOCKS_MAX`] times at
/// most.
fn send_until(
    client: &mut Client,
    sql: &str,
    enough: impl Fn(&[Outcome]) -> bool,
) -> Result<Vec<Outcome>, ClientError> {
    let mut reply = client.query(sql);
    for _ in 1..DEADLOCKS_MAX {
        if reply.as_ref().map_or(true, |reply| enough(reply)) {
            break;
        }
        reply = client.query(sql);
    }
    reply
}

/// True of a statement that a deadlock has ended.
fn is_deadlock(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Failed(why)) if why.code == 1213)
}

/// True if MySQL's dictionary made a deadlock of a definition and of those of other tests: servers
/// have no other deadlock for one, so it is sent again.
fn is_disturbed(sql: &str, reply: &[Outcome]) -> bool {
    let verb = sql.split_whitespace().next().unwrap_or_default();
    let defines = ["CREATE", "ALTER", "DROP", "RENAME"];
    reply.len() == 1
        && is_deadlock(reply.last())
        && defines.iter().any(|one| verb.eq_ignore_ascii_case(one))
}

/// True if a result may hold the number of a connection.
fn asks_for_number(sql: &str) -> bool {
    Step::sql(0, sql).asks_for_number()
}

fn bytes(values: &[Option<String>]) -> Vec<Option<&[u8]>> {
    values
        .iter()
        .map(|value| value.as_deref().map(str::as_bytes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Failure;

    #[test]
    fn only_a_definition_that_a_deadlock_ended_is_sent_again() {
        let failed = |code| {
            let failure = Failure {
                code,
                state: "40001".into(),
                message: "Deadlock found".into(),
            };
            vec![Outcome::Failed(failure)]
        };
        for sql in [
            "CREATE TABLE t (id INT)",
            "drop trigger x",
            " Alter table t ADD c INT",
        ] {
            assert!(is_disturbed(sql, &failed(1213)), "{sql}");
            assert!(!is_disturbed(sql, &failed(1205)), "{sql}");
            assert!(!is_disturbed(sql, &[]), "{sql}");
        }
        for sql in ["UPDATE t SET v = 1", "INSERT INTO t VALUES (1)", ""] {
            assert!(!is_disturbed(sql, &failed(1213)), "{sql}");
        }
    }
}
