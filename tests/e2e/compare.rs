//! A story told twice: on connections of the clients' own, and through the pool.
//!
//! Every reply is written down whole: values, columns, affected rows, insert id, status flags,
//! warnings, trackers (which have no order). Both records must be the same line by line.
//! With `ONRAMP_LATE` set each statement comes only after the pool has asked what it wants to know
//! about the one before: what clients are answered must not depend on that.

use crate::world::*;
use testkit::reply::Prepared;

/// One telling.
pub(crate) struct Story {
    pub(crate) address: Address,
    /// The story's schema; empty when it begins.
    pub(crate) schema: String,
    clients: Vec<Client>,
    record: Vec<String>,
    /// True if it is told through the pool.
    pub(crate) pooled: bool,
    /// Its pool, if it has one of its own.
    pool: Option<Pool>,
    /// Every statement comes only after the pool has its answers about the one before.
    pub(crate) late: bool,
}

impl Story {
    /// Logs another client in, in the story's schema.
    pub(crate) fn join(&mut self) -> usize {
        let account = app().schema(&self.schema);
        self.join_as(&account)
    }

    /// Logs another client in.
    pub(crate) fn join_as(&mut self, account: &Account) -> usize {
        self.clients.push(login(&self.address, account));
        self.clients.len() - 1
    }

    /// Logs another client in that sends these commands together with its login; their replies are
    /// recorded.
    pub(crate) fn join_saying(&mut self, account: &Account, commands: &[(Command, &[u8])]) {
        let client = Client::connect_saying(&self.address, account, commands);
        let mut client = match client {
            Ok(client) => client,
            Err(error) => return self.say(&format!("not let in: {error}")),
        };
        let who = self.clients.len();
        for (command, arguments) in commands {
            let reply = client.receive();
            let said = String::from_utf8_lossy(arguments);
            self.note(
                &format!("client {who}: {command:?} {}", short(&said)),
                reply,
            );
        }
        self.clients.push(client);
    }

    /// Waits until the pool has no question of its own left about what came before.
    pub(crate) fn let_pool_finish(&mut self) {
        if let Some(pool) = &self.pool {
            pool.let_finish();
        }
    }

    /// A client, for what has no method here; nothing is recorded.
    pub(crate) fn client(&mut self, who: usize) -> &mut Client {
        &mut self.clients[who]
    }

    /// A client runs SQL.
    pub(crate) fn sql(&mut self, who: usize, sql: &str) -> Vec<Outcome> {
        let reply = self.clients[who].query(sql);
        self.note(&format!("client {who}: {}", short(sql)), reply)
    }

    /// A client runs several statements, one after the other.
    pub(crate) fn all(&mut self, who: usize, statements: &[&str]) {
        for sql in statements {
            self.sql(who, sql);
        }
    }

    /// A client runs a command.
    pub(crate) fn command(&mut self, who: usize, command: Command, arguments: &[u8]) {
        let reply = self.clients[who].run(command, arguments);
        self.note(&format!("client {who}: {command:?}"), reply);
    }

    /// A client changes its user. What a server reports of the new session is not compared: the
    /// pool answers before any backend has the session.
    pub(crate) fn change_user(&mut self, who: usize, account: &Account) {
        let mut reply = self.clients[who].change_user(account);
        reply.iter_mut().flatten().for_each(Outcome::forget_changes);
        self.note(&format!("client {who} becomes {}", account.user), reply);
    }

    /// A client prepares a statement; ids are not compared, they are each server's own.
    pub(crate) fn prepare(&mut self, who: usize, sql: &str) -> Prepared {
        let prepared = self.clients[who].prepare(sql);
        let Prepared {
            params,
            columns,
            warnings,
            eofs,
            ..
        } = &prepared;
        self.record.push(format!(
            "client {who} prepares {sql}: {params:?} {columns:?} {warnings} {eofs:?}"
        ));
        prepared
    }

    /// A client executes a prepared statement.
    pub(crate) fn execute(&mut self, who: usize, id: u32, params: &[Option<&[u8]>]) {
        let reply = self.clients[who].execute(id, params, false);
        self.note(&format!("client {who} executes {params:?}"), reply);
    }

    /// Writes something down that a client has heard otherwise than as a reply.
    pub(crate) fn say(&mut self, what: &str) {
        self.record.push(what.to_string());
    }

    /// Writes a reply down.
    pub(crate) fn note(
        &mut self,
        what: &str,
        reply: Result<Vec<Outcome>, ClientError>,
    ) -> Vec<Outcome> {
        let mut reply = reply;
        for outcome in reply.iter_mut().flatten() {
            outcome.sort_changes();
            outcome.forget_statement_id();
        }
        let text = match &reply {
            Ok(outcomes) => format!("{outcomes:?}"),
            Err(error) => format!("no reply: {error}"),
        };
        self.record.push(format!("{what}: {text}"));
        if self.late {
            self.let_pool_finish();
        }
        reply.unwrap_or_default()
    }
}

fn short(sql: &str) -> &str {
    &sql[..sql.floor_char_boundary(120)]
}

fn tell(
    (address, way): (Address, Option<Way>),
    schema: &str,
    story: &impl Fn(&mut Story),
) -> Vec<String> {
    let mut telling = Story {
        address,
        schema: schema.into(),
        clients: Vec::new(),
        record: Vec::new(),
        pooled: way.is_some(),
        pool: way.map(Way::into_pool),
        late: std::env::var_os("ONRAMP_LATE").is_some(),
    };
    story(&mut telling);
    telling.record
}

/// Tells `story` directly and through a pool with at most so many backends; the test fails where
/// the records differ. `test` is its schema's name.
pub(crate) fn same(test: &str, backends: usize, story: impl Fn(&mut Story)) {
    let Some(real) = pooled(server) else { return };
    same_on(real, test, backends, story);
}

/// Compares a story on both servers, where they are installed.
pub(crate) fn same_on_both(test: &str, backends: usize, story: impl Fn(&mut Story)) {
    for real in pooled_servers() {
        same_on(real, test, backends, &story);
    }
}

/// Compares a story on a server of the test's choice.
pub(crate) fn same_on(real: &Real, test: &str, backends: usize, story: impl Fn(&mut Story)) {
    fresh_schema(real, test);
    let expected = tell((real.address(), None), test, &story);
    fresh_schema(real, test);
    let way = through(real, backends);
    let found = tell((Address::clone(&way), Some(way)), test, &story);
    for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert!(
            expected == found,
            "{test}: step {index} differs\n  server itself: {expected}\n  through pool:  {found}"
        );
    }
    assert_eq!(expected.len(), found.len(), "{test}: steps");
}
