//! The conformance suite: every kind of session state, by every path, with two clients.
//!
//! The problem: "no client can notice the pool" is a claim of a table, state by state and path by
//! path, and a table that is typed by hand is soon wrong. The mechanism: for each cell one client
//! sets a state, another looks, sets its own and looks again, both end it; all of that is told
//! directly to the server and through a pool with one backend to share (a second one exists for
//! what is pinned), and every reply must be the same. Besides, the pool is asked twice whether the
//! client was pinned: while the state holds, and after its end. `tests/pages/conformance.md` is
//! what came of it ([`page`]).
//!
//! What is compared of a reply, and what is not, stands at [`text_of`].

mod items;
pub mod page;

use crate::client::{Client, ClientError};
use crate::onramp::Pool;
use crate::real::{Flavour, Real};
use crate::reply::{Outcome, Rows};
use crate::talk::Account;
use items::Item;
use reactor::Address;
use std::fmt;
use wire::capabilities as cap;
use wire::command::Command;

/// Way by which a client comes to have a state, or event that happens to it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// COM_QUERY.
    Text,
    /// COM_STMT_PREPARE and COM_STMT_EXECUTE.
    Prepared,
    /// Behind another statement in one text.
    Multi,
    /// Procedure.
    Call,
    /// Function.
    Function,
    /// Trigger.
    Trigger,
    /// Trigger that fails behind it.
    Failing,
    /// Transaction, rolled back at the end.
    Transaction,
    /// Between two statements that fail.
    Errors,
    /// COM_RESET_CONNECTION follows.
    Reset,
    /// COM_CHANGE_USER follows.
    ChangeUser,
    /// COM_QUERY, by clients that hear flags and warnings in EOF packets.
    Eof,
}

impl Path {
    /// All, in the order of the table's columns.
    pub const ALL: [Path; 12] = [
        Path::Text,
        Path::Prepared,
        Path::Multi,
        Path::Call,
        Path::Function,
        Path::Trigger,
        Path::Failing,
        Path::Transaction,
        Path::Errors,
        Path::Reset,
        Path::ChangeUser,
        Path::Eof,
    ];

    /// True if its client begins a session anew.
    fn starts_over(self) -> bool {
        matches!(self, Path::Reset | Path::ChangeUser)
    }

    /// Its column's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Path::Text => "text",
            Path::Prepared => "prepared",
            Path::Multi => "multi",
            Path::Call => "CALL",
            Path::Function => "function",
            Path::Trigger => "trigger",
            Path::Failing => "failing trigger",
            Path::Transaction => "transaction",
            Path::Errors => "errors",
            Path::Reset => "reset",
            Path::ChangeUser => "change user",
            Path::Eof => "EOF",
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The state.
    pub name: String,
    /// The statement that sets it.
    pub set: String,
    /// One for each path.
    pub cells: Vec<String>,
}

/// Logins until one has the privileges of now, a twentieth of a second each.
const NOTICED_MAX: usize = 2400;

/// Time of a statement, beside the pool's own questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// Start as soon as the one before is answered.
    AtOnce,
    /// Sent when the pool has no question of its own left about the statement before.
    Late,
}

/// One telling of a cell: what was done, and what came.
type Record = Vec<(&'static str, String)>;

/// A server and a pool in front of it, with two backends in one group.
pub struct Stage<'a> {
    /// The server.
    pub real: &'a Real,
    /// The pool.
    pub pool: &'a Pool,
    /// Starts another one, for what a pool learns once in its life.
    pub another: &'a dyn Fn() -> Pool,
}

impl fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} behind {}", self.real, self.pool.address)
    }
}

