//! docs/pool/console.md, made from the console's tables and compared with what is committed.
//!
//! `ONRAMP_WRITE=1 cargo test -p pool console_page` rewrites it.

use super::shown;
use crate::generated_page::check;
use console::{DEFAULT_SCHEMA, OWN_TABLES, Table};

const PAGE: &str = "docs/pool/console.md";
const HEAD: &str = r#"# Console

<!-- Made from crates/pool/src/operations/console; do not edit.
     ONRAMP_WRITE=1 cargo test -p pool console_page -->

The console answers questions about a running pool and takes commands. It has an address, accounts
and threads of its own, so it answers also when every statement waits, when the server is away, and
when the pool takes no more clients.

```toml
[console]
listen = "127.0.0.1:6032"       # or the path of a Unix socket
admin_user = "admin"
admin_password_file = "/etc/onramp/console.password"
reader_user = "reader"          # may read, and give no commands
reader_password_env = "CONSOLE_READER_PASSWORD"
```

Any client of the MySQL protocol can use it:

```
mysql -h 127.0.0.1 -P 6032 -u admin -p
> SHOW CLIENTS WHERE state = 'waiting' ORDER BY state_seconds DESC LIMIT 10;
> SELECT pinned_by, count(*) FROM clients WHERE pins IS NOT NULL GROUP BY 1 ORDER BY 2 DESC;
> KILL 1073741831;
```

## Questions

`SHOW NAME` shows a table of those below; those of `information_schema` and `performance_schema`
need a SELECT. `LIKE 'pattern'` compares the first column, and `WHERE`, `ORDER BY` and
`LIMIT` work as in a SELECT. `SELECT` knows joins, groups, subqueries and functions: the engine is
SQLite, and its [language](https://www.sqlite.org/lang_select.html) is what may be used. Texts
in columns compare without case. Nothing can be written.

`SHOW DATABASES` lists the schemas: the pool's own tables are in `onramp`. `USE NAME` chooses the
one that `SHOW TABLES` lists; in a SELECT every table is found without its schema. `DESCRIBE NAME`
describes a table. A login that names a schema that is not here begins in `onramp`.

Each statement sees the pool as it is at that moment. Sums are at most half a second old. `clients`
and `backends` are asked of each group, 1,000 clients at a time: one that comes or goes meanwhile
may be missing or stand there twice.

## Commands

Commands need `admin_user`. Each of them is logged, with the reason where it was refused.

- `PAUSE`: statements of clients without a backend wait from now on, until `RESUME` or their
  `wait_ms_max`. Transactions and pinned clients go on, so after a while the server is at rest:
  `SHOW BACKENDS` has nobody `running` or `held` then.
  `paused` in `SHOW SERVERS` and `onramp_pool_paused` in the metrics say so. Clients may still log
  in. A pause outlives the administrator's connection, and ends with a drain.
- `RESUME`: they go on.
- `KILL [CONNECTION] ID`: closes a client and ends its statement on the server.
- `KILL QUERY ID`: ends its statement; the client gets error 1317.
- `RECONNECT`: replaces all connections to the server, each when its client has done with it.
- `RELOAD`: reads the settings and certificates again, as SIGHUP does, and says which settings hold
  now and which need a restart (`reload` in `SHOW CONFIG`). Settings that are wrong change nothing.
- `SET NAME = VALUE`: changes a setting of the whole pool until the next reload, if it is one that
  a [reload](signals-and-log.md#reload) can change: `SET backends_max = 40`,
  `SET statement_log = 'masked'`. Names of a list have commas between them. Edits of the file that
  no reload has read stay out. `SET NAME = DEFAULT` takes it back: to what was read last, or to the
  default. What `SHOW CONFIG` shows of a default is a value too: `SET idle_s_max = 'no limit'`.
  `SET GLOBAL NAME` and `SET @@GLOBAL.NAME` mean the same, and `:=` is `=`. No session has settings:
  `SET SESSION NAME` and `SET @@NAME` get error 1229. Variables of a session that connectors set are
  accepted, and nothing happens; other names are refused.
- `DRAIN`: as SIGTERM: no new clients, running work ends, then the pool.
- `SHUTDOWN`: ends the pool at once.

## Limits

| what | what happens |
|---|---|
| more than 32 connections | the oldest that has not logged in is closed, or the oldest |
| a table with more than 200,000 rows | error 1041; `SHOW GROUPS` still works |
| an answer over 32 MiB, all answers over 128 MiB | error 1041 |
| a value over 16 MiB | error 1041 |
| more than 256 MiB for the tables and sorts of all statements | error 1041 |
| a statement over 1 MiB | error 1153, and the connection is closed |
| a pattern of LIKE or GLOB over 1,000 bytes | error 1064 |
| a statement that takes over 10 s | error 3024 |
| a group that has not answered within 2 s | error 3024; `SHOW GROUPS` still works |
| four statements at once, three of them of `reader_user` | one more waits 10 s, then error 3024 |
| 8 h without a statement, 10 s for a login or the rest of a command, 30 s for an answer | closed |
| a wrong password | error 1045, a second later |
| prepared statements of the protocol | error 1295 |

Passwords cross the connection as proofs (`caching_sha2_password`, or `mysql_native_password` where
the client begins with it). Everything else is in clear: let the console listen on the loopback or
on a Unix socket.

## Tables
"#;
const OTHERS: &str = "
## Tables of other thread pools

Tools that were written for a server's own pool find its tables in `information_schema`, and those
of MySQL's in `performance_schema`. A backend
stands for a thread there. `SHOW STATUS` and `SHOW PROCESSLIST` show `status` and `PROCESSLIST`.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let tables = shown().map(|shown| &shown.table).chain(OWN_TABLES);
    let (own, others): (Vec<&Table>, Vec<&Table>) =
        tables.partition(|table| table.schema == DEFAULT_SCHEMA);
    for (head, tables) in [("", own), (OTHERS, others)] {
        page += head;
        for table in tables {
            page += &format!("\n### {}\n\n{}\n\n", table.name, table.help);
            page += "| column | what it says |\n|---|---|\n";
            for column in table.columns {
                page += &format!("| `{}` | {} |\n", column.name, column.help);
            }
        }
    }
    page
}

#[test]
fn the_console_page_is_what_the_tables_say() {
    check(PAGE, "console_page", &page());
}
