//! Tables of what clients do now: all clients, what runs, what is open, and who waits for whose
//! locks.
//!
//! Texts come without their values unless `statement_text` says otherwise. Each has the number that
//! KILL takes.

use super::{Console, Shown, digest, flag, maybe, number, seconds, text};
use crate::observe::figures::Stage;
use crate::observe::listing::ClientLine;
use crate::observe::metrics::Sample;
use crate::server::watched::lock_waits::LockWait;
use console::{Column, DEFAULT_SCHEMA, Row, Table, Type, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

tables! { TABLES DEFAULT_SCHEMA;
    "running" "A statement that runs or waits, the longest first." running => {
        "id" Integer(10) "CONNECTION_ID(), for KILL",
        "user" Text(12) "account",
        "address" Text(21) "address of the client",
        "program" Text "program",
        "seconds" Real(10) "time since it was sent, or has waited",
        "state" Text(8) "running or waiting",
        "thread" Integer "thread ID of its backend on the server",
        "transaction_seconds" Real "time that its transaction is open",
        "digest" Text "its digest, as in `statements`",
        "statement" Text(40) "its text, as `statement_text` says",
    }
    "transactions" "An open transaction, the oldest first." transactions => {
        "id" Integer(10) "CONNECTION_ID(), for KILL",
        "user" Text(12) "account",
        "address" Text(21) "address of the client",
        "program" Text "program",
        "seconds" Real(10) "time that it is open",
        "statements" Integer(10) "statements answered in it",
        "state" Text(8) "running, or holding: nothing runs in it",
        "state_seconds" Real "time in this state",
        "thread" Integer "thread ID of its backend on the server",
        "pins" Text "as in `clients`",
        "digest" Text "digest of its statement, the last one where none runs",
        "statement" Text(27) "text of that statement, as `statement_text` says",
    }
    "locks" "A statement that waits for a lock, the longest wait first. \
             `backend.monitor_user` asks the server, and needs PROCESS, on MySQL also SELECT on \
             performance_schema, which has to be on. Who has metadata locks MySQL tells unless its \
             instrument `wait/lock/metadata/sql/mdl` is off, MariaDB with `INSTALL SONAME \
             'metadata_lock_info'`." locks => {
        "id" Integer(10) "the waiting client's CONNECTION_ID(); NULL: no client of the pool",
        "user" Text(12) "its account",
        "seconds" Integer(7) "time that it has waited; of metadata and names, that it has run",
        "kind" Text(8) "row (of InnoDB), metadata (of what ALTER, FLUSH or LOCK change), or name \
                        (GET_LOCK)",
        "locked" Text(20) "the table or name; NULL, or (mdl instrument off): not told",
        "blocked_by" Integer(10) "CONNECTION_ID() of the client with the lock, for KILL; NULL: no \
                                  client of the pool, or not told",
        "blocker" Text(12) "its account",
        "blocker_address" Text "its address",
        "blocker_program" Text "its program",
        "blocker_state" Text(13) "its state: holding means that it runs nothing",
        "blocker_seconds" Real "time that its transaction is open",
        "blocker_statement" Text "text of its statement, the last one where none runs",
        "statement" Text "text of the waiting statement",
        "thread" Integer "the waiting thread ID on the server",
        "blocked_by_thread" Integer "thread ID with the lock, on the server",
    }
    "holders" "Clients of one account, host and program that have backends, the most \
               first." holders => {
        "user" Text(12) "account",
        "host" Text(15) "address",
        "program" Text(12) "program",
        "backends" Integer(8) "their backends",
        "running" Integer(7) "with a statement that runs",
        "holding" Integer(7) "without",
        "transactions" Integer(12) "in a transaction",
        "pinned" Integer(6) "pinned",
        "seconds" Real(10) "longest since a transaction, pin or statement of theirs began",
    }
    "clients" "A client." clients => {
        "id" Integer(10) "CONNECTION_ID(), for KILL",
        "user" Text(12) "its account; NULL during the login",
        "address" Text(21) "its address",
        "program" Text "its program, as it says itself (the connection attribute program_name); \
                        NULL for programs beyond the first 255",
        "group_id" Integer "its group",
        "connected_seconds" Real "time since it has connected",
        "state" Text(10) "logging_in, idle, holding (between statements, with a backend), waiting, \
                          running, killing, delayed (after a failed login) or leaving",
        "state_seconds" Real(13) "time in this state",
        "queue" Text "the queue in which its statement waits",
        "schema" Text "its default schema",
        "thread" Integer(8) "thread ID of its backend on the server",
        "in_transaction" Integer "1 in a transaction",
        "transaction_seconds" Real "time that its transaction is open",
        "transaction_statements" Integer "statements answered in it",
        "digest" Text "digest of its statement, the last one where none runs",
        "statement" Text "text of that statement while it runs or waits, or the client has a \
                          backend; as `statement_text` says",
        "statements" Integer "statements that it has sent to the server",
        "bytes_in" Integer "bytes that it has sent; NULL through a Unix socket",
        "bytes_out" Integer "bytes that it has taken",
        "pins" Text(20) "reasons for which it is pinned, and for how long",
        "pinned_seconds" Real "time since it was pinned",
        "pinned_by" Text "beginning of the statement that pinned it, up to the first literal",
        "prepared" Integer "its prepared statements of the protocol",
        "memory_bytes" Integer "memory that is kept for it and nobody else, besides 256 bytes",
        "unsent_bytes" Integer "bytes of its reply that it has not read",
        "tls" Integer "1 under TLS",
        "tls_version" Text "its version",
        "cipher" Text "its cipher",
    }
}

/// The reasons of its pins, each with its age.
fn pins_of(client: &ClientLine) -> Value {
    let pins = (client.pins.iter()).map(|(reason, age)| format!("{reason} {age:.0} s"));
    let pins = pins.collect::<Vec<String>>().join(", ");
    maybe((!pins.is_empty()).then_some(pins), text)
}

/// Text of a statement.
fn statement_of(client: &ClientLine) -> Value {
    maybe(client.statement.as_deref(), |statement| {
        text(statement.to_owned())
    })
}

/// Columns with which a client is told from others: number, account, address and program.
fn origin(client: &ClientLine) -> Row {
    vec![
        number(client.id),
        maybe(client.user.clone(), text),
        text(client.address.to_string()),
        maybe(client.program.as_deref(), |name| text(name.to_owned())),
    ]
}

/// A row of `clients`.
fn client(client: &ClientLine) -> Row {
    let mut row = origin(client);
    row.extend([
        number(client.group),
        seconds(client.connected_seconds),
        text(client.state),
        seconds(client.state_seconds),
        maybe(client.queue, text),
        maybe(client.schema.clone(), text),
        maybe(client.thread, number),
        flag(client.in_transaction),
        maybe(client.transaction, |open| seconds(open.0)),
        maybe(client.transaction, |open| number(open.1)),
        digest(client.digest),
        statement_of(client),
        number(client.statements),
        maybe(client.bytes, |bytes| number(bytes.0)),
        maybe(client.bytes, |bytes| number(bytes.1)),
        pins_of(client),
        maybe(client.pinned_seconds(), seconds),
        maybe(client.pinned_by.clone(), text),
        number(client.prepared),
        number(client.memory_bytes),
        number(client.unsent_bytes),
        flag(client.tls.is_some()),
        maybe(client.tls, |tls| text(tls.0)),
        maybe(client.tls, |tls| text(tls.1)),
    ]);
    row
}

fn clients(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    Ok(console.clients()?.iter().map(client).collect())
}

/// Clients that have a backend or wait for one, the longest in its state first.
fn longest<'s>(console: &Console, sample: &'s Sample<'_>) -> Result<Vec<&'s ClientLine>, String> {
    let mut clients: Vec<&ClientLine> = console.busy(sample)?.iter().collect();
    clients.sort_by(|one, other| other.state_seconds.total_cmp(&one.state_seconds));
    Ok(clients)
}

/// Rows of `clients`, at most `max`, of those that have a backend or wait for one, the longest in
/// its state first.
pub(super) fn busy(console: &Console, sample: &Sample<'_>, max: usize) -> Result<Vec<Row>, String> {
    longest(console, sample).map(|all| all.into_iter().take(max).map(client).collect())
}

fn running(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let mut clients = longest(console, sample)?;
    let stages = [Stage::Running.name(), Stage::Waiting.name()];
    clients.retain(|client| stages.contains(&client.state));
    let row = |client: &ClientLine| {
        let mut row = origin(client);
        row.extend([
            seconds(client.state_seconds),
            text(client.state),
            maybe(client.thread, number),
            maybe(client.transaction, |open| seconds(open.0)),
            digest(client.digest),
            statement_of(client),
        ]);
        row
    };
    Ok(clients.into_iter().map(row).collect())
}

fn transactions(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let clients = console.busy(sample)?.iter();
    let mut open: Vec<_> = clients
        .filter_map(|client| Some((client.transaction?, client)))
        .collect();
    open.sort_by(|(one, _), (other, _)| other.0.total_cmp(&one.0));
    let row = |((open_seconds, statements), client): ((f64, u32), &ClientLine)| {
        let mut row = origin(client);
        row.extend([
            seconds(open_seconds),
            number(statements),
            text(client.state),
            seconds(client.state_seconds),
            maybe(client.thread, number),
            pins_of(client),
            digest(client.digest),
            statement_of(client),
        ]);
        row
    };
    Ok(open.into_iter().map(row).collect())
}

fn holders(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let mut found: BTreeMap<_, ([usize; 5], f64)> = BTreeMap::new();
    let clients = console.busy(sample)?.iter();
    for client in clients.filter(|client| client.thread.is_some()) {
        let host = client.address.host();
        let key = (client.user.clone(), host, client.program.clone());
        let (counts, longest) = found.entry(key).or_default();
        let is_running = client.state == Stage::Running.name();
        let kinds = [
            true,
            is_running,
            !is_running,
            client.transaction.is_some(),
            !client.pins.is_empty(),
        ];
        for (count, is_one) in counts.iter_mut().zip(kinds) {
            *count += usize::from(is_one);
        }
        let open = client.transaction.map(|(open, _)| open);
        let since = [open, client.pinned_seconds(), Some(client.state_seconds)];
        *longest = since.into_iter().flatten().fold(*longest, f64::max);
    }
    let mut all: Vec<_> = found.into_iter().collect();
    all.sort_by_key(|(_, (counts, _))| std::cmp::Reverse(counts[0]));
    type Holder = (Option<String>, String, Option<Arc<str>>);
    let row = |((user, host, program), (counts, longest)): (Holder, ([usize; 5], f64))| {
        let mut row = vec![
            maybe(user, text),
            text(host),
            maybe(program, |program| text(program.to_string())),
        ];
        row.extend(counts.map(number));
        row.push(seconds(longest));
        row
    };
    Ok(all.into_iter().map(row).collect())
}

/// Clients by the named locks that they have; one that waits itself has not what it has asked for
/// last. MariaDB tells cases of a name apart.
fn by_lock<'a>(
    clients: &BTreeMap<u64, &'a ClientLine>,
    waits: &[LockWait],
) -> BTreeMap<&'a str, &'a ClientLine> {
    let of_name = waits.iter().filter(|wait| wait.kind == "name");
    let waiting: BTreeSet<u64> = of_name.map(|wait| wait.thread).collect();
    let mut found = BTreeMap::new();
    for (thread, client) in clients {
        let waits = usize::from(waiting.contains(thread));
        for name in client.lock_names.iter().rev().skip(waits) {
            found.entry(&**name).or_insert(*client);
        }
    }
    found
}