impl Stage<'_> {
    /// Runs the whole suite.
    ///
    /// # Panics
    /// When server or pool cannot be used at all.
    #[must_use]
    pub fn run(&self) -> Vec<Row> {
        let mut admin = self.real.admin();
        items::lay_ground(&mut admin, self.real.flavour());
        // Leaves a row uncommitted: who reads it, reads uncommitted.
        let mut writer = self.real.admin();
        writer.must("BEGIN");
        writer.must("INSERT INTO conformance.dirty VALUES (1)");
        let items = items::all(self.real.flavour());
        let rows = items.iter().map(|item| Row {
            name: item.name.into(),
            set: item.set.replace("{u}", "x"),
            cells: self.cells(&mut admin, item),
        });
        rows.collect()
    }

    fn cells(&self, admin: &mut Client, item: &Item) -> Vec<String> {
        // Through the pool, which so knows at once what triggers do.
        let mut maker = connect(&self.pool.address, Path::Text);
        items::make_routines(&mut maker, item);
        self.pool.wait_for_definitions().expect("the pool is there");
        let cells = Path::ALL.map(|path| self.cell(admin, item, path));
        items::drop_routines(&mut maker);
        cells.into()
    }

    fn cell(&self, admin: &mut Client, item: &Item, path: Path) -> String {
        let (direct, _) = self.telling(admin, item, path, None);
        // What a pool knows of privileges may be a second old: this one knows those of now.
        let own = item.given_back().map(|give_back| {
            admin.must(&give_back);
            let own = (self.another)();
            own.wait_for_definitions().expect("the pool is there");
            own
        });
        let pool = own.as_ref().unwrap_or(self.pool);
        let at_once = self.pooled_cell(admin, (item, path), &direct, (pool, Timing::AtOnce));
        // Its privileges are of one telling.
        if own.is_some() {
            return at_once;
        }
        let late = self.pooled_cell(admin, (item, path), &direct, (pool, Timing::Late));
        match (&at_once[..], &late[..]) {
            (one, other) if one == other => at_once,
            ("1235", answer) | (answer, "1235") => format!("1235 or {answer}"),
            _ => format!("{at_once}; late: {late}"),
        }
    }

    fn pooled_cell(
        &self,
        admin: &mut Client,
        (item, path): (&Item, Path),
        direct: &Record,
        (pool, timing): (&Pool, Timing),
    ) -> String {
        let (pooled, kept) = self.telling(admin, item, path, Some((pool, timing)));
        let hurried = match timing {
            Timing::AtOnce => "at once",
            Timing::Late => "late",
        };
        let steps = || direct.iter().zip(&pooled);
        if let Some((step, other)) = steps().find(|(one, other)| one != other) {
            if is_refused(&other.1) && !is_refused(&step.1) {
                return "1235".into();
            }
            eprintln!(
                "{} by {}, {hurried}, at '{}':\n  server itself: {}\n  through pool:  {}",
                item.name,
                path.name(),
                step.0,
                step.1,
                other.1
            );
            return "**differs**".into();
        }
        let refused = |(what, reply): &(&str, String)| {
            *what == SETS && reply.contains("Failed(") && path != Path::Failing
        };
        if direct.iter().any(refused) && !item.fails {
            return "refused".into();
        }
        match (&kept[0][..], &kept[1][..]) {
            ("", "") => "yes".into(),
            ("", after) => format!("yes; at its end {after}"),
            (while_it_holds, "") => format!("yes, {while_it_holds}"),
            (one, two) if one == two => format!("yes, {one}, stays"),
            (one, two) => format!("yes, {one}, then {two}"),
        }
    }

    /// Answers to the clients, and the first one's pin while the state holds, and after.
    fn telling(
        &self,
        admin: &mut Client,
        item: &Item,
        path: Path,
        pool: Option<(&Pool, Timing)>,
    ) -> (Record, [String; 2]) {
        items::reset(admin, item);
        let (pool, timing) = pool.unzip();
        let address = match pool {
            Some(pool) => pool.address.clone(),
            None => self.real.address(),
        };
        let late = pool.filter(|_| timing == Some(Timing::Late));
        let mut duo = Duo::new(&address, item, path, late);
        duo.set();
        if let Some(pool) = pool.filter(|_| item.given_back().is_some() && path.starts_over()) {
            self.wait_for_accounts(item, pool);
        }
        duo.start_over();
        duo.both_look();
        let holds = kept(pool, &duo.first);
        duo.other_sets();
        duo.both_look();
        duo.end();
        duo.both_look();
        let after = kept(pool, &duo.first);
        (duo.leave(), [holds, after])
    }

    /// Waits behind a change of privileges until who logs in through the pool is answered as by the
    /// server.
    fn wait_for_accounts(&self, item: &Item, pool: &Pool) {
        pool.wait_for("the server's accounts may have changed")
            .expect("the pool looks at the accounts");
        let asked = |address: &Address| text_of(connect(address, Path::Text).query(item.read));
        let expected = asked(&self.real.address());
        let mut admin = self.real.admin();
        for _ in 0..NOTICED_MAX {
            if asked(&pool.address) == expected {
                return;
            }
            // The pool asks by its own clock: there is no event to wait for.
            admin.must("DO SLEEP(0.05)");
        }
        panic!("{}: the pool does not notice it", item.name);
    }
}

