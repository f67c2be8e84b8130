//! What code that nobody has read finds of the statement before it.
//!
//! The problem: a procedure or function whose text is not known may begin with ROW_COUNT(),
//! FOUND_ROWS() or, on MariaDB, SHOW WARNINGS, and its backend may have served others since its
//! client's last statement. The client is pinned for that code from then on, but what it finds
//! first must be its client's too. The mechanism: the backend is put where the client's own
//! connection would be by statements in front, in the same write. FOUND_ROWS() is a query's that
//! finds as many rows (`found.rs`); ROW_COUNT() is -1 behind SHOW WARNINGS, 0 behind COM_PING, 1
//! behind SELECT ... INTO, and any other number behind an INSERT into a temporary table, which goes
//! with the backend, as does the client. All of them were compared with MariaDB 10.11 and MySQL
//! 9.7. Conditions of others are cleared in front of any statement (`diagnostics.rs`).
//!
//! Invariant: nothing is put in front of a statement whose text tells all that runs.

use crate::backend::{InFlight, Purpose};
use crate::config::StoredCode;
use crate::found::table_of;
use crate::group::Group;
use reactor::{Key, Net};
use session::statement::Code;
use sql::lex::Server;
use wire::attributes::put_query;
use wire::command::{Command, ReplyShape, put_command};

/// Rows that a backend is made to have counted, at most; more would cost more than the question is
/// worth.
const COUNTED_MAX: i64 = 65_536;
/// Leaves ROW_COUNT() -1 and all else as it is.
const NO_COUNT: &str = "SHOW WARNINGS LIMIT 0";
/// A temporary table, made and filled without a transaction.
const MAKE_TABLE: &str = "CREATE TEMPORARY TABLE onramp_counted (a TINYINT) ENGINE=MEMORY";
/// MySQL 9 warns of the next change of an InnoDB table behind one of a MEMORY table (6414), so that
/// this one begins a transaction, which autocommit ends.
const MAKE_TABLE_MYSQL: &str = "CREATE TEMPORARY TABLE onramp_counted (a TINYINT) ENGINE=InnoDB";

/// What gives a backend a ROW_COUNT(), one statement behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Counting {
    /// COM_PING
    Ping,
    /// This text.
    Text(String),
    /// These, which leave a temporary table.
    Table([String; 2]),
}

/// The statements that leave this ROW_COUNT(); `found`: the FOUND_ROWS() that they must leave, the
/// inner `None` where any will do.
fn counting(rows: i64, found: Option<Option<u64>>, server: Server) -> Option<Counting> {
    if rows < 0 {
        return Some(Counting::Text(NO_COUNT.into()));
    }
    if rows == 0 {
        return Some(Counting::Ping);
    }
    if rows == 1
        && let Some(found) = found
    {
        let mariadb = matches!(server, Server::MariaDb(_));
        let table = found.unwrap_or(1);
        if table == 0 && mariadb {
            return Some(Counting::Text("SELECT 1 INTO @onramp".into()));
        }
        if let Some(table) = table_of(table) {
            let all = if found.is_some_and(|rows| rows > 1) {
                "SQL_CALC_FOUND_ROWS "
            } else {
                ""
            };
            let sql = format!("SELECT {all}1 INTO @onramp FROM {table} LIMIT 1");
            return Some(Counting::Text(sql));
        }
    }
    let others = usize::try_from(rows - 1).ok()?;
    let insert = (rows <= COUNTED_MAX).then(|| {
        format!(
            "INSERT INTO onramp_counted VALUES (1){}",
            ",(1)".repeat(others)
        )
    })?;
    let make = if server.is_mysql() {
        MAKE_TABLE_MYSQL
    } else {
        MAKE_TABLE
    };
    Some(Counting::Table([make.into(), insert]))
}

impl<N: Net> Group<N> {
    /// Whether the client's statement runs code that may ask first what the one before left, and
    /// its backend does not know. A statement in one text with what restores its session would
    /// come behind another one then.
    pub(crate) fn asks_inside(&self, key: Key) -> bool {
        let settings = &self.shared.settings;
        self.clients.get(key).is_some_and(|client| {
            client.statement.code == Code::Unread
                && !client.counts_native
                // Calls that nobody is pinned for are too many.
                && settings.stored_code == StoredCode::Pin
        })
    }

