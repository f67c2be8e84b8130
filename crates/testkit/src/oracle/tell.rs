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

use super::ground::CLIENTS_MAX;
use super::script::{Act, Kill, LOCAL_FILE, Login, Step};
use crate::client::{Client, ClientError, bulk_execution};
use crate::onramp::Pool;
use crate::real::await_blocked;
use crate::reply::{Column, Outcome};
use crate::talk::Account;
use reactor::Address;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use wire::command::Command;

/// Longer than any statement of a script takes, and than the pool lets one wait.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// A step that takes longer is named: it waits for a lock or a backend.
const SLOW: Duration = Duration::from_millis(1500);

/// The pool's refusal of a question about the statement before.
const REFUSAL: &str = "onramp: what the previous statement left is gone";

/// Statement that fails with the error of such a refusal.
pub(super) const REFUSES: &str = "SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1235, MESSAGE_TEXT = \
     'onramp: what the previous statement left is gone; run both statements again, in one \
     transaction or one text'";

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

#[derive(Debug)]
struct Teller<'a> {
    admin: &'a mut Client,
    address: &'a Address,
    clients: [Option<Client>; CLIENTS_MAX],
    handles: HashMap<(usize, usize), Handle>,
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
    let mut teller = Teller {
        admin,
        address,
        clients: Default::default(),
        handles: HashMap::new(),
    };
    let timed = |step: &Step| {
        if let Some(pool) = pool.filter(|_| step.late) {
            pool.let_finish();
        }
        let began = Instant::now();
        let reply = teller.step(step);
        if began.elapsed() > SLOW {
            let (time, who) = (began.elapsed(), step.who);
            eprintln!("{time:.1?} for a step of client {who}: {:?}", step.act);
        }
        reply
    };
    steps.iter().map(timed).collect()
}

fn account(login: &Login) -> Account {
    let account = if login.other {
        Account::new("other", "other's")
    } else {
        Account::new("app", "app")
    };
    let account = if login.schema {
        account.schema(super::ground::SCHEMAS[0])
    } else {
        account
    };
    let account = match login.collation {
        Some(collation) => account.speaking(collation),
        None => account,
    };
    let account = account.with(login.with).extended(login.extended);
    account.without(login.without)
}

fn text_of(reply: Result<Vec<Outcome>, ClientError>) -> String {
    match reply {
        Ok(mut outcomes) => {
            for outcome in &mut outcomes {
                outcome.sort_changes();
                outcome.forget_work_in_transaction();
                outcome.forget_empty_change();
                outcome.forget_statement_id();
                if let Outcome::Prepared(prepared) = outcome {
                    prepared.id = 0;
                }
            }
            let columns: Vec<_> = outcomes.iter().map(columns_of).collect();
            format!("{outcomes:?} columns: {columns:?}")
        }
        Err(error) => format!("no reply: {error}"),
    }
}

fn columns_of(outcome: &Outcome) -> &[Column] {
    match outcome {
        Outcome::Rows(rows) => &rows.columns,
        _ => &[],
    }
}

/// A reply that may hold the number of its client's connection.
fn numbered(client: &Client, reply: Result<Vec<Outcome>, ClientError>) -> String {
    let mut reply = reply;
    let id = number_of(client);
    let outcomes = reply.iter_mut().flatten();
    outcomes.for_each(|outcome| outcome.forget_number(id));
    text_of(reply)
}

fn number_of(client: &Client) -> u32 {
    let greeting = client.talk().greeting.as_ref();
    greeting.expect("logged in").connection_id
}

impl Teller<'_> {
    fn step(&mut self, step: &Step) -> String {
        let who = step.who;
        match &step.act {
            Act::Together(all) => return self.together(all),
            Act::Join(login) => return self.join(who, login),
            Act::Blocked(sql, steps) => return self.blocked(who, sql, steps),
            Act::Kill(whom, kill) => return self.kill(who, *whom, *kill),
            _ => {}
        }
        let Some(client) = self.clients[who].as_mut() else {
            return "not there".into();
        };
        let reply = match &step.act {
            Act::Leave => {
                let left = client.run(Command::Quit, b"");
                self.clients[who] = None;
                left
            }
            Act::Vanish => {
                self.clients[who] = None;
                Ok(Vec::new())
            }
            Act::Sql(sql) if step.asks_for_number() => {
                let reply = client.query(sql);
                return numbered(client, reply);
            }
            Act::Sql(sql) => client.query(sql),
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
                let mut reply = client.change_user(&account(login));
                reply.iter_mut().flatten().for_each(Outcome::forget_changes);
                reply
            }
            act => return self.statement(who, act),
        };
        text_of(reply)
    }

    fn join(&mut self, who: usize, login: &Login) -> String {
        self.handles.retain(|(owner, _), _| *owner != who);
        match Client::connect(self.address, &account(login)) {
            Ok(mut client) => {
                client.local_file = Some(LOCAL_FILE.into());
                client
                    .wait_at_most(ANSWER_MAX)
                    .expect("a socket takes a limit");
                self.clients[who] = Some(client);
                "in".into()
            }
            Err(error) => format!("not let in: {error}"),
        }
    }

    /// Prepared statements; one that could not be prepared is not executed either.
    fn statement(&mut self, who: usize, act: &Act) -> String {
        let Some(client) = self.clients[who].as_mut() else {
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
            return text_of(reply);
        }
        let slot = match act {
            Act::Execute(slot, ..) | Act::Again(slot, _) | Act::Fetch(slot, _) => *slot,
            Act::Bulk(slot, _) | Act::Cut(slot) => *slot,
            Act::LongData(slot, ..) | Act::ResetStatement(slot) | Act::Close(slot) => *slot,
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
            _ => client.run(Command::StmtClose, &name),
        };
        match handle.asks_for_number {
            true => numbered(client, reply),
            false => text_of(reply),
        }
    }

    /// A client's statement waits, others go on, its reply comes.
    fn blocked(&mut self, who: usize, sql: &str, steps: &[Step]) -> String {
        let Some(client) = self.clients[who].as_mut() else {
            return "not there".into();
        };
        let sent = client.send(&[(Command::Query, sql.as_bytes())]);
        await_blocked(self.admin, client, sql);
        let mut record = format!("sent: {}\n", sent.is_ok());
        for step in steps {
            let text = self.step(step);
            record.push_str(&format!("client {}: {text}\n", step.who));
        }
        match self.clients[who].as_mut() {
            Some(client) => record + &text_of(client.receive()),
            None => record,
        }
    }

    /// One client ends another, whose connection is not looked at again if it is ended.
    fn kill(&mut self, who: usize, whom: usize, kill: Kill) -> String {
        let Some(id) = self.clients[whom].as_ref().map(number_of) else {
            return "nobody there".into();
        };
        let Some(client) = self.clients[who].as_mut() else {
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
            self.clients[whom] = None;
        }
        text_of(reply)
    }

    /// All send, then all receive; in the record they stand in the order of the script.
    fn together(&mut self, all: &[(usize, String)]) -> String {
        let mut sent = Vec::new();
        for (who, sql) in all {
            if let Some(client) = self.clients[*who].as_mut() {
                sent.push((*who, client.send(&[(Command::Query, sql.as_bytes())])));
            }
        }
        let mut record = String::new();
        for (who, sent) in sent {
            let Some(client) = self.clients[who].as_mut() else {
                continue;
            };
            let reply = sent.and_then(|()| client.receive());
            record.push_str(&format!("client {who}: {}\n", text_of(reply)));
        }
        record
    }
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