/// True if the pool refuses to ask what the statement before has left.
fn is_refused(reply: &str) -> bool {
    reply.starts_with("[Failed(Failure { code: 1235,")
}

/// Reason why the pool keeps a client's backend, in a word; empty when it does not.
fn kept(pool: Option<&Pool>, client: &Client) -> String {
    let Some(pool) = pool else {
        return String::new();
    };
    let id = number_of(client);
    let line = pool.report_of(id).unwrap_or_else(|why| panic!("{why}"));
    if let Some((_, rest)) = line.split_once("pinned (") {
        let reason = rest.split(')').next().unwrap_or_default();
        return format!("pin `{reason}`");
    }
    match line.contains("in a transaction") {
        true => "held".into(),
        false => String::new(),
    }
}

fn connect(address: &Address, path: Path) -> Client {
    Client::connect(address, &account(path)).unwrap_or_else(|error| panic!("{address}: {error}"))
}

fn number_of(client: &Client) -> u32 {
    let greeting = client.talk().greeting.as_ref();
    greeting.expect("logged in").connection_id
}

const SETS: &str = "A sets it";

/// The two clients of a cell.
struct Duo<'a> {
    item: &'a Item,
    path: Path,
    first: Client,
    second: Client,
    /// Each statement waits until this pool has no question of its own left.
    late: Option<&'a Pool>,
    record: Record,
}

fn account(path: Path) -> Account {
    let account = Account::new("app", "app").schema("conformance");
    let account = account.with(cap::MULTI_STATEMENTS);
    match path {
        Path::Eof => account.without(cap::DEPRECATE_EOF),
        _ => account,
    }
}