    /// Writes what gives the backend what its client's statement before has left, as far as the
    /// client's next statement may ask for it unseen.
    pub(crate) fn put_before(&mut self, key: Key, lease: Key, out: &mut Vec<u8>) {
        if !self.asks_inside(key) {
            return self.put_primer(key, lease, out);
        }
        let server = self.shared.server.flavour;
        let (Some(client), Some(backend)) = (self.clients.get(key), self.backends.get(lease))
        else {
            return;
        };
        let (rows, native) = (client.row_count, client.found_native);
        // A query between SET TRANSACTION and its transaction would use that up.
        let announced = backend.transaction_announced;
        self.put_primer(key, lease, out);
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let found = client.found_rows.get();
        let found = (!native || found.is_some()).then_some(found);
        let selects = client.session.variable(b"sql_select_limit").is_none();
        // MySQL's table would begin a transaction that lasts.
        let lasts = server.is_mysql() && !client.session.commits();
        let table = client.session.schema.is_some() && !lasts;
        match counting(rows, found.filter(|_| selects), server) {
            Some(Counting::Ping) => {
                if let Some(backend) = self.backends.get_mut(lease) {
                    let command = InFlight::own(Some(key), Purpose::Primer, ReplyShape::Status);
                    backend.expect(command);
                    put_command(out, Command::Ping, b"");
                }
            }
            Some(Counting::Text(sql)) if rows < 0 || !announced => {
                self.put_in_front(key, lease, out, &sql);
            }
            Some(Counting::Table(texts)) if table && !announced => {
                for sql in &texts {
                    self.put_in_front(key, lease, out, sql);
                }
                if let Some(backend) = self.backends.get_mut(lease) {
                    backend.spoiled = true;
                }
            }
            _ => {}
        }
    }

    fn put_in_front(&mut self, key: Key, lease: Key, out: &mut Vec<u8>, sql: &str) {
        if let Some(backend) = self.backends.get_mut(lease) {
            let command = InFlight::own(Some(key), Purpose::Primer, ReplyShape::Results);
            backend.expect(command);
            put_query(out, backend.form, sql.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_rows_is_counted_by_what_leaves_the_rows_found() {
        let (mariadb, mysql) = (Server::MariaDb(101_100), Server::MySql(90_700));
        let text = |sql: &str| Some(Counting::Text(sql.into()));
        assert_eq!(counting(-1, None, mysql), text(NO_COUNT));
        assert_eq!(counting(0, Some(Some(4)), mysql), Some(Counting::Ping));
        let one = "SELECT 1 INTO @onramp FROM (SELECT 1) AS x LIMIT 1";
        assert_eq!(counting(1, Some(Some(1)), mysql), text(one));
        assert_eq!(counting(1, Some(None), mariadb), text(one));
        assert_eq!(
            counting(1, Some(Some(2)), mariadb),
            text(
                "SELECT SQL_CALC_FOUND_ROWS 1 INTO @onramp FROM (SELECT 1 UNION ALL SELECT 1) AS x \
                 LIMIT 1"
            )
        );
        assert_eq!(
            counting(1, Some(Some(0)), mariadb),
            text("SELECT 1 INTO @onramp")
        );
        let table = |make: &str, insert: &str| Some(Counting::Table([make.into(), insert.into()]));
        let insert = "INSERT INTO onramp_counted VALUES (1)";
        assert_eq!(
            counting(1, Some(Some(0)), mysql),
            table(MAKE_TABLE_MYSQL, insert)
        );
        assert_eq!(counting(1, None, mariadb), table(MAKE_TABLE, insert));
        assert_eq!(
            counting(3, Some(Some(1)), mysql),
            table(
                MAKE_TABLE_MYSQL,
                "INSERT INTO onramp_counted VALUES (1),(1),(1)"
            )
        );
        assert_eq!(counting(COUNTED_MAX + 1, None, mysql), None);
    }
}