fn locks(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let waits = console.lock_waits()?;
    let clients = console.busy(sample)?;
    let by_thread: BTreeMap<u64, &ClientLine> = clients
        .iter()
        .filter_map(|client| Some((client.thread?.into(), client)))
        .collect();
    let by_lock = by_lock(&by_thread, &waits);
    let row = |wait: &LockWait| {
        let (waiting, mut locked) = (by_thread.get(&wait.thread), wait.locked.clone());
        let mut blocker = wait.blocked_by.and_then(|thread| by_thread.get(&thread));
        if let (None, "name", Some(waiting)) = (wait.blocked_by, &*wait.kind, waiting) {
            locked = waiting.lock_names.last().cloned();
            blocker = locked.as_deref().and_then(|name| by_lock.get(name));
        }
        let thread = blocker.and_then(|client| client.thread);
        vec![
            maybe(waiting, |client| number(client.id)),
            maybe(waiting.and_then(|client| client.user.clone()), text),
            number(wait.seconds),
            text(wait.kind.clone()),
            maybe(locked, text),
            maybe(blocker, |client| number(client.id)),
            maybe(blocker.and_then(|client| client.user.clone()), text),
            maybe(blocker, |client| text(client.address.to_string())),
            maybe(
                blocker.and_then(|client| client.program.as_deref()),
                |name| text(name.to_owned()),
            ),
            maybe(blocker, |client| text(client.state)),
            maybe(blocker.and_then(|client| client.transaction), |open| {
                seconds(open.0)
            }),
            maybe(blocker, |client| statement_of(client)),
            maybe(waiting, |client| statement_of(client)),
            number(wait.thread),
            maybe(wait.blocked_by.or(thread.map(u64::from)), number),
        ]
    };
    Ok(waits.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use console::{DEFAULT_SCHEMA, Type};

    /// Characters of a terminal.
    const TERMINAL: usize = 120;

    #[test]
    fn what_show_shows_fits_a_terminal() {
        for shown in super::super::shown() {
            let (table, columns) = (&shown.table, shown.table.columns.iter());
            let is_wide = table.columns.iter().any(|column| column.width.is_some());
            let is_shown = table.schema == DEFAULT_SCHEMA || table.name == "PROCESSLIST";
            // Where all columns are shown, as many characters as such a value may well have.
            let usual = |of: Type| match of {
                Type::Text => 40,
                Type::Integer => 12,
                Type::Real => 10,
            };
            let widths = columns.filter_map(|column| {
                let width = column.width.or((!is_wide).then(|| usual(column.of)))?;
                Some(width.max(column.name.len()) + 3)
            });
            let width = widths.sum::<usize>() + 1;
            assert!(width <= TERMINAL || !is_shown, "{}: {width}", table.name);
        }
    }
}