impl Duo<'_> {
    fn new<'a>(address: &Address, item: &'a Item, path: Path, late: Option<&'a Pool>) -> Duo<'a> {
        let mut duo = Duo {
            item,
            path,
            first: connect(address, path),
            second: connect(address, path),
            late,
            record: Vec::new(),
        };
        if item.read.contains("FOUND_ROWS") {
            // MariaDB begins with what the thread's last session has found.
            duo.first.must("SELECT x FROM one");
            duo.second.must("SELECT x FROM one");
        }
        duo
    }

    fn wait_where_late(&self) {
        if let Some(pool) = self.late {
            pool.let_finish();
        }
    }

    fn sql(&mut self, first: bool, what: &'static str, sql: &str) {
        self.wait_where_late();
        let client = if first {
            &mut self.first
        } else {
            &mut self.second
        };
        let sql = sql.replace("{u}", self.path.name());
        let sql = sql.replace("{id}", &number_of(client).to_string());
        let text = text_of(client.query(&sql));
        self.record.push((what, text));
    }

    fn set(&mut self) {
        let set = self.item.set;
        match self.path {
            Path::Text | Path::Reset | Path::ChangeUser | Path::Eof => self.sql(true, SETS, set),
            Path::Prepared => self.prepared(),
            Path::Multi => self.sql(true, SETS, &format!("DO 0; {set}")),
            Path::Call => self.sql(true, SETS, "CALL p()"),
            Path::Function => self.sql(true, SETS, "SELECT f()"),
            Path::Trigger => self.sql(true, SETS, "INSERT INTO fired VALUES (1)"),
            Path::Failing => {
                self.sql(true, SETS, "INSERT INTO fired VALUES (2)");
                // What the pool asks after an error is answered when this has been: so it does not
                // depend on the moment which of two reasons pins.
                self.sql(true, "A goes on", "DO 0");
            }
            Path::Transaction => {
                self.sql(true, "A begins", "BEGIN");
                self.sql(true, SETS, set);
            }
            Path::Errors => {
                self.sql(true, "A errs", "SELECT * FROM nowhere");
                self.sql(true, SETS, set);
                self.sql(true, "A errs again", "SELECT * FROM nowhere");
            }
        }
    }

    fn start_over(&mut self) {
        self.wait_where_late();
        let reply = match self.path {
            Path::Reset => self.first.run(Command::ResetConnection, b""),
            Path::ChangeUser => {
                let mut reply = self.first.change_user(&account(self.path));
                reply.iter_mut().flatten().for_each(Outcome::forget_changes);
                reply
            }
            _ => return,
        };
        self.record.push(("A starts over", text_of(reply)));
    }

    fn prepared(&mut self) {
        let set = self.item.set.replace("{u}", self.path.name());
        let reply = self.first.run(Command::StmtPrepare, set.as_bytes());
        let id = match reply.as_deref() {
            Ok([Outcome::Prepared(prepared)]) => prepared.id,
            _ => return self.record.push((SETS, text_of(reply))),
        };
        let reply = self.first.execute(id, &[], false);
        self.record.push((SETS, text_of(reply)));
    }

    fn both_look(&mut self) {
        self.sql(true, "A looks", self.item.read);
        self.sql(false, "B looks", self.item.read);
        self.sql(true, "A looks again", self.item.read);
    }

    fn other_sets(&mut self) {
        if !self.item.other.is_empty() {
            self.sql(false, "B sets its own", self.item.other);
        }
    }

    fn end(&mut self) {
        for (first, what) in [(true, "A ends it"), (false, "B ends it")] {
            if !self.item.end.is_empty() {
                self.sql(first, what, self.item.end);
            }
        }
        if self.path == Path::Transaction {
            self.sql(true, "A rolls back", "ROLLBACK");
        }
    }

    /// Both give back what they hold, so that the next cell finds nothing of it.
    fn leave(mut self) -> Record {
        for client in [&mut self.first, &mut self.second] {
            let _ = client.run(Command::ResetConnection, b"");
            let _ = client.run(Command::Quit, b"");
        }
        self.record
    }
}

/// A reply as it is compared: all but the number of a prepared statement; of columns only name and
/// type, since names of the server's own come in the collation of whoever asked first; and without
/// the state of a transaction, which MySQL reports at times to clients that have not asked for it.
fn text_of(reply: Result<Vec<Outcome>, ClientError>) -> String {
    let mut outcomes = match reply {
        Ok(outcomes) => outcomes,
        Err(error) => return format!("no reply: {error}"),
    };
    for outcome in &mut outcomes {
        outcome.sort_changes();
        if let Outcome::Done(done) | Outcome::Rows(Rows { end: done, .. }) = outcome {
            done.changes
                .retain(|change| !change.starts_with("transaction="));
        }
        outcome.forget_empty_change();
        if let Outcome::Prepared(prepared) = outcome {
            prepared.id = 0;
        }
    }
    let kinds = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Rows(rows) => Some(rows.columns.iter().map(|column| column.kind).collect()),
        _ => None,
    });
    let kinds: Vec<Vec<u8>> = kinds.collect();
    format!("{outcomes:?} types: {kinds:?}")
}

/// The name of the server's line, as the page has it.
#[must_use]
pub fn server_of(real: &Real) -> &'static str {
    match real.flavour() {
        Flavour::MariaDb => "MariaDB",
        Flavour::MySql => "MySQL",
    }
}
