//! Telling a script: to an address, step by step, with every reply written down.
//!
//! What is not compared, and why, stands here and nowhere else:
//!
//! - the number of a prepared statement, also in the words of an error: each server's own, and the
//!   pool's are virtual;
//! - what a change of user reports of the new session: the pool answers before any backend has it;
//! - the order of the trackers' reports in one reply: servers have none;
//! - the flag SESSION_STATE_CHANGED without a report: MariaDB sets it for clients that cannot read
//!   reports, and for a schema that a prepared statement enters and leaves again.

use super::ground::CLIENTS_MAX;
use super::script::{Act, Login, Step};
use crate::client::{Client, ClientError};
use crate::reply::{Column, Outcome};
use crate::talk::Account;
use reactor::Address;
use std::collections::HashMap;
use std::time::Duration;
use wire::command::Command;

/// Longer than any statement of a script takes, and than the pool lets one wait.
const ANSWER_MAX: Duration = Duration::from_secs(12);

#[derive(Debug)]
struct Handle {
    id: u32,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Teller<'a> {
    address: &'a Address,
    clients: [Option<Client>; CLIENTS_MAX],
    handles: HashMap<(usize, usize), Handle>,
}

/// Tells a script; what each step was answered.
#[must_use]
pub fn tell(address: &Address, steps: &[Step]) -> Vec<String> {
    let mut teller = Teller {
        address,
        clients: Default::default(),
        handles: HashMap::new(),
    };
    steps.iter().map(|step| teller.step(step)).collect()
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
    account.with(login.with).without(login.without)
}

fn text_of(reply: Result<Vec<Outcome>, ClientError>) -> String {
    match reply {
        Ok(mut outcomes) => {
            for outcome in &mut outcomes {
                outcome.sort_changes();
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

impl Teller<'_> {
    fn step(&mut self, step: &Step) -> String {
        let who = step.who;
        match &step.act {
            Act::Together(all) => return self.together(all),
            Act::Join(login) => return self.join(who, login),
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
            Act::Sql(sql) => client.query(sql),
            Act::InitDb(name) => client.run(Command::InitDb, name.as_bytes()),
            Act::Ping => client.run(Command::Ping, b""),
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
            Ok(client) => {
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
                };
                self.handles.insert((who, *slot), handle);
            }
            return text_of(reply);
        }
        let slot = match act {
            Act::Execute(slot, ..) | Act::Again(slot, _) | Act::Fetch(slot, _) => *slot,
            Act::LongData(slot, ..) | Act::ResetStatement(slot) | Act::Close(slot) => *slot,
            _ => return "no statement".into(),
        };
        let Some(handle) = self.handles.get(&(who, slot)) else {
            return "not prepared".into();
        };
        let (id, name) = (handle.id, handle.id.to_le_bytes());
        text_of(match act {
            Act::Execute(_, values, cursor) => client.execute(id, &bytes(values), *cursor),
            Act::Again(_, values) => client.execute_again(id, &bytes(values)),
            Act::Fetch(_, rows) => client.fetch(id, *rows, &handle.columns),
            Act::LongData(_, param, data) => {
                let data = [&name[..], &param.to_le_bytes(), data.as_bytes()].concat();
                client.run(Command::StmtSendLongData, &data)
            }
            Act::ResetStatement(_) => client.run(Command::StmtReset, &name),
            _ => client.run(Command::StmtClose, &name),
        })
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

fn bytes(values: &[Option<String>]) -> Vec<Option<&[u8]>> {
    values
        .iter()
        .map(|value| value.as_deref().map(str::as_bytes))
        .collect()
}
